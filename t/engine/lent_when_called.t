# Whose rights a function of others has is looked at when it is called, too: it
# may have been looked up before another one of the same statement altered it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;

$cluster->psql(<<~'SQL');
	create role mallory login;
	create role deployer login in role entityapi_owner;
	create schema mallory authorization mallory;
	grant usage on schema mallory to public;
	create schema sales authorization entityapi_owner;
	grant usage on schema sales to entityapi_reader;
	set role mallory;
	create table mallory.loot (who text, what text);
	grant all on mallory.loot to public;
	create function mallory.spy() returns text language plpgsql security definer as $$ begin
		insert into mallory.loot select current_user, string_agg(kid, ' ') from entityapi.signing_key;
		return 'x';
	exception when insufficient_privilege then
		insert into mallory.loot values (current_user);
		return 'x';
	end $$;
	create function mallory.lose() returns text language plpgsql security definer as $$ begin
		execute 'alter function mallory.spy() security invoker';
		return 'x';
	end $$;
	SQL

# What is made ready together, and called one after the other
my %tables = (
	Defaulted => 'a text default mallory.lose(), b text default mallory.spy()',
	Checked => "a text, constraint a check (mallory.lose() <> ''), constraint b check (mallory.spy() <> '')",
	Mixed => "a text default mallory.lose(), b text default 'x' check (mallory.spy() <> '')"
);
my @documents = (
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } });
for my $name (sort keys %tables)
{
	my $table = 'sales.' . lc $name;

	$cluster->psql("create table $table (tenant_id uuid not null, id uuid not null, no text, $tables{$name}, primary key (tenant_id, id)); alter table $table owner to entityapi_owner");
	push @documents, { kind => 'Entity', metadata => { name => $name }, spec => { table => $table, plural => lc "${name}s", fields => { no => { type => 'text' } },
			permissions => { '*' => [qw(create read)] } } };
}
my $documents = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } } @documents ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$documents\$json\$)", user => 'deployer');

my $shim = EntityApi::Test->shim($cluster);
my $ann = $shim->user($shim->tenant('acme')->{id}, 'ann', ['Any']);

for my $name (sort keys %tables)
{
	$cluster->psql('alter function mallory.spy() security definer; truncate mallory.loot');
	my $type = lc "${name}s";
	my $status = $shim->http(POST => "/api/v1/$type", { token => $ann, json => { data => { type => $type, attributes => { no => '1' } } } })->{status};

	is($status, 500, "$name: the request fails");
	unlike($cluster->psql(q{select coalesce(string_agg(who || ' ' || coalesce(what, 'nothing'), ', '), '') from mallory.loot}), qr/owner/,
		'and nothing was called with the rights of entityapi_owner');
}
like(EntityApi::Test::slurp($cluster->log), qr/mallory\.spy\(\) would run with the rights of entityapi_owner, although another role owns it/, 'the log tells');

done_testing();
