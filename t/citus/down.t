# A node is away: its tenants get 503, on whatever node they ask, and the others
# all that they ask for; readiness of the others names it, and they go on.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 2) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');

# One that knows all nodes
my $all = EntityApi::Test->shim($cluster, node => 0, pool_size => 2, nodes => join(';', map { $cluster->node($_)->conninfo('entityapi_shim') } 1, 2));
my %number = map { reverse split /\|/ } split /\n/, $cluster->psql('select nodeid, nodename from pg_dist_node');
my %item = (type => 'items', attributes => { name => 'x', rank => 1 });

sub ask
{
	my ($shim, $tenant, $method, $body) = @_;
	return $shim->http($method => '/api/v1/items', { token => $tenant->{user}, $body ? (json => { data => $body }) : () });
}

my %key = map {
	$_->{node} => $shims[0]->must(201, POST => '/auth/me/api-keys',
		{ token => $_->{user}, json => { name => 'k', domainRoles => ['Editor'], expiresAt => '2099-01-01T00:00:00Z' } })->{key}
} @tenants;

# Of these requests each would be noted as the last use
sub by_key { return join ' ', map { my $shim = $_; map { $shim->http(GET => '/api/v1/items', { headers => { 'x-api-key' => $key{ $_->{node} } } })->{status} } @tenants } @_ }

sub statuses { my ($method, $body) = @_; return join ' ', map { my $shim = $_; map { ask($shim, $_, $method, $body)->{status} } @tenants } @_[ 2 .. $#_ ] }

is(statuses(POST => \%item, @shims), '201 201 201 201 201 201 201 201 201', 'all are served by all');

my $names_none = qr/"event":"nodes".*\\"nodes\\" names none/;
ok($_->said($names_none), 'a shim that knows one node says so') for @shims;
unlike(EntityApi::Test::slurp($all->{err}), $names_none, 'and one that knows all does not');

my $superadmin = $shims[0]->superadmin;
my $victim = $shims[0]->user($tenants[0]{id}, 'victim', []);

# What is written to all nodes: who comes, who stays, who goes
sub who_is_who
{
	my ($shim) = @_;
	my $tenant = "/manage/tenants/$tenants[0]{id}";
	my $short = { json => { username => 'victim', password => $victim->{password} } };

	return join ' ', map { $_->{status} } $shim->http(POST => '/auth/login', $short),
	  $shim->http(POST => '/auth/login', { json => { %{ $short->{json} }, password => 'wrong wrong wrong' } }),
	  $shim->http(POST => '/auth/refresh', { json => { refreshToken => $victim->{refreshToken} } }),
	  $shim->http(POST => '/auth/logout', { json => { refreshToken => $victim->{refreshToken} } }),
	  $shim->http(PATCH => "$tenant/users/$victim->{id}", { token => $superadmin, json => { status => 'DISABLED' } }),
	  $shim->http(POST => "$tenant/users", { token => $superadmin, json => { username => 'another', roles => [] } });
}

for my $away (1, 2, 0)
{
	subtest "node $away is away" => sub {
		my @others = @shims[ grep { $_ != $away } 0 .. 2 ];
		my $expected = sub { my ($good) = @_; join ' ', (map { $_->{node} == $away ? 503 : $good } @tenants) x @others };

		$cluster->psql('update entityapi.personal_api_key set last_used_at = null');
		$cluster->node($away)->stop('immediate');

		# the first may find a connection that broke
		statuses(GET => undef, @others) for 1, 2;
		my $started = time;
		is(statuses(GET => undef, @others), $expected->(200), 'its tenants are refused, the others read');
		is(statuses(POST => \%item, @others), $expected->(201), 'and write');
		is(by_key(@others), $expected->(200), 'by keys, too') for 1, 2;
		# Citus would try for half a minute each time
		cmp_ok(time - $started, '<', 60, 'soon');
		is(who_is_who($others[0]), '503 503 503 503 503 503', 'nobody logs in or out, comes, or is disabled');
		my ($mine) = grep { $_->{node} == $away } @tenants;
		my $answer = ask($others[0], $mine, 'GET');
		is($answer->{json}{errors}[0]{code}, 'UNAVAILABLE', 'it is said that it is for now');
		unlike($answer->{body}, qr/\Q@{[$cluster->node($away)->host]}\E|shard|Citus|connection/i, 'and not which node');
		is(statuses(POST => \%item, $all), join(' ', map { $_->{node} == $away ? 503 : 201 } @tenants), 'who knows all nodes asks those that are there');
		my %down = (nodes => { status => 'DOWN', down => [ $number{ $cluster->node($away)->host } + 0 ] });
		my ($ready, $health);
		EntityApi::Test::wait_until(30, sub {
				($ready, $health) = map { $all->http(GET => "/actuator/health$_") } '/readiness', '';
				($ready->{json}{components}{nodes}{status} // $health->{json}{components}{nodes}{status} // '') eq 'DOWN' });
		is($ready->{status}, 200, 'and is ready, as most tenants are served') or diag $ready->{body};
		is_deeply($health->{json}{components}{nodes}, $down{nodes}, 'but says which node is away') or diag $health->{body};
		$cluster->node($away)->start;
		ok(EntityApi::Test::wait_until(60, sub { statuses(GET => undef, @shims) !~ /503/ }), 'back, it is served again');
		is(statuses(POST => \%item, @shims), '201 201 201 201 201 201 201 201 201', 'and written');
		ok(EntityApi::Test::wait_until(30, sub { ($all->http(GET => '/actuator/health')->{json}{components}{nodes}{status} // '') ne 'DOWN' }), 'and not called away');
	};
}

# A node ends while it waits for another: what it was asked for is refused for
# now, be it under way or about to be committed.
my $self = $cluster->node(0);
my $other = $cluster->node(1);
my ($there) = grep { $_->{node} == 1 } @tenants;
my $root = $shims[0]->superadmin;
my $id = $shims[1]->must(201, POST => '/api/v1/items', { token => $there->{user}, json => { data => \%item } })->{data}{id};

sub children_of
{
	my ($pid) = @_;
	return map { (eval { EntityApi::Test::slurp($_) } // '') =~ /^(\d+) .*\) \S $pid /s ? $1 : () } glob '/proc/[0-9]*/stat';
}

# Ask, and kill the postmaster of the node when the other one lets it wait.
sub status_of_lost
{
	my ($waits, @request) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		syswrite STDOUT, $shims[0]->http(@request)->{status};
		POSIX::_exit(0);
	}
	my $waiting = EntityApi::Test::wait_until(60, sub { $other->psql("select count(*) from pg_stat_activity where $waits") > 0 });
	my ($postmaster) = EntityApi::Test::slurp($self->data . '/postmaster.pid') =~ /^(\d+)/;
	my @left = children_of($postmaster);

	kill KILL => $postmaster;
	my $status = readline $child;
	EntityApi::Test::wait_until(60, sub { !grep { kill 0, $_ } @left });
	return $waiting ? $status : "$status, and did not wait";
}

subtest 'a node ends while it waits for a row of another' => sub {
	open my $holder, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', '/dev/null', '-d', $other->conninfo or die "psql: $!\n";
	$holder->autoflush(1);
	print $holder "begin; select 1 from app.item where tenant_id = '$there->{id}' and id = '$id' for update;\n";
	EntityApi::Test::wait_until(60, sub { $other->psql("select count(*) from pg_stat_activity where state = 'idle in transaction'") > 0 });
	is(status_of_lost(q{wait_event_type = 'Lock' and usename = 'entityapi_owner'}, PATCH => "/api/v1/items/$id",
			{ token => $there->{user}, json => { data => { type => 'items', id => $id, attributes => { name => 'y' } } } }), 503, 'refused for now');
	print $holder "rollback;\n";
	close $holder;
	$self->start;
	ok(EntityApi::Test::wait_until(60, sub { statuses(GET => undef, @shims) !~ /503/ }), 'back, it serves again');
};

subtest 'a node ends while it waits for the commit of another' => sub {
	# a standby that there is none of
	$other->set(synchronous_standby_names => 'nobody');
	is(status_of_lost(q{wait_event = 'SyncRep' and usename = 'entityapi_owner'}, POST => '/manage/tenants', { token => $root, json => { name => 'late', slug => 'late' } }), 503, 'refused for now');
	$other->set(synchronous_standby_names => undef);
	$self->start;
	ok(EntityApi::Test::wait_until(60, sub { statuses(GET => undef, @shims) !~ /503/ }), 'back, it serves again');
	ok($cluster->recovered, 'and nothing is left prepared');
};

done_testing;
