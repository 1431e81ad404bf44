# A node hangs: its processes stand still, its connections stay open.  Its
# tenants are refused, soon at once, and a shim that knows one node only serves
# those of the others as before.

use strict;
use warnings;

use HTTP::Tiny;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, conf => ['entityapi.access_token_ttl = 86400']);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, pool_size => 4, sweep_interval_ms => 0, pool_wait_ms => 3000, statement_timeout_ms => 5000);
my @tenants = $cluster->place($shim, 'Editor');
my $folder = EntityApi::Test::folder();
my ($hung) = grep { $_->{node} == 2 } @tenants;
my @others = grep { $_->{node} != 2 } @tenants;
my $target = $shim->url . '/api/v1/items?page[size]=1';

sub client { my ($tenant) = @_; return HTTP::Tiny->new(timeout => 120, default_headers => { authorization => "Bearer $tenant->{user}{accessToken}" }) }

# Asks until the file is there, and writes down what came and how long it took.
sub begin
{
	my ($name, $tenant, $until) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	my $http = client($tenant);
	open my $out, '>', "$folder/$name" or POSIX::_exit(1);
	$out->autoflush(1);
	until (-e $until)
	{
		my $began = time;
		my $status = $http->get($target)->{status};

		printf $out "%d %.3f\n", $status, time - $began;
		sleep 0.02;
	}
	POSIX::_exit(0);
}

# [status, seconds] of each
sub answers { return map { my $path = "$folder/$_"; -e $path ? map { [ split / / ] } EntityApi::Test::slurp($path) =~ /^(.*)\n/mg : () } @_ }
sub summed { my %n; $n{ $_->[0] }++ for @_; return join ' ', map { "$_:$n{$_}" } sort keys %n }

# A postmaster and all that it has started
sub processes
{
	my ($node) = @_;
	my ($postmaster) = EntityApi::Test::slurp($node->data . '/postmaster.pid') =~ /^(\d+)/;

	return $postmaster, map { (eval { EntityApi::Test::slurp($_) } // '') =~ /^(\d+) .*\) \S $postmaster /s ? $1 : () } glob '/proc/[0-9]*/stat';
}

# all are known, and are served at the same time
my @before = map { my $tenant = $_; map { begin("before$tenant->{node}-$_", $tenant, "$folder/all") } 1 .. 4 } @tenants;
my @names = map { my $node = $_; map { "before$node-$_" } 1 .. 4 } 0 .. 2;
EntityApi::Test::wait_until(60, sub { !grep { answers($_) < 25 } @names });
open my $all, '>', "$folder/all" or die "all: $!\n";
waitpid $_, 0 for @before;
like(summed(answers(@names)), qr/^200:\d+$/, 'all are served, however many ask for each node');

my @stopped = processes($cluster->node(2));
kill STOP => @stopped;
my @pids = map { begin("hung$_", $hung, "$folder/enough") } 1 .. 12;
my @clients = map { client($_) } @others;
my (%statuses, %longest);
my $end = time + 90;

# from the first moment until each of its clients was refused, and more
until (time > $end || ($statuses{1}{200} && $statuses{1}{200} >= 100 && 12 <= grep { answers("hung$_") > 1 } 1 .. 12))
{
	for my $i (0, 1)
	{
		my $began = time;

		$statuses{$i}{ $clients[$i]->get($target)->{status} }++;
		$longest{$i} = time - $began if ($longest{$i} // 0) < time - $began;
	}
	sleep 0.02;
}
for my $i (0, 1)
{
	my $served = $statuses{$i}{200} // 0;

	is_deeply($statuses{$i}, { 200 => $served }, "$served of $served of the tenant of node $others[$i]{node} are served");
	cmp_ok($served, '>=', 100, 'many');
	note "the longest took $longest{$i} s";
}
my @refused = answers(map { "hung$_" } 1 .. 12);
like(summed(@refused), qr/^503:\d+$/, 'its own are refused');
my @soon = sort { $a <=> $b } map { $_->[1] } @refused;
cmp_ok($soon[ $#soon / 2 ], '<', 1, 'most at once') or diag "@soon";
my $refusal = client($hung)->get($target);
is(join(' ', $refusal->{status}, $refusal->{headers}{'retry-after'} // 'none'), '503 1', 'and told to come again');

kill CONT => @stopped;
ok(EntityApi::Test::wait_until(60, sub { client($hung)->get($target)->{status} == 200 }), 'it goes on, and is served again');
open my $enough, '>', "$folder/enough" or die "enough: $!\n";
waitpid $_, 0 for @pids;

done_testing;
END { kill CONT => @stopped if @stopped }
