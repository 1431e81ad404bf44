# Tables altered at random, by a user who may do everything to them, in a
# transaction; then the same requests with direct reads and writes, without
# them, and with one of both.  Answers, rows, records, deferred constraints and
# the contents of indexes must be the same.  Nobody else writes meanwhile, as
# each statement has its own snapshot.
#
# "make attack PARTS=both-ways ROUNDS=2000" for more than make test has.
# ENTITYAPI_SEED repeats a run, ENTITYAPI_ROUNDS=7-7 with it one round of it.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../tools/attack";

use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Session;
use Tables;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my ($first, $last) = ($ENV{ENTITYAPI_ROUNDS} || 40) =~ /^(?:(\d+)-)?(\d+)$/ or die "ENTITYAPI_ROUNDS=N or FIRST-LAST\n";
my $seed = $ENV{ENTITYAPI_SEED} || int(time) % 1_000_000;
note "ENTITYAPI_SEED=$seed";

my $tables = Tables->prepare('wal_level = logical', 'max_locks_per_transaction = 256');
my $cluster = $tables->{cluster};

sub pick { return $_[ rand @_ ] }
sub between { my ($from, $to) = @_; return $from + int rand($to - $from + 1) }

# -------- what is there besides --------

my @besides = grep { /\S/ } split /;\n/, <<'SQL';
create extension amcheck;
create extension btree_gist;
create type color as enum ('red', 'green');
alter type color owner to entityapi_owner;
create domain posint as int check (value > 0);
alter domain posint owner to entityapi_owner;
grant create, usage on schema public to entityapi_owner;
create table ref1 (a int8 primary key, b text unique);
create table ref2 (a int, b text collate "C", primary key (a, b));
create table kept (a int primary key, b int constraint kept references kept deferrable initially deferred);
alter table ref1 owner to entityapi_owner;
alter table ref2 owner to entityapi_owner;
insert into ref1 select i, 'r' || i from generate_series(1, 50) i;
insert into ref2 select i, 'n' || i from generate_series(0, 50) i;
create function imm(text) returns text language sql immutable as 'select lower($1)';
create function plimm(int) returns int language plpgsql immutable as 'begin return $1 % 7; end';
create function x_fn() returns trigger language plpgsql as 'begin return null; end';
alter function imm(text) owner to entityapi_owner;
alter function plimm(int) owner to entityapi_owner;
alter function x_fn() owner to entityapi_owner;
SQL
$cluster->psql("$_;") for @besides;
my $collation = $cluster->try_psql(q{create collation nd (provider = icu, locale = 'und-u-ks-level2', deterministic = false)})->{status} == 0;

# What rows there are, but for what is new each time; and what indexes say that
# the tables do not
$cluster->psql(<<'SQL');
create function public.rows_there() returns setof text language plpgsql as $$
declare
	t text;
	columns text;
	line text;
begin
	foreach t in array array['doc', 'folder', 'label', 'doc_labels'] loop
		select string_agg(quote_ident(a.attname), ', ' order by attnum) into columns from pg_attribute a left join pg_attrdef d on d.adrelid = attrelid and d.adnum = attnum
			where attrelid = ('app.' || t)::regclass and attnum > 0 and not attisdropped and attname not in ('created_at', 'updated_at', 'deleted_at')
				and atttypid <> 'uuid'::regtype and attidentity <> 'd' and coalesce(pg_get_expr(adbin, adrelid), '') !~ 'nextval|now|random';
		execute format('select %L || count(*) || md5(coalesce(string_agg(r, ''|'' order by r), '''')) from (select row(%s)::text r from app.%I) x', t || ' ', columns, t) into line;
		return next line;
	end loop;
	execute 'select count(*) || '' '' || coalesce(sum(i), 0) from public.seen' into line;
	return next 'seen ' || line;
	return query select format('%s %s %s', action, outcome, count(*)) from entityapi.audit group by action, outcome order by 1;
end $$;

create function public.faults_of_indexes() returns setof text language plpgsql as $$
declare
	i regclass;
	col text;
	v text;
	n bigint;
	found bigint;
begin
	for i in select indexrelid from pg_index join pg_class c on c.oid = indexrelid join pg_am a on a.oid = relam
		where amname = 'btree' and indisvalid and indrelid in ('app.doc'::regclass, 'app.folder'::regclass, 'app.label'::regclass, 'app.doc_labels'::regclass)
	loop
		begin
			perform bt_index_check(i, true);
		exception when others then
			return next i || ': ' || sqlerrm;
		end;
	end loop;
	foreach col in array array['n', 'm', 'name', 'code', 'x1'] loop
		begin
			perform set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_seqscan', 'on', true);
			create temp table seqs (v text, n bigint) on commit drop;
			execute format('insert into seqs select %I::text, count(*) from app.doc group by %I', col, col);
			perform set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true), set_config('enable_indexonlyscan', 'on', true), set_config('enable_seqscan', 'off', true);
			for v, n in select * from seqs where seqs.v is not null loop
				execute format('select count(*) from app.doc where %I = %L', col, v) into found;
				if found <> n then
					return next format('%s = %s: %s by an index, %s by the table', col, v, found, n);
				end if;
			end loop;
			raise exception 'undo' using errcode = 'ZZ000';
		exception
			when sqlstate 'ZZ000' then null;
			when undefined_column or data_exception or undefined_function or ambiguous_function or datatype_mismatch or feature_not_supported then null;
		end;
	end loop;
end $$;
SQL

my $session = EntityApi::Test::Session->new($cluster);
my (@folders, @docs, @labels);
for my $i (0 .. 5)
{
	push @folders, $tables->make($session, folders => { title => "f$i" });
	push @labels, $tables->make($session, labels => { name => "l$i" });
}
for my $i (0 .. 29)
{
	push @docs, $tables->make($session, docs => { name => "n$i", n => $i, code => "c$i", m => $i % 5, note => "long $i " x ($i % 3 ? 1 : 900) },
		{ folder => Tables::identifier(folders => $folders[ $i % 6 ]) });
}
my %known = map { $_ => 1 } @folders, @docs, @labels;

# -------- what is done to tables --------

my %columns = (
	'app.doc'    => [qw(n m name code note state amount folder_id version id tenant_id x1 x2 x3 updated_at)],
	'app.folder' => [qw(title size parent_id id x1 x2)],
	'app.label'  => [qw(name deleted_at id x1)]);

sub ddl
{
	my $t = pick(('app.doc') x 4, 'app.folder', 'app.label');
	my $c = sub { pick(@{ $columns{$t} }) };
	my $k = between(0, 1_000_000);
	my $generated = $t eq 'app.folder' ? '(size + 1)' : '(length(name))';

	return pick(
		sub { "alter table $t add column x" . between(1, 3) . ' ' . pick('int default 3', q{text default 'dd'}, 'int8 default 7', q{color default 'red'}, 'posint default 4', 'numeric default 1.5',
				q{int[] default '{1,2}'}, q{jsonb default '{"a": 1}'}, 'int references ref1', 'int default 5 references ref1', q{text default 'r3' references ref1 (b) deferrable initially deferred},
				'tstzrange', "int generated always as $generated stored", 'serial', 'int generated by default as identity', 'uuid default gen_random_uuid()', q{int4range default '[1,2)'},
				($collation ? q{text collate nd default 'A'} : ()), 'bytea', 'ref1', 'timestamp default now()', 'varchar(9) default repeat(\'x\', 9)') },
		sub { "alter table $t drop column x" . between(1, 3) },
		(sub { 'create ' . pick('', '', 'unique ') . "index i$k on $t (" . $c->() . pick(' desc', '', ' nulls first') . pick('', ', ' . $c->() . ', id') . ')'
			  . pick('', ' include (' . $c->() . ')', ' nulls not distinct', ' where ' . $c->() . ' is not null', ' where id is not null') }) x 3,
		sub { "create index i$k on $t using " . pick(qw(brin hash gist spgist)) . ' (' . $c->() . ')' },
		sub { "create index i$k on $t using brin (" . $c->() . ', ' . $c->() . ') with (pages_per_range = 1)' },
		sub { "create index i$k on $t using gin (to_tsvector('simple', " . $c->() . '::text))' },
		sub { "create index i$k on $t (" . pick(qw[imm(note) plimm(n) md5(note) lower(name) upper(title) abs(m)]) . ')' },
		sub { "create index i$k on $t (" . $c->() . ') where ' . pick('n > 3', 'plimm(n) > 2', q{state = 'NEW'}, 'deleted_at is null', 'size > 1', 'm < 3', q{imm(note) > 'l'}) },
		(sub { "alter table $t add check (" . pick('n <> 13', 'n < 1000 or m is null', 'length(note) < 100000', 'plimm(n) <> 6', q{imm(name) <> 'bad'}, 'm is null or m >= 0', 'not (doc is null)', 'x1 is not null',
				'tableoid > 0::oid', 'size <> 7', q{name <> 'no'}, 'n = any (array[1,2,3,4,5,6,7,8,9,10,11,12,14,15]) or n > 15', 'coalesce(m, 0) between -5 and 500', 'case when n > 5 then m < 400 else true end',
				'100 / n > 0', 'm * 100000000 <> 7') . ')' . pick('', ' not valid') }) x 2,
		sub { "alter table $t add constraint e$k exclude using " . pick(qw(btree hash gist)) . ' (' . $c->() . ' with =)' },
		sub { "alter table $t add constraint u$k unique (" . $c->() . ', id) deferrable initially ' . pick(qw(deferred immediate)) },
		sub { "alter table $t add constraint f$k foreign key " . pick('(n) references ref1', '(m) references ref1', '(n, name) references ref2 match full not valid', '(m) references ref1 not valid',
				'(n) references ref1 deferrable initially deferred not valid', '(m) references ref1 on update cascade not valid', '(n, name) references ref2 not valid', '(folder_id) references app.folder (id) not valid',
				'(code) references ref1 (b) not valid') },
		sub { "alter table $t alter column " . $c->() . ' set not null' },
		sub { "alter table $t alter column " . $c->() . ' set storage ' . pick(qw(external main plain extended)) },
		sub { "alter table $t alter column note set compression lz4" },
		sub { "alter table $t replica identity " . pick(qw(full nothing default)) },
		sub { "create publication p$k for table $t" . pick('', ' where (n > 3)', ' (id, tenant_id)') },
		sub { "alter table $t disable trigger all" },
		sub { "alter table $t enable always trigger user" },
		sub { "alter table $t set (fillfactor = " . pick(10, 50, 100) . ')' },
		sub { "alter table $t force row level security" },
		sub { "create policy p$k on $t using (true)" },
		sub { "create policy p$k on $t as restrictive using (n > 2)" },
		sub { "create rule r$k as on update to $t do also insert into seen values (1)" },
		sub { "create rule r$k as on insert to $t do also insert into seen values (2)" },
		sub { "create trigger t$k after " . pick('update', 'insert', 'update of n', 'insert or update') . " on $t for each " . pick(qw(row statement)) . ' execute function public.x_fn()' },
		sub { "create constraint trigger t$k after update on $t deferrable initially deferred for each row execute function public.x_fn()" },
		sub { "create table h$k () inherits ($t)" },
		sub { "create statistics s$k on n, m from app.doc" },
		sub { 'set local session_replication_role = replica' },
		sub { "alter table $t set unlogged" },
		sub { "cluster $t using " . ($t =~ s/app\.//r) . '__pkey' },
		sub { "analyze $t" },
		sub { "create view v$k as select * from $t" },
		sub { "create table o$k (a uuid, b uuid, foreign key (a, b) references $t (tenant_id, id)" . pick('', ' on update cascade', ' on delete cascade', ' deferrable initially deferred')
			  . "); alter table o$k owner to entityapi_owner; insert into o$k select tenant_id, id from $t limit 5" },
		sub { "create unique index o$k on app.doc (code); create table oo$k (a varchar references app.doc (code)); alter table oo$k owner to entityapi_owner; insert into oo$k select code from app.doc where code is not null limit 3" })->();
}

# -------- what is asked --------

sub attributes { my (%of) = @_; return { map { $_ => pick(@{ $of{$_} }) } sort keys %of } }

sub link_of { my ($of, $id) = @_; return defined $id ? Tables::identifier($of => $id) : undef }

sub shuffled { my %at = map { $_ => rand } @_; return sort { $at{$a} <=> $at{$b} } @_ }

# Method, target, document and If-Match; the same ones each time
sub requests
{
	my @d = shuffled(@docs);
	my @f = shuffled(@folders);
	my @l = shuffled(@labels);
	my %values = (
		n => [ undef, 1, 5, 6, 13, 60, 2000 ], m => [ undef, 0, 3, 45, 499, -9 ], name => [qw(no n7 N7 bad n5)], note => [ undef, 's', 'L' x 20000, 'long 0 ' ],
		state => [ 'NEW', 'OPEN', undef ], amount => [ undef, 1.25, 0 ]);
	my @requests;

	for my $i (0 .. 11)
	{
		my $which = rand;

		if ($which < 0.5)
		{
			my $id = pop @d;
			my %of = (%values, code => [ undef, 'r1', 'r2', "q$i" ]);
			my @some = (shuffled(sort keys %of))[ 0 .. between(0, 2) ];

			push @requests, [ PATCH => "/docs/$id", Tables::resource(docs => attributes(map { $_ => $of{$_} } @some),
					rand() < 0.3 ? { folder => link_of(folders => pick(undef, pick(@folders), $docs[0])) } : undef, $id), '*' ];
		}
		elsif ($which < 0.7)
		{
			push @requests, [ POST => '/docs', Tables::resource(docs => attributes(name => [qw(no n7 bad n5)], n => [ undef, 1, 5, 13 ], m => [ undef, 2, 499 ], note => [ undef, 'L' x 20000 ],
						code => [ undef, 'r1', 'r2', "w$i" ]), rand() < 0.5 ? { folder => link_of(folders => pick(@folders)) } : undef) ];
		}
		elsif ($which < 0.78)
		{
			my $id = pop(@f) // $folders[0];
			push @requests, [ PATCH => "/folders/$id", Tables::resource(folders => attributes(size => [ 0, 1, 7, 9 ], title => ["t$i"]), undef, $id) ];
		}
		elsif ($which < 0.83)
		{
			my $id = pop(@l) // $labels[0];
			push @requests, pick([ PATCH => "/labels/$id", Tables::resource(labels => { name => "l$i" }, undef, $id) ], [ DELETE => "/labels/$id" ]);
		}
		elsif ($which < 0.88)
		{
			push @requests, [ pick(qw(POST PATCH DELETE)) => '/docs/' . pick(@docs) . '/relationships/labels', { data => [ map { link_of(labels => $_) } (shuffled(@labels))[ 0, 1 ] ] }, '*' ];
		}
		elsif ($which < 0.91)
		{
			push @requests, [ DELETE => '/docs/' . pick(@docs), undef, '*' ];
		}
		elsif ($which < 0.94)
		{
			push @requests, [ POST => '/operations', { 'atomic:operations' => [ map { { op => 'add', data => Tables::resource(docs => attributes(name => [qw(no n5 bad)], n => [ 1, 13, undef ], m => [ 2, 499 ]))->{data} } } 1 .. 3 ] } ];
		}
		else
		{
			push @requests, [ GET => '/docs?sort=' . pick('name', '-m', 'code', 'n,-name') . '&page[size]=3&page[totals]=true' . pick('', '&include=folder,labels', '&filter=m=ge=2') ];
		}
	}
	return @requests;
}

# An answer without what is new each time
sub plain
{
	my ($text) = @_;

	$text =~ s/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/$known{$&} ? $& : 'ID'/ge;
	$text =~ s/20\d\d-\d\d-\d\dT[0-9:.]+Z/TIME/g;
	$text =~ s/"after":"[^"]*"|page(?:\[|%5B)after(?:\]|%5D)=[^"&]*/CURSOR/g;
	return $text;
}

# -------- the rounds --------

my @ways = ([ 'on', 'on' ], [ 'off', 'off' ], [ 'on', 'off' ], [ 'off', 'on' ]);
my (%sum, @faults, %done);

# All of what one way says
sub by
{
	my ($way, @requests) = @_;
	my @said;

	$session->must('savepoint way');

	# At the end of a request, a level within, PostgreSQL forgets what SET
	# CONSTRAINTS has replaced there; set here as well, it comes back with this.
	$session->must('set constraints kept deferred');
	$session->must("set local entityapi.direct_reads = $way->[0]");
	$session->must("set local entityapi.direct_writes = $way->[1]");
	for my $request (@requests)
	{
		$session->must('savepoint request');
		my ($status, $body, $sqlstate, $message) = $tables->do_request($session, @$request);

		if ($sqlstate ne '00000') { $session->must('rollback to request'); }
		else { $session->must('release request'); }
		push @said, plain("$request->[0] $request->[1]: $status $sqlstate $message $body");
		$sum{"$request->[0] " . ($sqlstate eq '00000' ? $status : $sqlstate)}++ if $way == $ways[0];
	}
	$session->must('savepoint ends');
	my $ends = $session->ask('set constraints all immediate');
	push @said, plain("deferred: $ends->{sqlstate} $ends->{message}");
	$session->must('rollback to ends') if $ends->{sqlstate} ne '00000';
	push @said, split /\n/, $session->must('select * from public.rows_there()');
	push @faults, map { "@$way: $_" } split /\n/, $session->must('select * from public.faults_of_indexes()');
	$session->must('rollback to way');
	return @said;
}

sub a_round
{
	my @done;

	$session->must('begin isolation level ' . pick('read committed', 'read committed', 'repeatable read', 'serializable'));
	$session->must('create table public.seen (i int); alter table public.seen owner to entityapi_owner');
	for (1 .. between(0, 5))
	{
		my $sql = ddl();

		$session->must('savepoint ddl');
		my @statements = split /; /, $sql;
		my $answer = { sqlstate => '00000' };
		while (@statements && $answer->{sqlstate} eq '00000') { $answer = $session->ask(shift @statements); }
		if ($answer->{sqlstate} eq '00000') { push @done, $sql; $session->must('release ddl'); }
		else { $session->must('rollback to ddl'); }
	}
	$sum{DDL} += @done;
	my @requests = requests();
	my %said = map { ("@{$ways[$_]}" => [ by($ways[$_], @requests) ]) } 0, 1, pick(2, 3);
	my $by_executor = $said{'off off'};

	for my $way (sort keys %said)
	{
		for my $i (0 .. $#$by_executor)
		{
			next if ($said{$way}[$i] // '') eq $by_executor->[$i];
			push @faults, sprintf "reads and writes %s: %.500s\n   by the executor: %.500s", $way, $said{$way}[$i] // 'nothing', $by_executor->[$i];
			last;
		}
	}
	$session->must('rollback');
	return @done;
}

my $started = time;
for my $round (($first // 1) .. $last)
{
	my $before = @faults;

	srand $seed * 100_000 + $round;
	my @done = eval { a_round() };
	push @faults, $@ if $@;
	next if @faults == $before;
	diag "ENTITYAPI_SEED=$seed ENTITYAPI_ROUNDS=$round-$round", map { "\n  $_" } @done, @faults[ $before .. $#faults ];
	last if @faults > 20;

	# what it has left, if it was lost
	$session = EntityApi::Test::Session->new($cluster);
}
is(scalar @faults, 0, 'all ways are one');
my $text = sprintf '%d rounds in %d s: %s', $last - ($first // 1) + 1, time - $started, join ', ', map { "$_ $sum{$_}" } sort keys %sum;
$last > 100 ? diag $text : note $text;
cmp_ok($sum{'PATCH 200'} // 0, '>', 0, 'requests changed something') if $last - ($first // 1) > 10;
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing;
