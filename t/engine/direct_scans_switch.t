# entityapi.direct_reads and direct_writes: with them off nothing goes past the
# executor, and answers are the same; on a major version that was not tested they
# are off, which is said once.  direct_scans = off means both.

use strict;
use warnings;

use File::Temp ();
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/t/data/lists");
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant_here('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
$cluster->psql(<<"SQL");
insert into app.item (tenant_id, id, name, rank, created_at, updated_at)
	select '$tenant', gen_random_uuid(), 'n' || i, i % 7, now(), now() from generate_series(1, 200) i;
analyze app.item;
SQL

subtest 'who may' => sub {
	for my $switch (qw(reads writes scans))
	{
		is($cluster->psql("load 'entityapi'; select boot_val from pg_settings where name = 'entityapi.direct_$switch'"), 'on', "$switch are on, where it was tested");
		my $other = $cluster->try_psql("select entityapi.version(); set entityapi.direct_$switch = off", user => 'entityapi_shim');
		isnt($other->{status}, 0, 'not for anybody');
		like($other->{err}, qr/permission denied/, 'to change');
	}
};

my $id = $cluster->psql("select id from app.item where tenant_id = '$tenant' limit 1");
my @targets = ("/api/v1/items/$id", '/api/v1/items?page[size]=5&sort=rank', '/api/v1/items?filter=rank==3&page[size]=2',
	'/auth/me', "/api/v1/items/$id/labels");

subtest 'off and on' => sub {
	my $request = sub {
		my ($switch) = @_;
		my $token = $ed->{accessToken};

		return $cluster->psql("set entityapi.direct_scans = $switch;\n" . join "\n",
			map { "select status, headers->>'etag', body from entityapi.handle('GET', '$_', '{\"authorization\": \"Bearer $token\", \"x-request-id\": \"r\"}', null, null);" } @targets);
	};
	my ($on, $off) = map { $request->($_) } qw(on off);

	is($off, $on, 'the answers are the same');
	is(() = $on =~ /^200\|/mg, scalar @targets, 'and good');
	my $way = "select coalesce(string_agg(x, ';'), 'statement') from entityapi.explain('GET', '/api/v1/items?page[size]=5',
		'{\"kind\": \"USER\", \"userId\": \"$ed->{id}\", \"username\": \"ed\", \"roles\": [\"Editor\"], \"tenantId\": \"$tenant\"}') x where x like 'count:%'";
	like($cluster->psql("load 'entityapi'; set entityapi.direct_scans = on; $way"), qr/^count: all entries/, 'on: counted on the index');
	is($cluster->psql("load 'entityapi'; set entityapi.direct_scans = off; $way"), 'statement', 'off: by a statement');
	is($cluster->psql("load 'entityapi'; set entityapi.direct_reads = off; $way"), 'statement', 'reads alone, too');
	like($cluster->psql("load 'entityapi'; set entityapi.direct_writes = off; $way"), qr/^count: all entries/, 'and not with writes');
};

# A record of the log is appended, or inserted by a statement.
subtest 'writes' => sub {
	my $way = "select coalesce(string_agg(x, ';'), 'statement') from entityapi.explain('DELETE', '/api/v1/items/$id',
		'{\"kind\": \"USER\", \"userId\": \"$ed->{id}\", \"username\": \"ed\", \"roles\": [\"Editor\"], \"tenantId\": \"$tenant\"}') x where x like 'rows appended%'";

	like($cluster->psql("load 'entityapi'; $way"), qr/^rows appended/, 'on: appended');
	is($cluster->psql("load 'entityapi'; set entityapi.direct_$_ = off; $way"), 'statement', "$_ off: by a statement") for qw(writes scans);
	like($cluster->psql("load 'entityapi'; set entityapi.direct_reads = off; $way"), qr/^rows appended/, 'reads off: appended');
};

# Where something is, auto_explain says so.  It is a hook, so that key scans end in
# any case; the look-up of the session does not ask for hooks.
subtest 'nothing bypasses the executor' => sub {
	my $token = $ed->{accessToken};
	my $run = sub {
		my ($switch) = @_;
		my $result = $cluster->try_psql(<<~"SQL");
			load 'entityapi'; load 'auto_explain';
			set entityapi.direct_scans = $switch;
			select 1 from entityapi.handle('GET', '/api/v1/items/$id', '{"authorization": "Bearer $token"}', null, null);
			set client_min_messages = log;
			set auto_explain.log_nested_statements = on;
			set auto_explain.log_min_duration = 0;
			select status from entityapi.handle('GET', '/api/v1/items/$id', '{"authorization": "Bearer $token"}', null, null);
			SQL

		# Citus has two plans of a statement, its own and that for a part
		my %looked = map { $_ => 1 } $result->{err} =~ /(?:FROM|JOIN) (entityapi\.(?:session|account|tenant_admin|tenant)|app\.item)(?:_\d+)?\b/g;
		return join ' ', sort keys %looked;
	};
	plan skip_all => 'auto_explain, of the contrib modules, is not installed'
	  unless $cluster->try_psql("load 'auto_explain'")->{status} == 0;
	is($run->('off'), 'app.item entityapi.account entityapi.session entityapi.tenant entityapi.tenant_admin', 'off: every look-up is in a statement');
	unlike($run->('on'), qr/session|account/, 'on: the session is not');
};

# A source without its comments
sub code
{
	my ($path) = @_;

	return EntityApi::Test::slurp($path) =~ s{/\*.*?\*/}{}grs;
}

# Whoever reads or writes tables without the executor asks.  The system's own
# catalogs are read as PostgreSQL reads them, and so is that of Citus.
subtest 'every place asks' => sub {
	my $direct = qr/\b(?:index_beginscan|ea_compat_index_beginscan|index_getnext_\w+|heap_fetch\w*|heap_hot_search\w*|table_beginscan\w*|heap_beginscan|table_index_fetch\w*|table_tuple_fetch\w*|systable_begin\w+|_bt_\w+|ea_compat_bt_\w+|heap_insert|heap_multi_insert|heap_update|heap_delete|simple_heap_\w+|table_tuple_\w+|simple_table_\w+|index_insert|CatalogTuple\w+)\s*\(/;
	my %catalogs = map { $_ => 1 } qw(application_role.c distributed.c distribution.c guard.c held.c links_deferred.c reclaim.c violation.c);
	my %asked_by = ('key_update.c' => 'engine/write_run.c', 'row_by_id.c' => 'identity/session_lookup.c', 'row_versions.c' => 'cluster/undecided.c');
	my @past;

	for my $path (sort { $a =~ s{.*/}{}r cmp $b =~ s{.*/}{}r } glob "$checkout/extension/*/*.c")
	{
		my ($name) = $path =~ m{([^/]+)$};
		my $text = code($path);

		$text =~ s/\bsystable_begin\w+//g if $catalogs{$name};
		next unless $text =~ $direct;
		push @past, $name;
		$text = code("$checkout/extension/$asked_by{$name}") if $asked_by{$name};
		like($text, qr{\b(?:ea_guc_may_(?:read|write)|ea_keyscan_may_write)\b}, $name);
	}
	is("@past", 'append.c heap_count.c index_count.c key_update.c keyscan.c row_by_id.c row_versions.c', 'which are all');
};

# The same library, as it would be on a major that is not in the table
subtest 'a major that was not tested' => sub {
	my $folder = EntityApi::Test::folder();
	my $make = qx{cd '$checkout' && make -s -n -W extension/base/guc.c entityapi.so 2>/dev/null};
	my ($compile) = $make =~ /^(\S.* -c -o extension\/base\/guc\.o extension\/base\/guc\.c)$/m;
	my ($link) = $make =~ /^(\S.* -shared -o entityapi\.so .*)$/m;

	plan skip_all => 'a sanitized library is made of other objects, in a folder of its own' if $ENV{SANITIZER};
	plan skip_all => 'the library was not built in this folder' unless $compile && $link && -e "$checkout/extension/direct/index_count.o";
	$compile =~ s{-o extension/base/guc\.o}{-DEA_COMPAT_TESTED_MAJORS=14,99 -o $folder/guc.o};
	$compile =~ s{ -MMD -MP}{}g;
	$link =~ s{ -MMD -MP}{}g;
	$link =~ s{-o entityapi\.so}{-o $folder/entityapi.so};
	$link =~ s{ extension/base/guc\.o}{ $folder/guc.o};
	my $said = qx{cd '$checkout' && ($compile && $link) 2>&1};
	is($?, 0, 'made') or diag $said;
	chmod 0755, "$folder/entityapi.so";

	my $load = $cluster->try_psql("load '$folder/entityapi.so'; load '$folder/entityapi.so'; show entityapi.direct_reads; show entityapi.direct_writes");
	is($load->{out}, "off\noff", 'off');
	is(() = $load->{err} =~ /WARNING/g, 1, 'said once');
	like($load->{err}, qr/WARNING:  entityapi was not tested with PostgreSQL \d+: direct reads and writes are off/, 'in words');
	$load = $cluster->try_psql("set entityapi.direct_writes = on; load '$folder/entityapi.so'; show entityapi.direct_writes");
	is($load->{out}, 'on', 'on if a superuser wants it');
	is($load->{err}, '', 'who is told nothing then');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
