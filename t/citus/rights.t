# Who is a member of entityapi_owner changes what is declared by apply alone,
# on a cluster as on one node: no statement of his own is taken by any node, be
# it over a table or over a part of it.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
my $manifest = sub {
	my ($name, $entity) = @_;
	return sprintf q{[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "citus", "audit": {"entities": true}}},
		{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "r"}, "spec": {"roles": {"Clerk": null}}},
		{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "%s"}, "spec": {"tenantScoped": false, "fields": {"%s": {"type": "string"}}, "permissions": {"Clerk": ["read"]}}}]}, $entity // 'Item', $name;
};
my $apply = sub { my ($documents, @options) = @_; my $done = $cluster->try_psql(sprintf(q{set client_min_messages = error; select entityapi.apply_manifest('%s', false, '{Item,Item.name,Item.other}')}, $documents), @options);
	return ($done->{err} // '') =~ /(ERROR.*)/s ? $1 : '' };
my $state = q{select md5((select string_agg(e::text, ' ' order by name) from entityapi.entity e) || (select s::text from entityapi.service s) || (select string_agg(r::text, ' ' order by revision) from entityapi.revision r)
	|| (select string_agg(p::text, ' ' order by p::text) from entityapi.past_name p))};

is($apply->($manifest->('name')), '', 'declared by a superuser');
$cluster->psql('set client_min_messages = error; create role mallory login in role entityapi_owner');
my ($former) = $cluster->psql('select definition from entityapi.service');
is($apply->($manifest->('other'), user => 'mallory'), '', 'declared by a member, with apply');
my @before = $cluster->on_all($state);
is("$before[0] $before[0]", "$before[1] $before[2]", 'it is the same on each node');

my %row = (
	entity => [ q{name = 'Item'}, 'definition = definition || $$ $$', q{select 'Other', 'others', 'others', 'others', definition from %s limit 1} ],
	service => [ 'singleton', q{definition = replace(definition, 'citus', 'none')}, q{values (true, '{}')} ],
	revision => [ 'revision > 0', q{documents = '[]'}, q{select revision + 1, applied_at, checksum, extension_version, documents, statements from %s order by revision desc limit 1} ],
	past_name => [ 'first > 0', q{name = name || 'x'}, q{select entity, field, name, first + 1000, last from %s} ]);

for my $i (0 .. 2)
{
	my $node = $cluster->node($i);

	subtest "on node $i" => sub {
		for my $table (sort keys %row)
		{
			my ($which, $change, $more) = @{ $row{$table} };
			my $part = $node->psql("select format('entityapi.${table}_%s', shardid) from pg_dist_shard where logicalrelid = 'entityapi.$table'::regclass");

			for my $name ("entityapi.$table", $part)
			{
				my $trigger = $node->psql("select tgname from pg_trigger where tgrelid = '$name'::regclass and tgname ~ '^refuse_unannounced'") || 'refuse_unannounced';

				for my $sql ("update $name set $change where $which", "delete from $name where $which", "insert into $name " . $more =~ s/%s/$name/r, "truncate $name",
					"alter table $name disable trigger all", "drop trigger $trigger on $name", "create trigger mine before insert on $name for each row execute function entityapi.refuse_unannounced()")
				{
					like($node->try_psql("set citus.enable_manual_changes_to_shards = on; set citus.enable_unsafe_triggers = on; $sql", user => 'mallory')->{err} // '',
						qr/written by apply_manifest\(\) alone|permission denied|must be owner|violates unique|can only be issued on the coordinator|operation is not allowed on this node|trigger "refuse_unannounced" for table "$table" does not exist/, $sql);
				}
			}
		}
		like($node->try_psql($_, user => 'mallory')->{err} // '', qr/permission denied/, $_)
		  for 'select * from entityapi.announced', q{insert into entityapi.announced values ('x', '1')}, 'delete from entityapi.announced';
		like($node->try_psql($_, user => 'mallory')->{err} // '', qr/permission denied/, $_)
		  for q{select entityapi.announce('{x}')}, q{select entityapi.announce_here('{x}')}, 'select entityapi.guard_declarations(false)';
		like($node->try_psql("set session_replication_role = replica", user => 'mallory')->{err} // '', qr/permission denied/, 'nor does he switch triggers off');
	};
}
like($cluster->try_psql("update entityapi.service set definition = '$former'", user => 'mallory')->{err} // '', qr/written by apply_manifest\(\) alone/, 'what was declared before is not put back');
is(join(' ', $cluster->on_all($state)), join(' ', @before), 'nothing has changed on any node');

# Nor is it done by code of his that a superuser runs.
my $shard = $cluster->psql(q{select format('entityapi.service_%s', shardid) from pg_dist_shard where logicalrelid = 'entityapi.service'::regclass});
$cluster->psql("set citus.enable_ddl_propagation = off; create schema lent; grant all on schema lent to entityapi_owner; set role entityapi_owner;
	create function lent.declare() returns void language sql security definer as \$\$ update $shard set definition = '{}' \$\$");
like($cluster->try_psql('select lent.declare()')->{err} // '', qr/written by apply_manifest\(\) alone/, 'nor by a function of the owner that a superuser calls');

# What is announced is for one transaction, and of no use when it has failed.
subtest 'an apply that is undone' => sub {
	my $more = sprintf q{set client_min_messages = error; select count(*) > 0 from entityapi.apply_manifest('%s')}, $manifest->('other') =~ s/\{"other"/{"more": {"type": "string"}, "other"/r;
	my ($done, @rows) = split /\n/, $cluster->psql("begin; $more; " . join('; ', map { "select definition from entityapi.$_" } qw(entity service)) . '; rollback', user => 'mallory');
	is($done, 't', 'is one');
	my @writes = map { [ (qw(entity service))[$_], "definition = '" . $rows[$_] =~ s/'/''/gr . q(') ] } 0, 1;
	push @writes, [ 'past_name', undef, q{values ('Item', 'more', 'more', 3, null)} ];

	for my $write (@writes)
	{
		my ($table, $change, $row) = @$write;
		my $sql = sub { return defined $change ? "update $_[0] set $change" : "insert into $_[0] $row" };

		for my $i (0 .. 2)
		{
			my $part = $cluster->node($i)->psql("select format('entityapi.${table}_%s', shardid) from pg_dist_shard where logicalrelid = 'entityapi.$table'::regclass");

			like($cluster->node($i)->try_psql("set citus.enable_manual_changes_to_shards = on; " . $sql->($_), user => 'mallory')->{err} // '', qr/written by apply_manifest\(\) alone/, "nobody writes $_ on node $i")
			  for "entityapi.$table", $part;
		}
		for my $before ('', 'update entityapi.declaring set present = present; ')
		{
			like($cluster->try_psql("begin; set role entityapi_owner; ${before}savepoint s; $more; rollback to s; " . $sql->("entityapi.$table") . '; commit', user => 'mallory')->{err} // '', qr/written by apply_manifest\(\) alone/,
				"nor $table in the same transaction" . ($before && ', having gone before it'));
		}
	}
	is(join(' ', $cluster->on_all($state)), join(' ', @before), 'nothing has changed on any node');
	like($cluster->try_psql('delete from entityapi.declaring', user => 'mallory')->{err} // '', qr/permission denied/, 'its row stays');
};
is($apply->($manifest->('name', 'Thing'), user => 'mallory'), '', 'with apply he goes on');
my @after = $cluster->on_all($state);
isnt($after[0], $before[0], 'to another state');
is("$after[0] $after[0]", "$after[1] $after[2]", 'on each node');

done_testing;
