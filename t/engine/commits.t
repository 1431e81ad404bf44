# What others leave for the end of a transaction: cursors that are to outlive
# it, and deferred triggers of tables that are no entity's.  It neither undoes
# what a guest asked for, nor runs with the rights of a superuser.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Wire;

use constant { BYTEA => 17, TEXT => 25, JSONB => 3802, INET => 869 };

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $alone = qr/must be a statement and a transaction of its own/;

$cluster->psql('alter database entityapi set entityapi.bcrypt_cost = 10; create schema lent; grant all on schema lent to entityapi_shim;
	create role deployer login; grant entityapi_owner to deployer');
$cluster->apply("$checkout/t/data/entities");

my $five = 'select status from entityapi.handle($1, $2, $3, $4, $5)';
my @types = (TEXT, TEXT, JSONB, BYTEA, INET);
my $json = '{"content-type": "application/json"}';
my $guess = '{"username": "nobody", "password": "wrong"}';
my @login = ('POST', '/auth/login', $json, $guess, '127.0.0.1');

sub sent { my ($wire) = @_; return join ' ', grep { !/^[12CZ3TIN]$/ } $wire->send->answers }
sub counted { return $cluster->psql(q{select coalesce((select failures from entityapi.login_throttle where username_hash = sha256('nobody')), 0)}) }
sub superusers { return $cluster->psql(q{select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper}) }

subtest 'a cursor that fails at the commit' => sub {
	my $wire = EntityApi::Test::Wire->new($cluster, 'entityapi_shim');

	$wire->query(<<~'SQL')->send->answers;
		create function lent.lay(text) returns boolean language plpgsql as $$ begin
			execute 'declare later cursor with hold for select 1 / (random() * 0)::int'; return true; end $$;
		create function lent.folded() returns text language plpgsql immutable as $$ begin
			perform lent.lay('x'); return 'POST'; end $$;
		create domain lent.lure as text check (lent.lay(value));
		SQL
	my $lure = $cluster->psql(q{select 'lent.lure'::regtype::oid});

	like(sent($wire->query("select status from entityapi.handle(lent.folded(), '/auth/login', '$json', '$guess', '127.0.0.1')")), $alone, 'declared while the statement was planned');
	like(sent($wire->parse('', $five, $lure, @types[1 .. 4])->bind('', '', @login)->execute('')->sync), $alone, 'declared while a parameter was read');
	is(sent($wire->parse('', $five, @types)->bind('', '', @login)->execute('')->sync), 'D 401', '(an ordinary call)');
	is(counted(), 1, 'and the only one that could tell something');
};

sub as_deployer { return $cluster->try_psql("set role entityapi_owner; $_[0]", user => 'deployer')->{err} }

my %later = (
	'a trigger of another table' => 'insert into deployed.bait values (1)',
	'one that waits again' => 'insert into deployed.again values (1)',
	'a cursor that is to be kept' => q{execute 'declare c cursor with hold for select deployed.rise()'},
);

is(as_deployer(<<~'SQL'), '', '(a deployer prepares)');
	create schema deployed; grant usage on schema deployed to public;
	create table deployed.ran (who text); grant all on deployed.ran to public;
	create table deployed.bait (a int); grant insert on deployed.bait to public;
	create table deployed.again (a int); grant insert on deployed.again to public;
	create function deployed.rise() returns int language plpgsql as $$ begin
		insert into deployed.ran values (current_user);
		if (select rolsuper from pg_roles where rolname = current_user) then execute 'alter role deployer superuser'; end if;
		return 1; end $$;
	create function deployed.rises() returns trigger language plpgsql as $$ begin perform deployed.rise(); return null; end $$;
	create constraint trigger later after insert on deployed.bait deferrable initially deferred for each row execute function deployed.rises();
	create function deployed.waits() returns trigger language plpgsql as $$ begin
		set constraints all deferred; insert into deployed.bait values (1); return null; end $$;
	create constraint trigger again after insert on deployed.again deferrable initially deferred for each row execute function deployed.waits();
	SQL

my $delete = q{'DELETE', '/api/v1/people/01980000-0000-7000-8000-000000000002'};
my $token = do {
	my $shim = EntityApi::Test->shim($cluster);
	my $acme = $shim->tenant('acme')->{id};
	my $ann = $shim->user($acme, 'ann', ['Editor']);

	$shim->stop;
	{ acme => $acme, access => $ann->{accessToken} };
};

# A person of a tenant, and a trigger that leaves something when he goes
sub prepared
{
	my ($tenant) = @_;

	$cluster->psql(qq{
		alter table app.person disable trigger now;
		delete from app.person;
		insert into app.person (tenant_id, id, name, created_at, updated_at)
		values ('$tenant', '01980000-0000-7000-8000-000000000002', 'Ann', now(), now());
		alter table app.person enable trigger now;
		delete from deployed.ran});
	return;
}

sub risen
{
	my ($name) = @_;

	is(superusers(), 'postgres', $name);
	unlike($cluster->psql(q{select coalesce(string_agg(distinct who, ' '), '') from deployed.ran}), qr/postgres/, 'and nothing ran as him');
	$cluster->psql('alter role deployer nosuperuser');
	return;
}

for my $what (sort keys %later)
{
	subtest $what => sub {
		is(as_deployer(<<~"SQL"), '', 'made');
			create or replace function deployed.now() returns trigger language plpgsql as \$\$ begin $later{$what}; return null; end \$\$;
			create or replace trigger now after delete on app.person for each row execute function deployed.now();
			SQL
		prepared('01980000-0000-7000-8000-000000000001');
		$cluster->psql(q{insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'D', 'd', 'DELETED', '{}', now(), now(), null) on conflict do nothing});
		# a session begins where it stopped
		$cluster->psql('select entityapi.sweep();' x 20);
		risen('a superuser sweeps');
		my $gone = $what eq 'a trigger of another table' ? 0 : 1;
		if (!$gone)
		{
			is($cluster->psql('select count(*) from app.person'), 0, 'what can run at once does');
			like($cluster->psql(q{select string_agg(distinct who, ' ') from deployed.ran}), qr/^entityapi_(?:client|owner)$/, 'as nobody else');
		}
		$cluster->psql('delete from entityapi.tenant where status = \'DELETED\'');

		prepared($token->{acme});
		like($cluster->psql("select entityapi.explain($delete, '{\"userId\": \"u\", \"kind\": \"USER\", \"username\": \"u\", \"roles\": [\"Editor\"], \"tenantId\": \"$token->{acme}\"}')"), qr/^DELETE/m, '(explained)');
		risen('a superuser asks for an explanation');
		my $status = $cluster->psql("select status from entityapi.handle($delete, '{\"authorization\": \"Bearer $token->{access}\"}', null, null)");
		is($status, $gone ? 500 : 204, 'a request');
		risen('a superuser asks himself');
	};
}

# Whoever may call it otherwise may have cursors open, and loops have them
subtest 'beside a cursor' => sub {
	my $me = "status from entityapi.handle('GET', '/auth/me', '{\"authorization\": \"Bearer $token->{access}\"}', null, null)";
	my $cursor = $cluster->try_psql("begin; declare c cursor for select generate_series(1, 3); fetch c; select $me; fetch c; commit");
	my $loop = $cluster->try_psql("do \$\$ declare r record; begin for r in select generate_series(1, 3) n loop if (select $me) <> 200 then raise 'refused'; end if; end loop; end \$\$");
	my $kept = $cluster->try_psql("begin; declare c cursor with hold for select 1; select $me; commit");

	is($cursor->{out}, "1\n200\n2", 'of the caller');
	is($kept->{out}, 500, 'none that is to be kept');
	is($_->{err}, '', 'without a warning') for $cursor, $loop, $kept;
};

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
