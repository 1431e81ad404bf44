# Tables that others made, on a cluster: they go to Citus with those of the
# service, or stay where others have put them already, and come back; what Citus
# would not take is told of before anything is done.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
my $manifests = EntityApi::Test::folder() . '/existing.json';
my %order = (
	table => 'Sales.Order',
	columns => { id => 'order_no', tenantId => 'company_id', createdAt => 'placed', customer => 'customer', before => 'before' },
	softDelete => JSON::PP::true,
	permissions => { Clerk => [qw(create read update delete)] },
	fields => {
		number => { type => 'string', maxLength => 20, required => JSON::PP::true, unique => JSON::PP::true },
		net => { type => 'decimal', precision => 12, scale => 2, required => JSON::PP::true },
		customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne', required => JSON::PP::true },
		before => { type => 'ref', target => 'Order', relation => 'ManyToOne' },
		tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' } });
my %customer = (permissions => { Clerk => [qw(create read update delete)] }, fields => { name => { type => 'string' },
		last => { type => 'ref', target => 'Order', relation => 'ManyToOne' } });
my %all = (Customer => \%customer, Order => \%order,
	Tag => { permissions => { Clerk => [qw(create read)] }, fields => { name => { type => 'string' } } },
	Unit => { table => 'Sales.unit', tenantScoped => JSON::PP::false, permissions => { Clerk => ['read'] }, fields => { code => { type => 'text', required => JSON::PP::true } } });
my $how = 'none';

sub write_down
{
	my (%more) = @_;
	my %entities = (%all, %more);

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([
		{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 's' }, spec => { distribution => $how } },
		{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Clerk => undef } } },
		map { { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $_ }, spec => $entities{$_} } } sort keys %entities ]);
	close $out or die "$manifests: $!\n";
	return $manifests;
}

sub faults { my (%more) = @_; my $done = $cluster->try_apply('--dry-run', write_down(%more)); return "$done->{status} $done->{err}" }

sub placements
{
	return $cluster->psql(q{select coalesce(string_agg(logicalrelid::text || ' ' || case when partmethod = 'n' and repmodel = 't' then 'everywhere'
		else column_to_column_name(logicalrelid, partkey) || case when colocationid = (select colocationid from pg_dist_partition
			where logicalrelid = 'entityapi.audit'::regclass) then ' beside' else ' elsewhere' end end, ', ' order by logicalrelid::text), 'none')
		from pg_dist_partition where logicalrelid::text ~ 'Sales|other'});
}

# As others do before there is a cluster, and on it
sub owned
{
	my ($sql) = @_;
	my $alone = $how eq 'none' ? 'set citus.enable_ddl_propagation = off;' : '';

	return $cluster->psql("set client_min_messages = error; $alone set role entityapi_owner; $sql");
}

# What others have of a table, in a word
sub traits
{
	return $cluster->psql(<<~'SQL');
		select 'key', case contype when 'n' then '' else conname end, pg_get_constraintdef(oid) from pg_constraint where conrelid = '"Sales"."Order"'::regclass
		union all select 'index', indexrelid::regclass::text, pg_get_indexdef(indexrelid) from pg_index where indrelid = '"Sales"."Order"'::regclass
		union all select 'right', a.grantee::regrole::text, a.privilege_type from pg_class, aclexplode(relacl) a where oid = '"Sales"."Order"'::regclass and a.grantee = 'erp'::regrole
		union all select 'right', attname::text, attacl::text from pg_attribute where attrelid = '"Sales"."Order"'::regclass and attacl::text ~ 'erp'
		union all select 'default', attname::text, pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum
			where adrelid = '"Sales"."Order"'::regclass
		union all select 'policy', polname::text, '' from pg_policy where polrelid = '"Sales"."Order"'::regclass and polname !~ '^entityapi_'
		union all select 'row security', relrowsecurity::text, '' from pg_class where oid = '"Sales"."Order"'::regclass
		union all select 'view', pg_get_viewdef('"Sales".big'::regclass), '' order by 1, 2, 3
		SQL
}

my $rows = q{select count(*), md5(string_agg(x::text, ',' order by x::text)) from "Sales"."Order" x union all select count(*), md5(string_agg(x::text, ',' order by x::text)) from app.customer x
	union all select count(*), md5(string_agg(x::text, ',' order by x::text)) from "Sales".unit x};

sub sound
{
	my ($name) = @_;

	is($cluster->psql('select message from entityapi.list_differences()'), '', "$name: the tables are as declared");
	return;
}

# First without the references, as the tables need each other
owned('create schema "Sales"; grant usage on schema "Sales" to entityapi_reader');
$cluster->psql('create role erp login');
delete @all{qw(Order Unit)};
my $last = delete $customer{fields}{last};
$cluster->apply(write_down());
owned(<<~'SQL');
	create table "Sales"."Order" (
		order_no uuid not null default gen_random_uuid(), company_id uuid not null, number varchar(20) not null, net numeric(12, 2) not null, customer uuid not null, before uuid,
		placed timestamptz not null default now(), deleted_at timestamptz, secret text not null default 'hidden', twice numeric generated always as (net * 2) stored,
		primary key (company_id, order_no), constraint "of a customer" foreign key (company_id, customer) references app.customer (tenant_id, id) deferrable,
		constraint chain foreign key (company_id, before) references "Sales"."Order" deferrable, constraint positive check (net >= 0));
	create unique index "one number" on "Sales"."Order" (company_id, number) where deleted_at is null;
	create index on "Sales"."Order" (placed);
	create table "Sales".unit (id uuid primary key, code text not null);
	create view "Sales".big as select order_no, net from "Sales"."Order" where net > 10;
	grant usage on schema "Sales" to erp; grant select, insert on "Sales"."Order" to erp; grant update (secret) on "Sales"."Order" to erp;
	insert into "Sales".unit select gen_random_uuid(), 'unit ' || i from generate_series(1, 5) i;
	SQL
@all{qw(Order Unit)} = (\%order, { table => 'Sales.unit', tenantScoped => JSON::PP::false, permissions => { Clerk => ['read'] },
		fields => { code => { type => 'text', required => JSON::PP::true } } });
$customer{fields}{last} = $last;
$cluster->apply(write_down());
$cluster->psql(<<~'SQL');
	insert into entityapi.tenant select md5(x)::uuid, x, x, 'ACTIVE', '{}', now() from unnest('{a,b,c,d,e}'::text[]) x;
	insert into app.customer (tenant_id, id, name, created_at, updated_at) select t.id, md5('c' || i)::uuid, 'c' || i, now(), now() from entityapi.tenant t, generate_series(1, 4) i;
	insert into "Sales"."Order" (company_id, order_no, number, net, customer, before) select t.id, md5('o' || i)::uuid, 'n' || i, i, md5('c' || (1 + i % 4))::uuid,
		case when i > 1 then md5('o' || (i - 1))::uuid end from entityapi.tenant t, generate_series(1, 40) i;
	update app.customer set last_id = md5('o1')::uuid;
	SQL
my $before = $cluster->psql($rows);
my $traits = traits();

subtest 'given to Citus' => sub {
	$how = 'citus';
	my $dry = $cluster->try_apply('--dry-run', write_down());
	like($dry->{out}, qr/DROP CONSTRAINT "of a customer".*create_distributed_table\('"Sales"\."Order"', 'company_id'.*ADD CONSTRAINT "of a customer" FOREIGN KEY/s, 'looked at first, with its statements')
	  or diag $dry->{err};
	my $done = $cluster->try_apply($manifests);
	is($done->{status}, 0, 'applied') or BAIL_OUT($done->{err});
	is(placements(), '"Sales"."Order" company_id beside, "Sales".unit everywhere', 'the tables are with Citus');
	is($cluster->psql($rows), $before, 'with all rows');
	is(traits(), $traits, 'and all that others gave them');
	sound('given');
	is($cluster->try_apply($manifests)->{out}, "nothing to change\n", 'again, there is nothing to do');
	is(join(' ', $cluster->on_all('select count(*) from "Sales"."Order"')), '200 200 200', 'each node knows them');
};

my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1) } 0 .. 2;
my $part = sub { $cluster->psql("select n.groupid from pg_dist_placement p join pg_dist_node n using (groupid) where shardid = get_shard_id_for_distribution_column('\"Sales\".\"Order\"', '$_[0]')") };
my %tenant;
for (my $i = 0; keys %tenant < 3 && $i < 100; $i++)
{
	my $id = $shims[0]->tenant("place$i")->{id};

	$tenant{ $part->($id) } //= { id => $id, user => $shims[0]->user($id, "user$i", ['Clerk']) };
}

for my $home (sort keys %tenant)
{
	my ($id, $user) = @{ $tenant{$home} }{qw(id user)};
	my $customer = $shims[0]->must(201, POST => '/api/v1/customers', { token => $user, json => { data => { type => 'customers', attributes => { name => 'x' } } } })->{data}{id};
	my $to = { customer => { data => { type => 'customers', id => $customer } } };
	my $tag = $shims[0]->must(201, POST => '/api/v1/tags', { token => $user, json => { data => { type => 'tags', attributes => { name => 'x' } } } })->{data}{id};

	for my $i (0 .. 2)
	{
		my $shim = $shims[$i];
		my $ask = sub {
			my ($method, $target, $attributes, $relationships, $resource) = @_;
			return $shim->http($method => "/api/v1/orders$target", { token => $user, $attributes || $relationships ? (json => { data => { type => 'orders', $resource ? (id => $resource) : (),
				attributes => $attributes // {}, $relationships ? (relationships => $relationships) : () } }) : () });
		};
		my $told = sub { my ($answer) = @_; my $error = $answer->{json}{errors}[0]; return "$answer->{status} " . ($error->{source}{pointer} // $error->{code}) };

		subtest "a tenant of the group $home, asked on node $i" => sub {
			my $made = $ask->(POST => '', { number => "a$i", net => '7.50' }, { %$to, tags => { data => [ { type => 'tags', id => $tag } ] } });
			is($made->{status}, 201, 'made') or diag $made->{body};
			my $order = $made->{json}{data}{id};
			is($cluster->psql(qq{select secret, twice from "Sales"."Order" where company_id = '$id' and order_no = '$order'}), 'hidden|15.00', 'with defaults of the table');
			is($told->($ask->(POST => '', { number => "a$i", net => '1.00' }, $to)), '409 /data/attributes/number', 'a unique index');
			is($told->($ask->(POST => '', { number => "b$i", net => '-1.00' }, $to)), '400 /data/attributes/net', 'a check');
			is($told->($ask->(POST => '', { number => "b$i", net => '1.00' }, { customer => { data => { type => 'customers', id => '01980000-0000-7000-8000-000000000001' } } })),
				'404 /data/relationships/customer/data', 'a foreign key') or diag explain $ask->(POST => '', { number => "b$i", net => '1.00' }, { customer => { data => { type => 'customers', id => '01980000-0000-7000-8000-000000000001' } } })->{body};
			is($ask->(PATCH => "/$order", { net => '9.00' }, undef, $order)->{status}, 200, 'changed');
			is($ask->(GET => "/$order?include=customer,tags")->{json}{data}{attributes}{net}, 9, 'read');
			is(scalar @{ $ask->(GET => "?filter=customer.name==x;number==a$i")->{json}{data} }, 1, 'found');
			is($ask->(DELETE => "/$order")->{status}, 204, 'deleted softly');
			is($ask->(GET => "/$order")->{status}, 404, 'and gone');
			is($cluster->psql(qq{select count(*) from entityapi.audit where tenant_id = '$id' and target_id = '$order'}), 3, 'with its records');
		};
	}
}

subtest 'readers' => sub {
	my $place = $tenant{0};
	my $reader = $shims[0]->user($place->{id}, 'bi', ['Clerk']);

	$shims[0]->must(201, POST => '/api/v1/orders', { token => $place->{user}, json => { data => { type => 'orders', attributes => { number => 'r', net => '3.00' },
				relationships => { customer => { data => { type => 'customers', id => $shims[0]->must(200, GET => '/api/v1/customers', { token => $place->{user} })->{data}[0]{id} } } } } } });
	$cluster->psql(q{set client_min_messages = error; create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'bi')});
	is(join(' ', $cluster->on_all('select count(*), max(number) from "Sales"."Order"', user => 'bi')), '1|r 1|r 1|r', 'see what the API shows, on each node');
	like($cluster->try_psql('select secret from "Sales"."Order"', user => 'bi')->{err}, qr/permission denied/, 'and no other column');
	is($cluster->psql('select count(*) from "Sales"."Order" where secret is not null', user => 'erp'), $cluster->psql('select count(*) from "Sales"."Order"'), 'others see what they saw');
};

subtest 'what Citus would not take' => sub {
	my @thing = (table => 'other.thing', fields => { name => { type => 'text' } });
	my $fault = sub { my ($sql, $why, $hint, $name, %spec) = @_;
		owned("create schema other; grant usage on schema other to entityapi_reader; $sql");
		like(faults(Thing => { @thing, %spec }), qr{^1 \S+: /spec\S*: \Q$why\E.*\Q$hint\E}s, $name);
		owned('drop schema other cascade');
	};
	my $table = 'create table other.thing (tenant_id uuid not null, id uuid not null, name text, primary key (tenant_id, id)';

	$fault->('create table other.thing (id uuid primary key, name text)', 'the column "tenant_id" does not exist', 'name another one in "columns"', 'no tenant');
	$fault->('create table other.thing (tenant_id uuid not null, id uuid primary key, name text)', 'needs a primary key or an immediate unique constraint on "tenant_id" and "id"',
		'ADD UNIQUE (tenant_id, id)', 'no key with the tenant');
	$fault->("$table, unique (id))", 'the unique index "thing_id_key" lacks the column of the tenant', 'drop it', 'a key without the tenant');
	$fault->("create domain other.d uuid; create table other.thing (tenant_id other.d not null, id uuid not null, name text, primary key (tenant_id, id))",
		'the column of the tenant is other.d', 'ALTER TABLE other.thing ALTER COLUMN tenant_id TYPE uuid', 'a tenant of another type');
	$fault->("$table); create function other.f() returns trigger language plpgsql as 'begin return new; end'; create trigger t before insert on other.thing for each row execute function other.f()",
		'the trigger "t" would run on the node', 'drop it', 'a trigger');
	$fault->("grant create, usage on schema other to erp; set role erp; create function other.ok(text) returns boolean language sql immutable security definer as 'select true'; "
		  . "set role entityapi_owner; $table, check (other.ok(name)))", 'other.ok(text) is called by the table, and erp could have it run with the rights of entityapi_owner on the node',
		'give it to entityapi_owner or a superuser', 'a function of somebody else, with his rights');
	$fault->("$table, n bigint generated always as identity)", 'the column "n" takes its values from a sequence', 'give it another default', 'an identity');
	$fault->("$table, n bigserial)", 'the column "n" takes its values from a sequence', 'give it another default', 'a serial');
	$fault->("create table other.far (tenant_id uuid, id uuid, primary key (tenant_id, id)); $table, far uuid, constraint to_far foreign key (tenant_id, far) references other.far)",
		'the foreign key "to_far" of other.thing refers to other.far', 'ALTER TABLE other.thing DROP CONSTRAINT to_far', 'a foreign key to what others keep here');
	$fault->("$table); create table other.near (tenant_id uuid, id uuid, constraint from_near foreign key (tenant_id, id) references other.thing)",
		'the foreign key "from_near" of other.near refers to other.thing', 'ALTER TABLE other.near DROP CONSTRAINT from_near', 'one from there');
	$fault->("$table, up uuid, constraint acts foreign key (tenant_id, up) references other.thing on update cascade)", 'the foreign key "acts" has an action', 'without the action', 'an action');
	$fault->("$table); alter table other.thing enable row level security; create policy mine on other.thing using (name = 'x')",
		'the policy "mine" could show readers more', 'drop it', 'a policy');
	$fault->("$table); set citus.shard_count = 4; select create_distributed_table('other.thing', 'tenant_id', colocate_with => 'none')",
		'the rows of other.thing are distributed otherwise than by tenant', q{SELECT undistribute_table('other.thing')}, 'a distribution of its own');
	$fault->("$table); select create_reference_table('other.thing')", 'the rows of other.thing are distributed otherwise', 'undistribute_table', 'a table on each node that has tenants');
	$fault->("$table, customer_id uuid)", 'needs a deferrable foreign key to app.customer',
		q{SELECT create_distributed_table('other.thing', 'tenant_id', colocate_with => 'entityapi.audit'); ALTER TABLE other.thing ADD FOREIGN KEY}, 'a reference without a key',
		fields => { customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne' } });

	# what nobody here knows, Citus says
	owned("create schema other; grant usage on schema other to entityapi_reader; $table, exclude using btree (name with =))");
	my $done = $cluster->try_apply(write_down(Thing => { @thing }));
	like("$done->{status} $done->{err}", qr{^1 .*/spec/table: }s, 'what else Citus refuses is told of at the table');
	owned('drop schema other cascade');
	is($cluster->try_apply('--dry-run', write_down())->{out}, "nothing to change\n", 'nothing was done');
};

subtest 'distributed by others already' => sub {
	owned(q{create schema other; grant usage on schema other to entityapi_reader;
		create table other.thing (tenant_id uuid not null, id uuid not null, name text, customer_id uuid, primary key (tenant_id, id));
		select create_distributed_table('other.thing', 'tenant_id', colocate_with => 'entityapi.audit');
		alter table other.thing add constraint keeps foreign key (tenant_id, customer_id) references app.customer deferrable;
		insert into other.thing select tenant_id, id, name, id from app.customer});
	$all{Thing} = { table => 'other.thing', permissions => { Clerk => ['read'] }, fields => { name => { type => 'text' }, customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne' } } };
	my $done = $cluster->try_apply(write_down());
	is($done->{status}, 0, 'it is taken as it is') or diag $done->{err};
	unlike($done->{out}, qr/create_distributed_table/, 'without another distribution');
	sound('taken');

	$cluster->psql(q{set client_min_messages = error; alter table other.thing drop constraint keeps; select undistribute_table('other.thing')});
	like($cluster->psql('select message from entityapi.list_differences()'), qr/the rows of other\.thing are on one node alone/, 'taken back by somebody, it is told of');
	$done = $cluster->try_apply('--repair', write_down());
	like($done->{err}, qr/needs a deferrable foreign key to app\.customer.*create_distributed_table\('other\.thing'/s, 'and not taken without its key');
	owned(q{select create_distributed_table('other.thing', 'tenant_id', colocate_with => 'entityapi.audit'); alter table other.thing add foreign key (tenant_id, customer_id) references app.customer deferrable});
	like($cluster->try_apply('--repair', write_down())->{out}, qr/rows of other\.thing from before it was distributed are left on this node \(SELECT truncate_local_data_after_distributing_table\('other\.thing'\)/,
		'nor with rows here');
	owned(q{select truncate_local_data_after_distributing_table('other.thing')});
	$done = $cluster->try_apply('--repair', write_down());
	is($done->{status}, 0, 'put back') or diag $done->{err};
	sound('put back');

	delete $all{Thing};
	$done = $cluster->try_apply('--allow-data-loss', 'Thing', write_down());
	is($done->{status}, 0, 'the entity goes') or diag $done->{err};
	like(placements(), qr/other\.thing tenant_id beside/, 'and the table stays where it is');
};

subtest 'taken back' => sub {
	my $now = $cluster->psql($rows);

	$how = 'none';
	like(faults(), qr/the foreign key "thing_tenant_id_customer_id_fkey" of other\.thing refers to app\.customer, and only one of them is the service's/, 'a foreign key of others stands against it');
	$cluster->psql('drop table other.thing');
	my $done = $cluster->try_apply(write_down());
	is($done->{status}, 0, 'applied') or diag $done->{err};
	is(placements(), 'none', 'Citus has none of them');
	is($cluster->psql('select count(*) from pg_dist_partition'), 0, 'and nothing else');
	is($cluster->psql($rows), $now, 'all rows are here');
	is(traits(), $traits, 'with all that others gave the tables');
	sound('back');
	$how = 'citus';
	$done = $cluster->try_apply(write_down());
	is($done->{status}, 0, 'given again') or diag $done->{err};
	is($cluster->psql($rows), $now, 'with all rows');
	sound('again');
};

done_testing;
