# What a session of the database keeps of a caller, while nothing is written, or
# nothing where his rows are, is worth nothing with the next statement after any
# write of them: each that takes a right away, or gives one, made by another one,
# prepared or at once, on a standby, too.

use strict;
use warnings;

use IO::Handle;
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(conf => ['max_prepared_transactions = 2']);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $folder = EntityApi::Test::folder();
my $number = 0;

$cluster->psql(<<'SQL');
create table public.written (n int);
create function public.me(token text) returns text language sql stable as $$
	select status || ' ' || coalesce(body::json ->> 'isTenantAdmin', '') || ' ' || coalesce(body::json ->> 'roles', '')
	from entityapi.handle('GET', '/auth/me', json_build_object('authorization', 'Bearer ' || token)::jsonb, null, null) $$;
SQL

# Sessions that are given one statement after the other, and stay
my %session;

sub opened
{
	my ($name, $server) = @_;

	open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-d', $server->conninfo, '-o', "$folder/$name" or die "psql: $!\n";
	$psql->autoflush;
	return $session{$name} = $psql;
}

my $session = opened('primary', $cluster);

# The last line that statements give
sub given
{
	my ($sql, $where) = @_;
	my $file = "$folder/" . ($where //= 'primary');
	my $mark = 'answer ' . ++$number;

	print { $session{$where} } "$sql;\nselect '$mark';\n";
	EntityApi::Test::wait_until(10, sub { -s $file && EntityApi::Test::slurp($file) =~ /^\Q$mark\E$/m });
	return (EntityApi::Test::slurp($file) =~ /([^\n]*)\n\Q$mark\E\n/)[0];
}

sub me { my ($token, $where) = @_; return given("select public.me('$token')", $where) }

# it is asked often enough to be kept, and then what was written counts at once;
# while others write, too, or not
my $others_write;

sub changes
{
	my ($what, $token, $before, $sql, $after) = @_;
	my $asked = sub { given('insert into public.written values (0)', 'others') if $others_write; return me($token) };

	is($asked->(), $before, "before: $what") for 1 .. 4;
	$cluster->psql($sql);
	is($asked->(), $after, $what) for 1 .. 3;
	return;
}

# Whether the session was looked for in its table
sub looks
{
	my ($token) = @_;

	return given("begin; select public.me('$token'); select count(*) from pg_locks"
			. " where relation = 'entityapi.session'::regclass and pid = pg_backend_pid(); commit");
}

my $roles = sub { my ($id, $roles) = @_; "update entityapi.account set roles = '{$roles}' where id = '$id'" };
my $wrote = sub { $cluster->psql('insert into public.written values (1)') };

opened('others', $cluster);
for my $name (qw(eve ann))
{
	my $user = $shim->user($tenant->{id}, $name, []);
	my ($id, $token) = @$user{qw(id accessToken)};
	my $sid = $cluster->psql("select id from entityapi.session where account_id = '$id' order by created_at desc limit 1");

	# who is kept is not looked up
	is(me($token), '200 false []', 'asked') for 1 .. 3;
	is(looks($token), 0, 'nobody looks for a session that is kept');
	$wrote->();
	is(looks($token), 0, 'nor if something has been written that is not of it');
	$cluster->psql("update entityapi.session set forced = forced where id = '$sid'");
	is(looks($token), 1, 'one does once it has been written');

	$others_write = $name eq 'ann';
	changes('a role is given', $token, '200 false []', $roles->($id, 'Editor'), '200 false ["Editor"]');
	changes('more of them', $token, '200 false ["Editor"]', $roles->($id, 'Editor,Reader,Own'), '200 false ["Editor","Reader","Own"]');
	changes('and taken away', $token, '200 false ["Editor","Reader","Own"]', $roles->($id, ''), '200 false []');
	changes('authority over the tenant', $token, '200 false []', "insert into entityapi.tenant_admin values ('$tenant->{id}', '$id')", '200 true []');
	changes('is taken back', $token, '200 true []', "delete from entityapi.tenant_admin where account_id = '$id'", '200 false []');
	changes('authority that comes by replication', $token, '200 false []', "set session_replication_role = replica; insert into entityapi.tenant_admin values ('$tenant->{id}', '$id')", '200 true []');
	changes('and is taken back', $token, '200 true []', "set session_replication_role = replica; delete from entityapi.tenant_admin where account_id = '$id'", '200 false []');
	changes('the account is disabled', $token, '200 false []', "update entityapi.account set status = 'DISABLED' where id = '$id'", '401  ');
	changes('and enabled', $token, '401  ', "update entityapi.account set status = 'ACTIVE' where id = '$id'", '200 false []');
	changes('the tenant is suspended', $token, '200 false []', "update entityapi.tenant set status = 'SUSPENDED' where id = '$tenant->{id}'", '401  ');
	changes('and is not any more', $token, '401  ', "update entityapi.tenant set status = 'ACTIVE' where id = '$tenant->{id}'", '200 false []');
	changes('in a subtransaction that is undone', $token, '200 false []', "begin; savepoint a; update entityapi.account set status = 'DISABLED' where id = '$id'; rollback to a; commit", '200 false []');
	changes('the tables are written anew', $token, '200 false []', 'vacuum full entityapi.session; vacuum full entityapi.account; ' . $roles->($id, 'Own'), '200 false ["Own"]');
	changes('authority by a table that is in no WAL', $token, '200 false ["Own"]', "alter table entityapi.tenant_admin set unlogged; insert into entityapi.tenant_admin values ('$tenant->{id}', '$id'); " . $roles->($id, ''), '200 true []');
	changes('is taken back there', $token, '200 true []', "delete from entityapi.tenant_admin where account_id = '$id'", '200 false []');
	changes('and given once more', $token, '200 false []', "insert into entityapi.tenant_admin values ('$tenant->{id}', '$id')", '200 true []');
	changes('and the table is in the WAL again', $token, '200 true []', "alter table entityapi.tenant_admin set logged; delete from entityapi.tenant_admin where account_id = '$id'", '200 false []');
	changes('prepared', $token, '200 false []', "begin; update entityapi.session set revoked_at = now() where id = '$sid'; prepare transaction 'revoke'", '200 false []');
	changes('and committed', $token, '200 false []', "commit prepared 'revoke'", '401  ');

	# a row that never was
	$cluster->psql("update entityapi.session set revoked_at = null where id = '$sid'; create table public.copy as select * from entityapi.session where id = '$sid'; delete from entityapi.session where id = '$sid'");
	is(me($token), '401  ', 'the session is not there');
	given('begin; insert into entityapi.session select * from public.copy');
	for (1 .. 4)
	{
		given('insert into public.written values (0)', 'others') if $others_write;
		is(me($token), '200 false []', 'it is for who has put it there');
	}
	given('rollback');
	is(me($token), '401  ', 'and for nobody once that is undone') for 1 .. 2;
	$cluster->psql('drop table public.copy');
}
$others_write = 0;

my $asked = sub { my ($token) = @_; given('insert into public.written values (0)', 'others'); return me($token) };

# Who becomes an administrator while he is kept: the lock of his account is in its
# page before the authority is there
{
	my ($id, $token) = @{ $shim->user($tenant->{id}, 'racer', []) }{qw(id accessToken)};

	opened('granter', $cluster);
	given("begin; insert into entityapi.tenant_admin values ('$tenant->{id}', '$id')", 'granter');
	is($asked->($token), '200 false []', 'not yet committed') for 1 .. 4;
	given('commit', 'granter');
	is(me($token), '200 true []', 'given') for 1 .. 3;
	$cluster->psql("delete from entityapi.tenant_admin where account_id = '$id'");
	is($asked->($token), '200 false []', 'and taken back') for 1 .. 3;

	$cluster->psql("insert into entityapi.tenant_admin values ('$tenant->{id}', '$id')");
	is(me($token), '200 true []', 'given again') for 1 .. 4;
	given("begin; delete from entityapi.tenant_admin where account_id = '$id'");
	is(me($token), '200 false []', 'taken back by the own transaction') for 1 .. 4;
	given('rollback');
	is(me($token), '200 true []', 'which is undone') for 1 .. 4;
	$cluster->psql("delete from entityapi.tenant_admin where account_id = '$id'");
	is(me($token), '200 false []', 'and by another one') for 1 .. 3;
}

# The row of somebody else where his was, which is in another page now
{
	my ($id, $token) = @{ $shim->user($tenant->{id}, 'mover', []) }{qw(id accessToken)};
	my $where = sub { $cluster->psql("select ctid from entityapi.account where id = '$id'") };
	my $fill = sub {
		my ($from, $to) = @_;

		$cluster->psql("insert into entityapi.account select (jsonb_populate_record(a, jsonb_build_object('id', gen_random_uuid(), 'username', 'filler' || i,"
				. " 'username_key', 'filler' || i, 'email', 'filler' || i || '\@x.y', 'profile', '{}'::jsonb))).*"
				. " from entityapi.account a, generate_series($from, $to) i where a.id = '$id'");
	};

	$fill->(1, 200);
	$cluster->psql('vacuum full entityapi.account');
	$cluster->psql("update entityapi.account set profile = jsonb_build_object('t', (select string_agg(md5(random()::text), '') from generate_series(1, 58))) where id = '$id'");
	is(me($token), '200 false []', 'where he is') for 1 .. 4;
	my $old = $where->();
	$fill->(201, 500);
	$cluster->psql("delete from entityapi.account where username like 'filler%' and ctid < '$old'");
	$cluster->psql('alter table entityapi.account set (fillfactor = 60); vacuum full entityapi.account');
	my $page = $where->() =~ s/,.*//r;
	unlike($old, qr/^\Q$page\E,/, 'he moved to another page');
	is($cluster->psql("select count(*) from entityapi.account where ctid = '$old'"), 1, 'and somebody else is there');
	is($asked->($token), '200 false []', 'he is who he was') for 1 .. 4;
	$cluster->psql($roles->($id, 'Editor'));
	is($asked->($token), '200 false ["Editor"]', 'and gets what he is given') for 1 .. 3;
	$cluster->psql("update entityapi.account set status = 'DISABLED' where id = '$id'");
	is($asked->($token), '401  ', 'and is let in no more') for 1 .. 3;
	like($where->(), qr/^\Q$page\E,/, 'all of that in his page');
}

# the caller's own transaction
my $other = $shim->user($tenant->{id}, 'bob', []);
is(me($other->{accessToken}), '200 false []', 'another one') for 1 .. 3;
print $session "begin;\n";
is(me($other->{accessToken}), '200 false []', 'in a transaction') for 1 .. 2;
print $session "update entityapi.account set roles = '{Own}' where id = '$other->{id}';\n";
is(me($other->{accessToken}), '200 false ["Own"]', 'which sees what it has written');
print $session "rollback;\n";
is(me($other->{accessToken}), '200 false []', 'and that it was undone') for 1 .. 3;

# time passes by itself
$cluster->psql("update entityapi.session set expires_at = clock_timestamp() + interval '2 s' where account_id = '$other->{id}'");
is(me($other->{accessToken}), '200 false []', 'until the session ends') for 1 .. 3;
sleep 3;
is(me($other->{accessToken}), '401  ', 'nothing has been written, and it has ended');

# One that is too large to be kept, and one that is of another kind in between
my $large = $shim->user($tenant->{id}, 'large', []);
is(me($large->{accessToken}), '200 false []', 'as it was made') for 1 .. 3;
changes('a large one', $large->{accessToken}, '200 false []', "update entityapi.account set profile = jsonb_build_object('text', repeat('x', 20000)), roles = '{Reader}' where id = '$large->{id}'",
	'200 false ["Reader"]');
changes('a small one again', $large->{accessToken}, '200 false ["Reader"]', "update entityapi.account set profile = '{}', roles = '{}' where id = '$large->{id}'", '200 false []');

# Another session of the same account that has the same place
sub neighbours
{
	my ($name) = @_;
	my %at;

	for (1 .. 257)
	{
		my $login = $shim->must(200, POST => '/auth/login', { json => { username => $name, password => $large->{password} } });
		my $sid = $cluster->psql("select id from entityapi.session where account_id = '$large->{id}' order by created_at desc limit 1");
		my $place = hex substr $sid, -2;

		return ($at{$place}, [ $sid, $login->{accessToken} ]) if $at{$place};
		$at{$place} = [ $sid, $login->{accessToken} ];
	}
	die "no two in one place\n";
}

my ($ended, $alive) = neighbours($large->{username});
$cluster->psql("update entityapi.session set revoked_at = now() where id = '$ended->[0]'");
is(me($alive->[1]), '200 false []', 'one session goes on') for 1 .. 4;
is(me($ended->[1]), '401  ', 'its neighbour has ended') for 1 .. 2;

# A cursor goes on to see one moment, and nobody sees that because of it
given("begin; declare old cursor for select public.me('$large->{accessToken}') from generate_series(1, 20)");
is(given('fetch old'), '200 false []', 'a cursor') for 1 .. 3;
$cluster->psql($roles->($large->{id}, 'Editor'));
is(given('fetch old'), '200 false []', 'it sees what it saw') for 1 .. 3;
is(me($large->{accessToken}), '200 false ["Editor"]', 'others what is there now') for 1 .. 3;
is(given('fetch old'), '200 false []', 'it sees what it saw, still') for 1 .. 3;
is(me($large->{accessToken}), '200 false ["Editor"]', 'others what is there now, still') for 1 .. 3;
for (1 .. 3)
{
	given('insert into public.written values (0)', 'others');
	is(me($large->{accessToken}), '200 false ["Editor"]', 'also while others write');
}
is(given('fetch old'), '200 false []', 'it sees what it saw, whatever others have seen since');
given('commit');
$cluster->psql($roles->($large->{id}, ''));

# Of more than 64 subtransactions a snapshot has no list, nor has its copy
for my $others ([ few => 3 ], [ many => 80 ], [ as_few => 3 ])
{
	opened($others->[0], $cluster);
	given('begin; ' . join('; ', map { "savepoint s$_; insert into public.written values ($_)" } 1 .. $others->[1]), $others->[0]);
}
changes('beside many subtransactions', $large->{accessToken}, '200 false []', $roles->($large->{id}, 'Editor'), '200 false ["Editor"]');
given('rollback', $_) for qw(few many as_few);
changes('and after them', $large->{accessToken}, '200 false ["Editor"]', $roles->($large->{id}, ''), '200 false []');

# A standby hears of writes by the log
my $standby = EntityApi::Test->standby($cluster, 'looker', conf => ['max_prepared_transactions = 2']);
my $replayed = sub {
	my $at = $cluster->psql('select pg_current_wal_lsn()');
	return EntityApi::Test::wait_until(20, sub { $standby->psql("select pg_last_wal_replay_lsn() >= '$at'") eq 't' });
};
opened('standby', $standby);
$replayed->();
for my $change ([ "update entityapi.account set roles = '{Editor}' where id = '$large->{id}'", '200 false ["Editor"]' ], [ "update entityapi.session set revoked_at = now() where account_id = '$large->{id}'", '401  ' ])
{
	is(me($large->{accessToken}, 'standby'), me($large->{accessToken}), 'on a standby') for 1 .. 4;
	$cluster->psql($change->[0]);
	$replayed->();
	is(me($large->{accessToken}, 'standby'), $change->[1], 'what was written counts there once it is replayed') for 1 .. 3;
}
close $_ for values %session;

done_testing;
