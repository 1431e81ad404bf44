# Media types, methods, paths and parameters, and the form of every document.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $shim = $editor->shim;
my $nobody = $EntityApi::Test::Conformance::nobody;
my $plain = $EntityApi::Test::Conformance::type;
my $atomic = $EntityApi::Test::Conformance::atomic;
my $ann = $editor->made(authors => { name => 'Ann' });
my $work = $editor->made(works => { title => 'Work' }, { author => $ann });

sub asked
{
	my ($method, $target, %headers) = @_;
	my $body = delete $headers{body};

	return $shim->http($method, "/api/v1$target",
		{ token => $editor->{token}, headers => \%headers, defined $body ? (body => $body) : () });
}

my $author = JSON::PP->new->canonical->encode({ data => { type => 'authors', attributes => { name => 'New' } } });

subtest 'Content-Type' => sub {
	for my $case (
		[ 201, $plain ],
		[ 201, uc $plain ],
		[ 201, "  $plain  " ],
		[ 201, "$plain;profile=\"http://example.org/a http://example.org/b\"" ],
		[ 201, "$plain; PROFILE=\"http://example.org/a\"" ],
		[ 415, "$plain;charset=utf-8" ],
		[ 415, "$plain; charset=UTF-8" ],
		[ 415, "$plain;x=1" ],
		[ 415, "$plain;profile=\"http://example.org/a\";x=1" ],
		[ 415, "$plain;q=1" ],
		[ 415, $atomic ],
		[ 415, "$plain;ext=\"\"" ],
		[ 415, "$plain;ext=\"http://example.org/unknown\"" ],
		[ 415, "$plain;EXT=\"http://example.org/unknown\"" ],
		[ 201, 'application/json' ],
		[ 201, 'Application/JSON' ],
		[ 201, 'application/json;charset=utf-8' ],
		[ 201, 'application/json ; charset="UTF-8"' ],
		[ 415, 'application/json; charset=iso-8859-1' ],
		[ 415, 'application/json;charset=utf-8;charset=utf-8' ],
		[ 415, 'application/json;x=1' ],
		[ 415, 'application/json;charset=utf-8;x=1' ],
		[ 415, 'application/json;q=1' ],
		[ 415, 'application/json;profile="http://example.org/a"' ],
		[ 415, "application/json;ext=\"https://jsonapi.org/ext/atomic\"" ],
		[ 415, 'application/json, application/json' ],
		[ 415, 'application/jsonp' ],
		[ 415, 'text/json' ],
		[ 415, 'multipart/form-data; boundary=x' ],
		[ 415, 'application/vnd.api+jsonx' ],
		[ 415, 'application/vnd.api' ],
		[ 415, 'text/plain' ],
		[ 415, 'application/x-www-form-urlencoded' ],
		[ 415, "$plain, application/json" ],
		[ 415, '*/*' ],
		[ 415, '' ])
	{
		my ($status, $content) = @$case;
		my $answer = asked(POST => '/authors', 'Content-Type' => $content, body => $author);

		is($answer->{status}, $status, "POST \"$content\"") or diag $answer->{body};
		is($answer->{headers}{'content-type'}, $plain, 'answered as JSON:API');
		is($answer->{json}{errors}[0]{source}{header}, 'Content-Type', 'the header is named') if $status == 415;
	}
	for my $case (
		[ PATCH  => $editor->path($ann),                               '{"data":{}}' ],
		[ POST   => $editor->path($work, 'relationships', 'genres'),   '{"data":[]}' ],
		[ PATCH  => $editor->path($work, 'relationships', 'genres'),   '{"data":[]}' ],
		[ DELETE => $editor->path($work, 'relationships', 'genres'),   '{"data":[]}' ])
	{
		my ($method, $path, $body) = @$case;
		is(asked($method, $path, 'If-Match' => '*', body => $body, 'Content-Type' => "$plain;charset=utf-8")->{status}, 415, "$method $path");
		my ($known, $json) = map { asked($method, $path, 'If-Match' => '*', body => $body, 'Content-Type' => $_) } $plain, 'application/json';
		is($json->{status}, $known->{status}, 'as JSON it is what it is as JSON:API');
		is($json->{headers}{'content-type'} // '', $known->{headers}{'content-type'} // '', 'and answered so');
	}
	is(asked(POST => '/operations', 'Content-Type' => 'application/json', Accept => $atomic, body => '{"atomic:operations":[]}')->{status}, 415, 'operations have a type of their own');
	is(asked(POST => '/authors', 'Content-Type' => 'application/json', Accept => 'application/json', body => $author)->{status}, 201, 'both ways');
	is(asked(DELETE => $editor->path($editor->made(authors => { name => 'x' })), 'Content-Type' => $plain, body => '{}')->{status}, 204,
		'DELETE of a resource may have a body');
	is(asked(GET => '/authors', 'Content-Type' => "$plain;charset=utf-8")->{status}, 200, 'nothing is said about no body');
};

subtest 'what is wrong with JSON' => sub {
	for my $case (
		[ 'application/json;x=1', 'the parameter x=1 is not allowed' ],
		[ 'application/json; charset=latin1', 'the parameter charset=latin1 is not allowed' ],
		[ 'application/json;profile="p"', 'the parameter profile is not allowed' ],
		[ 'application/json;ext="e"', 'the extension ext="e" is not known' ])
	{
		my ($type, $why) = @$case;
		is(asked(POST => '/authors', 'Content-Type' => $type, body => $author)->{json}{errors}[0]{detail},
			"The body must be sent as $plain: $why.", $type);
	}
};

subtest 'Accept' => sub {
	for my $case (
		[ 200, undef ],
		[ 200, $plain ],
		[ 200, uc $plain ],
		[ 200, '*/*' ],
		[ 200, 'application/*' ],
		[ 200, 'text/html, */*;q=0.1' ],
		[ 200, "$plain;profile=\"http://example.org/a\"" ],
		[ 200, "$plain;q=0.3" ],
		[ 200, "$plain;charset=utf-8, $plain" ],
		[ 200, "$plain;ext=\"http://example.org/unknown\", $plain;q=0.1" ],
		[ 200, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" ],
		[ 200, "$atomic, $plain" ],
		[ 406, "$plain;charset=utf-8" ],
		[ 406, "$plain;x=1, $plain;charset=utf-8" ],
		[ 406, "$plain;ext=\"http://example.org/unknown\"" ],
		[ 406, $atomic ],
		[ 406, "$plain;q=0" ],
		[ 406, "$plain;q=0.000" ],
		[ 406, 'text/html' ],
		[ 200, 'application/json' ],
		[ 200, 'application/json; charset=utf-8' ],
		[ 200, 'text/html, application/json;q=0.5' ],
		[ 200, "*/*, application/json;q=0" ],
		[ 406, "application/json, $plain;q=0" ],
		[ 406, 'application/json;q=0' ],
		[ 406, 'text/*' ],
		[ 406, '*/*;q=0' ],
		[ 200, "$plain, */*;q=0" ],
		[ 200, "*/*;q=0, application/*" ],
		[ 406, "$plain;q=0, */*" ],
		[ 406, "*/*;q=0.5, $plain;q=0" ],
		[ 406, '*/*, application/*;q=0' ])
	{
		my ($status, $accept) = @$case;
		my $name = $accept // 'none';

		for my $path ('/authors', $editor->path($work, 'relationships', 'genres'))
		{
			my $answer = asked(GET => $path, defined $accept ? (Accept => $accept) : ());
			is($answer->{status}, $status, "$path as $name");
			is($answer->{headers}{'content-type'}, $plain, 'JSON:API, whatever was asked for');
		}
	}
	for my $case (
		[ 200, 'text/html', 'application/json' ], [ 200, $plain, 'text/html' ],
		[ 406, '*/*', "$plain;q=0" ], [ 406, 'text/html', 'text/*' ])
	{
		my ($status, @lines) = @$case;
		is(asked(GET => '/authors', Accept => \@lines)->{status}, $status, "two lines: @lines");
	}
	is(asked(POST => '/authors', 'Content-Type' => "$plain;x=1", Accept => 'text/html', body => $author)->{status} =~ /^(?:406|415)$/ ? 1 : 0, 1, 'both');
	is(asked(DELETE => $editor->path($work), Accept => 'text/html')->{status}, 406, 'also where nothing is answered');
	ok(!$editor->gone($work), 'and nothing is done');
	is(asked(GET => '/nothings', Accept => 'text/html')->{status}, 404, '404 comes before');
	is($shim->http(GET => '/api/v1/authors', { headers => { Accept => 'text/html' } })->{status}, 401, 'and 401');
};

subtest 'what is wrong with a media type' => sub {
	my $unknown = 'ext="http://example.org/unknown"';
	my $known = 'ext="https://jsonapi.org/ext/atomic"';
	my $wanted = "The body must be sent as $plain: ";
	my $only = "Only $plain can be sent: ";

	for my $case (
		[ "$plain;charset=utf-8",              'the parameter charset=utf-8 is not allowed' ],
		[ "$plain; profile=\"x;y\"; X = \"1;2\"", 'the parameter X is not allowed' ],
		[ "$plain;x=\"1;2\";y=1",              'the parameter x="1;2" is not allowed' ],
		[ "$plain;$unknown",                   "the extension $unknown is not known" ],
		[ $atomic,                             "the extension $known is not used here" ],
		[ 'text/plain',                        '"text/plain" is another type' ],
		[ '*/*',                               '"*/*" is another type' ],
		[ '?',                                 'no media type stands there' ])
	{
		my ($type, $why) = @$case;
		my %asked = (POST => { 'Content-Type' => $type, body => $author }, GET => { Accept => $type });

		for my $method ($type eq '*/*' ? 'POST' : qw(GET POST))
		{
			my $error = asked($method => '/authors', %{ $asked{$method} })->{json}{errors}[0];

			is_deeply([ @$error{qw(status code detail)} ],
				$method eq 'GET' ? [ 406, 'NOT_ACCEPTABLE', "$only$why." ] : [ 415, 'UNSUPPORTED_MEDIA_TYPE', "$wanted$why." ],
				"$method: $type");
		}
	}
	for my $case (
		[ "$plain;q=1", 'the parameter q is not allowed' ],
		[ "$plain, $plain", 'there is more than one type' ],
		[ "$plain;x=" . 'y' x 1000, 'the parameter x=' . 'y' x 198 . ' is not allowed' ])
	{
		my ($type, $why) = @$case;
		is(asked(POST => '/authors', 'Content-Type' => $type, body => $author)->{json}{errors}[0]{detail}, "$wanted$why.", substr $type, 0, 60);
	}
	for my $case (
		[ 'text/html, */*;q=0', '"text/html" is another type' ],
		[ "text/html, $plain;q=0", 'q=0 excludes it' ],
		[ "text/html, $plain;x=1", 'the parameter x=1 is not allowed' ])
	{
		my ($type, $why) = @$case;
		is(asked(GET => '/authors', Accept => $type)->{json}{errors}[0]{detail}, "$only$why.", $type);
	}
	is(asked(POST => '/operations', 'Content-Type' => $plain, body => '{}')->{json}{errors}[0]{detail},
		"The body must be sent as $plain;$known: the extension is missing.", 'operations');
	is(asked(POST => '/operations', 'Content-Type' => $atomic, Accept => $plain, body => '{}')->{json}{errors}[0]{detail},
		"Only $plain;$known can be sent: the extension is missing.", 'and their answers');
	my $answer = asked(POST => '/operations', 'Content-Type' => $atomic, Accept => 'application/json', body => '{}');
	is($answer->{status}, 400, 'which are JSON, too');
	is($answer->{headers}{'content-type'} =~ s/; /;/r, $atomic, 'and carry their own type');
};

subtest 'headers of every answer' => sub {
	for my $case (
		[ 200, GET  => '/authors' ], [ 200, GET => $editor->path($ann) ], [ 200, HEAD => '/authors' ],
		[ 404, GET  => '/nothings' ], [ 404, GET => "/authors/$nobody" ], [ 405, PUT => '/authors' ],
		[ 400, GET  => '/authors?x=1' ], [ 406, GET => '/authors' ], [ 415, POST => '/authors' ], [ 204, DELETE => undef ])
	{
		my ($status, $method, $path) = @$case;

		$path //= $editor->path($editor->made(authors => { name => 'x' }));
		my $answer = asked($method, $path,
			$status == 406 ? (Accept => 'text/html') : (),
			$method eq 'POST' || $method eq 'PUT' ? ('Content-Type' => 'text/plain', body => '{}') : (),
			'X-Request-Id' => 'a.request-1_Z');
		my $headers = $answer->{headers};

		is($answer->{status}, $status, "$method $path");
		is_deeply([ sort map { lc } split /,\s*/, $headers->{vary} // '' ], [qw(accept authorization x-api-key)], 'Vary');
		is($headers->{'x-content-type-options'}, 'nosniff', 'nosniff');
		is($headers->{'cache-control'}, 'private, no-cache', 'Cache-Control');
		is($headers->{'x-request-id'}, 'a.request-1_Z', 'X-Request-Id');
		is($headers->{'content-type'}, $status == 204 ? undef : $plain, 'Content-Type');
		is($answer->{json}{errors}[0]{id}, 'a.request-1_Z', 'and in the error') if $status >= 400;
	}
	my $made = $editor->good(201, POST => '/authors', data => { type => 'authors', attributes => { name => 'x' } });
	is($made->{headers}{location}, $made->{json}{data}{links}{self}, 'Location');
	for my $id ('', 'a b', 'x' x 65, '<script>', 'a,b')
	{
		my $own = asked(GET => '/authors', 'X-Request-Id' => $id)->{headers}{'x-request-id'};
		like($own, qr/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'another id instead of a bad one');
	}
};

subtest 'methods' => sub {
	my @relationship = map { $editor->path($work, 'relationships', $_) } qw(author genres);

	for my $case (
		[ '/authors',                        [qw(PUT PATCH DELETE TRACE PROPFIND FOO)],          'GET, HEAD, POST' ],
		[ $editor->path($ann),               [qw(PUT POST)],                  'DELETE, GET, HEAD, PATCH' ],
		[ "/authors/$nobody",                [qw(PUT POST)],                  'DELETE, GET, HEAD, PATCH' ],
		map({ [ $_,                          [qw(PUT)],                       'DELETE, GET, HEAD, PATCH, POST' ] } @relationship),
		[ $editor->path($work, 'author'),    [qw(POST PUT PATCH DELETE)],     'GET, HEAD' ],
		[ '/operations',                     [qw(GET PUT PATCH DELETE HEAD)], 'POST' ])
	{
		my ($path, $methods, $allowed) = @$case;

		for my $method (@$methods)
		{
			my $answer = asked($method, $path, $method eq 'GET' || $method eq 'HEAD' ? () : ('Content-Type' => $plain, body => '{}'));
			is($answer->{status}, 405, "$method $path");
			is(join(', ', sort split /,\s*/, $answer->{headers}{allow} // ''), $allowed, 'Allow');
		}
	}
	is($shim->http(PUT => '/api/v1/authors', { json => {} })->{status}, 405, '405 comes before 401');

	for my $path ('/authors', '/works?include=author&page[size]=1', $editor->path($work), $editor->path($work, 'author'),
		$editor->path($work, 'relationships', 'genres'), "/works/$nobody", '/nothings', '/authors?x=1')
	{
		my ($get, $head) = map { asked($_, $path) } qw(GET HEAD);

		is($head->{status}, $get->{status}, "HEAD $path");
		is($head->{body}, '', 'no body');
		is($head->{headers}{$_}, $get->{headers}{$_}, $_) for qw(content-type content-length etag vary);
	}
};

subtest 'paths' => sub {
	my $room = $editor->made(readingRooms => { name => 'North' }, { guests => [$ann] });

	is($room->{type}, 'readingrooms', 'the type in lower case');
	is($room->{links}{self}, "/api/v1/readingRooms/$room->{id}", 'the collection in camel case');
	for my $path ("/readingRooms/$room->{id}", "/readingrooms/$room->{id}")
	{
		is(asked(GET => $path)->{json}{data}{id}, $room->{id}, "GET $path");
		is(asked(GET => "$path/guests")->{json}{data}[0]{id}, $ann->{id}, 'what is related');
		is(asked(GET => "$path/relationships/guests")->{json}{data}[0]{id}, $ann->{id}, 'and linked');
		is(asked(PATCH => $path, 'Content-Type' => $plain,
				body => JSON::PP->new->canonical->encode({ data => $editor->identifier($room) }))->{status}, 200, 'PATCH');
	}
	is(asked(GET => $_)->{json}{meta}{pagination}{totalRecords}, 1, $_) for '/readingRooms', '/readingrooms';
	is(asked(GET => "/$_")->{status}, 404, "not $_") for qw(ReadingRooms readingROOMS READINGROOMS reading-rooms reading_rooms);
	is(asked(GET => '/authors/' . uc $ann->{id})->{json}{data}{id}, $ann->{id}, 'ids in upper case');
	for my $path ('/Authors', '/author', '/AUTHORS', '/authors/', '//authors', '/authors//', "/authors/$ann->{id}/", '/authors/.', '/authors/..')
	{
		is(asked(GET => $path)->{status}, 404, "nothing at $path");
	}
	for my $path ('/authors/%00', '/authors%2F', '/authors/%2f', '/authors/a%5Cb', '/authors/%zz', '/authors/%', '/authors/%C3%28', '/authors/%FF', '/%C0%AEauthors')
	{
		is(asked(GET => $path)->{status}, 400, "malformed: $path");
	}
	is(asked(GET => '/%61uthors')->{status}, 200, 'percent-encoded letters');
	is(asked(GET => '/%2561uthors')->{status}, 404, 'decoded once');
};

subtest 'parameters' => sub {
	my $id = $ann->{id};

	for my $case (
		[ 'unknown',                 'x', 'x=1' ],
		[ 'unknown, and encoded',    'x y', 'x%20y=1' ],
		[ 'without a value',         'x', 'x' ],
		[ 'page',                    'page', 'page=1' ],
		[ 'page of what',            'page[]', 'page[]=1' ],
		[ 'page offset',             'page[offset]', 'page[offset]=1' ],
		[ 'fields without a type',   'fields', 'fields=name' ],
		[ 'fields of nothing',       'fields[]', 'fields[]=name' ],
		[ 'fields of an unknown',    'fields[nothings]', 'fields[nothings]=name' ],
		[ 'unknown field',           'fields[authors]', 'fields[authors]=name,nothing' ],
		[ 'upper case',              'Sort', 'Sort=name' ],
		[ 'empty filter',            'filter', 'filter=' ],
		[ 'filter cut by an ampersand', q{B'}, q{filter=name=='A&B'} ],
		[ 'filter of what',          'filter[name]', 'filter[name]=Ann' ],
		[ 'empty sort',              'sort', 'sort=' ],
		[ 'empty sort key',          'sort', 'sort=name,,rank' ],
		[ 'sort with a plus',        'sort', 'sort=%2Bname' ],
		[ 'empty size',              'page[size]', 'page[size]=' ],
		[ 'size 0',                  'page[size]', 'page[size]=0' ],
		[ 'size 101',                'page[size]', 'page[size]=101' ],
		[ 'size x',                  'page[size]', 'page[size]=x' ],
		[ 'size 1.5',                'page[size]', 'page[size]=1.5' ],
		[ 'size -1',                 'page[size]', 'page[size]=-1' ],
		[ 'number 0',                'page[number]', 'page[number]=0' ],
		[ 'number -1',               'page[number]', 'page[number]=-1' ],
		[ 'number 1e2',              'page[number]', 'page[number]=1e2' ],
		[ 'number too large',        'page[number]', 'page[number]=9223372036854775808' ],
		[ 'offset too large',        'page[number]', 'page[number]=9223372036854775807&page[size]=100' ],
		[ 'totals',                  'page[totals]', 'page[totals]=maybe' ],
		[ 'twice',                   'sort', 'sort=name&sort=rank' ],
		[ 'twice, once encoded',     'page[size]', 'page[size]=1&page%5Bsize%5D=1' ],
		[ 'twice, and equal',        'include', 'include=mentor&include=mentor' ],
		[ 'fieldset twice',          'fields[authors]', 'fields[authors]=name&fields[authors]=name' ],
		[ 'unknown include',         'include', 'include=nothing' ],
		[ 'unknown second hop',      'include', 'include=mentor.nothing' ],
		[ 'an attribute included',   'include', 'include=name' ],
		[ 'an empty hop',            'include', 'include=mentor..pupils' ],
		[ 'an empty path',           'include', 'include=mentor,' ],
		[ 'six hops',                'include', 'include=mentor.mentor.mentor.mentor.mentor.mentor' ])
	{
		my ($name, $parameter, $query) = @$case;
		$editor->refused($name, 400, undef, [ parameter => $parameter ], GET => "/authors?$query");
	}
	$editor->refused("bad encoding: $_", 400, undef, undef, GET => "/authors?filter=name==$_") for qw(%zz %C3%28 %FF %00 %);
	for my $parameter ('filter=id==' . $id, 'sort=name', 'page[size]=1', 'page[number]=1', 'page[totals]=false')
	{
		my ($name) = split /=/, $parameter;
		$editor->refused("a single resource takes no $name", 400, undef, [ parameter => $name ], GET => $editor->path($ann) . "?$parameter");
		$editor->refused("creation takes no $name", 400, undef, [ parameter => $name ], POST => "/authors?$parameter",
			data => { type => 'authors', attributes => { name => 'x' } });
		$editor->refused("an update takes no $name", 400, undef, [ parameter => $name ], PATCH => $editor->path($ann) . "?$parameter",
			data => $editor->identifier($ann));
		$editor->refused("a deletion takes no $name", 400, undef, [ parameter => $name ], DELETE => $editor->path($ann) . "?$parameter");
	}
	for my $parameter (qw(include=author fields[works]=title include=))
	{
		my ($name) = split /=/, $parameter;
		$editor->refused("a deletion takes no $name", 400, undef, [ parameter => $name ], DELETE => $editor->path($work) . "?$parameter", headers => { 'If-Match' => '*' });
	}
	for my $query ('page[size]=1&page[number]=1', 'page%5Bsize%5D=1&page%5Bnumber%5D=1', 'page%5bsize%5d=1', 'page[size]=100', 'page[size]=1',
		'include=', 'fields[authors]=', 'fields%5Bauthors%5D=name', 'filter=name%3D%3DAnn', 'filter=name==%27An+n%27', 'filter=name%3d%3d"A%26n"',
		'sort=-name,rank', 'include=mentor.mentor.mentor.mentor.mentor', 'page[number]=100', 'filter=name==Ann;name==Ann', 'filter=name=="x=y"', '')
	{
		is($editor->call(GET => "/authors?$query")->{status}, 200, "good: $query");
	}
	my $answer = $editor->good(200, GET => '/authors?fields[authors]=')->{json}{data}[0];
	is_deeply([ sort keys %$answer ], [qw(id links type)], 'an empty fieldset leaves type and id');
	$answer = $editor->good(201, POST => '/works?include=author&fields[works]=author,title&fields[authors]=name',
		data => $editor->document(works => { title => 'Included' }, { author => $ann }))->{json};
	is_deeply([ [ keys %{ $answer->{data}{attributes} } ], [ keys %{ $answer->{data}{relationships} } ], $answer->{included}[0]{attributes} ],
		[ ['title'], ['author'], { name => 'Ann' } ], 'include and fields on POST');
	$answer = $editor->good(200, PATCH => "/works/$answer->{data}{id}?include=author,genres&fields[works]=",
		data => { type => 'works', id => $answer->{data}{id} }, headers => { 'If-Match' => '*' })->{json};
	is_deeply([ map { $_->{id} } @{ $answer->{included} } ], [$id], 'and on PATCH, though the fieldset breaks the linkage');
	ok(!exists $editor->good(200, GET => '/authors')->{json}{included}, 'no included unless asked for');
	is_deeply($editor->good(200, GET => '/authors?include=')->{json}{included}, [], 'but then');
	is_deeply($editor->good(200, GET => '/authors')->{json}{jsonapi}, { version => '1.1' }, 'jsonapi');
	is($editor->good(200, GET => '/authors?sort=name&page[size]=1')->{json}{links}{self},
		'/api/v1/authors?sort=name&page%5Bsize%5D=1', 'self has the parameters, its brackets encoded');
};

subtest 'what may have been meant' => sub {
	my $work_path = $editor->path($work);

	for my $case (
		[ 'filter[name]=Ann',            '/authors', 'filter=name==Ann' ],
		[ 'filter[name]=A%20%26%20B',    '/authors', q{filter=name=='...'} ],
		[ 'filter%5Bmentor.name%5D=Ann', '/authors', 'filter=mentor.name==Ann' ],
		[ 'filter[name][eq]=Ann',        '/authors', undef ],
		[ 'filter[a;b]=Ann',             '/authors', undef ],
		[ 'filter[name',                 '/authors', undef ],
		[ 'filter[]=Ann',                '/authors', 'filter' ],
		map({ [ "$_=5", '/authors', 'page[size]' ] } qw(limit page[limit] per_page perPage size pageSize page_size)),
		map({ [ "$_=5", '/authors', 'page[number]' ] } qw(offset page page[offset])),
		map({ [ "$_=5", '/authors', 'page[after]' ] } qw(cursor after page[cursor])),
		[ 'before=5', '/authors', 'page[before]' ],
		map({ [ "$_=name", '/authors', 'sort' ] } qw(order order_by orderBy sort_by sortBy Sort sorts)),
		[ 'fields=name',  '/authors', 'fields[type]' ],
		[ 'fields=title', $work_path, 'fields[type]' ],
		[ 'includes=author', $work_path, 'include' ],
		[ 'expand=author', $work_path, 'include' ],
		[ 'fliter=name==Ann', '/authors', 'filter' ],
		[ 'nothing=1', '/authors', undef ],
		[ 'limit=5', $work_path, undef ],
		[ 'order=title', $work_path, undef ],
		[ 'filter[title]=x', $work_path, undef ])
	{
		my ($query, $path, $meant) = @$case;
		my $name = $query =~ s/=.*//sr =~ s/%5B/[/r =~ s/%5D/]/r;
		my $answer = $editor->refused("$path?$query", 400, 'UNKNOWN_PARAMETER', [ parameter => $name ], GET => "$path?$query");

		is($answer->{json}{errors}[0]{detail},
			qq{The query parameter "$name" is unknown} . (defined $meant ? qq{ (did you mean "$meant"?)} : '') . '.', 'its detail');
	}
	for my $case (
		[ 'name=Ann', '==' ], [ 'name=eq=Ann', '==' ], [ 'name=ne=Ann', '!=' ], [ 'name=contains=n', '=like=' ],
		[ 'name=lyke=A', '=like=' ], [ 'rank=gte=1', '=ge=' ], [ 'rank=nin=(1)', '=out=' ], [ 'name Ann', undef ], [ 'name=within=Ann', undef ])
	{
		my ($filter, $meant) = @$case;
		my $target = '/authors?filter=' . $filter =~ s/ /+/r;
		my $answer = $editor->refused($target, 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => $target);
		my ($hint) = $answer->{json}{errors}[0]{detail} =~ /did you mean "(.*)"\?/;

		is($hint, $meant, $answer->{json}{errors}[0]{detail});
	}
};

# What is wrong with a document, by the rules for all documents
sub faults
{
	my ($document, $sparse) = @_;
	my @faults = map { "member $_" } grep { !/^(?:data|errors|meta|links|jsonapi|included)$/ } keys %$document;
	my @primary = ref $document->{data} eq 'ARRAY' ? @{ $document->{data} } : $document->{data} // ();
	my @included = @{ $document->{included} // [] };
	my (%seen, %linked, @open);

	push @faults, 'not one of data and errors' if exists $document->{data} == exists $document->{errors};
	push @faults, 'included without data' if exists $document->{included} && !exists $document->{data};
	push @faults, link_faults($document->{links});
	for my $resource (@primary, @included)
	{
		my $key = "$resource->{type} $resource->{id}";

		push @faults, "$key: member $_" for grep { !/^(?:type|id|attributes|relationships|links|meta)$/ } keys %$resource;
		push @faults, "$key: twice" if $seen{$key}++;
		push @faults, link_faults($resource->{links});
		my %attributes = %{ $resource->{attributes} // {} };
		my %relationships = %{ $resource->{relationships} // {} };
		push @faults, "$key: $_ as attribute and relationship" for grep { exists $relationships{$_} } keys %attributes;
		push @faults, "$key: field $_" for grep { /^(?:type|id)$|^[-_ ]|[-_ ]$|[^-\w ]/ || /_id$/ } keys %attributes, keys %relationships;
		for my $name (keys %relationships)
		{
			my $relationship = $relationships{$name};
			my $data = $relationship->{data};

			push @faults, "$key: $name is empty" unless grep { exists $relationship->{$_} } qw(links data meta);
			push @faults, link_faults($relationship->{links});
			for my $identifier (ref $data eq 'ARRAY' ? @$data : $data // ())
			{
				push @faults, "$key: identifier in $name" if join(' ', sort keys %$identifier) ne 'id type';
				push @{ $linked{$key} }, "$identifier->{type} $identifier->{id}";
			}
		}
	}

	# Full linkage: from what is primary there is a way to all the rest.
	@open = map { "$_->{type} $_->{id}" } @primary;
	my %reached = map { $_ => 1 } @open;
	while (defined(my $key = shift @open))
	{
		push @open, grep { !$reached{$_}++ } @{ $linked{$key} // [] };
	}
	push @faults, map { "$_ is not linked" } grep { !$reached{$_} } map { "$_->{type} $_->{id}" } @included
	  unless $sparse;
	return @faults;
}

sub link_faults
{
	my ($links) = @_;

	return map { "link $_" } grep { defined && (ref || !m{^/api/v1/[-A-Za-z0-9._~!\$&'()*+,;=:@/?%]+$}) } values %{ $links // {} };
}

subtest 'documents' => sub {
	my $genre = $editor->made(genres => { name => 'Drama' });
	my $place = $editor->made(places => { name => 'Alp' });
	my @works = map {
		$editor->made(works => { title => "d$_" }, { author => $ann, editor => $ann, genres => [$genre], $_ % 2 ? (subject => $place) : () })
	} 1 .. 3;
	my $note = $editor->made(notes => { text => 'n' }, { work => $works[0] });

	for my $case (
		[ GET => '/works' ], [ GET => '/works?page[size]=1&page[number]=2&filter=title==d1,title==d2&sort=-title' ], [ GET => '/posters' ],
		[ GET => $editor->path($works[0]) ], [ GET => $editor->path($works[0], 'author') ], [ GET => $editor->path($works[0], 'vault') ],
		[ GET => $editor->path($ann, 'works') ], [ GET => $editor->path($works[0], 'relationships', 'genres') ],
		[ GET => $editor->path($works[0], 'relationships', 'vault') ],
		[ GET => '/works?include=author,editor,genres,subject,notes' ], [ GET => '/works?include=genres.works.author.works.notes' ],
		[ GET => '/authors?include=mentor.pupils,works.subject.depictions,edits' ], [ GET => "/notes/$note->{id}?include=work.author.works.notes" ],
		[ GET => $editor->path($ann, 'works') . '?include=author.works' ], [ GET => '/posters?include=shows' ],
		[ GET => '/works?include=author&fields[works]=title', 1 ], [ GET => '/works?include=&fields[works]=' ],
		[ GET => '/nothings' ], [ GET => '/works?x=1&y=2' ], [ PUT => '/works' ], [ POST => '/works' ])
	{
		my ($method, $path, $sparse) = @$case;
		my $answer = $editor->call($method => $path, $method eq 'GET' ? () : (data => {}));
		my @faults = faults($answer->{json}, $sparse);

		ok(!@faults, "$method $path") or diag map { "$_\n" } @faults;
		next if $answer->{status} != 200;
		my $many = $path =~ m{^/\w+(?:\?|$)|/(?:works|genres)(?:\?|$)};
		is(ref $answer->{json}{data} eq 'ARRAY' ? 'many' : 'one', $many ? 'many' : 'one', 'an array for a collection only');
	}
};

done_testing;
