# A cluster that is restored to a name of create_restore_point() has nodes that
# agree, as no commit of several nodes is half done at such a moment; and one
# that is not is told by compare_nodes().

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster(nodes => 3);
my @nodes = $cluster->nodes;
my $manifests = "$folder/manifests.json";
my $of = sub {
	my ($kind, $name, %spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => \%spec };
};
my $named = { name => { type => 'string' } };

sub as_service
{
	my ($cmd, %options) = @_;
	my $done = EntityApi::Test::run($cmd, service => 1, %options);

	die "@$cmd: $done->{err}\n" if $done->{status} != 0;
	return;
}

sub apply
{
	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ @_ ]);
	close $out or die "$manifests: $!\n";
	return $cluster->apply($manifests);
}

# Each line: the number of a node, and what differs
sub differences
{
	my $found = $cluster->psql(q{select coalesce(node, ''), object, message from entityapi.compare_nodes()});

	$found =~ s/\Q@{[$nodes[$_]->host]}\E:\d+/$_/g for 0 .. $#nodes;
	return [ split /\n/, $found ];
}

my @documents = ($of->(Roles => 'roles', roles => { Clerk => { assignableBy => 'superAdmin' } }),
	$of->(Entity => 'User', accounts => JSON::PP::true, permissions => { Clerk => ['read'] }),
	$of->(Entity => 'Country', tenantScoped => JSON::PP::false, fields => $named, permissions => { Clerk => [qw(create read update)] }));
apply(@documents);

# archived from the beginning, by base backups that are taken cold
$_->stop for @nodes;
for my $i (0 .. 2)
{
	as_service([ 'mkdir', "$folder/wal$i" ]);
	as_service([ 'sh', '-c', 'cat >>"$1"', '-', $nodes[$i]->data . '/postgresql.conf' ],
		in => "\narchive_mode = on\narchive_command = 'cp %p $folder/wal$i/%f'\nrestore_command = 'cp $folder/wal$i/%f %p'\nrecovery_target_action = promote\n");
	as_service([ 'cp', '-a', '--reflink=auto', $nodes[$i]->data, "$folder/base$i" ]);
}
$cluster->start;

my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 3, sweep_interval_ms => 0) } 0 .. 2;
my $root = $shims[0]->superadmin;
my @ids = map { $shims[0]->must(201, POST => '/api/v1/countries', { token => $root, json => { data => { type => 'countries', attributes => { name => 'v0' } } } })->{data}{id} } 1 .. 4;
my $patch = sub {
	my ($shim, $id, $to) = @_;
	return $shim->http(PATCH => "/api/v1/countries/$id", { token => $root, json => { data => { type => 'countries', id => $id, attributes => { name => $to } } } })->{status};
};
my $point = sub { my ($name) = @_; return $cluster->try_psql("select entityapi.create_restore_point('$name')") };

is_deeply(differences(), [], 'the nodes agree');
is($point->('early')->{err}, '', 'a moment is named');

subtest 'a commit that is half done' => sub {
	# a standby that there is none of: what is prepared there does not end
	$nodes[2]->set(synchronous_standby_names => 'nobody');
	my $pid = fork // die "fork: $!\n";
	if (!$pid) { $patch->($shims[1], $ids[0], 'half'); POSIX::_exit(0) }
	ok(EntityApi::Test::wait_until(60, sub { $nodes[2]->psql(q{select count(*) from pg_stat_activity where wait_event = 'SyncRep'}) > 0 }), 'a node prepares for another');
	like($point->('half')->{err}, qr/a commit of several nodes does not end/, 'no moment is named meanwhile');
	$nodes[2]->set(synchronous_standby_names => undef);
	waitpid $pid, 0;
	is($point->('whole')->{err}, '', 'and one afterwards');
};

subtest 'while many write' => sub {
	my @pids;

	for my $i (0 .. 3)
	{
		my $pid = fork // die "fork: $!\n";
		if (!$pid)
		{
			my $n = 0;
			$patch->($shims[ 1 + $i % 2 ], $ids[$i], 'v' . ++$n) until -e "$folder/enough";
			POSIX::_exit($n > 3 ? 0 : 1);
		}
		push @pids, $pid;
	}
	for my $i (1 .. 5)
	{
		is($point->("busy$i")->{err}, '', "a moment is named, $i");
		is_deeply(differences(), [], 'and the nodes agree');
	}
	$shims[0]->user($shims[0]->tenant('late')->{id}, 'later', ['Clerk']);
	is($point->('late')->{err}, '', 'one is named after a user came');
	open my $enough, '>', "$folder/enough" or die "enough: $!\n";
	close $enough;
	is(join(' ', map { waitpid $_, 0; $? } @pids), '0 0 0 0', 'all have written');
	is_deeply(differences(), [], 'the nodes agree at the end');
};
apply(@documents, $of->(Entity => 'City', fields => $named, permissions => { '*' => ['read'] }));
is($point->('last')->{err}, '', 'the last one is named');
$_->psql('select pg_switch_wal()') for @nodes;
EntityApi::Test::wait_until(60, sub { !grep { $_->psql(q{select count(*) from pg_ls_archive_statusdir() where name ~ 'ready$'}) > 0 } @nodes });
$_->stop for @shims, @nodes;

# Each of the nodes to a name of its own, or what is there stays.
sub restore
{
	my (@names) = @_;

	$_->stop for @nodes;
	for my $i (grep { defined $names[$_] } 0 .. 2)
	{
		my $data = $nodes[$i]->data;

		as_service([ 'rm', '-rf', $data ]);
		as_service([ 'cp', '-a', '--reflink=auto', "$folder/base$i", $data ]);
		as_service([ 'sh', '-c', 'cat >>"$1/postgresql.conf"; touch "$1/recovery.signal"', '-', $data ],
			in => "archive_mode = off\nrecovery_target_name = '$names[$i]'\n");
	}
	$cluster->start;
	EntityApi::Test::wait_until(60, sub { !grep { $_->psql('select pg_is_in_recovery()') ne 'f' } @nodes });
	return $cluster->recovered;
}

for my $name (qw(busy3 last))
{
	ok(restore(($name) x 3), "all are restored to $name");
	is_deeply(differences(), [], 'and agree');
	is(join(' ', $cluster->on_all(q{select md5(string_agg(id || name, ',' order by id)) from app.country})), join(' ', ($nodes[0]->psql(
		q{select md5(string_agg(id || name, ',' order by id)) from app.country})) x 3), 'in the rows, too');
}
restore(undef, undef, 'late');
my $differ = differences();
my $told = join "\n", @$differ;
like($told, qr/^2\|app\.city\|there is no such table$/m, 'one is of before the others: it lacks a table');
like($told, qr/^2\|entityapi\.revision\|rows are not those of the coordinator: \d+, and there \d+$/m, 'and rows of the declarations');
unlike($told, qr/^[01]\|/m, 'the others are right') or diag $told;
restore('early', 'early', 'early');
is_deeply(differences(), [], 'all of a moment, they agree');
restore(undef, 'busy5', undef);
like(join("\n", @{ differences() }), qr/^1\|app\.country\|rows are not those of the coordinator: 4, and there 4$/m, 'rows of a shared entity differ');
$nodes[2]->stop;
like(join("\n", @{ differences() }), qr/^2\|\|does not answer: /m, 'a node is away');

done_testing;
