package EntityApi::Corpus;

=head1 NAME

EntityApi::Corpus - inputs of the fuzzers, as they lie in t/tools/fuzz/corpus

=head1 SYNOPSIS

	my @inputs = EntityApi::Corpus::inputs('rsql');
	EntityApi::Corpus::unpack_into('rsql', $folder);
	EntityApi::Corpus::pack_from('rsql', $folder);

=head1 DESCRIPTION

A file holds one input a line.  What is not printable is \xHH, a line feed \n,
a backslash \\, so that a change of the corpus can be read.

=cut

use strict;
use warnings;

use Cwd ();
use Digest::SHA ();
use File::Basename ();

my $folder = Cwd::realpath(File::Basename::dirname(__FILE__) . '/../../tools/fuzz/corpus');

=head2 names()

Of all targets that there are inputs for.

=cut

sub names
{
	return sort map { m{([^/]+)\.txt$} } glob "$folder/*.txt";
}

sub escaped
{
	my ($bytes) = @_;

	$bytes =~ s/\\/\\\\/g;
	$bytes =~ s/\n/\\n/g;
	$bytes =~ s/([^\x20-\x7e])/sprintf '\\x%02x', ord $1/ge;
	$bytes =~ s/ $/\\x20/;
	return $bytes;
}

sub unescaped
{
	my ($line) = @_;

	$line =~ s/\\(?:x([0-9a-f]{2})|(.))/defined $1 ? chr hex $1 : $2 eq 'n' ? "\n" : $2/ge;
	return $line;
}

=head2 inputs($name)

The bytes of each.

=cut

sub inputs
{
	my ($name) = @_;

	open my $in, '<:raw', "$folder/$name.txt" or die "$folder/$name.txt: $!\n";
	chomp(my @lines = <$in>);
	close $in;
	return map { unescaped($_) } @lines;
}

=head2 unpack_into($name, $folder), pack_from($name, $folder, ...)

To a folder with a file for each, as libFuzzer has them, and back.

=cut

sub unpack_into
{
	my ($name, $into) = @_;

	for my $input (inputs($name))
	{
		my $file = "$into/" . Digest::SHA::sha1_hex($input);

		open my $out, '>:raw', $file or die "$file: $!\n";
		print $out $input;
		close $out or die "$file: $!\n";
	}
	return;
}

sub pack_from
{
	my ($name, @folders) = @_;
	my %seen;

	for my $file (grep { -f } map { glob "$_/*" } @folders)
	{
		open my $in, '<:raw', $file or die "$file: $!\n";
		local $/;
		$seen{ escaped(<$in> // '') } = 1;
		close $in;
	}
	open my $out, '>:raw', "$folder/$name.txt" or die "$folder/$name.txt: $!\n";
	print $out map { "$_\n" } sort { length $a <=> length $b || $a cmp $b } keys %seen;
	close $out or die "$folder/$name.txt: $!\n";
	return scalar keys %seen;
}

1;
