# JSON:API clients from npm, as they are: t/clients/run.mjs uses them.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $folder = EntityApi::Test::checkout() . '/t/clients';

plan skip_all => 'node (18 or later) and npm are not there'
  if (`node --version 2>/dev/null` || '') !~ /^v(\d+)/ || $1 < 18 || !`npm --version 2>/dev/null`;

# What is installed is what the lock file says, or it is installed anew.
my ($wanted, $installed) = map { (stat "$folder/$_")[9] // 0 } qw(package-lock.json node_modules/.package-lock.json);
if ($installed < $wanted)
{
	my $npm = EntityApi::Test::run(
		[ qw(timeout 90 npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --prefix), $folder ]);
	plan skip_all => 'npm cannot install the clients: ' . ($npm->{err} =~ /^(npm err.*)$/mi ? $1 : "status $npm->{status}")
	  if $npm->{status} != 0;
}

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
