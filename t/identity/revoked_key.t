# A key that is revoked while a backend reads it vouches for nothing afterwards,
# not for the token either that was being verified.

use strict;
use warnings;

use IO::Handle;
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $token = $shim->superadmin->{accessToken};
my $call = qq{select status from entityapi.handle('GET', '/auth/me', '{"authorization": "Bearer $token"}', null, null)};
my $kid = $cluster->psql(q{select kid from entityapi.signing_key where state = 'ACTIVE'});

# A session that is given one statement after the other; its answers
my $folder = EntityApi::Test::folder();

sub session
{
	my ($name) = @_;

	open my $session, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-o', "$folder/$name" or die;
	$session->autoflush;
	print $session "set application_name = '$name';\n";
	return $session;
}

sub answers
{
	my ($name) = @_;

	open my $file, '<', "$folder/$name" or return '';
	local $/;
	return join ' ', split /\n/, <$file> // '';
}

sub waits
{
	my ($name) = @_;

	return $cluster->psql("select count(*) from pg_stat_activity where application_name = '$name' and wait_event_type = 'Lock'") == 1;
}

is($cluster->psql($call), 200, 'the token is good');
my $revoker = session('revoker');
print $revoker "begin; lock table entityapi.signing_key; select entityapi.revoke_signing_key('$kid');\n";
ok(EntityApi::Test::wait_until(20, sub { answers('revoker') eq 't' || $cluster->psql(
	q{select count(*) from pg_locks where relation = 'entityapi.signing_key'::regclass and mode = 'AccessExclusiveLock' and granted}) }), 'the key is being revoked');
my $reader = session('reader');
print $reader "$call;\n";
ok(EntityApi::Test::wait_until(20, sub { waits('reader') }), 'while another session is about to read it');
print $revoker "commit;\n";
close $revoker;
print $reader "$call;\n$call;\n";
close $reader;

# on nodes it looks what was declared when the lock is there, and is told to ask
# again, which the shim would do
like(answers('reader'), $cluster->nodes > 1 ? qr/^(?:(?:200|401) )?401 401$/ : qr/^(?:200|401) 401 401$/, 'which takes no notice of what it had read');
is($cluster->psql($call), 401, 'as no other does');

done_testing();
