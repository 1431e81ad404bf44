# A tenant is not gone before its last transaction is: what began before the
# deletion and is committed after it is taken away, too, whether it is between
# two statements meanwhile, or prepared.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Wire;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster(conf => ['max_prepared_transactions = 5']);
$cluster->apply("$checkout/t/data/entities");
my $shim = EntityApi::Test->shim($cluster);
my $body = JSON::PP->new->canonical->encode({ data => { type => 'people', attributes => { name => 'Ann' } } });


# Until nothing is done any more: a step does nothing, either, while somebody else
# has a transaction for a moment.
sub sweep
{
	my $idle = 0;

	for (1 .. 200)
	{
		$idle = $cluster->psql('select entityapi.sweep()') == 0 ? $idle + 1 : 0;
		return if $idle == 3;
	}
	return;
}

sub tenants { return $cluster->psql("select count(*) from entityapi.tenant where id = '$_[0]'") }
sub people { return $cluster->psql("select count(*) from app.person where tenant_id = '$_[0]'") }
sub erased { return $cluster->psql("select count(*) from entityapi.audit where action = 'TENANT_ERASED' and target_id = '$_[0]'") }

my %ways = (
	'between two statements' => [ undef, 'commit' ],
	'at another statement' => [ 'select 1', 'commit' ],
	'prepared' => [ q{prepare transaction 'late'}, q{commit prepared 'late'} ],
	'undone' => [ undef, 'rollback' ],
);
my $n = 0;

for my $way (sort keys %ways)
{
	my ($on, $end) = @{ $ways{$way} };
	my $tenant = $shim->tenant('t' . ++$n)->{id};
	my $token = $shim->user($tenant, "ann$n", ['Editor'])->{accessToken};
	my $wire = EntityApi::Test::Wire->new($cluster, 'postgres');

	$wire->query('begin')->send->answers;
	like(join(' ', $wire->query("select status from entityapi.handle('POST', '/api/v1/people', jsonb_build_object('authorization',
		'Bearer $token', 'content-type', 'application/vnd.api+json'), convert_to('$body', 'UTF8'), null)")->send->answers), qr/D 201/, "$way: written before");
	$wire->query($on)->send->answers
	  if defined $on && $way eq 'prepared';
	$shim->must(204, DELETE => "/manage/tenants/$tenant", { token => $shim->superadmin });
	$wire->query($on)->send->answers
	  if defined $on && $way ne 'prepared';
	sweep() for 1 .. 2;
	is(tenants($tenant), 1, 'the tenant stays');
	is(erased($tenant), 0, 'and nobody says that it is gone');
	unlike(join(' ', $wire->query($end)->send->answers), qr/ERROR/, "$end");
	sweep();
	is(people($tenant), 0, 'nothing is left');
	is(tenants($tenant), 0, 'nor of the tenant');
	is(erased($tenant), 1, 'which is told once');
}

# Who has begun since does not keep it
my $tenant = $shim->tenant('alone')->{id};
$shim->must(204, DELETE => "/manage/tenants/$tenant", { token => $shim->superadmin });
my $wire = EntityApi::Test::Wire->new($cluster, 'postgres');
$wire->query('begin; create table public.other (a int)')->send->answers;
$wire->query('select 1')->send->answers;
sweep();
my $before = tenants($tenant);
my $next = EntityApi::Test::Wire->new($cluster, 'postgres');
$next->query('begin; create table public.another (a int)')->send->answers;
$wire->query('commit')->send->answers;
sweep();
is("$before " . tenants($tenant), '1 0', 'one that writes then is waited for, and not who comes later');
$next->query('commit')->send->answers;

done_testing();
