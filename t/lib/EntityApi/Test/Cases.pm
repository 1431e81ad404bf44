package EntityApi::Test::Cases;

=head1 NAME

EntityApi::Test::Cases - requests, and what all their answers have in common

=head1 SYNOPSIS

	my $cases = EntityApi::Test::Cases->new($shim, $token, '/api/v1');

	$cases->refused('unknown sort key', 400, 'INVALID_SORT',
		[ parameter => 'sort' ], GET => '/people?sort=nothing');
	my $data = $cases->good(200, GET => '/people')->{json}{data};

=head1 DESCRIPTION

A request that is refused must be refused well: beside the status, the code and
the source that a test expects, each error is looked at for the members it must
have, and for what it must not tell.

=cut

use strict;
use warnings;

use JSON::PP ();
use Test::More;

my $base_type = 'application/vnd.api+json';

# What no client may learn, whatever happens
my $leak = qr/ERROR:|SQLSTATE|\bpg_|relation "|tenant_id|_pkey|_fkey|_key\b|\.c:\d|syntax error at|CONTEXT:/;

# Names of tests may hold any character.
binmode Test::More->builder->$_, ':utf8'
  for qw(output failure_output todo_output);

=head1 METHODS

=head2 new($shim, $token, $base)

=head2 as($token)

The same for somebody else.

=cut

sub new
{
	my ($class, $shim, $token, $base) = @_;

	return bless { shim => $shim, token => $token, base => $base }, $class;
}

sub as
{
	my ($self, $token) = @_;

	return bless { %$self, token => $token }, ref $self;
}

=head2 call($method, $target, %options)

As C<http> of L<EntityApi::Test::Shim>, below the base and with the token.
C<data> is short for a document's primary data, C<plain> asks without the token.

=cut

sub call
{
	my ($self, $method, $target, %options) = @_;

	$options{token} //= $self->{token} unless delete $options{plain};
	$options{json} = { data => delete $options{data} } if exists $options{data};
	$options{headers} = { 'Content-Type' => $base_type, %{ $options{headers} // {} } }
	  if defined $options{body};
	return $self->{shim}->http($method,
		$target =~ m{^/(?:api|auth|manage|actuator)\b} ? $target : "$self->{base}$target", \%options);
}

=head2 good($status, $method, $target, %options)

A request that must succeed; dies when it does not.

=cut

sub good
{
	my ($self, $status, $method, $target, %options) = @_;
	my $answer = $self->call($method, $target, %options);

	die "$method $target: $answer->{status}, not $status\n$answer->{body}\n"
	  if $answer->{status} != $status;
	return $answer;
}

=head2 refused($name, $status, $code, $source, $method, $target, %options)

A request that must fail.  C<$source> is a pair as in C<< [ pointer => '/data' ] >>,
or undefined if it does not matter; so may be C<$code>.  Returns the answer.

=cut

sub refused
{
	my ($self, $name, $status, $code, $source, $method, $target, %options) = @_;
	my $answer = $self->call($method, $target, %options);
	my @errors = @{ $answer->{json}{errors} // [] };
	my @problems = _faults($answer, \@errors);

	# What the client said itself may be said again.
	push @problems, "tells \"$1\""
	  if $answer->{body} =~ /($leak)/ && !_said($1, $target, \%options);

	push @problems, "status $answer->{status}, not $status"
	  if $answer->{status} != $status;
	if (defined $code && !grep { ($_->{code} // '') eq $code } @errors)
	{
		push @problems, "no code $code";
	}
	if (defined $source
		&& !grep { defined $_->{source}{ $source->[0] } && $_->{source}{ $source->[0] } eq $source->[1] }
		@errors)
	{
		push @problems, "no error at $source->[0] \"$source->[1]\"";
	}
	ok(!@problems, $name)
	  or diag "$method $target\n", map({ "$_\n" } @problems), $answer->{body};
	return $answer;
}

sub _said
{
	my ($word, $target, $options) = @_;
	my $said = join ' ', $target, $options->{body} // '',
	  $options->{data} ? JSON::PP->new->encode($options->{data}) : '';

	return index($said, $word) >= 0;
}

# What is wrong with any refusal
sub _faults
{
	my ($answer, $errors) = @_;
	my @problems;

	push @problems, 'content type ' . ($answer->{headers}{'content-type'} // 'missing')
	  if ($answer->{headers}{'content-type'} // '') !~ m{^application/(?:vnd\.api\+)?json$};
	push @problems, 'no errors' unless @$errors;
	push @problems, 'too many errors' if @$errors > 20;
	push @problems, 'data and errors' if exists $answer->{json}{data};
	for my $error (@$errors)
	{
		push @problems, 'status of the error' if ($error->{status} // '') ne $answer->{status};
		push @problems, 'code of the error' if ($error->{code} // '') !~ /^[A-Z][A-Z_]+$/;
		push @problems, 'request id'
		  if ($error->{id} // '') ne ($answer->{headers}{'x-request-id'} // 'none');
		for (qw(title detail))
		{
			push @problems, "no $_" if ($error->{$_} // '') eq '';
		}
	}
	return @problems;
}

1;
