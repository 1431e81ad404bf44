# An INSERT of one row is done without the executor, where the table asks for
# nothing that only the executor knows, and the rows that it refers to are looked
# up without the triggers of its foreign keys: with the same answer, the same row,
# the same index entries, the same locks, the same records and the same error in
# the end.  Each thing is done with entityapi.direct_scans on and off, and undone.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::BothWays;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster(conf => [ 'wal_level = logical' ]);
EntityApi::Test::BothWays::apply($cluster, { parent => { type => 'ref', target => 'Doc', relation => 'ManyToOne' } });

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
my $both = EntityApi::Test::BothWays->new($cluster, $ed);
my $make = sub { my ($type, %attributes) = @_; return $shim->must(201, POST => "/api/v1/$type", { token => $ed, json => { data => { type => $type, attributes => \%attributes } } })->{data}{id} };
my $folder = $make->('folders', title => 'f');
my $one = $make->('docs', name => 'one', code => 'c', n => 1, note => 'a');

$cluster->psql("insert into app.doc (tenant_id, id, name, code, n, note, version, created_at, updated_at)
	select '$tenant', gen_random_uuid(), 'fill', 'fill' || i, 0, 'fill' || i, 0, now(), now() from generate_series(1, 3000) i; vacuum analyze app.doc");

# --- what is done -----------------------------------------------------------

sub doc
{
	my ($attributes, %to) = @_;
	my %relationships = map { $_ => { data => { type => $_ eq 'folder' ? 'folders' : 'docs', id => $to{$_} } } } keys %to;

	return { type => 'docs', attributes => { name => 'new', %$attributes }, %relationships ? (relationships => \%relationships) : () };
}

sub post { return $both->request(POST => '/docs?fields[docs]=n', { data => doc(@_) }) }

my $row = "select string_agg(concat_ws('|', name, code, amount, n, state, md5(note), folder_id is not null, parent_id is not null, version), ' ' order by id) from app.doc where name like 'new%';\n";

sub by_index { return "set local enable_seqscan = off; select count(*) || ' by index' from app.doc where $_[0];\n" }

my $seen = 'create table seen (what text); grant insert on seen to public;
	create function note() returns trigger language plpgsql as $$ begin insert into public.seen values (concat(tg_op, tg_level, new.n)); return new; end $$;
	alter function note() owner to entityapi_owner;';
my $trigger = sub { "$seen create trigger note $_[0] on app.doc for each " . ($_[1] // 'row') . ' execute function note();' };

$both->compare(
	[ 'a row', post({ n => 5 }) . $row, '201 new|5|f|f|0', 1 ],
	[ 'all of it', post({ code => 'x', amount => 2.5, n => -1, state => 'OPEN', note => "it's \x{fc}" }, folder => $folder, parent => $one) . $row, '201 new|x|2.50|-1|OPEN|aae08d21339877bcb583d5c5cd6f8d62|t|t|0', 1 ],
	[ 'several', join('', map { post({ n => $_ }) } 1 .. 40) . 'select count(*), sum(n) from app.doc where name = $$new$$;', join(' ', ('201') x 40) . ' 40|820', 1 ],
	[ 'many at once', $both->request(POST => '/operations', { 'atomic:operations' => [ map { { op => 'add', data => doc({ n => $_ }) } } 1 .. 50 ] }) . 'select count(*), sum(n) from app.doc where name = $$new$$;', '200 50|1275', undef ],
	[ 'one after the other, which it refers to', $both->request(POST => '/operations', { 'atomic:operations' => [
				{ op => 'add', data => { type => 'folders', lid => 'f', attributes => { title => 'g' } } },
				{ op => 'add', data => { %{ doc({}) }, relationships => { folder => { data => { type => 'folders', lid => 'f' } } } } } ] }) . $row, '200 new|t|f|0', undef ],
	[ 'a long text', post({ note => join ' ', map { $_ * 7919 % 10007 } 1 .. 20000 }) . $row, '201 new|d59411940be7f9d81b8d84800109a2ab|f|f|0', 1 ],
	[ 'what is in an index', post({ name => 'new1' }) . by_index("tenant_id = '$tenant' and name = 'new1'"), '201 1 by index', 1 ],
	[ 'an expression', 'create index mine on app.doc (lower(note));' . post({ note => 'LOUD' }) . by_index("lower(note) = 'loud'"), '201 1 by index', 1 ],
	[ 'some rows', 'create index mine on app.doc (n) where n > 7;' . post({ n => 7 }) . by_index('n > 7') . post({ n => 8 }) . by_index('n > 7'), '201 0 by index 201 1 by index', 1 ],
	[ 'indexes of other kinds', 'create index mine on app.doc using hash (note); create index words on app.doc using gin (to_tsvector($$simple$$, note));' . post({ note => 'z y' }) . by_index("note = 'z y'") . by_index(q{to_tsvector('simple', note) @@ 'y'}), '201 1 by index 1 by index', 1 ],
	[ 'an index that is a summary', 'create index mine on app.doc using brin (n) with (pages_per_range = 1);' . post({ n => 4000 }) . 'set local enable_indexscan = off; set local enable_bitmapscan = on;' . by_index('n = 4000'), '201 1 by index', 1 ],
	[ 'an index after the plan was made', post({ note => 'y' }) . 'create index mine on app.doc (note);' . post({ note => 'z' }) . by_index("note = 'z'") . by_index("note = 'y'"), '201 201 1 by index 1 by index', 1 ],
	[ 'what must be unique', post({ code => 'c' }) . $row, '409 UNIQUE_VIOLATION', 1 ],
	[ 'what must be unique among some', 'create unique index mine on app.doc (note) where n > 0;' . post({ note => 'a', n => 0 }) . post({ note => 'a', n => 1 }), '201 409 UNIQUE_VIOLATION', 1 ],
	[ 'too much for the column', 'alter table app.doc add constraint mine check (n < 10);' . post({ n => 11 }) . post({ n => 9 }) . post({ n => 12 }), '400 CHECK_FAILED 201 400 CHECK_FAILED', 1 ],
	[ 'a value that must be', 'alter table app.doc alter n set not null;' . post({}) . post({ n => 3 }), '400 REQUIRED 201', 1 ],
	[ 'a value that is there without being said', 'alter table app.doc add column more int default 7;' . post({}) . 'select more from app.doc where name = $$new$$;', '201 7', 1 ],
	[ 'one that is another each time', 'create sequence app.mine; grant usage on app.mine to public; alter table app.doc add column more int; alter table app.doc alter more set default nextval($$app.mine$$);' . post({}) . post({ code => 'c' }) . post({}) . 'select more from app.doc where name = $$new$$ order by id;', '201 409 UNIQUE_VIOLATION 201 1 3', 0 ],
	[ 'one that identifies', 'alter table app.doc add column num int generated always as identity;' . post({}) . 'select num > 0 from app.doc where name = $$new$$;', '201 t', 0 ],
	[ 'a trigger before', $trigger->('before insert') . post({ n => 5 }) . 'table seen;', '201 INSERTROW5', 0 ],
	[ 'a trigger after', post({ n => 4 }) . $trigger->('after insert') . post({ n => 5 }) . 'table seen;', '201 201 INSERTROW5', 0 ],
	[ 'a trigger by statement', $trigger->('before insert', 'statement') . post({ n => 5 }) . 'table seen;', '201 INSERTSTATEMENT', 0 ],
	[ 'a trigger by statement, after', $trigger->('after insert', 'statement') . post({ n => 5 }) . 'table seen;', '201 INSERTSTATEMENT', 0 ],
	[ 'a trigger after all', "$seen create constraint trigger note after insert on app.doc deferrable initially deferred for each row execute function note();" . post({ n => 5 }) . 'set constraints all immediate; table seen;', '201 INSERTROW5', 0 ],
	[ 'a trigger for other things', $trigger->('after update or delete') . post({ n => 5 }) . 'table seen;', '201', 1 ],
	[ 'a trigger that has gone', $trigger->('after insert') . post({ n => 4 }) . 'drop trigger note on app.doc;' . post({ n => 5 }) . 'table seen;', '201 201 INSERTROW4', 1 ],
	[ 'a trigger that only looks like one of a key', 'create constraint trigger mine after insert on app.doc for each row execute function "RI_FKey_check_ins"();' . post({ n => 5 }), '500 INTERNAL_ERROR', 0 ],
	[ 'a rule beside', "$seen create rule note as on insert to app.doc do also insert into seen values ('rule');" . post({ n => 5 }), undef, 0 ],
	[ 'a column that is computed', 'alter table app.doc add column twice int generated always as (n * 2) stored;' . post({ n => 21 }) . 'select twice from app.doc where name = $$new$$;', '201 42', 0 ],
	[ 'a column that has gone', 'alter table app.doc add column more text default repeat($$x$$, 5000) not null; alter table app.doc drop column more;' . post({ n => 5 }) . $row, '201 new|5|f|f|0', 1 ],
	[ 'a column that came later', post({}) . q(alter table app.doc add column more text default 'more';) . post({ n => 5 }) . 'select more from app.doc where name = $$new$$;', '201 201 more more', 1 ],
	[ 'a key that is checked later', 'alter table app.doc add constraint mine unique (note) deferrable initially deferred;' . post({ note => 'a' }) . 'set constraints all immediate;', '409 UNIQUE_VIOLATION', 0 ],
	[ 'rows that exclude each other', 'alter table app.doc add constraint mine exclude using btree (note with =);' . post({ note => 'a' }), '409 OVERLAP', 0 ],
	[ 'row security', 'alter table app.doc force row level security; create policy mine on app.doc for all using (true) with check (n < 5);' . post({ n => 5 }), '500 INTERNAL_ERROR', undef ],
	[ 'no right', 'revoke insert on app.doc from entityapi_owner;' . post({ n => 5 }), '500 INTERNAL_ERROR', undef ],
	[ 'rights on columns', 'revoke insert on app.doc from entityapi_owner; grant insert (tenant_id, id, name, amount, n, state, note, folder_id, parent_id, version, created_at, updated_at) on app.doc to entityapi_owner;'
		  . post({ n => 5 }) . 'grant insert (code) on app.doc to entityapi_owner;' . post({ n => 5 }), '500 INTERNAL_ERROR 201', undef ],
	[ 'a table that inherits', 'create table app.heir () inherits (app.doc); alter table app.heir owner to entityapi_owner;' . post({ n => 5 }) . $row, undef, undef ],
	[ 'a transaction that may not write', 'set transaction read only;' . post({ n => 5 }), undef, undef ],
	[ 'one that is undone in part', 'savepoint s;' . post({ n => 5 }) . 'rollback to s;' . $row . post({ n => 6 }) . $row, '201 201 new|6|f|f|0', 1 ],
	[ 'a publication without a key', 'alter table app.doc replica identity nothing; create publication mine for table app.doc;' . post({ n => 5 }), '201', undef ],
	[ 'all that is wrong at once', 'alter table app.doc add constraint mine check (n < 10); alter table app.doc alter note set not null;' . post({ n => 11, code => 'c' }) . post({ n => 11, code => 'c', note => 'x' }) . post({ n => 1, code => 'c', note => 'x' }),
		'400 REQUIRED 400 CHECK_FAILED 409 UNIQUE_VIOLATION', undef ],
);

# --- what it refers to ------------------------------------------------------

# A table, and a foreign key to it.  Nothing but the key knows that there is one.
my $to = sub {
	my ($table, $key, @rows) = @_;

	return "create table app.other ($table); alter table app.other owner to entityapi_owner; " . (@rows ? 'insert into app.other values ' . join(', ', @rows) . ';' : '')
	  . "alter table app.doc add constraint mine foreign key $key not valid;";
};
my $by_code = sub { $to->('tenant_id uuid, code varchar, primary key (tenant_id, code)', '(tenant_id, code) references app.other' . ($_[0] // ''), "('$tenant', 'there')") };
my $no = '404 RELATED_NOT_FOUND';
my $locked = "select x.xmax::text::bigint >= pg_current_xact_id()::text::bigint from app.other x;";
my $wait = ' deferrable initially deferred';

# A type that is compared by somebody's function, which takes away what is
# referred to once it is told to; and what arrays, ranges and rows make of it
my $pair = $to->('n int primary key', '(n) references app.other', '(5)')
  . q{create type app.pair as (a int, b text);
	create function app.gone() returns void language plpgsql volatile as $f$ begin set local enable_seqscan = off; delete from app.other; end $f$;
	create function app.pair_cmp(app.pair, app.pair) returns int language plpgsql immutable security definer as $f$ begin if current_setting('app.go', true) = 'yes' then perform app.gone(); end if; return sign($1.a - $2.a); end $f$;}
  . join('', map { my ($name, $operator) = @$_; "create function app.pair_$name(app.pair, app.pair) returns bool language sql immutable as \$f\$ select app.pair_cmp(\$1, \$2) $operator 0 \$f\$; create operator app.$operator (leftarg = app.pair, rightarg = app.pair, procedure = app.pair_$name);" }
	  [ lt => '<' ], [ le => '<=' ], [ eq => '=' ], [ ge => '>=' ], [ gt => '>' ])
  . 'create operator class app.pair_ops default for type app.pair using btree as operator 1 app.<, operator 2 app.<=, operator 3 app.=, operator 4 app.>=, operator 5 app.>, function 1 app.pair_cmp(app.pair, app.pair);'
  . 'create type app.pairs as range (subtype = app.pair, subtype_opclass = app.pair_ops);';
my $with_pair = sub {
	my ($column, $index) = @_;
	return "$pair alter table app.doc add column q app.$column; create index z on app.doc $index; create index zz on app.doc (n); set local app.go = 'yes';" . post({ n => 5 }) . 'select count(*) from app.other;';
};
my $array = q{pair[] default array[row(1, 'x')::app.pair]};

$both->compare(
	[ 'a reference', post({}, folder => $folder) . 'select xmax::text::bigint >= pg_current_xact_id()::text::bigint from app.folder;', '201 t', 1 ],
	[ 'what is not there', $by_code->() . post({ code => 'x' }) . post({ code => 'there' }) . $locked . post({ code => 'y' }), "$no 201 t $no", 1 ],
	[ 'nothing', $by_code->() . post({}) . $locked, '201 f', 1 ],
	[ 'what has gone', $by_code->() . 'delete from app.other;' . post({ code => 'there' }), $no, 1 ],
	[ 'what was changed', $by_code->() . 'alter table app.other add column more text; update app.other set more = $$x$$;' . post({ code => 'there' }), '201', 1 ],
	[ 'what was undone', $by_code->() . "savepoint s; insert into app.other values ('$tenant', 'x'); rollback to s;" . post({ code => 'x' }), $no, 1 ],
	[ 'columns in another order', $to->('code varchar, tenant_id uuid, primary key (code, tenant_id)', '(tenant_id, code) references app.other (tenant_id, code)', "('there', '$tenant')") . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'another type', $to->('n bigint primary key', '(n) references app.other', '(5)') . post({ n => 4 }) . post({ n => 5 }), "$no 201", 1 ],
	[ 'a text', $to->('c text primary key', '(code) references app.other', "('there')") . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'a number of another kind', $to->('n numeric primary key', '(n) references app.other', '(5)') . post({ n => 4 }) . post({ n => 5 }), "$no 201", 0 ],
	[ 'a domain', 'create domain app.code as varchar;' . $to->('c app.code primary key', '(code) references app.other', "('there')") . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'another collation', $to->('c varchar collate "C" primary key', '(code) references app.other', "('there')") . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'one that takes all letters alike', "create collation app.ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
		  . $to->('c varchar collate app.ci primary key', '(code) references app.other', "('there')") . post({ code => 'x' }) . post({ code => 'THERE' }), undef, undef ],
	[ 'a type that brings another', 'create domain app.plain as text collate "C"; alter table app.doc add column d app.plain default $$there$$;' . $to->('c text collate "POSIX" primary key', '(d) references app.other', "('there')") . post({}), '500 INTERNAL_ERROR', 0 ],
	[ 'a type that brings one', 'alter table app.doc add column d name default $$there$$;' . $to->('c text primary key', '(d) references app.other', "('there')") . post({}), '201', 0 ],
	[ 'an index of another collation than the column', $to->('c varchar, constraint k unique (c)', '(code) references app.other (c)', "('there')") . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'a key that is partitioned', $to->('n int primary key) partition by range (n); create table app.part partition of app.other for values from (0) to (9', '(n) references app.other', '(5)') . post({ n => 4 }) . post({ n => 5 }), "$no 201", 0 ],
	[ 'what only an heir has', $by_code->() . "create table app.heir () inherits (app.other); insert into app.heir values ('$tenant', 'x');" . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'in full', $to->('p int, q int, primary key (p, q)', '(n, v) references app.other match full', '(1, 1)') =~ s/alter table app.doc/alter table app.doc add column v int default 1; $&/r . post({}) . post({ n => 1 }) . post({ n => 2 }), "$no 201 $no", 1 ],
	[ 'in full, or nothing', $to->('p int, q int, primary key (p, q)', '(n, v) references app.other match full', '(1, 1)') =~ s/alter table app.doc/alter table app.doc add column v int; $&/r . post({}) . post({ n => 1 }), "201 $no", 1 ],
	[ 'a key that waits, but not beyond the request', $by_code->($wait) . post({ code => 'x' }) . post({ code => 'there' }) . $locked, "$no 201 t", 1 ],
	[ 'one that is there by then', $by_code->($wait) . $both->request(POST => '/operations', { 'atomic:operations' => [ { op => 'add', data => doc({ code => 'there' }) }, { op => 'add', data => doc({ code => 'x' }) } ] }), qr/^\Q$no\E/, undef ],
	[ 'one that could wait', $by_code->(' deferrable') . 'set constraints all deferred;' . post({ code => 'x' }) . post({ code => 'there' }), "$no 201", 1 ],
	[ 'what goes', $by_code->($wait) . post({ code => 'there' }) . 'delete from app.other; set constraints all immediate;', qr/^201 ERROR .*violates foreign key/, undef ],
	[ 'what goes and comes', $by_code->($wait) . post({ code => 'there' }) . "set constraints all deferred; delete from app.other; insert into app.other values ('$tenant', 'there'); set constraints all immediate;", '201', 1 ],
	[ 'a row that becomes another', $by_code->($wait) . post({ code => 'there' }) . 'update app.doc set code = $$x$$ where code = $$there$$; set constraints all immediate;', qr/^201 ERROR .*violates foreign key/, undef ],
	[ 'a trigger that is off', $by_code->() . 'alter table app.doc disable trigger all;' . post({ code => 'x' }), '201', 0 ],
	[ 'a trigger that is on for replicas', $by_code->() . q{do $d$ declare t name; begin for t in select tgname from pg_trigger where tgrelid = 'app.doc'::regclass and tgisinternal loop execute format('alter table app.doc enable always trigger %I', t); end loop; end $d$;} . post({ code => 'x' }), undef, 0 ],
	[ 'what a replica writes', $by_code->() . q{set local session_replication_role = replica;} . post({ code => 'there' }) . $locked . post({ code => 'x' }), '201 f 201', 1 ],
	[ 'a table that its owner may not read', $by_code->() . 'revoke select on app.other from entityapi_owner;' . post({ code => 'there' }), '500 INTERNAL_ERROR', 1 ],
	[ 'one whose rows he may not lock', $by_code->() . 'revoke update on app.other from entityapi_owner;' . post({ code => 'there' }), '500 INTERNAL_ERROR', 1 ],
	[ 'one of somebody else', $by_code->() . 'create role somebody; grant usage on schema app to somebody; alter table app.other owner to somebody;' . post({ code => 'there' }) . post({ code => 'x' }), "201 $no", 1 ],
	[ 'one in a schema that its owner may not use', $by_code->() . 'create role somebody; alter table app.other owner to somebody;' . post({ code => 'there' }), '500 INTERNAL_ERROR', 1 ],
	[ 'row security there', $by_code->() . 'alter table app.other enable row level security; alter table app.other force row level security;' . post({ code => 'there' }) . post({ code => 'x' }), "201 $no", 1 ],
	[ 'an index that is made anew', $by_code->() . post({ code => 'there' }) . 'reindex table app.other; delete from app.doc where code = $$there$$;' . post({ code => 'there' }) . post({ code => 'x' }), "201 201 $no", 1 ],
	[ 'a table that is written anew', $by_code->() . post({ code => 'there' }) . 'cluster app.other using other_pkey; delete from app.doc where code = $$there$$;' . post({ code => 'there' }) . post({ code => 'x' }), "201 201 $no", 1 ],
	[ 'a type that becomes another', $to->('n bigint primary key', '(n) references app.other', '(5)') . post({ n => 5 }) . 'alter table app.other alter n type int;' . post({ n => 5 }) . post({ n => 4 }), "201 201 $no", 1 ],
	[ 'an index that takes away what it refers to', $to->('n int primary key', '(n) references app.other', '(5)')
		  . q{create function app.fixed(text) returns text language plpgsql immutable security definer as $f$ begin if $1 = 'boom' then perform app.gone(); end if; return $1; end $f$; create function app.gone() returns void language plpgsql volatile as $f$ begin set local enable_seqscan = off; delete from app.other; end $f$;}
		  . 'create index z on app.doc (app.fixed(note)); create index zz on app.doc (n);' . post({ n => 5, note => 'boom' }) . 'select count(*) from app.other;', "$no 1", 0 ],
	[ 'an index of a type in somebody\'s order', $with_pair->("pair default row(1, 'x')", '(q)'), "$no 1", 0 ],
	[ 'an index of an array of it', $with_pair->($array, '(q)'), "$no 1", 0 ],
	[ 'an index of what is in such an array', $with_pair->(q{pair[] default array[row(1, 'x')::app.pair, row(2, 'x')::app.pair]}, 'using gin (q)'), "$no 1", 0 ],
	[ 'an index of a range of it', $with_pair->(q{pairs default app.pairs(row(1, 'x')::app.pair, row(2, 'x')::app.pair)}, '(q)'), "$no 1", 0 ],
	[ 'an index of rows with such an array', $with_pair->($array, q{(version) where q = array[row(1, 'x')::app.pair]}), "$no 1", 0 ],
	[ 'an index of the greater one', $with_pair->(q{pair default row(1, 'x')}, q{(((greatest(q, row(0, 'y')::app.pair)).a))}), "$no 1", 0 ],
	[ 'a key that is such an array', "$pair create table app.third (q app.pair[] primary key); alter table app.third owner to entityapi_owner; insert into app.third values (array[row(1, 'x')::app.pair]);"
		  . "alter table app.doc add column q app.$array, add constraint third foreign key (q) references app.third not valid;" . post({}), '201', 0 ],
	[ 'an index of arrays of what is PostgreSQL\'s', q(create type app.mood as enum ('low', 'high'); alter table app.doc add column q int[] default '{1, 2}', add column m app.mood[] default '{low}', add column r int4range default '[1,2]';)
		  . 'create index mine on app.doc (q, m, r); create index more on app.doc using gin (q); create index least on app.doc (greatest(n, 3)) where m = $${low}$$;' . post({ n => 5 }) . by_index('q = $${1, 2}$$ and n = 5'), '201 1 by index', 1 ],
	[ 'an index of a domain', 'create domain app.short as text check (length(value) < 5); create index mine on app.doc ((note::app.short)) where note is not null and length(note) < 5;' . post({ note => 'b' }) . by_index("note = 'b'"), '201 1 by index', 0 ],
	[ 'an index in somebody\'s order', 'create function app.order_of(text, text) returns int language plpgsql immutable as $f$ begin return bttextcmp($1, $2); end $f$;'
		  . 'create operator class app.somehow for type text using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 app.order_of(text, text); create index mine on app.doc (note app.somehow) where n > 0;' . post({ n => 8, note => 'b' }), '201', 0 ],
	[ 'an index of what somebody says', 'create function app.says(int) returns bool language plpgsql immutable as $f$ begin return $1 > 7; end $f$; create index mine on app.doc (n) where app.says(n);' . post({ n => 8 }) . by_index('app.says(n)'), '201 1 by index', 0 ],
	[ 'a key that goes', $by_code->() . post({ code => 'x' }) . 'alter table app.doc drop constraint mine;' . post({ code => 'x' }), "$no 201", 1 ],
	[ 'a PATCH to what is there', $by_code->() . $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { code => 'there' } } }, '*') . $locked, '200 t', 1 ],
	[ 'a PATCH to what is not', $by_code->() . $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { code => 'x' } } }, '*') . $locked, "$no f", 1 ],
	[ 'a PATCH of a reference', $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, relationships => { folder => { data => { type => 'folders', id => $folder } }, parent => { data => { type => 'docs', id => $one } } } } }, '*')
		  . "select folder_id is not null, parent_id = id from app.doc where id = '$one';", '200 t|t', 1 ],
	[ 'a PATCH to nothing', $by_code->() . $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { code => undef } } }, '*'), '200', 1 ],
);

# --- who else writes --------------------------------------------------------

my %others = (
	restore => "alter table app.doc drop constraint if exists mine; drop table if exists app.other; delete from app.doc where name in ('new', 'other'); update app.doc set code = 'c' where id = '$one';" . $by_code->() . 'alter table app.other add column more text;',
	told => "select code, note from app.doc where name = 'new'; select count(*) from app.other; alter table app.doc drop constraint mine; drop table app.other;");
my $delete = q{delete from app.other};
my $lock = sub { return "do \$p\$ begin perform from app.other for $_[0]; end \$p\$" };
my $there = post({ code => 'there' });
my $filed = $make->('docs', name => 'filed');
$cluster->psql("update app.doc set folder_id = '$folder' where id = '$filed'");
my $again = $both->request(PATCH => "/docs/$filed", { data => { type => 'docs', id => $filed, attributes => { n => 7 }, relationships => { folder => { data => { type => 'folders', id => $folder } } } } }, '*');
my $patch = $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { code => 'there' } } }, '*');

$both->compare_crossed(\%others,
	[ 'what it refers to goes', 'read committed', $delete, $there, 'commit', "waits $no 0" ],
	[ 'what it refers to does not go', 'read committed', $delete, $there, 'rollback', 'waits 201 there| 1' ],
	[ 'what it refers to is another', 'read committed', q{update app.other set code = 'x'}, $there, 'commit', "waits $no 1" ],
	[ 'what it refers to is the same', 'read committed', q{update app.other set code = 'there'}, $there, 'commit', qr/ 201 there\| 1$/ ],
	[ 'what it refers to is locked', 'read committed', $lock->('update'), $there, 'commit', 'waits 201 there| 1' ],
	[ 'what it refers to is shared', 'read committed', $lock->('share'), $there, 'commit', 'waits for nobody 201 there| 1' ],
	[ 'what it refers to is changed and goes then', 'read committed', q{update app.other set more = 'x'}, $there,
		q{commit; set lock_timeout = '100ms'; do $p$ begin delete from app.other; exception when lock_not_available then null; end $p$}, 'waits for nobody 201 there| 1' ],
	[ 'what it refers to comes', 'read committed', "insert into app.other values ('$tenant', 'x')", post({ code => 'x' }), 'commit', "waits for nobody $no 2" ],
	[ 'the same key', 'read committed', "insert into app.doc (tenant_id, id, name, code, version, created_at, updated_at) values ('$tenant', gen_random_uuid(), 'other', 'there', 0, now(), now())", $there, 'commit', 'waits 409 UNIQUE_VIOLATION 1' ],
	[ 'the same key in vain', 'read committed', "insert into app.doc (tenant_id, id, name, code, version, created_at, updated_at) values ('$tenant', gen_random_uuid(), 'other', 'there', 0, now(), now())", $there, 'rollback', 'waits 201 there| 1' ],
	[ 'what an old snapshot refers to goes', 'repeatable read', $delete, $there, 'commit', qr/^waits .*could not serialize access due to concurrent/ ],
	[ 'what an old snapshot refers to is changed', 'repeatable read', q{update app.other set code = 'there'}, $there, 'commit', undef ],
	[ 'a PATCH to what it refers to already', 'read committed', "do \$p\$ begin perform from app.folder where id = '$folder' for update; end \$p\$", $again, 'commit', 'waits for nobody 200 1' ],
	[ 'what a PATCH refers to goes', 'read committed', $delete, $patch, 'commit', "waits $no 0" ],
	[ 'what a PATCH refers to does not go', 'read committed', $delete, $patch, 'rollback', 'waits 200 1' ],
	[ 'a table that is locked, and nothing in it', 'read committed', 'lock table app.other in access exclusive mode', $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { code => undef } } }, '*'), 'commit', 'waits for nobody 200 1' ],
);

# An index of what rows were not yet when the snapshot was taken tells nothing
$both->compare_crossed({
		restore => "alter table app.doc drop constraint if exists mine; drop table if exists app.other; delete from app.doc where name = 'new';
			create table app.other (code varchar primary key, more varchar); alter table app.other owner to entityapi_owner; insert into app.other values ('old', 'old');",
		told => "select code from app.doc where name = 'new'; alter table app.doc drop constraint mine; drop table app.other;" },
	[ 'an index that is newer', 'repeatable read', "update app.other set more = 'new'; alter table app.other add unique (more); alter table app.doc add constraint mine foreign key (code) references app.other (more) not valid", post({ code => 'new' }), 'commit', "waits $no" ]);

# News of the table come in while another is waited for: no key is forgotten
my @keys = (1 .. 3);
my $drop = join '', map { "alter table app.doc drop constraint if exists key$_; drop table if exists app.key$_;" } @keys;
my $patch_n = $both->request(PATCH => "/docs/$one", { data => { type => 'docs', id => $one, attributes => { n => 5 } } }, '*');
my $lock_key = 'lock table app.key1 in access exclusive mode;';
$both->compare_crossed({
		restore => $drop . "delete from app.doc where name = 'new'; update app.doc set n = 1 where id = '$one';" . join('', map { "create table app.key$_ (k int primary key); alter table app.key$_ owner to entityapi_owner;"
					. ($_ < 3 && "insert into app.key$_ values (5);") . "alter table app.doc add constraint key$_ foreign key (n) references app.key$_ not valid;" } @keys),
		told => "select n from app.doc where name = 'new' or id = '$one'; $drop" },
	[ 'rights that change', 'read committed', "$lock_key grant select on app.doc to pg_monitor", post({ n => 5 }), 'commit', "waits $no 1" ],
	[ 'statistics that change', 'read committed', "$lock_key analyze app.doc", post({ n => 5 }), 'commit', "waits $no 1" ],
	[ 'rights that change beside a PATCH', 'read committed', "$lock_key grant select on app.doc to pg_monitor", $patch_n, 'commit', "waits $no 1" ]);

# --- all at once ------------------------------------------------------------

# Each POST that is answered with 201 has made a row with a record, and refers to a
# folder that is there, while folders come and go and tables are kept in order.
my @folders = map { sprintf '01900000-0000-7000-8000-%012d', $_ } 1 .. 12;
my @maintenance = ('create index concurrently mine on app.doc (n);', 'drop index concurrently app.mine;', 'vacuum app.folder;', 'reindex index concurrently app.folder__pkey;',
	'create index mine on app.doc (lower(name)) where n > 2;', 'vacuum (freeze) app.doc;', 'drop index app.mine;', 'reindex index concurrently app.doc__pkey;',
	'vacuum full app.folder;', 'cluster app.doc using doc__pkey;', 'alter table app.doc add constraint mine check (n < 1000000);', 'alter table app.doc drop constraint mine;');
my $client = sub {
	srand(time ^ $$);
	return 'set client_min_messages = error; select from entityapi.version();' . join '', map { $both->request(POST => '/docs', { data => doc({ name => 'busy', n => $_ }, folder => $folders[ rand @folders ]) }) } 1 .. 60;
};
my $folders = sub {
	srand(time ^ $$);
	return join '', map { my $id = $folders[ rand @folders ];
		rand() < 0.5 ? "with gone as (delete from app.folder f where id = '$id' and not exists (select from app.doc d where d.tenant_id = f.tenant_id and d.folder_id = f.id) returning 1) select 'gone' from gone;\n"
		: rand() < 0.5 ? "update app.folder set title = title || 'x' where id = '$id';\n"
		: "insert into app.folder (tenant_id, id, title, created_at, updated_at) values ('$tenant', '$id', 'busy', now(), now()) on conflict do nothing;\n" } 1 .. 40;
};
my $count = "select (select count(*) from app.doc where name = 'busy'), (select count(*) from entityapi.audit where action = 'ENTITY_CREATE' and outcome = 'SUCCESS')";
my @before = split /\|/, $cluster->psql($count);
my %said = $both->at_once($ENV{ENTITYAPI_INSERT_SECONDS} || 4, client1 => $client, client2 => $client,
	folders1 => sub { return "\\set ON_ERROR_STOP off\n" . $folders->() }, folders2 => sub { return "\\set ON_ERROR_STOP off\n" . $folders->() },
	maintenance => sub { return "set lock_timeout = '1s';\n\\set ON_ERROR_STOP off\n" . join ' select pg_sleep(0.02);', @maintenance });
my $said = $said{client1} . $said{client2};
my %answers;
$answers{$_}++ for split /\n/, $said;
my $done = $answers{201} // 0;
my @after = split /\|/, $cluster->psql($count);

cmp_ok($done, '>', 50, 'POSTs at once');
cmp_ok($answers{$no} // 0, '>', 0, '... some to a folder that is not there');
is(join("\n", grep { !/^(?:201|\Q$no\E|.*the declarations or their tables changed during the request|)$/ } sort keys %answers), '', '... which nothing else disturbs but a table that is another one by then');
is("@{[map { $after[$_] - $before[$_] } 0, 1]}", "$done $done", '... each has made a row, and has a record');
is($cluster->psql('select count(*) from app.doc d where folder_id is not null and not exists (select from app.folder f where f.tenant_id = d.tenant_id and f.id = d.folder_id)'), '0', '... which refers to one that is there');

# --- what it leaves ---------------------------------------------------------

for my $switch (qw(on off))
{
	my $plugin = "select slot_name from pg_create_logical_replication_slot('docs', 'test_decoding')";

	$cluster->psql("$plugin; select from entityapi.version(); set entityapi.direct_scans = $switch;" . post({ n => 5 }));
	like($cluster->psql("select string_agg(data, ' ') from pg_logical_slot_get_changes('docs', null, null) where data ~ '^table app.doc: INSERT'"), qr/ n\[integer\]:5 .*'new'|'new'.* n\[integer\]:5 /, "$switch: told to who decodes the WAL");
	$cluster->psql("select pg_drop_replication_slot('docs')");

	my $told = $cluster->try_psql("load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; select from entityapi.version();
		set entityapi.direct_scans = $switch; set client_min_messages = log; begin; " . post({ n => 5 }) . 'rollback');
	like($told->{err}, qr/^Insert on doc t0/m, "$switch: who watches the executor sees it");
}
is($cluster->psql("set client_min_messages = error; create extension amcheck; drop index if exists app.mine;
	select count(bt_index_check(i.indexrelid, true)) = count(*) from pg_index i where i.indrelid = 'app.doc'::regclass"), 't', 'every row is in every index');

is($shim->stop, 0, 'ends with 0');
done_testing;
