# The parsers, with the inputs that their fuzzers have found and begin with:
# each comes back with what it is asked for, in a backend that goes on.

use strict;
use warnings;

use File::Temp ();
use Test::More;

use EntityApi::Corpus;
use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();

my $build = EntityApi::Test::run([ "$checkout/t/tools/fuzz/parsers/build", 'replay', "$folder/build" ]);
is($build->{status}, 0, 'the targets are built') or BAIL_OUT($build->{out} . $build->{err});

# The extension defines the same settings, so its own library is not loaded.
my $cluster = EntityApi::Test->cluster(bare => 1);
$cluster->psql("create function fuzz_replay(text, bytea[]) returns int language c as '$folder/build/parsers'");

my %of_shim = map { $_ => 1 } qw(head chunks words yaml json);
for my $name (EntityApi::Corpus::names())
{
	my @inputs = EntityApi::Corpus::inputs($name);

	if ($of_shim{$name})
	{
		my $files = File::Temp->newdir;
		EntityApi::Corpus::unpack_into($name, "$files");
		my $result = EntityApi::Test::run([ "$folder/build/shim", glob "$files/*" ],
			env => { FUZZ_TARGET => $name });
		is($result->{out}, scalar(@inputs) . "\n", "$name: all inputs")
		  or diag(substr $result->{err}, -2000);
		next;
	}
	my $list = join ',', map { "'\\x" . unpack('H*', $_) . "'" } @inputs;
	my $result = $cluster->try_psql("select fuzz_replay('$name', array[$list]::bytea[])");
	is($result->{out}, scalar(@inputs), "$name: all inputs")
	  or diag($result->{err}, map { "$_\n" } grep { /target / } split /\n/, EntityApi::Test::slurp($cluster->log));
}

done_testing;
