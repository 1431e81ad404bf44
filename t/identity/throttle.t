# How often passwords may be tried, and how many be hashed at once.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

# Many hashes at once, so that parallel guesses meet.
my $cluster = EntityApi::Test->cluster(conf => ['entityapi.max_hashes = 16']);
my $shim = EntityApi::Test->shim($cluster, pool_size => 32, login_pool_share => 32);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', []);
my $bob = $shim->user($tenant->{id}, 'bob', []);
my $start = '2090-01-01 00:00:00Z';

sub try_login
{
	my ($username, $password, %headers) = @_;
	return $shim->http(POST => '/auth/login',
		{ headers => \%headers, json => { username => $username, password => $password } });
}

sub said
{
	my ($answer) = @_;
	return join ' ', $answer->{status}, $answer->{headers}{'retry-after'} // ();
}

# Seconds after the start
sub clock
{
	my ($seconds) = @_;
	$cluster->set('entityapi.clock', $cluster->psql("select timestamptz '$start' + interval '$seconds s'"));
	return;
}

sub forget { $cluster->psql("delete from entityapi.$_") for qw(login_throttle address_failure login_origin); return }

sub statuses
{
	my %statuses = map { $_ => 0 } 200, 401, 429, 503;

	$statuses{ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++ for @_;
	return \%statuses;
}

subtest 'parallel guesses' => sub {
	for my $username ('ann', 'nobody')
	{
		forget();

		# no delay passes meanwhile
		clock(0);
		my $statuses = statuses($shim->at_once(100, '/auth/login', sub {
			my $password = $_[0] == 99 ? $ann->{password} : "guess number $_[0]";
			return JSON::PP::encode_json({ username => $username, password => $password });
		}));

		note explain $statuses;
		cmp_ok($statuses->{401} + $statuses->{200}, '<=', 5, "of $username: five are evaluated at most");
		cmp_ok($statuses->{401}, '>=', 1, 'and some are');
		is($statuses->{401} + $statuses->{200} + $statuses->{429} + $statuses->{503}, 100, 'nothing breaks')
		  or diag explain $statuses;
	}
};

subtest 'delays of a username' => sub {
	for my $username ('ann', 'nobody')
	{
		forget();
		clock(0);
		is(said(try_login($username, 'wrong')), '401', 'free') for 1 .. 5;
		is(said(try_login($username, 'wrong')), '429 10', 'not any more');
		is(said(try_login(uc $username, $ann->{password})), '429 10', 'whatever the password is');
		clock(9);
		is(said(try_login($username, 'wrong')), '429 1', 'trying does not make it longer');

		my $at = 0;
		for my $delay (10, 20, 40, 80, 160, 320, 640, 900)
		{
			clock($at += $delay);
			is(said(try_login($username, 'wrong')), '401', "after $delay s");
			my $next = $delay * 2 > 900 ? 900 : $delay * 2;
			is(said(try_login($username, 'wrong')), "429 $next", "then $next s");
		}
	}
};

subtest 'no permanent lock' => sub {
	clock(10 + 20 + 40 + 80 + 160 + 320 + 640 + 900 + 900);
	is(said(try_login('ann', $ann->{password})), '200', 'the user comes in');
	is(said(try_login('ann', 'wrong')), '401', 'and begins anew') for 1 .. 5;
	is(said(try_login('ann', 'wrong')), '429 10', 'as anybody');

	clock(5000);
	is(said(try_login('ann', 'wrong')), '401', 'two are forgotten after twice 900 s') for 1 .. 2;
	is(said(try_login('ann', 'wrong')), '429 10', 'not more');
	is(said(try_login('bob', $bob->{password})), '200', 'another user is left alone');
};

subtest 'addresses' => sub {
	is($cluster->psql("load 'entityapi'; show entityapi.login_address_failures"), 60, 'sixty a minute');
	# of less, as each takes a hash
	$cluster->set('entityapi.login_address_failures', 12);
	forget();
	clock(10000);
	is(said(try_login("name-$_", 'wrong')), '401', 'free') for 1 .. 6;
	clock(10030);
	is(said(try_login("name-$_", 'wrong')), '401', 'free') for 7 .. 12;
	is(said(try_login('bob', $bob->{password})), '429 30', 'the window');
	is(said(try_login('bob', $bob->{password}, 'x-forwarded-for' => '192.0.2.7')), '429 30', 'is that of the peer');
	clock(10060);
	is(said(try_login('bob', $bob->{password})), '200', 'slides');
	is(said(try_login("name-$_", 'wrong')), '401', 'over a minute') for 13 .. 18;
	is(said(try_login('bob', $bob->{password})), '429 30', 'no less');

	forget();
	try_login('bob', $bob->{password}) for 1 .. 8;
	$cluster->set('entityapi.login_address_failures', undef);
	is($cluster->psql('select (select count(*) from entityapi.login_throttle)'
			  . ' + (select count(*) from entityapi.address_failure)'), 0, 'successes do not count');

	$cluster->psql("select entityapi.handle('POST', '/auth/login', '{\"content-type\": \"application/json\"}',"
		  . " '{\"username\": \"x\", \"password\": \"y\"}', '$_')") for '2001:db8::1', '2001:db8::ffff:2', '192.0.2.1';
	is($cluster->psql('select address, count(*) from entityapi.address_failure group by 1 order by 1'),
		"192.0.2.1|1\n2001:db8::/64|2", 'a network of IPv6 is one address');

	forget();
	$cluster->psql("select entityapi.handle('POST', '/auth/login', '{\"content-type\": \"application/json\"}',"
		  . " '{\"username\": \"x\", \"password\": \"y\"}', '$_')")
	  for '::ffff:192.0.2.1', '192.0.2.1', '::ffff:192.0.2.2', '64:ff9b::192.0.2.1', '64:ff9b::192.0.2.2';
	is($cluster->psql('select address, count(*) from entityapi.address_failure group by 1 order by 1'),
		"192.0.2.1|2\n192.0.2.2|1\n64:ff9b::c000:201|1\n64:ff9b::c000:202|1", 'one of IPv4 is one, however it is written');
};

subtest 'change of the password' => sub {
	forget();
	my $change = sub {
		return said($shim->http(POST => '/auth/change-password',
				{ token => $ann, json => { currentPassword => $_[0], newPassword => 'another-good-one' } }));
	};

	# by the true clock, so a delay that does not pass meanwhile
	$cluster->set('entityapi.clock');
	$cluster->set("entityapi.login_$_", 900) for 'max_delay', 'delay';
	$ann = { %$ann, %{ $shim->login('ann', $ann->{password}) } };
	is($change->('wrong'), '400', 'wrong') for 1 .. 5;
	like($change->('wrong'), qr/^429 (?:900|8\d\d)$/, 'is a guess like another');
	like(said(try_login('ann', $ann->{password})), qr/^429 (?:900|8\d\d)$/, 'and counted with them');
	$cluster->set("entityapi.login_$_", undef) for 'delay', 'max_delay';
	forget();
	is($change->($ann->{password}), '200', 'right');
};

subtest 'hashes at once' => sub {
	forget();
	$cluster->set('entityapi.max_hashes', 1);
	$cluster->set('entityapi.hash_wait', 0);
	my (@answers, $statuses);

	# until they have met
	EntityApi::Test::wait_until(60, sub {
			push @answers, $shim->at_once(16, '/auth/login',
				JSON::PP::encode_json({ username => 'bob', password => $bob->{password} }));
			$statuses = statuses(@answers);
			$statuses->{200} && $statuses->{503} });
	note explain $statuses;
	cmp_ok($statuses->{200}, '>=', 1, 'some come in');
	cmp_ok($statuses->{503}, '>=', 1, 'some do not');
	like((grep { m{^HTTP/1\.1 503} } @answers)[0], qr/\r\nRetry-After: 1\r\n/i, 'and may come back');
	$cluster->set('entityapi.hash_wait', 60000);
	$statuses = statuses($shim->at_once(16, '/auth/login',
			JSON::PP::encode_json({ username => 'bob', password => $bob->{password} })));
	cmp_ok($statuses->{200}, '>=', 5, 'waiting helps') or diag explain $statuses;
};

subtest 'sweep' => sub {
	forget();
	$cluster->psql("insert into entityapi.address_failure select '192.0.2.1', now() - interval '61 s'"
		  . ' from generate_series(1, 50)');
	$cluster->psql("insert into entityapi.login_throttle select decode(md5(i::text), 'hex'), 13,"
		  . " now() - interval '40 days' from generate_series(1, 50) i");
	my $sessions = $cluster->psql('select count(*) from entityapi.session');
	$cluster->psql("insert into entityapi.session select gen_random_uuid(), '$bob->{id}', now() - interval '31 days',"
		  . " now() - interval '1 day', null, false from generate_series(1, 50)");
	cmp_ok($cluster->psql('select entityapi.sweep(10)'), '>=', 30, 'in steps');
	$cluster->psql('select entityapi.sweep(40)');
	is($cluster->psql('select count(*) from entityapi.address_failure'), 0, 'failures of addresses');
	is($cluster->psql('select count(*) from entityapi.login_throttle'), 0, 'of usernames');
	cmp_ok($cluster->psql('select count(*) from entityapi.session'), '<=', $sessions, 'sessions');
	my $live = $shim->login('bob', $bob->{password});
	$cluster->psql('select entityapi.sweep()');
	is($shim->http(GET => '/auth/me', { token => $live })->{status}, 200, 'not the living');
};

done_testing();
