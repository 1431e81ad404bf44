# That its user may do what a kept plan does is remembered, and no longer than
# it is so.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::BothWays;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster, pool_size => 1, pool_writes => 1);
EntityApi::Test::BothWays::apply($cluster, {});
my $tenant = $shim->tenant('one')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
my $id = '01900000-0000-7000-8000-000000000001';
my $number = 0;

$cluster->psql("insert into app.doc (tenant_id, id, name, version, created_at, updated_at)
	select '$tenant', ('01900000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'n' || i, 1, now(), now() from generate_series(1, 500) i;
	analyze app.doc");

# plans that depend on row security are made anew for any news of members
$cluster->psql('alter table app.doc disable row level security');

my %requests = (
	reads => sub { $shim->http(GET => "/api/v1/docs/$id", { token => $ed })->{status} },
	changes => sub { $shim->http(PATCH => "/api/v1/docs/$id",
			{ token => $ed, headers => { 'if-match' => '*' }, json => { data => { type => 'docs', id => $id, attributes => { n => ++$number } } } })->{status} },
	adds => sub { $shim->http(POST => '/api/v1/docs', { token => $ed, json => { data => { type => 'docs', attributes => { name => 'new' } } } })->{status} });

sub statuses { return join ' ', map { $requests{$_}->() } qw(reads changes adds) }

# Which of these are done; what is not is a failure of the service
sub done { return statuses() =~ s/\b2\d\d/+/gr =~ s/\b500/-/gr }

is(done(), '+ + +', 'all is done') for 1, 2;

for (
	[ 'revoke all on app.doc from entityapi_owner', '- - -', 'nothing without rights' ],
	[ 'grant all on app.doc to entityapi_owner', '+ + +', 'all with them' ],
	[ 'revoke insert on app.doc from entityapi_owner', '+ + -', 'no additions' ],
	[ 'revoke update on app.doc from entityapi_owner', '+ - -', 'no changes' ],
	[ 'begin; grant all on app.doc to entityapi_owner; rollback', '+ - -', 'nor by what was undone' ],
	[ 'grant update (n, version, updated_at), insert on app.doc to entityapi_owner', '+ + +', 'columns are enough' ],
	[ 'revoke update (n) on app.doc from entityapi_owner', '+ - +', 'all of them' ],
	[ 'create role holders; grant select, insert, update on app.doc to holders; grant holders to entityapi_owner; revoke all on app.doc from entityapi_owner', '+ + +', 'rights by membership' ],
	[ 'revoke holders from entityapi_owner', '- - -', 'which ends' ],
	[ 'grant holders to entityapi_owner', '+ + +', 'and begins' ],
	[ 'alter role entityapi_owner noinherit; revoke holders from entityapi_owner; grant holders to entityapi_owner', '- - -', 'and does not count' ],
	[ 'alter role entityapi_owner inherit; revoke holders from entityapi_owner; grant holders to entityapi_owner', '+ + +', 'or does' ])
{
	my ($change, $expected, $name) = @$_;

	$cluster->psql($change);
	is(done(), $expected, $name) for 1, 2;
}

# Within one transaction of a session
subtest 'in one transaction' => sub {
	plan skip_all => 'Citus takes no REVOKE behind reads in one transaction' if $cluster->nodes > 1;

	my $get = "select status from entityapi.handle('GET', '/api/v1/docs/$id', '{\"authorization\": \"Bearer $ed->{accessToken}\"}', null, null);\n";

	is($cluster->psql("$get begin; $get revoke all on app.doc from holders; $get savepoint a; grant select on app.doc to holders; $get rollback to a; $get"
		. "rollback; $get"), join("\n", 200, 200, 500, 200, 500, 200), 'what it does itself, and undoes');
};

done_testing();
