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

# They are believed where the library is not loaded, and told by its first session
subtest 'settings that do not hold' => sub {
	$cluster->psql(q{alter database entityapi set entityapi.max_page_sizes = 500; alter database entityapi set entityapi.max_page_size = -1;
		alter role entityapi_shim set entityapi.access_token_ttl = '15 minutes'; alter database entityapi set entityapi.default_page_size = 7});
	my $shim = EntityApi::Test->shim($cluster);

	for my $what (qr/"level":"warning","event":"settings","message":"a setting does not hold: [^}]*\\"entityapi\.max_page_sizes\\"/,
		qr/"settings","message":"a setting does not hold: -1 is outside the valid range for parameter \\"entityapi\.max_page_size\\" \(1 \.\. 10000\)"/,
		qr/"settings","message":"a setting does not hold: invalid value for parameter \\"entityapi\.access_token_ttl\\": \\"15 minutes\\" \(Valid units[^}]*"/)
	{
		ok($shim->said($what), 'the log') or diag EntityApi::Test::slurp($shim->err);
	}
	my $lines = sub { scalar(() = EntityApi::Test::slurp($shim->err) =~ /"event":"settings"/g) };
	is($lines->(), 3, 'names these alone');
	$cluster->psql(q{select pg_terminate_backend(pid) from pg_stat_activity where usename = 'entityapi_shim'});
	EntityApi::Test::wait_until(60, sub { $shim->http(GET => '/actuator/health/readiness')->{status} == 200 });
	is($lines->(), 3, 'at the start, and not of each session');
	is($shim->stop, 0, 'ends with 0');
	$cluster->psql('alter database entityapi reset all; alter role entityapi_shim reset entityapi.access_token_ttl');
	like($cluster->try_psql("load 'entityapi'; alter database entityapi set entityapi.max_page_sizes = 500")->{err}, qr/invalid configuration parameter name/, 'where it is loaded, a name is refused');
	like($cluster->try_psql("load 'entityapi'; alter database entityapi set entityapi.max_page_size = -1")->{err}, qr/outside the valid range/, 'and so is a value');
};

done_testing;
