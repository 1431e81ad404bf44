# Columns of an application's tables whose values cross as texts: enumerations,
# char and citext, json, bytes, arrays, and types that the database alone knows;
# and the version that PostgreSQL has of each row.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical->allow_nonref;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my %documents;

sub declared
{
	my ($kind, $name, $spec) = @_;

	$documents{$name} = $spec;
	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

my $has_citext = $cluster->psql("select count(*) from pg_available_extensions where name = 'citext'");
$cluster->psql('create role shop_app login; create schema shop authorization shop_app; create schema tools; grant usage on schema tools to shop_app');
$cluster->psql('create extension citext schema tools') if $has_citext;
my $citext = $has_citext ? 'tools.citext' : 'text';
$cluster->psql(<<"SQL");
set role shop_app;
create type shop.mood as enum ('sad', 'ok', 'happy', 'a b''"c');
create type shop.pair as (a integer, b text);
create function shop.even(i integer) returns boolean language plpgsql as \$\$ begin
	if current_user <> 'shop_app' then raise exception 'as %', current_user; end if; return i % 2 = 0; end \$\$;
create domain shop.even_number as integer check (shop.even(value));
create type shop.of_even as (n shop.even_number);
create table shop.thing (id uuid primary key default gen_random_uuid(), name text unique not null,
	mood shop.mood, feeling shop.mood not null default 'ok', code char(5), word $citext unique, doc json, bin jsonb, kept jsonb not null default '{}', data bytea, tags text[], numbers integer[],
	net inet, span interval, pair shop.pair, evens shop.of_even, place point, clock timetz, mask bit(3), range int4range, days daterange);
create index on shop.thing (mood, id);
reset role;
SQL

my @all = qw(create read update delete history);
my %fields = (name => { type => 'text', required => $true, unique => $true }, mood => { type => 'string', enum => 'database' }, feeling => { type => 'string', enum => 'database', required => $true },
	code => { type => 'string' }, word => { type => 'text', unique => $true }, doc => { type => 'json' }, bin => { type => 'json' }, kept => { type => 'json', required => $true }, data => { type => 'binary' },
	tags => { type => 'json', readOnly => $true }, numbers => { type => 'json', readOnly => $true }, map { $_ => { type => 'native' } } qw(net span pair evens place clock mask range days));

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
declared(Entity => Thing => { table => 'shop.thing', optimisticLocking => $true, columns => { version => 'xmin' }, fields => \%fields, permissions => { Reader => ['read'], Editor => \@all } });

subtest 'faults' => sub {
	my $refused = sub { my ($name, $pattern, $document, $spec) = @_;
		my $was = $documents{$document};
		declared(Entity => $document => $spec);
		my $applied = $cluster->try_apply($folder);
		isnt($applied->{status}, 0, $name);
		like($applied->{err}, $pattern, "$name: says why");
		delete $documents{$document};
		$was ? declared(Entity => $document => $was) : unlink "$folder/$document.json" };
	my $field = sub { my ($field, $type) = @_;
		return (Thing => { %{ $documents{Thing} }, fields => { %fields, $field => $type } }) };

	$refused->('an array to be written', qr/tags\/type: an array can be read only/, $field->(tags => { type => 'json' }));
	$refused->('a native array', qr/tags\/type: the column's type _text cannot be native/, $field->(tags => { type => 'native' }));
	$refused->('no enumeration', qr/code\/enum: the column's type bpchar is no enumeration/, $field->(code => { type => 'string', enum => 'database' }));
	$refused->('labels by hand', qr/"mood" is shop\.mood and must be/, $field->(mood => { type => 'string', enum => ['sad'] }));
	$refused->('a default that is no label', qr/mood\/default: the enumeration mood has no such label/, $field->(mood => { type => 'string', enum => 'database', default => 'x' }));
	$refused->('a native default', qr/net\/default: goes with other types than native/, $field->(net => { type => 'native', default => '::1' }));
	$refused->('longer than the column', qr/the field may have 9 characters/, $field->(code => { type => 'string', maxLength => 9 }));
	$refused->("$_ of a made table", qr/type: "$_" goes with a table of an application/, Made => { fields => { x => { type => $_ } } }) for qw(binary native);
	$refused->('an enumeration of a made table', qr/enum: "database" goes with a string of a table of an application/, Made => { fields => { x => { type => 'string', enum => 'database' } } });
	$refused->('another word', qr/enum: must be a list, not string/, Made => { fields => { x => { type => 'string', enum => 'other' } } });
};

my $schema = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $schema->();
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($schema->(), $before, 'the schema is as it was');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $count = 0;

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub made { my %attributes = @_; return $ann->good(201, POST => '/things', data => { type => 'things', attributes => { name => 'n' . ++$count, %attributes } })->{json}{data} }
sub patch { my ($thing, $json, %headers) = @_; return $ann->call(PATCH => "/things/$thing->{id}", body => qq({"data":{"type":"things","id":"$thing->{id}","attributes":$json}}), headers => { 'If-Match' => '*', %headers }) }
sub stored { my ($expression, $id) = @_; return $cluster->psql("select $expression from shop.thing where id = '$id'") }
sub names { return join ' ', map { $_->{attributes}{name} } @{ $_[0]{json}{data} } }
sub shown { my ($answer, $field) = @_; return $encoder->encode($answer->{json}{data}{attributes}{$field}) }
sub literal { return join '', map { sprintf '%%%02X', ord } split //, "'" . ($_[0] =~ s/(['\\])/\\$1/gr) . "'" }

# name, field, what is sent, what is stored as text, what is shown, whether it can be asked for
my @values = (
	[ 'a label', mood => 'happy', 'happy', 'happy', 1 ],
	[ 'one with quotes', mood => q(a b'"c), q(a b'"c), q(a b'"c), 1 ],
	[ 'padded text', code => 'ab', 'ab', 'ab', 1 ],
	[ 'with spaces of its own', code => 'ab  ', 'ab', 'ab', 1 ],
	[ 'an address', net => '10.0.0.1', '10.0.0.1/32', '10.0.0.1', 1 ],
	[ 'spelled otherwise', net => '::FFFF', '::ffff/128', '::ffff', 1 ],
	[ 'a span of time', span => '1 day 02:00:00', '1 day 02:00:00', 'P1DT2H', 1 ],
	[ 'a row', pair => '(1,"a b")', '(1,"a b")', '(1,"a b")', 1 ],
	[ 'a row of a domain', evens => '(2)', '(2)', '(2)', 1 ],
	[ 'a point', place => '(1.5,2)', '(1.5,2)', '(1.5,2)', 0 ],
	[ 'a time of day', clock => '12:00:00+02', '12:00:00+02', '12:00:00+02', 1 ],
	[ 'bits', mask => '101', '101', '101', 1 ],
	[ 'a range', range => '[1,3]', '[1,4)', '[1,4)', 1 ],
	[ 'one of days', days => '[2026-01-01,2026-02-01)', '[2026-01-01,2026-02-01)', '[2026-01-01,2026-02-01)', 1 ],
	$has_citext ? [ 'a word', word => 'Strasse', 'Strasse', 'Strasse', 1 ] : (),
	[ 'json', doc => { b => [ 1, undef ], a => 'x' }, undef, { b => [ 1, undef ], a => 'x' }, 0 ],
	[ 'a json string', doc => 'x', '"x"', 'x', 0 ],
	[ 'bytes', data => 'AP/+', '\x00fffe', 'AP/+', 0 ],
	[ 'two bytes', data => 'AP8=', '\x00ff', 'AP8=', 0 ],
	[ 'no byte', data => '', '\x', '', 0 ],
);

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "values, direct ways $way" => sub {
		my $thing = made();
		is($thing->{attributes}{feeling}, 'ok', 'a default of the table');
		for my $value (@values)
		{
			my ($name, $field, $sent, $text, $shown, $asked) = @$value;

			$cluster->psql("update shop.thing set $field = null where id = '$thing->{id}'");
			my $answer = patch($thing, $encoder->encode({ $field => $sent }));
			is($answer->{status}, 200, "$name: written") or diag $answer->{body};
			is(shown($answer, $field), $encoder->encode($shown), "$name: answered");
			is(stored("$field\::text", $thing->{id}), $text, "$name: stored") if defined $text;
			is(shown($ann->call(GET => "/things/$thing->{id}"), $field), $encoder->encode($shown), "$name: read");
			is($cluster->psql("select (changes->'$field'->1)::jsonb from entityapi.audit where target_id = '$thing->{id}' and action = 'ENTITY_UPDATE' and changes->'$field' is not null order by at desc, id desc limit 1"),
				$cluster->psql("select '" . ($encoder->encode($shown) =~ s/'/''/gr) . "'::jsonb"), "$name: recorded");
			if ($asked)
			{
				my $literal = literal($sent);
				is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field==$literal")), $thing->{attributes}{name}, "$name: found");
				is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field=in=($literal)")), $thing->{attributes}{name}, "$name: found among some");
				is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field!=$literal")), '', "$name: and not otherwise");
				is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field=ge=$literal&sort=$field")), $thing->{attributes}{name}, "$name: in its order");
			}
			else
			{
				$ann->refused("$name: is not compared", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/things?filter=$field==x");
				$ann->refused("$name: is not sorted", 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "/things?sort=$field");
			}
			is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field=isnull=false")), $thing->{attributes}{name}, "$name: there is one");
			my $back = patch($thing, $encoder->encode({ $field => $shown }));
			is($back->{status}, 200, "$name: written back");
			is(stored("$field\::text", $thing->{id}), $text, "$name: as it was") if defined $text;
		}
		cmp_ok(scalar @{ $ann->good(200, GET => "/things/$thing->{id}/history?page[size]=100")->{json}{data} }, '>=', 5, 'a history');
		my $two = $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => [
			map { +{ op => 'add', data => { type => 'things', attributes => { name => "$way$_", mood => $_ % 2 ? 'sad' : 'happy', net => "10.0.0.$_", code => "$_", doc => [$_], $_ == 2 ? (feeling => 'sad') : () } } } } 1 .. 3 ] }));
		is($two->{status}, 200, 'several rows') or diag $two->{body};
		is($cluster->psql("select string_agg(concat_ws('/', name, mood, net, trim(code), doc, feeling), ' ' order by name) from shop.thing where name like '$way%'"),
			"${way}1/sad/10.0.0.1/1/[1]/ok ${way}2/happy/10.0.0.2/2/[2]/sad ${way}3/sad/10.0.0.3/3/[3]/ok", 'as they are stored');
		$ann->good(204, DELETE => "/things/$thing->{id}", headers => { 'If-Match' => '*' });
		is($cluster->psql("select changes->'span'->>0 from entityapi.audit where target_id = '$thing->{id}' and action = 'ENTITY_DELETE'"), 'P1DT2H', 'the record of its end');
	};
}

attack 'refusals' => sub {
	my $thing = made();
	for my $case ([ mood => 'glad' ], [ mood => 'HAPPY' ], [ net => '10.0.0.300' ], [ span => 'x' ], [ pair => '(1' ], [ evens => '(3)' ], [ range => '[3,1]' ], [ clock => '25:00' ], [ code => 'abcdef' ],
		[ data => 'AP8' ], [ data => 'AP_=' ], [ data => 'A===' ], [ net => 5 ], [ data => undef, 200 ], [ feeling => undef ])
	{
		my ($field, $value, $status) = @$case;

		if ($status)
		{
			is(patch($thing, $encoder->encode({ $field => $value }))->{status}, 200, "$field of null");
			next;
		}
		$ann->refused("$field of " . ($value // 'null'), 400, defined $value ? 'INVALID_VALUE' : 'REQUIRED', [ pointer => "/data/attributes/$field" ],
			PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { $field => $value } }, headers => { 'If-Match' => '*' });
	}
	is(patch($thing, '{"mask":"1"}')->{status}, 400, 'what the column does not take');
	$ann->refused('what is read only', 400, 'READ_ONLY', [ pointer => '/data/attributes/tags' ], PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { tags => ['a'] } }, headers => { 'If-Match' => '*' });
	for my $filter ('mood==glad', 'mood=in=(sad,glad)', 'net==x', 'evens==(3)' =~ s/\(3\)/'(3)'/r, 'mood=like=s', 'net=like=1', 'doc==x', 'tags==x')
	{
		my $answer = $ann->refused("filter $filter", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/things?filter=$filter");
	}
	my $answer = $ann->call(GET => '/things?filter=net==x');
	unlike($answer->{body}, qr/invalid input syntax/, 'no text of PostgreSQL to the client');
	like(EntityApi::Test::slurp($cluster->log), qr/a value of "net" is refused by its type: invalid input syntax for type inet/, 'but to the log');
	unlike(EntityApi::Test::slurp($cluster->log), qr/: as \w/, 'checks run as the role of the application');
};

attack 'order' => sub {
	$cluster->psql(q{delete from shop.thing; insert into shop.thing (name, mood, code, word, net, span, range) select i, (array['sad', 'ok', 'happy', null])[1 + i % 4]::shop.mood, chr(64 + i % 6) || i % 3, chr(97 + i % 5 - 32 * (i % 2)) || i,
		('10.0.' || i % 3 || '.' || i)::inet, i * interval '7 hours', int4range(i % 4, i + 1) from generate_series(1, 20) i});
	for my $sort (qw(mood code word net span range -mood -code -word -net), 'mood,-net', 'feeling,-code')
	{
		my $order = join ', ', map { my $key = $_; $key =~ s/^-// ? "$key desc" : $key } split /,/, $sort;
		my $wanted = $cluster->psql("set search_path = shop, tools; select string_agg(name, ' ' order by $order, id) from shop.thing");
		my ($next, @seen) = ("/api/v1/things?sort=$sort&page[after]=start&page[size]=3");
		while ($next && @seen < 30)
		{
			my $page = $ann->call(GET => $next);
			is($page->{status}, 200, 'a page') or diag($page->{body}), last;
			push @seen, map { $_->{attributes}{name} } @{ $page->{json}{data} };
			$next = $page->{json}{links}{next};
		}
		is("@seen", $wanted, "by cursors: $sort");
	}
	is(names($ann->good(200, GET => '/things?filter=mood=gt=sad&sort=-mood,name&page[totals]=true')), $cluster->psql(q{select string_agg(name, ' ' order by mood desc, name) from shop.thing where mood > 'sad'}), 'labels in their order');
	is(names($ann->good(200, GET => "/things?filter=net=lt=10.0.1.0&sort=name")), $cluster->psql(q{select string_agg(name, ' ' order by name) from shop.thing where net < '10.0.1.0'}), 'addresses in theirs');
	is(names($ann->good(200, GET => '/things?filter=code==A1&sort=name')), $cluster->psql(q{select string_agg(name, ' ' order by name) from shop.thing where code = 'A1'}), 'char without its padding');
	is(names($ann->good(200, GET => '/things?filter=code=like=A_&sort=name')), $cluster->psql(q{select string_agg(name, ' ' order by name) from shop.thing where code::text like 'A_'}), 'and so in patterns');
	my $cursor = $ann->call(GET => '/things?sort=mood&page[after]=start&page[size]=3')->{json}{links}{next};
	$cluster->psql(q{alter type shop.mood rename value 'happy' to 'glad'});
	is($ann->call(GET => $cursor)->{status} =~ /^(?:200|400)$/ ? 'fine' : 'not', 'fine', 'a cursor at a label that is gone');
	$cluster->psql(q{alter type shop.mood rename value 'glad' to 'happy'});
	$cluster->psql(q{alter type shop.mood add value 'blue' before 'sad'});
	my $thing = made(mood => 'blue');
	is($thing->{attributes}{mood}, 'blue', 'a label that has come is known at once');
	is((split / /, names($ann->good(200, GET => '/things?filter=mood=isnull=false&sort=mood')))[0], $thing->{attributes}{name}, 'and is the first');
	$cluster->psql(q{alter type shop.mood rename value 'blue' to 'navy'});
	is($ann->call(GET => "/things/$thing->{id}")->{json}{data}{attributes}{mood}, 'navy', 'so is a new name');
	$ann->refused('the old one', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/things?filter=mood==blue');
};

attack 'citext' => sub {
	plan skip_all => 'there is no citext' if !$has_citext;
	my $thing = made(word => 'Word');
	is(names($ann->good(200, GET => "/things?filter=word==$_")), $thing->{attributes}{name}, "found by $_") for qw(word WORD Word);
	is(names($ann->good(200, GET => '/things?filter=word=in=(x,WORD)')), $thing->{attributes}{name}, 'among some');
	is(names($ann->good(200, GET => '/things?filter=word=like=WO%25')), $thing->{attributes}{name}, 'by a pattern');
	$ann->refused('unique without its case', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/word' ], POST => '/things', data => { type => 'things', attributes => { name => 'other', word => 'WORD' } });
	for my $case ([ "#record.word == 'wORD'", 1 ], [ "#record.word in {'x', 'WORD'}", 1 ], [ "#record.word.startsWith('WO')", 1 ], [ "#record.word.contains('OR')", 1 ], [ "#record.word == 'wor'", 0 ], [ "#record.code == 'k '", 2 ], [ "#record.mood in {'sad', 'none'}", 2 ])
	{
		my ($expression, $wanted) = @$case;

		patch($thing, '{"code":"k","mood":"sad"}');
		declared(Policy => Shown => { expression => $expression });
		declared(Entity => Thing => { %{ $documents{Thing} }, policies => { Shown => ['read'] } });
		$cluster->apply($folder);
		is($ann->call(GET => "/things/$thing->{id}")->{status}, $wanted ? 200 : 404, $expression);
		my $input = $expression =~ s/#record/#input/r;
		declared(Policy => Shown => { expression => $input });
		declared(Entity => Thing => { %{ $documents{Thing} }, policies => { Shown => ['create'] } });
		$cluster->apply($folder);
		# where it holds, the word is taken
		is($ann->call(POST => '/things', data => { type => 'things', attributes => { name => 'p' . ++$count, word => $wanted == 2 ? "w$count" : 'Word', code => 'k', mood => 'sad' } })->{status}, (403, 409, 201)[$wanted], $input);
	}
	delete $documents{Thing}{policies};
	declared(Entity => Thing => $documents{Thing});
	unlink "$folder/Shown.json";
	$cluster->apply($folder);
};

attack 'json, bytes and arrays' => sub {
	my $thing = made();
	$cluster->psql(qq{update shop.thing set doc = '  null', bin = 'null', tags = '{a,null,"b c"}', numbers = '{1,2}', data = '\\x01' where id = '$thing->{id}'});
	my $answer = $ann->good(200, GET => "/things/$thing->{id}");
	is_deeply($answer->{json}{data}{attributes}{tags}, [ 'a', undef, 'b c' ], 'an array');
	is_deeply($answer->{json}{data}{attributes}{numbers}, [ 1, 2 ], 'of numbers');
	is($answer->{json}{data}{attributes}{doc}, undef, 'a JSON null is null');
	is(patch($thing, '{"doc":null,"bin":null}')->{status}, 200, 'sent back');
	is(stored('doc::text || bin::text', $thing->{id}), '  nullnull', 'it stays');
	is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};doc=isnull=true")), '', 'and is none of SQL\'s');
	is(patch($thing, '{"doc":{"a":1},"bin":{"a":1}}')->{status}, 200, 'another');
	is(patch($thing, '{"doc":null,"bin":null}')->{status}, 200, 'and null');
	is(stored('doc is null and bin is null', $thing->{id}), 't', 'is SQL\'s null');
	is($answer->{json}{data}{attributes}{data}, 'AQ==', 'bytes of one');
	$ann->refused('null of what is required', 400, 'REQUIRED', [ pointer => '/data/attributes/kept' ], PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { kept => undef } }, headers => { 'If-Match' => '*' });
	$cluster->psql("update shop.thing set kept = 'null' where id = '$thing->{id}'");
	is(patch($thing, '{"kept":null}')->{status}, 200, 'but for a JSON null that is there');
	ok(!exists $ann->good(200, GET => "/things?filter=id==$thing->{id}")->{json}{data}[0]{attributes}{data}, 'lists leave them out');
	is($ann->good(200, GET => "/things?filter=id==$thing->{id}&fields[things]=data,name")->{json}{data}[0]{attributes}{data}, 'AQ==', 'unless they are named');
	$ann->refused('an array is not compared', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/things?filter=tags==a');
};

attack 'the version of PostgreSQL' => sub {
	my $thing = made();
	my $one = $ann->good(200, GET => "/things/$thing->{id}");
	my $etag = $one->{headers}{etag};
	is($etag, '"' . stored('xmin', $thing->{id}) . '"', 'the version of the row');
	is($thing->{meta}{version}, stored('xmin', $thing->{id}), 'in the answer of its creation, too');
	is($cluster->psql("select version from entityapi.audit where target_id = '$thing->{id}' and action = 'ENTITY_CREATE'"), stored('xmin', $thing->{id}), 'and in its record');
	is($ann->call(GET => "/things/$thing->{id}?fields[things]=name", headers => { 'If-None-Match' => $etag })->{status}, 200, 'shown again, as no column tells of the last write');
	is($ann->call(PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { code => 'x' } })->{status}, 428, 'a version is needed');
	my $answer = patch($thing, '{"code":"x"}', 'If-Match' => $etag);
	is($answer->{status}, 200, 'this one');
	is($answer->{headers}{etag}, '"' . stored('xmin', $thing->{id}) . '"', 'the answer has the next');
	is($cluster->psql("select version from entityapi.audit where target_id = '$thing->{id}' and action = 'ENTITY_UPDATE' and outcome = 'SUCCESS'"), stored('xmin', $thing->{id}), 'and so has the record');
	is(patch($thing, '{"code":"y"}', 'If-Match' => $etag)->{status}, 412, 'once');
	$etag = $answer->{headers}{etag};
	$cluster->psql("update shop.thing set code = 'sql' where id = '$thing->{id}'");
	is(patch($thing, '{"code":"y"}', 'If-Match' => $etag)->{status}, 412, 'others are seen');
	is($ann->call(DELETE => "/things/$thing->{id}", headers => { 'If-Match' => $etag })->{status}, 412, 'also by a deletion');
	$etag = $ann->good(200, GET => "/things/$thing->{id}")->{headers}{etag};
	$cluster->psql('vacuum freeze shop.thing');
	is($ann->good(200, GET => "/things/$thing->{id}")->{headers}{etag}, $etag, 'a vacuum leaves it');
	$cluster->psql("begin; select from shop.thing where id = '$thing->{id}' for update; commit");
	is($ann->call(DELETE => "/things/$thing->{id}", headers => { 'If-Match' => $etag })->{status}, 204, 'so does a lock');
};

# What is found by introspect is what is applied
attack 'as introspect writes them' => sub {
	my $found = "$folder/found";
	my $program = EntityApi::Test::private_program('entityapi-shim');
	my $run = EntityApi::Test::run([ $program, 'introspect', '--database', $cluster->conninfo, '--schema', 'shop', $found ]);
	is($run->{status}, 0, 'introspect') or diag $run->{err};
	like($run->{out}, qr/^1 of 1 tables, 100 % of columns$/m, 'finds all of them') or diag $run->{out};
	my $taken = $cluster->try_apply($found);
	unlike($taken->{err}, qr{/spec/(?:fields|table|columns)}, 'without a fault of a column') or diag $taken->{err};
};

$shim->stop;
done_testing;
