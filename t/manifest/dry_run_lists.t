# A dry run, and the application after it, tell every change of rights: what
# nobody sees in the tables.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $files = 0;
my %documents = (
	Service => { s => { tenantAdminBypass => JSON::PP::true } },
	Versions => { v => { versions => { 1 => { status => 'ACTIVE' }, 2 => { status => 'ACTIVE' } } } },
	Roles => { r => { roles => { Editor => undef, Clerk => undef } } },
	SecurityAttributes => { a => { attributes => { region => { type => 'string' } } } },
	Policy => { Open => { expression => q{#record.name == 'open'} } },
	Hook => { Look => { entity => 'Tag', phase => 'after', on => ['create'], function => 'ops.one' } },
	OneOf => { Thing => { members => [qw(Tag Note)] } },
	Entity => { Tag => { fields => { name => { type => 'string' }, rest => { type => 'string', readRoles => ['Clerk'] }, notes => { type => 'ref', target => 'Note', relation => 'OneToMany', mappedBy => 'tag' } },
			permissions => { Clerk => ['read'], Editor => [qw(read create)] }, policies => { Open => ['update'] } },
		Note => { fields => { tag => { type => 'ref', target => 'Tag' }, other => { type => 'ref', target => 'Tag' }, about => { type => 'oneof', target => 'Thing' } } } });
my $one_node = $cluster->nodes == 1;
$documents{Entity}{Old} = { table => 'ops.old', plural => 'olds', fields => { title => { type => 'text' } } } if $one_node;
$cluster->psql('create schema ops; create table ops.old (tenant_id uuid not null, id uuid not null, title text, note text, more text, primary key (tenant_id, id));
	alter table ops.old owner to entityapi_owner; grant usage on schema ops to entityapi_reader');
$cluster->psql($_) for map { "create function ops.$_(jsonb) returns jsonb language sql security definer as 'select null::jsonb'" } qw(one two);
$cluster->psql('grant usage on schema ops to entityapi_owner');

sub file
{
	my ($all) = @_;
	my $name = "$folder/" . ++$files . '.json';
	my @list;

	for my $kind (sort keys %$all)
	{
		push @list, { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $_ }, spec => $all->{$kind}{$_} } for sort keys %{ $all->{$kind} };
	}
	open my $out, '>', $name or die "$name: $!\n";
	print $out $json->encode(\@list);
	close $out;
	return $name;
}

my $first = $cluster->apply(file(\%documents));
for my $line ('role Clerk: + assignable by tenantAdmin', 'permission Tag.create: + Editor', 'permission Tag.read: + Clerk, + Editor',
	q{policy of Tag Open: + ["update"]: #record.name == 'open'}, 'hook of Tag Look: + after ["create"]: ops.one', 'field Tag.rest: readRoles everybody -> ["Clerk"]')
{
	like($first, qr/^-- \Q$line\E$/m, "at first: $line");
}
is($cluster->apply(file(\%documents)), "nothing to change\n", 'applied twice');

# One change each, and the one line it takes
for my $case (
	[ 'a permission given', 'permission Tag.update: + Editor', sub { push @{ $_[0]{Entity}{Tag}{permissions}{Editor} }, 'update' } ],
	[ 'a permission that changes hands', 'permission Tag.create: + Clerk, - Editor', sub { @{ $_[0]{Entity}{Tag}{permissions} }{qw(Clerk Editor)} = ([qw(read create)], ['read']) } ],
	[ 'a permission for all', 'permission Tag.delete: + *', sub { $_[0]{Entity}{Tag}{permissions}{'*'} = ['delete'] } ],
	[ 'a policy', q{policy of Tag Open: expression #record.name == 'open' -> #record.name != 'shut'}, sub { $_[0]{Policy}{Open}{expression} = q{#record.name != 'shut'} } ],
	[ 'what a policy is for', 'policy of Tag Open: operations ["update"] -> ["delete"]', sub { $_[0]{Entity}{Tag}{policies}{Open} = ['delete'] } ],
	[ 'a policy that goes', q{policy of Tag Open: - ["update"]: #record.name == 'open'}, sub { delete $_[0]{Entity}{Tag}{policies}; delete $_[0]{Policy} } ],
	[ 'another function of a hook', 'hook of Tag Look: function one -> two', sub { $_[0]{Hook}{Look}{function} = 'ops.two' } ],
	[ 'when a hook runs', 'hook of Tag Look: phase after -> validate', sub { $_[0]{Hook}{Look}{phase} = 'validate' } ],
	[ 'a hook that goes', 'hook of Tag Look: - after ["create"]: ops.one', sub { delete $_[0]{Hook} } ],
	[ 'a role', 'role New: + assignable by superAdmin', sub { $_[0]{Roles}{r}{roles}{New} = { assignableBy => 'superAdmin' } } ],
	[ 'who assigns a role', 'role Editor: assignable by superAdmin', sub { $_[0]{Roles}{r}{roles}{Editor} = { assignableBy => 'superAdmin' } } ],
	[ 'a field for others', 'field Tag.rest: readRoles: + Editor, - Clerk', sub { $_[0]{Entity}{Tag}{fields}{rest}{readRoles} = ['Editor'] } ],
	[ 'a field for all', 'field Tag.rest: readRoles ["Clerk"] -> everybody', sub { delete $_[0]{Entity}{Tag}{fields}{rest}{readRoles} } ],
	[ 'who writes a field', 'field Tag.name: writeRoles everybody -> ["Clerk"]', sub { $_[0]{Entity}{Tag}{fields}{name}{writeRoles} = ['Clerk'] } ],
	[ 'a field that is only read', 'field Tag.name: readOnly none -> true', sub { $_[0]{Entity}{Tag}{fields}{name}{readOnly} = JSON::PP::true } ],
	[ 'a field of a version', 'field Tag.name: since none -> 2', sub { $_[0]{Entity}{Tag}{fields}{name}{since} = 2 } ],
	[ 'an entity of a version', 'entity Tag: removedIn none -> 2', sub { $_[0]{Entity}{Tag}{removedIn} = 2 } ],
	[ 'a version', 'version 1: status ACTIVE -> SUNSET', sub { $_[0]{Versions}{v}{versions}{1} = { status => 'SUNSET' } } ],
	[ 'a mirrored relationship that goes', 'field Tag.notes: -', sub { delete $_[0]{Entity}{Tag}{fields}{notes} } ],
	[ 'one that comes', 'field Tag.others: +', sub { $_[0]{Entity}{Tag}{fields}{others} = { type => 'ref', target => 'Note', relation => 'OneToMany', mappedBy => 'other' } } ],
	[ 'one that is renamed', 'field Tag.remarks: renamed from notes', sub { $_[0]{Entity}{Tag}{fields}{remarks} = { %{ delete $_[0]{Entity}{Tag}{fields}{notes} }, renamedFrom => 'notes' } } ],
	[ 'one that mirrors another', 'field Tag.notes: mappedBy tag -> other', sub { $_[0]{Entity}{Tag}{fields}{notes}{mappedBy} = 'other' } ],
	[ 'the description of a role', 'role Clerk: description none -> files', sub { $_[0]{Roles}{r}{roles}{Clerk} = { description => 'files' } } ],
	[ 'of a policy', 'policy Open: description none -> what is open', sub { $_[0]{Policy}{Open}{description} = 'what is open' } ],
	[ 'of a hook', 'hook Look: description none -> looks', sub { $_[0]{Hook}{Look}{description} = 'looks' } ],
	[ 'of a one-of', 'one-of Thing: description none -> this or that', sub { $_[0]{OneOf}{Thing}{description} = 'this or that' } ],
	[ 'of an entity', 'entity Tag: description none -> a word', sub { $_[0]{Entity}{Tag}{description} = 'a word' } ],
	[ 'of a field', 'field Tag.name: description none -> the word', sub { $_[0]{Entity}{Tag}{fields}{name}{description} = 'the word' } ],
	$one_node ? (
		[ 'a field of an existing table', 'field Old.note: +', sub { $_[0]{Entity}{Old}{fields}{note} = { type => 'text' } } ],
		[ 'one that goes', 'field Old.title: -', sub { delete $_[0]{Entity}{Old}{fields}{title} } ],
		[ 'one in another column', 'field Old.title: column title -> note', sub { $_[0]{Entity}{Old}{columns} = { title => 'note' } } ]) : (),
	[ 'default roles', 'service: defaultRoles: + Clerk', sub { $_[0]{Service}{s}{defaultRoles} = ['Clerk'] } ],
	[ 'what is audited', 'service: audit {"entities":true,"identity":true} -> {"entities":false,"identity":true}', sub { $_[0]{Service}{s}{audit} = { entities => JSON::PP::false } } ],
	[ 'what a TenantAdmin passes', 'service: tenantAdminBypass true -> false', sub { $_[0]{Service}{s}{tenantAdminBypass} = JSON::PP::false } ],
	[ 'a security attribute', 'security attribute region: allowedValues none -> ["north"]', sub { $_[0]{SecurityAttributes}{a}{attributes}{region}{allowedValues} = ['north'] } ],
  )
{
	my ($name, $line, $change) = @$case;
	my $changed = $json->decode($json->encode(\%documents));

	$change->($changed);
	my $dry = $cluster->try_apply('--dry-run', file($changed));
	is($dry->{status}, 0, "$name: planned") or diag $dry->{err};
	my @told = grep { /^-- / && !/^-- then/ } split /\n/, $dry->{out};
	is("@told", "-- $line", "$name: told");
	unlike($dry->{out}, qr/nothing to change/, "$name: not nothing");
	my $done = $cluster->apply(file($changed));
	is(join("\n", grep { /^-- / && !/^-- done/ } split /\n/, $done), join("\n", @told), "$name: and again when it is done");
	$cluster->apply(file(\%documents));
}

is($cluster->psql(qq{select string_agg(effect || ': ' || statement, ',') from entityapi.apply_manifest((select jsonb_agg(d - 'source') from jsonb_array_elements(entityapi.export_manifest()::jsonb) d
	where d->>'kind' <> 'Hook'), true)}), 'declaration: -- hook of Tag Look: - after ["create"]: ops.one', 'by SQL, as a comment');
is($cluster->psql("select count(*) from entityapi.revision, unnest(statements) s where s ~ '^--'"), 0, 'no statement of a revision');

done_testing;
