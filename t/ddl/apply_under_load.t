# A table of many rows gets a new field, indexes and constraints while requests
# read and write it: each is answered, none fails, none waits long.
#
# ENTITYAPI_LOAD_ROWS chooses how many rows (50000).

use strict;
use warnings;

use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;
use EntityApi::Test::Cases;

use constant { CLIENTS => 4, AROUND => 1.5 };

my $rows = $ENV{ENTITYAPI_LOAD_ROWS} // 50_000;
my $cluster = EntityApi::Test->cluster(conf => [ 'max_wal_size = 4GB' ]);
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;

sub file
{
	my ($name, $fields, @indexes) = @_;
	my @documents = map { { apiVersion => 'entityapi/v1', kind => 'Entity', %$_ } } (
		{ metadata => { name => 'Parcel' }, spec => {
				fields => $fields, indexes => \@indexes, permissions => { '*' => [qw(create read update delete)] } } },
		{ metadata => { name => 'Depot' }, spec => { fields => { name => { type => 'string' } }, permissions => { '*' => ['read'] } } });

	open my $file, '>', "$folder/$name" or die "$name: $!\n";
	print $file JSON::PP->new->encode(\@documents);
	close $file;
	return "$folder/$name";
}

my %before = (code => { type => 'string' }, weight => { type => 'integer' }, status => { type => 'string' });
my %after = (
	code   => { type => 'string', unique => $true, required => $true },
	weight => { type => 'integer', minimum => 0 },
	status => { type => 'string', index => $true },
	note   => { type => 'string' },
	urgent => { type => 'boolean', required => $true, default => JSON::PP::false },
	depot  => { type => 'ref', target => 'Depot', relation => 'ManyToOne' });

$cluster->apply(file('before.json', \%before));
my $shim = EntityApi::Test->shim($cluster, pool_size => 6);
my $tenant = $shim->tenant('acme');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'ann'), '/api/v1');
$cluster->psql(<<~"SQL");
	insert into app.parcel (tenant_id, id, code, weight, status, created_at, updated_at)
	select '$tenant->{id}', gen_random_uuid(), 'code ' || i, i % 1000, (array['NEW','SENT','LOST'])[i % 3 + 1], now(), now()
	from generate_series(1, $rows) i;
	analyze app.parcel;
	SQL
my @ids = split /\n/, $cluster->psql('select id from app.parcel limit 2000');

# What a client does over and over, each with the status it must have
sub requests
{
	my ($client, $n) = @_;
	my $id = $ids[ ($client + CLIENTS * $n) % @ids ];

	return (
		[ 200, GET => "/parcels/$id" ],
		[ 200, GET => '/parcels?page[size]=10&page[totals]=false&sort=id' ],
		[ 200, PATCH => "/parcels/$id", data => { type => 'parcels', id => $id, attributes => { weight => $n % 1000 } } ],
		[ 201, POST => '/parcels', data => { type => 'parcels', attributes => { code => "client $client $n", weight => 1, status => 'NEW' } } ],
		[ 200, GET => '/depots' ]);
}

# Goes on until the file "stop" is there; a line a request into its own file
sub client
{
	my ($client) = @_;

	open my $log, '>', "$folder/client$client" or die "$client: $!\n";
	for (my $n = 0; !-e "$folder/stop"; $n++)
	{
		for my $request (requests($client, $n))
		{
			my ($expected, @call) = @$request;
			my $start = time;
			my $answer = eval { $ann->call(@call) } // { status => 0, body => $@ };

			printf $log "%.6f %.3f %s %s %s\n", $start, 1000 * (time - $start), $answer->{status} == $expected ? 'good' : 'BAD',
			  "$call[0] $call[1]", $answer->{status} == $expected ? '' : "$answer->{status} $answer->{body}" =~ s/\s+/ /gr;
		}
	}
	close $log;
	return;
}

my @clients;
for my $client (1 .. CLIENTS)
{
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		eval { client($client); 1 } or print STDERR $@;
		POSIX::_exit(0);
	}
	push @clients, $pid;
}

sleep AROUND;
my $start = time;
my $result = $cluster->try_apply(file('after.json', \%after, [qw(status weight)]));
my $end = time;
sleep AROUND;
open my $stop, '>', "$folder/stop" or die "stop: $!\n";
close $stop;
waitpid $_, 0 for @clients;

is($result->{status}, 0, 'applied') or diag $result->{err};
like($result->{out}, qr/CREATE INDEX CONCURRENTLY parcel__status__weight_idx .*\n-- done/, 'not within the transaction');
is($cluster->psql('select count(*) from entityapi.pending_steps'), 0, 'nothing is left');

my (@alone, @during, @bad);
for my $client (1 .. CLIENTS)
{
	for my $line (split /\n/, EntityApi::Test::slurp("$folder/client$client"))
	{
		my ($at, $took, $verdict) = split / /, $line;

		push @bad, $line if $verdict ne 'good';
		push @{ $at + $took / 1000 >= $start && $at <= $end ? \@during : \@alone }, $took;
	}
}

sub summary
{
	my @sorted = sort { $a <=> $b } @_;

	return sprintf('%d requests, p50 %.1f ms, p99 %.1f ms, max %.1f ms', scalar @sorted, map { $sorted[ $_ * $#sorted ] // 0 } .5, .99, 1), $sorted[-1] // 0;
}

my ($alone) = summary(@alone);
my ($during, $longest) = summary(@during);
diag sprintf "%d rows, %.1f s: %s; before and after: %s; %d failed", $rows, $end - $start, $during, $alone, scalar @bad;
cmp_ok(scalar @during, '>', 20, 'requests were answered meanwhile');
is(scalar @bad, 0, 'none failed') or diag join "\n", @bad[ 0 .. ($#bad < 5 ? $#bad : 5) ];

# A reader may be held up for as long as the locks are waited for, not for as
# long as an index takes.
cmp_ok($longest, '<', 1000 * ($end - $start) / 2, 'none waited for all of it');

is_deeply([ sort keys %{ $ann->good(200, GET => "/parcels/$ids[0]")->{json}{data}{attributes} } ],
	[ sort grep { $_ ne 'depot' } keys %after ], 'the new state');
$ann->refused('is in force', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/code' ],
	POST => '/parcels', data => { type => 'parcels', attributes => { code => 'code 7' } });
my $posts = () = map { EntityApi::Test::slurp("$folder/client$_") =~ /good POST/g } 1 .. CLIENTS;
is($cluster->psql(q{select count(*) from app.parcel where code like 'client%'}), $posts, 'what was answered is there');

done_testing;
