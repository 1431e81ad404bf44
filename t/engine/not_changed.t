# Maintenance is no change: while tables are vacuumed, analyzed, indexed anew,
# given statistics, rights and options, no request fails, neither of the service
# nor of a session's own.  What news of a table are about is looked at.  Only what
# writes a table of an entity anew (VACUUM FULL, CLUSTER) is a change for snapshots
# from before.
#
# On several nodes maintenance and a session's own statements lock what they lock
# on one node after the other, so Citus may end one of them: such a one is made
# again.  The service's requests are not to be ended for good.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Cases;

my $seconds = $ENV{ENTITYAPI_MAINTENANCE_SECONDS} || 2;
my $cluster = EntityApi::Test->cluster(conf => [ 'autovacuum = off' ]);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, pool_size => 3);
my $tenant = $shim->tenant('acme')->{id};
my $ed = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');
my $group = $ed->good(201, POST => '/groups', data => { type => 'groups', attributes => { title => 'g' } })->{json}{data}{id};
my $item = $ed->good(201, POST => '/items', data => { type => 'items', attributes => { name => 'one', rank => 1 } })->{json}{data}{id};

$cluster->psql(<<"SQL");
insert into app.item (tenant_id, id, name, state, rank, group_id, created_at, updated_at)
select '$tenant', gen_random_uuid(), 'n' || i, 'OPEN', i, '$group', now(), now() from generate_series(1, 200) i;
create role somebody;
create table public.unrelated (n int);
create table token (access text);
insert into token values ('$ed->{token}{accessToken}');
analyze token;
create function status(target text) returns int language sql volatile as \$\$
	select h.status from token t, entityapi.handle('GET', '/api/v1/' || target, jsonb_build_object('authorization', 'Bearer ' || t.access), null, null) h
\$\$;
SQL

# --- what goes on meanwhile ---------------------------------------------------------

my @own = split /\n/, $cluster->psql(<<'SQL');
select oid::regclass from pg_class where relnamespace = 'entityapi'::regnamespace and relkind = 'r' order by relname
SQL

# in forms that Citus takes, too
my %maintenance = (
	'of tables that were made' => [
		'vacuum app.item', 'analyze app.item', 'vacuum (freeze, analyze) app."group"', 'vacuum app.item',
		'create index maintained on app.item (name)', 'reindex index app.maintained', 'analyze app.item', 'drop index app.maintained',
		'create index concurrently if not exists maintained on app.item (name)', 'drop index concurrently if exists app.maintained',
		'create statistics if not exists app.maintained on state, rank from app.item', 'alter statistics app.maintained set statistics 50',
		'alter table app.item set (fillfactor = 90)', 'alter table app.item reset (fillfactor)', 'vacuum app.item',
		$cluster->nodes > 1 ? () : 'alter table app.item alter rank set statistics 50', q{comment on table app.item is 'maintained'} ],
	'of the service\'s own' => [
		'vacuum', 'analyze', (map { ("vacuum full $_", "analyze $_", "reindex table $_") } grep { !/audit/ } @own), 'vacuum entityapi.entity' ],
	'of rights' => [
		'grant select on app.item to somebody', 'revoke select on app.item from somebody', 'grant select (name) on app.item to somebody',
		'revoke select (name) on app.item from somebody', 'grant select on public.unrelated to somebody', 'revoke select on public.unrelated from somebody',
		'grant select on entityapi.entity to somebody', 'revoke select on entityapi.entity from somebody', "alter role somebody password 'x'",
		'create function public.made() returns int language sql return 1', 'drop function public.made()', 'create table public.more (n int)', 'drop table public.more' ]);

# --- who works ----------------------------------------------------------------------

# A child that leaves what it says in a file
my $folder = EntityApi::Test::folder();

sub beside
{
	my ($name, $work) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	my $said = eval { $work->() } // $@;
	open my $out, '>', "$folder/$name" or POSIX::_exit(1);
	print $out $said;
	close $out;
	POSIX::_exit(0);
}

sub maintain
{
	my ($until, @statements) = @_;
	my $rounds = 0;

	# once at least, however busy the machine is
	while (time < $until || !$rounds)
	{
		if ($cluster->nodes > 1)
		{
			$cluster->psql($_) for @statements;
		}
		else
		{
			$cluster->psql(join '', map { "$_;\n" } @statements);
		}
		$rounds++;
	}
	return "fine $rounds";
}

my @targets = ('items?page[totals]=true&page[size]=2', "items/$item", "groups/$group?include=items", 'items?filter=rank==7', "groups/$group/items?page[totals]=true&page[size]=1");

sub client
{
	my ($until) = @_;
	my ($n, %wrong) = (0);

	while (time < $until || !$n)
	{
		for my $request ((map { [ GET => "/$_" ] } @targets),
			[ PATCH => "/items/$item", headers => { 'If-Match' => '*' }, data => { type => 'items', id => $item, attributes => { rank => 1 } } ])
		{
			my $answer = $ed->call(@$request);

			$wrong{"@$request[0, 1]: $answer->{status} $answer->{body}"}++ if $answer->{status} !~ /^20[04]$/;
			$n++;
		}
	}
	return %wrong ? join("\n", %wrong) : "fine $n";
}

# In a loop of a session's own; with transactions that see what was before
sub session
{
	my ($time, $level) = @_;
	my $commit = $level eq 'read committed' ? 'commit' : 'if n % 20 = 0 then commit; end if';
	my $targets = join ', ', map { "'$_'" } @targets;
	my $result = $cluster->insist(<<"SQL");
set default_transaction_isolation = '$level';
do \$\$
declare
	n int := 0;
	s int;
	until timestamptz := clock_timestamp() + interval '$time s';
begin
	while clock_timestamp() < until or n < 20 loop
		s := status((array[$targets])[1 + n % @{[scalar @targets]}]);
		if s <> 200 then
			raise exception 'status % of the %th', s, n;
		end if;
		n := n + 1;
		$commit;
	end loop;
	raise notice 'fine %', n;
end
\$\$;
SQL
	return $result->{err} =~ /NOTICE:  (fine \d+)/ ? $1 : $result->{err};
}

for my $kind (sort keys %maintenance)
{
	subtest $kind => sub {
		my $until = time + $seconds;
		my %pids = (
			maintenance => beside(maintenance => sub { maintain($until, @{ $maintenance{$kind} }) }),
			client => beside(client => sub { client($until) }),
			committed => beside(committed => sub { session($seconds, 'read committed') }),
			repeatable => beside(repeatable => sub { session($seconds, 'repeatable read') }));

		waitpid $_, 0 for values %pids;
		for my $who (sort keys %pids)
		{
			my $said = EntityApi::Test::slurp("$folder/$who");

			like($said, qr/^fine [1-9]/, $who) or diag $said;
			note("$who: $said");
		}
		is(join("\n", EntityApi::Test::slurp($cluster->log) =~ /(entityapi request .*failed: .*|.*terminated by signal.*)/g), '', 'nothing in the log');
	};
}

done_testing;
