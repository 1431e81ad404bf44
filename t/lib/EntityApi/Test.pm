package EntityApi::Test;

=head1 NAME

EntityApi::Test - private clusters, shims and requests for TAP tests

=head1 SYNOPSIS

	use EntityApi::Test;

	my $cluster = EntityApi::Test->cluster;
	$cluster->apply('examples/billing');
	my $shim = EntityApi::Test->shim($cluster);

	my $tenant = $shim->tenant('acme');
	my $ann = $shim->user($tenant->{id}, 'ann', ['Accountant']);
	my $answer = $shim->http(GET => '/api/v1/invoices', { token => $ann });
	is($answer->{status}, 200);
	is(scalar @{ $answer->{json}{data} }, 0);

=head1 DESCRIPTION

Whatever a test starts is stopped and removed at its end, also when it dies.
Core modules only; JSON::XS is used where it is installed, as it is many times
faster.  As root, PostgreSQL and the shim run as "postgres".

L<EntityApi::Test::Cluster> and L<EntityApi::Test::Shim> tell what the objects can
do.

The environment, set by make test: ENTITYAPI_PRIVATE_BIN, the folder of the
postgres and entityapi-shim executables to test; ENTITYAPI_TEST_DIR, where the
cluster lies that all test files copy.  Without them the installation of
PG_CONFIG (default: pg_config) is tested, with /usr/local/bin/entityapi-shim.  ENTITYAPI_TEST_CONF, lines for every
cluster's configuration, holds where the test says nothing else.
ENTITYAPI_TEST_SLOWNESS is a factor for limits of time, for builds that are
many times slower (make check-memory).  With
ENTITYAPI_RECORD, a folder, requests and answers are kept; ENTITYAPI_RECORDED
(scripts/test/tap) is such a folder for some tests.

=cut

use strict;
use warnings;

use Cwd ();
use File::Basename ();
use File::Temp ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON::PP   ();
use POSIX      ();
use Test::Builder ();
use Time::HiRes qw(sleep time);

use constant SLOWNESS => $ENV{ENTITYAPI_TEST_SLOWNESS} || 1;
use constant PATIENCE => 60 * SLOWNESS;

use EntityApi::Test::Cluster;
use EntityApi::Test::Citus;
use EntityApi::Test::Shim;

my $checkout = Cwd::realpath(File::Basename::dirname(__FILE__) . '/../../..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
chomp(my $server_bin = `$pg_config --bindir`);
die "there is no $pg_config\n" if $server_bin eq '';
my $private_bin = $ENV{ENTITYAPI_PRIVATE_BIN};

# What is to be stopped at the end: shims before the clusters they use.  A
# child of the test must not stop what belongs to its parent.
my @started;
my @folders;
my $owner = $$;

# Tests whose answers t/openapi/answers.t looks at.  When the suite runs them
# all, they are recorded as they run, in this folder; no child of them is.
my $recorded = delete $ENV{ENTITYAPI_RECORDED};
my $name = $0 =~ m{([^/]+/[^/]+)\.t$} ? $1 : '';

$ENV{ENTITYAPI_RECORD} = $recorded
  if defined $recorded && grep { $_ eq $name } recorded_tests();

sub recorded { return $recorded }
sub recorded_tests { return split ' ', slurp("$checkout/t/tools/openapi/recorded.txt") }

# Leave word that this test has ended, and how.
sub _recorded
{
	my ($status) = @_;
	my $path = "$recorded/" . $name =~ tr{/}{-}r;

	open my $file, '>', "$path.new" or die "$path.new: $!\n";
	print $file $status == 0 && Test::Builder->new->is_passing ? 0 : 1;
	close $file;
	rename "$path.new", "$path.ended";
	return;
}

# What the servers of a test that fails have said of failures, before they go
sub _tell_failures
{
	for my $node (map { $_->isa('EntityApi::Test::Cluster') ? $_->nodes : () } grep { defined } @started)
	{
		my $follows = 0;
		my @told = grep { $follows = /entityapi request .* failed|PANIC: |terminated by signal|TRAP: / || $follows && /(?:CONTEXT|HINT): / }
		  split /\n/, eval { slurp($node->log) } // '';

		print STDERR map { "# server: $_\n" } @told[ (@told > 20 ? -20 : -@told) .. -1 ];
	}
	return;
}

$SIG{$_} = sub { exit 1 }
  for qw(INT TERM HUP);

# A psql that is written to and has gone: what was started is stopped all the same
$SIG{PIPE} = sub { die "nobody reads any more what is written\n" };

END
{
	my $status = $?;

	if ($$ == $owner)
	{
		_tell_failures() if $status != 0 || !Test::Builder->new->is_passing;
		$_->discard for reverse grep { defined } @started;
		_recorded($status) if defined $recorded && defined $ENV{ENTITYAPI_RECORD};
	}
	$? = $status;
}

=head1 CLASS METHODS

=head2 cluster(%options)

Start a cluster that holds the database "entityapi" with the extension and the
shim's role "entityapi_shim".  Options: C<bare>, without the extension;
C<conf>, further lines of postgresql.conf; C<nodes>, so many with Citus, which one alone has with C<citus>
(L<EntityApi::Test::Citus>).

=head2 standby($cluster, $name, %options)

Start a hot standby that streams from the cluster, with that C<cluster_name>.
Options as above, but for C<bare>.

=head2 shim($cluster, %flags)

Start a shim on a free port.  Flags become those of the command line, with C<->
for C<_> (nothing is swept, unless C<sweep_interval_ms> says so); C<env> is a hash of further environment variables, and C<wait> of 0
does not wait for it to answer UP; C<within> is as in C<start()>; C<reloaded> is a hash of settings that go into a file, as numbers and truth values of
JSON, and that its C<reload> changes.  Limits of time that a busy machine may miss are generous where no flag says
otherwise.  Over several nodes there is one for each, and requests go to all in turns, but with C<node>, the number of one.

=cut

sub cluster
{
	my ($class, %options) = @_;
	$options{nodes} //= $options{bare} ? 1 : $ENV{ENTITYAPI_TEST_CITUS} || 1;
	my $kind = $options{citus} // $options{nodes} > 1 ? 'Citus' : 'Cluster';
	my $cluster = "EntityApi::Test::$kind"->new(%options);

	push @started, $cluster;
	$cluster->begin;
	return $cluster;
}

sub standby
{
	my ($class, $cluster, $name, %options) = @_;
	my $standby = EntityApi::Test::Cluster->new(%options);

	push @started, $standby;
	$standby->follow($cluster, $name);
	return $standby;
}

sub shim
{
	my ($class, $cluster, %flags) = @_;
	my $shim = EntityApi::Test::Shim->new($cluster, %flags);

	push @started, $shim;
	$shim->begin;
	return $shim;
}

=head1 FUNCTIONS

For the classes below this one, and for tests with unusual wishes.

=head2 checkout(), server_program($name), private_program($name)

The top folder of the sources, and paths of executables: of the server's
installation, or of what is being tested.

=cut

sub checkout
{
	return $checkout;
}

sub server_program
{
	my ($name) = @_;
	return "$server_bin/$name";
}

sub private_program
{
	my ($name) = @_;
	return "$private_bin/$name" if defined $private_bin;
	return ($name eq 'entityapi-shim' ? '/usr/local/bin' : $server_bin) . "/$name";
}

=head2 folder($name)

A new folder that goes away at the end, with a path short enough for a socket,
owned by the user that runs the server.

=cut

sub folder
{
	my $folder = File::Temp->newdir('eaXXXXXXXX', DIR => _roomy());

	push @folders, $folder;
	own("$folder");
	return "$folder";
}

# A cluster is a thousand small files: in memory, if there is plenty of it.
my $roomy;

sub _roomy
{
	$roomy //= do
	{
		my ($free) = `df -Pk /dev/shm 2>/dev/null` =~ /(\d+)\s+\d+%/;
		($free // 0) > 2_000_000 && -w '/dev/shm' ? '/dev/shm' : '/tmp';
	};
	return $roomy;
}

# Give a path to the server's user.
sub own
{
	my ($path) = @_;

	if ($> == 0)
	{
		my ($uid, $gid) = (getpwnam('postgres'))[ 2, 3 ];
		defined $uid or die "there is no user \"postgres\"\n";
		chown $uid, $gid, $path or die "$path: $!\n";
	}
	return;
}

=head2 free_port

A port of 127.0.0.1 that nobody listens on, and that no other test gets while
this one runs.  It is none of those that the system gives to clients, so that
no connection takes it before, or between, those who listen there.

=cut

my @held;

sub free_port
{
	my ($clients) = eval { slurp('/proc/sys/net/ipv4/ip_local_port_range') =~ /^(\d+)/ };
	my ($first, $beyond) = (10_000, ($clients // 0) > 12_000 ? $clients : 32_768);

	for my $try (@held .. @held + 1000)
	{
		my $port = $first + ($$ * 31 + $try) % ($beyond - $first);

		# a name that goes away with whoever holds it
		my $name = IO::Socket::UNIX->new(Local => "\0entityapi-test-port-$port", Listen => 1) or next;
		my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1) or next;

		push @held, $name;
		return $port;
	}
	die "no free port\n";
}

=head2 start(\@command, %options)

Start a program and return its process id.  Options: C<in> (text for its
standard input), C<out>, C<err> (paths or open files, default /dev/null),
C<env> (a hash), C<service> (true: as the server's user), C<within> (the
beginning of a command that runs another one).

=head2 run(\@command, %options)

The same, waiting for its end.  Returns a hash of C<status>, C<out>, C<err>.

=cut

sub start
{
	my ($command, %options) = @_;
	my @command = @$command;
	my $in;

	unshift @command, qw(setpriv --reuid=postgres --regid=postgres --init-groups)
	  if $options{service} && $> == 0;
	unshift @command, @{ $options{within} // [] };
	if (defined $options{in})
	{
		$in = _nameless();
		print $in utf8_bytes($options{in});
		$in->flush;
		sysseek $in, 0, 0;
	}

	my $pid = fork // die "fork: $!\n";
	return $pid if $pid;

	# From here on in the child: _exit skips the END blocks of the parent.
	my $ready = ($in ? open(STDIN, '<&', $in) : open(STDIN, '<', '/dev/null'))
	  && _append(\*STDOUT, $options{out})
	  && _append(\*STDERR, $options{err} // $options{out});
	if ($ready)
	{
		%ENV = (%ENV, %{ $options{env} // {} });
		chdir '/' if $options{service};
		no warnings 'exec';
		exec { $command[0] } @command;
	}
	print STDERR "$command[0]: $!\n";
	POSIX::_exit(127);
}

sub run
{
	my ($command, %options) = @_;
	my $out = _nameless();
	my $err = _nameless();
	my $pid = start($command, %options, out => $out, err => $err);

	waitpid $pid, 0;
	my $status = $? >> 8 || $?;
	return { status => $status, out => _all_of($out), err => _all_of($err) };
}

# A file without a name: nothing is left of it, however a test ends.
sub _nameless
{
	open my $file, '+>:raw', undef or die "a temporary file: $!\n";
	return $file;
}

sub _all_of
{
	my ($file) = @_;

	seek $file, 0, 0;
	local $/;
	return scalar(<$file>) // '';
}

# Write at the end of a file: its path, or itself while it is open.
sub _append
{
	my ($handle, $to) = @_;

	return ref $to ? open($handle, '>&', $to) : open($handle, '>>', $to // '/dev/null');
}

sub slurp
{
	my ($path) = @_;

	open my $file, '<:raw', $path or die "$path: $!\n";
	local $/;
	my $text = <$file> // '';
	close $file;
	return $text;
}

# A file with that text, which servers may read as well; returns its path
sub write_file
{
	my ($path, $text) = @_;

	open my $file, '>', $path or die "$path: $!\n";
	print $file $text;
	close $file or die "$path: $!\n";
	own($path);
	return $path;
}

# Text as it goes into a file or a socket
sub utf8_bytes
{
	my ($text) = @_;

	utf8::encode($text) if utf8::is_utf8($text);
	return $text;
}

=head2 end_of_cluster

The mode in which what a test leaves is stopped: at once, or, with
ENTITYAPI_TEST_GENTLY, so that processes write down what they have counted.

=cut

sub end_of_cluster
{
	return $ENV{ENTITYAPI_TEST_GENTLY} ? 'fast' : 'immediate';
}

=head2 json

An object that reads JSON, bytes, as JSON::PP does.

=cut

sub json
{
	my $class = eval { require JSON::XS; 'JSON::XS' } // 'JSON::PP';

	return $class->new->utf8->allow_nonref;
}

=head2 wait_until($seconds, $condition)

Call the condition until it is true; false when the time is over, which is
PATIENCE at least, a minute, as the machine may be busy.  Of a pause in which
nobody ran, the test as little as those it waits for, a second counts.

=cut

sub wait_until
{
	my ($seconds, $condition) = @_;
	my $left = $seconds > PATIENCE ? $seconds : PATIENCE;
	my $now = time;

	while ($left > 0)
	{
		return 1 if $condition->();
		sleep 0.05;
		my $passed = time - $now;
		$now += $passed;
		$left -= $passed < 1 ? $passed : 1;
	}
	return 0;
}

1;
