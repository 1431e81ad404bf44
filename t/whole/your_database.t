# docs/your-database.md: its commands as they stand, one after the other in one
# shell, on a server of PostgreSQL that has nothing of ours yet; each answers as
# the page shows.  The port is another one, as that of the page may be taken.

use strict;
use warnings;

use File::Basename qw(dirname);
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;

if (!grep { -x "$_/patch" } split /:/, $ENV{PATH}) { plan skip_all => 'patch is not installed' }

my $page = 'docs/your-database.md';
my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster(bare => 1, conf => ["timezone = 'UTC'"]);
my $port = EntityApi::Test::free_port();
my @blocks = grep { $_->{run} } EntityApi::Test::Pages::blocks($page);
my $commands = join '', map { $_->{text} } @blocks;

# Somebody types it in a checkout; what it makes goes elsewhere.
symlink "$checkout/$_", "$folder/$_" or die "$_: $!\n" for qw(t examples);

# Nobody types the second request before the service is there.
my $await = <<~"END";
	for try in \$(seq 600); do
		curl -sf http://127.0.0.1:$port/actuator/health >/dev/null && break
		sleep 0.1
	done
	END
my $script = "set -eo pipefail\ntrap 'kill \$(jobs -p); wait' EXIT\ncd '$folder'\n";
for my $i (0 .. $#blocks)
{
	$blocks[$i]{out} = "$folder/out$i";
	$script .= "exec >'$blocks[$i]{out}' 2>&1\n" . $blocks[$i]{text} =~ s/127\.0\.0\.1:8080/127.0.0.1:$port/gr;
	$script .= $await if $blocks[$i]{text} =~ /^entityapi-shim serve\b/m;
}
EntityApi::Test::write_file("$folder/script", $script);

my $run = EntityApi::Test::run(
	[ 'bash', "$folder/script" ],
	env => {
		PATH => join(':', dirname(EntityApi::Test::private_program('entityapi-shim')),
			dirname(EntityApi::Test::server_program('psql')), $ENV{PATH}),
		PGHOST => $cluster->host, PGPORT => $cluster->port, PGUSER => 'postgres',
		ENTITYAPI_LISTEN => "127.0.0.1:$port",
		# as make test has it, for a busy machine
		ENTITYAPI_POOL_WAIT_MS => 60000, ENTITYAPI_STATEMENT_TIMEOUT_MS => 60000,
		ENTITYAPI_REQUEST_TIMEOUT_MS => 60000, ENTITYAPI_CONNECT_TIMEOUT_S => 60 });
my @ran = grep { -e $_->{out} } @blocks;

is($run->{status}, 0, 'all commands run')
  or diag "$ran[-1]{text}--- said:\n" . EntityApi::Test::slurp($ran[-1]{out}) . $run->{err};
for my $block (@ran)
{
	my $came = EntityApi::Test::slurp($block->{out});

	ok(EntityApi::Test::Pages::shows($block->{answer} // '', $came), "$page:$block->{line} answers as it shows")
	  or diag "$block->{text}--- shown:\n" . ($block->{answer} // '') . "--- came:\n$came";
}
is(scalar @ran, scalar @blocks, 'each block');

# The README has three of these commands, for a database of another name.
my ($short) = grep { $_->{text} =~ /^entityapi-shim introspect/ } EntityApi::Test::Pages::blocks('README.md');
my @short = map { s/\bshop\b|(?<==)shop|\bshop(?=_)/chinook/gr } split /\n/, $short->{text};
is(scalar @short, 3, 'the README has three commands');
is(join("\n", grep { index($commands, $_) < 0 } @short), '', 'which are those of the page');

done_testing;
