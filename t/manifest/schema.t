# The JSON Schema of manifests says what the reader takes: each key and its
# type, in both directions; and the first manifest is one.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');
my $path = 'shim/command/manifest.schema.json';
my $printed = EntityApi::Test::run([ $program, 'schema' ]);

is($printed->{status}, 0, 'entityapi-shim schema');
is($printed->{out}, EntityApi::Test::slurp("$checkout/$path"), 'prints the file');
my $schema = JSON::PP->new->decode($printed->{out});
my $defs = $schema->{'$defs'};

# -------- the reader: its tables of keys --------

my $source = join '', map { EntityApi::Test::slurp($_) } glob "$checkout/extension/manifest/*.c";
my %list = map { $_->[0] => [ $_->[1] =~ /"([^"]+)"/g ] } grep { @$_ } map { [ /(\w+)\[\] =\s*\{(.*)\}/s ] }
  $source =~ /^(static const char \*const \w+\[\] =\s*\{[^;]*NULL\});/mg;
my %table;
while ($source =~ /\bstatic const EaKey (\w+)_keys\[\] =\s*\{(.*?)\n\};/sg)
{
	my ($name, $rows) = ($1, $2);

	while ($rows =~ /(?:\bKEY\(|\{)"(\w+)", (EA_KEY_\w+)(?:, (0|EA_KEY_REQUIRED),\s*offsetof\([^)]*\)(?:,\s*(\w+))?)?/g)
	{
		$table{$name}{$1} = { form => $2, required => ($3 // '') eq 'EA_KEY_REQUIRED', choices => $4 };
	}
}
# A document with one member, a map
my %kind_of = (ROLES => 'Roles', SECURITY_ATTRIBUTES => 'SecurityAttributes', VERSIONS => 'Versions');
while ($source =~ /\{EA_DECL_(\w+), "(\w+)", read_\w+\}/g)
{
	$table{ $kind_of{$1} }{$2} = { form => 'EA_KEY_OBJECT', required => 1 };
}

my %described = (
	metadata => $schema->{properties}{metadata},
	(map { lc($_) => $defs->{$_} } qw(Entity Field Tenant Policy Hook Service Audit Existing Version Attribute Role)),
	one_of => $defs->{OneOf},
	accounts => $defs->{Accounts},
	account_field => $defs->{AccountField},
	(map { $_ => $defs->{$_} } values %kind_of));

is(join(' ', sort keys %table), join(' ', sort keys %described), 'each table of keys is described, and nothing else');

my @ruled = qw(create read update delete);
my @operations = (@ruled, 'restore', 'history');
my @made = EntityApi::Test::slurp("$checkout/extension/model/typelist.h") =~ /^\s+EA_TYPE_NAME\("(\w+)"\)/mg;
my %named = map { $_ => 1 } @made;
my @types = (@made, grep({ !$named{$_}++ } EntityApi::Test::slurp("$checkout/extension/model/columnlist.h") =~ /^\s+EA_TYPE_HELD\("(\w+)"/mg), 'ref', 'oneof');

# Is this the type of values that the form stands for?
my %fits = (
	EA_KEY_STRING => sub { ($_[0]{type} // '') eq 'string' && (($_[0]{minLength} // 0) >= 1 || defined $_[0]{pattern}) },
	EA_KEY_TEXT => sub { ($_[0]{type} // '') eq 'string' && !defined $_[0]{minLength} && !defined $_[0]{pattern} },
	EA_KEY_BOOL => sub { ($_[0]{type} // '') eq 'boolean' },
	EA_KEY_COUNT => sub { ($_[0]{type} // '') eq 'integer' && $_[0]{minimum} == 0 },
	EA_KEY_NUMBER => sub { ($_[0]{type} // '') eq 'integer' && $_[0]{minimum} == 1 },
	EA_KEY_CHOICE => sub { "@{ $_[0]{enum} // [] }" eq "@{ $list{ $_[1]{choices} // '' } // ['none'] }" },
	EA_KEY_NAMES => sub { ($_[0]{type} // '') eq 'array' && $_[0]{uniqueItems} && $_[0]{items} },
	EA_KEY_ARRAY => sub { ($_[0]{type} // '') eq 'array' },
	EA_KEY_OBJECT => sub { ($_[0]{type} // '') eq 'object' || ($defs->{ ($_[0]{'$ref'} // '') =~ s{.*/}{}r } // {})->{type} eq 'object' },
	EA_KEY_VALUE => sub { !defined $_[0]{type} });

# What the reader looks at again, after the table
my %closer = (
	'field.type' => sub { "@{ $_[0]{enum} // [] }" eq "@types" },
	'account_field.type' => sub { "@{ $_[0]{enum} // [] }" eq "@made" },
	'service.tenantAdminBypass' => sub { $_[0]{type} eq 'boolean' });

for my $name (sort keys %table)
{
	my $properties = $described{$name}{properties};

	cmp_ok(scalar keys %{ $table{$name} }, '>', 0, "$name: keys");
	is(join(' ', sort keys %$properties), join(' ', sort keys %{ $table{$name} }), "$name: those of the reader");
	is(join(' ', sort @{ $described{$name}{required} // [] }), join(' ', sort grep { $table{$name}{$_}{required} } keys %{ $table{$name} }), "$name: those that must be there");
	ok(!$described{$name}{additionalProperties}, "$name: no others");
	my @wrong = grep { !($closer{"$name.$_"} // $fits{ $table{$name}{$_}{form} })->($properties->{$_}, $table{$name}{$_}) } grep { $properties->{$_} } sort keys %{ $table{$name} };
	is("@wrong", '', "$name: types");
}

my @kinds = $source =~ /^\t\[EA_DECL_\w+\] =\s*\{"([A-Z]\w+)"/mg;
cmp_ok(scalar @kinds, '>', 5, 'there are kinds');
is("@{ $schema->{properties}{kind}{enum} }", "@kinds", 'kinds');
is(join(' ', map { "$_->{if}{properties}{kind}{const} $_->{then}{properties}{spec}{'$ref'}" } @{ $schema->{allOf} }), join(' ', map { ("$_ #/\$defs/$_", $_ eq 'Entity' ? "$_ #/\$defs/Accounts" : ()) } @kinds), 'each with its spec');
is($schema->{properties}{apiVersion}{const}, ($source =~ /#define API_VERSION "(.*)"/)[0], 'the version');
is("@{ $defs->{Operations}{items}{enum} }", "@operations", 'operations');
is("@{ $defs->{RuledOperations}{items}{enum} }", "@ruled", 'and those that policies rule');
is($defs->{Entity}{properties}{permissions}{additionalProperties}{'$ref'}, '#/$defs/Operations', 'of permissions');
is($defs->{Entity}{properties}{policies}{additionalProperties}{'$ref'}, '#/$defs/RuledOperations', 'of policies');
is($defs->{Entity}{properties}{fields}{additionalProperties}{'$ref'}, '#/$defs/Field', 'fields');
is($defs->{ $_->[0] }{properties}{ $_->[1] }{additionalProperties}{'$ref'}, "#/\$defs/$_->[2]", "$_->[1]")
  for [qw(Roles roles Role)], [qw(SecurityAttributes attributes Attribute)], [qw(Versions versions Version)];

# -------- editors --------

for my $file (sort map { glob "$checkout/examples/$_/*.yaml" } qw(billing tracker))
{
	my ($where) = EntityApi::Test::slurp($file) =~ /\A# yaml-language-server: \$schema=(\S+)\n/;
	ok(defined $where && -e "$checkout/examples/billing/$where" && $file =~ m{/examples/\w+/}, ($file =~ s{.*/}{}r) . ' names it');
}

# -------- a first manifest --------

my $cluster = EntityApi::Test->cluster;
my $init = EntityApi::Test::run([ $program, 'init', "$folder/first" ]);
is($init->{status}, 0, 'entityapi-shim init') or diag $init->{err};
is($init->{out}, "$folder/first/manifests.yaml\n$folder/first/.entityapi.schema.json\n", 'says what it wrote');
my $text = EntityApi::Test::slurp("$folder/first/manifests.yaml");
my ($named) = $text =~ /\A# yaml-language-server: \$schema=(\S+)\n/;
is(EntityApi::Test::slurp("$folder/first/$named"), $printed->{out}, 'the schema that it names lies beside it');
my $applied = $cluster->try_apply("$folder/first");
is($applied->{status}, 0, 'it can be applied') or diag $applied->{err};
like($applied->{out}, qr/CREATE TABLE app\.note /, 'and makes a table');
is($cluster->try_apply("$folder/first")->{out}, "nothing to change\n", 'once');

open my $out, '>>', "$folder/first/manifests.yaml" or die "$!\n";
print $out "# mine\n";
close $out;
$init = EntityApi::Test::run([ $program, 'init', "$folder/first" ]);
is($init->{status}, 1, 'again it fails');
like($init->{err}, qr{manifests\.yaml: File exists}, 'with a word');
like(EntityApi::Test::slurp("$folder/first/manifests.yaml"), qr/# mine\n\z/, 'and what was there stays');
is(EntityApi::Test::run([ $program, 'init', '/nowhere/x' ])->{status}, 1, 'a folder that cannot be made');
is(EntityApi::Test::run([ $program, 'init', @$_ ])->{status}, 2, 'wrong use') for [], [qw(a b)], ['--dry-run'];
is(EntityApi::Test::run([ $program, 'schema', 'Entity' ])->{status}, 2, 'wrong use of schema');

SKIP:
{
	skip 'no jsonschema of Python here', 1 if system(q{python3 -c 'import jsonschema, yaml' 2>/dev/null}) != 0;
	my $check = <<~'PY';
		import sys, json, glob, datetime, jsonschema, yaml
		def plain(o):
		    if isinstance(o, dict): return {str(k): plain(x) for k, x in o.items()}
		    if isinstance(o, list): return [plain(x) for x in o]
		    return o.isoformat() if isinstance(o, (datetime.date, datetime.datetime)) else o
		schema = json.load(open(sys.argv[1])); jsonschema.Draft202012Validator.check_schema(schema)
		v = jsonschema.Draft202012Validator(schema)
		n = 0
		for f in sys.argv[2:]:
		    for d in yaml.safe_load_all(open(f)):
		        n += 1
		        for e in v.iter_errors(plain(d)): print(f, list(e.path), e.message)
		print(n > 10)
		PY
	my $run = EntityApi::Test::run([ 'python3', '-c', $check, "$checkout/$path", glob("$checkout/examples/billing/*.yaml $checkout/t/data/*/*.yaml $checkout/t/data/*/*/*.yaml"), "$folder/first/manifests.yaml" ]);
	is($run->{out}, "True\n", 'all manifests that there are fit') or diag $run->{err};
}

done_testing;
