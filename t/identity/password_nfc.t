# A password is one however its accents are typed: hashed in NFC. Hashes of
# before are of what was typed, and become new ones at the next login.

use strict;
use warnings;
use utf8;

use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $admin = $shim->superadmin;
my $tenant = $shim->tenant('acme');
my ($one, $two) = ("caf\N{U+e9}-passwords", "cafe\x{301}-passwords");
my $id;

sub create
{
	my (%members) = @_;
	my $answer = $shim->http(POST => "/manage/tenants/$tenant->{id}/users", { token => $admin, json => \%members });

	$id = $answer->{json}{id} if $answer->{status} == 201;
	return $answer->{json}{errors}[0]{code} // $answer->{status};
}

sub login { return $shim->http(POST => '/auth/login', { json => { username => $_[0], password => $_[1] } })->{status} }
sub stored { return $cluster->psql("select password_hash || ' ' || password_nfc from entityapi.account where username = '$_[0]'") }

# As 1.2 made them
sub of_before
{
	my ($name, $typed) = @_;

	# in two, as Citus takes no volatile function in an UPDATE
	my $hash = $cluster->psql("select crypt(encode(sha256(convert_to('$typed', 'UTF8')), 'base64'), gen_salt('bf', 10))");
	$cluster->psql("update entityapi.account set password_nfc = false, password_hash = '$hash' where username = '$name'");
	return;
}

subtest 'new ones' => sub {
	is(create(username => 'ann', temporaryPassword => $two), 201, 'a user whose password was typed in two');
	is(login(ann => $_), 200, 'logs in') for $one, $two;
	is(login(ann => $_), 401, 'by nothing else') for 'cafe-passwords', "caf\N{U+e8}-passwords";
	like(stored('ann'), qr/ true$/, 'which is recorded');

	my $invite = $shim->must(201, POST => "/manage/tenants/$tenant->{id}/invites", { token => $admin, json => { email => 'a@b.example', username => 'ivy', roles => [] } });
	is($shim->http(POST => '/auth/accept-invite', { json => { token => $invite->{token}, username => 'ivy', password => $two } })->{status}, 201, 'an invite');
	is(login(ivy => $one), 200, 'is the same');
	$cluster->psql("select entityapi.create_superadmin('root2', '$two')");
	is(login(root2 => $one), 200, 'and so is a SuperAdmin');
};

subtest 'those of before' => sub {
	create(username => 'old', temporaryPassword => $one);
	of_before(old => $two);
	my $before = stored('old');
	is(login(old => $one), 401, 'it is asked as it was typed');
	is(stored('old'), $before, 'which changes nothing');
	is(login(old => $two), 200, 'and found');
	isnt(stored('old') =~ s/ .*//r, $before =~ s/ .*//r, 'then it is hashed anew');
	like(stored('old'), qr/ true$/, 'of NFC');
	is(login(old => $_), 200, 'and good in both') for $one, $two;

	for ([ $one, 'in NFC' ], [ 'plainly-for-a-test-9', 'in ASCII' ])
	{
		my ($typed, $how) = @$_;

		of_before(old => $typed);
		$before = stored('old');
		is(login(old => $typed), 200, "one typed $how");
		is(stored('old'), $before =~ s/false$/true/r, 'needs no other hash');
	}

};

# As the backend counts them
subtest 'each attempt is one hash' => sub {
	my $rounds = sub {
		my ($username, $password) = @_;
		my $said = EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
			env => { PGCLIENTENCODING => 'UTF8' },
			in => "set client_min_messages = debug1;\nset entityapi.login_free_failures = 1000;\nselect status from entityapi.handle('POST', '/auth/login',
				'{\"content-type\": \"application/json\"}', convert_to(json_build_object('username', '$username', 'password', '$password')::text, 'UTF8'), null);\n");

		return join ' ', "$said->{out}$said->{err}" =~ /(?:takes|took) (\d+) rounds/g;
	};
	create(username => 'older', temporaryPassword => $one);
	of_before(older => $two);
	for my $name (qw(ann older nobody))
	{
		is($rounds->($name, $_), 1024, "$name, by " . length($_) . ' characters') for "caf\N{U+e8}-passwords", "cafe\x{300}-passwords", 'cafe-passwords', "\x{301}" x 2000;
	}
	is($rounds->('older', $two), '1024 1024', 'one of before has another one made when it is right');
	is($rounds->('older', $_), 1024, 'and then no more') for $one, $two;
	of_before(older => $two);
	$cluster->psql("update entityapi.account set status = 'DISABLED' where username = 'older'");
	my $before = stored('older');
	is($rounds->('older', $two), 1024, 'nor who is refused for another reason');
	is(stored('older'), $before, 'whose hash stays');
};

subtest 'a change' => sub {
	my $change = sub {
		my ($old, $new) = @_;
		my $token = $shim->login('ann', $one);
		my $answer = $shim->http(POST => '/auth/change-password', { token => $token, json => { currentPassword => $old, newPassword => $new } });
		return $answer->{json}{errors}[0]{detail} // $answer->{status};
	};
	is($change->($one, $two), 'The new password must differ from the old one.', 'the same, typed otherwise, is none');
	is($change->('cafe-passwords', "other \N{U+e9} password"), 'The current password is wrong.', 'by a wrong one');
	is($change->($two, "other e\x{301} password"), 200, 'by the right one');
	is(login(ann => "other \N{U+e9} password"), 200, 'in NFC');
	is(login(ann => $one), 401, 'and the old one is over');
};

subtest 'what may be one' => sub {
	is(create(username => "na\N{U+ef}ve-n\N{U+e4}me", temporaryPassword => "nai\x{308}ve-na\x{308}me"), 'WEAK_PASSWORD', 'not the name, typed otherwise');
	is(create(username => "\x{1f82}" x 100, temporaryPassword => "\x{3b1}\x{313}\x{300}\x{345}" x 100), 'WEAK_PASSWORD', 'however long that is');
	is(create(username => 'short', temporaryPassword => "e\x{301}" x 11), 'WEAK_PASSWORD', 'characters count as they are shown');
	is(create(username => 'enough', temporaryPassword => "e\x{301}" x 12), 201, 'twelve of them');
	is(create(username => 'long', temporaryPassword => "e\x{301}" x 128), 201, 'to 128');
	is(login(long => "\N{U+e9}" x 128), 200, 'which log in');
	is(create(username => 'longer', temporaryPassword => "e\x{301}" x 129), 'WEAK_PASSWORD', 'no more');
	is(create(username => 'longest', temporaryPassword => "x\x{323}\x{301}" x 500), 'WEAK_PASSWORD', 'far more');

	# what is too long is not put into order, which takes quadratic time
	my $began = time;
	is(login(ann => "\x{301}\x{323}" x 7_000), 401, 'a long one is just wrong');
	cmp_ok(time - $began, '<', 60, 'and soon');
};

done_testing();
