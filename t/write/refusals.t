# Entity requests that must be refused, and how: routes, methods, credentials,
# media types, documents and values.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my %user =
  map { $_ => $shim->user($tenant->{id}, lc $_, [$_]) } qw(Editor Reader Helper);
my $editor = EntityApi::Test::Cases->new($shim, $user{Editor}, '/api/v1');
my $reader = $editor->as($user{Reader});
my $helper = $editor->as($user{Helper});
my $nobody = '01980000-0000-7000-8000-000000000000';
my $type = 'application/vnd.api+json';

sub made
{
	my ($collection, $attributes, $relationships) = @_;

	return $editor->good(201, POST => "/$collection",
		data => {
			type       => lc $collection,
			attributes => $attributes,
			$relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to
{
	my ($data) = @_;

	return { data => { type => $data->{type}, id => $data->{id} } };
}

my $ann = made(people => { name => 'Ann' });
my $bob = made(people => { name => 'Bob' }, { boss => to($ann) });
my $book = made(books => { title => 'A book', pages => 7 });
my $tag = made(tags => { word => 'one' });
my $box = made(boxes => { label => 'Box' }, { owner => to($ann) });
my $specimen = made(specimens => { name => 'first' });

subtest 'routes' => sub {
	for my $case (
		[ 'unknown collection', GET => '/nothings' ],
		[ 'singular', GET => '/person' ],
		[ 'another spelling', GET => '/PEOPLE' ],
		[ 'undeclared version', GET => '/api/v2/people' ],
		[ 'no version', GET => '/api/people' ],
		[ 'version with a zero', GET => '/api/v01/people' ],
		[ 'trailing slash', GET => '/people/' ],
		[ 'trailing slash of a resource', GET => "/people/$ann->{id}/" ],
		[ 'empty segment', GET => "/people//$ann->{id}" ],
		[ 'no route at all', GET => '/api/v1' ],
		[ 'unknown id', GET => "/people/$nobody" ],
		[ 'id of something else', GET => "/people/$box->{id}" ],
		[ 'id that is no uuid', GET => '/people/1' ],
		[ 'negative id', GET => '/people/-1' ],
		[ 'id in braces', GET => "/people/%7B$ann->{id}%7D" ],
		[ 'id as urn', GET => "/people/urn:uuid:$ann->{id}" ],
		[ 'id without hyphens', GET => '/people/' . $ann->{id} =~ tr/-//dr ],
		[ 'path parameter', GET => "/people;a=b/$ann->{id}" ],
		[ 'PATCH of an id that is no uuid', PATCH => '/people/1', data => { type => 'people', id => '1' } ],
		[ 'DELETE of nobody', DELETE => "/people/$nobody" ])
	{
		my ($name, $method, $target, @options) = @$case;
		my $answer = $editor->refused($name, 404, 'NOT_FOUND', undef, $method, $target, @options);

		ok(!exists $answer->{headers}{etag}, "$name: no tag");
		is($answer->{headers}{'content-type'}, $type, "$name: content type");
	}
	is($editor->good(200, GET => '/people/' . uc $ann->{id})->{json}{data}{id},
		$ann->{id}, 'an id in upper case');
	is($editor->good(200, GET => '/%70eople')->{json}{links}{self}, '/api/v1/people', 'a path is decoded');

	for my $segment (qw(%00 a%2Fb a%5Cb %zz %2 %C3%28 %FF %C0%80 %ED%A0%80))
	{
		$editor->refused("path with $segment", 400, undef, undef, GET => "/people/$segment");
	}
};

subtest 'methods' => sub {
	for my $case (
		[ '/people', [qw(PUT PATCH DELETE)], [qw(GET HEAD POST)] ],
		[ "/people/$ann->{id}", [qw(PUT POST)], [qw(DELETE GET HEAD PATCH)] ])
	{
		my ($target, $methods, $allowed) = @$case;

		for my $method (@$methods)
		{
			my $answer = $editor->refused("$method $target", 405, 'METHOD_NOT_ALLOWED', undef,
				$method, $target, json => {});
			is_deeply([ sort split /,\s*/, $answer->{headers}{allow} // '' ], $allowed, 'Allow');
		}
	}
	for my $target ("/people/$ann->{id}", '/people', "/people/$nobody")
	{
		my $get = $editor->call(GET => $target);
		my $head = $editor->call(HEAD => $target);

		is($head->{status}, $get->{status}, "HEAD $target: status");
		is($head->{body}, '', 'no body');
		is($head->{headers}{$_}, $get->{headers}{$_}, $_)
		  for qw(content-type cache-control vary x-content-type-options);
	}
};

subtest 'headers' => sub {
	for my $target ('/people', "/people/$ann->{id}", "/people/$nobody", '/nothings')
	{
		my $answer = $editor->call(GET => $target, headers => { 'X-Request-Id' => 'my.id_1-A' });

		is($answer->{headers}{'x-request-id'}, 'my.id_1-A', "$target: X-Request-Id");
		is($answer->{headers}{'x-content-type-options'}, 'nosniff', 'nosniff');
		is($answer->{headers}{'cache-control'}, 'private, no-cache', 'Cache-Control');
		is($answer->{headers}{vary}, 'Accept, Authorization, X-API-Key', 'Vary');
		is($answer->{headers}{'content-type'}, $type, 'Content-Type');
	}
	for my $id ('a' x 65, 'a b', 'a/b', '"')
	{
		like($editor->call(GET => '/people', headers => { 'X-Request-Id' => $id })
			  ->{headers}{'x-request-id'},
			qr/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'an id that is none is replaced');
	}
};

# What is wrong in several ways is answered for the first of them.
subtest 'order of checks' => sub {
	my @plain = (plain => 1);

	$editor->refused('route before credential', 404, 'NOT_FOUND', undef, GET => '/nothings', @plain);
	$editor->refused('method before credential', 405, undef, undef, PUT => '/people', @plain);
	for my $case (
		[ 'none', {}, qr/^Bearer realm="entityapi"$/ ],
		[ 'rejected', { Authorization => 'Bearer rubbish' }, qr/^Bearer realm="entityapi", error="invalid_token"/ ],
		[ 'of another scheme', { Authorization => 'Basic YTpi' }, qr/^Bearer realm="entityapi"/ ])
	{
		my ($name, $headers, $expected) = @$case;
		my $answer = $editor->refused("credential: $name", 401, undef, undef,
			POST => '/people?nothing=1', @plain, body => '{', headers => { %$headers, 'Content-Type' => 'text/plain' });
		like($answer->{headers}{'www-authenticate'}, $expected, 'WWW-Authenticate');
	}
	$editor->refused('two credentials', 400, 'TWO_CREDENTIALS', undef, GET => '/people',
		headers => { 'X-API-Key' => 'eap_x' });
	$reader->refused('authority before media type', 403, 'FORBIDDEN', undef,
		POST => '/people', body => '{', headers => { 'Content-Type' => 'text/plain' });
	$reader->refused('authority before the object', 403, 'FORBIDDEN', undef, DELETE => "/people/$nobody");
	$reader->refused('authority to read', 403, 'FORBIDDEN', undef, GET => '/vaults');
	$reader->refused('and to read one', 403, 'FORBIDDEN', undef, GET => "/vaults/$nobody");
	$editor->refused('media type before syntax', 415, undef, undef,
		POST => '/people?nothing=1', body => '{', headers => { 'Content-Type' => 'text/plain' });
	$editor->refused('syntax before the object', 400, undef, undef,
		PATCH => "/people/$nobody", body => '{');
	$editor->refused('unknown parameter before the object', 400, 'UNKNOWN_PARAMETER', undef,
		GET => "/people/$nobody?nothing=1");
	$editor->refused('conflict with the URL before the object', 409, 'ID_CONFLICT', [ pointer => '/data/id' ],
		PATCH => "/people/$nobody", data => { type => 'people', id => $ann->{id} });
	$editor->refused('the object before the precondition', 404, undef, undef,
		PATCH => "/boxes/$nobody", data => { type => 'boxes', id => $nobody }, headers => { 'If-Match' => '"5"' });
	$editor->refused('the precondition before validation', 412, undef, undef,
		PATCH   => "/boxes/$box->{id}",
		data    => { type => 'boxes', id => $box->{id}, relationships => { owner => to({ type => 'people', id => $nobody }) } },
		headers => { 'If-Match' => '"5"' });
	$editor->refused('nobody writes what is global', 403, 'FORBIDDEN', undef,
		POST => '/countries', data => { type => 'countries', attributes => { code => 'AT' } });
	is($reader->good(200, GET => '/countries')->{json}{meta}{pagination}{totalRecords}, 0, 'but all read it');
};

subtest 'content type' => sub {
	my $body = '{"data":{"type":"tags","attributes":{"word":"WORD"}}}';
	my $n = 0;

	for my $case (
		[ 201, $type ],
		[ 201, 'Application/VND.API+JSON' ],
		[ 201, "$type;profile=\"http://example.com/any\"" ],
		[ 201, "$type ; profile=\"http://example.com/a http://example.com/b\"" ],
		[ 201, 'application/json' ],
		[ 415, 'text/plain' ],
		[ 415, 'application/x-www-form-urlencoded' ],
		[ 415, "$type; charset=utf-8" ],
		[ 415, "$type;charset=utf-16" ],
		[ 415, "$type;x=1" ],
		[ 415, "$type;ext=\"http://example.com/unknown\"" ],
		[ 415, "$type;ext=\"https://jsonapi.org/ext/atomic\"" ],
		[ 415, "$type;profile=\"x\";charset=utf-8" ],
		[ 415, "$type, application/json" ],
		[ 415, "$type;" . 'x' ],
		[ 415, '' ],
		[ 415, 'rubbish' ])
	{
		my ($status, $content_type) = @$case;
		my @request = (POST => '/tags', body => $body =~ s/WORD/'type' . $n++/er,
			headers => { 'Content-Type' => $content_type });

		if ($status == 201) { is($editor->call(@request)->{status}, 201, $content_type) }
		else
		{
			$editor->refused($content_type, 415, 'UNSUPPORTED_MEDIA_TYPE',
				[ header => 'Content-Type' ], @request);
		}
	}
	my $answer = $shim->raw("POST /api/v1/tags HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		  . "Authorization: Bearer $user{Editor}{accessToken}\r\nContent-Length: 2\r\n\r\n{}");
	like($answer, qr{^HTTP/1\.1 415 }, 'none at all');
};

subtest 'accept' => sub {
	for my $case (
		[ 200, '*/*' ], [ 200, 'application/*' ], [ 200, $type ], [ 200, uc $type ],
		[ 200, "$type;q=0.5" ], [ 200, "text/html, $type" ],
		[ 200, "$type;charset=utf-8, $type" ],
		[ 200, "$type;profile=\"http://example.com/any\"" ],
		[ 200, "$type;ext=\"http://example.com/unknown\", $type" ],
		[ 200, 'text/html;q=0.9, */*;q=0.1' ],
		[ 406, 'text/html' ], [ 406, 'application/xml, text/plain' ],
		[ 406, "$type;charset=utf-8" ], [ 406, "$type;x=1, $type;y=2" ],
		[ 406, "$type;ext=\"http://example.com/unknown\"" ],
		[ 406, "$type;q=0" ])
	{
		my ($status, $accept) = @$case;
		my @request = (GET => '/people', headers => { Accept => $accept });

		if ($status == 200) { is($editor->call(@request)->{status}, 200, $accept) }
		else
		{
			$editor->refused($accept, 406, 'NOT_ACCEPTABLE', [ header => 'Accept' ], @request);
		}
	}
};

subtest 'bodies' => sub {
	for my $case (
		[ 'empty', '' ], [ 'white', " \n" ], [ 'broken', '{"data":' ], [ 'trailing garbage', '{"data":{"type":"people"}}x' ],
		[ 'two values', '{}{}' ], [ 'null', 'null' ], [ 'array', '[]' ], [ 'string', '"data"' ], [ 'number', '1' ],
		[ 'no data', '{}' ], [ 'comment', '{/**/}' ], [ 'single quotes', "{'data':1}" ], [ 'trailing comma', '{"data":{},}' ],
		[ 'byte-order mark', "\x{FEFF}{\"data\":{\"type\":\"people\",\"attributes\":{\"name\":\"x\"}}}" ],
		[ 'duplicate key', '{"data":{"type":"people","attributes":{"name":"x","name":"y"}}}' ],
		[ 'duplicate key, escaped', '{"data":{"type":"people","attributes":{"name":"x","n\u0061me":"y"}}}' ],
		[ 'NaN', '{"data":{"type":"people","attributes":{"name":NaN}}}' ],
		[ 'leading zero', '{"data":{"type":"specimens","attributes":{"name":"x","count":01}}}' ],
		[ 'control character', "{\"data\":{\"type\":\"people\",\"attributes\":{\"name\":\"a\tb\"}}}" ],
		[ '\u0000', '{"data":{"type":"people","attributes":{"name":"a\u0000b"}}}' ],
		[ 'lone high surrogate', '{"data":{"type":"people","attributes":{"name":"\ud83d"}}}' ],
		[ 'lone low surrogate', '{"data":{"type":"people","attributes":{"name":"\ude00"}}}' ],
		[ 'bad escape', '{"data":{"type":"people","attributes":{"name":"\x"}}}' ],
		[ 'nested too deep', '{"data":{"type":"people","attributes":{"name":' . '[' x 70 . ']' x 70 . '}}}' ],
		[ 'nested much too deep', '[' x 50_000 ],
		[ 'objects much too deep', '{"a":' x 50_000 ])
	{
		my ($name, $body) = @$case;
		my $target = $body =~ /specimens/ ? '/specimens' : '/people';

		$editor->refused($name, 400, undef, undef, POST => $target, body => $body);
	}
	for my $bytes ("\xC3\x28", "\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x00")
	{
		$editor->refused(sprintf('bytes %vx', $bytes), 400, 'MALFORMED_JSON', undef, POST => '/people',
			body => "{\"data\":{\"type\":\"people\",\"attributes\":{\"name\":\"$bytes\"}}}");
	}
	$editor->refused('more than 1 MiB', 413, undef, undef, POST => '/specimens',
		data => { type => 'specimens', attributes => { name => 'x', essay => 'x' x 1_048_576 } });
	is($editor->good(201, POST => '/specimens',
			data => { type => 'specimens', attributes => { name => 'long', essay => 'x' x 1_000_000 } })
		->{json}{data}{attributes}{essay}, 'x' x 1_000_000, 'a little less');
};

subtest 'documents' => sub {
	my @doc = ('INVALID_DOCUMENT');
	my $id = { type => 'people', id => $ann->{id} };

	for my $case (
		[ 400, @doc, '/data', undef ], [ 400, @doc, '/data', [] ], [ 400, @doc, '/data', 'people' ],
		[ 400, @doc, '/data', [ { type => 'boxes' } ] ], [ 400, @doc, '/data', {} ],
		[ 400, @doc, '/data/type', { type => 7 } ], [ 400, @doc, '/data/type', { type => undef } ],
		[ 409, 'TYPE_CONFLICT', '/data/type', { type => 'people' } ],
		[ 409, 'TYPE_CONFLICT', '/data/type', { type => 'nothings' } ],
		[ 409, 'TYPE_CONFLICT', '/data/type', { type => 'Boxes' } ],
		[ 403, 'CLIENT_ID_NOT_ALLOWED', '/data/id', { type => 'boxes', id => $nobody } ],
		[ 403, 'CLIENT_ID_NOT_ALLOWED', '/data/id', { type => 'boxes', id => $box->{id} } ],
		[ 400, @doc, '/data/attributes', { type => 'boxes', attributes => [] } ],
		[ 400, @doc, '/data/attributes', { type => 'boxes', attributes => undef } ],
		[ 400, @doc, '/data/relationships', { type => 'boxes', relationships => 'x' } ],
		[ 400, 'REQUIRED', '/data', { type => 'boxes' } ],
		[ 400, 'REQUIRED', '/data/attributes', { type => 'boxes', attributes => {} } ],
		[ 400, 'REQUIRED', '/data/relationships', { type => 'boxes', attributes => { label => 'x' }, relationships => {} } ],
		[ 400, 'REQUIRED', '/data', { type => 'boxes', attributes => { label => 'x' } } ],
		[ 400, 'REQUIRED', '/data/attributes/label', { type => 'boxes', attributes => { label => undef } } ],
		[ 400, 'UNKNOWN_FIELD', '/data/attributes/nothing', { type => 'boxes', attributes => { nothing => 1 } } ],
		[ 400, 'UNKNOWN_FIELD', '/data/attributes/a~1b~0c', { type => 'boxes', attributes => { 'a/b~c' => 1 } } ],
		[ 400, 'UNKNOWN_FIELD', '/data/attributes/Label', { type => 'boxes', attributes => { Label => 1 } } ],
		[ 400, 'UNKNOWN_FIELD', '/data/attributes/owner', { type => 'boxes', attributes => { owner => $ann->{id} } } ],
		(map { [ 400, 'UNKNOWN_FIELD', "/data/attributes/$_", { type => 'boxes', attributes => { $_ => 1 } } ] }
			qw(id type version tenant tenantId tenant_id owner_id ownerId createdAt created_at updated_at ctid)),
		[ 400, 'UNKNOWN_FIELD', '/data/relationships/nothing', { type => 'boxes', relationships => { nothing => { data => undef } } } ],
		[ 400, 'UNKNOWN_FIELD', '/data/relationships/label', { type => 'boxes', relationships => { label => { data => undef } } } ],
		(map {
				my ($relationship, $pointer, $value, $status, $code) = @$_;
				[ $status // 400, $code // @doc, "/data/relationships/$relationship$pointer",
					{ type => 'boxes', relationships => { $relationship => $value } } ]
			}
			[ keeper => '', undef ], [ keeper => '', [] ], [ keeper => '', 'x' ], [ keeper => '', {} ],
			[ keeper => '', { links => {} } ],
			[ keeper => '/data', { data => [] } ], [ keeper => '/data', { data => [$id] } ],
			[ keeper => '/data', { data => $ann->{id} } ],
			[ keeper => '/data', { data => {} } ],
			[ keeper => '/data', { data => { id => $ann->{id} } } ],
			[ keeper => '/data', { data => { type => 'people' } } ],
			[ keeper => '/data', { data => { type => 'people', id => 1 } } ],
			[ keeper => '/data', { data => { type => 1, id => $ann->{id} } } ],
			[ keeper => '/data/type', { data => { type => 'tags', id => $tag->{id} } }, 400, 'TYPE_NOT_ALLOWED' ],
			[ keeper => '/data/type', { data => { type => 'nothings', id => $tag->{id} } }, 400, 'TYPE_NOT_ALLOWED' ],
			[ keeper => '/data', { data => { type => 'people', id => $nobody } }, 404, 'RELATED_NOT_FOUND' ],
			[ keeper => '/data', { data => { type => 'people', id => $tag->{id} } }, 404, 'RELATED_NOT_FOUND' ],
			[ owner => '', { data => undef }, 400, 'REQUIRED' ],
			[ tags => '/data', { data => undef } ], [ tags => '/data', { data => {} } ],
			[ tags => '/data', { data => { type => 'tags', id => $tag->{id} } } ],
			[ tags => '/data/0', { data => [undef] } ], [ tags => '/data/0', { data => ['x'] } ],
			[ tags => '/data/1', { data => [ { type => 'tags', id => $tag->{id} }, { type => 'tags' } ] } ],
			[ tags => '/data/0/type', { data => [$id] }, 400, 'TYPE_NOT_ALLOWED' ],
			[ tags => '/data', { data => [ { type => 'tags', id => $tag->{id} }, { type => 'tags', id => $nobody } ] }, 404, 'RELATED_NOT_FOUND' ],
			[ content => '/data/type', { data => $id }, 400, 'TYPE_NOT_ALLOWED' ],
			[ content => '/data/type', { data => { type => 'nothings', id => $nobody } }, 400, 'TYPE_NOT_ALLOWED' ],
			[ content => '/data/type', { data => { type => 'content', id => $book->{id} } }, 400, 'TYPE_NOT_ALLOWED' ],
			[ content => '/data', { data => { type => 'toys', id => $book->{id} } }, 404, 'RELATED_NOT_FOUND' ],
			[ content => '/data', { data => [ { type => 'books', id => $book->{id} } ] } ]))
	{
		my ($status, $code, $pointer, $data) = @$case;
		my %whole;

		# Only what the case is about may be wrong with a relationship.
		if (ref $data eq 'HASH' && $data->{relationships} && ref $data->{relationships}
			&& %{ $data->{relationships} })
		{
			$data = {
				%$data,
				attributes    => { label => 'x' },
				relationships => { owner => to($ann), %{ $data->{relationships} } } };
		}
		# A required one that is null: at the relationship or at its data
		$pointer = undef if $pointer =~ m{/owner$} && $status == 400;
		$editor->refused(
			join(' ', $status, $code, $pointer // '-', JSON::PP->new->canonical->allow_nonref->encode($data)),
			$status, $code, defined $pointer ? [ pointer => $pointer ] : undef, POST => '/boxes', data => $data);
	}
	is($editor->good(200, GET => '/boxes')->{json}{meta}{pagination}{totalRecords}, 1, 'nothing was written');

	my $answer = $editor->refused('all faults of a document', 400, undef, undef, POST => '/specimens',
		data => {
			type       => 'specimens',
			attributes => { letters => 'A', colour => 'PINK', grade => 7, big => 'x', flag => 1, nothing => 1 } });
	is_deeply(
		[ sort map { $_->{source}{pointer} } @{ $answer->{json}{errors} } ],
		[ '/data/attributes', map { "/data/attributes/$_" } qw(big colour flag grade letters nothing) ],
		'one error each');
	$answer = $editor->refused('hundreds of faults', 400, 'UNKNOWN_FIELD', undef, POST => '/specimens',
		data => { type => 'specimens', attributes => { map { ("x$_" => 1) } 1 .. 300 } });
	is(scalar @{ $answer->{json}{errors} }, 20, 'twenty are told');

	$answer = $editor->good(201, POST => '/tags',
		json => {
			data => { type => 'tags', attributes => { word => 'ignored' }, meta => { any => 1 }, links => {}, '@x' => 1, other => 1 },
			meta => {}, '@context' => 'x', unknown => [] });
	is($answer->{headers}{location}, $answer->{json}{data}{links}{self}, 'Location');
	is($answer->{headers}{location}, "/api/v1/tags/$answer->{json}{data}{id}", 'of the new resource');
	like($answer->{json}{data}{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/, 'whose id is a UUIDv7');
	is_deeply($answer->{json}{data}{relationships}{boxes}{data}, [], 'and whose relationships are all there');
	is_deeply(
		[ sort keys %{ $box->{relationships} } ], [qw(content keeper owner slips tags vault)],
		'all of them');
};

subtest 'update' => sub {
	my $target = "/boxes/$box->{id}";
	my $patch = sub {
		my ($data) = @_;
		return (PATCH => $target, data => { type => 'boxes', id => $box->{id}, %$data }, headers => { 'If-Match' => '*' });
	};

	for my $case (
		[ 400, 'INVALID_DOCUMENT', '/data', { type => 'boxes' } ],
		[ 400, 'INVALID_DOCUMENT', '/data', { id => $box->{id} } ],
		[ 400, 'INVALID_DOCUMENT', '/data/id', { type => 'boxes', id => 7 } ],
		[ 409, 'ID_CONFLICT', '/data/id', { type => 'boxes', id => $nobody } ],
		[ 409, 'TYPE_CONFLICT', '/data/type', { type => 'people', id => $box->{id} } ],
		[ 400, 'INVALID_DOCUMENT', '/data', [ { type => 'boxes', id => $box->{id} } ] ])
	{
		my ($status, $code, $pointer, $data) = @$case;
		$editor->refused("$code $pointer", $status, $code, [ pointer => $pointer ],
			PATCH => $target, data => $data, headers => { 'If-Match' => '*' });
	}
	$editor->refused('null on a required attribute', 400, 'REQUIRED', [ pointer => '/data/attributes/label' ],
		$patch->({ attributes => { label => undef } }));
	$editor->refused('null on a required relationship', 400, 'REQUIRED', undef,
		$patch->({ relationships => { owner => { data => undef } } }));

	my $data = $editor->good(200, $patch->({
				attributes    => { weight => 1.5 },
				relationships => {
					keeper  => to($bob),
					content => to($book),
					tags    => { data => [ to($tag)->{data}, to($tag)->{data} ] } } }))->{json}{data};
	is($data->{attributes}{label}, 'Box', 'what is not named stays');
	is_deeply($data->{relationships}{tags}{data}, [ to($tag)->{data} ], 'an identifier given twice');
	is_deeply($data->{relationships}{content}{data}, to($book)->{data}, 'a one-of');
	$data = $editor->good(200, $patch->({}))->{json}{data};
	is_deeply($data->{relationships}{keeper}{data}, to($bob)->{data}, 'an empty update keeps relationships');
	is($data->{attributes}{weight}, 1.5, 'and attributes');
	$data = $editor->good(200, $patch->({
				attributes    => { weight => undef },
				relationships => { keeper => { data => undef }, content => { data => undef }, tags => { data => [] } } }))
	  ->{json}{data};
	ok(exists $data->{attributes}{weight} && !defined $data->{attributes}{weight}, 'null clears');
	is_deeply([ map { $data->{relationships}{$_}{data} } qw(keeper content tags) ],
		[ undef, undef, [] ], 'relationships, too');

	my $self = sub {
		my ($relationship, $value) = @_;
		return $editor->good(200, PATCH => "/people/$bob->{id}",
			data => { type => 'people', id => $bob->{id}, relationships => { $relationship => { data => $value } } })
		  ->{json}{data}{relationships};
	};
	is_deeply($self->(boss => to($bob)->{data})->{boss}{data}, to($bob)->{data}, 'the own boss');
	is_deeply($self->(team => [])->{boss}{data}, undef, 'no longer');
	is_deeply($self->(team => [ to($ann)->{data} ])->{team}{data}, [ to($ann)->{data} ], 'the other side');
	is_deeply($editor->good(200, GET => "/people/$ann->{id}")->{json}{data}{relationships}{boss}{data},
		to($bob)->{data}, 'is the same thing');
	$editor->refused('members whose side is required cannot be left out', 400, 'REQUIRED', undef,
		PATCH => "/people/$ann->{id}",
		data  => { type => 'people', id => $ann->{id}, relationships => { boxes => { data => [] } } });

	my $once = made(specimens => { name => 'once', born => 'here', code => 'a' });
	my @once = (PATCH => "/specimens/$once->{id}");
	$editor->refused('written once', 400, 'READ_ONLY', [ pointer => '/data/attributes/born' ],
		@once, data => { type => 'specimens', id => $once->{id}, attributes => { born => 'there' } });
	for my $request ([ POST => '/specimens', type => 'specimens' ],
		[ @once, type => 'specimens', id => $once->{id} ])
	{
		my ($method, $path, @data) = @$request;
		$editor->refused("$method: never written", 400, 'READ_ONLY', [ pointer => '/data/attributes/stamp' ],
			$method => $path, data => { @data, attributes => { name => 'x', stamp => 'mine' } });
		$helper->refused("$method: another's attribute", 403, 'FORBIDDEN', [ pointer => '/data/attributes/rated' ],
			$method => $path, data => { @data, attributes => { name => 'x', rated => 1 } });
		$helper->refused("$method: what cannot be seen is unknown", 400, 'UNKNOWN_FIELD',
			[ pointer => '/data/attributes/secret' ],
			$method => $path, data => { @data, attributes => { name => 'x', secret => 'x' } });
	}
	my $seen = $helper->good(200, GET => "/specimens/$once->{id}")->{json}{data}{attributes};
	ok(!exists $seen->{secret}, 'nor shown');
	is($seen->{stamp}, 'made', 'a default');
	is($seen->{level}, 7, 'of a required one, too');

	made(specimens => { name => 'taken', code => 'taken value' });
	for my $request ([ POST => '/specimens', type => 'specimens' ],
		[ @once, type => 'specimens', id => $once->{id} ])
	{
		my ($method, $path, @data) = @$request;
		my $answer = $editor->refused("$method: taken", 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/code' ],
			$method => $path, data => { @data, attributes => { name => 'x', code => 'taken value' } });
		unlike($answer->{body}, qr/taken value/, 'the value is not told');
	}
	my ($one, $two) = map { made(specimens => { name => $_, code => $_ }) } qw(one two);
	my $swap = sub {
		my @operations = map { { op => 'update', data => { type => 'specimens', id => $_->[0]{id}, attributes => { code => $_->[1] } } } } @_;
		return $editor->call(POST => '/operations', body => JSON::PP->new->canonical->encode({ 'atomic:operations' => \@operations }),
			headers => { map { $_ => "$type;ext=\"https://jsonapi.org/ext/atomic\"" } qw(Content-Type Accept) });
	};
	my $answer = $swap->([ $one, 'two' ], [ $two, 'one' ]);
	is("$answer->{status} $answer->{json}{errors}[0]{source}{pointer}", '409 /atomic:operations/0/data/attributes/code', 'two values swapped: the first that meets a taken one');
	is($swap->([ $one, undef ], [ $two, 'one' ], [ $one, 'two' ])->{status}, 200, 'they are swapped by way of null');
	is(join(' ', map { $editor->good(200, GET => "/specimens/$_->{id}")->{json}{data}{attributes}{code} } $one, $two), 'two one', 'each has that of the other');
	made(lockers => { number => 1 }, { holder => to($ann) });
	$editor->refused('a one-to-one that is taken', 409, 'UNIQUE_VIOLATION', undef, POST => '/lockers',
		data => { type => 'lockers', attributes => { number => 2 }, relationships => { holder => to($ann) } });
};

# JSON in, JSON out; a number is a status, undef the same text.
subtest 'values' => sub {
	for my $case (
		[ name => '""' ], [ name => '"' . 'ü' x 20 . '"' ], [ name => '"' . '😀' x 20 . '"' ],
		[ name => '"' . 'ü' x 21 . '"', 400 ], [ name => '5', 400 ], [ name => 'true', 400 ], [ name => '{}', 400 ],
		[ name => '["a"]', 400 ], [ name => 'null', 400 ],
		[ name => '"a\u00e9\ud83d\ude00"', '"aé😀"' ], [ name => '"\"\\\\/\b\n\t"', '"\"\\\\/\b\n\t"' ],
		[ name => '"\u0001\u001f"' ], [ name => '"e\u0301"', "\"e\x{301}\"" ], [ name => '"  a "' ],
		[ letters => '"ab"' ], [ letters => '"a"', 400 ], [ letters => '"aB"', 400 ], [ letters => '"ab\n"', 400 ],
		[ letters => 'null' ],
		[ colour => '"RED"' ], [ colour => '"red"', 400 ], [ colour => '""', 400 ], [ colour => 'null' ],
		[ count => '0' ], [ count => '-0', '0' ], [ count => '2147483647' ], [ count => '-2147483648' ],
		[ count => '2147483648', 400 ], [ count => '-2147483649', 400 ], [ count => '1.5', 400 ],
		[ count => '"1"', 400 ], [ count => 'true', 400 ], [ count => '1e400', 400 ], [ count => '99999999999999999999', 400 ],
		[ grade => '1' ], [ grade => '6' ], [ grade => '0', 400 ], [ grade => '7', 400 ],
		[ big => '9223372036854775807' ], [ big => '-9223372036854775808' ], [ big => '9007199254740993' ],
		[ big => '9223372036854775808', 400 ], [ big => '-9223372036854775809', 400 ], [ big => '"1"', 400 ], [ big => '0.5', 400 ],
		[ amount => '0', '0.0000' ], [ amount => '0.1', '0.1000' ], [ amount => '999999999999999.9999' ],
		[ amount => '-999999999999999.9999' ], [ amount => '1000000000000000', 400 ], [ amount => '0.00001', 400 ],
		[ amount => '"123456789012345.6789"', '123456789012345.6789' ], [ amount => '"1,5"', 400 ], [ amount => '""', 400 ],
		[ amount => '" 1"', 400 ], [ amount => '"NaN"', 400 ], [ amount => '"Infinity"', 400 ], [ amount => '"0x10"', 400 ],
		[ amount => '"1_000"', 400 ], [ amount => '1e2', '100.0000' ], [ amount => '1e131071', 400 ], [ amount => '1e200000', 400 ],
		[ amount => '1e-200000', 400 ], [ amount => '1.50000', qr/^1\.5000$|^400$/ ], [ amount => 'true', 400 ],
		[ price => '9999.99' ], [ price => '10000', 400 ], [ price => '-10.50' ], [ price => '-10.51', 400 ], [ price => '1.005', 400 ],
		[ exact => '1234567890123456789012345678.0123456789' ], [ exact => '0.1234567890' ],
		[ exact => '12345678901234567890123456789.0', 400 ], [ exact => '9007199254740993.0000000001' ],
		[ flag => 'true' ], [ flag => 'false' ], [ flag => '"true"', 400 ], [ flag => '1', 400 ], [ flag => '0', 400 ], [ flag => 'null' ],
		[ day => '"2024-02-29"' ], [ day => '"2023-02-29"', 400 ], [ day => '"2024-13-01"', 400 ], [ day => '"0001-01-01"' ],
		[ day => '"9999-12-31"' ], [ day => '"2024-2-9"', 400 ], [ day => '"20240229"', 400 ], [ day => '"today"', 400 ],
		[ day => '"infinity"', 400 ], [ day => '"2024-02-29T00:00:00Z"', 400 ], [ day => '20240229', 400 ], [ day => '"29.02.2024"', 400 ],
		[ day => '"2024-02-29 BC"', 400 ],
		[ moment => '"2026-11-20T17:29:00Z"' ], [ moment => '"2026-11-20T17:29:00.123456Z"' ],
		[ moment => '"2026-11-20T17:29:00.120Z"', '"2026-11-20T17:29:00.12Z"' ], [ moment => '"2026-11-20T17:29:00.000Z"', '"2026-11-20T17:29:00Z"' ],
		[ moment => '"2026-11-20T17:29:00+02:00"', '"2026-11-20T15:29:00Z"' ], [ moment => '"2026-01-01T00:30:00+01:00"', '"2025-12-31T23:30:00Z"' ],
		[ moment => '"2026-11-20T17:29:00-11:30"', '"2026-11-21T04:59:00Z"' ], [ moment => '"2026-11-20t17:29:00z"', '"2026-11-20T17:29:00Z"' ],
		[ moment => '"2026-11-20T17:29:00"', 400 ], [ moment => '"2026-11-20"', 400 ], [ moment => '"2026-11-20T24:30:00Z"', 400 ],
		[ moment => '"2026-11-20T17:60:00Z"', 400 ], [ moment => '"2026-02-30T17:00:00Z"', 400 ], [ moment => '"now"', 400 ],
		[ moment => '"infinity"', 400 ], [ moment => '"epoch"', 400 ], [ moment => '1700000000', 400 ], [ moment => '"2026-11-20T17:29:00+25:00"', 400 ],
		[ moment => '"2026-11-20T17:29Z"', qr/^400$|^"2026-11-20T17:29:00Z"$/ ], [ moment => '"2026-11-20T17:29:00Z "', 400 ],
		[ moment => '"2026-11-20T17:29:00 Europe/Vienna"', 400 ],
		[ token => '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"' ],
		[ token => '"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"', '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"' ],
		[ token => '"a0eebc999c0b4ef8bb6d6bb9bd380a11"', 400 ], [ token => '"{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"', 400 ],
		[ token => '"x"', 400 ], [ token => '1', 400 ],
		[ extra => '{"a":[1,2.50,null,true,"\u00fc"],"b":{}}', qr/^\{"a": ?\[1, ?2\.50, ?null, ?true, ?"ü"\], ?"b": ?\{\}\}$/ ],
		[ extra => '[]' ], [ extra => '"text"' ], [ extra => '1' ], [ extra => 'false' ], [ extra => 'null' ],
		[ extra => '"\u0000"', 400 ], [ extra => '{"a":1,"a":2}', 400 ],
		[ essay => '"' . 'x' x 10_000 . '"' ], [ essay => '7', 400 ])
	{
		my ($attribute, $in, $out) = @$case;
		my $name = "$attribute: " . (length $in > 60 ? substr($in, 0, 60) . '...' : $in);
		my $body = sprintf '{"data":{"type":"specimens","attributes":{%s"%s":%s}}}',
		  $attribute eq 'name' ? '' : '"name":"v",', $attribute, $in;

		if (($out // '') eq '400')
		{
			$editor->refused($name, 400, undef,
				$in =~ /\\u0000|"a":1,"a"/ ? undef : [ pointer => "/data/attributes/$attribute" ],
				POST => '/specimens', body => $body);
			next;
		}
		# Two ways to be right
		my $answer = $editor->call(POST => '/specimens?fields[specimens]=' . $attribute,
			body => $body, headers => { 'Content-Type' => $type });
		my $text = $answer->{body};
		utf8::decode($text);
		my ($is) = $answer->{status} == 201
		  ? $text =~ /"attributes":\{"\Q$attribute\E":(.*?)\},"(?:relationships|links)":/ : $answer->{status};
		ref $out ? like($is // $text, $out, $name) : is($is // $text, $out // $in, $name);
	}
};

done_testing;
