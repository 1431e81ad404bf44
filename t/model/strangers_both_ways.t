# Forms of tables that strangers have a hand in, each on a table that belongs to
# the service and on one of an application.  The first lends nobody its rights:
# all is refused that could run.  On the second the same code has the rights of
# its role and no others, and what is no ordinary table of one owner is refused.
# For the role itself, and tables that are exchanged: t/model/application_hostile.t.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/" . ($kind eq 'Entity' && $name ne 'Other' ? 'One' : $name) . '.json',
		JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

# Whatever calls them, they tell as whom
$cluster->psql(<<'SQL');
create role shop_app;
create role mallory;
create schema evil authorization mallory;
grant usage on schema evil to public;
set role mallory;
create table evil.loot (who text);
create table evil.kept (id int primary key, note text unique);
create sequence evil.calls;
grant all on all tables in schema evil to public;
grant all on all sequences in schema evil to public;
insert into evil.kept values (1, 'a'), (2, 'b'), (3, 'c');
create function evil.tell() returns text language plpgsql as $$ begin insert into evil.loot values (current_user); return null; end $$;
create function evil.row() returns trigger language plpgsql as $$ begin perform evil.tell(); return case when tg_op = 'DELETE' then old else new end; end $$;
create function evil.as_him() returns trigger security definer language plpgsql as $$ begin perform evil.tell(); return case when tg_op = 'DELETE' then old else new end; end $$;
create function evil.ok(text) returns boolean language plpgsql immutable as $$ begin perform evil.tell(); return true; end $$;
create function evil.val(text) returns text language plpgsql immutable as $$ begin perform evil.tell(); return $1; end $$;
create function evil.diff(float8, float8) returns float8 language plpgsql immutable as $$ begin perform evil.tell(); return $1 - $2; end $$;
create domain evil.word as text check (evil.ok(value));
create type evil.mood as enum ('good', 'bad');
create type evil.span as range (subtype = float8, subtype_diff = evil.diff);
create type evil.pair as (a evil.word, b int);
reset role;
SQL

for my $schema ([ sales => 'entityapi_owner' ], [ shop => 'shop_app' ])
{
	$cluster->psql("create schema $schema->[0] authorization $schema->[1]; grant usage on schema $schema->[0] to entityapi_reader");
}
$cluster->psql('set role shop_app; create table shop.other (id uuid primary key)');
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_app' } });
declared(Roles => roles => { roles => { Editor => {} } });

# The application has a table that no form is tried on, so its owner is known
declared(Entity => Other => { table => 'shop.other', fields => {}, permissions => { Editor => ['read'] } });

# Two owners of a table, and its id
my %ways = (
	service     => { owner => 'entityapi_owner', schema => 'sales', id => 'tenant_id uuid not null, id uuid not null default gen_random_uuid(), primary key (tenant_id, id)' },
	application => { owner => 'shop_app', schema => 'shop', id => 'id uuid primary key default gen_random_uuid()' });
my $runs = q{pg_catalog.query_to_xml('select pg_catalog.nextval(''evil.calls'')', true, true, '')};

# What is done to a table T of the owner O in the schema S, and what becomes of
# it on either side.  A pattern: no request is served, or those of the last column
# are, applying is refused so, and nothing ran.  Else all is served, and it ran as
# this role.
my @forms = (
	[ 'the table is his', 'alter table T owner to mallory; grant all on T to O', qr/entityapi_owner may write it/, qr/it belongs to \w+, and the other tables of the application do not/ ],
	[ 'the schema is his', 'alter schema S owner to mallory; grant all on schema S to O', qr/the schema belongs to mallory/, 'nobody' ],
	[ 'one of his is in its place', "alter schema S owner to mallory; grant all on schema S to O; set role mallory; drop table T; create table T (I, note text, told xml default $runs); grant all on T to O",
		qr/row-level security of \S+ is switched off|entityapi_owner may write it/, qr/it belongs to \w+, and the other tables of the application do not/ ],
	[ 'a function of the server that runs a text, as a default', "alter table T add told xml default $runs", qr/query_to_xml\S+ is called/, 'the role' ],
	[ 'the same as a policy', "alter table T enable row level security; create policy p on T to O using ($runs is not null)", qr/query_to_xml\S+ is called/, 'nobody' ],
	[ 'a trigger', 'create trigger t before insert or update or delete on T for each row execute function evil.row()', qr/evil\S+ is called/, 'shop_app' ],
	[ 'a trigger that runs as him', 'create trigger t before insert or update or delete on T for each row execute function evil.as_him()', 'mallory', 'mallory' ],
	[ 'a trigger that waits', 'create constraint trigger t after insert or update or delete on T deferrable initially deferred for each row execute function evil.row()', qr/evil\S+ is called/, 'shop_app' ],
	[ 'a check', 'alter table T add check (evil.ok(note)) not valid', qr/evil\S+ is called/, 'shop_app' ],
	[ 'a default', 'alter table T add more text; alter table T alter more set default evil.tell()', qr/evil\S+ is called/, 'shop_app' ],
	[ 'a generated column', 'alter table T add more text generated always as (evil.val(note)) stored', qr/evil\S+ is called/, 'shop_app' ],
	[ 'an index on an expression', 'create index on T (evil.val(note))', qr/evil\S+ is called/, 'shop_app' ],
	[ 'an index of some rows', 'create index on T (note) where evil.ok(note)', qr/evil\S+ is called/, 'shop_app' ],
	[ 'an exclusion', 'alter table T add exclude (note with =) where (evil.ok(note))', qr/evil\S+ is called/, 'shop_app' ],
	[ 'statistics', 'create statistics S.st on evil.val(note), note from T', qr/evil\S+ is called/, 'nobody' ],
	[ 'a domain', 'alter table T add more evil.word default $$x$$', qr/the type evil.word belongs to mallory/, 'shop_app' ],
	[ 'a domain of the field', 'alter table T alter note type evil.word', qr/the type evil.word belongs to mallory/, 'shop_app' ],
	[ 'a composite type', 'alter table T add more evil.pair default row($$x$$, 1)', qr/the type evil.pair belongs to mallory/, 'shop_app' ],
	[ 'an enumeration', 'alter table T add more evil.mood default $$good$$', qr/the type evil.mood belongs to mallory/, 'nobody' ],
	[ 'a range', 'alter table T add more evil.span default $$[1,2]$$; create index on T using gist (more)', qr/the type evil.span belongs to mallory/, 'nobody' ],
	[ 'a sequence', 'alter table T add more int default nextval($$evil.calls$$)', 'the owner', 'the role' ],
	[ 'a key to a table of his', 'alter table T add foreign key (note) references evil.kept (note) on update cascade', 'nobody', 'nobody' ],
	[ 'a key of his that acts', 'create table evil.child (F, foreign key (R) references T on delete cascade); alter table evil.child owner to mallory;'
		  . 'create trigger t before delete on evil.child for each row execute function evil.row()', qr/evil\.child/, qr/evil\.child/, '200 201 200 500' ],
	[ 'an heir', 'create table evil.heir () inherits (T); alter table evil.heir owner to mallory', qr/tables with partitions or children/, qr/tables with partitions or children/ ],
	[ 'the right to put triggers on it', 'grant trigger on T to mallory', qr/mallory/, 'nobody' ],
	[ 'the right to refer to it', 'grant references on T to mallory', 'nobody', 'nobody' ],
);

my $shim = EntityApi::Test->shim($cluster);
my $tried = 0;
my $editor;

# What is asked of an entity: its list, one more, and a change and the end of one
sub requests
{
	my ($one) = @_;
	my $type = "ones$tried";

	return join ' ', map { $_->{status} } $editor->call(GET => "/$type"), $editor->call(POST => "/$type", data => { type => $type, attributes => { note => 'b' } }),
	  $editor->call(PATCH => "/$type/$one", data => { type => $type, id => $one, attributes => { note => 'c' } }), $editor->call(DELETE => "/$type/$one");
}

# The roles that his code ran as, and a sequence tells that somebody took its next
sub ran
{
	my $sequence = $cluster->psql('select is_called from evil.calls') eq 't';

	return $cluster->psql(q{select coalesce(string_agg(distinct who, ','), 'nobody') from evil.loot}) . ($sequence ? ' and the sequence' : '');
}
sub forget { $cluster->psql(q{truncate evil.loot; select setval('evil.calls', 1, false)}); return }

# A table without the form, and an entity of it
sub begin
{
	my ($way) = @_;

	$tried++;
	$way->{table} = "$way->{schema}.one$tried";
	$cluster->psql("set role $way->{owner}; create table $way->{table} ($way->{id}, note text)");
	declared(Entity => "One$tried", { table => $way->{table}, plural => "ones$tried", fields => { note => { type => 'text' } }, permissions => { Editor => [qw(create read update delete)] } });
	my $applied = $cluster->try_apply($folder);
	is($applied->{status}, 0, 'applied') or diag $applied->{out}, $applied->{err};
	$editor //= EntityApi::Test::Cases->new($shim, $shim->user($cluster->psql('select id from entityapi.tenant'), 'eve', ['Editor']), '/api/v1');
	return $editor->good(201, POST => "/ones$tried", data => { type => "ones$tried", attributes => { note => 'a' } })->{json}{data}{id};
}

# Nothing is left to the next form
sub end
{
	my ($way) = @_;

	$cluster->psql("drop table $way->{table} cascade; drop table if exists evil.child; alter schema $way->{schema} owner to $way->{owner}");
	return;
}

sub try_form
{
	my ($way, $do, $expected, $statuses) = @_;
	my $one = begin($way);
	my $refused = ref $expected;
	my %words = (T => $way->{table}, S => $way->{schema}, O => $way->{owner}, I => $way->{id},
		F => $way->{id} =~ s/, primary.*| primary.*//r =~ s/ not null| default \S+//gr, R => $way->{id} =~ /tenant/ ? 'tenant_id, id' : 'id');

	# whoever may use a sequence may take its next number, and his function is none
	my $who = $expected =~ /^the (?:owner|role)$/ ? 'nobody and the sequence' : $expected;

	$cluster->psql($do =~ s/\b([TSOIFR])\b/$words{$1}/gr);
	forget();
	is(requests($one), $statuses // ($refused ? '500 500 500 500' : '200 201 200 204'), 'requests');
	is(ran(), $refused ? 'nobody' : $who, 'it ran as it should') or diag $cluster->psql('table evil.loot');
	for my $options ([], ['--dry-run'], ['--repair'])
	{
		forget();
		my $change = $cluster->try_apply($folder, @$options);
		my $said = "$change->{out}$change->{err}";
		$refused ? ok($change->{status} != 0 && $said =~ $expected, "refused (@$options)") || diag $said : is($said, "nothing to change\n", "nothing to say (@$options)");
		is(ran(), 'nobody', 'to look at it runs nothing');
	}
	isnt($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'a difference') if $refused && $way->{owner} eq 'shop_app';
	end($way);
	return;
}

for my $form (@forms)
{
	my ($name, $do, $service, $application, $statuses) = @$form;

	for my $try ([ service => $service ], [ application => $application ])
	{
		subtest "$name: a table of the $try->[0]" => sub { eval { try_form($ways{ $try->[0] }, $do, $try->[1], $statuses); 1 } or do { fail("ended early: $@"); end($ways{ $try->[0] }) } };
	}
}

subtest 'all tables get another owner' => sub {
	my $one = begin($ways{application});

	$cluster->psql("create role heir; grant shop_app to heir; alter schema shop owner to heir; alter table shop.other owner to heir; alter table $ways{application}{table} owner to heir;
		grant all on schema shop to shop_app; grant all on all tables in schema shop to shop_app");
	is(requests($one), '500 500 500 500', 'which is not the one that was');
	like($cluster->try_apply($folder, $_)->{out}, qr/^-- the role of the application, or the owner of its tables, is another one than before/m, "told by apply $_") for '--dry-run', '--repair';
	is(requests($one), '200 201 200 204', 'all is served');
	is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'and there is no difference');
	is($cluster->try_apply($folder)->{out}, "nothing to change\n", 'once only');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
