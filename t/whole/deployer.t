# What a superuser calls, nobody else can change: a member of entityapi_owner
# tries with every object of the extension, and whoever calls a function of it
# runs nothing that others made, whatever his search path is.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Traps;
use EntityApi::Test::Wire;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;

$cluster->psql('create role mallory login; create role deployer login; grant entityapi_owner to deployer;
	create role analyst login in role entityapi_reader');
$cluster->apply("$checkout/t/data/entities");

my @functions = split /\n/, $cluster->psql(q{
	select p.oid::regprocedure from pg_proc p where p.pronamespace = 'entityapi'::regnamespace order by 1});
my @relations = split /\n/, $cluster->psql(q{
	select case c.relkind when 'v' then 'view ' else 'table ' end || c.oid::regclass from pg_class c
	where c.relnamespace = 'entityapi'::regnamespace and c.relkind in ('r', 'p', 'v') order by 1});

sub as_deployer
{
	return $cluster->try_psql($_[0], user => 'deployer');
}

# The statements that a deployer is not refused, or for another reason; each is a
# transaction of its own, on one connection.
sub not_refused
{
	my ($because, @statements) = @_;
	my $wire = EntityApi::Test::Wire->new($cluster, 'deployer');
	my @left = grep { join("\n", $wire->query($_)->send->answers) !~ /^E .*(?:$because)/m } @statements;

	$wire->close;
	return @left;
}

subtest 'functions' => sub {
	cmp_ok(scalar @functions, '>', 30, 'there are some');
	for my $function (@functions)
	{
		my $replaced = $cluster->psql("select replace(pg_get_functiondef('$function'::regprocedure), ' STRICT', '')");
		my @left = not_refused(qr/must be owner|permission denied|must be superuser/, $replaced,
		  map({ "alter function $function $_" } 'security definer', 'security invoker', "set search_path = 'x'", 'reset all', 'owner to deployer',
			'rename to other', 'set schema public', 'depends on extension pgcrypto'),
		  "drop function $function cascade", "comment on function $function is 'x'", "alter extension entityapi drop function $function",
		  "grant execute on function $function to mallory with grant option; do \$\$ begin if not has_function_privilege('mallory', '$function', 'execute')
			then raise exception 'permission denied'; end if; end \$\$");

		is(join("\n", @left), '', $function);
	}
};

subtest 'tables and views' => sub {
	as_deployer('create schema deployed; create function deployed.f() returns trigger language plpgsql as $$ begin return null; end $$');
	for my $relation (@relations)
	{
		my ($name) = $relation =~ /(entityapi\S+)/;
		my @left = not_refused(qr/must be owner|permission denied|must be superuser|is not a (?:table|view)|cannot create |cannot inherit from partition|cannot define statistics/,
		  "alter $relation owner to deployer", "alter table $name add column x int", "alter table $name rename to x", "alter table $name set schema public",
		  "alter table $name enable row level security", "create policy p on $name using (true)", "create index on $name ((1))",
		  "create trigger t before insert on $name for each statement execute function deployed.f()", "create rule r as on insert to $name do also select 1",
		  "create rule \"_RETURN\" as on select to $name do instead select 1", "create table deployed.x () inherits ($name)", "drop $relation cascade",
		  "create statistics deployed.s on (1), (2) from $name", "alter extension entityapi drop $relation", "alter table $name disable trigger all",
		  "truncate $name cascade", "comment on $relation is 'x'");

		is(join("\n", @left), '', $relation);
	}
	like(as_deployer($_)->{err}, qr/must be owner|permission denied|Citus has the tables of the service/, $_)
	  for 'create table entityapi.x ()', 'create function entityapi.x() returns int language sql as $$ select 1 $$', 'create type entityapi.x as enum ()',
	  'create view entityapi.audit_2099_01 as select 1', 'alter schema entityapi owner to deployer', 'alter schema entityapi rename to x', 'drop schema entityapi cascade',
	  'drop extension entityapi', 'alter extension entityapi update', 
	  'drop owned by entityapi_client cascade', 'set role entityapi_owner; create table entityapi.x ()', 'set role postgres';
};

# As it was found: an operator that fits better, one's own function under the
# name of one that a superuser is told to call
subtest 'the steps that were found' => sub {
	as_deployer('create or replace function entityapi.create_superadmin(username text, password text) returns uuid language plpgsql as
		$$ begin execute \'alter role deployer superuser\'; return gen_random_uuid(); end $$');
	like($cluster->psql(q{select entityapi.create_superadmin('root2', 'correct horse battery')}), qr/^[0-9a-f-]{36}$/, 'it is the true one');
	is($cluster->psql('select string_agg(rolname, \' \') from pg_roles where rolsuper'), 'postgres', 'nobody has risen');
};

# The tables of entities are a deployer's, so what hangs on them is his: it runs
# with the rights of entityapi_owner, and not at a superuser's commit either
subtest 'deferred triggers of a deployer' => sub {
	plan skip_all => 'Citus takes no triggers' if $cluster->nodes > 1;
	$cluster->psql(q{insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'D', 'd', 'ACTIVE', '{}', now());
		insert into app.person (tenant_id, id, name, created_at, updated_at)
		values ('01980000-0000-7000-8000-000000000001', '01980000-0000-7000-8000-000000000002', 'Ann', now(), now())});
	is(as_deployer(q{create table deployed.ran (who name); grant usage on schema deployed to entityapi_owner; grant insert, select on deployed.ran to entityapi_owner;
		create function deployed.later() returns trigger language plpgsql as $$ begin
			begin reset role; exception when others then null; end;
			insert into deployed.ran values (current_user);
			if (select rolsuper from pg_roles where rolname = current_user) then execute 'alter role deployer superuser'; end if;
			return null; end $$;
		grant create on schema deployed to entityapi_owner; alter function deployed.later() owner to entityapi_owner;
		create constraint trigger later after insert or update or delete on app.person deferrable initially deferred for each row execute function deployed.later()})->{err}, '', 'made by a deployer');
	$cluster->psql(q{update entityapi.tenant set status = 'DELETED', deleted_at = now(), deleted_by = null where slug = 'd'});
	EntityApi::Test::wait_until(20, sub {
			# in one session: on a busy machine a step may end where it began, but the
			# session knows the place
			$cluster->psql('select entityapi.sweep();' x 40);
			!$cluster->psql('select count(*) from app.person') });
	is($cluster->psql('select count(*) from app.person'), 0, 'rows were erased');
	is($cluster->psql('select string_agg(distinct who::text, \' \') from deployed.ran'), 'entityapi_owner', 'the trigger ran as the owner');
	is($cluster->psql('select string_agg(rolname, \' \') from pg_roles where rolsuper'), 'postgres', 'nobody has risen');
	is(as_deployer('drop trigger later on app.person; drop table deployed.ran')->{err}, '', 'and dropped by him');
};

# What is left to a deployer, and works
subtest 'rights' => sub {
	is(as_deployer($_)->{err}, '', $_)
	  for 'select count(*) from entityapi.apply_manifest(entityapi.export_manifest())', 'select entityapi.rotate_signing_key()', 'select entityapi.sweep()',
	  "select entityapi.create_superadmin('by-deployer', 'correct horse battery')", "select entityapi.extend_audit('2044-01-01', 1)",
	  "select entityapi.purge_audit('2001-01-01')", "select entityapi.map_role('analyst', null)", 'select * from entityapi.pending_steps',
	  'select entityapi.claim_apply()', 'select entityapi.version()',
	  'insert into entityapi.common_password values (\'their own bad password\')', 'select count(*) from entityapi.audit_2044_02';
};

# Each function as it may be called, by those who may, with traps before
# PostgreSQL's own on the path.  Who writes more functions adds them here.
my %calls = (
	'apply_manifest' => q{select count(*) from entityapi.apply_manifest(entityapi.export_manifest()::pg_catalog.jsonb operator(pg_catalog.||) '[{"apiVersion": "entityapi/v1", "kind": "Entity",
		"metadata": {"name": "Trapped"}, "spec": {"fields": {"a": {"type": "string", "index": true, "maxLength": 7, "pattern": "a.*"}}}},
		{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "User"}, "spec": {"accounts": true,
		"fields": {"born": {"type": "date", "from": "profile.born"}}}}]', false, '{Trapped}')},
	'copy_account' => q{update entityapi.account set profile = '{"displayName": "Eve", "born": "2001-02-03"}' where username operator(pg_catalog.=) 'eve'},
	'fold_case' => q{select entityapi.fold_case('ROOT')},
	'profile_value' => q{select entityapi.profile_value('{"a": 1.5}', 'a', 'decimal', 3, 1)},
	'repair_and_apply' => q{alter table app.person disable row level security; select count(*) from entityapi.repair_and_apply(entityapi.export_manifest())},
	'compare_rights' => q{select count(*) from entityapi.compare_rights(entityapi.export_manifest()::pg_catalog.jsonb operator(pg_catalog.||) '[{"apiVersion": "entityapi/v1", "kind": "Entity",
		"metadata": {"name": "Compared"}, "spec": {"fields": {"a": {"type": "string"}}, "permissions": {"*": ["read"]}}}]')},
	'list_differences' => 'select count(*) from entityapi.list_differences()',
	'export_manifest' => 'select entityapi.export_manifest()',
	'openapi' => 'select entityapi.openapi(1)',
	'note_step' => q{select entityapi.note_step(1, '57014')},
	'list_steps' => 'select count(*) from entityapi.list_steps()',
	'run_step' => 'select entityapi.run_step(77, 1)',
	'claim_apply' => 'select entityapi.claim_apply()',
	'announce_keys' => q{update entityapi.signing_key set kid = kid},
	'create_superadmin' => q{select entityapi.create_superadmin(pg_catalog.concat('root', pg_catalog.pg_backend_pid()), 'correct horse battery')},
	'rename_account' => q{select entityapi.rename_account((select id from entityapi.account where username operator(pg_catalog.=) 'eve'), 'eve')},
	'rotate_signing_key' => 'select entityapi.rotate_signing_key()',
	'revoke_signing_key' => q{select entityapi.revoke_signing_key('none')},
	'sweep' => 'select entityapi.sweep(10)',
	'housekeep' => 'select entityapi.housekeep()',
	'parse_rsql' => q{select entityapi.parse_rsql('a==1;b=in=(2,3)')},
	'check_expression' => q{select entityapi.check_expression('#record.a == 1')},
	'refuse_audit_change' => q{delete from entityapi.audit},
	'make_audit_partition' => q{select entityapi.make_audit_partition('2050-01-01')},
	'take_audit_turn' => 'select entityapi.take_audit_turn(true)',
	'note_purge' => q{select entityapi.note_purge('x')},
	'extend_audit' => q{select entityapi.extend_audit('2046-01-01', 1)},
	'purge_audit' => q{insert into entityapi.audit (id, at, action, outcome) values ('00000000-0000-0000-0000-000000000001', '2001-02-03', 'OLD', 'SUCCESS');
		select entityapi.purge_audit('2002-01-01')},
	'map_role' => q{select entityapi.map_role('analyst', 'eve')},
	'set_principal' => q{select entityapi.set_principal(null)},
	'current_tenant' => 'select entityapi.current_tenant()',
	'readable_tenant' => q{select entityapi.readable_tenant('Person')},
	'caller_sees' => q{select entityapi.caller_sees('Person', '00000000-0000-0000-0000-000000000001')},
	'caller_reads' => q{select entityapi.caller_reads('Person')},
	'caller_bypasses' => q{select entityapi.caller_bypasses('Person')},
	(map { ("caller_$_" => "select entityapi.caller_$_('username', 'x')") } qw(boolean number text uuid date datetime texts known)),
	'handle' => q{select entityapi.handle('POST', '/auth/login', '{"content-type": "application/json"}', '{"username": "eve", "password": "wrong"}', '127.0.0.1');
		select entityapi.handle('\x474554202f6865616c7468202d0a0a')},
	'version' => 'select entityapi.version()',
	'copies_accounts' => 'select entityapi.copies_accounts()',
	'statement_count' => 'select entityapi.statement_count()',
	'explain' => q{select entityapi.explain('GET', '/api/v1/people?sort=name', '{"userId": "u", "kind": "USER", "username": "u", "domainRoles": ["Editor"],
		"tenantId": "018f0000-0000-7000-8000-000000000001"}')},
	'pending_steps' => 'select * from entityapi.pending_steps',

	# for a cluster, where there is none
	(map { $_ => "select entityapi.$_()" } qw(list_own_tables list_audit_tables audit_is_distributed distribute_own distribute_audit
		undistribute_own prepare_node)),
	'drop_own_references' => 'begin; select entityapi.drop_own_references(); rollback',
	'rekey_audit' => q{begin; select entityapi.rekey_audit('entityapi.audit_default', '(tenant_id, at, id)', '(at, id)'); rollback},
	'key_audit' => 'begin; select entityapi.key_audit(true); rollback',
	'list_citus_faults' => q{select entityapi.list_citus_faults('{app}')},
	'pin_installer_path' => 'begin; select entityapi.pin_installer_path(); rollback',
	'guard_moves' => 'begin; select entityapi.guard_moves(); rollback',
	'await_replication' => 'begin; select entityapi.guard_moves(); create table public.plain (id int); create index on public.plain (id); rollback',
	'unguard_moves' => 'begin; select entityapi.guard_moves(); select entityapi.unguard_moves(); rollback',
	'guard_is_member' => 'select entityapi.guard_is_member()',
	'guard_declarations' => 'begin; select entityapi.guard_declarations(true); select entityapi.guard_declarations(false); rollback',
	'refuse_unannounced' => 'begin; select entityapi.guard_declarations(true); update entityapi.service set definition = definition; rollback',
	'declaring_here' => 'select entityapi.declaring_here()',
	'is_announced' => q{select entityapi.is_announced('{a}')},
	'seal' => q{select entityapi.seal('+service', '{"applied_at": 1}')},
	'announce' => q{select entityapi.announce('{a}')},
	'announce_here' => q{begin; select entityapi.announce_here('{a,b}'); rollback},
	'silence_role' => q{begin; select entityapi.silence_role('analyst'); rollback},
	'carry_lock_timeout' => 'begin; select entityapi.carry_lock_timeout(); rollback',
	'guard_audit' => q{select entityapi.guard_audit('entityapi.audit_default')},
	'take_back' => q{begin; select entityapi.take_back('entityapi.account'); rollback},
	'check_distributed' => q{select entityapi.check_distributed('{}')},
	'move_own_ahead' => 'select entityapi.move_own_ahead(true)',
	'role_on_nodes' => q{select entityapi.role_on_nodes('analyst')},
	'let_wait' => q{select entityapi.let_wait(1, '00000000-0000-0000-0000-000000000001', '{}', '{}', false)},
	'let_end' => 'select entityapi.let_end(true)',
	'take_turn' => 'begin; select entityapi.take_turn(1, 60000, false); rollback',
	'take_slots' => 'begin; select entityapi.take_slots(1, 1, 1, 1); rollback',
	'pass_gate' => 'select entityapi.pass_gate(1, false)',
	'hold_commits' => 'begin; select entityapi.hold_commits(true); rollback',
	'create_restore_point' => q{select entityapi.create_restore_point('point')},
	'compare_nodes' => 'select count(*) from entityapi.compare_nodes()',
	'ask_as_owner' => q{select entityapi.ask_as_owner('entityapi.account', 'select to_jsonb(count(*)) from entityapi.account')},
	'compare_copies' => 'select entityapi.compare_copies()',
	'compare_rows' => q{select count(*) from entityapi.compare_rows('a:1', true)},
	'compare_descriptions' => q{select count(*) from entityapi.compare_descriptions('[]')},
	'require_coordinator' => 'select entityapi.require_coordinator()',
	'describe_here' => 'select entityapi.describe_here()',
	'columns_of' => q{select entityapi.columns_of('app.person')},
	'count_here' => q{select entityapi.count_here('{entityapi.account}')},
);

subtest 'traps on the way' => sub {
	my $shim = EntityApi::Test->shim($cluster);
	my $tenant = $shim->tenant('acme');
	my $eve = $shim->user($tenant->{id}, 'eve', ['Editor']);
	my %missing = map { (/entityapi\.(\w+)/)[0] => 1 } @functions;

	$shim->stop;
	delete @missing{ keys %calls };
	is(join(' ', sort keys %missing), '', 'every function is called');
	EntityApi::Test::Traps::set($cluster, 'entityapi', 'traps');
	like($cluster->try_psql("set search_path = traps, pg_catalog; select 'a'::text || 'b'::text", user => 'mallory')->{out}, qr/ab/, 'the traps work');
	is(EntityApi::Test::Traps::caught($cluster, 'entityapi'), 'mallory', 'and tell');
	$cluster->psql('truncate public.caught');

	$cluster->psql(q{select entityapi.map_role('analyst', 'eve')});
	my %unharmed;
	for my $user (qw(postgres deployer analyst))
	{
		for my $name (sort keys %calls)
		{
			my $done = $cluster->try_psql("set search_path = traps, pg_catalog, public; set datestyle = 'German'; set intervalstyle = 'sql_standard'; $calls{$name}", user => $user);
			my $caught = EntityApi::Test::Traps::caught($cluster, 'entityapi') =~ s/\b\Q$user\E\b//r;

			$unharmed{$user}++ if $done->{err} !~ /ERROR/;
			is($caught, '', "$name, called by $user") or diag $done->{err};
		}
	}
	cmp_ok($unharmed{postgres}, '>', 30, 'most calls succeed');
	cmp_ok($unharmed{analyst}, '>=', 11, 'also of a reader');
	is($cluster->psql(q{select string_agg(distinct who::text, ' ') from public.caught where who in ('postgres', 'entityapi_owner')}), '', 'no superuser, and not the owner');
};

done_testing();
