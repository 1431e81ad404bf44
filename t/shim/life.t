# Start, settings, reload and drain of the shim.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use File::Temp;
use IO::Socket::INET;
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

my $program = EntityApi::Test::private_program('entityapi-shim');
my $folder = EntityApi::Test::folder();

sub shim_run
{
	my ($arguments, %env) = @_;
	return EntityApi::Test::run([ $program, @$arguments ], env => \%env);
}

sub write_file
{
	my ($name, $text) = @_;

	open my $file, '>', "$folder/$name" or die "$name: $!\n";
	print $file $text;
	close $file;
	chmod 0644, "$folder/$name";
	return "$folder/$name";
}

subtest 'help and version' => sub {
	my $help = shim_run(['--help']);
	is($help->{status}, 0, '--help');
	like($help->{out}, qr/--pool-size/, 'names the settings');
	my $version = shim_run(['--version']);
	like($version->{out}, qr/^entityapi-shim \d+\.\d+\n$/, '--version');
	is(shim_run([])->{status}, 2, 'no command');
	is(shim_run(['dance'])->{status}, 2, 'unknown command');
	for my $command (qw(serve apply openapi validate diff init schema))
	{
		for my $words ([ $command, '--help' ], [ $command, '-h' ], [ 'help', $command ], [ $command, '--pool-size', 'x', '--help' ])
		{
			$help = shim_run($words);
			is("$help->{status}$help->{err}", 0, "@$words");
			like($help->{out}, qr/\A  entityapi-shim $command\b.*^Options:\n.*^Settings:\n  --listen/ms, 'tells of it');
		}
	}
};

subtest 'what was meant' => sub {
	my @cases = (
		[ ['serv'], 'entityapi-shim: unknown command serv; did you mean serve?' ],
		[ ['dance'], 'entityapi-shim: unknown command dance' ],
		[ [qw(serve --pool-szie 8)], 'entityapi-shim serve: unknown argument --pool-szie; did you mean --pool-size?' ],
		[ [qw(serve --poolsize=8)], 'entityapi-shim serve: unknown argument --poolsize=8; did you mean --pool-size?' ],
		[ [qw(serve --data-base-file x)], 'entityapi-shim serve: unknown argument --data-base-file; did you mean --database-file?' ],
		[ [qw(serve --print-confg)], 'entityapi-shim serve: unknown argument --print-confg; did you mean --print-config?' ],
		[ [qw(serve --dry-run)], 'entityapi-shim serve: unknown argument --dry-run' ],
		[ [qw(serve --print-config --print-config)], 'entityapi-shim serve: --print-config is given twice' ],
		[ [qw(apply --dryrun x)], 'entityapi-shim apply: unknown argument --dryrun; did you mean --dry-run?' ],
		[ [qw(apply --allow-dataloss=A x)], 'entityapi-shim apply: unknown argument --allow-dataloss=A; did you mean --allow-data-loss?' ],
		[ [qw(apply --wait)], 'entityapi-shim apply: --wait needs a value' ],
		[ [qw(apply --dry-run=yes)], 'entityapi-shim apply: --dry-run takes no value' ],
		[ [qw(openapi --databse x)], 'entityapi-shim openapi: unknown argument --databse; did you mean --database?' ],
		[ [ 'serve', '--' . 'x' x 100 ], 'entityapi-shim serve: unknown argument --' . 'x' x 100 ]);

	for my $case (@cases)
	{
		my $result = shim_run($case->[0]);

		is($result->{status}, 2, "@{$case->[0]}");
		is((split /\n/, $result->{err})[0], $case->[1], 'is told');
	}
};

subtest 'where settings come from' => sub {
	my $file = write_file('config.json', '{"pool_size": 5, "threads": 20, "access_log": false, "pool_wait_ms": 77}');
	my $secret = write_file('secret', "host=db password=hush-hush\n");
	my $result = shim_run([ 'serve', '--config', $file, '--threads=31', '--print-config' ],
		ENTITYAPI_POOL_SIZE => 6, ENTITYAPI_THREADS => 9, ENTITYAPI_DATABASE_FILE => $secret);
	my $config = decode_json($result->{out});

	is($result->{status}, 0, '--print-config');
	is($config->{threads}, 31, 'a flag before a variable');
	is($config->{pool_size}, 6, 'a variable before the file');
	is($config->{pool_wait_ms}, 77, 'the file before the default');
	is($config->{max_body}, 1048576, 'the default');
	is($config->{access_log}, JSON::PP::false, 'a boolean');
	unlike($result->{out} . $result->{err}, qr/hush/, 'secrets are hidden');
	is($config->{database}, '********', 'by a mask');
	for my $form ([ '--database', 'password=hush-hush' ], [ "--database-file=$secret" ])
	{
		$result = shim_run([ 'serve', @$form, '--print-config' ]);
		unlike($result->{out}, qr/hush/, "hidden from $form->[0] too");
	}
	my $list = write_file('list.json', '{"replicas": ["host=a password=hush", "host=b"]}');
	$result = shim_run([ 'serve', '--config', $list, '--print-config' ]);
	is(decode_json($result->{out})->{replicas}, '********', 'a list of secrets');
	$result = shim_run([ 'serve', '--print-config' ], ENTITYAPI_CONFIG => $file);
	is(decode_json($result->{out})->{pool_wait_ms}, 77, 'ENTITYAPI_CONFIG');
};

subtest 'faults stop the start' => sub {
	my @cases = (
		[ ['--pool-size=0'], qr/--pool-size: "0" is not a whole number from 1/ ],
		[ ['--pool-size=4x'], qr/--pool-size/ ],
		[ ['--pool-size= 4'], qr/--pool-size/ ],
		[ ['--pool-size'], qr/--pool-size needs a value/ ],
		[ [ '--pool-size=4', '--pool-size=5' ], qr/--pool-size is given twice/ ],
		[ ['--no-such=1'], qr/unknown argument --no-such=1/ ],
		[ [ '--front=civetweb', '--pool-size=40', '--threads=8' ], qr/pool_size \(40\) is more than threads \(8\)/ ],
		[ [ '--login-pool-share=9', '--pool-size=8' ], qr/login_pool_share/ ],
		[ ['--max-body-auth=2000000'], qr/max_body_auth/ ],
		[ ['--keep-alive=maybe'], qr/keep_alive/ ],
		[ ['--replica-staleness=maybe'], qr/replica_staleness/ ],
		[ [ '--replicas=host=a', '--read-your-writes-ms=100' ], qr/read_your_writes_ms \(100\) is less/ ],
		[ ['--replicas=host=a; host=b,c'], qr/replicas: number 2 names several hosts/ ],
		[ ['--replicas=postgresql://a,b/entityapi'], qr/replicas: number 1 names several hosts/ ],
		[ ['--replicas=host=a; hush'], qr/replicas: number 2 is no connection string: missing "=" after "hush" in/ ],
		[ ['--replicas=host=a; password=x hush'], qr/number 2 is no connection string: missing "=" after "\*\*\*" in/ ],
		[ [ '--replicas=host=a', '--statement-timeout-ms=900' ], qr/must be less than statement_timeout_ms/ ],
		[ [ '--config', write_file('f.json', '{"replicas": ["host=a", 5]}') ], qr/wrong type/ ],
		[ ['--access-log=1'], qr/neither true nor false/ ],
		[ ['--listen=8080'], qr/not host:port/ ],
		[ ['--listen=127.0.0.1:99999'], qr/not a port/ ],
		[ ['--listen=::1:80'], qr/listen: "::1:80" needs brackets around its IPv6 address/ ],
		[ ['--listen=[::x]:80'], qr/listen: "\[::x\]:80" is no IPv6 address in brackets/ ],
		[ ['--listen=a b:80'], qr/listen: "a b:80" is neither an address, a name nor \*/ ],
		[ ['--listen=:80'], qr/listen: ":80" is neither an address, a name nor \*/ ],
		[ ['--listen=no-such-host.invalid:80'], qr/cannot listen on \\"no-such-host\.invalid\\" port 80: / ],
		[ ['--trusted-proxies=10.0.0.0/33'], qr/not a network/ ],
		[ ['--trusted-proxies=proxy'], qr/not a network/ ],
		[ [ '--database=x', '--database-file=y' ], qr/contradict/ ],
		[ ['--database-file=/nowhere/x'], qr/cannot open/ ],
		[ ['--database=hots=db'], qr/^entityapi-shim: database is no connection string: invalid connection option "hots"$/m ],
		[ ['--database=host=db password=a hush'], qr/^entityapi-shim: database is no connection string: missing "=" after "\*\*\*" in connection info string$/m ],
		[ ["--database=password='hush"], qr/no connection string: unterminated quoted string in connection info string$/m ],
		[ ['--database=postgresql://u:hush%zz@h/d'], qr/no connection string: invalid percent-encoded token: "\*\*\*"$/m ],
		[ ['--database=postgresql://u:p@h/d?hush'], qr/no connection string: missing key\/value separator "=" in URI query parameter: "\*\*\*"$/m ],
		[ ['--database=password="a"hush" b'], qr/no connection string: missing "=" after "\*\*\*" in/ ],

		[ [ '--config', '/nowhere/x' ], qr/nowhere/ ],
		[ [ '--config', write_file('a.json', '{"pool_sizes": 4}') ], qr/unknown setting "pool_sizes"; did you mean pool_size\?/ ],
		[ [ '--config', write_file('g.json', '{"colour": 4}') ], qr/unknown setting "colour"$/m ],
		[ [ '--config', write_file('b.json', "{\n\"pool_size\": ,}") ], qr/b\.json:2: / ],
		[ [ '--config', write_file('c.json', '{"pool_size": "4"}') ], qr/wrong type/ ],
		[ [ '--config', write_file('d.json', '[]') ], qr/not a JSON object/ ],
		[ [ '--config', write_file('e.json', '{"threads": 1, "threads": 2}') ], qr/duplicate/ ]);

	for my $case (@cases)
	{
		my $result = shim_run([ 'serve', @{ $case->[0] } ]);

		isnt($result->{status}, 0, "@{$case->[0]}");
		like($result->{err}, $case->[1], 'a clear line');
		unlike($result->{err}, qr/hush/, 'without a secret') if "@{$case->[0]}" =~ /pass|@/;
		is($result->{status}, 2, 'exit 2') if $case->[0][0] =~ /^--database=/;
	}
	my $result = shim_run([ 'serve', '--print-config' ], ENTITYAPI_THREADS => 'many');
	like($result->{err}, qr/^entityapi-shim: ENTITYAPI_THREADS: "many"/, 'variables too');
};

# Any user of the machine can read a command line
subtest 'the process list' => sub {
	my $deaf = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $!\n";
	my $there = 'host=127.0.0.1 sslmode=disable gssencmode=disable port=' . $deaf->sockport . ' user=me password=hush-hush';
	my $manifest = write_file('service.yaml', "apiVersion: entityapi/v1\nkind: Service\nmetadata: {name: x}\nspec: {}\n");

	for my $words ([ 'apply', '--database', "$there dbname=ours", $manifest ], [ 'apply', $manifest, "--database=$there dbname=ours" ],
		[ 'serve', '--listen=127.0.0.1:' . EntityApi::Test::free_port(), '--otlp-headers', 'Authorization: hush', "--database=$there dbname=ours" ])
	{
		my $pid = EntityApi::Test::start([ $program, @$words ], err => '/dev/null');
		my $client = $deaf->accept;

		# it has read its arguments
		sysread $client, my $greeting, 1000;
		like($greeting, qr/user\0me\0.*ours\0/s, "$words->[0] has them");
		my $line = EntityApi::Test::slurp("/proc/$pid/cmdline");
		like($line, qr/$words->[0]/, 'its command line');
		unlike($line, qr/hush|ours/, 'shows no secrets');
		kill KILL => $pid;
		waitpid $pid, 0;
	}
};

my $cluster = EntityApi::Test::StandIn->cluster;

subtest 'an address in use' => sub {
	my $shim = EntityApi::Test->shim($cluster);
	my $result = shim_run([ 'serve', '--listen', '127.0.0.1:' . $shim->port ]);

	is($result->{status}, 1, 'is an error');
	like($result->{err}, qr/cannot listen on/, 'that says so');
};

subtest 'drain' => sub {
	my $pid_file = "$folder/pid";
	my $shim = EntityApi::Test->shim($cluster, pid_file => $pid_file, keep_alive => 'yes',
		statement_timeout_ms => 60_000, request_timeout_ms => 600_000, keep_alive_timeout_ms => 600_000, drain_timeout_ms => 60_000);
	my $pid = $shim->pid;

	is(EntityApi::Test::slurp($pid_file), "$pid\n", 'pid file');

	# One request is under way, one connection is idle.
	my $busy = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
	my $idle = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
	# Of another request, the body comes later.
	my $late = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
	$_->autoflush(1) for $busy, $late;
	print $late "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab";
	$cluster->hold;
	print $busy "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n";
	$cluster->at_work(1);
	kill TERM => $pid;
	ok(EntityApi::Test::wait_until(60, sub {
				!IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 1) }),
		'no new connection');
	$cluster->release;
	my $answer = do { local $/; <$busy> };
	like($answer, qr/^HTTP\/1.1 200 OK\r\n/, 'the request under way is answered');
	like($answer, qr/^Connection: close\r$/m, 'and told to go');
	sleep 0.5;
	print $late 'cd';
	$answer = do { local $/; <$late> };
	like($answer, qr/^HTTP\/1.1 200 OK\r\n/, 'and so is the one that was on its way');
	is($shim->stop(0), 0, 'ends with 0');
	is(sysread($idle, my $nothing, 1), 0, 'and leaves nobody behind');
	ok(!-e $pid_file, 'pid file removed');
};

sub logged_answers
{
	my ($shim) = @_;

	open my $log, '<', $shim->log or die $shim->log . ": $!\n";
	return scalar grep { /"status":200/ } <$log>;
}

subtest 'drain under load' => sub {
	my $shim = EntityApi::Test->shim($cluster, keep_alive => 'yes');
	my $before;

	# the line of the first answer, UP, comes after the answer
	EntityApi::Test::wait_until(60, sub { $before = logged_answers($shim) });
	my @children;

	for my $child (1 .. 4)
	{
		my $pid = open(my $out, '-|') // die "fork: $!\n";

		if ($pid == 0)
		{
			my $client = HTTP::Tiny->new(keep_alive => 0, timeout => 60);
			my %seen;

			while (1)
			{
				my $answer = $client->get($shim->url . '/sleep/0.02');
				my $status = $answer->{status};

				$seen{$status}++;
				last if $status ne '200';
			}
			syswrite STDOUT, join ' ', $seen{200} // 0, grep { $_ ne '200' } sort keys %seen;
			POSIX::_exit(0);
		}
		push @children, $out;
	}
	# all of them are about their requests
	EntityApi::Test::wait_until(60, sub { logged_answers($shim) >= $before + 40 });
	is($shim->stop('TERM'), 0, 'ends with 0');

	# A connection that the kernel took but the shim did not is reset at the
	# end: what counts is that each request that was begun was answered whole.
	my $answered = 0;
	for my $child (@children)
	{
		my ($count, @others) = split / /, scalar(<$child>);

		is("@others", '599', 'answers, until no connection is accepted');
		$answered += $count;
	}
	is(logged_answers($shim) - $before, $answered, 'every request was answered');
};

subtest 'reload' => sub {
	my $file = write_file('reload.json', '{"max_body": 100000}');
	my $shim = EntityApi::Test->shim($cluster, config => $file, max_headers => 20);
	my $large = { body => 'x' x 90_000 };
	my $reloads = 0;
	my $reload = sub {
		write_file('reload.json', $_[0]);
		kill HUP => $shim->pid;
		$reloads++;
		EntityApi::Test::wait_until(5, sub {
				my $count = () = EntityApi::Test::slurp($shim->err) =~ /configuration (loaded|has faults)/g;
				$count == $reloads;
			}) or die "no reload\n";
	};

	is($shim->http(POST => '/x', $large)->{status}, 200, 'before');
	$reload->('{"max_body": 70000, "threads": 3, "max_headers": 9}');
	is($shim->http(POST => '/x', $large)->{status}, 413, 'after');
	ok($shim->said(qr/a change of threads needs a restart/), 'threads stay');
	is($shim->http(GET => '/x', { headers => { map { ("X-$_" => 1) } 1 .. 12 } })->{status}, 200,
		'a flag stays, too');
	$reload->('{"max_body": ');
	is($shim->http(POST => '/x', $large)->{status}, 413, 'a broken file changes nothing');
	$reload->('{"max_body": 100000, "access_log": false}');
	is($shim->http(POST => '/x', $large)->{status}, 200, 'and back');
	$shim->http(GET => '/x', { headers => { 'X-Request-Id' => 'unlogged' } });
	$reload->('{"max_body": 100000}');
	$shim->http(GET => '/x', { headers => { 'X-Request-Id' => 'logged' } });
	ok($shim->logged(qr/"logged"/), 'the access log is on');
	unlike(EntityApi::Test::slurp($shim->log), qr/"unlogged"/, 'it was off');
	is($shim->stop('INT'), 0, 'SIGINT ends it with 0');
};

done_testing;
