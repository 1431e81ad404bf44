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
	return sprintf q{[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "citus"}},
		{"apiVersion": "entityapi/v1", "kind": "Roles", "metadata": {"name": "r"}, "spec": {"roles": {"Clerk": null}}},
		{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "%s"}, "spec": {"tenantScoped": false, "fields": {"%s": {"type": "string"}}, "permissions": {"Clerk": ["read"]}}}]}, $entity // 'Item', $name;
};
my $apply = sub { my ($documents, @options) = @_; my $done = $cluster->try_psql(sprintf(q{set client_min_messages = error; select entityapi.apply_manifest('%s', false, '{Item,Item.name,Item.other}')}, $documents), @options);
	return ($done->{err} // '') =~ /(ERROR.*)/s ? $1 : '' };
my $state = q{select md5((select string_agg(e::text, ' ' order by name) from entityapi.entity e) || (select s::text from entityapi.service s) || (select string_agg(r::text, ' ' order by revision) from entityapi.revision r))};

is($apply->($manifest->('name')), '', 'declared by a superuser');
$cluster->psql('set client_min_messages = error; create role mallory login in role entityapi_owner');
my ($former) = $cluster->psql('select definition from entityapi.service');
is($apply->($manifest->('other'), user => 'mallory'), '', 'declared by a member, with apply');
my @before = $cluster->on_all($state);
is("$before[0] $before[0]", "$before[1] $before[2]", 'it is the same on each node');

my %row = (
	entity => [ q{name = 'Item'}, 'definition = definition || $$ $$', q{select 'Other', 'others', 'others', 'others', definition from %s limit 1} ],
	service => [ 'singleton', q{definition = replace(definition, 'citus', 'none')}, q{values (true, '{}')} ],
	revision => [ 'revision > 0', q{documents = '[]'}, q{select revision + 1, applied_at, checksum, extension_version, documents, statements from %s order by revision desc limit 1} ]);

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
		my $seals = $node->psql(q{select format('entityapi.announced_%s', shardid) from pg_dist_shard where logicalrelid = 'entityapi.announced'::regclass});
		for my $sql (map { ("select * from $_", "insert into $_ values ('x')", "delete from $_") } 'entityapi.announced', $seals)
		{
			like($node->try_psql($sql, user => 'mallory')->{err} // '', qr/permission denied/, $sql);
		}
		like($node->try_psql($_, user => 'mallory')->{err} // '', qr/permission denied/, $_)
		  for q{select entityapi.announce('{x}')}, q{select entityapi.announce_here('{x}')}, 'select entityapi.guard_declarations(false)';
		like($node->try_psql("set session_replication_role = replica", user => 'mallory')->{err} // '', qr/permission denied/, 'nor does he switch triggers off');
	};
}
like($cluster->try_psql("update entityapi.service set definition = '$former'", user => 'mallory')->{err} // '', qr/written by apply_manifest\(\) alone/, 'what was declared before is not put back');
is(join(' ', $cluster->on_all($state)), join(' ', @before), 'nothing has changed on any node');
is($apply->($manifest->('name', 'Thing'), user => 'mallory'), '', 'with apply he goes on');
my @after = $cluster->on_all($state);
isnt($after[0], $before[0], 'to another state');
is("$after[0] $after[0]", "$after[1] $after[2]", 'on each node');

done_testing;
