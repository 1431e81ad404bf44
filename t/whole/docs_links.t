# The pages hold together: each link leads somewhere, each page is in the index,
# none speaks of what the reader has not got.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;

my $checkout = EntityApi::Test::checkout();
my @pages = EntityApi::Test::Pages::pages();

# As forges make them
sub anchors
{
	my ($page) = @_;
	my $text = EntityApi::Test::Pages::text($page);

	$text =~ s/^```.*?^```$//msg;
	return map { lc(s/[^\w\s-]//gr) =~ s/\s/-/gr } $text =~ /^#+ (.*)$/mg;
}

my %anchors = map { my $page = $_; $page => { map { $_ => 1 } anchors($page) } } @pages;

for my $page (@pages)
{
	my ($folder) = $page =~ m{^(.*/)?};
	my $text = EntityApi::Test::Pages::text($page);
	my @lost;

	while ($text =~ /\]\(([^)\s]+)\)/g)
	{
		my ($path, $anchor) = split /#/, $1;

		next if $path =~ /^https?:/;
		my $to = $path eq '' ? $page : ($folder // '') . $path;
		1 while $to =~ s{[^/]+/\.\./}{};
		push @lost, $1 if !-e "$checkout/$to" || defined $anchor && !$anchors{$to}{$anchor};
	}
	is("@lost", '', "links of $page");

	$text =~ s/\bwithin the contract\b//g;
	is(join(' ', $text =~ m{(\bthe contract\b|\bcontract section\b|\bgrammar\.md\b|\bservice\.md\b|\bfirst plan\b|\bchecklist\b|\.\./shared)}gi),
		'', "$page speaks of what is here");
}

my %listed = map { $_ => 1 } EntityApi::Test::Pages::text('docs/README.md') =~ /\]\(([\w-]+\.md)\)/g;
is(join(' ', grep { m{^docs/(.*)} && $1 ne 'README.md' && !$listed{$1} } @pages), '', 'every page is in the index');

cmp_ok(-s "$checkout/README.md", '<=', 8192, 'the README has at most 8 KB');
my ($before) = EntityApi::Test::Pages::text('README.md') =~ /\A(.*?"data":)/s;
cmp_ok(() = $before =~ /\n/g, '<', 50, 'and its first answer stands on the first screens');
like($before, qr/!\[.*\]\(docs\/picture\.svg\)/, 'with a picture');

my $sum = (split ' ', qx(cksum <'$checkout/docs/picture.dot'))[0];
my $picture = EntityApi::Test::slurp("$checkout/docs/picture.svg");
like($picture, qr/^<!-- docs\/picture\.dot $sum -->/, 'which was drawn of the text that is there');

my ($version) = EntityApi::Test::slurp("$checkout/entityapi.control") =~ /^default_version = '([^']+)'/m;
my %entry = map { $_ => 1 } EntityApi::Test::Pages::text('CHANGELOG.md') =~ /^## (?:\(unreleased\) )?(\d+\.\d+)$/mg;
my @released = map { m{--([\d.]+)\.sql$} } glob "$checkout/extension/update/released/*.sql";
is(join(' ', grep { !$entry{$_} } $version, @released), '', 'every version has an entry in the changelog');

done_testing;
