# The regression tests on three nodes, those that t/tools/citus/left_out.txt
# does not name, one after the other in one database of the coordinator, each a
# point.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $checkout = EntityApi::Test::checkout();
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
chomp(my $pgxs = `$pg_config --pgxs`);
my $program = $pgxs =~ s{/makefiles/[^/]+$|/[^/]+$}{}r;
$program = (grep { -x } map { "$_/test/regress/pg_regress" } $program, $program =~ s{/[^/]+$}{}r)[0]
  or plan skip_all => 'pg_regress is missing';

my %left_out = map { m{^sql/(\w+)\.sql } ? ($1 => 1) : () } split /\n/, EntityApi::Test::slurp("$checkout/t/tools/citus/left_out.txt");
my @tests = grep { !$left_out{$_} && $_ ne 'setup' } map { m{([^/]+)\.sql$} } sort glob "$checkout/sql/*.sql";
my $cluster = EntityApi::Test->cluster(nodes => 3);
my $folder = EntityApi::Test::folder();
my @database = (database => 'regress');

# A database of their own, as pg_regress makes one, on each node
for my $node ($cluster->nodes)
{
	$node->psql('set citus.enable_create_database_propagation = off; create database regress', database => 'postgres');
	$node->psql("set client_min_messages = error; create extension citus; alter database regress set lc_messages = 'C';"
		  . " alter database regress set bytea_output = 'hex'; alter database regress set timezone_abbreviations = 'Default'", @database);
}
$cluster->join_all('regress');

sub regress
{
	my (@names) = @_;

	return EntityApi::Test::run([ $program, "--inputdir=$checkout", "--outputdir=$folder", '--bindir=' . EntityApi::Test::server_program(''),
			'--host=' . $cluster->host, '--port=' . $cluster->port, '--user=postgres', '--dbname=regress', '--use-existing', @names ]);
}

my %told;
$told{setup} = regress('setup');
$cluster->declare('regress');
for my $name (@tests)
{
	my $result = regress($name);

	ok($result->{status} == 0, $name);
	next if $result->{status} == 0;
	diag $result->{out} . $result->{err} unless -s "$folder/regression.diffs";
	diag EntityApi::Test::slurp("$folder/regression.diffs") if -s "$folder/regression.diffs";
}

done_testing;
