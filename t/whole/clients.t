# JSON:API clients from npm, as they are: t/tools/clients/run.mjs uses them.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;
use EntityApi::Test::Node;

my $folder = EntityApi::Test::checkout() . '/t/tools/clients';

my $why = EntityApi::Test::Node::install($folder);
plan skip_all => $why if defined $why;

sub checks
{
	my ($program, $url, $token) = @_;
	my $result = EntityApi::Test::run(
		[ 'timeout', 600, 'node', "$folder/$program" ],
		env => { ENTITYAPI_URL => "$url/api/v1", ENTITYAPI_TOKEN => $token });
	my @lines = map { JSON::PP->new->utf8->decode($_) } grep { /^\{/ } split /\n/, $result->{out};

	for my $line (grep { exists $_->{name} } @lines)
	{
		ok($line->{ok}, $line->{name})
		  or diag ref $line->{detail} ? JSON::PP->new->canonical->encode($line->{detail}) : $line->{detail};
	}
	ok(@lines && $lines[-1]{done}, "$program came to its end") or diag $result->{out}, $result->{err};
	return;
}

my $editor = EntityApi::Test::Conformance->begin('library');
checks('run.mjs', $editor->shim->url, $editor->{token}{accessToken});

# The second example, with its data
my $cluster = EntityApi::Test->cluster;
my $example = EntityApi::Test::checkout() . '/examples/tracker';
$cluster->apply($example);
my $shim = EntityApi::Test->shim($cluster);
my $superadmin = $cluster->superadmin;
my $load = EntityApi::Test::run(
	[ EntityApi::Test::checkout() . '/scripts/service/demo' ],
	env => {
		MANIFESTS                     => $example,
		ENTITYAPI_URL                 => $shim->url,
		ENTITYAPI_SUPERADMIN_USERNAME => $superadmin->{username},
		ENTITYAPI_SUPERADMIN_PASSWORD => $superadmin->{password},
		DEMO_PASSWORD                 => 'plainly-for-a-test-3' });
is($load->{status}, 0, 'the data of the tracker') or diag $load->{err};
checks('tracker.mjs', $shim->url, $shim->login('harbour-mia', 'plainly-for-a-test-3')->{accessToken});

done_testing;
