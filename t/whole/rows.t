# Types and operators, which the program has in one table each, wherever they
# are listed again and no compiler looks: pages, console, fuzz targets.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;
use EntityApi::Test::Rows;

my $checkout = EntityApi::Test::checkout();
my @types = EntityApi::Test::Rows::types();
my @operators = EntityApi::Test::Rows::operators();
my @names = map { $_->{name} } @operators;
my @spellings = grep { defined } map { @$_{qw(name other)} } @operators;

sub text
{
	return EntityApi::Test::slurp("$checkout/$_[0]");
}

sub same
{
	my ($shown, $there, $name) = @_;
	my %seen;

	return is(join("\n", sort grep { !$seen{$_}++ } @$shown), join("\n", sort @$there), $name);
}

is(scalar(grep { !defined $_->{name} } @types, @operators), 0, 'rows have names');
is(scalar(grep { !defined $_->{title} || $_->{title} =~ /['%]/ } @operators), 0, 'operators have titles, which stand in JSON and in formats');

# -------- operators --------

same([ map { $_->[0] =~ /`(=\w*=|[!<>]=?)/g } EntityApi::Test::Pages::table('docs/api.md', 'Filters') ], \@spellings, 'docs/api.md has them all');
same([ text('t/tools/fuzz/dictionaries/rsql.dict') =~ /^"(=\w*=|[!<>]=?)"$/mg ], [ grep { length > 1 } @spellings ], 'the dictionary of the fuzz target');

my ($comparison) = text('t/tools/fuzz/costliest.pl') =~ /^\tmy \$operator = (.*?);$/ms;
same([ ($comparison // '') =~ /(=\w*=|!=)/g ], \@names, 'the costliest filters');

# The builder of the console makes =ilike= of a word; the field for text knows
# all that the service does.
my %left_out = ('=like=' => 'the builder has =ilike=');
same([ text('shim/console/rsql.js') =~ /\['(=\w*=|!=)', '/g, sort keys %left_out ], \@names, 'the builder of filters in the console');

# -------- types --------

my ($columns) = text('docs/existing-tables.md') =~ /^- Columns have the types of their fields: (.*?)^- /ms;
is(join(' ', grep { ($columns // '') !~ /`$_`/ } grep { !/^(?:boolean|date|uuid)$/ } map { $_->{name} } @types), '', 'docs/existing-tables.md says which columns, unless the name does');

# A kind that the console does not know is shown and put in as JSON, or as text.
my ($kinds) = text('shim/console/model.js') =~ /^export function kindOf\(schema\) \{(.*?)^\}/ms;
for my $type (@types)
{
	next if !defined $type->{schema};
	my $known = $type->{format} // $type->{schema};

	# a number has no input for its size
	$known = $type->{schema} if $type->{schema} ne 'string';
	like($kinds // '', qr/'\Q$known\E'/, "the console knows what $type->{name} is");
}

done_testing;
