# A time that only plain SQL can store is told by a word, and takes nothing else
# of an answer with it: what is in the audit log stays there.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $admin = $shim->superadmin;
my $insert = q{insert into entityapi.audit (id, at, tenant_id, action, outcome)
	values (gen_random_uuid(), '%s', '00000000-0000-0000-0000-000000000000', 'ENDLESS', 'SUCCESS')};

$cluster->psql('create role deployer login in role entityapi_owner');
$shim->tenant('acme');
is($cluster->try_psql(sprintf($insert, $_), user => 'deployer')->{err}, '', "recorded at $_") for qw(infinity -infinity);

my ($after, %seen) = ('');
for (1 .. 50)
{
	my $answer = $shim->http(GET => "/manage/audit?page[size]=1$after", { token => $admin });

	is($answer->{status}, 200, "page $_") or last;
	my ($record) = @{ $answer->{json}{data} };
	$seen{ $record->{action} }{ $record->{at} // 'null' }++ if $record;
	my $next = $answer->{json}{meta}{page}{after};
	last if !defined $next;
	$after = "&page[after]=$next";
}
is_deeply($seen{ENDLESS}, { infinity => 1, '-infinity' => 1 }, 'both are there');
ok($seen{TENANT_CREATED}, 'and so is what lies between them') or diag(join ' ', sort keys %seen);

# Others have the form that they always had, but for years before 1
my %form = ('0044-03-15 12:00+00 BC' => '-0043-03-15T12:00:00Z', '0001-03-15 12:00+00 BC' => '0000-03-15T12:00:00Z', '0987-06-05 04:03:02.1+00' => '0987-06-05T04:03:02.1Z',
	'2026-11-23 23:59:59.000001+00' => '2026-11-23T23:59:59.000001Z', '2026-11-23 10:20:30.0405+00' => '2026-11-23T10:20:30.0405Z',
	'12345-06-07 08:09:10.00012+00' => '12345-06-07T08:09:10.00012Z');
$cluster->psql(join ';', map { sprintf $insert =~ s/ENDLESS/FAR/r, $_ } keys %form);
my $far = $shim->must(200, GET => '/manage/audit?filter=action==FAR', { token => $admin });
is_deeply([ sort map { $_->{at} } @{ $far->{data} } ], [ sort values %form ], 'forms of times');

done_testing();
