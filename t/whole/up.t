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
my $port = EntityApi::Test::free_port();
my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1, ReuseAddr => 1)
  or die "port $port: $@\n";

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

my @hooked = ("DATA='$folder/other'", "MANIFESTS='$folder/hooked'");

# Whatever happens in between, nothing is left running.
END
{
	my $status = $?;

	make('down') if defined $data && -e "$data/lock";
	make('down', @hooked) if defined $data && -e "$folder/other/lock";
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

like($up->{out}, qr{^Stop it: make down DATA=\Q$data\E$}m, 'how to stop just that is printed');

my $before = EntityApi::Test::slurp("$data/env");
my $pid = EntityApi::Test::slurp(-e "$data/shim.pid" ? "$data/shim.pid" : "$data/state/shim.pid");
my $again = make('up');
is($again->{status}, 0, 'make up again') or diag $again->{out}, $again->{err};
is(EntityApi::Test::slurp("$data/env"), $before, 'keeps the credentials');
is(EntityApi::Test::slurp(-e "$data/shim.pid" ? "$data/shim.pid" : "$data/state/shim.pid"),
	$pid, 'and leaves the shim alone');

# Settings, as variables of make, by a file, and in the file that comes of it
my $state = -e "$data/shim.json" ? $data : "$data/state";
my $http = HTTP::Tiny->new(timeout => 60);

sub allowed
{
	my ($origin, $at) = @_;

	return $http->get("http://127.0.0.1:" . ($at // $port) . '/api/v1/openapi.json', { headers => { origin => $origin } })->{headers}{'access-control-allow-origin'};
}

sub print_to
{
	my ($path, $text) = @_;

	open my $out, '>', $path or die "$path: $!\n";
	print $out $text;
	close $out;
	return;
}

is(allowed('http://localhost:3000'), undef, 'no other origin may call');
is(make('up', 'CORS=http://localhost:3000')->{status}, 0, 'make up with CORS');
is(allowed('http://localhost:3000'), 'http://localhost:3000', 'lets one');
print_to("$folder/settings.json", '{"cors_origins": "http://a.example", "access_log": false}');
my $set = make('up', "SHIM_CONFIG='$folder/settings.json'");
is($set->{status}, 0, 'make up with SHIM_CONFIG') or diag $set->{err};
is(allowed('http://a.example'), 'http://a.example', 'takes the settings of the file');
is((stat "$state/shim.json")[2] & 07077, 0, 'which others cannot read');
print_to("$folder/broken.json", '{"cors_origins": ');
my $broken = make('up', "SHIM_CONFIG='$folder/broken.json'");
isnt($broken->{status}, 0, 'a file that is no JSON is refused');
like($broken->{err}, qr/broken\.json: no JSON object/, 'and named');
is(allowed('http://a.example'), 'http://a.example', 'and the service goes on');

my $elsewhere = EntityApi::Test::free_port();
my $edited = EntityApi::Test::slurp("$state/shim.json") =~ s/127\.0\.0\.1:$port/127.0.0.1:$elsewhere/r =~ s/a\.example/b.example/r;
print_to("$state/shim.json", $edited);
my $kept = make('up');
is($kept->{status}, 0, 'make up after the file was changed by hand') or diag $kept->{err};
like($kept->{out}, qr/^Kept, as it was changed by hand: .*shim\.json$/m, 'keeps it');
like($kept->{out}, qr{entityapi answers at http://127\.0\.0\.1:$elsewhere}, 'and tells where the shim is');
is(EntityApi::Test::slurp("$state/shim.json"), $edited, 'nothing is lost');
is(allowed('http://b.example', $elsewhere), 'http://b.example', 'the shim has what it says');
unlink "$state/shim.json";
is(make('up')->{status}, 0, 'make up after it was removed');
is(allowed('http://b.example'), undef, 'begins anew');

is(make('down')->{status}, 0, 'make down');
is(HTTP::Tiny->new(timeout => 2)->get("http://127.0.0.1:$port/actuator/health")->{status},
	599, 'stops the service');
my $nothing = make('down');
is($nothing->{status}, 0, 'make down again');
is($nothing->{out}, "Nothing is running in $data.\n", 'says that nothing ran');

# The functions of hooks are made in the database that the first try leaves
subtest 'manifests that need something of the database' => sub {
	mkdir "$folder/hooked";
	mkdir "$folder/other";
	print_to("$folder/hooked/all.yaml", <<~'YAML');
		apiVersion: entityapi/v1
		kind: Service
		metadata: {name: hooked}
		spec: {tenancy: POOL}
		---
		apiVersion: entityapi/v1
		kind: Entity
		metadata: {name: Visit}
		spec: {fields: {at: {type: datetime}}}
		---
		apiVersion: entityapi/v1
		kind: Hook
		metadata: {name: Look}
		spec: {entity: Visit, phase: guard, on: [create], function: clinic.look}
		YAML
	print_to("$folder/look.sql", <<~'SQL');
		create schema clinic authorization entityapi_owner;
		set role entityapi_owner;
		create function clinic.look(context jsonb) returns jsonb language sql stable as 'select null::jsonb';
		SQL
	my $first = make('up', @hooked);
	isnt($first->{status}, 0, 'are not applied at first');
	like($first->{err}, qr/the function "clinic\.look" cannot be called/, 'which is told');
	my ($next) = $first->{err} =~ /^  (\. \S+ && psql -f FILE && make .*)$/m;
	like($next, qr{^\. \Q$folder\E/other/env && psql -f FILE && make up DATA=\Q$folder\E/other MANIFESTS=\Q$folder\E/hooked$}, 'with what to do');
	my $done = shell("cd '$checkout' && export PORT=$port && " . ($next // 'false') =~ s{FILE}{'$folder/look.sql'}r);
	is($done->{status}, 0, 'that done, they are served') or diag $done->{out}, $done->{err};
	is($http->get("http://127.0.0.1:$port/actuator/health")->{status}, 200, 'at the port');
	make('down', @hooked);
};

done_testing;
