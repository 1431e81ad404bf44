# `decimals: string` in the Service document: values that a double does not
# hold are strings wherever they are told.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $manifests = EntityApi::Test::folder() . '/accounts.json';

sub declare
{
	my (%service) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => \%service },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => undef } } },
		{ kind => 'Entity', metadata => { name => 'Account' }, spec => {
			fields => {
				balance => { type => 'decimal', precision => 30, scale => 4, minimum => -5, default => 1.5 },
				turnover => { type => 'long', maximum => 9007199254740993 },
				small => { type => 'integer' } },
			permissions => { Editor => [qw(create read update delete)] } } } ]);
	close $out or die "$manifests: $!\n";
	$cluster->apply($manifests);
	return;
}

declare(decimals => 'string');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'editor', ['Editor']), '/api/v1');
my $exact = '"12345678901234567890123456.7891"';

# One member of an answer as it is written
sub written
{
	my ($answer, $name) = @_;

	return $answer->{body} =~ /"\Q$name\E":("[^"]*"|[^,}]*)/ ? $1 : undef;
}

sub sent
{
	my ($status, $attributes, $method, $path, $id) = @_;
	my $data = '{"type":"accounts"' . ($id ? qq{,"id":"$id"} : '') . qq{,"attributes":{$attributes}} . '}';

	return $editor->good($status, $method // 'POST', $path // '/accounts', body => qq{{"data":$data}});
}

my $made = sent(201, qq{"balance":$exact,"turnover":"9007199254740993","small":3});
my $id = $made->{json}{data}{id};
for my $answer ($made, $editor->good(200, GET => "/accounts/$id"), $editor->good(200, GET => '/accounts'),
	sent(200, qq{"balance":12345678901234567890123456.7891,"turnover":9007199254740993}, PATCH => "/accounts/$id", $id),
	$editor->good(200, GET => "/accounts?filter=balance==12345678901234567890123456.7891;turnover==9007199254740993&sort=-balance,turnover&page[after]=start"))
{
	is(written($answer, 'balance'), $exact, 'a decimal is a string');
	is(written($answer, 'turnover'), '"9007199254740993"', 'and a long');
	is(written($answer, 'small'), '3', 'what a double holds is a number');
}
my $other = sent(201, '"turnover":null');
is(written($other, 'balance'), '"1.5000"', 'a default');
is(written($other, 'turnover'), 'null', 'and null');
$editor->refused("turnover as $_", 400, 'INVALID_VALUE', [ pointer => '/data/attributes/turnover' ], POST => '/accounts',
	body => qq{{"data":{"type":"accounts","attributes":{"turnover":$_}}}}) for '"x"', '""', '"1.5"', 1.5, '"9007199254740994"', 'true';
my $low = $editor->refused('below the minimum', 400, 'INVALID_VALUE', [ pointer => '/data/attributes/balance' ], POST => '/accounts',
	body => '{"data":{"type":"accounts","attributes":{"balance":"-6"}}}');
is($low->{json}{errors}[0]{detail}, 'The field "balance" must be at least -5.', 'a limit is told as it was declared');
$editor->refused('a small one is no string', 400, 'INVALID_VALUE', [ pointer => '/data/attributes/small' ], POST => '/accounts',
	body => '{"data":{"type":"accounts","attributes":{"small":"3"}}}');

my $atomic = $shim->http(POST => '/api/v1/operations', { token => $shim->user($tenant->{id}, 'atomic', ['Editor'])->{accessToken},
	headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"', Accept => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
	body => qq({"atomic:operations":[{"op":"add","data":{"type":"accounts","attributes":{"balance":$exact}}}]}) });
is($atomic->{status}, 200, 'operations') or diag $atomic->{body};
is(written($atomic, 'balance'), $exact, 'have strings, too');
is($cluster->psql("select changes->'balance' from entityapi.audit where action = 'ENTITY_CREATE' and target_id = '$id'"),
	'[null,12345678901234567890123456.7891]', 'the log has numbers, whatever documents have');

my $schemas = $shim->http(GET => '/api/v1/openapi.json')->{json}{components}{schemas};
is_deeply($schemas->{AccountAttributes}{properties}{$_}{type}, [ 'string', 'null' ], "$_ is described as a string") for qw(balance turnover);
my $create = $schemas->{AccountCreateDocument}{properties}{data}{properties}{attributes}{properties};
is_deeply($create->{balance}{type}, [ 'number', 'string', 'null' ], 'that may be sent as a number');
is_deeply($create->{turnover}{type}, [ 'integer', 'string', 'null' ], 'a long, too');
like('9007199254740993', qr/$create->{turnover}{pattern}/, 'its pattern');
is($schemas->{AccountAttributes}{properties}{small}{type}[0], 'integer', 'the others as before');

declare();
my $answer = $editor->good(200, GET => "/accounts/$id");
is(written($answer, 'balance'), '12345678901234567890123456.7891', 'without it a number');
is(written($answer, 'turnover'), '9007199254740993', 'a long as well');
$editor->refused('that is no string any more', 400, 'INVALID_VALUE', [ pointer => '/data/attributes/turnover' ], POST => '/accounts',
	body => '{"data":{"type":"accounts","attributes":{"turnover":"3"}}}');
is_deeply($shim->http(GET => '/api/v1/openapi.json')->{json}{components}{schemas}{AccountAttributes}{properties}{balance}{type}, [ 'number', 'null' ], 'and described so');

done_testing;
