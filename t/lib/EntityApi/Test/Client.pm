package EntityApi::Test::Client;

=head1 NAME

EntityApi::Test::Client - a client of the shim, byte by byte

=head1 DESCRIPTION

For what no HTTP library sends: requests behind requests, in pieces, or wrong.

=cut

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(time);

use EntityApi::Test::Details;

our @EXPORT_OK = qw(connected answer);

=head1 FUNCTIONS

=head2 connected($shim)

A connection of its own.

=cut

sub connected
{
	my ($shim) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port, Timeout => 60)
	  or die "cannot connect: $@\n";

	$socket->autoflush(1);
	return $socket;
}

=head2 answer($socket)

One whole answer: "status" (or "none", "closed"), "head", "body", and how many
"seconds" it took.  What has come behind it is kept for the next one.

=cut

sub answer
{
	my ($socket) = @_;
	my $started = time;
	my $text = delete ${*$socket}{behind} // '';

	for (;;)
	{
		my ($head, $body) = $text =~ /^(.*?\r\n)\r\n(.*)/s;
		my ($length) = ($head // '') =~ /^Content-Length: (\d+)/m;

		if (defined $head && length $body >= ($length //= 0))
		{
			EntityApi::Test::Details::hear(substr $body, 0, $length);
			${*$socket}{behind} = substr $body, $length, length $body, '';
			return { status => $head =~ /^HTTP\/1.1 (\d+)/, head => $head, body => $body, seconds => time - $started };
		}
		return { status => 'none', seconds => time - $started } if !IO::Select->new($socket)->can_read(60);
		return { status => 'closed', seconds => time - $started } if !sysread $socket, $text, 1 << 16, length $text;
	}
}

1;
