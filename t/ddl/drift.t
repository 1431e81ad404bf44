# Somebody drops or alters by hand what an apply has made: apply, its dry run
# and the status name it, and --repair puts back what can be without a loss.

use strict;
use warnings;
use utf8;

use File::Temp ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster;

sub declare
{
	my ($name, $text) = @_;

	open my $out, '>', "$folder/$name.yaml" or die "$name: $!\n";
	print $out "apiVersion: entityapi/v1\n", $text;
	close $out or die "$name: $!\n";
	return;
}

sub orders
{
	my ($more) = @_;

	return declare('order', <<"YAML");
kind: Entity
metadata: {name: Order}
spec:
  optimisticLocking: true
  fields:
    number: {type: string, maxLength: 20, required: true, unique: true}
    state: {type: string, enum: [OPEN, "IT'S DONE"], default: OPEN, required: true}
    total: {type: decimal, precision: 12, scale: 2, minimum: 0}
    note: {type: string, index: true}
    secret: {type: string, readRoles: [Chief]}
    customer: {type: ref, target: Customer, relation: ManyToOne}
    tags: {type: ref, target: Tag, relation: ManyToMany}
$more  permissions:
    Chief: [create, read, update, delete]
    Clerk: [read]
  policies:
    NotDone: [read]
YAML
}

declare(service => "kind: Service\nmetadata: {name: shop}\nspec: {tenancy: POOL}\n");
declare(roles => "kind: Roles\nmetadata: {name: roles}\nspec:\n  roles: {Chief: {}, Clerk: {}}\n");
declare(customer => <<'YAML');
kind: Entity
metadata: {name: Customer}
spec:
  softDelete: true
  fields:
    name: {type: string, required: true}
    mail: {type: string, unique: true}
  permissions:
    Chief: [create, read, update, delete]
    Clerk: [read]
YAML
declare(tag => <<'YAML');
kind: Entity
metadata: {name: Tag}
spec:
  tenantScoped: false
  fields:
    word: {type: string, required: true}
  permissions:
    "*": [read]
YAML
declare(policy => <<'YAML');
kind: Policy
metadata: {name: NotDone}
spec: {expression: "#record.state == 'OPEN'"}
YAML
orders('');
$cluster->apply($folder);
is($cluster->apply($folder), "nothing to change\n", 'what was made is what is declared');
is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'so there are no differences');

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $chief = $shim->user($tenant, 'chief', ['Chief']);
my $root = $cluster->superadmin;

sub create
{
	my ($type, %attributes) = @_;
	my $relationships = delete $attributes{relationships};
	my $answer = $shim->http(POST => "/api/v1/$type", { token => $chief,
		json => { data => { type => $type, attributes => \%attributes,
			$relationships ? (relationships => $relationships) : () } } });

	die "create: $answer->{status} $answer->{body}\n" if $answer->{status} != 201;
	return $answer->{json}{data}{id};
}

sub status
{
	return $shim->http(GET => '/manage/migrations/status', { token => $shim->login($root->{username}, $root->{password})->{accessToken} })->{json};
}

my $customer = create(customers => name => 'Bo');
create(orders => number => "N$_", total => $_,
	relationships => { customer => { data => { type => 'customers', id => $customer } } }) for 1 .. 3;

# Whom all of it is given to; several nodes would have to know him
my $one = $cluster->nodes == 1;
$cluster->psql(<<'SQL') if $one;
create role stranger;
create role "odd one" role stranger;
grant usage on schema app to stranger;
create schema theirs authorization stranger;
grant usage on schema theirs to public;
grant create on schema theirs to entityapi_owner;
SQL
my $before = $cluster->psql(catalog());

# All that is declared, in PostgreSQL's own words
sub catalog
{
	return <<'SQL';
select 'column', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
order by 2, 3;
select 'constraint', conrelid::regclass, conname, pg_get_constraintdef(k.oid), convalidated
from pg_constraint k join pg_class c on c.oid = conrelid where connamespace = 'app'::regnamespace and contype <> 'n' order by 2, 3;
select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = 'app' order by 2, 3;
select 'policy', tablename, policyname, permissive, roles, cmd, qual from pg_policies where schemaname = 'app' order by 2, 3;
select 'table', relname, relrowsecurity, relforcerowsecurity, relowner::regrole,
	(select array_agg(a::text order by a::text) from unnest(coalesce(relacl, acldefault('r', relowner))) a)
from pg_class where relnamespace = 'app'::regnamespace and relkind = 'r' order by 2;
select 'kin', inhrelid::regclass, inhparent::regclass from pg_inherits where 'app'::regnamespace in
	(select relnamespace from pg_class where oid in (inhrelid, inhparent)) and inhparent not in (select indexrelid from pg_index);
select 'rule', tablename, rulename from pg_rules where schemaname = 'app';
select 'rights', attrelid::regclass, attname, attacl from pg_attribute
where attrelid in (select oid from pg_class where relnamespace = 'app'::regnamespace) and attacl is not null and not attisdropped order by 2, 3
SQL
}

# A table that others made is on one node, and the others have none.
my $copied = $cluster->nodes > 1 ? qr/"tag__pkey" of app\.tag is called "copy_pkey"|the table app\.tag does not exist/
  : qr/"tag__pkey" of app\.tag is called "copy_pkey"/;

# What is done by hand, what is said of it, and whether it comes back as it was
my @deeds = (
	[ 'a table', 'drop table app.order_tags', qr/Order\.tags: the table app\.order_tags does not exist/ ],
	[ 'a table with references to it', 'drop table app.tag cascade', qr/the table app\.tag does not exist.*the foreign key "order_tags__tag_id_fkey"/s ],
	[ 'a column', 'alter table app."order" drop column note', qr/the column "note" of app\."order" does not exist.*the index "order__note_idx"/s ],
	[ 'a column that readers may not see', 'alter table app."order" drop column secret', qr/the column "secret"/ ],
	[ 'a column of a policy', 'drop policy entityapi_read on app."order"; alter table app."order" drop column state cascade', qr/the column "state".*the policy/s ],
	[ 'not null', 'alter table app."order" alter number drop not null', qr/the column "number" of app\."order" takes nulls/ ],
	[ 'a default', 'alter table app."order" alter version drop default', qr/the column "version" of app\."order" has not the default 0/ ],
	[ 'another default', 'alter table app."order" alter version set default 7', qr/has not the default 0/ ],
	[ 'a primary key', 'alter table app.customer drop constraint customer__pkey cascade', qr/the constraint "customer__pkey".*/ ],
	[ 'a key by another name', 'alter index app.customer__pkey rename to other', qr/the constraint "customer__pkey" of app\.customer is called "other"/ ],
	[ 'an index by another name', 'alter index app.order__note_idx rename to other', qr/the index "order__note_idx" of app\."order" is called "other"/ ],
	[ 'a copy in its place', 'create table app.copy (like app.tag including all); insert into app.copy select * from app.tag; drop table app.tag cascade; alter table app.copy rename to tag', $copied ],
	[ 'a unique key', 'alter table app."order" drop constraint order__number_key', qr/the constraint "order__number_key" of app\."order" does not exist/ ],
	[ 'a check that does not hold for all', q{alter table app."order" drop constraint order__total_minimum; alter table app."order" add constraint order__total_minimum check (total >= '0'::numeric) not valid}, qr/order__total_minimum" of app\."order" has not been validated/ ],
	[ 'a check', 'alter table app."order" drop constraint order__total_minimum', qr/order__total_minimum" of app\."order" does not exist/ ],
	[ 'another check of its name', 'alter table app."order" drop constraint order__total_minimum; alter table app."order" add constraint order__total_minimum check (total >= 1)', qr/order__total_minimum" of app\."order" is another/ ],
	[ 'a reference', 'alter table app."order" drop constraint order__customer_id_fkey', qr/the foreign key "order__customer_id_fkey"/ ],
	[ 'a reference with an action', 'alter table app."order" drop constraint order__customer_id_fkey; alter table app."order" add constraint order__customer_id_fkey foreign key (tenant_id, customer_id) references app.customer (tenant_id, id) on delete cascade deferrable', qr/the foreign key "order__customer_id_fkey" of app\."order" is another/ ],
	[ 'an index', 'drop index app.order__note_idx', qr/the index "order__note_idx"/ ],
	[ 'an index over other columns', 'drop index app.order__note_idx; create index order__note_idx on app."order" (note)', qr/the index "order__note_idx" of app\."order" is another/ ],
	[ 'an index of another kind', 'drop index app.order__note_idx; create index order__note_idx on app."order" (tenant_id, note desc)', qr/is another/ ],
	[ 'a unique index of rows that are not deleted', 'drop index app.customer__mail_key; create unique index customer__mail_key on app.customer (tenant_id, mail)', qr/the index "customer__mail_key" of app\.customer is another/ ],
	[ 'row-level security', 'alter table app.customer disable row level security', qr/row-level security of app\.customer is switched off/ ],
	[ 'row-level security on the owner', 'alter table app.customer force row level security', qr/forced on its owner/ ],
	[ 'a policy', 'drop policy entityapi_read on app.customer', qr/the policy "entityapi_read" of app\.customer does not exist/ ],
	[ 'a wider policy', 'alter policy entityapi_read on app."order" using (true)', qr/the policy "entityapi_read" of app\."order" is another/ ],
	[ 'a policy for others', 'alter policy entityapi_read on app."order" to public', qr/the policy "entityapi_read" of app\."order" is another/ ],
	[ 'rights', 'revoke all on app.customer from entityapi_reader', qr/entityapi_reader has other rights on app\.customer/ ],
	[ 'rights on a secret', 'grant select (secret) on app."order" to entityapi_reader', qr/other rights on app\."order"/ ],
	[ 'rights on all', 'grant select on app."order" to entityapi_reader', qr/other rights on app\."order"/ ],
	[ 'rights to write', 'grant insert on app.customer to entityapi_reader', qr/entityapi_reader has other rights on app\.customer/ ],
	[ 'a policy of others', 'create policy "The more" on app.customer for all to public using (true)', qr/the policy "The more" of app\.customer was made by others/ ],
	[ 'a policy that hides', 'create policy less on app."order" as restrictive using (false)', qr/the policy "less" of app\."order" was made by others/ ],
	[ 'rights of all', 'grant select on app.order_tags to public', qr/PUBLIC has rights on app\.order_tags that others granted: SELECT/ ],
	!$one ? () : (
		[ 'rights to pass on', 'grant select on app.customer to entityapi_reader with grant option; reset role; grant usage on schema app to entityapi_reader; set role entityapi_reader; grant select on app.customer to stranger',
			qr/entityapi_reader has other rights on app\.customer.*stranger has rights on app\.customer that others granted: SELECT/s ],
		[ 'rights of a role', 'grant select, delete on app."order" to "odd one"', qr/"odd one" has rights on app\."order" that others granted: DELETE, SELECT/ ],
		[ 'rights on a column', 'grant update (mail), select (name) on app.customer to stranger', qr/stranger has rights on app\.customer that others granted: SELECT \(name\), UPDATE \(mail\)/ ],
		[ 'rights that were passed on', 'grant select on app.customer to stranger with grant option; reset role; set role stranger; grant select on app.customer to "odd one"',
			qr/"odd one" has rights on app\.customer that others granted: SELECT.*stranger has rights on app\.customer that others granted: SELECT/s ],
		[ 'an owner', 'reset role; alter table app.customer owner to stranger', qr/the table app\.customer belongs to stranger/ ],
		[ 'a superuser as owner', 'reset role; alter table app.order_tags owner to current_user', qr/the table app\.order_tags belongs to \w+/ ],
		[ 'an owner, who changed it', 'reset role; alter table app.customer owner to stranger; set role stranger; drop policy entityapi_read on app.customer; create policy mine on app.customer using (true);'
			  . ' alter table app.customer force row level security, drop constraint customer__pkey cascade; grant select on app.customer to public',
			qr/forced on its owner.*the policy "entityapi_read" of app\.customer.*PUBLIC has rights.*the policy "mine".*the table app\.customer belongs to stranger/s ],
		[ 'a rule', 'create rule mine as on delete to app.customer do also nothing', qr/the rule "mine" of app\.customer was made by others/ ],
		[ 'a child', 'create table theirs."the ""kid""; x" () inherits (app.customer)', qr/theirs\."the ""kid""; x" inherits from app\.customer/ ],
		[ 'a child of a superuser', 'reset role; create table theirs.kid2 () inherits (app.tag)', qr/theirs\.kid2 inherits from app\.tag/ ],
		[ 'a parent', 'reset role; create table theirs.above (tenant_id uuid not null, id uuid not null); alter table theirs.above owner to entityapi_owner; alter table app.customer inherit theirs.above', qr/app\.customer inherits from theirs\.above/ ],
		[ 'a place among partitions', 'reset role; create table theirs.whole (like app."order") partition by list (tenant_id); alter table theirs.whole attach partition app."order" default', qr/app\."order" is a partition of theirs\.whole/ ]),
);

for my $deed (@deeds)
{
	my ($what, $sql, $said) = @$deed;

	$cluster->psql("set role entityapi_owner; $sql");
	subtest $what => sub {
		my $plain = $cluster->try_apply($folder);
		my $dry = $cluster->try_apply($folder, '--dry-run');

		is($plain->{status}, 1, 'an apply ends with 1');
		like($plain->{out}, $said, 'and names it');
		unlike($plain->{out}, qr/^[A-Z]/m, 'and does nothing');
		is($dry->{out}, $plain->{out}, 'so does a dry run');
		isnt($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'so does SQL');

		my $status = status();
		is($status->{status}, 'FAILED', 'so does the status');
		like(join("\n", map { ($_->{field} ? "$_->{entity}.$_->{field}" : $_->{entity}) . ": $_->{message}" } @{ $status->{differences} }), $said, 'by name');
		is($shim->http(GET => '/actuator/health/readiness')->{status}, 200, 'the service stays ready');

		my $mended = $cluster->try_apply($folder, '--repair');
		is($mended->{status}, 0, 'it is put back') or diag("$mended->{out}$mended->{err}");
		is($cluster->apply($folder), "nothing to change\n", 'so that nothing is left');
		is(status()->{status}, 'UP_TO_DATE', 'nor is the status');
	};
}

# Columns that were dropped come back at the end, and so their order is another.
sub sorted { return join "\n", sort split /\n/, shift }
is(sorted($cluster->psql(catalog())), sorted($before), 'the catalogs are what they were');
is($shim->http(GET => '/api/v1/orders', { token => $chief })->{status}, 200, 'requests are served');

subtest 'what a dry run of a repair says' => sub {
	plan skip_all => 'nodes know no other owner' if !$one;
	$cluster->psql('alter table app.customer owner to stranger; drop index app.order__note_idx');
	my $dry = $cluster->try_apply($folder, '--dry-run', '--repair');
	like($dry->{out}, qr/^ALTER TABLE app\.customer OWNER TO entityapi_owner;.*^-- the rest is planned when this has been done\n.*order__note_idx/ms, 'what comes first, and what is left');
	is($cluster->psql(q{select relowner::regrole from pg_class where relname = 'customer'}), 'stranger', 'and does nothing');
	my $both = $cluster->try_apply($folder, '--repair');
	is($both->{status}, 0, 'all of it is done at once') or diag("$both->{out}$both->{err}");
	like($both->{out}, qr/^ALTER TABLE app\.customer OWNER TO entityapi_owner;.*^CREATE INDEX CONCURRENTLY order__note_idx/ms, 'and shown');
	is($cluster->psql(q{select statements[1] from entityapi.revision order by revision desc limit 1}), 'ALTER TABLE app.customer OWNER TO entityapi_owner', 'and in the revision');

	$cluster->psql('create table theirs.by_note (like app."order"); grant select on app.customer to stranger; drop policy entityapi_read on app.customer');
	$dry = $cluster->try_apply($folder, '--dry-run', '--repair');
	like($dry->{out}, qr/^REVOKE ALL ON app\.customer FROM stranger CASCADE;.*^CREATE POLICY entityapi_read/ms, 'the rest is planned as ever');
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'and done');
	is($cluster->apply($folder), "nothing to change\n", 'so that nothing is left');
};

subtest 'an owner that the caller has no rights to' => sub {
	plan skip_all => 'nodes know no other owner' if !$one;
	$cluster->psql('create role deployer login; grant entityapi_owner to deployer; alter table app.customer owner to stranger');
	my $tried = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'), 'apply', '--database', $cluster->conninfo('deployer'), '--repair', $folder ]);
	is($tried->{status}, 1, 'it stays');
	like($tried->{err}, qr/the table app\.customer belongs to stranger \(ALTER TABLE app\.customer OWNER TO entityapi_owner, as a superuser or its owner\)/, 'with the statement');
	is($cluster->psql(q{select relowner::regrole from pg_class where relname = 'customer'}), 'stranger', 'as it was');
	$cluster->psql('grant stranger to deployer');
	$tried = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'), 'apply', '--database', $cluster->conninfo('deployer'), '--repair', $folder ]);
	is($tried->{status}, 0, 'a member of both can') or diag("$tried->{out}$tried->{err}");
	is($cluster->apply($folder), "nothing to change\n", 'so that nothing is left');
	$cluster->psql('revoke stranger from deployer');
};

# His functions ran with the rights of entityapi_owner, if rows were looked at.
subtest 'code that an owner left behind' => sub {
	plan skip_all => 'nodes know no other owner' if !$one;
	$cluster->psql(<<'SQL');
alter table app.customer owner to stranger;
set role stranger;
create sequence theirs.calls;
grant all on sequence theirs.calls to public;
create function theirs.look(text) returns boolean language plpgsql immutable as $$ begin perform nextval('theirs.calls'); return true; end $$;
create policy mine on app.customer using (theirs.look(name));
alter table app.customer force row level security;
grant all on app.customer to entityapi_owner;
alter table app.customer drop constraint customer__pkey cascade;
SQL
	my $mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 0, 'a policy goes with the repair') or diag("$mended->{out}$mended->{err}");
	is($cluster->psql('select is_called from theirs.calls'), 'f', 'and nothing of it ran');
	is($cluster->apply($folder), "nothing to change\n", 'so that nothing is left');

	$cluster->psql(<<'SQL');
alter table app.customer owner to stranger;
grant create on schema app to stranger;
set role stranger;
create index mine on app.customer (id) where theirs.look('x');
alter table app.customer drop constraint customer__pkey cascade;
SQL
	$cluster->psql(q{select setval('theirs.calls', 1, false)});
	for my $options ([], ['--dry-run'], ['--repair'], [ '--repair', '--dry-run' ])
	{
		my $refused = $cluster->try_apply($folder, @$options);
		is($refused->{status}, 1, "an index is for him to drop: @$options");
		like($refused->{out} . $refused->{err}, qr/theirs\.look\(text\) is called by the table/, 'as it says') or diag("$refused->{out}$refused->{err}");
	}
	is($cluster->psql('select is_called from theirs.calls'), 'f', 'and nothing of it ran');
	is($cluster->psql(q{select relowner::regrole from pg_class where relname = 'customer'}), 'stranger', 'nor was anything changed');
	$cluster->psql('drop index app.mine; revoke create on schema app from stranger');
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'then all of it is put back');
};

subtest 'children that are gone' => sub {
	plan skip_all => 'Citus takes nothing that inherits' if !$one;
	$cluster->psql('create table theirs.k () inherits (app.tag); drop table theirs.k');
	is($cluster->psql(q{select relhassubclass from pg_class where oid = 'app.tag'::regclass}), 't', 'PostgreSQL looks for them until ANALYZE');
	is($cluster->apply($folder), "nothing to change\n", 'an apply does not');
	is(status()->{status}, 'UP_TO_DATE', 'nor does the status');

	my $other = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-c', 'create temp table k () inherits (app.tag)', '-c', 'select pg_sleep(600)' ]);
	EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_inherits where inhparent = 'app.tag'::regclass}) == 1 });
	my $mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 1, 'a temporary child of another session stays');
	like($mended->{out}, qr/pg_temp_\d+\.k inherits from app\.tag \(end the session that has it\)/, 'as it says') or diag("$mended->{out}$mended->{err}");
	$cluster->psql(q{select pg_terminate_backend(pid, 60000) from pg_stat_activity where query = 'select pg_sleep(600)'});
	is($cluster->apply($folder), "nothing to change\n", 'it went with the session');
};

# Whatever may be meant by it
subtest 'code of others' => sub {
	$cluster->everywhere(<<'SQL');
create schema ours authorization entityapi_owner;
set role entityapi_owner;
create function ours.fine(text) returns boolean language sql immutable as 'select true';
create function ours.same(text, text) returns boolean language sql immutable as 'select true';
create operator ours.== (function = ours.same, leftarg = text, rightarg = text);
create function ours.word() returns text language sql volatile as $$select 'x'$$;
create function ours.long(text) returns int language sql immutable as 'select 1';
create function ours.sees() returns trigger language plpgsql as 'begin return new; end';
create domain ours.checked as text check (ours.fine(value));
SQL
	my $many = $cluster->nodes > 1;
	$cluster->psql('set role entityapi_owner; ' . join '; ',
		$many ? () : ('create trigger "Sees it" before insert on app.customer for each row execute function ours.sees()',
			'alter table app.tag add more ours.checked[]'),
		'alter table app.customer add constraint fine check (ours.fine(name))', q{alter table app.customer add constraint same check (name operator(ours.==) 'x')},
		'alter table app.customer add drawn text default ours.word()', 'alter table app.customer add long int generated always as (ours.long(name)) stored',
		'create index long on app.customer (ours.long(name))');
	my %told = map { $_ => 1 } split /\n/, $cluster->psql(q{select coalesce(entity || '.' || field, entity) || ': ' || message from entityapi.list_differences() where kind = 'notice'});
	my @wanted = ($many ? () : ('Customer: the trigger "Sees it" of app.customer calls ours.sees()', 'Tag: the domain ours.checked, which app.tag has, calls ours.fine(text)'),
		'Customer: the check "fine" of app.customer calls ours.fine(text)', 'Customer: the check "same" of app.customer calls ours.same(text,text)',
		'Customer: the default of "drawn" of app.customer calls ours.word()', 'Customer: the generated column "long" of app.customer calls ours.long(text)');
	is_deeply(\%told, { map { $_ => 1 } @wanted }, 'are notices') or diag explain \%told;
	is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind <> 'notice'}), 0, 'and no differences');

	my $status = status();
	is($status->{status}, 'UP_TO_DATE', 'the status stays as it is');
	is_deeply($status->{differences}, [], 'without differences');
	is_deeply([ sort map { "$_->{entity}: $_->{message}" } @{ $status->{notices} } ], [ sort @wanted ], 'with notices');
	is($cluster->apply($folder), "nothing to change\n", 'an apply has nothing to do');
	is($cluster->try_apply($folder, '--repair')->{out}, "nothing to change\n", 'nor a repair');
	orders("    later: {type: string}\n");
	is($cluster->try_apply($folder)->{status}, 0, 'declarations are changed');
	orders('');
	is($cluster->try_apply($folder, '--allow-data-loss', 'Order.later')->{status}, 0, 'and back');
	is(scalar @{ status()->{notices} }, scalar @wanted, 'all of it is there still');

	$cluster->psql('drop index app.long; alter table app.customer drop constraint fine, drop constraint same, drop column drawn, drop column long;'
		  . ($many ? '' : ' drop trigger "Sees it" on app.customer; alter table app.tag drop column more'));
	is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'until they are gone');
};

subtest 'what rows stand against is left, and the rest is put back' => sub {
	$cluster->psql(<<'SQL');
set role entityapi_owner;
alter table app."order" drop constraint order__number_key;
alter table app."order" drop constraint order__total_minimum;
alter table app."order" drop constraint order__customer_id_fkey;
drop index app.order__note_idx;
update app."order" set number = 'same', total = -1, customer_id = '01980000-0000-7000-8000-0000000000ff';
SQL
	my $mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 1, 'not all of it');
	like($mended->{out}, qr/^CREATE INDEX CONCURRENTLY order__note_idx/m, 'the index is');
	like($mended->{out}, qr/"order__number_key" of app\."order" does not exist \(change the rows first: now 1 values are in more than one\)/, 'equal values are counted');
	like($mended->{out}, qr/"order__total_minimum" of app\."order" does not exist \(change the rows first: now 3 break it\)/, 'so are those that break a check');
	like($mended->{out}, qr/"order__customer_id_fkey" of app\."order" does not exist \(change the rows first: now 3 point at what does not exist\)/, 'and those that point nowhere');
	$cluster->psql(q{update app."order" set number = id::text::varchar(20), total = 1, customer_id = null});
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'then they are changed');
};

subtest 'what only its owner can decide about' => sub {
	$cluster->psql(q{alter table app."order" alter number type text});
	my $mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 1, 'another type stays');
	like($mended->{out}, qr/the column "number" of app\."order" is text and was made character varying\(20\) \(ALTER TABLE app\."order" ALTER COLUMN number TYPE varchar\(20\)\)/, 'with the statement');
	$cluster->psql(q{alter table app."order" alter number type varchar(20)});

	$cluster->psql(q{alter table app."order" drop column number});
	$mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 1, 'so does a column that rows would lack');
	like($mended->{out}, qr/the column "number".*\(its rows would lack it: add it by hand, as varchar\(20\), with values\)/, 'as it says') or diag($mended->{err});
	$cluster->psql(q{set role entityapi_owner; alter table app."order" add number varchar(20); update app."order" set number = right(id::text, 12)});
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'the rest comes back');

	$cluster->psql(q{set role entityapi_owner; alter table app.order_tags rename to kept; create view app.order_tags as select * from app.kept});
	$mended = $cluster->try_apply($folder, '--repair');
	is($mended->{status}, 1, 'a view in the place of a table stays');
	like($mended->{out}, qr/app\.order_tags is no ordinary table any more/, 'as it says');
	$cluster->psql(q{set role entityapi_owner; drop view app.order_tags; alter table app.kept rename to order_tags});
	is($cluster->apply($folder), "nothing to change\n", 'back by hand');
};

subtest 'an existing table' => sub {
	plan skip_all => 'tables of others are on one node' if $cluster->nodes > 1;
	$cluster->psql(<<'SQL');
create role other;
create table app.stock (tenant_id uuid not null, id uuid not null default gen_random_uuid(), place text, primary key (tenant_id, id));
alter table app.stock owner to entityapi_owner;
grant select on app.stock to other;
grant usage on schema app to other;
SQL
	declare(stock => <<'YAML');
kind: Entity
metadata: {name: Stock}
spec:
  table: app.stock
  plural: stocks
  fields:
    place: {type: text}
  permissions:
    Chief: [create, read]
YAML
	$cluster->apply($folder);
	my $policies = q{select string_agg(policyname || ' ' || permissive || ' ' || roles::text || ' ' || qual, E'\n' order by policyname) from pg_policies where tablename = 'stock'};
	my $were = $cluster->psql($policies);
	for my $policy (qw(entityapi_read entityapi_reader entityapi_others))
	{
		$cluster->psql("alter table app.stock disable row level security; drop policy $policy on app.stock");
		my $plain = $cluster->try_apply($folder);
		is($plain->{status}, 1, "$policy is gone");
		like($plain->{out}, qr/row-level security of app\.stock is switched off/, 'which is told');
		is($cluster->try_apply($folder, '--repair')->{status}, 0, 'it is put back');
		is($cluster->psql($policies), $were, 'as it was');
		is($cluster->psql("select relrowsecurity from pg_class where relname = 'stock'"), 't', 'and in force');
	}
	$cluster->psql('alter table app.stock drop column place');
	like($cluster->try_apply($folder)->{out} . $cluster->try_apply($folder)->{err}, qr/the column "place"[^\n]* does not exist/, 'a column is missed');
	$cluster->psql('alter table app.stock add place text');
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'its right comes back');
	unlink "$folder/stock.yaml";
	is($cluster->try_apply($folder, '--allow-data-loss', 'Stock')->{status}, 0, 'the entity goes');
};

subtest 'a change of the declarations' => sub {
	orders("    more: {type: string}\n");
	$cluster->psql('drop table app.order_tags');
	my $refused = $cluster->try_apply($folder);
	is($refused->{status}, 1, 'is refused');
	is($refused->{out}, '', 'as a whole');
	like($refused->{err}, qr{order\.yaml#1: /spec/fields/tags: the table app\.order_tags does not exist; put back, it has no rows \(entityapi-shim apply --repair puts it back\)}, 'with the place');
	my $both = $cluster->try_apply($folder, '--repair');
	is($both->{status}, 0, 'with --repair both are done');
	like($both->{out}, qr/CREATE TABLE app\.order_tags.*ADD COLUMN more/s, 'at once');

	orders('');
	$cluster->psql('drop table app.customer cascade');
	unlink "$folder/customer.yaml";
	my $text = do { local (@ARGV, $/) = "$folder/order.yaml"; <> };
	$text =~ s/^    customer:.*\n//m;
	$text =~ s/^apiVersion.*\n//;
	declare(order => $text);
	my $gone = $cluster->try_apply($folder, '--repair', '--allow-data-loss', 'Order.customer', '--allow-data-loss', 'Order.more', '--allow-data-loss', 'Customer');
	is($gone->{status}, 0, 'an entity whose table is gone can go') or diag("$gone->{out}$gone->{err}");
	is($cluster->apply($folder), "nothing to change\n", 'and nothing is left of it');
};

subtest 'an entity that goes' => sub {
	declare(shelf => "kind: Entity\nmetadata: {name: Shelf}\nspec:\n  fields:\n    place: {type: string}\n    tags: {type: ref, target: Tag, relation: ManyToMany}\n");
	$cluster->apply($folder);
	$cluster->psql('drop table app.shelf_tags; alter table app.shelf drop column place; alter table app.shelf disable row level security');
	unlink "$folder/shelf.yaml";
	my $gone = $cluster->try_apply($folder, '--allow-data-loss', 'Shelf');
	is($gone->{status}, 0, 'takes along what is left of its tables') or diag $gone->{err};
	like($gone->{out}, qr/^DROP TABLE app\.shelf;$/m, 'and nothing else');
};

subtest 'a table in use' => sub {
	$cluster->psql(q{drop index app.order__note_idx});
	EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo,
		'-c', 'begin; lock table app.tag in access exclusive mode; select pg_sleep(600)' ]);
	my $held = q{select pid from pg_locks where relation = 'app.tag'::regclass and mode = 'AccessExclusiveLock' and granted};
	EntityApi::Test::wait_until(60, sub { $cluster->psql($held) ne '' });
	my $plain = $cluster->try_apply($folder, '--wait', 0);
	like($plain->{out}, qr/order__note_idx/, 'is not waited for') or diag($plain->{err});
	$cluster->psql("select pg_terminate_backend(pid, 60000) from ($held) h");
	is($cluster->try_apply($folder, '--repair')->{status}, 0, 'afterwards it is put back');
};

done_testing;
