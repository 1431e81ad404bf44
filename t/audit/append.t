# Records are put into the log without the executor, where the log is what the
# extension made: as an INSERT would do it, byte for byte.  Where the installer
# has added something to it, or the session may not write, the INSERT decides.
# Each thing is done with entityapi.direct_scans on and off, and undone.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

# The month must not end meanwhile.
my $now = POSIX::strftime('%Y-%m-%d %H:%M:%SZ', gmtime);
my $cluster = EntityApi::Test->cluster(conf => [ 'wal_level = logical', "entityapi.clock = '$now'" ]);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
my $reader = $shim->user($tenant, 'reader', ['Reader']);
my $made = sub { $shim->must(201, POST => '/api/v1/items', { token => $ed, json => { data => { type => 'items', attributes => { name => $_[0], note => 'a' } } } })->{data}{id} };
my $id = $made->('one');
my $json = JSON::PP->new->canonical->ascii;
my $month = 'entityapi.audit_' . $now =~ s/^(\d+)-(\d+).*/$1_$2/r;
my $type = 'application/vnd.api+json';
my $atomic = "$type;ext=\\\"https://jsonapi.org/ext/atomic\\\"";

# One request, and its status; $document is in a literal.
sub request
{
	my ($name, $who, $method, $target, $document, $as) = @_;
	my $body = defined $document ? 'convert_to($j$' . $json->encode($document) . q{$j$, 'UTF8')} : 'null';

	$as //= $type;
	return "select status from entityapi.handle('$method', '/api/v1$target', '{\"authorization\": \"Bearer $who->{accessToken}\",
		\"content-type\": \"$as\", \"accept\": \"$as\", \"x-request-id\": \"$name\"}', $body, '192.0.2.1');\n";
}

sub item { my ($attributes, $which) = @_; return { data => { type => 'items', ($which ? (id => $which) : ()), attributes => $attributes } } }

sub patch { my ($name, $note) = @_; return request($name, $ed, PATCH => "/items/$id", item({ note => $note // 'b' }, $id)) }

sub adds { return { 'atomic:operations' => [ map { { op => 'add', data => { type => 'items', attributes => { name => "n$_", note => 'x' x $_ } } } } @_ ] } }

my $records = q{select count(*) from entityapi.audit where request_id = 'it';};
my $note = "select note from app.item where id = '$id';";

# --- what is written --------------------------------------------------------

my @requests = (
	[ 'a change',       PATCH => "/items/$id", item({ rank => 4, note => "it's \\ \"so\" \x{fc}", flag => JSON::PP::true }, $id) ],
	[ 'no change',      PATCH => "/items/$id", item({ rank => 4 }, $id) ],
	[ 'a long one',     PATCH => "/items/$id", item({ note => join ' ', map { $_ * 7919 % 10007 } 1 .. 20000 }, $id) ],
	[ 'back again',     PATCH => "/items/$id", item({ note => 'a', rank => 1 }, $id) ],
	[ 'a create',       POST  => '/items', item({ name => 'three' }) ],
	[ 'many at once',   POST  => '/operations', adds(1 .. 300), $atomic ],
	[ 'a refusal',      POST  => '/items', item({ nonsense => 1 }) ],
	[ 'a member',       PATCH => "/items/$id/relationships/group", { data => undef } ],
);

my %seen;
for my $switch (qw(on off))
{
	my $script = "select entityapi.version(); set entityapi.direct_scans = $switch; begin;\n";
	my $n = 0;

	$script .= request("$switch-" . $n++, $ed, @$_[ 1 .. $#$_ ]) for @requests;
	$script .= request("$switch-denied", $reader, PATCH => "/items/$id", item({ rank => 5 }, $id));
	$script .= qq{select concat_ws('|', replace(request_id, '$switch', 'id'), tenant_id, actor_id, actor_kind, actor_username, actor_key_id,
			action, outcome, target_type, case when target_id = '$id' then 'it' when target_id is null then 'none' else 'another' end,
			md5(changes::text), length(changes::text), ip, detail, at = max(at) over (partition by request_id), pg_column_size(id))
		from entityapi.audit where request_id ~ '^$switch-' order by request_id, id;\n};
	$script .= "rollback; select count(*) from entityapi.audit where request_id ~ '^$switch-'";
	$seen{$switch} = $cluster->psql($script);
}
is($seen{on}, $seen{off}, 'the records are the same');
is(() = $seen{on} =~ /^id-5\|.*\|ENTITY_CREATE\|/mg, 300, 'one for each row');
like($seen{on}, qr/^id-denied\|.*\|DENIED\|/m, 'and for what is denied');
like($seen{on}, qr/^0\z/m, 'undone with the transaction');

# --- a log that is another one ----------------------------------------------

my $logged = 'create table seen (what text); grant insert on seen to public;
	create function note() returns trigger language plpgsql as $$ begin insert into public.seen values (tg_level); return new; end $$;
	alter function note() owner to entityapi_owner;';
my $columns = 'id, at, tenant_id, actor_id, actor_kind, actor_username, actor_key_id, action, outcome, target_type, target_id, changes, request_id, ip, detail, version, revision';

# what is done to the log, what is looked at after a PATCH, and what is to be seen
my @changed = (
	[ 'as it was made', '', "$records $note", '200 1 b' ],
	[ 'a constraint on the month', "alter table $month add constraint no check (action <> 'ENTITY_UPDATE') not valid;", '', 'ERROR' ],
	[ 'a constraint on all', "alter table entityapi.audit add constraint no check (detail is not null) not valid;", $note, '500 a' ],
	[ 'a value that must be', "alter table entityapi.audit add constraint no check (target_id is not null) not valid;", "$records $note", '200 1 b' ],
	[ 'a column more', "alter table entityapi.audit add column more text default 'more';", "select more from entityapi.audit where request_id = 'it';", '200 more' ],
	[ 'a column that is computed', 'alter table entityapi.audit add column more text generated always as (lower(action)) stored;', "select more from entityapi.audit where request_id = 'it';", '200 entity_update' ],
	[ 'a trigger on the month', "$logged create trigger note after insert on $month for each row execute function note();", "$records select what from seen;", '200 1 ROW' ],
	[ 'a trigger before', "$logged create trigger note before insert on $month for each row execute function note();", "$records select what from seen;", '200 1 ROW' ],
	[ 'a trigger on all', "$logged create trigger note after insert on entityapi.audit for each row execute function note();", "$records select what from seen;", '200 1 ROW' ],
	[ 'a trigger by statement', "$logged create trigger note before insert on entityapi.audit for each statement execute function note();", "$records select what from seen;", '200 1 STATEMENT' ],
	[ 'a rule', 'create rule no as on insert to entityapi.audit do instead nothing;', '', 'ERROR' ],
	[ 'an index over an expression', "create index mine on $month (lower(action));", "set enable_seqscan = off; select count(*) from $month where lower(action) = 'entity_update' and request_id = 'it';", '200 1' ],
	[ 'an index of another kind', "create index mine on $month using hash (target_id);", "set enable_seqscan = off; select count(*) from $month where target_id = '$id' and request_id = 'it';", '200 1' ],
	[ 'an index over some rows', "create index mine on $month (target_id, ip) where tenant_id is not null and outcome = 'SUCCESS';",
		"set enable_seqscan = off; select count(*) from $month where target_id = '$id' and tenant_id is not null and outcome = 'SUCCESS' and request_id = 'it';", '200 1' ],
	[ 'a unique index', "create unique index mine on $month (request_id) where outcome = 'SUCCESS' and action = 'ENTITY_UPDATE';" . patch('it'), "$records $note", '200 500 2 b' ],
	[ 'rows that exclude each other', "alter table $month add constraint mine exclude using btree (request_id with =) where (outcome = 'SUCCESS' and action = 'ENTITY_UPDATE');" . patch('it'), "$records $note", '200 500 2 b' ],
	[ 'an index that is a summary', "create index mine on $month using brin (target_id);", "set enable_seqscan = off; set enable_indexscan = off; select count(*) from $month where target_id = '$id' and request_id = 'it';", '200 1' ],
	[ 'a unique index over all rows', "create unique index mine on $month (ip, request_id, action);" . patch('it'), '', 'ERROR' ],
	[ 'a key that is checked later', "alter table $month add constraint mine unique (id, at) deferrable initially deferred;", "$records set constraints all immediate;", '200 1' ],
	[ 'a month without an index', "drop index ${month}_request_id_idx;", $records, '200 1' ],
	[ 'a month that is missing', "drop table $month;", "$records select count(*) from $month where request_id = 'it';", '200 1 1' ],
	[ 'a month that is detached', "alter table entityapi.audit detach partition $month;", "$records select count(*) from entityapi.audit_default where request_id = 'it';", '200 1 1' ],
	[ 'row security', 'alter table entityapi.audit enable row level security;', '', 'ERROR' ],
	[ 'no right', 'revoke insert on entityapi.audit from entityapi_owner;', '', 'ERROR' ],
	[ 'a right on columns', "revoke insert on entityapi.audit from entityapi_owner; grant insert ($columns) on entityapi.audit to entityapi_owner;", $records, '200 1' ],
	[ 'a transaction that may not write', 'set transaction read only;', '', 'ERROR' ],
	[ 'one that is undone in part', 'savepoint s;', "rollback to s; $records $note", '200 0 a' ],
	[ 'a temporary table of the name', 'create temp table audit (id uuid);', "$records $note", '200 1 b' ]);

for my $case (@changed)
{
	my ($name, $sql, $look, $expected) = @$case;
	my %got;

	for my $switch (qw(on off))
	{
		my $result = $cluster->try_psql("set client_min_messages = error; select from entityapi.version(); set entityapi.direct_scans = $switch; begin; $sql\n"
			. patch('it') . "$look\nrollback;");
		my $out = $result->{status} == 0 ? join ' ', grep { $_ ne '' } split /\n/, $result->{out} : 'ERROR';

		$got{$switch} = $out;
	}
	is($got{on}, $got{off}, "$name: all the same");
	is($got{on}, $expected, '... as it should be');
}

# --- what stays -------------------------------------------------------------

$cluster->psql("select slot_name from pg_create_logical_replication_slot('log', 'test_decoding')");
$cluster->psql('select from entityapi.version(); ' . request('kept', $ed, POST => '/operations', adds(1 .. 40), $atomic) . patch('kept', 'c'));
is($cluster->psql("select count(*) from entityapi.audit where request_id = 'kept'"), 41, 'kept with the rows');
my $bare = $month =~ s/entityapi\.//r;
is($cluster->psql("select count(*) from pg_logical_slot_get_changes('log', null, null) where data ~ '^table entityapi.$bare: INSERT: id.*kept'"), 41,
	'and told to who decodes the WAL');
$cluster->psql("select pg_drop_replication_slot('log')");
$cluster->psql('select from entityapi.version(); ' . request('others', $reader, PATCH => "/items/$id", item({ rank => 5 }, $id))
	  . request('others', $ed, DELETE => '/items/' . $made->('gone')));
is($cluster->psql("select string_agg(action || ' ' || outcome, ', ' order by action) from entityapi.audit where request_id = 'others'"),
	'ENTITY_DELETE SUCCESS, ENTITY_UPDATE DENIED', 'also what is in indexes over some rows');
is($cluster->psql("create extension amcheck; select count(bt_index_check(indexrelid, true)) > 8 from pg_index i join pg_class c on c.oid = indrelid
	join pg_am m on m.oid = (select relam from pg_class x where x.oid = indexrelid) where c.relname ~ '^audit_' and m.amname = 'btree'"), 't', 'every row is in every index');

# --- serializable transactions ----------------------------------------------

my $connection = q{'dbname=entityapi user=postgres host=' || split_part(current_setting('unix_socket_directories'), ',', 1) || ' port=' || current_setting('port')};

# Each reads the log and adds to it: as one after the other that is impossible.
for my $switch (qw(on off))
{
	my $run = sub {
		my ($read) = @_;
		my $on = sub { my ($who, $sql) = @_; "select from dblink('$who', \$d\$ $sql \$d\$) x (y text);\n" };
		my $make = sub {
			my ($collection, $attribute) = @_;
			my $document = { data => { type => $collection, attributes => { $attribute => "$switch$read" } } };
			return request('ssi', $ed, POST => "/$collection", $document) =~ s/select status/select status::text/r =~ s/;\n//r;
		};

		return $cluster->try_psql("set client_min_messages = error; create extension if not exists dblink;\n" . join('', map { "select from dblink_connect('$_', $connection);
			select from dblink_exec('$_', 'load \$l\$entityapi\$l\$'); select from dblink_exec('$_', 'set entityapi.direct_scans = $switch'); select from dblink_exec('$_', 'begin isolation level serializable');\n" } qw(a b))
			. join('', map { $on->($_, $read ? 'select count(*)::text from entityapi.audit' : 'select 1::text') } qw(a b))
			. $on->('a', $make->(groups => 'title')) . $on->('b', $make->(labels => 'word'))
			. "select from dblink_exec('a', 'commit'); select from dblink_exec('b', 'commit');");
	};
	my $apart = $run->(0);
	my $crossed = $run->(1);

	is($apart->{err}, '', "$switch: serializable writes that do not meet") or diag $apart->{out};
	like($crossed->{err}, qr/could not serialize access/, "$switch: and those that do");
}

is($shim->stop, 0, 'ends with 0');
done_testing;
