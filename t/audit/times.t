# Whatever time a record says, the log is purged and extended: who may add to it
# cannot keep it from being kept small.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $nobody = '00000000-0000-0000-0000-000000000000';
my @times = ('-infinity', '4713-01-01 00:00:00+00 BC', '0044-03-15 12:00:00+00 BC', '0001-01-01 00:00:00+00', '0987-06-05 04:03:02+00',
	'1999-12-31 23:59:59+00', '2001-02-03 04:05:06+00', '9999-12-31 00:00:00+00', '12345-01-01 00:00:00+00', '294276-12-31 00:00:00+00', 'infinity');

sub add
{
	$cluster->psql(join '', "set role entityapi_owner;\n", map { "insert into entityapi.audit (id, at, tenant_id, action, outcome) values (gen_random_uuid(), '$_', '$nobody', 'NOTE', 'SUCCESS');\n" } @_);
	return;
}

sub count { return $cluster->psql("select count(*) from entityapi.audit where action = 'NOTE' and $_[0]") }

# far more months than a transaction could lock tables
add(@times, '-infinity');
$cluster->psql("set role entityapi_owner; insert into entityapi.audit (id, at, tenant_id, action, outcome) select gen_random_uuid(), '1000-01-15 UTC'::timestamptz + i * interval '1 month', '$nobody', 'NOTE', 'SUCCESS' from generate_series(0, 11999) i");

my $result = $cluster->try_psql("select * from entityapi.purge_audit('2000-01-01 00:00:00+00')");
is($result->{status}, 0, 'purged') or diag $result->{err};
my @gone = split /\n/, $result->{out};
is(count("at < '2000-01-01 00:00:00+00'"), 0, 'all that was from before');
is(count("at >= '2000-01-01 00:00:00+00'"), 5, 'nothing that was from later');
is_deeply([ grep { /audit_default|0001|0987_06|1999_12/ } @gone ], [qw(audit_0001_01 audit_0987_06 audit_1999_12 audit_default)], 'told by months');
like($cluster->psql("select detail from entityapi.audit where detail like '%months with%' order by id desc limit 1"), qr/^\d+ months with 12007 records, all from before 2000-01-01/, 'and counted');

$result = $cluster->try_psql("select * from entityapi.purge_audit('infinity')");
is($result->{status}, 0, 'all until now') or diag $result->{err};
is(count("at < now() - interval '2 months'"), 0, 'gone');
is(count('at > now()'), 4, 'what is to come is there');
$result = $cluster->try_psql("select * from entityapi.purge_audit('-infinity')");
is($result->{status}, 0, 'nothing is before all times') or diag $result->{err};

for my $at ('-infinity', 'infinity', '0044-03-15 BC', '9900-01-01 00:00:00+00', '294276-12-31')
{
	like($cluster->try_psql("select entityapi.extend_audit('$at', 3)")->{err}, qr/ERROR:  extend_audit makes months of the years/, "no months from $at on");
}
$result = $cluster->try_psql("select entityapi.extend_audit('9899-12-31 00:00:00+00', 120), entityapi.extend_audit('0001-01-01 00:00:00+00', 0), entityapi.extend_audit(now(), 12)");
is($result->{status}, 0, 'but of all others') or diag $result->{err};
like($cluster->try_psql('select entityapi.extend_audit(now(), null)')->{err}, qr/at most/, 'of as many as are said');

# what is appended stays so
for my $what ('delete from entityapi.audit_default', 'truncate entityapi.audit_default', 'delete from entityapi.audit')
{
	like($cluster->try_psql("set session_replication_role = replica; $what")->{err}, qr/append-only/, "no $what");
}

done_testing;
