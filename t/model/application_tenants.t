# Tenants that are rows of an application: they come, are called, go and come
# again with these, and are written nowhere else.

use strict;
use warnings;
use feature 'state';

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Client;
use EntityApi::Test::Wire;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $database = ($cluster->conninfo =~ /dbname=(\S+)/)[0];
my %tenants = (table => 'shop.firm', id => 'firm_id', name => 'called');
my %existing = (role => 'shop_web', tenants => \%tenants);

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

sub service { my (%more) = @_; declared(Service => service => { existing => { %existing, %more } }); return }
sub firm { my ($n) = @_; return sprintf '0193d7a0-%04d-4aaa-8bbb-0123456789ab', $n }
sub sql { return $cluster->psql(@_) }
sub sweep { return sql('select entityapi.sweep()') }

# What is known of tenants by now, in the order of their ids
sub state_of
{
	my ($n) = @_;
	return sql('select name || \' \' || status from entityapi.tenant where id = ' . "'" . firm($n) . "'");
}

sub log_since
{
	my ($from) = @_;
	return substr EntityApi::Test::slurp($cluster->log), $from;
}

sub logged { return -s $cluster->log }

sub refused
{
	my ($name, @faults) = @_;
	my $found = $cluster->try_apply($folder);

	like($found->{err}, qr/\Q$_\E/, "$name: $_") for @faults;
	isnt($found->{exit} // 1, 0, "$name: refused");
	return;
}

sql(<<'SQL');
create role shop_owner;
create role shop_web login;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
set role shop_owner;
create domain shop.title as text check (length(value) < 1000);
create table shop.firm (n integer, firm_id uuid primary key, called shop.title, secret text);
grant select (firm_id, called) on shop.firm to shop_web;
reset role;
SQL
sub add
{
	my ($n, $name) = @_;
	sql("insert into shop.firm values ($n, '" . firm($n) . "', " . (defined $name ? "'$name'" : 'null') . ')');
	return;
}

add(1, 'Acme');
add(2, 'Initech');
declared(Roles => roles => { roles => { Clerk => {} } });
declared(Entity => Note => { fields => { words => { type => 'string' } }, permissions => { Clerk => [qw(create read)] } });
declared(Service => service => {});
$cluster->apply($folder);
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;

# Three of before: one is a row, one is and was suspended by hand, one is none
my $client = sub { my ($n, $name) = @_; return $shim->must(201, POST => '/manage/tenants', { token => $root, json => { id => firm($n), name => $name, slug => lc $name } }) };
$client->(2, 'Before');
$client->(3, 'Kept');
$client->(4, 'Alone');
$shim->must(200, PATCH => '/manage/tenants/' . firm(3), { token => $root, json => { status => 'SUSPENDED' } });
add(3, 'Suspended');
my $dump = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres $database 2>&1} };
my $before = $dump->();
service();
$cluster->apply($folder);

subtest 'apply looks' => sub {
	is(state_of(1), 'Acme ACTIVE', 'a row is a tenant');
	is(state_of(2), 'Initech ACTIVE', 'one of before is called as its row');
	is(state_of(3), 'Suspended SUSPENDED', 'and stays suspended');
	is(state_of(4), 'Alone ACTIVE', 'one of before that is no row stays as it is');
	my $tenant = $shim->must(200, GET => '/manage/tenants/' . firm(1), { token => $root });
	is_deeply([ @$tenant{qw(slug attributes)} ], [ firm(1), {} ], 'the slug is the id');
	is(sql("select slug from entityapi.tenant where name = 'Initech'"), 'before', 'that of before stays');
	my $record = $shim->must(200, GET => "/manage/audit?filter=targetId==${\ firm(1)}", { token => $root })->{data}[0];
	is_deeply([ @$record{qw(action tenantId changes)} ], [ 'TENANT_CREATED', firm(1), { name => [ undef, 'Acme' ], slug => [ undef, firm(1) ],
				status => [ undef, 'ACTIVE' ] } ], 'recorded') or diag explain $record;
	like($record->{detail}, qr/^by its row of shop\.firm, by a role of the database/, 'and why');
	is(sweep(), 0, 'a sweep finds nothing to do');
};

subtest 'not written here' => sub {
	my $path = '/manage/tenants/' . firm(1);
	for my $case ([ POST => '/manage/tenants', { name => 'x', slug => 'x' } ], [ PATCH => $path, { name => 'x' } ],
		[ PATCH => '/manage/tenants/' . firm(4), { name => 'x' } ], [ DELETE => $path ])
	{
		my ($method, $target, $json) = @$case;
		my $answer = $shim->http($method => $target, { token => $root, $json ? (json => $json) : () });
		is($answer->{status}, 405, "$method $target");
		is($answer->{headers}{allow}, 'GET, HEAD', 'what is possible');
		is($answer->{json}{errors}[0]{code}, 'METHOD_NOT_ALLOWED', 'the code');
	}
	my $document = $shim->must(200, GET => '/api/v1/openapi.json', { token => $root });
	is(join(' ', sort keys %{ $document->{paths}{'/manage/tenants'} }), 'get', 'nor described');
	is(join(' ', grep { !/parameters/ } sort keys %{ $document->{paths}{'/manage/tenants/{id}'} }), 'get', 'nor for one');
	ok(!$document->{components}{schemas}{TenantCreation}, 'with its body');
	ok($shim->user(firm(1), 'ann', ['Clerk']), 'users are made here as ever');
};

my $ann = $shim->login('ann', EntityApi::Test::Cluster::USER_PASSWORD);
sub me { return $shim->http(GET => '/auth/me', { token => $ann })->{status} }

subtest 'a row that goes, and comes' => sub {
	is(me(), 200, 'a user');
	sql("update shop.firm set called = 'Acme Inc.' where n = 1");
	is(state_of(1), 'Acme ACTIVE', 'called otherwise, and not yet seen');
	is(sweep(), 1, 'a sweep makes a change');
	is(state_of(1), 'Acme Inc. ACTIVE', 'the name follows');
	sql('delete from shop.firm where n = 1');
	is(sweep(), 1, 'gone');
	is(state_of(1), 'Acme Inc. SUSPENDED', 'is suspended');
	is(me(), 401, 'with all its users, at once');
	is($shim->http(POST => '/auth/login', { json => { username => 'ann', password => $ann->{password} // 'x' } })->{status}, 401, 'nobody logs in');
	is(sweep(), 0, 'which is done once');
	add(1, 'Acme again');
	is(sweep(), 2, 'there again');
	is(state_of(1), 'Acme again ACTIVE', 'and active');
	is(me(), 200, 'with its users');
	my $log = $shim->must(200, GET => "/manage/audit?filter=targetId==${\ firm(1)};action==TENANT_UPDATED", { token => $root })->{data};
	is_deeply([ reverse map { $_->{changes} } @$log ], [ { name => [ 'Acme', 'Acme Inc.' ] }, { status => [qw(ACTIVE SUSPENDED)] },
			{ status => [qw(SUSPENDED ACTIVE)] }, { name => [ 'Acme Inc.', 'Acme again' ] } ], 'all recorded') or diag explain $log;

	sql('delete from shop.firm where n = 3');
	sweep();
	is(state_of(3), 'Suspended SUSPENDED', 'suspended by hand, and its row is gone');
	add(3, 'Suspended');
	sweep();
	is(state_of(3), 'Suspended SUSPENDED', 'a row does not undo what was done by hand');
};

subtest 'the sweep of shims' => sub {
	my $sweeper = EntityApi::Test->shim($cluster, sweep_interval_ms => 50);
	add(5, 'By a shim');
	ok(EntityApi::Test::wait_until(60, sub { state_of(5) eq 'By a shim ACTIVE' }), 'a tenant is made');
	sql('delete from shop.firm where n = 5');
	ok(EntityApi::Test::wait_until(60, sub { state_of(5) eq 'By a shim SUSPENDED' }), 'and suspended');
	$sweeper->stop;
};

subtest 'names' => sub {
	my $notice = sub { return sql("select coalesce(string_agg(message, E'\\n'), '') from entityapi.list_differences() where kind = 'notice' and entity is null") };
	is($notice->(), '', 'all are names');
	add(10, 'x' x 300);
	add(11, '');
	add(12, undef);
	add(13, "a\tb\nc");
	add(14, "  \x{200b}  ");
	add(15, ' spaces ');
	add(16, 'Acme again');
	add(17, 'Acme again');
	is(sweep(), 8, 'all are made');
	my $name = sub { return state_of($_[0]) =~ s/ ACTIVE$//r };
	is($name->(10), 'x' x 128, 'of 300 characters it is cut');
	is($name->($_), firm($_), 'one that is none is the id') for 11, 12, 14;
	is($name->(13), 'a b c', 'control characters are spaces');
	is($name->(15), 'spaces', 'spaces around it go');
	is($name->(16), "Acme again (${\ firm(16)})", 'one that is taken has the id behind it');
	is($name->(17), "Acme again (${\ firm(17)})", 'each');
	is(sweep(), 0, 'which stays so');
	like($notice->(), qr/^5 names of shop\.firm, the first that of ${\ firm(10)}, are shown otherwise$/, 'a notice tells');
	is(sql("select count(*) from entityapi.list_differences() where kind = 'difference'"), 0, 'and is no difference');
	sql("update shop.firm set called = case n when 1 then 'Initech' else 'Acme again' end where n in (1, 2)");
	is(sweep(), 2, 'two exchange theirs');
	is(join(', ', map { $name->($_) } 1, 2), 'Initech, Acme again', 'and have them');
	sql("update shop.firm set called = 'Acme again (${\ firm(16)})' where n = 15");
	sql("update shop.firm set called = 'Other' where n = 16");
	sweep();
	sql("update shop.firm set called = 'Acme again' where n = 16");
	is(sweep(), 1, 'somebody takes the second name on purpose');
	is($name->(16), "Acme again (${\ firm(16)}) 2", 'and keeps nobody from his');
	sql('delete from shop.firm where n >= 10');
	sweep();
};

subtest 'a look that fails is no answer' => sub {
	my %break = (
		'no right' => [ 'revoke select (called) on shop.firm from shop_web', 'grant select (called) on shop.firm to shop_web', qr/shop_web may not read its column "called"/ ],
		'no schema' => [ 'revoke usage on schema shop from shop_web', 'grant usage on schema shop to shop_web', qr/shop_web may not use the schema/ ],
		'no table' => [ 'alter table shop.firm rename to was', 'alter table shop.was rename to firm', qr/there is no table shop\.firm/ ],
		'a view' => [ 'alter table shop.firm rename to was; create view shop.firm as select * from shop.was where false; grant select on shop.firm to shop_web',
			'drop view shop.firm; alter table shop.was rename to firm', qr/it is no table/ ],
		'no column' => [ 'alter table shop.firm rename called to was', 'alter table shop.firm rename was to called', qr/there is no column "called"/ ],
		'another type' => [ 'alter table shop.firm rename called to was; alter table shop.firm add called integer; grant select (called) on shop.firm to shop_web',
			'alter table shop.firm drop called; alter table shop.firm rename was to called', qr/"called" is no text/ ],
		'no key' => [ 'alter table shop.firm drop constraint firm_pkey', 'alter table shop.firm add primary key (firm_id)', qr/no primary key or immediate unique/ ],
		'row security' => [ 'alter table shop.firm enable row level security', 'alter table shop.firm disable row level security', qr/row-level security binds shop_web/ ],
		'an heir' => [ 'create table shop.heir () inherits (shop.firm)', 'drop table shop.heir', qr/inherits from it/ ],
		'another owner' => [ 'alter table shop.firm owner to shop_web', 'alter table shop.firm owner to shop_owner; grant select (firm_id, called) on shop.firm to shop_web', qr/belongs to shop_web/ ],
		'a role that is too much' => [ 'alter role shop_web superuser', 'alter role shop_web nosuperuser', qr/is not used: it is a superuser/ ]);
	my $all = sub { sql('select string_agg(concat(id, name, status, row_there), \' \' order by id) from entityapi.tenant') };
	my $was = $all->();

	sql('insert into shop.firm select 90, gen_random_uuid(), \'never seen\'');
	for my $name (sort keys %break)
	{
		my ($break, $mend, $why) = @{ $break{$name} };
		my $from = logged();
		sql("set role postgres; $break");
		is($cluster->try_psql('select entityapi.sweep()')->{out}, 0, "$name: nothing is done");
		is($all->(), $was, "$name: and nobody is suspended");
		like(log_since($from), qr/entityapi cannot look at the tenants of shop\.firm: .*$why/, "$name: a line in the log");
		like(sql("select string_agg(message, ' ') from entityapi.list_differences() where kind = 'difference'"), $why, "$name: a difference");
		is(me(), 200, "$name: all goes on");
		sql("set role postgres; $mend");
	}
	is(sql("select count(*) from entityapi.list_differences() where kind = 'difference'"), 0, 'all is mended');
	sql('delete from shop.firm where n = 90');
	is(sweep(), 0, 'as before');
	is($dump->(), $before, 'nothing of theirs is another');
};

subtest 'beside migrations, and each other' => sub {
	my $migration = EntityApi::Test::Wire->new($cluster, 'postgres');
	$migration->query('begin; lock table shop.firm in access exclusive mode')->send->answers;
	add_later();
	is(sweep(), 0, 'a sweep does not wait for a migration');
	$migration->query('rollback')->send->answers;
	sql("insert into shop.firm values (20, '" . firm(20) . "', 'Twenty')");
	my $first = EntityApi::Test::Wire->new($cluster, 'postgres');
	$first->query('begin; select entityapi.sweep()')->send->answers;
	is(sweep(), 0, 'two sessions do it one at a time');
	is(state_of(20), '', 'the first has not ended');
	$first->query('commit')->send->answers;
	is(state_of(20), 'Twenty ACTIVE', 'now it has');
	is(sweep(), 0, 'and all is done');

	# a snapshot from before is not asked
	$first->query('begin isolation level repeatable read; select 1')->send->answers;
	sql("begin; truncate shop.firm; insert into shop.firm values (1, '" . firm(1) . "', 'Initech'); commit");
	$first->query('select entityapi.sweep()')->send->answers;
	$first->query('rollback')->send->answers;
	sweep();
	is(state_of(1), 'Initech ACTIVE', 'a table that was written anew is not empty');
	is(state_of(20), 'Twenty SUSPENDED', 'and what it does not have is gone');
	$_->close for $first, $migration;
};
sub add_later { return }

# Code runs where the rows are read, by an index; it leaves more for later
subtest 'hostile tables' => sub {
	sql(<<~SQL);
		create table public.told (who text, what text, path text);
		grant insert on public.told to public;
		set role shop_owner;
		create table shop.kept (n integer);
		grant insert on shop.kept to public;
		create function shop.later() returns trigger language plpgsql as \$\$ begin
			insert into public.told values (current_user, 'later', current_setting('search_path')); return null; end \$\$;
		create constraint trigger later after insert on shop.kept deferrable initially deferred for each row execute function shop.later();
		create function shop.act(what text) returns boolean language plpgsql as \$\$ begin
			insert into public.told values (current_user, what, current_setting('search_path'));
			insert into shop.kept values (1);
			begin perform 1 from entityapi.tenant; insert into public.told values (current_user, 'rose'); exception when others then end;
			begin create temp table stays (n integer); insert into public.told values (current_user, 'rose'); exception when others then end;
			return true; end \$\$;
		create function shop.tell(what text) returns boolean language plpgsql immutable as \$\$ begin
			perform shop.act(what); return true; exception when others then return true; end \$\$;
		create index on shop.firm (n) where shop.tell('index');
		create operator shop.> (leftarg = uuid, rightarg = uuid, function = uuid_lt);
		reset role;
		grant usage on schema shop to public;
		alter role shop_web set search_path = shop, pg_catalog;
		SQL
	for my $how ('select entityapi.sweep()', 'select count(*) from entityapi.housekeep()', 'select count(*) from entityapi.apply_manifest(entityapi.export_manifest())')
	{
		state $n = 0;
		sql("update shop.firm set called = 'After ${\ ++$n}' where n = 1; delete from public.told");
		sql($how);
		is(state_of(1), "After $n ACTIVE", "$how: read as ever");
		is(sql("select count(*) from public.told where what = 'rose'"), 0, "$how: it gains nothing");

		# where nothing may be left for later, what would is undone
		is(sql("select string_agg(distinct concat(what, ' as ', who), ', ') from public.told"), $how =~ /apply/ ? '' : 'index as shop_web, later as shop_web',
			"$how: all that runs is the application's") or diag sql('select * from public.told');
	}
	sql('drop index shop.firm_n_idx');
};

subtest 'faults' => sub {
	my %wrong = (
		'tenants of one' => [ { tenancy => 'SINGLE', existing => { %existing } }, '/spec/existing/tenants: goes with tenancy: POOL only' ],
		'no object' => [ { existing => { %existing, tenants => 'shop.firm' } }, '/spec/existing/tenants: must be an object' ],
		'a member too many' => [ { existing => { %existing, tenants => { %tenants, slug => 'n' } } }, '/spec/existing/tenants/slug' ],
		'none of them' => [ { existing => { %existing, tenants => {} } }, '/spec/existing/tenants: "table" is missing', '"id" is missing', '"name" is missing' ],
		'no name of a table' => [ { existing => { %existing, tenants => { %tenants, table => 'firm' } } }, '/spec/existing/tenants/table: "firm" is no name of a table' ],
		'a closed schema' => [ { existing => { %existing, tenants => { %tenants, table => 'entityapi.tenant' } } }, '/spec/existing/tenants/table: tables of the schema "entityapi"' ],
		'a table that is not there' => [ { existing => { %existing, tenants => { %tenants, table => 'shop.nothing' } } }, '/spec/existing/tenants/table: there is no table shop.nothing' ],
		'a table of the service' => [ { existing => { %existing, tenants => { %tenants, table => 'app.note' } } }, '/spec/existing/tenants/table: it belongs to entityapi_owner' ],
		'columns that are not there' => [ { existing => { %existing, tenants => { %tenants, id => 'x', name => 'y' } } }, '/spec/existing/tenants/id: there is no column "x"',
			'/spec/existing/tenants/name: there is no column "y"' ],
		'columns of other types' => [ { existing => { %existing, tenants => { %tenants, id => 'n', name => 'n' } } }, '/spec/existing/tenants/id: the column "n" is no uuid',
			'/spec/existing/tenants/id: the column "n" takes null', '/spec/existing/tenants/id: the column "n" has no primary key', '/spec/existing/tenants/name: the column "n" is no text',
			'/spec/existing/tenants/table: shop_web may not read its column "n"' ],
		'on a cluster' => [ { distribution => 'citus', existing => { %existing } }, '/spec/existing: goes with distribution: none only' ],
		'a column of too many bytes' => [ { existing => { %existing, tenants => { %tenants, id => 'x' x 64 } } }, '/spec/existing/tenants/id: must be the name of a column' ],
		'no role' => [ { existing => { tenants => \%tenants } }, '/spec/existing: "role" is missing' ]);

	for my $name (sort keys %wrong)
	{
		my ($spec, @faults) = @{ $wrong{$name} };
		declared(Service => service => $spec);
		refused($name, @faults);
	}
	service();
	$cluster->apply($folder);
};

subtest 'taken away' => sub {
	my $was = sql('select string_agg(concat(id, name, status), \' \' order by id) from entityapi.tenant');
	declared(Service => service => { existing => { role => 'shop_web' } });
	$cluster->apply($folder);
	is(sql('select string_agg(concat(id, name, status), \' \' order by id) from entityapi.tenant'), $was, 'the tenants stay');
	sql('delete from shop.firm where n = 1');
	sweep();
	is(state_of(1), 'After 3 ACTIVE', 'whatever becomes of the rows');
	is($shim->must(200, PATCH => '/manage/tenants/' . firm(20), { token => $root, json => { status => 'ACTIVE' } })->{status}, 'ACTIVE', 'and are written again');
	is($shim->http(DELETE => '/manage/tenants/' . firm(4), { token => $root })->{status}, 204, 'and deleted');
	$client->(6, 'Six');
	is(state_of(6), 'Six ACTIVE', 'and made');
	$client->(7, 'Seven');
	add(7, 'Seven again');
	is($shim->http(DELETE => '/manage/tenants/' . firm(7), { token => $root })->{status}, 204, 'one goes whose row does not');
	service();
	$cluster->apply($folder);
	is(sql("select status from entityapi.tenant where id = '${\ firm(7)}'"), 'DELETED', 'declared again, what goes here is not held up');
	is(state_of(20), 'Twenty ACTIVE', 'one without a row stays as it is');
	is(state_of(1), 'After 3 ACTIVE', 'as any');
	ok(EntityApi::Test::wait_until(60, sub { !sweep() && !sql('select count(*) from entityapi.tenant where deleted_at is not null') }),
		'and nothing is left to do');
	is(state_of(7), 'Seven again ACTIVE', 'the row made a tenant anew, when the data of the one before had gone');
};

subtest 'many' => sub {
	my $many = $ENV{ENTITYAPI_TENANTS} // 3500;
	sql("insert into shop.firm select i, gen_random_uuid(), 'Firm ' || i from generate_series(1000, 999 + $many) i");
	my $made = 0;
	my $steps = 0;
	my $began = $cluster->processor;
	while ($steps++ < 1000 and my $n = sweep()) { $made += $n }
	diag sprintf 'made in %.0f ms of processor, %d steps', 1000 * ($cluster->processor - $began), $steps if $ENV{ENTITYAPI_TENANTS};
	cmp_ok($made, '>=', $many, 'all are made, in steps');
	cmp_ok($steps, '>', 3, 'of some each');
	is(sql("select count(*) from entityapi.tenant t join shop.firm f on f.firm_id = t.id and f.called = t.name and t.status = 'ACTIVE' where f.n >= 1000"), $many, 'and are right');
	my $writes = sub { return sql('select pg_stat_force_next_flush(); select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables where relid = \'entityapi.tenant\'::regclass') };
	my $lsn = sub { return sql('select pg_current_wal_insert_lsn()') };
	my $counted = $writes->();
	my $started = $cluster->processor;
	is(sweep(), 0, 'a look at all that finds nothing');
	diag sprintf '%d tenants looked at in %.0f ms of processor', $many, 1000 * ($cluster->processor - $started) if $ENV{ENTITYAPI_TENANTS};
	is($writes->(), $counted, 'writes nothing');
	sql('delete from shop.firm where n >= 1000 and n % 2 = 0');
	my $suspended = 0;
	while (my $n = sweep()) { $suspended += $n }
	is($suspended, int($many / 2), 'half of them go');
	is(sql("select count(*) from entityapi.tenant t join shop.firm f on f.firm_id = t.id where t.status <> 'ACTIVE'"), 0, 'and no other');
	is(sql("select count(*) from entityapi.tenant t where t.name like 'Firm %' and t.status = 'SUSPENDED'"), int($many / 2), 'all are suspended');
};

done_testing;
