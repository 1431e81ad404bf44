# Logins without pause leave data requests alone.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

use constant { CLIENTS => 64, SECONDS => 4 };

my $cluster = EntityApi::Test->cluster(
	conf => [ 'entityapi.bcrypt_cost = 12', 'entityapi.login_address_failures = 1000000' ]);
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Viewer']);

# The time that all but one of a hundred stay below
sub p99
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my (@times, %statuses);

	while ((my $start = time) < $end)
	{
		my $answer = $shim->http(GET => '/api/v1/products', { token => $ann });

		push @times, time - $start;
		$statuses{ $answer->{status} }++;
	}
	is(join(' ', keys %statuses), '200', scalar(@times) . ' answers, all good');
	@times = sort { $a <=> $b } @times;
	return $times[ 0.99 * $#times ];
}

p99(1);
my $alone = p99(SECONDS);
my @children;

for my $child (1 .. 4)
{
	my $pid = fork // die "fork: $!\n";

	if ($pid)
	{
		push @children, $pid;
		next;
	}
	my $end = time + SECONDS + 2;
	while (time < $end)
	{
		$shim->at_once(CLIENTS / 4, '/auth/login',
			sub { "{\"username\":\"flood-$child-$_[0]\",\"password\":\"whatever it is\"}" });
	}
	POSIX::_exit(0);
}

sleep 1;
my $flooded = p99(SECONDS);
waitpid $_, 0 for @children;
diag sprintf 'p99 of a GET: %.2f ms alone, %.2f ms under %d logins', 1000 * $alone, 1000 * $flooded, CLIENTS;

# Some slack for what else this machine does; without a limit it is hundreds
cmp_ok($flooded, '<=', 3 * $alone + 0.01, 'three times as long at most');
my $refused = $cluster->psql('select count(*) from entityapi.login_throttle');
cmp_ok($refused, '>', 0, 'logins were at work');

done_testing();
