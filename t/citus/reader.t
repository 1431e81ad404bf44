# Plain SQL of a reader shows on each node what the API shows: of tables of
# tenants and of all, of joins, behind policies, and for who comes by a mapped
# role as for who is vouched for.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');
my @readers = map { $shims[0]->user($_->{id}, "reader$_->{node}", ['Reader']) } @tenants;
my $root = $shims[0]->superadmin;
my %table = (items => 'item', groups => 'group', labels => 'label', places => 'place', guarded => 'guarded');

sub made { my ($tenant, $type, %data) = @_; return $shims[ $tenant->{node} ]->must(201, POST => "/api/v1/$type", { token => $tenant->{user}, json => { data => { type => $type, %data } } })->{data} }
sub named { my ($resource) = @_; return { type => $resource->{type}, id => $resource->{id} } }

for my $tenant (@tenants)
{
	my $group = made($tenant, 'groups', attributes => { title => "group $tenant->{node}" });
	my @labels = map { made($tenant, 'labels', attributes => { word => "$tenant->{node} $_" }) } 1 .. 3;

	made($tenant, 'items', attributes => { name => "item $_", rank => $_, hidden => 'secret' }, relationships => { labels => { data => [ map { named($_) } @labels[ 0 .. $_ % 3 ] ] },
			$_ % 2 ? (group => { data => named($group) }) : () }) for 1 .. 7 + $tenant->{node};
	made($tenant, 'guarded', attributes => { name => "guarded $_", open => $_ % 3 ? JSON::PP::true : JSON::PP::false }) for 1 .. 9;
}
$cluster->psql(q{insert into app.place (id, name, created_at, updated_at) select gen_random_uuid(), 'place ' || i, now(), now() from generate_series(1, 5) i});

# The ids that the API shows of a collection
sub shown
{
	my ($shim, $who, $type) = @_;
	return join ' ', sort map { $_->{id} } @{ $shim->must(200, GET => "/api/v1/$type?page[size]=100", { token => $who })->{data} };
}

$cluster->psql(join ';', 'set client_min_messages = error', map {
	"create role bi$_->{node} login in role entityapi_reader; select entityapi.map_role('bi$_->{node}', 'reader$_->{node}')" } @tenants);
$cluster->psql('create role stranger login in role entityapi_reader');

for my $i (0 .. 2)
{
	my $node = $cluster->node($i);

	subtest "on node $i" => sub {
		for my $tenant (@tenants)
		{
			my $reader = $readers[ $tenant->{node} ];
			my $role = "bi$tenant->{node}";

			for my $type (sort keys %table)
			{
				my $ids = $node->psql(qq{select coalesce(string_agg(id::text, ' ' order by id::text), '') from app."$table{$type}"}, user => $role);
				is($ids, shown($shims[$i], $reader, $type), "$role sees $type as the API shows them");
				isnt($ids, '', 'there are some');
			}
			is($node->psql('select i.name, l.word from app.item i join app.item_labels m on m.item_id = i.id and m.tenant_id = i.tenant_id
					join app.label l on l.id = m.label_id and l.tenant_id = m.tenant_id where i.rank = 2 order by 2', user => $role),
				join("\n", map { "item 2|$tenant->{node} $_" } 1 .. 3), 'a join');
			is($node->psql('select g.title, count(*), sum(i.rank) from app.item i join app."group" g on g.id = i.group_id and g.tenant_id = i.tenant_id group by 1', user => $role),
				"group $tenant->{node}|" . join('|', map { my @odd = grep { $_ % 2 } 1 .. 7 + $tenant->{node}; my $sum = 0; $sum += $_ for @odd; (scalar @odd, $sum) } 1), 'a sum');
			like($node->try_psql('select hidden from app.item', user => $role)->{err}, qr/permission denied/, 'what roles hide is not granted');
			is($node->psql("select count(*) from app.item where tenant_id <> '$tenant->{id}'", user => $role), 0, 'nothing of others');
			like($node->try_psql(q{update app.item set name = 'x'}, user => $role)->{err}, qr/permission denied/, 'and writes nothing');
		}
		is($node->psql("select (select count(*) from app.item), (select count(*) from app.place)", user => 'stranger'), '0|0', 'who is not mapped sees nothing');
	};
}

subtest 'a middleware vouches for a user' => sub {
	$cluster->psql('set client_min_messages = error; create role middleware login in role entityapi_reader');
	$_->psql('grant execute on function entityapi.set_principal(jsonb) to middleware') for $cluster->nodes;
	for my $i (0 .. 2)
	{
		my $as = sub { my ($principal) = @_; "select entityapi.set_principal($principal) \\g /dev/null\n" };
		my $count = sub { my ($tenant) = @_; "select count(*) from app.guarded where tenant_id = '$tenant->{id}';" };
		my @answers = split /\n/, $cluster->node($i)->psql(join('', map { my $tenant = $_; map {
					$as->("jsonb_build_object('userId', 'u', 'tenantId', '$tenant->{id}', 'roles', '[\"$_\"]'::jsonb)") . $count->($tenant) . "\n" } qw(Editor Reader) } @tenants)
			  . $as->('null') . $count->($tenants[$i]), user => 'middleware');

		# the session knows its principal, and no other one does
		is("@answers", join(' ', map { $_->{node} == $i ? '9 6' : '0 0' } @tenants) . ' 0', "on node $i those of the tenant that is there");
	}
};

subtest 'what is taken away' => sub {
	my @one = (user => 'bi1');

	is(join(' ', $cluster->on_all('select count(*) from app.item', @one)), '8 8 8', 'is there');
	$shims[0]->must(200, PATCH => "/manage/tenants/$tenants[1]{id}/users/$readers[1]{id}", { token => $root, json => { status => 'DISABLED' } });
	is(join(' ', $cluster->on_all('select count(*) from app.item', @one)), '0 0 0', 'until the user is disabled');
	$shims[1]->must(200, PATCH => "/manage/tenants/$tenants[1]{id}/users/$readers[1]{id}", { token => $shims[1]->superadmin, json => { status => 'ACTIVE' } });
	is(join(' ', $cluster->on_all('select count(*) from app.item', @one)), '8 8 8', 'and again');
	$cluster->psql(q{select entityapi.map_role('bi1', null)});
	is(join(' ', $cluster->on_all('select count(*) from app.item', @one)), '0 0 0', 'and not when the mapping is gone');
};

done_testing;
