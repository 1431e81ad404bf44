# API versions: fields and entities that come and go, everywhere they may be
# named, and the headers of versions that are going.

use strict;
use warnings;

use Test::More;

use EntityApi::Test::Conformance;

my $v3 = EntityApi::Test::Conformance->begin('versions', version => 3);
my ($v1, $v2) = map { bless { %$v3, base => "/api/v$_" }, ref $v3 } 1, 2;
my %v = (1 => $v1, 2 => $v2, 3 => $v3);

my $harbour = $v1->made(harbours => { name => 'Triest' });
my $owner = $v2->made(owners => { name => 'Lloyd' });
my $crate = $v3->made(crates => { content => 'figs' });
my $barrel = $v1->made(barrels => { content => 'wine' });
my $ship = $v3->made(ships => { name => 'Novara', length => 76.8 }, { cargo => $crate, owner => $owner });
my $sailor = $v1->made(sailors => { name => 'Tegetthoff' }, { ship => $ship });

$v1->update($ship, { tonnage => 2615 }, { harbour => $harbour });
$v2->update($ship, { flag => 'red' });
$v3->update($sailor, { nickname => 'Willi' });

subtest 'documents' => sub {
	my %shown = (
		1 => [ [qw(name tonnage)],     [qw(harbour)] ],
		2 => [ [qw(flag length name)], [qw(crew harbour owner)] ],
		3 => [ [qw(length name)],      [qw(cargo crew owner)] ]);

	for my $version (1 .. 3)
	{
		my ($attributes, $relationships) = @{ $shown{$version} };

		for my $data ($v{$version}->current($ship), $v{$version}->good(200, GET => '/ships')->{json}{data}[0],
			$v{$version}->update($ship, {})->{json}{data})
		{
			is_deeply([ sort keys %{ $data->{attributes} } ], $attributes, "attributes of version $version");
			is_deeply([ sort keys %{ $data->{relationships} } ], $relationships, 'relationships');
			is($data->{links}{self}, "/api/v$version" . $v3->path($ship), 'links');
		}
	}
	is($v1->current($ship)->{attributes}{tonnage}, 2615, 'what a version does not show is kept');
	is($v2->current($ship)->{attributes}{flag}, 'red', 'by writes of others, too');
};

subtest 'every mention' => sub {
	# Names that a version does not know, in the terms of requests
	my %unknown = (
		1 => { attribute => [qw(length flag)], relationship => [qw(crew cargo owner)] },
		2 => { attribute => [qw(tonnage)],     relationship => [qw(cargo)] },
		3 => { attribute => [qw(tonnage flag)], relationship => [qw(harbour)] });

	for my $version (1 .. 3)
	{
		my $v = $v{$version};
		my $identifier = $v->identifier($ship);

		for my $name (@{ $unknown{$version}{attribute} })
		{
			$v->refused("v$version: filter by $name", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/ships?filter=$name=isnull=true");
			$v->refused("v$version: sort by $name", 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "/ships?sort=-$name");
			$v->refused("v$version: field $name", 400, 'INVALID_FIELDS', [ parameter => 'fields[ships]' ], GET => "/ships?fields[ships]=$name");
			$v->refused("v$version: filter by ship.$name", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/sailors?filter=ship.$name=isnull=true");
			$v->refused("v$version: sort by ship.$name", 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "/sailors?sort=ship.$name");
			$v->refused("v$version: create with $name", 400, 'UNKNOWN_FIELD', [ pointer => "/data/attributes/$name" ],
				POST => '/ships', data => { type => 'ships', attributes => { name => 'x', $name => undef } });
			$v->refused("v$version: update of $name", 400, 'UNKNOWN_FIELD', [ pointer => "/data/attributes/$name" ],
				PATCH => $v->path($ship), data => { %$identifier, attributes => { $name => undef } });
			$v->batch_refused("v$version: batch with $name", 400, 'UNKNOWN_FIELD', "/atomic:operations/0/data/attributes/$name",
				{ op => 'update', ref => $identifier, data => { %$identifier, attributes => { $name => undef } } });
		}
		for my $name (@{ $unknown{$version}{relationship} })
		{
			my $value = $name eq 'crew' ? [] : undef;

			$v->refused("v$version: include $name", 400, 'INVALID_INCLUDE', [ parameter => 'include' ], GET => "/ships?include=$name");
			$v->refused("v$version: include ship.$name", 400, 'INVALID_INCLUDE', [ parameter => 'include' ], GET => "/sailors?include=ship.$name");
			$v->refused("v$version: filter through $name", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/ships?filter=$name.id==" . $ship->{id});
			$v->refused("v$version: $name null", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/ships?filter=$name=isnull=true");
			$v->refused("v$version: sort through $name", 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "/ships?sort=$name.name");
			$v->refused("v$version: field $name", 400, 'INVALID_FIELDS', [ parameter => 'fields[ships]' ], GET => "/ships?fields[ships]=$name");
			$v->refused("v$version: create with $name", 400, 'UNKNOWN_FIELD', [ pointer => "/data/relationships/$name" ],
				POST => '/ships', data => { type => 'ships', attributes => { name => 'x' }, relationships => { $name => { data => $value } } });
			$v->refused("v$version: $_ relationship $name", 404, 'NOT_FOUND', undef, $_ => $v->path($ship, 'relationships', $name), data => $value)
			  for qw(PATCH POST DELETE);
			$v->refused("v$version: relationship $name", 404, 'NOT_FOUND', undef, GET => $v->path($ship, 'relationships', $name));
			$v->refused("v$version: related $name", 404, 'NOT_FOUND', undef, GET => $v->path($ship, $name));
			$v->batch_refused("v$version: batch with $name", 400, 'UNKNOWN_FIELD', "/atomic:operations/0/data/relationships/$name",
				{ op => 'update', ref => $identifier, data => { %$identifier, relationships => { $name => { data => $value } } } });
			$v->batch_refused("v$version: relationship $name in a batch", 404, undef, undef,
				{ op => 'update', ref => { %$identifier, relationship => $name }, data => $value });
			$v->batch_refused("v$version: relationship $name by address", 404, undef, undef,
				{ op => 'update', href => $v->path($ship, 'relationships', $name), data => $value });
		}
	}
	$v2->good(200, GET => '/ships?filter=flag==red&sort=length&fields[ships]=flag,crew&include=crew');
	$v1->good(200, GET => '/ships?filter=tonnage=gt=1&sort=tonnage&fields[ships]=tonnage');
	pass('and where a version knows them, they are good');
};

subtest 'entities' => sub {
	for my $case ([ 1, $owner ], [ 1, $crate ], [ 2, $crate ], [ 3, $harbour ])
	{
		my ($version, $resource) = @$case;
		my ($v, $type) = ($v{$version}, $resource->{type});

		$v->refused("v$version: list of $type", 404, 'NOT_FOUND', undef, GET => "/$type");
		$v->refused("v$version: create $type", 404, 'NOT_FOUND', undef, POST => "/$type", data => { type => $type, attributes => { name => 'x' } });
		$v->refused("v$version: one of $type", 404, 'NOT_FOUND', undef, GET => $v->path($resource));
		$v->refused("v$version: $_ of $type", 404, 'NOT_FOUND', undef, $_ => $v->path($resource), data => $v->identifier($resource))
		  for qw(PATCH DELETE);
		$v->batch_refused("v$version: add $type", 404, undef, undef, { op => 'add', data => { type => $type, attributes => { name => 'x' } } });
		$v->batch_refused("v$version: remove $type", 404, undef, undef, { op => 'remove', ref => $v->identifier($resource) });
		$v->batch_refused("v$version: remove $type by address", 404, undef, undef, { op => 'remove', href => $v->path($resource) });
		$v->refused("v$version: fields of $type", 400, 'INVALID_FIELDS', [ parameter => "fields[$type]" ], GET => "/ships?fields[$type]=name");
	}
	is($v3->good(200, GET => '/ships?include=cargo')->{json}{included}[0]{id}, $crate->{id}, 'a member of a one-of');
	is($v3->update($ship, {}, { cargo => $barrel })->{status}, 200, 'and another');
};

# The sailor's chest may be a crate, which version 2 does not know.
subtest 'a one-of with a member that is not there' => sub {
	my $other = $v3->made(sailors => { name => 'Other' }, { chest => $barrel });

	is($v3->update($sailor, {}, { chest => $crate })->{status}, 200, 'where it is there');
	is_deeply($v2->current($sailor)->{relationships}{chest}{data}, undef, 'nothing is shown of it');
	is_deeply($v2->current($other)->{relationships}{chest}{data}, $v2->identifier($barrel), 'but of the others');
	is($v2->linked($sailor, 'chest'), '', 'nor at the relationship');
	is($v2->good(200, GET => $v2->path($sailor, 'chest'))->{json}{data}, undef, 'nor as related resource');
	is_deeply([ map { $_->{type} } @{ $v2->good(200, GET => '/sailors?include=chest')->{json}{included} } ], ['barrels'], 'nor included');
	is_deeply([ map { $_->{id} } @{ $v2->good(200, GET => '/sailors?filter=chest.content==figs')->{json}{data} } ], [], 'nor found');
	for my $answer ($v2->update($sailor, {}, { chest => $crate }), $v2->relate(PATCH => $sailor, 'chest', $crate),
		$v2->call(POST => '/sailors', data => $v2->document(sailors => { name => 'x' }, { chest => $crate })))
	{
		is("$answer->{status} $answer->{json}{errors}[0]{code}", '400 TYPE_NOT_ALLOWED', 'nor taken');
	}
	is($v3->linked($sailor, 'chest'), $crate->{id}, 'it is still there');
	is($v2->update($sailor, { name => 'T' })->{status}, 200, 'a write of something else');
	is($v3->linked($sailor, 'chest'), $crate->{id}, 'leaves it there');
};

subtest 'headers' => sub {
	for my $version (1 .. 3)
	{
		for my $case (
			[ 200, GET => '/ships' ], [ 200, GET => $v3->path($ship) ], [ 404, GET => '/ships/x' ], [ 400, GET => '/ships?x=1' ],
			[ 204, PATCH => $v3->path($sailor, 'relationships', 'ship') ], [ 404, GET => '/nothings' ])
		{
			my ($status, $method, $path) = @$case;
			my $answer = $v{$version}->call($method => $path, $method eq 'PATCH' ? (data => $v3->identifier($ship)) : ());
			my $name = "v$version: $method " . $path =~ s/\Q$ship->{id}\E|\Q$sailor->{id}\E/id/r;

			is($answer->{status}, $status, "$name: status");
			if ($version == 1)
			{
				is($answer->{headers}{sunset}, 'Fri, 01 Jan 2027 00:00:00 GMT', "$name: Sunset");
				ok($answer->{headers}{deprecation}, "$name: Deprecation");
			}
			else
			{
				ok(!exists $answer->{headers}{sunset} && !exists $answer->{headers}{deprecation}, "$name: no such headers");
			}
		}
	}
	my $answer = $v1->batch({ op => 'update', ref => $v1->identifier($ship), data => $v1->identifier($ship) });
	is($answer->{headers}{sunset}, 'Fri, 01 Jan 2027 00:00:00 GMT', 'on batches, too');
};

subtest 'unknown versions' => sub {
	for my $version (qw(v0 v4 v01 v V1 v1.0 v-1 v1x v%31x 1 v99999999999999999999))
	{
		$v3->refused("$version: $_", 404, 'NOT_FOUND', undef, GET => "/api/$version$_")
		  for '/ships', $v3->path($ship), $v3->path($ship, 'crew'), $v3->path($ship, 'relationships', 'crew');
		is($v3->call(POST => "/api/$version/operations", body => '{"atomic:operations":[]}',
				headers => { 'Content-Type' => $EntityApi::Test::Conformance::atomic })->{status}, 404, "$version: operations");
	}
};

done_testing;
