# Code of others within a request: what it sets is undone, nothing of it runs
# as the owner of everything, and it is asked whether it may be called.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $true = JSON::PP::true;

# There tables have no triggers
my $several = $cluster->nodes > 1;
my $json = JSON::PP->new->canonical;

# mallory is nobody; a deployer is a member of the owner and no superuser
$cluster->psql(<<~'SQL');
	create role mallory login;
	create role alice login;
	create role deployer login in role entityapi_owner;
	create schema mallory authorization mallory;
	grant usage on schema mallory to public;
	create schema sales authorization entityapi_owner;
	grant usage on schema sales to entityapi_reader;
	create schema ops;
	grant usage on schema ops to public;
	set role mallory;
	create table mallory.loot (who text, what text);
	grant insert on mallory.loot to public;
	create function mallory.eq(a uuid, b uuid) returns boolean language plpgsql as $$
	begin
		insert into mallory.loot select current_user, string_agg(kid, ',') from entityapi.signing_key;
		return a operator(pg_catalog.=) b;
	exception when others then
		return a operator(pg_catalog.=) b;
	end $$;
	create operator mallory.= (leftarg = uuid, rightarg = uuid, function = mallory.eq);
	create function mallory.move_path(c jsonb) returns jsonb language plpgsql as $$
	begin
		perform set_config('search_path', 'mallory, pg_catalog', true);
		return null;
	end $$;
	create function mallory.move_path_for_good(c jsonb) returns jsonb language plpgsql as $$
	begin
		set search_path = mallory, pg_catalog;
		return null;
	end $$;
	create function mallory.stamp() returns trigger language plpgsql security definer as $$
	begin
		perform set_config('search_path', 'mallory, pg_catalog', true);
		return new;
	end $$;
	SQL

# An existing table whose trigger is a function of his, as is allowed
$cluster->psql(<<~'SQL') unless $several;
	create table sales.ord (tenant_id uuid not null, id uuid not null, no text, primary key (tenant_id, id));
	create trigger stamp before insert or update on sales.ord for each row execute function mallory.stamp();
	alter table sales.ord owner to entityapi_owner;
	SQL

my $permissions = { Any => [qw(create read update delete)] };
my @declared = (
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } },
	{ kind => 'Entity', metadata => { name => 'Tag' }, spec => { fields => { name => { type => 'string' } }, permissions => $permissions } },
	{ kind => 'Entity', metadata => { name => 'Invoice' }, spec => { fields => {
			number => { type => 'string' }, tag => { type => 'ref', target => 'Tag' },
			lines => { type => 'ref', target => 'Line', relation => 'OneToMany', mappedBy => 'invoice' } }, permissions => $permissions } },
	{ kind => 'Entity', metadata => { name => 'Line' }, spec => { fields => {
			position => { type => 'integer' }, invoice => { type => 'ref', target => 'Invoice', required => $true } }, permissions => $permissions } },
	{ kind => 'Entity', metadata => { name => 'Left' }, spec => { fields => { right => { type => 'ref', target => 'Right', onDelete => 'cascade' } }, permissions => $permissions } },
	{ kind => 'Entity', metadata => { name => 'Right' }, spec => { fields => { left => { type => 'ref', target => 'Left', onDelete => 'cascade' } }, permissions => $permissions } },
	$several ? () : { kind => 'Entity', metadata => { name => 'Ord' }, spec => { table => 'sales.ord', fields => { no => { type => 'text' } }, permissions => $permissions } });

sub hook { my ($name, $entity, $phase, $function, @on) = @_; return { kind => 'Hook', metadata => { name => $name }, spec => { entity => $entity, phase => $phase, on => \@on, function => $function } } }

sub apply
{
	my ($hooks, %options) = @_;
	my $documents = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } } @declared, @$hooks ]);

	return $cluster->try_psql("\\set VERBOSITY verbose\nselect count(*) from entityapi.apply_manifest(\$json\$$documents\$json\$, dry_run => "
		  . ($options{dry} ? 'true' : 'false') . ');', user => $options{user} // 'deployer');
}

sub must_apply { my $result = apply(@_); is($result->{status}, 0, 'applied') or diag $result->{err}; return }

must_apply([]);
my $shim = EntityApi::Test->shim($cluster);
my $acme = $shim->tenant_here('acme')->{id};
my $ann = $shim->user($acme, 'ann', ['Any']);
my $type = 'application/vnd.api+json';
my $atomic = "$type;ext=\"https://jsonapi.org/ext/atomic\"";

sub request
{
	my ($method, $path, $body, $content) = @_;
	my $text = defined $body ? 'convert_to($b$' . $json->encode($body) . '$b$, \'UTF8\')' : 'null';

	return "entityapi.handle('$method', '/api/v1/$path', '"
	  . $json->encode({ authorization => "Bearer $ann->{accessToken}", 'content-type' => $content // $type }) . "', $text, null)";
}

sub ask
{
	my $result = $cluster->try_psql('select status, body from ' . request(@_) . ';');
	my ($status, $text) = split /\|/, $result->{out}, 2;

	return { status => $status // 0, json => $text ? $json->decode(EntityApi::Test::utf8_bytes($text)) : undef, err => $result->{err} };
}

sub made
{
	my ($collection, $attributes, $relationships) = @_;
	my $answer = ask(POST => $collection, { data => { type => $collection, attributes => $attributes, $relationships ? (relationships => $relationships) : () } });

	is($answer->{status}, 201, "made one of $collection") or diag explain $answer;
	return $answer->{json}{data}{id};
}

sub changed { my ($collection, $id, $attributes) = @_; return ask(PATCH => "$collection/$id", { data => { type => $collection, id => $id, attributes => $attributes } }) }
sub to { my ($kind, $id) = @_; return { data => $id ? { type => $kind, id => $id } : undef } }
sub loot { return $cluster->psql("select count(*) from mallory.loot where what is not null or who = 'entityapi_owner'") }

my $tag = made(tags => { name => 'a' });
my $invoice = made(invoices => { number => '1' });

# The one request that lets a foreign key wait
my $later = { 'atomic:operations' => [
		{ op => 'add', data => { type => 'lines', lid => 'l', attributes => { position => 1 } } },
		{ op => 'update', ref => { type => 'lines', lid => 'l', relationship => 'invoice' }, data => { type => 'invoices', id => $invoice } } ] };

# Since 18 a trigger that waits runs as who has written, whoever makes it run
my $as_writer = $cluster->psql('show server_version_num') >= 180000;

subtest 'deferred triggers of others lend them nothing' => sub {
	my $ran = $as_writer ? 'as deployer' : 'as entityapi_client';
	my $bait = sub {
		my ($table) = @_;

		return <<~"SQL";
			create table $table (a int);
			create function pg_temp.evil() returns trigger language plpgsql as \$\$
			begin
				raise notice 'as %', current_user;
				return null;
			end \$\$;
			create constraint trigger evil after insert on $table deferrable initially deferred for each row execute function pg_temp.evil();
			SQL
	};
	my %ways = (
		'completed later' => [ request(POST => 'operations', $later, $atomic), '200' ],
		'a circle' => [ undef, '204' ]);

	$cluster->psql('create schema shared; grant all on schema shared to public');
	for my $table ('pg_temp.bait', 'shared.bait')
	{
		for my $way (sort keys %ways)
		{
			my ($request, $status) = @{ $ways{$way} };

			if (!defined $request)
			{
				my $left = made(lefts => {});
				my $right = made(rights => {}, { left => to(lefts => $left) });

				is(ask(PATCH => "lefts/$left/relationships/right", to(rights => $right))->{status}, 204, 'a circle');
				$request = request(DELETE => "lefts/$left");
			}
			my $result = $cluster->try_psql("begin;\n" . $bait->($table) . "insert into $table values (1);\nselect status from $request;\n\\echo answered\n"
				  . "\\warn answered\ncommit;\ndrop table $table;", user => 'deployer');

			like($result->{out}, qr/^$status\nanswered/m, "$way beside $table") or diag $result->{err};
			is_deeply([ $result->{err} =~ /(answered|\bas \w+)/g ], [ $ran, 'answered' ], 'its trigger ran before the answer, with no rights of ours');
		}
	}
	my $result = $cluster->try_psql("begin;\n" . $bait->('pg_temp.bait') . "insert into bait values (1);\nselect entityapi.sweep(10);\n\\warn swept\ncommit;", user => 'deployer');
	is_deeply([ $result->{err} =~ /(swept|\bas \w+)/g ], [ $ran, 'swept' ], 'and so it does within a sweep');
};

subtest 'a constraint of the same name' => sub {
	my $name = $cluster->psql("select conname from pg_constraint where conrelid = 'app.line'::regclass and contype = 'f' and pg_get_constraintdef(oid) like '%invoice%'");

	$cluster->psql(<<~"SQL");
		grant usage, create on schema app to mallory;
		set role mallory;
		create table app.bait (a int);
		create function mallory.evil() returns trigger language plpgsql as \$\$ begin insert into mallory.loot values (current_user, 'same name'); return null; end \$\$;
		create constraint trigger "$name" after insert on app.bait deferrable initially deferred for each row execute function mallory.evil();
		grant insert on app.bait to deployer;
		SQL
	my $out = $cluster->psql("begin; insert into app.bait values (1); select status from " . request(POST => 'operations', $later, $atomic) . '; rollback', user => 'deployer');
	is($out, $several ? 200 : 500, $several ? 'is told apart, as that of a part has a number' : 'is not told apart by SET CONSTRAINTS: refused');
	is(loot(), 0, 'and did not run');
	$cluster->psql('drop table app.bait; revoke all on schema app from mallory');
	is(ask(POST => 'operations', $later, $atomic)->{status}, 200, 'served again without it');
};

subtest 'the search path of a hook' => sub {
	for my $function (qw(mallory.move_path mallory.move_path_for_good))
	{
		for my $phase (qw(guard mutate validate after))
		{
			must_apply([ hook('Mal', '*', $phase, $function, qw(create update delete)) ]);
			is(changed(tags => $tag, { name => "$function $phase" })->{status}, 200, "$phase, alone");
			my $answer = ask(POST => 'operations', { 'atomic:operations' => [
						(map { { op => 'update', data => { type => 'tags', id => $tag, attributes => { name => "$_" } } } } 1 .. 2),
						@{ $later->{'atomic:operations'} } ] }, $atomic);
			is($answer->{status}, 200, 'twice in one request') or diag explain $answer;
		}
	}
	is(loot(), 0, 'gives nobody its operators');
	must_apply([]);
};

subtest 'the search path of a trigger' => sub {
	plan skip_all => 'tables have no triggers there' if $several;
	my $id = made(ords => { no => 'x' });

	is(changed(ords => $id, { no => 'y' })->{status}, 200, 'alone');
	is(ask(POST => 'operations', { 'atomic:operations' => [ map { { op => 'update', data => { type => 'ords', id => $id, attributes => { no => "z$_" } } } } 1 .. 2 ] }, $atomic)->{status},
		200, 'twice in one request');
	is(loot(), 0, 'gives nobody its operators');
};

subtest 'settings of a hook' => sub {
	my %sets = (
		'SET' => 'set datestyle = \'SQL, DMY\'; set timezone = \'Asia/Kathmandu\'; set row_security = off; set statement_timeout = 1234; set work_mem = 64',
		'SET LOCAL' => 'set local datestyle = \'SQL, DMY\'; set local timezone = \'Asia/Kathmandu\'; set local lock_timeout = 1; set local enable_seqscan = off',
		'set_config' => 'perform set_config(\'search_path\', \'mallory\', false), set_config(\'quote_all_identifiers\', \'on\', true), set_config(\'exit_on_error\', \'on\', true)',
		'RESET' => 'reset all',
		'replica' => 'set session_replication_role = replica; set row_security = off',
		'a new setting' => 'perform set_config(\'mallory.x\', \'1\', false)',
		'an exception' => 'begin set datestyle = \'SQL, DMY\'; raise division_by_zero; exception when others then set timezone = \'Asia/Kathmandu\'; end');
	my $settings = q{select jsonb_object_agg(name, setting) as s from pg_catalog.pg_settings};

	$cluster->psql(<<~"SQL");
		create table ops.seen (n int generated always as identity, who text, settings jsonb);
		alter table ops.seen owner to entityapi_owner;
		create function ops.look(c jsonb) returns jsonb language sql as \$\$
			insert into ops.seen (who, settings) select current_user || ' ' || session_user, s - 'statement_timeout' from ($settings) x (s);
			select null::jsonb
		\$\$;
		alter function ops.look(jsonb) owner to entityapi_owner;
		SQL
	for my $what (sort keys %sets)
	{
		my $as = $what eq 'replica' ? 'postgres' : 'mallory';

		$cluster->psql("create or replace function ops.set_$as(c jsonb) returns jsonb language plpgsql security definer as \$\$ begin $sets{$what}; return null; end \$\$; "
			  . "alter function ops.set_$as(jsonb) owner to $as");
		must_apply([ hook('A', 'Tag', 'guard', 'ops.look', 'update'), hook('B', 'Tag', 'guard', "ops.set_$as", 'update'), hook('C', 'Tag', 'guard', 'ops.look', 'update'),
			hook('D', 'Tag', 'mutate', "ops.set_$as", 'update'), hook('E', 'Tag', 'after', 'ops.look', 'update') ]);
		$cluster->psql('truncate ops.seen');
		my $out = $cluster->psql("load 'entityapi'; load 'plpgsql'; set timezone = 'UTC'; create temp table t as $settings;"
			  . 'select status from ' . request(PATCH => "tags/$tag", { data => { type => 'tags', id => $tag, attributes => { name => $what } } })
			  . ";\nselect s is not distinct from ($settings) from t");

		is($out, "200\nt", "$what: the session's are as before");
		is($cluster->psql('select count(distinct settings) || \' \' || count(*) || \' \' || min(who) from ops.seen'), '1 3 entityapi_owner postgres', 'and those of the next hook');
	}
	is($cluster->psql("select status from " . request(GET => 'tags')), 200, 'all is well');
	must_apply([]);
};

# A temporary object would be there for all requests that follow.  The session
# has some of its own, made before, as a function may be asked by who has them.
subtest 'temporary objects' => sub {
	my @makes = ('create temp table x (a int)', 'create table pg_temp.x (a int)', 'create temp table x (a int) on commit drop', 'create temp table x as select 1 as a',
		'create temp table x as execute stored', 'select 1 as a into temp x', 'select 1 as a into pg_temp.x', 'create temp table x (like own)', 'create temp table x () inherits (own)',
		'create table x (a int)', 'select 1 as a into x', 'explain analyze create temp table x as select 1 as a', 'create temp table x (a serial primary key)',
		'create temp table if not exists tag (a int)', 'create temp table pg_class (a int)', 'create temp table x (a int) partition by list (a)',
		'create temp table x partition of pg_temp.parted default', 'create temp view x as select 1 as a', 'create or replace temp view x as select 1 as a',
		'set local search_path = mallory; create view x as select * from pg_temp.own', 'create view pg_temp.x as select 1 as a', 'create temp recursive view x (a) as select 1', 'create temp sequence x', 'create sequence pg_temp.x',
		'create index on own (a)', 'alter table own add unique (a)', 'create statistics pg_temp.x on a, b from mallory.plain', 'alter table own add column c serial',
		q{create function pg_temp.x() returns int language sql as 'select 1'}, q{create or replace function pg_temp.own_function() returns int language sql as 'select 2'},
		q{create procedure pg_temp.x() language sql as 'select 1'}, 'create aggregate pg_temp.x(int) (sfunc = int4pl, stype = int)',
		'create type pg_temp.x as (a int)', q{create type pg_temp.x as enum ('a')}, 'create type pg_temp.x as range (subtype = int)',
		'create domain pg_temp.x as int', 'create operator pg_temp.= (function = mallory.eq, leftarg = uuid, rightarg = uuid)',
		q{create collation pg_temp.x from "C"}, 'create text search configuration pg_temp.x (copy = simple)', 'create text search dictionary pg_temp.x (template = simple)',
		'create materialized view mallory.m as select 1 as a with no data; refresh materialized view mallory.m; create unique index on mallory.m (a); refresh materialized view concurrently mallory.m');
	my $own = 'select oid from pg_class where relpersistence = $$t$$ union all select oid from pg_proc where pronamespace = pg_my_temp_schema()'
	  . ' union all select oid from pg_type where typnamespace = pg_my_temp_schema() union all select oid from pg_collation where collnamespace = pg_my_temp_schema()'
	  . ' union all select oid from pg_operator where oprnamespace = pg_my_temp_schema() union all select oid from pg_statistic_ext where stxnamespace = pg_my_temp_schema()'
	  . ' union all select oid from pg_ts_config where cfgnamespace = pg_my_temp_schema()';

	$cluster->psql('grant create on database entityapi to mallory; create table mallory.plain (a int, b int); alter table mallory.plain owner to mallory;
		set role mallory; create function mallory.make_temp(c jsonb) returns jsonb language sql as $$ select null::jsonb $$');
	for my $way ('hook', 'one that goes on', $several ? () : 'trigger')
	{
		my $goes_on = $way eq 'one that goes on';
		my $kind = $way eq 'trigger' ? 'mallory.stamp() returns trigger' : 'mallory.make_temp(c jsonb) returns jsonb';

		must_apply($way eq 'trigger' ? [] : [ hook('T', 'Tag', 'guard', 'mallory.make_temp', 'update') ]) if $way ne 'one that goes on';
		my $order = $way eq 'trigger' && made(ords => { no => 'x' });
		my $request = $order ? request(PATCH => "ords/$order", { data => { type => 'ords', id => $order, attributes => { no => 'y' } } })
		  : request(PATCH => "tags/$tag", { data => { type => 'tags', id => $tag, attributes => { name => 'x' } } });
		for my $make (@makes)
		{
			my $do = join '; ', map { "execute \$q\$$_\$q\$" } split /; /, $make;
			$do = "begin $do; exception when insufficient_privilege then null; end" if $goes_on;
			my $sql = "create or replace function $kind language plpgsql security definer set search_path = pg_temp, pg_catalog as \$f\$ begin $do; return "
			  . ($way eq 'trigger' ? 'new' : 'null') . '; end $f$';

			# outside of a request it can be done
			my $out = $cluster->try_psql("set client_min_messages = log; set role mallory; $sql; create temp table own (a int, b int);"
				  . " create function pg_temp.own_function() returns int language sql as 'select 1'; create temp table parted (a int) partition by list (a);"
				  . " prepare stored as select 1 as a; reset role; create table public.before as $own;\nselect status from $request;\n"
				  . "select count(*) from ($own) x (oid) where oid not in (select oid from public.before);\nselect pg_temp.own_function();\ndrop table public.before;\n"
				  . ($way eq 'hook' ? "begin; select mallory.make_temp(null); rollback" : ''));
			# Citus refuses some of it, before anybody else looks
			my $by_citus = $several && $out->{err} =~ /cannot execute command because a local execution has accessed a placement/;
			is(join(' ', split /\n/, $out->{out}), ($goes_on && !$by_citus ? 200 : 500) . ' 0 1', "$way: $make") or diag $out->{err};
			like($out->{err}, qr/: temporary objects cannot be made within a request/, 'and told in the log') if !$goes_on && !$by_citus;
			unlike($out->{err}, qr/ERROR:  (?!EXECUTE of SELECT)/, 'without it, it is done');
		}
	}
	must_apply([]);
	$cluster->psql("create or replace function mallory.stamp() returns trigger language plpgsql security definer as \$\$ begin return new; end \$\$; revoke create on database entityapi from mallory");
};

subtest 'who a hook cannot become' => sub {
	for my $sql ('set role entityapi_owner', 'set session authorization postgres', 'reset role', 'set local role none')
	{
		$cluster->psql("set role mallory; create or replace function mallory.rise(c jsonb) returns jsonb language plpgsql as \$\$ begin execute '$sql'; "
			  . "insert into mallory.loot values (current_user, 'risen'); return null; end \$\$");
		must_apply([ hook('R', 'Tag', 'guard', 'mallory.rise', 'update') ]);
		is(changed(tags => $tag, { name => 'x' })->{status}, 500, $sql);
	}
	is(loot(), 0, 'none did');
	must_apply([]);
};

subtest 'SET CONSTRAINTS of a hook' => sub {
	$cluster->psql(<<~'SQL');
		create function ops.wait(c jsonb) returns jsonb language plpgsql as $$ begin set constraints all deferred; return null; end $$;
		create function ops.cut(c jsonb) returns jsonb language plpgsql as $$ begin delete from app.tag where name = 'doomed'; return null; end $$;
		alter function ops.wait(jsonb) owner to mallory;
		alter function ops.cut(jsonb) owner to entityapi_owner;
		SQL
	my $doomed = made(tags => { name => 'doomed' });
	my $body = { data => { type => 'invoices', attributes => { number => '2' }, relationships => { tag => to(tags => $doomed) } } };

	must_apply([ hook('Wait', '*', 'guard', 'ops.wait', 'create', 'update'), hook('Cut', 'Invoice', 'validate', 'ops.cut', 'create') ]);
	my $answer = ask(POST => 'invoices', $body);
	is($answer->{status}, 404, 'what it lets wait is checked before the answer') or diag explain $answer;
	is($answer->{err}, '', 'and not at the end');
	is($shim->http(POST => '/api/v1/invoices', { token => $ann, json => $body })->{status}, 404, 'by HTTP, too');
	must_apply([ hook('Wait', '*', 'guard', 'ops.wait', 'create', 'update'), hook('Cut', 'Invoice', 'after', 'ops.cut', 'create') ]);
	is(ask(POST => 'invoices', $body)->{status}, 404, 'the row that is referred to');

	# a table of his, in the same request: its trigger runs at its end, with the rights of the shim
	$cluster->psql(<<~'SQL');
		set role mallory;
		create table mallory.bait (a int);
		create function mallory.spring() returns trigger language plpgsql as $$ begin raise warning 'sprung as %', current_user; return null; end $$;
		create constraint trigger spring after insert on mallory.bait deferrable initially deferred for each row execute function mallory.spring();
		create function mallory.lay(c jsonb) returns jsonb language plpgsql as $$ begin insert into mallory.bait values (1); return null; end $$;
		SQL
	must_apply([ hook('Lay', '*', 'guard', 'mallory.lay', 'create', 'update'), hook('Wait', '*', 'validate', 'ops.wait', 'create', 'update') ]);
	my $result = $cluster->try_psql("begin;\nselect status from " . request(POST => 'operations', $later, $atomic) . ";\n\\warn answered\ncommit;");
	is($result->{out}, 200, 'a hook that lays a trigger');
	my $as = $as_writer ? 'mallory' : 'entityapi_client';
	like($result->{err}, qr/\A(?:\S+ WARNING:  sprung as $as\n)+answered\n/, 'it is sprung before the answer, as who may call the service, or as himself');
	unlike($result->{err}, qr/sprung as (?!$as)/, 'and not as the owner, nor as a superuser at the commit');
	must_apply([]);
};

# -------- EXECUTE --------

my $where = qr{"pointer":\s?"/spec/function"};

subtest 'functions that may not be called' => sub {
	$cluster->psql(<<~'SQL');
		create table ops.ran (who text);
		grant insert on ops.ran to public;
		create function ops.run(args jsonb) returns jsonb language plpgsql as $$
		begin
			insert into ops.ran values (current_user);
			execute args->'after'->'attributes'->>'name';
			return null;
		end $$;
		revoke execute on function ops.run(jsonb) from public;
		create schema closed;
		create function closed.run(args jsonb) returns jsonb language sql as 'select null::jsonb';
		create function ops.two(a jsonb, b jsonb default null) returns jsonb language sql as 'select a';
		create function ops.many(a jsonb) returns setof jsonb language sql as 'select a';
		create function ops.texts(a jsonb) returns text language sql as 'select a::text';
		create procedure ops.proc(a jsonb) language sql as 'select a';
		create aggregate ops.agg(jsonb) (sfunc = ops.two, stype = jsonb);
		SQL
	my %faults = ('ops.run' => qr/it is not granted/, 'closed.run' => qr/its schema is not granted/, 'ops.two' => qr/no such function/, 'ops.many' => qr/not a function that returns one jsonb/,
		'ops.texts' => qr/not a function that returns one jsonb/, 'ops.proc' => qr/not a function that returns one jsonb/, 'ops.agg' => qr/no such function|not a function/, 'ops.nothing' => qr/no such function/,
		'nowhere.f' => qr/no such schema/);

	for my $function (sort keys %faults)
	{
		for my $dry (0, 1)
		{
			my $result = apply([ hook('Mal', 'Tag', 'guard', $function, 'create') ], dry => $dry);

			like($result->{err}, qr/JA400.*"function \\"|JA400/, "$function is refused" . ($dry ? ' in a dry run' : ''));
			like($result->{err}, qr/\Q$function\E.*$faults{$function}/s, 'by its name, with the reason');
			like($result->{err}, $where, 'at its place');
		}
	}
	is($cluster->try_psql("select ops.run('{}')", user => 'deployer')->{status} != 0, 1, 'as a direct call is');
};

subtest 'whom a function runs as' => sub {
	my $rise = { data => { type => 'tags', attributes => { name => 'alter role deployer superuser' } } };
	my $ran = sub { return $cluster->psql('select string_agg(who, \' \') from ops.ran') };

	$cluster->psql('grant execute on function ops.run(jsonb) to entityapi_owner');
	my $declined = apply([ hook('Mal', 'Tag', 'guard', 'ops.run', 'create') ]);
	like($declined->{err}, qr/belongs to a superuser and is not SECURITY DEFINER/, "a superuser's function that does not lend his rights is refused");
	like($declined->{err}, $where, 'at its place');

	$cluster->psql('alter function ops.run(jsonb) security definer');
	must_apply([ hook('Mal', 'Tag', 'guard', 'ops.run', 'create') ]);
	$cluster->psql('alter function ops.run(jsonb) security invoker');
	is(ask(POST => 'tags', $rise)->{status}, 500, 'and does not run when it becomes one');
	is($cluster->psql("select rolsuper from pg_roles where rolname = 'deployer'"), 'f', 'nobody has risen');
	$rise->{data}{attributes}{name} = 'select 1';
	is(ask(POST => 'tags', $rise)->{status}, 500, 'whatever it would do');
	is($ran->(), '', 'it did not');

	$cluster->psql('truncate ops.ran; alter function ops.run(jsonb) security definer');
	is(ask(POST => 'tags', $rise)->{status}, 201, 'one that is');
	is($ran->(), 'postgres', 'runs as declared');

	for my $definer ('invoker', 'definer')
	{
		$cluster->psql("truncate ops.ran; alter function ops.run(jsonb) owner to alice; alter function ops.run(jsonb) security $definer");
		is(ask(POST => 'tags', $rise)->{status}, 201, "of somebody else, security $definer");
		is($ran->(), 'alice', 'runs as him');
	}

	$cluster->psql('revoke execute on function ops.run(jsonb) from entityapi_owner');
	my $refused = ask(POST => 'tags', $rise);
	is($refused->{status}, 500, 'taken away since');
	like($refused->{json}{errors}[0]{detail}, qr/\AThe hook Mal failed\.\z/, 'naming the hook only');
	$cluster->psql('drop function ops.run(jsonb)');
	is(ask(POST => 'tags', $rise)->{status}, 500, 'gone since');
	must_apply([]);
};

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
