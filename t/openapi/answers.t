# What other tests of the suite are answered, held against the description of
# the API: statuses, media types, headers, bodies, and the requests that were
# accepted.

use strict;
use warnings;

use File::Temp ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Node;

my $folder = EntityApi::Test::checkout() . '/t/tools/openapi';
my $why = EntityApi::Test::Node::install($folder);
plan skip_all => $why if defined $why;

my @files = EntityApi::Test::recorded_tests();
my $record = EntityApi::Test::recorded();

if (defined $record)
{
	# they run, or have run, beside this one
	for my $file (@files)
	{
		EntityApi::Test::wait_until(3600, sub { -e "$record/" . $file =~ tr{/}{-}r . '.ended' });
		is(eval { EntityApi::Test::slurp("$record/" . $file =~ tr{/}{-}r . '.ended') }, 0, "$file passes while it is recorded");
	}
}
else
{
	$record = File::Temp->newdir;
	run_them();
}

sub run_them
{
	my %running;
	my @left = @files;

	# two at a time, as the suite does
	while (@left || %running)
	{
		if (@left && keys %running < 2)
		{
			my $file = shift @left;
			my $pid = EntityApi::Test::start(
				[ $^X, '-I' . EntityApi::Test::checkout() . '/t/lib', EntityApi::Test::checkout() . "/t/$file.t" ],
				out => "$record/" . $file =~ tr{/}{-}r . '.log', err => "$record/" . $file =~ tr{/}{-}r . '.err',
				env => { ENTITYAPI_RECORD => "$record" });
			$running{$pid} = $file;
			next;
		}
		my $pid = waitpid -1, 0;
		last if $pid < 0;
		my $file = delete $running{$pid} or next;
		is($?, 0, "$file passes while it is recorded") or diag EntityApi::Test::slurp("$record/" . $file =~ tr{/}{-}r . '.err');
	}
	return;
}

my $checked = EntityApi::Test::run([ 'timeout', 900, 'node', "$folder/answers.mjs", "$record" ]);
is($checked->{status}, 0, 'the answers could be checked') or diag $checked->{err};
my $result = eval { JSON::PP->new->utf8->decode($checked->{out}) } // { faults => ['no result'], operations => {} };
my @faults = @{ $result->{faults} };

is(scalar @faults, 0, "$result->{held} answers are as described") or diag map { utf8::encode(my $text = $_); "$text\n" } @faults[ 0 .. ($#faults > 9 ? 9 : $#faults) ];
cmp_ok($result->{held}, '>', 500, 'that many answers were checked');
cmp_ok(scalar keys %{ $result->{operations} }, '>', 60, 'of that many operations');
my %statuses;
for my $operation (values %{ $result->{operations} })
{
	$statuses{$_} += $operation->{$_} for keys %$operation;
}
cmp_ok($statuses{$_} // 0, '>', 0, "with status $_ among them") for 200, 201, 204, 304, 400, 401, 403, 404, 406, 409, 412, 415, 428;
note join ', ', map { "$_: $statuses{$_}" } sort keys %statuses;

done_testing;
