# Passwords are hashed for everybody: no user, address or stranger takes that
# away from others, and the work for a name tells nothing of it.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

# One hash at once: so many clients make a queue, however long it takes.
my $cluster = EntityApi::Test->cluster(conf => [
		'entityapi.max_hashes = 1',
		'entityapi.login_address_failures = 1000000', 'entityapi.login_delay = 900', 'entityapi.login_max_delay = 900' ]);
my $shim = EntityApi::Test->shim($cluster, pool_size => 8, login_pool_share => 4,
	threads => 96, pool_queue => 96, trusted_proxies => '127.0.0.1');
my $tenant = $shim->tenant('acme');
my $eve = $shim->user($tenant->{id}, 'eve', []);
my $ann = $shim->user($tenant->{id}, 'ann', []);

sub try_login
{
	my ($username, $password, $address) = @_;
	return $shim->http(POST => '/auth/login', { json => { username => $username, password => $password },
			headers => { defined $address ? ('x-forwarded-for' => $address) : () } });
}

# How many others came in while a request was under way, by the access log: how
# long this process was kept from sending it is not counted.
sub passed_by
{
	my ($id) = @_;
	my $line = JSON::PP::decode_json($shim->logged(qr/"requestId":"$id"/));
	my $micros = sub { my ($h, $m, $s) = $_[0]{time} =~ /T(\d+):(\d+):([\d.]+)Z/; return (($h * 60 + $m) * 60 + $s) * 1e6 };
	my $day = sub { my ($at) = @_; return $at < 0 ? $at + 86_400e6 : $at };
	my @others = grep { $_->{status} == 200 && $_->{requestId} ne $id && ($_->{route} // '') eq '/auth/login' }
	  map { JSON::PP::decode_json($_) } EntityApi::Test::slurp($shim->log) =~ /^(.*)\n/mg;

	return scalar grep { $day->($micros->($line) - $micros->($_)) < $line->{totalMicros} } @others;
}

# So many clients that log eve in without pause, while something is done
sub hammering
{
	my ($n, $address, $work) = @_;
	my $file = EntityApi::Test::folder() . '/done';
	my @children;

	for (1 .. $n)
	{
		my $pid = fork // die "fork: $!\n";
		if ($pid)
		{
			push @children, $pid;
			next;
		}
		my $client = HTTP::Tiny->new(timeout => 60);
		my $json = JSON::PP::encode_json({ username => 'eve', password => $eve->{password} });
		while (1)
		{
			my $answer = $client->post($shim->url . '/auth/login', { content => $json,
					headers => { 'content-type' => 'application/json', 'x-forwarded-for' => $address } });
			next unless $answer->{status} == 200;
			open my $out, '>>', $file or POSIX::_exit(1);
			syswrite $out, '.';
			close $out;
		}
	}
	# those that came when nobody was there yet have been served
	EntityApi::Test::wait_until(180, sub { (-s $file // 0) >= 29 }) or die "nobody hammers\n";
	my @result = $work->();
	kill 'KILL', @children;
	waitpid $_, 0 for @children;
	return @result;
}

# Of 24 clients in the order of their arrival each would wait for 23 others.
for my $case ([ 'another address', '198.51.100.7' ], [ 'the same address', '203.0.113.9' ])
{
	my ($name, $address) = @$case;

	subtest "a user from $name" => sub {
		hammering(24, '203.0.113.9', sub {
				for my $n (1 .. 5)
				{
					my $answer = try_login('ann', $ann->{password}, $address);

					is($answer->{status}, 200, 'comes in');
					cmp_ok(passed_by($answer->{headers}{'x-request-id'}), '<=', 12, 'after a few others, not after all');
				}
			});
	};
}

subtest 'strangers do not lock a user out' => sub {
	$cluster->psql("delete from entityapi.$_") for qw(login_throttle login_origin);
	my $login = sub { try_login('ann', @_)->{status} };

	is($login->($ann->{password}, '198.51.100.7'), 200, 'the user has been there');
	# however slow the machine is, the delay is not over
	my $again = sub { $cluster->psql('update entityapi.login_throttle set failures = failures + 8, last_failure_at = now()') };
	my $origins = "select count(*) from entityapi.login_origin o join entityapi.account a on a.id = o.account_id"
	  . " where a.username = 'ann' and octet_length(o.origin_hash) = 32";

	is($login->('wrong', "192.0.2.$_"), 401, 'strangers try') for 1 .. 5;
	$again->();
	is($login->($ann->{password}, '192.0.2.99'), 429, 'strangers have closed it, everywhere else');
	is($login->($ann->{password}, '198.51.100.7'), 200, 'but not there');
	is($login->($ann->{password}, '::ffff:198.51.100.7'), 200, 'however it is written');
	is($login->('wrong', '192.0.2.1'), 429, 'which gives strangers no new guesses');

	is($login->('wrong', '198.51.100.7'), 401, 'own failures count') for 1 .. 5;
	is($login->($ann->{password}, '198.51.100.7'), 429, 'there');
	$cluster->psql("update entityapi.login_origin set failed_at = now() - interval '1 hour'");
	is($login->($ann->{password}, '198.51.100.7'), 200, 'for a time');

	is($cluster->psql($origins), 1, 'one origin, as a hash');
	$again->();
	$cluster->psql("update entityapi.login_origin set succeeded_at = now() - interval '31 days'");
	is($login->($ann->{password}, '198.51.100.7'), 429, 'after thirty days it is an address like others');
	$cluster->psql('select entityapi.sweep()');
	is($cluster->psql($origins), 0, 'and forgotten');

	$cluster->psql('delete from entityapi.login_throttle');
	$login->($ann->{password}, '198.51.100.7');
	$login->($ann->{password}, '2001:db8::1');
	$login->($ann->{password}, '2001:db8::2');
	is($cluster->psql($origins), 2, 'a network of IPv6 is one');
	my $id = $ann->{id};
	$cluster->psql("delete from entityapi.account where username = 'ann'");
	is($cluster->psql("select count(*) from entityapi.login_origin where account_id = '$id'"), 0, 'all go with the user');
};

# Rounds of bcrypt for one login, as the backend counts them.
sub rounds
{
	my ($username, $cost) = @_;
	my $said = EntityApi::Test::run(
		[ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
		in => "set client_min_messages = debug1;\nset entityapi.bcrypt_cost = $cost;\n"
		  . "set entityapi.login_free_failures = 1000;\n"
		  . "select status from entityapi.handle('POST', '/auth/login', '{\"content-type\": \"application/json\"}',"
		  . " convert_to(json_build_object('username', '$username', 'password', 'no such password')::text, 'UTF8'), null);\n");

	return "$said->{out}$said->{err}" =~ /a password took (\d+) rounds/ ? $1 : "none: $said->{out}$said->{err}";
}

subtest 'every name costs the same' => sub {
	my $bob = $shim->user($tenant->{id}, 'bob', []);
	my $off = $shim->user($tenant->{id}, 'off', []);
	$cluster->psql("update entityapi.account set status = 'DISABLED' where username = 'off'");

	my %hash = map { $_ => $cluster->psql("select crypt('x', gen_salt('bf', $_))") } 11, 12;

	$cluster->psql("update entityapi.account set password_hash = '$hash{11}' where username = 'off'");
	for my $cost (10 .. 12)
	{
		# what is stored has cost 11, but for one with a higher cost
		my $expected = 2**($cost > 11 ? $cost : 11);
		is(rounds($_, $cost), $expected, "$_, now of cost $cost") for 'bob', 'off', 'nobody-at-all', "in\x{7f}valid";
	}
	$cluster->psql("update entityapi.account set password_hash = '$hash{12}' where username = 'bob'");
	is(rounds($_, 10), 4096, "$_, beside a hash of cost 12") for 'bob', 'off', 'nobody-at-all';
};

done_testing();
