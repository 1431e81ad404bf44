# The generated description of the API: what each version shows, and how fast it
# is served.  t/openapi/tools.t has others read it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Conformance;
use EntityApi::Test::Rows;

my $checkout = EntityApi::Test::checkout();
my $json = JSON::PP->new->utf8->canonical;

my $editor = EntityApi::Test::Conformance->begin('library');
my ($cluster, $shim) = ($editor->cluster, $editor->shim);

sub document
{
	return $_[0]->http(GET => $_[1] // '/api/v1/openapi.json', $_[2] // {});
}

my $answer = document($shim);
my $api = $answer->{json};
my $schemas = $api->{components}{schemas};

subtest 'served' => sub {
	is($answer->{status}, 200, 'to anybody');
	is($answer->{headers}{'content-type'}, 'application/json', 'as JSON');
	like($answer->{headers}{etag}, qr/^"[0-9a-f]{32}"$/, 'with an ETag');
	is($api->{openapi}, '3.1.0', 'OpenAPI 3.1');

	my $again = document($shim, undef, { headers => { 'If-None-Match' => "\"other\", W/$answer->{headers}{etag}" } });
	is_deeply([ @$again{qw(status body)} ], [ 304, '' ], '304 for who has it');
	is(document($shim, undef, { headers => { 'If-None-Match' => '"other"' } })->{status}, 200, 'not for who has another');
	is(document($shim, '/api/v2/openapi.json')->{status}, 404, 'no such version');
	is(document($shim, '/api/v1/openapi.json?x=1')->{status}, 400, 'no parameters');
	is($shim->http(POST => '/api/v1/openapi.json', { json => {} })->{headers}{allow}, 'GET, HEAD', 'no other method');
	is($shim->http(HEAD => '/api/v1/openapi.json')->{status}, 200, 'HEAD');
	is(length $shim->http(HEAD => '/api/v1/openapi.json')->{body}, 0, 'without a body');
};

subtest 'every operator is described' => sub {
	my ($listed) = $api->{components}{parameters}{filter}{description} =~ /^RSQL: comparisons with (.*) joined by/;

	is($listed, join(' ', map { "$_->{name} ($_->{title})" } EntityApi::Test::Rows::operators()), 'as its row has it');
};

subtest 'documents are taken as JSON, too' => sub {
	my %seen;

	for my $path (sort keys %{ $api->{paths} })
	{
		for my $method (grep { ref $api->{paths}{$path}{$_} eq 'HASH' } sort keys %{ $api->{paths}{$path} })
		{
			my $content = ($api->{paths}{$path}{$method}{requestBody} // next)->{content};
			my ($one, $other) = @$content{ 'application/vnd.api+json', 'application/json' };
			my $kind = $path !~ m{^/api/} ? 'other' : $path =~ m{/operations$} ? 'operations' : 'document';

			is(!!$one, $kind eq 'document', "$method $path: JSON:API");
			is(!!$other, $kind ne 'operations', 'JSON');
			is_deeply($other, $one, 'of the same schema') if $kind eq 'document';
			$seen{$kind}++;
		}
	}
	is(join(' ', sort keys %seen), 'document operations other', 'of all kinds');
};

subtest 'every route is described' => sub {
	open my $source, '<', "$checkout/extension/entry/routes.c" or die "routes.c: $!\n";
	my $text = do { local $/; <$source> };
	my %macro = $text =~ /^#define (\w+) (\S.*)$/mg;
	my ($table) = $text =~ /ea_routes\[\] = \{(.*?)\n\};/s;
	my @routes;

	while ($table =~ /\.method = EA_([A-Z]+),\s*\.pattern = ((?:\w+|"[^"]*")(?:\s+"[^"]*")*)\s*,/g)
	{
		my ($method, $pattern) = (lc $1, $2);
		1 while $pattern =~ s/\b([A-Z]{2,})\b/$macro{$1}/;
		push @routes, [ $method, join '', $pattern =~ /"([^"]*)"/g ];
	}
	cmp_ok(scalar @routes, '>', 45, 'routes of routes.c');
	for my $route (@routes)
	{
		my ($method, $path) = @$route;

		$path =~ s/v\{n\}/v1/;
		# what is restored is deleted softly
		$path =~ s/\{entities\}/$path =~ m{\/restore$} ? 'memos' : 'works'/e;
		$path =~ s/\{relationship\}/genres/;
		my $operation = $api->{paths}{$path}{$method};
		ok($operation && !$operation->{'x-undescribed'}, uc($method) . " $path");
	}

	my %seen;
	for my $item (values %{ $api->{paths} })
	{
		$seen{ $_->{operationId} }++ for grep { ref $_ eq 'HASH' } values %$item;
	}
	is_deeply([ grep { $seen{$_} > 1 } sort keys %seen ], [], 'each with an operationId of its own');
};

subtest 'what is said of entities' => sub {
	is_deeply([ sort @{ $schemas->{WorkSubjectRelationshipData}{properties}{type}{enum} } ], [qw(events places)],
		'the members of a one-of');
	is_deeply($schemas->{WorkAuthorRelationshipData}{properties}{type}{enum}, ['authors'], 'the target of a reference');
	my $create = $schemas->{WorkCreateDocument}{properties}{data};
	is_deeply($create->{required}, [qw(type attributes relationships)], 'what must be sent');
	is_deeply($create->{properties}{relationships}{required}, ['author'], 'and of relationships');
	is_deeply($schemas->{WorkUpdateDocument}{properties}{data}{required}, [qw(type id)], 'nothing but its name in a change');
	my @parameters = map { $_->{'$ref'} =~ s{.*/}{}r } @{ $api->{paths}{'/api/v1/works/{id}'}{patch}{parameters} };
	ok((grep { $_ eq 'mayIfMatch' } @parameters), 'If-Match where there is a version');
	ok($schemas->{WorkUpdateDocument}{properties}{data}{properties}{meta}, 'or that in the document');
	ok(!$schemas->{AuthorUpdateDocument}{properties}{data}{properties}{meta}, 'but not without versions');
	@parameters = map { $_->{'$ref'} =~ s{.*/}{}r } @{ $api->{paths}{'/api/v1/works/{id}'}{delete}{parameters} };
	ok((grep { $_ eq 'ifMatch' } @parameters), 'a deletion has no document');
	ok(!(grep { /ifMatch/i } map { $_->{'$ref'} } @{ $api->{paths}{'/api/v1/authors/{id}'}{patch}{parameters} }), 'and not where there is none');
	ok(!$api->{paths}{'/api/v1/works/{id}/relationships/author'}{post}, 'no POST to a to-one relationship');
	ok($api->{paths}{'/api/v1/works/{id}/relationships/genres'}{post}, 'but to a to-many one');
	my $shows = sub { scalar grep { $_->{'$ref'} =~ /showDeleted$/ } @{ $api->{paths}{ $_[0] }{get}{parameters} } };
	is(join(' ', map { $shows->($_) } '/api/v1/memos', '/api/v1/memos/{id}', '/api/v1/works', '/api/v1/works/{id}', '/api/v1/labels/{id}/memos'), '1 1 0 0 0', 'show[deleted] where deletion hides');
	ok(!$api->{paths}{'/api/v1/works/{id}/restore'}, 'what is deleted for good has no way back');
	is($schemas->{MemoResource}{properties}{meta}{'$ref'}, '#/components/schemas/VersionAndDeletion', 'when it was deleted');
	is_deeply($schemas->{VersionAndDeletion}{required}, ['version'], 'which live ones do not tell');
	ok(!$api->{paths}{'/api/v1/memos/{id}/restore'}{post}{requestBody}, 'a restore has no body');
	my $text = $answer->{body};
	unlike($text, qr/"(?:Editor|Reader)"/, 'no role is named');
};

# -------- variants --------

subtest 'SINGLE mode, a validator, switched off' => sub {
	my $made = sub {
		return $json->decode($cluster->psql("$_[0]; select entityapi.openapi(1)"));
	};
	my $paths = sub { [ grep { /$_[1]/ } sort keys %{ $_[0]{paths} } ] };

	my $foreign = $made->(q{set entityapi.credential_validator = 'public.check'});
	is_deeply($paths->($foreign, qr{^/auth}), [], 'no /auth with a validator');
	is_deeply([ keys %{ $foreign->{components}{securitySchemes} } ], ['bearerAuth'], 'and no keys');
	is($made->(q{set entityapi.base_url = 'https://api.example.com'})->{servers}[0]{url}, 'https://api.example.com', 'the base address');

	$cluster->psql('alter database entityapi set entityapi.openapi = off');
	my $other = EntityApi::Test->shim($cluster);
	is(document($other)->{status}, 404, 'nothing when it is switched off');
	$other->stop;
	$cluster->psql('alter database entityapi reset entityapi.openapi');

	is(JSON::PP->new->canonical->encode($made->("set entityapi.max_page_size = 99")->{components}{parameters}{pageSize}{schema}),
		'{"maximum":99,"minimum":1,"type":"integer"}', 'limits are those that hold');
};

# -------- speed --------

subtest 'a hundred entities' => sub {
	my $many = EntityApi::Test->cluster;
	my @documents = (
		{ kind => 'Service', metadata => { name => 's' }, spec => {} },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Clerk => {} } } });

	for my $i (1 .. 100)
	{
		my $next = $i % 100 + 1;

		push @documents, { kind => 'Entity', metadata => { name => "Thing$i" }, spec => {
			optimisticLocking => JSON::PP::true, plural => "Thing${i}s", permissions => { Clerk => [qw(create read update delete)] },
			fields => {
				(map { ("text$_" => { type => 'string', maxLength => 80, description => 'A text' }) } 1 .. 5),
				(map { ("sum$_" => { type => 'decimal' }) } 1 .. 3),
				at => { type => 'datetime' }, name => { type => 'string', required => JSON::PP::true },
				next => { type => 'ref', target => "Thing$next", relation => 'ManyToOne' },
				before => { type => 'ref', target => 'Thing' . (($i + 98) % 100 + 1), relation => 'OneToMany', mappedBy => 'next' } } } };
	}
	$_->{apiVersion} = 'entityapi/v1' for @documents;
	my $text = $json->encode(\@documents);
	$many->psql("select count(*) from entityapi.apply_manifest(\$json\$$text\$json\$)");

	my $fast = EntityApi::Test->shim($many, pool_size => 1);

	# reading it in Perl would take far longer than serving it
	my $get = sub { $fast->{client}->get($fast->url . '/api/v1/openapi.json')->{content} };
	my $size = length $get->();
	my ($backend) = $many->psql("select pid from pg_stat_activity where application_name = 'entityapi-shim'") =~ /(\d+)/;

	# time on a processor: what else the machine does is not counted
	my $spent = sub {
		my $sum = 0;

		for my $file (glob "/proc/$backend/task/*/schedstat /proc/@{[ $fast->pid ]}/task/*/schedstat")
		{
			$sum += (split ' ', EntityApi::Test::slurp($file))[0];
		}
		return $sum / 1e6;
	};
	$get->() for 1 .. 5;
	my $before = $spent->();
	$get->() for 1 .. 40;
	my $each = ($spent->() - $before) / 40;
	cmp_ok($size, '>', 500_000, 'a document of that size');

	# In a session that served nothing before: how often the table, or what holds
	# its large values, was looked at by the first call and by forty more
	my ($first, $then) = split /\|/, $many->psql(<<~'SQL');
		set citus.override_table_visibility = off;	-- where Citus is, the rows are in another table
		create function pg_temp.served(n int) returns bigint language plpgsql as $x$
		declare
			looks constant text := 'select sum(pg_stat_get_xact_numscans(i.indexrelid)) + sum(pg_stat_get_xact_numscans(i.indrelid))
				from pg_index i, pg_class c where c.relname ~ ''^openapi_document(_\d+)?$'' and i.indrelid in (c.oid, c.reltoastrelid)';
			before bigint;
			after bigint;
			len int;
		begin
			execute looks into before;
			for i in 1 .. n loop
				select octet_length(h.body) into len from entityapi.handle('GET', '/api/v1/openapi.json', '{}', null, null) h;
				if len < 500000 then raise 'no document'; end if;
			end loop;
			execute looks into after;
			return after - before;
		end $x$;
		select pg_temp.served(1), pg_temp.served(40);
		SQL
	cmp_ok($first, '>', 0, 'the first call reads the table');
	is($then, 0, 'what has been served once is kept');
	diag sprintf 'openapi.json of 100 entities: %.2f ms of processor over HTTP; scans %d, then %d', $each, $first, $then;
	is($many->psql('select count(*) from entityapi.openapi_document'), 1, 'it is stored');
};

done_testing;
