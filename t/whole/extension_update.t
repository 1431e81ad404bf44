# ALTER EXTENSION entityapi UPDATE: from every version that was released, with
# everything in it, to catalogs that equal those of a new installation.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Catalog;
use EntityApi::Test::Released;

# The updates are the matter here, not who made the tables.
delete $ENV{ENTITYAPI_TEST_MAPPED};

my $checkout = EntityApi::Test::checkout();
my ($current) = EntityApi::Test::slurp("$checkout/entityapi.control") =~ /default_version = '(.*)'/;
my @released = EntityApi::Test::Released::versions();
my %script = map { $_ => EntityApi::Test::slurp("$checkout/extension/update/released/entityapi--$_.sql") } @released;
my %before_1_2 = map { $_ => 1 } EntityApi::Test::Released::before('1.2');
my $now = join '', map { EntityApi::Test::slurp($_) } sort glob "$checkout/extension/install/*.sql";
my $cluster = EntityApi::Test->cluster;

ok(!(grep { $_ eq $current } @released), 'the version under way is no released one');
EntityApi::Test::Released::install($cluster)
  or plan skip_all => 'released versions are installed beside what make test makes only';
is($cluster->psql(q{select string_agg(source || '-' || target, ' ' order by source) from pg_extension_update_paths('entityapi')
		where path = source || '--' || target and source <> target}), join(' ', map { "$_-$current" } @released),
	'each has one step to the current version, and there are no others');
is($cluster->psql(q{select entityapi.version()}), $current, 'the library is of this version');
is($cluster->try_psql(EntityApi::Test::slurp("$checkout/extension/install/00_begin.sql"))->{err}, '', 'what an update looks for is not in a new installation');
my $wanted = EntityApi::Test::Catalog::snapshot($cluster);
cmp_ok(scalar @$wanted, '>', 300, 'a new installation has parts');

for my $version (@released)
{
	subtest "from $version" => sub {
		my $database = "from_$version";
		my $psql = sub { $cluster->psql($_[0], database => $database) };

		$cluster->psql(qq{create database "$database"}, database => 'postgres');
		$psql->("create extension pgcrypto; create extension entityapi version '$version'");
		is($psql->(q{select extversion from pg_extension where extname = 'entityapi'}), $version, 'installed');
		cmp_ok(scalar EntityApi::Test::Catalog::difference($wanted, EntityApi::Test::Catalog::snapshot($cluster, $database)),
			'>', 0, 'and it differs') if $script{$version} ne $now;

		# what people have by then: records in two months, a reader, rights
		# that were given, a user's own entry
		$psql->(q{
			select entityapi.extend_audit('2026-01-15', 1);
			insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), '2026-01-20', 'OLD', 'SUCCESS');
			insert into entityapi.common_password values ('our own bad password');
			insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'A', 'a', 'ACTIVE', '{}', now());
			grant execute on function entityapi.parse_rsql(text), entityapi.apply_manifest(jsonb, boolean, text[]) to entityapi_reader;
			set role entityapi_owner;
			grant trigger, references, truncate on entityapi.account to entityapi_client;
			reset role});
		my $rows = q{select ((select jsonb_agg(to_jsonb(a) - array['version', 'revision']) from entityapi.audit a)::text || (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t))) from entityapi.tenant t)::text
			|| (select string_agg(password, ',' order by password) from entityapi.common_password where not built_in))};
		my $before = $psql->($rows);

		$psql->('alter extension entityapi update');
		is($psql->(q{select extversion from pg_extension where extname = 'entityapi'}), $current, 'updated');
		is($psql->($rows), $before, 'the rows are those of before');
		is($psql->(q{select string_agg(i.indrelid::regclass || ' ' || (i.indpred is not null), ', ' order by 1) from pg_index i
				where i.indexrelid::regclass::text ~ '^entityapi.audit_2026_0[12]_action_at_id_idx$'}),
			'entityapi.audit_2026_01 ' . ($before_1_2{$version} ? 'false' : 'true') . ', entityapi.audit_2026_02 true', 'a month with records keeps its indexes');
		is($psql->("select has_table_privilege('entityapi_client', 'entityapi.account', 'trigger, references, truncate')"), 'f',
			'nobody can hang anything onto a table');
		for my $function ('entityapi.parse_rsql(text)', map { "entityapi.apply_manifest($_, boolean, text[])" } qw(json text jsonb))
		{
			is($psql->("select has_function_privilege('entityapi_reader', '$function', 'execute')"), 't',
				"rights that were given stay: $function");
			is($psql->("select count(*) from pg_init_privs where privtype = 'e' and initprivs::text like '%reader%'
					and classoid = 'pg_proc'::regclass and objoid = '$function'::regprocedure"), 0, 'and are in dumps');
			$psql->("revoke execute on function $function from entityapi_reader");
		}

		# months are made at run time
		my @got = grep { !/entityapi\.audit_\d{4}/ } @{ EntityApi::Test::Catalog::snapshot($cluster, $database) };
		my @difference = EntityApi::Test::Catalog::difference([ grep { !/entityapi\.audit_\d{4}/ } @$wanted ], \@got);
		is(join("\n", @difference), '', 'the catalogs equal those of a new installation')
		  or diag 'what extension/install makes differently has to be done by extension/update as well';

		# A session that was open keeps a library that has not what hangs onto
		# accounts now.  It goes on, as long as there is nothing for that to do.
		my $old = sub {
			my ($declared) = @_;
			my $tried = $cluster->try_psql(qq{begin;
				create or replace function entityapi.version() returns text language sql immutable as \$\$ select '1.1' \$\$;
				create or replace function entityapi.copy_account() returns trigger language plpgsql as \$\$ begin raise exception 'could not find function'; end \$\$;
				insert into entityapi.entity select 'User', 'users', 'users', 'users', '{"accounts": true}' where $declared;
				select entityapi.create_superadmin('old', 'plainly-for-a-test-1') is not null;
				rollback}, database => $database);
			return $tried->{out} . $tried->{err};
		};
		is($old->('false'), 't', 'accounts are written by sessions of before');
		like($old->('true'), qr/could not find function/, 'but not where User is declared: its row would be missing');

		my $again = $cluster->try_psql('alter extension entityapi update', database => $database);
		like($again->{err}, qr/already installed/, 'once');
	};
}

# Requests go on meanwhile: one has read, waits for the update, and then writes.
for my $version (@released)
{
	subtest "beside requests, from $version" => sub {
		my $database = "beside_$version";
		my $go = EntityApi::Test::folder() . '/go';
		my @children;
		my $beside = sub {
			my ($name, $sql) = @_;
			my $child = fork // die "$!\n";
			push @children, $child;
			return if $child != 0;
			my $done = $cluster->try_psql($sql, database => $database);
			print {*STDERR} "# $name: $done->{err}\n" if $done->{err} ne '';
			POSIX::_exit($done->{status} != 0);
		};
		my $await = sub {
			my ($what) = @_;
			return EntityApi::Test::wait_until(60, sub { $cluster->psql("select exists (select from pg_stat_activity a where datname = '$database' and $what)", database => 'postgres') eq 't' });
		};

		$cluster->psql(qq{create database "$database"}, database => 'postgres');
		$cluster->psql("create extension pgcrypto; create extension entityapi version '$version';
			insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'A', 'a', 'ACTIVE', '{}', now())", database => $database);
		$beside->(request => "begin; select from entityapi.tenant;
			do \$\$ begin while pg_stat_file('$go', true) is null loop perform pg_sleep(0.02); end loop; end \$\$;
			update entityapi.account set email = email;
			insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), now(), 'BESIDE', 'SUCCESS'); commit");
		ok($await->("query ~ 'pg_stat_file' and exists (select from pg_locks l where l.pid = a.pid and l.mode = 'AccessShareLock' and granted)"), 'a request has read');
		$beside->(update => 'alter extension entityapi update');
		ok($await->("query ~ '^alter extension' and wait_event_type = 'Lock'"), 'an update waits for it');
		open my $out, '>', $go or die "$go: $!\n";
		close $out;
		is(join(' ', map { waitpid $_, 0; $? >> 8 } @children), '0 0', 'neither fails');
		is($cluster->psql("select (select extversion from pg_extension where extname = 'entityapi'), (select count(*) from entityapi.audit where action = 'BESIDE')", database => $database), "$current|1", 'both are done');
	};
}

# New files are there, and the objects are still old: a session that is opened
# now has this library with those.  What cannot be done is 503, and the server's log
# says why; nothing of it is 500, and all of it is as it should be afterwards.
for my $version (grep { $before_1_2{$_} } @released)
{
	subtest "before the update, from $version" => sub {
		my $database = "early_$version";

		$cluster->psql(qq{create database "$database"}, database => 'postgres');
		$cluster->psql("create extension pgcrypto; create extension entityapi version '$version'", database => $database);
		my $shim = EntityApi::Test->shim($cluster, database => $cluster->conninfo('entityapi_shim', $database), wait => 0);
		my $health = sub { eval { $shim->http(GET => '/actuator/health')->{status} } // 0 };
		my @calls = ([ POST => '/auth/login', { json => { username => 'ann', password => 'never mind me' } } ],
			[ GET => '/nowhere' ], [ GET => '/manage/tenants' ]);

		# that of 1.0 has no function that the shim could call
		my $can = $cluster->psql(q{select to_regprocedure('entityapi.handle(bytea)') is not null}, database => $database) eq 't';
		ok(EntityApi::Test::wait_until(60, sub { $health->() == ($can ? 200 : 503) }), 'what works does');
		my $said = sub { EntityApi::Test::slurp($can ? $cluster->log : $shim->err) };
		my $before = $can ? length $said->() : 0;
		is_deeply([ map { $shim->http(@$_)->{status} } @calls ], $can ? [ 503, 404, 401 ] : [ (503) x @calls ], 'what fails is 503');
		like(substr($said->(), $before), qr/ALTER EXTENSION entityapi UPDATE/, 'the log says what is to be done');
		like(substr($said->(), $before), qr/"entityapi\.login_origin" does not exist/, 'and what has failed') if $can;
		$cluster->psql('alter extension entityapi update', database => $database);
		ok(EntityApi::Test::wait_until(60, sub { $health->() == 200 }), 'it is up');
		is_deeply([ map { $shim->http(@$_)->{status} } @calls ], [ 401, 404, 401 ], 'afterwards all is done');
	};
}

# One that has been in use: manifests, tables, rows of before.  The old library
# is no more, so they are made by this one and put beside the old objects.
subtest "in use, from $_" => \&in_use, $_ for @released;

sub in_use
{
	my ($version) = @_;
	my $own = EntityApi::Test->cluster;
	my $dump = sub {
		my $done = EntityApi::Test::run([ EntityApi::Test::server_program('pg_dump'), '-d', $own->conninfo, @_ ]);

		die $done->{err} if $done->{status} != 0;
		return $done->{out} =~ s/^CREATE SCHEMA app;$//mr;
	};

	# a slip that hangs on a memo, in a way that was allowed then
	my $slips = EntityApi::Test::folder();
	EntityApi::Test::run([ 'cp', '-r', "$checkout/t/data/entities/.", $slips ]);
	my $onto_memo = sub {
		open my $out, '>', "$slips/onto_memo.yaml" or die "$slips: $!\n";
		print {$out} "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Comment}\nspec:\n  fields:\n",
		  "    memo: {type: ref, target: Memo, onDelete: $_[0]}\n  permissions:\n    Editor: [create, read]\n";
		close $out or die "$slips: $!\n";
	};
	$onto_memo->('restrict');
	$own->apply($slips);
	my $definitions = $dump->('--data-only', map { ('-t', "entityapi.$_") } qw(revision entity service));

	# nobody kept it before 1.3
	$definitions =~ s{^(COPY entityapi\.entity \(.*), applied_at(\).*\n)((?:(?!\\\.$).*\n)*)}{ my ($head, $rest, $rows) = ($1, $2, $3); $head . $rest . $rows =~ s/\t[^\t\n]*$//gmr }me or die;
	my $tables = $dump->('-n', 'app');

	like($definitions, qr/^COPY entityapi\.entity/m, 'there are definitions');
	$own->psql("drop schema app cascade; drop extension entityapi; create extension entityapi version '$version'");
	$own->psql('create schema app authorization entityapi_owner');
	$own->psql($tables);
	$own->psql($definitions);
	is($own->psql('select count(*) > 0 from entityapi.entity'), 't', 'in the old version');
	if ($before_1_2{$version})
	{
		$own->psql(q{update entityapi.entity set definition = replace(definition, ',"deletionId":true', ''); alter table app.memo drop column deletion_id});
		$own->psql(q{update entityapi.entity set definition = replace(definition, '"restrict"', '"cascade"') where name = 'Comment'});
	}
	my $told = $own->try_psql('alter extension entityapi update')->{err};
	$before_1_2{$version} ? like($told, qr/WARNING:  Memo is deleted softly, and its Comment would be gone for good by "memo" .*\n.*HINT: .* restrict/, 'what was allowed then is told')
	  : is($told, '', 'nothing is told');
	my $shim = EntityApi::Test->shim($own);
	my $tenant = $shim->tenant('acme');
	my $user = $shim->user($tenant->{id}, 'eve', ['Editor']);
	my $made = $shim->must(201, POST => '/api/v1/people',
		{   token   => $user,
			headers => { 'Content-Type' => 'application/vnd.api+json' },
			json    => { data => { type => 'people', attributes => { name => 'Ann' } } } });

	is($shim->must(200, GET => "/api/v1/people/$made->{data}{id}", { token => $user })->{data}{attributes}{name}, 'Ann',
		'it serves');
	my $call = sub {
		my ($method, $path, %document) = @_;
		return $shim->http($method => "/api/v1/$path", { token => $user, %document ? (json => { data => \%document }) : () });
	};
	my $memo = $call->(POST => 'memos', type => 'memos', attributes => { subject => 'Kept' })->{json}{data}{id};
	my $comment = $call->(POST => 'comments', type => 'comments', relationships => { memo => { data => { type => 'memos', id => $memo } } })->{json}{data}{id};
	my $refused = $call->(DELETE => "memos/$memo");
	is("$refused->{status} $refused->{json}{errors}[0]{code}", '409 STILL_REFERENCED', 'nothing goes for good meanwhile');
	is($call->(GET => "comments/$comment")->{status}, 200, 'it is there');
	$onto_memo->('cascade');
	like($own->try_apply($slips)->{err}, qr/give Comment softDelete as well/, 'and apply says the same');
	$onto_memo->('restrict');
	$memo = $call->(POST => 'memos', type => 'memos', attributes => { subject => 'Hidden' })->{json}{data}{id};
	is($call->(DELETE => "memos/$memo")->{status}, 204, 'a soft deletion without a column for its id');
	my $restore = sub { $shim->http(POST => "/api/v1/memos/$memo/restore", { token => $shim->superadmin, headers => { 'X-Tenant-Id' => $tenant->{id} } })->{status} };
	is($restore->(), 200, 'which is undone');
	$call->(DELETE => "memos/$memo");
	is(join(' ', $own->apply($slips) =~ /^(?:CREATE|ALTER|DROP).*/mg), $before_1_2{$version} ? 'ALTER TABLE app.memo ADD COLUMN deletion_id uuid;' : '', 'the column is all that is left to apply');
	is($restore->(), 200, 'what was deleted before it comes back');
	$call->(DELETE => "memos/$memo");
	is($own->psql("select deletion_id is not null from app.memo where id = '$memo'"), 't', 'and is told what it goes with from now on');
	is(() = $own->apply($slips) =~ /(?:CREATE|ALTER|DROP)/g, 0, 'nothing is left to apply');
	my $checked = $own->try_psql('update entityapi.audit set action = action');
	like($checked->{err}, qr/append-only/, 'the log is append-only');
	return;
}

done_testing();
