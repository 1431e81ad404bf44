# `distribution: citus` makes the tables of a service those of a cluster, on an
# empty database and on one with rows; changes go on there; what somebody does
# to it by hand is told of and put back; and it can be taken back.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
my $manifests = EntityApi::Test::folder() . '/declared.json';
my %documents = (
	Service => { s => {} },
	Roles => { r => { roles => { Clerk => undef } } },
	SecurityAttributes => { a => { attributes => { region => { type => 'string' } } } },
	Policy => {
		SameRegion => { expression => q{#record.region == #user.securityAttributes['region']} },
		ShopInRegion => { expression => q{#record.shop.region == #user.securityAttributes['region']} } },
	Entity => {
		Country => { tenantScoped => JSON::PP::false, permissions => { Clerk => ['read'] }, fields => { code => { type => 'string', unique => JSON::PP::true } } },
		Shop => {
			softDelete => JSON::PP::true,
			permissions => { Clerk => ['read'] },
			policies => { SameRegion => ['read'] },
			fields => {
				region => { type => 'string', enum => [qw(north south)] },
				code => { type => 'string', unique => JSON::PP::true },
				country => { type => 'ref', target => 'Country', relation => 'ManyToOne' },
				tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' } } },
		Sale => { permissions => { Clerk => ['read'] }, policies => { ShopInRegion => ['read'] }, fields => {
				shop => { type => 'ref', target => 'Shop', relation => 'ManyToOne' }, n => { type => 'integer', minimum => 0, index => JSON::PP::true } } },
		Tag => { permissions => { '*' => ['read'] }, fields => { name => { type => 'string' } } } });

sub write_down
{
	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ map { my $kind = $_;
		map { { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $_ }, spec => $documents{$kind}{$_} } } sort keys %{ $documents{$kind} } } sort keys %documents ]);
	close $out or die "$manifests: $!\n";
	return $manifests;
}

sub distribute { my ($how) = @_; $documents{Service}{s}{distribution} = $how; return write_down() }
sub faults { my ($do, @options) = @_; my $done = $cluster->try_apply(@options, write_down()); return "$done->{status} $done->{err}" }

sub placements
{
	return $cluster->psql(q{select coalesce(string_agg(logicalrelid::text || ' ' || case when partmethod = 'n' and repmodel = 't' then 'everywhere'
		else column_to_column_name(logicalrelid, partkey) || case when colocationid = (select colocationid from pg_dist_partition
			where logicalrelid = 'entityapi.audit'::regclass) then ' beside' else ' elsewhere' end end, ', ' order by logicalrelid::text), 'none')
		from pg_dist_partition where logicalrelid::text like 'app.%'});
}

my $all = 'app.country everywhere, app.sale tenant_id beside, app.shop tenant_id beside, app.shop_tags tenant_id beside, app.tag tenant_id beside';

# All rows, in a word
sub rows
{
	return $cluster->psql(join ' union all ', map { "select '$_', count(*), md5(string_agg(x::text, ',' order by x::text)) from app.$_ x" } qw(country sale shop shop_tags tag));
}

sub sound
{
	my ($name) = @_;

	is($cluster->psql('select message from entityapi.list_differences()'), '', "$name: the tables are as declared");
	is($cluster->psql('select statement from entityapi.list_steps()'), '', "$name: and nothing is left to be done");
	return;
}

subtest 'what Citus lacks' => sub {
	distribute('citus');
	$cluster->set(wal_level => 'replica');
	$cluster->stop;
	$cluster->start;
	like(faults(), qr{^1 .*/spec/distribution: wal_level is replica on the node .*wal_level is replica on the node }s, 'wal_level, on each node');
	$cluster->set(wal_level => 'logical');
	$cluster->stop;
	$cluster->start;
	like($cluster->node(1)->try_apply(write_down())->{err}, qr{/spec/distribution: this node is not the coordinator}, 'a worker');
	$cluster->psql('create database plain', database => 'postgres');
	$cluster->psql('create extension entityapi cascade', database => 'plain');
	like($cluster->try_psql(q{select entityapi.apply_manifest('[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "citus"}}]')},
			database => 'plain')->{err}, qr{Citus is not installed in this database}, 'Citus itself');
	is(placements(), 'none', 'nothing was done');
	is($cluster->psql(q{select count(*) from pg_dist_partition}), 0, 'to no table');
};

subtest 'one node in a database that has Citus' => sub {
	distribute('none');
	$cluster->apply($manifests);
	is(placements(), 'none', 'Citus has nothing');
	is(join(' ', $cluster->on_all(q{select count(*) from pg_namespace where nspname = 'app'})), '1 0 0', 'and other nodes hear nothing');
	sound('then');
};

$cluster->psql(<<~'SQL');
	insert into entityapi.tenant select md5(x)::uuid, x, x, 'ACTIVE', '{}', now() from unnest('{a,b,c,d,e}'::text[]) x;
	insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile, security_attributes, password_change_required, is_super_admin, created_at)
		select md5('u' || slug)::uuid, id, 'USER', slug, slug, 'ACTIVE', '{}', '{}', '{}', false, false, now() from entityapi.tenant;
	insert into app.country (id, code, created_at, updated_at) select md5('c' || i)::uuid, 'C' || i, now(), now() from generate_series(1, 5) i;
	insert into app.shop (tenant_id, id, region, code, country_id, created_at, updated_at)
		select t.id, md5('s' || i)::uuid, case i % 2 when 0 then 'north' else 'south' end, 'c' || i, md5('c' || (1 + i % 5))::uuid, now(), now() from entityapi.tenant t, generate_series(1, 20) i;
	insert into app.sale (tenant_id, id, shop_id, n, created_at, updated_at)
		select t.id, md5('x' || i)::uuid, md5('s' || (1 + i % 20))::uuid, i, now(), now() from entityapi.tenant t, generate_series(1, 100) i;
	insert into app.tag (tenant_id, id, name, created_at, updated_at) select t.id, md5('t' || i)::uuid, 't' || i, now(), now() from entityapi.tenant t, generate_series(1, 3) i;
	insert into app.shop_tags select t.id, md5('s' || i)::uuid, md5('t' || (1 + i % 3))::uuid from entityapi.tenant t, generate_series(1, 20) i;
	SQL
my $rows = rows();
my $records = $cluster->psql('select count(*), count(tenant_id) from entityapi.audit');

subtest 'given to Citus' => sub {
	distribute('citus');
	my $dry = $cluster->try_apply('--dry-run', $manifests);
	is($dry->{status}, 0, 'looked at first') or diag $dry->{err};
	like($dry->{out}, qr/^SELECT entityapi\.distribute_own\(\);.*^SELECT create_distributed_table\('app\.shop', 'tenant_id', colocate_with => 'entityapi\.audit'\);/ms, 'with its statements');
	is(placements(), 'none', 'and nothing done');
	my $done = $cluster->apply($manifests);
	is(placements(), $all, 'the tables are with Citus') or diag $done;
	is(rows(), $rows, 'with all rows');
	sound('given');
	is($cluster->psql(q{select string_agg(logicalrelid::text, ' ') from (select c.oid::regclass as logicalrelid from pg_class c where c.relnamespace = 'entityapi'::regnamespace
			and c.relkind in ('r', 'p') and c.relname <> 'announced' and c.oid::regclass::text !~ '_\d{6}$' except select logicalrelid from pg_dist_partition) l}), '', 'none of the extension is left out but what is each node\'s own');
	is($cluster->psql('select count(*), count(tenant_id) from entityapi.audit') =~ s/\|.*//r, ($records =~ s/\|.*//r) + 1, 'the log has its records');
	is(join(' ', $cluster->on_all('select count(*) from app.sale')), '500 500 500', 'each node knows them');
	is(join(' ', $cluster->on_all('select count(*) from entityapi.account')), '5 5 5', 'and the accounts');
	is(join(' ', $cluster->on_all(q{select count(*) from pg_trigger where tgname ~ '^copy_account_' and tgrelid::regclass::text ~ '^entityapi.account_'})), '1 1 1', 'which have their trigger');
	is($cluster->psql(q{select count(*) from pg_policy where pg_get_expr(polqual, polrelid) ~ 'SELECT' and polrelid::regclass::text ~ '^app'}), 0, 'no policy has a sub-select');
	is($cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolname ~ '^entityapi_' and rolcanlogin}),
		'entityapi_owner entityapi_reader entityapi_shim', 'nodes are let in');
	is($cluster->apply($manifests), "nothing to change\n", 'again, there is nothing to do');
	for my $sql ('update entityapi.audit set action = $$x$$', 'delete from entityapi.audit', 'truncate entityapi.audit')
	{
		like($cluster->try_psql($sql)->{err}, qr/append-only/, "the log is append-only: $sql");
	}
};

subtest 'changes go on' => sub {
	$documents{Entity}{Stall} = { %{ delete $documents{Entity}{Shop} }, renamedFrom => 'Shop' };
	$documents{Entity}{Sale}{fields}{stall} = { %{ delete $documents{Entity}{Sale}{fields}{shop} }, target => 'Stall', renamedFrom => 'shop' };
	$documents{Policy}{ShopInRegion}{expression} =~ s/record\.shop/record.stall/;
	$documents{Entity}{Sale}{fields}{number} = { %{ delete $documents{Entity}{Sale}{fields}{n} }, type => 'long', renamedFrom => 'n' };
	$documents{Entity}{Note} = { fields => { text => { type => 'text' }, sale => { type => 'ref', target => 'Sale', relation => 'ManyToOne' } } };
	my $done = $cluster->try_apply(write_down());
	is($done->{status}, 0, 'names, types and a new entity') or diag $done->{err};
	is(placements(), 'app.country everywhere, app.note tenant_id beside, app.sale tenant_id beside, app.stall tenant_id beside, app.stall_tags tenant_id beside, app.tag tenant_id beside',
		'all of them beside the others');
	sound('changed');

	$documents{Entity}{Tag}{fields}{name}{unique} = JSON::PP::true;
	$documents{Entity}{Sale}{fields}{number}{maximum} = 1000;
	$documents{Entity}{Sale}{fields}{number}{required} = JSON::PP::true;
	$documents{Entity}{Country}{fields}{name} = { type => 'string', required => JSON::PP::true, default => 'somewhere' };
	$done = $cluster->try_apply(write_down());
	is($done->{status}, 0, 'a unique key, a check and a required field of tables in use') or diag $done->{err};
	sound('constrained');
	like($cluster->try_psql(q{insert into app.tag select tenant_id, gen_random_uuid(), name, now(), now() from app.tag limit 1})->{err} // '', qr/unique|duplicate/, 'the key holds');

	$cluster->psql(q{insert into app.tag (tenant_id, id, name, created_at, updated_at) select md5('a')::uuid, md5('double')::uuid, 'other', now(), now()});
	$documents{Entity}{Stall}{fields}{region}{unique} = JSON::PP::true;
	like(faults(), qr/rows of Stall have equal values: now 10 values in more than one/, 'rows stand against a key');
	delete $documents{Entity}{Stall}{fields}{region}{unique};
	delete $documents{Entity}{Note};
	$done = $cluster->try_apply('--allow-data-loss', 'Note', write_down());
	is($done->{status}, 0, 'an entity goes') or diag $done->{err};
	sound('less');
};

subtest 'by hand' => sub {
	$cluster->psql(q{set client_min_messages = error; select undistribute_table('app.tag', cascade_via_foreign_keys => true)});
	like($cluster->psql('select message from entityapi.list_differences()'), qr/the rows of app\.tag are on one node alone/, 'a table that was taken back is told of');
	$documents{Entity}{Tag}{fields}{colour} = { type => 'string' };
	like(faults(), qr/the rows of app\.tag are on one node alone.*--repair/s, 'and changes wait');
	my $done = $cluster->try_apply('--repair', $manifests);
	is($done->{status}, 0, 'until it is put back') or diag $done->{err};
	like(placements(), qr/app\.tag tenant_id beside/, 'where it was');
	sound('mended');

	$cluster->psql(q{set client_min_messages = error; set role entityapi_owner; create table app.copy (like app.tag including all); insert into app.copy select * from app.tag;
		drop table app.tag cascade; alter table app.copy rename to tag});
	like($cluster->psql('select message from entityapi.list_differences()'), qr/foreign key .* of app\.stall_tags does not exist.*the rows of app\.tag are on one node alone/s, 'a copy in its place');
	$done = $cluster->try_apply('--repair', $manifests);
	is($done->{status}, 0, 'is put right') or diag $done->{err};
	like(placements(), qr/app\.tag tenant_id beside/, 'with Citus');
	sound('right');
};

subtest 'the months of the log' => sub {
	my $months = q{select count(*) from pg_inherits where inhparent = 'entityapi.audit'::regclass};
	my $before = $cluster->psql($months);

	$cluster->psql(q{insert into entityapi.audit (id, at, tenant_id, action, outcome) select gen_random_uuid(), now() + interval '9 months', md5('a')::uuid, 'LATE', 'SUCCESS'});
	$cluster->psql(q{set client_min_messages = error; select entityapi.extend_audit(now() + interval '9 months', 1)});
	is($cluster->psql($months), $before + 2, 'more are made');
	is($cluster->psql(q{select count(*), bool_and(tableoid::regclass::text !~ 'default') from entityapi.audit where action = 'LATE'}), '1|t', 'and get their records');
	is($cluster->psql(q{select count(*) from (select inhrelid::regclass from pg_inherits where inhparent = 'entityapi.audit'::regclass
			except select logicalrelid from pg_dist_partition) m}), 0, 'with Citus');
	$cluster->psql(q{insert into entityapi.audit (id, at, tenant_id, action, outcome) select gen_random_uuid(), '2020-05-05', md5(x)::uuid, 'OLD', 'SUCCESS' from unnest('{a,b,c}'::text[]) x});
	is($cluster->psql(q{select entityapi.purge_audit('2021-01-01')}), 'audit_2020_05', 'old ones go');
	is($cluster->psql(q{select count(*) from entityapi.audit where action = 'OLD'}), 0, 'with their records');
	like($cluster->try_psql('delete from entityapi.audit')->{err}, qr/append-only/, 'the log is append-only as before');
};

subtest 'taken back' => sub {
	my $before = $cluster->psql('select count(*) from entityapi.audit');
	my $sales = $cluster->psql('select count(*), sum(number) from app.sale');

	distribute('none');
	my $done = $cluster->try_apply($manifests);
	is($done->{status}, 0, 'by the declarations') or diag $done->{err};
	is($cluster->psql('select count(*) from pg_dist_partition'), 0, 'Citus has nothing');
	is($cluster->psql('select count(*), sum(number) from app.sale'), $sales, 'the rows are here');
	is($cluster->psql(q{select (select count(*) from entityapi.account), (select count(*) from pg_trigger where tgname = 'copy_account' and tgrelid = 'entityapi.account'::regclass)}), '5|1',
		'and the accounts, with their trigger');
	is($cluster->psql('select count(*) from entityapi.audit'), $before + 1, 'and the records');
	is($cluster->psql(q{select count(*) from entityapi.audit where tenant_id = '00000000-0000-0000-0000-000000000000'}), 0, 'those of no tenant without one');
	sound('back');
	distribute('citus');
	is($cluster->try_apply($manifests)->{status}, 0, 'given again');
	sound('again');
};

done_testing;
