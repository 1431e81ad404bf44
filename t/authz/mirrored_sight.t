# Who may not see a relationship does not see it from its other side either.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/papers.json';
my %everybody = ('*' => [qw(create read update delete)]);

sub to { my ($target, $relation, %more) = @_; return { type => 'ref', target => $target, relation => $relation, %more } }

open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Archivist => {}, Viewer => {} } } },
	{ kind => 'Entity', metadata => { name => 'Cabinet' }, spec => { permissions => \%everybody, fields => {
		name => { type => 'string' },
		papers => to('Paper', 'OneToMany', mappedBy => 'cabinet'),
		seals => to('Paper', 'ManyToMany', mappedBy => 'sealed'),
		index => to('Paper', 'OneToOne', mappedBy => 'indexes'),
		open => to('Paper', 'OneToMany', mappedBy => 'beside') } } },
	{ kind => 'Entity', metadata => { name => 'Paper' }, spec => { permissions => \%everybody, fields => {
		name => { type => 'string' },
		cabinet => to('Cabinet', 'ManyToOne', readRoles => ['Archivist']),
		sealed => to('Cabinet', 'ManyToMany', readRoles => ['Archivist']),
		indexes => to('Cabinet', 'OneToOne', readRoles => ['Archivist']),
		beside => to('Cabinet', 'ManyToOne') } } } ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my $archivist = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'archivist', ['Archivist']), '/api/v1');
my $viewer = $archivist->as($shim->user($tenant, 'viewer', ['Viewer']));

my $cabinet = $archivist->good(201, POST => '/cabinets', data => { type => 'cabinets' })->{json}{data};
my $place = { type => 'cabinets', id => $cabinet->{id} };
my $paper = $archivist->good(201, POST => '/papers', data => { type => 'papers', attributes => { name => 'P' }, relationships => {
	cabinet => { data => $place }, sealed => { data => [$place] }, indexes => { data => $place }, beside => { data => $place } } })->{json}{data};
my $at = "/cabinets/$cabinet->{id}";

for my $name (qw(papers seals index))
{
	my $unknown = sub { my ($refused, $text) = @_; return ($refused->{body} =~ s/\Q$name\E|nothing/X/gr) =~ s/"id":"[^"]*"//r };

	ok(!exists $viewer->good(200, GET => $at)->{json}{data}{relationships}{$name}, "$name: not in the resource");
	$viewer->refused("$name: $_->[1]", $_->[0], undef, undef, GET => $_->[1]) for
		[ 404, "$at/relationships/$name" ], [ 404, "$at/$name" ], [ 400, "/cabinets?filter=$name.name==P" ],
		[ 400, "/cabinets?include=$name" ], [ 400, "/cabinets?fields[cabinets]=$name" ];
	is($unknown->($viewer->call(GET => "/cabinets?include=$name")), $unknown->($viewer->call(GET => '/cabinets?include=nothing')), "$name: as if it were not there");
	$viewer->refused("$name: written", 404, undef, undef, PATCH => "$at/relationships/$name", data => $name eq 'index' ? undef : []);
	$viewer->refused("$name: written with the rest", 400, 'UNKNOWN_FIELD', undef, PATCH => $at,
		data => { %$place, relationships => { $name => { data => $name eq 'index' ? undef : [] } } });
	ok($archivist->good(200, GET => "$at/relationships/$name")->{json}{data}, "$name: who may see one side sees the other");
	$archivist->good(200, GET => "/cabinets?include=$name&filter=$name.name==P");
}
is(scalar @{ $viewer->good(200, GET => "$at/relationships/open")->{json}{data} }, 1, 'what is open stays so');

done_testing;
