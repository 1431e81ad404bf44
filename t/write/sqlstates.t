# What a table raises for what a client has sent, and what that becomes: each
# row of extension/request/raisedlist.h is made to happen by a request, and its
# SQLSTATE by the same in SQL.  What cannot happen has its reason here.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster(conf => [ 'max_stack_depth = 500kB', 'max_prepared_transactions = 2', 'entityapi.access_token_ttl = 86400' ]);
my $folder = EntityApi::Test::folder();
my $json = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my ($major) = $cluster->psql('show server_version_num') =~ /^(\d+)\d{4}$/;

# -------- the rows --------

chomp(my $share = `@{[EntityApi::Test::server_program('pg_config')]} --sharedir`);
my $errcodes = EntityApi::Test::slurp("$share/errcodes.txt");
my %number;
$number{$2} = $1 while $errcodes =~ /^(\w{5})\s+[EWS]\s+(ERRCODE_\w+)/mg;

my $list = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/extension/request/raisedlist.h');
my (%row, @names);
while ($list =~ /^EA_RAISED(?:_BY_VALUE)?\((ERRCODE_\w+)(?:, EA_BY_(\w+),\s+EA_ERR_(\w+), EA_NAMES_(\w+))?\)/mg)
{
	my ($name, $by, $code, $place) = ($1, $2 // 'VALUE', $3 // 'INVALID_VALUE', $4 // 'DOCUMENT');

	push @names, $name;
	next if !defined $number{$name};
	ok(!$row{ $number{$name} }, "$name is once in the list");
	$row{ $number{$name} } = { name => $name, by => $by, code => $code, place => $place };
}
cmp_ok(scalar @names, '>', 80, 'there are rows');

# those that some versions have
my %some = map { $_ => 1 } $list =~ /^#ifdef (\w+)$/mg;
is(join(' ', grep { !defined $number{$_} && !$some{$_} } @names), '', 'PostgreSQL knows them all');
is(join(' ', sort grep { /^(?:22|23|54)/ && !$row{$_} } values %number), '', 'and all of what a value, a constraint or a size can raise is there');

# -------- the tables --------

sub declared
{
	my ($name, $kind, $spec) = @_;

	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} $json->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec });
	close $file;
	return;
}

my %permissions = (permissions => { Editor => [qw(create read update delete)] });
declared(Roles => 'Roles', { roles => { Editor => {} } });
declared(Thing => 'Entity', { %permissions, fields => {
		name => { type => 'string', maxLength => 50 },
		note => { type => 'text' },
		n    => { type => 'integer' },
		m    => { type => 'integer' },
		doc  => { type => 'json' },
		tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' } } });
declared(Tag => 'Entity', { %permissions, fields => { name => { type => 'text' } } });
declared(Long => 'Entity', { %permissions, indexes => [ [qw(a b)] ], fields => {
		a => { type => 'string', maxLength => 332 }, b => { type => 'string', maxLength => 332 } } });
declared(Wide => 'Entity', { %permissions, fields => {
		(map { ("s$_" => { type => 'string' }) } 1 .. 700), long => { type => 'text' } } });
declared(Wider => 'Entity', { %permissions, fields => { map { ("u$_" => { type => 'uuid' }) } 1 .. 600 } });
$cluster->apply($folder);
$cluster->psql(<<'SQL');
create schema theirs authorization entityapi_owner;
create extension btree_gist;
set role entityapi_owner;
create table theirs.code (code text primary key);
create function theirs.raise() returns trigger language plpgsql as $$ begin raise exception 'not so' using errcode = tg_argv[0]; end $$;
create function theirs.raises(code text) returns int language plpgsql immutable as $$ begin if code = 'none' then return 1; end if; raise exception 'not so' using errcode = code; end $$;
create function theirs.again() returns trigger language plpgsql as $$ begin update app.thing set m = m + 1 where id = new.id; return new; end $$;
reset role;
create function public.sqlstate_of(sql text) returns text language plpgsql as $$ begin execute sql; return 'none'; exception when others then return sqlstate; end $$;
SQL

my $shim = EntityApi::Test->shim($cluster);
my $acme = $shim->tenant('acme')->{id};
my $user = $shim->user($acme, 'eve', ['Editor']);
my $eve = EntityApi::Test::Cases->new($shim, $user, '/api/v1');

sub made
{
	my ($type, $attributes) = @_;

	return $eve->good(201, POST => "/$type", data => { type => $type, attributes => $attributes })->{json}{data}{id};
}

# What an answer is in a word: its status, the first code, and where that is.
sub in_short
{
	my ($answer) = @_;
	my $error = $answer->{json}{errors}[0];

	return $answer->{status} unless $error;
	return join ' ', $answer->{status}, $error->{code}, $error->{source}{pointer} // 'none';
}

# Texts that do not become shorter.
srand 1;
sub noise { my ($n) = @_; return join '', map { chr 0x4e00 + int rand 20000 } 1 .. $n }

# -------- what the server computes of values --------

# SQLSTATE, an expression of the columns, what is sent.  Most of them in a
# check; those that are assigned are a generated column's.
my @values = (
	[ '22000', 'int4range(n, m)', { n => 2, m => 1 } ],
	[ '22001', 'note', { note => 'longer' }, 'varchar(5)' ],
	[ '22003', 'n * 1000000000', { n => 1000 } ],
	[ '22003', 'n * 1000000000', { n => 1000 }, 'int' ],
	[ '22004', 'array_fill(1, case when n <> 4 then array[1] end)', { n => 4 } ],
	[ '22007', 'note::date', { note => 'nonsense' } ],
	[ '22008', 'note::date', { note => '2024-13-77' } ],
	[ '22009', 'note::timetz', { note => '10:00+99' } ],
	[ '2200C', q{name ~ similar_to_escape(note, '#')}, { name => 'abc', note => 'a#"b#"c#"d' } ],
	[ '2200C', q{substring(name, note, '#')}, { name => 'abc', note => 'a#"b#"c#"d' } ],
	[ '2200F', 'array_to_tsvector(array[note])', { note => '' } ],
	[ '2200L', 'xmlserialize(document note::xml as text)', { note => 'a<b/>c' } ],
	[ '2200M', 'xmlparse(document note)::text', { note => 'x' } ],
	[ '2200N', 'xmlparse(content note)::text', { note => '<' } ],
	[ '2200S', 'xmlcomment(note)::text', { note => 'a--b' } ],
	[ '2200T', 'xmlpi(name x, note)::text', { note => 'a?>' } ],
	[ '22011', 'substring(note from 1 for n)', { note => 'abc', n => -1 } ],
	[ '22012', 'n / m', { n => 1, m => 0 } ],
	[ '22012', 'n / m', { n => 1, m => 0 }, 'int' ],
	[ '22015', 'note::interval', { note => '99999999999 years' } ],
	[ '22021', q{convert_from(decode(note, 'hex'), 'UTF8')}, { note => 'ff' } ],
	[ '22023', q{encode('a'::bytea, note)}, { note => 'x' } ],
	[ '22025', 'name like note', { name => 'ab', note => 'a\\' } ],
	[ '22026', q{case when note ~ '^[01]*$' then note::varbit end}, { note => '1010' }, 'bit(3)' ],
	[ '2201B', 'name ~ note', { name => 'a', note => '(' } ],
	[ '2201E', 'ln(n::float8)', { n => 0 } ],
	[ '2201E', 'log(n::numeric)', { n => 0 } ],
	[ '2201E', 'log(n::numeric)', { n => 0 }, 'numeric' ],
	[ '2201F', 'power(n::float8, 0.5)', { n => -1 } ],
	[ '2201G', 'width_bucket(1::float8, n::float8, m::float8, 5)', { n => 1, m => 1 } ],
	[ '2202E', q{get_bit(b'101', n)}, { n => 7 } ],
	[ '22030', q{json_object('a': n, note: m with unique keys)::text}, { note => 'a' }, undef, 16 ],
	[ '22031', q{jsonb_path_query_first(doc, 'strict $.a.datetime()')}, { doc => { a => 'x' } } ],
	[ '22033', q{jsonb_path_query_first(doc, 'strict $.a[9]')}, { doc => { a => [] } } ],
	[ '22034', q{json_value(doc, '$[*]' error on error)}, { doc => [ 1, 2 ] }, undef, 17 ],
	[ '22035', q{json_value(doc, '$.z' error on empty error on error)}, { doc => {} }, undef, 17 ],
	[ '22036', q{jsonb_path_query_first(doc, 'strict $.a.double()')}, { doc => { a => 'x' } } ],
	[ '22038', q{jsonb_path_match(doc, '$.a')}, { doc => { a => 1 } } ],
	[ '22039', q{jsonb_path_query_first(doc, 'strict $.a[*]')}, { doc => { a => 1 } } ],
	[ '2203A', q{jsonb_path_query_first(doc, 'strict $.z')}, { doc => {} } ],
	[ '2203B', q{jsonb_path_query_first(doc, 'strict -$.a')}, { doc => { a => 'x' } } ],
	[ '2203C', q{jsonb_path_query_first(doc, 'strict $.a.keyvalue()')}, { doc => { a => 1 } } ],
	[ '2203F', q{json_value(doc, '$' error on error)}, { doc => {} }, undef, 17 ],
	[ '22P02', 'note::int', { note => 'x' } ],
	[ '22P05', q{convert_to(note, 'LATIN1')}, { note => '€' } ],
	[ '10608', q{xpath(note, '<a/>'::xml)::text}, { note => '(' }, undef, 18 ],
	[ '42601', q{to_tsquery('simple', note)}, { note => 'a b' } ],
	[ '42601', 'note::jsonpath', { note => '$.' } ],
	[ '54000', 'repeat(note, n)', { note => 'x' x 1000, n => 2_000_000_000 } ],
	[ '54000', 'lpad(note, n)', { note => 'x', n => 2_000_000_000 } ],
	[ '54001', 'note::jsonb', { note => '[' x 100_000 } ],
);

# -------- what has other reasons --------

my %thing;
my $other = 'theirs.other';
my $keyed = "create table $other (t uuid, i uuid, foreign key (t, i) references app.thing (tenant_id, id) RULE);"
  . " insert into $other select tenant_id, id from app.thing where name = 'first'; alter table $other owner to entityapi_owner";
my $delete = [ DELETE => '/things/FIRST' ];
my $deleted = "delete from app.thing where name = 'first'";
my $linked = [ POST => '/things/FIRST/relationships/tags', [ { type => 'tags', id => 'TAG' } ] ];
my $trigger = sub { return ("create trigger mine before insert on app.thing for each row execute function theirs.raise('$_[0]')", 'drop trigger mine on app.thing') };

# SQLSTATE, what is put on the table and taken off, what is sent (attributes of
# a new thing, or method, path and data), the same in SQL if it is no INSERT,
# the answer
my @others = (
	[ '23505', 'create unique index mine on app.thing (note)', 'drop index app.mine', { note => 'taken' }, undef, '409 UNIQUE_VIOLATION /data/attributes/note' ],
	[ '23505', 'create unique index mine on app.thing (note, name)', 'drop index app.mine', { note => 'taken', name => 'first' }, undef, '409 UNIQUE_VIOLATION /data' ],
	[ '23P01', 'alter table app.thing add constraint mine exclude using gist (note with =)', 'alter table app.thing drop constraint mine', { note => 'taken' }, undef, '409 OVERLAP /data/attributes/note' ],
	[ '23514', 'alter table app.thing add constraint mine check (n < 10)', 'alter table app.thing drop constraint mine', { n => 10 }, undef, '400 CHECK_FAILED /data/attributes/n' ],
	[ '23502', 'alter table app.thing alter note set not null', 'alter table app.thing alter note drop not null', { note => undef }, undef, '400 REQUIRED /data/attributes/note' ],
	[ '23503', 'alter table app.thing add constraint mine foreign key (note) references theirs.code not valid', 'alter table app.thing drop constraint mine', { note => 'x' }, undef, '404 RELATED_NOT_FOUND /data/attributes/note' ],
	[ '23503', $keyed =~ s/RULE//r, "drop table $other", $delete, $deleted, '409 STILL_REFERENCED none' ],
	[ $major < 18 ? '23503' : '23001', $keyed =~ s/RULE/on delete restrict/r, "drop table $other", $delete, $deleted, '409 STILL_REFERENCED none' ],
	[ '23001', $trigger->('23001'), {}, undef, '400 REFUSED_BY_TABLE /data' ],
	[ '23000', $trigger->('23000'), {}, undef, '400 REFUSED_BY_TABLE /data' ],
	[ 'P0001', $trigger->('P0001'), {}, undef, '400 REFUSED_BY_TABLE /data' ],

	# entries of indexes, of all kinds, and what is in their expressions
	[ '54000', 'create index mine on app.thing (tenant_id, note)', 'drop index app.mine', { note => noise(2000) }, undef, '400 VALUE_TOO_LARGE /data/attributes/note', 'The value of "note" is too large for an index.' ],
	[ '54000', 'create index mine on app.thing (name, note)', 'drop index app.mine', { note => noise(2000) }, undef, '400 VALUE_TOO_LARGE /data', 'The values are too large together for an index.' ],
	[ '54000', 'create index mine on app.thing (lower(note))', 'drop index app.mine', { note => noise(2000) }, undef, '400 VALUE_TOO_LARGE /data/attributes/note' ],
	[ '54000', 'create index mine on app.thing using gin ((array[note]))', 'drop index app.mine', { note => noise(2000) }, undef, '400 VALUE_TOO_LARGE /data/attributes/note' ],
	[ '54000', 'create index mine on app.thing using brin (note)', 'drop index app.mine', { note => noise(3000) }, undef, '400 VALUE_TOO_LARGE /data/attributes/note' ],

	# beyond 8191 bytes PostgreSQL does not say which index it is
	[ '54000', 'create index mine on app.thing (note)', 'drop index app.mine', { note => noise(3000) }, undef, '400 VALUE_TOO_LARGE /data', 'The values are too large together for the table.' ],
	[ '54000', 'create index mine on app.thing (note)', 'drop index app.mine', [ PATCH => '/things/FIRST', { type => 'things', id => 'FIRST', attributes => { note => noise(2000) } } ],
		"update app.thing set note = '" . noise(2000) . q{' where name = 'first'}, '400 VALUE_TOO_LARGE /data/attributes/note' ],

	# columns that nobody writes
	[ '428C9', 'alter table app.thing alter n set default 1; update app.thing set n = 1; alter table app.thing alter n set not null, alter n drop default, alter n add generated always as identity',
		'alter table app.thing alter n drop identity, alter n drop not null', { n => 5 }, undef, '400 READ_ONLY /data/attributes/n', 'The field "n" is read-only.' ],

	# what no client is at fault for
	[ '2200H', 'create sequence theirs.few minvalue 0 maxvalue 1 start 1; alter sequence theirs.few owner to entityapi_owner; alter table app.thing add extra int default nextval(\'theirs.few\')',
		'alter table app.thing drop extra; drop sequence theirs.few', {}, undef, '500 INTERNAL_ERROR none' ],
	[ '0A000', 'alter table app.thing add constraint mine check (note::numeric::int is not null) not valid', 'alter table app.thing drop constraint mine', { note => 'NaN' }, undef, '500 INTERNAL_ERROR none' ],
	[ '42P10', 'alter table app.thing_tags rename to was; create table app.thing_tags (like app.was including defaults); alter table app.thing_tags owner to entityapi_owner',
		'drop table app.thing_tags; alter table app.was rename to thing_tags', $linked,
		q{insert into app.thing_tags select tenant_id, 'FIRST', id from app.tag on conflict (tenant_id, thing_id, tag_id) do nothing}, '500 INTERNAL_ERROR none' ],
	[ '55000', 'create publication mine for table app.thing; alter table app.thing replica identity nothing', 'drop publication mine; alter table app.thing replica identity default',
		[ PATCH => '/things/FIRST', { type => 'things', id => 'FIRST', attributes => { n => 3 } } ], q{update app.thing set n = 3 where name = 'first'}, '500 INTERNAL_ERROR none' ],
	[ '27000', 'create trigger mine before update on app.thing for each row when (pg_trigger_depth() = 0) execute function theirs.again()', 'drop trigger mine on app.thing',
		[ PATCH => '/things/FIRST', { type => 'things', id => 'FIRST', attributes => { n => 3 } } ], q{update app.thing set n = 3 where name = 'first'}, '500 INTERNAL_ERROR none' ],
	[ '42501', 'alter table app.thing force row level security', 'alter table app.thing no force row level security', {}, 'set local role entityapi_owner; INSERT', '500 INTERNAL_ERROR none' ],
);

# Rows that no request can be made to fail by
my $nothing = 'no code of PostgreSQL raises it';
my $windows = 'window functions, LIMIT and TABLESAMPLE stand in no expression of a table';
my %never = (
	'22002' => $nothing, '22010' => $nothing, '22018' => $nothing, '22019' => $nothing, '22022' => $nothing, '22024' => $nothing, '22027' => $nothing,
	'2200B' => $nothing, '2200D' => $nothing, '2200G' => $nothing, '22032' => $nothing, '22037' => $nothing, '2203D' => $nothing, '2203E' => $nothing, '2203G' => $nothing,
	'22013' => $windows, '22014' => $windows, '22016' => $windows, '2201W' => $windows, '2201X' => $windows, '2202G' => $windows, '2202H' => $windows,
	'22005' => 'PL/pgSQL alone', '22P03' => 'the binary protocol', '22P04' => 'COPY', '22P06' => 'literals of SQL', '22P01' => 'a signal of the processor',
	'22P07' => 'a composite value that is older than its type', '54011' => 'a manifest may have 1500 columns', '54023' => 'a function of its own would have to have them',
	($major < 16 ? ('22030' => 'SQL/JSON constructors, since 16') : ()),
	($major < 17 ? (map { $_ => 'SQL/JSON queries, since 17' } qw(22034 22035 2203F)) : ()));

# -------- all of them --------

my %happened;

sub quoted { my ($value) = @_; return !defined $value ? 'null' : q{'} . (ref $value ? $json->encode($value) : $value) =~ s/'/''/gr . q{'} }

sub inserting
{
	my ($sent) = @_;
	my @sent = sort keys %$sent;

	return 'insert into app.thing (' . join(', ', qw(tenant_id id created_at updated_at), @sent) . ') values ('
	  . join(', ', "'$acme'", 'gen_random_uuid()', 'now()', 'now()', map { quoted($sent->{$_}) } @sent) . ')';
}

sub state_of { return $cluster->psql(q{select (select count(*) || ' ' || coalesce(string_agg(md5(t::text), ' ' order by id), '') from app.thing t), (select count(*) from app.thing_tags), (select count(*) from entityapi.audit where outcome = 'SUCCESS')}) }

sub happens
{
	my ($sqlstate, $on, $off, $request, $sql, $expected, $detail) = @_;
	my ($method, $path, $data) = ref $request eq 'HASH' ? (POST => '/things', { type => 'things', attributes => $request }) : @$request;
	my $row = $row{$sqlstate} // die "$sqlstate has no row\n";
	my $name = "$sqlstate $row->{name}: " . substr $on, 0, 60;
	my $body = defined $data ? $json->encode($data) =~ s/FIRST/$thing{first}/gr =~ s/TAG/$thing{tag}/gr : undef;

	$sql = defined $sql ? $sql =~ s/INSERT$/inserting($request)/er : inserting($request);
	$sql =~ s/FIRST/$thing{first}/g;
	$path =~ s/FIRST/$thing{first}/;
	$cluster->psql($on);
	is($cluster->psql('set client_min_messages = error; select public.sqlstate_of($s$' . "$sql\$s\$)"), $sqlstate, $name);
	my $before = state_of();
	my $answer = $eve->call($method, $path, defined $body ? (data => JSON::PP->new->decode($body)) : ());
	is(in_short($answer), $expected, '... and what it becomes') or diag "$name: $answer->{body}";
	is($answer->{json}{errors}[0]{detail}, $detail, '... in these words') if defined $detail;
	is($row->{by} eq 'NONE' || $expected !~ /^500/, 1, '... which is a fault where the list says so');
	is(state_of(), $before, '... and nothing is done');
	$cluster->psql($off);
	$happened{$sqlstate}++;
	return;
}

$thing{first} = made(things => { name => 'first', note => 'taken', n => 1, m => 1 });
$thing{tag} = made(tags => { name => 'x' });

subtest 'values of which the table computes others' => sub {
	for my $case (@values)
	{
		my ($sqlstate, $expression, $sent, $type, $since) = @$case;

		next if $major < ($since // 0);
		my $size = $row{$sqlstate}{by} eq 'SIZE';
		happens($sqlstate, defined $type ? ("alter table app.thing add extra $type generated always as ($expression) stored", 'alter table app.thing drop extra')
			: ("alter table app.thing add constraint mine check (($expression) is distinct from null) not valid", 'alter table app.thing drop constraint mine'),
			$sent, undef, $size ? '400 VALUE_TOO_LARGE /data' : '400 INVALID_VALUE /data',
			$size ? 'The values are too large together for the table.' : 'The table cannot compute its values of these.');
	}
};

subtest 'all else' => sub {
	happens(@$_) for @others;
};

is(join(' ', grep { !$happened{$_} && !$never{$_} } sort keys %row), '', 'all rows of the list have happened');
is(join(' ', grep { $happened{$_} } sort keys %never), '', 'but for those that cannot');
is($eve->call(POST => '/things', data => { type => 'things', attributes => { name => 'last' } })->{status}, 201, 'the table is as it was');

# -------- in what stands in a row --------

subtest 'rows and entries that have no room' => sub {
	my $post = sub {
		my ($type, $attributes) = @_;

		return in_short($eve->call(POST => "/$type", data => { type => $type, attributes => $attributes }));
	};
	my %wide = map { ("s$_" => 'fifteen letters') } 1 .. 700;
	my %wider = map { ("u$_" => sprintf '00000000-0000-4000-8000-%012d', $_) } 1 .. 600;
	my %some = map { $_ => $wide{$_} } grep { /^s[1-4]\d\d$/ } keys %wide;

	is($post->(wides => \%wide), '400 VALUE_TOO_LARGE /data', 'many short strings');
	is($post->(widers => \%wider), '400 VALUE_TOO_LARGE /data', 'many values of one width');
	is($post->(wides => { %some, long => noise(100_000) }), 201, 'one that is long is kept elsewhere');
	my $id = made(wides => \%some);
	is(in_short($eve->call(PATCH => "/wides/$id", data => { type => 'wides', id => $id, attributes => \%wide })), '400 VALUE_TOO_LARGE /data', 'a change');
	my $answer = $eve->call(POST => '/operations', json => { 'atomic:operations' => [
				map { { op => 'add', data => { type => 'wides', attributes => $_ } } } { s1 => 'a' }, \%wide, { s1 => 'b' } ] },
		headers => { 'Content-Type' => $atomic, Accept => $atomic });
	is(in_short($answer), '400 VALUE_TOO_LARGE /atomic:operations/1', 'the operation that it is');
	is($post->(longs => { a => noise(332), b => noise(332) }), 201, 'an index that the manifest may have has room for all');
	is($post->(longs => { map { $_ => join '', map { chr 0x20000 + int rand 40000 } 1 .. 332 } qw(a b) }), 201, 'whatever the characters');
};

# -------- code of the deployment's own --------

subtest 'code of the deployment' => sub {
	my $function = 'alter table app.thing add constraint mine check (theirs.raises(note) > 0) not valid';

	for my $sqlstate (sort(keys %row), qw(P0002 P0003 P0004 38000 2F005 PT402 XX000))
	{
		my ($on, $off) = $trigger->($sqlstate);
		my $refused = $sqlstate =~ /^23/;

		$cluster->psql($on);
		is(in_short($eve->call(POST => '/things', data => { type => 'things', attributes => { note => 'none' } })),
			$refused || $sqlstate eq 'P0001' ? '400 REFUSED_BY_TABLE /data' : '500 INTERNAL_ERROR none', "a trigger that raises $sqlstate");
		$cluster->psql("$off; $function");
		my $answer = $eve->call(POST => '/things', data => { type => 'things', attributes => { note => $sqlstate } });
		is(in_short($answer), $refused ? '400 REFUSED_BY_TABLE /data' : '500 INTERNAL_ERROR none', '... a function in a check');
		ok($answer->{json}{errors}[0]{id}, '... with an id') unless $refused;
		$cluster->psql('alter table app.thing drop constraint mine');
	}
};

# -------- a limit of the server's --------

# It has the SQLSTATE of what is too large.  Transaction ids have come to their
# end, and the oldest is a prepared transaction's, which keeps autovacuum from
# mending that.
subtest 'no more transactions' => sub {
	my $data = $cluster->data;

	is($shim->stop, 0, 'the shim has lived through all of it');
	$cluster->psql(q{begin; create table public.held (); prepare transaction 'held'});
	$cluster->stop('fast');
	my $control = EntityApi::Test::run([ EntityApi::Test::server_program('pg_controldata'), $data ], env => { LC_ALL => 'C' })->{out};
	my ($oldest) = $control =~ /oldestXID: +(\d+)/ or die $control;
	my $next = $oldest + 2**31 - 2_999_000;
	my $segment = sprintf "$data/pg_xact/%04X", $next / 2**20;

	open my $file, '>', $segment or die "$segment: $!\n";
	print {$file} "\0" x 2**18;
	close $file;
	EntityApi::Test::own($segment);
	my $reset = EntityApi::Test::run([ EntityApi::Test::server_program('pg_resetwal'), '-x', $next, $data ], service => 1);
	is($reset->{status}, 0, 'the last transaction is near') or diag $reset->{err};
	$cluster->start;
	is($cluster->psql(q{select public.sqlstate_of('create table public.mine ()')}), '54000', 'nobody gets another');
	my $answer = $cluster->try_psql(q{select status from entityapi.handle('POST', '/api/v1/things', '{"authorization": "Bearer } . $user->{accessToken}
		  . q{", "content-type": "application/vnd.api+json"}', convert_to('{"data": {"type": "things", "attributes": {"name": "x"}}}', 'UTF8'), '192.0.2.1')});
	unlike("$answer->{out}$answer->{err}", qr/^4/, 'which no client is at fault for') or diag $answer->{out};
};

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'and every backend');
done_testing();
