# Who owns the schema of a table can put one of his own in its place.  What hangs
# on that is not run with the rights of the service, neither when accounts are
# copied nor when a change looks at the rows of a table.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;

# Citus would let him drop none of its tables, if it were told
my $mallory = 'set role mallory;' . ($cluster->nodes > 1 ? ' set citus.enable_ddl_propagation = off;' : '');
my $folder = EntityApi::Test::folder();
my %read = (permissions => { '*' => ['read'] });

sub declared
{
	my ($name, $spec) = @_;

	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => $spec });
	close $file;
	return;
}

declared(User => { accounts => JSON::PP::true, %read });
declared(Later => { fields => { name => { type => 'string' } }, %read });
$cluster->apply($folder);

my $shim = EntityApi::Test->shim($cluster);
my $acme = $shim->tenant('acme')->{id};
my $ann = $shim->user($acme, 'ann');

# Of several nodes, somebody whose rows are in another part of the tables
sub part { return $cluster->psql(qq{select get_shard_id_for_distribution_column('app."user"', '$_[0]')}) }
my $other;

if ($cluster->nodes > 1)
{
	my $more = '';

	do { $other = $shim->tenant("other$more")->{id}; $more-- } until part($other) != part($acme);
	$shim->user($other, 'bob');
}

$cluster->psql(<<'SQL');
create role mallory login;
create schema evil authorization mallory;
grant usage on schema evil to public;
alter schema app owner to mallory;
set role mallory;
grant all on schema app to entityapi_owner;
SQL
$cluster->everywhere('set role mallory; create sequence evil.calls; grant all on sequence evil.calls to public');

sub nothing_ran
{
	my ($name) = @_;
	return is(join('', $cluster->on_all('select is_called from evil.calls')), 'f' x $cluster->nodes, "$name: nothing of his ran");
}

# The node of a tenant has its part of the table, which he exchanges there: the
# table itself is as it was, and its schema is ours again.
if (defined $other)
{
	my $table = 'app.user_' . part($other);

	$cluster->home($other)->psql(<<~"SQL");
		set role mallory;
		drop table $table cascade;
		create table $table (tenant_id uuid not null, id uuid not null, username text, display_name text, email text, kind text, status text,
			created_at timestamptz, updated_at timestamptz, primary key (tenant_id, id),
			told xml default pg_catalog.query_to_xml('select pg_catalog.nextval(''evil.calls'')', true, true, ''));
		grant all on $table to entityapi_owner;
		SQL
	$cluster->psql('alter schema app owner to entityapi_owner');
	for my $change ("update entityapi.account set email = 'new\@example.com' where username = 'bob'", "delete from entityapi.account where username = 'bob'")
	{
		like($cluster->try_psql($change)->{err}, qr/the table user_\d+ is not used: .*mallory/, "refused: $change");
		nothing_ran('an account in a part of his');
	}
	$cluster->psql('alter schema app owner to mallory; grant all on schema app to entityapi_owner');
}

# with a default that runs what it is given, and is PostgreSQL's own
$cluster->psql(<<"SQL");
$mallory
drop table app."user" cascade;
create table app."user" (tenant_id uuid not null, id uuid not null, username text, display_name text, email text, kind text, status text,
	created_at timestamptz, updated_at timestamptz, primary key (tenant_id, id),
	told xml default pg_catalog.query_to_xml('select pg_catalog.nextval(''evil.calls'')', true, true, ''));
grant all on app."user" to entityapi_owner;
SQL

for my $change ("update entityapi.account set email = 'new\@example.com' where username = 'ann'", "delete from entityapi.account where username = 'ann'")
{
	my $copied = $cluster->try_psql($change);

	ok($copied->{status} != 0, "refused: $change");
	like($copied->{err}, qr/the table user is not used: .*mallory/, 'it says whose it is');
	nothing_ran('an account');
}
my $asked = $shim->http(PATCH => '/auth/me', { token => $ann->{accessToken}, json => { profile => { displayName => 'Ann' } } });
is($asked->{status}, 500, 'nor by a request, as any that needs such a table') or diag explain $asked;
nothing_ran('a request');

# with a policy for the owner of the service
$cluster->psql(<<"SQL");
$mallory
drop table app.later cascade;
create table app.later (n int);
insert into app.later values (1);
alter table app.later enable row level security;
create policy p on app.later for select to entityapi_owner
	using (pg_catalog.query_to_xml('select pg_catalog.nextval(''evil.calls'')', true, true, '') is not null);
grant select on app.later to entityapi_owner;
SQL

sub refused
{
	my ($name) = @_;

	for my $options ([], ['--dry-run'], ['--repair'])
	{
		my $change = $cluster->try_apply($folder, @$options);

		# a repair that takes a table back finds his code on it, and takes nothing
		ok($change->{status} != 0 && "$change->{out}$change->{err}" =~ /belongs to mallory|query_to_xml.* is called by the table/, "$name (@$options): it says whose")
		  or diag $change->{out}, $change->{err};
		nothing_ran("$name (@$options)");
	}
	return;
}

refused('its entity stays');
rename "$folder/Later.json", "$folder/Later.gone" or die "Later.json: $!\n";
refused('its entity goes');

# the schema is ours again, the table is not
$cluster->psql('alter schema app owner to entityapi_owner');
refused('a table of his');

is($shim->stop, 0, 'ends with 0');
done_testing;
