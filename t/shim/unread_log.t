# A log that nobody reads keeps no request waiting.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use Fcntl qw(O_NONBLOCK O_RDWR);
use File::Temp;
use HTTP::Tiny;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $set_pipe_size = 1031;
my $requests = 400;
my $patience = 1;

for my $delay (0, 10_000)
{
	subtest "lines that wait for $delay ms" => sub {
		my $folder = File::Temp->newdir;
		my $pipe = "$folder/pipe";
		POSIX::mkfifo($pipe, 0600) or die "mkfifo: $!\n";
		sysopen my $reader, $pipe, O_RDWR | O_NONBLOCK or die "$pipe: $!\n";
		fcntl $reader, $set_pipe_size, 4096 or die "F_SETPIPE_SZ: $!\n";

		my $port = EntityApi::Test::free_port();
		my $pid = EntityApi::Test::start(
			[ EntityApi::Test::private_program('entityapi-shim'), 'serve', '--listen', "127.0.0.1:$port", '--metrics', 'true',
				'--access-log-delay-ms', $delay, '--database', "host=$folder" ],
			out => $pipe, err => $pipe, service => 1);
		my $client = HTTP::Tiny->new(timeout => 60);
		my $get = sub {
			return $client->get("http://127.0.0.1:$port/actuator/prometheus", { headers => { 'X-Request-Id' => $_[0] } });
		};
		my $slowest = 0;
		my $failed = 0;

		ok(EntityApi::Test::wait_until(10, sub { $get->('start')->{status} == 200 }), 'serves');
		for my $number (1 .. $requests)
		{
			my $began = time;

			kill HUP => $pid if $number % 100 == 0;
			$failed++ if $get->("unread-$number")->{status} != 200;
			$slowest = time - $began if time - $began > $slowest;
		}
		is($failed, 0, 'answers');
		cmp_ok($slowest, '<', $patience, 'without a wait for the log');

		my $text = '';
		ok(EntityApi::Test::wait_until(20, sub {
					$get->('again') for 1 .. 50;
					while (sysread $reader, my $piece, 65_536) { $text .= $piece }
					return $text =~ /"requestId":"again".*\n/;
				}), 'lines come when it is read again');
		kill TERM => $pid;
		ok(EntityApi::Test::wait_until(10, sub { waitpid($pid, POSIX::WNOHANG()) > 0 }), 'ends')
		  or kill KILL => $pid;
	};
}

done_testing;
