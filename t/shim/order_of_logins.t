# Of logins that wait he is next whose address and name were let in least of
# late, and among equals who came first: not who came when there were few.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use POSIX ();
use Test::More;

# One place for logins, and who has it keeps it until he is let go.
my $cluster = EntityApi::Test::StandIn->cluster;
$cluster->psql(<<~'SQL');
	create table came (n serial, username text);
	create sequence gone;
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	declare
		turn int;
	begin
		if target = '/auth/login' then
			insert into came (username) values (convert_from(in_body, 'UTF8')::jsonb->>'username') returning n into turn;
			while (select last_value from gone) < turn loop
				perform pg_sleep(0.01);
			end loop;
		end if;
		select h.* into status, headers, body from entityapi.stand_in(method, target, in_headers, in_body, remote) h;
	end $$;
	SQL
my $shim = EntityApi::Test->shim($cluster, pool_size => 3, login_pool_share => 1, threads => 32, pool_queue => 10,
	trusted_proxies => '127.0.0.1', metrics => 'true');
my $gone = 0;
my $under_way = 0;

# All are there that should be
sub wait_for
{
	my ($count) = @_;

	EntityApi::Test::wait_until(60, sub {
			my ($n) = $shim->http(GET => '/actuator/prometheus')->{body} =~ /^entityapi_http_requests_in_flight (\d+)$/m;
			return ($n // 0) == $count + 1;
		}) or die "there are not $count logins\n";
	return;
}

# A login in a process of its own; returns what its status is read from
sub login
{
	my ($username, $address) = @_;
	my $pid = open(my $child, '-|') // die "fork: $!\n";

	if ($pid == 0)
	{
		my $answer = HTTP::Tiny->new(timeout => 120)->post($shim->url . '/auth/login', {
				content => qq({"username":"$username"}), headers => { 'x-forwarded-for' => $address } });
		syswrite STDOUT, $answer->{status};
		POSIX::_exit(0);
	}
	return $child;
}

# Several, each begun when the one before it is there
sub begun { return map { my $child = login(@$_); wait_for(++$under_way); $child } @_ }

sub let_go
{
	my ($n) = @_;

	$gone += $n;
	$cluster->psql("select setval('gone', $gone)");
	wait_for($under_way -= $n);
	return;
}

sub ended { return map { local $/; scalar readline $_ } @_ }

# In the order in which they were in the place, since the last look
my $seen = 0;

sub came
{
	my @names = split /\n/, $cluster->psql("select username from came where n > $seen order by n");

	$seen += @names;
	return join ' ', @names;
}

$cluster->psql("select setval('gone', 1); insert into came (username) values ('nobody')");
$seen = $gone = 1;

subtest 'an office' => sub {
	my @logins = begun(map { [ "one$_", '192.0.2.1' ] } 1 .. 6);

	let_go(3);
	push @logins, begun(map { [ "late$_", '192.0.2.1' ] } 1 .. 2);
	let_go(5);
	is_deeply([ ended(@logins) ], [ (200) x 8 ], 'all come in');
	is(came(), 'one1 one2 one3 one4 one5 one6 late1 late2', 'in the order of their arrival');
};

subtest 'who comes again and again' => sub {
	for (1 .. 10)
	{
		my @login = begun([ 'eve', '192.0.2.2' ]);
		let_go(1);
		ended(@login);
	}
	came();

	# nobody was there when these came
	my @logins = begun((map { [ 'eve', '192.0.2.2' ] } 1 .. 3), [ 'ann', '192.0.2.2' ], [ 'eve', '192.0.2.3' ], [ 'bob', '192.0.2.4' ]);
	let_go(6);
	is_deeply([ ended(@logins) ], [ (200) x 6 ], 'all come in');
	is(came(), 'eve bob ann eve eve eve', 'comes after others');
};

subtest 'who has been here once' => sub {
	my @login = begun([ 'gus', '192.0.2.8' ]);

	let_go(1);
	ended(@login);
	came();
	my @logins = begun([ 'new1', '192.0.2.11' ], [ 'gus', '192.0.2.8' ], map { [ "new$_", "192.0.2.1$_" ] } 2 .. 4);
	let_go(5);
	is_deeply([ ended(@logins) ], [ (200) x 5 ], 'all come in');
	is(came(), 'new1 gus new2 new3 new4', 'is not behind all who never were');
};

subtest 'too many' => sub {
	my @logins = begun((map { [ 'eve', '192.0.2.2' ] } 1 .. 4), [ 'cat', '192.0.2.5' ], [ 'dan', '192.0.2.6' ]);
	my $more = login('fay', '192.0.2.7');

	is_deeply([ ended($logins[3]) ], [503], 'the last of who has had most goes');
	let_go(6);
	is_deeply([ ended(@logins[ 0 .. 2, 4, 5 ], $more) ], [ (200) x 6 ], 'the others come in');
	is(came(), 'eve cat dan fay eve eve', 'those who have had nothing first');
};

done_testing;
