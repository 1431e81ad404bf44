# Foreign keys of an application as they are: where somebody may delete the target,
# an action has to be the one that `onDelete` says, and the service carries it out
# first, with rights and records.  Keys that do not wait take earlier operations.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

# the service waits as long as others let it
my $cluster = EntityApi::Test->cluster(conf => ['deadlock_timeout = 100s']);
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my @all = qw(create read update delete history);
my %spec;

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

sub try_apply
{
	declared(Entity => $_ => $spec{$_}) for sort keys %spec;
	return $cluster->try_apply($folder);
}

sub applied
{
	my ($what) = @_;
	my $done = try_apply();

	is($done->{status}, 0, $what) or BAIL_OUT("$done->{out}$done->{err}");
	return;
}

sub faulty
{
	my ($what, $said) = @_;
	my $done = try_apply();

	is($done->{status}, 1, "$what: refused");
	like($done->{err}, $said, "$what: so it says") or diag $done->{out};
	return;
}

sub ref_to { my ($target, %more) = @_; return { type => 'ref', target => $target, %more } }

# As Rails, Prisma and Django write them, and some that nobody should
$cluster->psql(<<'SQL');
create role shop_app;
create schema shop authorization shop_app;
set role shop_app;
create table shop.parent (id uuid primary key default gen_random_uuid(), name text);
create table shop.taken (id uuid primary key default gen_random_uuid(), parent_id uuid not null references shop.parent on delete cascade on update cascade);
create table shop.deep (id uuid primary key default gen_random_uuid(), taken_id uuid not null references shop.taken on delete cascade deferrable);
create table shop.freed (id uuid primary key default gen_random_uuid(), parent_id uuid references shop.parent on delete set null (parent_id));
create table shop.firm (id uuid primary key default gen_random_uuid(), parent_id uuid references shop.parent on delete restrict on update cascade);
create table shop.django (id uuid primary key default gen_random_uuid(), parent_id uuid not null references shop.parent deferrable initially deferred);
create table shop.waits (id uuid primary key default gen_random_uuid(), name text, parent_id uuid not null references shop.parent deferrable);
create table shop.node (id uuid primary key default gen_random_uuid(), name text, up_id uuid references shop.node on delete cascade,
	also_id uuid references shop.node on delete cascade);
create table shop.hen (id uuid primary key default gen_random_uuid(), name text);
create table shop.egg (id uuid primary key default gen_random_uuid(), name text, hen_id uuid references shop.hen on delete cascade);
alter table shop.hen add egg_id uuid references shop.egg on delete cascade;
create table shop.log (what text, id uuid);
create function shop.note() returns trigger language plpgsql as $$
begin
	insert into shop.log values (tg_table_name, old.id);
	return old;
end $$;
create trigger note before delete on shop.hen for each row execute function shop.note();
reset role;
SQL

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
my %rights = (permissions => { Reader => ['read'], Editor => [@all] });
my %name = (name => { type => 'text' });
%spec = (
	Parent => { table => 'shop.parent', fields => {%name}, %rights },
	Taken => { table => 'shop.taken', plural => 'takens', fields => { parent => ref_to('Parent', required => $true, onDelete => 'cascade') }, %rights },
	Deep => { table => 'shop.deep', plural => 'deeps', fields => { taken => ref_to('Taken', required => $true, onDelete => 'cascade') }, %rights },
	Freed => { table => 'shop.freed', plural => 'freeds', fields => { parent => ref_to('Parent', onDelete => 'setNull') }, %rights },
	Firm => { table => 'shop.firm', fields => { parent => ref_to('Parent') }, %rights },
	Django => { table => 'shop.django', plural => 'djangos', fields => { parent => ref_to('Parent', required => $true) }, %rights },
	Wait => { table => 'shop.waits', fields => { %name, parent => ref_to('Parent', required => $true) }, %rights },
	Node => { table => 'shop.node', fields => { %name, up => ref_to('Node', onDelete => 'cascade'), also => ref_to('Node', onDelete => 'cascade') }, %rights },
	Hen => { table => 'shop.hen', fields => { %name, egg => ref_to('Egg', onDelete => 'cascade') }, %rights },
	Egg => { table => 'shop.egg', fields => { %name, hen => ref_to('Hen', onDelete => 'cascade') }, %rights });

# -------- at apply --------

# every key against every word
my %right = (Taken => 'cascade', Freed => 'setNull', Firm => 'restrict', Wait => 'restrict');
my %action = (Taken => 'CASCADE', Freed => 'SET NULL', Firm => 'RESTRICT', Wait => 'NO ACTION');
for my $entity (sort keys %right)
{
	for my $word (grep { $_ ne $right{$entity} && !($_ eq 'setNull' && $spec{$entity}{fields}{parent}{required}) } qw(cascade setNull restrict))
	{
		local $spec{$entity}{fields}{parent}{onDelete} = $word;
		faulty("$entity with $word", $action{$entity} =~ /^(?:CASCADE|SET NULL)$/
			? qr{deleting Parent [^\n]*ON DELETE \Q$action{$entity}\E \(onDelete: $right{$entity} in $entity\.parent, or}
			: qr{/spec/fields/parent: its foreign key is ON DELETE \Q$action{$entity}\E, and onDelete says something else \(onDelete: $right{$entity}\)});
	}
}
$cluster->psql('alter table shop.firm add column other_id uuid default gen_random_uuid() references shop.parent on delete set default');
faulty('SET DEFAULT', qr/deleting Parent changes rows of shop\.firm .*ON DELETE SET DEFAULT/);
$spec{Parent}{unseen} = ['shop.firm'];
faulty('SET DEFAULT that is named', qr/ON DELETE SET DEFAULT/);
delete $spec{Parent}{unseen};
$cluster->psql('alter table shop.firm drop column other_id');
$cluster->psql('set role shop_app; create table shop.stranger (a int, parent_id uuid references shop.parent on delete cascade); create table shop.further (a int)');
faulty('a table that is not served', qr/deleting Parent deletes rows of shop\.stranger .*unseen: \[shop\.stranger\]/);
$spec{Parent}{unseen} = ['shop.stranger'];
my $schema = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $schema->();
applied('all are as they have to be');
is($schema->(), $before, 'the schema is as it was');
is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'no difference');

# -------- served --------

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');

sub made
{
	my ($type, %to) = @_;

	return $ann->good(201, POST => "/$type", data => { type => $type, %to ? (relationships => { map { $_ => { data => $to{$_} } } keys %to }) : () })->{json}{data};
}
sub is_of { my ($data) = @_; return { type => $data->{type}, id => $data->{id} } }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub there { my ($data, $table) = @_; return $cluster->psql("select count(*) from shop.$table where id = '$data->{id}'") }
sub records { my ($data, $action) = @_; return $cluster->psql("select count(*) from entityapi.audit where target_id = '$data->{id}' and action = '$action' and outcome = 'SUCCESS'") }
sub gone
{
	my ($what, $data, $table) = @_;

	is(there($data, $table), 0, "$what is gone");
	is(records($data, 'ENTITY_DELETE'), 1, 'with one record');
	return;
}

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	subtest "deletions, direct: $way" => sub {
		my $parent = made('parents');
		my $taken = made(takens => (parent => is_of($parent)));
		my $deep = made(deeps => (taken => is_of($taken)));
		my $freed = made(freeds => (parent => is_of($parent)));
		$ann->good(204, DELETE => "/parents/$parent->{id}");
		gone('the row', $parent, 'parent');
		gone('a row that goes along', $taken, 'taken');
		gone('and one further down', $deep, 'deep');
		is($ann->good(200, GET => "/freeds/$freed->{id}")->{json}{data}{relationships}{parent}{data}, undef, 'another is let go');
		is(records($freed, 'ENTITY_UPDATE'), 1, 'with a record');

		for my $type (qw(firms djangos waits))
		{
			my $held = made('parents');
			my $child = made($type => (parent => is_of($held)));

			$ann->refused("$type hold it", 409, 'STILL_REFERENCED', undef, DELETE => "/parents/$held->{id}");
			is(there($held, 'parent'), 1, 'so it is there');
			is(records($held, 'ENTITY_DELETE'), 0, 'and of its end there is no record');
			$ann->good(204, DELETE => "/$type/$child->{id}");
			$ann->good(204, DELETE => "/parents/$held->{id}");
		}

		my $held = made('parents');
		my $child = made(djangos => (parent => is_of($held)));
		is(batch({ op => 'remove', ref => is_of($held) }, { op => 'remove', ref => is_of($child) })->{status}, 200, 'a key that waits takes both in this order');
	};
	subtest "circles, direct: $way" => sub {
		my $own = made('nodes');
		$ann->good(200, PATCH => "/nodes/$own->{id}", data => { %{ is_of($own) }, relationships => { up => { data => is_of($own) } } });
		$ann->good(204, DELETE => "/nodes/$own->{id}");
		gone('a row that refers to itself', $own, 'node');

		my @tree = made('nodes');
		push @tree, made(nodes => (up => is_of($tree[ int($_ / 2) ]))) for 0 .. 5;
		$ann->good(200, PATCH => "/nodes/$tree[0]{id}", data => { %{ is_of($tree[0]) }, relationships => { up => { data => is_of($tree[6]) } } });
		$ann->good(204, DELETE => "/nodes/$tree[2]{id}");
		gone("node $_ of a circle", $tree[$_], 'node') for 0 .. 6;

		# one that is found by two ways, of which the deeper has to go first
		my $root = made('nodes');
		my $first = made(nodes => (up => is_of($root)));
		my $second = made(nodes => (up => is_of($root)));
		$ann->good(200, PATCH => "/nodes/$second->{id}", data => { %{ is_of($second) }, relationships => { also => { data => is_of(made(nodes => (up => is_of($first)))) } } });
		$ann->good(204, DELETE => "/nodes/$root->{id}");
		gone('a row found twice', $_, 'node') for $root, $first, $second;

		my $hen = made('hens');
		my $egg = made(eggs => (hen => is_of($hen)));
		$ann->good(200, PATCH => "/hens/$hen->{id}", data => { %{ is_of($hen) }, relationships => { egg => { data => is_of($egg) } } });
		$ann->good(204, DELETE => "/hens/$hen->{id}");
		gone('the hen', $hen, 'hen');
		gone('the egg', $egg, 'egg');
		is($cluster->psql("select count(*) from shop.log where id = '$hen->{id}'"), 1, 'its trigger ran once');
		is($cluster->psql("select changes::text like '%$egg->{id}%' from entityapi.audit where target_id = '$hen->{id}' and action = 'ENTITY_DELETE' and outcome = 'SUCCESS'"), 't', 'its record has what it was');
	};
}

# A child that comes in between waits for the deletion, or is found by it
subtest 'a child of others' => sub {
	my $session = EntityApi::Test::Session->new($cluster);
	my $waiting = sub { EntityApi::Test::wait_until(60, sub { $cluster->psql('select count(*) from pg_locks where not granted') > 0 }) or fail('somebody waits') };
	my $parent = made('parents');
	my $client = EntityApi::Test::Client::connected($shim);

	$session->must('begin');
	my $child = $session->must("insert into shop.taken (parent_id) values ('$parent->{id}') returning id");
	print {$client} "DELETE /api/v1/parents/$parent->{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $ann->{token}{accessToken}\r\n\r\n";
	$waiting->();
	$session->must('commit');
	is(EntityApi::Test::Client::answer($client)->{status}, 204, 'the deletion waits for it');
	gone('the child', { id => $child }, 'taken');

	# the deletion holds the row while something keeps it from ending
	$parent = made('parents');
	my $known = made(takens => (parent => is_of($parent)));
	$session->must('begin');
	$session->must("select 1 from shop.taken where id = '$known->{id}' for update");
	$client = EntityApi::Test::Client::connected($shim);
	print {$client} "DELETE /api/v1/parents/$parent->{id} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $ann->{token}{accessToken}\r\n\r\n";
	$waiting->();
	like($cluster->try_psql("set lock_timeout = 100; insert into shop.taken (parent_id) values ('$parent->{id}')")->{err}, qr/lock timeout/, 'a child that comes now waits');
	$session->must('commit');
	is(EntityApi::Test::Client::answer($client)->{status}, 204, 'deleted');
	gone('the known child', $known, 'taken');
	is($cluster->psql("select count(*) from shop.taken where parent_id = '$parent->{id}'"), 0, 'there is no other');
	is($cluster->psql(q{select count(*) from entityapi.audit a where action = 'ENTITY_CREATE' and target_type in ('parents', 'takens', 'deeps', 'hens', 'eggs', 'nodes')
		and not exists (select from entityapi.audit d where d.target_id = a.target_id and d.action = 'ENTITY_DELETE' and d.outcome = 'SUCCESS')
		and not exists (select from shop.parent p where p.id::text = a.target_id) and not exists (select from shop.taken t where t.id::text = a.target_id)
		and not exists (select from shop.node n where n.id::text = a.target_id)}), 0, 'nothing went without a record');
};

subtest 'a key that comes later' => sub {
	my $parent = made('parents');

	for my $change ([ 'alter table shop.further add parent_id uuid references shop.parent on delete cascade', 'alter table shop.further drop parent_id' ],
		[ 'alter table shop.firm drop constraint firm_parent_id_fkey, add constraint firm_parent_id_fkey foreign key (parent_id) references shop.parent on delete cascade',
			'alter table shop.firm drop constraint firm_parent_id_fkey, add constraint firm_parent_id_fkey foreign key (parent_id) references shop.parent on delete restrict' ],
		[ 'alter table shop.taken drop constraint taken_parent_id_fkey, add constraint taken_parent_id_fkey foreign key (parent_id) references shop.parent on delete set null',
			'alter table shop.taken drop constraint taken_parent_id_fkey, add constraint taken_parent_id_fkey foreign key (parent_id) references shop.parent on delete cascade' ])
	{
		$cluster->psql("set role shop_app; $change->[0]");
		is($ann->call(DELETE => "/parents/$parent->{id}")->{status}, 500, "no deletion: $change->[0]");
		is($ann->call(GET => "/parents/$parent->{id}")->{status}, 200, 'all else is served');
		like($cluster->psql('select message from entityapi.list_differences()'), qr/deleting Parent/, 'told as a difference');
		$cluster->psql("set role shop_app; $change->[1]");
	}
	$cluster->psql('set role shop_app; alter table shop.further add parent_id uuid references shop.parent on delete cascade');
	is($ann->call(DELETE => "/parents/$parent->{id}")->{status}, 500, 'refused');
	$spec{Parent}{unseen} = [ 'shop.stranger', 'shop.further' ];
	applied('named');
	$ann->good(204, DELETE => "/parents/$parent->{id}");
};

# -------- atomic --------

subtest 'operations in order' => sub {
	my $refers = sub { my ($type, $to) = @_; return { op => 'update', ref => { type => $type, lid => 'c', relationship => 'parent' }, data => $to } };
	my $late = sub { my ($type) = @_; return ({ op => 'add', data => { type => $type, lid => 'c' } }, { op => 'add', data => { type => 'parents', lid => 'p' } },
		$refers->($type, { type => 'parents', lid => 'p' })) };
	my $told = sub { my ($answer) = @_; my $error = $answer->{json}{errors}[0]; return "$answer->{status} $error->{code} $error->{source}{pointer}" };

	is($told->(batch($late->('takens'))), '400 INVALID_VALUE /atomic:operations/0/data', 'a key that does not wait takes earlier operations only');
	is($told->(batch({ op => 'add', data => { type => 'parents', lid => 'x' } }, $late->('takens'))), '400 INVALID_VALUE /atomic:operations/1/data', 'at the operation that refers');
	$cluster->psql('set role shop_app; alter table shop.waits add constraint too foreign key (parent_id) references shop.parent');
	is($told->(batch($late->('waits'))), '400 INVALID_VALUE /atomic:operations/0/data', 'beside one that waits, too');
	$cluster->psql('set role shop_app; alter table shop.waits drop constraint too');
	is(batch(map { $late->($_) } 'waits')->{status}, 200, 'one that is deferrable waits');
	is(batch(map { $late->($_) } 'djangos')->{status}, 200, 'so does one that is deferred anyway');
	is(batch({ op => 'add', data => { type => 'parents', lid => 'p' } }, { op => 'add', data => { type => 'takens', relationships => { parent => { data => { type => 'parents', lid => 'p' } } } } })->{status}, 200,
		'an earlier one');
	is(batch({ op => 'add', data => { type => 'takens', lid => 'c' } })->{json}{errors}[0]{code}, 'REQUIRED', 'without any it is required');
};

subtest 'rights of what goes along' => sub {
	$cluster->psql(<<~'SQL');
		create role shop_web;
		grant usage on schema shop to shop_web;
		grant select, insert, update, delete on all tables in schema shop to shop_web;
		revoke delete on shop.deep from shop_web;
		revoke update on shop.freed from shop_web;
		SQL
	declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
	$spec{$_}{permissions} = { Reader => ['read'] } for qw(Deep Freed);
	faulty('rows that go', qr/shop_web may not do what "delete" takes \(GRANT SELECT, UPDATE, DELETE ON shop\.deep TO shop_web\)/);
	faulty('rows that are let go', qr/shop_web may not do what "update" takes \(GRANT SELECT, UPDATE ON shop\.freed TO shop_web\)/);
	$cluster->psql('grant delete on shop.deep to shop_web; grant update on shop.freed to shop_web');
	applied('with these rights');
	my $parent = made('parents');
	my $taken = made(takens => (parent => is_of($parent)));
	my $deep = { id => $cluster->psql("insert into shop.deep (taken_id) values ('$taken->{id}') returning id") };
	$ann->good(204, DELETE => "/parents/$parent->{id}");
	gone('what nobody may delete itself', $deep, 'deep');
};

unlike(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed: (?!no row of shop\.parent is deleted)/, 'no request failed for a reason of ours')
  or diag join "\n", EntityApi::Test::slurp($cluster->log) =~ /(.*entityapi request \S+ failed.*)/g;
$shim->stop;
done_testing;
