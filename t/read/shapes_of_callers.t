# What a session has learnt of other callers, of other settings and of other
# tenants changes no answer: each is as that of a session that knows nobody.

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(shuffle);
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

sub to { my ($target, $relation, %more) = @_; return { type => 'ref', target => $target, relation => $relation, %more } }

sub document { my ($kind, $name, $spec) = @_; return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec } }

sub entity
{
	my ($name, $readers, %spec) = @_;
	return document(Entity => $name, { permissions => { map({ $_ => [exists $spec{tenantScoped} ? "read" : (qw(read update history)), $spec{softDelete} ? "restore" : ()] } @$readers), exists $spec{tenantScoped} ? () : (W => [qw(create update)]) }, %spec });
}

$cluster->psql(<<'SQL');
create schema old authorization entityapi_owner;
set role entityapi_owner;
create table old.thing (company uuid not null, no uuid not null default gen_random_uuid(), name text, secret text, doc uuid, primary key (company, no));
create index on old.thing (company, doc);
grant usage on schema old to entityapi_reader;
SQL
my $string = { type => 'string' };
my @documents = (
	document(Service => 'callers', { tenancy => 'POOL' }),
	document(Versions => 'versions', { versions => { 1 => { status => 'ACTIVE' }, 2 => { status => 'ACTIVE' } } }),
	document(Roles => 'roles', { roles => { map { $_ => { description => $_ } } qw(A B C D W) } }),
	document(SecurityAttributes => 'attributes', { attributes => { region => { type => 'string' } } }),
	document(Policy => 'Region', { description => 'r', expression => "#record.region == #user.securityAttributes['region'] || 'B' in #user.roles" }),
	document(Policy => 'Until', { description => 'u', expression => '#record.until > #now' }),
	document(Policy => 'Named', { description => 'n', expression => "#user.username == 'east'" }),
	document(OneOf => 'Place', { members => [qw(Folder Room)] }),
	entity('Doc', [qw(A B)], optimisticLocking => $true, fields => {
			name => $string, secret => { type => 'string', readRoles => ['B'] }, late => { type => 'string', since => 2 },
			folder => to('Folder', 'ManyToOne'), place => { type => 'oneof', target => 'Place' },
			notes => to('Note', 'OneToMany', mappedBy => 'doc'), offers => to('Offer', 'OneToMany', mappedBy => 'doc'),
			rumours => to('Rumour', 'OneToMany', mappedBy => 'doc'),
			tags => to('Tag', 'ManyToMany'), lands => to('Country', 'ManyToMany'), home => to('Country', 'ManyToOne'),
			hidden => to('Folder', 'ManyToMany', readRoles => ['D']) }),
	entity('Folder', [qw(A C)], fields => { title => $string, docs => to('Doc', 'OneToMany', mappedBy => 'folder'), hiders => to('Doc', 'ManyToMany', mappedBy => 'hidden') }),
	entity('Room', [qw(B C)], fields => { title => $string }),
	entity('Note', [qw(A C)], policies => { Region => ['read'] }, fields => { region => $string, doc => to('Doc', 'ManyToOne') }),
	entity('Offer', [qw(A C)], policies => { Until => ['read'] }, fields => { until => { type => 'datetime' }, doc => to('Doc', 'ManyToOne') }),
	entity('Rumour', [qw(A D)], policies => { Named => ['read'] }, fields => { text => $string, doc => to('Doc', 'ManyToOne') }),
	entity('Tag', [qw(A D)], softDelete => $true, fields => { word => $string, docs => to('Doc', 'ManyToMany', mappedBy => 'tags') }),
	entity('Country', [qw(A C)], tenantScoped => $false, fields => { code => $string, dark => { type => 'string', readRoles => ['D'] },
			near => to('Country', 'ManyToMany'), close => to('Country', 'ManyToMany', mappedBy => 'near'),
			part => to('Country', 'ManyToOne'), parts => to('Country', 'OneToMany', mappedBy => 'part') }),
	document(Entity => 'Board', { permissions => { '*' => ['read'], W => ['create'] }, fields => { text => $string, dark => { type => 'string', readRoles => ['D'] },
			folder => to('Folder', 'ManyToOne') } }),
	entity('Thing', [qw(A B)], table => 'old.thing', columns => { tenantId => 'company', id => 'no' }, fields => { name => $string, secret => { type => 'string', readRoles => ['B'] } }));
my $manifests = JSON::PP->new->canonical->encode(\@documents);
my $applied = $cluster->try_psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");
is($applied->{status}, 0, "applied") or do { diag($applied->{err}, $applied->{out}); exit 1 };

my %tenant = map { $_ => $shim->tenant($_)->{id} } qw(one two);
my $root = $shim->superadmin->{accessToken};
my %id;
for my $t (qw(one two))
{
	my %headers = ('x-tenant-id' => $tenant{$t});
	my $make = sub {
		my ($type, $attributes, $relationships) = @_;
		return $shim->must(201, POST => "/api/v2/$type", { token => $root, headers => \%headers,
				json => { data => { type => $type, attributes => $attributes, relationships => $relationships // {} } } })->{data}{id};
	};
	my $one = sub { return { data => { type => $_[0], id => $_[1] } } };
	my $many = sub { my ($type, @ids) = @_; return { data => [ map { { type => $type, id => $_ } } @ids ] } };
	my %made;
	$made{$_} = $make->(countries => { code => "$t$_", dark => 'x' }) for qw(la lb);
	$shim->must(200, PATCH => "/api/v1/countries/$made{la}", { token => $root, headers => \%headers, json => { data => { type => 'countries', id => $made{la},
				relationships => { near => $many->(countries => $made{lb}), part => $one->(countries => $made{lb}) } } } });
	$made{folder} = $make->(folders => { title => $t });
	$made{room} = $make->(rooms => { title => $t });
	$made{$_} = $make->(tags => { word => $_ }) for qw(ta tb);
	$made{doc} = $make->(docs => { name => "doc $t", secret => 's', late => 'l' }, { folder => $one->(folders => $made{folder}), place => $one->(rooms => $made{room}),
			tags => $many->(tags => @made{qw(ta tb)}), lands => $many->(countries => @made{qw(la lb)}), home => $one->(countries => $made{la}), hidden => $many->(folders => $made{folder}) });
	$made{doc2} = $make->(docs => { name => "doc2 $t" }, { folder => $one->(folders => $made{folder}), tags => $many->(tags => $made{ta}) });
	$made{note} = $make->(notes => { region => $_ }, { doc => $one->(docs => $made{doc}) }) for qw(EAST WEST);
	$make->(offers => { until => $_ }, { doc => $one->(docs => $made{doc}) }) for qw(2001-01-01T00:00:00Z 2999-01-01T00:00:00Z);
	$make->(rumours => { text => $_ }, { doc => $one->(docs => $made{doc}) }) for qw(x y);
	$made{board} = $make->(boards => { text => 'all', dark => 'hush' }, { folder => $one->(folders => $made{folder}) });
	$made{thing} = $make->(things => { name => 'thing', secret => 'hush' });
	$shim->must(204, DELETE => "/api/v1/tags/$made{tb}", { token => $root, headers => \%headers });
	$id{$t} = \%made;
}
my $then = $cluster->psql(q(select to_char(clock_timestamp() at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')));

my %bearer = (
	root1 => [ $root, $tenant{one} ], root2 => [ $root, $tenant{two} ], root => [$root],
	map { my ($name, $t, @roles) = @$_; ($name => [ $shim->user($tenant{$t}, $name, \@roles, securityAttributes => { region => $name eq 'east' ? 'EAST' : 'WEST' })->{accessToken} ]) }
	  [ east => 'one', 'A' ], [ west => 'one', 'A' ], [ far => 'two', 'A' ], [ ab => one => 'A', 'B' ], [ ba => one => 'B', 'A' ], [ b => one => 'B' ], [ acd => one => qw(A C D) ],
	[ bd => one => qw(B D) ], [ w => one => 'W' ], [ wa => one => qw(W A) ], [ none => 'one' ], [ c => one => 'C' ], [ boss => one => 'A' ], [ chief => 'one' ], map({ [ "r$_", one => split //, $_ ] } qw(AC AD BC CD ABC BCD ABCD DCBA CBA)));
my %header = map { my ($token, $t) = @{ $bearer{$_} }; ($_ => { authorization => "Bearer $token", $t ? ('x-tenant-id' => $t) : () }) } keys %bearer;
$cluster->psql("insert into entityapi.tenant_admin (account_id, tenant_id) select id, tenant_id from entityapi.account where username in ('boss', 'chief')");
$header{key} = { 'x-api-key' => $shim->must(201, POST => '/auth/me/api-keys',
		{ token => $bearer{rABCD}[0], json => { name => 'k', domainRoles => ['A'], expiresAt => '2099-01-01T00:00:00Z' } })->{key} };
$header{chiefkey} = { 'x-api-key' => $shim->must(201, POST => '/auth/me/api-keys', { token => $bearer{chief}[0], json => { name => 'k', domainRoles => [], expiresAt => '2099-01-01T00:00:00Z' } })->{key} };
$header{bosskey} = { 'x-api-key' => $shim->must(201, POST => '/auth/me/api-keys', { token => $bearer{boss}[0], json => { name => 'k', domainRoles => ['A'], expiresAt => '2099-01-01T00:00:00Z' } })->{key} };

my $o = $id{one};
my @targets = map { [ GET => $_ ] } map({ my $v = $_; map { "/api/v$v$_" } "/docs/$o->{doc}", "/docs/$o->{doc}?fields[docs]=name,notes", "/docs/$o->{doc}?fields[docs]=tags", "/docs/$o->{doc}?include=notes,tags",
		"/docs/$o->{doc}?include=folder.docs,lands.near", "/docs/$o->{doc2}", "/docs?sort=name", '/docs?include=place&sort=-name', "/docs?page[size]=1&sort=name", "/docs/$o->{doc}?asOf=$then", "/folders/$o->{folder}", "/docs/$o->{doc}/$_" } 1, 2),
  map({ ("/api/v1/docs/$o->{doc}/$_", "/api/v1/docs/$o->{doc}/relationships/$_") } qw(folder place notes offers rumours tags lands home hidden)),
  map({ "/api/v1$_" } "/folders/$o->{folder}?asOf=$then", "/tags/$o->{ta}", "/tags/$o->{tb}", "/tags?show[deleted]=with&sort=word", "/tags/$o->{tb}?show[deleted]=with", "/tags/$o->{tb}?asOf=$then", "/tags/$o->{ta}?show[deleted]=only", '/tags?sort=word',
	"/countries/$o->{la}", "/countries/$o->{lb}", "/countries/$o->{lb}?include=close,parts", "/countries/$o->{la}/near", "/countries/$o->{lb}/relationships/parts", '/countries?sort=code', "/things/$o->{thing}", '/things?sort=name',
	"/boards/$o->{board}", "/boards/$id{two}{board}", '/boards', "/docs/$id{two}{doc}", "/folders/$id{two}{folder}", "/things/$id{two}{thing}", "/notes?sort=region", '/offers?sort=until', '/rumours?sort=text', "/notes/$o->{note}", '/docs/bad', "/rooms/$o->{room}");
push @targets, map { [ PATCH => "/api/v$_/docs/$o->{doc}", { data => { type => 'docs', id => $o->{doc}, attributes => { name => 'changed' } } } ] } 1, 2;
push @targets, [ PATCH => "/api/v1/tags/$o->{ta}", { data => { type => 'tags', id => $o->{ta}, attributes => { word => 'changed' } } } ],
  [ POST => "/api/v1/tags/$o->{tb}/restore" ];
my $json = JSON::PP->new->canonical;

sub ask
{
	my ($who, $target, $settings) = @_;
	my ($method, $path, $body) = @$target;
	my %more = $body ? ('content-type' => 'application/vnd.api+json', 'if-match' => '*') : ();
	my $headers = $json->encode({ %{ $header{$who} }, 'x-request-id' => 'r', %more });
	my $text = $body ? 'convert_to($b$' . $json->encode($body) . '$b$, \'UTF8\')' : 'null';
	return join '', 'begin;', $settings, "select status || ' ' || coalesce(headers->>'etag', '') || ' ' || regexp_replace(body, '\"(updatedAt|deletedAt)\":\"[^\"]*\"', '', 'g')
		from entityapi.handle('$method', '$path', \$h\$$headers\$h\$, $text, null);\nrollback;\n";
}

my @settings = ('', "set local entityapi.base_url = 'https://b.example'; set local entityapi.max_linkage = 1;");
srand 7;
my @steps = map { my $who = $_; map { my $t = $_; map { [ $who, $t, $_ ] } grep { $_ eq '' || rand() < 0.3 } @settings } 0 .. $#targets } sort keys %header;
my (%expected, %seen, %groups);

# Each caller in sessions that have seen nobody else, nor other settings
for my $step (@steps)
{
	my ($who, $t, $set) = @$step;

	push @{ $groups{ join ' ', $who, $set, $targets[$t][1] =~ m{/(v\d)/} } }, $step;
}
for my $group (values %groups)
{
	my @answers = split /\n/, $cluster->psql(join '', map { ask($_->[0], $targets[ $_->[1] ], $_->[2]) } @$group);

	for my $i (0 .. $#$group)
	{
		my ($who, $t, $set) = @{ $group->[$i] };

		$expected{$who}{$t}{$set} = $answers[$i];
		$seen{ substr $answers[$i], 0, 3 }++;
	}
}
cmp_ok($seen{$_} // 0, '>', 50, "answers with $_") for 200, 403, 404;
is($seen{500} // 0, 0, 'no failures');

for my $round (1, 2)
{
	my @some = shuffle @steps;
	my @answers = split /\n/, $cluster->psql(join '', map { ask($_->[0], $targets[ $_->[1] ], $_->[2]) } @some);

	is(@answers, @some, "round $round");

	my @wrong = grep { $answers[$_] ne $expected{ $some[$_][0] }{ $some[$_][1] }{ $some[$_][2] } } 0 .. $#some;
	is(@wrong, 0, 'all as before');
	diag("$some[$_][0] @{$targets[$some[$_][1]]}[0,1] $some[$_][2]\n$answers[$_]\n$expected{ $some[$_][0] }{ $some[$_][1] }{ $some[$_][2] }") for @wrong[ 0 .. ($#wrong > 3 ? 3 : $#wrong) ];
}

done_testing();
