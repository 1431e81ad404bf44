# What "make install" puts where: the program on the path, the unit that starts
# it, the man page and the completions of shells, which tell what --help tells.

use strict;
use warnings;

use File::Temp ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir;
my $program = EntityApi::Test::private_program('entityapi-shim');

# A copy with its objects, so that nothing is built but what is installed.
mkdir "$folder/copy" or die "$!\n";
system("tar -C '$checkout' -cf - shim scripts/build/shim-pages scripts/build/known-flags scripts/build/check-needs extension entityapi.control | tar -C '$folder/copy' -xf -") == 0 or die;

sub run
{
	my ($script) = @_;
	my $ran = EntityApi::Test::run([ 'env', '-u', 'MAKEFLAGS', '-u', 'PREFIX', 'bash', '-c', $script ]);

	return ($ran->{status}, $ran->{out} . $ran->{err});
}

sub ends_well
{
	my ($script, $name) = @_;
	my ($status, $said) = run($script);

	return is($status, 0, $name) || diag $said;
}

sub found
{
	my ($tree) = @_;
	my (undef, $list) = run("cd '$tree' && find . -type f | LC_ALL=C sort");
	return $list;
}

my %tree = ('/usr/local' => "$folder/local", '/usr' => "$folder/usr");
my @parts = ('bin/entityapi-shim', 'lib/systemd/system/entityapi-shim.service', 'share/bash-completion/completions/entityapi-shim',
	'share/man/man1/entityapi-shim.1', 'share/zsh/site-functions/_entityapi-shim');

for my $prefix (sort keys %tree)
{
	my $tree = $tree{$prefix};
	my $make = "make -s -C '$folder/copy/shim' PREFIX=$prefix DESTDIR='$tree'";

	ends_well("$make install HELPER='$program'", "make install PREFIX=$prefix");
	is(found($tree), join('', map { ".$prefix/$_\n" } @parts), 'puts these files there');

	my $unit = EntityApi::Test::slurp("$tree$prefix/lib/systemd/system/entityapi-shim.service");
	my ($started) = $unit =~ /^ExecStart=(\S+)/m;
	ok(-x "$tree$started", "the unit starts $started, which is there");
	like((run("$tree$started --version"))[1], qr/^entityapi-shim \d/, 'and runs');

	SKIP:
	{
		my $analyze = '/usr/bin/systemd-analyze';
		my $verify = "$analyze verify --root='$tree' --man=no --recursive-errors=no entityapi-shim.service";

		skip 'no systemd-analyze here', 3 unless -x $analyze;
		# ExecReload's
		mkdir "$tree/bin" or die "$!\n";
		system('cp', '/bin/sh', "$tree/bin") == 0 or die;
		mkdir "$tree/etc" or die "$!\n";
		my ($status, $said) = run($verify);
		is("$said$status", 0, 'systemd-analyze verify of the installed tree');
		rename "$tree$started", "$tree$started.away" or die "$!\n";
		($status, $said) = run($verify);
		isnt($status, 0, 'which would tell that the program is not there');
		like($said, qr/\Q$started\E is not executable/, 'by its name');
		rename "$tree$started.away", "$tree$started" or die "$!\n";
		unlink "$tree/bin/sh" or die "$!\n";
	}
	ends_well("$make uninstall", 'make uninstall');
	is(found($tree), '', 'takes all of it away');
}

# -------- what they tell --------

my ($status, $help) = run("'$program' --help");
my @commands = do { my %seen; grep { !$seen{$_}++ } $help =~ /^  entityapi-shim ([a-z]+)(?: |$)/mg };
my %flags = map { $_ => 1 } map { (run("'$program' $_ --help"))[1] =~ /^  (--[\w-]+)/mg } @commands;

is("@commands", 'serve apply openapi validate diff init introspect schema', 'commands');
cmp_ok(scalar keys %flags, '>', 40, 'and flags');
for my $form (qw(man bash zsh))
{
	ends_well("'$checkout/scripts/build/shim-pages' $form '$program' >'$folder/$form'", "the page for $form");
	my $text = EntityApi::Test::slurp("$folder/$form") =~ s/\\-/-/gr;
	my %shown = map { $_ => 1 } $form eq 'man' ? $text =~ /^\.B (--[\w-]+)/mg : $text =~ /(?<![\w-])(--[a-z][\w-]*)/g;
	delete $shown{'--version'};
	is(join(' ', sort keys %shown), join(' ', sort keys %flags), 'has each flag, and no other');
}
unlike(EntityApi::Test::slurp("$folder/man"), qr/20\d\d-\d\d/, 'the man page has no date');
my @variables = EntityApi::Test::slurp("$folder/man") =~ /^(ENTITYAPI_\w+)$/mg;
is(scalar @variables, 1 + grep({ /^  --/ } split /\n/, $help), 'and names a variable for each setting');

SKIP:
{
	skip 'no groff here', 2 if system('command -v groff >/dev/null') != 0;
	my ($status, $said) = run("groff -man -Tutf8 -ww -z '$folder/man'");
	is("$said$status", 0, 'groff has nothing to say about it');
	like((run("groff -man -Tascii -P-c '$folder/man'"))[1] =~ s/.\x08//gr, qr/^\s+--pool-size NUMBER$/m, 'and shows it');
}

# What bash offers after these words
sub offered
{
	my (@words) = @_;
	my $last = $#words;
	my (undef, $list) = run("compopt() { :; }; . '$folder/bash'; COMP_WORDS=(@words) COMP_CWORD=$last;"
		  . " _entityapi_shim entityapi-shim '$words[-1]' '$words[-2]'; printf '%s\n' \"\${COMPREPLY[@]}\"");
	return join ' ', sort split /\n/, $list;
}

is(offered('entityapi-shim', 'ap'), 'apply', 'bash completes a command');
is(offered('entityapi-shim', 'apply', '--d'), '--database --database-file --defer --drain-timeout-ms --dry-run', 'its options');
is(offered('entityapi-shim', 'serve', '--dry'), '', 'and not those of others');
is(offered('entityapi-shim', 'serve', '--metrics', 't'), 'true', 'values');
is(offered('entityapi-shim', 'serve', '--keep-alive', "''"), 'auto no yes', 'all of them');
is(offered('entityapi-shim', 'apply', "$checkout/exam"), "$checkout/examples", 'and files');

SKIP:
{
	skip 'no zsh here', 1 if system('command -v zsh >/dev/null') != 0;
	ends_well("zsh -n '$folder/zsh'", 'zsh reads its own');
}

# -------- the line of apt --------

my ($line) = grep { /^sudo apt install / } map { split /\n/, $_->{text} } EntityApi::Test::Pages::blocks('docs/operations.md');
my ($wanted) = EntityApi::Test::slurp("$checkout/scripts/lib/common.sh") =~ /local wanted=\((.*?)\)/s;
my %tools = map { $_ => 1 } qw(libipc-run-perl curl ca-certificates);
is(join(' ', sort split ' ', ($line // '') =~ s/^sudo apt install //r),
	join(' ', sort 'make', 'postgresql-server-dev-all', grep { !$tools{$_} } split ' ', $wanted // ''),
	'the page names the packages that scripts install to build');

done_testing;
