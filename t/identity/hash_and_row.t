# Who waits for a hash has locked no row that one waits for who hashes.

use strict;
use warnings;

use List::Util qw(sum);
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

# One hash at once, which takes its time.
my $cluster = EntityApi::Test->cluster(conf => [
		'entityapi.max_hashes = 1', 'entityapi.bcrypt_cost = 13', 'entityapi.hash_wait = 60000' ]);
my $shim = EntityApi::Test->shim($cluster, pool_size => 8, login_pool_share => 4, pool_wait_ms => 60000,
	statement_timeout_ms => 120000, trusted_proxies => '127.0.0.1');
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', []);
my $admin = $shim->superadmin;
my $login = { username => 'ann', password => $ann->{password} };

# A request in a process of its own; returns what reads its status
sub later
{
	my (@request) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		my $answer = $shim->http(@request);
		syswrite STDOUT, $answer->{status};
		POSIX::_exit(0);
	}
	return sub { local $/; return readline $child };
}

sub hashes
{
	return sum $cluster->on_all("select count(*) from pg_locks where locktype = 'advisory' and objsubid = 59907 - 65536 and granted");
}

my %temporary = (temporaryPassword => 'a temporary one');

for my $name ('a login', 'a change of the password')
{
	my ($target, $body, $token) = ('/auth/login', $login);

	# the reset of before has ended all sessions
	if ($name eq 'a change of the password')
	{
		$target = '/auth/change-password';
		$body = { currentPassword => $temporary{temporaryPassword}, newPassword => 'correct horse battery' };
		$token = $shim->login('ann', $temporary{temporaryPassword});
	}
	my $answer = later(POST => $target, { json => $body, defined $token ? (token => $token) : () });

	ok(EntityApi::Test::wait_until(60, sub { hashes() == 1 }), "$name is hashing");
	my $started = time;
	my $reset = $shim->http(PATCH => "/manage/tenants/$tenant->{id}/users/$ann->{id}",
		{ token => $admin, json => \%temporary });

	is($reset->{status}, 200, 'while it does, an administrator resets the password');
	diag sprintf '%.1f s', time - $started;
	like($answer->(), qr/^(?:20[0-4]|40[01])$/, 'and it comes to its end, one before the other');
}

is($shim->stop, 0, 'ends with 0');
done_testing();
