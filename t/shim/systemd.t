# The service manager: readiness, reload, watchdog, stop; and the unit file.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use File::Temp;
use IO::Select;
use IO::Socket::UNIX;
use Socket;
use Test::More;
use Time::HiRes qw(time sleep);

my $cluster = EntityApi::Test::StandIn->cluster;
my $folder = EntityApi::Test::folder();

# A socket like the service manager's, and what arrives there.
sub manager
{
	my ($path) = @_;
	my $socket = IO::Socket::UNIX->new(Type => SOCK_DGRAM,
		Local => $path =~ s/^@/\0/r) or die "$path: $!\n";

	chmod 0777, $path unless $path =~ /^@/;
	return $socket;
}

sub message
{
	my ($socket, $seconds) = @_;

	return '' unless IO::Select->new($socket)->can_read($seconds);
	recv $socket, my $text, 4096, 0;
	return $text;
}

# The first message within the time that has it.
sub heard
{
	my ($socket, $what, $seconds) = @_;
	my $end = time + $seconds;

	while ((my $left = $end - time) > 0)
	{
		my $text = message($socket, $left);
		return $text if $text =~ $what;
	}
	return '';
}

for my $path ("$folder/notify", "\@entityapi-test-$$")
{
	subtest $path =~ /^@/ ? 'an abstract socket' : 'a socket with a path' => sub {
		my $manager = manager($path);
		my $shim = EntityApi::Test->shim($cluster,
			env => { NOTIFY_SOCKET => $path, WATCHDOG_USEC => 1_000_000 });

		is(message($manager, 60), "READY=1\nSTATUS=Serving", 'ready, first of all');
		like(heard($manager, qr/^WATCHDOG=1$/, 60), qr/WATCHDOG/, 'alive') for 1 .. 3;
		kill HUP => $shim->pid;
		like(heard($manager, qr/RELOADING/, 60), qr/^RELOADING=1\nMONOTONIC_USEC=\d+$/, 'reloading');
		like(heard($manager, qr/READY/, 60), qr/^READY=1$/, 'reloaded');
		is($shim->stop, 0, 'ends with 0');
		like(heard($manager, qr/STOPPING/, 60), qr/^STOPPING=1\nSTATUS=Draining$/, 'stopping');
	};
}

subtest 'no database' => sub {
	my $manager = manager("$folder/early");
	my $shim = EntityApi::Test->shim($cluster, wait => 0, database => 'host=/nowhere',
		env => { NOTIFY_SOCKET => "$folder/early" });

	like(message($manager, 60), qr/^READY=1\nSTATUS=.*cannot be reached/, 'is told');
	is(message($manager, 0.5), '', 'no watchdog, no word');
	is($shim->stop, 0, 'ends with 0');
};

subtest 'a manager that is not there' => sub {
	for my $path ('/nowhere/notify', 'x' x 200)
	{
		my $shim = EntityApi::Test->shim($cluster, env => { NOTIFY_SOCKET => $path });

		is($shim->http(GET => '/x')->{status}, 200, 'it serves');
		is($shim->stop, 0, 'and ends with 0');
	}
};

subtest 'the unit file' => sub {
	my $unit = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/shim/entityapi-shim.service');
	my $program = EntityApi::Test::private_program('entityapi-shim');

	like($unit, qr/^Type=notify$/m, 'waits for readiness');
	like($unit, qr/^$_$/m, $_) for qw(NoNewPrivileges=yes ProtectSystem=strict
		MemoryDenyWriteExecute=yes CapabilityBoundingSet= DynamicUser=yes);
	is_deeply([ grep { !/^(?:#.*|\[\w+\]|[A-Z]\w+=.*|)$/ } split /\n/, $unit ], [],
		'well-formed');
	my ($command) = $unit =~ /^ExecStart=(.*)$/m;
	my (undef, @arguments) = split ' ', $command;
	is_deeply(\@arguments, [qw(serve --config /etc/entityapi/shim.json)], 'its command');

	my $analyze = '/usr/bin/systemd-analyze';
	SKIP:
	{
		skip 'no systemd-analyze here', 2 unless -x $analyze;
		my $copy = "$folder/entityapi-shim.service";
		open my $file, '>', $copy or die "$copy: $!\n";
		print $file $unit =~ s{/usr/local/bin/entityapi-shim}{$program}r;
		close $file;
		my $result = EntityApi::Test::run([ $analyze, 'verify', '--man=no', '--recursive-errors=no', $copy ]);
		is($result->{out} . $result->{err}, '', 'systemd-analyze verify');
		$result = EntityApi::Test::run([ $analyze, 'security', '--offline=true',
				'--no-pager', '--threshold=15', $copy ]);
		is($result->{status}, 0, 'systemd-analyze security: exposure at most 1.5')
		  or diag($result->{out}, $result->{err});
	}
};

done_testing;
