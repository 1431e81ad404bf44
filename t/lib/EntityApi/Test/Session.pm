package EntityApi::Test::Session;

=head1 NAME

EntityApi::Test::Session - a session of psql that is asked one thing after the other

=head1 SYNOPSIS

	my $session = EntityApi::Test::Session->new($cluster);
	my $answer = $session->ask('select 1 / n from t');
	print $answer->{sqlstate} eq '00000' ? $answer->{out} : $answer->{message};

=cut

use strict;
use warnings;

use IPC::Open2 ();

use EntityApi::Test;

# Behind each answer: no row is like it.
my $mark = '=-=-=';

=head1 METHODS

=head2 new($cluster, %options)

Options: C<name>, as C<application_name>.

=cut

sub new
{
	my ($class, $cluster, %options) = @_;
	my $self = bless {}, $class;

	local $ENV{PGAPPNAME} = $options{name} // 'psql';
	local $ENV{PGCLIENTENCODING} = 'UTF8';
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	local $SIG{__WARN__} = sub { };
	open my $null, '>', '/dev/null' or die "/dev/null: $!\n";
	open my $err, '>&', \*STDERR or die "stderr: $!\n";
	open STDERR, '>&', $null or die "stderr: $!\n";
	$self->{pid} = IPC::Open2::open2($self->{from}, $self->{to},
		EntityApi::Test::server_program('psql'), '-XAtq', '-f', '-', '-d', $cluster->conninfo);
	open STDERR, '>&', $err or die "stderr: $!\n";
	binmode $self->{$_}, ':raw' for qw(from to);
	return $self;
}

=head2 ask($sql)

One statement, without a semicolon.  A hash of C<out> (bytes, without the last
newline), C<sqlstate> and C<message>; after the end of the session, the last
answer included, C<sqlstate> is C<lost>.

=cut

sub ask
{
	my ($self, $sql) = @_;
	my $out = '';

	local $SIG{PIPE} = 'IGNORE';
	print { $self->{to} } EntityApi::Test::utf8_bytes($sql), ";\n\\echo $mark :SQLSTATE :LAST_ERROR_MESSAGE\n";
	$self->{to}->flush;
	while (defined(my $line = readline $self->{from}))
	{
		if ($line =~ /^\Q$mark\E (\w{5}) (.*)$/)
		{
			chomp $out;
			return { out => $out, sqlstate => $1, message => $1 eq '00000' ? '' : $2 };
		}
		$out .= $line;
	}
	return { out => '', sqlstate => 'lost', message => '' };
}

=head2 must($sql)

What it says; dies of an error.

=cut

sub must
{
	my ($self, $sql) = @_;
	my $answer = $self->ask($sql);

	die "$answer->{sqlstate} $answer->{message}: $sql\n" if $answer->{sqlstate} ne '00000';
	return $answer->{out};
}

=head2 end

=cut

sub end
{
	my ($self) = @_;

	return unless $self->{pid};
	close $self->{$_} for qw(to from);
	waitpid delete $self->{pid}, 0;
	return;
}

sub DESTROY { local $?; $_[0]->end; return }

1;
