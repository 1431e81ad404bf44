# A refresh token that is sent again: by two tabs, after a lost answer, and by a thief.
#
# The same address gets the same successor for ten seconds, while nobody has used that; everything else ends the
# session.  The service's clock stands still, so no machine is too slow; times are set back in the table.

use strict;
use warnings;

use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster, trusted_proxies => '127.0.0.1', threads => 64, pool_queue => 64);
my $tenant = $shim->tenant('acme');
my $manage = "/manage/tenants/$tenant->{id}";
my $ann = $shim->user($tenant->{id}, 'ann', []);
my $clock = $cluster->psql("select date_trunc('second', now())");
my $home = '192.0.2.1';
my $there = '192.0.2.2';

$cluster->set('entityapi.clock' => $clock);

sub login { return $shim->login('ann', $ann->{password}) }
sub me { return $shim->http(GET => '/auth/me', { token => $_[0] })->{status} }

sub refresh
{
	my ($pair, $from) = @_;
	return $shim->http(POST => '/auth/refresh',
		{ json => { refreshToken => $pair->{refreshToken} }, headers => { 'X-Forwarded-For' => $from // $home } });
}

sub refreshed
{
	my $answer = refresh(@_);

	is($answer->{status}, 200, 'refreshed') or diag $answer->{body};
	return $answer->{json};
}

sub id_of { return substr $_[0]{refreshToken}, 4, 22 }
sub row { my ($pair, $columns) = @_; return $cluster->psql("select $columns from entityapi.refresh_token where id = '" . id_of($pair) . "'") }

# As if the exchange had been so long ago
sub ago
{
	my ($pair, $interval) = @_;
	return $cluster->psql("update entityapi.refresh_token set used_at = timestamptz '$clock' - interval '$interval' where id = '" . id_of($pair) . "' returning 1");
}

# What the log has by now about ann, oldest first, without what was before
my $seen = 0;

sub logged
{
	my @all = split /\n/, $cluster->psql("select action || ' ' || outcome || coalesce(' ' || detail, '') from entityapi.audit"
			. " where action in ('TOKEN_REFRESH', 'REFRESH_REUSED') and (actor_id = '$ann->{id}' or target_id = '$ann->{id}') order by at, id");
	my @new = @all[ $seen .. $#all ];

	$seen = @all;
	return join ', ', @new;
}

sub has_ended
{
	my ($name, @pairs) = @_;

	is(join(' ', map { me($_) } @pairs), join(' ', map { 401 } @pairs), "$name: no access token is good");
	is(refresh($_)->{status}, 401, "$name: no refresh token") for @pairs;
	is($cluster->psql("select count(*) from entityapi.refresh_token r join entityapi.session s on s.id = r.session_id where r.id = '"
				. id_of($pairs[0]) . "' and s.revoked_at is null"), 0, "$name: the session has ended");
	logged();
	return;
}

subtest 'a lost answer' => sub {
	my $first = login();
	my $lost = refreshed($first);
	my $again = refreshed($first);

	is($again->{refreshToken}, $lost->{refreshToken}, 'the same refresh token');
	isnt($again->{accessToken}, $lost->{accessToken}, 'another access token');
	is_deeply([ sort keys %$again ], [ sort keys %$lost ], 'the same members');
	is(me($_), 200, 'all are good') for $first, $lost, $again;
	is(logged(), 'TOKEN_REFRESH SUCCESS, TOKEN_REFRESH SUCCESS repeated', 'both are in the log');
	is($cluster->psql("select count(*) from entityapi.refresh_token where session_id = (select session_id from entityapi.refresh_token where id = '" . id_of($first) . "')"),
		2, 'one successor');

	my $third = refreshed($again);
	isnt($third->{refreshToken}, $again->{refreshToken}, 'and so on');
	is(refreshed($again)->{refreshToken}, $third->{refreshToken}, 'again');
	logged();
};

subtest 'an answer that nobody reads' => sub {
	my $pair = login();
	my $body = "{\"refreshToken\":\"$pair->{refreshToken}\"}";
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

	$socket->autoflush(1);
	print $socket "POST /auth/refresh HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: $home\r\nContent-Type: application/json\r\nContent-Length: "
	  . length($body) . "\r\n\r\n$body";
	ok(EntityApi::Test::wait_until(60, sub { row($pair, 'used_at is not null') eq 't' }), 'exchanged');
	setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
	close $socket;
	my $again = refreshed($pair);
	is(row($pair, 'successor_id'), id_of($again), 'the client has its successor');
	refreshed($again);
	logged();
};

subtest 'sixteen at once, three rounds' => sub {
	for my $round (1 .. 3)
	{
		my $pair = login();
		my @answers = $shim->at_once(16, '/auth/refresh', "{\"refreshToken\":\"$pair->{refreshToken}\"}");
		my @tokens = map { /"refreshToken":"([^"]+)"/ ? $1 : () } @answers;
		my %access = map { $_ => 1 } map { /"accessToken":"([^"]+)"/ ? $1 : () } @answers;

		is(scalar(grep { m{^HTTP/1\.1 200 } } @answers), 16, 'all succeed') or diag map { substr($_, 0, 400) . "\n" } grep { !m{^HTTP/1\.1 200 } } @answers;
		is_deeply([@tokens], [ map { $tokens[0] } 1 .. 16 ], 'with the same refresh token');
		is(scalar keys %access, 16, 'and an access token each');
		is(scalar(grep { $_ ne 200 } map { me({ accessToken => $_ }) } keys %access), 0, 'which is good');
		is(logged() =~ s/ repeated//gr, join(', ', map { 'TOKEN_REFRESH SUCCESS' } 1 .. 16), 'all are in the log');
		is($cluster->psql("select count(*) from entityapi.refresh_token where session_id = (select session_id from entityapi.refresh_token where id = '"
					. id_of($pair) . "')"), 2, 'one successor');
		my $next = $shim->http(POST => '/auth/refresh', { json => { refreshToken => $tokens[0] } });
		is($next->{status}, 200, 'which works');
		logged();
	}
};

subtest 'sixteen at once from elsewhere' => sub {
	my $pair = login();
	my $next = refreshed($pair);
	my @answers = $shim->at_once(16, '/auth/refresh', "{\"refreshToken\":\"$pair->{refreshToken}\"}");

	is(scalar(grep { m{^HTTP/1\.1 401 } } @answers), 16, 'none succeeds');
	is(scalar(grep { /"code":"INVALID_CREDENTIAL"/ } @answers), 16, 'and says why');
	unlike(EntityApi::Test::slurp($cluster->log), qr/deadlock/, 'nobody waits in a circle');
	has_ended('elsewhere', $next, $pair);
};

subtest 'theft' => sub {
	my $pair = login();
	my $stolen = refreshed($pair);

	logged();
	is(refresh($pair, $there)->{status}, 401, 'another address');
	is(logged(), 'REFRESH_REUSED FAILURE INVALID_CREDENTIAL', 'which the log has');
	has_ended('another address', $pair, $stolen);

	# the thief was first: the user's own next refresh finds out
	$pair = login();
	$stolen = refreshed($pair, $there);
	is(refresh($pair)->{status}, 401, 'the user, elsewhere');
	has_ended('a thief who was first', $pair, $stolen);

	# from the user's address, the successor used by either of them
	$pair = login();
	my $next = refreshed($pair);
	my $repeated = refreshed($pair);
	my $after = refreshed($next);
	is(refresh($pair)->{status}, 401, 'an older one');
	has_ended('an older one', $after, $pair, $next, $repeated);

	$pair = login();
	$next = refreshed($pair);
	$after = refreshed($next);
	is(refreshed($next)->{refreshToken}, $after->{refreshToken}, 'the last but one is good');
	is(refresh($pair)->{status}, 401, 'the one before is not');
	has_ended('two behind', $after, $next);

	# addresses are compared, not their spellings nor their networks
	$pair = login();
	$next = refreshed($pair, '2001:db8::1');
	is(refreshed($pair, '2001:0DB8:0::0:1')->{refreshToken}, $next->{refreshToken}, 'another spelling');
	is(refresh($pair, '2001:db8::2')->{status}, 401, 'a neighbour');
	has_ended('a neighbour', $next);
	$pair = login();
	$next = refreshed($pair, $home);
	is(refreshed($pair, "::ffff:$home")->{refreshToken}, $next->{refreshToken}, 'mapped into IPv6');
	logged();
};

subtest 'ten seconds' => sub {
	for my $case ([ '0 s', 200 ], [ '9.999999 s', 200 ], [ '10 s', 401 ], [ '1 day', 401 ], [ '-9.999999 s', 200 ], [ '-10 s', 401 ], [ '-1 year', 401 ])
	{
		my ($interval, $status) = @$case;
		my $pair = login();
		my $next = refreshed($pair);

		is(ago($pair, $interval), 1, 'set back');
		my $again = refresh($pair);
		is($again->{status}, $status, "$interval after the exchange") or diag $again->{body};
		$status == 200 ? is($again->{json}{refreshToken}, $next->{refreshToken}, 'the same') : has_ended($interval, $next);
	}
	my $pair = login();
	my $next = refreshed($pair);
	for my $odd (qw(infinity -infinity))
	{
		$cluster->psql("update entityapi.refresh_token set used_at = '$odd' where id = '" . id_of($pair) . "'");
		is(refresh($pair)->{status}, 401, $odd);
	}
	has_ended('times that are none', $next);
};

subtest 'what was taken away' => sub {
	my %takes = (
		logout => sub { $shim->must(204, POST => '/auth/logout', { json => { refreshToken => $_[0]{refreshToken} } }) },
		'logout by the access token' => sub { $shim->must(204, POST => '/auth/logout', { token => $_[0] }) },
		disabled => sub { $shim->must(200, PATCH => "$manage/users/$ann->{id}", { token => $shim->superadmin, json => { status => 'DISABLED' } }) },
		'a temporary password' => sub {
			$shim->must(200, PATCH => "$manage/users/$ann->{id}", { token => $shim->superadmin, json => { temporaryPassword => 'given-for-a-while' } }) },
		suspended => sub { $shim->must(200, PATCH => $manage, { token => $shim->superadmin, json => { status => 'SUSPENDED' } }) },
		'a new password' => sub {
			$shim->must(200, POST => '/auth/change-password', { token => $_[0], json => { currentPassword => $ann->{password}, newPassword => 'another-one-for-ann' } }) },
		'the session is over' => sub { $cluster->psql("update entityapi.session set expires_at = '$clock' where account_id = '$ann->{id}'") },
		'the successor is over' => sub { $cluster->psql("update entityapi.refresh_token set expires_at = '$clock' where id = '" . id_of($_[0]) . "'") },
		'the successor is gone' => sub { $cluster->psql("delete from entityapi.refresh_token where id = '" . id_of($_[0]) . "'") },
		'the successor is of another secret' => sub { $cluster->psql("update entityapi.refresh_token set secret_hash = sha256('x') where id = '" . id_of($_[0]) . "'") });
	my $hash = $cluster->psql("select password_hash from entityapi.account where id = '$ann->{id}'");

	for my $name (sort keys %takes)
	{
		my $pair = login();
		my $next = refreshed($pair);

		$takes{$name}->($next);
		is(refresh($pair)->{status}, 401, "$name: no repeat");
		$cluster->psql("update entityapi.account set status = 'ACTIVE', password_change_required = false, password_hash = '$hash' where id = '$ann->{id}'");
		$cluster->psql("update entityapi.tenant set status = 'ACTIVE' where id = '$tenant->{id}'");
		is(refresh($_)->{status}, 401, "$name: nor later") for $pair, $next;
	}
	logged();
};

subtest 'keys' => sub {
	my $pair = login();
	my $next = refreshed($pair);

	$cluster->psql('select entityapi.rotate_signing_key()');
	is(refreshed($pair)->{refreshToken}, $next->{refreshToken}, 'rotated: the same successor');
	$cluster->psql("select entityapi.revoke_signing_key(kid) from entityapi.signing_key where state = 'RETIRED'");
	is(refresh($pair)->{status}, 401, 'revoked: none');
	has_ended('a revoked key', $next);

	# which was that of the SuperAdmin's token, too
	delete $shim->{superadmin};
};

subtest 'a restart' => sub {
	my $pair = login();
	my $next = refreshed($pair);

	$cluster->restart;
	EntityApi::Test::wait_until(60, sub { me($next) == 200 });
	is(refreshed($pair)->{refreshToken}, $next->{refreshToken}, 'is nothing to it');
	logged();
};

subtest 'limited sessions stay limited' => sub {
	$shim->must(201, POST => "$manage/users", { token => $shim->superadmin, json => { username => 'new', temporaryPassword => 'given-by-the-boss' } });
	my $pair = $shim->login('new', 'given-by-the-boss');
	my $next = refreshed($pair);
	my $again = refreshed($pair);

	is($again->{forcePasswordChange}, JSON::PP::true, 'says so again');
	is(me($again), 403, 'and is');
	is($again->{refreshToken}, $next->{refreshToken}, 'the same');
};

subtest 'what is stored' => sub {
	my $pair = login();
	my $next = refreshed($pair);
	my $dump = $cluster->psql('select r from entityapi.refresh_token r') . $cluster->psql("select a from entityapi.audit a where action = 'TOKEN_REFRESH'");

	is(index($dump, substr $_->{refreshToken}, 26, 43), -1, 'no secret') for $pair, $next;
	is($cluster->psql("select count(*) from entityapi.refresh_token r where r::text like '%$home%'"), 0, 'no address');
	is(row($next, 'used_at is null and used_from is null and successor_id is null'), 't', 'of one that is unused nothing');
	is($cluster->psql("select count(*) from (select secret_hash from entityapi.refresh_token group by 1 having count(*) > 1) twice"), 0, 'no hash twice');

	# the same token and another id, or the other way round, is another successor
	my $second = refreshed(login());
	isnt(substr($second->{refreshToken}, 26, 43), substr($next->{refreshToken}, 26, 43), 'each is another');
};

done_testing();
