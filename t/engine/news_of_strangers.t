# Whoever may connect can make news for all sessions without pause: roles,
# functions and schemas that no table of an entity has to do with.  It takes
# nothing away from requests.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster, pool_size => 2);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Accountant']);

$cluster->psql('create role stranger login');

# A password that is sent as it is stored takes no time.
my %news = (
	'his own password' => "alter role stranger password 'md5" . 'a' x 32 . "'",
	'a function of his own' => "create or replace function pg_temp.f() returns int language sql as 'select 1'; drop function pg_temp.f()");

# The stranger's statement again and again, while something is done
sub while_repeated
{
	my ($statement, $work) = @_;
	my $pid = EntityApi::Test::start([ 'sh', '-c', 'yes "$1" | "$2" -Xq -d "$3"', '-', "$statement;",
			EntityApi::Test::server_program('psql'), $cluster->conninfo('stranger') ], out => '/dev/null');
	EntityApi::Test::wait_until(30, sub {
			$cluster->psql("select count(*) from pg_stat_activity where usename = 'stranger'") > 0;
		}) or die "nobody makes news\n";
	$work->();
	is($cluster->psql("select count(*) from pg_stat_activity where usename = 'stranger'"), 1, 'he has gone on all the time');
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = 'stranger'");
	waitpid $pid, 0;
	return;
}

for my $name (sort keys %news)
{
	subtest $name => sub {
		while_repeated($news{$name}, sub {
				my %statuses;

				for (1 .. 100)
				{
					my $answer = $shim->http(GET => '/api/v1/customers?page[totals]=true', { token => $ann });

					$statuses{ $answer->{status} }++;
				}
				is_deeply(\%statuses, { 200 => 100 }, 'all requests are answered');
			});
	};
}

# What a table does use is heard of at once, each time, on each node: that of the
# tenant looks at parts of tables, the others at tables.
subtest 'news of what is in use' => sub {
	my $nodes = $cluster->nodes;
	my $status = sub { join ' ', map { $shim->http(GET => '/api/v1/customers', { token => $ann })->{status} } 1 .. $nodes };
	my $all = sub { join ' ', ($_[0]) x $nodes };
	my $table = $cluster->psql("select oid::regclass from pg_class where relname = 'customer' and relkind = 'r'");
	my ($schema) = $table =~ /^(.*)[.]/;
	my $granted = "grant usage on schema $schema to entityapi_owner";

	$cluster->psql(<<~"SQL");
		create role boss superuser;
		create role keeper superuser;
		create schema used;
		create function used.holds(uuid) returns boolean language sql immutable as 'select true';
		alter function used.holds owner to keeper;
		alter table $table add constraint held check (used.holds(id));
		SQL
	is($status->(), $all->(200), 'a function of a superuser');
	for my $news ([ 'alter role keeper nosuperuser', 'alter role keeper superuser' ],
		[ 'alter function used.holds owner to stranger', 'alter function used.holds owner to keeper' ],
		[ "alter schema $schema owner to stranger; $granted", "alter schema $schema owner to boss; $granted" ],
		[ 'alter role boss nosuperuser', 'alter role boss superuser' ])
	{
		my ($bad, $good) = @$news;

		$cluster->psql($bad);
		is($status->(), $all->(500), $bad);
		$cluster->psql($good);
		is($status->(), $all->(200), $good);
	}
};

is($shim->stop, 0, 'ends with 0');
my $repeated = () = EntityApi::Test::slurp($shim->err) =~ /given up after/g;
is($repeated, 0, 'none was given up');
done_testing();
