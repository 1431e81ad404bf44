# What is wrong with the database is said by name: at the start, in the log and
# to probes, who are told no more than that.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $good = $cluster->conninfo('entityapi_shim');

# So is a database told of, and served again once it has been mended.
sub told
{
	my ($name, $database, $reason, $text, $mend) = @_;

	return subtest $name => sub {
		my $shim = EntityApi::Test->shim($cluster, wait => 0, database => $database, connect_timeout_s => 5);
		my %down = (status => 'DOWN', $reason ? (reason => $reason) : ());

		# the reason is looked for anew now and then, for a second
		my $tells = sub {
			my ($path, $part, $expected, $name) = @_;
			my $answer;

			EntityApi::Test::wait_until(60, sub {
					$answer = $shim->http(GET => $path)->{json};
					!$reason || $part->($answer)->{reason} });
			return is_deeply($answer, $expected, $name);
		};

		$shim->said(qr/listening on/);
		$tells->('/actuator/health/readiness', sub { $_[0] }, \%down, 'readiness');
		$tells->('/actuator/health', sub { $_[0]{components}{db} // {} }, { status => 'DOWN', components => { db => \%down } }, 'health');
		is_deeply($shim->http(GET => '/actuator/health/liveness')->{json}, { status => 'UP' }, 'liveness');
		my $other = $shim->http(GET => '/api/v1/items');
		is($other->{json}{errors}[0]{detail}, 'The database cannot be reached. Try again soon.', 'others are not told');
		ok($shim->said($text), 'the log')
		  or diag EntityApi::Test::slurp($shim->err);
		if ($mend)
		{
			$cluster->psql($mend);
			ok(EntityApi::Test::wait_until(30, sub { $shim->http(GET => '/actuator/health/readiness')->{status} == 200 }), 'mended, it serves');
		}
		is($shim->stop, 0, 'ends with 0');
	};
}

sub to_database { my ($name) = @_; return $good =~ s/dbname=\S+/dbname=$name/r }
sub to_user { my ($name) = @_; return $good =~ s/user=\S+/user=$name/r }

told('nobody there', 'host=/nowhere dbname=x user=y', undef, qr/"cannot connect: [^"]*(?!\()/);
told('no such login', to_user('nobody_known'), 'LOGIN_REFUSED', qr/cannot connect: .*nobody_known.*\(the login is refused: look at user, password and pg_hba\.conf\)/);
told('no such database', to_database('none'), 'DATABASE_MISSING', qr/cannot connect: .*\(there is no such database: look at dbname in \\"database\\"\)/);
$cluster->psql('create database none');
told('no extension', to_database('none'), 'EXTENSION_MISSING', qr/\(the database has no extension entityapi: CREATE EXTENSION entityapi\)/);
$cluster->psql('create role stranger login');
told('no rights', to_user('stranger'), 'RIGHTS_MISSING', qr/cannot prepare entityapi\.handle: permission denied .*\(the login may not call entityapi\.handle\(\)/,
	'grant usage on schema entityapi to stranger; grant execute on function entityapi.handle(bytea) to stranger');
$cluster->psql('alter role stranger connection limit 0');
told('no connection left', to_user('stranger'), 'CONNECTIONS_TAKEN', qr/\(no connection is left: raise max_connections or lower pool_size\)/,
	'alter role stranger connection limit -1');
$cluster->psql('alter role stranger set default_transaction_read_only = on');
told('a standby, or like one', to_user('stranger'), 'READ_ONLY', qr/\(the database takes no writes: let \\"database\\" name the primary\)/,
	'alter role stranger reset default_transaction_read_only');
$cluster->psql(q{update pg_extension set extversion = '1.0' where extname = 'entityapi'; alter function entityapi.handle(bytea) rename to handle_of_old});
told('an extension that is older', $good, 'EXTENSION_OLDER', qr/\(the extension is older than this program, [\d.]+: ALTER EXTENSION entityapi UPDATE\)/,
	'alter function entityapi.handle_of_old(bytea) rename to handle');

subtest 'an older one that will do' => sub {
	my $shim = EntityApi::Test->shim($cluster);

	is($shim->http(GET => '/actuator/health/readiness')->{status}, 200, 'is served');
	ok(EntityApi::Test::wait_until(30, sub {
				EntityApi::Test::slurp($shim->err) =~ /"level":"warning","event":"start","message":"the extension is older than this program/ }),
		'and named at the start');
};

done_testing;
