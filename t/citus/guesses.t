# Guesses at passwords are counted for the cluster, wherever they are made and
# at whatever time; how many passwords are hashed at once, for each node, whose
# processors they take.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

# No delay passes meanwhile; and many hashes at once, so that guesses meet.
my $cluster = EntityApi::Test->cluster(nodes => 3,
	conf => [ 'entityapi.login_delay = 900', 'entityapi.login_max_delay = 900', 'entityapi.max_hashes = 16' ]);
my $folder = EntityApi::Test::folder();

$cluster->settle;
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 12, login_pool_share => 12, statement_timeout_ms => 300_000) } 0 .. 2;
my $tenant = $shims[0]->tenant('acme');
my ($ann, $bob) = map { $shims[0]->user($tenant->{id}, $_, []) } qw(ann bob);

sub try_login
{
	my ($shim, $username, $password) = @_;
	return $shim->http(POST => '/auth/login', { json => { username => $username, password => $password } })->{status};
}

sub forget { $cluster->psql("delete from entityapi.$_") for qw(login_throttle address_failure login_origin); return }

# In a process of its own; returns what reads the answer
sub later
{
	my ($work) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		syswrite STDOUT, $work->();
		POSIX::_exit(0);
	}
	return sub { local $/; return readline $child };
}

subtest 'of a username, on all nodes at the same time' => sub {
	for my $username ('ann', 'nobody')
	{
		forget();
		my @answers = map {
			my $shim = $_;
			later(sub {
					join ' ', map { m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }
					  $shim->at_once(12, '/auth/login', sub { JSON::PP::encode_json({ username => $username, password => "guess number $_[0]" }) });
				})
		} @shims;
		my %statuses = map { $_ => 0 } 401, 429;
		$statuses{$_}++ for map { split / /, $_->() } @answers;

		note join ', ', map { "$_: $statuses{$_}" } sort keys %statuses;
		cmp_ok($statuses{401}, '<=', 5, "of $username: five are evaluated at most");
		cmp_ok($statuses{401}, '>=', 1, 'and some are');
		is($statuses{200} // 0, 0, 'none comes in');
	}
};

subtest 'of an address, in turns' => sub {
	forget();
	$cluster->set('entityapi.login_address_failures', 12);
	is(try_login($shims[ $_ % 3 ], "name-$_", 'wrong'), 401, 'free') for 1 .. 12;
	is(join(' ', map { try_login($_, 'bob', $bob->{password}) } @shims), '429 429 429', 'refused by each');
	$cluster->set('entityapi.login_address_failures', undef);
	forget();
	is(try_login($shims[2], 'bob', $bob->{password}), 200, 'that was why');
};

# Who logs in keeps his place until the transaction ends, and so while his
# account is held.
subtest 'hashes, for each node' => sub {
	my $hashes = sub { my ($i) = @_; return $cluster->node($i)->psql("select count(*) from pg_locks where locktype = 'advisory' and objsubid = 59907 - 65536 and granted") };
	my $login = sub { my ($i, $user) = @_; return later(sub { try_login($shims[$i], $user->{username}, $user->{password}) }) };

	$cluster->set('entityapi.max_hashes', 1);
	$cluster->set('entityapi.hash_wait', 0);
	open my $holder, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/held", '-d', $cluster->conninfo or die "psql: $!\n";
	$holder->autoflush(1);
	print $holder "begin; select 1 from entityapi.account where tenant_id = '$tenant->{id}' for update; select 'held';\n";
	EntityApi::Test::wait_until(20, sub { -e "$folder/held" && EntityApi::Test::slurp("$folder/held") =~ /held/ }) or die "nothing is held\n";

	my @under_way = ($login->(0, $ann));
	ok(EntityApi::Test::wait_until(60, sub { $hashes->(0) == 1 }), 'the one hash of a node is taken');
	is(try_login($shims[0], 'bob', $bob->{password}), 503, 'it has no other');
	push @under_way, $login->(1, $bob);
	ok(EntityApi::Test::wait_until(60, sub { $hashes->(1) == 1 }), 'another node has its own');
	is(try_login($shims[1], 'ann', $ann->{password}), 503, 'and that is all it has');
	is(join(' ', map { $hashes->($_) } 0 .. 2), '1 1 0', 'one each');
	print $holder "commit;\n";
	close $holder;
	is(join(' ', map { $_->() } @under_way), '200 200', 'they come in at last');
};

is($_->stop, 0, 'ends with 0') for @shims;
done_testing;
