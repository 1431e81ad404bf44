# A time that only plain SQL can store has no form in JSON.  It is null, and
# takes nothing else of an answer with it: what is in the audit log stays there.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $admin = $shim->superadmin;
my $insert = q{insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), '%s', 'ENDLESS', 'SUCCESS')};

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
is_deeply($seen{ENDLESS}, { null => 2 }, 'both are there');
ok($seen{TENANT_CREATED}, 'and so is what lies between them') or diag(join ' ', sort keys %seen);

done_testing();
