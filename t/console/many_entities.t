# The console where an application has hundreds of tables: no page takes a second
# once its files are there, and none keeps 100 MB.
#
# ENTITYAPI_MANY chooses how many (500).

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::ManyTables;
use EntityApi::Test::Node;

my $folder = EntityApi::Test::checkout() . '/t/console';
my ($browser) = grep { -x } map { ("/usr/bin/$_") } qw(chromium chromium-browser google-chrome);
plan skip_all => 'there is no Chromium (package chromium)' unless defined $browser;
my $why = EntityApi::Test::Node::install($folder);
plan skip_all => $why if defined $why;

my $n = $ENV{ENTITYAPI_MANY} // 500;
my $many = EntityApi::Test::ManyTables->new($n);
$many->cluster->apply($many->manifest);
my $shim = EntityApi::Test->shim($many->cluster, console => 'true');
my $ann = $shim->user($many->cluster->psql('select id from entityapi.tenant'), 'ann', ['Editor']);
my $last = $n - 1;

my $result = EntityApi::Test::run([ 'timeout', 900 * EntityApi::Test::SLOWNESS(), 'node', "$folder/many_entities.mjs" ],
	env => { ENTITYAPI_URL => $shim->url, TMPDIR => EntityApi::Test::folder(), CONSOLE_BROWSER => $browser,
		CONSOLE_SETUP => JSON::PP->new->canonical->encode({ user => { map { $_ => $ann->{$_} } qw(username password) },
			pages => [ '', "data/things$last", "data/things$last/1", "data/things$last/new", 'explorer', 'declarations', 'account' ] }) });
my @lines = map { JSON::PP->new->utf8->decode($_) } grep { /^\{/ } split /\n/, $result->{out};

for my $page (grep { exists $_->{name} } @lines)
{
	diag sprintf '%-40s %.2f s, %.1f MB', @$page{qw(name seconds megabytes)};
	# alone it is at most two: a limit that beside other tests tells a way too long
	cmp_ok($page->{seconds}, '<', 20 * EntityApi::Test::SLOWNESS(), "$page->{name}: seconds");
	cmp_ok($page->{megabytes}, '<', 100, "$page->{name}: megabytes");
}
ok(@lines && $lines[-1]{done}, 'it came to its end') or diag $result->{err};
is($shim->stop, 0, 'ends with 0');
done_testing;
