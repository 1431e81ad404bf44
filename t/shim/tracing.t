# What a request leaves behind: trace, timing, lines of the access log.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use EntityApi::Test;
use Fcntl qw(O_NONBLOCK O_RDWR);
use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster, server_timing => 'true');
my ($trace, $span) = ('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');

sub record
{
	my ($id, $of) = @_;

	return decode_json(($of // $shim)->logged(qr/"$id"/) // die "no line for $id\n");
}

subtest 'traceparent' => sub {
	my %good = (
		plain   => "00-$trace-$span-01",
		flags   => "00-$trace-$span-ff",
		later   => "cc-$trace-$span-00",
		longer  => "cc-$trace-$span-00-what-comes-then");
	my %bad = (
		none      => undef,
		empty     => '',
		short     => "00-$trace-$span-0",
		long      => "00-$trace-$span-01-x",
		longer    => "cc-$trace-$span-01x",
		upper     => '00-' . uc($trace) . "-$span-01",
		version   => "ff-$trace-$span-01",
		hex       => '00-' . ('g' x 32) . "-$span-01",
		trace     => '00-' . ('0' x 32) . "-$span-01",
		span      => "00-$trace-" . ('0' x 16) . '-01',
		dashes    => "00_${trace}_${span}_01",
		quotes    => "00-\"},{\"evil\":\"" . 'a' x 19 . "-$span-01",
		spaces    => "00 $trace $span 01",
		twice     => [ "00-$trace-$span-01", "00-$trace-$span-01" ]);

	for my $name (sort keys %good)
	{
		$shim->http(GET => '/x', { headers => { 'X-Request-Id' => "good-$name", traceparent => $good{$name} } });
		my $record = record("good-$name");

		is_deeply([ @$record{qw(traceId spanId)} ], [ $trace, $span ], "$name: in the log");
	}
	for my $name (sort keys %bad)
	{
		$shim->http(GET => '/x', { headers => { 'X-Request-Id' => "bad-$name",
					defined $bad{$name} ? (traceparent => $bad{$name}) : () } });
		my $record = record("bad-$name");

		ok(!exists $record->{traceId} && !exists $record->{spanId}, "$name: there is none");
	}
	$shim->raw("POST /x HTTP/1.1\r\nHost: a\r\nX-Request-Id: refused-1\r\nTraceparent: 00-$trace-$span-01\r\n\r\n");
	is(record('refused-1')->{traceId}, $trace, 'a refusal has it, too');
};

subtest 'the log of the server' => sub {
	my $real = EntityApi::Test->cluster;
	my $api = EntityApi::Test->shim($real);
	my $ann = $api->superadmin;

	# a fault inside: the table that a list of management reads is gone
	$real->psql('alter table entityapi.tenant rename column slug to slug_away');
	my $answer = $api->http(GET => '/manage/tenants', { token => $ann,
			headers => { 'X-Request-Id' => 'inside-1', traceparent => "00-$trace-$span-01" } });
	$api->http(GET => '/manage/tenants', { token => $ann,
			headers => { 'X-Request-Id' => 'inside-2', traceparent => "00-$trace-$span-01\\n" } });
	$real->psql('alter table entityapi.tenant rename column slug_away to slug');
	my $log = EntityApi::Test::slurp($real->log);

	is($answer->{status}, 500, 'an unexpected failure');
	like($log, qr/entityapi request inside-1 of trace $trace failed: /, 'names request and trace');
	like($log, qr/entityapi request inside-2(?: of trace $trace)? failed: /, 'or the request alone');
	unlike($log, qr/00-$trace/, 'never what was sent');
};

subtest 'Server-Timing' => sub {
	my $number = qr/\d+\.\d{3}/;
	my $slow = $shim->http(GET => '/sleep/0.2');
	my ($total, $wait, $db) = $slow->{headers}{'server-timing'} =~
	  /^total;dur=($number), wait;dur=($number), db;dur=($number)$/;

	cmp_ok($db, '>=', 200, 'time in the database, in milliseconds');
	cmp_ok($total, '>=', $db + $wait, 'is part of the whole');
	like($shim->raw("POST /x HTTP/1.1\r\nHost: a\r\n\r\n"), qr/^Server-Timing: total;dur=$number, wait;dur=0\.000, db;dur=0\.000\r$/m,
		'refusals, too');
	my $plain = EntityApi::Test->shim($cluster);
	is($plain->http(GET => '/x')->{headers}{'server-timing'}, undef, 'not by default');
};

subtest 'lines wait for others' => sub {
	my $slow = EntityApi::Test->shim($cluster, access_log_delay_ms => 3000);
	my $count = sub { scalar(() = EntityApi::Test::slurp($slow->log) =~ /"wait-\d+"/g) };

	$slow->logged(qr/health|stand-in/);
	$slow->http(GET => '/x', { headers => { 'X-Request-Id' => "wait-$_" } }) for 1 .. 5;
	ok(EntityApi::Test::wait_until(60, sub { $count->() == 5 }), 'not for ever');
	$slow->stop;
	my $in_time = EntityApi::Test::wait_until(60, sub {
			my $began = time;
			my $never = EntityApi::Test->shim($cluster, access_log_delay_ms => 10_000);
			my $seen = sub { scalar(() = EntityApi::Test::slurp($never->log) =~ /"end-\d+"/g) };

			$never->http(GET => '/x', { headers => { 'X-Request-Id' => "end-$_" } }) for 6 .. 9;
			my $before = $seen->();

			# on a busy machine the time may have passed
			return 0 if time > $began + 9;
			is($before, 0, 'for a while');
			is($never->stop, 0, 'an end');
			is($seen->(), 4, 'writes them');
			return 1;
		});
	ok($in_time, 'which was looked at before their time');

	my $many = EntityApi::Test->shim($cluster, access_log_delay_ms => 10_000);
	$many->http(GET => '/x', { headers => { 'X-Request-Id' => "many-$_" } }) for 1 .. 400;
	my $text = EntityApi::Test::slurp($many->log);
	cmp_ok(length $text, '>=', 65_536, 'a full buffer is written');
	is($many->stop, 0, 'ends with 0');
	my @ids = EntityApi::Test::slurp($many->log) =~ /"many-(\d+)"/g;
	is_deeply(\@ids, [ 1 .. 400 ], 'all lines, in order');
	is(scalar(grep { !eval { decode_json($_) } } split /\n/, EntityApi::Test::slurp($many->log)), 0, 'all of them whole');

	my $now = EntityApi::Test->shim($cluster, access_log_delay_ms => 0);
	$now->http(GET => '/x', { headers => { 'X-Request-Id' => 'now-1' } });
	ok($now->logged(qr/"now-1"/), '0 is at once');
};

my @patient = qw(--pool-wait-ms 60000 --statement-timeout-ms 60000 --request-timeout-ms 60000 --connect-timeout-s 60);

subtest 'a log that cannot be written' => sub {
	my $port = EntityApi::Test::free_port();
	my $pid = EntityApi::Test::start(
		[ EntityApi::Test::private_program('entityapi-shim'), 'serve', '--listen', "127.0.0.1:$port", '--metrics', 'true',
			'--access-log-delay-ms', 10, '--database', $cluster->conninfo('entityapi_shim'), @patient ],
		out => '/dev/full', err => '/dev/null', service => 1);
	my $client = HTTP::Tiny->new(timeout => 60);
	my $get = sub { $client->get("http://127.0.0.1:$port$_[0]") };

	ok(EntityApi::Test::wait_until(10, sub { $get->('/actuator/health')->{status} == 200 }), 'serves');
	is($get->('/x')->{status}, 200, 'and goes on');
	ok(EntityApi::Test::wait_until(5, sub {
				$get->('/actuator/prometheus')->{content} =~ /^entityapi_log_lines_lost_total [1-9]/m }), 'and counts what is lost');
	kill TERM => $pid;
	waitpid $pid, 0;
	is($?, 0, 'ends with 0');
};

# Nobody reads what the shim writes into a full pipe, as happens when whoever
# collects logs hangs.
for my $delay (0, 10)
{
	subtest "a log that nobody reads, lines waiting for $delay ms" => sub {
		my $folder = File::Temp->newdir;
		my $pipe = "$folder/pipe";
		POSIX::mkfifo($pipe, 0600) or die "mkfifo: $!\n";
		sysopen my $reader, $pipe, O_RDWR | O_NONBLOCK or die "$pipe: $!\n";
		fcntl $reader, 1031, 4096 or die "F_SETPIPE_SZ: $!\n";

		my $port = EntityApi::Test::free_port();
		my $pid = EntityApi::Test::start(
			[ EntityApi::Test::private_program('entityapi-shim'), 'serve', '--listen', "127.0.0.1:$port", '--metrics', 'true',
				'--access-log-delay-ms', $delay, '--database', $cluster->conninfo('entityapi_shim'), @patient ],
			out => $pipe, service => 1);
		my $client = HTTP::Tiny->new(timeout => 60, keep_alive => 0);
		my $get = sub { $client->get("http://127.0.0.1:$port$_[0]", { headers => { 'X-Request-Id' => $_[1] // 'x' } }) };

		ok(EntityApi::Test::wait_until(10, sub { $get->('/actuator/health')->{status} == 200 }), 'serves');
		my @wrong = grep { $get->('/x')->{status} != 200 } 1 .. 400;
		is(scalar @wrong, 0, 'answers, although the pipe is full');
		ok(EntityApi::Test::wait_until(5, sub {
					$get->('/actuator/prometheus')->{content} =~ /^entityapi_log_lines_lost_total [1-9]/m }), 'what is lost is counted');

		my $read = sub {
			my $text = '';
			while (sysread $reader, my $piece, 65536) { $text .= $piece }
			return $text;
		};
		my $text = $read->();
		ok(EntityApi::Test::wait_until(5, sub {
					$get->('/x', 'again'); $text .= $read->(); $text =~ /"again".*\n/ }), 'what is written later, arrives');
		my @broken = grep { !eval { decode_json($_) } } split /\n/, $text =~ s/[^\n]*\z//r;
		cmp_ok(scalar @broken, '<=', 2, 'and stands on lines of its own');
		$get->('/x') for 1 .. 100;
		kill TERM => $pid;
		ok(EntityApi::Test::wait_until(8, sub { waitpid($pid, POSIX::WNOHANG()) > 0 }), 'it ends, too')
		  or kill KILL => $pid;
		is($?, 0, 'with 0');
	};
}

done_testing;
