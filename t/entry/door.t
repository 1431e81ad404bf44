# Who calls handle(), and from where: for the shim's role a call is a statement
# and a transaction of its own, whatever form somebody finds to call it in.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Wire;

use constant { BYTEA => 17, TEXT => 25, JSONB => 3802, INET => 869 };

my $cluster = EntityApi::Test->cluster;
$cluster->settle;
my $alone = qr/must be a statement and a transaction of its own/;

$cluster->psql('alter database entityapi set entityapi.bcrypt_cost = 10;'
	  . 'create role member login in role entityapi_owner');

sub as_shim { return $cluster->try_psql($_[0], user => 'entityapi_shim') }

# How many wrong guesses at a name are on record
my $names = 0;
sub name { return 'nobody' . ++$names }

sub counted
{
	my ($name) = @_;

	return $cluster->psql("select coalesce((select failures from entityapi.login_throttle where username_hash = sha256('$name')), 0)");
}

sub body  { return qq({"username":"$_[0]","password":"wrong"}) }
sub login { my ($name) = @_; return "entityapi.handle('POST', '/auth/login', '{\"content-type\": \"application/json\"}', '" . body($name) . "', '127.0.0.1')" }

# -------- what it may send --------

for my $sql ('select status from %s', 'select * from %s', 'select headers, body, status from %s h', 'select %s', 'table pg_temp.v')
{
	my $name = name();
	my $call = login($name);
	my $result = as_shim($sql =~ /table/ ? "create temp view v as select * from $call;\n$sql;" : sprintf("$sql;", $call));

	is($result->{status}, 0, $sql) or diag $result->{err};
	is(counted($name), 1, 'and counted');
}

my $get = "entityapi.handle('GET', '/nothing', '{}', null, null)";
my $message = "entityapi.handle('\\x474554202f6e6f7468696e67202d0a0a')";
like(as_shim("select $message;")->{out}, qr/^\\x343034/, 'a message as a constant');

# -------- what it may not --------

my %before = (
	'a block' => ['begin', 'commit'], 'a block that is undone' => ['begin', 'rollback'], 'a savepoint' => ["begin;\nsavepoint s", "rollback to s;\ncommit"],
	'serializable' => ['set default_transaction_isolation = serializable'], 'repeatable read' => ["set default_transaction_isolation = 'repeatable read'"]);

for my $what (sort keys %before)
{
	for my $form ("select status from $get", "select $message")
	{
		my $result = as_shim("$before{$what}[0];\n$form;\n" . ($before{$what}[1] // '') . ';');

		like($result->{err}, $alone, "$what: $form");
	}
}

my %other = (
	'an expression' => 'select 1 / (status - 404) from %s',
	'an expression around it' => 'select (%s).status',
	'a condition' => 'select status from %s where status = 404',
	'one row of it' => 'select status from %s limit 1',
	'an order' => 'select status from %s order by 1',
	'one besides' => 'select %1$s, %1$s',
	'a value besides' => 'select %s, 1',
	'a join' => 'select 1 from generate_series(1, 50), lateral %s',
	'several functions' => "select * from rows from (%s, generate_series(1, 2))",
	'a sub-select' => 'select (select status from %s)',
	'a CTE' => 'with a as (select * from %s) select status from a',
	'a kept CTE' => 'with a as materialized (select * from %s) select status from a',
	'a union' => 'select status from %s union all select 1',
	'computed arguments' => "select status from entityapi.handle('GET', '/' || now(), '{}', null, null)",
	'a table made of it' => 'create temp table t as select * from %s',
	'an insert' => "create temp table t (status int);\ninsert into t select status from %s",
	'COPY' => 'copy (select status from %s) to stdout',
	'EXPLAIN' => 'explain (analyze) select status from %s',
	'EXECUTE' => "prepare p as select status from %s;\nexecute p",
	'a string of two' => 'select 1 \; select status from %s',
	'a string of two, the other way' => 'select status from %s \; select 1',
	'a default' => "create temp table t (a int default ((%s).status));\ninsert into t default values",
	'DO' => 'do $$ begin perform status from %s; end $$',
	'DO, undone' => 'do $$ begin begin perform status from %s; raise division_by_zero; exception when division_by_zero then null; end; end $$',
	'DO, dynamic' => 'do $$ begin execute $x$select status from %s$x$; end $$',
	'DO, prepared' => "prepare p as select status from %s;\ndo \$\$ begin execute 'execute p'; end \$\$",
	'a function' => "create function pg_temp.f() returns int language plpgsql as \$\$ begin return (select status from %s); end \$\$;\nselect pg_temp.f()",
	'a SQL function' => "create function pg_temp.f() returns int language sql as \$\$ select status from %s \$\$;\nselect pg_temp.f()",
	'a SQL function in FROM' => "create function pg_temp.f() returns setof int language sql as \$\$ select status from %s \$\$;\nselect * from pg_temp.f()",
	'a procedure' => "create procedure pg_temp.p() language plpgsql as \$\$ begin perform status from %s; commit; end \$\$;\ncall pg_temp.p()",
	'a trigger' => "create temp table t (a int);\ncreate function pg_temp.f() returns trigger language plpgsql as \$\$ begin perform status from %s; return new; end \$\$;\n"
	  . "create trigger t before insert on t for each row execute function pg_temp.f();\ninsert into t values (1)",
	'a deferred trigger' => "create temp table t (a int);\ncreate function pg_temp.f() returns trigger language plpgsql as \$\$ begin perform status from %s; return new; end \$\$;\n"
	  . "create constraint trigger t after insert on t deferrable initially deferred for each row execute function pg_temp.f();\ninsert into t values (1)",
	'a cursor' => "begin;\ndeclare c cursor for select status from %s;\nfetch 1 from c",
	'a cursor of a function' => 'do $$ declare c cursor for select * from %s; r record; begin open c; fetch c into r; end $$',
	'XML' => 'select query_to_xml($x$select status from %s$x$, true, false, \'\')');

for my $what (sort keys %other)
{
	my $name = name();
	my $sql = $other{$what};
	my $result = as_shim($sql =~ s/%(?:1\$)?s/login($name)/ger);

	like($result->{err}, $alone, $what) or diag $result->{out};
	unlike($result->{out}, qr/401/, 'without an answer');
}
like(as_shim('do $$ begin perform ' . $message . '; end $$')->{err}, $alone, 'a message in a function');
like(as_shim("\\set VERBOSITY verbose\nbegin;\nselect $message;")->{err}, qr/42501.*DETAIL.*HINT.*members of entityapi_owner/s, 'with its code and a hint');

# Nor through the right of others to call it
$cluster->psql('create function public.lent() returns int language sql security definer as $$ select status from ' . $get . ' $$; grant execute on function public.lent() to public');
like(as_shim('select public.lent()')->{err}, $alone, 'a function of a superuser');

# Members do as they like, and who has become the shim is the shim
is($cluster->psql("begin; select status from $get; rollback"), 404, 'a superuser in a block');
is($cluster->psql("begin; select status from $get; rollback", user => 'member'), 404, 'a member in a block');
like($cluster->try_psql("set session authorization entityapi_shim; begin; select status from $get")->{err}, $alone, 'no member any more');

# -------- message by message --------

sub wire { return EntityApi::Test::Wire->new($cluster, 'entityapi_shim') }
my $five = 'select status from entityapi.handle($1, $2, $3, $4, $5)';
my @types = (TEXT, TEXT, JSONB, BYTEA, INET);
sub arguments { return ('POST', '/auth/login', '{"content-type": "application/json"}', body($_[0]), '127.0.0.1') }

sub sent { my ($wire) = @_; return join ' ', grep { !/^[12CZ3TI]$/ } $wire->send->answers }

my $wire = wire();
my $name = name();
is(sent($wire->parse('s', $five, @types)->bind('', 's', arguments($name))->execute('')->sync), 'D 401', 'prepared, as drivers send it');
is(sent($wire->bind('', 's', arguments($name))->execute('')->sync), 'D 401', 'and again');
is(counted($name), 2, 'both count');
is(sent($wire->parse('', 'select entityapi.handle($1)', BYTEA)->bind('', '', "GET /nothing -\\012\\012")->execute('')->sync) =~ /^D \\x343034/, 1, 'a message');
like(sent($wire->bind('p', 's', arguments($name))->execute('p')->sync), $alone, 'not from a portal with a name');

$name = name();
$wire->parse('bad', 'select 1 / $1', 23)->bind('', 's', arguments($name))->execute('')->bind('', 'bad', 0)->execute('')->sync;
is(sent($wire), 'D 401 E division by zero', 'an error behind it in a pipeline');
is(counted($name), 1, 'comes too late');

$name = name();
$wire->bind('', 's', arguments($name))->execute('', 1)->bind('', 'bad', 0)->execute('')->sync;
is(sent($wire), 'D 401 E division by zero', 'the same after one row was asked for');
is(counted($name), 1, 'comes too late, too');

$name = name();
$wire->parse('one', 'select 1')->bind('', 'one')->execute('')->bind('', 's', arguments($name))->execute('')->sync;
like(sent($wire), qr/^D 1 E .*$alone/, 'not behind something else in a pipeline');
like(sent($wire->query('begin')->query('rollback')), qr/^$/, '(in step)');
$wire->answers;

$name = name();
$wire->bind('', 's', arguments($name))->execute('', 1)->flush->send;
is(($wire->answers('D'))[-1], 'D 401', 'an answer to who goes without an end');
$wire->close;
EntityApi::Test::wait_until(10, sub { counted($name) == 1 });
is(counted($name), 1, 'counts');

# What runs while parameters are read is a part of the transaction
$wire = wire();
$name = name();
$wire->query(<<~'SQL')->send->answers;
	create temp table bait (a int);
	create function pg_temp.undo() returns trigger language plpgsql as $$ begin raise exception 'undone'; end $$;
	create constraint trigger undo after insert on bait deferrable initially deferred for each row execute function pg_temp.undo();
	create function pg_temp.lay(int) returns boolean language plpgsql as $$ begin insert into bait values (1); return true; end $$;
	create domain pg_temp.lure as int check (pg_temp.lay(value));
	SQL
$wire->parse('s', $five, @types)->parse('lure', 'select $1::pg_temp.lure');
unlike(sent($wire->sync), qr/E /, '(prepared)');
my $oid = $cluster->psql("select oid from pg_type where typname = 'lure'");
$wire->parse('lured', 'select $1', $oid)->bind('x', 'lured', 1)->bind('', 's', arguments($name))->execute('')->sync;
like(sent($wire), $alone, 'not after a parameter whose reading wrote something');

# A cast in the place of the argument, and the call from within it
$wire = wire();
$name = name();
my $cast = <<~'SQL';
	create type pg_temp.odd as (a int);
	create temp table outcome (a text);
	create function pg_temp.cast_odd(pg_temp.odd) returns bytea language plpgsql as $$
	declare c refcursor := ''; r record;
	begin
		begin
			fetch c into r;
			raise exception 'undo';
		exception when others then insert into outcome values (sqlerrm);
		end;
		return '\x';
	end $$;
	create cast (pg_temp.odd as bytea) with function pg_temp.cast_odd(pg_temp.odd) as implicit;
	SQL
unlike(join(' ', $wire->query($cast)->send->answers), qr/E /, '(a cast)');
$oid = $cluster->psql("select oid from pg_type where typname = 'odd'");
$wire->parse('plain', 'select entityapi.handle($1)', BYTEA)->parse('odd', 'select entityapi.handle($1)', $oid)
  ->bind('x', 'odd', '(1)')->bind('', 'plain', "GET /nothing -\\012\\012")->execute('x')->sync;
like(sent($wire), $alone, 'not with an argument that is cast');
$wire->parse('f', 'select pg_temp.cast_odd($1)', $oid)->bind('x', 'f', '(1)')->bind('', 'plain', "GET /nothing -\\012\\012")->execute('x')->sync;
sent($wire);
like(join(' ', $wire->query('select a from outcome')->send->answers), $alone, 'nor from a function that fetches from the portal without a name');

# -------- without being able to write --------

$name = name();
my $read_only = as_shim("set default_transaction_read_only = on;\nselect status from " . login($name));
like($read_only->{err}, qr/cannot execute a login in a read-only transaction/, 'no guess where none could be counted');

unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
done_testing();
