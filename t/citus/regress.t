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

# What the server says on its way of what no other node can have is no part of
# an answer.
sub answer
{
	my ($path) = @_;
	my $text = EntityApi::Test::slurp($path);

	$text =~ s/^(?:psql:\S+ )?WARNING:  "[^\n]*pg_temp[^\n]*\nDETAIL:  [^\n]* will be created only locally\n//mg;
	return $text;
}

regress('setup');
$cluster->declare('regress');
$cluster->psql(q{select entityapi.apply_manifest('[]')}, @database);

# A principal that was set is known to its own session alone (docs/scale.md): so
# sql/rls has the tenant of its middleware on this node.
my $part = q{get_shard_id_for_distribution_column('entityapi.audit', '00000000-0000-0000-0000-00000000000b')};
my @place = split /\|/, $cluster->psql("select shardid, nodename, nodeport from pg_dist_shard_placement where shardid = $part", @database);
$cluster->psql(sprintf(q{set client_min_messages = error; select citus_move_shard_placement(%d, '%s', %d, '%s', %d, 'block_writes')},
		@place, $cluster->host, $cluster->port), @database)
  if $place[1] ne $cluster->host;
for my $name (@tests)
{
	regress($name);
	is(answer("$folder/results/$name.out"), answer("$checkout/expected/$name.out"), $name);
}
is(join(' ', map { EntityApi::Test::slurp($_->log) =~ /terminated by signal/ ? 'crashed' : 'lives' } $cluster->nodes), 'lives lives lives', 'no node has lost a process');

done_testing;
