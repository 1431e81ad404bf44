# A guard is told of what came before it is checked; numbers that no jsonb holds
# are the caller's fault nevertheless.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;

$cluster->psql(q{create schema hooks; grant usage on schema hooks to entityapi_owner;
	create function hooks.guard(context jsonb) returns jsonb language sql security definer as 'select null::jsonb';
	grant execute on function hooks.guard(jsonb) to entityapi_owner;
	select count(*) from entityapi.apply_manifest('[
	{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "Note"},
		"spec": {"fields": {"a": {"type": "integer"}, "j": {"type": "json"}}, "permissions": {"*": ["create", "read", "update"]}}},
	{"apiVersion": "entityapi/v1", "kind": "Hook", "metadata": {"name": "G"},
		"spec": {"entity": "Note", "phase": "guard", "on": ["create", "update"], "function": "hooks.guard"}}]')});

my $shim = EntityApi::Test->shim($cluster);
my $ann = $shim->user($shim->tenant('acme')->{id}, 'ann', []);

sub ask
{
	my ($method, $target, $body, $type) = @_;

	return $shim->http($method => $target, { token => $ann, body => $body, headers => { 'Content-Type' => $type // 'application/vnd.api+json' } });
}

my $made = ask(POST => '/api/v1/notes', '{"data":{"type":"notes","attributes":{"j":{"n":[1e100]}}}}');
is($made->{status}, 201, 'a large number is fine');
my $id = $made->{json}{data}{id};

for (['j', '1e200000'], ['j', '{"q":[-1e-99999999]}'], ['a', '1e200000'], ['unknown', '1e999999'])
{
	my ($name, $value) = @$_;

	for my $request ([ POST => '/api/v1/notes', '', '/data' ], [ PATCH => "/api/v1/notes/$id", qq{"id":"$id",}, '/data' ])
	{
		my ($method, $target, $identity, $pointer) = @$request;
		my $answer = ask($method, $target, qq({"data":{"type":"notes",$identity"attributes":{"$name":$value}}}));

		is($answer->{status}, 400, "$method $name $value");
		is($answer->{json}{errors}[0]{source}{pointer}, "$pointer/attributes/$name", 'there');
	}
	my $answer = ask(POST => '/api/v1/operations', qq({"atomic:operations":[{"op":"add","data":{"type":"notes","attributes":{"$name":$value}}}]}),
		'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"');
	is($answer->{status}, 400, 'as an operation');
	is($answer->{json}{errors}[0]{source}{pointer}, "/atomic:operations/0/data/attributes/$name", 'there, too');
}

is(ask(POST => '/api/v1/notes', '{"data":{"type":"notes","attributes":{"@x":1e999999}}}')->{status}, 201, 'what is ignored is not told');

done_testing();
