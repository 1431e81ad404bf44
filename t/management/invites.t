# Invites: one account each, or none.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $root = $shim->superadmin;
my $invites = "/manage/tenants/$tenant->{id}/invites";
my $password = 'chosen-by-the-invitee';

sub invite
{
	my (%members) = @_;
	return $shim->http(POST => $invites,
		{   token => $root,
			json  => { email => 'a@b.example', username => 'ann', roles => ['Viewer'], %members } });
}

sub redeem
{
	my ($invite, $username, %members) = @_;
	return $shim->http(POST => '/auth/accept-invite',
		{ json => { token => ref $invite ? $invite->{token} : $invite, username => $username, password => $password, %members } });
}

sub status_of
{
	my ($invite) = @_;
	return $shim->must(200, GET => "$invites?filter=id==$invite->{id}", { token => $root })->{data}[0]{status};
}

my $unusable = '400 INVITE_INVALID';
sub said { return "$_[0]{status} " . ($_[0]{json}{errors}[0]{code} // '') }

subtest 'made' => sub {
	my $answer = invite();
	is($answer->{status}, 201, 'created') or diag $answer->{body};
	my $invite = $answer->{json};
	is_deeply([ sort keys %$invite ],
		[ sort qw(id email username roles status expiresAt createdAt token) ], 'the record');
	like($invite->{token}, qr/^eai_[0-9A-Za-z]{71}$/, 'the token');
	is($invite->{status}, 'PENDING', 'pending');
	my $list = $shim->must(200, GET => $invites, { token => $root });
	is(scalar @{ $list->{data} }, 1, 'listed');
	ok(!exists $list->{data}[0]{token}, 'without the token');

	is(invite(roles => ['SuperAdmin'])->{status}, 400, 'no platform authority');
	is(invite(roles => ['Nobody'])->{status}, 400, 'no undeclared role');
	is(invite(email => 'x')->{status}, 400, 'no e-mail address');
	is(invite(expiresInHours => $_)->{status}, 400, "not for $_ hours") for 0, 1.5, 1e9;
	is($shim->http(POST => $invites, { token => $root, json => { email => 'a@b.c' } })->{status}, 400, 'not without all');
};

subtest 'accepted' => sub {
	my $invite = invite()->{json};
	my $answer = redeem($invite, ' Ann-Lee ', profile => { a => 1 });
	is($answer->{status}, 201, 'an account') or diag $answer->{body};
	is($answer->{json}{tenantId}, $tenant->{id}, 'of the tenant');
	is(status_of($invite), 'ACCEPTED', 'used up');
	is(said(redeem($invite, 'again')), $unusable, 'not twice');

	my $me = $shim->must(200, GET => '/auth/me', { token => $shim->login($answer->{json}{username}, $password) });
	is_deeply([ @$me{qw(userId email roles profile scope)} ],
		[ $answer->{json}{userId}, 'a@b.example', ['Viewer'], { a => 1 }, [] ], 'with what was offered');
};

subtest 'refused, and still pending' => sub {
	my $invite = invite()->{json};
	$shim->user($tenant->{id}, 'taken', []);

	is(said(redeem($invite, 'TAKEN')), '409 UNIQUE_VIOLATION', 'a taken name');
	is(said(redeem($invite, 'free', password => 'short')), '400 WEAK_PASSWORD', 'a weak password');
	is(said(redeem($invite, 'chosen-by-the-invitee')), '400 WEAK_PASSWORD', 'the name as password');
	is(redeem($invite, 'free', $_ => [])->{status}, 400, "no $_") for qw(roles tenantId isTenantAdmin);
	is(redeem($invite, '')->{status}, 400, 'no name');
	is(redeem($invite, 'free', profile => { x => 'y' x 5000 })->{status}, 400, 'a long profile');
	is(status_of($invite), 'PENDING', 'nothing came of it');
	is(redeem($invite, 'free')->{status}, 201, 'until now');
};

subtest 'unusable' => sub {
	is(said(redeem($_, 'nobody')), $unusable, "no token: '$_'") for '', 'eai_x', 'x' x 75;
	my $bad = invite()->{json}{token};
	substr($bad, -1) = substr($bad, -1) eq 'a' ? 'b' : 'a';
	is(said(redeem($bad, 'nobody')), $unusable, 'a typo');

	my $deleted = invite()->{json};
	is($shim->http(DELETE => "$invites/$deleted->{id}", { token => $root })->{status}, 204, 'deleted');
	is($shim->http(DELETE => "$invites/$deleted->{id}", { token => $root })->{status}, 404, 'once');
	is(said(redeem($deleted, 'nobody')), $unusable, 'is gone');

	my $suspended = invite()->{json};
	$cluster->psql("update entityapi.tenant set status = 'SUSPENDED'");
	is(said(redeem($suspended, 'nobody')), $unusable, 'a suspended tenant');
	$cluster->psql("update entityapi.tenant set status = 'ACTIVE'");

	$cluster->psql("update entityapi.invite set roles = '{Former}' where id = '$suspended->{id}'");
	is(said(redeem($suspended, 'nobody')), $unusable, 'a role that is not declared any more');

	my $short = invite(expiresInHours => 1)->{json};
	my $long = invite()->{json};
	$cluster->psql("update entityapi.invite set expires_at = '2090-01-01 00:00:00Z' where id = '$short->{id}'");
	$cluster->set('entityapi.clock' => '2090-01-01 00:00:00Z');
	is(said(redeem($short, 'nobody')), $unusable, 'one that has expired');
	$cluster->set('entityapi.clock' => '2089-12-31 23:59:59Z');
	is(redeem($short, 'just-in-time')->{status}, 201, 'a second before');
	$cluster->set('entityapi.clock');
	$cluster->psql("update entityapi.invite set expires_at = now() where id = '$long->{id}'");
	is(status_of($long), 'EXPIRED', 'says so');
	is($cluster->psql("select count(*) from entityapi.account where username = 'nobody'"), 0, 'no account');
};

subtest '20 at once' => sub {
	for my $name (sub { 'same' }, sub { "name-$_[0]" })
	{
		my $invite = invite()->{json};
		my $before = $cluster->psql('select count(*) from entityapi.account');
		my %statuses;

		m{^HTTP/1\.1 (\d+)} and $statuses{$1}++
		  for $shim->at_once(20, '/auth/accept-invite',
			sub { JSON::PP::encode_json({ token => $invite->{token}, username => $name->($_[0]), password => $password }) });
		is($statuses{201}, 1, 'one succeeds') or diag explain \%statuses;
		is(($statuses{400} // 0) + ($statuses{503} // 0), 19, 'the others do not') or diag explain \%statuses;
		is($cluster->psql('select count(*) from entityapi.account') - $before, 1, 'one account');
	}
};

done_testing();
