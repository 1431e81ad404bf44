# Many entities: applying one more, the first request after it, and what a
# backend keeps in memory depend on what is used, not on what is declared.
#
# ENTITYAPI_MANY chooses how many (300).

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $many = $ENV{ENTITYAPI_MANY} // 300;
my $few = 20;
my $json = JSON::PP->new->canonical;
my $folder = EntityApi::Test::folder();

sub entity
{
	my ($n) = @_;

	return {
		apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => "Thing$n" },
		spec => {
			plural => "Thing${n}s",
			fields => {
				name   => { type => 'string', required => JSON::PP::true, index => JSON::PP::true },
				code   => { type => 'string', unique => JSON::PP::true },
				amount => { type => 'decimal', minimum => 0 },
				at     => { type => 'datetime' },
				kind   => { type => 'string', enum => [qw(A B C)] },
				$n > 1 ? (previous => { type => 'ref', target => 'Thing' . ($n - 1), relation => 'ManyToOne' }) : () },
			permissions => { '*' => [qw(create read update delete)] } } };
}

sub file
{
	my ($n) = @_;

	open my $file, '>', "$folder/$n.json" or die "$n: $!\n";
	print $file $json->encode([ map { entity($_) } 1 .. $n ]);
	close $file;
	return "$folder/$n.json";
}

my $cluster;

# Seconds of a processor that the server takes for it: what else the machine
# does is not among them
sub seconds
{
	my ($what) = @_;
	my $start = $cluster->processor;

	$what->();
	return $cluster->processor - $start;
}

# The least of some attempts: what the server does besides only adds
sub least
{
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[0];
}

# a transaction that makes thousands of tables holds a lock on each
$cluster = EntityApi::Test->cluster(conf => [ 'max_locks_per_transaction = 1024' ]);
my %apply;

$cluster->apply(file($few));
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann');

sub ask
{
	my ($n) = @_;

	return seconds(sub { $shim->must(200, GET => "/api/v1/thing${n}s", { token => $ann }) });
}

# Bytes of a backend that has used so many entities
sub memory
{
	my ($used) = @_;

	return $cluster->psql(<<~"SQL");
		do \$\$
		declare status int;
		begin
			for n in 1..$used loop
				select h.status into status from entityapi.handle('GET', '/api/v1/thing' || n || 's',
					'{"authorization": "Bearer $ann->{accessToken}"}', null, null) h;
				if status <> 200 then raise 'status %', status; end if;
			end loop;
		end \$\$;
		select sum(total_bytes) from pg_backend_memory_contexts;
		SQL
}

my %memory = (few => [ memory(5), memory(15) ]);
my $create = seconds(sub { $cluster->apply(file($many)) });
$memory{many} = [ memory(5), memory(15) ];
my $again = least(map { seconds(sub { $cluster->apply(file($many)) }) } 1 .. 3);
my (@more, @first, @next);

for my $n (1 .. 3)
{
	ask($_) for 1 .. 5;
	push @more, seconds(sub { $cluster->apply(file($many + $n)) });
	push @first, ask(3);
	push @next, least(map { ask(3) } 1 .. 5);
}
my ($more, $first, $next) = map { least(@$_) } \@more, \@first, \@next;
diag sprintf '%d entities: made in %.2f s, again %.2f s, one more %.2f s; a request after it %.1f ms, the next %.1f ms', $many, $create, $again, $more,
  1000 * $first, 1000 * $next;
diag sprintf 'a backend that used 5 and 15: %.0f and %.0f kB of %d, %.0f and %.0f kB of %d entities', map({ $_ / 1024 } @{ $memory{few} }), $few,
  map({ $_ / 1024 } @{ $memory{many} }), $many;

cmp_ok($more, '<', 2 * $again + 0.3, 'one more takes not much more than to look whether there is any');
cmp_ok($first, '<', $next + 0.05, 'the first request after it is hardly slower');
cmp_ok($memory{many}[0], '<', 1.1 * $memory{few}[0], 'memory does not grow with what is declared');
cmp_ok($memory{many}[1], '>', $memory{many}[0], 'but with what is used');
cmp_ok($memory{many}[1] - $memory{many}[0], '<', 2 * ($memory{few}[1] - $memory{few}[0]) + 65536, 'by the same, whatever else there is');
is($cluster->psql('select count(*) from entityapi.entity'), $many + 3, 'all are there');

done_testing;
