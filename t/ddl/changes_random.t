# From any manifest to any other: the tables come to be what they are when one
# begins with the other, and going back makes what was there.
#
# ENTITYAPI_SEED chooses the first pair, ENTITYAPI_PAIRS how many there are.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Manifests;

my $first = $ENV{ENTITYAPI_SEED} // 1;
my $pairs = $ENV{ENTITYAPI_PAIRS} // 12;
my $json = JSON::PP->new->canonical->ascii;
my $cluster = EntityApi::Test->cluster;

$cluster->psql(EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/changes/functions.sql'));

sub quoted
{
	my ($text) = @_;
	return q(') . ($text =~ s/'/''/gr) . q(');
}

sub list { return quoted('{' . join(',', @_) . '}') }

is($cluster->psql(q(SELECT changes.difference('{"tables": {"a": "x"}}', '{"tables": {"a": "y", "b": "z"}}')) . q( =
	E'- tables a x\\n+ tables a y\\n+ tables b z')), 't', 'a difference is told');

note("seeds $first to " . ($first + $pairs - 1));
my (%from, %to);

# where Citus is, one transaction has one connection to each node
my $sql = "SET client_min_messages = warning; SET citus.multi_shard_modify_mode = 'sequential'; SELECT setseed(0.5);\n";
for my $seed ($first .. $first + $pairs - 1)
{
	srand $seed;
	my $one = EntityApi::Test::Manifests::random();
	my $other = $seed % 4 == 0 ? EntityApi::Test::Manifests::random() : EntityApi::Test::Manifests::changed($one);
	my $names = list(EntityApi::Test::Manifests::names($one, $other));

	($from{$seed}, $to{$seed}) = map { $json->encode(EntityApi::Test::Manifests::documents($_)) } $one, $other;
	$sql .= sprintf "SELECT %d, %s, coalesce(replace(changes.check_pair(%s, %s, %s, %s), E'\\n', '\\n'), 'ok');\n",
	  $seed, quoted($_ ? 'rows' : 'empty'), quoted($from{$seed}), quoted($to{$seed}), $names, $_ ? 'true' : 'false'
	  for 0, 1;
}

my $refused = 0;
my $answered = 0;
for my $line (split /\n/, $cluster->psql($sql))
{
	my ($seed, $kind, $answer) = $line =~ /^(\d+)\|(\w+)\|(.*)$/ or next;

	$answered++;
	$refused++ if $answer eq 'refused';
	next if $answer eq 'ok' || ($kind eq 'rows' && $answer eq 'refused');
	fail("seed $seed, $kind");
	diag($answer =~ s/\\n/\n/gr, "\nfrom $from{$seed}\nto $to{$seed}");
}
is($answered, 2 * $pairs, "$pairs pairs, without and with rows");

# nodes draw rows of their own, which no seed makes the same
cmp_ok($refused, '<', $pairs * ($cluster->nodes > 1 ? 0.8 : 0.5), "rows stand against few of them ($refused)") if $pairs >= 8;

done_testing;
