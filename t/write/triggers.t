# Triggers of a deployer that skip rows, write others in their place or undo
# what was done: no write is answered, or recorded, that was not done.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/t/data/triggers");
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant_here('acme')->{id};
my $other = $shim->tenant_here('globex')->{id};
my $ed = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');

# What a trigger does is its argument; the rows that it does it to have a name
# that says so, or are all.
$cluster->everywhere(<<'SQL');
create table public.seen (what text);
grant insert on public.seen to entityapi_owner;
create function public.act() returns trigger language plpgsql as $$
declare
	r record;
begin
	if tg_op = 'DELETE' then r := old; else r := new; end if;
	if tg_nargs > 1 and to_jsonb(r)->>'name' is distinct from tg_argv[1] then return r; end if;
	if tg_argv[0] = 'skip' then return null; end if;
	if tg_argv[0] = 'id' then r.id := gen_random_uuid(); end if;
	if tg_argv[0] = 'note' then r.note := 'by a trigger'; end if;
	if tg_argv[0] = 'stay' then r.deleted_at := old.deleted_at; end if;
	if tg_argv[0] = 'abroad' then r.tenant_id := (select id from public.abroad); end if;
	if tg_argv[0] = 'again' then execute format('update %s set note = $1 where id = $2 and note is distinct from $1', tg_relid::regclass) using 'afterwards', r.id; end if;
	if tg_argv[0] = 'undo' then execute format('delete from %s where id = $1', tg_relid::regclass) using r.id; end if;
	if tg_argv[0] = 'elsewhere' then insert into public.seen values (tg_op); end if;
	return r;
end $$;
SQL
$cluster->everywhere("create table public.abroad as select '$other'::uuid as id; grant select on public.abroad to entityapi_owner");

sub backends { return $cluster->psql("select string_agg(pid::text, ' ' order by pid) from pg_stat_activity where usename = 'entityapi_shim'") }

# Runs the code with a trigger: hang('item', 'before insert', 'skip', ...)
sub hang
{
	my ($table, $when, $what, $code, $name) = @_;
	my $arguments = join ', ', map { "'$_'" } grep { defined } $what, $name;

	$cluster->on_rows("app.$table", "create trigger act $when on %s for each row execute function public.act($arguments)");
	my $result = eval { $code->(); 1 };
	my $why = $@;
	$cluster->on_rows("app.$table", 'drop trigger act on %s');
	die $why unless $result;
	return;
}

sub document { my ($type, $attributes, $relationships) = @_; return { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () } }
sub made { return $ed->good(201, POST => "/$_[0]", data => document(@_))->{json}{data} }
sub to { return { data => ref $_[0] eq 'ARRAY' ? [ map { { type => $_->{type}, id => $_->{id} } } @{ $_[0] } ] : { type => $_[0]{type}, id => $_[0]{id} } } }
sub at { my ($resource, @more) = @_; return join '/', '', $resource->{type}, $resource->{id}, @more }
sub patch { my ($resource, $attributes, $relationships) = @_; return (PATCH => at($resource), headers => { 'If-Match' => '*' }, data => { %{ document($resource->{type}, $attributes, $relationships) }, id => $resource->{id} }) }
sub count { return $cluster->psql("select count(*) from app.$_[0] where tenant_id = '$tenant'" . ($_[1] ? " and $_[1]" : '')) }
sub records { return $cluster->psql("select coalesce(string_agg(outcome || ' ' || action, ',' order by id), '') from entityapi.audit where tenant_id = '$tenant' and (action like 'ENTITY%' or action like 'RELATIONSHIP%') and id > '$_[0]'") }
sub mark { return $cluster->psql('select coalesce(max(id::text), repeat(chr(48), 32)) from entityapi.audit') }

# The same of operations, at one of them
sub not_written_at
{
	my ($name, $n, @operations) = @_;
	my $mark = mark();
	my $answer = $ed->call(POST => '/operations', headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
		body => EntityApi::Test::json()->encode({ 'atomic:operations' => \@operations }));

	is_deeply([ map { "$_->{status} $_->{code} $_->{source}{pointer}" } @{ $answer->{json}{errors} } ], ["409 NOT_WRITTEN /atomic:operations/$n"], $name);
	unlike(records($mark), qr/SUCCESS/, "$name: and no record says so");
	return;
}

# Refused as not written, with nothing recorded as done
sub not_written
{
	my ($name, $source, @request) = @_;
	my $mark = mark();
	my $answer = $ed->refused($name, 409, 'NOT_WRITTEN', $source, @request);

	is($answer->{json}{errors}[0]{source}, undef, "$name: of no place") unless defined $source;
	unlike(records($mark), qr/SUCCESS/, "$name: and no record says so");
	return;
}

my $backends = backends();
my $data = [ pointer => '/data' ];
my $item = made(items => { name => 'first', note => 'n' });
my @tags = map { made(tags => { name => "t$_" }) } 1 .. 3;
my $part = made(parts => { name => 'p' }, { item => to($item) });

subtest 'create' => sub {
	hang(item => 'before insert', skip => sub {
		not_written('skipped', $data, POST => '/items', data => document(items => { name => 'skip' }));
		is(count(item => "name = 'skip'"), 0, 'nothing is there');
	});
	is(backends(), $backends, 'the backend goes on');
	hang(item => 'after insert', undo => sub { not_written('taken away again', $data, POST => '/items', data => document(items => { name => 'x' })) });
	hang(item => 'before insert', abroad => sub { not_written('given to another tenant', $data, POST => '/items', data => document(items => { name => 'x' })) });
	hang(item => 'before insert', note => sub {
		my $mark = mark();
		my $made = made(items => { name => 'changed', note => 'mine' });

		is($made->{attributes}{note}, 'by a trigger', 'a changed value is in the answer');
		like($cluster->psql("select changes from entityapi.audit where target_id = '$made->{id}' and id > '$mark'"), qr/"note":\[null,"by a trigger"\]/, 'and in the record');
	});
	hang(item => 'after insert', again => sub { is(made(items => { name => 'twice', note => 'mine' })->{attributes}{note}, 'afterwards', 'what is changed after it is in the answer') });
};

subtest 'another id' => sub {
	hang(item => 'before insert', id => sub {
		my $answer = $ed->good(201, POST => '/items', data => document(items => { name => 'new id' }, { tags => to([@tags]) }));
		my $id = $answer->{json}{data}{id};

		is(count(item => "id = '$id' and name = 'new id'"), 1, 'is that of the row');
		like($answer->{headers}{location}, qr{/items/$id$}, 'the address is that');
		like($answer->{json}{data}{links}{self}, qr{/items/$id$}, 'so is the link');
		is(count(item_tags => "item_id = '$id'"), 3, 'its links are its own');
		is($cluster->psql("select count(*) from entityapi.audit where action = 'ENTITY_CREATE' and target_id = '$id'"), 1, 'the record is of it');

		my $results = $ed->good(200, POST => '/operations', headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
			body => EntityApi::Test::json()->encode({ 'atomic:operations' => [
				{ op => 'add', data => { type => 'items', lid => 'a', attributes => { name => 'a' } } },
				{ op => 'add', data => { type => 'items', lid => 'b', attributes => { name => 'b' }, relationships => { buddy => { data => { type => 'items', lid => 'a' } } } } },
				{ op => 'add', data => { type => 'parts', attributes => { name => 'c' }, relationships => { item => { data => { type => 'items', lid => 'b' } } } } },
				{ op => 'update', ref => { type => 'items', lid => 'a', relationship => 'tags' }, data => [ to($tags[0])->{data} ] },
				{ op => 'update', data => { type => 'items', lid => 'b', attributes => { note => 'found' } } } ] }))->{json}{'atomic:results'};
		my ($first, $second) = map { $results->[$_]{data}{id} } 0, 1;

		is(count(item => "id = '$first' and name = 'a'"), 1, 'in operations, too');
		is(count(item => "id = '$second' and buddy_id = '$first' and note = 'found'"), 1, 'a local id means the new one, within a batch');
		is(count(part => "item_id = '$second' and name = 'c'"), 1, 'behind it');
		is(count(item_tags => "item_id = '$first'"), 1, 'as a target');
	});
	my $free = made(items => { name => 'free' });
	hang(item => 'before update', id => sub { not_written('of a row that is changed', $data, patch($free, { name => 'moved' })) });
};

subtest 'change' => sub {
	hang(item => 'before update', skip => sub {
		not_written('skipped, without a version', $data, patch($item, { name => 'x' }));
		not_written('nothing but links', $data, patch($item, {}, { tags => to([ $tags[0] ]) }));
		is(count(item_tags => "item_id = '$item->{id}'"), 0, 'the links are undone');
	});
	my $doc = made(docs => { name => 'd' });
	hang(doc => 'before update', skip => sub { not_written('skipped, with a version', $data, PATCH => at($doc), headers => { 'If-Match' => '"0"' }, data => { type => 'docs', id => $doc->{id}, attributes => { name => 'x' } }) });
	hang(doc => 'before update', note => sub {
		$ed->refused('another version', 412, 'PRECONDITION_FAILED', undef, PATCH => at($doc), headers => { 'If-Match' => '"7"' }, data => { type => 'docs', id => $doc->{id}, attributes => { name => 'x' } });
		my $mark = mark();
		my $now = $ed->good(200, patch($doc, { name => 'new' }))->{json}{data};

		is($now->{attributes}{note}, 'by a trigger', 'what a trigger sets beside is answered');
		my $changes = $cluster->psql("select changes from entityapi.audit where target_id = '$doc->{id}' and id > '$mark'");
		like($changes, qr/"note":\[null,"by a trigger"\]/, 'and recorded');
		like($changes, qr/"name":\["d","new"\]/, 'with the rest');
	});
	my $free = made(items => { name => 'free' });
	hang(item => 'after update', undo => sub { not_written('taken away', $data, patch($free, { name => 'x' })) });
};

subtest 'delete and restore' => sub {
	hang(item => 'before delete', skip => sub {
		not_written('skipped', undef, DELETE => at($item));
		is(count(item => "id = '$item->{id}'"), 1, 'it stays');
		is(count(part => "id = '$part->{id}'"), 1, 'with what would have gone along');
	});
	hang(part => 'before delete', skip => sub { not_written('what goes along is skipped', undef, DELETE => at($item)) });
	my $buddy = made(items => { name => 'buddy' }, { buddy => to($item) });
	hang(item => 'before update', skip => sub { not_written('a reference is kept', undef, DELETE => at($item)) });
	hang(item => 'after update', undo => sub { not_written('what referred to it is gone', undef, DELETE => at($item)) });
	my $doc = made(docs => { name => 'd' });
	my $leaf = made(leaves => { name => 'l' }, { doc => to($doc) });
	my @any = (headers => { 'If-Match' => '*' });

	for my $table (qw(doc leaf))
	{
		hang($table => 'before update', skip => sub { not_written("soft: $table skipped", undef, DELETE => at($doc), @any) });
		hang($table => 'before update', stay => sub { not_written("soft: $table stays", undef, DELETE => at($doc), @any) });
	}
	$ed->good(204, DELETE => at($doc), @any);
	for my $table (qw(doc leaf))
	{
		hang($table => 'before update', skip => sub { not_written("restore: $table skipped", undef, POST => at($doc, 'restore')) });
		hang($table => 'before update', stay => sub { not_written("restore: $table stays", undef, POST => at($doc, 'restore')) });
	}
	$ed->good(200, POST => at($doc, 'restore'));
	is(count(leaf => "id = '$leaf->{id}' and deleted_at is null"), 1, 'all is back when it is let');
};

subtest 'relationships' => sub {
	my $path = at($item, 'relationships', 'tags');
	my $parts = at($item, 'relationships', 'extras');

	hang(item_tags => 'before insert', skip => sub {
		not_written('links skipped', $data, POST => $path, data => to([@tags])->{data});
		not_written('from the other side', $data, POST => at($tags[0], 'relationships', 'items'), data => to([$item])->{data});
		not_written('with a new resource', $data, POST => '/items', data => document(items => { name => 'x' }, { tags => to([@tags]) }));
	});
	$ed->good(204, POST => $path, data => to([ @tags[0, 1] ])->{data});
	hang(item_tags => 'before delete', skip => sub {
		not_written('links that stay', $data, DELETE => $path, data => to([ $tags[0] ])->{data});
		not_written('or are replaced', $data, PATCH => $path, data => to([ $tags[2] ])->{data});
		not_written('or should go with a side', undef, DELETE => at($tags[0]));
	});
	is(count(item_tags => "item_id = '$item->{id}'"), 2, 'all as before');
	hang(part => 'before update', skip => sub {
		not_written('columns of the far side', $data, POST => $parts, data => to([$part])->{data});
		not_written('of a new resource', $data, POST => '/items', data => document(items => { name => 'x' }, { extras => to([$part]) }));
	});
	$ed->good(204, POST => $parts, data => to([$part])->{data});
	hang(part => 'before update', skip => sub { not_written('and out of it', $data, DELETE => $parts, data => to([$part])->{data}) });
	hang(part => 'after update', undo => sub { not_written('what was taken out is gone', $data, DELETE => $parts, data => to([$part])->{data}) });
	hang(item => 'before update', skip => sub { not_written('the resource itself is skipped', $data, POST => $path, data => to([ $tags[2] ])->{data}) });
	hang(item_tags => 'before insert', elsewhere => sub { $ed->good(204, POST => $path, data => to([@tags])->{data}) });
	is(count(item_tags => "item_id = '$item->{id}'"), 3, 'a trigger that leaves them alone');
};

subtest 'operations' => sub {
	my @atomic = (headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' });
	my $adds = sub { return map { { op => 'add', data => document(items => { name => $_ }) } } @_ };

	hang(item => 'before insert', skip => sub {
		not_written_at('the second of three', 1, $adds->(qw(b1 skip b3)));
		is(count(item => "name in ('b1', 'b3')"), 0, 'nothing of the others');
		not_written_at('the only one', 0, $adds->('skip'));
		is(@{ $ed->good(200, POST => '/operations', @atomic, body => EntityApi::Test::json()->encode({ 'atomic:operations' => [ $adds->(qw(b1 b2 b3)) ] }))->{json}{'atomic:results'} }, 3, 'three results for three');
	}, 'skip');
	hang(item => 'before delete', skip => sub {
		not_written_at('a removal', 1, $adds->('b9'), { op => 'remove', ref => { type => 'items', id => $item->{id} } });
		is(count(item => "name = 'b9'"), 0, 'and what came before it');
	});
};

subtest 'accounts' => sub {
	my $users = "/manage/tenants/$tenant/users";
	my @as = (token => $shim->superadmin);
	my %new = (json => { username => 'new', roles => [] });

	hang(user => 'before insert', skip => sub {
		my $answer = $shim->http(POST => $users, { @as, %new });
		is("$answer->{status} $answer->{json}{errors}[0]{code}", '409 NOT_WRITTEN', 'an account whose copy is skipped');
		is($cluster->psql("select count(*) from entityapi.account where username = 'new'"), 0, 'is not made');
	});
	my $id = $shim->must(201, POST => $users, { @as, %new })->{id};
	hang(user => 'before delete', skip => sub {
		is($shim->http(DELETE => "$users/$id", { @as })->{json}{errors}[0]{code}, 'NOT_WRITTEN', 'one whose copy stays');
		is($cluster->psql("select count(*) from entityapi.account where username = 'new'"), 1, 'stays as well');
	});
	$shim->must(204, DELETE => "$users/$id", { @as });
};

subtest 'what is taken away by the sweep' => sub {
	my ($kept, $gone) = map { my $doc = made(docs => { name => $_ }); made(leaves => { name => $_ }, { doc => to($doc) }); $doc } qw(kept gone);
	my $sweep = sub { for (1 .. 20) { $cluster->psql('select entityapi.sweep()') or last } };

	$ed->good(204, DELETE => at($_), headers => { 'If-Match' => '*' }) for $kept, $gone;
	$cluster->psql("update app.$_ set deleted_at = deleted_at - interval '20 days' where deleted_at is not null") for qw(doc leaf);
	hang(leaf => 'before delete', skip => sub {
		$sweep->();
		is(count(doc => "id = '$kept->{id}'"), 1, 'a row that a trigger keeps');
		is(count(leaf => "name = 'kept'"), 1, 'with its part');
		is(count(doc => "id = '$gone->{id}'"), 0, 'keeps no other back');
		is($cluster->psql("select string_agg(target_id, ' ') from entityapi.audit where action = 'ENTITY_PURGE'"), $gone->{id}, 'and is not recorded as gone');
		like(EntityApi::Test::slurp($cluster->log), qr/entityapi cannot purge (?:docs|leaves) \S+: not all is written that had to be, in the table/, 'the log tells');
	}, 'kept');
	$sweep->();
	is(count(doc => "id = '$kept->{id}'"), 0, 'it goes when it is let go');

	my $end = $shim->tenant_here('end')->{id};
	$cluster->psql("insert into app.item (tenant_id, id, created_at, updated_at, name) select '$end', gen_random_uuid(), now(), now(), 'end' from generate_series(1, 3)");
	hang(item => 'before delete', skip => sub {
		$shim->must(204, DELETE => "/manage/tenants/$end", { token => $shim->superadmin });
		$sweep->();
		is($cluster->psql("select count(*) from app.item where tenant_id = '$end'"), 3, 'rows of a tenant that stay');
		is($cluster->psql("select count(*) from entityapi.tenant where id = '$end'"), 1, 'so does the tenant');
		like(EntityApi::Test::slurp($cluster->log), qr/entityapi cannot erase tenant $end: not all is written/, 'as the log tells');
	});
	ok(EntityApi::Test::wait_until(60, sub { $sweep->(); !$cluster->psql("select count(*) from entityapi.tenant where id = '$end'") }), 'until it is let go');
};

is(backends(), $backends, 'no backend has ended');
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal/, 'nor the cluster');

done_testing();
