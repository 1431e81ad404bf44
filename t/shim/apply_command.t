# entityapi-shim apply and openapi: manifests read, plans and faults printed.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use File::Path qw(make_path);
use File::Basename qw(dirname);
use JSON::PP;
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $folder = EntityApi::Test::folder();
my $json = JSON::PP->new->allow_nonref->allow_bignum;

# The plan is what it was called with: the documents, then the arguments.
$cluster->psql(<<~'SQL');
	create function entityapi.apply_manifest(documents json, dry_run bool default false,
		allow_data_loss text[] default '{}')
	returns table(step int, statement text, deferred bool, lock text, effect text, rows bigint) language plpgsql as $$
	declare
		document jsonb;
	begin
		for document in select * from jsonb_array_elements(documents::jsonb) loop
			if document->>'kind' = 'Invalid' then
				raise exception 'the manifests are not valid' using errcode = 'JA400',
					detail = jsonb_build_array(
						jsonb_build_object('document', document->>'source', 'pointer', '/spec/fields/x',
							'message', 'unknown type', 'hint', 'use string'),
						jsonb_build_object('document', 'Entity/B', 'pointer', '/spec',
							'message', 'no fields', 'hint', null));
			elsif document->>'kind' = 'Broken' then
				raise exception 'something else';
			elsif document->>'kind' = 'Nothing' then
				return;
			end if;
		end loop;
		return query select 2, to_jsonb(allow_data_loss)::text || ' ' || dry_run || ';', false, null, null, null::bigint;
		return query select 1, documents::jsonb::text, false, null, null, null::bigint;
	end $$;
	create role entityapi_owner;
	grant usage on schema entityapi to entityapi_owner;
	create function entityapi.claim_apply() returns bool language sql as 'select true';
	create function entityapi.list_steps() returns table(step int, part int, statement text, lock text, alone bool)
	language sql as $$ select 0, 0, '', '', false where false $$;
	SQL

sub write_file
{
	my ($name, $text) = @_;

	make_path(dirname("$folder/$name"));
	open my $file, '>:raw', "$folder/$name" or die "$name: $!\n";
	print $file EntityApi::Test::utf8_bytes($text);
	close $file;
	return "$folder/$name";
}

# What a file becomes: the documents, or the message.
my $number = 0;

sub documents
{
	my ($text, $suffix) = @_;
	my $file = write_file('single' . ++$number . '.' . ($suffix // 'yaml'), $text);
	my $result = $cluster->try_apply($file);

	return $result->{err} =~ s/\Q$folder\E\///gr if $result->{status} != 0;
	my ($line) = split /;\n/, $result->{out};
	return $line;
}

sub value
{
	my ($yaml) = @_;
	my $text = documents("kind: Test\nspec: $yaml\n");

	return $text =~ /"spec": (.*), "source": "[^"]*"\}\]$/ ? $1 : $text;
}

subtest 'scalars of the core schema' => sub {
	my @cases = (
		# nothing, truth
		[ 'null' => 'null' ], [ '~' => 'null' ], [ '' => 'null' ], [ 'Null' => 'null' ],
		[ 'true' => 'true' ], [ 'False' => 'false' ], [ 'TRUE' => 'true' ],
		[ 'yes' => '"yes"' ], [ 'no' => '"no"' ], [ 'on' => '"on"' ], [ 'nUll' => '"nUll"' ],
		# numbers
		[ '0' => '0' ], [ '-7' => '-7' ], [ '+7' => '7' ], [ '007' => '7' ], [ '-0' => '0' ],
		[ '0o17' => '15' ], [ '0xFf' => '255' ], [ '017' => '17' ], [ '0b11' => '"0b11"' ],
		[ '1_000' => '"1_000"' ], [ '1.50' => '1.50' ], [ '.5' => '0.5' ], [ '5.' => '5' ],
		[ '-.5' => '-0.5' ], [ '0.10' => '0.10' ], [ '1e3' => '1000' ], [ '+1.5E-1' => '0.15' ],
		[ '123456789012345678901234567890.123456789012345678901' =>
			  '123456789012345678901234567890.123456789012345678901' ],
		[ '1:30' => '"1:30"' ], [ '1.2.3' => '"1.2.3"' ], [ '-' . '.' => '"-."' ], [ '1e' => '"1e"' ],
		# texts
		[ '2027-01-01' => '"2027-01-01"' ], [ '"1"' => '"1"' ], [ "'true'" => '"true"' ],
		[ "'null'" => '"null"' ], [ '""' => '""' ], [ '!!str 5' => '"5"' ], [ '! 5' => '"5"' ],
		[ "\"a\\tb\\u00e9\\\"\"" => "\"a\\tb\x{e9}\\\"\"" ], [ "gr\x{fc}n \x{1f600}" => "\"gr\x{fc}n \x{1f600}\"" ],
		# collections
		[ '[1, a, [], {}]' => '[1, "a", [], {}]' ],
		[ '{"1": a, true: b, ~: c}' => '{"1": "a", "~": "c", "true": "b"}' ],
		[ '[&x {a: 1}, *x]' => '[{"a": 1}, {"a": 1}]' ], [ '[&x 5, *x, *x]' => '[5, 5, 5]' ]);

	for my $case (@cases)
	{
		my ($yaml, $expected) = @$case;
		my $got = value($yaml);

		utf8::encode($expected);
		is($got, $expected, EntityApi::Test::utf8_bytes("value $yaml"));
	}
	is(value("|\n  two\n  lines\n"), '"two\nlines\n"', 'block text');
};

subtest 'faults name file and line' => sub {
	my @cases = (
		[ "kind: A\nspec:\n  a: [1\nb: 2\n", qr/^single\d+\.yaml:[45]: .*expected/ ],
		[ "kind: A\nkind: B\n", qr/^single\d+\.yaml:2: the key "kind" is repeated$/m ],
		[ "kind: A\nspec: {a: 1, b: {c: 1, c: 2}}\n", qr/:2: the key "c" is repeated/ ],
		[ "kind: A\n---\nkind: B\n\tspec: 1\n", qr/:4: / ],
		[ "kind: A\nspec: &a [*a]\n", qr/:2: the alias \*a stands inside of its own anchor/ ],
		[ "kind: A\nspec: *b\n", qr/:2: the alias \*b has no anchor/ ],
		[ "kind: &a A\n---\nkind: *a\n", qr/:3: the alias \*a has no anchor/ ],
		[ "kind: !!binary aGk=\n", qr/:1: the tag .* is not supported/ ],
		[ "kind: A\nspec: !thing {a: 1}\n", qr/:2: the tag !thing is not supported/ ],
		[ "a: &x {b: 1}\nc:\n  <<: *x\n", qr/:3: merge keys/ ],
		[ "? [a, b]\n: c\n", qr/:1: a key must be/ ],
		[ "- kind: A\n", qr/:1: a document must be a mapping/ ],
		[ "just text\n", qr/:1: a document must be a mapping/ ],
		[ "kind: A\n---\n---\nkind: B\n", qr/:\d: a document must be a mapping/ ],
		[ "kind: A\nsource: here\n", qr/:2: "source" is not a key/ ],
		[ "kind: A\nspec: .inf\n", qr/:2: \.inf is no number/ ],
		[ "kind: A\nspec: 0xfffffffffffffffff\n", qr/:2: the number .* is too large/ ],
		[ "kind: A\nspec: \"a\\0b\"\n", qr/:2: .*U\+0000/ ],
		[ "kind: A\nspec: " . '[' x 70 . ']' x 70 . "\n", qr/:2: nested deeper than 64/ ],
		[ "kind: A\nspec: \xff\n", qr/^single\d+\.yaml:\d+: / ],
		[ "a: &a [x,x,x,x,x,x,x,x,x]\n" . join('', map {
			my $before = chr(ord('a') + $_ - 1);
			my $now = chr(ord('a') + $_);
			"$now: &$now [" . join(',', ("*$before") x 9) . "]\n" } 1 .. 9),
			qr/: the manifests are too large/ ]);

	for my $case (@cases)
	{
		my ($yaml, $expected) = @$case;

		like(documents($yaml), $expected, substr $yaml =~ s/[^ -~]+/ /gr, 0, 40);
	}
	like(documents("{\n\"kind\": \"A\",\n}", 'json'), qr/^single\d+\.json:3: /, 'JSON');
	like(documents("{\"kind\": \"A\"}\n\n{\"kind\"}", 'json'), qr/\.json:3: /, 'second JSON document');
	like(documents('{"kind": "A", "kind": "B"}', 'json'), qr/duplicate/, 'JSON key twice');
	like(documents('[1]', 'json'), qr/#1: a document must be an object/, 'no object');
	like(documents("{\"x\":\n1.5\0}", 'json'), qr/\.json:2: a null byte/, 'null byte after a number');
};

subtest 'JSON as it is' => sub {
	is(documents('{"kind": "A", "spec": 1.10}', 'json'),
		'[{"kind": "A", "spec": 1.10, "source": "' . "$folder/single$number.json" . '#1"}]', 'one');
	my @got = @{ $json->decode(documents(
				'[{"kind": "A", "x": "}]\\"{"}, {"kind": "B"}] {"kind": "C"}' . "\n{}", 'json')) };
	is_deeply([ map { $_->{kind} } @got ], [ 'A', 'B', 'C', undef ], 'several');
	is_deeply([ map { $_->{source} =~ /#(\d+)$/ } @got ], [ 1, 2, 3, 4 ], 'numbered');
};

subtest 'folders' => sub {
	write_file('many/b.yaml', "kind: B1\n---\nkind: B2\n");
	write_file('many/a/deep/x.yml', "kind: X\n");
	write_file('many/c.json', '{"kind": "C"}');
	write_file('many/README.md', 'no manifest');
	write_file('many/.hidden.yaml', "kind: H\n");
	my $result = $cluster->try_apply("$folder/many", '--dry-run',
		'--allow-data-loss', 'Old."q"\\', '--allow-data-loss=Other,x');
	my ($first, $second) = split /;\n/, $result->{out};

	is($result->{status}, 0, 'applied');
	is_deeply([ map { "$_->{kind} $_->{source}" } @{ $json->decode($first) } ],
		[ 'X a/deep/x.yml#1', 'B1 b.yaml#1', 'B2 b.yaml#2', 'C c.json#1' ], 'in order');
	is($second, '["Old.\"q\"\\\\", "Other,x"] true', 'arguments');
	is($result->{out} =~ tr/;//, 2, 'one semicolon each');

	write_file('bad/a.yaml', "a: 1\na: 2\n");
	write_file('bad/b.yaml', "b: [\n");
	$result = $cluster->try_apply("$folder/bad");
	is($result->{status}, 1, 'two broken files');
	like($result->{err}, qr/a\.yaml:2: .*\n.*b\.yaml:\d: /, 'are both reported');
};

subtest 'what the database says' => sub {
	my $result = $cluster->try_apply(write_file('invalid.yaml', "kind: A\n---\nkind: Invalid\n"));
	is($result->{status}, 1, 'invalid: status');
	is($result->{out}, '', 'no plan');
	is($result->{err} =~ s/\Q$folder\E\///r, "invalid.yaml#2: /spec/fields/x: unknown type (use string)\n"
		. "Entity/B: /spec: no fields\n", 'each fault a line');
	$result = $cluster->try_apply(write_file('nothing.yaml', "kind: Nothing\n"));
	is($result->{out}, "nothing to change\n", 'an empty plan');
	$result = $cluster->try_apply(write_file('broken.yaml', "kind: Broken\n"));
	is($result->{status}, 1, 'another error');
	like($result->{err}, qr/^entityapi-shim apply: ERROR:  something else/, 'is shown');
	$result = $cluster->try_apply("$folder/nowhere");
	like($result->{err}, qr/nowhere: No such file/, 'no such file');
	is($cluster->try_apply()->{status}, 2, 'no file named');
	is($cluster->try_apply('--dry')->{status}, 2, 'unknown option');
	my $away = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'),
			'apply', '--database=host=/nowhere', "$folder/nothing.yaml" ]);
	is($away->{status}, 1, 'no server');
};

subtest 'openapi' => sub {
	my $openapi = sub {
		return EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'),
				'openapi', '--database', $cluster->conninfo, @_ ]);
	};

	my $result = $openapi->();
	is($result->{status}, 1, 'missing function');
	like($result->{err}, qr/not installed in the database/, 'is said clearly');
	$cluster->psql(q{create function entityapi.openapi(version int) returns jsonb language sql as
		$$ select jsonb_build_object('version', version) where version < 3 $$});
	is($openapi->()->{out}, "{\"version\": 1}\n", 'version 1');
	is($openapi->('2')->{out}, "{\"version\": 2}\n", 'version 2');
	like($openapi->('3')->{err}, qr/there is no version 3/, 'no version 3');
};

done_testing;
