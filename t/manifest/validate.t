# entityapi-shim validate says what apply says, in the same words and order,
# but for what only the database knows: of all manifests that the tests of
# pg_regress apply, of those of the examples, and of these spoiled at random.
#
# ENTITYAPI_SEED repeats a run, ENTITYAPI_SPOILED says how many are spoiled; a
# failure prints its seed.

use strict;
use warnings;
use utf8;

use Encode ();
use File::Basename qw(basename);
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $spoiled = $ENV{ENTITYAPI_SPOILED} // 80;
my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
srand $seed;

my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');
my $json = JSON::PP->new->canonical->allow_nonref->allow_bignum->utf8;
my $cluster = EntityApi::Test->cluster;
my $file = "$folder/manifest.json";

# What only the database knows, here one without tables: functions of hooks are
# asked for with all else, tables when there is no fault so far.
my $function = qr{: /spec/function: the function "[^"]*" cannot be called: };
my $table = qr{^\S+#\d+: /spec/table: there is no table };

# Faults of patterns, which only a server compiles
my $pattern = qr{ \(a POSIX regular expression\)$|: must match the pattern };

sub lines { return Encode::decode('UTF-8', $_[0]) =~ s/\Q$folder\E\///gr =~ s/^entityapi-shim \w+: //gmr }

sub validate
{
	return EntityApi::Test::run([ $program, 'validate', @_ ], env => { ENTITYAPI_DATABASE => 'host=/nowhere', PGHOST => '/nowhere' });
}

# What apply and validate say of a file, the first without what only the
# server knows.
sub both
{
	my ($path) = @_;
	my ($applied, $validated) = ($cluster->try_apply('--dry-run', $path), validate($path));
	my @said = grep { !/$function/ && !/$pattern/ && !/^CONTEXT: / } split /^/m, lines($applied->{err});

	@said = grep { !/$table/ } @said if !grep { !/$table/ } @said;
	return (join('', @said), lines($validated->{err}), $validated->{status});
}

my %told;

sub agree
{
	my ($name, $path) = @_;
	my ($said, $found, $status) = both($path);

	$told{$_}++ for map { s/"[^"]*"/""/gr =~ s/\d+/0/gr } map { m{^\S+: (?:/\S*: )?(.*)} ? $1 : $_ } split /\n/, $found;
	return 1 if $said eq $found && $status == ($found =~ /^(?!WARNING|HINT)./m ? 1 : 0);
	is("$status\n$found", $said, $name);
	diag EntityApi::Test::slurp($path) if -f $path;
	return 0;
}

sub put
{
	open my $out, '>:raw', $file or die "$file: $!\n";
	print $out $json->encode($_[0]);
	close $out;
	return $file;
}

# -------- the manifests of pg_regress --------

# They go through a function that writes them down.
$cluster->psql(<<~SQL);
	create function public.keep(documents text) returns void language plpgsql security definer as \$\$
	begin
		execute format('copy (select %L) to %L', encode(convert_to(documents, 'UTF8'), 'hex'), '$folder/' || md5(documents) || '.hex');
	end \$\$;
	SQL
for my $form (qw(json text jsonb))
{
	$cluster->psql(<<~SQL);
		alter function entityapi.apply_manifest($form, boolean, text[]) rename to apply_what_was_kept;
		create function entityapi.apply_manifest(documents $form, dry_run bool default false, allow_data_loss text[] default '{}')
		returns table(step int, statement text, deferred bool, lock text, effect text, rows bigint) language plpgsql as \$\$
		begin
			perform public.keep(documents::text);
			return query select * from entityapi.apply_what_was_kept(documents, dry_run, allow_data_loss);
		end \$\$;
		SQL
}
my @files = grep { EntityApi::Test::slurp($_) =~ /apply_manifest/ } glob "$checkout/sql/*.sql";
cmp_ok(scalar @files, '>', 10, 'files of SQL that apply manifests');
for my $source (@files)
{
	EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-Xq', '-f', $source, '-d', $cluster->conninfo ], env => { PGOPTIONS => '' });
}
my @kept = sort glob "$folder/*.hex";
cmp_ok(scalar @kept, '>', 200, 'manifests they apply');

$cluster->stop;
$cluster = EntityApi::Test->cluster;
my $agreed = 0;
for my $kept (@kept)
{
	my $documents = $json->decode(pack 'H*', EntityApi::Test::slurp($kept) =~ s/\n//r);

	delete $_->{source} for grep { ref eq 'HASH' } ref $documents eq 'ARRAY' ? @$documents : $documents;
	$agreed += agree('a manifest of ' . basename($kept), put($documents));
}
is($agreed, @kept, 'validate and apply agree of all');

# -------- folders --------

my @folders = ("$checkout/examples/billing", grep { my @found = glob "$_/*.yaml"; @found } glob "$checkout/t/data/* $checkout/t/data/conformance/*");
is(validate($_)->{status}, 0, basename($_)) for @folders;
my $left = "patterns are not checked here, but by apply and apply --dry-run\n";
like(validate("$checkout/examples/billing")->{out}, qr/^no fault in \d+ documents, \d+ of them entities\n\Q$left\E\z/, 'what was looked at');

# -------- files --------

sub text
{
	my ($name, $text) = @_;

	open my $out, '>:raw', "$folder/$name" or die "$name: $!\n";
	print $out Encode::encode('UTF-8', $text);
	close $out;
	return "$folder/$name";
}

my $entity = "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Thing}\nspec: {fields: {";
my %files = (
	'of all types' => "${entity}a: {type: decimal, minimum: 1.50e1, default: 3}, bb: {type: integer, maximum: 0x10, default: 17}, c: {type: json, default: {b: [1e5, -0.0], a: null}},
		d: {type: long, minimum: -9223372036854775809}, e: {type: datetime, maximum: '2026-02-28T23:59:59.120Z', default: '2026-03-01T00:00:00+00:00'},
		f: {type: date, minimum: 2024-02-29, default: 2023-02-29}, g: {type: uuid, default: 7}, h: {type: boolean, default: no}, i: {type: date, minimum: 0001-01-01, default: 0000-01-01},
		j: {type: datetime, default: '9999-12-31T23:59:59-01:00'}, k: {type: decimal, precision: 3, scale: 1, enum: [1]}, l: {type: decimal, precision: 3, scale: 1, default: '99.99'},
		m: {type: string, maxLength: 2, default: 'ääa'}, n: {type: string, minLength: 2, default: 'ä', pattern: '^\\w+\$'}}}\n",
	'two documents, one name' => "${entity}a: {type: string}}}\n---\n${entity}a: {type: string}}}\n",
	'a policy that asks what users write' => "${entity}a: {type: string}}, policies: {P: [read]}}\n---\n"
	  . "apiVersion: entityapi/v1\nkind: Policy\nmetadata: {name: P}\nspec: {expression: \"#record.a == #user.profile['a']\"}\n",
	'a policy that asks what a user shows of himself' => "${entity}a: {type: ref, target: User, relation: ManyToOne}}, policies: {P: [read]}}\n---\n"
	  . "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: User}\nspec: {accounts: true}\n---\n"
	  . "apiVersion: entityapi/v1\nkind: Policy\nmetadata: {name: P}\nspec: {expression: \"#record.a.displayName == 'x'\"}\n",
	'no YAML' => "a: [\n", 'a key twice' => "a: 1\na: 2\n", 'no document' => "- 1\n", 'an alias' => "a: *b\n", 'nothing' => '',
	map({ ("a number, $_" => "${entity}a: {type: decimal, minimum: $_}}}\n") } '1e999', '1e1000', '1e-1001', '1e131071', '1e131072', '-1e-16383', '1e-16384', '0e16384', '1e400000', '000.10', '-0', '1.', '+.5e+1'));
for my $name (sort keys %files)
{
	ok(agree($name, text('file.yaml', $files{$name})), $name);
}
ok(agree('JSON that is nested', text('file.json', '{"a":' x 70 . '1' . '}' x 70)), 'JSON that is nested');

my $none = "no fault in 1 document, 1 of them entity\n";
for my $case ([ 'no pattern', '', 0, $none ], [ 'a pattern', ", pattern: '('", 0, $none . $left ], [ 'a pattern beside a fault', ", pattern: '(', index: 1", 1, $left ])
{
	my ($name, $keys, $status, $out) = @$case;
	my $run = validate(text('file.yaml', "${entity}a: {type: string, default: b$keys}}}\n"));

	is("$run->{status} $run->{out}", "$status $out", $name);
	is($run->{err} =~ tr/\n//, $status, 'and faults');
}

for my $misuse ([], ['--dry-run'], ["$folder/nowhere"], [ "$folder/nowhere", "$checkout/examples/billing" ], ["$checkout/t/data/costs"])
{
	my $run = validate(@$misuse);

	is($run->{status}, 2, "wrong use: @$misuse");
	is($run->{out}, '', 'nothing is checked');
	isnt($run->{err}, '', 'which is told');
}

# Whose a table is, only the database knows: none is taken for a fault.
my $service = "apiVersion: entityapi/v1\nkind: Service\nmetadata: {name: service}\nspec: {tenancy: %s, existing: {role: shop_web}}\n";
for my $case (
	[ POOL => 'columns: {id: no, tenantId: company}', 0 ], [ POOL => 'columns: {id: no}', 0 ], [ POOL => 'key: no, tenant: {column: company}', 0 ], [ POOL => 'key: no, tenantScoped: false', 0 ],
	[ POOL => 'key: no', 1, qr{/spec/table: the table is an application's: say whose its rows are} ],
	[ POOL => 'columns: {tenantId: company}, tenant: {column: company}', 1, qr{/spec/columns/tenantId: "tenant" says} ],
	[ SINGLE => 'columns: {id: no, tenantId: company}', 0 ], [ SINGLE => 'key: no', 0 ], [ SINGLE => 'columns: {id: no}', 0 ], [ SINGLE => 'key: no, tenant: {column: company}', 1, qr{/spec/tenant: goes with tenancy: POOL} ])
{
	my ($tenancy, $keys, $status, $said) = @$case;

	for my $last (0, 1)
	{
		my @texts = (sprintf($service, $tenancy),
			"apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Thing}\nspec: {table: shop.thing, $keys, fields: {a: {type: string}}}\n");
		my $run = validate(text('file.yaml', join "---\n", $last ? reverse @texts : @texts));

		is($run->{status}, $status, "$tenancy, $keys") or diag $run->{err};
		like($run->{err}, $said, 'and why') if $said;
	}
}

# -------- spoiled --------

sub read_folder
{
	my ($folder) = @_;
	my $from = Encode::encode('UTF-8', $folder);

	$cluster->apply($from);
	my $documents = $json->decode(Encode::encode('UTF-8', $cluster->psql('select entityapi.export_manifest()')));
	$cluster->discard;
	$cluster = EntityApi::Test->cluster;
	return $documents;
}

# All places: [container, key or index]
sub places
{
	my ($node) = @_;

	return map { my $key = $_; ([ $node, $key ], places($node->{$key})) } sort keys %$node if ref $node eq 'HASH';
	return map { my $at = $_; ([ $node, $at ], places($node->[$at])) } 0 .. $#$node if ref $node eq 'ARRAY';
	return;
}

sub one_of { return $_[ rand @_ ] }

my @values = (undef, JSON::PP::true, JSON::PP::false, '', 'x', 'true', '[a', '2026-02-30', '2026-01-01', '2026-01-01T00:00:00.5+01:00', '1e3', '-1.50',
	'0198d2a0-7f3c-7a51-8c4e-5f1d2b3a4c5d', '#record.a == 1', '*', 'Invoice', 'string', 'decimal', 'datetime', 'uuid', 'ref', 'oneof', 'json', 'integer', [], ['x'], ['x', 'x'],
	{}, { a => 1 }, map { JSON::PP->new->allow_bignum->allow_nonref->decode($_) } qw(0 -1 1 7 1.50 1e2 12345678901 0.000 99999 1e-3 1001));

sub misspell
{
	my ($word) = @_;
	my $at = int rand 1 + length $word;

	substr($word, $at, one_of(0, 1)) = one_of('', 'x', '_', 'ä', 'E', '.', ' ') if $at < length $word;
	return $word;
}

sub spoil
{
	my ($documents) = @_;
	my ($node, $key) = @{ one_of(places($documents)) };
	my $hash = ref $node eq 'HASH';
	my $how = int rand 6;

	if ($how == 0) { $hash ? delete $node->{$key} : splice @$node, $key, 1 }
	elsif ($how == 1) { ($hash ? $node->{$key} : $node->[$key]) = one_of(@values) }
	elsif ($how == 2 && $hash) { $node->{ misspell($key) } = delete $node->{$key} }
	elsif ($how == 2) { push @$node, $node->[$key] }
	elsif ($how == 3)
	{
		my $value = $hash ? \$node->{$key} : \$node->[$key];

		$$value = ref $$value ? one_of(@values) : misspell($$value // '');
	}
	else
	{
		# what is somewhere else
		my ($other, $there) = @{ one_of(places($documents)) };
		my $value = $json->encode(ref $other eq 'HASH' ? $other->{$there} : $other->[$there]);

		($hash ? $node->{ $how == 4 ? $key : ref $other eq 'HASH' ? $there : $key } : $node->[$key]) = $json->decode($value);
	}
	return;
}

my @sound = map { $json->encode(read_folder($_)) } "$checkout/examples/billing", map { "$checkout/t/data/$_" } qw(entities policies chinook);
$agreed = 0;
for (1 .. $spoiled)
{
	my $documents = $json->decode(one_of(@sound));

	spoil($documents) for 1 .. 1 + rand 3;
	$agreed += agree('spoiled', put($documents));
	last if $agreed < $_ - 5;
}
is($agreed, $spoiled, 'they agree of what is spoiled') or diag "ENTITYAPI_SEED=$seed";
note "$told{$_} $_" for sort { $told{$b} <=> $told{$a} } keys %told;
cmp_ok(scalar keys %told, '>', 150, 'kinds of faults');

done_testing();
