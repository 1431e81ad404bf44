# All that the API does with entities, on tables of an application; without the
# rights of the service, and with all ways of reading and writing.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

# Owned by one role, served as another, which has what it needs
$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web login;
create role anybody login;
create schema "The Shop" authorization shop_owner;
grant usage on schema "The Shop" to shop_web;
set role shop_owner;
create table "The Shop"."Person" (person_id uuid primary key default gen_random_uuid(), "Full Name" varchar(100) not null, email varchar(100),
	age integer, balance numeric(12,2), "visits" bigint, born date, seen timestamptz, alive boolean, more jsonb, secret text default 'secret',
	lock bigint not null default 0, gone timestamptz, gone_id uuid, made timestamptz not null default now(), changed timestamptz,
	boss uuid references "The Shop"."Person" deferrable);
create unique index on "The Shop"."Person" (email) where gone is null;
create index on "The Shop"."Person" (gone) where gone is not null;
create index on "The Shop"."Person" ("Full Name", person_id);
create index on "The Shop"."Person" (boss);
create table "The Shop"."Pet" (id uuid primary key default gen_random_uuid(), name text, gone timestamptz, gone_id uuid,
	person uuid not null references "The Shop"."Person" deferrable initially deferred);
create index on "The Shop"."Pet" (person);
create index on "The Shop"."Pet" (gone) where gone is not null;
create table "The Shop"."Toy" (id uuid primary key default gen_random_uuid(), no serial, name text, pet uuid references "The Shop"."Pet" deferrable);
create index on "The Shop"."Toy" (pet);
grant select (person_id, "Full Name", email, age, balance, visits, born, seen, alive, more, lock, gone, gone_id, made, changed, boss),
	insert (person_id, "Full Name", email, age, balance, visits, born, seen, alive, more, lock, gone, gone_id, made, changed, boss),
	update (person_id, "Full Name", email, age, balance, visits, born, seen, alive, more, lock, gone, gone_id, made, changed, boss), delete on "The Shop"."Person" to shop_web;
grant select, insert, update, delete on "The Shop"."Pet", "The Shop"."Toy" to shop_web;
create table "The Shop"."Note" (id uuid primary key default gen_random_uuid(), whose text, words varchar(100));
create index on "The Shop"."Note" (words);
alter table "The Shop"."Note" enable row level security;
create policy own on "The Shop"."Note" to shop_web using (whose = current_setting('app.user', true)) with check (whose = current_setting('app.user', true));
grant select, insert, update, delete on "The Shop"."Note" to shop_web;
reset role;
SQL

my @all = qw(create read update delete history);
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['The Shop'], settings => { 'app.user' => '#user.username' } } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
my %person = (table => '"The Shop"."Person"', optimisticLocking => $true, softDelete => $true, purgeAfterDays => 1, system => [qw(createdAt updatedAt)],
	columns => { id => 'person_id', name => 'Full Name', version => 'lock', deletedAt => 'gone', deletionId => 'gone_id', createdAt => 'made', updatedAt => 'changed', boss => 'boss' },
	fields => { name => { type => 'string', maxLength => 100, required => $true }, email => { type => 'string', maxLength => 100, unique => $true }, age => { type => 'integer' },
		balance => { type => 'decimal', precision => 12, scale => 2 }, visits => { type => 'long' }, born => { type => 'date' }, seen => { type => 'datetime' },
		alive => { type => 'boolean' }, more => { type => 'json' }, boss => { type => 'ref', target => 'Person', onDelete => 'setNull' },
		staff => { type => 'ref', target => 'Person', relation => 'OneToMany', mappedBy => 'boss' },
		pets => { type => 'ref', target => 'Pet', relation => 'OneToMany', mappedBy => 'person' } },
	permissions => { Reader => ['read'], Editor => [ @all, 'restore' ] },
	policies => [] );
delete $person{policies};
declared(Entity => Person => \%person);
declared(Entity => Pet => { table => '"The Shop"."Pet"', softDelete => $true, purgeAfterDays => 1, columns => { deletedAt => 'gone', deletionId => 'gone_id', person => 'person' },
	fields => { name => { type => 'text' }, person => { type => 'ref', target => 'Person', required => $true, onDelete => 'cascade' },
		toys => { type => 'ref', target => 'Toy', relation => 'OneToMany', mappedBy => 'pet' } },
	permissions => { Reader => ['read'], Editor => [ @all, 'restore' ] } });
declared(Entity => Toy => { table => '"The Shop"."Toy"', columns => { pet => 'pet' },
	fields => { no => { type => 'integer', readOnly => $true }, name => { type => 'text' }, pet => { type => 'ref', target => 'Pet', onDelete => 'setNull' } },
	permissions => { Reader => ['read'], Editor => \@all } });
my %note = (table => '"The Shop"."Note"', rowSecurity => $true, fields => { whose => { type => 'text' }, words => { type => 'string', maxLength => 100, index => $true } },
	permissions => { Reader => [qw(create read update delete)], Editor => \@all });
declared(Entity => Note => \%note);
declared(Entity => Tag => { fields => { name => { type => 'string' } }, permissions => { Reader => ['read'], Editor => \@all } });

my $schemas = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -n '"The Shop"' -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $schemas->();
my $applied = $cluster->try_apply($folder);
like($applied->{err}, qr/shop_web may not use the sequence "The Shop"\."Toy_no_seq".*GRANT USAGE ON SEQUENCE "The Shop"\."Toy_no_seq" TO shop_web/s, 'the sequence is asked for') or diag $applied->{err};
$cluster->psql('set role shop_owner; grant usage on sequence "The Shop"."Toy_no_seq" to shop_web');
$before = $schemas->();
$applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($schemas->(), $before, 'the schema is as it was, with its rights');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $bob = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'bob', ['Reader']), '/api/v1');

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub to { return { data => ref $_[0] eq 'ARRAY' ? [ map { { type => $_->{type}, id => $_->{id} } } @{ $_[0] } ] : $_[0] ? { type => $_[0]{type}, id => $_[0]{id} } : undef } }
sub made { my ($type, $attributes, $relationships) = @_; return $ann->good(201, POST => "/$type", data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data} }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub names { return join ' ', map { $_->{attributes}{name} } @{ $_[0]{json}{data} } }

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "all of it, direct ways $way" => sub {
		$cluster->psql('truncate "The Shop"."Person" cascade');
		my $boss = made(people => { name => 'Boss', email => 'boss@x', age => 50, balance => 12.5, visits => 7, born => '1970-01-02', seen => '2026-01-02T03:04:05Z', alive => $true, more => { a => [1] } });
		is_deeply($boss->{attributes}{more}, { a => [1] }, 'made');
		ok($boss->{attributes}{createdAt} // $boss->{meta}{createdAt}, 'with its time') or diag explain $boss;
		my @staff = map { made(people => { name => "S$_", email => "s$_\@x", age => $_ }, { boss => to($boss) }) } 1 .. 5;
		my @pets = map { made(pets => { name => "P$_" }, { person => to($staff[0]) }) } 1 .. 3;
		my @toys = map { made(toys => { name => "T$_" }, { pet => to($pets[0]) }) } 1 .. 3;
		like(join(' ', map { $_->{attributes}{no} } @toys), qr/^\d+ \d+ \d+$/, 'numbers of the sequence');

		is(names($ann->good(200, GET => '/people?filter=age=gt=2;boss.name==Boss&sort=-age&page[totals]=true')), 'S5 S4 S3', 'a filter over a path');
		is(names($ann->good(200, GET => '/people?filter=pets.toys.name==T2')), 'S1', 'over two to-many');
		is(names($ann->good(200, GET => '/people?filter=name=in=(S1,S4),email==s2@x&sort=name')), 'S1 S2 S4', '=in= and =');
		is(names($ann->good(200, GET => '/people?filter=name=like=S%25&sort=boss.name,-name')), 'S5 S4 S3 S2 S1', 'like, sorted over a path');
		is(names($ann->good(200, GET => '/people?filter=boss=isnull=true')), 'Boss', 'null');
		for my $filter ('balance==12.5', 'visits==7', 'born==1970-01-02', 'seen==2026-01-02T03:04:05Z', 'alive==true', "id==$boss->{id}")
		{
			is(names($ann->good(200, GET => "/people?filter=$filter&page[totals]=true")), 'Boss', $filter);
		}
		is($ann->good(200, GET => '/people')->{json}{meta}{pagination}{totalRecords} // $ann->good(200, GET => '/people')->{json}{meta}{page}{total} // 'none', 6, 'counted');
		my @seen;
		my $next = '/api/v1/people?sort=name&page[after]=start&page[size]=2';
		while ($next && @seen < 10)
		{
			my $page = $ann->call(GET => $next);
			is($page->{status}, 200, 'a page') or last;
			push @seen, map { $_->{attributes}{name} } @{ $page->{json}{data} };
			$next = $page->{json}{links}{next};
		}
		is("@seen", 'Boss S1 S2 S3 S4 S5', 'by cursors');
		is(join(' ', sort map { $_->{attributes}{name} } @{ $ann->good(200, GET => "/people/$boss->{id}?include=staff.pets.toys")->{json}{included} }), 'P1 P2 P3 S1 S2 S3 S4 S5 T1 T2 T3', 'included');
		is(names($ann->good(200, GET => "/people/$boss->{id}/staff?sort=-name&page[size]=2")), 'S5 S4', 'related');
		is(scalar @{ $ann->good(200, GET => "/people/$staff[0]{id}/relationships/pets")->{json}{data} }, 3, 'linkage');
		is($ann->good(200, GET => "/toys/$toys[0]{id}/pet")->{json}{data}{id}, $pets[0]{id}, 'related to one');

		is($ann->call(PATCH => "/toys/$toys[0]{id}/relationships/pet", json => to($pets[1]))->{status}, 204, 'another target') or diag 'PATCH';
		is($ann->call(PATCH => "/pets/$pets[2]{id}/relationships/toys", json => to([ @toys[0, 1] ]))->{status}, 204, 'members replaced');
		is($ann->call(DELETE => "/pets/$pets[2]{id}/relationships/toys", json => to([ $toys[0] ]))->{status}, 204, 'one taken away');
		is($ann->call(POST => "/pets/$pets[2]{id}/relationships/toys", json => to([ $toys[2] ]))->{status}, 204, 'one added');
		is($cluster->psql(qq{select string_agg(name, ' ' order by name) from "The Shop"."Toy" where pet = '$pets[2]{id}'}), 'T2 T3', 'as it is in the table');
		is($ann->call(PATCH => "/toys/$toys[0]{id}/relationships/pet", json => { data => undef })->{status}, 204, 'none');
		$ann->refused('no such target', 404, undef, undef, PATCH => "/toys/$toys[0]{id}/relationships/pet", json => to({ type => 'pets', id => $boss->{id} }));

		my $one = $ann->good(200, GET => "/people/$staff[1]{id}?fields[people]=name,age");
		is($ann->call(GET => "/people/$staff[1]{id}?fields[people]=name,age", headers => { 'If-None-Match' => $one->{headers}{etag} })->{status}, 304, 'not modified');
		my $data = { type => 'people', id => $staff[1]{id}, attributes => { age => 22 } };
		is($ann->call(PATCH => "/people/$staff[1]{id}", data => $data, headers => { 'If-Match' => '"77"' })->{status}, 412, 'another version');
		is($ann->call(PATCH => "/people/$staff[1]{id}", data => $data, headers => { 'If-Match' => $one->{headers}{etag} })->{json}{data}{attributes}{age}, 22, 'this one');
		is($ann->call(PATCH => "/people/$staff[1]{id}", data => $data, headers => { 'If-Match' => $one->{headers}{etag} })->{status}, 412, 'once');
		$ann->refused('unique', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/email' ], POST => '/people', data => { type => 'people', attributes => { name => 'x', email => 's1@x' } });
		$ann->refused('no such target', 404, undef, undef, POST => '/pets', data => { type => 'pets', attributes => {}, relationships => { person => to({ type => 'people', id => $pets[0]{id} }) } });

		my $batch = batch(
			{ op => 'add', data => { type => 'people', lid => 'n', attributes => { name => 'New' } } },
			{ op => 'add', data => { type => 'pets', lid => 'p', attributes => { name => 'Q' }, relationships => { person => { data => { type => 'people', lid => 'n' } } } } },
			{ op => 'add', data => { type => 'tags', lid => 't', attributes => { name => 'tag' } } },
			{ op => 'add', data => { type => 'toys', attributes => { name => 'U' }, relationships => { pet => { data => { type => 'pets', lid => 'p' } } } } },
			{ op => 'update', ref => { type => 'people', id => $staff[2]{id} }, data => { type => 'people', id => $staff[2]{id}, attributes => { age => 33 } } },
			{ op => 'remove', ref => { type => 'toys', id => $toys[1]{id} } });
		is($batch->{status}, 200, 'several operations, with local ids') or diag $batch->{body};

		my @later = ({ op => 'add', data => { type => 'pets', lid => 'p', attributes => { name => 'Early' } } },
			{ op => 'add', data => { type => 'tags', attributes => { name => 'between' } } },
			{ op => 'add', data => { type => 'people', lid => 'n', attributes => { name => 'Late' } } },
			{ op => 'update', ref => { type => 'pets', lid => 'p', relationship => 'person' }, data => { type => 'people', lid => 'n' } });
		is(batch(@later)->{status}, 200, 'a reference to what comes later');
		is($cluster->psql(q{select n."Full Name" from "The Shop"."Pet" p join "The Shop"."Person" n on n.person_id = p.person where p.name = 'Early'}), 'Late', 'as it is in the table');
		is(batch(@later[0, 1])->{status}, 400, 'and to nothing');

		my $time = do { select undef, undef, undef, 0.01; $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')}) };
		is($ann->call(PATCH => "/toys/$toys[2]{id}", data => { type => 'toys', id => $toys[2]{id}, attributes => { name => 'later' } })->{status}, 200, 'changed');
		is($ann->call(DELETE => "/people/$staff[0]{id}", headers => { 'If-Match' => '*' })->{status}, 204, 'deleted softly');
		is($ann->call(GET => "/people/$staff[0]{id}")->{status}, 404, 'it is hidden');
		is($ann->call(GET => "/pets/$pets[0]{id}")->{status}, 404, 'with what goes along');
		my $history = $ann->call(GET => "/people/$staff[0]{id}/history");
		is($history->{status}, 200, 'its history') or diag $history->{body};
		my $then = $ann->call(GET => "/toys/$toys[2]{id}?asOf=$time");
		like($then->{status}, qr/^(?:200|410)$/, 'as of then') or diag $then->{body};
		is($then->{json}{data}{attributes}{name}, 'T3', 'what it was') if $then->{status} == 200;
		is($ann->call(GET => "/toys/$toys[2]{id}/history?asOf=$time")->{status} =~ /^(?:200|410)$/ ? 1 : 0, 1, 'its history as of then');
		is($ann->call(POST => "/people/$staff[0]{id}/restore")->{status}, 200, 'restored');
		is($ann->call(GET => "/pets/$pets[0]{id}")->{status}, 200, 'with what went along');
		is($ann->call(DELETE => "/people/$staff[0]{id}", headers => { 'If-Match' => '*' })->{status}, 204, 'deleted again');
		$cluster->psql(qq{update "The Shop"."$_" set gone = gone - interval '3 days' where gone is not null}) for qw(Person Pet);
		$cluster->psql('select entityapi.sweep()') for 1 .. 3;
		is($cluster->psql(qq{select count(*) from "The Shop"."Person" where person_id = '$staff[0]{id}'}), 0, 'swept');
		is($cluster->psql(qq{select count(*) from "The Shop"."Pet" where person = '$staff[0]{id}'}), 0, 'with its pets');
		is($cluster->psql(q{select count(*) from "The Shop"."Toy" where pet is null and name <> 'T1'}), 1, 'whose toys are nobody\'s');
		is($ann->call(DELETE => "/people/$boss->{id}", headers => { 'If-Match' => '*' })->{status}, 204, 'the boss goes');
		is(names($ann->good(200, GET => '/people?filter=boss=isnull=false')), '', 'and is nobody\'s boss');
		is($ann->call(GET => "/toys/aggregates?count=true")->{status} == 500 ? 500 : 'no 500', 'no 500', 'other routes');
		is(scalar(grep { $ann->call(GET => $_)->{status} == 500 } '/people?fields[people]=name', '/people?include=pets,boss', '/pets?filter=person.boss.name==Boss', "/people/$boss->{id}/staff", '/people?page[number]=2&page[size]=3', '/people?sort=id'), 0, 'nor elsewhere');
		is($bob->call(POST => '/toys', data => { type => 'toys', attributes => {} })->{status}, 403, 'permissions hold');
	};
}
my $description = $ann->call(GET => '/api/v1/openapi.json');
$description = $shim->http(GET => '/api/v1/openapi.json') if $description->{status} != 200;
like($description->{body}, qr/"Person|people/, 'the description has them') if $description->{status} == 200;

unlike(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed/, 'no request failed for a reason of ours')
  or diag join "\n", EntityApi::Test::slurp($cluster->log) =~ /(.*entityapi request \S+ failed.*)/g;
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'nothing has drifted');

attack 'row security by the caller' => sub {
	my $add = sub { my ($who, $whose, $words) = @_; return $who->call(POST => '/notes', data => { type => 'notes', attributes => { whose => $whose, words => $words } }) };

	my $note = $add->($ann, 'ann', 'secret');
	is($note->{status}, 201, 'made') or diag $note->{body};
	is($add->($bob, 'ann', 'x')->{status}, 403, 'nobody makes one of another');
	is($add->($bob, 'bob', 'mine')->{status}, 201, 'his own');
	my $id = $note->{json}{data}{id};
	for my $way ('on', 'off')
	{
		$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
		is($bob->call(GET => "/notes/$id")->{status}, 404, 'of others he reads none');
		is(scalar(grep { $_->{attributes}{whose} ne 'bob' } @{ $bob->good(200, GET => '/notes?sort=words')->{json}{data} }), 0, 'nor lists');
		is($bob->call(GET => '/notes?filter=words==secret&page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 0, 'nor counts');
		is($bob->call(GET => '/notes?filter=words=like=s%25')->{json}{meta}{pagination}{totalRecords} // 0, 0, 'by a beginning');
		is($bob->call(PATCH => "/notes/$id", data => { type => 'notes', id => $id, attributes => { words => 'y' } })->{status}, 404, 'nor changes');
		is($bob->call(DELETE => "/notes/$id")->{status}, 404, 'nor deletes');
		is($cluster->psql(qq{select words from "The Shop"."Note" where id = '$id'}), 'secret', 'it is as it was');
		is($ann->call(GET => "/notes/$id")->{status}, 200, 'its owner reads it');
		is($ann->call(GET => '/notes?page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 1, 'and counts one');
		is($ann->call(PATCH => "/notes/$id", data => { type => 'notes', id => $id, attributes => { words => 'secret' } })->{status}, 200, 'and changes it');
	}
};

attack 'a reader by SQL' => sub {
	$cluster->psql('grant entityapi_reader to anybody');
	for my $table (qw(Person Pet Toy Note))
	{
		like($cluster->try_psql(qq{select * from "The Shop"."$table"}, user => 'anybody')->{err}, qr/permission denied/, "$table is nothing for him");
	}
};

attack 'plans' => sub {
	my $principal = $encoder->encode({ kind => 'USER', tenantId => $tenant, userId => $cluster->psql(q{select id from entityapi.account where username = 'ann'}), roles => ['Editor'] });
	$cluster->psql('create role deployer login; grant entityapi_owner to deployer');
	my $sql = sub { return $cluster->try_psql("select * from entityapi.explain('GET', '$_[0]', '$principal')", user => $_[1]) };
	unlike($sql->('/api/v1/people', 'deployer')->{out}, qr/Person|Scan/, 'no plans for others');
	like($sql->('/api/v1/people', 'postgres')->{out} . $sql->('/api/v1/people', 'postgres')->{err}, qr/Person/, 'a superuser sees them');
};

attack 'an application that changes while requests run' => sub {
	my @statuses;
	for my $change ('alter table "The Shop"."Toy" add more text', 'alter table "The Shop"."Toy" drop more', 'alter table "The Shop"."Toy" rename name to title',
		'alter table "The Shop"."Toy" rename title to name', 'alter table "The Shop"."Toy" alter name type varchar(200)', 'alter table "The Shop"."Toy" alter name type text',
		'alter table "The Shop"."Toy" drop no', 'alter table "The Shop"."Toy" add no serial', 'alter table "The Shop"."Toy" alter no type bigint', 'alter table "The Shop"."Toy" alter no type integer',
		'alter table "The Shop"."Toy" rename name to a; alter table "The Shop"."Toy" add name text default \'other\'', 'alter table "The Shop"."Toy" drop a')
	{
		$cluster->psql("set role shop_owner; $change; grant usage on all sequences in schema \"The Shop\" to shop_web");
		my $answer = $ann->call(POST => '/toys', data => { type => 'toys', attributes => { name => 'new' } });
		if ($answer->{status} == 201)
		{
			my $id = $answer->{json}{data}{id};
			is($answer->{json}{data}{attributes}{name}, 'new', "$change: made");
			is($ann->call(GET => "/toys/$id")->{json}{data}{attributes}{name}, 'new', 'and read');
			is($cluster->psql(qq{select name from "The Shop"."Toy" where id = '$id'}), 'new', 'as it is in the table');
			is($ann->call(PATCH => "/toys/$id", data => { type => 'toys', id => $id, attributes => { name => 'newer' } })->{json}{data}{attributes}{name}, 'newer', 'and changed');
		}
		else { is($answer->{status}, 500, "$change: refused"); }
	}
};

attack 'rights by other roles' => sub {
	my $toy = made(toys => { name => 'one' });
	my $reads = sub { return join ' ', map { $ann->call(GET => $_)->{status} } "/toys/$toy->{id}", '/toys', '/toys?page[totals]=true' };
	is($reads->(), '200 200 200', 'read');
	$cluster->psql('create role writers; grant insert on "The Shop"."Toy" to writers; grant writers to entityapi_owner');
	is($reads->(), '500 500 500', 'a right of the service by another role');
	$cluster->psql('revoke writers from entityapi_owner');
	is($reads->(), '200 200 200', 'and not any more');
	$cluster->psql('create role above; grant writers to above; grant above to entityapi_owner');
	is($reads->(), '500 500 500', 'by one above it');
	$cluster->psql('revoke writers from above');
	is($reads->(), '200 200 200', 'and not any more');

	$cluster->psql('alter role shop_web bypassrls; alter table "The Shop"."Toy" enable row level security');
	is($reads->(), '200 200 200', 'row-level security that does not bind');
	$cluster->psql('alter role shop_web nobypassrls');
	is($reads->(), '500 500 500', 'until it does');
	$cluster->psql('grant shop_owner to shop_web');
	is($reads->(), '200 200 200', 'but not a member of the owner');
	$cluster->psql('revoke shop_owner from shop_web');
	is($reads->(), '500 500 500', 'who is none any more');
	$cluster->psql('alter table "The Shop"."Toy" disable row level security');
	is($reads->(), '200 200 200', 'mended');
};

attack 'a column that the role may not read' => sub {
	my $spec = { %person, columns => { %{ $person{columns} }, secret => 'secret' }, fields => { %{ $person{fields} }, secret => { type => 'text' } } };
	declared(Entity => Person => $spec);
	like($cluster->try_apply($folder)->{err}, qr/shop_web may not do what "read" takes/, 'is refused');
	declared(Entity => Person => \%person);
	$cluster->psql('revoke select (age) on "The Shop"."Person" from shop_web');
	is(join(' ', map { $ann->call(GET => $_)->{status} } '/people', '/people?filter=age==1&page[totals]=true'), '500 500', 'taken away later, nothing is read');
	$cluster->psql('grant select (age) on "The Shop"."Person" to shop_web');
	is(join(' ', map { $ann->call(GET => $_)->{status} } '/people', '/people?filter=age==1&page[totals]=true'), '200 200', 'and again');
};

attack 'memory of a session' => sub {
	my @written = map { made($_ => { name => 'm' }) } qw(tags toys);
	my $used = sub { my $all = 0; $all += (EntityApi::Test::slurp("/proc/$_/status") =~ /RssAnon:\s+(\d+)/)[0] for split ' ', $cluster->psql(q{select string_agg(pid::text, ' ') from pg_stat_activity where usename = 'entityapi_shim'}); return $all };
	my %grown;
	for my $data (@written)
	{
		my $before;
		for my $n (500, 1000, 1000)
		{
			$before = $used->();
			$ann->call(PATCH => "/$data->{type}/$data->{id}", data => { type => $data->{type}, id => $data->{id}, attributes => { name => "m$_" } }) for 1 .. $n;
			push @{ $grown{ $data->{type} } }, $used->() - $before;
		}
	}
	diag "tags @{ $grown{tags} }, toys @{ $grown{toys} } kB";
	cmp_ok($grown{toys}[2], '<', 100 + $grown{tags}[2], 'flat over many writes');
};

attack 'entities that go' => sub {
	my $schema = $schemas->();
	my $rows = $cluster->psql('select count(*) from "The Shop"."Toy"');
	unlink "$folder/Toy.json";
	declared(Entity => Pet => { table => '"The Shop"."Pet"', softDelete => $true, purgeAfterDays => 1, columns => { title => 'name', deletedAt => 'gone', deletionId => 'gone_id', person => 'person' },
		fields => { title => { type => 'text' }, person => { type => 'ref', target => 'Person', required => $true, onDelete => 'cascade' } },
		permissions => { Reader => ['read'], Editor => [ @all, 'restore' ] } });
	my $result = $cluster->try_apply($folder);
	unlike($result->{err}, qr/CONSTRAINT|ALTER TABLE/, 'no statement on their tables') or diag $result->{err};
	unlink map { "$folder/$_.json" } qw(Pet Person Note);
	EntityApi::Test::write_file("$folder/service.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'service' }, spec => { tenancy => 'SINGLE' } }));
	$result = $cluster->try_apply($folder);
	is($result->{status}, 0, 'all of them go') or diag $result->{err};
	is($schemas->(), $schema, 'the schema is as it was, with its rights');
	is($cluster->psql('select count(*) from "The Shop"."Toy"'), $rows, 'so are its rows');
	is($cluster->psql('select count(*) from entityapi.application'), 0, 'nothing is kept of the role');
	is($ann->call(POST => '/tags', data => { type => 'tags', attributes => { name => 'x' } })->{status}, 201, 'made tables go on');
};

$shim->stop;
done_testing;
