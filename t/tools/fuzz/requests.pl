#!/usr/bin/perl
#
# Send mutated requests to entityapi.handle() and report what must never
# happen: a backend that ends, an answer 500, an error raised for another
# reason than that the request may be repeated, an answer that tells of SQL.
#
#	perl -It/lib t/tools/fuzz/requests.pl [--count N] [--seed N]
#
# The environment is that of the TAP tests.  Not one of them: it looks for new
# faults, with another seed each time.

use strict;
use warnings;

use Getopt::Long;
use JSON::PP;
use MIME::Base64 ();
use Time::HiRes ();

use EntityApi::Test;
use EntityApi::Test::Rows;

my ($count, $seed, $folder) = (5000, time, 't/data/entities');
GetOptions('count=i' => \$count, 'seed=i' => \$seed, 'manifests=s' => \$folder)
  or die "usage: $0 [--count N] [--seed N] [--manifests FOLDER]\n";
srand $seed;
print "seed $seed\n";

my $chunk = 250;
my @operators = grep { defined } map { @$_{qw(name other)} } EntityApi::Test::Rows::operators();
my $json = JSON::PP->new->canonical->allow_nonref->utf8;
my $plain = 'application/vnd.api+json';
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

my $cluster = EntityApi::Test->cluster;
$cluster->apply(map { m{^/} ? $_ : EntityApi::Test::checkout() . "/$_" } $folder, 't/tools/fuzz/past.yaml');
my $shim = EntityApi::Test->shim($cluster);
my @tenants = map { $shim->tenant($_) } qw(acme other);
my %token = (editor => $shim->user($tenants[0]{id}, 'ann', ['Editor'], securityAttributes => { shelf => 'any' })->{accessToken},
	reader => $shim->user($tenants[0]{id}, 'bob', ['Reader'], securityAttributes => { shelf => 'red' })->{accessToken},
	helper => $shim->user($tenants[0]{id}, 'cem', ['Helper'])->{accessToken},
	other => $shim->user($tenants[1]{id}, 'dan', ['Editor'])->{accessToken},
	super => $shim->superadmin->{accessToken});
my @collections = qw(people lockers boxes slips tags books toys vaults memos countries specimens papers users);
my %ids = map { $_ => [ '01980000-0000-7000-8000-000000000000', 'x' ] } @collections;

sub made
{
	my ($collection, $attributes, $relationships) = @_;
	my $answer = $shim->must(201, POST => "/api/v1/$collection",
		{   token => $token{editor},
			json  => { data => { type => $collection, attributes => $attributes,
					relationships => $relationships // {} } } });

	push @{ $ids{$collection} }, ($answer->{data}{id}) x 20;
	return { data => { type => $collection, id => $answer->{data}{id} } };
}

my @uids = split /\n/, $cluster->try_psql(q{select id from entityapi.account where tenant_id is not null})->{out};
my $ann = made(people => { name => 'Ann' });
made(people => { name => 'Bob' }, { boss => $ann });
made(tags => { word => "w$_" }) for 1 .. 3;
made(books => { title => 'B' });
made(toys => { title => 'T' });
made(boxes => { label => 'b' }, { owner => $ann });
made(memos => { subject => 'm' });
made(lockers => { number => 7 }, { holder => $ann });
made(specimens => { name => 'first', amount => 1.5, extra => { a => 1 } });
push @{ $ids{users} }, (@uids) x 10;

# Papers with a past: changed, deleted with their parts, come back
my @times = map { my $paper = paper($_); ($paper->{begin}, $paper->{end}) } qw(red blue);
my @cursors;

sub paper
{
	my ($shelf) = @_;
	my $begin = now();
	my $whole = made(papers => { title => 'whole', shelf => $shelf });
	my $part = made(papers => { title => 'part' }, { whole => $whole });
	my $path = "/api/v1/papers/$whole->{data}{id}";
	my %any = (token => $token{editor}, headers => { 'If-Match' => '*' });

	$shim->must(200, PATCH => $path, { %any, json => { data => { %{ $whole->{data} }, attributes => { title => "w$_", shelf => any('red', 'blue') } } } }) for 1 .. 3;
	$shim->must(204, DELETE => $path, \%any);
	my $end = now();
	$shim->must(200, POST => "$path/restore", { token => $token{editor} });
	$shim->must(204, DELETE => "/api/v1/papers/$part->{data}{id}", \%any);
	for my $list ("$path/history", '/api/v1/papers?sort=updatedAt&show[deleted]=with&page[after]=start')
	{
		my $page = $shim->must(200, GET => $list . ($list =~ /\?/ ? '&' : '?') . 'page[size]=1', { token => $token{editor} });
		push @cursors, $page->{links}{next} =~ /page(?:\[|%5B)after(?:\]|%5D)=([^&]+)/;
	}
	return { begin => $begin, end => $end };
}

sub now
{
	my @t = gmtime int(my $at = Time::HiRes::time());
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000;
}

sub any { return $_[ rand @_ ] }
sub id { my ($c) = @_; return any(@{ $ids{ $c // any(@collections) } }) }

my @scalars = (undef, JSON::PP::true, JSON::PP::false, 0, -1, 1, 42, 1e15, '', 'a', 'RED',
	'people', 'boxes', 'tags', '%', '\\', "'", '"', "\x{e9}", "\x{1F600}", '2026-02-30',
	'2026-11-20', '2026-11-20T10:00:00Z', '9999-12-31T23:59:59.999999-23:59',
	'0001-01-01T00:00:00+23:59', 'NaN', 'infinity', '1e400', '1e-1000', '1e999', '-0', '00',
	'01980000-0000-7000-8000-000000000000', 'x' x 300, 'y' x 5000, 'add', 'update', 'remove', 'l1', 'l2',
	'/people', '/api/v1/people', 'people/x/relationships/boss');
my @keys = qw(data type id lid attributes relationships meta version links ref href op relationship
  name boss team boxes locker label weight owner keeper vault content tags slips word number
  holder title pages minimumAge subject reply replies code letters colour essay count grade big
  amount price exact flag day moment token extra born stamp level secret rated place text
  shelf due rest keeper maker whole parts createdAt updatedAt createdBy updatedBy zone kind displayName
  asOf deletedAt tenantId tenant_id deleted_at deletion_id atomic:operations username password roles refreshToken);

sub value
{
	my ($depth) = @_;
	my $kind = rand;

	return any(@scalars) if $kind < 0.75 || $depth > 3;
	return [ map { value($depth + 1) } 1 .. rand 4 ] if $kind < 0.87;
	return { map { any(@keys) => value($depth + 1) } 1 .. rand 4 };
}

sub identifier
{
	my $type = any(@collections);

	return any({ type => $type, id => id($type) }, { type => $type, id => id($type) },
		{ type => $type, lid => any(qw(l1 l2 l3)) });
}

sub resource
{
	my ($type, $with) = @_;
	my %resource = (type => $type, attributes => {}, relationships => {}, %$with);
	my %attributes = (people => { name => 'N' }, boxes => { label => 'L', weight => 1.25 },
		tags => { word => 'W' . int rand 20 }, books => { title => 'B', pages => 3 }, toys => { title => 'T' },
		slips => { text => 'S' }, memos => { subject => 'M' . int rand 20 },
		lockers => { number => int rand 50 }, papers => { title => 'P' . int rand 20, shelf => any('red', 'blue') },
		specimens => { name => 'n', letters => 'abc', colour => 'RED', count => 3, grade => 2,
			big => 5, amount => '1.5', price => 2.25, exact => '1.0000000001', flag => JSON::PP::true,
			day => '2026-01-02', moment => '2026-01-02T03:04:05+01:00',
			token => '01980000-0000-7000-8000-000000000000', extra => { a => [ 1, {} ] }, code => 'c' . rand });
	my %one = (people => { boss => 'people', locker => 'lockers' }, boxes => { owner => 'people', keeper => 'people',
			vault => 'vaults', content => any('books', 'toys') }, slips => { box => 'boxes' }, memos => { reply => 'memos' },
		lockers => { holder => 'people' }, papers => { keeper => 'users', whole => 'papers' });
	my %many = (people => { team => 'people', boxes => 'boxes' }, boxes => { tags => 'tags', slips => 'slips' },
		tags => { boxes => 'boxes' }, memos => { replies => 'memos' });

	$resource{attributes} = $attributes{$type} // {};
	for my $name (keys %{ $one{$type} // {} })
	{
		my $target = $one{$type}{$name};

		$resource{relationships}{$name} = { data => any(undef, { type => $target, id => id($target) },
				{ type => $target, lid => any(qw(l1 l2 l3)) }) } if rand() < 0.6;
	}
	for my $name (keys %{ $many{$type} // {} })
	{
		my $target = $many{$type}{$name};

		$resource{relationships}{$name} = { data => [ map { { type => $target, id => id($target) } } 1 .. rand 4 ] }
		  if rand() < 0.4;
	}
	return \%resource;
}

sub operation
{
	my $type = any(@collections);
	my $kind = int rand 6;

	return { op => 'add', data => resource($type, { lid => any(qw(l1 l2 l3)) }) } if $kind < 2;
	return { op => 'update', data => resource($type, { id => id($type) }) } if $kind == 2;
	return { op => any(qw(update remove)), ref => any({ type => $type, id => id($type) },
			{ type => $type, lid => any(qw(l1 l2)) }), data => resource($type, { lid => 'l1' }) } if $kind == 3;
	return { op => any(qw(add update remove)), ref => { type => $type, id => id($type),
			relationship => any(qw(boss team boxes tags owner slips content keeper whole)) }, data => any([ identifier() ], identifier()) }
	  if $kind == 4;
	return { op => any(qw(add update remove)), href => "/$type/" . id($type), data => resource($type, {}) };
}

# Change one random place of a structure.
sub mutate
{
	my ($node) = @_;

	return value(1) if !ref $node || JSON::PP::is_bool($node) || rand() < 0.08;
	if (ref $node eq 'ARRAY')
	{
		my @copy = @$node;
		my $way = rand;

		if (!@copy || $way < 0.15) { push @copy, value(1) }
		elsif ($way < 0.3) { splice @copy, rand @copy, 1 }
		elsif ($way < 0.4) { push @copy, any(@copy) }
		else { my $i = int rand @copy; $copy[$i] = mutate($copy[$i]) }
		return \@copy;
	}
	my %copy = %$node;
	my @names = sort keys %copy;
	my $way = rand;

	if (!@names || $way < 0.12) { $copy{ any(@keys) } = value(1) }
	elsif ($way < 0.22) { delete $copy{ any(@names) } }
	elsif ($way < 0.3) { $copy{ any(@keys) } = delete $copy{ any(@names) } }
	else { my $name = any(@names); $copy{$name} = mutate($copy{$name}) }
	return \%copy;
}

sub spoil_bytes
{
	my ($bytes) = @_;

	for (1 .. 1 + rand 3)
	{
		my $at = int rand(length($bytes) + 1);
		my $way = int rand 4;

		if ($way == 0) { substr($bytes, $at, 0) = chr int rand 256 }
		elsif ($way == 1) { substr($bytes, $at, 1 + rand 4) = '' if $at < length $bytes }
		elsif ($way == 2) { substr($bytes, $at, 0) = any('\u0000', '\ud800', "\xc3\x28", '{', '[', '"', '1e1000', ',', "\0", '[' x 70) }
		else { substr($bytes, $at, 1) = chr int rand 256 if $at < length $bytes }
	}
	return $bytes;
}

my @words = (@keys, qw(== != =in= =out= =like= =isnull= =gt= > < <= ;), ',', qw(and or true false null 1 -1 1e9
  0.1 RED 2026-01-01 %25 %27 %22 %5C * . .. ... a b ( ) %28 %29 + %20 %00 %zz %c3%28 %e2%82%ac %F0%9F%98%80), @collections);

sub target
{
	my ($collection, $method) = @_;
	my %names = (people => [qw(boss team boxes locker)], boxes => [qw(owner keeper vault content tags slips)],
		slips => ['box'], tags => ['boxes'], memos => [qw(reply replies)], lockers => ['holder'],
		papers => [qw(keeper maker whole parts createdBy updatedBy)]);
	my $name = any(rand() < 0.9 ? @{ $names{$collection} // ['none'] } : @keys);
	my $target = "/api/v1/$collection" . ($method eq 'POST' ? any('', '/' . id($collection) . "/relationships/$name")
		: $method ne 'GET' && rand() < 0.95 ? any('/' . id($collection), '/' . id($collection) . "/relationships/$name")
		: any('', '/' . id($collection), '/' . id($collection) . "/relationships/$name", '/' . id($collection) . "/$name"));
	my @parameters;

	$target = any('/api/v1/operations', '/auth/me', '/auth/login', '/manage/tenants', "/manage/tenants/$tenants[0]{id}/users",
		'/auth/refresh', '/actuator/health') if rand() < 0.05;
	return past($collection) if $method eq 'GET' && rand() < 0.25;
	$target = "/api/v1/papers/" . id('papers') . '/restore' if $method eq 'POST' && rand() < 0.1;
	for (1 .. ($method eq 'GET' ? rand 4 : rand 1.2))
	{
		my $name = any('filter', 'filter', 'filter', 'sort', 'include', 'page[size]', 'page[number]', 'page[totals]',
			"fields[" . any(@collections) . "]", any(@words));
		my $text = $name eq 'filter'
		  ? join('', map { join('', any(@keys), any('', '.' . any(@keys), '.id'), any(qw(== != =in= =out= =like= =isnull= =ge= <)), any(@words)),
				any(';', ',', '%20and%20', '') } 1 .. 1 + rand 4)
		  : join(any(',', '.', ''), map { any(@words) } 1 .. 1 + rand 3);

		push @parameters, "$name=$text";
	}
	$target .= '?' . join '&', @parameters if @parameters;
	$target =~ s/[^\x21-\x7e]/%20/g;
	if (rand() < 0.05) { substr($target, rand length $target, rand 2) = any(@words) }
	return $target;
}

# What was, and what is deleted; mostly of papers, which have a past
sub past
{
	my ($collection) = @_;
	$collection = 'papers' if rand() < 0.8;
	my $id = id($collection);
	my $time = any(@times, @times, @times, now(), '2026-02-30T00:00:00Z', '0001-01-01T00:00:00+23:59', '9999-12-31T23:59:59.999999Z', '', any(@words));
	my $shown = 'show[deleted]=' . any('with', 'with', 'only', 'only', '', any(@words));
	my $cursor = any(@cursors, @cursors, 'start', 'end', 'A' x 22, any(@words), spoil_bytes(any(@cursors)));
	my $page = 'page[' . any('after', 'before') . "]=$cursor&page[size]=" . any(1, 2, 100, 0);
	my $target = "/api/v1/$collection" . any("/$id?asOf=$time", "/$id?asOf=$time", "/$id?asOf=$time&" . any($shown, 'include=maker', 'fields[papers]=' . join ',', map { any(@keys) } 1 .. 3),
		"/$id?$shown", "?$shown&sort=" . any('-', '') . any(qw(updatedAt createdBy.username whole.title shelf)), "?$shown&filter=" . any('createdBy', 'maker', 'keeper', 'whole', 'updatedAt') . any('.username', '.id', '.zone', '')
		  . any('==', '=isnull=', '=gt=') . any('true', 'ann', @times, any(@words)), "?$shown&include=" . any("maker", "keeper", "whole.maker", "parts", "createdBy,updatedBy"), "?$shown&sort=updatedAt&$page",
		"/$id/history", "/$id/history?$page", "/$id/history?asOf=$time&$page", "/$id/history?asOf=$time", "/$id/restore", "/$id/" . any(qw(whole parts maker)) . "?$shown");

	$target =~ s/[^\x21-\x7e]/%20/g;
	return $target;
}

sub identity
{
	my $users = '/manage/tenants/' . any($tenants[0]{id}, $tenants[1]{id}, 'x', $ids{people}[0]) . '/users';
	my %user = (username => any('u' . int rand 1e6, 'ann', "\x{c4}n"), email => 'a@b.example', roles => any([], ['Editor'], ['Nobody']),
		profile => { a => { b => [ 1, undef ] } }, securityAttributes => {}, temporaryPassword => 'temporary-word-1');

	my $t = "/manage/tenants/" . any($tenants[0]{id}, $tenants[0]{id}, $tenants[1]{id}, 'x');
	my $crc = 'eai_' . 'a' x 71;
	my $f = any('', '?filter=' . join('', any(qw(id name status at tenantId actorId action outcome targetType targetId requestId email username roles createdAt expiresAt lastUsedAt domainRoles securityAttributes ownerId ownerUsername clientId)), any(@operators), any(@words, '(a,b)', '2026-01-01T00:00:00Z', '$ids{people}[0]', 'true')), '?sort=' . any(qw(-id name -createdAt roles status securityAttributes x)), '?page[size]=' . any(0,1,100,101,'x'), '?page[number]=' . any(1, 2, '9223372036854775807', '99999999999999999'), '?page[after]=' . any('x', 'AAAA', '', 'MDE5ODAwMDA' . 'A' x 40, "%e9"), '?page[totals]=false');
	return any(
		[ GET => "$t/invites$f", undef ], [ GET => "$t/service-accounts$f", undef ], [ GET => "$t/personal-api-keys$f", undef ],
		[ GET => "/manage/tenants$f", undef ], [ GET => "$t/users$f", undef ], [ GET => '/manage/migrations/status', undef ], [ GET => $t, undef ],
		[ PATCH => $t, { name => any('acme', 'T' . int rand 9, value(1)), status => any('ACTIVE', 'ACTIVE', value(1)), attributes => any({}, value(0), { a => value(1), b => undef }) } ],
		[ POST => "$t/users", { username => 'w' . int rand 1e6, email => any('a@b.example', value(1)), roles => any([], value(1)), securityAttributes => any({}, value(0)), profile => any({}, value(0)), temporaryPassword => any('temporary-word-1', value(1)) } ],
		[ PATCH => "$t/users/" . any(@uids, @uids, id()), { email => any(undef, 'x@y.example', value(1)), status => any('ACTIVE', 'DISABLED', value(1)), securityAttributes => any({}, undef, value(0)), profile => any({}, undef, value(0)), temporaryPassword => any(undef, 'temporary-word-1', value(1)) } ],
		[ PUT => "$t/users/" . any(@uids, id()) . '/roles', { roles => any([], ['Editor'], ['TenantAdmin'], ["super\x{200b}admin"], value(1)) } ],
		[ any(qw(POST DELETE)) => "$t/tenant-admins/" . any(@uids, id()), any(undef, {}) ], [ DELETE => "$t/users/" . any(@uids, id()), undef ],
		[ GET => "/manage/audit$f", undef ], [ GET => "/manage/audit$f", undef ], [ GET => "/auth/me/api-keys$f", undef ],
		[ POST => "$t/invites", { email => any('a@b.example', value(1)), username => 'inv' . int rand 1e6, roles => any([], ['Editor'], value(1)), expiresInHours => any(1, 0, -1, 1e9, 1e300, 0.5, 'x') } ],
		[ POST => '/auth/accept-invite', { token => any($crc, 'x', ''), username => 'z', password => 'x' x 14, profile => value(0) } ],
		[ POST => "$t/service-accounts", { name => any('n', value(1)), roles => any([], ['Editor'], value(1)), securityAttributes => any({}, value(0), { a => value(1) }) } ],
		[ POST => "$t/service-accounts/" . id() . any('/disable', '/rotate-secret'), any(undef, {}, value(0)) ],
		[ POST => "$t/personal-api-keys/" . id() . '/revoke', any(undef, {}) ],
		[ GET => "$t/settings/personal-api-keys", undef ],
		[ PUT => any("$t/settings/personal-api-keys", '/manage/settings/personal-api-keys'), { enabled => any(JSON::PP::true, undef, value(1)), allowNonExpiring => any(JSON::PP::true, undef, value(1)) } ],
		[ POST => '/auth/me/api-keys', { name => any('k', value(1)), domainRoles => any(['Editor'], [], value(1)), securityAttributes => any({}, value(0)), expiresAt => any('2027-01-01T00:00:00Z', '294276-12-31T23:59:59Z', value(1)) } ],
		[ POST => '/auth/me/api-keys/' . id() . '/disable', undef ],
		[ POST => '/auth/token', any({ clientId => value(1), clientSecret => any('eas_' . 'a' x 71, value(1)) }, 'grant_type=client_credentials&client_id=%ff&client_secret=%00', "grant_type=%e9&client_id=a&client_secret=b", "grant_type=client_credentials&client_id=a&client_id=b", "&&=&=a&%") ],
		[ POST => '/auth/login', { username => any('nobody', "x\x{300}" x 200), password => 'x' } ],
		[ POST => '/auth/refresh', { refreshToken => any('x', 'ear_' . 'a' x 71, 'ear_' . 'a' x 70000) } ],
		[ POST => '/auth/logout', { refreshToken => any('x', undef) } ],
		[ PATCH => '/auth/me', { profile => { name => value(1) } } ],
		[ GET => '/auth/me', undef ],
		[ GET => '/auth/me/permissions', undef ],
		[ POST => '/auth/change-password', { currentPassword => 'x', newPassword => any('y' x 129, 'short') } ],
		[ POST => '/manage/tenants', { name => 'T' . int rand 1e6, slug => 't' . int rand 1e6, attributes => { a => 1 } } ],
		[ POST => $users, \%user ],
		[ PUT => "$users/" . any('x', $ids{people}[0]) . '/roles', { roles => any([], ['Editor'], [ 'Editor', 'Editor' ]) } ]);
}

# A token of which one thing is changed
sub spoiled_token
{
	my $token = $token{ any(qw(editor super)) };
	my @parts = split /\./, $token;
	my $way = int rand 5;

	if ($way == 0) { substr($token, rand length $token, 1) = any('A', '.', '=', '-', '_', ' ', "\x{e9}") }
	elsif ($way == 1) { $token = join '.', @parts[ 0, 1 ], any('', @parts) }
	elsif ($way == 2) { $token .= any('.', '=', 'A', '.x', 'x' x 9000) }
	elsif ($way == 3) { $token = join '.', map { encoded_json($_) } mutate({ alg => 'HS256', kid => 'x', typ => 'at+jwt' }), mutate({ sub => 'x', exp => 1 }), 'x' }
	else { $token = any('', '.', '..', '...', 'a.b', 'eap_' . 'a' x 71, "\x{0}" =~ tr/\0/ /r) }
	return $token;
}

sub encoded_json
{
	my ($value) = @_;

	return MIME::Base64::encode_base64url($json->encode($value));
}

sub request
{
	my $method = any(qw(GET GET GET POST POST PATCH PATCH DELETE HEAD PUT));
	my $collection = any(@collections);
	my $target = target($collection, $method);
	my $body;
	my %headers = (authorization => 'Bearer ' . $token{ any(qw(editor editor editor editor reader helper other super)) });
	my $kind = rand;

	if ($kind < 0.25)
	{
		($method, $target, $body) = @{ identity() };
		$headers{'content-type'} = 'application/json';
		$headers{authorization} = "Bearer $token{super}" if rand() < 0.85;
		$headers{'content-type'} = 'application/x-www-form-urlencoded', $headers{authorization} = any('Basic ' . any('YTpi', '/////w==', 'YQ==', ':'), 'Basic') if $target eq '/auth/token' && rand() < 0.5;
	}
	elsif ($kind < 0.4)
	{
		($method, $target) = ('POST', '/api/v1/operations');
		$headers{'content-type'} = $atomic;
		$body = { 'atomic:operations' => [ map { operation() } 1 .. 1 + rand 5 ] };
	}
	elsif ($method =~ /^P|DELETE/)
	{
		$headers{'content-type'} = $plain;
		$body = $target =~ m{/relationships/} ? { data => any([ identifier(), identifier() ], identifier(), undef) }
		  : $method eq 'POST' ? { data => resource($collection, {}) }
		  : { data => resource($collection, { id => $target =~ m{/api/v1/\w+/([^/?]+)} ? $1 : 'x' }) };
		$headers{'if-match'} = any('*', '*', '"0"', '"1"', 'W/"1"', '"01"', '1', '', '"0", "1"', '"99999999999999999999"', ',', '"', '"0""1"')
		  if rand() < 0.8;
	}
	if (defined $body && !ref $body && $target eq "/auth/token") { }
	elsif (defined $body)
	{
		for (1 .. rand 3) { $body = mutate($body) }
		$body = $json->encode($body);
		$body = spoil_bytes($body) if rand() < 0.1;
	}
	$headers{authorization} = any('Bearer ', 'Bearer ', 'bearer ', 'Basic ', '') . spoiled_token() if rand() < 0.05;
	$headers{ any('x-tenant-id', 'accept', 'content-type', 'x-request-id', 'if-none-match', 'authorization', 'x-api-key', 'if-match') } =
	  any('', 'x', '*', '*/*', $plain, $atomic, '"1"', $tenants[0]{id}, $tenants[1]{id}, [], [ 'a', 'b' ], {}, 1, undef, 'Bearer x', "Bearer a.b.c")
	  if rand() < 0.15;
	$headers{'x-tenant-id'} = $tenants[0]{id} if ($headers{authorization} // '') eq "Bearer $token{super}" && rand() < 0.7;
	return [ $method, $target, $json->encode(\%headers), $body ];
}

sub sql_of
{
	my ($n, $request) = @_;
	my ($method, $target, $headers, $body) = @$request;

	s/'/''/g for $target, $headers;
	return sprintf "(%d, '%s', '%s', '%s'::jsonb, %s)", $n, $method, $target, $headers,
	  defined $body ? sprintf("'\\x%s'::bytea", unpack 'H*', $body) : 'null';
}

my $runner = <<~'SQL';
	create temp table request (n int, method text, target text, headers jsonb, body bytea);
	create function pg_temp.run() returns table (n int, status int, why text) language plpgsql as $$
	declare r record; h record;
	begin
		for r in select * from request order by 1 loop
			begin
				n := r.n;
				h := entityapi.handle(r.method, r.target, r.headers, r.body, '127.0.0.1');
				status := h.status;
				why := case when h.status = 500 or h.status is null then h.body
					when h.status >= 400 and h.body !~ '"errors"|"error_description"' then 'no errors: ' || h.body
					when h.body ~ 'ERROR:|SQLSTATE|\mpg_|relation "|tenant_id|_pkey|_fkey|\.c:[0-9]|syntax error at' and r.target !~ 'tenant_id|pg_|migrations' and encode(coalesce(r.body, ''), 'escape') !~ 'tenant_id' then 'leak: ' || h.body
					end;
				if h.body is not null and (h.headers->>'content-type') ~ 'json' then perform h.body::json; end if;
			exception when others then
				status := -1;
				why := sqlstate || ' ' || sqlerrm;
			end;
			return next;
		end loop;
	end $$;
	SQL

sub run
{
	my (@requests) = @_;
	my $n = 0;

	return $cluster->try_psql("begin;\n" . $runner . 'insert into request values '
		  . join(",\n", map { sql_of($n++, $_) } @requests)
		  . ";\nselect n || '|' || status || '|' || coalesce(why, '') from pg_temp.run();\nrollback;\n");
}

sub show
{
	my ($what, $request) = @_;

	print "$what\n  $request->[0] $request->[1]\n  $request->[2]\n  ", $request->[3] // '(no body)', "\n";
	return;
}

my (%statuses, $faults);
for (my $done = 0; $done < $count; $done += $chunk)
{
	my @requests = map { request() } 1 .. $chunk;
	my $result = run(@requests);

	if ($result->{status} != 0)
	{
		print "chunk at $done failed: $result->{err}\n";
		$faults++;
		for my $request (@requests)
		{
			EntityApi::Test::wait_until(10, sub { $cluster->try_psql('select 1')->{status} == 0 });
			my $single = run($request);

			show("ENDED: $single->{err}", $request), last if $single->{status} != 0;
		}
		EntityApi::Test::wait_until(10, sub { $cluster->try_psql('select 1')->{status} == 0 });
		next;
	}
	for my $line (split /\n/, $result->{out})
	{
		my ($n, $status, $why) = split /\|/, $line, 3;

		next unless defined $why;
		$statuses{$status}++;
		next if $why eq '' || $why =~ /^(?:40|53|57)/;
		$faults++;
		show("$status $why", $requests[$n]);
	}
}
print join(' ', map { "$_:$statuses{$_}" } sort keys %statuses), "\n";
my $log = EntityApi::Test::slurp($cluster->log);
print "cause: $_\n" for $log =~ /LOG:  (entityapi request \S+ failed: .*)/g;
exit($faults ? 1 : 0);
