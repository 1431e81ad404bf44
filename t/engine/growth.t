# What a request costs must not grow with what is not its business, counted in
# instructions: fifty roles and as many policies beside one, and the pages before
# one that begins at a cursor.

use strict;
use warnings;

use JSON::PP ();
use MIME::Base64 qw(decode_base64url encode_base64url);
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Callgrind;

use constant { CALLS => 14, STEADY => 4, ROWS => 20_000 };

my $missing = EntityApi::Test::Callgrind::missing();

plan skip_all => $missing if defined $missing;

my $json = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);

# Two entities alike; of one, the caller has one role and is asked for one
# policy, of the other for fifty.
my %many = (One => 1, Fifty => 50);

sub entity
{
	my ($name, $many) = @_;

	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => {
			fields => {
				name   => { type => 'string', required => $true, index => $true },
				region => { type => 'string', index => $true } },
			permissions => { map { ("Role$_" => ['read']) } 1 .. $many },
			policies    => { map { ("Policy$_" => ['read']) } 1 .. $many } } };
}

my $manifests = $json->encode([
	{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'growth' }, spec => { tenancy => 'POOL' } },
	{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { map { ("Role$_" => { description => 'r' }) } 1 .. 50 } } },
	(map { { apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => "Policy$_" },
		spec => { description => 'all', expression => "#user.username != 'nobody$_'" } } } 1 .. 50),
	map { entity($_, $many{$_}) } sort keys %many ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");

my $tenant = $shim->tenant('growth')->{id};
my %caller = map { $_ => $shim->user($tenant, lc $_, [ map { "Role$_" } 1 .. $many{$_} ])->{accessToken} } keys %many;

$cluster->psql("insert into app.$_ (tenant_id, id, name, region, created_at, updated_at)
	select '$tenant', ('01900000-0000-7101-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'Customer ' || lpad(i::text, 7, '0'),
		(array['NORTH', 'SOUTH', 'EAST', 'WEST'])[1 + i % 4], now(), now() from generate_series(1, @{[ROWS]}) i") for qw(one fifty);

sub request
{
	my ($who, $target) = @_;
	my $message = EntityApi::Test::Callgrind::message(GET => $target, "authorization: Bearer $caller{$who}\naccept: application/vnd.api+json\n");

	return sub { $message };
}

# A cursor at a row in the middle: that of the first one, with the other's values.
sub place
{
	my ($sort, $number) = @_;
	my $page = $shim->http(GET => "/api/v1/ones?sort=$sort&fields[ones]=name&page[size]=1&page[after]=start", { token => $caller{One} })->{json};
	my $bytes = decode_base64url($page->{meta}{pagination}{after});
	my $name = sprintf 'Customer %07d', $number;

	return encode_base64url(substr($bytes, 0, 6) . pack('H*', sprintf '01900000000071018000%012x', $number)
		. ($sort eq 'id' ? '' : "\1" . pack('N', length $name) . $name));
}

sub page { return request(One => "/ones?sort=$_[0]&fields[ones]=name&page[size]=10&page[after]=$_[1]") }

# name, request, larger request, what it may cost beside the other
my @pairs = (
	map {
		my ($name, $target) = @$_;
		["$name: 1, 50 roles and policies", request(One => "/ones" . $target =~ s/%/ones/r), request(Fifty => "/fifties" . $target =~ s/%/fifties/r), 1.15]
	} [ 'one by id', '/01900000-0000-7101-8000-000000001388?fields[%]=name' ],
		[ 'filtered list', '?filter=region==EAST&sort=name&fields[%]=name,region&page[totals]=false' ],
		[ 'page by cursor', '?sort=-name&fields[%]=name&page[after]=start' ],
		[ 'list with totals', '?sort=name&fields[%]=name' ]);

push @pairs, map { ["page by cursor, sort=$_->[0]: the first, the 1000th", page($_->[0], 'start'), page($_->[0], place($_->[0], 10_000)), $_->[1]] }
  [ 'id', 1.15 ], [ 'name', 1.35 ], [ '-name', 1.3 ];

my ($counts, $statuses) = EntityApi::Test::Callgrind::count($cluster, [ map { @$_[ 1, 2 ] } @pairs ], CALLS, STEADY);

is_deeply($statuses, [ (200) x (2 * CALLS * @pairs) ], 'every request is answered');
for my $i (0 .. $#pairs)
{
	my ($name, undef, undef, $limit) = @{ $pairs[$i] };
	my ($small, $large) = @$counts[ 2 * $i, 2 * $i + 1 ];

	cmp_ok($large, '<=', $limit * $small, sprintf '%s: %d, %d, %.2f', $name, $small, $large, $large / $small);
}

done_testing;
