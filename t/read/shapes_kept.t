# How an entity is shown to callers of the same rights is kept, with the
# statements for it: what a session has learnt of others shows nobody more or
# less than a session that knows nobody.

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(shuffle);
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $true = JSON::PP::true;

sub ref_to { my ($target, $relation, %more) = @_; return { type => 'ref', target => $target, relation => $relation, %more } }

sub entity
{
	my ($name, $readers, %spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => { permissions => { map { $_ => ['read'] } @$readers }, %spec } };
}

my @roles = qw(A B C D E);
my @documents = (
	{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'shapes' }, spec => { tenancy => 'POOL' } },
	{ apiVersion => 'entityapi/v1', kind => 'Versions', metadata => { name => 'versions' }, spec => { versions => { 1 => { status => 'ACTIVE' }, 2 => { status => 'ACTIVE' } } } },
	{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { map { $_ => { description => $_ } } @roles } } },
	{ apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => 'Open' }, spec => { description => 'open', expression => "'C' in #user.roles || #record.title != 'shut'" } },
	entity('Doc', [qw(A B)], optimisticLocking => $true, fields => {
			name   => { type => 'string' },
			secret => { type => 'string', readRoles => ['B'] },
			owner  => { type => 'string', readRoles => [qw(C E)] },
			late   => { type => 'string', since => 2 },
			folder => ref_to('Folder', 'ManyToOne'),
			notes  => ref_to('Note', 'OneToMany', mappedBy => 'doc'),
			tags   => ref_to('Tag', 'ManyToMany') }),
	entity('Folder', [qw(A C)], fields => { title => { type => 'string' }, docs => ref_to('Doc', 'OneToMany', mappedBy => 'folder') }),
	entity('Note', [qw(A C E)], policies => { Open => ['read'] }, fields => { title => { type => 'string' }, doc => ref_to('Doc', 'ManyToOne') }),
	entity('Hub', \@roles, fields => { map { ("to$_" => ref_to("Far$_", 'ManyToOne')) } 1 .. 10 }),
	map({ entity("Far$_", \@roles, fields => { map { ("f$_" => { type => 'string', maxLength => 100 }) } 1 .. 30 }) } 1 .. 10),
	entity('Tag', [qw(B D)], softDelete => $true, fields => { word => { type => 'string' }, docs => ref_to('Doc', 'ManyToMany', mappedBy => 'tags') }));
my $manifests = JSON::PP->new->canonical->encode(\@documents);
my $applied = $cluster->try_psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $tenant = $shim->tenant('one')->{id};
my $ann = $shim->user($tenant, 'ann', ['A']);
my ($doc, $folder, $tag) = split /\n/, $cluster->psql("select gen_random_uuid() from generate_series(1, 3)");

$cluster->psql(<<"SQL");
insert into app.folder (tenant_id, id, title, created_at, updated_at) values ('$tenant', '$folder', 'one', now(), now());
insert into app.doc (tenant_id, id, name, secret, owner, late, folder_id, version, created_at, updated_at)
	select '$tenant', case i when 1 then '$doc' else gen_random_uuid() end, 'doc' || i, 's', 'o', 'l', '$folder', 1, now(), now() from generate_series(1, 3) i;
insert into app.note (tenant_id, id, title, doc_id, created_at, updated_at)
	select '$tenant', gen_random_uuid(), t, '$doc', now(), now() from unnest('{open,shut}'::text[]) t;
insert into app.tag (tenant_id, id, word, deleted_at, created_at, updated_at) values ('$tenant', '$tag', 'red', null, now(), now()),
	('$tenant', gen_random_uuid(), 'gone', now(), now(), now());
insert into app.doc_tags (tenant_id, doc_id, tag_id) select '$tenant', '$doc', id from app.tag;
SQL

my @targets = map { my $v = $_; map { "/api/v$v$_" } "/docs/$doc", "/docs/$doc?fields[docs]=name,notes", "/docs/$doc?include=notes,tags",
	'/docs?sort=name&page[size]=2', "/docs?filter=name==doc1", "/folders/$folder", "/docs/$doc/tags", "/docs/$doc/relationships/notes",
	"/notes?sort=title", "/tags?sort=word" } 1, 2;

# more than are kept of an entity, and some in another order
my @sets = map { my $bits = $_; join ',', map { $bits >> $_ & 1 ? $roles[$_] : () } 0 .. $#roles } 1 .. 27;
push @sets, 'B,A', 'C,A', 'D,C,B,A';

sub become { return "update entityapi.account set roles = '{$_[0]}' where username = 'ann';\n" }

sub ask
{
	my ($target) = @_;
	return "select status || ' ' || coalesce(headers->>'etag', '') || ' ' || body from entityapi.handle('GET', '$target',
		'{\"authorization\": \"Bearer $ann->{accessToken}\", \"x-request-id\": \"r\"}', null, null);\n";
}

# Each set of roles in a session of its own, which has seen nobody else
my %expected;
for my $set (@sets)
{
	my @answers = split /\n/, $cluster->psql(become($set) . join '', map { ask($_) } @targets);

	is(@answers, @targets, "answers to $set");
	@{ $expected{$set} }{@targets} = @answers;
}
isnt($expected{A}{$targets[0]}, $expected{'A,B'}{$targets[0]}, 'roles show other fields');
isnt($expected{A}{$targets[0]}, $expected{A}{$targets[10]}, 'so do versions');
isnt($expected{A}{$targets[7]}, $expected{'A,C'}{$targets[7]}, 'and policies other links');
is($expected{'A,B'}{$_}, $expected{'B,A'}{$_}, "the order of roles is nothing to $_") for @targets[0, 3];

# All of them in one, twice, by turns
srand 7;
my @steps = map { my $set = $_; map { [ $set, $_ ] } shuffle @targets } shuffle @sets;
for my $round (1, 2)
{
	my @answers = split /\n/, $cluster->psql(join '', map { become($_->[0]) . ask($_->[1]) } @steps);
	my @wrong = grep { $answers[$_] ne $expected{ $steps[$_][0] }{ $steps[$_][1] } } 0 .. $#steps;

	is(@answers, @steps, "round $round");
	is(@wrong, 0, 'all as before');
	diag("@{$steps[$_]}\n$answers[$_]\n$expected{ $steps[$_][0] }{ $steps[$_][1] }") for @wrong[ 0 .. ($#wrong > 2 ? 2 : $#wrong) ];
	@steps = shuffle @steps;
}

# Declarations that are loaded on the way leave no more than themselves
my $size = "select 'size ' || sum(used_bytes) from pg_backend_memory_contexts where name = 'entityapi catalog';\n";
my ($on_the_way) = $cluster->psql(ask('/api/v1/hubs') . $size) =~ /size (\d+)/;
my ($before) = $cluster->psql(join('', map { ask("/api/v1/far${_}s?fields[far${_}s]=f1") } 1 .. 10) . ask('/api/v1/hubs') . $size) =~ /size (\d+)/;
cmp_ok($on_the_way, '<=', 1.2 * $before, "$on_the_way bytes of declarations, $before otherwise");

# Callers that come back find what was kept of them, and nothing is kept anew:
# some of these have to look for another place than their first
for my $first (0, 7, 14, 21)
{
	my @some = @sets[ $first .. $first + 6 ];
	my $round = join '', map { become($_) . ask('/api/v1/hubs') } @some;
	my ($early, $late) = map { $cluster->psql($round x $_ . $size) =~ /size (\d+)/ } 2, 6;

	is($late, $early, "bytes of declarations after six rounds, as after two: @some");
}

done_testing();
