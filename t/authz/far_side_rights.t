# Who writes a relationship that is kept in the rows of another entity writes
# these, and needs to be allowed to.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/rooms.json';
my %all = (Editor => [qw(create read update delete)]);

sub entity
{
	my ($name, $fields, $helper) = @_;

	return { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name },
		spec => { fields => { name => { type => 'string' }, %$fields }, permissions => { %all, Helper => $helper } } };
}

sub to { my ($target, $relation, %more) = @_; return { type => 'ref', target => $target, relation => $relation, %more } }

open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([
	{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {}, Helper => {} } } },
	{ apiVersion => 'entityapi/v1', kind => 'OneOf', metadata => { name => 'Place' }, spec => { members => [qw(Room Garden)] } },
	entity('Garden', { signs => to('Sign', 'OneToMany', mappedBy => 'place') }, [qw(create read update)]),
	entity('Room', {
			desks => to('Desk', 'OneToMany', mappedBy => 'room'),
			lamp => to('Desk', 'OneToOne', mappedBy => 'lights'),
			plants => to('Plant', 'ManyToMany', mappedBy => 'rooms'),
			signs => to('Sign', 'OneToMany', mappedBy => 'place') },
		[qw(create read update)]),
	entity('Desk', { room => to('Room', 'ManyToOne'), lights => to('Room', 'OneToOne') }, ['read']),
	entity('Plant', { rooms => to('Room', 'ManyToMany') }, ['read']),
	entity('Sign', { place => { type => 'oneof', target => 'Place' } }, ['read']) ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'editor', ['Editor']), '/api/v1');
my $helper = $editor->as($shim->user($tenant, 'helper', ['Helper']));
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

sub made
{
	my ($collection) = @_;
	my $data = $editor->good(201, POST => "/$collection", data => { type => $collection })->{json}{data};

	return { type => $collection, id => $data->{id} };
}

my ($one, $two) = map { made('rooms') } 1 .. 2;

for ([ desks => 'desks' ], [ plants => 'plants' ], [ signs => 'signs' ], [ lamp => 'desks' ])
{
	my ($field, $collection) = @$_;
	my $member = made($collection);
	my $many = $field ne 'lamp';
	my $data = $many ? [$member] : $member;
	my $kept = sub { return $editor->good(200, GET => "/rooms/$one->{id}/relationships/$field")->{json}{data} };

	$editor->good(204, PATCH => "/rooms/$one->{id}/relationships/$field", data => $data);
	for my $method ('PATCH', $many ? qw(POST DELETE) : ())
	{
		$helper->refused("$field: $method, taking", 403, 'FORBIDDEN', undef, $method => "/rooms/$two->{id}/relationships/$field", data => $data);
		$helper->refused("$field: $method, leaving", 403, 'FORBIDDEN', undef, $method => "/rooms/$one->{id}/relationships/$field", data => $many ? [] : undef);
	}
	$helper->refused("$field: creation", 403, 'FORBIDDEN', [ pointer => "/data/relationships/$field" ], POST => '/rooms',
		data => { type => 'rooms', relationships => { $field => { data => $data } } });
	$helper->refused("$field: update", 403, 'FORBIDDEN', [ pointer => "/data/relationships/$field" ], PATCH => "/rooms/$two->{id}",
		data => { %$two, relationships => { $field => { data => $data } } });
	is($helper->call(POST => '/operations', headers => { 'Content-Type' => $atomic, Accept => $atomic },
			body => JSON::PP->new->canonical->encode({ 'atomic:operations' => [ { op => 'update', ref => { %$two, relationship => $field }, data => $data } ] }))->{status},
		403, "$field: an operation");
	is_deeply($kept->(), $data, "$field: is as it was");
	$editor->good(204, PATCH => "/rooms/$two->{id}/relationships/$field", data => $data);
	is_deeply($editor->good(200, GET => "/rooms/$two->{id}/relationships/$field")->{json}{data}, $data, "$field: who may write both may");
}

$helper->good(200, PATCH => "/rooms/$two->{id}", data => { %$two, attributes => { name => 'x' } });
pass('what is the row\'s own stays writable');

done_testing;
