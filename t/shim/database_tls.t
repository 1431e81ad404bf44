# The shim and its database through TLS.  What OpenSSL has decrypted and libpq
# did not take yet is no news on the socket: records of 16 KiB, which servers
# from version 17 on send, must not be waited for twice.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;

my ($openssl) = grep { -x } qw(/usr/bin/openssl /usr/local/bin/openssl);

plan skip_all => 'openssl is not installed' unless $openssl;

my $folder = EntityApi::Test::folder();
my $made = EntityApi::Test::run([ $openssl, qw(req -x509 -newkey rsa:2048 -nodes -days 2
		-subj /CN=localhost), '-keyout', "$folder/server.key", '-out', "$folder/server.crt" ]);
die $made->{err} if $made->{status} != 0;

my $cluster = EntityApi::Test::StandIn->cluster;

sub conninfo
{
	my ($port, $mode) = @_;

	return "host=localhost hostaddr=127.0.0.1 port=$port user=entityapi_shim dbname=postgres"
	  . " gssencmode=disable sslmode=$mode sslrootcert=$folder/server.crt"
	  . " sslcert=$folder/none sslkey=$folder/none";
}

subtest 'a server with a certificate' => sub {
	my $port = EntityApi::Test::free_port();

	for my $file (qw(server.key server.crt))
	{
		my $put = EntityApi::Test::run(
			[ 'sh', '-c', 'umask 077; cat >"$1"', '-', $cluster->data . "/$file" ],
			in => EntityApi::Test::slurp("$folder/$file"), service => 1);
		is($put->{status}, 0, "$file is there");
	}
	$cluster->psql("alter system set $_")
	  for 'ssl = on', "listen_addresses = '127.0.0.1'", "port = $port";
	{
		# still found through its socket, which is named after the port
		$cluster->stop('fast');
		$cluster->{port} = $port;
		$cluster->start;
	}

	my $shim = EntityApi::Test->shim($cluster, database => conninfo($port, 'verify-full'));
	is($shim->http(GET => '/some/thing')->{status}, 200, 'answers');
	is($cluster->psql(<<~'SQL'), 't', 'through TLS');
		select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid)
		where application_name = 'entityapi-shim'
		SQL
	for my $size (1, 8_000, 8_192, 16_384, 40_000, 1_000_000)
	{
		my $answer = $shim->http(GET => "/big/$size");
		is(length $answer->{body}, $size, "$size bytes");
	}
	$shim->stacks_are_enough;
	$shim->stop;
};

# TLS in front of the server's socket: what the server has said goes on in
# records as large as they can be.  Each connection is a process.
sub relay
{
	my ($client) = @_;
	my $server = IO::Socket::UNIX->new(
		Peer => $cluster->host . '/.s.PGSQL.' . $cluster->port) or die "server: $!\n";
	my ($held, $bytes) = ('');

	sysread($client, $bytes, 8) == 8 or return;
	if (unpack('x4N', $bytes) != 80877103)
	{
		# a cancel request
		syswrite $server, $bytes;
		syswrite $server, $bytes if sysread $client, $bytes, 8;
		return;
	}
	syswrite $client, 'S';
	IO::Socket::SSL->start_SSL($client, SSL_server => 1,
		SSL_cert_file => "$folder/server.crt", SSL_key_file => "$folder/server.key")
	  or return;
	my $select = IO::Select->new($client, $server);
	for (;;)
	{
		my @ready = $client->pending ? $client : $select->can_read($held eq '' ? undef : 0.02);

		for my $socket (@ready)
		{
			sysread($socket, $bytes, 65536) or return;
			if ($socket == $server) { $held .= $bytes }
			else { syswrite $server, $bytes }
		}
		next if @ready;
		for (my $size = 4096; $held ne ''; $size = 16384)
		{
			syswrite $client, substr($held, 0, $size, '');
		}
	}
	return;
}

# Whoever is left has the pipe that the harness reads to its end.
my ($proxy, $self) = (undef, $$);
END { kill TERM => $proxy if $proxy && $$ == $self }

SKIP:
{
	skip 'IO::Socket::SSL is not installed', 1 unless eval { require IO::Socket::SSL };

	subtest 'records of 16 KiB' => sub {
		my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 16)
		  or die "listen: $!\n";
		$proxy = fork // die "fork: $!\n";

		if ($proxy == 0)
		{
			local $SIG{CHLD} = 'IGNORE';
			while (my $client = $listener->accept)
			{
				next if fork;
				relay($client);
				POSIX::_exit(0);
			}
			POSIX::_exit(0);
		}
		my $shim = EntityApi::Test->shim($cluster, pool_size => 1,
			database => conninfo($listener->sockport, 'verify-full'));
		my @missed;

		# libpq's buffer doubles; what does not fit at its end stays behind
		for my $buffer (32_768, 65_536)
		{
			for (my $size = $buffer - 400; $size < $buffer + 8; $size += 9)
			{
				my $answer = $shim->http(GET => "/big/$size");
				push @missed, "$size: $answer->{status}"
				  if $answer->{status} != 200 || length $answer->{body} != $size;
				last if @missed > 2;
			}
		}
		is("@missed", '', 'every size is answered');
		$shim->stop;
		kill TERM => $proxy;
		waitpid $proxy, 0;
		undef $proxy;
	};
}

done_testing();
