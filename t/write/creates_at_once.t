# Creations beside others who write what they refer to, or the same key: each is
# answered by what is there in the end, and one that is answered with 201 has made
# a row with a record that refers to something.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::BothWays;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
EntityApi::Test::BothWays::apply($cluster, {});

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant('acme')->{id};
my $both = EntityApi::Test::BothWays->new($cluster, $shim->user($tenant, 'ed', ['Editor']));
my $no = '404 RELATED_NOT_FOUND';

sub post
{
	my ($attributes, $folder) = @_;

	return $both->request(POST => '/docs?fields[docs]=n', { data => { type => 'docs', attributes => { name => 'new', %$attributes },
				defined $folder ? (relationships => { folder => { data => { type => 'folders', id => $folder } } }) : () } });
}

# --- one after the other ----------------------------------------------------

# A foreign key that only PostgreSQL knows of, so that nobody looks before it does
my $there = post({ code => 'there' });
my $delete = 'delete from app.other';
my $same_key = "insert into app.doc (tenant_id, id, name, code, version, created_at, updated_at) values ('$tenant', gen_random_uuid(), 'other', 'there', 0, now(), now())";

$both->compare_crossed({
		restore => "alter table app.doc drop constraint if exists mine; drop table if exists app.other; delete from app.doc where name in ('new', 'other');
			create table app.other (tenant_id uuid, code varchar, primary key (tenant_id, code)); alter table app.other owner to entityapi_owner;
			insert into app.other values ('$tenant', 'there'); alter table app.doc add constraint mine foreign key (tenant_id, code) references app.other not valid;",
		told => "select code from app.doc where name = 'new'; select count(*) from app.other; alter table app.doc drop constraint mine; drop table app.other;" },
	[ 'what it refers to goes', 'read committed', $delete, $there, 'commit', "waits $no 0" ],
	[ 'what it refers to does not go', 'read committed', $delete, $there, 'rollback', 'waits 201 there 1' ],
	[ 'what it refers to is another', 'read committed', q{update app.other set code = 'x'}, $there, 'commit', "waits $no 1" ],
	[ 'what it refers to is locked', 'read committed', 'do $p$ begin perform from app.other for update; end $p$', $there, 'commit', 'waits 201 there 1' ],
	[ 'what it refers to comes', 'read committed', "insert into app.other values ('$tenant', 'x')", post({ code => 'x' }), 'commit', "waits for nobody $no 2" ],
	[ 'the same key', 'read committed', $same_key, $there, 'commit', 'waits 409 UNIQUE_VIOLATION 1' ],
	[ 'the same key in vain', 'read committed', $same_key, $there, 'rollback', 'waits 201 there 1' ],
	[ 'what an old snapshot refers to goes', 'repeatable read', $delete, $there, 'commit', qr/^waits .*could not serialize access due to concurrent/ ],
);

# --- all at once ------------------------------------------------------------

# Meanwhile folders come and go, and tables are kept in order.
my @folders = map { sprintf '01900000-0000-7000-8000-%012d', $_ } 1 .. 12;
my @maintenance = ('create index concurrently mine on app.doc (n);', 'drop index concurrently app.mine;', 'vacuum app.folder;', 'reindex index concurrently app.folder__pkey;',
	'create index mine on app.doc (lower(name)) where n > 2;', 'vacuum (freeze) app.doc;', 'drop index app.mine;', 'reindex index concurrently app.doc__pkey;',
	'vacuum full app.folder;', 'cluster app.doc using doc__pkey;', 'alter table app.doc add constraint mine check (n < 1000000);', 'alter table app.doc drop constraint mine;');
my $client = sub {
	srand(time ^ $$);
	return 'set client_min_messages = error; select from entityapi.version();' . join '', map { post({ name => 'busy', n => $_ }, $folders[ rand @folders ]) } 1 .. 60;
};
my $folders = sub {
	srand(time ^ $$);
	return "\\set ON_ERROR_STOP off\n" . join '', map { my $id = $folders[ rand @folders ];
		rand() < 0.5 ? "delete from app.folder f where id = '$id' and not exists (select from app.doc d where d.tenant_id = f.tenant_id and d.folder_id = f.id);\n"
		: rand() < 0.5 ? "update app.folder set title = title || 'x' where id = '$id';\n"
		: "insert into app.folder (tenant_id, id, title, created_at, updated_at) values ('$tenant', '$id', 'busy', now(), now()) on conflict do nothing;\n" } 1 .. 40;
};
my $count = "select (select count(*) from app.doc where name = 'busy'), (select count(*) from entityapi.audit where action = 'ENTITY_CREATE' and outcome = 'SUCCESS')";
my @before = split /\|/, $cluster->psql($count);
my %said = $both->at_once($ENV{ENTITYAPI_INSERT_SECONDS} || 4, client1 => $client, client2 => $client, folders1 => $folders, folders2 => $folders,
	maintenance => sub { return "set lock_timeout = '1s';\n\\set ON_ERROR_STOP off\n" . join ' select pg_sleep(0.02);', @maintenance });
my %answers;
$answers{$_}++ for split /\n/, $said{client1} . $said{client2};
my $done = $answers{201} // 0;
my @after = split /\|/, $cluster->psql($count);

cmp_ok($done, '>', 50, 'POSTs at once');
cmp_ok($answers{$no} // 0, '>', 0, '... some to a folder that is not there');
is(join("\n", grep { !/^(?:201|\Q$no\E|.*the declarations or their tables changed during the request|)$/ } sort keys %answers), '', '... which nothing else disturbs but a table that is another one by then');
is("@{[map { $after[$_] - $before[$_] } 0, 1]}", "$done $done", '... each has made a row, and has a record');
is($cluster->psql('select count(*) from app.doc d where folder_id is not null and not exists (select from app.folder f where f.tenant_id = d.tenant_id and f.id = d.folder_id)'), '0', '... which refers to one that is there');
is($cluster->psql("set client_min_messages = error; create extension amcheck; drop index if exists app.mine;
	select count(bt_index_check(i.indexrelid, true)) = count(*) from pg_index i where i.indrelid = 'app.doc'::regclass"), 't', 'every row is in every index');

is($shim->stop, 0, 'ends with 0');
done_testing;
