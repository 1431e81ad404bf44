# A hook's rejection may name a field: the error points at it, as far as it was
# sent and the caller may know of it.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/rooms.json';
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

# The name of a room says what the hook answers
$cluster->psql(<<'SQL');
	create schema rules;
	grant usage on schema rules to entityapi_owner;
	create function rules.answer(context jsonb) returns jsonb language sql security definer set search_path = pg_catalog as $$
		select case when name like '{%' then name::jsonb end
		from (select coalesce(nullif(context->'after', 'null'), context->'before')->'attributes'->>'name') r (name)
	$$;
SQL
open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Clerk => undef, Boss => undef } } },
	{ kind => 'Hook', metadata => { name => 'Rule' }, spec => { entity => 'Room', phase => 'validate', on => [qw(create update delete)], function => 'rules.answer' } },
	{ kind => 'Entity', metadata => { name => 'Room' }, spec => { permissions => { map { $_ => [qw(create read update delete)] } qw(Clerk Boss) }, fields => {
		name => { type => 'string' }, size => { type => 'integer' }, price => { type => 'integer', readRoles => ['Boss'] },
		next => { type => 'ref', target => 'Room', relation => 'ManyToOne', onDelete => 'setNull' },
		doors => { type => 'ref', target => 'Room', relation => 'ManyToMany' } } } } ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my ($clerk, $boss) = map { EntityApi::Test::Cases->new($shim, $shim->user($tenant, lc $_, [$_]), '/api/v1') } qw(Clerk Boss);
my $json = JSON::PP->new->canonical;

sub rejection { my ($field) = @_; return $json->encode({ reject => 'so it is', field => $field }) }

# The place of the error, undef if it has none
sub place
{
	my ($name, $who, @request) = @_;
	my $answer = $who->call(@request);
	my $error = $answer->{json}{errors}[0];

	is("$answer->{status} $error->{code} $error->{detail}", '400 HOOK_REJECTED Rule hook rejected the request: so it is', $name);
	return $error->{source} && $error->{source}{pointer};
}

sub room { my ($field, %more) = @_; return { type => 'rooms', attributes => { name => rejection($field), %{ $more{attributes} // {} } }, $more{links} ? (relationships => $more{links}) : () } }

is(place('an attribute', $clerk, POST => '/rooms', data => room(size => attributes => { size => 1 })), '/data/attributes/size', 'it is pointed at');
is(place('a relationship', $clerk, POST => '/rooms', data => room(next => links => { next => { data => undef } })), '/data/relationships/next', 'it is pointed at');
is(place('of many', $clerk, POST => '/rooms', data => room(doors => links => { doors => { data => [] } })), '/data/relationships/doors', 'it is pointed at');
is(place('an attribute that was not sent', $clerk, POST => '/rooms', data => room('size')), '/data/attributes', 'the nearest that was');
is(place('a relationship that was not sent', $clerk, POST => '/rooms', data => room('next')), '/data', 'the nearest that was');
is(place('what the caller may not know of', $clerk, POST => '/rooms', data => room('price')), undef, 'nothing is pointed at');
is(place('what another may', $boss, POST => '/rooms', data => room('price')), '/data/attributes', 'the nearest that was sent');

my %room = map { $_ => $clerk->good(201, POST => '/rooms', data => { type => 'rooms', attributes => { name => $_ } })->{json}{data}{id} } qw(size next doors);
for my $name (sort keys %room)
{
	my $rejection = rejection($name) =~ s/'/''/gr;
	$cluster->psql("update app.room set name = '$rejection' where id = '$room{$name}'");
}
is(place('a change', $clerk, PATCH => "/rooms/$room{size}", data => { type => 'rooms', id => $room{size}, attributes => { size => 2 } }), '/data/attributes/size', 'it is pointed at');
is(place('a deletion', $clerk, DELETE => "/rooms/$room{size}"), undef, 'brings no document');
is(place('a relationship at its address', $clerk, PATCH => "/rooms/$room{next}/relationships/next", data => undef), '/data', 'it is the document');
is(place('many at theirs', $clerk, POST => "/rooms/$room{doors}/relationships/doors", data => []), '/data', 'it is the document');
is(place('another one there', $clerk, PATCH => "/rooms/$room{size}/relationships/next", data => undef), undef, 'is not in the document');

sub operations { return (POST => '/operations', headers => { 'Content-Type' => $atomic, Accept => $atomic }, body => $json->encode({ 'atomic:operations' => \@_ })) }

is(place('an operation', $clerk, operations(
	{ op => 'add', data => { type => 'rooms', attributes => { name => 'plain' } } }, { op => 'add', data => room(size => attributes => { size => 1 }) })),
	'/atomic:operations/1/data/attributes/size', 'its field');
is(place('an operation on a relationship', $clerk, operations({ op => 'update', ref => { type => 'rooms', id => $room{next}, relationship => 'next' }, data => undef })),
	'/atomic:operations/0/data', 'its value');
is(place('an operation that removes', $clerk, operations({ op => 'remove', ref => { type => 'rooms', id => $room{size} } })), '/atomic:operations/0', 'the operation');

# -------- answers that no hook may give --------

for my $answer ('{"field": "size"}', '{"reject": "x", "field": 1}', '{"reject": "x", "field": null}', '{"reject": "x", "field": "nothing"}',
	'{"reject": "x", "field": "size", "more": 1}', '{"reject": 1, "field": "size"}', '{"attributes": {}, "field": "size"}')
{
	$clerk->refused($answer, 500, 'INTERNAL_ERROR', undef, POST => '/rooms', data => { type => 'rooms', attributes => { name => $answer } });
}
is($shim->stop, 0, 'ends with 0');
done_testing;
