# Tables that somebody alters by hand, or takes over: no value is read or
# written by another type than it has, nothing of anybody else runs with the
# rights of the service, and a table that lost its key harms nobody.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $several = $cluster->nodes > 1;
my $folder = EntityApi::Test::folder();
my $true = JSON::PP::true;
my %all = ('*' => [qw(create read update delete)]);

sub declared
{
	my ($name, $kind, $spec) = @_;

	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec });
	close $file;
	return;
}

$cluster->psql(<<'SQL');
create role mallory login;
create schema sales authorization entityapi_owner;
create schema evil authorization mallory;
grant usage on schema evil to entityapi_owner;
create table sales.ord (tenant_id uuid not null, id uuid not null, no text, extra text, gone timestamptz,
	constraint ord_key primary key (tenant_id, id));
alter table sales.ord owner to entityapi_owner;
grant usage on schema sales to entityapi_reader;

-- whatever calls them, they tell as whom
set role mallory;
create function evil.note(text) returns void language plpgsql as
	$$ begin insert into evil.loot values (current_user, $1); end $$;
create function evil.trg() returns trigger language plpgsql as
	$$ begin insert into evil.loot values (current_user, 'trigger'); return new; end $$;
create function evil.ok(text) returns boolean language plpgsql immutable as
	$$ begin perform evil.note('check'); return true; end $$;
create function evil.val(text) returns text language plpgsql immutable as
	$$ begin perform evil.note('value'); return $1; end $$;
SQL
$cluster->everywhere('create table evil.loot (who text, what text); grant insert on evil.loot to public');

declared(Thing => Entity => { permissions => \%all, optimisticLocking => $true, fields => {
	name => { type => 'string' }, note => { type => 'text' }, size => { type => 'integer', index => $true },
	length => { type => 'long' }, price => { type => 'decimal', precision => 12, scale => 2 },
	day => { type => 'date' }, at => { type => 'datetime' }, yes => { type => 'boolean' }, code => { type => 'uuid' },
	extra => { type => 'json' }, tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' },
	tag => { type => 'ref', target => 'Tag', relation => 'ManyToOne' },
	ord => { type => 'ref', target => 'Ord', relation => 'ManyToOne' } } });
declared(Tag => Entity => { permissions => \%all, fields => { word => { type => 'string' } } });
declared(Ord => Entity => { permissions => \%all, table => 'sales.ord', softDelete => $true,
	columns => { deletedAt => 'gone' }, fields => { no => { type => 'text' } } });

# The reference needs a key to refer to, and no foreign key that would hold it.
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or diag $applied->{err}, $applied->{out};
my $shim = EntityApi::Test->shim($cluster, pool_size => 2);
my $tenant = $shim->tenant('acme')->{id};
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann'), '/api/v1');

my $tag = $ann->good(201, POST => '/tags', data => { type => 'tags', attributes => { word => 'red' } })->{json}{data}{id};
my $ord = $ann->good(201, POST => '/ords', data => { type => 'ords', attributes => { no => 'one' } })->{json}{data}{id};
my %values = (name => '12345', note => 'a note', size => 7, length => 8, price => '9.25', day => '2026-01-02', at => '2026-01-02T03:04:05Z',
	yes => $true, code => '01980000-0000-7000-8000-000000000001', extra => { a => 1 });
my $thing = $ann->good(201, POST => '/things', data => { type => 'things', attributes => {%values},
	relationships => { tag => { data => { type => 'tags', id => $tag } }, ord => { data => { type => 'ords', id => $ord } },
		tags => { data => [ { type => 'tags', id => $tag } ] } } })->{json}{data}{id};
my $right = $ann->good(200, GET => "/things/$thing?include=tag,tags,ord")->{json}{data}{attributes};

sub crashes { return scalar(() = join('', map { EntityApi::Test::slurp($_->log) } $cluster->nodes) =~ /terminated by signal/g) }

# What reads or writes a thing, in each way that there is
sub requests
{
	return (
		[ GET => "/things/$thing" ],
		[ GET => '/things?page[totals]=true&page[size]=1' ],
		[ GET => '/things?sort=size&page[after]=start&page[size]=1' ],
		[ GET => "/tags/$tag?include=" ],
		[ PATCH => "/things/$thing", headers => { 'If-Match' => '*' }, data => { type => 'things', id => $thing, attributes => {%values} } ],
		[ POST => '/things', data => { type => 'things', attributes => {%values} } ],
		[ GET => "/things/$thing/relationships/tags" ]);
}

# What the nodes have logged since then
sub logged_so_far { return [ map { length EntityApi::Test::slurp($_->log) } $cluster->nodes ] }
sub logged { my ($from) = @_; my @nodes = $cluster->nodes; return join '', map { substr EntityApi::Test::slurp($nodes[$_]->log), $from->[$_] } 0 .. $#nodes }

# A failure on our side, and not one word of why
sub is_plain
{
	my ($answer) = @_;
	my @errors = @{ $answer->{json}{errors} };
	my $id = delete $errors[0]{id};

	return @errors == 1 && $id eq $answer->{headers}{'x-request-id'} &&
	  eq_hash($errors[0], { status => '500', code => 'INTERNAL_ERROR', title => 'Internal error', detail => 'The request failed for a reason on our side.' });
}

# --- types --------------------------------------------------------------------

# Each column with what it is altered to, and back
my @alterations = (
	[ 'text to a number', 'name', 'alter column name type int8 using 12345', q{alter column name type varchar(255) using '12345'} ],
	[ 'a number to text', 'length', q{alter column length type text using 'pointed at: ' || repeat('A', 40)}, 'alter column length type int8 using 8' ],
	[ 'integer to long', 'size', 'alter column size type int8', 'alter column size type int4' ],
	[ 'decimal to double', 'price', 'alter column price type float8', 'alter column price type numeric(12,2)' ],
	[ 'a decimal that rounds', 'price', 'alter column price type numeric(12,3)', 'alter column price type numeric(12,2)' ],
	[ 'a decimal of any scale', 'price', 'alter column price type numeric', 'alter column price type numeric(12,2)' ],
	[ 'a decimal of less precision', 'price', 'alter column price type numeric(11,2)', 'alter column price type numeric(12,2)' ],
	[ 'a string that is shorter', 'name', 'alter column name type varchar(254)', 'alter column name type varchar(255)' ],
	[ 'a text that has an end', 'note', 'alter column note type varchar(2000)', 'alter column note type text' ],
	[ 'a time that is rounded', 'at', 'alter column at type timestamptz(3)', 'alter column at type timestamptz' ],
	[ 'a date to a timestamp', 'day', 'alter column day type timestamptz', q{alter column day type date using '2026-01-02'} ],
	[ 'a time without zone', 'at', 'alter column at type timestamp', q{alter column at type timestamptz using '2026-01-02T03:04:05Z'} ],
	[ 'a boolean to text', 'yes', 'alter column yes type text', 'alter column yes type bool using true' ],
	[ 'a uuid to text', 'code', 'alter column code type text', 'alter column code type uuid using code::uuid' ],
	[ 'jsonb to json', 'extra', 'alter column extra type json', 'alter column extra type jsonb' ],
	[ 'a reference to text', 'tag_id', 'alter column tag_id type text', 'alter column tag_id type uuid using tag_id::uuid' ],
	[ 'the version to text', 'version', 'alter column version type text', 'alter column version type int8 using version::int8' ],
	[ 'the version may be null', 'version', 'alter column version drop not null', 'alter column version set not null' ],
	[ 'a column is gone', 'note', 'drop column note', 'add column note text' ]);

for my $case (@alterations)
{
	my ($name, $column, $forth, $back) = @$case;
	my $from = logged_so_far();
	my @wrong;
	my $keys = $name =~ /reference/ ? <<~'SQL' : '';
		do $$ declare c text; begin for c in select conname from pg_constraint where conrelid = 'app.thing'::regclass and contype = 'f'
		and pg_get_constraintdef(oid) like '%tag_id%' loop execute 'alter table app.thing drop constraint ' || quote_ident(c); end loop; end $$;
		SQL

	$cluster->psql("$keys alter table app.thing $forth");
	for my $request (requests())
	{
		my $answer = $ann->call(@$request);
		my $about = "$request->[1]" =~ m{^/tags} ? 200 : 500;

		push @wrong, "@$request[0, 1]: $answer->{status} $answer->{body}"
		  if $answer->{status} != $about || ($about == 500 && !is_plain($answer));
	}
	is(crashes(), 0, "$name: nothing crashes") or BAIL_OUT('the cluster crashed');
	is("@wrong", '', "$name: nothing is told or done");
	like(logged($from), qr/failed: .*\b\Q$column\E\b/, "$name: the log names the column");
	like(logged($from), qr/thing/, "$name: and the table");
	$cluster->psql("alter table app.thing $back");
	$cluster->psql("update app.thing set note = 'a note'") if $column eq 'note';
	is_deeply($ann->good(200, GET => "/things/$thing")->{json}{data}{attributes}, $right, "$name: as before, once it is undone");
}

is($cluster->psql('select count(*) from app.thing'), 1, 'nothing was written meanwhile');

# --- the same table, made anew --------------------------------------------------

my $given = $several ? q{select create_distributed_table('app.copy', 'tenant_id', colocate_with => 'entityapi.audit');} : '';
$cluster->psql(<<"SQL");
begin;
set local role entityapi_owner;
create table app.copy (like app.thing including all);
$given
insert into app.copy select * from app.thing;
drop table app.thing cascade;
alter table app.copy rename to thing;
commit;
SQL
is_deeply($ann->good(200, GET => "/things/$thing")->{json}{data}{attributes}, $right, 'a table made anew as it was');
$cluster->psql('alter table app.thing add column more text');
is_deeply($ann->good(200, GET => "/things/$thing")->{json}{data}{attributes}, $right, 'a column more does no harm');

# --- objects of others in the same schema ------------------------------------------

# What is in the table of those who tell, of all nodes
sub found { my ($what, $which) = @_; return join ' ', grep { $_ ne '' } $cluster->on_all("set search_path = pg_catalog; select string_agg($what, \$\$, \$\$) from evil.loot $which") }

# Whoever may make things in the schema makes what statements call by name, and
# the path goes there first
$cluster->psql(<<'SQL');
grant usage, create on schema app, sales to mallory;
grant usage on schema app to public;
set role mallory;
create function evil.told(what text) returns void language plpgsql security definer as $$ begin insert into evil.loot values (what, 'in the schema'); end $$;
do $do$
declare
	t text;
	n text;
	s text;
begin
	foreach s in array array['app', 'sales'] loop
		foreach t in array array['uuid', 'text', 'int4', 'int8', 'numeric', 'timestamptz', 'bool', 'date', 'jsonb'] loop
			foreach n in array array['=', '<>', '<', '>', '<=', '>='] loop
				execute format('create function %I.%I(a pg_catalog.%I, b pg_catalog.%I) returns boolean language plpgsql as '
					'$f$ begin perform evil.told(%L); return true; end $f$', s, 'op' || n, t, t, s || '.' || n || ' ' || t);
				execute format('create operator %I.%s (leftarg = pg_catalog.%I, rightarg = pg_catalog.%I, function = %I.%I)', s, n, t, t, s, 'op' || n);
			end loop;
		end loop;
		foreach n in array array['now()', 'unnest(pg_catalog.uuid[])', 'lower(pg_catalog.text)', 'upper(pg_catalog.text)', 'count(pg_catalog.int4)',
			'"like"(pg_catalog.text, pg_catalog.text)', 'set_config(pg_catalog.text, pg_catalog.text, pg_catalog.bool)',
			'jsonb_build_object()', 'format_type(pg_catalog.oid, pg_catalog.int4)', 'aclexplode(pg_catalog.aclitem[])'] loop
			execute format('create function %I.%s returns pg_catalog.text language plpgsql as $f$ begin perform evil.told(%L); return null; end $f$', s, n, s || '.' || n);
		end loop;
		execute format('create domain %I.uuid as pg_catalog.text; create domain %I.int8 as pg_catalog.text; create domain %I.jsonb as pg_catalog.text', s, s, s);
		execute format('create table %I.pg_class (a int); create table %I.pg_attribute (a int); create table %I.entity (a int)', s, s, s);
	end loop;
end $do$;
reset role;
alter database entityapi set search_path = app, sales, pg_catalog, public;
SQL
$cluster->restart;
EntityApi::Test::wait_until(30, sub { $ann->call(GET => '/tags')->{status} == 200 });
my @answered = map { $ann->call(@$_)->{status} } requests(),
  [ GET => "/things?include=tag,tags,ord&filter=name=='1*';size=ge=1;price=lt=100;day=ge=2020-01-01;yes==true;tags.word==red&sort=-size,name&page[totals]=true" ],
  [ PATCH => "/things/$thing/relationships/tags", headers => { 'If-Match' => '*' }, data => [] ],
  [ PATCH => "/things/$thing/relationships/tags", headers => { 'If-Match' => '*' }, data => [ { type => 'tags', id => $tag } ] ],
  [ PATCH => "/ords/$ord", data => { type => 'ords', id => $ord, attributes => { no => 'one' } } ];
is("@answered", '200 200 200 200 200 201 200 200 204 204 200', 'objects of others in the schema: served as ever');
my $again = $cluster->try_apply($folder, '--repair');
is($again->{status}, 0, 'and applied, with what the table has lost') or diag $again->{out}, $again->{err};
declared(Later => Entity => { permissions => \%all, fields => { word => { type => 'string', index => $true, unique => $true },
	tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' }, tag => { type => 'ref', target => 'Tag', relation => 'ManyToOne' } } });
$again = $cluster->try_apply($folder);
is($again->{status}, 0, 'a new entity beside them') or diag $again->{out}, $again->{err};
is($ann->call(POST => '/laters', data => { type => 'laters', attributes => { word => 'x' } })->{status}, 201, 'which is served');
is(found('distinct who', ''), '', 'none of them was used');
$cluster->psql('set search_path = pg_catalog; alter database entityapi reset search_path');
$cluster->restart;
EntityApi::Test::wait_until(30, sub { $ann->call(GET => '/tags')->{status} == 200 });
$cluster->psql("delete from app.thing where id <> '$thing'");

# --- owners ---------------------------------------------------------------------

sub loot { return found('distinct who || $$ $$ || what', 'where who = $$entityapi_owner$$') }

# Of a made table, then of one that was there: what is done, and undone.  Citus
# takes no triggers, no ranges of others and nothing that inherits.
my $domain = 'set role mallory; create domain evil.plain as text; reset role; alter table %1$s add column d evil.plain default $$x$$;';
my @takeovers = (
	[ 'the schema', 'alter schema %2$s owner to mallory; grant all on schema %2$s to entityapi_owner', 'alter schema %2$s owner to entityapi_owner' ],
	[ 'the table', 'alter table %1$s owner to mallory; grant all on %1$s to entityapi_owner', 'alter table %1$s owner to entityapi_owner' ],
	$several ? () : [ 'a trigger', 'create trigger t before insert or update on %1$s for each row execute function evil.trg()', 'drop trigger t on %1$s' ],
	[ 'the right to make triggers', 'grant trigger on %1$s to mallory', 'revoke trigger on %1$s from mallory' ],
	[ 'a default', 'alter table %1$s add column d text default evil.val($$x$$)', 'alter table %1$s drop column d' ],
	[ 'a check', 'alter table %1$s add constraint c check (evil.ok(%3$s)) not valid', 'alter table %1$s drop constraint c' ],

	# on other nodes it may have the rights of the caller
	$several ? [ 'a check with the rights of its owner', 'alter function evil.ok(text) security definer; alter table %1$s add constraint c check (evil.ok(%3$s)) not valid',
		'alter table %1$s drop constraint c; alter function evil.ok(text) security invoker' ] : (),
	[ 'an expression of an index', 'create index i on %1$s (evil.val(%3$s))', 'drop index %2$s.i' ],
	[ 'an expression of statistics', 'create statistics %2$s.s on (evil.val(%3$s)), id from %1$s', 'drop statistics %2$s.s' ],
	[ 'a policy', 'create policy p on %1$s using (evil.ok(%3$s))', 'drop policy p on %1$s' ],
	[ 'a domain', $domain, 'alter table %1$s drop column d; drop domain evil.plain' ],
	[   'a domain over a domain',
		'set role mallory; create domain evil.low as text check (evil.ok(value)); reset role; set role entityapi_owner; create domain sales.high as evil.low;'
		  . ' reset role; grant usage on type evil.low to public; alter table %1$s add column d sales.high default $$x$$',
		'alter table %1$s drop column d; drop domain sales.high; drop domain evil.low' ],
	[   'an array of a domain',
		'set role mallory; create domain evil.low as text check (evil.ok(value)); reset role; alter table %1$s add column d evil.low[] default $${x}$$',
		'alter table %1$s drop column d; drop domain evil.low' ],
	[   'a composite with a domain',
		'set role mallory; create domain evil.low as text check (evil.ok(value)); reset role; set role entityapi_owner; create type sales.pair as (a int, b evil.low);'
		  . ' reset role; alter table %1$s add column d sales.pair',
		'alter table %1$s drop column d; drop type sales.pair; drop domain evil.low' ],
	$several ? () : [ 'a range', 'set role mallory; create type evil.span as range (subtype = text); reset role; alter table %1$s add column d evil.span',
		'alter table %1$s drop column d; drop type evil.span' ],
	$several ? () : [ 'a table that inherits', 'create table evil.child () inherits (%1$s); alter table evil.child owner to mallory', 'drop table evil.child' ]);

$cluster->psql('grant create on schema evil, sales, app to entityapi_owner; grant usage on schema app to mallory');
for my $place ([ 'app.thing', 'app', 'name', 'things', { %values } ], [ 'sales.ord', 'sales', 'no', 'ords', { no => 'two' } ])
{
	my ($table, $schema, $text, $path, $attributes) = @$place;
	my $id = $path eq 'things' ? $thing : $ord;

	for my $takeover (@takeovers)
	{
		my ($name, $forth, $back) = @$takeover;
		my $count = $cluster->psql("select count(*) from $table");
		my $from = logged_so_far();
		my @statuses;

		$ann->good(200, GET => "/$path/$id");
		$cluster->psql(sprintf "$forth -- %1\$s", $table, $schema, $text);
		$cluster->everywhere('truncate evil.loot');
		push @statuses, $ann->call(GET => "/$path/$id")->{status};
		push @statuses, $ann->call(PATCH => "/$path/$id", headers => { 'If-Match' => '*' }, data => { type => $path, id => $id, attributes => $attributes })->{status};
		push @statuses, $ann->call(POST => "/$path", data => { type => $path, attributes => $attributes })->{status};
		push @statuses, $ann->call(DELETE => "/$path/$id", headers => { 'If-Match' => '*' })->{status};
		is("@statuses", '500 500 500 500', "$table, $name: refused");
		is(loot(), '', "$table, $name: nothing ran");
		like(logged($from), qr/failed: the table \w+ is not used: .*(?:mallory|evil)/, "$table, $name: the log says whose");
		is($cluster->psql("select count(*) from $table"), $count, "$table, $name: nothing was written");

		my $again = $cluster->try_apply($folder);
		ok($again->{status} != 0 && $again->{err} . $again->{out} =~ /mallory|evil|children|the policy "p" of \Q$table\E/, "$table, $name: applying again tells of it")
		  or diag $again->{out}, $again->{err};
		is(loot(), '', "$table, $name: nothing ran of that");
		$cluster->psql(sprintf "$back -- %1\$s", $table, $schema, $text);
		$ann->good(200, GET => "/$path/$id");
	}
}

# Afterwards, by whoever owns the domain: another's one is refused from the
# beginning, one of the service's own may call what is its own.
$cluster->psql(<<'SQL');
create function sales.fine(text) returns boolean language sql immutable as 'select true';
alter function sales.fine(text) owner to entityapi_owner;
create domain sales.own as text;
alter domain sales.own owner to entityapi_owner;
alter table sales.ord add column d sales.own default 'x';
SQL
$ann->good(201, POST => '/ords', data => { type => 'ords', attributes => { no => 'own' } });
$cluster->psql('alter domain sales.own add constraint c check (sales.fine(value))');
$ann->good(201, POST => '/ords', data => { type => 'ords', attributes => { no => 'own' } });
$cluster->psql('alter function sales.fine(text) owner to mallory');
is($ann->call(POST => '/ords', data => { type => 'ords', attributes => { no => 'x' } })->{status}, 500, 'the function is given away');
$cluster->psql('alter function sales.fine(text) owner to entityapi_owner');
$ann->good(201, POST => '/ords', data => { type => 'ords', attributes => { no => 'own' } });
$cluster->psql('alter domain sales.own owner to mallory');
is($ann->call(POST => '/ords', data => { type => 'ords', attributes => { no => 'x' } })->{status}, 500, 'the domain is given away');
$cluster->psql('alter table sales.ord drop column d');

# A schema of somebody else's, before anything is made in it
$cluster->psql('create schema app2 authorization mallory; grant all on schema app2 to entityapi_owner');
declared(Service => Service => { schema => 'app2' });
my $moved = $cluster->try_apply($folder);
ok($moved->{status} != 0, 'a schema of somebody else is not taken');
like($moved->{out} . $moved->{err}, qr/app2.*belongs to mallory.*ALTER SCHEMA app2 OWNER TO entityapi_owner/s, 'and it says whose it is');
unlink "$folder/Service.json";

# --- keys that are gone ---------------------------------------------------------

# Ids are unique as long as the key is there: the same id a hundred thousand
# times, visible and deleted, where one is expected
$cluster->psql(<<"SQL");
do \$\$ declare c record; begin
for c in select conrelid::regclass t, conname from pg_constraint where confrelid = 'sales.ord'::regclass loop
execute format('alter table %s drop constraint %I', c.t, c.conname); end loop; end \$\$;
alter table sales.ord drop constraint ord_key cascade;
insert into sales.ord (tenant_id, id, no) select '$tenant', '$ord', 'copy ' || i from generate_series(1, 100000) i;
SQL
my %to = (relationships => { ord => { data => { type => 'ords', id => $ord } } });
is($ann->call(POST => '/things', data => { type => 'things', attributes => { name => 'new' }, %to })->{status}, 201, 'refer to an id that is there more than once');
is($ann->call(GET => "/things/$thing")->{status}, 200, 'show a reference to it');
is($ann->call(GET => '/things?include=ord')->{status}, 200, 'include it');

# one of them is changed, or more are and that is undone
like($ann->call(PATCH => "/ords/$ord", data => { type => 'ords', id => $ord, attributes => { no => 'two' } })->{status}, qr/^(?:200|409)$/, 'change it');
is($ann->call(DELETE => "/ords/$ord")->{status}, 409, 'and not delete it, since others refer to it');
is(crashes(), 0, 'nothing crashed');

done_testing;
