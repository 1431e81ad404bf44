# A request names one tenant.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($here, $there) = map { $shim->tenant($_)->{id} } qw(here there);
my $ann = $shim->user($here, 'ann', ['Sales'])->{accessToken};
my $body = '{"data":{"type":"customers","attributes":{"name":"x"}}}';

sub status_of
{
	my ($token, @tenants) = @_;

	return $shim->raw(join("\r\n", 'POST /api/v1/customers HTTP/1.1', 'Host: a', 'Connection: close', "Authorization: Bearer $token",
			'Content-Type: application/vnd.api+json', 'Content-Length: ' . length $body, (map { "X-Tenant-Id: $_" } @tenants), '', $body))
	  =~ m{^HTTP/1\.1 (\d+)}
	  ? $1
	  : 'nothing';
}

is(status_of($root->{accessToken}, $here), 201, 'a SuperAdmin names a tenant');
is(status_of($root->{accessToken}, @$_), 400, 'and no two') for [ $here, $there ], [ $there, $here ], [ $here, $here ];
is(status_of($ann, $here), 201, 'a user may name his own');
is(status_of($ann, @$_), 403, 'and nothing else') for [$there], [ $here, $there ], [ $there, $here ];
is($cluster->psql("select count(*) from app.customer where tenant_id = '$there'"), 0, 'nothing came there');

done_testing;
