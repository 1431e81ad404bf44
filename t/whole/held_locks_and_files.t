# A lock that others hold too long; files that never end, and long ones;
# descriptions of several versions in turn.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Accountant']);

# Hold locks while something is done.
sub holding
{
	my ($statement, $work) = @_;
	my $pid = EntityApi::Test::start(
		[ EntityApi::Test::server_program('psql'), '-X', '-d', $cluster->conninfo('postgres') ],
		in => "begin;\n$statement;\nselect pg_sleep(300);\n");

	EntityApi::Test::wait_until(30, sub {
			$cluster->psql("select count(*) from pg_stat_activity where query like 'select pg_sleep(300)%'") > 0;
		}) or die "nothing is held\n";
	my @result = $work->();
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like 'select pg_sleep(300)%'");
	waitpid $pid, 0;
	return @result;
}

subtest 'lock_timeout' => sub {
	$cluster->psql("alter role entityapi_shim set lock_timeout = '100ms'");
	$shim->stop;
	$shim->begin;
	my $patch = sub {
		return $shim->http(PATCH => "/manage/tenants/$tenant->{id}/users/$ann->{id}",
			{ token => $shim->superadmin, json => { email => 'ann@acme.example' } });
	};

	is($patch->()->{status}, 200, 'without anybody in the way');
	holding("select 1 from entityapi.account where username = 'ann' for update", sub {
			my $answer = $patch->();

			is($answer->{status}, 503, 'with somebody');
			is($answer->{headers}{'retry-after'}, 1, 'who may be gone soon');
			is($answer->{json}{errors}[0]{code}, 'UNAVAILABLE', 'it is no fault of ours');
		});
	is($patch->()->{status}, 200, 'and is');
	ok($shim->said(qr/given up after 3 conflicts/), 'tried three times');
	$cluster->psql('alter role entityapi_shim reset lock_timeout');
};

sub apply
{
	my ($path, $limit) = @_;
	my $done = EntityApi::Test::run(
		[ 'timeout', $limit, EntityApi::Test::private_program('entityapi-shim'), 'apply', '--dry-run', $path ],
		env => { ENTITYAPI_DATABASE => $cluster->conninfo('postgres') });

	return ($done->{status}, $done->{err});
}

subtest 'files that are none' => sub {
	my $folder = EntityApi::Test::folder();

	POSIX::mkfifo("$folder/x.yaml", 0600) or die "mkfifo: $!\n";
	symlink '/dev/zero', "$folder/zero.yaml";
	for my $path ("$folder/x.yaml", "$folder/zero.yaml", '/dev/tty')
	{
		my $name = $path =~ s{/dev/tty}{$folder/tty.yaml}r;
		symlink '/dev/null', $name if $path eq '/dev/tty';
		my ($status, $said) = apply($name, 120);

		is($status, 2, "$name is refused");
		like($said, qr/neither a regular file nor a folder/, 'by its kind');
	}
	my $below = EntityApi::Test::folder();
	POSIX::mkfifo("$below/y.yaml", 0600) or die "mkfifo: $!\n";
	is((apply($below, 120))[0], 2, 'below a folder, too');
};

# Processor time of the conversion alone, of a file and of one ten times as long
sub seconds_for
{
	my ($write) = @_;
	my @times;

	for my $n (20_000, 200_000)
	{
		my $folder = EntityApi::Test::folder();
		open my $file, '>', "$folder/x.yaml" or die "x.yaml: $!\n";
		$write->($file, $n);

		# the fault at the end keeps it from the database
		print $file "\"a\": 1\n\"a\": 2\n";
		close $file or die "x.yaml: $!\n";
		my $before = (times)[2];
		my ($status, $said) = apply("$folder/x.yaml", 300);
		push @times, (times)[2] - $before;
		like($said, qr/the key "a" is repeated/, "$n, and the fault in them");
	}
	diag sprintf '%.2f s and %.2f s', @times;
	return @times;
}

# Ten times as much takes a hundred times as long where each is held against all
subtest 'long mappings' => sub {
	my ($short, $long) = seconds_for(sub { my ($file, $n) = @_; print $file "key$_: $_\n" for 1 .. $n });
	cmp_ok($long, '<', 35 * ($short + 0.05), 'keys');
	($short, $long) = seconds_for(sub {
			my ($file, $n) = @_;
			print $file "keys:\n";
			print $file "- &a$_ x\n" for 1 .. $n;
			print $file "- *a$_\n" for 1 .. $n;
		});
	cmp_ok($long, '<', 35 * ($short + 0.05), 'anchors');
};

subtest 'descriptions in turn' => sub {
	my $many = EntityApi::Test->cluster;

	$many->psql(<<'SQL');
select count(*) from entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Versions", "metadata": {"name": "versions"},
		"spec": {"versions": {"1": {"status": "ACTIVE"}, "2": {"status": "ACTIVE"}}}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Thing"},
		"spec": {"fields": {"name": {"type": "string"}}, "permissions": {"*": ["read"]}}}]')
SQL

	# one session; what is stored changes behind its back
	my $out = $many->psql(<<'SQL');
create temp table seen as select v, entityapi.openapi(v)::text as text from unnest(array[1, 2]) v;
update entityapi.openapi_document set document = '{"made": "anew"}';
select string_agg((entityapi.openapi(v)::text = (select text from seen s where s.v = a.v))::text, ' ')
from unnest(array[1, 2, 1, 2]) a(v);
SQL
	like($out, qr/^true true true true$/m, 'each is made once');
};

done_testing();
