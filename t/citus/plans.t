# A statement of a tenant's request is about one node, whatever it asks for: on
# the tenant's own node it is over plain tables, and on another it is one task.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, node => 0);
my ($tenant) = grep { $_->{node} == 2 } $cluster->place($shim, 'Editor');
my $item = $shim->must(201, POST => '/api/v1/items', { token => $tenant->{user}, json => { data => { type => 'items', attributes => { name => 'x', rank => 1 } } } })->{data}{id};
my %principal = (userId => $tenant->{user}{id}, tenantId => $tenant->{id});

my @targets = ('/items', "/items/$item", "/items/$item?include=group,labels", '/items?filter=group.title==x&sort=-group.title,name',
	'/items?filter=labels.word==x;state==OPEN&include=group.items,labels', '/items?page[after]=start&sort=-rank', "/items/$item/labels",
	"/items/$item/relationships/labels", '/groups?filter=items.labels.word=in=(a,b)&include=items.labels', '/guarded?filter=open==true', '/scraps', '/places');

for my $i (0 .. 2)
{
	subtest "asked on node $i" => sub {
		for my $role (qw(Editor Reader))
		{
			for my $target (@targets)
			{
				my $text = $cluster->node($i)->psql(sprintf q{select entityapi.explain('GET', '/api/v1%s', '{"userId": "%s", "tenantId": "%s", "roles": ["%s"]}')},
					$target, @principal{qw(userId tenantId)}, $role);
				my @tasks = $text =~ /Task Count: (\d+)/g;

				is(join(' ', grep { $_ != 1 } @tasks), '', "$role, $target: one task each") or diag $text;
				is(scalar @tasks, 0, 'and none on its own node') or diag $text if $i == $tenant->{node};
				like($text, qr/Scan/, 'there is a plan');
			}
		}
	};
}

done_testing;
