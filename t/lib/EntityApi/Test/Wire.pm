package EntityApi::Test::Wire;

=head1 NAME

EntityApi::Test::Wire - a connection to PostgreSQL, message by message

=head1 DESCRIPTION

For what no ordinary client sends: pipelines cut short, portals with names,
rows fetched one by one.

=cut

use strict;
use warnings;

use IO::Socket::UNIX;

=head1 METHODS

=head2 new($cluster, $user)

Connect to the database "entityapi".

=cut

sub new
{
	my ($class, $cluster, $user) = @_;
	my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM,
		Peer => sprintf '%s/.s.PGSQL.%d', $cluster->host, $cluster->port)
	  or die "connect: $!\n";
	my $self = bless { socket => $socket }, $class;
	my $start = pack('N', 196608) . join "\0", 'user', $user, 'database', 'entityapi', '', '';

	print {$socket} pack('N', 4 + length $start) . $start;
	$socket->flush;
	$self->answers;
	return $self;
}

=head2 parse($name, $sql, @types), bind($portal, $statement, @values), execute($portal, $rows), sync, flush, query($sql)

The messages; values go as text, undef as null.  They are sent with
C<send>.

=cut

sub _add { my ($self, $type, $body) = @_; $self->{out} .= $type . pack('N', 4 + length $body) . $body; return $self }

sub parse { my ($self, $name, $sql, @types) = @_; return $self->_add('P', "$name\0$sql\0" . pack 'nN*', scalar @types, @types) }

sub bind
{
	my ($self, $portal, $statement, @values) = @_;

	return $self->_add('B', "$portal\0$statement\0" . pack('n', 0) . pack('n', scalar @values)
		  . join('', map { defined ? pack('N', length) . $_ : pack('N', 0xffffffff) } @values) . pack 'n', 0);
}

sub execute { my ($self, $portal, $rows) = @_; return $self->_add('E', "$portal\0" . pack 'N', $rows // 0) }
sub sync    { return $_[0]->_add('S', '') }
sub flush   { return $_[0]->_add('H', '') }
sub query   { return $_[0]->_add('Q', "$_[1]\0") }

sub send
{
	my ($self) = @_;

	print { $self->{socket} } delete $self->{out};
	$self->{socket}->flush;
	return $self;
}

=head2 answers($until)

The messages up to one of this type (ReadyForQuery by default), each as its
type, with the first value of a row or the text of an error behind it.

=cut

sub answers
{
	my ($self, $until) = @_;
	my @answers;

	for (;;)
	{
		my ($type, $length) = unpack 'aN', $self->_read(5);
		my $body = $self->_read($length - 4);

		push @answers, $type eq 'D' ? 'D ' . substr($body, 6, unpack 'xxN', $body)
		  : $type eq 'E' ? 'E ' . ($body =~ /\0M([^\0]*)/)[0] : $type;
		return @answers if $type eq ($until // 'Z');
	}
}

sub _read
{
	my ($self, $length) = @_;
	my $data = '';

	while (length $data < $length)
	{
		read($self->{socket}, $data, $length - length $data, length $data)
		  or die "the server has closed the connection\n";
	}
	return $data;
}

=head2 close

Without a word.

=cut

sub close { close $_[0]{socket}; return }

1;
