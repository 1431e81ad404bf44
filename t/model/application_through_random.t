# Random requests for many-to-many relationships, of a join table that was made and of
# an application's: the same answers, the same links, the same records.  SEED and ROUNDS.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $seed = $ENV{SEED} || time;
my $rounds = $ENV{ROUNDS} || 400;
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

diag "seed $seed";
srand $seed;
sub any { return $_[ int rand @_ ] }
sub some { my @from = @_; return map { splice @from, int rand @from, 1 } 1 .. int rand(1 + @from) }

# Names on either side; a table is called like its collection, without the s
my @sides = ({ Cat => 'cats', Dog => 'dogs' }, { Cow => 'cows', Doe => 'does' });
my %other = (Cat => 'Cow', Dog => 'Doe');

$cluster->psql(<<'SQL');
create role shop_app;
create schema shop authorization shop_app;
set role shop_app;
create table shop.cow (id uuid primary key, name text not null, age int);
create table shop.doe (id uuid primary key, name text not null, age int);
create table shop.meets (doe uuid not null references shop.doe on delete cascade, cow uuid not null references shop.cow on delete restrict, n bigserial, primary key (doe, cow));
create table shop.likes (whom uuid not null references shop.cow deferrable initially deferred, who uuid not null references shop.cow on delete cascade, unique (whom, who));
SQL

for my $side (0, 1)
{
	my ($one, $two) = sort keys %{ $sides[$side] };
	my $many = sub { my ($target, $table, %more) = @_; return { type => 'ref', target => $target, relation => 'ManyToMany', $side && $table ? (through => $table) : (), %more } };
	my %fields = (name => { type => 'text', required => $true }, age => { type => 'integer' });
	my %rights = (permissions => { Editor => [qw(create read update delete history)] });
	my %spec = (
		$one => { tenantScoped => $side ? JSON::PP::false : $true, fields => { %fields, meets => $many->($two, 'shop.meets'), likes => $many->($one, 'shop.likes'), liked => $many->($one, undef, mappedBy => 'likes') }, %rights },
		$two => { tenantScoped => $side ? JSON::PP::false : $true, fields => { %fields, met => $many->($one, undef, mappedBy => 'meets') }, %rights });

	$spec{$_}{plural} = $sides[$side]{$_} for keys %spec;
	if ($side)
	{
		$spec{$_}{table} = 'shop.' . lc for keys %spec;
		$spec{$one}{columns} = { meets => [qw(cow doe)], likes => [qw(who whom)] };
	}
	EntityApi::Test::write_file("$folder/$_.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $_ }, spec => $spec{$_} })) for keys %spec;
}
EntityApi::Test::write_file("$folder/service.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'service' },
	spec => { tenancy => 'SINGLE', existing => { role => 'shop_app' } } }));
EntityApi::Test::write_file("$folder/roles.json", $encoder->encode({ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' },
	spec => { roles => { Editor => { assignableBy => 'superAdmin' } } } }));
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $shim = EntityApi::Test->shim($cluster);
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($cluster->psql('select id from entityapi.tenant'), 'ann', ['Editor']), '/api/v1');

# Ids by names, on each side; what is gone keeps its name
my @ids = ({}, {});
my (%there, %gone);
my $n = 0;
my $fulfilled = 0;

# In a request, <Cat> is its collection and <x> the id of x; in an answer they come back
sub told
{
	my ($side, $text) = @_;

	$text =~ s/<(Cat|Dog)>/$sides[$side]{ $side ? $other{$1} : $1 }/g;
	$text =~ s/<(n\d+)>/$ids[$side]{$1}/g;
	return $text;
}
sub heard
{
	my ($side, $text) = @_;
	my %name = reverse %{ $ids[$side] };

	$text =~ s/([0-9a-f]{8}-[0-9a-f-]{27})/$name{$1} ? "<$name{$1}>" : '<id>'/ge;
	$text =~ s/\b$sides[$side]{ $side ? $other{$_} : $_ }\b/<$_>/g for qw(Cat Dog);
	return $text;
}

sub both
{
	my ($method, $path, $data, %options) = @_;
	my @answers = map {
		my $side = $_;
		$ann->call($method => told($side, $path), defined $data ? (body => told($side, $encoder->encode($data))) : (),
			headers => { 'Content-Type' => $options{atomic} ? $atomic : 'application/vnd.api+json' })
	} 0, 1;
	return @answers;
}
sub same
{
	my ($what, @answers) = @_;
	$fulfilled++ if $answers[0]{status} < 300;
	my @said = map { "$answers[$_]{status} " . heard($_, $answers[$_]{json} ? $encoder->encode($answers[$_]{json}) : $answers[$_]{body}) } 0, 1;

	return 1 if $said[0] eq $said[1];
	is($said[1], $said[0], "$what (seed $seed)");
	return 0;
}

sub make
{
	my ($kind) = @_;
	my $name = 'n' . ++$n;
	my %to = $kind eq 'Cat' ? (meets => linkage('Dog'), likes => linkage('Cat')) : (met => linkage('Cat'));
	my @answers = both(POST => "/<$kind>", { data => { type => "<$kind>", attributes => { name => $name, age => int rand 5 }, relationships => { map { $_ => { data => $to{$_} } } some(keys %to) } } });

	if ($answers[0]{status} == 201 && $answers[1]{status} == 201)
	{
		$ids[$_]{$name} = $answers[$_]{json}{data}{id} for 0, 1;
		$there{$kind}{$name} = 1;
	}
	return same("a new $name", @answers);
}
sub linkage
{
	my ($kind) = @_;
	my @names = some(sort keys %{ $there{$kind} });

	push @names, any(sort keys %gone) if %gone && rand() < 0.1;
	splice @names, 4 if @names > 4;
	return [ map { +{ type => "<$kind>", id => "<$_>" } } @names ];
}
sub a { my ($kind) = @_; return any(sort(keys %{ $there{$kind} }), rand() < 0.05 ? sort keys %gone : ()) }

my @relations = ([ Cat => meets => 'Dog' ], [ Cat => likes => 'Cat' ], [ Cat => liked => 'Cat' ], [ Dog => met => 'Cat' ]);
my @steps = (
	sub { return make(any('Cat', 'Dog')) },
	(sub {
		my ($kind, $field, $target) = @{ any(@relations) };
		my $method = any(qw(POST PATCH DELETE));
		my $path = "/<$kind>/<" . a($kind) . ">/relationships/$field";
		return same("$method $path", both($method => $path, { data => linkage($target) }));
	}) x 6,
	(sub {
		my ($kind, $field, $target) = @{ any(@relations) };
		my $path = any("/<$kind>/<" . a($kind) . ">/" . any($field, "relationships/$field"), "/<$kind>/<" . a($kind) . ">?include=$field", "/<$kind>?sort=name&include=$field&page[size]=50",
			"/<$kind>?sort=age,name&filter=$field.age=ge=" . int(rand 5), "/<$kind>?filter=$field.name==" . a($target) . "&page[totals]=true",
			"/<$kind>?sort=-name&filter=$field=isnull=true", "/<$kind>/<" . a($kind) . ">/$field?sort=-age,name&filter=age=lt=3");
		return same("GET $path", both(GET => $path));
	}) x 6,
	(sub {
		my ($kind, $field, $target) = @{ any(@relations) };
		my $name = a($kind);
		return same("PATCH $name", both(PATCH => "/<$kind>/<$name>", { data => { type => "<$kind>", id => "<$name>", attributes => { age => int rand 5 }, relationships => { $field => { data => linkage($target) } } } }));
	}) x 2,
	(sub {
		my @ops = map {
			my ($kind, $field, $target) = @{ any(@relations) };
			+{ op => any(qw(add update remove)), ref => { type => "<$kind>", id => '<' . a($kind) . '>', relationship => $field }, data => linkage($target) }
		} 1 .. 1 + rand 3;
		return same('operations', both(POST => '/operations', { 'atomic:operations' => \@ops }, atomic => 1));
	}) x 2,
	sub {
		my $kind = any('Cat', 'Dog');
		my $name = a($kind);
		my @answers = both(DELETE => "/<$kind>/<$name>");

		if ($answers[0]{status} == 204) { delete $there{$_}{$name} for keys %there; $gone{$name} = 1 }
		return same("DELETE $name", @answers);
	});

make($_) for ('Cat', 'Dog') x 4;
my $done = 0;
for my $round (1 .. $rounds)
{
	last if !any(@steps)->();
	$done++;
	make($_) for grep { keys %{ $there{$_} } < 3 } qw(Cat Dog);
	if ($round % 100 == 0) { $cluster->set("entityapi.$_", $round % 200 ? 'off' : 'on') for qw(direct_reads direct_writes) }
}
is($done, $rounds, 'all rounds were the same') or diag "seed $seed";

cmp_ok($fulfilled, '>', $rounds / 2, 'and most were fulfilled');

my @rows = map { join "\n", sort split /\n/, heard($_->[0], $cluster->psql("select coalesce(string_agg($_->[1], E'\\n'), '') from $_->[2]")) }
  [ 0, q{'meets ' || cat_id || ' ' || dog_id}, 'app.cat_meets' ], [ 1, q{'meets ' || cow || ' ' || doe}, 'shop.meets' ],
  [ 0, q{'likes ' || cat_id || ' ' || likes_id}, 'app.cat_likes' ], [ 1, q{'likes ' || who || ' ' || whom}, 'shop.likes' ];
is($rows[1], $rows[0], 'the same links');
is($rows[3], $rows[2], 'also to itself');
cmp_ok(length "$rows[0]$rows[2]", '>', 0, 'some are left');
my @records = map {
	my $side = $_;
	my $types = join ', ', map { "'$_'" } values %{ $sides[$side] };
	heard($side, $cluster->psql("select string_agg(concat_ws(' ', action, outcome, target_type, target_id, changes), E'\\n' order by at, id) from entityapi.audit where target_type in ($types)"))
} 0, 1;
is($records[1], $records[0], 'and the same records');
done_testing();
