package EntityApi::Test::Rows;

=head1 NAME

EntityApi::Test::Rows - the types of attributes and the operators of filters

=head1 SYNOPSIS

	use EntityApi::Test::Rows;

	my @names = map { $_->{name} } EntityApi::Test::Rows::operators();
	my %format = map { $_->{name} => $_->{format} } EntityApi::Test::Rows::types();

=head1 DESCRIPTION

As the program has them: the rows of F<extension/model/typelist.h> and
F<extension/query/operatorlist.h>, for lists that no compiler compares with them.

=cut

use strict;
use warnings;

use EntityApi::Test;

sub rows
{
	my ($path, $macro, $part) = @_;
	my $text = EntityApi::Test::slurp(EntityApi::Test::checkout() . "/$path");
	my @rows = $text =~ /^$macro\((.*?)\)\)$/msg;

	@rows > 5 or die "$path: where are the rows?\n";
	return map { +{ $part->("$_))") } } @rows;
}

# The arguments of a part; strings lose their quotes, NULL is undef.
sub arguments
{
	my ($row, $part) = @_;
	my ($inside) = $row =~ /\b$part\(((?:"(?:[^"\\]|\\.)*"|[^()"]|\((?1)\))*)\)/ or die "$row has no $part\n";

	return map { /^"(.*)"$/ ? $1 : $_ eq 'NULL' ? undef : $_ } $inside =~ /\s*("(?:[^"\\]|\\.)*"|[^,"]+)(?:,|$)/g;
}

=head1 FUNCTIONS

=head2 types()

A hash a type: its name, and the type and format of its schema in OpenAPI.

=cut

sub types
{
	return rows('extension/model/typelist.h', 'EA_TYPE', sub {
		my ($row) = @_;
		my ($type, $format) = arguments($row, 'EA_TYPE_SCHEMA');

		return (name => (arguments($row, 'EA_TYPE_NAME'))[0], schema => $type, format => $format);
	});
}

=head2 operators()

A hash an operator: its name, its other spelling, its title, and what it takes.

=cut

sub operators
{
	return rows('extension/query/operatorlist.h', 'EA_OPERATOR', sub {
		my ($row) = @_;
		my ($name, $other, $title) = arguments($row, 'EA_OPERATOR_NAME');

		return (name => $name, other => $other, title => $title, takes => (arguments($row, 'EA_OPERATOR_VALUES'))[1]);
	});
}

1;
