package EntityApi::Test::Pages;

=head1 NAME

EntityApi::Test::Pages - the pages of documentation: their blocks, tables, links

=head1 SYNOPSIS

	use EntityApi::Test::Pages;

	for my $block (EntityApi::Test::Pages::blocks('docs/tutorial.md')) { ... }
	my @rows = EntityApi::Test::Pages::table('docs/api.md', 'Routes');
	ok(EntityApi::Test::Pages::shows($block->{answer}, $output));

=head1 DESCRIPTION

A fenced block of C<sh>, of C<sql>, or of C<yaml> that holds a manifest is to be
run.  A block of C<json>, or of no language, that follows such a block at once is
its answer.  All others are pictures, excerpts and examples of form.

=cut

use strict;
use warnings;

use EntityApi::Test;

my %runs = (
	sh   => sub { 1 },
	sql  => sub { 1 },
	yaml => sub { $_[0] =~ /^apiVersion:/m });
my %shows = map { $_ => 1 } '', qw(json text yaml);

=head1 FUNCTIONS

=head2 pages()

The paths of all pages, those first that somebody new reads first.

=cut

sub pages
{
	my $checkout = EntityApi::Test::checkout();
	my $index = EntityApi::Test::slurp("$checkout/docs/README.md");
	my @docs = map { "docs/$_" } $index =~ /\]\(([\w-]+\.md)\)/g;
	my %seen;

	return grep { !$seen{$_}++ } 'README.md', @docs,
	  map { substr $_, length "$checkout/" } glob("$checkout/*.md $checkout/docs/*.md $checkout/examples/*/README.md");
}

sub text
{
	return EntityApi::Test::slurp(EntityApi::Test::checkout() . "/$_[0]");
}

=head2 blocks($page)

The fenced blocks in their order: C<language>, C<text>, C<line>, C<run> for one
that is to be run, and then C<answer> if its answer is shown.

=cut

sub blocks
{
	my ($page) = @_;
	my (@blocks, $open, $line);
	my $since = 1;

	for (split /\n/, text($page))
	{
		$line++;
		if ($open && /^```$/)
		{
			my $before = $blocks[-1];

			$open->{run} = ($runs{ $open->{language} } // sub { 0 })->($open->{text});
			die "$page:$open->{line}: a block of \"$open->{language}\"\n"
			  unless $open->{run} || $shows{ $open->{language} };
			if (!$since && $before && $before->{run} && $open->{language} =~ /^(json)?$/)
			{
				$before->{answer} = $open->{text};
			}
			else
			{
				push @blocks, $open;
			}
			($open, $since) = (undef, 0);
		}
		elsif ($open) { $open->{text} .= "$_\n" }
		elsif (/^```(\w*)$/) { $open = { language => $1, text => '', line => $line } }
		elsif (/\S/) { $since = 1 }
	}
	die "$page:$open->{line}: a block without an end\n" if $open;
	return @blocks;
}

=head2 shows($answer, $output)

Is that what came out?  Spaces and line ends do not count, C<...> stands for
anything, any UUID for any other (shortened ones, too), any time with a
fraction of a second, and how long something took.

=cut

sub shows
{
	my ($answer, $output) = @_;
	my $uuid = qr/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;
	my $time = qr/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/;
	my $took = qr/donein\d+\.\ds/;

	s/\s+//g for $answer, $output;
	my $pattern = join '', map {
		    /^\.\.\.$/                ? '.*?'
		  : /^$uuid$|^[0-9a-f]{8}-\.\.\.$/ ? $uuid
		  : /^$time$/ && /\./         ? $time
		  : /^$took$/               ? $took
		  : quotemeta
	} split /($uuid|[0-9a-f]{8}-\.\.\.|$time|$took|\.\.\.)/, $answer;
	return $output =~ /\A$pattern\z/s;
}

=head2 table($page, $heading)

The rows of the first table below a heading, each a list of its cells.

=cut

sub table
{
	my ($page, $heading) = @_;
	my ($below) = text($page) =~ /^#+ \Q$heading\E\n(.*?)(?=^#+ |\z)/ms;
	my ($table) = ($below // die "$page has no heading \"$heading\"\n") =~ /((?:^\|.*\n)+)/m;
	my @rows;

	for my $row (split /\n/, $table // die "$page: no table below \"$heading\"\n")
	{
		my @cells = split /(?<!\\)\|/, $row =~ s/^\|//r;

		s/^\s+|\s+$//g for @cells;
		s/\\\|/|/g for @cells;
		push @rows, \@cells;
	}
	return @rows[ 2 .. $#rows ];
}

=head2 code($cell)

What stands in backquotes.

=cut

sub code
{
	return $_[0] =~ /`([^`]+)`/g;
}

1;
