# The sources hold together: versions agree, every test has its answer, folders
# are what scripts/check/layers says, and the install script has nothing that a
# hostile schema could turn against it.

use strict;
use warnings;

use Encode ();
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
	return map { substr $_, length "$checkout/" } sort map { glob "$checkout/$_" } @_;
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

# -------- sources --------

my @sources = files('extension/*/*.c');
my @headers = files('{extension,shim}/*/*.h');
cmp_ok(scalar @sources, '>', 0, 'there are sources');
cmp_ok(scalar @headers, '>', 0, 'and headers');
is(join(' ', files('extension/*.[ch]', 'shim/*.[ch]')), 'shim/main.c', 'each lies in a folder');
is_all(\@sources,
	sub { (text($_[0]) =~ /^\s*#\s*include\s+(\S+)/m)[0] eq '"postgres.h"' },
	'every source of the extension includes postgres.h first');
is_all([ files('{extension,shim}/*/*.[ch]', 'shim/main.c') ],
	sub { (text($_[0]) =~ tr/\n//) < 1000 },
	'no source has grown to 1000 lines');

# The server's log names a file without its folder.
my %files_of;
push @{ $files_of{ s{.*/}{}r } }, $_ for files('extension/*/*.[ch]');
is(join("\n", map { "@$_" } grep { @$_ > 1 } @files_of{ sort keys %files_of }), '',
	'no two files of the extension have one name');

# What a header declares is made by the source of its name.
sub made_elsewhere
{
	my ($header) = @_;
	my $source = $header =~ s/\.h$/.c/r;
	my $text = -e "$checkout/$source" ? text($source) : '';

	return map { "$header: $_" } grep { $text !~ /^[\w \t*]*\b\Q$_\E\b\s*(?:\(|=|;|\[)/m }
	  text($header) =~ /^extern\b[^;({]*?(\w+)(?:\[[^\]]*\])*\s*[(;]/mg;
}

is(join("\n", map { made_elsewhere($_) } @headers), '', 'a header is that of one source');

# The sentences of the comment that a file begins with
sub sentences
{
	my ($path) = @_;
	my ($said) = -e "$checkout/$path" ? text($path) =~ m{\A/\*(.*?)\*/}s : ();

	return map { lc } split /(?<=[.:]) /, join ' ', grep { $_ ne '*' } split ' ', $said // '';
}

sub said_twice
{
	my ($header) = @_;
	my %in_source = map { $_ => 1 } sentences($header =~ s/\.h$/.c/r);

	return map { "$header: $_" } grep { $in_source{$_} } sentences($header);
}

is(join("\n", map { said_twice($_) } @headers), '', 'no source begins with a sentence of its header');

# What runs with the rights of entityapi_owner and is not confined leaves nothing
# for whoever commits: it settles what waits, or undoes all, or only reads.
is(join(' ', grep { text($_) =~ /^EA_SETTLING_FUNCTION|\bea_owner_enter\(&/m } @sources),
	join(' ', map { "extension/$_.c" } qw(entry/explain entry/handle entry/housekeeping model/catalog trust/owner)), 'few take rights and are not confined');
is(join("\n", grep { text($_) =~ /^EA_TRIGGER_FUNCTION/m && text($_) =~ /\bSPI_exec|\bea_exec_/ } @sources), '',
	'a trigger writes by model/trigger_write.c alone');
is(join(' ', grep { my $name = $_; !grep { text($_) =~ /^EA_TRIGGER_FUNCTION\($name\)/m } @sources }
	map { text($_) =~ /RETURNS trigger\s+LANGUAGE c\s+AS 'MODULE_PATHNAME', '(\w+)'/gi } files('extension/install/*.sql')),
	'ea_sql_announce_keys', 'and is confined, but for one that touches no table');

# In columns, a tab being four
sub too_long
{
	my ($path) = @_;
	my $n = 0;
	my @found;

	for (split /\n/, Encode::decode('UTF-8', text($path)))
	{
		$n++;
		1 while s{^([^\t]*)\t}{$1 . ' ' x (4 - length($1) % 4)}e;
		push @found, "$path:$n" if length > 79;
	}
	return @found;
}

my @narrow = (files('{extension,shim}/*/*.[ch]', 'shim/main.c', 'extension/install/*.sql',
		'bench/*.c', 't/tools/fuzz/parsers/*.[ch]', 'scripts/test/memory/*.[ch]'),
	grep { -f "$checkout/$_" } files('scripts/*/*', 'scripts/test/memory/server'));
is(join("\n", map { too_long($_) } @narrow), '', 'no line is longer than 79 columns');

# -------- folders --------

for my $program (qw(extension shim))
{
	my $listed = EntityApi::Test::run([ "$checkout/scripts/check/layers", '--folders', $program ]);
	my @folders = split /\n/, $listed->{out};
	my %other = map { $_ => 1 } qw(install update);
	my @there = grep { -d "$checkout/$program/$_" && !$other{$_} }
	  map { s{.*/}{}r } files("$program/*");

	is("@there", join(' ', sort @folders), "the folders of $program are those of check/layers");
	is(join(' ', text("$program/README.md") =~ m{^\| `(\w+)/` \|}mg), "@folders",
		'in the order of its README');
	for my $option (qw(--includedir-server --includedir))
	{
		my $under = EntityApi::Test::run([ $ENV{PG_CONFIG} || 'pg_config', $option ])->{out} =~ s/\n//r;

		is_all(\@folders, sub { !-d "$under/$_[0]" }, "none is a folder of $option");
	}
}

# A row that a table by enumerators lacks, within it and at its end
subtest 'tables' => sub {
	my $root = EntityApi::Test::folder() . '/tables';
	my $tables = sub {
		open my $out, '>', "$root/extension/base/planted.c" or die "planted.c: $!\n";
		print $out "typedef enum Planted\n{\n\tEA_ONE,\t/* a, b */\n\tEA_TWO = 4,\n\tEA_THREE,\n\tEA_N_PLANTED\n} Planted;\n\n"
		  . "static const char *const words[] = {\n", (map { "\t[EA_$_] = \"{[$_\",\n" } @_), "};\n";
		close $out or die "planted.c: $!\n";
		return EntityApi::Test::run([ "$checkout/scripts/check/tables", $root ]);
	};

	for my $path ('', '/extension', '/extension/base', '/shim')
	{
		mkdir "$root$path" or die "$path: $!\n";
	}
	is($tables->(qw(ONE TWO THREE))->{status}, 0, 'a whole table is none');
	for my $missing (qw(TWO THREE))
	{
		my $said = $tables->(grep { $_ ne $missing } qw(ONE TWO THREE));

		is($said->{status}, 1, "without $missing it is refused");
		is($said->{out}, "extension/base/planted.c:9: words[] has no row for EA_$missing\n", 'by name');
	}
	isnt(EntityApi::Test::run([ "$checkout/scripts/check/tables", EntityApi::Test::folder() ])->{status}, 0, 'no tables at all are not right');
	is(EntityApi::Test::run([ "$checkout/scripts/check/tables", $checkout ])->{out}, '', 'here all are whole');
};

# What check/layers holds, broken on purpose in a copy
subtest 'the direction' => sub {
	my $copy = EntityApi::Test::folder() . '/copy';
	my $layers = sub { EntityApi::Test::run([ "$checkout/scripts/check/layers", $copy ]) };
	my $plant = sub {
		my ($path, $text) = @_;

		open my $out, '>>', "$copy/$path" or die "$path: $!\n";
		print $out $text;
		close $out or die "$path: $!\n";
		return if $path !~ /\.c$/;
		my $made = EntityApi::Test::run([ $ENV{CC} || 'cc', '-c', '-o', "$copy/$path" =~ s/c$/o/r, "$copy/$path" ]);
		is($made->{status}, 0, "$path is made") or diag $made->{err};
	};

	mkdir $copy or die "$copy: $!\n";
	system("tar -C '$checkout' --exclude='*.bc' -cf - extension shim | tar -C '$copy' -xf -") == 0 or die;
	plan skip_all => 'the objects are not here' if !-e "$copy/extension/base/uuid.o";
	my $lines = () = EntityApi::Test::slurp("$copy/extension/base/uuid.h") =~ /\n/g;
	$plant->('extension/base/uuid.h', qq{#include "entry/message.h"\n#include "guc.h"\n});
	$plant->('extension/base/planted.c', <<~'C');
		void		ea_health_show(void);
		void		ea_planted(void);

		/* uses ea_health_show() */
		void
		ea_planted(void)
		{
			ea_health_show();
		}
		C
	$plant->("extension/engine/planted_$_->[0].c", <<~"C") for [ qw(one other) ], [ qw(other one) ];
		void		ea_planted_one(void);
		void		ea_planted_other(void);

		void
		ea_planted_$_->[0](void)
		{
			ea_planted_$_->[1]();
		}
		C
	mkdir "$copy/extension/utils" or die;
	$plant->('extension/utils/drawer.h', "\n");
	$plant->('extension/utils/drawer.c', "int ea_drawer;\n");
	$plant->('shim/base/planted.c', "int main(void);\nvoid planted(void);\nvoid planted(void) { main(); }\n");
	$plant->('extension/base/parser.c', "int pg_parse_json(void);\nint parser(void);\nint parser(void) { return pg_parse_json(); }\n");
	$plant->('extension/read/planted.c', <<~'C');
		#if 0
		#include "engine/held.h"
		#endif
		void	   *heap_getnext(void *scan, int direction);
		void	   *ea_planted_read(void *scan);

		/* by heap_getnext(scan) */
		void *
		ea_planted_read(void *scan)
		{
			return heap_getnext(scan, 1);
		}
		C
	$plant->('extension/query/planted.c', <<~'C');
		#include <stdio.h>
		struct entity { const char *table; struct { const char *column; } row_tenant; };
		int			ea_planted_query(struct entity *entity);

		int
		ea_planted_query(struct entity *entity)
		{
			/* entity->row_tenant is read */
			return printf("SELECT 1 FROM %s"
						  " WHERE %s IS NULL", entity->table,
						  entity->row_tenant.column);
		}
		C
	$plant->("shim/base/$_.c", "int $_(void);\nint ${_}_planted(void);\nint ${_}_planted(void) { return $_(); }\n")
	  for qw(json_loads json_load_file yaml_parser_load yaml_parser_parse pthread_create);

	my $after = $layers->();
	isnt($after->{status}, 0, 'is refused');
	is(join("\n", sort split /\n/, $after->{out}), join("\n", sort
			"extension/base/uuid.h:@{[ $lines + 1 ]}: includes entry/message.h from above",
			"extension/base/uuid.h:@{[ $lines + 2 ]}: guc.h without its folder",
			'extension/base/planted.c:8: uses ea_health_show of extension/entry/health.c from above',
			'a circle of extension/engine/planted_one.c, extension/engine/planted_other.c',
			'extension/engine/planted_one.c:7: uses ea_planted_other of extension/engine/planted_other.c',
			'extension/engine/planted_other.c:7: uses ea_planted_one of extension/engine/planted_one.c',
			'extension/read/planted.c:2: includes engine/held.h, where exec.h is for those above',
			'extension/read/planted.c:4: calls heap_getnext, which is for direct/',
			'extension/read/planted.c:11: calls heap_getnext, which is for direct/',
			'extension/query/planted.c:9: names a table, which brings no tenant',
			'extension/query/planted.c:11: asks itself whose a row is',
			'extension/utils/drawer.c: "utils" is no folder of the list',
			'extension/utils/drawer.h: "utils" is no folder of the list',
			'shim/base/planted.c:3: uses main of shim/main.c from above',
			'extension/base/parser.c:3: uses pg_parse_json, but depth is measured before',
			'shim/base/json_loads.c:3: uses json_loads, but depth is measured before',
			'shim/base/json_load_file.c:3: uses json_load_file, but depth is measured before',
			'shim/base/yaml_parser_load.c:3: uses yaml_parser_load, but it builds a tree of any depth',
			'shim/base/yaml_parser_parse.c:3: uses yaml_parser_parse, but depth is counted while it reads',
			'shim/base/pthread_create.c:3: uses pthread_create, but it gives threads their stacks'),
		'each fault by file and line');
};

# -------- the install script, and the tests --------

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

my @left_out = text('t/tools/citus/left_out.txt') =~ m{^((?:t|sql)/\S+) +\S}mg;
cmp_ok(scalar @left_out, '>', 0, 'make test-citus leaves tests out');
is_all(\@left_out, sub { grep { -e "$checkout/$_" } files($_[0]) }, 'which are there');

done_testing;
