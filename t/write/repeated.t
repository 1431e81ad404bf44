# A change may repeat what nobody can set, as a form does that sends back all it
# has read: it passes where the resource has this value, in any spelling, and is
# refused otherwise; and nobody learns by it what he may not read.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster(conf => ['entityapi.max_linkage = 3']);
my $manifests = EntityApi::Test::folder() . '/items.json';
my $json = JSON::PP->new->canonical->allow_nonref;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my %plain = (type => 'application/vnd.api+json', atomic => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"');

# A table of others is not divided among nodes
my $existing = $cluster->nodes == 1;

$cluster->psql(<<'SQL') if $existing;
	create schema shop;
	alter schema shop owner to entityapi_owner;
	set role entityapi_owner;
	create table shop.bill (tenant_id uuid not null, id uuid not null default gen_random_uuid(), net numeric(12, 2) not null,
		gross numeric(12, 2) generated always as (net * 2) stored, until timestamptz default 'infinity', primary key (tenant_id, id));
	grant usage on schema shop to entityapi_reader;
SQL

sub once { return { writeOnce => $true, @_ } }
sub reference { my ($target, @more) = @_; return once(type => 'ref', target => $target, relation => 'ManyToOne', onDelete => 'setNull', @more) }

sub apply
{
	my (%service) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app', %service } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => undef } qw(Clerk Boss Writer) } } },
		{ kind => 'Policy', metadata => { name => 'Open' }, spec => { expression => q('Boss' in #user.roles or #record.open == true) } },
		{ kind => 'OneOf', metadata => { name => 'Subject' }, spec => { members => [qw(Box Tag)] } },
		map { { kind => 'Entity', metadata => { name => $_->[0] }, spec => { permissions => { map { $_ => [qw(create read update delete)] } qw(Clerk Boss) }, %{ $_->[1] } } } }
		[ User => { accounts => $true, permissions => { Boss => ['read'] } } ],
		[ Box => { plural => 'boxes', policies => { Open => ['read'] }, fields => { open => { type => 'boolean' },
					items => { type => 'ref', target => 'Item', relation => 'OneToMany', mappedBy => 'box' } } } ],
		[ Tag => { fields => { name => { type => 'string' }, items => { type => 'ref', target => 'Item', relation => 'ManyToMany', mappedBy => 'tags' } } } ],
		($existing ? [ Bill => { table => 'shop.bill', permissions => { Boss => [qw(create read update)] }, fields => { net => { type => 'decimal', precision => 12, scale => 2, required => $true },
					gross => { type => 'decimal', precision => 12, scale => 2, readOnly => $true }, until => { type => 'datetime', readOnly => $true } } } ] : ()),
		[ Version => { optimisticLocking => $true, system => ['updatedAt'], fields => { name => { type => 'string' }, code => once(type => 'string') } } ],
		[ Item => { system => [qw(createdAt updatedAt createdBy updatedBy)],
				permissions => { (map { $_ => [qw(create read update delete)] } qw(Clerk Boss)), Writer => ['update'] },
				fields => { name => { type => 'string' }, moment => { type => 'datetime' }, price => { type => 'decimal', precision => 6, scale => 2, readOnly => $true, default => 1.5 },
					big => once(type => 'long'), small => once(type => 'integer'), at => once(type => 'datetime'), day => once(type => 'date'),
					code => once(type => 'uuid'), flag => once(type => 'boolean'), essay => once(type => 'text'), extra => once(type => 'json'), none => once(type => 'string'),
					secret => once(type => 'string', readRoles => ['Boss']),
					hush => { type => 'string', readOnly => $true, default => 'quiet', readRoles => ['Boss'], writeRoles => ['Clerk'] },
					box => reference('Box'), next => reference('Item'), subject => once(type => 'oneof', target => 'Subject', onDelete => 'setNull'),
					tags => once(type => 'ref', target => 'Tag', relation => 'ManyToMany') } } ] ]);
	close $out or die "$manifests: $!\n";
	$cluster->apply($manifests);
	return;
}

apply();
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my ($clerk, $boss, $writer) = map { EntityApi::Test::Cases->new($shim, $shim->user($tenant, lc $_, [$_]), '/api/v1') } qw(Clerk Boss Writer);

sub made
{
	my ($type, $attributes, %links) = @_;
	my $data = $boss->good(201, POST => "/$type", data => { type => $type, attributes => $attributes,
			relationships => { map { $_ => { data => $links{$_} } } keys %links } })->{json}{data};

	return { type => $type, id => $data->{id} };
}

my ($seen, $hidden) = map { made(boxes => { open => $_ }) } $true, $false;
my @tags = map { made(tags => { name => "t$_" }) } 1 .. 5;
my $values = { name => 'i', big => 9007199254740993, small => 7, at => '2024-06-01T12:00:00.250Z', day => '2024-02-29', code => '0190d3a8-1111-7abc-8def-0123456789ab',
	flag => $true, essay => "a\x{e4}b", extra => { a => [ 1, 'x' ], b => undef }, secret => 'know', none => undef };
my $item = made(items => $values, box => $seen, subject => $tags[0], tags => [ @tags[ 0 .. 2 ] ]);

sub get { my ($who, $thing) = @_; return $who->good(200, GET => "/$thing->{type}/$thing->{id}")->{json}{data} }

# Members of attributes, or of relationships, as JSON
sub body
{
	my ($thing, $text) = @_;
	return sprintf '{"data":{"type":"%s","id":"%s",%s}}', $thing->{type}, $thing->{id}, $text;
}

sub sent
{
	my ($who, $thing, $text, %headers) = @_;
	return $who->call(PATCH => "/$thing->{type}/$thing->{id}", body => body($thing, $text), headers => \%headers);
}

sub attribute { my ($name, $value) = @_; return qq("attributes":{"$name":$value}) }
sub link_to { my ($name, $value) = @_; return qq("relationships":{"$name":{"data":) . $json->encode($value) . '}}' }

sub passes
{
	my ($name, @sent) = @_;
	my $answer = sent(@sent);

	is($answer->{status}, 200, $name) or diag $answer->{body};
	return $answer;
}

sub differs
{
	my ($name, $who, $thing, $text, $pointer) = @_;

	return $who->refused($name, 400, 'READ_ONLY', [ pointer => $pointer ],
		PATCH => "/$thing->{type}/$thing->{id}", body => body($thing, $text));
}

# -------- all that was read --------

for my $who ($boss, $clerk)
{
	my $data = get($who, $item);

	$data->{attributes}{name} .= 'x';
	my $answer = $who->call(PATCH => "/items/$item->{id}", data => $data);
	is($answer->{status}, 200, 'a whole resource is sent back') or diag $answer->{body};
	is($answer->{json}{data}{attributes}{name}, $data->{attributes}{name}, 'and changed');
}
my ($record) = @{ $boss->as($shim->superadmin)->good(200, GET => "/manage/audit?filter=targetId==$item->{id}&page[size]=1")->{json}{data} };
is_deeply($record->{changes}, { name => [ 'ix', 'ixx' ] }, 'the log has what is new');
like(passes('nothing that is new', $clerk, $item, attribute(price => '1.5'))->{json}{data}{attributes}{name}, qr/^ixx$/, 'changes nothing');

# -------- each type --------

for my $case (
	[ price => [qw(1.5 1.50 1.5000 15e-1 "1.5" "1.50")], [qw(1.51 "1.501" 1 null true "x" [])] ],
	[ big => [qw(9007199254740993)], [qw(9007199254740992 1.5 null "x")] ],
	[ small => [qw(7)], [qw(8 null "7" 1e99)] ],
	[ at => [qw("2024-06-01T12:00:00.25Z" "2024-06-01T12:00:00.250000Z" "2024-06-01T14:00:00.25+02:00" "2024-06-01t12:00:00.25z")],
		[qw("2024-06-01T12:00:00Z" "2024-06-01T12:00:00.25+02:00" "2024-06-01" null 5)] ],
	[ day => [qw("2024-02-29")], [qw("2024-03-01" "2024-02-30" null)] ],
	[ code => [ map { qq("$_") } $values->{code}, uc $values->{code} ], [qw("0190d3a8-1111-7abc-8def-0123456789ac" "x" null)] ],
	[ flag => [qw(true)], [qw(false null "true" 1)] ],
	[ essay => [ '"a\u00e4b"' ], [ '"a\u00e4"', '"A\u00e4b"', '"a\u00e4b "', 'null' ] ],
	[ extra => [ '{"a":[1,"x"],"b":null}', ' { "b" : null, "a" : [ 1.0, "x" ] } ' ], [ '{"a":[1,"x"]}', '{"a":["x",1],"b":null}', '[]', 'null', '"x"' ] ],
	[ none => [qw(null)], [qw("" "x" 1)] ])
{
	my ($name, $same, $other) = @$case;

	passes("$name is $_", $clerk, $item, attribute($name, $_)) for @$same;
	differs("$name is not $_", $clerk, $item, attribute($name, $_), "/data/attributes/$name") for @$other;
}
my $now = get($clerk, $item)->{attributes};
differs("$_ is another", $clerk, $item, attribute($_, '"2020-01-01T00:00:00Z"'), "/data/attributes/$_") for qw(createdAt updatedAt);
passes('createdAt at another offset', $clerk, $item, attribute(createdAt => '"' . ($now->{createdAt} =~ s/Z$/-00:00/r) . '"'));
differs('updatedAt of before', $clerk, $item, attribute(updatedAt => qq("$now->{updatedAt}")), '/data/attributes/updatedAt');
$cluster->psql("update app.item set extra = 'null' where id = '$item->{id}'");
passes('a null of JSON is shown as null', $clerk, $item, attribute(extra => 'null'));

my $many = differs('two at once', $clerk, $item, '"attributes":{"price":2,"flag":true,"big":1,"name":"never"}', '/data/attributes/price');
is(join(' ', map { $_->{source}{pointer} } @{ $many->{json}{errors} }), '/data/attributes/price /data/attributes/big', 'are told together');
is(get($clerk, $item)->{attributes}{name}, 'ixx', 'and nothing is done');

# -------- relationships --------

my ($author, $nobody) = map { { type => 'users', id => $_ } } get($boss, $item)->{relationships}{createdBy}{data}{id}, '00000000-0000-4000-8000-000000000000';
passes('the author', $boss, $item, link_to(createdBy => $author));
differs("not the author: $_->[0]", $boss, $item, link_to(createdBy => $_->[1]), '/data/relationships/createdBy')
  for [ null => undef ], [ nobody => $nobody ], [ list => [$author] ], [ type => { %$author, type => 'boxes' } ], [ id => { %$author, id => 'x' } ], [ text => 'x' ];
passes('to one', $clerk, $item, link_to(box => $seen));
differs('another one', $clerk, $item, link_to(box => $_), '/data/relationships/box') for undef, $hidden;
passes('one of several', $clerk, $item, link_to(subject => $tags[0]));
differs('of another type', $clerk, $item, link_to(subject => { %{ $tags[0] }, type => 'boxes' }), '/data/relationships/subject');
passes('none', $clerk, $item, link_to(next => undef));
passes('many, in any order', $clerk, $item, link_to(tags => [ @tags[ 2, 0, 1, 0 ] ]));
differs('less, more, others', $clerk, $item, link_to(tags => $_), '/data/relationships/tags')
  for [], [ @tags[ 0, 1 ] ], [ @tags[ 0 .. 3 ] ], [ @tags[ 0, 1, 3 ] ], undef, [ undef ], { type => 'tags' };
passes('of the other side', $clerk, $seen, link_to(items => [$item]));
differs('another list there', $clerk, $seen, link_to(items => []), '/data/relationships/items');
passes('a mirrored list', $clerk, $tags[0], link_to(items => [$item]));
differs('another mirrored list', $clerk, $tags[0], link_to(items => []), '/data/relationships/items');
my $long = made(items => { name => 'long' }, tags => \@tags);
passes('more than a document shows', $clerk, $long, link_to(tags => [ reverse @tags ]));
differs('and others', $clerk, $long, link_to(tags => [ @tags[ 0 .. 3 ], { %{ $tags[0] }, id => $nobody->{id} } ]), '/data/relationships/tags');
differs('without its data', $clerk, $item, '"relationships":{"box":{"links":{}}}', '/data/relationships/box');
$clerk->refused('at its own address', 400, 'READ_ONLY', undef, PATCH => "/items/$item->{id}/relationships/box", data => $seen);

# -------- what a caller may not read --------

my $inside = made(items => { name => 'in', secret => 'know' }, box => $hidden);
my $without = made(items => { name => 'out', secret => 'know' });

sub refusal
{
	my ($who, $thing, $text) = @_;
	my $answer = sent($who, $thing, $text);

	return $json->encode([ $answer->{status}, [ map { delete $_->{id}; $_ } @{ $answer->{json}{errors} // [] } ] ]);
}

passes('a hidden target is null, as it is shown', $clerk, $inside, link_to(box => undef));
passes('as none is', $clerk, $without, link_to(box => undef));
is(refusal($clerk, $inside, link_to(box => $hidden)), refusal($clerk, $without, link_to(box => $hidden)), 'its id is as good as any other');
is(refusal($clerk, $inside, link_to(box => $hidden)), refusal($clerk, $inside, link_to(box => { %$hidden, id => $nobody->{id} })), 'of whatever there is not');
for my $case ([ secret => 'know', 'UNKNOWN_FIELD' ], [ hush => 'quiet', 'READ_ONLY' ])
{
	my ($name, $value, $code) = @$case;
	my ($same, $other) = map { refusal($clerk, $item, attribute($name, qq("$_"))) } $value, 'guess';

	is($same, $other, "$name: the value makes no difference");
	like($same, qr/^\[400,.*"$code"/, 'it is refused');
	passes("$name: to who reads it", $boss, $item, attribute($name, qq("$value")));
}
my ($same, $other) = map { refusal($writer, $item, attribute(price => $_)) } '1.50', '2';
is($same, $other, 'who writes and does not read learns nothing');
like($same, qr/^\[400,.*"READ_ONLY"/, 'and is refused');
my ($absent, $foreign) = map { refusal($clerk, $_, attribute(open => 'true') . ',' . link_to(items => [$item])) } { type => 'boxes', id => $nobody->{id} }, $hidden;
is($absent, $foreign, 'a hidden resource is none');
like($absent, qr/^\[404/, 'whatever is repeated');

# -------- creation --------

$clerk->refused("creation: $_", 400, 'READ_ONLY', [ pointer => "/data/attributes/$_" ], POST => '/items', data => { type => 'items', attributes => { $_ => 1.5 } }) for qw(price createdAt);
$boss->refused('creation: an author', 400, 'READ_ONLY', [ pointer => '/data/relationships/createdBy' ],
	POST => '/items', data => { type => 'items', relationships => { createdBy => { data => $author } } });

# -------- the description --------

my $described = $shim->http(GET => '/api/v1/openapi.json')->{json}{paths};
for my $case ([ 'items/{id}/relationships/createdBy' => 'get' ], [ 'items/{id}/relationships/box' => 'get' ], [ 'items/{id}/relationships/tags' => 'get' ],
	[ 'boxes/{id}/relationships/items' => 'get' ], [ 'items/{id}' => 'delete get patch' ])
{
	my ($path, $methods) = @$case;

	is(join(' ', grep { /^(?:get|post|patch|delete)$/ } sort keys %{ $described->{"/api/v1/$path"} }), $methods, "methods of $path");
}
ok($described->{'/api/v1/items/{id}/history'} && !$described->{'/api/v1/users/{id}/history'}, 'accounts have no history');
$boss->refused("$_ to tags", 400, 'READ_ONLY', undef, $_ => "/items/$item->{id}/relationships/tags", data => [ { type => 'tags', id => $nobody->{id} } ]) for qw(POST PATCH DELETE);

# -------- versions, operations --------

my $version = made(versions => { name => 'v', code => 'c' });
my $stale = get($boss, $version);
for my $round (1, 2)
{
	my $data = get($boss, $version);
	$data->{attributes}{name} = "round $round";
	is($boss->call(PATCH => "/versions/$version->{id}", data => $data)->{status}, 200, 'meta.version comes along');
}
$boss->refused('what has changed since is told by the version', 412, undef, undef, PATCH => "/versions/$version->{id}", data => $stale);
is(sent($boss, $version, attribute(code => '"c"'), 'If-Match' => '*')->{status}, 200, 'without one');

sub operations
{
	my ($who, @operations) = @_;
	return $who->call(POST => '/operations', body => $json->encode({ 'atomic:operations' => \@operations }), headers => { 'Content-Type' => $plain{atomic}, Accept => $plain{atomic} });
}

my $whole = get($clerk, $item);
delete $whole->{links};
is(operations($clerk, { op => 'update', data => $whole })->{status}, 200, 'an operation that sends all of it');
my $failed = operations($clerk, { op => 'update', data => { %$item, attributes => { name => 'y' } } }, { op => 'update', data => { %$item, attributes => { price => 2 } } });
is($failed->{json}{errors}[0]{source}{pointer}, '/atomic:operations/1/data/attributes/price', 'the operation at fault');
is(operations($clerk, { op => 'add', data => { type => 'items', lid => 'a', attributes => { name => 'a' } } },
		{ op => 'add', data => { type => 'items', lid => 'b', attributes => { name => 'b' }, relationships => { next => { data => { type => 'items', lid => 'a' } } } } },
		{ op => 'update', data => { type => 'items', lid => 'b', relationships => { next => { data => { type => 'items', lid => 'a' } } } } })->{status}, 200, 'by local ids');
$failed = operations($clerk, { op => 'add', data => { type => 'items', lid => 'a', attributes => { name => 'a' } } },
	{ op => 'update', data => { type => 'items', lid => 'a', relationships => { next => { data => { type => 'items', lid => 'none' } } } } });
is($failed->{json}{errors}[0]{code}, 'READ_ONLY', 'one that there is not is another value');

# -------- what the API does not store --------

$cluster->psql("update app.item set at = 'infinity' where id = '$item->{id}'");
passes('what only the table can store', $clerk, $item, attribute(at => '"infinity"'));
differs('and other than that', $clerk, $item, attribute(at => qq("$_")), '/data/attributes/at') for '-infinity', $values->{at};
$cluster->psql("update app.item set moment = 'infinity' where id = '$item->{id}'");
passes('nor where it may be set', $clerk, $item, attribute(moment => '"infinity"'));
($same, $other) = map { refusal($writer, $item, attribute(moment => qq("$_"))) } 'infinity', '-infinity';
is($same, $other, 'and nobody learns of it who does not read');
if ($existing)
{
	my $bill = made(bills => { net => 2 });
	passes('a generated column', $boss, $bill, '"attributes":{"net":3,"gross":4}');
	differs('as it will be', $boss, $bill, '"attributes":{"net":5,"gross":10}', '/data/attributes/gross');
	passes('infinity of a default', $boss, $bill, attribute(until => '"infinity"'));
	differs('and other than that', $boss, $bill, attribute(until => qq("$_")), '/data/attributes/until') for '-infinity', '2024-01-01T00:00:00Z';
}

# -------- what it costs --------

sub cost
{
	my ($text) = @_;
	my $body = body($item, $text) =~ s/'/''/gr;
	my $headers = $json->encode({ authorization => "Bearer $clerk->{token}{accessToken}", 'content-type' => $plain{type} });
	my $one = "select entityapi.statement_count() is null;\nselect status from entityapi.handle('PATCH', '/api/v1/items/$item->{id}', '$headers', convert_to('$body', 'UTF8'), null);\n"
	  . "select 'cost ' || entityapi.statement_count();\n";

	return ($cluster->psql($one x 2) =~ /^cost (\d+)$/mg)[-1];
}

my ($bare, $repeats) = (cost(attribute(name => '"n"')), cost('"attributes":{"name":"n","price":1.5,"big":9007199254740993}'));
is($repeats, $bare + 1, "a statement for what is repeated ($bare without)");

# -------- decimals as strings --------

apply(decimals => 'string');
my $data = get($clerk, $item);
is($data->{attributes}{price}, '1.50', 'a decimal is a string');
is($clerk->call(PATCH => "/items/$item->{id}", data => $data)->{status}, 200, 'and goes back as one');
passes("price is $_", $clerk, $item, attribute(price => $_)) for qw("1.5" 1.50);
passes("big is $_", $clerk, $item, attribute(big => $_)) for qw("9007199254740993" 9007199254740993);
differs("price is not $_", $clerk, $item, attribute(price => $_), '/data/attributes/price') for qw("1.51" "" "NaN");

is($shim->stop, 0, 'ends with 0');
done_testing;
