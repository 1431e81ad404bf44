# Where the shim listens: Unix sockets, and addresses for operators alone.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use IO::Socket::INET;
use IO::Socket::IP;
use IO::Socket::UNIX;
use JSON::PP;
use POSIX ();
use Socket ();
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');

# Sends bytes to a socket or port; returns all that comes back.
sub talk
{
	my ($to, $bytes) = @_;
	my $socket = $to =~ m{^/}
	  ? IO::Socket::UNIX->new(Peer => $to)
	  : IO::Socket::IP->new(PeerHost => $to =~ /^\[(.*)\]:/ ? "$1" : '127.0.0.1', PeerPort => $to =~ s/.*://r, Timeout => 60);
	return undef unless $socket;

	local $SIG{PIPE} = 'IGNORE';
	$socket->autoflush(1);
	print $socket $bytes;
	local $/;
	my $answer = <$socket> // '';
	close $socket;
	return $answer;
}

sub get
{
	my ($to, $target, @headers) = @_;
	my $answer = talk($to, join("\r\n", "GET $target HTTP/1.1", 'Host: a', 'Connection: close', @headers, '', ''));
	return undef unless defined $answer;
	my ($status, $head, $body) = $answer =~ m{^HTTP/1\.1 (\d+) (.*?)\r\n\r\n(.*)}s;

	return { status => $status // 0, head => $head // '', body => $body // '',
		json => scalar eval { decode_json($body) } };
}

# A shim that the library does not wait for by TCP
sub shim_at
{
	my ($probe, %flags) = @_;
	my $shim = EntityApi::Test->shim($cluster, wait => 0, %flags);

	EntityApi::Test::wait_until(60, sub {
			die EntityApi::Test::slurp($shim->err) if $shim->has_ended;
			my $answer = get($probe, '/actuator/health');
			$answer && $answer->{status} == 200 })
	  or die "no answer:\n" . EntityApi::Test::slurp($shim->err);
	return $shim;
}

sub must_not_start
{
	my ($name, $like, @flags) = @_;
	my $result = EntityApi::Test::run(
		[ $program, 'serve', '--database', $cluster->conninfo('entityapi_shim'), @flags ], service => 1);

	isnt($result->{status}, 0, "$name: no start");
	like($result->{err}, $like, 'with a clear line');
	return;
}

subtest 'a Unix socket alone' => sub {
	my $path = "$folder/main";
	my $shim = shim_at($path, listen => "unix:$path", access_log_delay_ms => 0);
	my $own = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1);
	my @ports = map { /^\s*\d+: 0100007F:(\w{4}) 00000000:0000 0A(?:\s+\S+){6}\s+(\d+)/ ? [ hex $1, $2 ] : () }
	  split /\n/, EntityApi::Test::slurp('/proc/net/tcp');
	my %inode = map { (readlink($_) // '') =~ /socket:\[(\d+)\]/ ? ($1 => 1) : () } glob "/proc/@{[$shim->pid]}/fd/*";

	is(scalar(grep { $_->[0] == $own->sockport } @ports), 1, 'ports that somebody listens on are seen');
	is_deeply([ grep { $inode{ $_->[1] } } @ports ], [], 'of this one none is left open');
	is(sprintf('%04o', (stat $path)[2] & 07777), '0660', 'mode');
	my $answer = get($path, '/api/v1/x?y=1');
	is($answer->{status}, 200, 'a request');
	is($answer->{json}{target}, '/api/v1/x?y=1', 'arrives');
	is($answer->{json}{remote}, undef, 'the peer has no address');
	is(get($path, '/x', 'X-Forwarded-For: 198.51.100.7')->{json}{remote}, '198.51.100.7',
		'a proxy says whose request it is');
	is(get($path, '/x', 'X-Forwarded-For: 198.51.100.7, nonsense')->{json}{remote}, undef,
		'nonsense is nobody');
	my $post = talk($path, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
	like($post, qr/^Connection: close\r$/m, 'connections are not reused');
	like($post, qr/"body": ?"aGVsbG8="/, 'a body');
	is(get($path, '/big/3000000')->{body}, 'x' x 3_000_000, 'a large answer');
	like(talk($path, "GET /x HTTP/1.1\r\n\r\n"), qr/^HTTP\/1.1 400 /, 'refusals');
	my $curl = EntityApi::Test::run([ 'curl', '-sS', '--unix-socket', $path, 'http://a/actuator/health' ]);
	like($curl->{out}, qr/"target"/, 'curl --unix-socket') or diag $curl->{err};

	my @children = map {
		my $pid = open(my $out, '-|') // die "fork: $!\n";
		if ($pid == 0)
		{
			my $fine = grep { (get($path, "/big/$_") // { status => 0 })->{status} == 200 } 1 .. 50;
			syswrite STDOUT, $fine;
			POSIX::_exit(0);
		}
		$out;
	} 1 .. 8;
	is_deeply([ map { scalar <$_> } @children ], [ (50) x 8 ], 'many at once');

	my $busy = IO::Socket::UNIX->new(Peer => $path);
	$busy->autoflush(1);
	$cluster->hold;
	print $busy "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
	$cluster->at_work(1);
	kill TERM => $shim->pid;
	ok(EntityApi::Test::wait_until(60, sub { !IO::Socket::UNIX->new(Peer => $path) }), 'no new connection while it ends');
	ok(EntityApi::Test::wait_until(60, sub { !-e $path }), 'the file is gone');
	$cluster->release;
	like(do { local $/; <$busy> }, qr/^HTTP\/1.1 200 OK/, 'what was under way is answered');
	is($shim->stop(0), 0, 'ends with 0');
};

subtest 'files' => sub {
	my $path = "$folder/stale";
	my $first = shim_at($path, listen => "unix:$path", socket_mode => '600');

	is(sprintf('%04o', (stat $path)[2] & 07777), '0600', 'another mode');
	must_not_start('a socket in use', qr/cannot listen on \\"\Q$path\E\\": somebody listens there/, "--listen=unix:$path");
	is(get($path, '/x')->{status}, 200, 'the first goes on');
	$first->stop('KILL');
	ok(-S $path, 'killed, it leaves its file');
	my $second = shim_at($path, listen => "unix:$path");
	is(get($path, '/x')->{status}, 200, 'which the next one replaces');

	# somebody has put another file there: it is not ours to remove
	rename $path, "$path.moved";
	open my $other, '>', $path or die "$path: $!\n";
	close $other;
	is($second->stop, 0, 'ends with 0');
	ok(-e $path, 'a file that is not its own stays');
	must_not_start('a plain file', qr/not a socket/, "--listen=unix:$path");
	unlink $path;
	must_not_start('no folder', qr/No such file/, "--listen=unix:$folder/none/x");
	mkdir "$folder/locked", 0555;
	must_not_start('no right', qr/Permission denied/, "--listen=unix:$folder/locked/x");
};

subtest 'both kinds of addresses' => sub {
	my ($path, $port) = ("$folder/both", EntityApi::Test::free_port());
	my $shim = shim_at($path, listen => "unix:$path,127.0.0.1:$port", trusted_proxies => '10.0.0.0/8');

	is(get($port, '/x')->{json}{remote}, '127.0.0.1', 'TCP');
	is(get($port, '/x', 'X-Forwarded-For: 198.51.100.7')->{json}{remote}, '127.0.0.1', 'whose peers must be trusted');
	is(get($path, '/x', 'X-Forwarded-For: 198.51.100.7, 10.1.1.1')->{json}{remote}, '198.51.100.7', 'the socket');
	ok($shim->said($_), 'both are announced') for qr/listening on 127\.0\.0\.1:$port\b/, qr/listening on \Q$path\E/;
	is($shim->stop, 0, 'ends with 0');
	ok(!-e $path, 'the file is gone');
};

subtest 'names and IPv6' => sub {
	my $port = EntityApi::Test::free_port();
	my $has_six = IO::Socket::IP->new(LocalHost => '::1', LocalPort => 0, Listen => 1);
	my $shim = shim_at($port, listen => "localhost:$port", max_connections_per_address => 3,
		trusted_proxies => '2001:db8::/32');

	ok($shim->said(qr/listening on 127\.0\.0\.1:$port\b/), 'a name: IPv4');
	must_not_start('an address in use', qr/cannot listen on \\"127\.0\.0\.1\\" port $port: Address already in use/, "--listen=127.0.0.1:$port");
	must_not_start('an address of others', qr/cannot listen on \\"192\.0\.2\.1\\" port $port: Cannot assign/, "--listen=192.0.2.1:$port");
	is($shim->stop, 0, 'ends with 0');
	my $log = EntityApi::Test::slurp($shim->err);
  SKIP:
	{
		skip 'no IPv6 on this machine', 1 unless $has_six;
		subtest 'IPv6' => sub {
			my ($error, @found) = Socket::getaddrinfo('localhost', $port, { socktype => Socket::SOCK_STREAM(), family => Socket::AF_INET6() });
			is(scalar($log =~ /listening on \[::1\]:$port\b/), @found ? 1 : '', 'of a name, if it has one');
			my $six = shim_at("[::1]:$port", listen => "[::1]:$port", max_connections_per_address => 3, trusted_proxies => '2001:db8::/32',
				request_timeout_ms => 600_000);
			is(get("[::1]:$port", '/x')->{json}{remote}, '::1', 'the peer');
			is(get($port, '/x'), undef, 'nobody listens on IPv4');
			is(get("[::1]:$port", '/x', 'X-Forwarded-For: 198.51.100.7')->{json}{remote}, '::1', 'who must be trusted');
			my @open = map { IO::Socket::IP->new(PeerHost => '::1', PeerPort => $port) } 1 .. 3;
			EntityApi::Test::wait_until(10, sub { (get("[::1]:$port", '/x') // { status => 0 })->{status} == 429 });
			is(get("[::1]:$port", '/x')->{json}{errors}[0]{code}, 'THROTTLED', 'so many connections');
			is($six->stop, 0, 'ends with 0');

			my $all = shim_at($port, listen => "*:$port", trusted_proxies => '::1');
			is(get("[::1]:$port", '/x', 'X-Forwarded-For: 198.51.100.7')->{json}{remote}, '198.51.100.7', '*: IPv6, too');
			is(get($port, '/x')->{json}{remote}, '127.0.0.1', 'and IPv4');
			is($all->stop, 0, 'ends with 0');
		};
	}
};

subtest 'addresses for operators' => sub {
	my $admin = EntityApi::Test::free_port();
	my $shim = EntityApi::Test->shim($cluster, admin_listen => "127.0.0.1:$admin", pool_size => 2,
		drain_timeout_ms => 60_000);

	is(get($admin, '/actuator/health')->{status}, 200, 'health');
	like(get($admin, '/actuator/prometheus')->{body}, qr/^# TYPE entityapi_http_requests_total counter$/m, 'metrics');
	is(get($admin, '/actuator/metrics')->{json}{names}[0], 'entityapi_http_requests_total', 'their names');
	for my $target ('/', '/api/v1/x', '/auth/login', '/manage/tenants', '/actuator', '/actuatorx',
		'/actuator%2Fhealth', '/ACTUATOR/health', '/api/../actuator/health')
	{
		my $before = $cluster->calls;
		my $answer = get($admin, $target);

		is($answer->{status}, 404, "$target: 404");
		is($answer->{json}{errors}[0]{code}, 'NOT_FOUND', 'with an error document');
		is($cluster->calls, $before, 'nobody is asked');
	}
	my $before = $cluster->calls;
	like(talk($admin, "POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"), qr/^HTTP\/1.1 404 /, 'POST');
	is($cluster->calls, $before, 'nor is a POST passed on');
	is($shim->http(GET => '/actuator/metrics')->{json}{target}, '/actuator/metrics', 'the other address shows no metrics');
	is($shim->http(GET => '/actuator/prometheus')->{json}{target}, '/actuator/prometheus', 'in no form');

	# the service is busy: its operators do not notice
	$cluster->hold;
	my @busy = map {
		my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
		$socket->autoflush(1);
		print $socket "GET /hold HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
		$socket;
	} 1 .. 12;
	$cluster->at_work(2);
	my $busy;
	ok(EntityApi::Test::wait_until(60, sub {
				$busy = get($admin, '/actuator/prometheus')->{body};
				$busy =~ /^entityapi_pool_waiting 10$/m }),
		'metrics under load say how many wait');
	like($busy, qr/^entityapi_http_requests_in_flight (?:[2-9]|1[0-2])$/m, 'how many have begun');
	like($busy, qr/^entityapi_pool_connections\{state="in_use"\} 2$/m, 'and of the pool');
	is(get($admin, '/actuator/health/liveness')->{status}, 200, 'it lives');
	$cluster->release;
	cmp_ok(scalar(grep { (do { local $/; <$_> } // '') =~ /^HTTP\/1.1 200 / } @busy), '>=', 2, 'those at work are answered then');

	my $last = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
	$last->autoflush(1);
	$cluster->hold;
	print $last "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
	$cluster->at_work(1);
	is(get($admin, '/actuator/health/readiness')->{status}, 200, 'ready');
	kill TERM => $shim->pid;
	ok(EntityApi::Test::wait_until(60, sub { get($admin, '/actuator/health/readiness')->{status} == 503 }),
		'not ready while it ends');
	like(get($admin, '/actuator/prometheus')->{body}, qr/^entityapi_draining 1$/m, 'which the metrics say, too');
	$cluster->release;
	like(do { local $/; <$last> }, qr/^HTTP\/1.1 200 OK/, 'what was under way is answered');
	is($shim->stop(0), 0, 'ends with 0');
	is(get($admin, '/actuator/health'), undef, 'and nobody listens');
};

subtest 'a socket for operators' => sub {
	my ($path, $admin) = ("$folder/m", "$folder/a");
	my $shim = shim_at($path, listen => "unix:$path", admin_listen => "unix:$admin", metrics => 'true');

	is(get($admin, '/actuator/health')->{status}, 200, 'health');
	is(get($admin, '/api/v1/x')->{status}, 404, 'nothing else');
	is(get($path, '/api/v1/x')->{status}, 200, 'which the other one serves');
	is(get($path, '/actuator/prometheus')->{status}, 200, 'with metrics, if so configured');
	is($shim->stop, 0, 'ends with 0');
	ok(!-e $path && !-e $admin, 'both files are gone');
};

subtest 'settings' => sub {
	my $port = EntityApi::Test::free_port();
	my @cases = (
		[ 'a relative path',    qr/listen: "unix:x" is not an absolute path/, '--listen=unix:x' ],
		[ 'no path',            qr/not an absolute path/,         '--listen=unix:' ],
		[ 'a long path',        qr/longer than a socket/,         '--listen=unix:/' . 'x' x 200 ],
		[ 'an admin address',   qr/admin_listen: "9090" is not host:port/, '--admin-listen=9090' ],
		[ 'the same twice',     qr/cannot listen on/,             "--listen=127.0.0.1:$port", "--admin-listen=127.0.0.1:$port" ],
		[ 'the same socket',    qr/somebody listens there/,       "--listen=unix:$folder/x", "--admin-listen=unix:$folder/x" ],
		[ 'too many',           qr/too many/,                     '--listen=' . join ',', map { "127.0.0.1:$_" } 2000 .. 2020 ],
		[ 'a mode of letters',  qr/socket_mode: "rw"/,            '--socket-mode=rw' ],
		[ 'a mode of decimals', qr/socket_mode/,                  '--socket-mode=0680' ],
		[ 'a wide mode',        qr/socket_mode/,                  '--socket-mode=7777' ]);

	must_not_start(@$_) for @cases;
	ok(!-e "$folder/x", 'no file is left');
};

done_testing;
