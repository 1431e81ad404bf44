# Random requests in many sessions, some in blocks, in subtransactions, prepared
# and at other isolation levels, cancelled and ended at random, while tables are
# vacuumed, clustered, reindexed and altered.  Then: no acknowledged update is
# lost or done twice; what logical decoding tells is what is there; pages and
# indexes are sound, and say what the tables say; keys and checks hold.
#
# "make attack PARTS=load SECONDS=300" for more than make test has.
# ENTITYAPI_SEED repeats who does what, though not when.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/attack";

use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Session;
use Tables;
use Workers;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $seconds = $ENV{ENTITYAPI_SECONDS} || 10;
my $writers = $ENV{ENTITYAPI_WRITERS} || 5;
my $seed = $ENV{ENTITYAPI_SEED} || int(time) % 1_000_000;
srand $seed;
note "ENTITYAPI_SEED=$seed";

my $tables = Tables->prepare('wal_level = logical', 'max_prepared_transactions = 20', 'max_replication_slots = 2', 'deadlock_timeout = 100ms');
my $cluster = $tables->{cluster};
my $folder = EntityApi::Test::folder();
my $space = EntityApi::Test::folder('ts');

$cluster->psql(<<"SQL");
create extension amcheck;
create function x_fn() returns trigger language plpgsql as 'begin return null; end';
alter function x_fn() owner to entityapi_owner;
create tablespace ts location '$space';
grant create on tablespace ts to public;
select pg_create_logical_replication_slot('mine', 'test_decoding');
SQL

my $session = EntityApi::Test::Session->new($cluster);
my (@folders, @labels, @docs);
for my $i (0 .. 19)
{
	push @folders, $tables->make($session, folders => { title => "f$i" });
	push @labels, $tables->make($session, labels => { name => "l$i" });
}
push @docs, $tables->make($session, docs => { name => "d$_", n => 0 }) for 0 .. 39;
$session->must('analyze');

# -------- the load --------

my $workers = Workers->new(tables => $tables, folder => $folder, until => time + $seconds, folders => \@folders, docs => \@docs, labels => \@labels);
waitpid $_, 0 for $workers->begin(('writer') x $writers, 'alters', 'cancels');

my (%done, %maybe, %sum, %strange);
for my $notes ($workers->notes)
{
	for my $pair ([ done => \%done ], [ maybe => \%maybe ], [ sum => \%sum ], [ strange => \%strange ])
	{
		my ($kind, $to) = @$pair;
		$to->{$_} += $notes->{$kind}{$_} for keys %{ $notes->{$kind} };
	}
}
is(join("\n", map { "$strange{$_} times $_" } sort keys %strange), '', 'no answer and no error is strange');

# -------- what is there --------

my @faults;
sub lines { return split /\n/, $session->must($_[0]) }

for my $line (lines(q{select id, coalesce(n, 0) from app.doc where id in (} . join(', ', map { "'$_'" } @docs) . ')'))
{
	my ($id, $n) = split /\|/, $line;
	my ($least, $most) = ($done{$id} // 0, ($done{$id} // 0) + ($maybe{$id} // 0));

	push @faults, "$id is $n: $least were acknowledged, up to $most done" if $n < $least || $n > $most;
}
is(join("\n", splice @faults), '', 'no update is lost or done twice');

# those of whom nobody knows, who were ended between the two
$session->must("rollback prepared '$_'") for lines('select gid from pg_prepared_xacts');

my %none = (
	'documents without their folder'  => 'app.doc d where folder_id is not null and not exists (select from app.folder f where f.tenant_id = d.tenant_id and f.id = d.folder_id)',
	'folders without their parent'    => 'app.folder d where parent_id is not null and not exists (select from app.folder f where f.tenant_id = d.tenant_id and f.id = d.parent_id)',
	'links without an end'            => 'app.doc_labels l where not exists (select from app.doc d where d.id = l.doc_id) or not exists (select from app.label d where d.id = l.label_id)',
	'codes that are there twice'      => '(select from app.doc where code is not null group by tenant_id, code having count(*) > 1) x',
	'titles that are there twice'     => '(select from app.folder where title is not null group by tenant_id, title having count(*) > 1) x',
	'labels that are there twice'     => '(select from app.label where name is not null and deleted_at is null group by tenant_id, name having count(*) > 1) x',
	'sizes that are not allowed'      => 'app.folder where size < 0',
	'records that are there twice'    => '(select from entityapi.audit group by id having count(*) > 1) x');
$session->must("set $_ = off") for qw(enable_indexscan enable_indexonlyscan enable_bitmapscan);
is($session->must("select count(*) from $none{$_}"), 0, "no $_") for sort keys %none;
$session->must('reset all');

my $ours = q{c.relnamespace in ('app'::regnamespace, 'entityapi'::regnamespace)};
my @btrees = lines(qq{select c.oid::regclass from pg_class c join pg_am a on a.oid = relam join pg_index i on i.indexrelid = c.oid where $ours and relkind = 'i' and amname = 'btree' and indisvalid});
for my $index (@btrees)
{
	my $answer = $session->ask("select bt_index_parent_check('$index', true, true)");
	push @faults, "$index: $answer->{message}" if $answer->{sqlstate} ne '00000';
}
is(join("\n", splice @faults), '', @btrees . ' trees are sound and complete');
my @heaps = lines(qq{select c.oid::regclass from pg_class c where $ours and relkind = 'r'});
for my $table (@heaps)
{
	push @faults, map { "$table: $_" } lines("select blkno, offnum, attnum, msg from verify_heapam('$table', check_toast => true)");
}
is(join("\n", splice @faults), '', @heaps . ' tables are sound');

# indexes of other kinds are asked beside the table
for my $index (lines(q{select indexrelid::regclass || ' ' || amname from pg_index join pg_class c on c.oid = indexrelid join pg_am a on a.oid = relam where indrelid = 'app.doc'::regclass and indisvalid and amname <> 'btree'}))
{
	for my $m (map { $_ * 5 } 0 .. 10)
	{
		my $condition = $index =~ / (?:hash|brin)$/ && $index !~ /x_ex/ ? "m = $m" : $index =~ / gin$/ ? q{to_tsvector('simple', coalesce(note, '')) @@ 'z'::tsquery} : "id = '$docs[$m % 40]'";
		my @found = map {
			my ($table, $by) = @$_;
			$session->must("set enable_seqscan = $table; set enable_bitmapscan = $by; set enable_indexscan = $by");
			$session->must("select count(*) from app.doc where $condition");
		} [ 'on', 'off' ], [ 'off', 'on' ];

		push @faults, "$index: $found[1], not $found[0], where $condition" if $found[0] != $found[1];
	}
}
$session->must('reset all');
is(join("\n", splice @faults), '', 'indexes of other kinds say what the tables say');

# -------- what was decoded --------

# The rows that the changes lead to, by table and key
my (%decoded, $changes);
my $column = qr/("(?:[^"]|"")+"|\w+)\[((?:[^\[\]]|\[\])+)\]:('(?:[^']|'')*'|unchanged-toast-datum|[^ ]+)/;
sub columns_of { my ($text) = @_; my %row; while ($text =~ /$column/g) { $row{$1} = $3; } return \%row }
sub key_of { my ($row) = @_; return $row->{id} // join ' ', map { "$_ $row->{$_}" } sort keys %$row }

open my $told, '-|', EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-c',
  q{select data from pg_logical_slot_get_changes('mine', null, null, 'include-xids', '0', 'skip-empty-xacts', '1')} or die "psql: $!\n";
while (my $line = readline $told)
{
	my ($table, $how, $rest) = $line =~ /^table (\S+): (INSERT|UPDATE|DELETE|TRUNCATE): ?(.*)$/ or next;

	$changes++;
	$rest =~ s/^old-key: .*? new-tuple: //;
	my $row = columns_of($rest);
	my $rows = $decoded{$table} //= {};
	if ($how eq 'DELETE') { delete $rows->{ key_of($row) }; next; }
	my $before = $rows->{ key_of($row) };
	$row->{$_} = $before->{$_} for grep { $row->{$_} eq 'unchanged-toast-datum' } keys %$row;
	$rows->{ key_of($row) } = $row;
}
close $told or push @faults, 'the changes are not told';

sub value_of { my ($told) = @_; return !defined $told || $told eq 'null' ? '' : $told =~ /^'(.*)'$/s ? $1 =~ s/''/'/gr : $told }

my %compared = ('app.doc' => [qw(n m name code note folder_id version state)], 'app.folder' => [qw(title size parent_id)], 'app.label' => [qw(name)]);
for my $table (sort keys %compared)
{
	my @columns = @{ $compared{$table} };
	my $rows = $decoded{$table} // {};
	my %there = map { /^([^|]+)\|(.*)$/s ? ("'$1'" => $2) : () } lines('select id, ' . join(', ', @columns) . " from $table");

	push @faults, "$table: $_ is there and was not told" for grep { !$rows->{$_} } keys %there;
	push @faults, "$table: $_ was told and is not there" for grep { !defined $there{$_} } keys %$rows;
	for my $id (grep { $rows->{$_} } keys %there)
	{
		my $row = join '|', map { value_of($rows->{$id}{$_}) } @columns;
		push @faults, sprintf '%s: %s is %.200s, told was %.200s', $table, $id, $there{$id}, $row if $row ne $there{$id};
	}
}
is(join("\n", @faults > 20 ? (scalar @faults, @faults[ 0 .. 19 ]) : @faults), '', 'what was decoded is what is there');

my $acknowledged = 0;
$acknowledged += $_ for values %done;
my $text = "$seconds s: $changes changes decoded, $acknowledged increments acknowledged, " . join ', ', map { "$_ $sum{$_}" } sort keys %sum;
$seconds > 60 ? diag $text : note $text;
cmp_ok($acknowledged, '>', 0, 'there was something to lose');
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended by itself');
done_testing;
