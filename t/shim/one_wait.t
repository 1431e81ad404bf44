# A request waits for a connection once, however many servers are asked.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::Client qw(connected answer);
use EntityApi::Test::StandIn;
use Test::More;

use constant WAIT_MS => 2000;

my $cluster = EntityApi::Test::StandIn->cluster;

# what is asked of the standby it answers by itself
$cluster->psql(<<~'SQL');
	alter function entityapi.handle(bytea) rename to stand_in;
	create function entityapi.handle(message bytea) returns bytea
	language plpgsql security definer set search_path = public as $$
	begin
		if not pg_is_in_recovery() then
			return entityapi.stand_in(message);
		end if;
		while position('hold'::bytea in message) > 0 and (select last_value from held) > 1 loop
			perform pg_sleep(0.02);
		end loop;
		return convert_to(E'200\n\nContent-Type: text/plain\r\n\r\nfrom the standby', 'UTF8');
	end $$;
	SQL
my $standby = EntityApi::Test->standby($cluster, 'near');
$standby->{database} = 'postgres';
my $shim = EntityApi::Test->shim($cluster, pool_size => 1, pool_writes => 0, reloaded => { pool_wait_ms => 60_000 },
	replicas => $standby->conninfo('entityapi_shim'), replica_staleness => 'allowed', replica_max_lag_ms => 50_000,
	read_your_writes_ms => 60_000, keep_alive => 'yes');

ok(EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/api/v1/x')->{body} eq 'from the standby' }), 'the standby answers');

my @holders = map { connected($shim) } 1 .. 2;
$cluster->hold;
EntityApi::Test::wait_until(60, sub { $standby->psql('select last_value from held') > 1 }) or die "the standby holds nothing\n";
print { $holders[0] } "GET /api/v1/hold HTTP/1.1\r\nHost: a\r\n\r\n";
print { $holders[1] } "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
$cluster->at_work(1);
EntityApi::Test::wait_until(60, sub {
		$standby->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and state = 'active'") })
  or die "the standby is not at work\n";
$shim->reload(pool_wait_ms => WAIT_MS);

my $n = 0;
my ($status, $waited);
my $once = EntityApi::Test::wait_until(60, sub {
		my $id = 'one-' . ++$n;

		$status = $shim->http(GET => '/api/v1/x', { headers => { 'X-Request-Id' => $id } })->{status};
		($waited) = $shim->logged(qr/"$id"/) =~ /"totalMicros":(\d+)/;
		return $waited < 1.7 * 1000 * WAIT_MS;
	});
is($status, 503, 'who waits for both is refused');
cmp_ok($waited, '>=', 1000 * WAIT_MS, 'after what one may wait');
ok($once, "and no longer: $waited us");
$shim->reload(pool_wait_ms => 60_000);
$cluster->release;
is(answer($_)->{status}, 200, 'those before are answered') for @holders;
is($shim->stop, 0, 'ends with 0');
done_testing;
