# A node that has no part in the service, or not all of it, says so instead of
# answering from tables that seem to be empty: a worker while the service is the
# coordinator's alone, and a server without Citus' code.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
my $document = sub { my ($how) = @_; return qq([{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"distribution": "$how"}},
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Item"}, "spec": {"fields": {"name": {"type": "string"}}, "permissions": {"*": ["create", "read"]}}}]) };
my $try = sub { my ($how) = @_; return $cluster->try_psql(sprintf q{set client_min_messages = error; select count(*) from entityapi.apply_manifest('%s')}, $document->($how))->{err} };
my $apply = sub { my ($how) = @_; is($try->($how), '', "applied with $how") };

$apply->('none');
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1, sweep_interval_ms => 0, wait => $_ == 0) } 0 .. 2;
sub health { my ($shim) = @_; return eval { $shim->http(GET => '/actuator/health')->{status} } // 0 }
EntityApi::Test::wait_until(30, sub { join(' ', map { health($_) } @shims) eq '200 503 503' });
my $root = $shims[0]->superadmin;
my $id = $shims[0]->tenant('one')->{id};
my $ask = sub { my ($shim) = @_; return join ' ', map { $_->{status} } $shim->http(GET => "/manage/tenants/$id", { token => $root }),
	$shim->http(POST => '/auth/login', { json => { username => 'nobody', password => 'wrong wrong' } }) };

subtest 'the service is of one node' => sub {
	is($ask->($shims[0]), '200 401', 'which answers');
	is($ask->($shims[$_]), '503 503', "and the node $_ does not") for 1, 2;
	is($cluster->node($_)->psql('select (select count(*) from entityapi.audit) + (select count(*) from entityapi.address_failure)'), 0, "nor is anything written there, on $_") for 1, 2;
};
subtest 'it is distributed, and taken back' => sub {
	$apply->('citus');
	is($ask->($_), '200 401', 'all answer') for @shims;
	$cluster->psql('set client_min_messages = error; select entityapi.undistribute_own()');
	is($ask->($_), '503 503', 'none does between the two transactions of the way back') for @shims;
	$apply->('none');
	is($ask->($shims[0]), '200 401', 'then the first alone');
	is($ask->($shims[$_]), '503 503', "and the node $_ does not") for 1, 2;
};
subtest 'half of it is done' => sub {
	my $user = $shims[0]->user($id, 'half', []);
	my $list = sub { my ($shim) = @_; my $answer = $shim->http(GET => '/api/v1/items', { token => $user }); return $answer->{status} == 200 ? scalar @{ $answer->{json}{data} } : $answer->{status} };
	my $made = sub { $shims[0]->must(201, POST => '/api/v1/items', { token => $user, json => { data => { type => 'items', attributes => { name => 'x' } } } }) };
	my $fails = sub {
		my ($how, $where) = @_;

		open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/locked$how", '-d', $where->conninfo or die "psql: $!\n";
		$psql->autoflush(1);
		print $psql "set citus.enable_ddl_propagation = off; begin; lock table app.item in share mode; select 'locked';\n";
		EntityApi::Test::wait_until(20, sub { -s "$folder/locked$how" });
		like($try->($how), qr/did not release/, "a table that is in use keeps $how from its end");
		print $psql "rollback;\n";
		close $psql;
	};

	$made->();
	$fails->('citus', $cluster);
	is(join(' ', map { $list->($_) } @shims), '503 503 503', 'nothing is answered then');
	$apply->('citus');
	$made->();
	is(join(' ', map { $list->($_) } @shims), '2 2 2', 'until it is done, with all rows');
	$fails->('none', $cluster->node(1));
	is(join(' ', map { $list->($_) } @shims), '503 503 503', 'on the way back as well');
	is($ask->($shims[$_]), '503 503', "the node $_ answers nothing else") for 1, 2;
	$apply->('none');
	$made->();
	is($list->($shims[0]), 3, 'then the first does, with all rows');
	is($list->($shims[$_]), 503, "and the node $_ does not") for 1, 2;
};
subtest 'Citus is not loaded, and another extension plans' => sub {
	my $node = $cluster->node(2);

	$apply->('citus');
	$_->stop for @shims;
	for my $more ('', "citus.enable_ddl_propagation = on\n")
	{
		$node->stop;
		open my $conf, '>>', $node->data . '/entityapi.conf' or die "entityapi.conf: $!\n";
		print $conf "\nshared_preload_libraries = 'pg_stat_statements'\n$more";
		close $conf;
		$node->start;
		my $shim = EntityApi::Test->shim($cluster, node => 2, pool_size => 1, sweep_interval_ms => 0, wait => 0);
		EntityApi::Test::wait_until(30, sub { health($shim) == 503 });
		is($ask->($shim), '503 503', 'nothing is answered' . ($more && ', whatever settings say'));
		is($shim->http(GET => '/manage/tenants', { token => $root })->{status}, 503, 'nor is a list empty');
		$shim->stop;
	}
};

done_testing;
