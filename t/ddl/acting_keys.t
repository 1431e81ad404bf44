# Foreign keys that others gave an action: behind a deletion by the service they
# would delete or change rows without rights and records.  They are faults at
# apply, differences afterwards, and no row that sets one in motion is deleted,
# unless `unseen` names the table.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;

plan skip_all => 'tables of others are on one node' if $cluster->nodes > 1;

my $manifests = EntityApi::Test::folder() . '/shop.json';
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my @all = qw(create read update delete history);
my %spec;

sub document
{
	my ($kind, $name, $spec) = @_;

	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

sub try_apply
{
	my (@options) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ document(Service => s => { tenancy => 'SINGLE' }),
		document(Roles => r => { roles => { Editor => { assignableBy => 'superAdmin' } } }),
		map { document(Entity => $_ => { tenantScoped => $false, %{ $spec{$_} } }) } sort keys %spec ]);
	close $out or die "$manifests: $!\n";
	return $cluster->try_apply($manifests, @options);
}

sub applied
{
	my ($what) = @_;
	my $done = try_apply();

	is($done->{status}, 0, $what) or diag("$done->{out}$done->{err}");
	return;
}

sub faulty
{
	my ($what, $said) = @_;
	my $done = try_apply();

	is($done->{status}, 1, "$what: refused");
	like($done->{err}, $said, "$what: so it says") or diag($done->{out});
	return;
}

sub differences { return $cluster->psql(q{select entity || ': ' || message || ' (' || hint || ')' from entityapi.list_differences()}) }

$cluster->psql(<<'SQL');
create schema shop authorization entityapi_owner;
set role entityapi_owner;
create table shop.parent (id uuid primary key default gen_random_uuid(), name text not null);
create table shop.child (id uuid primary key default gen_random_uuid(), parent_id uuid not null, note text,
	constraint takes_along foreign key (parent_id) references shop.parent (id) on delete cascade,
	foreign key (parent_id) references shop.parent (id) deferrable);
create table shop.grand (id uuid primary key default gen_random_uuid(), child_id uuid,
	constraint lets_go foreign key (child_id) references shop.child (id) on delete set null,
	foreign key (child_id) references shop.child (id) deferrable);
reset role;
grant usage on schema shop to entityapi_reader;
create schema other;
grant usage on schema other to entityapi_owner;
create table other."its.log" (id int primary key generated always as identity, parent_id uuid constraint logged references shop.parent (id) on delete set null);
create table other.note (id int primary key generated always as identity);
create table other.word (note_id int constraint of_note references other.note (id) on delete cascade);
grant all on all tables in schema other to entityapi_owner;
SQL

my %name = (name => { type => 'text', required => $true });
my @read = qw(create read update history);
$spec{Parent} = { table => 'shop.parent', fields => {%name}, permissions => { Editor => [@all] } };
$spec{Child} = { table => 'shop.child', permissions => { Editor => [@read] },
	fields => { note => { type => 'text' }, parent => { type => 'ref', target => 'Parent', required => $true } } };
$spec{Grand} = { table => 'shop.grand', permissions => { Editor => [@read] },
	fields => { child => { type => 'ref', target => 'Child' } } };

# -------- at apply --------

my @told = (
	qr{shop\.json#\d+: /spec/table: deleting Parent deletes rows of shop\.child without rights and records: its foreign key "takes_along" to shop\.parent is ON DELETE CASCADE \(ALTER TABLE shop\.child DROP CONSTRAINT takes_along, or, if it is meant, unseen: \[shop\.child\]\)},
	qr{deleting Parent changes rows of shop\.grand [^\n]*"lets_go" to shop\.child is ON DELETE SET NULL},
	qr{deleting Parent changes rows of other\."its\.log" [^\n]*unseen: \[other\."its\.log"\]});

faulty("a key", $_) for @told;
unlike(try_apply()->{err}, qr/deleting (?:Child|Grand)/, 'of what nobody deletes nothing is said');
$spec{Parent}{permissions} = { Editor => [@read] };
applied('where nobody deletes the target, actions are no faults');
is(differences(), '', 'and no differences');
$spec{Parent}{permissions} = { Editor => [@all] };

for my $unseen ([ 'shop' ], [ 'shop.' ], [ 'a.b.c' ], [ '"shop"child' ])
{
	$spec{Parent}{unseen} = $unseen;
	faulty("unseen: $unseen->[0]", qr{/spec/unseen/0: "\Q$unseen->[0]\E" is no name of a table});
}
$spec{Parent}{unseen} = ['shop.child'];
faulty('one is named', $told[1]);
$spec{Parent}{unseen} = [ 'shop.child', '"shop"."grand"', 'other."its.log"' ];
applied('all are named');
is(try_apply()->{out}, "nothing to change\n", 'which is kept');
is(differences(), '', 'and makes no difference');

# -------- served --------

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ed = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');

sub parent
{
	return $ed->good(201, POST => '/parents', data => { type => 'parents', attributes => { name => 'p' } })->{json}{data}{id};
}

sub child
{
	my ($parent) = @_;

	return $ed->good(201, POST => '/children', data => { type => 'children', attributes => {},
		relationships => { parent => { data => { type => 'parents', id => $parent } } } })->{json}{data}{id};
}

my $parent = parent();
my $child = child($parent);
$cluster->psql(qq{insert into shop.grand (child_id) values ('$child'); insert into other."its.log" (parent_id) values ('$parent')});
my $kept = parent();
$ed->good(204, DELETE => "/parents/$kept");

# Keys that no declaration knows, as after an update of the extension
my @drop = ('alter table shop.child drop constraint takes_along', 'alter table shop.grand drop constraint lets_go', 'alter table other."its.log" drop constraint logged');
# one that acts first, as it was made first
my @add = ('alter table shop.child drop constraint child_parent_id_fkey', 'alter table shop.grand drop constraint grand_child_id_fkey',
	'alter table shop.child add constraint takes_along foreign key (parent_id) references shop.parent (id) on delete cascade',
	'alter table shop.grand add constraint lets_go foreign key (child_id) references shop.child (id) on delete set null',
	'alter table other."its.log" add constraint logged foreign key (parent_id) references shop.parent (id) on delete set null',
	'alter table shop.child add constraint child_parent_id_fkey foreign key (parent_id) references shop.parent (id) deferrable',
	'alter table shop.grand add constraint grand_child_id_fkey foreign key (child_id) references shop.child (id) deferrable');
my $unseen = delete $spec{Parent}{unseen};
$cluster->psql(join ';', @drop);
applied('without them');
$cluster->psql(join ';', @add);
is(() = differences() =~ /^Parent: deleting Parent/mg, 3, 'three differences');
my $status = $shim->must(200, GET => '/manage/migrations/status', { token => $shim->superadmin });
is($status->{status}, 'FAILED', 'the status has them');
like(join("\n", map { "$_->{entity}: $_->{message}" } @{ $status->{differences} }), qr/Parent: deleting Parent deletes rows of shop\.child/, 'by name');
is($ed->call(DELETE => "/parents/$parent")->{status}, 500, 'and no row is deleted');
is($cluster->psql(qq{select count(*) from shop.child where parent_id = '$parent'}), 1, 'nothing went along');
like(EntityApi::Test::slurp($cluster->log), qr/no row of shop\.parent is deleted: deleting Parent (?:deletes|changes) rows of.*then apply the manifests again/s, 'the log says what to do');
$ed->good(200, GET => "/parents/$parent");
$ed->good(200, PATCH => "/parents/$parent", data => { type => 'parents', id => $parent, attributes => { name => 'q' } });
parent();

# -------- keys that come later --------

$spec{Parent}{unseen} = $unseen;
applied('named, all is served');
$ed->good(204, DELETE => "/parents/$parent");
is($cluster->psql(qq{select count(*) from shop.child where id = '$child'}), 0, 'and goes as it went');
$cluster->psql(join ';', @drop, 'drop table other."its.log"');
delete $spec{Parent}{unseen};
applied('without these keys');
is(differences(), '', 'no difference is left');
$ed->good(204, DELETE => '/parents/' . parent());

my @later = (
	[ 'from a table that is not served', 'other.note', 'alter table other.note add parent_id uuid constraint late references shop.parent (id) on delete cascade', 'alter table other.note drop constraint late', 1 ],
	[ 'beside a good one', 'shop.child', 'alter table shop.child add constraint late foreign key (parent_id) references shop.parent (id) on delete cascade', 'alter table shop.child drop constraint late', 1 ],
	[ 'not validated', 'shop.child', 'alter table shop.child add constraint late foreign key (parent_id) references shop.parent (id) on delete cascade not valid', 'alter table shop.child drop constraint late', 1 ],
	[ 'that sets a default', 'other.note', 'alter table other.note add constraint late foreign key (parent_id) references shop.parent (id) on delete set default', 'alter table other.note drop constraint late', 0 ],
);

for my $later (@later)
{
	my ($what, $table, $come, $go, $may) = @$later;

	subtest "a key $what" => sub {
		my $id = parent();

		$cluster->psql($come);
		is($ed->call(DELETE => "/parents/$id")->{status}, 500, 'DELETE');
		is($ed->call(POST => '/operations', headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
			body => qq({"atomic:operations":[{"op":"remove","ref":{"type":"parents","id":"$id"}}]}))->{status}, 500, 'an atomic one');
		$ed->good(200, GET => "/parents/$id");
		faulty('the same manifests', qr{"late" to shop\.parent is ON DELETE});
		$spec{Parent}{unseen} = [$table, 'other.word'];
		if ($may)
		{
			applied('named');
			$ed->good(204, DELETE => "/parents/$id");
		}
		else
		{
			faulty('named', qr{is ON DELETE SET DEFAULT \(ALTER TABLE other\.note DROP CONSTRAINT late\)});
		}
		$cluster->psql($go);
		delete $spec{Parent}{unseen};
		applied('and gone');
		$ed->good(204, DELETE => '/parents/' . parent());
	};
}

subtest 'what a key passes on' => sub {
	$cluster->psql('alter table other.note add constraint late foreign key (parent_id) references shop.parent (id) on delete cascade;
		alter table other.word drop constraint of_note');
	$spec{Parent}{unseen} = ['other.note'];
	applied('named');
	$ed->good(204, DELETE => '/parents/' . parent());
	$cluster->psql('alter table other.word add constraint of_note foreign key (note_id) references other.note (id) on delete cascade');
	is($ed->call(DELETE => '/parents/' . parent())->{status}, 500, 'and a further one comes, between tables that nobody serves');
	faulty('it', qr{deletes rows of other\.word [^\n]*"of_note" to other\.note});
	$spec{Parent}{unseen} = [ 'other.note', 'other.word' ];
	applied('named, too');
	$ed->good(204, DELETE => '/parents/' . parent());
	$cluster->psql('create table other.many (note_id int references other.note (id) on delete cascade, part int) partition by list (part);
		create table other.one partition of other.many for values in (1)');
	is(() = differences() =~ /rows of other\.(?:many|one) /g, 1, 'of partitions the whole is told');
	$cluster->psql('drop table other.many; alter table other.note drop constraint late');
	delete $spec{Parent}{unseen};
	applied('all gone');
};

subtest 'a table that the service made' => sub {
	$spec{Made} = { fields => {%name, base => { type => 'ref', target => 'Made' } }, permissions => { Editor => [@all] } };
	applied('made');
	my $id = $ed->good(201, POST => '/mades', data => { type => 'mades', attributes => { name => 'm' } })->{json}{data}{id};
	$cluster->psql('create table other.of_made (made_id uuid constraint of_made references app.made (id) on delete cascade); grant all on other.of_made to entityapi_owner');
	is($ed->call(DELETE => "/mades/$id")->{status}, 500, 'DELETE');
	like(differences(), qr/^Made: deleting Made deletes rows of other\.of_made/m, 'a difference');
	faulty('it', qr{shop\.json#\d+: /spec: deleting Made deletes rows of other\.of_made});
	is(try_apply('--repair')->{status}, 1, 'no repair takes a key of others away');
	$spec{Made}{unseen} = ['other.of_made'];
	applied('named');
	$ed->good(204, DELETE => "/mades/$id");
	$cluster->psql('drop table other.of_made');

	# its own key, altered by hand, is put back
	delete $spec{Made}{unseen};
	applied('and gone');
	$cluster->psql('set role entityapi_owner; alter table app.made drop constraint made__base_id_fkey; alter table app.made add constraint made__base_id_fkey foreign key (base_id) references app.made (id) on delete cascade deferrable');
	is($ed->call(DELETE => '/mades/' . $ed->good(201, POST => '/mades', data => { type => 'mades', attributes => { name => 'm' } })->{json}{data}{id})->{status}, 500, 'one of its own that was altered counts');
	my $repair = try_apply('--repair');
	is($repair->{status}, 0, 'and is put back') or diag($repair->{out}, $repair->{err});
	is(differences(), '', 'as it was');
};

subtest 'what the service does of itself' => sub {
	$spec{Child}{fields}{parent}{onDelete} = 'cascade';
	$cluster->psql('alter table shop.child add constraint late foreign key (parent_id) references shop.parent (id) on delete cascade');
	applied('a key that agrees with onDelete');
	my $id = parent();
	my $gone = child($id);
	$ed->good(204, DELETE => "/parents/$id");
	is($cluster->psql(qq{select string_agg(action, ' ' order by at, id) from entityapi.audit where target_id = '$gone'}), 'ENTITY_CREATE ENTITY_DELETE', 'the child went with a record');

	# a child that comes in between is found, or else it would fall to the key
	my ($late, $between) = (parent(), '01980000-0000-7000-8000-00000000000c');
	EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo, '-c', 'begin',
		'-c', "insert into shop.child (id, parent_id) values ('$between', '$late')",
		'-c', 'do $$ begin while not exists (select from pg_locks where not granted) loop perform pg_sleep(0.02); end loop; end $$', '-c', 'commit' ]);
	EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_stat_activity where query like 'do $$ begin while%'}) > 0 });
	$ed->good(204, DELETE => "/parents/$late");
	is($cluster->psql(qq{select string_agg(action, ' ') from entityapi.audit where target_id = '$between'}), 'ENTITY_DELETE', 'so did one that came in between');
	$cluster->psql('alter table shop.child drop constraint late');
	$spec{Grand}{fields}{child}{onDelete} = 'setNull';
	$cluster->psql('alter table shop.grand add constraint late foreign key (child_id) references shop.child (id) on delete set null');
	applied('and one that lets go');
	$spec{Grand}{fields}{child}{onDelete} = 'restrict';
	faulty('which restrict does not', qr{deleting Child changes rows of shop\.grand});
};

done_testing;
