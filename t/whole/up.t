# "make up" and "make down": what the printed text promises, and that both may
# be repeated.

use strict;
use warnings;

use File::Temp ();
use HTTP::Tiny;
use IO::Socket::INET;
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $folder = File::Temp->newdir('eaXXXXXXXX', DIR => '/tmp');
my $data = "$folder/data";
my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1)
  or die "no free port: $@\n";
my $port = $socket->sockport;

chmod 0755, "$folder";

# A shell without the settings of the test run
sub shell
{
	my ($script) = @_;

	return EntityApi::Test::run(
		[ 'env', '-u', 'ENTITYAPI_PRIVATE_BIN', '-u', 'TESTS', 'bash', '-c', $script ]);
}

sub make
{
	my ($verb, @variables) = @_;

	return shell(
		"make -s -C '$checkout' $verb DATA='$data' PORT=$port DEMO=0 MANIFESTS=examples/billing @variables");
}

# Whatever happens in between, nothing is left running.
END
{
	my $status = $?;

	make('down') if defined $data && -e "$data/lock";
	$? = $status;
}

my $taken = make('up');
isnt($taken->{status}, 0, 'a taken port is refused');
like($taken->{err}, qr/Port $port is taken/, 'and named');
close $socket;

my $up = make('up');
is($up->{status}, 0, 'make up') or diag $up->{out}, $up->{err};
like($up->{out}, qr{entityapi answers at http://127\.0\.0\.1:$port}, 'the address is printed');

my ($line) = $up->{out} =~ /^(curl .*)$/m;
my $answer = shell($line // 'false');
like($answer->{out}, qr/"username": *"superadmin"/, 'the printed line works when pasted')
  or diag $line // $up->{out}, $answer->{err};

my $env = shell(". '$data/env' && echo \"\$ENTITYAPI_URL \$ENTITYAPI_SUPERADMIN_USERNAME\" "
	  . '&& test -n "$ENTITYAPI_SUPERADMIN_PASSWORD" '
	  . '&& psql -XAtc "select rolsuper from pg_roles where rolname = current_user"');
is($env->{out}, "http://127.0.0.1:$port superadmin\nt\n", 'DATA/env can be sourced');
is((stat "$data/env")[2] & 07777, 0600, 'and is closed to others');

my $before = EntityApi::Test::slurp("$data/env");
my $pid = EntityApi::Test::slurp(-e "$data/shim.pid" ? "$data/shim.pid" : "$data/state/shim.pid");
my $again = make('up');
is($again->{status}, 0, 'make up again') or diag $again->{out}, $again->{err};
is(EntityApi::Test::slurp("$data/env"), $before, 'keeps the credentials');
is(EntityApi::Test::slurp(-e "$data/shim.pid" ? "$data/shim.pid" : "$data/state/shim.pid"),
	$pid, 'and leaves the shim alone');

is(make('down')->{status}, 0, 'make down');
is(HTTP::Tiny->new(timeout => 2)->get("http://127.0.0.1:$port/actuator/health")->{status},
	599, 'stops the service');
is(make('down')->{status}, 0, 'make down again');

done_testing;
