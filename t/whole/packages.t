# What is packaged is one version, and what is in the zip is what is in the
# repository; make check-packages says what it could not try.  The packages
# themselves are made, installed and purged by it, on bare systems.

use strict;
use warnings;

use Digest::SHA ();
use File::Temp ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir;

sub text
{
	return EntityApi::Test::slurp("$checkout/$_[0]");
}

sub run
{
	my ($script, %env) = @_;
	my $ran = EntityApi::Test::run([ 'env', '-u', 'MAKEFLAGS', '-u', 'MIRROR', (map { "$_=$env{$_}" } sort keys %env), 'bash', '-c', $script ]);

	return ($ran->{status}, $ran->{out} . $ran->{err});
}

my ($version) = text('entityapi.control') =~ /^default_version = '([^']+)'/m;
my $meta = JSON::PP->new->decode(text('META.json'));
is((text('debian/changelog') =~ /^entityapi \((\S+)\)/)[0], $meta->{version}, 'the changelog of Debian has the version');
like($meta->{version}, qr/^\Q$version\E\.\d+$/, 'which is that of the control file');

# PGXN's specification, as far as it concerns a file like this
is(join(' ', grep { !defined $meta->{$_} } qw(name version abstract maintainer license provides meta-spec)), '', 'META.json has what it must have');
is($meta->{'meta-spec'}{version}, '1.0.0', 'of the specification that there is');
like($_, qr/^\d+\.\d+\.\d+$/, 'a version of three numbers') for $meta->{version}, $meta->{provides}{entityapi}{version};
is(join(' ', grep { !-e "$checkout/$_" } @{ $meta->{provides}{entityapi} }{qw(file docfile)}), '', 'it names files that there are');

# debian/control is control.in for one version of the server
my ($major) = text('debian/control') =~ /^Package: postgresql-(\d+)-entityapi$/m;
is(text('debian/control'), text('debian/control.in') =~ s/PGVERSION/$major/gr, 'debian/control is made of control.in');
my ($wanted) = text('scripts/lib/common.sh') =~ /local wanted=\((.*?)\)/s;
my %build = map { $_ => 1 } text('debian/control.in') =~ /^(?:Build-Depends:)?\s+([\w-]+)(?: \([^)]*\))?,?$/mg;
is(join(' ', grep { /-dev$/ && $_ ne 'libc6-dev' && !$build{$_} } split ' ', $wanted), '', 'it wants the libraries that scripts install to build');
is((run("sh -n '$checkout/$_'"))[0], 0, "$_ is a script") for map { "debian/entityapi-shim.$_" } qw(postinst postrm);

# -------- the zip --------

SKIP:
{
	skip 'no git, zip or unzip here', 5 if system('command -v git && command -v zip && command -v unzip') >> 8;
	my $list = sub { return join "\n", sort grep { !m{/$} } split /\n/, (run("unzip -Z1 '$_[0]'"))[1] };

	mkdir "$folder/$_" or die for qw(with without);
	system("tar -C '$checkout' --exclude=./.git --exclude='./.local*' --exclude=node_modules -cf - . | tar -C '$folder/without' -xf -") == 0 or die;
	my ($status, $said) = run("cp -r '$folder/without/.' '$folder/with' && cd '$folder/with' && git init -q && git add -A && "
		  . 'git -c user.name=x -c user.email=x@example.com -c commit.gpgsign=false commit -qm all && make -s dist');
	is($status, 0, 'make dist, of a repository') or diag $said;
	my $sum = sub { return Digest::SHA->new(256)->addfile("$folder/with/entityapi-$meta->{version}.zip", 'b')->hexdigest };
	my $made = $sum->();
	run("umask 027 && cd '$folder/with' && make -s dist", TZ => 'Asia/Tokyo', LC_ALL => 'C');
	is($sum->(), $made, 'who makes it again elsewhere gets the same');
	($status, $said) = run("cd '$folder/without' && make -s dist");
	is($status, 0, 'and of a tree that git does not know') or diag $said;
	is($list->("$folder/without/entityapi-$meta->{version}.zip"), $list->("$folder/with/entityapi-$meta->{version}.zip"), 'makes the same');
	my %there = map { $_ => 1 } split /\n/, $list->("$folder/with/entityapi-$meta->{version}.zip");
	is(join(' ', grep { !$there{"entityapi-$meta->{version}/$_"} } qw(META.json Makefile README.md entityapi.control debian/rules extension/entry/routes.c shim/main.c)), '', 'below one folder');
}

# -------- a release that cannot be had --------

SKIP:
{
	skip 'chroots are for root', 3 if $> != 0;
	mkdir "$folder/bin" or die;
	open my $out, '>', "$folder/bin/mmdebstrap" or die "$!\n";
	print $out "#!/bin/sh\necho \"E: no such release: \$*\" >&2\nexit 1\n";
	close $out;
	chmod 0755, "$folder/bin/mmdebstrap";
	my ($status, $said) = run("'$checkout/scripts/release/check-packages'", PATH => "$folder/bin:$ENV{PATH}",
		DATA => "$folder/data", RELEASES => 'sarge etch', MIRROR => 'http://127.0.0.1:9/debian');
	isnt($status, 0, 'check-packages fails without a release');
	is(join('|', $said =~ /^(\w+: not to be had: E: no such release)/mg), join('|', map { "$_: not to be had: E: no such release" } qw(sarge etch)), 'and names it');
	is(join(' ', glob "$folder/data/matrix/roots/*"), '', 'nothing is left');
}

done_testing;
