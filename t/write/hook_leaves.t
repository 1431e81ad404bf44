# What a hook leaves in a session of the shim's goes with the request, or the
# session goes: the service does not stay broken for those that come later.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;

$cluster->psql(<<~'SQL');
	create role mallory login;
	create schema mallory authorization mallory;
	grant usage on schema mallory to public;
	set role mallory;
	create table mallory.bait (a int);
	create function mallory.spring() returns trigger language plpgsql as $$ begin
		perform set_config('default_transaction_isolation', 'serializable', false), set_config('search_path', 'mallory', false); return null; end $$;
	create constraint trigger spring after insert on mallory.bait deferrable initially deferred for each row execute function mallory.spring();
	create function mallory.hook(c jsonb) returns jsonb language plpgsql as $$ begin return null; end $$;
	SQL
$cluster->apply("$checkout/t/data/entities");
$cluster->psql(q{select count(*) from entityapi.apply_manifest(entityapi.export_manifest()::jsonb || '[{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "Mal"},
	"spec": {"entity": "Person", "phase": "after", "on": ["create"], "function": "mallory.hook"}}]')});

my %leaves = (
	'DEALLOCATE' => q{execute 'deallocate all'},
	'settings at the commit' => 'insert into mallory.bait values (1)',
	'a cursor' => q{execute 'declare c cursor with hold for select set_config(''default_transaction_isolation'', ''serializable'', false)'});

my $shim = EntityApi::Test->shim($cluster, pool_size => 2);
my $acme = $shim->tenant('acme')->{id};
my $ann = $shim->user($acme, 'ann', ['Editor']);

for my $what (sort keys %leaves)
{
	$cluster->psql("set role mallory; create or replace function mallory.hook(c jsonb) returns jsonb language plpgsql as \$\$ begin $leaves{$what}; return null; end \$\$");
	my @done = map { $shim->http(POST => '/api/v1/people', { token => $ann, json => { data => { type => 'people', attributes => { name => "n$_" } } } })->{status} } 1 .. 4;
	like("@done", qr/^(?:(?:201|500) ?){4}$/, "$what: (@done)");
	$cluster->psql('set role mallory; create or replace function mallory.hook(c jsonb) returns jsonb language plpgsql as $$ begin return null; end $$');

	my @after = map { $shim->http(GET => '/api/v1/people', { token => $ann })->{status} } 1 .. 12;
	cmp_ok(scalar(grep { $_ != 200 } @after), '<=', 2, "what it left ends with the sessions that had it (@after)");
	is(join(' ', @after[4 .. 11]), '200 200 200 200 200 200 200 200', 'and all is well again');
}

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
