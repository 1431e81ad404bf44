# What others put on tables of entities, and on join tables: constraints,
# indexes and triggers.  Whatever they are called, they answer as those that the
# service made, on made tables and on existing ones alike.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

sub declared
{
	my ($name, $kind, $spec) = @_;

	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec });
	close $file;
	return;
}

$cluster->psql(<<'SQL');
create schema shop authorization entityapi_owner;
grant usage on schema shop to entityapi_reader;
set role entityapi_owner;
create table shop.thing (
	tenant_id uuid not null,
	id uuid not null default gen_random_uuid(),
	name varchar(50) not null,
	note text,
	n int,
	m int,
	secret text,
	owner_id uuid,
	primary key (tenant_id, id)
);
SQL

my $all = { Editor => [qw(create read update delete restore)] };
my %fields = (
	name   => { type => 'string', required => $true, maxLength => 50 },
	note   => { type => 'text' },
	n      => { type => 'integer' },
	m      => { type => 'integer' },
	secret => { type => 'text', readRoles => ['Boss'], writeRoles => ['Boss'] },
	tags   => { type => 'ref', target => 'Tag', relation => 'ManyToMany' });
my $made = { %fields,
	n => { type => 'integer', maximum => 1000 },
	owner => { type => 'ref', target => 'Owner', onDelete => 'setNull' } };
my $some = { Editor => [qw(create read update delete)] };
declared(Roles => 'Roles', { roles => { Editor => {}, Boss => {} } });
declared(Made => 'Entity', { plural => 'mades', fields => $made, permissions => $some });
declared(Loud => 'Entity', { plural => 'louds', fields => $made, permissions => $some, triggerMessages => $true });
declared(Old => 'Entity', { plural => 'olds', table => 'shop.thing', fields => \%fields, permissions => $some });
declared(Soft => 'Entity', { plural => 'softs', softDelete => $true, fields => { name => { type => 'text' } }, permissions => $all });
declared(Tag => 'Entity', { fields => { name => { type => 'text', unique => $true, maxLength => 50 },
	softs => { type => 'text' },
	mades => { type => 'ref', target => 'Made', relation => 'ManyToMany', mappedBy => 'tags' } }, permissions => $some });
declared(Owner => 'Entity', { fields => { name => { type => 'text' } }, permissions => $some });
$cluster->apply($folder);
$cluster->psql(<<'SQL');
create schema theirs authorization entityapi_owner;
set role entityapi_owner;
create table theirs.code (code text primary key);
insert into theirs.code values ('known');
create table theirs.log (a int primary key);
insert into theirs.log values (1);
create domain theirs.few as int check (value < 10);
create function theirs.refuse() returns trigger language plpgsql as $$ begin raise exception 'no: %', tg_op using hint = 'a hint'; end $$;
create function theirs.check_violation() returns trigger language plpgsql as $$ begin raise exception 'not so' using errcode = 'check_violation'; end $$;
create function theirs.parameter() returns trigger language plpgsql as $$ begin raise exception 'not so' using errcode = '22023'; end $$;
create function theirs.teapot() returns trigger language plpgsql as $$ begin raise exception 'not so' using errcode = 'PT402'; end $$;
create function theirs.division() returns trigger language plpgsql as $$ begin new.m := 1 / (new.n - new.n); return new; end $$;
create function theirs.writes() returns trigger language plpgsql as $$ begin insert into theirs.log values (1); return new; end $$;
create function theirs.says() returns trigger language plpgsql as $$ begin
	raise exception 'mine' using errcode = 'unique_violation', schema = tg_table_schema, table = tg_table_name, constraint = 'nothing'; end $$;
create function theirs.long() returns trigger language plpgsql as $$ begin raise exception '%', repeat('ä', 100000); end $$;
create function theirs.some() returns trigger language plpgsql as $$ begin if new.n = 13 then raise exception 'thirteen'; end if; return new; end $$;
create function theirs.catches() returns trigger language plpgsql as $$ begin
	begin raise exception 'inner'; exception when raise_exception then null; end;
	new.note := repeat('x', 1 / (new.n - new.n)); return new; end $$;
create function theirs.same() returns trigger language plpgsql as $$ begin new.id := '01980000-0000-7000-8000-000000000001'; return new; end $$;
create function theirs.raises(int) returns boolean language plpgsql immutable as $$ begin if $1 = 5 then raise exception 'a check'; end if; return true; end $$;
create function theirs.divides(int) returns int language plpgsql immutable as $$ begin return 1 / ($1 - 5); end $$;
SQL

my $shim = EntityApi::Test->shim($cluster);
my $acme = $shim->tenant('acme')->{id};
my $eve = EntityApi::Test::Cases->new($shim, $shim->user($acme, 'eve', ['Editor']), '/api/v1');

sub made
{
	my ($type, $attributes, $relationships) = @_;

	return $eve->good(201, POST => "/$type",
		data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to { return { data => { type => $_[0]{type}, id => $_[0]{id} } } }

# What an answer is in a word: its status, the first code, and where that is.
sub in_short
{
	my ($answer) = @_;
	my $error = $answer->{json}{errors}[0];

	return $answer->{status} unless $error;
	return join ' ', $answer->{status}, $error->{code}, $error->{source}{pointer} // 'none';
}

my $n = 0;

sub post
{
	my ($attributes, $relationships) = @_;

	return [ POST => '', { attributes => { name => 'x' . $n++, %$attributes }, $relationships ? (relationships => $relationships) : () } ];
}

sub patch { return [ PATCH => '/ID', { attributes => $_[0] } ] }

# What has been put on TABLE, by what it is taken off, what is sent, the
# answer and, if it matters, what is said
my $trigger = sub {
	my ($function, $when) = @_;

	return ("create trigger mine $when on TABLE for each row execute function theirs.$function()", 'drop trigger mine on TABLE');
};
my @added = ('alter table TABLE add constraint mine', 'alter table TABLE drop constraint mine');
my $added = sub { return ("$added[0] $_[0]", $added[1]) };
my @cases = (
	[ 'a unique index', 'create unique index mine on TABLE (tenant_id, note)', 'drop index SCHEMA.mine',
		post({ note => 'taken' }), '409 UNIQUE_VIOLATION /data/attributes/note', 'The value of "note" is taken.' ],
	[ 'it, of a change', 'create unique index mine on TABLE (tenant_id, note)', 'drop index SCHEMA.mine',
		patch({ note => 'taken' }), '409 UNIQUE_VIOLATION /data/attributes/note' ],
	[ 'one without the tenant', 'create unique index mine on TABLE (note)', 'drop index SCHEMA.mine',
		post({ note => 'taken' }), '409 UNIQUE_VIOLATION /data/attributes/note' ],
	[ 'one of several', 'create unique index mine on TABLE (tenant_id, n, m)', 'drop index SCHEMA.mine',
		post({ n => 1, m => 2 }), '409 UNIQUE_VIOLATION /data', 'The values are taken.' ],
	[ 'an expression', 'create unique index mine on TABLE (tenant_id, upper(note))', 'drop index SCHEMA.mine',
		post({ note => 'Taken' }), '409 UNIQUE_VIOLATION /data/attributes/note' ],
	[ 'an expression of several', 'create unique index mine on TABLE (tenant_id, (n + m))', 'drop index SCHEMA.mine',
		post({ n => 3, m => 0 }), '409 UNIQUE_VIOLATION /data' ],
	[ 'a unique constraint', $added->('unique (tenant_id, note)'), post({ note => 'taken' }), '409 UNIQUE_VIOLATION /data/attributes/note' ],
	[ 'one that is asked at the end', $added->('unique (tenant_id, note) deferrable initially deferred'),
		post({ note => 'taken' }), '409 UNIQUE_VIOLATION none', 'The values are taken.' ],
	[ 'the id of another', $trigger->(same => 'before insert'), post({}), '409 UNIQUE_VIOLATION /data' ],
	[ 'rows that exclude each other', $added->('exclude using gist (int4range(n, m) with &&)'),
		post({ n => 0, m => 5 }), '409 OVERLAP /data', 'The values overlap with those of another resource.' ],
	[ 'by one field', $added->('exclude using gist (int4range(n, n + 2) with &&)'),
		post({ n => 2 }), '409 OVERLAP /data/attributes/n', 'The value of "n" overlaps with that of another resource.' ],
	[ 'by equality and a range', $added->('exclude using gist (int4range(m, m, $$[]$$) with =, int4range(n, n + 2) with &&)'),
		post({ n => 2, m => 2 }), '409 OVERLAP /data' ],
	[ 'a check', $added->('check (n < 100)'), post({ n => 100 }), '400 CHECK_FAILED /data/attributes/n', 'The field "n" has a value that is not allowed.' ],
	[ 'a check of what was not sent', $added->('check (n < 0) not valid'), patch({ note => 'x' }), '400 CHECK_FAILED /data/attributes' ],
	[ 'a check of several', $added->('check (n < m)'), post({ n => 2, m => 1 }), '400 CHECK_FAILED /data', 'The values are not allowed together.' ],
	[ 'a check of what may not be read', $added->('check (secret is not null) not valid'), post({}), '400 CHECK_FAILED /data', qr/^(?!.*secret)/ ],
	[ 'a check that cannot be computed', $added->('check (100 / n > 0)'), post({ n => 0 }), '400 INVALID_VALUE /data' ],
	[ 'a check of theirs that raises', $added->('check (theirs.raises(n))'), post({ n => 5 }), '500 INTERNAL_ERROR none' ],
	[ 'a value that must be', 'alter table TABLE alter note set not null', 'alter table TABLE alter note drop not null',
		post({ note => undef }), '400 REQUIRED /data/attributes/note' ],
	[ 'a column that has no field', 'alter table TABLE add extra int not null default 1; alter table TABLE alter extra drop default', 'alter table TABLE drop extra',
		post({}), '400 REQUIRED /data', 'A value is missing that the table requires.' ],
	[ 'a generated column', 'alter table TABLE add extra int generated always as (n * 10000000) stored', 'alter table TABLE drop extra',
		patch({ n => 1000 }), '400 INVALID_VALUE /data' ],
	[ 'one that divides', 'alter table TABLE add extra int generated always as (10 / (n - 7)) stored', 'alter table TABLE drop extra',
		post({ n => 7 }), '400 INVALID_VALUE /data', 'The table cannot compute its values of these.' ],
	[ 'one by a function of theirs', 'alter table TABLE add extra int generated always as (theirs.divides(n)) stored', 'alter table TABLE drop extra',
		post({ n => 5 }), '500 INTERNAL_ERROR none' ],
	[ 'a key to what is not there', $added->('foreign key (note) references theirs.code not valid'), post({ note => 'unknown' }), '404 RELATED_NOT_FOUND /data/attributes/note' ],
	[ 'it, of a change', $added->('foreign key (note) references theirs.code not valid'), patch({ note => 'unknown' }), '404 RELATED_NOT_FOUND /data/attributes/note' ],
	[ 'a key of several columns', 'create unique index theirs_two on theirs.code (code); create table theirs.two (a text, b int, primary key (a, b)); alter table theirs.two owner to entityapi_owner;'
		  . "$added[0] foreign key (note, n) references theirs.two not valid", "$added[1]; drop table theirs.two; drop index theirs.theirs_two",
		post({ note => 'unknown', n => 1 }), '404 RELATED_NOT_FOUND /data' ],
	[ 'a key that leads here', 'create table theirs.ref (t uuid, i uuid, foreign key (t, i) references TABLE (tenant_id, id)); insert into theirs.ref select tenant_id, id from TABLE; alter table theirs.ref owner to entityapi_owner',
		'drop table theirs.ref', [ DELETE => '/ID' ], '409 STILL_REFERENCED none', 'Other resources still refer to this one.' ],
	[ 'to a value that changes', "$added[0] unique (tenant_id, note); create table theirs.ref (t uuid, n text, foreign key (t, n) references TABLE (tenant_id, note)); insert into theirs.ref select tenant_id, note from TABLE; alter table theirs.ref owner to entityapi_owner",
		"drop table theirs.ref; $added[1]", patch({ note => 'another' }), '409 STILL_REFERENCED /data/attributes/note' ],
	[ 'a trigger that refuses', $trigger->(refuse => 'before insert or update or delete'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'no: INSERT' ],
	[ 'a change', $trigger->(refuse => 'before insert or update or delete'), patch({ n => 3 }), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'no: UPDATE' ],
	[ 'a deletion', $trigger->(refuse => 'before insert or update or delete'), [ DELETE => '/ID' ], '400 REFUSED_BY_TABLE none', 'The table refuses it.', 'no: DELETE' ],
	[ 'one after the row', $trigger->(refuse => 'after insert'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'no: INSERT' ],
	[ 'one of the statement', 'create trigger mine after insert on TABLE execute function theirs.refuse()', 'drop trigger mine on TABLE', post({}), '400 REFUSED_BY_TABLE /data' ],
	[ 'one that waits for the end', 'create constraint trigger mine after insert on TABLE deferrable initially deferred for each row execute function theirs.refuse()', 'drop trigger mine on TABLE',
		post({}), '400 REFUSED_BY_TABLE none', 'The table refuses it.' ],
	[ 'a code of integrity', $trigger->(check_violation => 'before insert'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'not so' ],
	[ 'another code', $trigger->(parameter => 'before insert'), post({}), '500 INTERNAL_ERROR none' ],
	[ 'a code of its own', $trigger->(teapot => 'before insert'), post({}), '500 INTERNAL_ERROR none' ],
	[ 'a trigger with a fault', $trigger->(division => 'before insert'), post({ n => 1 }), '500 INTERNAL_ERROR none' ],
	[ 'a fault behind what it caught', $trigger->(catches => 'before insert'), post({ n => 1 }), '500 INTERNAL_ERROR none' ],
	[ 'what it writes elsewhere', $trigger->(writes => 'before insert'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'The table refuses it.' ],
	[ 'a constraint that is none', $trigger->(says => 'before insert'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'The table refuses it.' ],
	[ 'a long text', $trigger->(long => 'before insert'), post({}), '400 REFUSED_BY_TABLE /data', 'The table refuses it.', 'ä' x 500 ],
);

my %table = (mades => 'app.made', louds => 'app.loud', olds => 'shop.thing');
my %id;

for my $type (sort keys %table)
{
	subtest "on $table{$type}" => sub {
		made($type => { name => 'first', note => 'taken', n => 1, m => 2 });
		$id{$type} = made($type => { name => 'second', note => 'free', n => 6, m => 9 })->{id};
		for my $case (@cases, $type eq 'olds' ? [ 'a domain', 'alter table TABLE alter n type theirs.few', 'alter table TABLE alter n type int',
				post({ n => 10 }), '400 CHECK_FAILED /data/attributes/n' ] : ())
		{
			my ($name, $on, $off, $request, $expected, $detail, $loud) = @$case;
			my ($method, $path, $body) = @$request;
			my ($schema) = $table{$type} =~ /(\w+)\./;
			my $same = '01980000-0000-7000-8000-000000000001';
			my $ids = $name eq 'the id of another'
			  ? [ map { "update $table{$type} set id = '$_->[0]' where id = '$_->[1]';" } [ $same, $id{$type} ], [ $id{$type}, $same ] ] : [ '', '' ];
			my $state = "select (select count(*) || ' ' || sum(n) || ' ' || string_agg(note, ' ' order by note) from $table{$type}), count(*) from entityapi.audit where outcome = 'SUCCESS';";

			s/TABLE/$table{$type}/g, s/SCHEMA/$schema/g for $on, $off;
			$path =~ s/ID/$id{$type}/;
			my $before = $cluster->psql("$ids->[0]$on;$state");
			my $answer = $eve->call($method, "/$type$path",
				$body ? (data => { type => $type, %$body, $method eq 'PATCH' ? (id => $id{$type}) : () }) : ());
			my $after = $cluster->psql("$state$off;$ids->[1]");

			is(in_short($answer), $expected, $name) or diag $answer->{body};
			$detail = $loud if $type eq 'louds' && defined $loud;
			my $said = $answer->{json}{errors}[0]{detail};
			if (ref $detail) { like($said, $detail, "$name: what is said"); }
			elsif (defined $detail) { is($said, $detail, "$name: what is said"); }
			unlike($answer->{body}, qr/a hint|theirs|duplicate key/, "$name: and no more");
			is($after, $before, "$name: nothing is written or recorded");
		}
		is($eve->call(POST => "/$type", data => { type => $type, attributes => { name => 'last' } })->{status}, 201, 'without them all is as before');
	};
}

subtest 'what the service made answers as ever' => sub {
	is(in_short($eve->call(PATCH => "/mades/$id{mades}", data => { type => 'mades', id => $id{mades}, attributes => { n => 1001 } })),
		'400 INVALID_VALUE /data/attributes/n', 'a limit');
	made(tags => { name => 'unique' });
	is(in_short($eve->call(POST => '/tags', data => { type => 'tags', attributes => { name => 'unique' } })),
		'409 UNIQUE_VIOLATION /data/attributes/name', 'a unique key');
};

subtest 'a restrictive policy binds no owner' => sub {
	$cluster->psql('create policy mine on app.made as restrictive using (false)');
	is($eve->call(POST => '/mades', data => { type => 'mades', attributes => { name => 'x' } })->{status}, 201, 'as the service is one');
	$cluster->psql('drop policy mine on app.made');
};

subtest 'atomic operations' => sub {
	my $operations = sub {
		return $eve->call(POST => '/operations', json => { 'atomic:operations' => [ @_ ] },
			headers => { 'Content-Type' => $atomic, Accept => $atomic });
	};
	my $add = sub { return { op => 'add', data => { type => 'mades', attributes => { name => 'x' . $n++, %{ $_[0] } } } } };

	for my $case (
		[ $trigger->(some => 'before insert'), [ $add->({ n => 1 }), $add->({ n => 13 }), $add->({ n => 2 }) ], '400 REFUSED_BY_TABLE /atomic:operations/1' ],
		[ 'create unique index mine on TABLE (tenant_id, note)', 'drop index app.mine', [ $add->({ note => 'a' }), $add->({ note => 'b' }), $add->({ note => 'a' }) ],
			'409 UNIQUE_VIOLATION /atomic:operations/2/data/attributes/note' ],
		[ $added->('check (n < m)'), [ $add->({}), $add->({ n => 2, m => 1 }) ], '400 CHECK_FAILED /atomic:operations/1' ],
		[ 'alter table TABLE add extra int generated always as (10 / (n - 7)) stored', 'alter table TABLE drop extra', [ $add->({}), $add->({ n => 7 }) ], '400 INVALID_VALUE /atomic:operations/1' ],
		[ $trigger->(refuse => 'before delete'), [ $add->({}), { op => 'remove', ref => { type => 'mades', id => $id{mades} } } ], '400 REFUSED_BY_TABLE /atomic:operations/1' ])
	{
		my ($on, $off, $sent, $expected) = @$case;
		s/TABLE/app.made/g for $on, $off;
		my $rows = $cluster->psql('select count(*) from app.made');

		$cluster->psql($on);
		my $answer = $operations->(@$sent);
		is(in_short($answer), $expected, $on) or diag $answer->{body};
		is($cluster->psql('select count(*) from app.made'), $rows, 'nothing is written');
		$cluster->psql($off);
	}
};

subtest 'join tables' => sub {
	my ($one, $two) = map { made(tags => { name => "tag $_" }) } 1, 2;

	for my $type (sort keys %table)
	{
		my $join = $cluster->psql("select conrelid::regclass from pg_constraint where confrelid = '$table{$type}'::regclass and conrelid::regclass::text like '%tags'");
		my $thing = made($type => { name => 'linked' });
		my $first = "/$type/$thing->{id}/relationships/tags";
		my $second = '/' . $type . '/' . made($type => { name => 'other' })->{id} . '/relationships/tags';

		$eve->good(204, POST => $first, data => [ to($one)->{data} ]);
		$cluster->psql("create unique index mine on $join (tenant_id, tag_id)");
		is(in_short($eve->call(POST => $second, data => [ to($two)->{data}, to($one)->{data} ])), '409 UNIQUE_VIOLATION /data', "$type: a unique index");
		is(in_short($eve->call(PATCH => $second, data => [ to($one)->{data} ])), '409 UNIQUE_VIOLATION /data', "$type: replacing");
		is(in_short($eve->call(POST => "/$type", data => { type => $type, attributes => { name => 'new' }, relationships => { tags => { data => [ to($one)->{data} ] } } })),
			'409 UNIQUE_VIOLATION /data/relationships/tags', "$type: with a new resource");
		is($cluster->psql("select count(*) from $join"), 1, 'nothing is linked by that');
		$eve->good(204, POST => $first, data => [ to($one)->{data} ]);
		is($cluster->psql("select count(*) from $join"), 1, 'and what is linked may be linked again');
		is(in_short($eve->call(POST => "/tags/$one->{id}/relationships/mades", data => [ { type => 'mades', id => $second =~ m{/([-0-9a-f]{36})/} } ])),
			'409 UNIQUE_VIOLATION /data', 'from the other side') if $type eq 'mades';
		$cluster->psql("drop index app.mine");
		for my $case (
			[ "alter table $join add constraint mine check (tag_id is null) not valid", "alter table $join drop constraint mine", '400 CHECK_FAILED /data' ],
			[ "alter table $join add extra int; alter table $join add constraint mine check (extra is not null) not valid", "alter table $join drop extra", '400 CHECK_FAILED /data' ],
			[ "alter table $join add extra int not null default 1; alter table $join alter extra drop default", "alter table $join drop extra", '400 REQUIRED /data' ],
			[ "alter table $join add extra int default 1; alter table $join add constraint mine exclude using btree (extra with =)", "alter table $join drop extra", '409 OVERLAP /data' ],
			[ "create trigger mine before insert on $join for each row execute function theirs.refuse()", "drop trigger mine on $join", '400 REFUSED_BY_TABLE /data' ])
		{
			my ($on, $off, $expected) = @$case;

			$cluster->psql($on);
			my $answer = $eve->call(POST => $second, data => [ to($two)->{data} ]);
			is(in_short($answer), $expected, $on) or diag $answer->{body};
			$cluster->psql($off);
		}
		$eve->good(204, POST => $second, data => [ to($two)->{data} ]);
		$eve->good(204, PATCH => $_, data => []) for $first, $second;
	}
};

subtest 'what is deleted and comes back' => sub {
	my $owner = made(owners => { name => 'Ann' });

	made(mades => { name => 'owned' }, { owner => to($owner) });
	for my $case (
		[ 'alter column owner_id set not null', 'alter column owner_id drop not null' ],
		[ 'add constraint mine check (owner_id is not null)', 'drop constraint mine' ])
	{
		$cluster->psql("delete from app.made where owner_id is null; alter table app.made $case->[0]");
		my $answer = $eve->call(DELETE => "/owners/$owner->{id}");
		is(in_short($answer), '409 STILL_REFERENCED none', $case->[0]) or diag $answer->{body};
		unlike($answer->{body}, qr/owner/, 'no word of whose');
		$cluster->psql("alter table app.made $case->[1]");
	}
	my $soft = made(softs => { name => 'one' });
	$eve->good(204, DELETE => "/softs/$soft->{id}");
	made(softs => { name => 'one' });
	for my $case (
		[ 'create unique index mine on app.soft (tenant_id, name) where deleted_at is null', 'drop index app.mine', '409 UNIQUE_VIOLATION none', 'Another resource has the value of "name" by now.' ],
		[ 'alter table app.soft add constraint mine exclude using gist (int4range(length(name), 9) with &&) where (deleted_at is null)', 'alter table app.soft drop constraint mine', '409 OVERLAP none' ],
		[ 'alter table app.soft add constraint mine check (deleted_at is not null) not valid', 'alter table app.soft drop constraint mine', '400 CHECK_FAILED none' ],
		[ 'create trigger mine before update on app.soft for each row execute function theirs.refuse()', 'drop trigger mine on app.soft', '400 REFUSED_BY_TABLE none' ])
	{
		my ($on, $off, $expected, $detail) = @$case;

		$cluster->psql($on);
		my $answer = $eve->call(POST => "/softs/$soft->{id}/restore");
		is(in_short($answer), $expected, $on) or diag $answer->{body};
		is($answer->{json}{errors}[0]{detail}, $detail, 'what is said') if $detail;
		$cluster->psql($off);
	}
	$eve->good(200, POST => "/softs/$soft->{id}/restore");
};

# What the status lists, and health counts, of indexes that are not valid
sub invalid
{
	my $token = $shim->login(@{ $cluster->superadmin }{qw(username password)})->{accessToken};
	my $status = $shim->http(GET => '/manage/migrations/status', { token => $token })->{json};
	my $health = $shim->http(GET => '/actuator/health')->{json};

	is("$status->{status} $health->{status} $health->{components}{db}{status}", 'UP_TO_DATE UP UP', 'the state is as it was');
	is($health->{components}{db}{details}{invalidIndexes} // 0, scalar @{ $status->{invalidIndexes} }, 'both count alike');
	return join ' ', map { "$_->{entity} $_->{hint}" } @{ $status->{invalidIndexes} };
}

# In another session, until what it returns is called
sub holding
{
	my ($mode) = @_;

	open my $in, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', '/dev/null', '-d', $cluster->conninfo
	  or die "psql: $!\n";
	$in->autoflush(1);
	print {$in} "begin; lock table app.tag in $mode mode;\n";
	die "no lock\n" unless EntityApi::Test::wait_until(60, sub {
			$cluster->psql("select count(*) from pg_locks where relation = 'app.tag'::regclass and mode = '" . ($mode =~ s/\b(\w)|\s/uc($1 \/\/ '')/ger) . "Lock'") });
	return sub { close $in; return };
}

# One that builds, and that it does so in this phase
sub building
{
	my ($sql, $phase) = @_;
	my $pid = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-c', $sql ]);

	ok(EntityApi::Test::wait_until(60, sub { $cluster->psql("select count(*) from pg_stat_progress_create_index where phase = '$phase'") }), "$sql: $phase");
	return $pid;
}

sub cancel
{
	my ($pid) = @_;

	$cluster->psql('select pg_cancel_backend(pid) from pg_stat_progress_create_index');
	waitpid $pid, 0;
	return;
}

# PostgreSQL goes on with an index of another name beside, or in the place of,
# the one that was made, and leaves it when it is cancelled.
subtest 'indexes that are not valid' => sub {
	my $again = sub { in_short($eve->call(POST => '/tags', data => { type => 'tags', attributes => { name => 'unique' } })) };
	my $taken = '409 UNIQUE_VIOLATION /data/attributes/name';
	my $end = holding('access share');

	is($again->(), $taken, 'before');
	is(invalid(), '', 'none');
	my $reindex = building('reindex table concurrently app.tag', 'waiting for readers before marking dead');
	is($again->(), $taken, 'meanwhile');
	cmp_ok($cluster->psql("select count(*) from pg_index where indrelid = 'app.tag'::regclass and not indisvalid"), '>', 0, 'there are some');
	is(invalid(), '', 'which do not count');
	cancel($reindex);
	$end->();
	is($again->(), $taken, 'afterwards');
	is(invalid(), 'Tag DROP INDEX CONCURRENTLY app.tag__name_key_ccold Tag DROP INDEX CONCURRENTLY app.tag__pkey_ccold', 'they are left');
	is(invalid(), 'Tag DROP INDEX CONCURRENTLY app.tag__name_key_ccold Tag DROP INDEX CONCURRENTLY app.tag__pkey_ccold', 'and said again');
	$cluster->psql('drop index app.tag__name_key_ccold; drop index app.tag__pkey_ccold');
	is(invalid(), '', 'until they are dropped');
	is($again->(), $taken, 'and the key is as it was');

	$end = holding('row exclusive');
	my $create = building('create index concurrently mine on app.tag (softs)', 'waiting for writers before build');
	is(invalid(), '', 'one that is being built does not count');
	cancel($create);
	$end->();
	is(invalid(), 'Tag REINDEX INDEX CONCURRENTLY app.mine', 'one whose making was cancelled does');
	$cluster->psql('drop index app.mine');
	my $join = $cluster->psql("select conrelid::regclass from pg_constraint where confrelid = 'shop.thing'::regclass and conrelid::regclass::text like '%tags'");
	$eve->good(204, POST => '/olds/' . made(olds => { name => 'x' })->{id} . '/relationships/tags', data => [ to(made(tags => { name => 'y' }))->{data} ]);
	$cluster->try_psql("create unique index concurrently mine on $join ((1 / (tag_id is null)::int))");
	is(invalid(), 'Old REINDEX INDEX CONCURRENTLY app.mine', 'so does one of a join table');
	$cluster->psql('drop index app.mine');
	$cluster->psql('create table theirs.other (a int); insert into theirs.other values (1), (1)');
	$cluster->try_psql('create unique index concurrently mine on theirs.other (a)');
	is(invalid(), '', 'what is on other tables is no affair of the service');
};

like(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed: no: INSERT/, 'what is not told is in the log');
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
