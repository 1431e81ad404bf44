# The regression tests on three nodes, those that t/tools/citus/left_out.txt
# does not name, one after the other in one database of the coordinator, each a
# point.  Where an answer has to be another than that of one node, the lines that
# differ are in t/tools/citus/sql/NAME.diff, behind a reason; NAME_1.diff is for
# what depends on which node has got a tenant.
#
# ENTITYAPI_REGRESS names some tests.  ENTITYAPI_DIFFER=1 writes the files anew
# that are there, or have no reason yet: look at what has changed.

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
my @tests = $ENV{ENTITYAPI_REGRESS} ? split ' ', $ENV{ENTITYAPI_REGRESS} : grep { !$left_out{$_} && $_ ne 'setup' } map { m{([^/]+)\.sql$} } sort glob "$checkout/sql/*.sql";

# tokens last as long as they do by default
my $cluster = EntityApi::Test->cluster(nodes => 3, conf => ['entityapi.access_token_ttl = 900']);
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

my $months = $cluster->psql("select string_agg(to_char(date_trunc('month', now()) + i * interval '1 month', 'YYYY_MM'), '|') from generate_series(0, 3) i");

# Without what differs from run to run: nodes, shards, months, widths of columns;
# and what the server says on its way of what no other node can have, and where it failed
sub answer
{
	my ($path) = @_;
	my $text = EntityApi::Test::slurp($path);

	$text =~ s/^(?:psql:\S+ )?WARNING:  "[^\n]*pg_temp[^\n]*\nDETAIL:  [^\n]* will be created only locally\n//mg;
	$text =~ s/^(?:psql:\S+ )?WARNING:  Commands that are not transaction-safe [^\n]*\n[^\n]*\n[^\n]*\n//mg;
	$text =~ s{/(?:dev/shm|tmp)/ea\w{8}(?=[: ])}{<node>}g;
	$text =~ s/(?<=[A-Za-z0-9_])_1\d{5}\b/_<shard>/g;
	$text =~ s/\baudit_(?:$months)/audit_<month>/g;
	$text =~ s/"x-entityapi-node": "\d+ \d+"/"x-entityapi-node": "<part>"/;
	$text =~ s/ {2,}/ /g;
	$text =~ s/ $//mg;
	$text =~ s/-{3,}/---/g;
	return $text;
}

# The lines that differ, as diff tells them
sub differing
{
	my ($name) = @_;
	my @files = map { "$folder/$name.$_" } qw(one several);

	for my $i (0, 1)
	{
		open my $file, '>', $files[$i] or die "$files[$i]: $!\n";
		print $file answer(("$checkout/expected/$name.out", "$folder/results/$name.out")[$i]);
		close $file;
	}
	my (undef, undef, @lines) = split /\n/, EntityApi::Test::run([ 'diff', '-U0', @files ])->{out};

	return join '', map { "$_\n" } grep { /^[-+]/ } @lines;
}

sub expected
{
	my ($path) = @_;

	return -e $path ? join '', map { "$_\n" } grep { !/^#/ } split /\n/, EntityApi::Test::slurp($path) : '';
}

# As one of the files has it
sub as_expected
{
	my ($name) = @_;
	my $kept = "$checkout/t/tools/citus/sql/$name";
	my $differs = differing($name);

	if ($ENV{ENTITYAPI_DIFFER} && $differs ne expected("$kept.diff") && $differs ne expected("${kept}_1.diff"))
	{
		my $reason = -e "$kept.diff" ? join '', map { "$_\n" } grep { /^#/ } split /\n/, EntityApi::Test::slurp("$kept.diff") : '';

		open my $file, '>', "$kept.diff" or die "$kept.diff: $!\n";
		print $file $reason, $differs;
		close $file;
	}
	return is($differs, expected($differs eq expected("${kept}_1.diff") ? "${kept}_1.diff" : "$kept.diff"), $name);
}

regress('setup');
$cluster->declare('regress');
$cluster->psql(q{select entityapi.apply_manifest('[]')}, @database);

# Tenants that the tests know by their ids are on this node: a principal that was
# set is known to its own session alone (docs/scale.md), and plans are those of
# one node.
for my $tenant (qw(00000000-0000-0000-0000-00000000000a 00000000-0000-0000-0000-00000000000b))
{
	my $part = "get_shard_id_for_distribution_column('entityapi.audit', '$tenant')";
	my @place = split /\|/, $cluster->psql("select shardid, nodename, nodeport from pg_dist_shard_placement where shardid = $part", @database);

	$cluster->psql(sprintf(q{set client_min_messages = error; select citus_move_shard_placement(%d, '%s', %d, '%s', %d, 'block_writes')},
			@place, $cluster->host, $cluster->port), @database)
	  if $place[1] ne $cluster->host;
}
for my $name (@tests)
{
	regress($name);
	as_expected($name);
}
is(join(' ', map { EntityApi::Test::slurp($_->log) =~ /terminated by signal/ ? 'crashed' : 'lives' } $cluster->nodes), 'lives lives lives', 'no node has lost a process');

done_testing;
