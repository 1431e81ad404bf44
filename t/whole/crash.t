# Immediate stops at random points of mixed work: writes, atomic operations,
# changes of the manifests, tenants that are deleted.  Behind each of them:
# what was acknowledged is there, once; the log has a record for each row that
# was written, and none for what was not; a change of the manifests is whole or
# not at all; what deleted tenants have left goes.
#
# What dies are the processes, not the machine: what they have written is in the
# system's cache and stays, so fsync is off.  It would guard against the loss of
# power, and that is not asked here; neither are disks that lie.
#
# "make crash RUNS=1000" for more than make test has.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/crash";

use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;
use Writers;

my $runs = $ENV{ENTITYAPI_CRASH_RUNS} || 10;
my $seed = $ENV{ENTITYAPI_CRASH_SEED} // time ^ $$;
my $json = JSON::PP->new->canonical;
my $true = JSON::PP::true;

srand $seed;
note "ENTITYAPI_CRASH_SEED=$seed";

# -------- two states of the declarations --------

my $folder = EntityApi::Test::folder();
my @all = (permissions => { Editor => [qw(create read update delete)] });

sub ref_to { my ($target, $relation, @more) = @_; return { type => 'ref', target => $target, relation => $relation, @more } }

sub manifest
{
	my ($which) = @_;
	my $more = $which eq 'B';
	my %item = (mark => { type => 'string', required => $true, index => $true }, note => { type => 'string' },
		n => { type => 'integer', $more ? (minimum => 0, required => $true, index => $true) : () });

	if ($more)
	{
		$item{color} = { type => 'string', enum => [qw(RED BLUE)], default => 'RED', required => $true, index => $true };
		$item{extras} = ref_to('Extra', 'ManyToMany');
	}
	my %part = (mark => { type => 'string' }, item => ref_to('Item', 'ManyToOne', required => $true, onDelete => 'cascade'));
	my @documents = map { { apiVersion => 'entityapi/v1', %$_ } }
	  { kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	  { kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {} } } },
	  { kind => 'Entity', metadata => { name => 'Item' }, spec => { fields => \%item, @all } },
	  { kind => 'Entity', metadata => { name => 'Part' }, spec => { fields => \%part, @all } };

	push @documents, { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'Extra' },
		spec => { fields => { word => { type => 'string', unique => $true } }, @all } } if $more;
	open my $file, '>', "$folder/$which.json" or die "$which: $!\n";
	print $file $json->encode(\@documents);
	close $file;
	return "$folder/$which.json";
}

my %manifests = map { $_ => manifest($_) } qw(A B);

# -------- the cluster --------

my $cluster = EntityApi::Test->cluster(conf => [ 'entityapi.access_token_ttl = 86400', 'checkpoint_timeout = 30s',
		'max_wal_size = 32MB', 'restart_after_crash = on', 'deadlock_timeout = 200ms' ]);
$cluster->apply($manifests{A});
my $shim = EntityApi::Test->shim($cluster, pool_size => 6, sweep_interval_ms => 40, keep_alive => 'yes');
my $root = $shim->superadmin;
my $tenant = $shim->tenant('ours')->{id};
my $ann = $shim->user($tenant, 'ann', ['Editor']);

my $checks = -e EntityApi::Test::server_program('pg_config') && do
{
	chomp(my $share = `@{[EntityApi::Test::server_program('pg_config')]} --sharedir`);
	-e "$share/extension/amcheck.control";
};

$cluster->psql(($checks ? 'create extension amcheck;' : '') . <<'SQL');
-- rows of a tenant that take erasure several statements
create function public.fill(tenant uuid) returns void language plpgsql as $$
begin
	if exists (select from pg_attribute where attrelid = 'app.item'::regclass and attname = 'color') then
		insert into app.item (tenant_id, id, mark, n, color, created_at, updated_at)
			select tenant, gen_random_uuid(), 'fill', 1, 'RED', now(), now() from generate_series(1, 700);
	else
		insert into app.item (tenant_id, id, mark, n, created_at, updated_at)
			select tenant, gen_random_uuid(), 'fill', 1, now(), now() from generate_series(1, 700);
	end if;
	insert into app.part (tenant_id, id, item_id, created_at, updated_at)
		select tenant, gen_random_uuid(), id, now(), now() from app.item i where i.tenant_id = fill.tenant;
end $$;
-- what the tables look like, indexes and constraints included
create function public.shape() returns text language sql as $$
	select md5(string_agg(x, e'\n' order by x)) from (
		select format('%s.%s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
			from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
			left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
			where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
		union all select pg_get_indexdef(indexrelid) || indisvalid from pg_index join pg_class c on c.oid = indexrelid
			where c.relnamespace = 'app'::regnamespace
		union all select conrelid::regclass || conname || pg_get_constraintdef(pg_constraint.oid) from pg_constraint join pg_class c on c.oid = conrelid
			where connamespace = 'app'::regnamespace and contype <> 'n'
		union all select tablename || policyname || coalesce(qual, '') from pg_policies where schemaname = 'app'
		union all select name || definition from entityapi.entity) s(x) $$;
-- rows that a tenant has anywhere, its own but for
create function public.left_of(tenant uuid) returns bigint language plpgsql as $$
declare
	t regclass;
	n bigint;
	total bigint := 0;
begin
	for t in select c.oid from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relkind = 'r' and c.relname !~ '^audit'
	loop
		execute format('select count(*) from %s where tenant_id = $1', t) into n using tenant;
		total := total + n;
	end loop;
	return total;
end $$;
SQL

# Both states as they are without a crash
my %shape;
$cluster->psql("select public.fill('$tenant')");
for my $which (qw(B A B A))
{
	$cluster->apply((map { ('--allow-data-loss', $_) } qw(Item.color Item.extras Extra)), $manifests{$which});
	my $shape = $cluster->psql('select public.shape()');
	is($shape, $shape{$which}, "$which is always the same") if $shape{$which};
	$shape{$which} = $shape;
}
isnt($shape{A}, $shape{B}, 'A is not B');
$cluster->psql("delete from app.part where tenant_id = '$tenant'; delete from app.item where tenant_id = '$tenant'");

# -------- crashes --------

sub children
{
	my ($pid) = @_;
	return map { (eval { EntityApi::Test::slurp($_) } // '') =~ /^(\d+) .*\) \S $pid /s ? $1 : () } glob '/proc/[0-9]*/stat';
}

sub postmaster { my ($pid) = EntityApi::Test::slurp($cluster->data . '/postmaster.pid') =~ /^(\d+)/; return $pid }

# The socket's lock file and the memory are found free when nobody is left.
sub kill_all
{
	my $pid = postmaster();

	# so that it starts no other one meanwhile
	kill STOP => $pid;
	my @all = ($pid, children($pid));
	kill KILL => @all;
	EntityApi::Test::wait_until(30, sub { !grep { kill 0, $_ } @all }) or die "processes do not end\n";
	return;
}

sub answers { return EntityApi::Test::wait_until(60, sub { $cluster->try_psql('select 1')->{status} == 0 }) }

my %crashes = (
	'immediate stop' => sub { $cluster->stop('immediate')->start },
	'all processes killed' => sub { kill_all(); ($cluster->nodes)[0]->start },
	'one process killed' => sub {
		my @some = children(postmaster());
		my $one = $some[ rand @some ];
		kill KILL => $one;

		# Until it has noticed it answers as before; then it lets nobody in.
		EntityApi::Test::wait_until(60, sub { !kill 0, $one }) or die "$one does not end\n";
		answers() or die "PostgreSQL is not back\n";
	},
	'stopped, and again while it recovers' => sub {
		$cluster->stop('immediate');
		my $pid = EntityApi::Test::start([ EntityApi::Test::server_program('pg_ctl'), '-D', $cluster->data, '-W', '-s',
				'-p', EntityApi::Test::private_program('postgres'), '-l', $cluster->log, 'start' ], service => 1);
		waitpid $pid, 0;
		sleep rand 0.15;
		EntityApi::Test::wait_until(30, sub { -s $cluster->data . '/postmaster.pid' && postmaster() });
		kill_all();
		$cluster->start;
	});

# -------- what is there afterwards --------

my @problems;
my (%sum, @left, $in_force);
my $state = 'A';

sub problem
{
	my ($run, $text) = @_;

	push @problems, "run $run: $text";
	diag $problems[-1] if @problems <= 20;
	return;
}

# The notes of a run: [kind, words...] of what was last intended and last done
sub notes
{
	my ($run) = @_;
	my (%wanted, %known, @order);

	for my $file (glob "$folder/*.$run")
	{
		for my $line (split /\n/, EntityApi::Test::slurp($file))
		{
			my ($sign, $kind, $key, @rest) = split / /, $line;

			problem($run, $line) if $sign eq 'X';
			next if $sign eq 'X';
			push @order, $kind . $key if $sign eq '?' && !$wanted{"$kind $key"};
			($sign eq '?' ? $wanted{"$kind $key"} : $known{"$kind $key"}) = [@rest];
			$sum{ $sign eq '!' ? 'acknowledged' : 'intended' }++;
			$sum{"$kind"}++ if $sign eq '!';
		}
		unlink $file;
	}
	return (\%wanted, \%known);
}

# One of the two states between which the crash came
sub fits
{
	my ($found, $known, $wanted) = @_;

	return 1 if $found == $known;
	return 0 if $found != $wanted;
	$sum{'done without an answer'}++;
	return 1;
}

sub rows { return map { [ split /\|/, $_, -1 ] } split /\n/, $cluster->psql($_[0]) }

sub check_items
{
	my ($run, $wanted, $known) = @_;
	my %found;

	for my $row (rows("select i.mark, i.n, count(*) over (partition by i.mark), (select count(*) from app.part p where p.tenant_id = i.tenant_id and p.item_id = i.id)
		from app.item i where i.tenant_id = '$tenant' and i.mark like '$run-%'"))
	{
		my ($mark, $n, $times, $parts) = @$row;

		problem($run, "$mark is there $times times") if $times > 1;
		$found{$mark} = [ $n, $parts ];
		problem($run, "$mark was never written") unless $wanted->{"item $mark"} || $wanted->{"batch $mark"};
	}
	for my $key (keys %$wanted)
	{
		my ($kind, $mark) = split / /, $key;
		my ($n, $parts) = @{ $found{$mark} // [ 0, 0 ] };

		if ($kind eq 'item')
		{
			problem($run, "$mark is $n, acknowledged was " . ($known->{$key}[0] // 0) . ", then came $wanted->{$key}[0]")
			  unless fits($n, $known->{$key}[0] // 0, $wanted->{$key}[0]);
		}
		elsif ($kind eq 'batch')
		{
			problem($run, "$mark has $parts parts, acknowledged was " . ($known->{$key}[0] // 0) . ", then came $wanted->{$key}[0]")
			  unless fits($parts, $known->{$key}[0] // 0, $wanted->{$key}[0]);
			problem($run, "$mark is $n with $parts parts") unless $n + $parts == ($n ? 3 : 0);
		}
	}
	return;
}

# Every row that is there was created once and changed as often as its number
# says; every other one that the log knows was created and deleted once.
sub check_audit
{
	my ($run, $since) = @_;
	my $sql = <<~"SQL";
		with records as (
			select target_type, target_id, count(*) filter (where action = 'ENTITY_CREATE') made,
				count(*) filter (where action = 'ENTITY_UPDATE') changed, count(*) filter (where action = 'ENTITY_DELETE') gone,
				max((changes->'n'->>1)::int) n
			from entityapi.audit where at >= '$since' and tenant_id = '$tenant' and outcome = 'SUCCESS' and action like 'ENTITY_%' group by 1, 2),
		rows as (
			select 'items' as type, id::text, n from app.item where tenant_id = '$tenant' and created_at >= '$since'
			union all select 'parts', id::text, null from app.part where tenant_id = '$tenant' and created_at >= '$since')
		select target_type, target_id, type, id, made, changed, gone, r.n, rows.n, sum(made + changed + gone) over ()
		from records r full join rows on target_type = type and target_id = id
		SQL
	my $records = 0;

	for my $row (rows($sql))
	{
		my ($type, $target, $there, $id, $made, $changed, $gone, $told, $n, $all) = @$row;
		my $good = $target ne '' && $made == 1 && $gone == ($id eq '' ? 1 : 0)
		  && ($id eq '' || $there eq 'parts' && $changed == 0 || $there eq 'items' && $changed == $n - 1 && $told == $n);

		$records = $all;
		problem($run, "audit and rows differ: @$row") unless $good;
	}
	$sum{records} += $records;
	return;
}

sub check_apply
{
	my ($run, $known) = @_;
	my @may = $in_force->{wanted} && $in_force->{wanted} ne $in_force->{known} ? @$in_force{qw(known wanted)} : $in_force->{known};
	my ($extra, $revision, $records, $steps) = @{ (rows("select exists (select 1 from entityapi.entity where name = 'Extra'), (select max(revision) from entityapi.revision),
		(select count(*) from entityapi.audit where action = 'MANIFEST_APPLIED'), (select count(*) from entityapi.pending_steps)"))[0] };
	my $is = $extra eq 't' ? 'B' : 'A';

	problem($run, "$is is in force, not @may") unless grep { $_ eq $is } @may;
	problem($run, "$revision revisions, $records records") if $revision != $records;
	$sum{'applies between'}++ if @may > 1;
	$sum{'applies between, done'}++ if @may > 1 && $is ne $in_force->{known};
	if ($steps > 0)
	{
		my $resumed = $cluster->try_apply('--resume');

		problem($run, "cannot go on: $resumed->{err}") if $resumed->{status} != 0;
		$sum{'steps left over'}++;
	}
	my ($shape, $left) = @{ (rows('select public.shape(), (select count(*) from entityapi.pending_steps)'))[0] };
	problem($run, "the tables are not those of $is") if $shape ne $shape{$is};
	problem($run, 'a step is left') if $left > 0;
	$state = $is;
	return;
}

# Tenants whose end was acknowledged go, with all they had; others are whole.
sub check_erasures
{
	my ($run, $wanted, $known) = @_;
	my $gone = EntityApi::Test::wait_until(120, sub { $cluster->psql("select count(*) from entityapi.tenant where status = 'DELETED'") == 0 });

	problem($run, 'deleted tenants stay') unless $gone;
	my (@now, %stays);
	$stays{ $_->[0] } = 1 for rows("select id from entityapi.tenant where id <> '$tenant'");
	for my $key (grep { /^delete / } keys %$wanted)
	{
		my ($id) = $key =~ / (.*)/;
		my $left = $cluster->psql("select public.left_of('$id')");
		my $ends = $cluster->psql("select count(*) from entityapi.audit where action = 'TENANT_ERASED' and tenant_id = '$id'");

		if ($stays{$id})
		{
			problem($run, "tenant $id was deleted, and is there") if $known->{$key};
			problem($run, "tenant $id stays, and $ends times erased") if $ends;
			next;
		}
		$sum{'erased without an answer'}++ unless $known->{$key};
		$sum{erased}++;
		problem($run, "$left rows of tenant $id are left") if $left;
		problem($run, "tenant $id was erased $ends times") if $ends != 1;
	}
	for my $key (grep { /^fill / } keys %$known)
	{
		my ($id) = $key =~ / (.*)/;
		next unless $stays{$id};
		my $left = $cluster->psql("select public.left_of('$id')");
		problem($run, "tenant $id has $left rows") if $left != 1400;
	}
	problem($run, "tenant $_ was acknowledged, and is not there")
	  for grep { !$stays{$_} && !$wanted->{"delete $_"} } map { $known->{$_}[0] } grep { /^tenant / } keys %$known;
	@left = sort keys %stays;
	return;
}

# The token of before, and totals as they are counted on an index
sub check_service
{
	my ($run) = @_;
	my $answer = $shim->http(GET => '/api/v1/items?page[size]=1', { token => $ann });
	my $total = $answer->{json}{meta}{pagination}{totalRecords} // -1;
	my $count = $cluster->psql("select count(*) from app.item where tenant_id = '$tenant'");

	problem($run, "the service answers $answer->{status}") if $answer->{status} != 200;
	problem($run, "$total items, by SQL $count") if $total != $count;
	return;
}

sub check_indexes
{
	my ($run) = @_;
	my $result = $cluster->try_psql(<<~'SQL');
		select count(bt_index_check(c.oid, true)) from pg_class c join pg_am a on a.oid = c.relam
		where a.amname = 'btree' and c.relkind = 'i' and c.relnamespace in ('app'::regnamespace, 'entityapi'::regnamespace)
			and c.relpersistence = 'p'
		SQL
	problem($run, "amcheck: $result->{err}") if $result->{status} != 0;
	return;
}

# -------- the runs --------

my $started = time;
my @longest = (0);

for my $run (1 .. $runs)
{
	my @kinds = sort keys %crashes;
	my $kind = $kinds[ rand @kinds ];
	my $since = $cluster->psql('select clock_timestamp()');
	my $other = $state eq 'A' ? 'B' : 'A';
	my $writers = Writers->new(shim => $shim, cluster => $cluster, token => $ann->{accessToken}, root => $root->{accessToken},
		folder => $folder, manifests => \%manifests, left => [@left], order => [ ($other, $state) x 10 ]);
	my @pids = $writers->begin($run, one => 'writer', two => 'writer', all => 'batch', dba => 'applier', end => 'eraser');

	# the first writes take a few milliseconds, a change of the manifests 100
	sleep 0.05 + rand 0.45;
	my $stopped = time;
	$crashes{$kind}->();
	push @longest, time - $stopped;
	$sum{$kind}++;

	# on a busy machine none may have been answered so far
	EntityApi::Test::wait_until(60, sub { grep { -e && EntityApi::Test::slurp($_) =~ /^! /m } map { "$folder/$_.$run" } qw(one two all) });
	open my $stop, '>', "$folder/stop" or die "stop: $!\n";
	close $stop;
	waitpid $_, 0 for @pids;
	unlink "$folder/stop";

	# the last manifest that was acknowledged, and whatever came after it
	$in_force = { known => $state };
	for my $line (-e "$folder/dba.$run" ? split /\n/, EntityApi::Test::slurp("$folder/dba.$run") : ())
	{
		$in_force->{wanted} = $1 if $line =~ /^\? apply (.)/;
		($in_force->{known}, $in_force->{wanted}) = ($1, undef) if $line =~ /^! apply (.)/;
	}
	my ($wanted, $known) = notes($run);

	$cluster->recovered or problem($run, 'a transaction is left prepared');
	check_apply($run, $known);
	check_items($run, $wanted, $known);
	check_audit($run, $since);
	check_erasures($run, $wanted, $known);
	check_service($run);
	check_indexes($run) if $checks && ($run % 25 == 0 || $run == $runs);
	BAIL_OUT('too much is wrong') if @problems > 100;
	if ($run % 50 == 0)
	{
		diag sprintf '%d runs in %d s, %d acknowledged, %d problems', $run, time - $started, $sum{acknowledged}, scalar @problems;
	}
}

# what shim and PostgreSQL said of requests that failed
for my $id (map { /"id":"([0-9a-f-]+)","status":"500"/g } @problems)
{
	diag $_ for map { EntityApi::Test::slurp($_) =~ /^(.*\Q$id\E.*(?:\n(?!\d{4}-|\{).*)*)/mg } $shim->err, map { $_->log } $shim, $cluster->nodes;
}

is(scalar @problems, 0, "$runs crashes: nothing is lost, twice, or half");
cmp_ok($sum{acknowledged}, '>=', $runs, 'of much that was written');
my $name = "$runs runs in " . int(time - $started) . ' s: ';
my $text = $name . join(', ', map { "$_ $sum{$_}" } sort keys %sum) . sprintf ', longest way back %.1f s', (sort { $a <=> $b } @longest)[-1];
$runs > 50 ? diag $text : note $text;
like(EntityApi::Test::slurp($cluster->log), qr/database system was not properly shut down|automatic recovery/, 'it did recover');
unlike(EntityApi::Test::slurp($cluster->log), qr/PANIC|TRAP:|signal 11|signal 6\b|invalid page/, 'and met nothing worse');
is($shim->stop, 0, 'the shim has lived through it');

done_testing;
