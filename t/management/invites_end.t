# An invite gives no role that was taken away meanwhile, or that only a
# SuperAdmin gives by now: whoever made it could not do so today.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/roles.json';

sub declared
{
	my ($roles, @more) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => $roles } },
		{ kind => 'Entity', metadata => { name => 'Note' }, spec => { permissions => { '*' => ['read'] }, fields => { text => { type => 'string' } } } } ]);
	close $out or die "$manifests: $!\n";
	return $cluster->try_apply(@more, $manifests);
}

my %tenants = (Viewer => {}, Editor => {}, Guest => {});
my %reach = (assignableBy => 'superAdmin');

is(declared(\%tenants)->{status}, 0, 'declared');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $at = "/manage/tenants/" . $shim->tenant('here')->{id};
my $n = 0;

sub invite
{
	my (@roles) = @_;
	my $answer = $shim->http(POST => "$at/invites", { token => $root, json => { email => 'i@here', username => 'i', roles => \@roles } });

	is($answer->{status}, 201, "invited: @roles");
	return $answer->{json};
}

sub accepted
{
	my ($invite) = @_;
	my $answer = $shim->http(POST => '/auth/accept-invite',
		{ json => { token => $invite->{token}, username => 'i' . ++$n, password => 'some pass phrase or other' } });

	return $answer->{status} == 201 ? 'accepted' : $answer->{json}{errors}[0]{code};
}

sub status_of
{
	my ($invite) = @_;

	return $shim->http(GET => "$at/invites?filter=id==$invite->{id}", { token => $root })->{json}{data}[0]{status};
}

my %invite = (editor => invite('Editor'), both => invite('Viewer', 'Editor'), guest => invite('Guest'), viewer => invite('Viewer'), used => invite('Editor'));
is(accepted($invite{used}), 'accepted', 'one is used at once');

# -------- a role rises --------

my $rises = declared({ %tenants, Editor => \%reach }, '--dry-run');
like($rises->{out}, qr/UPDATE entityapi\.invite /, 'a dry run says what will end');
is(status_of($invite{editor}), 'PENDING', 'and ends nothing');
is(declared({ %tenants, Editor => \%reach })->{status}, 0, 'a role is the SuperAdmin\'s from now on');
is(accepted($invite{$_}), 'INVITE_INVALID', "made before: $_") for qw(editor both);
is(status_of($invite{editor}), 'EXPIRED', 'it says so');
is(status_of($invite{used}), 'ACCEPTED', 'what was used stays so');
my $new = invite('Editor');
unlike(declared({ %tenants, Editor => \%reach })->{out}, qr/UPDATE/, 'applied again, nothing ends');
is(accepted($new), 'accepted', 'the SuperAdmin invites again');

# -------- a role goes, and comes again --------

is(declared({ Viewer => {}, Editor => \%reach })->{status}, 0, 'a role that nobody has goes');
is(declared({ %tenants, Editor => \%reach })->{status}, 0, 'and is declared again');
is(accepted($invite{guest}), 'INVITE_INVALID', 'it does not come back to who was invited to it');
is(accepted($invite{viewer}), 'accepted', 'other invites are left alone');
is(declared({ %tenants, Editor => {} })->{status}, 0, 'a role may fall');

done_testing;
