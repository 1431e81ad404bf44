# Nesting: what is 64 levels deep is read, what is deeper is refused, and
# nothing that anybody sends is deep enough for a stack.  Every route that takes
# a body, as the description of the API has them.
#
# What is much deeper goes to each route in some of its forms; in all of them
# with ENTITYAPI_DEPTH=all.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use Errno qw(EAGAIN EINTR);
use IO::Select;
use IO::Socket::INET;
use Test::More;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
$cluster->apply(map { "$checkout/t/data/entities/$_.yaml" } qw(service values));
my $shim = EntityApi::Test->shim($cluster, max_connections_per_address => 0);
my $pid = $shim->pid;
my $root = $shim->superadmin;
my $ann = $shim->user($shim->tenant('ours')->{id}, 'ann', ['Editor'])->{accessToken};
my $nowhere = '00000000-0000-4000-8000-000000000000';

# Bodies whose brackets are so deep, closed again or not
my %shapes = (
	objects => sub { my ($n, $closed) = @_; '{"a":' x ($n - 1) . '{' . ($closed ? '}' x $n : '') },
	arrays => sub { my ($n, $closed) = @_; '[' x $n . ($closed ? ']' x $n : '') },
	mixed => sub {
		my ($n, $closed) = @_;
		my ($pairs, $odd) = (int(($n - 1) / 2), ($n - 1) % 2);

		'{"a":[' x $pairs . ($odd ? '{"a":' : '') . '[' . ($closed ? ']' . ($odd ? '}' : '') . ']}' x $pairs : '');
	});

# The answer to a request, as its status and body.  Who is refused early is
# told so while he still sends.
sub ask
{
	my ($head, $body, $is_chunked) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";
	my $all = join("\r\n", @$head, 'Host: a', $is_chunked ? 'Transfer-Encoding: chunked' : 'Content-Length: ' . length $body, '', '');
	my ($sent, $text) = (0, '');

	$all .= $is_chunked ? join('', map { sprintf "%x\r\n%s\r\n", length, $_ } unpack '(a30000)*', $body) . "0\r\n\r\n" : $body;
	$socket->blocking(0);
	local $SIG{PIPE} = 'IGNORE';
	while ($sent < length $all)
	{
		my ($readable, $writable) = IO::Select->select(IO::Select->new($socket), IO::Select->new($socket), undef, 60);

		last if !$writable || @$readable;
		my $n = syswrite $socket, $all, 1 << 18, $sent;
		last if !defined $n && $! != EAGAIN && $! != EINTR;
		$sent += $n // 0;
	}
	$socket->blocking(1);

	# up to its end; who then stays would be waited for
	until ($text =~ /^(.*?\r\n)\r\n(.*)/s && length $2 >= ($1 =~ /^Content-Length: (\d+)/mi ? $1 : 0))
	{
		sysread $socket, $text, 1 << 16, length $text or last;
	}
	return $text =~ /^HTTP\/1\.1 (\d+).*?\r\n\r\n(.*)/s ? ($1, $2) : ('none', $text);
}

sub head
{
	my ($method, $path, $token) = @_;

	return [ "$method $path HTTP/1.1", 'Content-Type: ' . ($path =~ m{^/api} ? 'application/vnd.api+json' : 'application/json'),
		defined $token ? "Authorization: Bearer $token" : () ];
}

# -------- where it ends --------

sub told
{
	my ($status, $body) = @_;
	my $error = $body =~ /^\{"errors"/ ? EntityApi::Test::json()->decode($body)->{errors}[0] : undef;

	return $error ? "$status $error->{code}: $error->{detail}" : $status;
}

subtest 'the border' => sub {
	my $document = sub { my ($n) = @_; '{"data":{"type":"specimens","attributes":{"name":"x","extra":' . '[' x ($n - 3) . ']' x ($n - 3) . '}}}' };

	for my $is_chunked (0, 1)
	{
		is(told(ask(head(POST => '/api/v1/specimens', $ann), $document->(64), $is_chunked)) =~ s/ .*//r, 201, '64 levels are stored');
		like(told(ask(head(POST => '/api/v1/specimens', $ann), $document->(65), $is_chunked)),
			qr/^400 INVALID_DOCUMENT: .*nested too deep/, '65 are not');
		for my $path ('/auth/login', '/auth/token', '/auth/refresh')
		{
			unlike(told(ask(head(POST => $path), $shapes{objects}->(64, 1), $is_chunked)), qr/deep/, "$path: 64");
			like(told(ask(head(POST => $path), $shapes{objects}->(65, 1), $is_chunked)),
				qr/^400 INVALID_DOCUMENT: .*nested too deep/, "$path: 65");
		}
	}
};

# -------- every route --------

my $api = $shim->http(GET => '/api/v1/openapi.json')->{json};
my @routes;
for my $path (sort keys %{ $api->{paths} })
{
	for my $method (grep { /^(?:post|put|patch|delete)$/ } sort keys %{ $api->{paths}{$path} })
	{
		my $takes = exists $api->{paths}{$path}{$method}{requestBody};

		push @routes, [ uc $method, $path =~ s/\{[^}]*\}/$nowhere/gr, $takes ] if $takes || $method eq 'post';
	}
}
cmp_ok(scalar(grep { $_->[2] } @routes), '>=', 20, 'routes that take a body: ' . grep { $_->[2] } @routes);
is(scalar(grep { $_->[1] =~ /\/openapi|^\/actuator/ } @routes), 0, 'none only reads');

my %bodies;
for my $shape (sort keys %shapes)
{
	for my $depth (63, 64, 65, 10_000, 1_000_000)
	{
		push @{ $bodies{$depth} }, map { [ "$depth $shape" . ($_ ? ' closed' : ''), $shapes{$shape}->($depth, $_) ] } 0, 1;
	}
}

my $everything = ($ENV{ENTITYAPI_DEPTH} // '') eq 'all';
my $turn = 0;
for my $route (@routes)
{
	my ($method, $path, $takes) = @$route;
	my $most = $path =~ m{^/(?:auth|manage)} ? 64 << 10 : 1 << 20;
	my $count = 0;
	my @wrong;

	for my $depth (sort { $a <=> $b } keys %bodies)
	{
		for my $body (@{ $bodies{$depth} })
		{
			for my $token (undef, $path =~ m{^/manage} ? $root : $ann)
			{
				for my $is_chunked (0, 1)
				{
					next if !$everything && $depth > 65 && $turn++ % 7;
					my ($status, $answer) = ask(head($method, $path, $token), $body->[1], $is_chunked);
					my $fine = length $body->[1] > $most ? $status eq '413' :
					  $takes && $depth > 64 ? $status =~ /^4/ : $status =~ /^[24]/;

					$count++;
					push @wrong, "$body->[0]" . ($is_chunked ? ', chunked' : '') . (defined $token ? ', with a credential' : '') . ": $status"
					  if !$fine;
				}
			}
		}
	}
	is_deeply(\@wrong, [], "$method $path: $count requests");
}

# -------- the process --------

is($shim->pid, $pid, 'it has not been started again');
ok(kill(0, $pid) && !$shim->has_ended, 'and is the same process');
is($shim->http(GET => '/actuator/health')->{status}, 200, 'which serves');

$shim->stacks_are_enough;
is($shim->stop, 0, 'ends with 0');
done_testing;
