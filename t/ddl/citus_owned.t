# Where Citus owns a table of the service and the declarations do not say so,
# nothing is answered from what it has left here, and nothing is applied.  The
# catalog of Citus is played by a table with its name and column.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $folder = EntityApi::Test::checkout() . '/t/data/lists';
my $cluster = EntityApi::Test->cluster;
$cluster->apply($folder);
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);

sub ask
{
	my ($target) = @_;
	my $answer = $shim->http(GET => $target, { token => $ed->{accessToken} });
	my $error = $answer->{json}{errors} ? $answer->{json}{errors}[0] : undef;

	return $error ? "$answer->{status} $error->{code}: $error->{detail}" : $answer->{status};
}

my $news = 'update pg_catalog.pg_class set relname = relname where oid = ';

# As Citus does it: an entry, and news of the table.
sub own
{
	my ($table) = @_;

	return $cluster->psql("insert into pg_catalog.pg_dist_partition values ('$table'); $news'$table'::regclass");
}

sub give_back
{
	my ($table) = @_;

	return $cluster->psql("delete from pg_catalog.pg_dist_partition where logicalrelid = '$table'::regclass; $news'$table'::regclass");
}

my $refusal = '503 UNAVAILABLE: The tables of this service are not where its declarations say.';

is(ask('/api/v1/items'), 200, 'without Citus');
$cluster->psql('set allow_system_table_mods = on; create table pg_catalog.pg_dist_partition (logicalrelid regclass not null)');
is(ask('/api/v1/items'), 200, 'with Citus, which owns nothing');
$cluster->psql('create table public.others (id int)');
own('public.others');
is(ask('/api/v1/items'), 200, 'or what is not ours');
is($cluster->apply($folder), "nothing to change\n", 'and apply goes on');

subtest 'a table of an entity' => sub {
	own('app.item');
	is(ask('/api/v1/items'), $refusal, 'is not read');
	is($shim->http(POST => '/api/v1/items', { token => $ed->{accessToken},
		json => { data => { type => 'items', attributes => { name => 'x', rank => 1 } } } })->{status}, 503, 'nor written');
	like(EntityApi::Test::slurp($cluster->log), qr/failed: the table item is not used: Citus keeps the rows of app\.item, where the service does not look\n.*HINT:  SELECT undistribute_table\('app\.item'\)/,
		'the log says which, and the way back');
	is(ask('/api/v1/labels'), 200, 'another one is');
	my $apply = $cluster->try_apply($folder);
	is($apply->{status}, 1, 'apply refuses');
	like($apply->{err}, qr/Citus keeps the rows of app\.item/, 'and says so') or diag "$apply->{out}$apply->{err}";
	give_back('app.item');
	is(ask('/api/v1/items'), 200, 'until it is given back');
};

subtest 'a table of the extension' => sub {
	for my $table (qw(entityapi.account entityapi.session entityapi.audit))
	{
		own($table);
		is(ask($_), $refusal, "$table: $_") for '/api/v1/items', '/auth/me';
		is($shim->http(POST => '/auth/login', { json => { username => $ed->{username}, password => 'wrong' } })->{status}, 503, 'no login');
		my $apply = $cluster->try_apply($folder);
		is($apply->{status}, 1, 'no apply');
		like($apply->{err}, qr/Citus keeps the rows of \Q$table\E, where the service does not look/, 'which says why') or diag "$apply->{out}$apply->{err}";
		give_back($table);
	}
	is(ask('/auth/me'), 200, 'until it is given back');
	is($cluster->apply($folder), "nothing to change\n", 'apply, too');
};

done_testing;
