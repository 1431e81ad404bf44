# A superuser applies manifests and runs what is pending, in a database where
# a member of entityapi_owner has prepared everything such a member can: no
# code of his runs with rights that he has not got, and honest steps still run.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my %fields = (code => { type => 'string' }, size => { type => 'integer' });
my $files = 0;

sub file
{
	my (%more) = @_;
	my $name = "$folder/" . ++$files . '.json';
	my $document = { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'Item' },
		spec => { fields => { %fields, %more }, permissions => { '*' => [qw(create read)] } } };

	open my $out, '>', $name or die "$name: $!\n";
	print $out $json->encode([$document]);
	close $out;
	return $name;
}

$cluster->apply(file());
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'ann'), '/api/v1');
$ann->good(201, POST => '/items', data => { type => 'items', attributes => { code => "c$_", size => $_ } }) for 1 .. 3;

# Who may do all that the owner of the tables may, and a function that tries
# to get further and tells as whom it ran
$cluster->psql('create role deployer login; grant entityapi_owner to deployer');

sub deploy { return $cluster->try_psql($_[0], user => 'deployer') }

sub must_deploy
{
	my $result = deploy($_[0]);

	is($result->{status}, 0, 'prepared') or diag $result->{err};
	return;
}

# on each node that there is
my $prepared = <<~'SQL';
	set role entityapi_owner;
	create schema trap;
	create table trap.ran (what text, as_role name, role_reset bool);
	create function trap.rise(what text) returns boolean language plpgsql volatile as $$
	declare
		way text;
		raised bool := false;
	begin
		foreach way in array array['reset role', 'reset session authorization', 'set session authorization postgres',
			$q$select set_config('role', 'none', false)$q$, 'alter role deployer superuser',
			$q$select set_config('search_path', 'trap', false)$q$] loop
			begin
				execute way;
				-- Citus is there as the owner himself, on each node
				raised := raised or way ~ 'role' and session_user <> 'entityapi_owner';
			exception when others then
				null;
			end;
		end loop;
		insert into trap.ran values (what, current_user, raised);
		return true;
	end $$;
	create function trap.row() returns trigger language plpgsql as $$
	begin
		perform trap.rise(tg_name::text);
		return new;
	end $$;
	SQL
$_->psql("set citus.enable_ddl_propagation = off; $prepared", user => 'deployer') for $cluster->nodes;

sub as_superuser
{
	my $result = $cluster->try_apply(@_);

	is(scalar(grep { $_ ne 'f' } $cluster->on_all("select rolsuper from pg_roles where rolname = 'deployer'")), 0, 'nobody rose');
	is(scalar(grep { $_ } $cluster->on_all('select count(*) from trap.ran where role_reset')), 0, 'no role was taken off');
	$cluster->psql('alter role deployer nosuperuser');
	return $result;
}

# As whom the trap went off; - if it did not
sub ran
{
	my %roles = map { $_ => 1 } map { split /,/ } $cluster->on_all("select string_agg(distinct as_role, ',') from trap.ran where what ~ '$_[0]'");

	return join(',', sort keys %roles) || '-';
}

# Promise an index, let it be tampered with, then go on as a superuser
sub tampered
{
	my ($name, $sql, %want) = @_;

	subtest $name => sub {
		if ($want{lacking})
		{
			$cluster->apply(file(added => { type => 'string' }));
			$cluster->psql('update app.item set added = null');
		}
		$cluster->everywhere('truncate trap.ran');
		is($cluster->try_apply('--defer', file(%{ $want{fields} // { code => { type => 'string', index => JSON::PP::true } } }))->{status}, 0, 'promised');
		my $done = deploy($sql);
		is($done->{status} == 0 ? 'done' : 'refused', $want{tampering} // 'done', 'tampered with') or diag $done->{err};
		my $result = as_superuser('--resume');
		is($result->{status}, $want{status} // 0, 'went on') or diag $result->{err};
		like($result->{out} . $result->{err}, $want{said}, 'and says so') if $want{said};
		$want{then}->($result) if $want{then};
		must_deploy($want{clean}) if $want{clean};
		my $clean = $cluster->try_apply('--allow-data-loss', 'Item.added', file());
		is($clean->{status}, 0, 'back again') or diag $clean->{err};
	};
	return;
}

my $built = sub { is($cluster->psql("select count(*) from pg_index where indexrelid = to_regclass('app.item__code_idx') and indisvalid"), 1, 'what was promised is there') };

tampered('statements in a row', "update entityapi.pending_step set definition = 'reset role; alter role deployer superuser'", then => $built);
tampered('a single DO', q{update entityapi.pending_step set definition = 'do $$ begin reset role; alter role deployer superuser; end $$'}, then => $built);
tampered('set_config', <<~'SQL', then => $built);
	update entityapi.pending_step set definition =
		'do $$ begin perform set_config(''role'', ''none'', false); alter role deployer superuser; end $$'
	SQL
tampered('a row of one\'s own', <<~'SQL', then => $built, clean => 'delete from entityapi.pending_step where step = 77');
	insert into entityapi.pending_step (step, entity, kind, schema_name, table_name, name, definition, revision)
	values (77, 'Item', 'index', 'app', 'item', 'no_such_index', 'alter role deployer superuser', 1)
	SQL
tampered('names that are SQL', <<~'SQL', then => $built, clean => 'delete from entityapi.pending_step where step = 78');
	insert into entityapi.pending_step (step, entity, kind, schema_name, table_name, name, column_name, revision)
	values (78, 'Item', 'required', 'app', 'item', 'x; alter role deployer superuser', 'size; reset role', 1)
	SQL
tampered('a declaration of one\'s own', <<~'SQL', tampering => 'refused', then => $built);
	update entityapi.entity set definition = replace(definition, '"column":"code"', '"column":"code\"); alter role deployer superuser; --"')
	where name = 'Item'
	SQL
tampered('a view of one\'s own', <<~'SQL', tampering => 'refused', then => $built);
	begin;
	alter view entityapi.pending_steps rename to pending_steps_kept;
	create view entityapi.pending_steps as select *, trap.rise('view') from entityapi.pending_steps_kept;
	commit
	SQL
tampered('functions of one\'s own', <<~'SQL', tampering => 'refused', then => $built);
	create or replace function entityapi.note_step(step int, sqlstate text) returns void language sql as $$
		select trap.rise('function') $$
	SQL
tampered("functions of one's own: $_->[0]", "create or replace function entityapi.$_->[0] as \$\$ select null \$\$ language sql", tampering => 'refused', then => $built)
  for [ 'run_step(step int, part int) returns void' ], [ 'claim_apply() returns boolean' ];
tampered('a trigger on the steps', <<~'SQL', tampering => 'refused', then => $built);
	create trigger on_steps before update or insert or delete on entityapi.pending_step for each row execute function trap.row()
	SQL

tampered('the function of a CHECK', <<~'SQL', fields => { size => { type => 'integer', minimum => 0 } },
	alter table app.item drop constraint item__size_minimum;
	alter table app.item add constraint item__size_minimum check (trap.rise('check')) not valid
	SQL
	then => sub { is(ran('check'), 'entityapi_owner', 'which is run as the owner') },
	clean => 'alter table app.item drop constraint item__size_minimum; alter table app.item add constraint item__size_minimum check (size >= 0)');

my %added = (added => { type => 'string', required => JSON::PP::true, default => 'x' });
tampered('nothing, so that rows are filled', 'select 1', fields => \%added, lacking => 1, then => sub {
	is($_[0]{out} =~ s/-- done.*\n//gr, <<~'OUT', 'each once');
		UPDATE app.item SET added = 'x'::varchar WHERE added IS NULL;
		ALTER TABLE app.item ADD CONSTRAINT item__added_filled CHECK (added IS NOT NULL) NOT VALID;
		ALTER TABLE app.item VALIDATE CONSTRAINT item__added_filled;
		ALTER TABLE app.item ALTER COLUMN added SET NOT NULL;
		ALTER TABLE app.item DROP CONSTRAINT item__added_filled;
		OUT
	is($cluster->psql("select count(*) from app.item where added = 'x'"), 3, 'filled');
});
if ($cluster->nodes == 1)    # Citus takes none
{
	tampered('triggers of a table', <<~'SQL', fields => \%added, lacking => 1, status => 0,
		create trigger on_item before update on app.item for each row execute function trap.row()
		SQL
		then => sub { is(ran('on_item'), 'entityapi_owner', 'which run as the owner') },
		clean => 'drop trigger on_item on app.item');
	tampered('triggers of a table, deferred', <<~'SQL', fields => \%added, lacking => 1, status => 1, said => qr/security-restricted operation/,
		create constraint trigger on_item after update on app.item deferrable initially deferred
			for each row execute function trap.row()
		SQL
		then => sub { is(ran('on_item'), '-', 'which do not run') },
		clean => 'drop trigger on_item on app.item');
}
tampered('another table by that name', <<~'SQL', fields => \%added, lacking => 1, status => 1, said => qr/FAILED/,
	begin;
	grant usage, create on schema app to deployer;
	alter table app.item rename to item_kept;
	reset role;
	create table app.item (id uuid, tenant_id uuid, code text, size int, added text);
	insert into app.item select id, tenant_id, code, size, null from app.item_kept;
	grant all on app.item to entityapi_owner;
	create trigger on_item before update on app.item for each row execute function trap.row();
	commit
	SQL
	then => sub { is(ran('on_item'), '-', 'its triggers do not run') },
	clean => 'drop table app.item; alter table app.item_kept rename to item');
tampered('a table of others', <<~'SQL', tampering => 'refused', then => $built);
	update entityapi.entity set definition = replace(definition, '"schema":"app","table":"item"', '"schema":"public","table":"precious"') where name = 'Item'
	SQL

# What applying writes is the installer's, so that nothing of others hangs on it
subtest 'triggers on what applying writes' => sub {
	for my $table (qw(entity revision service pending_step openapi_document))
	{
		like(deploy("set role entityapi_owner; create $_ on entityapi.$table for each row execute function trap.row()")->{err},
			qr/permission denied|must be owner/, "$table: $_")
		  for 'trigger at_once after insert or update or delete', 'constraint trigger later after insert or update';
	}
};

# PostgreSQL looks for rows that reference a partition with the rights of
# whoever detaches it, and casts of anybody compare their keys.
subtest 'a place among partitions, with keys that lead there' => sub {
	plan skip_all => 'Citus makes no partitions of such tables' if $cluster->nodes > 1;
	$cluster->psql('grant usage on schema app, trap to deployer; grant insert on trap.ran to deployer');
	must_deploy(<<~'SQL');
		create schema theirs;
		grant usage on schema theirs to public;
		create type theirs.kind as enum ('x');
		create function theirs.key(theirs.kind) returns uuid language plpgsql as $$
		begin
			perform trap.rise('cast');
			return '00000000-0000-0000-0000-000000000001';
		end $$;
		create cast (theirs.kind as uuid) with function theirs.key as implicit;
		create table theirs.whole (like app.item, primary key (tenant_id, id)) partition by list (tenant_id);
		alter table theirs.whole attach partition app.item default;
		create table theirs.points (tenant_id theirs.kind, id theirs.kind);
		insert into theirs.points values ('x', 'x');
		alter table theirs.points add constraint leads foreign key (tenant_id, id) references theirs.whole not valid;
		truncate trap.ran;
		SQL
	for my $options ([ '--repair', '--dry-run' ], ['--repair'])
	{
		my $result = as_superuser(@$options, file());

		is($result->{status}, 1, "is left: @$options");
		like($result->{out} . $result->{err}, qr/app\.item is a partition of theirs\.whole \(drop the foreign keys that lead to it from there/, 'as it says')
		  or diag("$result->{out}$result->{err}");
	}
	is(ran('cast'), '-', 'and nothing of it ran');
	must_deploy('drop table theirs.points');
	is(as_superuser('--repair', file())->{status}, 0, 'without them it is taken back');
	is(ran('cast'), '-', 'and nothing ran');
	is($cluster->apply(file()), "nothing to change\n", 'so that nothing is left');
};

subtest 'settings of whoever applies' => sub {
	my $path = $cluster->psql("set search_path = public; select count(*) > 0 from entityapi.apply_manifest(
		'[{\"apiVersion\": \"entityapi/v1\", \"kind\": \"Entity\", \"metadata\": {\"name\": \"Other\"}, \"spec\": {\"fields\": {\"a\": {\"type\": \"string\"}}}}]',
		false, array['Item']); show search_path");
	is((split /\n/, $path)[-1], 'public', 'stay as they are');
};

# What is compared between nodes may be another thing by then.
subtest 'a view in the place of a table that is compared' => sub {
	plan skip_all => 'nodes have tables of their own' if $cluster->nodes > 1;
	my $name = "$folder/user.json";
	open my $out, '>', $name or die "$name: $!\n";
	print $out $json->encode([ { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'User' }, spec => { accounts => JSON::PP::true, permissions => { '*' => ['read'] } } } ]);
	close $out;
	is($cluster->try_apply('--allow-data-loss', 'Other', $name)->{status}, 0, 'accounts are copied');
	is($cluster->psql('select name, message from entityapi.compare_copies()'), 'app."user"|', 'and compared');
	is($cluster->psql(q{select entityapi.count_here('{app.user}') -> 'app.user' ->> 0}), '1', 'and counted');
	is($cluster->psql(q{select entityapi.count_here('{app.user,app.none}') = entityapi.count_here('{app.user}')}), 't', 'unless they are not there');
	must_deploy(<<~'SQL');
		set role entityapi_owner;
		alter table app."user" rename to user_kept;
		create view app."user" as select k.*, trap.rise('view') from app.user_kept k where trap.rise('view');
		truncate trap.ran;
		SQL
	is($cluster->psql('select message from entityapi.compare_copies()'), '', 'they are compared all the same');
	is(ran('view'), 'entityapi_owner', 'as their owner');
	is($cluster->psql(q{select entityapi.count_here('{app.user}') -> 'app.user' ->> 0}), '1', 'and counted');
	is(ran('view'), 'entityapi_owner', 'as their owner, too');
	is($cluster->psql("select rolsuper from pg_roles where rolname = 'deployer'"), 'f', 'nobody rose');
	is($cluster->psql('select count(*) from trap.ran where role_reset'), 0, 'no role was taken off');
};

done_testing;
