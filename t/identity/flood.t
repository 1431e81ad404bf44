# Logins without pause leave data requests alone.

use strict;
use warnings;

use List::Util ();
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

use constant { CLIENTS => 32, SECONDS => 3 };

my $cluster = EntityApi::Test->cluster(
	conf => [ 'entityapi.bcrypt_cost = 12', 'entityapi.login_address_failures = 1000000' ]);
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Viewer']);

# So many answers in that time
sub answers
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my %statuses;

	while (time < $end || !%statuses)
	{
		$statuses{ $shim->http(GET => '/api/v1/products', { token => $ann })->{status} }++;
	}
	is(join(' ', keys %statuses), '200', "$statuses{200} answers, all good");
	return $statuses{200};
}

answers(0.5);
my @children;

for my $child (1 .. 4)
{
	my $pid = open(my $out, '-|') // die "fork: $!\n";

	if ($pid)
	{
		push @children, $out;
		next;
	}
	my $end = time + SECONDS;
	my $hashed = 0;
	while (time < $end || !$hashed)
	{
		$hashed += grep { /^HTTP\/1.1 401 / } $shim->at_once(CLIENTS / 4, '/auth/login',
			sub { "{\"username\":\"flood-$child-$_[0]\",\"password\":\"whatever it is\"}" });
	}
	syswrite STDOUT, $hashed;
	POSIX::_exit(0);
}

my $flooded = answers(SECONDS);
my $hashed = List::Util::sum(map { scalar readline $_ } @children);
diag "$flooded requests while $hashed passwords were hashed";

# However fast the machine is, and whatever else it does: a hash takes as much
# of a processor as dozens of requests, of which all have their share.
cmp_ok($hashed, '>', 0, 'passwords are hashed');
cmp_ok($flooded, '>=', 10 * $hashed, 'requests go on as if it were nothing');
my $refused = $cluster->psql('select count(*) from entityapi.login_throttle');
cmp_ok($refused, '>', 0, 'logins were at work');

done_testing();
