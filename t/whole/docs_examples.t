# The pages tell the truth: what they show to be typed runs as it stands, and
# answers as they show it.  All of it on a copy of the tree, from the first
# "make run" of the README on; the tutorial twice.

use strict;
use warnings;

use File::Temp ();
use HTTP::Tiny;
use IO::Socket::INET;
use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;
use EntityApi::Test::Traps;

# Blocks that are not run: the page, how the block begins, and why.
my @exempt = (
	[ 'README.md', 'make && sudo make install', 'is for a server of one\'s own; t/whole/dump_restore and t/whole/build_needs do it' ],
	[ 'README.md', 'entityapi-shim introspect', 'is for a server of one\'s own; t/whole/your_database compares it with the page that it runs' ],
	[ 'docs/your-database.md', '', 'is for a server of one\'s own; t/whole/your_database runs all of it' ],
	[ 'docs/existing-tables.md', "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Turnover}", 'is for a view of an application; t/model/application_views serves one' ],
	[ 'docs/existing-tables.md', "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Film}", 'is for a join table of an application; t/model/application_through serves one' ],
	[ 'docs/api.md', 'npx --yes', 'fetches a program from the network' ],
	[ 'docs/operations.md', 'sudo apt install', 'changes the machine; t/shim/installed compares the line, and installs' ],
	[ 'docs/operations.md', 'create extension entityapi', 'is for a server of one\'s own; every test does it' ],
	[ 'docs/operations.md', 'entityapi-shim apply manifests/', 'is for a server of one\'s own' ],
	[ 'docs/operations.md', "load 'entityapi'", 'is for a server of one\'s own; t/shim/troubles does it' ],
	[ 'docs/operations.md', 'sudo install', 'systemd; t/shim/installed and t/shim/systemd look at the unit' ],
	[ 'docs/operations.md', 'psql -d postgres -f roles.sql', 'restores into another cluster; t/whole/dump_restore does it' ],
	[ 'docs/operations.md', 'ALTER EXTENSION entityapi UPDATE', 'is for an older version; t/whole/extension_update does it' ],
	[ 'docs/operations.md', 'create function pg_temp.rename_account', 'is for an older version; t/whole/names_at_updates does it' ],
	[ 'docs/upgrades.md', 'pg_basebackup -D rehearsal', 'is for two machines; t/whole/extension_update updates each version' ],
	[ 'examples/tracker/README.md', '. .local/env', 'is for a service of that example; t/whole/tracker asks it what stands there' ],
	[ 'CONTRIBUTING.md', 'make test', 'is what runs this' ],
	[ 'CONTRIBUTING.md', 'gdb -p PID', 'stops a session until somebody goes on' ]);

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir('eaXXXXXXXX', DIR => '/tmp');
my $copy = "$folder/copy";
my $port = EntityApi::Test::free_port();
my $serving;

chmod 0755, "$folder";
mkdir $copy or die "$copy: $!\n";
system("tar -C '$checkout' --exclude=./.git --exclude='./.local*' --exclude=node_modules -cf - . | tar -C '$copy' -xf -") == 0
  or die "no copy of the tree\n";

open my $patient, '>', "$folder/patient.json" or die "patient.json: $!\n";
print $patient '{"pool_wait_ms": 60000, "statement_timeout_ms": 60000, "request_timeout_ms": 60000, "connect_timeout_s": 60}';
close $patient;

# As somebody types it, in a shell without the settings of the test run
sub start
{
	my ($out, @command) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	POSIX::setsid();
	$SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
	delete @ENV{ qw(DATA MANIFESTS DEMO TESTS POSTGRES_UNDER), grep { /^(?:ENTITYAPI_|MAKE|PG[A-Z]+$)/ } keys %ENV };
	$ENV{PORT} = $port;
	# as make test and the library of tests have it, for a busy machine
	$ENV{SHIM_CONFIG} = "$folder/patient.json";
	$ENV{POSTGRES_CONF} = join "\n", grep { defined } $ENV{POSTGRES_CONF}, 'entityapi.bcrypt_cost = 10';
	chdir $copy or POSIX::_exit(126);
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', $out or POSIX::_exit(126);
	open STDERR, '>&', \*STDOUT;
	exec @command or POSIX::_exit(127);
}

END
{
	my $status = $?;

	if ($serving)
	{
		kill INT => -$serving;
		waitpid $serving, 0;
	}
	$? = $status;
}

# The service of the README: until Ctrl-C
sub serve
{
	$serving = start("$folder/run.log", 'make', 'run');
	my $up = EntityApi::Test::wait_until(300, sub {
			-e "$folder/run.log" && EntityApi::Test::slurp("$folder/run.log") =~ /^Stop it: Ctrl-C/m
			  || waitpid($serving, POSIX::WNOHANG()) != 0 });

	return $up && EntityApi::Test::slurp("$folder/run.log") =~ /^Stop it: Ctrl-C/m
	  || BAIL_OUT('make run does not serve: ' . EntityApi::Test::slurp("$folder/run.log"));
}

sub exempt
{
	my ($page, $block) = @_;

	for (@exempt)
	{
		return $_->[3] = 1 if $_->[0] eq $page && index($block->{text}, $_->[1]) == 0;
	}
	return 0;
}

# How a block is run
my %script = (
	sh  => sub { $_[0]{text} },
	sql => sub { "psql -XAtq -v ON_ERROR_STOP=1 <<'END OF SQL'\n$_[0]{text}END OF SQL\n" },
	yaml => sub {
		"cat >examples/billing/shown.yaml <<'END OF YAML'\n$_[0]{text}END OF YAML\n"
		  . "shim/entityapi-shim apply examples/billing --dry-run\nrm examples/billing/shown.yaml\n";
	});

sub run_page
{
	my ($page) = @_;
	my @blocks = grep { $_->{run} && !exempt($page, $_) } EntityApi::Test::Pages::blocks($page);
	my $script = "set -eo pipefail\n";
	my $number = 0;

	# What the index says of all pages but the first two
	$script .= ". .local/env && . examples/shell.sh\n" if $page !~ /^README|tutorial/;

	for my $block (@blocks)
	{
		$block->{out} = "$folder/" . ++$number;
		unlink $block->{out};
		next if $block->{text} eq "make run\n";
		$script .= "exec >$block->{out} 2>&1\n" . $script{ $block->{language} }->($block);
	}
	open my $file, '>', "$folder/script" or die "$!\n";
	print $file $script;
	close $file;
	waitpid start("$folder/rest", 'bash', "$folder/script"), 0;
	my $status = $?;
	my ($place, $last) = ($page, "$folder/rest");

	for my $block (@blocks)
	{
		if ($block->{text} eq "make run\n")
		{
			ok($serving, "$page:$block->{line}: make run");
			next;
		}
		last if !-e $block->{out};
		($place, $last) = ("$page:$block->{line}", $block->{out});
		next if !defined $block->{answer};
		my $out = EntityApi::Test::slurp($block->{out});
		ok(EntityApi::Test::Pages::shows($block->{answer}, $out), "$place answers as it shows")
		  or diag "$block->{text}--- shown:\n$block->{answer}--- came:\n$out";
	}
	is($status, 0, "$page: " . @blocks . ' blocks run')
	  or diag "$place and what it said:\n", map { EntityApi::Test::slurp($_) } grep { -e } $last;
	return;
}

# The manifest stands before "make run" in the README.
my ($first) = grep { $_->{run} && !exempt('README.md', $_) } EntityApi::Test::Pages::blocks('README.md');
open my $file, '>', "$folder/script" or die "$!\n";
print $file $first->{text};
close $file;
waitpid start("$folder/rest", 'bash', '-e', "$folder/script"), 0;
is($?, 0, 'the first manifest is written');
serve();

# What anybody who may make schemas can prepare: one that is called like the
# superuser, which his names are looked for in first, and the one after it
{
	package Served;

	sub psql
	{
		my ($self, $sql, %options) = @_;
		my $done = EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', '-',
				'-d', "host=$self->{PGHOST} port=$self->{PGPORT} dbname=$self->{PGDATABASE} user=" . ($options{user} // $self->{PGUSER}) ], in => $sql);

		chomp $done->{out};
		return $done->{status} == 0 ? $done->{out} : die "psql: $done->{err}\n";
	}
}
my $served = bless { EntityApi::Test::slurp("$copy/.local/env") =~ /\b(PG[A-Z]+)=(\S+)/g }, 'Served';
$served->psql('create role mallory login');
EntityApi::Test::Traps::set($served, $served->{PGDATABASE}, $_) for $served->{PGUSER}, 'public';
$served->psql(q{select jsonb_build_object('a', '1'::jsonb)}, user => 'mallory');
is(EntityApi::Test::Traps::caught($served), 'mallory', '(a trap catches)');
$served->psql('truncate public.caught');

my ($line) = EntityApi::Test::slurp("$folder/run.log") =~ /^(curl .*)$/m;
waitpid start("$folder/line", 'bash', '-c', $line // 'false'), 0;
like(EntityApi::Test::slurp("$folder/line"), qr/"type":"invoices".*"type":"customers"/, 'the line that it prints works when pasted')
  or diag $line;
my $env = EntityApi::Test::slurp("$copy/.local/env");
is((stat "$copy/.local/env")[2] & 07777, 0600, 'the key in .local/env is closed to others');

my $ran = 0;
for my $page (EntityApi::Test::Pages::pages())
{
	my $times = $page eq 'docs/tutorial.md' ? 2 : 1;

	next unless grep { $_->{run} && !exempt($page, $_) } EntityApi::Test::Pages::blocks($page);
	run_page($page) for 1 .. $times;
	$ran++;
}
cmp_ok($ran, '>', 5, 'pages have examples');
is(EntityApi::Test::slurp("$copy/.local/env"), $env, 'make up meanwhile has left address and key as they were');
is(join("\n", map { "$_->[0]: $_->[1]" } grep { !$_->[3] } @exempt), '', 'what is exempt is still there');

is(EntityApi::Test::Traps::caught($served), '', 'no example runs what others have made');

kill INT => -$serving;
waitpid $serving, 0;
$serving = undef;
is(HTTP::Tiny->new(timeout => 2)->get("http://127.0.0.1:$port/actuator/health")->{status}, 599, 'Ctrl-C ends it');

done_testing;
