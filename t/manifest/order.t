# Attributes and relationships stand in the order in which the manifest declares
# them, wherever they are shown; system ones come last.  A manifest that takes
# that order from YAML, JSON or json in SQL is kept so, and told apart from one
# in another order.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

# Existing tables are declared by jsonb there.
delete $ENV{ENTITYAPI_TEST_MAPPED};

my $program = EntityApi::Test::private_program('entityapi-shim');
my $cluster = EntityApi::Test->cluster;
my $json = JSON::PP->new;

# Neither by length nor by the alphabet, in any part
my @attributes = qw(zone at reason bedCount a status middleName);
my @relationships = qw(patient carers ward beds);
my @declared = qw(zone patient at reason carers bedCount a ward status middleName beds);
my @system = qw(updatedAt createdAt);
my @authors = qw(updatedBy createdBy);
my %types = (
	zone => '{type: string, required: true, maxLength: 20}', patient => '{type: ref, target: Patient, relation: ManyToOne}',
	at => '{type: datetime}', reason => '{type: text, readRoles: [Editor]}', carers => '{type: ref, target: Patient, relation: ManyToMany}',
	bedCount => '{type: integer, index: true}', a => '{type: json, default: {zz: 1e2, b: [true], a: null}}', ward => '{type: ref, target: Ward, relation: ManyToOne}',
	status => '{type: string, enum: [OPEN, DONE], default: OPEN}', middleName => '{type: string, unique: true, maxLength: 20}',
	beds => '{type: ref, target: Bed, relation: OneToMany, mappedBy: stay}');

sub yaml
{
	my ($fields, $rest) = @_;

	return join('', "apiVersion: entityapi/v1\nkind: Roles\nmetadata: {name: r}\nspec: {roles: {Reader: {}, Editor: {}}}\n",
		"---\napiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: User}\nspec:\n  accounts: true\n  permissions: {Reader: [read], Editor: [read]}\n",
		"---\napiVersion: entityapi/v1\nkind: Policy\nmetadata: {name: Z}\nspec: {expression: \"#record.zone != 'hidden'\"}\n",
		"---\napiVersion: entityapi/v1\nkind: Policy\nmetadata: {name: AB}\nspec: {expression: \"#record.bedCount != 13\"}\n",
		"---\napiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Stay}\nspec:\n  system: [updatedAt, updatedBy, createdBy, createdAt]\n  optimisticLocking: true\n  fields:\n",
		(map { "    $_: $types{$_}\n" } @$fields),
		$rest // "  policies: {Z: [read], AB: [read]}\n  permissions: {Reader: [read], Editor: [create, read, update, delete, history]}\n",
		map { "---\napiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: $_->[0]}\nspec:\n  fields: $_->[1]\n  permissions: {Reader: [read], Editor: [create, read]}\n" }
		  [ Patient => '{surname: {type: string}, born: {type: date}, mood: {type: string}}' ], [ Ward => '{title: {type: string}}' ],
		[ Bed => '{wide: {type: boolean}, stay: {type: ref, target: Stay, relation: ManyToOne}, no: {type: integer}}' ]);
}

my $folder = EntityApi::Test::folder();

sub put
{
	my ($name, $text) = @_;

	open my $out, '>:raw', "$folder/$name" or die "$name: $!\n";
	print $out $text;
	close $out;
	return "$folder/$name";
}

# The names of the members of an object that stands behind this key, as text
# has them: none of these objects has a brace in a string.
sub names_at
{
	my ($text, $key) = @_;
	my ($from) = $text =~ /"\Q$key\E"\s*:\s*(\{.*)/s or return;
	my ($depth, @names) = (0);

	while ($from =~ /\G[^{}"\[\]]*(?:([{\[])|([}\]])|"((?:[^"\\]|\\.)*)"(\s*:)?)/gcs)
	{
		if (defined $1) { $depth++ }
		elsif (defined $2) { last if --$depth == 0 }
		elsif (defined $4 && $depth == 1) { push @names, $3 }
	}
	return @names;
}

sub in_order
{
	my ($got, $wanted, $name) = @_;

	return is(join(' ', @$got), join(' ', @$wanted), $name);
}

my $wanted = put('wanted.yaml', yaml(\@declared));
$cluster->apply($wanted);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my %token = map { $_ => $shim->user($tenant->{id}, lc $_, [$_]) } qw(Editor Reader);

sub call
{
	my ($method, $path, %options) = @_;

	return $shim->http($method => "/api/v1/$path", { token => $token{ delete $options{as} // 'Editor' }, %options });
}

sub create
{
	my ($type, $attributes, $relationships) = @_;
	my $made = call(POST => $type, headers => { 'Content-Type' => 'application/vnd.api+json' },
		json => { data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () } });

	is($made->{status}, 201, "a $type") or diag $made->{body};
	return $made;
}

my $patient = create(patients => { surname => 'Ann', mood => 'good', born => '2001-02-03' });
my $patient_id = $patient->{json}{data}{id};
my $stay = create(stays => { zone => 'z', bedCount => 2 }, { patient => { data => { type => 'patients', id => $patient_id } } });
my $id = $stay->{json}{data}{id};

# -------- documents --------

sub shows
{
	my ($body, $name, $attributes, $relationships) = @_;

	in_order([ names_at($body, 'attributes') ], $attributes // [ @attributes, @system ], "$name: attributes");
	in_order([ names_at($body, 'relationships') ], $relationships // [ @relationships, @authors ], "$name: relationships");
	return;
}

shows($stay->{body}, 'a new one');
shows(call(GET => "stays/$id")->{body}, 'one');
shows(call(GET => 'stays')->{body}, 'a list');
shows(call(GET => "stays/$id", as => 'Reader')->{body}, 'one without a field of others', [ grep { $_ ne 'reason' } @attributes, @system ]);
my $changed = call(PATCH => "stays/$id", headers => { 'If-Match' => '"0"', 'Content-Type' => 'application/vnd.api+json' },
	json => { data => { type => 'stays', id => $id, attributes => { status => 'DONE', zone => 'y' } } });
$changed = call(PATCH => "stays/$id", headers => { 'If-Match' => $stay->{headers}{etag}, 'Content-Type' => 'application/vnd.api+json' },
	json => { data => { type => 'stays', id => $id, attributes => { status => 'DONE', zone => 'y' } } }) if $changed->{status} == 412;
is($changed->{status}, 200, 'changed');
shows($changed->{body}, 'what a change answers');
my $sparse = 'fields[stays]=createdAt,ward,status,zone,patient,bedCount';
shows(call(GET => "stays?$sparse")->{body}, 'sparse fields, whatever their order', [qw(zone bedCount status createdAt)], [qw(patient ward)]);
my $included = call(GET => 'stays?include=patient,createdBy')->{body};
shows($included, 'with what is included');
my ($people) = $included =~ /"included":(.*)/s;
my ($ann) = $people =~ /(\{"type":"patients".*)/s;
in_order([ names_at($ann, 'attributes') ], [qw(surname born mood)], 'one that is included');
shows(call(GET => "patients/$patient_id")->{body}, 'another', [qw(surname born mood)], []);
my $operations = call(POST => 'operations', headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
	json => { 'atomic:operations' => [ { op => 'add', data => { type => 'stays', attributes => { zone => 'x' } } } ] });
is($operations->{status}, 200, 'an operation');
shows($operations->{body}, 'what an operation answers');

my ($created) = call(GET => "stays/$id/history")->{body} =~ /("action":"ENTITY_CREATE".*)/s;
my %told = map { $_ => 1 } names_at($created, 'changes');
cmp_ok(scalar keys %told, '>', 3, 'the history of a new one');
in_order([ names_at($created, 'changes') ], [ grep { $told{$_} } @declared, qw(updatedAt updatedBy createdBy createdAt) ], 'history');
my $now = $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
shows(call(GET => "stays/$id?asOf=$now")->{body}, 'what it was', undef, [qw(patient ward), @authors]);

# -------- OpenAPI, and what one may do --------

sub openapi
{
	my ($name, $attributes, $relationships) = @_;
	my $text = call(GET => 'openapi.json')->{body};
	my %of = map { $_ => [ names_at(($text =~ /"$_":(.*)/s)[0], 'properties') ] } qw(StayAttributes);
	my ($resource) = $text =~ /"StayResource":(.*)/s;
	my ($new) = $text =~ /"StayCreateDocument":(.*)/s;
	my ($given) = $new =~ /"attributes":(.*)/s;

	in_order($of{StayAttributes}, [ @$attributes, @system ], "$name: a resource's attributes");
	in_order([ names_at(($resource =~ /"relationships":(.*)/s)[0], 'properties') ], [ @$relationships, @authors ], "$name: its relationships");
	in_order([ names_at($given, 'properties') ], $attributes, "$name: those of a new one");
	in_order([ names_at(($new =~ /"relationships":(.*)/s)[0], 'properties') ], $relationships, "$name: its relationships");
	return;
}

openapi('OpenAPI', \@attributes, \@relationships);
my $may = $shim->http(GET => '/auth/me/permissions', { token => $token{Editor} })->{json}{stays};
in_order($may->{readable}, [ @declared, qw(updatedAt updatedBy createdBy createdAt) ], 'what one may read');
in_order($may->{writable}, [ grep { $_ ne 'beds' } @declared ], 'and write');

# -------- the declared state --------

sub exported
{
	my ($database, $entity) = @_;
	my $spec = $cluster->psql("select d->'spec' from json_array_elements(entityapi.export_manifest()) d where d->'metadata'->>'name' = '" . ($entity // 'Stay') . q{'},
		$database ? (database => $database) : ());

	return [ names_at($spec, 'fields') ];
}

sub columns
{
	return join ' ', split /\n/, $cluster->psql(q{select attname from pg_attribute where attrelid = 'app.stay'::regclass and attnum > 0 and not attisdropped
		and attname !~ '^(tenant_id|id|version|(created|updated|deleted)_(at|by)|deletion_id)$' order by attnum});
}

my $revisions = 'select count(*) from entityapi.revision';
in_order(exported(), \@declared, 'export_manifest() keeps it');
is(columns(), 'zone patient_id at reason bed_count a ward_id status middle_name', 'so do columns of a new table');
my $before = $cluster->psql($revisions);
is($cluster->apply($wanted), "nothing to change\n", 'the same again');
is($cluster->psql('select count(*) from entityapi.apply_manifest(entityapi.export_manifest())'), 0, 'as it was exported');
is($cluster->psql($revisions), $before, 'no revision for that');

# Whatever else is written in another order is the same.
my $spelled = put('spelled.yaml', yaml(\@declared, "  permissions: {Editor: [create, read, update, delete, history], Reader: [read]}\n  policies: {AB: [read], Z: [read]}\n")
	  =~ s/\{zz: 1e2, b: \[true\], a: null\}/{a: null, b: [true], zz: 100}/r =~ s/\{type: datetime\}/{"type": datetime}/r);
my $definitions = $cluster->psql('select md5(string_agg(definition, name order by name)) from entityapi.entity');
is($cluster->apply($spelled), "nothing to change\n", 'members of other objects have no order');
is($cluster->psql('select md5(string_agg(definition, name order by name)) from entityapi.entity'), $definitions, 'definitions are the same');
is($cluster->psql($revisions), $before, 'and there is no revision for that, either');

# -------- another order --------

my @reordered = reverse @declared;
my @other_attributes = reverse @attributes;
my @other_relationships = reverse @relationships;
my $other = put('other.yaml', yaml(\@reordered));
my $told = "-- entity Stay: fields in another order\n";
my $etag = call(GET => 'openapi.json')->{headers}{etag};
is($cluster->apply('--dry-run', $other), $told, 'a dry run tells it');
in_order(exported(), \@declared, 'and does not take it');
is($cluster->apply($other), $told, 'apply tells it, and runs no statement');
in_order(exported(), \@reordered, 'and takes it');
my $one = call(GET => "stays/$id");
shows($one->{body}, 'at once', [ @other_attributes, @system ], [ @other_relationships, @authors ]);
is(call(GET => 'openapi.json', headers => { 'If-None-Match' => $etag })->{status}, 200, 'OpenAPI is another document');
openapi('OpenAPI after', \@other_attributes, \@other_relationships);
is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'the tables are as declared');
is($cluster->apply($other), "nothing to change\n", 'again it is the same');

# A field between others is one that is new, and one with another name is where it was.
my @more = map { $_ eq 'reason' ? ('extra', 'reason') : $_ eq 'zone' ? 'area' : $_ } @reordered;
{
	local $types{extra} = '{type: string}';
	local $types{area} = $types{zone} =~ s/\}/, renamedFrom: zone}/r;
	my $text = yaml(\@more) =~ s/record\.zone/record.area/r;
	my $plan = $cluster->apply('--dry-run', put('more.yaml', $text));

	like($plan, qr/ADD COLUMN extra/, 'a new field');
	like($plan, qr/RENAME COLUMN zone TO area/, 'and one that is renamed');
	unlike($plan, qr/another order/, 'change no order');
}

# -------- JSON and SQL --------

sub as_json
{
	my ($fields, $form) = @_;
	my $field = sub { my ($name) = @_; return $json->encode($name) . ': {"type": "string"}' };

	return '[{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Thing"}, "spec": {"fields": {' . join(', ', map { $field->($_) } @$fields)
	  . '}, "permissions": {"*": ["read", "create"]}}}]';
}

sub declares
{
	my ($sql, $wanted, $name, $database) = @_;

	is($cluster->try_psql("select count(*) from entityapi.$sql", database => $database)->{err}, '', "$name: done");
	in_order(exported($database, 'Thing'), $wanted, $name);
	return;
}

my @names = qw(delta b charlie aa);
my $sql_only = 'sql_only';
$cluster->psql("create database $sql_only", database => 'postgres');
$cluster->psql('create extension entityapi cascade', database => $sql_only);
my $literal = sub { return "'" . as_json(@_) . "'" };
declares("apply_manifest(@{[ $literal->(\@names) ]}::json)", \@names, 'json', $sql_only);
is($cluster->psql("select count(*) from entityapi.apply_manifest(@{[ $literal->(\@names) ]}::jsonb)", database => $sql_only), 0, 'jsonb tells none');
declares("apply_manifest(@{[ $literal->(\@names) ]}::jsonb)", [qw(b aa delta charlie)], 'and has one of its own', $sql_only);
declares("apply_manifest(@{[ $literal->(\@names) ]})", \@names, 'a literal', $sql_only);
declares("apply_manifest(documents => @{[ $literal->([ reverse @names ]) ]}::text, dry_run => false)", [ reverse @names ], 'text', $sql_only);
declares("apply_manifest(@{[ $literal->(\@names) ]}::json, true)", [ reverse @names ], 'a dry run', $sql_only);
declares("repair_and_apply(@{[ $literal->(\@names) ]}::json)", \@names, 'repair_and_apply, json', $sql_only);
declares("repair_and_apply(@{[ $literal->([ reverse @names ]) ]})", [ reverse @names ], 'repair_and_apply, a literal', $sql_only);
declares("repair_and_apply(@{[ $literal->(\@names) ]}::jsonb)", [qw(b aa delta charlie)], 'repair_and_apply, jsonb', $sql_only);
for my $form ('', '::text', '::json', '::jsonb')
{
	is($cluster->psql("select count(*) from entityapi.compare_rights('[]'$form, allow_data_loss => '{Thing}')", database => $sql_only) > 0 ? 'rows' : 'none', 'rows', "compare_rights$form");
}
for my $fault ([ '[{]', 'the text is not valid JSON' ], [ '', 'the JSON text ends too early' ], [ '[{"a": 1, "a": 2}]', 'an object has a key twice' ], [ '"\\u0000"', 'U+0000 is not allowed in text' ],
	[ '[' x 70 . ']' x 70, 'the JSON text is nested too deep' ])
{
	my ($text, $message) = @$fault;
	my $said = $cluster->try_psql("\\set VERBOSITY verbose\nselect entityapi.apply_manifest(\$t\$$text\$t\$::text)", database => $sql_only)->{err};

	like($said, qr/JA400.*\n.*\Q$message\E/, "$message is a fault");
}
like($cluster->try_psql("select entityapi.apply_manifest(null::$_)", database => $sql_only)->{err}, qr/arguments of apply_manifest must not be null/, "a null of $_") for qw(json text jsonb);

my $files = 'json_files';
$cluster->psql("create database $files", database => 'postgres');
$cluster->psql('create extension entityapi cascade', database => $files);
my $apply = sub { my (@options) = @_; return EntityApi::Test::run([ $program, 'apply', '--database', $cluster->conninfo(undef, $files), @options ]) };
is($apply->(put('things.json', as_json(\@names)))->{status}, 0, 'a file of JSON');
in_order(exported($files, 'Thing'), \@names, 'keeps it, too');
is($apply->('--repair', put('things.json', as_json([ reverse @names ])))->{out}, "-- entity Thing: fields in another order\n", 'a repair tells another one');
in_order(exported($files, 'Thing'), [ reverse @names ], 'and takes it');

# -------- diff --------

sub diff
{
	my $run = EntityApi::Test::run([ $program, 'diff', @_ ]);

	return ($run->{status}, $run->{out}, $run->{err});
}

put('same.json', as_json(\@names) =~ s/\{"apiVersion": "entityapi\/v1", (.*)\}\]/{$1, "apiVersion": "entityapi\/v1"}]/r =~ s/"permissions": \{.*?\}/"permissions": {"*": ["read", "create"]}/r);
put('names.json', as_json(\@names));
is_deeply([ diff("$folder/names.json", "$folder/same.json") ], [ 0, '', '' ], 'no difference');
is_deeply([ diff("$folder/names.json", put('turned.json', as_json([qw(delta charlie b aa)]))) ],
	[ 1, qq{Entity/Thing /spec/fields, order: ["delta","b","charlie","aa"] -> ["delta","charlie","b","aa"]\n}, '' ], 'another order is one');
is_deeply([ diff("$folder/names.json", put('fewer.json', as_json([qw(delta new charlie aa)]))) ],
	[ 1, qq{Entity/Thing /spec/fields/b: - {"type":"string"}\nEntity/Thing /spec/fields/new: + {"type":"string"}\n}, '' ], 'a field less and one more change no order');
is_deeply([ diff("$folder/names.json", put('keyed.json', as_json(\@names) =~ s/"fields": \{/"fields": {"x": {"unique": true, "type": "string", "maxLength": 9}, /r)) ],
	[ 1, qq{Entity/Thing /spec/fields/x: + {"unique":true,"type":"string","maxLength":9}\n}, '' ], 'what is told has the order of the file');

# -------- a dump --------

subtest 'a dump' => sub {
	my $dump = EntityApi::Test::run([ EntityApi::Test::server_program('pg_dump'), '-Fc', '-f', "$folder/dump", '-d', $cluster->conninfo ]);
	is($dump->{status}, 0, 'is made') or return;
	$cluster->psql('create database restored', database => 'postgres');
	EntityApi::Test::run([ EntityApi::Test::server_program('pg_restore'), '-d', $cluster->conninfo(undef, 'restored'), "$folder/dump" ]);
	in_order(exported('restored'), \@reordered, 'keeps it');
	is(EntityApi::Test::run([ $program, 'apply', '--database', $cluster->conninfo(undef, 'restored'), $other ])->{out}, "nothing to change\n", 'and nothing is to be applied');
};

# -------- an update --------

# The old library is no more, so the rows of before are made of those of now.
my @old = EntityApi::Test::Released::versions();
subtest "after an update from $_" => \&updated, $_ for EntityApi::Test::Released::install($cluster) ? @old : ();

sub updated
{
	my ($version) = @_;
	my $database = "from_$version";
	my $run = sub { return EntityApi::Test::run([ $program, 'apply', '--database', $cluster->conninfo(undef, $database), @_ ]) };
	my $psql = sub { return $cluster->psql($_[0], database => $database) };

	$cluster->psql(qq{create database "$database"}, database => 'postgres');
	$psql->('create extension entityapi cascade');
	my $documents = put('documents.json', $cluster->psql('select entityapi.export_manifest()'));
	$psql->(q{select count(*) from entityapi.apply_manifest($m$} . EntityApi::Test::slurp($documents) . q{$m$::jsonb)});
	my ($revision, $entities, $service) = map { $psql->("select json_agg(t) from entityapi.$_ t") } qw(revision entity service);
	my $dump = EntityApi::Test::run([ EntityApi::Test::server_program('pg_dump'), '-n', 'app', '-d', $cluster->conninfo(undef, $database) ])->{out};

	$psql->(qq{drop schema app cascade; drop extension entityapi; create extension entityapi version '$version'});
	$psql->($dump);
	$psql->("insert into entityapi.$_->[0] select * from jsonb_populate_recordset(null::entityapi.$_->[0], \$r\$$_->[1]\$r\$)")
	  for [ revision => $revision ], [ entity => $entities ], [ service => $service ];
	$psql->(qq{update entityapi.revision set extension_version = '$version'; create role "granted_$version";
		grant execute on function entityapi.apply_manifest(jsonb, boolean, text[]), entityapi.export_manifest() to "granted_$version"});
	is($psql->("select pg_typeof(documents)::text from entityapi.revision limit 1"), 'jsonb', 'without an order');
	$psql->('alter extension entityapi update');
	in_order(exported($database), [ sort { length $a <=> length $b || $a cmp $b } @declared ], 'none is made up');
	is($run->('--dry-run', $other)->{out}, "nothing to change\n", 'a dry run tells no difference');
	is($run->($other)->{out}, "nothing to change\n", 'nor does the first apply');
	in_order(exported($database), \@reordered, 'which takes the order');
	is($run->($wanted)->{out}, $told, 'the next one tells another');
	is($psql->('select count(*) from entityapi.list_differences()'), 0, 'tables are as declared');
	for my $function (map({ "apply_manifest($_, boolean, text[])" } qw(json text jsonb)), 'export_manifest()')
	{
		is($psql->(qq{select has_function_privilege('granted_$version', 'entityapi.$function', 'execute')}), 't', "whoever was given a form may call $function");
		is($psql->(qq{select count(*) from pg_init_privs where initprivs::text like '%granted%' and objoid = 'entityapi.$function'::regprocedure}), 0, 'and dumps have that');
	}
	return;
}

done_testing();
