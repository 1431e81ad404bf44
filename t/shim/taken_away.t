# Reads that are sent behind others to the database: they are done twice where
# they are taken away again, or refused there, and written down once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use IO::Socket::INET;
use Test::More;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(map { EntityApi::Test::checkout() . "/t/data/entities/$_.yaml" } qw(service values));
my $shim = EntityApi::Test->shim($cluster, pool_size => 2, keep_alive => 'yes', keep_alive_timeout_ms => 60_000,
	statement_timeout_ms => 60_000, pool_wait_ms => 30_000);
my $ann = $shim->user($shim->tenant('ours')->{id}, 'ann', ['Editor'])->{accessToken};
my $path = '/api/v1/specimens';

sub client
{
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

	$socket->autoflush(1);
	return $socket;
}

sub ask
{
	my ($socket, $token, @headers) = @_;

	print $socket join("\r\n", "GET $path HTTP/1.1", 'Host: a', 'Accept: application/vnd.api+json',
		"Authorization: Bearer $token", @headers, '', '');
	return;
}

sub status
{
	my ($socket) = @_;
	my $text = '';

	while ($text !~ /^(.*?\r\n)\r\n(.*)/s || length $2 < ($1 =~ /^Content-Length: (\d+)/m)[0])
	{
		sysread $socket, $text, 1 << 16, length $text or return 'closed';
	}
	return ($text =~ /^HTTP\/1.1 (\d+)/)[0];
}

# How often refusals of requests with such an id were written down
sub records
{
	my ($prefix) = @_;

	return $cluster->psql("select count(*), count(distinct request_id) from entityapi.audit where request_id like '$prefix-%'");
}

sub hold_up
{
	my ($locker) = @_;

	print $locker "begin; lock table app.specimen;\n";
	EntityApi::Test::wait_until(20, sub {
			$cluster->psql(q{select count(*) from pg_locks where relation = 'app.specimen'::regclass and mode = 'AccessExclusiveLock' and granted}) });
	return;
}

subtest 'behind others' => sub {
	my @clients = map { client() } 1 .. 12;

	for my $round (1 .. 10)
	{
		ask($clients[$_], 'x.y.z', "X-Request-Id: behind-$round-$_") for 0 .. $#clients;
		my @bad = grep { $_ ne '401' } map { status($_) } @clients;

		is("@bad", '', 'all are refused') if @bad || $round == 10;
	}
	is(records('behind'), '120|120', 'and each is written down once');
};

subtest 'taken away from behind one that takes long' => sub {
	my @readers = map { client() } 1 .. 4;
	my @refused = map { client() } 1 .. 2;
	my $alone = 0;

	open my $locker, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo or die "psql: $!\n";
	$locker->autoflush(1);
	for my $round (1 .. 10)
	{
		for (1 .. 20)
		{
			ask($_, $ann) for @readers;
			status($_) for @readers;
		}
		hold_up($locker);
		ask($_, $ann) for @readers[0, 1];
		ask($refused[$_], 'x.y.z', "X-Request-Id: taken-$round-$_") for 0 .. 1;
		select undef, undef, undef, 0.1;
		print $locker "commit;\n";
		my @statuses = map { status($_) } @readers[0, 1], @refused;

		# a quarter of the pool, one here, waits for a table; another is refused, and
		# both are if what waits is a read that was taken away, until that has ended
		@statuses[ 0, 1 ] = sort @statuses[ 0, 1 ];
		$alone++ if $statuses[0] ne '200';
		like("@statuses", qr/^(?:200|503) (?:200|503) 401 401$/, "round $round") if "@statuses" ne '200 200 401 401' || $round == 10;
	}
	close $locker;
	cmp_ok($alone, '<', 5, 'in most rounds one of them waits');
	is(records('taken'), '20|20', 'each is written down once');
};

subtest 'no client says so' => sub {
	my $client = client();

	ask($client, 'x.y.z', 'X-Request-Id: said-1', 'X-Entityapi-Reads-Only: 1');
	is(status($client), 401, 'refused');
	is(records('said'), '1|1', 'and written down');
};

subtest 'the message' => sub {
	for my $says (1, 0)
	{
		my $answer = $cluster->psql(<<~"SQL");
			begin;
			select split_part(convert_from(entityapi.handle(convert_to(E'GET $path -\\nx-entityapi-reads-only: $says\\n'
				'x-request-id: message-$says\\nauthorization: Bearer x.y.z\\n\\n', 'UTF8')), 'UTF8'), E'\\n', 1);
			show transaction_read_only;
			commit;
			SQL
		is($answer, "401\noff", 'is answered, and the transaction is as it was');
		is($cluster->psql("select count(*) from entityapi.audit where request_id = 'message-1'"), 0, "nothing is written") if $says;
	}
	is($cluster->psql(q{select count(*) from entityapi.audit where request_id = 'message-0'}), 1, 'but where it may be');
};

$shim->stop;
done_testing;
