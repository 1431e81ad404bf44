# pg_dump and restore of the whole database: what comes back is the service as
# it was, and it serves at once, with the credentials of before.

use strict;
use warnings;
use utf8;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Catalog;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();

# An existing table beside those that are made, a hook, a mapped role
$cluster->psql(q{
	set role entityapi_owner;
	create schema legacy;
	create table legacy."Old Things" (company uuid, "key" uuid, label varchar(50) not null, private text, primary key (company, "key"));
	reset role;
	grant usage on schema legacy to entityapi_reader;
	create role old_app;
	grant select, insert on legacy."Old Things" to old_app;
	grant usage on schema legacy to old_app;
	create schema hooks;
	create function hooks.shout(context jsonb) returns jsonb language sql security definer as
		$$select jsonb_build_object('attributes', jsonb_build_object('label', upper(context #>> '{after,attributes,label}')))$$;
	grant usage on schema hooks to entityapi_owner;
	create role analyst login in role entityapi_reader;
	grant execute on function entityapi.parse_rsql(text) to analyst;
	insert into entityapi.common_password values ('our own bad password')});
$cluster->apply("$checkout/t/data/entities", _document('things.json', {
	apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'Thing' },
	spec => {
		table => 'legacy.Old Things', columns => { tenantId => 'company', id => 'key' },
		fields => { label => { type => 'string', required => JSON::PP::true, maxLength => 50 } },
		permissions => { Editor => [qw(create read update delete)] } } }), _document('hook.json', {
	apiVersion => 'entityapi/v1', kind => 'Hook', metadata => { name => 'shout' },
	spec => { entity => 'Thing', phase => 'mutate', on => ['create'], function => 'hooks.shout' } }), _document('users.json', [
		{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'User' }, spec => { accounts => JSON::PP::true, permissions => { Editor => ['read'] },
				fields => { zone => { type => 'string', from => 'profile.zone' } } } },
		{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'Badge' }, spec => { fields => { label => { type => 'string' } },
				system => [qw(createdAt createdBy)], softDelete => JSON::PP::true, permissions => { Editor => [qw(create read update delete history restore)] } } } ]));

sub _document
{
	my ($name, $content) = @_;

	open my $file, '>', "$folder/$name" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode($content);
	close $file;
	return "$folder/$name";
}

my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme');
my $users = "/manage/tenants/$tenant->{id}";
my $eve = $shim->user($tenant->{id}, 'eve', ['Editor']);
my $second = $shim->login('eve', $eve->{password});
my $spent = $shim->login('eve', $eve->{password});
$shim->must(204, POST => '/auth/logout', { token => $spent, json => { refreshToken => $spent->{refreshToken} } });

sub made
{
	my ($type, $attributes, $relationships) = @_;

	return $shim->must(201, POST => "/api/v1/$type",
		{ token => $eve, json => { data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () } } })->{data};
}

my $ann = made(people => { name => 'Ann' });
my $bob = made(people => { name => 'Bob' }, { boss => { data => { type => 'people', id => $ann->{id} } },
		friends => { data => [ { type => 'people', id => $ann->{id} } ] } });
my $thing = made(things => { label => 'old' });
is($thing->{attributes}{label}, 'OLD', 'the hook is called');
my $badge = made(badges => { label => 'first' });
$shim->must(200, PATCH => "/api/v1/badges/$badge->{id}", { token => $eve, json => { data => { type => 'badges', id => $badge->{id}, attributes => { label => 'second' } } } });

my $key = $shim->must(201, POST => '/auth/me/api-keys', { token => $eve, json => { name => 'k', domainRoles => ['Editor'], expiresAt => '2099-01-01T00:00:00Z' } });
my $account = $shim->must(201, POST => "$users/service-accounts", { token => $root, json => { name => 'robot', roles => ['Reader'] } });
my $invite = $shim->must(201, POST => "$users/invites",
	{ token => $root, json => { email => 'a@b.example', username => 'ivy', roles => ['Reader'] } });
$cluster->psql(q{select entityapi.rotate_signing_key(); select entityapi.map_role('analyst', 'eve')});
$shim->http(POST => '/auth/login', { json => { username => 'eve', password => 'wrong' } }) for 1 .. 2;
$cluster->psql(q{insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), '2010-01-01', 'OLD', 'SUCCESS')});
$shim->stop;

# Everything there is, as text
my $contents = q{
	set timezone = 'UTC';
	create function pg_temp.rows_of(regclass, out rows text) language plpgsql as
		'begin execute format(''select string_agg(t::text, chr(10)) from %s t'', $1) into rows; end';
	select string_agg(schemaname || '.' || tablename || ' ' || coalesce(md5(pg_temp.rows_of(format('%I.%I', schemaname, tablename)::regclass)), ''), E'\n'
		order by schemaname, tablename)
	from pg_tables where schemaname not in ('pg_catalog', 'information_schema') and tablename <> 'address_failure'};

# Rows are read as they lie; a restore keeps their order
sub contents { return $cluster->psql($contents, @_) }

sub tool
{
	my ($name, @arguments) = @_;
	my $done = EntityApi::Test::run([ EntityApi::Test::server_program($name), @arguments ]);

	is($done->{status}, 0, $name) or diag $done->{err};
	is($done->{err}, '', 'without a word');
	return;
}

# Failed logins from an address are forgotten, the log's parent has no rows of
# its own, what is announced is over with the change, and two have one row that is
# made with the extension; any other table of the extension has to be in dumps.
is($cluster->psql(q{
	select string_agg(c.relname, ' ' order by c.relname) from pg_class c
	join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
	join pg_extension e on e.oid = d.refobjid and e.extname = 'entityapi'
	where c.relkind in ('r', 'p', 'S') and c.oid <> all (e.extconfig)}), 'address_failure announced audit declaring everywhere', 'tables that dumps leave out');

my $before = contents();
my $catalog = EntityApi::Test::Catalog::snapshot($cluster);
my $export = $cluster->psql('select entityapi.export_manifest()');
my $rights = q{
	select string_agg(regexp_replace(line, '\s+', ' ', 'g'), E'\n' order by line) from (
		select concat_ws(' ', c.oid::regclass, c.relowner::regrole, c.relrowsecurity,
			(select string_agg(a::text, ',' order by a::text) from unnest(c.relacl) a),
			(select string_agg(concat_ws(' ', polname, polcmd, polpermissive, polroles::regrole[], pg_get_expr(polqual, polrelid)), ';' order by polname)
			 from pg_policy where polrelid = c.oid),
			(select string_agg(attname || attacl::text, ',' order by attname) from pg_attribute where attrelid = c.oid and attacl is not null),
			(select string_agg(k.conname || case k.contype when 'c' then '' else pg_get_constraintdef(k.oid) end, ',' order by k.conname) from pg_constraint k where k.conrelid = c.oid))
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('app', 'legacy') and c.relkind = 'r') l (line)};
my $secured = $cluster->psql($rights);

tool(pg_dump => '-d', $cluster->conninfo, '-Fc', '-f', "$folder/custom");
tool(pg_dump => '-d', $cluster->conninfo, '-f', "$folder/plain.sql");
tool(pg_dumpall => '-d', $cluster->conninfo, '--roles-only', '-f', "$folder/roles.sql");

# What a restored service must be; $at is where it is.
sub check
{
	my ($at, %options) = @_;
	my $difference = join "\n", EntityApi::Test::Catalog::difference($catalog, EntityApi::Test::Catalog::snapshot($at));

	is($difference, '', 'the same catalogs');
	is(join("\n", EntityApi::Test::Catalog::difference([ split /\n/, $before ], [ split /\n/, $at->psql($contents) ])), '',
		'the same rows, in all tables');
	is($at->psql('select entityapi.export_manifest()'), $export, 'the same declarations');
	is(join("\n", EntityApi::Test::Catalog::difference([ split /\n/, $secured ], [ split /\n/, $at->psql($rights) ])), '',
		'tables with the same owners, rights, policies and constraints');
	is($at->psql('select count(*) from entityapi.apply_manifest(entityapi.export_manifest())'), 0, 'nothing to apply');

	my $again = EntityApi::Test->shim($at);
	my $get = sub { $again->http(GET => $_[0], $_[1]) };

	is($get->("/api/v1/people/$bob->{id}?include=boss,friends", { token => $eve })->{json}{included}[0]{attributes}{name}, 'Ann',
		'a token of before the dump is good');
	is($get->('/api/v1/people', { token => $spent })->{status}, 401, 'and one that was not, is not');
	is($get->('/api/v1/people', { headers => { 'X-API-Key' => $key->{key} // $key->{token} // $key->{apiKey} } })->{status}, 200, 'a key is good');
	is($again->http(POST => '/auth/token', { json => { clientId => $account->{clientId}, clientSecret => $account->{clientSecret} } })->{status},
		200, 'a service account is good');
	my $refreshed = $again->must(200, POST => '/auth/refresh', { json => { refreshToken => $second->{refreshToken} } });
	is($get->('/auth/me', { token => $refreshed })->{json}{username}, 'eve', 'a refresh token is good');
	is($again->http(POST => '/auth/accept-invite', { json => { token => $invite->{token}, username => 'ivy',
			password => 'plainly-for-a-test-9' } })->{status}, 201, 'an invite is good');
	is($again->login('eve', $eve->{password})->{tokenType} // 'Bearer', 'Bearer', 'a password is good');
	is($get->("/api/v1/badges/$badge->{id}?include=createdBy", { token => $refreshed })->{json}{included}[0]{attributes}{username}, 'eve', 'an author is there');
	is($get->("/api/v1/badges/$badge->{id}?asOf=$badge->{attributes}{createdAt}", { token => $refreshed })->{json}{data}{attributes}{label}, 'first',
		'and what was before the dump');
	$again->must(200, PATCH => '/auth/me', { token => $refreshed, json => { profile => { zone => 'UTC' } } });
	is($get->('/api/v1/users?filter=username==eve', { token => $refreshed })->{json}{data}[0]{attributes}{zone}, 'UTC', 'users follow their accounts');
	is($again->http(POST => '/api/v1/things', { token => $refreshed, json => { data => { type => 'things', attributes => { label => 'new' } } } })
		->{json}{data}{attributes}{label}, 'NEW', 'an existing table is written, with its hook');
	if ($options{other_roles})
	{
		is($at->psql('set role analyst; select count(*) from app.person', user => 'analyst'), 0, 'a role of the same name is another one');
		$at->psql(q{select entityapi.map_role('analyst', 'eve')});
	}
	is($at->psql('set role analyst; select string_agg(name, \',\' order by name) from app.person', user => 'analyst'), 'Ann,Bob',
		'a reader sees what he saw');
	like($at->try_psql('select private from legacy."Old Things"', user => 'analyst')->{err}, qr/permission denied/, 'and not more');

	for my $table ($at->psql(q{select string_agg(oid::regclass::text, ' ') from pg_class where relname ~ '^audit($|_)' and relkind in ('r', 'p')}) =~ /(\S+)/g)
	{
		like($at->try_psql($_)->{err}, qr/append-only/, "no $_")
		  for "update $table set action = 'x'", "delete from $table", "truncate $table",
		  "set session_replication_role = replica; delete from $table";
	}
	$at->psql(q{select entityapi.extend_audit('2043-05-05', 1)});
	is($at->psql(q{select string_agg(inhrelid::regclass::text, ' ' order by 1) from pg_inherits where inhrelid::regclass::text ~ '2043'}),
		'entityapi.audit_2043_05 entityapi.audit_2043_06', 'months are made');
	like($at->try_psql(q{truncate entityapi.audit_2043_05})->{err}, qr/append-only/, 'as safe as the others');
	$again->stop;
	return;
}

# As docs/operations.md says: what is a superuser's, and what has no owner, by
# one; what is entityapi_owner's, by a member of it who is no more than that.
sub restore_by_owners
{
	my ($database, $dump, $as, @how) = @_;
	my $listed = EntityApi::Test::run([ EntityApi::Test::server_program('pg_restore'), '-l', $dump ]);
	my @lines = grep { !/^;/ } split /^/, $listed->{out};
	my @left = grep { !/ (?:postgres|entityapi_owner)?$/ } @lines;
	my %lists = (superuser => [ grep { / (?:postgres)?$/ } @lines ], owner => [ grep { / entityapi_owner$/ } @lines ]);

	for my $list (sort keys %lists)
	{
		open my $out, '>', "$folder/$list.list" or die "$list.list: $!\n";
		print $out @{ $lists{$list} };
		close $out or die "$list.list: $!\n";
	}
	$cluster->psql("create database $database", database => 'postgres');
	tool(pg_restore => '-d', $cluster->conninfo('postgres', $database), '--exit-on-error', '-L', "$folder/superuser.list", $dump);
	tool(pg_restore => '-d', $cluster->conninfo($as, $database), '--exit-on-error', @how, '-L', "$folder/owner.list", $dump);
	return join '', @left;
}

subtest 'custom format, another database of the cluster' => sub {
	$cluster->psql('create role restorer login in role entityapi_owner');
	is(restore_by_owners('restored', "$folder/custom", 'restorer', '--role=entityapi_owner'), '', 'nothing is left out');

	# the shim goes to the database of this name
	$cluster->psql('alter database entityapi rename to original', database => 'postgres');
	$cluster->psql('alter database restored rename to entityapi', database => 'postgres');
	check($cluster);
};

# The extension's own tables come with their foreign keys, and jobs do not wait
# for each other's rows.
subtest 'custom format, several jobs for what takes long' => sub {
	$cluster->psql('create database parallel', database => 'postgres');
	tool(pg_restore => '-d', $cluster->conninfo('postgres', 'parallel'), '--exit-on-error', @$_, "$folder/custom")
	  for [qw(--section=pre-data --section=data)], [qw(--section=post-data -j 3)];
	is($cluster->psql($contents, database => 'parallel'), $before, 'the same rows');
};

# What evaluates expressions of tables runs them as whoever restores, and he can
# become again what he was, whoever he says that he is.
subtest 'what a deployer has hung onto tables' => sub {
	my $superusers = sub { $cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper}) };

	$cluster->psql(<<~'SQL', user => 'restorer');
		set role entityapi_owner;
		create schema dep;
		create function dep.go() returns void language plpgsql as $$ begin
			begin execute 'reset session authorization; reset role'; exception when others then null; end;
			if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then execute 'alter role restorer superuser'; end if;
			end $$;
		create function dep.rise(text) returns boolean language plpgsql immutable as $$ begin perform dep.go(); return true; end $$;
		create domain dep.text as text check (dep.rise(value));
		create function dep.add(dep.text, text) returns dep.text language sql immutable as 'select $1';
		create aggregate dep.total(text) (sfunc = dep.add, stype = dep.text, initcond = '');
		create table dep.parts (a dep.text) partition by list (a);
		create table dep.part partition of dep.parts for values in ('a');
		insert into dep.parts values ('a');
		alter table app.person add checked text check (dep.rise(checked)) default 'x',
			add made boolean generated always as (dep.rise(name)) stored,
			add domained dep.text default 'x';
		SQL
	is($superusers->(), 'postgres', '(none of it has run as a superuser)');
	my $rows = 'select string_agg(p::text, chr(10) order by id) from app.person p';
	my $before = $cluster->psql($rows);
	tool(pg_dump => '-d', $cluster->conninfo, '-Fc', '-f', "$folder/hostile");
	restore_by_owners('by_owners', "$folder/hostile", 'restorer', '--role=entityapi_owner');
	is($superusers->(), 'postgres', 'nobody has risen');
	is($cluster->psql($rows, database => 'by_owners'), $before, 'all is there');

	$cluster->psql('create database in_one', database => 'postgres');
	tool(pg_restore => '-d', $cluster->conninfo('postgres', 'in_one'), '--exit-on-error', "$folder/hostile");
	is($superusers->(), 'postgres restorer', 'in one step, by a superuser, he has');
	$cluster->psql('alter role restorer nosuperuser');
	$cluster->psql('drop schema dep cascade', user => 'restorer');
};

subtest 'plain format, a fresh cluster' => sub {
	my $fresh = EntityApi::Test->cluster(bare => 1);
	my $psql = sub { EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-Xq', '-v', "ON_ERROR_STOP=$_[0]", '-d', $fresh->conninfo, '-f', $_[1] ]) };

	# what a server without the roles says
	$fresh->psql('drop owned by entityapi_owner, entityapi_client, entityapi_reader; drop role entityapi_owner, entityapi_client, entityapi_reader');
	like($psql->(1, "$folder/plain.sql")->{err}, qr/role "\w+" does not exist/, 'the roles come first');
	$fresh->psql('drop database entityapi', database => 'postgres');
	$fresh->psql('create database entityapi', database => 'postgres');

	# roles that are there already make no difference
	my $roles = $psql->(0, "$folder/roles.sql");
	is(join('', grep { !/already exists/ } split /^/, $roles->{err}), '', 'the roles');
	my $restored = $psql->(1, "$folder/plain.sql");
	is($restored->{status}, 0, 'the database') or diag $restored->{err};
	check($fresh, other_roles => 1);
};

done_testing();
