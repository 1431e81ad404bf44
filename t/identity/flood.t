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
	conf => [ 'entityapi.bcrypt_cost = 12', 'entityapi.login_address_failures = 1000000', 'entityapi.max_hashes = 2' ]);
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Viewer']);

# So many answers in that time; now and then it is looked how many hash at once
my $most = 0;

sub answers
{
	my ($seconds) = @_;
	my $end = time + $seconds;
	my ($count, %statuses) = (0);

	while (time < $end || !%statuses)
	{
		$statuses{ $shim->http(GET => '/api/v1/products', { token => $ann })->{status} }++;
		next if $count++ % 10;
		$most = List::Util::max($most,
			$cluster->psql("select count(*) from pg_locks where locktype = 'advisory' and objsubid = 59907 - 65536 and granted"));
	}
	is(join(' ', keys %statuses), '200', "$statuses{200} answers, all good");
	return $statuses{200};
}

answers(0.5);
my $before = -s $shim->log;
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

# Whatever else the machine does: who waited behind logins would have to wait
# for one of them, at least.
sub median { return (sort { $a <=> $b } @_)[ @_ / 2 ] }

my @lines = map { JSON::PP::decode_json($_) } substr(EntityApi::Test::slurp($shim->log), $before) =~ /^(.*)\n/mg;
my $wait = median(map { $_->{waitMicros} } grep { $_->{method} eq 'GET' } @lines);
my $login = median(map { $_->{databaseMicros} } grep { ($_->{route} // '') eq '/auth/login' && $_->{status} == 401 } @lines);

cmp_ok($hashed, '>', 0, 'passwords are hashed');
cmp_ok($wait, '<', $login / 10, "requests do not wait for them: $wait us, where a login takes $login us");
cmp_ok($most, '>', 0, 'it was seen how many are hashed at once');
cmp_ok($most, '<=', 2, 'not more than may be');
my $refused = $cluster->psql('select count(*) from entityapi.login_throttle');
cmp_ok($refused, '>', 0, 'logins were at work');

done_testing();
