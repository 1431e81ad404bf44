# Who writes who is who at the same time as others waits for them at most: the
# requests of many, of every kind, are all answered, and none ends another by
# a deadlock.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(conf => [ 'deadlock_timeout = 100ms', 'entityapi.login_address_failures = 1000000',
		'entityapi.login_free_failures = 1000' ]);
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster, threads => 64, pool_queue => 64, trusted_proxies => '127.0.0.1');
my $root = $shim->superadmin;
my $soon = '2099-01-01T00:00:00Z';
my @kinds = qw(token session key user admin robot invite tenant);
my $workers = 8;
my $rounds = 6;

# What a worker has of his own, so that no answer depends on another's
sub scene
{
	my ($n) = @_;
	my $tenant = $shim->tenant("scene$n")->{id};
	my $path = "/manage/tenants/$tenant";
	my $user = $shim->user($tenant, "user$n", ['Accountant']);
	my $robot = $shim->must(201, POST => "$path/service-accounts", { token => $root, json => { name => "r$n", roles => ['Accountant'] } });

	return { n => $n, path => $path, user => $user, robot => $robot };
}

my $worker = 0;

sub must
{
	my ($status, $method, $path, $options) = @_;
	my $answer = $shim->http($method, $path, { %{ $options // {} }, headers => { 'x-forwarded-for' => "192.0.2.$worker",
				%{ $options->{headers} // {} } } });

	die "$method $path: $answer->{status}, not $status: $answer->{body}\n" if $answer->{status} != $status;
	return $answer->{json};
}

my %work = (
	token => sub {
		my ($s) = @_;
		my %secret = (clientId => $s->{robot}{clientId}, clientSecret => $s->{robot}{clientSecret});

		must(200, POST => '/auth/token', { json => \%secret }) for 1 .. 5;
	},
	session => sub {
		my ($s) = @_;
		my $login = sub { must($_[0], POST => '/auth/login', { json => { username => $s->{user}{username}, password => $_[1] } }) };
		my $tokens = $login->(200, $s->{user}{password});

		$login->(401, 'not-the-word-1');
		$tokens = must(200, POST => '/auth/refresh', { json => { refreshToken => $tokens->{refreshToken} } }) for 1 .. 3;
		must(204, POST => '/auth/logout', { token => $tokens });
	},
	key => sub {
		my ($s) = @_;
		my $key = must(201, POST => '/auth/me/api-keys',
			{ token => $s->{user}, json => { name => 'k', domainRoles => ['Accountant'], expiresAt => $soon } });

		must(200, GET => '/api/v1/invoices', { headers => { 'x-api-key' => $key->{key} } });
		must(200, POST => "/auth/me/api-keys/$key->{id}/disable", { token => $s->{user} });
		must(200, PATCH => '/auth/me', { token => $s->{user}, json => { profile => { at => rand } } });
	},
	user => sub {
		my ($s) = @_;
		my $user = must(201, POST => "$s->{path}/users", { token => $root, json => { username => "u$s->{n}x" . int(rand 1e9), roles => [] } });
		my $path = "$s->{path}/users/$user->{id}";

		must(200, PUT => "$path/roles", { token => $root, json => { roles => ['Viewer'] } });
		must(200, PATCH => $path, { token => $root, json => { status => 'DISABLED' } });
		must(204, DELETE => $path, { token => $root });
	},
	admin => sub {
		my ($s) = @_;
		my $path = "$s->{path}/tenant-admins/$s->{user}{id}";

		must(204, POST => $path, { token => $root });
		must(204, DELETE => $path, { token => $root });
	},
	robot => sub {
		my ($s) = @_;
		my $robot = must(201, POST => "$s->{path}/service-accounts", { token => $root, json => { name => 'r', roles => [] } });
		my $path = "$s->{path}/service-accounts/$robot->{id}";

		must(200, POST => "$path/rotate-secret", { token => $root });
		must(200, POST => "$path/disable", { token => $root });
	},
	invite => sub {
		my ($s) = @_;
		my $name = "g$s->{n}x" . int rand 1e9;
		my $invite = must(201, POST => "$s->{path}/invites", { token => $root, json => { email => 'a@b.example', username => $name, roles => [] } });

		must(201, POST => '/auth/accept-invite', { json => { token => $invite->{token}, username => $name, password => 'plainly-for-a-test-5' } });
	},
	tenant => sub {
		my ($s) = @_;
		my $name = "t$s->{n}x" . int rand 1e9;
		my $tenant = must(201, POST => '/manage/tenants', { token => $root, json => { name => $name, slug => $name } });

		must(200, PATCH => "/manage/tenants/$tenant->{id}", { token => $root, json => { status => 'SUSPENDED' } });
		must(204, DELETE => "/manage/tenants/$tenant->{id}", { token => $root });
	});

is_deeply([ sort keys %work ], [ sort @kinds ], 'every kind of work');

my @scenes = map { scene($_) } 1 .. $workers;
my @pids;
for my $scene (@scenes)
{
	my $pid = fork // die "fork: $!\n";

	if ($pid)
	{
		push @pids, $pid;
		next;
	}
	$worker = $scene->{n};
	srand $worker;
	my $done = eval {
		for my $round (1 .. $rounds)
		{
			$work{ $kinds[ ($worker + $_) % @kinds ] }->($scene) for 0 .. $#kinds;
		}
		1;
	};
	print STDERR "# worker $worker: $@" if !$done;
	POSIX::_exit($done ? 0 : 1);
}

# The sweep is among them.
my %left = map { $_ => 1 } @pids;
my @swept;
while (%left)
{
	my $swept = $cluster->try_psql('select entityapi.sweep()');

	push @swept, $swept->{err} if $swept->{status} != 0;
	while ((my $pid = waitpid -1, POSIX::WNOHANG()) > 0)
	{
		is($?, 0, 'all of a worker is done') if delete $left{$pid};
	}
	select undef, undef, undef, 0.2;
}
is_deeply(\@swept, [], 'what is over goes meanwhile');

for my $node ($cluster->nodes)
{
	my @deadlocks = EntityApi::Test::slurp($node->log) =~ /^(.*deadlock.*(?:\n.*){0,2})/mg;

	is_deeply(\@deadlocks, [], 'nobody waited for who waited for him');
}

done_testing;
