# A write that was done is never told to be sent again: where nobody knows
# whether it was committed, the answer is OUTCOME_UNKNOWN, without Retry-After.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use HTTP::Tiny;
use JSON::PP ();
use POSIX ();
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;

# The query of a request says what happens to it: "stay" waits for a standby that
# never comes, when it is committed here; "end" ends its session at the end of
# its transaction; "hold" is held before it writes.  All write their target.
$cluster->psql(<<~'SQL');
	create table written (value text not null);
	create function at_the_end() returns trigger language plpgsql security definer as $$
	begin
		perform pg_terminate_backend(pg_backend_pid());
		perform pg_sleep(60);
		return null;
	end $$;
	create constraint trigger at_the_end after insert on written deferrable initially deferred
		for each row when (new.value like '%?end') execute function at_the_end();
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	declare
		what text := substring(target from '\?([a-z]+)');
	begin
		if what is not null then
			perform set_config('synchronous_commit', case what when 'stay' then 'on' else 'local' end, true);
			if what = 'hold' then
				perform pg_sleep(60);
			end if;
			insert into written values (target);
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, '/x', in_headers, in_body, remote) h;
	end $$;
	alter system set synchronous_commit = 'local';
	alter system set synchronous_standby_names = 'nobody';
	SQL
$cluster->restart;

my $client = HTTP::Tiny->new(timeout => 60);

# A request in a process of its own; returns what reads its answer.
sub begin
{
	my ($shim, $method, $target) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		my $answer = $client->request($method, $shim->url . $target,
			$method =~ /^(?:GET|OPTIONS)$/ ? {} : { headers => { 'content-type' => 'application/vnd.api+json' }, content => '{}' });

		syswrite STDOUT, join ' ', $answer->{status}, $answer->{content} =~ /"code":"(\w+)"/ ? $1 : 'none',
		  $answer->{headers}{'retry-after'} // 'never';
		POSIX::_exit(0);
	}
	return sub { local $/; return readline $child };
}

# Waits until a session waits so, and ends it.
sub terminate
{
	my ($event) = @_;

	EntityApi::Test::wait_until(60, sub {
			$cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and wait_event = '$event'") >= 1 })
	  or die "nobody waits so\n";
	$cluster->psql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'entityapi-shim' and wait_event = '$event'");
	return;
}

sub rows
{
	my ($target) = @_;
	return $cluster->psql("select count(*) from written where value = '$target'");
}

my ($unknown, $again) = ('503 OUTCOME_UNKNOWN never', '503 UNAVAILABLE 1');
my $near = $cluster->conninfo('entityapi_shim');
my %shims = (
	'side by side' => EntityApi::Test->shim($cluster, pool_size => 2, metrics => 'true'),
	'with replicas' => EntityApi::Test->shim($cluster, pool_size => 2, replicas => $near),
	'with nodes' => EntityApi::Test->shim($cluster, pool_size => 2, nodes => $near));

for my $way (sort keys %shims)
{
	my $shim = $shims{$way};

	for my $base ('/api/v1/x', '/auth/login')
	{
		for my $method ($base eq '/api/v1/x' ? qw(POST PATCH DELETE PUT) : 'POST')
		{
			my $name = "$way: $method $base";
			my $target = "$base?stay=" . int rand 1e9;
			my $answer = begin($shim, $method, $target);

			terminate('SyncRep');
			is($answer->(), $unknown, "$name: lost after it was committed");
			is(rows($target), 1, 'and it is there, once');
		}
		my $target = "$base?hold=" . int rand 1e9;
		my $answer = begin($shim, POST => $target);
		terminate('PgSleep');
		is($answer->(), $again, "$way: $base: ended before");
		is(rows($target), 0, 'and nothing is there');

		$target = "$base?end";
		is(begin($shim, POST => $target)->(), $unknown, "$way: $base: ended at the end");
	}
	is(begin($shim, POST => '/api/v1/x?fine')->(), '200 none never', 'it goes on');
}

subtest 'a read can be sent again' => sub {
	for my $method (qw(GET OPTIONS))
	{
		my $answer = begin($shims{'side by side'}, $method => '/api/v1/x?stay');
		terminate('SyncRep');
		is($answer->(), $again, $method);
	}
};

subtest 'given up' => sub {
	my $shim = EntityApi::Test->shim($cluster, pool_size => 4, statement_timeout_ms => 200);

	# a session that waits so has left its own timeout behind
	my @asked = map { [ $_, begin($shim, POST => $_) ] } '/api/v1/x?stay=up', '/auth/login?stay=up';
	for my $asked (@asked)
	{
		is($asked->[1]->(), $unknown, "POST $asked->[0]");
		ok(EntityApi::Test::wait_until(60, sub { rows($asked->[0]) == 1 }), 'was committed');
	}
	is(begin($shim, POST => '/api/v1/x?hold')->(), $again, 'what the server has ended in time can be sent again');
	is($shim->stop, 0, 'ends with 0');
};

my $metrics = sub { $shims{'side by side'}->http(GET => '/actuator/prometheus')->{body} };
ok(EntityApi::Test::wait_until(30, sub { $metrics->() =~ /^entityapi_http_refused_total\{kind="outcome_unknown"\} [1-9]/m }), 'counted');
is($shims{$_}->stop, 0, "$_: ends with 0") for sort keys %shims;

done_testing;
