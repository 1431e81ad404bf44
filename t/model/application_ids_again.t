# Keys that are no UUIDs where others have a say: rows that are deleted and made
# anew with their ids, triggers that choose them, hooks, policies, soft deletion
# and its end, and columns that are narrower than the key they refer to.

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

$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web login;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
set role shop_owner;
create table shop.word (word text primary key, note text);
create table shop.soft (code text primary key, note text, up text references shop.soft deferrable, gone timestamptz, gone_id uuid);
create index on shop.soft (gone) where gone is not null;
create index on shop.soft (up);
create table shop.wide (id bigint primary key, note text);
create table shop.narrow (id serial primary key, wide_id integer references shop.wide on delete set null deferrable, note text);
create index on shop.narrow (wide_id);
create table shop.owned (id serial primary key, whose text references shop.word deferrable, note text);
create table shop.coded (code varchar(10) primary key, note text);
create table shop.part (a integer, b integer, note text, code text unique, primary key (b, a));
create table shop.hooked (id serial primary key, note text);
create function shop.upper() returns trigger language plpgsql as $$ begin new.word := upper(new.word); return new; end $$;
create trigger upper before insert on shop.word for each row when (new.note = 'upper') execute function shop.upper();
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
reset role;
create table public.seen (phase text, was jsonb, will jsonb);
create schema hooks;
create function hooks.see(context jsonb) returns jsonb language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
	insert into public.seen values (context->>'phase', context->'before', context->'after');
	return null;
end $$;
SQL

my %given = (permissions => { Editor => [qw(create read update delete history)], Reader => ['read'] });
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Editor => {}, Reader => {} } });
declared(Entity => Word => { %given, table => 'shop.word', key => 'word', fields => { note => { type => 'text' } } });
declared(Entity => Soft => { table => 'shop.soft', key => 'code', softDelete => $true, purgeAfterDays => 1, columns => { deletedAt => 'gone', deletionId => 'gone_id', up => 'up' },
	fields => { note => { type => 'text' }, up => { type => 'ref', target => 'Soft', onDelete => 'cascade' } }, permissions => { Editor => [qw(create read update delete history restore)] } });
declared(Entity => Wide => { %given, table => 'shop.wide', key => 'id', fields => { note => { type => 'text' }, narrows => { type => 'ref', target => 'Narrow', relation => 'OneToMany', mappedBy => 'wide' } } });
declared(Entity => Narrow => { %given, table => 'shop.narrow', key => 'id', fields => { note => { type => 'text' }, wide => { type => 'ref', target => 'Wide', onDelete => 'setNull' } } });
declared(Entity => Coded => { %given, table => 'shop.coded', key => 'code', plural => 'coded', fields => { code => { type => 'string', maxLength => 10 }, note => { type => 'text' } } });
my %part = (%given, table => 'shop.part', othersWrite => $false, fields => { note => { type => 'text' } });
declared(Entity => Part => { %part, key => [ 'a', 'b' ] });
declared(Policy => Own => { expression => "#record.whose.id == #user.username or #record.id < 3" });
declared(Policy => Mine => { expression => "#input.whose == #user.username" });
declared(Entity => Owned => { %given, table => 'shop.owned', key => 'id', columns => { whose => 'whose' }, plural => 'owned', policies => { Own => [qw(read update delete)], Mine => ['create'] },
	fields => { note => { type => 'text' }, whose => { type => 'ref', target => 'Word' } } });
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub add { my ($type, $id, $note, $relationships) = @_;
	return $ann->call(POST => "/$type", data => { type => $type, defined $id ? (id => $id) : (), attributes => { note => $note }, $relationships ? (relationships => $relationships) : () }) }
sub to { return { data => defined $_[1] ? { type => $_[0], id => $_[1] } : undef } }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub actions { return join ' ', map { $_->{attributes}{action} =~ s/ENTITY_//r } @{ $ann->good(200, GET => "/$_[0]/history")->{json}{data} } }
sub now { select undef, undef, undef, 0.01; my $time = $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')}); select undef, undef, undef, 0.01; return $time }
sub change { return $ann->call(PATCH => "/$_[0]/$_[1]", data => { type => $_[0], id => $_[1], attributes => { note => $_[2] } }) }

for my $alone ('', 'alone ')
{
	attack "${alone}ids come again" => sub {
		declared(Entity => Word => { %given, table => 'shop.word', key => 'word', $alone ? (othersWrite => $false) : (), fields => { note => { type => 'text' } } });
		is($cluster->try_apply($folder)->{status}, 0, 'applied');
		my $k = $alone ? 'A' : 'B';
		my $before = now();
		is(add(words => $k, 'first')->{status}, 201, 'made');
		is(change(words => $k, 'first secret')->{status}, 200, 'changed');
		my $first = now();
		is($ann->call(DELETE => "/words/$k")->{status}, 204, 'deleted');
		is(actions("words/$k"), 'DELETE UPDATE CREATE', 'the history of what is gone');
		my $between = now();
		$cluster->psql("insert into shop.word values ('$k', 'of others')");
		is(actions("words/$k"), '', 'made by others it has none');
		is($ann->call(GET => "/words/$k?asOf=$_->[1]")->{status}, $_->[2], "as of $_->[0]") for [ before => $before, 410 ], [ first => $first, 410 ];
		is(change(words => $k, 'of others, changed')->{status}, 200, 'changed');
		is(actions("words/$k"), 'UPDATE', 'that is its history');
		my $third = now();
		for my $as ([ first => $first ], [ between => $between ])
		{
			my $answer = $ann->call(GET => "/words/$k?asOf=$as->[1]");
			unlike($answer->{body}, qr/first/, "as of $as->[0] it shows nothing of another");
			isnt($answer->{status}, 500, 'and does not fail');
		}
		is($ann->good(200, GET => "/words/$k?asOf=$third")->{json}{data}{attributes}{note}, 'of others, changed', 'as of then it is itself');
		$cluster->psql("delete from shop.word where word = '$k'");
		is(add(words => $k, 'third')->{status}, 201, 'made anew');
		is(actions("words/$k"), 'CREATE', 'its history begins there');
		is($ann->call(GET => "/words/$k?asOf=$third")->{status}, $alone ? 404 : 410, 'before that it was not there');
		is($ann->call(DELETE => "/words/$k")->{status}, 204, 'deleted');
		is(actions("words/$k"), 'DELETE CREATE', 'the last life of it');
		$ann->refused('nobody had it', 404, 'NOT_FOUND', undef, GET => '/words/never/history');
	};
}

attack 'a trigger that chooses the id' => sub {
	my $made = add(words => 'low', 'upper');
	is($made->{status}, 201, 'made') or diag $made->{body};
	is($made->{json}{data}{id}, 'LOW', 'it is the id');
	like($made->{headers}{location}, qr{/words/LOW$}, 'and the address');
	is(actions('words/LOW'), 'CREATE', 'and in the log');
	is($ann->call(GET => '/words/low')->{status}, 404, 'not the one that was asked for');
	my $answer = batch({ op => 'add', data => { type => 'words', id => 'next', attributes => { note => 'upper' } } }, { op => 'add', data => { type => 'words', id => 'plain', attributes => { note => 'x' } } });
	is(join(' ', map { $_->{data}{id} } @{ $answer->{json}{'atomic:results'} }), 'NEXT plain', 'in operations, too') or diag $answer->{body};
};

attack 'of several parts' => sub {
	is(add(parts => '1,2', 'first')->{status}, 201, 'made');
	my $first = now();
	is($ann->call(DELETE => '/parts/1,2')->{status}, 204, 'deleted');
	is(actions('parts/1,2'), 'DELETE CREATE', 'the history of what is gone');
	$cluster->psql(q{insert into shop.part values (1, 2, 'of others')});
	is(actions('parts/1,2'), '', 'made by others it has none');
	is(change(parts => '1,2', 'changed')->{status}, 200, 'changed');
	is(actions('parts/1,2'), 'UPDATE', 'that is its history');
	unlike($ann->call(GET => "/parts/1,2?asOf=$first")->{body}, qr/first/, 'as of before it shows nothing of another');
};

attack 'ids of other columns' => sub {
	is(add(parts => $_->[0], $_->[1])->{status}, 201, "made: $_->[0]") for [ '3,4' => 'three' ], [ '4,3' => 'four' ];
	my $then = now();
	is($cluster->try_apply($folder)->{err}, '', 'no warning without a change');
	declared(Entity => Part => { %part, key => [ 'b', 'a' ] });
	my $turned = $cluster->try_apply($folder);
	is($turned->{status}, 0, 'another order of the parts') or diag $turned->{err};
	like($turned->{err}, qr{^WARNING: .*Part\.json#1: /spec: ids are made of "b" and "a" now, no longer of "a" and "b"\nHINT: .*history}m, 'with a warning');
	is($ann->good(200, GET => '/parts/4,3')->{json}{data}{attributes}{note}, 'three', 'is that of ids');
	is(actions('parts/4,3'), '', 'which have no history of others');
	my $past = $ann->call(GET => "/parts/4,3?asOf=$then");
	unlike($past->{body}, qr/four/, 'nor a past');
	is($past->{status}, 410, 'which is lost');
	is(change(parts => '4,3', 'changed')->{status}, 200, 'changed');
	is(actions('parts/4,3'), 'UPDATE', 'it begins anew');
	$cluster->psql('alter table shop.part rename b to c');
	declared(Entity => Part => { %part, key => [ 'c', 'a' ] });
	my $renamed = $cluster->try_apply($folder);
	is("$renamed->{status} $renamed->{err}", '0 ', 'a column that got another name');
	is(actions('parts/4,3'), 'UPDATE', 'keeps the history');
	$cluster->psql(q{update shop.part set code = a::text; alter table shop.part alter code set not null});
	declared(Entity => Part => { %part, key => 'code' });
	like($cluster->try_apply($folder)->{err}, qr/ids are made of "code" now, no longer of "c" and "a"/, 'one column in the place of two');
	unlink "$folder/Part.json";
};

attack 'deleted softly' => sub {
	is(add(softs => 'a', 'x')->{status}, 201, 'made');
	is(add(softs => 'a/b' =~ s{/}{~1}r, 'y', { up => to(softs => 'a') })->{status}, 201, 'below it');
	is($ann->call(DELETE => '/softs/a')->{status}, 204, 'deleted');
	is($ann->call(GET => '/softs/a~1b')->{status}, 404, 'with what is below');
	is(actions('softs/a~1b'), 'DELETE CREATE', 'its history');
	$ann->refused('the id is taken all the same', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], POST => '/softs', data => { type => 'softs', id => 'a', attributes => {} });
	is($ann->call(POST => '/softs/a/restore')->{status}, 200, 'restored');
	is($ann->good(200, GET => '/softs/a~1b')->{json}{data}{relationships}{up}{data}{id}, 'a', 'with what is below');
	is(actions('softs/a'), 'RESTORE DELETE CREATE', 'one life');
	is($ann->call(DELETE => '/softs/a')->{status}, 204, 'deleted again');
	$cluster->psql("update shop.soft set gone = gone - interval '3 days'");
	$cluster->psql('select entityapi.sweep()') for 1 .. 3;
	is($cluster->psql('select count(*) from shop.soft'), 0, 'swept');
	is($cluster->psql(q{select string_agg(target_id, ' ') from entityapi.audit where action = 'ENTITY_PURGE' and target_type = 'softs'}), 'a', 'which the log has');
	is(add(softs => 'a', 'new')->{status}, 201, 'made anew');
	is(actions('softs/a'), 'CREATE', 'it has no past');
};

attack 'a field that is the key' => sub {
	my $post = sub { my ($attributes, @id) = @_; return (POST => '/coded', data => { type => 'coded', @id, attributes => $attributes }) };

	my $made = $ann->good(201, $post->({ code => 'a/b' }))->{json}{data};
	is("$made->{id} $made->{attributes}{code}", 'a~1b a/b', 'it is shown as it is, and the id in its form');
	is($ann->good(201, $post->({ note => 'x' }, id => 'c~0'))->{json}{data}{attributes}{code}, 'c~', 'and so it is made of an id');
	$ann->refused("$_->[1] is none", 400, $_->[0], [ pointer => '/data/attributes/code' ], $post->({ code => $_->[2] })) for [ INVALID_VALUE => 'a number', 5 ], [ INVALID_VALUE => 'an object', {} ], [ INVALID_VALUE => 'a long one', 'x' x 11 ];
	$ann->refused("$_->[1] beside an id", 400, $_->[0], undef, $post->({ code => $_->[2] }, id => 'x')) for [ INVALID_VALUE => 'a number', 5 ], [ REQUIRED => 'nothing', undef ];
	$ann->refused('null is none', 400, 'REQUIRED', undef, $post->({ code => undef }));
	$ann->refused('neither is given', 400, 'REQUIRED', [ pointer => '/data/id' ], $post->({}));
	$ann->refused('they differ', 409, 'ID_CONFLICT', [ pointer => '/data/id' ], $post->({ code => 'a' }, id => 'b'));
	$ann->refused('it is taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/code' ], $post->({ code => 'a/b' }));
	$ann->refused('it is taken', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/id' ], $post->({}, id => 'a~1b'));
	is($ann->call(PATCH => '/coded/a~1b', data => { type => 'coded', id => 'a~1b', attributes => { code => 'a/b', note => 'y' } })->{status}, 200, 'it is repeated');
	$ann->refused('and stays', 400, 'READ_ONLY', undef, PATCH => '/coded/a~1b', data => { type => 'coded', id => 'a~1b', attributes => { code => 'z' } });
	my $batch = batch({ op => 'add', data => { type => 'coded', attributes => { code => 5 } } });
	is("$batch->{status} $batch->{json}{errors}[0]{code}", '400 INVALID_VALUE', 'in operations');
};

attack 'a column narrower than the key' => sub {
	$cluster->psql('insert into shop.wide values (1), (3000000000); insert into shop.narrow (wide_id) values (1)');
	is(scalar @{ $ann->good(200, GET => '/wides/3000000000/narrows')->{json}{data} }, 0, 'nothing refers to a large one');
	is(scalar @{ $ann->good(200, GET => '/wides/1/narrows')->{json}{data} }, 1, 'and one to a small one');
	is($ann->good(200, GET => '/narrows?include=wide')->{json}{included}[0]{id}, '1', 'included');
	is(scalar @{ $ann->good(200, GET => '/wides?include=narrows&sort=id')->{json}{included} }, 1, 'from the other side');
	$ann->refused('no reference to a large one', 404, 'RELATED_NOT_FOUND', undef, POST => '/narrows', data => { type => 'narrows', attributes => {}, relationships => { wide => to(wides => '3000000000') } });
	my ($one) = map { $_->{id} } @{ $ann->good(200, GET => '/narrows')->{json}{data} };
	$ann->refused('nor from there', 400, 'INVALID_VALUE', undef, POST => '/wides/3000000000/relationships/narrows', json => { data => [ { type => 'narrows', id => $one } ] });
	is(scalar @{ $ann->good(200, GET => '/narrows?filter=wide.id==3000000000')->{json}{data} }, 0, 'none is found by a filter');
	is($ann->call(DELETE => '/wides/3000000000')->{status}, 204, 'deleted');
	is($ann->call(DELETE => '/wides/1')->{status}, 204, 'and the other');
	is($cluster->psql('select count(*) from shop.narrow where wide_id is null'), 1, 'to which nothing refers');
};

for my $way ('on', 'off')
{
	attack "policies, direct ways $way" => sub {
		$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
		$cluster->psql(q{truncate shop.owned restart identity; insert into shop.word values ('ann', ''), ('bob', '') on conflict do nothing;
			insert into shop.owned (whose, note) values ('bob', '1'), (null, '2'), ('ann', '3'), ('bob', '4')});
		is(join(' ', map { $_->{id} } @{ $ann->good(200, GET => '/owned?sort=id')->{json}{data} }), '1 3', 'rows by what they refer to, and by their numbers');
		is($ann->call(GET => '/owned/4')->{status}, 404, 'the other is hidden');
		is($ann->good(200, GET => '/owned?page[totals]=true&page[size]=1')->{json}{meta}{pagination}{totalRecords}, 2, 'and not counted');
		is($ann->call(DELETE => '/owned/4')->{status}, 404, 'nor deleted');
		is(add(owned => undef, 'n', { whose => to(words => 'bob') })->{status}, 403, 'none is made of another');
		is(add(owned => undef, 'n', { whose => to(words => 'ann') })->{status}, 201, 'but of oneself');
	};
}

attack 'hooks' => sub {
	$cluster->psql('grant usage on schema hooks to entityapi_owner; grant execute on function hooks.see(jsonb) to entityapi_owner');
	declared(Entity => Hooked => { %given, table => 'shop.hooked', key => 'id', plural => 'hooked', fields => { note => { type => 'text' } } });
	declared(Hook => "See$_" => { entity => 'Hooked', phase => lc $_, on => [qw(create update delete)], function => 'hooks.see' }) for qw(Validate After);
	my $again = $cluster->try_apply($folder);
	is($again->{status}, 0, 'applied') or diag($again->{err}), return;
	my $made = add(hooked => undef, 'x');
	is($made->{status}, 201, 'made') or diag $made->{body};
	my $id = $made->{json}{data}{id};
	is($cluster->psql(q{select string_agg(coalesce(will->>'id', 'none yet'), ' ') from public.seen}), "none yet $id", 'its id is known after it');
	is(change(hooked => $id, 'y')->{status}, 200, 'changed');
	is($ann->call(DELETE => "/hooked/$id")->{status}, 204, 'deleted');
	is($cluster->psql(q{select count(*) from public.seen where was->>'id' = '} . $id . q{'}), 4, 'and they see it');
	is(batch({ op => 'add', data => { type => 'hooked', lid => 'h', attributes => { note => 'b' } } }, { op => 'update', ref => { type => 'hooked', lid => 'h' }, data => { type => 'hooked', lid => 'h', attributes => { note => 'c' } } })->{status}, 200, 'in operations');
};

unlike(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed/, 'no request failed for a reason of ours')
  or diag join "\n", EntityApi::Test::slurp($cluster->log) =~ /(.*entityapi request \S+ failed.*)/g;

done_testing;
