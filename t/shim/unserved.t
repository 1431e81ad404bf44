# A database that cannot be served is 503 with the reason, never 500: one in
# another encoding, and one that takes rights or functions away while it is
# served.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

my $cluster = EntityApi::Test->cluster;
my $released = EntityApi::Test::Released::install($cluster) ? (EntityApi::Test::Released::versions())[-1] : undef;
my @probes = ([ '/actuator/health/readiness', sub { $_[0] } ], [ '/actuator/health', sub { $_[0]{components}{db} } ]);

# What a probe and a request are told
sub told
{
	my ($shim) = @_;
	my @said;

	for (@probes)
	{
		my $answer = $shim->http(GET => $_->[0]);
		my $part = $_->[1]->($answer->{json}) // {};
		push @said, join ' ', $answer->{status}, $part->{status} // '-', $part->{reason} // ();
	}
	return join ', ', @said, $shim->http(GET => '/api/v1/items')->{status}, $shim->http(POST => '/auth/login', { json => { username => 'a', password => 'b' } })->{status};
}

for my $encoding (qw(SQL_ASCII LATIN1))
{
	subtest $encoding => sub {
		my $database = lc $encoding;

		# as one was that 1.2 was installed in
		$cluster->psql("create database $database encoding 'UTF8' locale 'C' template template0", database => 'postgres');
		$cluster->psql('create extension pgcrypto; create extension entityapi' . ($released ? " version '$released'" : ''), database => $database);
		my $turn = sub { $cluster->psql("update pg_database set encoding = pg_char_to_encoding('$_[0]') where datname = '$database'", database => 'postgres') };
		$turn->($encoding);

		my $refuses = qr/ERROR:  entityapi needs a database with encoding UTF8\n.*HINT:.*createdb -T template0 -E UTF8/s;
		like($cluster->try_psql($_, database => $database)->{err}, $refuses, $_)
		  for q{select * from entityapi.apply_manifest('[]')}, q{select * from entityapi.apply_manifest('[]', true)}, q{select entityapi.create_superadmin('root', 'first pass phrase')},
		  q{select entityapi.handle('GET', '/actuator/health', '{}', '', null)}, $released ? 'alter extension entityapi update' : ();

		my $shim = EntityApi::Test->shim($cluster, wait => 0, database => $cluster->conninfo('entityapi_shim', $database));
		$shim->said(qr/listening on/);
		my $wanted = '503 DOWN ENCODING, 503 DOWN ENCODING, 503, 503';
		my $said = '';
		EntityApi::Test::wait_until(60, sub { ($said = told($shim)) eq $wanted });
		is($said, $wanted, 'is 503, with the reason');
		ok($shim->said(qr/cannot set up a session: the database is not in UTF8 \(the database has another encoding than UTF8: restore a dump .*createdb -T template0 -E UTF8/), 'the log says what is to be done');
		unlike(EntityApi::Test::slurp($shim->log), qr/"status":500/, 'nothing is 500');
		$shim->stop;
	};
}

# Sessions are there, and cannot be used any more
for (
	[ RIGHTS_MISSING => 'revoke entityapi_client from entityapi_shim', 'grant entityapi_client to entityapi_shim' ],
	[ FILES_MISSING => q{update pg_proc set probin = '$libdir/not_there' where oid = 'entityapi.handle(bytea)'::regprocedure},
		q{update pg_proc set probin = (select probin from pg_proc where oid = 'entityapi.version()'::regprocedure) where oid = 'entityapi.handle(bytea)'::regprocedure} ],
	[ EXTENSION_MISSING => 'drop extension entityapi cascade', undef ])
{
	my ($reason, $take, $give) = @$_;

	subtest "$reason while it is served" => sub {
		my $shim = EntityApi::Test->shim($cluster, pool_size => 1);

		like(told($shim), qr/^200 UP, 200 UP, /, 'it serves');
		$cluster->psql($take);
		my $first = $shim->http(GET => '/actuator/health');
		is_deeply([ $first->{status}, $first->{json} ], [ 503, { status => 'DOWN', components => { db => { status => 'DOWN', reason => $reason } } } ], 'the first answer is 503, with the reason');
		my $wanted = "503 DOWN $reason, 503 DOWN $reason, 503, 503";
		my $said = '';
		EntityApi::Test::wait_until(60, sub { ($said = told($shim)) eq $wanted });
		is($said, $wanted, 'and so are all');
		if (defined $give)
		{
			$cluster->psql($give);
			ok(EntityApi::Test::wait_until(60, sub { told($shim) =~ /^200 UP, 200 UP, / }), 'mended, it serves');
		}
		unlike(EntityApi::Test::slurp($shim->log), qr/"status":500/, 'nothing is 500');
		$shim->stop;
	};
}

done_testing();
