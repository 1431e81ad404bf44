# Hostile tables of an application: whatever its people put on them has the rights
# of its role and no others, and nothing that a deployer puts on made tables has
# those of the application.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster(conf => ["log_min_messages = warning"]);
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

# -------- two sides --------

# Code of all kinds tells as whom it ran, with which settings, and what of the
# forbidden it could do.
$cluster->psql(<<'SQL');
create role shop_app login;
create role rival login;
create role hooker login;
create schema told;
grant usage on schema told to public;
create table told.ran (n serial, place text, who text, session text, path text, app_user text, zone text);
create table told.rose (place text, who text, attack text);
grant insert on told.ran, told.rose to public;
grant usage on sequence told.ran_n_seq to public;
create function told.tell(place text) returns boolean language plpgsql as $$
begin
	insert into told.ran (place, who, session, path, app_user, zone) values (place, current_user, session_user, current_setting('search_path'),
		current_setting('app.user', true), current_setting('timezone'));
	return true;
end $$;
create function told.rise(place text) returns boolean language plpgsql as $$
declare
	attack text;
begin
	perform told.tell(place);
	foreach attack in array array[
		'select 1 from entityapi.signing_key', 'select 1 from entityapi.account', 'select 1 from entityapi.audit', 'select 1 from app.tag',
		'insert into app.tag (name) values (''x'')', 'set role entityapi_owner', 'set role postgres', 'set role rival', 'reset role',
		'set session authorization postgres', 'reset session authorization', 'select set_config(''role'', ''entityapi_owner'', false)',
		'select set_config(''role'', ''none'', false)', 'select set_config(''session_authorization'', ''postgres'', false)',
		'select set_config(''entityapi.direct_reads'', ''off'', false)', 'prepare told as select 1', 'deallocate all', 'listen told', 'unlisten *', 'discard all',
		'discard plans', 'create temp table told_temp (a int)', 'create temp view told_view as select 1', 'declare told cursor with hold for select 1',
		'create table pg_temp.told (a int)', 'load ''auto_explain''', 'select entityapi.handle(''GET'', ''/api/v1/tags'', ''{}'', null)',
		'select pg_advisory_lock(1)', 'select pg_advisory_xact_lock(1)', 'select entityapi.sweep()', 'select entityapi.list_differences()',
		'alter role shop_app superuser', 'grant entityapi_owner to shop_app', 'set session_replication_role = replica', 'copy (select 1) to program ''true''',
		'select pg_read_file(''PG_VERSION'')', 'set entityapi.request_id = ''x''', 'close all', 'commit', 'notify told'] loop
		begin
			execute attack;
			insert into told.rose values (place, current_user, attack);
		exception when others then
			null;
		end;
	end loop;
	return true;
end $$;
grant execute on all functions in schema told to public;

-- what a user of the session would see if any of it stayed
create function told.leave() returns void language plpgsql as $$
begin
	perform set_config('search_path', 'shop', false), set_config('TimeZone', 'Asia/Kolkata', false), set_config('app.user', 'left', false),
		set_config('app.left', 'left', false), set_config('DateStyle', 'SQL, DMY', false), set_config('IntervalStyle', 'sql_standard', false),
		set_config('extra_float_digits', '-5', false), set_config('bytea_output', 'escape', false), set_config('statement_timeout', '0', false),
		set_config('default_transaction_read_only', 'on', false), set_config('enable_indexscan', 'off', false), set_config('row_security', 'off', false);
end $$;
create schema shop authorization shop_app;
create schema shared authorization rival;
grant usage, create on schema shared to shop_app, rival;
alter role shop_app set search_path = shop;
set role rival;
create function shared.by_rival() returns trigger language plpgsql as $$ begin perform told.rise('rival''s trigger'); return new; end $$;
reset role;
create function told.by_superuser() returns trigger language plpgsql as $$ begin perform told.rise('superuser''s trigger'); return new; end $$;
set role shop_app;
create function shop.rise() returns trigger language plpgsql as $$
begin
	perform told.rise(tg_name || ' ' || tg_op);
	perform told.leave();
	return case when tg_op = 'DELETE' then old else new end;
end $$;
create function shop.good(text) returns boolean language plpgsql as $$ begin return told.rise('check'); end $$;
create function shop.good_domain(text) returns boolean language plpgsql as $$ begin return told.rise('domain'); end $$;
create function shop.made() returns text language plpgsql as $$ begin perform told.rise('default'); return 'made'; end $$;
create function shop.calc(text) returns text immutable language plpgsql as $$ begin perform told.rise('generated'); return upper($1); end $$;
create function shop.key(text) returns text immutable language plpgsql as $$ begin perform told.rise('index'); return lower($1); end $$;
create domain shop.word as varchar(60) check (shop.good_domain(value));
create table shop.item (id uuid primary key default gen_random_uuid(), name shop.word not null, note text check (shop.good(note)),
	calc text generated always as (shop.calc(name)) stored, price numeric(12,2), at timestamptz, on_day date, n integer not null default 0, extra text default shop.made());
create index on shop.item (shop.key(name));
create statistics shop.stat on shop.key(name), shop.key(note) from shop.item;
create function shop.wait() returns trigger language plpgsql as $$ begin perform told.rise(tg_name || ' ' || tg_op); return null; end $$;
create trigger before_row before insert or update or delete on shop.item for each row execute function shop.rise();
create trigger after_row after insert or update or delete on shop.item for each row execute function shop.rise();
create trigger statement after insert or update or delete on shop.item for each statement execute function shop.rise();
create trigger zrival before insert or update on shop.item for each row execute function shared.by_rival();
create trigger zsuper before insert or update on shop.item for each row execute function told.by_superuser();
create constraint trigger deferred after insert or update or delete on shop.item deferrable initially deferred for each row execute function shop.wait();

-- operators of theirs that say yes to all, in the path of their writes
create function shop.yes(varchar, text) returns boolean immutable language sql as 'select true';
create function shop.yes(text, text) returns boolean immutable language sql as 'select true';
create function shop.yes(shop.word, text) returns boolean immutable language sql as 'select true';
create operator shop.= (leftarg = varchar, rightarg = text, function = shop.yes);
create operator shop.= (leftarg = text, rightarg = text, function = shop.yes);
create operator shop.= (leftarg = shop.word, rightarg = text, function = shop.yes);

-- debits are credits at the end, and an entry may refer to one that comes later
create table shop.entry (id uuid primary key default gen_random_uuid(), amount integer not null,
	next_id uuid references shop.entry deferrable initially deferred);
create function shop.balanced() returns trigger language plpgsql as $$
begin
	perform told.rise('balance');
	if (select sum(amount) from shop.entry) <> 0 then raise exception 'out of balance'; end if;
	return null;
end $$;
create constraint trigger balanced after insert or update or delete on shop.entry deferrable initially deferred for each row execute function shop.balanced();
-- the same name for what cannot wait
create table shop.other (a int constraint balanced check (a > 0));
create table shop.now (id uuid primary key default gen_random_uuid(), what text);
create function shop.settle() returns trigger language plpgsql as $$
begin
	perform told.tell('settle');
	if new.what is not null then execute new.what; end if;
	return new;
end $$;
create trigger settle before insert or update on shop.now for each row execute function shop.settle();
reset role;

-- where the role itself may not go
create schema vault authorization rival;
set role rival;
create table vault.kept (a int);
create function vault.note() returns trigger language plpgsql as $$ begin perform told.rise('vault'); return null; end $$;
create constraint trigger note after insert on vault.kept deferrable initially deferred for each row execute function vault.note();
create function shared.put() returns void security definer language sql as 'insert into vault.kept values (1)';
reset role;
create schema hooks authorization hooker;
grant usage on schema hooks to public;
set role hooker;
create table hooks.bait (a int);
create function hooks.spring() returns trigger language plpgsql as $$ begin perform told.rise('bait'); return null; end $$;
create constraint trigger spring after insert on hooks.bait deferrable initially deferred for each row execute function hooks.spring();
create function hooks.validate(c jsonb) returns jsonb language plpgsql as $$ begin perform told.rise('validate'); return null; end $$;
create function hooks.afterwards(c jsonb) returns jsonb language plpgsql as $$ begin perform told.rise('afterwards'); return null; end $$;
create function hooks.after(c jsonb) returns jsonb language plpgsql as $$
begin
	perform told.rise('hook');
	insert into hooks.bait values (1);
	return null;
end $$;
reset role;
SQL

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app',
	settings => { TimeZone => 'Asia/Tokyo', 'app.user' => '#user.username' } } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
my $all = { Reader => ['read'], Editor => [qw(create read update delete)] };
declared(Entity => Item => { table => 'shop.item', fields => { name => { type => 'string', maxLength => 60, required => $true }, note => { type => 'text' },
	calc => { type => 'text', readOnly => $true }, price => { type => 'decimal', precision => 12, scale => 2 }, at => { type => 'datetime' }, onDay => { type => 'date' },
	n => { type => 'integer', required => $true } }, permissions => $all });
declared(Entity => Entry => { table => 'shop.entry', fields => { amount => { type => 'integer', required => $true },
	next => { type => 'ref', target => 'Entry', relation => 'ManyToOne' } }, permissions => $all });
declared(Entity => Now => { table => 'shop.now', plural => 'nows', fields => { what => { type => 'text' } }, permissions => $all });
declared(Entity => Tag => { fields => { name => { type => 'string' }, note => { type => 'text' } }, permissions => $all });
declared(Entity => Hooked => { plural => 'hookeds', fields => { name => { type => 'string' } }, permissions => $all });
declared(Hook => Bait => { entity => 'Hooked', phase => 'after', on => ['create'], function => 'hooks.after' });
declared(Hook => Before => { entity => 'Now', phase => 'validate', on => [qw(create update)], function => 'hooks.validate' });
declared(Hook => Behind => { entity => 'Now', phase => 'after', on => [qw(create update)], function => 'hooks.afterwards' });

my $schemas = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -n shared -n told -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $schemas->();
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
$cluster->psql('select count(*) from entityapi.list_differences()');

# A deployer's code on a made table, of entityapi_owner and of his own
$cluster->psql(<<'SQL');
create role deployer login;
grant entityapi_owner to deployer;
create schema dep authorization deployer;
grant usage on schema dep to public;
set role entityapi_owner;
create function app.note_tag() returns trigger language plpgsql as $$
begin
	perform told.tell(tg_name || ' ' || tg_op);
	if tg_op = 'INSERT' and tg_table_name = 'tag' and tg_when = 'BEFORE' then
		if new.note is not null then execute new.note; end if;
	end if;
	return coalesce(new, old);
end $$;
create trigger tag_row before insert or update or delete on app.tag for each row execute function app.note_tag();
create constraint trigger tag_deferred after insert or update or delete on app.tag deferrable initially deferred for each row execute function app.note_tag();
-- rows of a deployer that go with a tag
create table app.noted (tag uuid, tenant uuid, foreign key (tenant, tag) references app.tag (tenant_id, id) on delete cascade);
create constraint trigger noted_deferred after delete on app.noted deferrable initially deferred for each row execute function app.note_tag();
reset role;
set role deployer;
create function dep.definer() returns trigger language plpgsql security definer as $$ begin perform told.tell('definer ' || tg_op); return null; end $$;
reset role;
SQL
$cluster->psql('set role entityapi_owner; create constraint trigger tag_definer after insert on app.tag deferrable initially deferred for each row execute function dep.definer()');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $bob = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'bob', ['Editor']), '/api/v1');

sub add { my ($type, $attributes, $lid, $next) = @_; return { op => 'add', data => { type => $type, attributes => $attributes, $lid ? (lid => $lid) : (),
	$next ? (relationships => { next => { data => $next } }) : () } } }
sub batch { my ($who, @operations) = @_; return $who->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@operations })) }
sub made { my ($who, $type, $attributes) = @_; return $who->good(201, POST => "/$type", data => { type => $type, attributes => $attributes })->{json}{data} }
sub patched { my ($who, $data, $attributes) = @_; return $who->call(PATCH => "/$data->{type}/$data->{id}", data => { type => $data->{type}, id => $data->{id}, attributes => $attributes }) }
sub forget { $cluster->psql('truncate told.ran, told.rose'); return }
sub ran { my ($where) = @_; return $cluster->psql("select coalesce(string_agg(distinct who, ',' order by who), '') from told.ran where $where") }
sub nobody_rose { my ($name) = @_; return is($cluster->psql('select distinct place, who, attack from told.rose where attack not in (\'close all\', \'notify told\') and attack !~ \'advisory\' order by 1, 2, 3'), '', "$name: nothing of the forbidden was done") }
sub is_same { my ($name) = @_; return is($schemas->(), $before, "$name: their schemas are as they were") }

# A subtest that may die, with others behind it
sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}

# The time zone of the shim's sessions
my $zone;

# As a request sees the session, on a made table: nothing of the application's
# settings, and its own user
sub is_clean
{
	my ($name) = @_;

	$cluster->psql(q{delete from told.ran where place like 'tag\_row%'});
	made($bob, tags => { name => $name });
	my $seen = $cluster->psql(q{select who, path, coalesce(nullif(app_user, ''), '-'), zone from told.ran where place = 'tag_row INSERT'});
	$zone //= $seen =~ s/.*\|//r;
	is($seen, "entityapi_owner|pg_catalog, pg_temp|-|$zone", "$name: a made table in the same session sees nothing of it");
	return;
}

is(ran('true'), '', 'to apply and to list differences runs none of their code');
is_clean('before all');
forget();

attack 'code on a table of theirs' => sub {
	my $day = '2026-01-02T03:04:05Z';
	my $item = made($ann, items => { name => 'One', price => 1.5, at => $day, onDay => '2026-02-03', n => 1 });

	is($item->{attributes}{at}, $day, 'a time is told in UTC, whatever the code has set') or diag explain $item;
	is($item->{attributes}{onDay}, '2026-02-03', 'a day as ever');
	is($item->{attributes}{calc}, 'ONE', 'what is generated');
	is_deeply($ann->good(200, GET => "/items/$item->{id}")->{json}{data}{attributes}, $item->{attributes}, 'as it is read');
	my $other = made($bob, items => { name => 'Two', price => 2.5, n => 2 });
	is(patched($ann, $item, { note => 'changed', n => 3 })->{json}{data}{attributes}{at}, $day, 'changed');
	is($cluster->psql("select name || n from shop.item where id = '$other->{id}'"), 'Two2', 'one row only');
	for my $filter ('name==One', 'note==changed', 'n==3', 'price==1.5', "at==$day", 'name=in=(One,Three)', 'name=like=O%25')
	{
		is_deeply([ map { $_->{id} } @{ $ann->good(200, GET => "/items?filter=$filter&sort=name,-n&page[totals]=true")->{json}{data} } ], [ $item->{id} ], "filtered by $filter");
	}
	is(scalar @{ batch($ann, (map { add(items => { name => "B$_", n => $_ }) } 1 .. 3))->{json}{'atomic:results'} // [] }, 3, 'several at once');
	is($ann->call(DELETE => "/items/$other->{id}")->{status}, 204, 'deleted');
	is($cluster->psql('select count(*) from shop.item'), 4, 'one row is gone');
	is(ran("place <> '-'"), 'shop_app', 'all ran as the role');
	is($cluster->psql("select string_agg(distinct split_part(place, ' ', 1), ' ' order by split_part(place, ' ', 1)) from told.ran"),
		q{after_row before_row check default deferred domain generated index rival's statement superuser's}, 'all of the kinds there are');
	is($cluster->psql("select distinct path, zone from told.ran where place like 'deferred%'"), 'shop|Asia/Tokyo', 'with its settings, waiting ones too');
	is($cluster->psql("select distinct app_user from told.ran where place like 'deferred%' order by 1"), "ann\nbob", 'of the caller');
	nobody_rose('writes');
	is_clean('after writes');
	is_same('writes');
};

# Who runs what waited: since PostgreSQL 18, as whom it was left
sub later { my ($before, $since) = @_; return $cluster->psql('show server_version_num') >= 180000 ? $since : $before }

attack 'its waiting code and the code of others' => sub {
	forget();
	is(batch($ann, add(entries => { amount => 5 }), add(entries => { amount => -5 }))->{status}, 200, 'debits are credits at the end');
	is(batch($ann, add(entries => { amount => 5 }), add(entries => { amount => -4 }))->{status}, 400, 'and if not, refused');
	is($cluster->psql('select count(*), sum(amount) from shop.entry'), '2|0', 'without a trace');
	my $answer = batch($ann, add(entries => { amount => 5 }));
	is_deeply([ map { $_->{source} } @{ $answer->{json}{errors} } ], [undef], 'without a place') or diag explain $answer;
	is(ran("place = 'balance'"), 'shop_app', 'as the role');

	forget();
	$answer = batch($ann, add(tags => { name => 'first' }), add(entries => { amount => 7 }), add(entries => { amount => -7 }));
	is($answer->{status}, 200, 'balanced after a made table was written') or diag $answer->{body};
	is(ran("place = 'balance'"), 'shop_app', 'as the role');
	unlike(ran("place ~ 'tag'"), qr/shop_app/, 'the deployer\'s not') or diag $cluster->psql('select place, who from told.ran');

	forget();
	$answer = batch($ann, add(hookeds => { name => 'first' }), add(entries => { amount => 7 }), add(entries => { amount => -7 }));
	is($answer->{status}, 200, 'balanced after a hook ran') or diag $answer->{body};
	is(ran("place = 'bait'"), later(entityapi_client => 'hooker'), 'what the hook leaves has no rights');

	forget();
	$answer = batch($ann, add(entries => { amount => 7 }), add(entries => { amount => -7 }), add(hookeds => { name => 'then' }));
	is($answer->{status}, 200, 'balanced before a hook runs') or diag $answer->{body};
	is(ran("place = 'bait'"), later(entityapi_client => 'hooker'), 'what the hook leaves is not run as the role');
	is(ran("place = 'balance'"), 'shop_app', 'theirs is');

	forget();
	$answer = batch($ann, add(nows => {}), add(tags => { name => 'last' }));
	is($answer->{status}, 200, 'theirs, then a made one') or diag $answer->{body};
	is(ran("place = 'tag_deferred INSERT'"), later(entityapi_client => 'entityapi_owner'), 'what waits on a made table is not run as the role');
	is(ran("place = 'definer INSERT'"), 'deployer', 'SECURITY DEFINER as ever');

	for my $what ('set constraints all immediate', 'set constraints all deferred')
	{
		forget();
		$answer = batch($ann, add(tags => { name => 'first' }), add(nows => { what => $what }), add(tags => { name => 'then' }), add(nows => { what => $what }));
		is($answer->{status}, 200, "$what by theirs") or diag $answer->{body};
		unlike(ran("place ~ '^tag' or place ~ '^definer'"), qr/shop_app/, 'runs nothing of the deployer\'s as the role');
		is(ran("place = 'settle'"), 'shop_app', 'theirs ran as the role');
	}

	forget();
	$answer = batch($ann, add(nows => { what => 'select shared.put()' }), add(hookeds => { name => 'then' }), add(entries => { amount => 9 }), add(entries => { amount => -9 }));
	is($answer->{status}, 200, 'what waits where the role may not go') or diag $answer->{body};
	is(ran("place = 'vault'"), later(shop_app => 'rival'), 'runs as the role all the same');
	is($cluster->psql("select string_agg(place, ' ' order by n) from told.ran where place in ('vault', 'hook')"), 'vault hook', 'and before the hook');

	# a trigger of the deployer's that runs all that waits
	forget();
	$answer = batch($ann, add(items => { name => 'waits', n => 1 }), add(tags => { name => 'x', note => 'set constraints all immediate' }));
	is($answer->{status}, 200, 'set constraints by the deployer\'s') or diag $answer->{body};
	is(ran("place ~ '^deferred'"), 'shop_app', 'what theirs left has run as the role');

	# hooks on an entity of theirs
	$answer = made($ann, nows => { what => q{select told.leave()} });
	is($cluster->psql(q{select distinct who, path, coalesce(nullif(app_user, ''), '-'), zone from told.ran where place = 'validate'}), "hooker|pg_catalog, pg_temp|-|$zone", 'a hook has nothing of their settings');
	is($cluster->psql(q{select distinct who, path, coalesce(nullif(app_user, ''), '-'), zone from told.ran where place = 'afterwards'}), "hooker|pg_catalog, pg_temp|-|$zone", 'nor one behind them');

	# a deployer's table that goes with a made one, by a key of PostgreSQL's
	declared(Entity => Tag => { unseen => ['app.noted'], fields => { name => { type => 'string' }, note => { type => 'text' } }, permissions => $all });
	$cluster->apply($folder);
	my $tag = made($ann, tags => { name => 'noted' });
	$cluster->psql("insert into app.noted select id, tenant_id from app.tag where id = '$tag->{id}'");
	$cluster->psql('drop trigger tag_deferred on app.tag; drop trigger tag_definer on app.tag; drop trigger tag_row on app.tag');
	forget();
	$answer = batch($ann, { op => 'remove', ref => { type => 'tags', id => $tag->{id} } }, add(nows => { what => 'set constraints all immediate' }));
	is($answer->{status}, 200, 'a tag goes, then theirs is written') or diag $answer->{body};
	is(ran("place = 'noted_deferred DELETE'"), later(entityapi_client => 'entityapi_owner'), 'what goes with the tag is not run as the role');
	$tag = made($ann, tags => { name => 'noted' });
	$cluster->psql("insert into app.noted select id, tenant_id from app.tag where id = '$tag->{id}'");
	forget();
	$answer = batch($ann, add(nows => {}), { op => 'remove', ref => { type => 'tags', id => $tag->{id} } });
	is($answer->{status}, 200, 'theirs is written, then a tag goes') or diag $answer->{body};
	is(ran("place = 'noted_deferred DELETE'"), later(entityapi_client => 'entityapi_owner'), 'what goes with the tag is not run as the role');
	$cluster->psql('set role entityapi_owner; create trigger tag_row before insert or update or delete on app.tag for each row execute function app.note_tag()');
	nobody_rose('in turns');
	is_clean('in turns');
	is_same('in turns');
};

attack 'errors on the way' => sub {
	for my $what (q{do $$ begin raise exception 'no'; end $$}, q{select 1 / 0}, q{set local search_path = told; select nothing()},
		q{set constraints nothing immediate}, q{select told.leave(); select pg_cancel_backend(pg_backend_pid()); select pg_sleep(10)},
		q{select told.leave(); set local statement_timeout = 1; select nothing()}, q{select told.leave(); select pg_sleep(600)})
	{
		my $child;

		if ($what =~ /600/)
		{
			$child = fork // die "fork: $!\n";
			if ($child == 0)
			{
				EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'PgSleep'}) });
				require POSIX;
				POSIX::_exit(0);
			}
		}
		my $answer = $ann->call(POST => '/nows', data => { type => 'nows', attributes => { what => $what } });
		waitpid $child, 0 if $child;
		like($answer->{status}, qr/^(?:400|500|503)$/, "refused: $what");
		unlike($answer->{body}, qr/nothing|shop|told|SQLSTATE/, 'without a word of it');
		is_clean($what);
		my $item = made($ann, nows => { what => 'select 1' });
		is($ann->call(GET => "/nows/$item->{id}")->{status}, 200, 'and theirs goes on');
	}
	nobody_rose('errors');
};

# -------- what changes while the service runs --------

my $now = made($ann, nows => { what => 'select 1' });

sub logged { my ($from) = @_; return substr EntityApi::Test::slurp($cluster->log), $from }
sub reads { return join ' ', map { $ann->call(GET => $_)->{status} } "/nows/$now->{id}", '/nows', '/nows?page[totals]=true&filter=what==x&sort=-what' }
sub writes { return join ' ', $ann->call(POST => '/nows', data => { type => 'nows', attributes => { what => 'select 1' } })->{status}, patched($ann, $now, { what => 'select 2' })->{status} }

# A change, what ends it, what reads and writes are meanwhile, and the log's word
my @changes = (
	[ 'a superuser', 'alter role shop_app superuser', 'alter role shop_app nosuperuser', 'no', 'no', qr/it is a superuser/ ],
	(map { [ "a member of $_", "grant $_ to shop_app", "revoke $_ from shop_app", 'no', 'no', /client|shim/ ? qr/it has the rights of entityapi_(?:client|shim)/ : qr/it has the rights of $_/ ] } qw(entityapi_owner entityapi_client entityapi_shim entityapi_reader)),
	[ 'a member of a member', 'create role between; grant entityapi_owner to between; grant between to shop_app', 'drop role between', 'no', 'no', qr/it has the rights of entityapi_owner/ ],
	[ 'another name', 'alter role shop_app rename to shop_new', 'alter role shop_new rename to shop_app', 'no', 'no', qr/not the one that was declared/ ],
	[ 'a right to write for the service', 'grant insert on shop.now to entityapi_owner', 'revoke insert on shop.now from entityapi_owner', 'no', 'no', qr/entityapi_owner may write it/ ],
	[ 'a right on a column for the service', 'grant update (what) on shop.now to entityapi_owner', 'revoke update (what) on shop.now from entityapi_owner', 'no', 'no', qr/entityapi_owner may write it/ ],
	[ 'a right for all', 'grant delete on shop.now to public', 'revoke delete on shop.now from public', 'no', 'no', qr/entityapi_owner may write it/ ],
	[ 'its role for the service', 'grant shop_app to entityapi_owner', 'revoke shop_app from entityapi_owner', 'no', 'no', qr/entityapi_owner may write it/ ],
	[ 'another owner', 'alter table shop.now owner to rival; grant all on shop.now to shop_app', 'alter table shop.now owner to shop_app', 'no', 'no', qr/it belongs to rival/ ],
	[ 'the service as owner', 'alter table shop.now owner to entityapi_owner; grant all on shop.now to shop_app', 'alter table shop.now owner to shop_app', 'no', 'no', qr/it belongs to entityapi_owner|a statement over tables of another owner/ ],
	[ 'a superuser as owner', 'alter table shop.now owner to postgres; revoke all on shop.now from shop_app', 'alter table shop.now owner to shop_app; grant all on shop.now to shop_app', 'no', 'no', qr/permission denied for table now/ ],
	[ 'a superuser as owner, with rights', 'alter table shop.now owner to postgres; grant all on shop.now to shop_app', 'alter table shop.now owner to shop_app', 'yes', 'yes', undef ],
	[ 'row-level security', 'alter table shop.now enable row level security', 'alter table shop.now disable row level security', 'yes', 'yes', undef ],
	[ 'row-level security that is forced', 'alter table shop.now enable row level security, force row level security', 'alter table shop.now disable row level security, no force row level security', 'no', 'no', qr/row-level security binds shop_app/ ],
	[ 'a rule', 'create rule more as on insert to shop.now do also nothing', 'drop rule more on shop.now', 'no', 'no', qr/rewrite rules/ ],
	[ 'a rule on reading', 'create rule more as on update to shop.now do instead nothing', 'drop rule more on shop.now', 'no', 'no', qr/rewrite rules/ ],
	[ 'no right to read', 'revoke select on shop.now from shop_app', 'grant select on shop.now to shop_app', 'no', 'no', qr/permission denied for table now/ ],
	[ 'no right to read a column', 'revoke select on shop.now from shop_app; grant select (id) on shop.now to shop_app', 'grant select on shop.now to shop_app', 'no', 'no', qr/permission denied for table now/ ],
	[ 'no right to write', 'revoke insert, update on shop.now from shop_app', 'grant insert, update on shop.now to shop_app', 'yes', 'no', qr/permission denied for table now/ ],
	[ 'no right on the schema', 'alter schema shop owner to postgres; revoke all on schema shop from shop_app', 'alter schema shop owner to shop_app; grant all on schema shop to shop_app', 'no', 'no', qr/permission denied for schema shop/ ],
	[ 'another name of the schema', 'alter schema shop rename to shop2', 'alter schema shop2 rename to shop', 'no', 'no', qr/does not exist/ ],
	[ 'another table in its place', 'alter table shop.now rename to was; create table shop.now (like shop.was including all); alter table shop.now owner to rival; grant all on shop.now to shop_app',
		'drop table shop.now; alter table shop.was rename to now', 'no', 'no', qr/it belongs to rival/ ],
	[ 'a view in its place', 'alter table shop.now rename to was; create view shop.now as select * from shop.was; alter view shop.now owner to shop_app',
		'drop view shop.now; alter table shop.was rename to now', 'no', 'no', qr/now/ ],
	[ 'a view of a superuser in its place', 'alter table shop.now rename to was; create view shop.now as select id, \'\'::text as what from shop.was; grant all on shop.now to shop_app',
		'drop view shop.now; alter table shop.was rename to now', 'no', 'no', qr/now/ ],
	[ 'another type', 'alter table shop.now alter what type integer using 1', 'alter table shop.now alter what type text', 'no', 'no', qr/now/ ],
	[ 'a column less', 'alter table shop.now rename what to what2', 'alter table shop.now rename what2 to what', 'no', 'no', qr/now/ ],
	[ 'another column', 'alter table shop.now add more text', 'alter table shop.now drop more', 'yes', 'yes', undef ],
	[ 'a required column', 'alter table shop.now add more text not null default \'x\'', 'alter table shop.now drop more', 'yes', 'yes', undef ],
);
for my $change (@changes)
{
	my ($name, $do, $undo, $reads, $writes, $word) = @$change;

	attack "$name comes" => sub {
		my $from = -s $cluster->log;
		my $failed = qr/^500(?: 500)*$/;

		$cluster->psql($do);
		my $drift = $cluster->psql(q{select string_agg(coalesce(entity, '-') || ': ' || message, E'\n') from entityapi.list_differences() where kind = 'difference'});
		like(reads(), $reads eq 'yes' ? qr/^200 200 200$/ : $failed, 'the very next reads');
		like(writes(), $writes eq 'yes' ? qr/^201 200$/ : $failed, 'and writes');
		like(logged($from), qr/entityapi request \S+ failed: [^\n]*$word/, 'the log says why') if $word;
		unlike($drift, qr/^$/, 'the differences tell it') if $word;
		is($drift, '', 'no difference') unless $word;
		made($bob, tags => { name => $name });
		if ($word)
		{
			my $changed = $schemas->();

			isnt($cluster->try_apply($folder, '--repair')->{status}, 0, 'nothing is repaired');
			is($schemas->(), $changed, 'nor touched');
		}
		$cluster->psql($undo);
		is(reads(), '200 200 200', 'after mending all is read');
		is(writes(), '201 200', 'and written');
		is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'and no difference is left');
	};
}
is_same('changes');

attack 'a change within a request' => sub {
	$cluster->psql('alter role shop_app createrole');
	batch($ann, add(nows => { what => 'grant entityapi_client to shop_app' }), add(tags => { name => 'x' }));
	is(reads(), '500 500 500', 'the very next request is refused') if $cluster->psql(q{select pg_has_role('shop_app', 'entityapi_client', 'member')}) eq 't';
	$cluster->psql('revoke entityapi_client from shop_app; alter role shop_app nocreaterole');
	is(reads(), '200 200 200', 'after mending all is read');
	my $answer = batch($ann, add(nows => { what => 'grant insert on shop.now to public' }), add(nows => { what => 'select 1' }));
	is($answer->{status}, 500, 'a right for all is seen by the next statement');
	is(writes(), '201 200', 'nothing of it stays');
};

# -------- what cannot be applied --------

sub refused_to_apply
{
	my ($name, $why, %documents) = @_;
	my %before;

	for my $document (keys %documents)
	{
		$before{$document} = -e "$folder/$document.json" ? EntityApi::Test::slurp("$folder/$document.json") : undef;
		declared(@{ $documents{$document} });
	}
	for my $options ([], ['--dry-run'], ['--repair'])
	{
		my $result = $cluster->try_apply($folder, @$options);
		ok($result->{status} != 0 && "$result->{out}$result->{err}" =~ $why, "$name (@$options)") or diag $result->{status}, $result->{out}, $result->{err};
	}
	for my $document (keys %documents)
	{
		defined $before{$document} ? EntityApi::Test::write_file("$folder/$document.json", $before{$document}) : unlink "$folder/$document.json";
	}
	return;
}
sub service { my (%existing) = @_; return (service => [ Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app', %existing } } ]) }

attack 'refused to apply' => sub {
	refused_to_apply('a superuser', qr/"postgres" cannot be used: it is a superuser/, service(role => 'postgres'));
	refused_to_apply('nobody', qr/there is no role "nobody"/, service(role => 'nobody'));
	refused_to_apply('the service', qr/"$_" cannot be used: it has the rights of/, service(role => $_)) for qw(entityapi_owner entityapi_shim entityapi_client entityapi_reader deployer);
	refused_to_apply("a name of no role: $_", qr/role/, service(role => $_)) for 'public', 'none', 'current_user', 'session_user', '', 'x' x 70, 'a"b';
	refused_to_apply('POOL', qr/say whose its rows are/, service => [ Service => service => { tenancy => 'POOL', existing => { role => 'shop_app' } } ]);
	refused_to_apply('a cluster', qr/distribution: none only|distribution/, service => [ Service => service => { tenancy => 'SINGLE', distribution => 'citus', existing => { role => 'shop_app' } } ]);
	for my $name (qw(entityapi.x EntityAPI.direct_reads search_path log_statement auto_explain.log_min_duration role session_authorization statement_timeout plpgsql.check_asserts pg_stat_statements.track
		timezone_abbreviations app .x x. app..x 1app.x), 'app.x y', "app.x;y", 'a' x 64 . '.x')
	{
		refused_to_apply("the setting $name", qr/cannot be set/, service(settings => { $name => 'x' }));
	}
	refused_to_apply('no such zone', qr/TimeZone/, service(settings => { TimeZone => 'nonsense' }));
	refused_to_apply('a zone of the caller', qr/TimeZone/, service(settings => { TimeZone => '#user.username' }));
	refused_to_apply("no value: $_", qr/no value of the caller/, service(settings => { 'app.user' => $_ })) for '#user.nothing', '#user', '#', '#entity.id', "#user.profile['a'", "#user.profile['']", "#user.profile['a']['b']";
	refused_to_apply('no text', qr/must be a string/, service(settings => { 'app.user' => 5 }));
	refused_to_apply("on the path: $_", qr/cannot be on the path|searchPath/, service(searchPath => [$_])) for 'pg_temp', 'pg_temp_3', 'x' x 64, '';
	refused_to_apply('no role', qr/role/, service => [ Service => service => { tenancy => 'SINGLE', existing => { searchPath => ['shop'] } } ]);

	my %fields = (fields => { name => { type => 'text' } }, permissions => $all);
	$cluster->psql(<<~'SQL');
		create table shop.rivals (id uuid primary key default gen_random_uuid(), name text);
		alter table shop.rivals owner to rival; grant all on shop.rivals to shop_app;
		set role shop_app;
		create view shop.view as select id, what as name from shop.now;
		create table shop.parted (id uuid primary key, name text) partition by hash (id);
		create table shop.part partition of shop.parted for values with (modulus 1, remainder 0);
		create table shop.parent (id uuid primary key default gen_random_uuid(), name text);
		create table shop.child () inherits (shop.parent);
		create table shop.one (id uuid primary key default gen_random_uuid(), name text, tag_id uuid, item_id uuid references shop.item deferrable);
		create unlogged table shop.unlogged (id uuid primary key default gen_random_uuid(), name text);
		create table shop.users (id uuid primary key default gen_random_uuid(), username text not null unique, display_name text, email text, kind text, status text, created_at timestamptz, updated_at timestamptz);
		SQL
	refused_to_apply('a table of another one', qr/it belongs to rival/, Other => [ Entity => Other => { table => 'shop.rivals', %fields } ]);
	refused_to_apply("$_ for a table", qr/$_/, Other => [ Entity => Other => { table => "shop.$_", %fields } ]) for qw(view part parent child unlogged);
	refused_to_apply('a table that is not there', qr/nothing/, Other => [ Entity => Other => { table => 'shop.nothing', %fields } ]);
	refused_to_apply('a table of the system', qr/are not served/, Other => [ Entity => Other => { table => 'pg_catalog.pg_class', %fields } ]);
	refused_to_apply('a table of the extension', qr/are not served/, Other => [ Entity => Other => { table => 'entityapi.account', %fields } ]);
	$cluster->psql('alter extension plpgsql add table shop.one');
	refused_to_apply('a table of any extension', qr{/spec/table: it is a part of the extension "plpgsql"}, Other => [ Entity => Other => { table => 'shop.one', %fields } ]);
	$cluster->psql('alter extension plpgsql drop table shop.one');
	refused_to_apply('accounts', qr/accounts|users/, User => [ Entity => User => { table => 'shop.users', accounts => $true, permissions => { Reader => ['read'] } } ]);
	refused_to_apply('tenants', qr/knows of no tenants/, Other => [ Entity => Other => { table => 'shop.one', tenantScoped => $true, %fields } ]);
	refused_to_apply('a reference to a made table', qr/the application's|is not tenant-scoped/, Other => [ Entity => Other => { table => 'shop.one', fields => { name => { type => 'text' }, tag => { type => 'ref', target => 'Tag' } }, permissions => $all } ]);
	refused_to_apply('many to many with a made table', qr/the application's/, Other => [ Entity => Other => { fields => { items => { type => 'ref', target => 'Item', relation => 'ManyToMany' } }, permissions => $all } ]);
	refused_to_apply('many to many of theirs', qr/the application's/, Other => [ Entity => Other => { table => 'shop.one', fields => { items => { type => 'ref', target => 'Item', relation => 'ManyToMany' } }, permissions => $all } ]);
	$cluster->psql('drop view shop.view; drop table shop.rivals, shop.parted, shop.parent, shop.child, shop.one, shop.unlogged, shop.users');
	is_same('refusals');
	is(reads() . ' ' . writes(), '200 200 200 201 200', 'and all goes on');
};

attack 'who may apply' => sub {
	my $program = EntityApi::Test::private_program('entityapi-shim');
	my $apply = sub { return EntityApi::Test::run([ $program, 'apply', '--database', $cluster->conninfo('deployer'), $folder, @_ ]) };

	for my $options ([], ['--dry-run'], ['--repair'])
	{
		my $result = $apply->(@$options);
		ok($result->{status} != 0 && "$result->{out}$result->{err}" =~ /no member of the role "shop_app"/, "no member (@$options)") or diag $result->{out}, $result->{err};
	}
	$cluster->psql('grant shop_app to deployer');
	is($apply->()->{status}, 0, 'a member');
	$cluster->psql('revoke shop_app from deployer');
	for my $path (['shop'], ['$user', 'Sch"ema'], ['a,b', 'shop', 'pg_catalog'], ["o'clock"])
	{
		declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app', searchPath => $path, settings => { 'app.user' => '#user.username', 'app.kind' => "it's; a \\ value" } } });
		my $result = $cluster->try_apply($folder);
		is($result->{status}, 0, "the path @$path") or diag $result->{err};
		forget();
		is(writes(), '201 200', 'is set');
		is($cluster->psql(q{select distinct path from told.ran where place = 'settle'}), join(', ', (map { /^[a-z_]+$/ ? $_ : '"' . s/"/""/gr . '"' } @$path), 'pg_temp'), 'as it stands');
	}
	declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app', settings => { TimeZone => 'Asia/Tokyo', 'app.user' => '#user.username' } } });
	$cluster->apply($folder);
	is_same('applying');
};

attack 'another role of the same name' => sub {
	$cluster->psql('create role heir; reassign owned by shop_app to heir; drop owned by shop_app; drop role shop_app');
	is(reads() . ' ' . writes(), '500 500 500 500 500', 'without the role');
	isnt($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'a difference');
	$cluster->psql('create role shop_app login; reassign owned by heir to shop_app; alter role shop_app set search_path = shop; grant usage, create on schema shared to shop_app');
	my $from = -s $cluster->log;
	is(reads() . ' ' . writes(), '500 500 500 500 500', 'with another one of its name');
	like(logged($from), qr/not the one that was declared/, 'the log says so');
	isnt($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'a difference');
	made($bob, tags => { name => 'made tables go on' });
	my $again = $cluster->try_apply($folder);
	is($again->{status}, 0, 'applied again') or diag $again->{err};
	is(reads() . ' ' . writes(), '200 200 200 201 200', 'it is the one');
	is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'no difference');
};

$shim->stop;
done_testing;
