package EntityApi::Test::Details;

=head1 NAME

EntityApi::Test::Details - the voice in which error objects say what is wrong

=head1 DESCRIPTION

A C<detail> is one or more whole sentences, CONTRIBUTING.md says which.  Every
answer that a test gets by L<EntityApi::Test::Shim>, L<EntityApi::Test::Client>
or psql is looked at; t/whole/details.t looks at the sources.

=cut

use strict;
use warnings;

use JSON::PP ();
use Test::Builder ();

# Words that begin a sentence whose subject comes later, or is a clause
my $late = join '|', qw(After Already As At Because Before Beyond By During For
  From If In Instead On Once Since That Though To Under Unless Until What When
  Where Whether Which While Who Whoever With Within Without);

# Their details are the deployment's own words, up to what is said of them.
my %of_deployment = (
	HOOK_REJECTED    => qr/\A\S+ hook rejected the request: ./s,
	REFUSED_BY_TABLE => qr/./s);

=head1 FUNCTIONS

=head2 fault($detail), title_fault($title)

What of its form is not as it should be, or nothing.

=cut

sub fault
{
	my ($detail) = @_;

	return 'no capital letter at its beginning' if $detail !~ /\A[A-Z]/;
	return 'no full stop at its end'            if $detail !~ /[^.]\.\z/;
	return 'a line break'                       if $detail =~ /\n/;
	return 'one word'                           if $detail !~ / /;
	return 'no subject at its beginning'        if $detail =~ /\A(?:$late)\b(?!-)/;
	return;
}

sub title_fault
{
	my ($title) = @_;

	return 'no capital letter at its beginning' if $title !~ /\A[A-Z]/;
	return 'a stop at its end'                  if $title =~ /[.!?]\z/;
	return 'a capital letter within'            if $title =~ / [A-Z][a-z]/;
	return 'a clause for a name'                if $title =~ /\A(?:$late)\b/;
	return;
}

=head2 faults($text)

A line for each error object in a text, as the service writes them, whose
detail or title has another form.

=cut

my $string = qr/"((?:[^"\\]|\\.)*)"/;
my $reader = JSON::PP->new->utf8->allow_nonref;

sub faults
{
	my ($text) = @_;
	my @faults;

	return if !defined $text || index($text, '"detail":"') < 0;
	while ($text =~ /"code":"([A-Z_]+)","title":$string,"detail":$string/g)
	{
		my ($code, $title) = ($1, $2);
		my $detail = eval { $reader->decode(qq("$3")) } // $3;
		my $own = $of_deployment{$code};
		my $fault = $own ? $detail !~ $own && 'not as told' : fault($detail);

		push @faults, "$code: $detail ($fault)"       if $fault;
		push @faults, "$code: $title ($fault, title)" if $fault = title_fault($title);
	}
	return @faults;
}

=head2 hear($text)

The test fails if there are any in it.

=cut

sub hear
{
	my ($text) = @_;

	Test::Builder->new->ok(0, "an error says: $_") for faults($text);
	return;
}

1;
