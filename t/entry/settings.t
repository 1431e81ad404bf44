# Settings that a caller of handle() can give his session: answers stay as they
# are, byte by byte, and no message shows him what statements work with.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Wire;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $json = JSON::PP->new->canonical;
my $permissions = { Any => [qw(create read update delete)] };

$cluster->psql(<<~'SQL');
	alter database entityapi set entityapi.bcrypt_cost = 10;
	create schema sales authorization entityapi_owner;
	grant usage on schema sales to entityapi_reader;
	create table sales.ord (tenant_id uuid not null, id uuid not null, "No" text unique, at timestamptz, amount numeric(10,2), extra jsonb, primary key (tenant_id, id));
	alter table sales.ord drop constraint "ord_No_key";
	alter table sales.ord owner to entityapi_owner;
	SQL

# Several nodes have no tables that others made
my @existing = $cluster->nodes > 1 ? () : (table => 'sales.ord', columns => { number => 'No' });
my $manifest = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } },
	{ kind => 'Policy', metadata => { name => 'Named' }, spec => { expression => "#record.name != null and #record.name != 'x'" } },
	{ kind => 'Entity', metadata => { name => 'Thing' }, spec => { fields => {
			name => { type => 'string', pattern => '^[a-z\\\\ \']+$' }, at => { type => 'datetime' }, day => { type => 'date' }, amount => { type => 'decimal', precision => 12, scale => 2 },
			ratio => { type => 'decimal', precision => 30, scale => 10 }, extra => { type => 'json' }, flag => { type => 'boolean' }, next => { type => 'ref', target => 'Thing' },
			others => { type => 'ref', target => 'Thing', relation => 'ManyToMany' } },
			policies => { Named => ['read'] }, permissions => $permissions } },
	{ kind => 'Entity', metadata => { name => 'Ord' }, spec => { @existing, permissions => $permissions, fields => {
			number => { type => 'text' }, at => { type => 'datetime' }, amount => { type => 'decimal', precision => 10, scale => 2 }, extra => { type => 'json' } } } }]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");

my $shim = EntityApi::Test->shim($cluster);
my $acme = $shim->tenant('acme')->{id};
my $ann = $shim->user($acme, 'ann', ['Any']);
my $type = 'application/vnd.api+json';

sub create
{
	my ($collection, $attributes, $relationships) = @_;

	return $shim->must(201, POST => "/api/v1/$collection", { token => $ann,
		json => { data => { type => $collection, attributes => $attributes, $relationships ? (relationships => $relationships) : () } } })->{data}{id};
}

my $first = create(things => { name => "a'b\\c", at => '2026-03-04T05:06:07.089Z', day => '2026-12-11', amount => '1234567.89', ratio => '0.1234567891', extra => { a => [ undef, 'NULL' ] }, flag => JSON::PP::true });
my $second = create(things => { name => 'z' }, { next => { data => { type => 'things', id => $first } }, others => { data => [ { type => 'things', id => $first } ] } });
my $ord = create(ords => { number => 'one', at => '2026-03-04T05:06:07.089Z', amount => '1.50', extra => [ 1, { b => 2 } ] });

# -------- answers --------

sub message
{
	my ($method, $path, $body, @headers) = @_;

	return unpack 'H*', "$method $path 127.0.0.1\nx-request-id: same\nauthorization: Bearer $ann->{accessToken}\n" . join('', map { "$_\n" } @headers) . "\n" . ($body // '');
}

my @messages = map { message(@$_) } (
	[ GET => '/api/v1/things?include=next,others&sort=-at,name' ], [ GET => "/api/v1/things/$first" ], [ GET => '/api/v1/things?filter=at=ge=2026-03-04T05:06:07Z;day==2026-12-11;amount=gt=1000' ],
	[ GET => "/api/v1/things?filter=name=in=('a','NULL','z')" ], [ GET => '/api/v1/things?filter=next=isnull=true&page[totals]=true' ], [ GET => '/api/v1/things?page[after]=start&page[size]=1&sort=at' ],
	[ GET => '/api/v1/things?filter=name=like=*\\\\*' ], [ GET => '/api/v1/ords?filter=number==one&sort=at' ], [ GET => "/api/v1/ords/$ord" ], [ GET => '/api/v1/things?filter=nothing==1' ],
	[ GET => '/auth/me' ], [ GET => '/manage/migrations/status' ],
	[ POST => '/api/v1/things', '{"data":{"type":"things","attributes":{"name":"A"}}}', "content-type: $type" ],
	[ PATCH => "/api/v1/ords/$ord", $json->encode({ data => { type => 'ords', id => $ord, attributes => { number => 'one', extra => { 'a' => "\\" } } } }), "content-type: $type" ],
	[ PATCH => "/api/v1/things/$second", $json->encode({ data => { type => 'things', id => $second, attributes => { name => "q'\\r", day => '2026-02-01' } } }), "content-type: $type" ],
	[ POST => '/auth/login', '{"username":"ann","password":"wrong"}', 'content-type: application/json' ]);
my $guess = pop @messages;

sub answers
{
	my ($settings) = @_;

	return $cluster->try_psql(join("\n", $settings, map { "select entityapi.handle(e'\\\\x$_');" } @messages), user => 'entityapi_shim');
}

answers('') for 1 .. 2;
my $usual = answers("set client_min_messages = error;");
is($usual->{status}, 0, 'usual settings') or diag $usual->{err};
is(scalar(() = $usual->{out} =~ /^\\x3\d3\d3\d0a/mg), scalar @messages, 'as many answers');
unlike($usual->{out}, qr/^\\x353030/m, 'none of them 500');

# as the shim's sessions have them, and as the shim's role can set them
my @settings = (
	(map { "set $_ = on" } qw(debug_print_parse debug_print_rewritten debug_print_plan exit_on_error transform_null_equals quote_all_identifiers synchronize_seqscans
		lo_compat_privileges trace_notify trace_sort escape_string_warning default_transaction_deferrable force_parallel_mode)),
	(map { "set $_ = off" } qw(row_security array_nulls standard_conforming_strings check_function_bodies synchronous_commit backslash_quote jit debug_pretty_print
		geqo parallel_leader_participation optimize_bounded_sort enable_seqscan enable_indexscan enable_bitmapscan enable_indexonlyscan enable_nestloop enable_hashjoin enable_mergejoin
		enable_hashagg enable_sort enable_material enable_memoize enable_incremental_sort enable_tidscan enable_partition_pruning)),
	"set datestyle = 'SQL, DMY'", "set datestyle = 'Postgres, MDY'", "set timezone = 'Asia/Kathmandu'", "set timezone = '+14'", "set intervalstyle = 'sql_standard'", 'set extra_float_digits = -15',
	"set xmlbinary = hex", 'set xmloption = document', "set client_min_messages = debug5", "set client_min_messages = log", "set lc_monetary = 'C'",
	"set lc_numeric = 'C'", "set lc_time = 'C'", "set search_path = pg_temp, public", "set search_path = ''", 'set plan_cache_mode = force_generic_plan', 'set plan_cache_mode = force_custom_plan',
	'set work_mem = 64', 'set temp_buffers = 100', 'set default_tablespace = pg_default', 'set temp_tablespaces = pg_default', "set default_table_access_method = 'heap'", "set default_toast_compression = 'pglz'",
	'set max_parallel_workers_per_gather = 0', 'set constraint_exclusion = on', 'set cursor_tuple_fraction = 0', 'set from_collapse_limit = 1', 'set join_collapse_limit = 1', 'set gin_fuzzy_search_limit = 1',
	"set default_text_search_config = 'pg_catalog.german'", "set application_name = 'odd'", 'set random_page_cost = 1000000', 'set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0',
	'set commit_siblings = 1', 'set vacuum_cost_delay = 100', "set password_encryption = 'md5'", "set local_preload_libraries = ''", 'set tcp_keepalives_idle = 1');

for my $setting (@settings)
{
	my $result = answers("$setting;");

	# not his to set, or not of this release
	next if $result->{err} =~ /permission denied to set|cannot be (?:set|changed)|unrecognized configuration parameter/;
	is($result->{out}, $usual->{out}, $setting) or diag substr $result->{err}, 0, 500;
}

sub record { return $cluster->try_psql("$_[0];\nselect * from entityapi.handle('GET', '/api/v1/things/$first', '" . $json->encode({ authorization => "Bearer $ann->{accessToken}", 'x-request-id' => 'same' }) . "', null, null);", user => 'entityapi_shim') }
# A guess takes a hash, so it is asked with many settings at once: those that lie
# apart, as neighbours may be of one name.
sub guessed
{
	my ($settings) = @_;

	# what it leaves, so that each round meets the same
	$cluster->psql("delete from entityapi.$_") for qw(login_throttle login_origin address_failure);
	return $cluster->try_psql("\\set ON_ERROR_STOP off\n$settings;\nselect entityapi.handle(e'\\\\x$guess');", user => 'entityapi_shim')->{out};
}

my $usual_guess = guessed('set client_min_messages = error');
like($usual_guess, qr/\A\\x343031/, 'a guess is 401');
for my $group (0 .. 9)
{
	# one that may not be set is left out, which must not end the session
	my @together = @settings[ grep { $_ % 10 == $group && $settings[$_] !~ /exit_on_error/ } 0 .. $#settings ];

	is(guessed(join ";\n", @together), $usual_guess, "a guess with @together");
}

my $record = record('set client_min_messages = error')->{out};
like($record, qr/\A200\|/, 'with five arguments');
for my $setting (@settings, "set bytea_output = 'escape'")
{
	my $result = record($setting);

	next if $result->{err} =~ /permission denied to set|cannot be (?:set|changed)|unrecognized configuration parameter/;
	is($result->{out}, $record, "five arguments: $setting") or diag substr $result->{err}, 0, 500;
}

# -------- messages --------

# An error that is thrown on does not say how far the request came
my $holder = EntityApi::Test::Wire->new($cluster, 'postgres');
$holder->query("begin; update app.thing set flag = flag where id = '$second'")->send->answers;
my $patch = message(PATCH => "/api/v1/things/$second", $json->encode({ data => { type => 'things', id => $second, attributes => { name => 'w' } } }), "content-type: $type");
my $from = -s $cluster->log;
my $waited = $cluster->try_psql("set lock_timeout = 100;\nselect entityapi.handle('\\x$patch');", user => 'entityapi_shim');
like($waited->{err}, qr/canceling statement due to lock timeout/, 'it waits for a lock, and gives up');
unlike($waited->{err}, qr/CONTEXT|DETAIL|app\.thing/, 'without saying where');
like(substr(EntityApi::Test::slurp($cluster->log), $from), qr/DETAIL: .*relation "thing(?:_\d+)?"|while executing command on/, 'the log does');
$holder->close;

# A login makes a signing key when there is none, and reads a hash
my $loud = join ";\n", (map { "set $_ = on" } qw(debug_print_parse debug_print_rewritten debug_print_plan)), 'set plan_cache_mode = force_custom_plan', '';
my %login = (
	message => "select entityapi.handle('\\x" . unpack('H*', "POST /auth/login 127.0.0.1\ncontent-type: application/json\n\n" . $json->encode({ username => 'ann', password => $ann->{password} // 'x' })) . "');",
	arguments => "select * from entityapi.handle('POST', '/auth/login', '{\"content-type\": \"application/json\"}', '" . $json->encode({ username => 'ann', password => $ann->{password} // 'x' }) . "', '127.0.0.1');");

for my $form (sort keys %login)
{
	for my $level (qw(debug5 debug1 log notice))
	{
		# a plan that another session made may be kept there, never here
		$cluster->psql('delete from entityapi.signing_key');
		my $result = $cluster->try_psql("set client_min_messages = $level;\n$loud$login{$form}", user => 'entityapi_shim');
		my $said = $result->{err};

		is($result->{status}, 0, "$form, $level");
		is($cluster->psql("select count(*) from entityapi.signing_key"), 1, 'made a key');
		is(scalar(() = $said =~ /\{PLANNEDSTMT/g), $level eq 'notice' ? 0 : 1, 'the plan of his own statement, and no other');
		unlike($said, qr/INSERT INTO|signing_key|password_hash/i, 'no statement of ours');
	}
}

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
