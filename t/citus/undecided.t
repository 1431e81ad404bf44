# A change of what lets somebody in is committed on all nodes together, each
# having it prepared first.  Where a node does not know yet whether it is, since
# who commits it has lost the connection or is away, nobody is let in by what
# was before: on another node it may have been told of as done.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1, sweep_interval_ms => 0) } 0 .. 2;
my ($tenant, $elsewhere) = sort { $a->{node} <=> $b->{node} } grep { $_->{node} > 0 } $cluster->place($shims[0], 'Editor');
my $node = $cluster->node(1);
my $user = $tenant->{user};
my $folder = EntityApi::Test::folder();

# Asked often enough for the session of the server to keep who it is
sub settled { return join ' ', map { status(1) } 1 .. 4 }
sub status { my ($i) = @_; return $shims[$i]->http(GET => '/api/v1/items', { token => $user })->{status} }

# As it would be left by another node
sub prepared
{
	my ($name, $sql) = @_;
	my $part = $node->psql("select 'entityapi.$name' || '_' || shardid from pg_dist_shard where logicalrelid = 'entityapi.$name'::regclass");

	$node->psql("set citus.enable_manual_changes_to_shards = on; begin; " . $sql =~ s/PART/$part/r . "; prepare transaction 'left'");
	return;
}

my %change = (
	session => "update PART set revoked_at = now() where account_id = '$user->{id}'",
	account => "update PART set status = 'DISABLED' where id = '$user->{id}'",
	tenant => "update PART set status = 'SUSPENDED' where id = '$tenant->{id}'",
	signing_key => q{update PART set state = 'REVOKED'},
	service => q{update PART set definition = definition});

is(settled(), '200 200 200 200', 'let in');
for my $name (sort keys %change)
{
	subtest "a change of the $name" => sub {
		prepared($name, $change{$name});
		is(status(1), 503, 'lets nobody in by what was');
		is(status(0), 200, 'where it is prepared');
		$node->psql(q{rollback prepared 'left'});
		is(settled(), '200 200 200 200', 'until it has come to nothing');
	};
}
# By a key, and as a reader of plain SQL
subtest 'of a key, and of a reader' => sub {
	my $made = $shims[0]->must(201, POST => '/auth/me/api-keys', { token => $user, json => { name => 'k', domainRoles => ['Editor'], expiresAt => POSIX::strftime('%Y-%m-%dT%H:%M:%SZ', gmtime(time + 86400)) } });
	my $by_key = sub { my ($shim) = @_; return $shim->http(GET => '/api/v1/items', { headers => { 'x-api-key' => $made->{key} } })->{status} };
	my $read = sub { my ($first) = @_; return $node->try_psql(($first // '') . 'select count(*) from app.item', user => 'bi') };

	$cluster->psql(qq{set client_min_messages = error; create role bi login in role entityapi_reader; select entityapi.map_role('bi', (select username from entityapi.account where id = '$user->{id}'))});
	is($by_key->($shims[1]), 200, 'a key is let in');
	is($read->()->{out}, 0, 'as a reader is');
	for my $name ('personal_api_key', 'account')
	{
		prepared($name, $change{$name} // q{update PART set status = 'REVOKED'});
		is($by_key->($shims[1]), 503, "a change of the $name lets nobody in");
		like($read->()->{err}, qr/does not know yet/, 'nor readers') if $name eq 'account';
		$node->psql(q{rollback prepared 'left'});
		is($by_key->($shims[1]), 200, 'until it has come to nothing');
	}
	is($read->()->{err}, '', 'for readers as well');
};
subtest 'one that is committed' => sub {
	prepared('session', $change{session});
	is(status(1), 503, 'lets nobody in by what was');
	$node->psql(q{commit prepared 'left'});
	is(status(1), 401, 'and counts');
};
# A session of that node that does not go on by itself
sub session
{
	my ($sql) = @_;

	open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/goes", '-d', $node->conninfo or die "psql: $!\n";
	$psql->autoflush(1);
	print $psql "$sql\n";
	EntityApi::Test::wait_until(20, sub { -s "$folder/goes" });
	unlink "$folder/goes";
	return $psql;
}

subtest 'one that goes on' => sub {
	my $other = $shims[0]->user($tenant->{id}, 'other', ['Editor']);
	my $psql = session("set citus.enable_manual_changes_to_shards = on; begin; update "
	  . $node->psql(q{select 'entityapi.account_' || shardid from pg_dist_shard where logicalrelid = 'entityapi.account'::regclass}) . " set status = status where id = '$other->{id}' returning 1;");

	is($shims[1]->http(GET => '/api/v1/items', { token => $other })->{status}, 200, 'keeps nobody waiting');
	print $psql "rollback;\n";
	close $psql;
};

# The table and what is declared of it are changed by one transaction, which may
# be two on a node: the one is over, the other not yet.
subtest 'a table that has changed before its declaration' => sub {
	my $psql = session('set citus.enable_ddl_propagation = off; begin; alter table app.item alter rank type text; select 1;');
	my $pid = fork // die "fork: $!\n";

	if ($pid == 0)
	{
		my $answer = $shims[1]->http(GET => '/api/v1/items?filter=rank=gt=1', { token => $elsewhere->{user} });

		POSIX::_exit($answer->{status} == 503 ? 0 : 1);
	}
	ok(EntityApi::Test::wait_until(20, sub { $node->psql(q{select count(*) from pg_locks where relation = 'app.item'::regclass and not granted}) > 0 }), 'a request waits for it');
	prepared('service', $change{service});
	print $psql "commit;\n";
	close $psql;
	waitpid $pid, 0;
	is($?, 0, 'and is refused for now');
	$node->psql(q{set citus.enable_ddl_propagation = off; alter table app.item alter rank type integer using rank::integer});
	$node->psql(q{rollback prepared 'left'});
	is($shims[1]->http(GET => '/api/v1/items?filter=rank=gt=1', { token => $elsewhere->{user} })->{status}, 200, 'until both are over');
};

done_testing;
