# The generated description of the API as others read it: linters, a maker of
# types, and a proxy that holds requests and answers against it.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Conformance;
use EntityApi::Test::Node;

my $checkout = EntityApi::Test::checkout();
my $json = JSON::PP->new->utf8;

my $tools = "$checkout/t/tools/openapi";
my $why = EntityApi::Test::Node::install($tools);

plan skip_all => $why if defined $why;

# The proxy keeps connections while it works, however long that takes.
my $editor = EntityApi::Test::Conformance->begin('library',
	shim => { keep_alive_timeout_ms => 600_000, request_timeout_ms => 600_000 });
my ($cluster, $shim) = ($editor->cluster, $editor->shim);

my $answer = $shim->http(GET => '/api/v1/openapi.json');

{
	my $folder = EntityApi::Test::folder();
	my $bin = "$tools/node_modules/.bin";
	my $write = sub {
		my ($name, $text) = @_;

		open my $file, '>:raw', "$folder/$name" or die "$name: $!\n";
		print $file $text;
		close $file;
		return "$folder/$name";
	};
	my $file = $write->('openapi.json', $answer->{body});
	my $ruleset = $write->('spectral.yaml', qq(extends: ["spectral:oas"]\n));
	$write->('use.ts', <<~'TS');
		import type { components, paths } from "./api";
		export const work: components["schemas"]["WorkCreateDocument"] = {
			data: { type: "works", attributes: { title: "x", price: "1.50" }, relationships: {
				author: { data: { type: "authors", id: "0" } }, subject: { data: { type: "places", id: "0" } } } } };
		// @ts-expect-error: no member of the one-of
		export const wrong: components["schemas"]["WorkSubjectRelationshipData"] = { type: "authors", id: "0" };
		// @ts-expect-error: a required attribute is missing
		export const missing: components["schemas"]["AuthorCreateDocument"] = { data: { type: "authors", attributes: {} } };
		export type List = paths["/api/v1/works"]["get"]["responses"][200]["content"]["application/vnd.api+json"];
		export const titles = (list: List): (string | undefined)[] => list.data.map((w) => w.attributes?.title);
		TS
	my %environment = (REDOCLY_TELEMETRY => 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE => 'true', NO_COLOR => 1, CI => 1);
	my %command = (
		redocly  => [ "$bin/redocly", 'lint', $file, '--extends=recommended' ],
		spectral => [ "$bin/spectral", 'lint', $file, '--ruleset', $ruleset, '--fail-severity=error' ],
		types    => [ 'sh', '-c', '"$0/openapi-typescript" "$1/openapi.json" -o "$1/api.ts" && '
			  . '"$0/tsc" --strict --noEmit --skipLibCheck --target es2022 --typeRoots "$1" "$1/use.ts" "$1/api.ts"', $bin, $folder ]);
	my %running = map { EntityApi::Test::start($command{$_}, out => "$folder/$_.log", env => \%environment) => $_ } keys %command;

	my $port = EntityApi::Test::free_port();
	my $prism = EntityApi::Test::start([ "$bin/prism", 'proxy', $file, $shim->url, '--port', $port ],
		out => "$folder/prism.log", env => \%environment);
	my $proxy = bless { %$shim, url => "http://127.0.0.1:$port", client => HTTP::Tiny->new(keep_alive => 1, timeout => 300) }, ref $shim;
	my $reached = EntityApi::Test::wait_until(180, sub { HTTP::Tiny->new(timeout => 5)->get($proxy->url . '/actuator/health')->{status} == 200 });

	subtest 'a validating proxy' => sub { proxied($proxy) } if ok($reached, 'prism is there')
	  or diag EntityApi::Test::slurp("$folder/prism.log");
	kill 'TERM', $prism;
	waitpid $prism, 0;

	while (my ($pid, $name) = each %running)
	{
		waitpid $pid, 0;
		is($?, 0, "$name finds no error") or diag EntityApi::Test::slurp("$folder/$name.log");
	}
}

# Each answer is one that the document allows, says the proxy.
sub proxied
{
	my ($proxy) = @_;
	my $through = bless { %$editor, shim => $proxy }, ref $editor;
	my $super = $shim->superadmin;
	my $tenant = $editor->{tenant};
	my $held = 0;
	my $see = sub {
		my ($status, $method, $target, %options) = @_;
		my $got = $through->call($method, $target, %options);
		my $violations = $got->{headers}{'sl-violations'};
		my @ours = grep { $_->{location}[0] eq 'response' } @{ defined $violations ? $json->decode($violations) : [] };

		ok($got->{status} == $status && !@ours, "$method $target: $status")
		  or diag "$got->{status} $got->{body}\n", $violations // '';
		$held++;
		return $got->{json} ? $got->{json}{data} : undef;
	};

	my $ann = $see->(201, POST => '/authors', data => $editor->document(authors => { name => 'Ann' }));
	my $work = $see->(201, POST => '/works', data => $editor->document(works => { title => 'A', price => 1.5 }, { author => $ann }));
	my ($one, $etag) = ("/works/$work->{id}", { 'If-Match' => '"0"' });
	my $genre = $see->(201, POST => '/genres', data => $editor->document(genres => { name => 'Prose' }));

	$see->(200, GET => '/works?include=author,genres&fields[authors]=name&sort=-title&page[size]=1&filter=title==A');
	$see->(200, GET => "$one?include=author");
	$see->(200, GET => "$one/author");
	$see->(200, GET => "$one/genres");
	$see->(200, GET => "$one/subject");
	$see->(200, GET => "$one/relationships/subject");
	$see->(200, GET => "$one/relationships/genres");
	$see->(304, GET => "$one?fields[works]=title", headers => { 'If-None-Match' => '"0"' });
	$see->(204, POST => "$one/relationships/genres", data => [ $editor->identifier($genre) ]);
	$see->(204, DELETE => "$one/relationships/genres", data => [ $editor->identifier($genre) ], headers => { 'If-Match' => '"1"' });
	$see->(204, PATCH => "$one/relationships/editor", data => $editor->identifier($ann), headers => { 'If-Match' => '"2"' });
	$see->(200, PATCH => $one, data => { type => 'works', id => $work->{id}, attributes => { title => 'B' } }, headers => { 'If-Match' => '"3"' });

	$see->(400, GET => '/works?filter=nothing==1');
	$see->(400, POST => '/works', data => { type => 'works', attributes => { x => 1 } });
	$see->(400, PATCH => "$one/relationships/subject", data => $editor->identifier($ann), headers => { 'If-Match' => '"4"' });
	$see->(401, GET => '/works', plain => 1);
	$see->(403, DELETE => "/authors/$ann->{id}", token => $editor->reader->{token});
	$see->(404, GET => "/works/$EntityApi::Test::Conformance::nobody");
	$see->(409, POST => '/works', data => { type => 'authors' });
	$see->(409, DELETE => "/authors/$ann->{id}");
	$see->(412, PATCH => $one, data => { type => 'works', id => $work->{id} }, headers => { 'If-Match' => '"99"' });
	$see->(415, POST => '/authors', body => '{}', headers => { 'Content-Type' => 'text/plain' });
	$see->(428, DELETE => $one);

	my %atomic = (headers => { 'Content-Type' => $EntityApi::Test::Conformance::atomic, Accept => $EntityApi::Test::Conformance::atomic });
	$see->(200, POST => '/operations', %atomic, json => { 'atomic:operations' => [
		{ op => 'add', data => { type => 'authors', lid => 'x', attributes => { name => 'Bob' } } },
		{ op => 'remove', ref => { type => 'authors', lid => 'x' } } ] });
	$see->(404, POST => '/operations', %atomic, json => { 'atomic:operations' => [
		{ op => 'remove', ref => { type => 'authors', id => $EntityApi::Test::Conformance::nobody } } ] });

	$see->(200, GET => '/auth/me');
	$see->(401, POST => '/auth/login', plain => 1, json => { username => 'x', password => 'y' });
	$see->(200, GET => '/manage/tenants', token => $super);
	$see->(200, GET => "/manage/tenants/$tenant/users?filter=username==editor", token => $super);
	$see->(200, GET => '/manage/audit?page[size]=5', token => $super);
	$see->(200, GET => '/manage/migrations/status', token => $super);
	$see->(200, GET => "/manage/tenants/$tenant/settings/personal-api-keys", token => $super);
	$see->(403, GET => '/manage/tenants');
	$see->(200, GET => '/actuator/health');
	$see->(204, DELETE => $one, headers => { 'If-Match' => '"4"' });
	cmp_ok($held, '>', 35, 'requests');

	# it does look: this is no request of the description
	my $wrong = $through->call(POST => '/authors', data => { type => 'authors', attributes => { name => 1 } });
	like($wrong->{headers}{'sl-violations'} // '', qr/"request"/, 'it holds requests against the description');
	return;
}

done_testing();
