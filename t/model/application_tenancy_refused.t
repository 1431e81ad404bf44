# What a manifest may not say of the tenants of an application's tables, each at its
# place; and what becomes one of these faults later.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $tenant = '01a1facc-0000-7000-8000-000000000001';

$cluster->psql(<<'SQL');
create extension btree_gist;
create role saas_app;
create schema saas authorization saas_app;
set role saas_app;
create table saas.account (id uuid primary key default gen_random_uuid(), organization_id uuid, name text, code text not null,
	email text constraint account_email unique, other_id uuid references saas.account);
create unique index account_name on saas.account (lower(name));
create table saas.a (id uuid primary key default gen_random_uuid(), account_id uuid not null references saas.account, maybe_id uuid references saas.account);
create table saas.b (id uuid primary key default gen_random_uuid(), a_id uuid not null references saas.a);
create table saas.c (id uuid primary key default gen_random_uuid(), b_id uuid not null references saas.b);
create table saas.d (id uuid primary key default gen_random_uuid(), c_id uuid not null references saas.c);
create table saas.e (id uuid primary key default gen_random_uuid(), d_id uuid not null references saas.d);
create table saas.one (id uuid primary key default gen_random_uuid(), two_id uuid not null);
create table saas.two (id uuid primary key default gen_random_uuid(), one_id uuid not null references saas.one);
alter table saas.one add foreign key (two_id) references saas.two;
create table saas.coded (code text primary key, organization_id uuid);
create table saas.badge (account_id uuid primary key references saas.account, no integer);
create table saas.organization (id uuid primary key, name text);
create table saas.branch (account_id uuid references saas.account, no integer, primary key (account_id, no));
create table saas.staff (id uuid primary key default gen_random_uuid(), account_id uuid not null, branch_no integer not null, name text,
	foreign key (account_id, branch_no) references saas.branch, constraint staff_of_account unique (account_id, name), constraint staff_of_branch unique (name, branch_no, account_id));
create table saas.mine (id uuid primary key default gen_random_uuid(), name text unique);
create table saas.room (id uuid primary key default gen_random_uuid(), organization_id uuid not null, day date, constraint room_taken exclude using gist (organization_id with <>, day with =),
	constraint room_own exclude using gist (organization_id with =, day with =));
create table saas.log (id bigint generated always as identity primary key, organization_id uuid, what text) partition by range (id);
create table saas.log_a partition of saas.log (unique (what), unique (organization_id, what)) for values from (0) to (100);
create table saas.slot (organization_id uuid, code text, primary key (organization_id, code));
do $$ declare r record; begin
	for r in select f.conrelid::regclass as t, a.attname as c from pg_constraint f join pg_attribute a on a.attrelid = f.conrelid and a.attnum = f.conkey[cardinality(f.conkey)]
		where f.contype = 'f' and f.connamespace = 'saas'::regnamespace loop
		execute format('create index on %s (%I)', r.t, r.c);
	end loop;
end $$;
SQL

my %rights = (permissions => { Editor => [qw(create read update delete)] });
my %read = (permissions => { Editor => ['read'] });
sub ref_to { my ($target, %more) = @_; return { type => 'ref', target => $target, required => $true, %more } }
sub chain { my ($name, $to, $target) = @_; return ($name => { table => 'saas.' . lc $name, plural => "all$name", tenant => { by => $to }, fields => { $to => ref_to($target) }, %rights }) }

my %service = (tenancy => 'POOL', existing => { role => 'saas_app' });
my %sound = (
	Account => { table => 'saas.account', tenant => { column => 'organization_id' }, global => [ 'account_email', 'account_name' ],
		fields => { name => { type => 'text' }, code => { type => 'text', required => $true }, email => { type => 'text', unique => $true }, other => ref_to('Account', required => $false) }, %rights },
	chain(A => 'account', 'Account'), chain(B => 'a', 'A'), chain(C => 'b', 'B'), chain(D => 'c', 'C'));

# Documents, other ones for some, to what is said of them
sub said
{
	my ($service, %other) = @_;
	my %now = (%sound, %other);

	unlink glob "$folder/*.json";
	$now{$_} and EntityApi::Test::write_file("$folder/$_.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $_ }, spec => $now{$_} })) for keys %now;
	EntityApi::Test::write_file("$folder/service.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'service' }, spec => { %service, %$service } }));
	EntityApi::Test::write_file("$folder/roles.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Editor => {}, Super => { assignableBy => 'superAdmin' } } } }));
	my $run = $cluster->try_apply($folder, '--dry-run');

	# they are not what is asked for here
	$run->{err} =~ s/^WARNING:  references without an index.*\nHINT:.*\n//m;
	return $run;
}
sub with { my ($name, %more) = @_; my %spec = (%{ $sound{$name} }, %more); defined $spec{$_} or delete $spec{$_} for keys %spec; return ($name => \%spec) }

is(said({})->{err}, '', 'sound declarations') or BAIL_OUT('they are not');

my @cases = (
	[ 'whose it is, is said', { with(Account => tenant => undef, global => undef) }, '/spec/table: the table is an application\'s: say whose its rows are' ],
	[ 'tenantScoped alone does not say it', { with(Account => tenant => undef, global => undef, tenantScoped => $true) }, '/spec/table: the table is an application\'s: say whose its rows are' ],
	[ 'or that all share them', { with(Account => tenantScoped => $false) }, '/spec/tenantScoped: "tenant" says that the rows belong to tenants' ],
	[ 'in one way', { with(Account => tenant => {}) }, '/spec/tenant: says in one way whose a row is' ],
	[ 'and not in two', { with(Account => tenant => { column => 'organization_id', is => $tenant }) }, '/spec/tenant: says in one way whose a row is' ],
	[ 'known words only', { with(Account => tenant => { columns => 'x' }) }, '/spec/tenant/columns: ' ],
	[ 'of strings', { with(Account => tenant => { column => 1 }) }, '/spec/tenant/column: must be a string' ],
	[ 'not in columns', { with(Account => columns => { tenantId => 'organization_id' }) }, '/spec/columns/tenantId: "tenant" says whose the rows are' ],
	[ 'a column that is there', { with(Account => tenant => { column => 'nothing' }) }, '/spec/tenant/column: the column "nothing" does not exist' ],
	[ 'a uuid', { with(Account => tenant => { column => 'code' }, fields => { name => { type => 'text' } }, permissions => { Editor => ['read'] }) }, '/spec/tenant/column: the column "code" is text and must be uuid' ],
	[ 'no field\'s', { with(Account => fields => { organization => { type => 'uuid' } }, columns => { organization => 'organization_id' }, permissions => { Editor => ['read'] }) }, '/spec/fields/organization: its column "organization_id" is one that the service keeps itself' ],
	[ 'none of PostgreSQL\'s', { with(Account => tenant => { column => 'xmin' }) }, '/spec/tenant/column: its column "xmin" is one that PostgreSQL itself has in every table' ],
	[ 'an id', { with(Account => tenant => { is => 'acme' }) }, '/spec/tenant/is: "acme" is no id of a tenant, which is a UUID' ],
	[ 'a field', { with(A => tenant => { by => 'nothing' }) }, '/spec/tenant/by: A has no field "nothing"' ],
	[ 'a reference', { with(A => tenant => { by => 'no' }, fields => { account => ref_to('Account'), no => { type => 'uuid', readOnly => $true } }, columns => { no => 'maybe_id' }) }, '/spec/tenant/by: "no" is no reference that the table has' ],
	[ 'one that the table has', { with(A => tenant => { by => 'bs' }, fields => { account => ref_to('Account'), bs => { type => 'ref', target => 'B', relation => 'OneToMany', mappedBy => 'a' } }) }, '/spec/tenant/by: "bs" is no reference that the table has' ],
	[ 'required', { with(A => tenant => { by => 'maybe' }, fields => { maybe => ref_to('Account', required => $false), account => ref_to('Account') }) }, '/spec/tenant/by: "maybe" is not required' ],
	[ 'and written', { with(A => fields => { account => ref_to('Account', readOnly => $true) }) }, '/spec/tenant/by: "account" is readOnly' ],
	[ 'that leads to a tenant', { with(Account => tenant => undef, global => undef, tenantScoped => $false, permissions => { Super => ['read'] }) }, '/spec/tenant/by: "account" leads to Account, which has no tenant' ],
	[ 'in four steps', { chain(E => 'd', 'D') }, '/spec/tenant/by: "d" leads to a tenant by more than 4 references' ],
	[ 'and no circle', { chain(One => 'two', 'Two'), chain(Two => 'one', 'One') }, '/spec/tenant/by: "two" leads back to One' ],
	[ 'a unique index is named', { with(Account => global => ['account_name']) }, '/spec/global: the unique index or exclusion constraint "account_email" would tell tenants of each other\'s values' ],
	[ 'of an expression, too', { with(Account => global => ['account_email']) }, '/spec/global: the unique index or exclusion constraint "account_name" would tell tenants of each other\'s values' ],
	[ 'and is there', { with(Account => global => [ 'account_name', 'account_email', 'account_pkey' ]) }, '/spec/global/2: "account_pkey" is no unique index of the table that leaves the tenant out' ],
	[ 'a comparison of tenants is none', { Room => { table => 'saas.room', tenant => { column => 'organization_id' }, global => ['room_own'], fields => { day => { type => 'date' } }, %rights } },
		'/spec/global: the unique index or exclusion constraint "room_taken" would tell tenants of each other\'s values' ],
	[ 'but that they are equal', { Room => { table => 'saas.room', tenant => { column => 'organization_id' }, global => [ 'room_taken', 'room_own' ], fields => { day => { type => 'date' } }, %rights } },
		'/spec/global/1: "room_own" is no unique index of the table that leaves the tenant out' ],
	[ 'of a partition, too', { Log => { table => 'saas.log', key => 'id', tenant => { column => 'organization_id' }, fields => { what => { type => 'text' } }, %rights } },
		'/spec/global: the unique index or exclusion constraint "log_a_what_key" would tell tenants of each other\'s values' ],
	[ 'of all rows of one nothing is said', { Mine => { table => 'saas.mine', tenant => { is => $tenant }, global => ['mine_name_key'], fields => { name => { type => 'text', unique => $true } }, %rights } }, '/spec/global/0: "mine_name_key" is no unique index of the table that leaves the tenant out' ],
	[ 'ids of clients', { Coded => { table => 'saas.coded', plural => 'codeds', key => 'code', tenant => { column => 'organization_id' }, fields => {}, %rights } }, '/spec/key: clients choose ids, and "code" is unique for all tenants' ],
	[ 'who may only read', { Coded => { table => 'saas.coded', plural => 'codeds', key => 'code', tenant => { column => 'organization_id' }, fields => {}, %read } }, '/spec/key: clients choose ids, and "code" is unique for all tenants' ],
	[ 'the table of tenants', { Organization => { table => 'saas.organization', tenant => { column => 'id' }, fields => { name => { type => 'text' } }, %rights } }, '/spec/tenant/column: the key "id" is the tenant, so there is one row of each' ],
	[ 'a made table', { Note => { tenant => { column => 'x' }, fields => { name => { type => 'text' } }, %rights } }, '/spec/tenant: goes with a table of an application' ],
	[ 'has no uniques of all, either', { Note => { global => ['x'], fields => { name => { type => 'text' } }, %rights } }, '/spec/global: goes with a table of an application' ],
	[ 'what all share is written by few', { Mine => { table => 'saas.mine', tenantScoped => $false, fields => { name => { type => 'text' } }, %rights } }, '/spec/permissions/Editor: "Editor" would write what all tenants share' ],
	[ 'and refers to none of a tenant', { A => { table => 'saas.a', plural => 'allA', tenantScoped => $false, fields => { account => ref_to('Account') }, %read }, B => undef, C => undef, D => undef }, '/spec/fields/account/target: A is not tenant-scoped and cannot lead to Account, which is' ],
	[ 'nor its other side', { Mine => undef, A => { table => 'saas.a', plural => 'allA', tenant => { by => 'account' }, fields => { account => ref_to('Account') }, %rights },
		Account => { %{ $sound{Account} }, tenant => undef, global => undef } }, '/spec/tenant: must be an object' ],
	[ 'has no uniques of others', { Mine => { table => 'saas.mine', tenantScoped => $false, global => ['mine_name_key'], fields => { name => { type => 'text' } }, %read } }, '/spec/global: goes with "tenant"' ]);

for my $case (@cases)
{
	my ($name, $other, $fault) = @$case;
	my $err = said({}, %$other)->{err};

	like($err, qr/: \Q$fault\E/, $name);
	unlike($err, qr/ERROR|SQLSTATE|unexpected/, 'in its own words');
}
like(said({ tenancy => 'SINGLE' })->{err}, qr{Account.json#1: /spec/tenant: goes with tenancy: POOL only}, 'one tenant needs none');
like(said({ tenancy => 'SINGLE' }, with(Account => tenant => undef))->{err}, qr{Account.json#1: /spec/global: goes with tenancy: POOL only}, 'nor uniques that it shares');
like(said({ distribution => 'citus' })->{err}, qr{service.json#1: /spec/existing: goes with distribution: none only}, 'no cluster');

is(said({}, Badge => { table => 'saas.badge', key => 'account_id', columns => { account => 'account_id' }, tenant => { by => 'account' }, fields => { account => ref_to('Account'), no => { type => 'integer' } }, %rights })->{err}, '',
	'a key that leads to the tenant is its own');
is(said({}, Mine => { table => 'saas.mine', tenant => { is => $tenant }, fields => { name => { type => 'text', unique => $true } }, %rights })->{err}, '', 'a tenant that is yet to come');
is(said({}, Organization => { table => 'saas.organization', tenant => { column => 'id' }, fields => { name => { type => 'text' } }, permissions => { Editor => [qw(read update delete)] } })->{err}, '', 'its own table');

# all columns of a reference lead to the tenant, and none of them alone
my %branch = (Branch => { table => 'saas.branch', plural => 'branches', key => [ 'account_id', 'no' ], tenant => { by => 'account' }, fields => { account => ref_to('Account') }, %rights });
my %staff = (table => 'saas.staff', plural => 'staff', tenant => { by => 'branch' }, columns => { branch => [ 'account_id', 'branch_no' ] }, fields => { name => { type => 'text' }, branch => ref_to('Branch') }, %rights);
my $said = said({}, %branch, Staff => \%staff)->{err};
like($said, qr{Staff.json#1: /spec/global: the unique index or exclusion constraint "staff_of_account" would tell tenants of each other's values}, 'one of them is too little for a unique index');
unlike($said, qr{staff_of_branch}, 'all are enough, in any order');
is(said({}, %branch, Staff => { %staff, global => ['staff_of_account'] })->{err}, '', 'and its reference leads to the tenant');

# later on
said({}, Log => { table => 'saas.log', key => 'id', tenant => { column => 'organization_id' }, global => ['log_a_what_key'], fields => { what => { type => 'text' } }, %rights },
	Slot => { table => 'saas.slot', key => 'code', tenant => { column => 'organization_id' }, fields => {}, %rights });
is($cluster->try_apply($folder)->{status}, 0, 'applied');
my $differs = sub { return $cluster->psql("select string_agg(message, '; ') from entityapi.list_differences() where kind = 'difference'") };
is($differs->(), '', 'no difference');
$cluster->psql('create unique index later on saas.account (code)');
like($differs->(), qr/the unique index or exclusion constraint "later" of the table saas.account tells tenants of each other's values/, 'an index that came later is one');
$cluster->psql('drop index saas.later; create unique index later on saas.account (organization_id, code)');
is($differs->(), '', 'none with the tenant');
$cluster->psql('create table saas.log_b partition of saas.log (unique (what)) for values from (100) to (200)');
like($differs->(), qr/the unique index or exclusion constraint "log_b_what_key" of the table saas.log tells tenants/, 'one of a partition is, too');
$cluster->psql('drop table saas.log_b; create unique index sole on saas.slot (code)');
like($differs->(), qr/the unique index or exclusion constraint "sole" of the table saas.slot tells tenants/, 'and one of ids that clients choose');
$cluster->psql('drop index saas.sole');
is($differs->(), '', 'none is left');
$cluster->psql('alter table saas.account alter organization_id type text');
like($differs->(), qr/column organization_id of table saas.account is not what entity "Account" needs: uuid/, 'nor a column that is none any more');

done_testing;
