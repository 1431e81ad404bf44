# make matrix says what it could not try, keeps what it has found before, and
# leaves nothing behind when it is interrupted.

use strict;
use warnings;

use File::Temp ();
use Test::More;

use EntityApi::Test;

plan skip_all => 'chroots are for root' if $> != 0;
plan skip_all => 'apt is not there' if system('command -v apt-get >/dev/null') != 0;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir;
my $copy = "$folder/copy";
my $table = "$folder/data/matrix/table.md";

mkdir $_ or die "$_: $!\n" for $copy, "$folder/bin";
system("tar -C '$checkout' -cf - scripts docs README.md entityapi.control | tar -C '$copy' -xf -") == 0 or die;

# An mmdebstrap that does what the case says
sub debstrap
{
	my ($does) = @_;

	open my $out, '>', "$folder/bin/mmdebstrap" or die "$!\n";
	print $out "#!/bin/sh\n$does\n";
	close $out or die "$!\n";
	chmod 0755, "$folder/bin/mmdebstrap";
	return;
}

sub matrix
{
	my ($source, %more) = @_;
	local $ENV{PATH} = "$folder/bin:$ENV{PATH}";
	local @ENV{qw(DATA RELEASES MIRROR TESTS BUILD_ON POSTGRES_SOURCE)} =
	  ("$folder/data", 'sarge', 'http://127.0.0.1:9/debian', '', '', $source // '');
	local @ENV{keys %more} = values %more;

	exec "$copy/scripts/release/matrix" or die "$!\n" if (my $pid = fork) == 0;
	return $pid;
}

sub left
{
	return join ' ', glob("$folder/data/matrix/roots/*"), grep { -d $_ && (readlink("$_/cwd") // '') =~ /^\Q$folder\E/ } glob '/proc/[0-9]*';
}

open my $said, '>&', \*STDOUT;
open STDOUT, '>', "$folder/said" or die "$!\n";

debstrap('echo "E: no such release: $*" >&2; exit 1');
waitpid matrix(), 0;
isnt($?, 0, 'a release that cannot be had is a failure');
my $text = EntityApi::Test::slurp($table);
like($text, qr/^\| sarge \| - .*not to be had: sarge: E: no such release/m, 'that the table tells');
like($text, qr/^\| arm64, cross build on sarge .*not to be had: sarge/m, 'nor can what is built on it') if qx{uname -m} !~ /aarch64/;
like($text, qr/no such release: .* sarge .*127\.0\.0\.1:9/, 'it was looked for where MIRROR says');

my $before = EntityApi::Test::slurp($table) =~ s/^Of .*//mr;
$ENV{RELEASES} = 'sarge';
waitpid matrix(), 0;
is(EntityApi::Test::slurp($table) =~ s/^Of .*//mr, $before, 'another run changes nothing');

waitpid matrix("$folder/nothing"), 0;
like(EntityApi::Test::slurp($table), qr/^\| from POSTGRES_SOURCE .*nothing is not there/m, 'nor are sources passed over');

waitpid matrix("$folder/nothing", RELEASES => 'none', BUILD_ON => 'etch'), 0;
like(EntityApi::Test::slurp($table), qr/^\| arm64, cross build on etch .*not to be had: etch/m, 'what is built can be all')
  if qx{uname -m} !~ /aarch64/;

unlink glob "$folder/data/matrix/results/*";
waitpid matrix('', BUILD_ON => 'none'), 0;
$text = EntityApi::Test::slurp($table);
like($text, qr/^\| sarge /m, 'releases can be all, too');
unlike($text, qr/^\| arm64/m, '... with nothing built beside them');

debstrap("touch '$folder/began'; exec perl -e 'sleep 600; open my \$went_on, q{>}, shift' '$folder/went_on'");
my $pid = matrix();
ok(EntityApi::Test::wait_until(30, sub { -e "$folder/began" }), 'a run');
kill TERM => $pid;
kill TERM => $pid;
waitpid $pid, 0;
isnt($?, 0, 'that is interrupted');
ok(!-e "$folder/went_on", 'does not go on to its end');
is(left(), '', 'leaves nothing');

open STDOUT, '>&', $said;
done_testing();
