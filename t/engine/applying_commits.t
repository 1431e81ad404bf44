# An application of declarations is about to end: its transaction is over for
# others, and it still has the tables that it changed.  Requests for these wait
# like all that come while it lasts; none is refused.
#
# Nothing of SQL stops there, so a library is made that does: it is told of each
# commit after the transaction is gone and before its locks are.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use Test::More;

use EntityApi::Test;

use constant CROWD => 8;

my $folder = EntityApi::Test::folder();
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
chomp(my $headers = `$pg_config --includedir-server`);

open my $source, '>', "$folder/late.c" or die "late.c: $!\n";
print $source <<~"C";
	#include "postgres.h"
	#include <unistd.h>
	#include "access/xact.h"
	#include "fmgr.h"
	#include "miscadmin.h"

	PG_MODULE_MAGIC;
	void _PG_init(void);

	static void
	wait_here(XactEvent event, void *arg)
	{
		if (event != XACT_EVENT_COMMIT || access("$folder/hold", F_OK) != 0)
			return;
		rename("$folder/hold", "$folder/held");
		while (access("$folder/held", F_OK) == 0 && !ProcDiePending)
			pg_usleep(1000);
	}

	void
	_PG_init(void)
	{
		RegisterXactCallback(wait_here, NULL);
	}
	C
close $source;
my $made = EntityApi::Test::run([ split(' ', $ENV{CC} || 'cc'), '-shared', '-fPIC', '-isystem', $headers, '-o', "$folder/late.so", "$folder/late.c" ]);
is($made->{status}, 0, 'a library is made') or die $made->{err};

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster, pool_size => CROWD, pool_wait_ms => 60000, statement_timeout_ms => 60000);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Accountant']);

sub crowd
{
	return map {
		my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "cannot connect: $@\n";

		$socket->autoflush(1);
		print $socket "GET /api/v1/customers HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer $ann->{accessToken}\r\n\r\n";
		$socket;
	} 1 .. CROWD;
}

sub waiting
{
	return $cluster->psql("select count(distinct pid) from pg_locks join pg_stat_activity using (pid)
		where not granted and locktype = 'relation' and application_name = 'entityapi-shim'");
}

my %begins = (
	declarations => 'begin; select count(*) from entityapi.apply_manifest(entityapi.export_manifest())',
	steps => "select entityapi.claim_apply();\nbegin");

for my $what (sort keys %begins)
{
	subtest $what => sub {
		open my $hold, '>', "$folder/hold" or die "hold: $!\n";
		close $hold;
		my $session = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
			in => "$begins{$what};\nload '$folder/late.so';\nlock table app.customer in access exclusive mode;\ncommit;\n");
		ok(EntityApi::Test::wait_until(60, sub { -e "$folder/held" }), 'it commits');

		my @crowd = crowd();
		my $all = IO::Select->new(@crowd);
		ok(EntityApi::Test::wait_until(60, sub { waiting() == CROWD || $all->can_read(0) }), 'all wait');
		is(scalar(() = $all->can_read(0)), 0, 'none is refused');
		unlink "$folder/held";
		waitpid $session, 0;
		my @status = map { do { local $/; readline $_ } // '' } @crowd;
		is(scalar(grep { m{\AHTTP/1\.1 200 } } @status), CROWD, 'all are served') or diag "@status";
	};
}

done_testing;
