# Whatever a superuser does by hand to the tables of the extension runs nothing
# of a deployer's with a superuser's rights.  Which tables there are, and what
# else hangs on them, the catalogs say; and onto each table of an entity a
# deployer has hung all that he can.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;

plan skip_all => 'Citus takes no triggers' if $cluster->nodes > 1;

# -------- a service whose every table has rows --------

sub entity
{
	my ($name, %spec) = @_;

	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name },
		spec => { permissions => { Editor => [qw(create read update delete)] }, %spec } };
}

sub apply
{
	my @documents = @_;

	open my $out, '>', "$folder/m.json" or die "m.json: $!\n";
	print $out JSON::PP->new->canonical->encode(\@documents);
	close $out or die "m.json: $!\n";
	return $cluster->apply("$folder/m.json");
}

my $roles = { apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {} } } };
my $user = entity('User', accounts => $true, permissions => { Editor => ['read'] }, fields => { zone => { type => 'string', from => 'profile.zone' } });
my $locker = entity('Locker', fields => { keeper => { type => 'ref', target => 'User', onDelete => 'cascade' } });

sub desk
{
	my ($name, %more) = @_;

	return entity('Desk', system => [qw(createdAt updatedAt createdBy updatedBy)],
		fields => { $name => { type => 'string', %more }, owner => { type => 'ref', target => 'User', onDelete => 'setNull' } });
}

apply($roles, $user, $locker, desk('label'));
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $eve = $shim->user($tenant, 'eve', ['Editor']);
my $ann = $shim->user($tenant, 'ann', ['Editor']);
my $desk = $shim->must(201, POST => '/api/v1/desks', { token => $eve, json => { data => { type => 'desks', attributes => { label => 'here' } } } })->{data}{id};

$shim->must(201, POST => '/auth/me/api-keys', { token => $eve, json => { name => 'k', domainRoles => ['Editor'], expiresAt => '2099-01-01T00:00:00Z' } });
$shim->must(201, POST => "/manage/tenants/$tenant/service-accounts", { token => $root, json => { name => 'robot', roles => [] } });
$shim->must(201, POST => "/manage/tenants/$tenant/invites", { token => $root, json => { email => 'a@b.example', username => 'ivy', roles => [] } });
$shim->http(POST => '/auth/login', { json => { username => 'eve', password => 'wrong' } });
$shim->stop;
apply($roles, $user, $locker, desk('name', renamedFrom => 'label', index => $true));
$cluster->psql(qq{
	create role deployer login; grant entityapi_owner to deployer;
	create role bi login in role entityapi_reader;
	select entityapi.map_role('bi', 'eve');
	insert into entityapi.common_password values ('their own bad password');
	insert into entityapi.tenant_admin select tenant_id, id from entityapi.account where username = 'eve';
	insert into entityapi.personal_api_key_setting values ('$tenant', true, true);
	insert into entityapi.login_origin select sha256('x'), id, now(), 0 from entityapi.account where username = 'eve' on conflict do nothing});

my @tables = split /\n/, $cluster->psql(q{select oid::regclass from pg_class where relnamespace = 'entityapi'::regnamespace and relkind in ('r', 'p') order by 1});
my @reached = split /\n/, $cluster->psql(q{select oid::regclass from pg_class where relowner = 'entityapi_owner'::regrole and relkind in ('r', 'p') order by 1});

# So that rows come back: none of these statements is looked at
$cluster->psql("create schema hands; create extension if not exists dblink;" . join('', map { "create table hands.$_ as table entityapi.$_;" } map { s/^entityapi\.//r } @tables));

# What has no rows gets some of any values that its columns take.
my %values = (uuid => 'gen_random_uuid()', text => q{'x'}, integer => '1', bigint => '1', boolean => 'true', bytea => q{'x'}, inet => q{'::1'},
	'timestamp with time zone' => 'now()', jsonb => q{'{}'}, json => q{'{}'}, 'text[]' => q{'{}'}, xid => q{'1'}, xid8 => q{'1'}, oid => '1', regrole => q{'bi'});
my %made_up = ('entityapi.pending_step' => { kind => q{'index'} }, 'entityapi.audit_default' => { at => q{'2001-01-01'} });

sub columns { return map { [ split /\|/ ] } split /\n/, $cluster->psql("select quote_ident(attname), format_type(atttypid, null) from pg_attribute
	where attrelid = '$_[0]'::regclass and attnum > 0 and not attisdropped order by attnum") }

for my $table (@tables)
{
	my ($name) = $table =~ /\.(.*)/;
	$made_up{$table} = { at => "'$1-$2-02'" } if $name =~ /^audit_(\d+)_(\d+)$/;
	my @values = map { $made_up{$table}{ $_->[0] } // $values{ $_->[1] } // die "no value of $_->[1]\n" } columns($table);

	next if $cluster->psql("select count(*) from hands.$name") > 0;
	$cluster->psql("insert into hands.$name values (" . join(', ', @values) . ')');
}

# -------- what the catalogs say of them --------

subtest 'nothing of others hangs on them' => sub {
	cmp_ok(scalar @tables, '>', 25, 'tables of the extension');
	cmp_ok(scalar @reached, '>=', 3, 'and of entities');
	my $ours = q{(select oid from pg_class where relnamespace = 'entityapi'::regnamespace)};
	is($cluster->psql("select string_agg(conrelid::regclass || ' ' || conname, ' ') from pg_constraint where contype = 'f' and (conrelid in $ours) <> (confrelid in $ours)
		and not (conrelid not in $ours and confrelid not in $ours)"), '', 'no foreign key goes out or comes in');
	is($cluster->psql("select string_agg(polname, ' ') from pg_policy where polrelid in $ours"), '', 'no policies');
	is($cluster->psql("select string_agg(rulename, ' ') from pg_rewrite r join pg_class c on c.oid = ev_class where ev_class in $ours and relkind <> 'v'"), '', 'no rules');
	is($cluster->psql("select string_agg(tgname, ' ') from pg_trigger t join pg_proc p on p.oid = tgfoid where tgrelid in $ours and not tgisinternal
		and (pronamespace <> 'entityapi'::regnamespace or proowner = 'entityapi_owner'::regrole or tgdeferrable
			or tgqual is not null and pg_get_triggerdef(t.oid) !~ ' FOR EACH ROW WHEN [(]entityapi.copies_accounts[(][)][)] EXECUTE FUNCTION entityapi.copy_account[(][)]\$')"), '',
		'triggers call what is the extension\'s, and none is deferred');
};

# -------- what a deployer hangs onto each table of an entity --------

my $rise = <<'SQL';
create schema dep; grant usage on schema dep to public;
create table dep.bait (a text);
create function dep.rise(what text) returns void language plpgsql as $$ begin
	raise warning 'hostile % ran as %', what, current_user;
	if (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then execute 'alter role deployer superuser'; end if;
end $$;
create function dep.yes(what text) returns boolean language plpgsql immutable as $$ begin perform dep.rise(what); return true; end $$;
create function dep.txt(what text) returns text language plpgsql immutable as $$ begin perform dep.rise(what); return what; end $$;
create function dep.any(a uuid, b uuid) returns boolean language plpgsql immutable as $$ begin perform dep.rise('operator'); return true; end $$;
create function dep.cmp(a uuid, b uuid) returns int language plpgsql immutable as $$ begin perform dep.rise('operator class'); return uuid_cmp(a, b); end $$;
create operator dep.=== (leftarg = uuid, rightarg = uuid, function = dep.any);
create domain dep.checked as text default 'x' check (dep.yes('domain'));
create function dep.trigger() returns trigger language plpgsql as $$ begin
	perform dep.rise(tg_name || ' of ' || tg_relid::regclass);
	if tg_op = 'DELETE' then return old; end if;
	return new;
end $$;
create function dep.bites() returns trigger language plpgsql as $$ begin insert into dep.bait values (tg_relid::regclass); return null; end $$;
create function dep.waits() returns trigger language plpgsql as $$ begin set constraints all deferred; return null; end $$;
create constraint trigger bait after insert on dep.bait deferrable initially deferred for each row execute function dep.trigger();
SQL

# For each kind: what is done to each table, %s; and what has to be seen, so
# that this test cannot come to look at nothing.
my %kinds = (
	nothing => { sql => '', seen => [] },
	triggers => {
		sql => 'create trigger row_before before insert or update or delete on %1$s for each row execute function dep.trigger();
			create trigger row_after after insert or update or delete on %1$s for each row execute function dep.trigger();
			create trigger before before insert or update or delete on %1$s for each statement execute function dep.trigger();
			create trigger after after insert or update or delete on %1$s for each statement execute function dep.trigger();
			create constraint trigger later after insert or update or delete on %1$s deferrable initially deferred for each row execute function dep.trigger();',
		seen => [ map { ("$_ of app.\"user\"", "$_ of app.desk") } qw(row_before row_after later) ] },
	'triggers that have others wait' => {
		sql => 'create trigger bites after insert or update or delete on %1$s for each row execute function dep.bites();', seen => [] },
	'triggers that say what waits' => {
		sql => 'create trigger waits before insert or update or delete on %1$s for each statement execute function dep.waits();
			create constraint trigger later after insert or update or delete on %1$s deferrable initially immediate for each row execute function dep.trigger();', seen => [] },
	expressions => {
		sql => q{alter table %1$s add hostile text default dep.txt('default of %2$s');
			alter table %1$s add hostile_made text generated always as (dep.txt('generated of %2$s')) stored;
			alter table %1$s add hostile_domain dep.checked;
			alter table %1$s add constraint hostile check (dep.yes('check of %2$s') and tenant_id operator(dep.===) tenant_id);
			create index hostile_%2$s on %1$s ((dep.txt('index of %2$s')));
			create index hostile_class_%2$s on %1$s (tenant_id dep.classed);
			create statistics dep.hostile_%2$s on (dep.txt('statistics')), tenant_id from %1$s;
			alter table %1$s force row level security;
			create policy hostile on %1$s using (dep.yes('policy of %2$s'));},
		seen => [ (map { ("$_ of user", "$_ of desk") } qw(check index policy)), 'default of user', 'generated of user', 'domain', 'operator', 'operator class' ] },
	rules => {
		sql => q{create rule added as on insert to %1$s do also select dep.rise('rule');
			create rule changed as on update to %1$s do also select dep.rise('rule');
			create rule gone as on delete to %1$s do also select dep.rise('rule');},
		seen => ['rule'] },
	views => {
		sql => q{alter table %1$s rename to away_%2$s;
			create view %1$s as select *, dep.txt('view') from app.away_%2$s;
			create trigger instead instead of insert or update or delete on %1$s for each row execute function dep.trigger();}, seen => [] },
);

sub superusers { return $cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper}) }

# Statements over a table, each a transaction of its own
sub statements
{
	my ($table) = @_;
	my ($name) = $table =~ /\.(.*)/;
	my @columns = map { $_->[0] } columns($table);
	my $same = join ', ', map { "$_ = $_" } @columns;

	# what cannot be deleted comes under new ids
	my $rows = $name =~ /^audit/ ? "select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid()))).* from hands.$name s" : "table hands.$name";

	return (
		"insert into $table $rows on conflict do nothing",
		"update $table set $same",
		"update $table set $columns[-1] = $columns[-1]",
		"delete from $table",
		"insert into $table $rows",
		"merge into $table t using hands.$name s on t::text = s::text when matched then update set " . join(', ', map { "$_ = s.$_" } @columns),
		"delete from $table",
		"copy ($rows) to '$folder/$name.rows'",
		"copy $table from '$folder/$name.rows'",
		"truncate $table cascade");
}

# Everything of the extension as it was; nothing of this reaches an entity
sub put_back
{
	return "set session_replication_role = replica;\n" . join('', map { s/^entityapi\.//r =~ s/^(?!audit)(.*)/delete from entityapi.$1; insert into entityapi.$1 table hands.$1;\n/r =~ s/^audit.*//r } @tables)
	  . "reset session_replication_role;\n";
}

# What a superuser is told of what he runs in a database
sub run_all
{
	my ($database, $sql) = @_;

	return EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo('postgres', $database), '-f', '-' ],
		in => $sql, env => { PGOPTIONS => '', PGCLIENTENCODING => 'UTF8' })->{err};
}

my $n = 0;
my %written;

sub try_kind
{
	my ($kind, $before) = @_;
	my $database = 'hands_' . ++$n;
	my $said = '';
	my $as_deployer = sub { $cluster->psql("set role entityapi_owner; set client_min_messages = error; $_[0]", user => 'deployer', database => $database) };

	$cluster->psql("create database $database template entityapi; grant create on database $database to entityapi_owner", database => 'postgres');
	$as_deployer->($rise);
	# only a superuser makes one; its function is the deployer's
	$cluster->psql('create operator class dep.classed for type uuid using btree as operator 1 <, operator 3 =, operator 5 >, function 1 dep.cmp(uuid, uuid)',
		database => $database);
	$as_deployer->(join '', map { my ($name) = /(\w+)"?$/; sprintf $kinds{$kind}{sql}, $_, $name } @reached) if $kinds{$kind}{sql};

	my $put_back = put_back();
	my @done = map { my $table = $_; map({ [ $table, $_ ] } statements($table)), undef } @tables;
	my $heard = run_all($database, join('', map { !defined $done[$_] ? $put_back : "\\warn @ $_\nbegin; $before $done[$_][1]; commit;\n" } 0 .. $#done));

	for (split /^@ /m, $heard)
	{
		my ($number) = /^(\d+)/ or next;
		my ($table, $statement) = @{ $done[$number] };

		$written{$table}{ ($statement =~ /^(\w+)/)[0] }++ if !/ERROR/;
		diag("$statement: $_") if $kind eq 'nothing' && /ERROR/ && !/append-only/;
	}
	$said .= $heard;

	# what waits is settled by those that say so, and by nobody else
	run_all($database, $put_back);
	$said .= run_all($database, "update entityapi.tenant set status = 'DELETED', deleted_at = now(), deleted_by = null where id = '$tenant'; " . 'select entityapi.sweep(); select entityapi.housekeep();' x 20);
	$said .= run_all($database, $put_back);
	$said .= run_all($database, qq{select entityapi.handle('PATCH', '/auth/me', '{"content-type": "application/json", "authorization": "Bearer $eve->{accessToken}"}', '{"profile": {"zone": "UTC"}}', null);});
	$said .= run_all($database, qq{select entityapi.set_principal('{"userId": "u", "kind": "USER", "tenantId": "$tenant", "domainRoles": ["Editor"]}'); select entityapi.caller_sees('Desk', '$desk');});
	$said .= run_all($database, qq{select entityapi.explain('DELETE', '/api/v1/desks/$desk', '{"userId": "u", "kind": "USER", "tenantId": "$tenant", "domainRoles": ["Editor"]}');});

	my @risen = grep { / ran as postgres/ } split /\n/, $said;
	is(join("\n", @risen[ 0 .. ($#risen > 9 ? 9 : $#risen) ]), '', 'nothing ran as the superuser');
	is(superusers(), 'postgres', 'and nobody has risen') or $cluster->psql('alter role deployer nosuperuser');
	for my $what (@{ $kinds{$kind}{seen} })
	{
		like($said, qr/hostile \Q$what\E ran as entityapi_owner/, "$what was called, as the owner");
	}
	$cluster->psql("drop database $database", database => 'postgres');
	return $said;
}

for my $kind (sort keys %kinds)
{
	subtest $kind => sub { try_kind($kind, '') };
}

# The service's own foreign keys may wait, too: what a trigger does is checked
# before it returns.
subtest 'all that can wait does' => sub {
	unlike(try_kind('nothing', 'set constraints all deferred;'), qr/security-restricted/, 'nothing is refused for that');
	try_kind($_, 'set constraints all deferred;') for 'triggers', 'triggers that say what waits';
};

subtest 'what was written' => sub {
	for my $table (@tables)
	{
		my @done = grep { $written{$table}{$_} } qw(insert copy), $table =~ /\.audit/ ? () : qw(update delete merge truncate);

		is(scalar @done, $table =~ /\.audit/ ? 2 : 6, "$table: @done");
	}
};

done_testing();
