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

my $editor = EntityApi::Test::Conformance->begin('library');
my $result = EntityApi::Test::run(
	[ 'timeout', 60, 'node', "$folder/run.mjs" ],
	env => {
		ENTITYAPI_URL   => $editor->shim->url . '/api/v1',
		ENTITYAPI_TOKEN => $editor->{token}{accessToken} });
my @lines = map { JSON::PP->new->utf8->decode($_) } grep { /^\{/ } split /\n/, $result->{out};

for my $line (grep { exists $_->{name} } @lines)
{
	ok($line->{ok}, $line->{name})
	  or diag ref $line->{detail} ? JSON::PP->new->canonical->encode($line->{detail}) : $line->{detail};
}
ok(@lines && $lines[-1]{done}, 'it came to its end') or diag $result->{out}, $result->{err};

done_testing;
