# Functions of others that a table calls, and hooks, with their owners' rights:
# these cannot be exchanged for the service's while a statement runs, and
# nothing that they leave in a session gets at what others send through it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $json = JSON::PP->new->canonical;

# There tables have no triggers, and call no functions of others
my $several = $cluster->nodes > 1;

$cluster->psql(<<~'SQL');
	create role mallory login;
	create role deployer login in role entityapi_owner;
	create schema mallory authorization mallory;
	grant usage on schema mallory to public;
	create schema sales authorization entityapi_owner;
	grant usage on schema sales to entityapi_reader;
	SQL
$cluster->everywhere(<<~'SQL');
	set role mallory;
	create table mallory.loot (who text, what text);
	grant all on mallory.loot to public;
	create table mallory.bait (a int);

	-- tells as whom it runs, and what it gets to
	create function mallory.spy() returns void language plpgsql as $$ begin
		insert into mallory.loot select current_user, string_agg(kid, ' ') from entityapi.signing_key;
	exception when insufficient_privilege then
		insert into mallory.loot values (current_user);
	end $$;
	create function mallory.loses() returns trigger language plpgsql security definer as $$ begin
		execute 'alter function mallory.spies() security invoker';
		return new;
	end $$;
	create function mallory.spies() returns trigger language plpgsql security definer as $$ begin perform mallory.spy(); return new; end $$;
	create function mallory.checks(text) returns boolean language plpgsql security definer as $$ begin perform mallory.spy(); return true; end $$;
	create function mallory.loses_check() returns trigger language plpgsql security definer as $$ begin
		execute 'alter function mallory.checks(text) security invoker';
		return new;
	end $$;
	create function mallory.inlined(text) returns boolean language sql immutable security definer as $$ select pg_catalog.length($1) > 0 $$;

	-- what is sent through the shim's session from then on
	create function mallory.steals(message bytea) returns bytea language plpgsql security definer as $$ begin
		insert into mallory.loot values ('stolen', convert_from(message, 'UTF8'));
		return message;
	end $$;
	create function mallory.takes_over() returns void language plpgsql as $$ begin
		execute 'deallocate handle';
		execute 'prepare handle (bytea) as select mallory.steals($1)';
		insert into mallory.loot values ('prepared');
	exception when insufficient_privilege or feature_not_supported then
		null;
	end $$;
	create function mallory.hook(c jsonb) returns jsonb language plpgsql as $$ begin return null; end $$;
	create function mallory.springs() returns trigger language plpgsql as $$ begin perform mallory.takes_over(); return null; end $$;
	create constraint trigger springs after insert on mallory.bait deferrable initially deferred for each row execute function mallory.springs();
	create function mallory.sets_bait() returns trigger language plpgsql security definer as $$ begin insert into mallory.bait values (1); return new; end $$;
	SQL

my @tables = $several ? () : (
	[ Before => 'create trigger a before insert on TABLE for each row execute function mallory.loses(); create trigger b before insert on TABLE for each row execute function mallory.spies()' ],
	[ After => 'create trigger a before insert on TABLE for each row execute function mallory.loses(); create trigger b after insert on TABLE for each row execute function mallory.spies()' ],
	[ Waits => 'create trigger a before insert on TABLE for each row execute function mallory.loses();
		create constraint trigger b after insert on TABLE deferrable initially deferred for each row execute function mallory.spies()' ],
	[ Checked => 'create trigger a before insert on TABLE for each row execute function mallory.loses_check(); alter table TABLE add check (mallory.checks(no))' ],
	[ Fine => 'create trigger b before insert on TABLE for each row execute function mallory.spies(); alter table TABLE add check (mallory.inlined(no)); grant usage on schema mallory to entityapi_owner' ],
);

my @documents = (
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => undef } } },
	{ kind => 'Entity', metadata => { name => 'Tag' }, spec => { fields => { name => { type => 'string' } }, permissions => { '*' => [qw(create read)] } } },
	{ kind => 'Entity', metadata => { name => 'Made' }, spec => { fields => { name => { type => 'string' } }, permissions => { '*' => [qw(create read delete)] } } },
	{ kind => 'Hook', metadata => { name => 'Mal' }, spec => { entity => 'Tag', phase => 'after', on => ['create'], function => 'mallory.hook' } });
for (@tables)
{
	my ($name, $hang) = @$_;
	my $table = 'sales.' . lc $name;

	$cluster->psql("create table $table (tenant_id uuid not null, id uuid not null, no text, primary key (tenant_id, id)); " . $hang =~ s/TABLE/$table/gr
		  . "; alter table $table owner to entityapi_owner");
	push @documents, { kind => 'Entity', metadata => { name => $name }, spec => { table => $table, plural => lc "${name}s", fields => { no => { type => 'text' } },
			permissions => { '*' => [qw(create read)] } } };
}
my $documents = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } } @documents ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$documents\$json\$)", user => 'deployer');

my $shim = EntityApi::Test->shim($cluster, pool_size => 2);
my $ann = $shim->user($shim->tenant('acme')->{id}, 'ann', ['Any']);

sub post { my ($type, %attributes) = @_; return $shim->http(POST => "/api/v1/$type", { token => $ann, json => { data => { type => $type, attributes => \%attributes } } })->{status} }
sub loot
{
	my @loot = $cluster->on_all(q{select coalesce(string_agg(l, ', ' order by l), '') from (select distinct who || case when what is not null then ' has loot' else '' end from mallory.loot) x (l)});

	$cluster->everywhere('truncate mallory.loot');
	return join ', ', grep { $_ ne '' } @loot;
}


# What the hook does from now on, on whatever node
sub hook_does { my ($what) = @_; return $cluster->everywhere("set role mallory; create or replace function mallory.hook(c jsonb) returns jsonb language plpgsql as \$\$ begin $what; return null; end \$\$") }

subtest 'a function that loses SECURITY DEFINER while the statement runs' => sub {
	plan skip_all => 'tables call no functions of others there' if $several;
	for my $name (map { $_->[0] } @tables[ 0 .. 3 ])
	{
		$cluster->psql('alter function mallory.spies() security definer; alter function mallory.checks(text) security definer');
		is(post(lc "${name}s", no => 'x'), 500, "$name: the request fails");
		unlike(loot(), qr/owner|has loot/, 'and it was not called with the rights of entityapi_owner');
	}
	like(EntityApi::Test::slurp($cluster->log), qr/mallory\.spies\(\) would run with the rights of entityapi_owner, although another role owns it/, 'the log tells');
	$cluster->psql('alter function mallory.spies() security definer');
	is(post(fines => no => 'x'), 201, 'as it is accepted, it runs');
	is(loot(), 'mallory', 'as mallory');
};

# Each leaves the statement of the shim's exchanged, if it can
sub through
{
	my ($name, $type, $field) = @_;

	my $n = 4 * $cluster->nodes;

	is_deeply([ map { post($type => $field => "$name $_") } 1 .. $n ], [ (201) x $n ], "$name: requests go on");
	is_deeply([ map { $shim->http(GET => '/api/v1/tags', { token => $ann })->{status} } 1 .. $n ], [ (200) x $n ], 'so do those of others');
	is(loot(), '', 'nobody has seen them');
	return;
}

subtest 'prepared statements of the session' => sub {
	hook_does('perform mallory.takes_over()');
	through('a hook', tags => 'name');
	hook_does('insert into mallory.bait values (1)');
	through('a hook, at the end of the transaction', tags => 'name');
	return if $several;
	$cluster->psql('create trigger bait before insert on app.made for each row execute function mallory.sets_bait()');
	through('a trigger of a made table, at the end of the transaction', mades => 'name');

	# her own table goes along with what it refers to
	$cluster->psql(q{drop trigger bait on app.made; grant references, select on app.made to mallory; grant usage on schema app to mallory});
	$cluster->psql(<<~'SQL', user => 'mallory');
		create table mallory.along (tenant uuid, id uuid, foreign key (tenant, id) references app.made on delete cascade);
		create constraint trigger springs after delete on mallory.along deferrable initially deferred for each row execute function mallory.springs();
		SQL
	$cluster->psql('insert into mallory.along select tenant_id, id from app.made');
	my @gone = map { $shim->http(DELETE => "/api/v1/mades/$_->{id}", { token => $ann })->{status} } @{ $shim->http(GET => '/api/v1/mades', { token => $ann })->{json}{data} };
	is("@gone", '500 500 500 500', 'nothing is deleted that would take her rows along unseen');
	through('rows of hers that would go along', tags => 'name');
};

subtest 'other commands that outlive the request' => sub {
	for my $command ('prepare p as select 1', 'deallocate all', 'listen c', 'unlisten *', 'discard plans', 'close all', q{load '$libdir/plpgsql'},
		'declare c cursor with hold for select 1')
	{
		hook_does("execute \$c\$$command\$c\$");
		is(post(tags => name => 'x'), 500, "$command: refused");
	}
	my $fine = q{perform pg_notify('c', 'x'); notify c; execute 'declare c cursor for select 1'; execute 'set local work_mem = ''1MB'''};
	hook_does($fine);
	is(post(tags => name => 'x'), 201, 'what ends with it is allowed');
};

unlike(join('', map { EntityApi::Test::slurp($_->log) } $cluster->nodes), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
