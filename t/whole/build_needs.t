# What a build needs is said by name before anything is built, and a warning of
# the compiler stops nobody but us.

use strict;
use warnings;

use File::Basename ();
use File::Path ();
use File::Temp ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir;
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $compiler = $ENV{CC} || 'gcc';

sub put
{
	my ($path, $text) = @_;

	open my $out, '>', $path or die "$path: $!\n";
	print $out $text;
	close $out or die "$path: $!\n";
	return;
}

# What is tested here may itself be older than what is allowed.
my $any_minor = $ENV{ANY_MINOR} // '';

# Run a shell's command in a folder, with further variables of the environment:
# its status and all that it says.
sub run
{
	my ($where, $command, %env) = @_;

	local @ENV{ keys %env } = values %env;
	delete local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL WERROR ANY_MINOR)};
	$ENV{WERROR} = $env{WERROR} if exists $env{WERROR};
	$ENV{ANY_MINOR} = $env{ANY_MINOR} // $any_minor;
	my $said = qx{cd '$where' && ($command) 2>&1 </dev/null};
	return { status => $? >> 8, said => $said };
}

sub needs
{
	my (%env) = @_;

	return run($checkout, 'scripts/build/check-needs extension shim',
		CC => $compiler, PG_CONFIG => $pg_config, %env);
}

# A pg_config of a server whose headers say another version than they are of
sub server_of
{
	my ($number) = @_;
	my $own = "$folder/$number";

	chomp(my $headers = qx{$pg_config --includedir-server});
	mkdir $own or die "$own: $!\n";
	symlink $_, $own . substr($_, length $headers) for glob "$headers/*";
	my $config = EntityApi::Test::slurp("$headers/pg_config.h");
	$config =~ s/^(#define PG_VERSION_NUM) .*/$1 $number/m or die;
	unlink "$own/pg_config.h";
	put("$own/pg_config.h", $config);
	put("$own/pg_config", <<"SHELL");
#!/bin/sh
case \$1 in
--includedir-server) echo '$own' ;;
--cppflags) echo ;;
*) exec $pg_config "\$@" ;;
esac
SHELL
	chmod 0755, "$own/pg_config";
	return "$own/pg_config";
}

# A header that comes before the system's
sub header
{
	my ($name, $text) = @_;

	File::Path::make_path(File::Basename::dirname("$folder/$name/$name"));
	put("$folder/$name/$name", $text);
	return (CPATH => "$folder/$name");
}

my $whole = needs();
is($whole->{status}, 0, 'what this machine has is enough') or diag($whole->{said});
is($whole->{said}, '', 'and nothing is said about it');

# The server

my $none = needs(PG_CONFIG => "$folder/none");
isnt($none->{status}, 0, 'there has to be a pg_config');
like($none->{said}, qr/no \S+\/none of PostgreSQL 15 to 18 \(package postgresql-server-dev/,
	'what is missing, and the package that has it');

for my $case (
	[ 140_020, 'PostgreSQL 15 to 18; this one is older' ],
	[ 190_000, 'PostgreSQL 15 to 18; this one is newer' ],
	[ 150_009, 'PostgreSQL 15\.10, for CVE-2024-10976' ],
	[ 160_005, 'PostgreSQL 16\.6, for CVE-2024-10976' ],
	[ 170_001, 'PostgreSQL 17\.2, for CVE-2024-10976' ])
{
	my ($number, $text) = @$case;
	my $answer = needs(PG_CONFIG => server_of($number), ANY_MINOR => '');

	isnt($answer->{status}, 0, "$number is refused");
	like($answer->{said}, qr/^entityapi needs $text.*\n\z/, 'in one line');
}
like(needs(PG_CONFIG => "$folder/150009/pg_config", ANY_MINOR => 1)->{said},
	qr/^(?!.*needs PostgreSQL)/s, 'ANY_MINOR=1 takes any minor');
like(needs(PG_CONFIG => "$folder/140020/pg_config", ANY_MINOR => 1)->{said},
	qr/needs PostgreSQL/, 'but no other major');

# Compiler and libraries

like(needs(CC => "$folder/nocc")->{said}, qr/no compiler \S+nocc \(package gcc\)/,
	'there has to be a compiler');
like(needs(CC => 'false')->{said}, qr/false makes no program/, 'that compiles');

my @too_old = (
	[ 'civetweb.h', "#define CIVETWEB_VERSION_MAJOR 1\n#define CIVETWEB_VERSION_MINOR 14\n",
		'civetweb 1.15' ],
	[ 'curl/curl.h', "#define LIBCURL_VERSION_NUM 0x074100\n", 'libcurl 7.66' ],
	[ 'jansson.h', "#define JANSSON_VERSION_HEX 0x020400\n", 'jansson 2.5' ],
	[ 'zlib.h', "#define ZLIB_VERNUM 0x1110\n", 'zlib 1.2.0.4' ]);
for my $case (@too_old)
{
	my ($name, $text, $wanted) = @$case;

	my $old = needs(header($name, $text));
	isnt($old->{status}, 0, "a $name that is too old is refused");
	is($old->{said}, "entityapi needs $wanted or newer\n", 'in one line');
	is(needs(header($name, "#error gone\n"))->{said} =~ s/ to build.*//sr,
		'There is no ' . $wanted =~ s/ .*//r, 'so is one that cannot be used');
}

my $both = needs(CPATH => "$folder/zlib.h", PG_CONFIG => "$folder/none");
like($both->{said}, qr/\A.*no \S+none.*\n.*zlib.*\n\z/, 'all is said at once');

# Said before anything is built

my $make = run($checkout, "make all PG_CONFIG='$folder/170001/pg_config'", ANY_MINOR => '');
isnt($make->{status}, 0, 'make stops');
like($make->{said}, qr/needs PostgreSQL 17\.2/, 'and says why');
unlike($make->{said}, qr/ -c /, 'before it compiles anything');

# Warnings

like(run($checkout, "scripts/build/known-flags '$compiler' -Wall -Wtoo-new-for-you")->{said},
	qr/^-Wall\s*$/, 'a flag that the compiler does not know is left out');

my $copy = "$folder/copy";
mkdir $copy or die "$copy: $!\n";
run($checkout, "tar -cf - --exclude='*.[od]' --exclude='*.bc' --exclude=.strict "
	  . "Makefile entityapi.control extension shim scripts | tar -C '$copy' -xf -");
for my $case ([ '.', 'extension/request/etag', '' ], [ 'shim', 'shim/base/buffer', '-C shim' ])
{
	my ($under, $name, $options) = @$case;
	my $source = "$copy/$name.c";
	my $object = $name =~ s{^shim/}{}r . '.o';
	my $build = "make $options CC='$compiler' '$object'";

	put($source, EntityApi::Test::slurp($source)
		  . "\nstatic int\nea_nobody_calls(void)\n{\n\treturn 0;\n}\n");
	my $lenient = run($copy, $build);
	is($lenient->{status}, 0, "$name is built in spite of a warning");
	like($lenient->{said}, qr/warning: .*ea_nobody_calls/, 'that is shown');
	my $strict = run($copy, $build, WERROR => 1);
	isnt($strict->{status}, 0, 'WERROR=1 builds it again, and fails');
	like($strict->{said}, qr/error: .*ea_nobody_calls/, 'for the warning');
}

# Bitcode is for who installs; the tests, which have no use for it, leave it out

chomp(my $clang = qx{sed -n 's/^CLANG *= *//p' "\$(dirname "\$($pg_config --pgxs)")/../Makefile.global"});
for my $case ([ '', qx{command -v '$clang'} ? 1 : 0 ], [ 0, 0 ])
{
	my ($bitcode, $expected) = @$case;
	my $install = run($checkout, "make -n install PG_CONFIG='$pg_config' DESTDIR='$folder/none'", BITCODE => $bitcode);

	is($install->{status}, 0, 'what an installation does') or diag($install->{said});
	is($install->{said} =~ m{ extension/entry/routes\.bc .*bitcode} ? 1 : 0, $expected, "with BITCODE=$bitcode");
}

# Differences between versions stay where they are told

my %text = map { m{([^/]+/[^/]+)$} => EntityApi::Test::slurp($_) } glob "$checkout/extension/*/*.[ch]";

sub reaches
{
	my ($file, $goal, $seen) = @_;

	return 1 if $file eq $goal;
	return 0 if $seen->{$file}++ || !exists $text{$file};
	return scalar grep { reaches($_, $goal, $seen) }
	  $text{$file} =~ /^#include "([^"]+)"/mg;
}

my @files = sort grep { $_ ne 'base/compat.h' } keys %text;
is(join(' ', grep { $text{$_} =~ /\bPG_VERSION_NUM\b/ } @files), '',
	'only compat.h asks for the version');
is(join(' ', grep { $text{$_} =~ /(?<!ea_compat_)\btimingsafe_bcmp\s*\(/ } @files), '',
	'nobody calls what older minors lack');

my $varatt = qr/\b(?:SET_)?VAR(?:DATA|SIZE)(?:_\w+)?\s*\(/;
is(join(' ', grep { /\.c$/ && $text{$_} =~ $varatt && !reaches($_, 'base/compat.h', {}) } @files), '',
	'who handles variable-length values includes compat.h');

done_testing();
