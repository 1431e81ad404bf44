# The console in a browser: t/console/run.mjs drives it, as four kinds of user.
# CONSOLE_PARTS names some of its parts.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Node;

my $checkout = EntityApi::Test::checkout();
my $folder = "$checkout/t/console";

my ($browser) = grep { -x } map { ("/usr/bin/$_") } qw(chromium chromium-browser google-chrome);
plan skip_all => 'there is no Chromium (package chromium)' unless defined $browser;
my $why = EntityApi::Test::Node::install($folder);
plan skip_all => $why if defined $why;

my %made = (
	billing => { editor => 'Accountant', viewer => 'Viewer', department => 'finance' },
	tracker => { editor => 'Manager', viewer => 'Guest', department => 'design' });

for my $example (qw(billing tracker))
{
	subtest $example => sub {
		my $cluster = EntityApi::Test->cluster;
		$cluster->apply("examples/$example");
		my $shim = EntityApi::Test->shim($cluster, console => 'true', metrics => 'true');
		my $tenant = $shim->tenant('acme')->{id};
		my $user = sub {
			my ($name, $roles, %more) = @_;
			my $made = $shim->user($tenant, $name, $roles, %more);
			return { map { $_ => $made->{$_} } qw(id username password) };
		};
		my %department = (securityAttributes => { department => $made{$example}{department} });
		my %users = (
			superadmin => { map { $_ => $cluster->superadmin->{$_} } qw(username password) },
			admin  => $user->('boss', [], %department),
			editor => $user->('ann', [ $made{$example}{editor} ], %department),
			viewer => $user->('vic', [ $made{$example}{viewer} ]));

		$shim->must(204, POST => "/manage/tenants/$tenant/tenant-admins/$users{admin}{id}", { token => $shim->superadmin });
		$shim->must(201, POST => "/manage/tenants/$tenant/users",
			{ token => $shim->superadmin, json => { username => 'newcomer', temporaryPassword => 'temporary horse battery' } });
		$users{newcomer} = { username => 'newcomer', password => 'temporary horse battery' };

		my $result = EntityApi::Test::run(
			[ 'timeout', 900 * EntityApi::Test::SLOWNESS(), 'node', "$folder/run.mjs" ],
			env => {
				ENTITYAPI_URL    => $shim->url,
				TMPDIR           => EntityApi::Test::folder(),
				CONSOLE_BROWSER  => $browser,
				CONSOLE_SLOWNESS => EntityApi::Test::SLOWNESS(),
				CONSOLE_SETUP   => JSON::PP->new->canonical->encode({
						users => \%users, tenant => $tenant, example => $example }) });
		my @lines = map { JSON::PP->new->utf8->decode($_) } grep { /^\{/ } split /\n/, $result->{out};

		for my $line (grep { exists $_->{name} } @lines)
		{
			if (defined $line->{skip})
			{
			  SKIP: { skip "$line->{name}: $line->{skip}", 1 }
				next;
			}
			ok($line->{ok}, $line->{name}) or diag $line->{detail};
		}
		ok(@lines && $lines[-1]{done}, 'it came to its end') or diag $result->{err};
	};
}

done_testing;
