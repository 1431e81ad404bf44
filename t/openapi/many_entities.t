# The description of the API, and requests, where an application has hundreds of
# tables: none takes a second, whether what it needs is stored, kept or made.
#
# ENTITYAPI_MANY chooses how many (500).

use strict;
use warnings;

use HTTP::Tiny ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::ManyTables;

*seconds = \&EntityApi::Test::ManyTables::seconds;

my $n = $ENV{ENTITYAPI_MANY} // 500;
my $many = EntityApi::Test::ManyTables->new($n);
my $cluster = $many->cluster;

# limits that tell a quadratic way: it takes two or three
seconds('applied', 60, sub { $cluster->apply($many->manifest) });
is(seconds('applied again', 60, sub { $cluster->apply($many->manifest) }), "nothing to change\n", 'nothing to change');

my $shim = EntityApi::Test->shim($cluster, console => 'true', pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = $shim->user($tenant, 'ann', ['Editor'])->{accessToken};
my $admin = $shim->superadmin;

# Alone it takes half a second at most; beside other tests a processor is shared,
# and this tells a way too long.
# The answer is not parsed: for 10 MB of JSON, Perl alone takes half a minute.
my $client = HTTP::Tiny->new(timeout => EntityApi::Test::PATIENCE());

sub ask
{
	my ($name, $path, $token, %headers) = @_;
	my $answer;

	$headers{Authorization} = "Bearer " . (ref $token ? $token->{accessToken} : $token) if defined $token;
	seconds("$name: GET $path", 10, sub { $answer = $client->get($shim->url . $path, { headers => \%headers }) });
	return $answer;
}

my $document = ask('stored', '/api/v1/openapi.json');
is($document->{status}, 200, 'described');
diag sprintf 'the description: %.1f MB', length($document->{content}) / 1e6;
is(ask('kept', '/api/v1/openapi.json')->{status}, 200, 'again');
is(ask('known', '/api/v1/openapi.json', undef, 'If-None-Match' => $document->{headers}{etag})->{status}, 304, 'known');
$cluster->psql(q{alter type shop.mood add value 'wild'});
my $other = ask('made', '/api/v1/openapi.json');
isnt($other->{headers}{etag}, $document->{headers}{etag}, 'made anew');

my $last = $n - 1;
is(ask('ann', $_, $ann)->{status}, 200, $_)
  for "/api/v1/things$last", "/api/v1/things$last?include=before,top,after&page[size]=20", "/api/v1/things$last/1", '/auth/me', '/console/';
is(ask('superadmin', $_, $admin)->{status}, 200, $_) for "/manage/tenants/$tenant/users", '/manage/migrations/status', '/manage/audit';
is(seconds('list_differences()', 60, sub { $cluster->psql('select count(*) from entityapi.list_differences()') }), 0, 'no difference');

is($shim->stop, 0, 'ends with 0');
done_testing;
