# Whatever a caller has set of Citus, requests are answered as always, and he has
# it as he had it afterwards: after an answer, a refusal, an error that is thrown
# on, and after the service's own functions in his transaction.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Lists;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

# By these answers would be others, or values would be told of
my %hostile = (
	'citus.multi_shard_modify_mode' => 'parallel', 'citus.select_opens_transaction_block' => 'on', 'citus.limit_clause_row_fetch_count' => '3',
	'citus.enable_router_execution' => 'off', 'citus.enable_ddl_propagation' => 'off', 'citus.enable_metadata_sync' => 'off',
	'citus.all_modifications_commutative' => 'on', 'citus.allow_modifications_from_workers_to_replicated_tables' => 'off',
	'citus.propagate_set_commands' => 'local', 'citus.enable_manual_changes_to_shards' => 'off', 'citus.log_remote_commands' => 'on',
	'citus.log_local_commands' => 'on', 'citus.multi_task_query_log_level' => 'notice', 'plan_cache_mode' => 'force_generic_plan',
	'extra_float_digits' => '-15', 'IntervalStyle' => 'iso_8601');
my @names = sort keys %hostile;
my $set = join '', map { "set $_ = '$hostile{$_}';\n" } @names;
my $shown = q{select concat_ws(' ', } . join(', ', map { "current_setting('$_')" } @names) . ");\n";
my $expected = join ' ', map { $hostile{$_} } @names;

my $cluster = EntityApi::Test->cluster(nodes => 2);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, node => 0, pool_size => 1);
my (undef, $tenant) = $cluster->place($shim, 'Editor');
my $item = EntityApi::Test::Lists::id(7);

EntityApi::Test::Lists::fill($cluster, $tenant->{id}, 100);

# A request by SQL
sub request
{
	my ($method, $target, $attributes) = @_;
	my $headers = JSON::PP::encode_json({ authorization => "Bearer $tenant->{user}{accessToken}", 'if-match' => '*', 'content-type' => 'application/vnd.api+json' });
	my $body = $attributes ? q{'} . JSON::PP::encode_json({ data => { type => 'items', $method eq 'PATCH' ? (id => $item) : (), attributes => $attributes } }) . q{'} : 'null';

	return "entityapi.handle('$method', '/api/v1/items$target', '$headers', $body, null)";
}

my @list = map { sprintf 'item %d', $_ * 3 } reverse 29 .. 33;
my @requests = (
	[ 'one', request(GET => "/$item?fields[items]=name"), '200', qr/"item 7"/ ],
	[ 'a list', request(GET => '?filter=state==OPEN&sort=-price&page[size]=5&fields[items]=name'), '200', qr/@{[ join '.*', @list ]}/ ],
	[ 'a change', request(PATCH => "/$item", { price => 0.1234567891 }), '200', qr/"price":"?0\.1234567891/ ],
	[ 'a refusal', request(PATCH => "/$item", { name => undef }), '400', qr/name/ ]);

for my $i (0, 1)
{
	my $node = $cluster->node($i);

	subtest "on node $i" => sub {
		for (@requests)
		{
			my ($name, $request, $status, $body) = @$_;
			my $answer = $node->try_psql("$set select status, body from $request;\n$shown");
			my ($first, $last) = $answer->{out} =~ /^(.*)\n(.*)$/s;

			like($first, qr/^$status\|.*$body/s, "$name: the answer");
			unlike($answer->{err}, qr/SELECT|UPDATE|INSERT/, 'no statement is told');
			is($last, $expected, 'and afterwards he has his settings');
		}

		# somebody has the row, so that the request ends by an error
		open my $holder, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->node(1)->conninfo or die "psql: $!\n";
		$holder->autoflush(1);
		print $holder "begin; select 1 from app.item where tenant_id = '$tenant->{id}' and id = '$item' for update \\g /dev/null\nselect pg_advisory_lock(7);\n";
		ok(EntityApi::Test::wait_until(60, sub { $cluster->node(1)->psql(q{select count(*) from pg_locks where locktype = 'advisory' and objid = 7}) eq '1' }), 'a row is held');
		my $failed = $node->try_psql("$set set lock_timeout = '300ms'; set client_min_messages = error;
			begin; do \$do\$ begin perform @{[ request(PATCH => qq{/$item}, { name => 'late' }) ]}; raise 'an answer'; exception when lock_not_available then null; end \$do\$;
			$shown commit; $shown");
		is($failed->{err}, '', 'a request ends by an error');
		is($failed->{out}, "$expected\n$expected", 'and he has his settings, in his transaction and after it');
		print $holder "rollback;\n";
		close $holder;
		is($node->psql("$set set client_min_messages = error; begin; select entityapi.sweep(10) \\g /dev/null\n $shown rollback; $shown"), "$expected\n$expected", 'sweeping, too');
	};
}

done_testing;
