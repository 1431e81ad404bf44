# Who builds it again gets the same, and the list of what is linked is whole.

use strict;
use warnings;

use Cwd ();
use Digest::SHA ();
use File::Temp ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir;
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my ($version) = EntityApi::Test::slurp("$checkout/entityapi.control") =~ /^default_version = '([^']+)'/m;

sub run
{
	my ($script, %env) = @_;
	my $ran = EntityApi::Test::run([ 'env', '-u', 'MAKEFLAGS', '-u', 'DATA', '-u', 'WERROR', '-u', 'COVERAGE', '-u', 'COPT',
			(map { "$_=$env{$_}" } sort keys %env), 'bash', '-c', $script ]);

	return ($ran->{status}, $ran->{out} . $ran->{err});
}

# What this run has built, and what somebody else builds elsewhere.  A run with
# flags of its own has built something else: then that is built twice, too.
sub sums
{
	my ($folder) = @_;
	my %sum = map { $_ => -e "$folder/$_" ? Digest::SHA->new(256)->addfile("$folder/$_", 'b')->hexdigest : 'none' }
	  qw(entityapi.so shim/entityapi-shim shim/entityapi-shim.1 shim/entityapi-shim.bash shim/entityapi-shim.zsh), "entityapi--$version.sql";

	is(join(' ', grep { $sum{$_} eq 'none' } sort keys %sum), '', 'all is there');
	return \%sum;
}

sub build
{
	my ($place, $env, $first) = @_;
	my $copy = "$folder/$place";

	system('mkdir', '-p', $copy) == 0 or die;
	system("tar -C '$checkout' --exclude='*.o' --exclude='*.d' --exclude='*.bc' --exclude=.strict -cf - Makefile entityapi.control extension shim scripts | tar -C '$copy' --touch -xf -") == 0 or die;
	unlink "$copy/shim/entityapi-shim";
	my ($status, $said) = run("$first cd '$copy' && make -s -j2 -C shim PG_CONFIG='$pg_config' all pages"
		  . " && make -s -j2 BITCODE=0 PG_CONFIG='$pg_config' entityapi.so entityapi--$version.sql", %$env);
	is($status, 0, "a build $place") or diag substr $said, -2000;
	return $copy;
}

my $copy = build('in/another/place', { TZ => 'Asia/Tokyo', LC_ALL => 'C.UTF-8', HOME => '/nowhere', USER => 'other' }, 'umask 077; sleep 1;');
my $own = grep({ ($ENV{$_} // '') ne '' } qw(COPT COVERAGE SANITIZE CFLAGS SHIM_PROGRAM)) ? build('here', { TZ => 'UTC', LC_ALL => 'C' }, '') : $checkout;
my @hashes = map { sums($_) } $own, $copy;
is_deeply($hashes[1], $hashes[0], 'one hash for two builds');

# -------- the list of what is linked --------

my ($status, $said) = run("cd '$copy' && PG_CONFIG='$pg_config' scripts/release/sbom entityapi.so shim/entityapi-shim");
is($status, 0, 'scripts/release/sbom') or diag $said;
my $list = JSON::PP->new->decode($said);
my %component = map { $_->{'bom-ref'} => $_ } @{ $list->{components} };
my %depends = map { $_->{ref} => $_->{dependsOn} } @{ $list->{dependencies} };

is("$list->{bomFormat} $list->{specVersion}", 'CycloneDX 1.5', 'its format');
is($list->{metadata}{component}{version}, $version, 'of this version');
is($component{$_}{hashes}[0]{content}, $hashes[0]{ $_ eq 'entityapi.so' ? $_ : "shim/$_" }, "$_ with its sum") for qw(entityapi.so entityapi-shim);
my ($needed) = (run("LC_ALL=C readelf -d '$copy/shim/entityapi-shim'"))[1];
my @needed = $needed =~ /\(NEEDED\).*\[(.*)\]/g;
cmp_ok(scalar @needed, '>', 5, 'the shim is linked with libraries');
is_deeply($depends{'entityapi-shim'}, [ sort @needed, 'postgres' ], 'each is told, and the server, parts of which are in it');
my %loaded = map { $_ => 1 } (run("ldd '$copy/shim/entityapi-shim'"))[1] =~ /^\s*(\S+) => \//mg;
is(join(' ', grep { !$component{$_} } sort keys %loaded), '', 'with those that they bring');
is((grep { $_ eq 'postgres' } @{ $depends{'entityapi.so'} })[0], 'postgres', 'and the server of the extension');
is(join(' ', grep { !$component{$_} } map { @$_ } map { $depends{$_} } grep { $_ ne 'entityapi' } keys %depends), '', 'no reference leads nowhere');
is(join(' ', grep { !$depends{$_} } sort keys %component), '', 'nor is one left out');

SKIP:
{
	skip 'no dpkg here', 1 if system('command -v dpkg-query >/dev/null') != 0;
	like($component{'libpq.so.5'}{purl} // '', qr{^pkg:deb/\w+/libpq5\@[\d.%A-Za-z-]+\?arch=}, 'a library has its package')
	  or diag explain $component{'libpq.so.5'};
}

my (undef, $again) = run("cd '$copy' && PG_CONFIG='$pg_config' scripts/release/sbom entityapi.so shim/entityapi-shim");
is($again, $said, 'the same again is the same');
(undef, $again) = run("cd '$copy' && scripts/release/sbom entityapi.so", SOURCE_DATE_EPOCH => 86400);
is(JSON::PP->new->decode($again)->{metadata}{timestamp}, '1970-01-02T00:00:00Z', 'a time is given, not taken');

done_testing;
