# What a refused login tells, and where secrets may not be found.

use strict;
use warnings;

use List::Util ();
use POSIX ();
use Test::More;
use Time::HiRes ();

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(
	conf => [
		"shared_preload_libraries = 'pg_stat_statements'",
		'log_min_duration_statement = 0',
		'log_statement = all',
		'log_error_verbosity = verbose',
		'entityapi.login_free_failures = 1000000',
		'entityapi.login_address_failures = 1000000' ]);
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $manage = "/manage/tenants/$tenant->{id}";
my $root = $shim->superadmin;
my @secrets = ($cluster->superadmin->{password}, @$root{qw(accessToken refreshToken)});

# The superadmin was made by SQL, whose text is the caller's to keep.
my @known = shift @secrets;

sub post
{
	my ($target, $json, $token) = @_;
	my $answer = $shim->http(POST => $target, { json => $json, $token ? (token => $token) : () });

	cmp_ok($answer->{status}, '<', 500, "POST $target: $answer->{status}");
	push @secrets, grep { defined } @{ $answer->{json} // {} }{qw(accessToken refreshToken key token clientSecret
		  temporaryPassword access_token)}
	  if ref $answer->{json} eq 'HASH';
	return $answer->{json};
}

# A secret that is easily found again
my $n = 0;
sub canary { push @secrets, 'CanaryInTheMine' . ++$n . 'Sings'; return $secrets[-1] }

# What takes time is hashing: its work is counted, not the time, as other work
# on the machine is not to be told from ours.
subtest 'work for refused logins' => sub {
	$shim->user($tenant->{id}, 'ann', []);
	$shim->user($tenant->{id}, 'gone', []);
	$cluster->psql("update entityapi.account set status = 'DISABLED' where username = 'gone';"
		  . " alter role entityapi_shim set log_min_messages = debug1");
	my $loud = EntityApi::Test->shim($cluster);
	my %kinds = (
		unknown  => [ 'nobody', 'wrong-password-1' ],
		wrong    => [ 'ann',    'wrong-password-1' ],
		disabled => [ 'gone',   'plainly-for-a-test-2' ],
		empty    => [ 'ann',    '' ],
		long     => [ 'ann',    'x' x 128 ]);
	my (%work, %answers);

	for my $round (1 .. 3)
	{
		for my $kind (List::Util::shuffle(sort keys %kinds))
		{
			my ($username, $password) = @{ $kinds{$kind} };
			my @from = map { -s $_->log } $cluster->nodes;
			my $answer = $loud->http(POST => '/auth/login',
				{   headers => { 'x-request-id' => 'same' },
					json    => { username => $username, password => $password } });

			push @{ $work{$kind} }, map { substr(EntityApi::Test::slurp($_->log), shift @from) =~ /a password took (\d+) rounds/g } $cluster->nodes;
			$answers{"$answer->{status} $answer->{body}"}++;
		}
	}
	is(scalar keys %answers, 1, 'all answers are one');
	is_deeply($work{wrong}, [ (1024) x 3 ], 'a wrong password is hashed once');
	is_deeply($work{$_}, $work{wrong}, "$_ is as much work as a wrong password") for sort keys %kinds;
	$loud->stop;
	$cluster->psql('alter role entityapi_shim reset log_min_messages');
};

subtest 'marked secrets through every endpoint' => sub {
	my ($temporary, $password, $next) = (canary(), canary(), canary());
	my $user = post("$manage/users", { username => 'uma', roles => ['Viewer'], temporaryPassword => $temporary }, $root);
	my $first = post('/auth/login', { username => 'uma', password => $temporary });

	post('/auth/login', { username => canary(), password => canary() });
	post('/auth/login', { username => 'uma', password => canary(), canary() => 1 });
	post('/auth/login', { username => 'uma', password => [ canary() ] });
	post('/auth/change-password', { currentPassword => canary(), newPassword => canary() }, $first);
	post('/auth/change-password', { currentPassword => $temporary, newPassword => 'short' }, $first);
	my $pair = post('/auth/change-password', { currentPassword => $temporary, newPassword => $password }, $first);
	$pair = post('/auth/refresh', { refreshToken => $pair->{refreshToken} });
	post('/auth/refresh', { refreshToken => canary() });
	post('/auth/logout', { refreshToken => canary() });
	my $key = post('/auth/me/api-keys', { name => 'k', domainRoles => ['Viewer'],
			expiresAt => '2099-01-01T00:00:00Z' }, $pair);
	$shim->http(GET => '/api/v1/products', { headers => { 'x-api-key' => $_ } }) for $key->{key}, canary();
	$shim->http(GET => '/api/v1/products', { token => $_ }) for $pair, canary();
	$shim->http(GET => '/auth/me?access_token=' . canary());
	$shim->http(GET => '/api/v1/products?filter=name==' . canary(), { token => $pair });
	my $invite = post("$manage/invites", { email => 'a@b.example', username => 'i', roles => [] }, $root);
	post('/auth/accept-invite', { token => $invite->{token}, username => 'ivy', password => 'short' });
	post('/auth/accept-invite', { token => canary(), username => 'ivy', password => canary() });
	post('/auth/accept-invite', { token => $invite->{token}, username => 'ivy', password => canary() });
	my $robot = post("$manage/service-accounts", { name => 'robot', roles => [] }, $root);
	post('/auth/token', { clientId => $robot->{clientId}, clientSecret => $_ }) for $robot->{clientSecret}, canary();
	$shim->http(POST => '/auth/token', { headers => { 'content-type' => 'application/x-www-form-urlencoded',
				authorization => 'Basic ' . canary() }, body => 'grant_type=client_credentials&client_secret=' . canary() });
	post("$manage/service-accounts/$robot->{id}/rotate-secret", {}, $root);
	post("$manage/users", { username => 'uli', roles => [] }, $root);
	post('/auth/login', { username => "uma\x{0}", password => canary() });
	$shim->http(POST => $_, { headers => { 'content-type' => 'application/json' },
			body => '{"password": "' . canary() }) for '/auth/login', '/auth/accept-invite', '/auth/token';

	# One that is on record while it runs
	my $pid = fork // die "fork: $!";
	if (!$pid)
	{
		$shim->at_once(4, '/auth/login', JSON::PP::encode_json({ username => 'uma', password => $secrets[-1] }));
		POSIX::_exit(0);
	}
	my $activity = join '', map {
		Time::HiRes::sleep(0.02);
		$cluster->on_all('select string_agg(a::text, chr(10)) from pg_stat_activity a')
	} 1 .. 10;
	waitpid $pid, 0;
	like($activity, qr/entityapi\.handle/, 'requests were seen at work');

	$cluster->psql('create extension pg_stat_statements');
	my $statements = join "\n", $cluster->on_all('select string_agg(query, chr(10)) from pg_stat_statements');
	my $dump = EntityApi::Test::run([ EntityApi::Test::server_program('pg_dump'), '--data-only',
			'-d', $cluster->conninfo ]);
	is($dump->{status}, 0, 'dumped') or diag $dump->{err};
	$shim->stop;

	my %places = (
		'the server log'     => join('', map { EntityApi::Test::slurp($_->log) } $cluster->nodes),
		'the access log'     => EntityApi::Test::slurp($shim->log),
		"the shim's messages" => EntityApi::Test::slurp($shim->err),
		'pg_stat_activity'   => $activity,
		'pg_stat_statements' => $statements,
		'a dump'             => $dump->{out});
	like($places{$_}, qr/\S/, "$_ is there") for grep { $_ ne "the shim's messages" } sort keys %places;
	like($places{'the server log'}, qr/entityapi\.handle/, 'statements are logged');
	for my $place (sort keys %places)
	{
		my @found = grep { index($places{$place}, $_) >= 0 || index($places{$place}, unpack 'H*', $_) >= 0 } @secrets;
		is(scalar @found, 0, "none of " . @secrets . " secrets in $place") or diag explain \@found;
	}
};

done_testing();
