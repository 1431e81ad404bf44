# An UPDATE of one row by its key is done without the executor, where the table
# asks for nothing that only the executor knows: with the same answer, the same
# row, the same index entries, the same records and the same error in the end.
# Each thing is done with entityapi.direct_scans on and off, and undone.  Which
# way it went is told by what a session keeps of the plan.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::BothWays;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster(conf => [ 'wal_level = logical' ]);
my $true = JSON::PP::true;

sub entity { return EntityApi::Test::BothWays::entity(@_) }

EntityApi::Test::BothWays::apply($cluster, {},
	entity('Scrap', softDelete => $true, fields => { name => { type => 'string', unique => $true }, note => { type => 'text' } }),
	entity('Own', fields => { name => { type => 'string' }, open => { type => 'boolean' } }, policies => { OpenOnly => ['update'] }),
	{ apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => 'OpenOnly' }, spec => { description => 'o', expression => '#record.open == true' } });

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
my $both = EntityApi::Test::BothWays->new($cluster, $ed);
my $make = sub { my ($type, %attributes) = @_; return $shim->must(201, POST => "/api/v1/$type", { token => $ed, json => { data => { type => $type, attributes => \%attributes } } })->{data}{id} };
my $folder = $make->('folders', title => 'f');
my $id = $make->('docs', name => 'one', code => 'c', amount => 1.5, n => 1, state => 'NEW', note => 'a');
my $other = $make->('docs', name => 'two', code => 'd', n => 2, note => 'b');
my $scrap = $make->('scraps', name => 's', note => 'a');
my $own = $make->('owns', name => 's', open => $true);

# enough rows for the planner to take an index
$cluster->psql("insert into app.doc (tenant_id, id, name, code, n, note, version, created_at, updated_at)
	select '$tenant', gen_random_uuid(), 'fill', 'fill' || i, 0, 'fill' || i, 0, now(), now() from generate_series(1, 3000) i; vacuum analyze app.doc");
my $where = "where tenant_id = '$tenant' and id = '$id'";

# --- what is done -----------------------------------------------------------

sub request { return $both->request(@_) }

sub doc { my ($attributes, $which) = @_; return { data => { type => 'docs', id => $which // $id, attributes => $attributes } } }

sub patch { my ($attributes, %of) = @_; return request(PATCH => '/docs/' . ($of{id} // $id) . ($of{query} // ''), doc($attributes, $of{id}), $of{match} // '*') }

sub adds { return { 'atomic:operations' => [ map { { op => 'update', data => { %{ doc({ n => $_ })->{data} }, meta => { version => $_ - 1 } } } } @_ ] } }

my $row = "select concat_ws('|', name, code, amount, n, state, md5(note), folder_id is not null, version) from app.doc $where;\n";

# By each index, whatever the planner thinks
sub by_index { return "set local enable_seqscan = off; select count(*) || ' by index' from app.doc where $_[0];\n" }

my $seen = 'create table seen (what text); grant insert on seen to public;
	create function note() returns trigger language plpgsql as $$ begin insert into public.seen values (tg_op || coalesce(old.n::text, tg_level)); return new; end $$;
	alter function note() owner to entityapi_owner;';

# A foreign key that only PostgreSQL knows of
my $by_code = "create table app.other (tenant_id uuid, code varchar, primary key (tenant_id, code)); alter table app.other owner to entityapi_owner;
	insert into app.other values ('$tenant', 'there'); alter table app.doc add constraint mine foreign key (tenant_id, code) references app.other not valid;";

# name, SQL, what is to be seen, how many plans of the kind are kept
$both->compare(
	[ 'a change', patch({ n => 5, note => "it's \x{fc}" }) . $row, '200 one|c|1.50|5|NEW|aae08d21339877bcb583d5c5cd6f8d62|f|1', 1 ],
	[ 'no change', patch({ n => 1 }) . $row, '200 one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'to nothing', patch({ n => undef, amount => undef, note => undef }) . $row, '200 one|c|NEW|f|1', 1 ],
	[ 'several times', join('', map { patch({ n => $_ }) } 1 .. 40) . $row, join(' ', ('200') x 40) . ' one|c|1.50|40|NEW|0cc175b9c0f1b6a831c399e269772661|f|40', 1 ],
	[ 'with its version', patch({ n => 5 }, match => 0) . patch({ n => 6 }, match => 1) . $row, '200 200 one|c|1.50|6|NEW|0cc175b9c0f1b6a831c399e269772661|f|2', 1 ],
	[ 'with another one', patch({ n => 5 }, match => 7) . $row, '412 PRECONDITION_FAILED one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|0', 1 ],
	[ 'many at once', request(POST => '/operations', adds(1 .. 200)) . $row, '200 one|c|1.50|200|NEW|0cc175b9c0f1b6a831c399e269772661|f|200', 1 ],
	[ 'what is not there', patch({ n => 5 }, id => '01900000-0000-7000-8000-000000000001'), '404 NOT_FOUND', 1 ],
	[ 'a long text', patch({ note => join ' ', map { $_ * 7919 % 10007 } 1 .. 20000 }) . $row . patch({ n => 7 }) . $row . patch({ note => 'a' }) . $row,
		'200 one|c|1.50|1|NEW|d59411940be7f9d81b8d84800109a2ab|f|1 200 one|c|1.50|7|NEW|d59411940be7f9d81b8d84800109a2ab|f|2 200 one|c|1.50|7|NEW|0cc175b9c0f1b6a831c399e269772661|f|3', 2 ],
	[ 'what is in an index', patch({ name => 'uno' }) . by_index("tenant_id = '$tenant' and name = 'uno'") . by_index("tenant_id = '$tenant' and name = 'one'"), '200 1 by index 0 by index', 1 ],
	[ 'an expression', 'create index mine on app.doc (lower(note));' . patch({ note => 'LOUD' }) . by_index("lower(note) = 'loud'") . by_index("lower(note) = 'a'"), '200 1 by index 0 by index', 1 ],
	[ 'an expression of somebody', 'create function app.fixed(text) returns text language plpgsql immutable as $f$ begin return lower($1); end $f$; create index mine on app.doc (app.fixed(note));' . patch({ note => 'LOUD' }) . by_index("app.fixed(note) = 'loud'") . by_index("app.fixed(note) = 'a'"), '200 1 by index 0 by index', 1 ],
	[ 'some rows', 'create index mine on app.doc (n) where n > 7;' . patch({ n => 5 }) . by_index('n > 7') . patch({ n => 8 }) . by_index('n > 7') . patch({ n => 9 }) . by_index('n = 8 and n > 7') . patch({ n => 7 }) . by_index('n > 7'),
		'200 0 by index 200 1 by index 200 0 by index 200 0 by index', 1 ],
	[ 'an index of another kind', 'create index mine on app.doc using hash (note);' . patch({ note => 'z' }) . by_index("note = 'z'") . by_index("note = 'a'"), '200 1 by index 0 by index', 1 ],
	[ 'an index that is a summary', 'create index mine on app.doc using brin (n) with (pages_per_range = 1);' . patch({ n => 4000 }) . 'set local enable_indexscan = off; set local enable_bitmapscan = on;' . by_index('n = 4000'), '200 1 by index', 1 ],
	[ 'an index after the plan was made', patch({ note => 'y' }) . 'create index mine on app.doc (note);' . patch({ note => 'z' }) . by_index("note = 'z'") . by_index("note = 'y'"), '200 200 1 by index 0 by index', 1 ],
	[ 'what must be unique among some', 'create unique index mine on app.doc (note) where n > 0;' . patch({ note => 'b' }), '409 UNIQUE_VIOLATION', 1 ],
	[ 'what must be unique', patch({ code => 'd' }) . $row, '409 UNIQUE_VIOLATION one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|0', 1 ],
	[ 'a unique column', patch({ code => 'e' }) . $row, '200 one|e|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'a column that others refer to', 'create table app.other (tenant_id uuid, code varchar, foreign key (tenant_id, code) references app.doc (tenant_id, code) on update cascade); alter table app.other owner to entityapi_owner;'
		  . "insert into app.other values ('$tenant', 'c');" . patch({ code => 'e' }) . 'select code from app.other;', '200 e', 0 ],
	[ 'one that others refer to in vain', 'create table app.other (tenant_id uuid, code varchar, foreign key (tenant_id, code) references app.doc (tenant_id, code)); alter table app.other owner to entityapi_owner;'
		  . "insert into app.other values ('$tenant', 'c');" . patch({ n => 5 }) . patch({ code => 'e' }) . 'select code from app.other;', '200 409 STILL_REFERENCED c', 1 ],
	[ 'too little', patch({ amount => -1 }), '400 INVALID_VALUE', 0 ],
	[ 'too much for the column', "alter table app.doc add constraint mine check (n < 10);" . patch({ n => 11 }) . patch({ n => 9 }) . patch({ n => 12 }) . $row, '400 CHECK_FAILED 200 400 CHECK_FAILED one|c|1.50|9|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'a check that is no longer kept', "alter table app.doc add constraint mine check (coalesce(n, 0) < case when version > 2 then 10 else 20 end);" . patch({ n => 11 }) . patch({ n => 9 }) . patch({ n => 12 }), '200 200 400 CHECK_FAILED', 1 ],
	[ 'a value that must be', 'alter table app.doc alter n set not null;' . patch({ n => undef }) . patch({ n => 3 }) . $row, '400 REQUIRED 200 one|c|1.50|3|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'a trigger before', "$seen create trigger note before update on app.doc for each row execute function note();" . patch({ n => 5 }) . 'table seen;', '200 UPDATE1', 0 ],
	[ 'a trigger after', patch({ n => 4 }) . "$seen create trigger note after update on app.doc for each row execute function note();" . patch({ n => 5 }) . 'table seen;', '200 200 UPDATE4', 0 ],
	[ 'a trigger for a column', "$seen create trigger note after update of n on app.doc for each row execute function note();" . patch({ n => 5 }) . 'table seen;', '200 UPDATE1', 0 ],
	[ 'a trigger by statement', "$seen create trigger note before update on app.doc for each statement execute function note();" . patch({ n => 5 }) . 'table seen;', '200 UPDATESTATEMENT', 0 ],
	[ 'a trigger after all', "$seen create constraint trigger note after update on app.doc deferrable initially deferred for each row execute function note();" . patch({ n => 5 }) . 'set constraints all immediate; table seen;', '200 UPDATE1', 0 ],
	[ 'a trigger for other things', "$seen create trigger note after insert or delete on app.doc for each row execute function note();" . patch({ n => 5 }) . 'table seen;', '200', 1 ],
	[ 'a trigger that has gone', "$seen create trigger note after update on app.doc for each row execute function note();" . patch({ n => 4 }) . 'drop trigger note on app.doc;' . patch({ n => 5 }) . 'table seen;', '200 200 UPDATE1', 1 ],
	[ 'a rule beside', "$seen create rule note as on update to app.doc do also insert into seen values ('rule');" . patch({ n => 5 }), '500 INTERNAL_ERROR', 0 ],
	[ 'a column that is computed', 'alter table app.doc add column twice int generated always as (n * 2) stored;' . patch({ n => 21 }) . "select twice from app.doc $where;", '200 42', 0 ],
	[ 'a column that has gone', 'alter table app.doc add column more text default repeat($$x$$, 5000); alter table app.doc drop column more;' . patch({ n => 5 }) . $row, '200 one|c|1.50|5|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'a column that came later', q(alter table app.doc add column more text default 'more';) . patch({ n => 5 }) . "select more from app.doc $where;", '200 more', 1 ],
	[ 'a key that is checked later', 'alter table app.doc add constraint mine unique (note) deferrable initially deferred;' . patch({ note => 'b' }) . 'set constraints all immediate;', '409 UNIQUE_VIOLATION', 0 ],
	[ 'rows that exclude each other', 'alter table app.doc add constraint mine exclude using btree (note with =);' . patch({ note => 'b' }), '409 OVERLAP', 0 ],
	[ 'row security', 'alter table app.doc force row level security; create policy mine on app.doc for all using (true) with check (n < 5);' . patch({ n => 5 }), '500 INTERNAL_ERROR', undef ],
	[ 'no right', 'revoke update on app.doc from entityapi_owner;' . patch({ n => 5 }), '500 INTERNAL_ERROR', undef ],
	[ 'a right on columns', 'revoke update on app.doc from entityapi_owner; grant update (n, version, updated_at) on app.doc to entityapi_owner;' . patch({ n => 5 }) . patch({ note => 'c' }), '200 500 INTERNAL_ERROR', undef ],
	[ 'a table that inherits', 'create table app.heir () inherits (app.doc); alter table app.heir owner to entityapi_owner;' . patch({ n => 5 }) . $row, undef, undef ],
	[ 'a transaction that may not write', 'set transaction read only;' . patch({ n => 5 }), undef, undef ],
	[ 'one that is undone in part', 'savepoint s;' . patch({ n => 5 }) . 'rollback to s;' . $row . patch({ n => 6 }) . $row, '200 one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|0 200 one|c|1.50|6|NEW|0cc175b9c0f1b6a831c399e269772661|f|1', 1 ],
	[ 'a publication without a key', 'alter table app.doc replica identity nothing; create publication mine for table app.doc;' . patch({ n => 5 }), '500 INTERNAL_ERROR', undef ],
	[ 'a reference', request(PATCH => "/docs/$id", { data => { type => 'docs', id => $id, relationships => { folder => { data => { type => 'folders', id => $folder } } } } }, '*') . $row, '200 one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|t|1', 0 ],
	[ 'a column that refers to what is there', $by_code . patch({ code => 'there' }) . patch({ n => 5 }) . $row, '200 200 one|there|1.50|5|NEW|0cc175b9c0f1b6a831c399e269772661|f|2', 1 ],
	[ 'to what is not', $by_code . patch({ code => 'x' }) . $row, '404 RELATED_NOT_FOUND one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|0', 0 ],
	[ 'to nothing any more', $by_code . patch({ code => undef }), '200', 0 ],
	[ 'the other side of it', request(PATCH => "/folders/$folder", { data => { type => 'folders', id => $folder, attributes => { title => 'g' } } }) . 'select title from app.folder;', '200 g', 1 ],
	[ 'a key that is null in part', 'create table app.full (p int, q int, primary key (p, q)); alter table app.doc add column p int, add column q int; alter table app.full owner to entityapi_owner;'
		  . "update app.doc set p = 1 $where; alter table app.doc add constraint mine foreign key (p, q) references app.full match full not valid;" . patch({ n => 5 }, query => '?fields[docs]=n') . $row,
		'404 RELATED_NOT_FOUND one|c|1.50|1|NEW|0cc175b9c0f1b6a831c399e269772661|f|0', 0 ],
	[ 'a trigger that only looks like one of a key', 'create constraint trigger mine after update on app.doc for each row execute function "RI_FKey_noaction_upd"();' . patch({ n => 5 }), '500 INTERNAL_ERROR', 0 ],
	[ 'a row of its own that refers to nothing', 'set constraints all deferred; insert into app.doc (tenant_id, id, name, version, folder_id, created_at, updated_at)'
		  . " values ('$tenant', '01900000-0000-7000-8000-000000000002', 'new', 1, '01900000-0000-7000-8000-000000000003', now(), now());"
		  . patch({ n => 5 }, id => '01900000-0000-7000-8000-000000000002', query => '?fields[docs]=n') . 'set constraints all immediate;',
		'404 RELATED_NOT_FOUND ERROR insert or update on table "doc" violates foreign key constraint "doc__folder_id_fkey"', 1 ],
	[ 'a row of its own', "insert into app.doc (tenant_id, id, name, version, folder_id, created_at, updated_at) values ('$tenant', '01900000-0000-7000-8000-000000000002', 'new', 1, '$folder', now(), now());"
		  . patch({ n => 5 }, id => '01900000-0000-7000-8000-000000000002') . 'set constraints all immediate;', '200', 1 ],
	[ 'what is deleted softly', request(PATCH => "/scraps/$scrap", { data => { type => 'scraps', id => $scrap, attributes => { note => 'b' } } })
		  . request(DELETE => "/scraps/$scrap") . request(PATCH => "/scraps/$scrap", { data => { type => 'scraps', id => $scrap, attributes => { note => 'c' } } }) . 'select note, deleted_at is null from app.scrap;',
		'200 204 404 NOT_FOUND b|f', undef ],
	[ 'a policy', request(PATCH => "/owns/$own", { data => { type => 'owns', id => $own, attributes => { name => 'b' } } })
		  . request(PATCH => "/owns/$own", { data => { type => 'owns', id => $own, attributes => { open => JSON::PP::false } } }) . 'select name, open from app.own;', undef, undef ],
);

# --- what it takes ----------------------------------------------------------

# What a condition has to read of long values does not add up in a request
$cluster->psql("alter table app.doc add column extra text; alter table app.doc add constraint mine check (length(extra) < 10000000);
	update app.doc set extra = repeat('x', 1000000) where id in (select id from app.doc where code like 'fill%' order by id limit 300); vacuum app.doc");
my @long = split /\n/, $cluster->psql('select id from app.doc where extra is not null');
my $sets = { 'atomic:operations' => [ map { { op => 'update', data => { %{ doc({ n => 5 }, $_)->{data} }, meta => { version => 0 } } } } @long ] };
is($both->run($_, request(POST => '/operations', $sets)), '200', "$_: 300 rows of a megabyte that is checked") for qw(on off);
$cluster->psql('alter table app.doc drop column extra; vacuum full app.doc; analyze app.doc');

# --- what it leaves ---------------------------------------------------------

# Rows by a key that several have: all of them
my $many = $shim->user($tenant, 'many', ['Editor']);
$shim->login('many', $many->{password}) for 1 .. 3;
my $ended = "select count(*), count(revoked_at) from entityapi.session where account_id = '$many->{id}';";
my $root = $shim->superadmin->{accessToken};
my $disable = "select status from entityapi.handle('PATCH', '/manage/tenants/$tenant/users/$many->{id}',
	'{\"authorization\": \"Bearer $root\", \"content-type\": \"application/json\"}', convert_to('{\"status\": \"DISABLED\"}', 'UTF8'), '192.0.2.1');";
is($both->run($_, "set local enable_seqscan = off; set local enable_bitmapscan = off; $disable $ended"), '200 4|4', "$_: all sessions of somebody end at once") for qw(on off);

$cluster->psql('set client_min_messages = error; create extension pageinspect; alter table app.doc add column more text;
	update app.doc set more = (select string_agg(md5(i::text), $$$$) from generate_series(1, 28) i); alter table app.doc drop column more');
for my $switch (qw(on off))
{
	# a value of a column that is gone is not written again
	my $size = $both->run($switch, patch({ n => 5 })
		. "select lp_len < 300 from app.doc d, heap_page_items(get_raw_page('app.doc', (d.ctid::text::point)[0]::int)) i $where and i.lp = (d.ctid::text::point)[1]::int;");
	is($size, '200 t', "$switch: nothing of a column that has gone");

	my $told = $cluster->try_psql("load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on; select from entityapi.version();
		set entityapi.direct_scans = $switch; set client_min_messages = log; begin; " . patch({ n => 5 }) . 'rollback');
	like($told->{err}, qr/^Update on doc t0/m, "$switch: who watches the executor sees it");
}

# --- who else writes --------------------------------------------------------

my $restore = "delete from app.doc where tenant_id = '$tenant' and (code = 'c' or id = '$id'); insert into app.doc (tenant_id, id, name, code, n, note, version, created_at, updated_at)
	values ('$tenant', '$id', 'one', 'c', 1, 'a', 0, now(), now());";
my $changed = "select changes::text from entityapi.audit where request_id = 'it' and action = 'ENTITY_UPDATE' order by at desc, id desc limit 1;";
my $set = sub { return "update app.doc set $_[0] $where" };
my $lock = sub { return "do \$p\$ begin perform from app.doc $where for $_[0]; end \$p\$" };

$both->compare_crossed({ restore => $restore, told => "$row $changed" },
	[ 'another column', 'read committed', $set->("note = 'b'"), patch({ n => 5 }), 'commit', 'waits 200 one|c|5|92eb5ffee6ae2fec3ad71c777531578f|f|1 {"n":[1,5]}' ],
	[ 'the same column', 'read committed', $set->('n = 3'), patch({ n => 5 }), 'commit', 'waits 200 one|c|5|0cc175b9c0f1b6a831c399e269772661|f|1 {"n":[3,5]}' ],
	[ 'an indexed column', 'read committed', $set->("name = 'uno'"), patch({ name => 'eins' }), 'commit', 'waits 200 eins|c|1|0cc175b9c0f1b6a831c399e269772661|f|1 {"name":["uno","eins"]}' ],
	[ 'what is undone', 'read committed', $set->('n = 3'), patch({ n => 5 }), 'rollback', 'waits 200 one|c|5|0cc175b9c0f1b6a831c399e269772661|f|1 {"n":[1,5]}' ],
	[ 'the version', 'read committed', $set->('version = 7'), patch({ n => 5 }, match => 0), 'commit', 'waits 412 PRECONDITION_FAILED one|c|1|0cc175b9c0f1b6a831c399e269772661|f|7' ],
	[ 'a row that goes', 'read committed', "delete from app.doc $where", patch({ n => 5 }), 'commit', 'waits 404 NOT_FOUND' ],
	[ 'its id', 'read committed', $set->("id = '01900000-0000-7000-8000-000000000009'"), patch({ n => 5 }), 'commit', 'waits 404 NOT_FOUND' ],
	[ 'a reference to it', 'read committed', $lock->('key share'), patch({ n => 5 }), 'commit', 'waits for nobody 200 one|c|5|0cc175b9c0f1b6a831c399e269772661|f|1 {"n":[1,5]}' ],
	[ 'a row that is shared', 'read committed', $lock->('share'), patch({ n => 5 }), 'commit', 'waits 200 one|c|5|0cc175b9c0f1b6a831c399e269772661|f|1 {"n":[1,5]}' ],
	[ 'what an old snapshot sees', 'repeatable read', $set->('n = 3'), patch({ n => 5 }), 'commit', qr/^waits .*could not serialize access due to concurrent update.* one\|c\|3\|/ ],
);

# A key that stays is not asked, whoever has locked the row that it refers to
my $filed = request(PATCH => "/docs/$other", { data => { type => 'docs', id => $other, attributes => { n => 7 }, relationships => { folder => { data => { type => 'folders', id => $folder } } } } }, '*');
$cluster->psql("update app.doc set folder_id = '$folder' where id = '$other'");
$both->compare_crossed({ restore => "alter table app.doc drop constraint if exists mine; drop table if exists app.other; $restore $by_code",
		told => "select code from app.doc $where; alter table app.doc drop constraint mine; drop table app.other;" },
	[ 'what it refers to goes', 'read committed', 'delete from app.other', patch({ code => 'there' }), 'commit', 'waits 404 RELATED_NOT_FOUND c' ],
	[ 'what it refers to does not go', 'read committed', 'delete from app.other', patch({ code => 'there' }), 'rollback', 'waits 200 there' ],
	[ 'to what it refers to already', 'read committed', "do \$p\$ begin perform from app.folder where id = '$folder' for update; end \$p\$", $filed, 'commit', 'waits for nobody 200 c' ],
	[ 'a table that is locked, and nothing in it', 'read committed', 'lock table app.other in access exclusive mode', patch({ code => undef }), 'commit', 'waits for nobody 200' ],
);

# --- all at once ------------------------------------------------------------

# Each PATCH that is answered has changed one version, and has one record, while
# who builds indexes, vacuums and rewrites the table gets on with it.
my @docs = split /\n/, $cluster->psql("select id from app.doc where tenant_id = '$tenant' order by id limit 7");
my @maintenance = ('create index concurrently mine on app.doc (n);', 'drop index concurrently app.mine;', 'vacuum app.doc;', 'reindex index concurrently app.doc__name_idx;',
	'create index mine on app.doc (lower(name)) where n > 2;', 'vacuum (freeze) app.doc;', 'drop index app.mine;', 'reindex index concurrently app.doc__pkey;',
	'alter table app.doc set (fillfactor = 100);', 'vacuum full app.doc;', 'alter table app.doc reset (fillfactor);', 'cluster app.doc using doc__pkey;',
	'alter table app.doc add constraint mine check (n < 1000000);', 'alter table app.doc drop constraint mine;');
my @before = split /\|/, $cluster->psql("select sum(version), (select count(*) from entityapi.audit where action = 'ENTITY_UPDATE' and outcome = 'SUCCESS') from app.doc");
my $worker = sub {
	srand(time ^ $$);
	my $begun = 'set client_min_messages = error; select from entityapi.version();';
	return $begun . join '', map { my $which = $docs[ rand @docs ];
		patch(rand() < 0.5 ? { n => int rand 1000 } : { name => 'n' . int rand 1000 }, id => $which) } 1 .. 60;
};
my %said = $both->at_once($ENV{ENTITYAPI_UPDATE_SECONDS} || 4, client1 => $worker, client2 => $worker, client3 => $worker,
	maintenance => sub { return "set lock_timeout = '1s';\n\\set ON_ERROR_STOP off\n" . join ' select pg_sleep(0.02);', @maintenance });
my $said = join '', map { $said{"client$_"} } 1 .. 3;
my $done = () = $said =~ /^200$/mg;
my @after = split /\|/, $cluster->psql("select sum(version), (select count(*) from entityapi.audit where action = 'ENTITY_UPDATE' and outcome = 'SUCCESS') from app.doc");

cmp_ok($done, '>', 100, 'PATCHes at once');
is($said =~ s/^(?:200|.*the declarations or their tables changed during the request)?\n//mgr, '', '... which nothing disturbs but a table that is another one by then');
is("@{[map { $after[$_] - $before[$_] } 0, 1]}", "$done $done", '... each has changed a version, and has a record');

# --- what stays -------------------------------------------------------------

for my $switch (qw(on off))
{
	my $plugin = "select slot_name from pg_create_logical_replication_slot('docs', 'test_decoding')";

	$cluster->psql("$restore alter table app.doc replica identity full; $plugin; select from entityapi.version(); set entityapi.direct_scans = $switch;"
		. patch({ n => 5 }) . patch({ name => 'uno' }));
	like($cluster->psql("select string_agg(data, ' ') from pg_logical_slot_get_changes('docs', null, null) where data ~ '^table app.doc: UPDATE'"),
		qr/old-key:.* n\[integer\]:1 .*new-tuple:.* n\[integer\]:5 .*old-key:.*'one'.*new-tuple:.*'uno'/, "$switch: told to who decodes the WAL");
	$cluster->psql("select pg_drop_replication_slot('docs'); alter table app.doc replica identity default");
}
is($cluster->psql("set client_min_messages = error; create extension amcheck; drop index if exists app.mine;
	select count(bt_index_check(i.indexrelid, true)) = count(*) from pg_index i where i.indrelid = 'app.doc'::regclass"), 't', 'every row is in every index');

is($shim->stop, 0, 'ends with 0');
done_testing;
