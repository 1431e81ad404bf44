# Whoever comes, goes or says nonsense, and whatever happens to the sessions of
# the database meanwhile: who is answered gets his own answer, and no write is
# done twice.  OWN_ANSWERS_SECONDS and OWN_ANSWERS_SEED choose another run.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use Compress::Zlib ();
use EntityApi::Test::StandIn;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(time);

local $SIG{PIPE} = 'IGNORE';
my $seconds = $ENV{OWN_ANSWERS_SECONDS} // 6;
my $seed = $ENV{OWN_ANSWERS_SEED} // time;
srand $seed;

my $cluster = EntityApi::Test::StandIn->cluster;
$cluster->psql(<<~'SQL');
	create table written (value text not null);
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	begin
		if target like '/write/%' then
			insert into written values (split_part(target, '/', 3));
			perform pg_sleep(random() * 0.01);
			target := '/x';
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, target, in_headers, in_body, remote) h;
	end $$;
	SQL

my $shim = EntityApi::Test->shim($cluster, pool_size => 3, keep_alive => 'yes', keep_alive_timeout_ms => 600_000,
	request_timeout_ms => 600_000, body_timeout_ms => 600_000);
my $clients = 40;
my %acknowledged;
my %count;
my @wrong;
my $id = 0;

sub any { return $_[ rand @_ ] }

sub wrong
{
	my ($what) = @_;

	push @wrong, $what if @wrong < 20;
	return;
}

sub request
{
	my ($method, $target, $number, $body) = @_;
	my @headers = ('Host: a', "X-Request-Id: $number");

	push @headers, 'Accept-Encoding: gzip' if rand() < 0.5;
	push @headers, 'Content-Length: ' . length $body if defined $body;
	push @headers, any("X-A: b", 'Connection: keep-alive', 'Connection: close') if rand() < 0.2;
	return join "\r\n", "$method $target HTTP/1.1", @headers, '', $body // '';
}

# What a client may ask for: the text, and what is to be known of the answer
sub one
{
	my $number = 'n' . ++$id;
	my $way = rand;

	return { number => $number, target => "/x?$number", text => request(any('GET', 'GET', 'DELETE'), "/x?$number", $number) } if $way < 0.5;
	return { number => $number, text => request(GET => '/sleep/' . any(0.001, 0.01, 0.05), $number) } if $way < 0.6;
	return { number => $number, write => $number, text => request(POST => "/write/$number", $number, any('', 'x' x 100, 'x' x 20_000)) } if $way < 0.8;
	return { number => $number, text => request(GET => '/big/' . any(10, 20_000, 300_000), $number) } if $way < 0.9;
	return { number => $number, text => request(GET => '/fail/' . any('40001', '22000', '57014'), $number) } if $way < 0.95;
	return { nonsense => 1, text => any("GET /x HTTP/1.1\r\nHost: a\r\nA: \x01\r\n\r\n", "POST /x HTTP/1.1\r\nHost: a\r\n\r\n",
			"GET /x?no HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", request('GET', '/x', 'no') =~ s/Host: a/Host: a\r\nHost: b/r) };
}

sub fresh
{
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60) or die "cannot connect: $@\n";

	$socket->blocking(0);
	return { socket => $socket, asked => [], got => '', unsent => '' };
}

# The first whole answer of what has come, or nothing
sub answer
{
	my ($client) = @_;
	my $end = index $client->{got}, "\r\n\r\n";
	my $head = $end < 0 ? return : substr $client->{got}, 0, $end + 2;
	my ($length) = $head =~ /^Content-Length: (\d+)/m;

	return if length $client->{got} < $end + 4 + ($length // 0);
	substr $client->{got}, 0, $end + 4, '';
	return { head => $head, body => substr($client->{got}, 0, $length // 0, '') };
}

sub look_at
{
	my ($asked, $answer) = @_;
	my ($status) = $answer->{head} =~ /^HTTP\/1.1 (\d+)/;
	my ($number) = $answer->{head} =~ /^X-Request-Id: (\S+)\r/mi;
	my $body = $answer->{head} =~ /^Content-Encoding: gzip/m ? Compress::Zlib::memGunzip($answer->{body}) : $answer->{body};

	$count{$status}++;
	if ($asked->{nonsense})
	{
		wrong("nonsense: $status") if $status !~ /^4/;
		return;
	}
	wrong("$asked->{number}: $status") if $status !~ /^(?:200|500|503)$/;
	wrong("$asked->{number} got the answer of $number") if $number ne $asked->{number};
	$acknowledged{ $asked->{write} } = 1 if $status == 200 && $asked->{write};
	wrong("$asked->{number} got the body of another") if $status == 200 && $asked->{target} &&
		decode_json($body)->{target} ne $asked->{target};
	return;
}

# Asks for something, or goes
sub act
{
	my ($client) = @_;
	my @asked = map { one() } 1 .. (rand() < 0.1 ? 3 : 1);

	$client->{asked} = \@asked;
	$client->{unsent} = join '', map { $_->{text} } @asked;
	$client->{slow} = rand() < 0.1;
	$client->{goes} = rand() < 0.1;
	return;
}

my @clients = map { fresh() } 1 .. $clients;
my $end = time + $seconds;
my $next = time + 0.3;

# On a busy machine it takes longer until many have been answered.  At the end
# nobody is slow any more.
sub goes_on { return time < $end || ($count{200} // 0) <= 100 }

while (time < $end + 120 && (goes_on() || grep { @{ $_->{asked} } } @clients))
{
	for my $client (@clients)
	{
		act($client) if !@{ $client->{asked} } && goes_on();
		if (length $client->{unsent})
		{
			my $sent = syswrite $client->{socket}, $client->{unsent}, $client->{slow} && goes_on() ? 1 + rand 40 : length $client->{unsent};
			substr $client->{unsent}, 0, $sent // 0, '';
		}
		elsif ($client->{goes} && rand() < 0.5)
		{
			setsockopt $client->{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if rand() < 0.5;
			close $client->{socket};
			$client = fresh();
		}
	}
	my %of = map { fileno($_->{socket}) => $_ } @clients;
	for my $socket (IO::Select->new(map { $_->{socket} } @clients)->can_read(0.005))
	{
		my $client = $of{ fileno $socket };
		my $got = sysread $socket, $client->{got}, 1 << 20, length $client->{got};

		while (@{ $client->{asked} } && (my $answer = answer($client)))
		{
			look_at(shift @{ $client->{asked} }, $answer);
		}
		wrong('something came that nobody had asked for') if !@{ $client->{asked} } && length $client->{got};
		next if $got || (!defined $got && $!{EAGAIN});
		close $socket;
		%$client = %{ fresh() };
	}
	if (time > $next && goes_on())
	{
		my $what = any('pg_terminate_backend', 'pg_cancel_backend');

		$cluster->psql("select $what(pid) from pg_stat_activity where application_name = 'entityapi-shim' order by random() limit 1");
		$next = time + 0.3;
	}
}
is(join("\n", @wrong), '', 'nobody got what is not his') or diag("seed $seed");
is(scalar(grep { @{ $_->{asked} } } @clients), 0, 'nobody waits for an answer') or diag("seed $seed");
cmp_ok($count{200} // 0, '>', 100, join ', ', map { "$_: $count{$_}" } sort keys %count);

my %stored;
$stored{$_}++ for split /\n/, $cluster->psql('select value from written');
is(join(' ', grep { $stored{$_} > 1 } sort keys %stored), '', 'no write was done twice');
is(join(' ', grep { !$stored{$_} } sort keys %acknowledged), '', 'each that was acknowledged was done');
is($shim->stop, 0, 'the shim ends with 0');
done_testing;
