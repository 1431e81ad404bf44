# Tenants move from node to node while they are written and read: nothing is
# lost, nothing is there twice, nothing is read from where it was.  A node comes,
# gets its part, and goes.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/citus";

use HTTP::Tiny;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep);

use EntityApi::Test;
use Load;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, conf => [ 'entityapi.access_token_ttl = 86400', 'citus.shard_count = 3' ]);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 3) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');
my $folder = EntityApi::Test::folder();
my %left;
my $run = 0;

# Statements that are run while all tenants are written to
sub under_load
{
	my ($name, @steps) = @_;

	return subtest $name => sub {
		my $since = $cluster->psql('select clock_timestamp()');
		my @loads = map {
			my $tenant = $_;
			mkdir "$folder/$tenant->{node}";
			[ map { Load->begin(folder => "$folder/$tenant->{node}", name => ($run++) . "-$_", token => $tenant->{user}{accessToken},
				shims => [ @shims[ $_, $_ + 1 ] ]) } 0, 1 ]
		} @tenants;
		sleep 0.5;
		for my $step (@steps)
		{
			my $result = ref $step ? $step->() : $cluster->try_psql("set client_min_messages = error; $step");

			is($result->{err}, '', 'done') or diag $step;
			sleep 0.5;
		}
		EntityApi::Test::wait_until(60, sub { !grep { $_->done < 11 } map { @$_ } @loads });
		my @sums = map { Load::end(@$_) } @loads;
		for my $i (0 .. $#tenants)
		{
			my $id = $tenants[$i]{id};

			cmp_ok($sums[$i]{done}, '>', 20, "the tenant of node $tenants[$i]{node} went on");
			is(join("\n", @{ $sums[$i]{faults} }), '', 'no request failed, nothing was stale');
			is(join("\n", Load->compare($cluster, $id, $sums[$i], $since)), '', 'nothing is lost, twice or without its record');
			note "the longest write took $sums[$i]{longest} s, of $sums[$i]{done}";
			$left{$id} += keys %{ $sums[$i]{stays} };
			is(join(' ', map { $_->http(GET => '/api/v1/items?page[size]=1', { token => $tenants[$i]{user} })->{json}{meta}{pagination}{totalRecords} } @shims),
				join(' ', ($left{$id}) x @shims), 'each node counts the same');
		}
	};
}

sub move
{
	my ($tenant, $to, $mode) = @_;

	return sub {
		my $from = $cluster->node_of($tenant->{id});
		my $result = $cluster->move($tenant->{id}, $to, $mode);

		is($cluster->node_of($tenant->{id}), $to, "moved from node $from to $to, $mode");
		return $result;
	};
}

my ($tenant) = $tenants[1];
under_load('a tenant moves around', map { move($tenant, @$_) } [ 2, 'force_logical' ], [ 0, 'block_writes' ], [ 1, 'force_logical' ]);

under_load('a tenant gets a part of its own', "select isolate_tenant_to_new_shard('app.item', '$tenants[2]{id}', 'CASCADE', 'block_writes')",
	move($tenants[2], 0, 'force_logical'));

# The log's owner is another one than that of the other tables, so there are two
# subscriptions, and Citus does not miss the one that never begins.
subtest 'what is not replicated does not move' => sub {
	my $node = $cluster->node(2);

	$node->set(max_logical_replication_workers => 1);
	$node->stop;
	$node->start;
	like($cluster->move($tenant->{id}, 2, 'force_logical')->{err}, qr/rows would be lost, as they are not replicated to this node: citus_shard_move_subscription_/, 'it is refused');
	is($cluster->node_of($tenant->{id}), 1, 'and nothing has moved');
	$node->set(max_logical_replication_workers => 12);
	$node->stop;
	$node->start;
	$cluster->psql('set client_min_messages = error; call citus_cleanup_orphaned_resources()');
};
under_load('then it goes on', move($tenant, 2, 'force_logical'), move($tenant, 1, 'force_logical'));

# Meanwhile tenants are made, on all nodes in turns, which each node knows.
sub make_tenants
{
	my ($by) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	my $client = HTTP::Tiny->new(timeout => 60);
	my $n = 0;

	open my $made, '>', "$folder/made" or POSIX::_exit(1);
	$made->autoflush(1);
	until (-e "$folder/enough")
	{
		my $name = 'meanwhile' . $n++;
		my $answer = $client->post($shims[ $n % 3 ]->url . '/manage/tenants', { headers => { authorization => "Bearer $by->{accessToken}",
				'content-type' => 'application/json' }, content => qq({"name": "$name", "slug": "$name"}) });

		print $made "$answer->{status}\n";
		sleep 0.02;
	}
	POSIX::_exit(0);
}

my $known = $cluster->psql('select count(*) from entityapi.tenant');
my $new = $cluster->add;
my $making = make_tenants($shims[0]->superadmin);
under_load('a node comes and gets its part', $cluster->joining($new),
	sub { $cluster->psql('set client_min_messages = error; select citus_rebalance_start(); select citus_rebalance_wait()'); return { err => '' } },
	move($tenant, 3, 'force_logical'));
EntityApi::Test::wait_until(60, sub { (() = EntityApi::Test::slurp("$folder/made") =~ /^201$/mg) > 20 });
open my $enough, '>', "$folder/enough" or die "enough: $!\n";
close $enough;
waitpid $making, 0;
my %made;
$made{$_}++ for split /\n/, EntityApi::Test::slurp("$folder/made");
cmp_ok($made{201} // 0, '>', 20, 'tenants were made meanwhile');
is(join(' ', grep { !/^(?:201|503)$/ } sort keys %made), '', 'or refused for the moment');
is(join(' ', $cluster->on_all('select count(*) from entityapi.tenant')), join(' ', ($known + ($made{201} // 0)) x 4), 'and each node knows them all');
my $settings = q{select string_agg(coalesce(setrole::regrole::text, '') || ' ' || c, E'\n' order by setrole::regrole::text, c) from pg_db_role_setting, unnest(setconfig) c};
is($new->psql($settings), $cluster->psql($settings), 'roles have the settings there that they have elsewhere');
push @shims, EntityApi::Test->shim($cluster, node => 3, pool_size => 3);
is(join(' ', map { $shims[3]->http(GET => '/api/v1/items', { token => $_->{user} })->{status} } @tenants), '200 200 200', 'the new node serves all');
is($shims[3]->http(POST => '/api/v1/items', { token => $_->{user}, json => { data => { type => 'items', attributes => { name => 'n', rank => 1 } } } })->{status},
	201, 'and writes') for @tenants;
$left{ $_->{id} }++ for @tenants;

my $gone = pop @shims;
under_load('and goes', sprintf(q{select citus_drain_node('%s', %d)}, $new->host, $new->port),
	sub { $gone->stop; return { err => '' } }, sprintf(q{select citus_remove_node('%s', %d)}, $new->host, $new->port));
$new->stop;
is(join(' ', map { my $shim = $_; map { $shim->http(GET => '/api/v1/items', { token => $_->{user} })->{status} } @tenants } @shims),
	'200 200 200 200 200 200 200 200 200', 'it is not missed');

# So there are more parts than were made at first, as scale.md says.
under_load('a part is divided', sub {
		my $parts = q{select count(*) from pg_dist_shard where logicalrelid = 'entityapi.audit'::regclass};
		my $before = $cluster->psql($parts);
		my $shard = $cluster->shard_of($tenant->{id});
		my $divided = $cluster->try_psql(qq{set client_min_messages = error; select citus_split_shard_by_split_points(s.shardid,
			array[((s.shardminvalue::bigint + s.shardmaxvalue::bigint) / 2)::text], array_fill((select nodeid from pg_dist_node where groupid = 1), '{2}'), 'block_writes')
			from pg_dist_shard s where s.shardid = $shard});

		is($cluster->psql($parts), $before + 1, 'there is one more');
		return $divided;
	});

unlike(EntityApi::Test::slurp($_->log), qr/PANIC|TRAP:|signal 11|signal 6\b|invalid page/, 'and none met worse') for $cluster->nodes;

done_testing;
