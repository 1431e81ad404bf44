package EntityApi::Test::Shim;

=head1 NAME

EntityApi::Test::Shim - a running entityapi-shim of a TAP test, and its client

=head1 DESCRIPTION

Made by C<< EntityApi::Test->shim($cluster, %flags) >>.

=cut

use strict;
use warnings;

use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP ();
use List::Util ();
use POSIX ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes ();

use EntityApi::Test::Details;

# What is sent is made by JSON::PP, to which a number stays one when it has been
# part of a text; what comes is read by what is faster.
my $json = JSON::PP->new->utf8->canonical->allow_nonref;
my $reader;

sub new
{
	my ($class, $cluster, %flags) = @_;
	$reader //= EntityApi::Test::json();
	my $env = delete $flags{env} // {};
	my $wait = delete $flags{wait} // 1;
	my $node = delete $flags{node};
	my $reloaded = delete $flags{reloaded};
	my $within = delete $flags{within} // [];
	my $folder = EntityApi::Test::folder();
	my $port = EntityApi::Test::free_port();

	my $self = bless {
		cluster => $cluster,
		node    => defined $node ? $cluster->node($node) : $cluster,
		env     => $env,
		within  => $within,
		wait    => $wait,
		flags   => \%flags,
		file    => $reloaded ? "$folder/shim.json" : undef,
		given   => { %{ $reloaded // {} } },
		port    => $port,
		url     => "http://127.0.0.1:$port",
		log     => "$folder/access.log",
		err     => "$folder/error.log",
		client  => HTTP::Tiny->new(
			keep_alive   => 1,
			max_redirect => 0,
			timeout      => EntityApi::Test::PATIENCE(),
			agent        => 'entityapi-test'),
	}, $class;

	$cluster->settle unless defined $node;
	$self->{turns} = [ $self, map { $self->_sibling($_) } 1 .. $cluster->nodes - 1 ]
	  if !defined $node && $cluster->nodes > 1;
	return $self;
}

# The same for another node of the cluster.  What it says is in the same files.
sub _sibling
{
	my ($self, $node) = @_;
	my $port = EntityApi::Test::free_port();

	return bless { %$self, node => $self->{cluster}->node($node), port => $port, url => "http://127.0.0.1:$port",
		client => EntityApi::Test::Shim::Client->new(host => "127.0.0.1:$self->{port}", keep_alive => 1, max_redirect => 0,
			timeout => EntityApi::Test::PATIENCE(), agent => 'entityapi-test') }, ref $self;
}

# That for the next request: the nodes are asked in turns.
sub _next
{
	my ($self) = @_;
	my $turns = $self->{turns} or return $self;

	return $turns->[ $self->{turn}++ % @$turns ];
}

=head1 METHODS

=head2 url, port, pid, log, err

Its base address, port, process id, and the paths of what it wrote to standard
output (the access log) and to standard error.

=cut

sub url  { return $_[0]{url} }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }
sub log  { return $_[0]{log} }
sub err  { return $_[0]{err} }

=head2 stop($signal)

End it, by SIGTERM or the signal given, and return its exit status as in
C<$?>.

=head2 begin

Start it (again).

=cut

sub begin
{
	my ($self) = @_;
	my %flags = (
		listen   => "127.0.0.1:$self->{port}",
		database => $self->{node}->conninfo('entityapi_shim'),
		sweep_interval_ms => 0,

		# so that what a test has done is in the log when it looks
		access_log_delay_ms => 0,

		# a machine on which much else goes on takes longer than a service may
		pool_wait_ms => 60_000,
		connect_timeout_s => 60,
		statement_timeout_ms => 60_000 * EntityApi::Test::SLOWNESS(),
		request_timeout_ms => List::Util::min(600_000, 60_000 * EntityApi::Test::SLOWNESS()),
		keep_alive_timeout_ms => 60_000,
		%{ $self->{flags} });
	my @flags;

	if (defined $self->{file})
	{
		delete @flags{ keys %{ $self->{given} } };
		$flags{config} = $self->_write_file;
	}
	for my $name (sort keys %flags)
	{
		push @flags, '--' . ($name =~ tr/_/-/r), $flags{$name};
	}
	$self->{pid} = EntityApi::Test::start(
		[ EntityApi::Test::private_program('entityapi-shim'), 'serve', @flags ],
		out     => $self->{log},
		err     => $self->{err},
		env     => $self->{env},
		within  => $self->{within},
		service => 1);
	$_->begin for grep { $_ != $self } @{ $self->{turns} // [] };
	return $self unless $self->{wait};

	my $up = EntityApi::Test::wait_until(30, sub {
			return 1 if HTTP::Tiny->new(timeout => 5)
				->get("$self->{url}/actuator/health")->{status} == 200;
			die "the shim has ended:\n" . EntityApi::Test::slurp($self->{err})
			  if $self->has_ended;
			return 0;
		});
	die "the shim does not answer UP:\n" . EntityApi::Test::slurp($self->{err})
	  unless $up;
	return $self;
}

sub stop
{
	my ($self, $signal) = @_;

	$_->stop($signal) for grep { $_ != $self } @{ $self->{turns} // [] };
	if (defined $self->{pid})
	{
		kill $signal // 'TERM', $self->{pid};
		waitpid $self->{pid}, 0;
		$self->{status} = $?;
		undef $self->{pid};
	}
	return $self->{status};
}

=head2 reload(%settings)

Change some of those that C<reloaded> names, and wait until they hold.

=cut

sub reload
{
	my ($self, %settings) = @_;
	my $count = sub { scalar(() = EntityApi::Test::slurp($self->{err}) =~ /"configuration loaded"/g) };

	%{ $self->{given} } = (%{ $self->{given} }, %settings);
	$self->_write_file;

	# what it says of the second time comes when all of it has heard of the first
	for (1 .. 2)
	{
		my $before = $count->();

		kill HUP => $self->{pid};
		EntityApi::Test::wait_until(60, sub { $count->() > $before })
		  or die "no reload:\n" . EntityApi::Test::slurp($self->{err});
	}
	return;
}

sub _write_file
{
	my ($self) = @_;
	my $file = $self->{file};

	open my $out, '>', "$file.new" or die "$file.new: $!\n";
	print $out $json->encode($self->{given});
	close $out;
	chmod 0644, "$file.new";
	rename "$file.new", $file or die "$file: $!\n";
	return $file;
}

=head2 logged($what), said($what)

The first line of the access log, or of standard error, that matches, once it
is there: an answer comes before its line.  Nothing, if none comes.

=cut

sub logged { my ($self, $what) = @_; return _line_of($self->{log}, $what) }
sub said   { my ($self, $what) = @_; return _line_of($self->{err}, $what) }

sub _line_of
{
	my ($path, $what) = @_;
	my $line;

	EntityApi::Test::wait_until(60, sub { ($line) = grep { $_ =~ $what } -e $path ? EntityApi::Test::slurp($path) =~ /^(.*)\n/mg : () });
	return $line;
}

=head2 has_ended

Whether it has ended by itself; C<stop> then tells how.

=cut

sub has_ended
{
	my ($self) = @_;

	return 1 unless defined $self->{pid};
	if (waitpid($self->{pid}, POSIX::WNOHANG()) > 0)
	{
		$self->{status} = $?;
		undef $self->{pid};
		return 1;
	}
	return 0;
}

=head2 stacks_are_enough

A test: of the stack of each thread there is more than three quarters left.
Pages that a stack has ever touched are in memory, so no thread needs to be
asked.  Sanitizers have other stacks, and from 2.42 on glibc marks what guards
a stack where nobody sees it.

=cut

sub stacks_are_enough
{
	my ($self) = @_;

	return if $ENV{SANITIZER};
	my ($glibc) = qx{getconf GNU_LIBC_VERSION} =~ /2\.(\d+)/;
	if (defined $glibc && $glibc >= 42)
	{
	  SKIP: { Test::More::skip("the guards of stacks are not to be seen with glibc 2.$glibc", 1) }
		return;
	}
	my $header = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/shim/base/thread.h');
	my ($size) = $header =~ /THREAD_STACK \((\d+) \* 1024\)/ or die "no size of stacks\n";
	my $maps = EntityApi::Test::slurp("/proc/$self->{pid}/smaps");
	my ($guarded, @used);

	no warnings 'portable';
	while ($maps =~ /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) .*\n((?:\w+: .*\n)*)/mg)
	{
		my ($kilobytes, $rights, $rest) = ((hex($2) - hex $1) / 1024, $3, $4);

		push @used, $rest =~ /^Rss: +(\d+) kB/m if $rights eq 'rw-p' && $guarded && $kilobytes == $size;
		$guarded = $rights eq '---p';
	}
	my ($most) = sort { $b <=> $a } @used;
	return Test::More::ok(@used >= 1 && $most < $size / 4,
		sprintf 'the deepest of %d threads had %d of %d KB', scalar @used, $most // 0, $size);
}

sub discard
{
	my ($self) = @_;

	$self->stop($ENV{ENTITYAPI_TEST_GENTLY} ? 'TERM' : 'KILL');
	return;
}

=head2 http($method, $target, \%options)

One request, on a connection kept between requests.  The target goes out as it
is.  Options: C<headers>; C<json>, a structure that becomes the body (with the
content type of the endpoint, if none is given); C<body>, text (of type
application/octet-stream, if none is given); C<token>, an access token or a hash
with C<accessToken>.

Returns a hash of C<status>, C<headers> (lower-case names; repeated ones as an
array), C<body> (bytes) and C<json> (the body decoded, if it is JSON).

=cut

sub http
{
	my ($self, $method, $target, $options) = @_;
	my %headers = map { lc $_ => $options->{headers}{$_} }
	  keys %{ $options->{headers} // {} };
	my $body = $options->{body};

	if (exists $options->{json})
	{
		$body = $json->encode($options->{json});
		$headers{'content-type'} //= $target =~ m{^/api/}
		  ? 'application/vnd.api+json' : 'application/json';
	}
	if (my $token = $options->{token})
	{
		$token = $token->{accessToken} if ref $token;
		$headers{authorization} //= "Bearer $token";
	}

	my $at = $self->_next;
	my $answer = $at->{client}->request($method, $at->{url} . $target,
		{   headers => \%headers,
			defined $body ? (content => EntityApi::Test::utf8_bytes($body)) : () });
	die "$method $target: $answer->{content}\n" if $answer->{status} == 599;
	_send_at_once($at->{client});

	my $content = $answer->{content} // '';
	EntityApi::Test::Details::hear($content);
	my $type = $answer->{headers}{'content-type'} // '';
	my $decoded = $type =~ m{[/+]json} ? eval { $reader->decode($content) } : undef;

	$self->_record($method, $target, \%headers, $body, $answer)
	  if defined $ENV{ENTITYAPI_RECORD};
	return {
		status  => $answer->{status},
		headers => $answer->{headers},
		body    => $content,
		json    => $decoded,
	};
}

# With ENTITYAPI_RECORD, a folder: keep what was asked and answered, and the
# description of the API as it was at that time, for t/tools/openapi/answers.mjs.
sub _record
{
	my ($self, $method, $target, $headers, $body, $answer) = @_;
	my ($version) = $target =~ m{^/api/v(\d+)/};
	my $path = sprintf '/api/v%d/openapi.json', $version // 1;

	return if $method eq 'HEAD' || $target =~ m{/openapi\.json$};
	my $client = $self->{recorder} //= HTTP::Tiny->new(keep_alive => 1, timeout => EntityApi::Test::PATIENCE());
	my $known = $self->{described}{$path};
	my $document = $client->get("$self->{url}$path",
		{ $known ? (headers => { 'If-None-Match' => qq("$known") }) : () });
	_send_at_once($client);
	if ($document->{status} == 200)
	{
		($known) = $document->{headers}{etag} =~ /^"(\w+)"$/ or die "$path has no ETag\n";
		_append("$ENV{ENTITYAPI_RECORD}/$known.json", '>', $document->{content});
		$self->{described}{$path} = $known;
	}

	# a version that is not there, or a shim whose database is away
	return if $document->{status} != 200 && $document->{status} != 304;
	_append("$ENV{ENTITYAPI_RECORD}/$$.jsonl", '>>', $json->encode({
		document => $known,
		method   => $method,
		target   => $target,
		request  => { type => $headers->{'content-type'}, body => _text($body) },
		status   => $answer->{status} + 0,
		headers  => $answer->{headers},
		body     => _text($answer->{content} // '') }) . "\n");
	return;
}

# Bytes as text, if they are any
sub _text
{
	my ($bytes) = @_;

	return undef unless defined $bytes && !ref $bytes;
	utf8::decode($bytes) unless utf8::is_utf8($bytes);
	return $bytes;
}

sub _append
{
	my ($path, $mode, $bytes) = @_;

	open my $file, "$mode:raw", $path or die "$path: $!\n";
	print $file EntityApi::Test::utf8_bytes($bytes);
	close $file or die "$path: $!\n";
	return;
}

=head2 raw($bytes, %options)

Send bytes as they are and return all that comes back until the server closes,
or, where it does not, C<timeout> (60, or this times SLOWNESS) seconds have
passed without a byte.
C<half_close> closes the sending side.

=cut

sub raw
{
	my ($self, $bytes, %options) = @_;
	my $socket = IO::Socket::INET->new(
		PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => EntityApi::Test::PATIENCE())
	  or die "cannot connect: $@\n";
	my $answer = '';
	my $timeout = defined $options{timeout}
	  ? $options{timeout} * EntityApi::Test::SLOWNESS() : EntityApi::Test::PATIENCE();

	local $SIG{PIPE} = 'IGNORE';
	$socket->autoflush(1);
	print $socket $bytes;
	shutdown $socket, 1 if $options{half_close};
	for (;;)
	{
		my $ready = '';

		vec($ready, fileno($socket), 1) = 1;
		last unless select $ready, undef, undef, $timeout;
		last unless sysread $socket, $answer, 65536, length $answer;
	}
	close $socket;
	EntityApi::Test::Details::hear($answer);
	return $answer;
}

=head2 at_once($n, $target, $body)

POST the same JSON text n times at once, on a connection each; with a function
for the body it is called with the number of each.  Returns the answers' whole
text.

=cut

sub at_once
{
	my ($self, $n, $target, $body) = @_;
	my @sockets = map {
		IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => EntityApi::Test::PATIENCE())
		  or die "cannot connect: $@\n"
	} 1 .. $n;
	my $i = 0;

	for my $socket (@sockets)
	{
		my $text = ref $body ? $body->($i++) : $body;

		$socket->autoflush(1);
		print $socket "POST $target HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
		  . "Content-Type: application/json\r\nContent-Length: " . length($text)
		  . "\r\n\r\n$text";
	}
	my @answers = map { local $/; scalar(readline $_) // '' } @sockets;
	EntityApi::Test::Details::hear($_) for @answers;
	return @answers;
}

=head2 must($status, $method, $target, \%options)

As C<http>, but dies unless the answer has the status; returns its JSON.

=cut

sub must
{
	my ($self, $status, $method, $target, $options) = @_;
	my $answer = $self->http($method, $target, $options);

	die "$method $target: $answer->{status}, not $status\n$answer->{body}\n"
	  if $answer->{status} != $status;
	return $answer->{json};
}

=head2 login($username, $password)

Returns the answer: C<accessToken>, C<refreshToken> and so on.

=head2 superadmin

The same for the SuperAdmin of the cluster; logs in once.

=cut

sub login
{
	my ($self, $username, $password) = @_;

	return $self->must(200, POST => '/auth/login',
		{ json => { username => $username, password => $password } });
}

sub superadmin
{
	my ($self) = @_;
	my $admin = $self->{cluster}->superadmin;

	return $self->{superadmin} //= $self->login(@$admin{qw(username password)});
}

=head2 tenant($slug)

Create a tenant, by the SuperAdmin; returns its record.

=head2 tenant_here($slug)

The same, of several nodes on the one that the cluster's C<psql> asks.

=head2 user($tenant_id, $username, \@roles, %members)

Create a user with further members of the record and a password that is no
temporary one, and log in.  Returns the answer of the login, and C<id>,
C<username> and C<password>.

=cut

sub tenant
{
	my ($self, $slug) = @_;

	return $self->must(201, POST => '/manage/tenants',
		{ token => $self->superadmin, json => { name => ucfirst $slug, slug => $slug } });
}

sub tenant_here
{
	my ($self, $slug) = @_;
	my ($cluster, $tenant) = $self->{cluster};
	my $more = '';

	do { $tenant = $self->tenant("$slug$more"); $more-- } until $cluster->home($tenant->{id})->host eq $cluster->host;
	return $tenant;
}

sub user
{
	my ($self, $tenant_id, $username, $roles, %members) = @_;
	my $password = EntityApi::Test::Cluster::USER_PASSWORD;
	my $user = $self->must(201, POST => "/manage/tenants/$tenant_id/users",
		{ token => $self->superadmin, json => { username => $username, roles => $roles // [], %members } });
	my $hash = $self->{cluster}->user_hash;

	$self->{cluster}->psql("update entityapi.account set password_change_required = false, password_hash = '$hash' where id = '$user->{id}'");
	my $tokens = $self->login($username, $password);

	return { %$tokens, id => $user->{id}, username => $username, password => $password };
}

# The client writes a request's headers and body one after the other; without
# this the system holds the body back until the headers are acknowledged, 40 ms
# later.  The connection is kept, so it helps from the second request on.
sub _send_at_once
{
	my ($client) = @_;
	my $socket = $client->{handle} && $client->{handle}{fh};

	setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1 if $socket;
	return;
}

# A client whose requests name another host than they are sent to, so that the
# answers of siblings do not differ by their addresses.
package EntityApi::Test::Shim::Client;

use parent -norequire, 'HTTP::Tiny';

sub new
{
	my ($class, %options) = @_;
	my $host = delete $options{host};
	my $self = $class->SUPER::new(%options);

	$self->{named} = $host;
	return $self;
}

sub _prepare_headers_and_cb
{
	my ($self, $request, @more) = @_;

	$self->SUPER::_prepare_headers_and_cb($request, @more);
	$request->{headers}{host} = $self->{named};
	return;
}

1;
