# The sources hold together: versions agree, every test has its answer, and the
# install script has nothing that a hostile schema could turn against it.

use strict;
use warnings;

use File::Glob qw(:bsd_glob);
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();

sub text
{
	return EntityApi::Test::slurp("$checkout/$_[0]");
}

sub files
{
	return map { substr $_, length "$checkout/" } sort glob "$checkout/$_[0]";
}

sub stem
{
	return $_[0] =~ m{([^/]+)\.[^.]+$} ? $1 : $_[0];
}

# Holds if the condition does for all paths; names those for which it does not.
sub is_all
{
	my ($paths, $condition, $name) = @_;

	return is(join("\n", grep { !$condition->($_) } @$paths), '', $name);
}

my ($version) = text('entityapi.control') =~ /^default_version = '([^']+)'/m;
my $meta = JSON::PP->new->decode(text('META.json'));
is($meta->{version}, "$version.0", 'META.json names the version of the control file');
is($meta->{provides}{entityapi}{file}, "entityapi--$version.sql", 'and the install script');

my @sources = files('extension/*/*.c');
cmp_ok(scalar @sources, '>', 0, 'there are sources');
is_all(\@sources,
	sub { (text($_[0]) =~ /^\s*#\s*include\s+(\S+)/m)[0] eq '"postgres.h"' },
	'every source of the extension includes postgres.h first');
is_all([ files('{extension,shim}/*.[ch]'), files('{extension,shim}/*/*.[ch]') ],
	sub { (text($_[0]) =~ tr/\n//) < 1000 },
	'no source has grown to 1000 lines');

my @parts = files('extension/install/*.sql');
cmp_ok(scalar @parts, '>', 0, 'there are parts of the install script');
is_all(\@parts, sub { text($_[0]) !~ /\bcreate\s+or\s+replace\b/i },
	'no part replaces an object that was there before');
is_all(\@parts, sub { text($_[0]) !~ /\bcreate\s+[a-z ]+\s+if\s+not\s+exists\b/i },
	'no part adopts an object that was there before');

my %case = map { stem($_) => 1 } files('sql/*.sql'), files('specs/*.spec');
my %answer = map { stem($_) => 1 } files('expected/*.out');
is_all([ sort keys %case ], sub { $answer{ $_[0] } }, 'every test has its expected output');
is_all([ sort keys %answer ], sub { $_[0] =~ /_[0-9]$/ || $case{ $_[0] } },
	'every expected output has its test');

done_testing;
