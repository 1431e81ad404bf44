# Every route of /manage, as the route table has it, by every kind of caller;
# what is foreign and what is invented; lists at their borders, sorted and
# filtered by each member; settings both ways.  POOL and SINGLE.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $nowhere = '00000000-0000-4000-8000-000000000000';
my $soon = '2099-01-01T00:00:00Z';

# -------- the routes, from the source, and what is expected of each --------

my @routes = do
{
	my $source = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/extension/entry/routes.c');
	my ($tenant) = $source =~ /#define TENANT "([^"]+)"/ or die;
	my @found;
	while ($source =~ /\.method = EA_(\w+),\s*\.pattern = (TENANT)?\s*(?:"([^"]*)")?\s*,/g)
	{
		my ($method, $path) = ($1, ($2 ? $tenant : '') . ($3 // ''));
		push @found, "$method $path" if $path =~ m{^/manage};
	}
	@found;
};

# Who may: 's' SuperAdmin, 't' also the TenantAdmin of the tenant, 'a' any
# administrator.  Then the answer to those, the body, and what {x} is.
my %expect = (
	'POST /manage/tenants' => [ 's', 201, sub { my $n = 'n' . int rand 1e15; { name => $n, slug => $n } } ],
	'GET /manage/tenants' => [ 's', 200 ],
	'GET /manage/tenants/{id}' => [ 's', 200 ],
	'PATCH /manage/tenants/{id}' => [ 's', 200, {} ],
	'DELETE /manage/tenants/{id}' => [ 's', 204, undef, 'tenant' ],
	'POST /manage/tenants/{id}/users' => [ 't', 201, sub { { username => 'n' . rand } } ],
	'GET /manage/tenants/{id}/users' => [ 't', 200 ],
	'PATCH /manage/tenants/{id}/users/{uid}' => [ 't', 200, { profile => { a => 1 } }, 'user' ],
	'DELETE /manage/tenants/{id}/users/{uid}' => [ 't', 204, undef, 'user' ],
	'PUT /manage/tenants/{id}/users/{uid}/roles' => [ 't', 200, { roles => ['Viewer'] }, 'user' ],
	'POST /manage/tenants/{id}/tenant-admins/{uid}' => [ 's', 204, undef, 'user' ],
	'DELETE /manage/tenants/{id}/tenant-admins/{uid}' => [ 's', 204, undef, 'user' ],
	'GET /manage/tenants/{id}/invites' => [ 't', 200 ],
	'POST /manage/tenants/{id}/invites' => [ 't', 201, { email => 'a@b', username => 'x', roles => [] } ],
	'DELETE /manage/tenants/{id}/invites/{inviteId}' => [ 't', 204, undef, 'invite' ],
	'GET /manage/tenants/{id}/service-accounts' => [ 't', 200 ],
	'POST /manage/tenants/{id}/service-accounts' => [ 't', 201, { name => 'robot' } ],
	'POST /manage/tenants/{id}/service-accounts/{accountId}/disable' => [ 't', 200, undef, 'robot' ],
	'POST /manage/tenants/{id}/service-accounts/{accountId}/rotate-secret' => [ 't', 200, undef, 'robot' ],
	'GET /manage/tenants/{id}/personal-api-keys' => [ 't', 200 ],
	'POST /manage/tenants/{id}/personal-api-keys/{keyId}/revoke' => [ 't', 200, undef, 'key' ],
	'GET /manage/tenants/{id}/settings/personal-api-keys' => [ 't', 200 ],
	'PUT /manage/tenants/{id}/settings/personal-api-keys' => [ 't', 200, {} ],
	'GET /manage/settings/personal-api-keys' => [ 's', 200 ],
	'PUT /manage/settings/personal-api-keys' => [ 's', 200, {} ],
	'GET /manage/audit' => [ 'a', 200 ],
	'GET /manage/migrations/status' => [ 's', 200 ]);

cmp_ok(scalar @routes, '>', 20, 'routes are found');
is_deeply([ sort @routes ], [ sort keys %expect ], 'each route has an expectation, and the other way round');

# -------- things to name in paths, many at a time --------

my $made = 0;
my %stock;

sub thing
{
	my ($cluster, $kind, $tenant) = @_;
	my $stock = $stock{$cluster}{$kind}{$tenant} //= [];

	return pop @$stock if @$stock;
	my $account = sub { my ($of, $key) = @_; "insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile,"
		. " security_attributes, password_change_required, is_super_admin, created_at) select id, '$tenant', '$of', name, $key, 'ACTIVE',"
		. " '{}', '{}', '{}', false, false, now() from new;" };
	my %sql = (
		tenant => "insert into entityapi.tenant select id, name, name, 'ACTIVE', '{}', now() from new",
		user => $account->('USER', 'name'),
		robot => $account->('SERVICE_ACCOUNT', 'null') . "insert into entityapi.service_account select id, name, '\\x' from new",
		key => $account->('USER', 'name') . "insert into entityapi.personal_api_key select id, id, name, '\\x', 'k', 'ACTIVE',"
		  . " '{}', '{}', null, now() from new",
		invite => "insert into entityapi.invite select id, '$tenant', name, '\\x', 'a\@b', name, '{}', 'PENDING', now() + '1 day', now() from new");
	$cluster->psql("create temp table new as select ('018f0000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid as id, 'made' || i as name"
		. " from generate_series($made + 1, $made + 50) i; $sql{$kind}");
	push @$stock, map { sprintf '018f0000-0000-7000-8000-%012d', $made + $_ } 1 .. 50;
	$made += 50;
	return pop @$stock;
}

# -------- callers --------

sub callers
{
	my ($shim, $tenant, $foreign) = @_;
	my $root = $shim->superadmin;
	my $boss = $shim->user($tenant, 'boss', ['Viewer']);
	my %caller = (anonymous => {}, user => { token => $shim->user($tenant, 'plain', ['Viewer']) }, own => { token => $boss },
		super => { token => $root }, forged => { token => 'e30.e30.e30' });

	$shim->must(204, POST => "/manage/tenants/$tenant/tenant-admins/$boss->{id}", { token => $root });
	if ($foreign)
	{
		my $stranger = $shim->user($foreign, 'stranger', []);
		$shim->must(204, POST => "/manage/tenants/$foreign/tenant-admins/$stranger->{id}", { token => $root });
		$caller{foreign} = { token => $stranger };
	}
	my $robot = $shim->must(201, POST => "/manage/tenants/$tenant/service-accounts",
		{ token => $root, json => { name => 'robot', roles => ['Viewer'] } });
	$caller{service} = { token => $shim->must(200, POST => '/auth/token',
			{ json => { clientId => $robot->{clientId}, clientSecret => $robot->{clientSecret} } }) };
	for my $who (qw(own super))
	{
		my $key = $shim->must(201, POST => '/auth/me/api-keys', { token => $caller{$who}{token}, json => { name => 'k', expiresAt => $soon } });
		$caller{"${who}_key"} = { headers => { 'x-api-key' => $key->{key} } };
	}

	# administrators who have to change their password have no authority yet
	my $new = $shim->must(201, POST => "/manage/tenants/$tenant/users",
		{ token => $root, json => { username => 'new-boss', temporaryPassword => 'temporary-word-1' } });
	$shim->must(204, POST => "/manage/tenants/$tenant/tenant-admins/$new->{id}", { token => $root });
	$caller{forced} = { token => $shim->login('new-boss', 'temporary-word-1') };
	return \%caller;
}

sub expected
{
	my ($who, $authority, $well) = @_;

	return 401 if $who eq 'anonymous' || $who eq 'forged';
	return $well if $who eq 'super';
	return $well if $who eq 'own' && $authority =~ /[ta]/;
	return $well if $who eq 'foreign' && $authority eq 'a';
	return 403;
}

# All of an answer but for the time of day; it repeats the request's id
sub whole
{
	my ($answer) = @_;
	my %headers = %{ $answer->{headers} };

	delete $headers{date};
	return JSON::PP->new->canonical->encode([ $answer->{status}, \%headers, $answer->{body} ]);
}

sub ask
{
	my ($shim, $caller, $method, $path, $body) = @_;
	my %headers = ('x-request-id' => 'the-same', %{ $caller->{headers} // {} });

	return $shim->http($method => $path, { %$caller, headers => \%headers, defined $body ? (json => ref $body eq 'CODE' ? $body->() : $body) : () });
}

sub matrix
{
	my ($cluster, $shim, $caller, $tenant, $foreign) = @_;
	my $single = !$foreign;

	for my $route (@routes)
	{
		my ($method, $pattern) = split / /, $route;
		my ($authority, $well, $body, $kind) = @{ $expect{$route} };
		my $gone = $single && $pattern =~ m{^/manage/tenants(?:/\{id\})?$};

		for my $who (sort keys %$caller)
		{
			my $thing = !defined $kind ? '' : $gone ? $nowhere : thing($cluster, $kind, $tenant);
			my $path = $pattern =~ s/\{id\}/($kind \/\/ '') eq 'tenant' ? $thing : $tenant/er =~ s/\{\w+\}/$thing/r;
			my $answer = ask($shim, $caller->{$who}, $method, $path, $body);
			my $expected = $gone ? 404 : expected($who, $authority, $well);

			is($answer->{status}, $expected, "$route by $who") or diag $answer->{body};
			is($answer->{headers}{'cache-control'}, 'no-store', "$route by $who: not to be kept");
			is($answer->{json}{errors}[0]{code}, 'PASSWORD_CHANGE_REQUIRED', "$route: first the password") if $who eq 'forced' && !$gone;
			ok($answer->{headers}{'www-authenticate'}, "$route by $who: how to do better") if $expected == 401;
			next if $gone || $pattern !~ /\{id\}/;

			# a foreign tenant is as good as none: for whom it is foreign
			my @others = $who eq 'foreign' ? ($tenant) : $who eq 'super' || !$foreign ? () : ($foreign);
			my $none = whole(ask($shim, $caller->{$who}, $method, $path =~ s/\Q$tenant\E/$nowhere/r, $body));
			is(whole(ask($shim, $caller->{$who}, $method, $path =~ s/\Q$tenant\E/$_/r, $body)), $none, "$route by $who: foreign or invented")
			  for grep { $path =~ /\Q$tenant\E/ } @others;
			like($none, qr/^\[(?:"?404"?)/, "$route: no such tenant") if $who eq 'super' && $path =~ /\Q$tenant\E/;

			# and so is what belongs to another tenant, within the own one
			next if !$kind || $kind eq 'tenant' || !$foreign || $expected >= 400;
			my ($theirs, $invented) = map { whole(ask($shim, $caller->{$who}, $method, $path =~ s/\Q$thing\E/$_/r, $body)) }
			  thing($cluster, $kind, $foreign), $nowhere;
			is($theirs, $invented, "$route by $who: a foreign $kind");
			like($invented, qr/^\[(?:"?404"?)/, "$route by $who: is not there");
			is(whole(ask($shim, $caller->{$who}, $method, $path =~ s/\Q$thing\E/$_/r, $body)), $invented, "$route by $who: $_")
			  for 'x', uc("$nowhere-");
		}

		# other methods than those of the table
		my @known = map { /^(\S+) \Q$pattern\E$/ ? $1 : () } @routes;
		for my $other (grep { my $m = $_; !$gone && !grep { $_ eq $m } @known } qw(GET POST PUT PATCH DELETE))
		{
			my $answer = ask($shim, $caller->{super}, $other, $pattern =~ s/\{id\}/$tenant/r =~ s/\{\w+\}/$nowhere/r,
				$other =~ /^P/ ? {} : ());
			is($answer->{status}, 405, "$other $pattern");
			is_deeply([ sort grep { $_ ne 'HEAD' } split /, /, $answer->{headers}{allow} ], [ sort @known ], 'what it takes');
		}
	}
	return;
}

my $cluster = EntityApi::Test->cluster;
$cluster->apply('examples/billing');
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($acme, $other) = map { $shim->tenant($_)->{id} } qw(acme other);
my $caller = callers($shim, $acme, $other);

subtest 'POOL' => sub { matrix($cluster, $shim, $caller, $acme, $other) };

subtest 'SINGLE' => sub {
	my $alone = EntityApi::Test->cluster;
	$alone->psql("select count(*) from entityapi.apply_manifest('" . JSON::PP->new->canonical->encode([
				{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 's' },
					spec => { tenancy => 'SINGLE', schema => 'app' } },
				{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Viewer => undef } } } ]) . "')");
	my $it = EntityApi::Test->shim($alone);
	my $tenant = $alone->psql('select id from entityapi.tenant');
	matrix($alone, $it, callers($it, $tenant), $tenant);
};

subtest 'the log of the own tenant' => sub {
	for my $who (qw(own foreign))
	{
		my $tenant = $who eq 'own' ? $acme : $other;
		my $page = $shim->must(200, GET => '/manage/audit?page[size]=100', $caller->{$who});
		is_deeply([ grep { ($_->{tenantId} // '') ne $tenant } @{ $page->{data} } ], [], "$who: of nobody else");
		cmp_ok(scalar @{ $page->{data} }, '>', 0, 'but something');
	}
	my ($foreign, $invented) = map { whole(ask($shim, $caller->{own}, GET => "/manage/audit?filter=tenantId==$_")) } $other, $nowhere;
	is($foreign, $invented, 'a foreign tenant has no records, as an invented one');
};

# -------- lists --------

my $listed = $shim->tenant('listed')->{id};
my $lister = $shim->user($listed, 'lister', []);
$shim->must(204, POST => "/manage/tenants/$listed/tenant-admins/$lister->{id}", { token => $root });
$cluster->psql(<<~SQL);
	create function pg_temp.n(kind text, i int) returns uuid language sql as
		\$\$ select ('018f' || substr(md5(kind), 1, 4) || '-0000-7000-8000-' || lpad(((i * 37) % 1009)::text, 12, '0'))::uuid \$\$;
	insert into entityapi.tenant select pg_temp.n('t', i), 'name ' || i % 1009 * 7 % 1009, 'slug-' || i, case when i % 3 = 0 then 'SUSPENDED' else 'ACTIVE' end,
		'{}', '2026-01-01'::timestamptz + i * interval '1 minute' from generate_series(1, 130) i;
	insert into entityapi.account (id, tenant_id, kind, username, username_key, email, status, roles, profile, security_attributes,
			password_change_required, is_super_admin, created_at, last_login_at)
		select pg_temp.n(k, i), '$listed', k, k || i * 7 % 1009, case k when 'USER' then 'user' || i * 7 % 1009 end,
			case when i % 4 > 0 then 'm' || i || '\@b' end, case when i % 5 = 0 then 'DISABLED' else 'ACTIVE' end,
			case i % 3 when 0 then '{}'::text[] when 1 then '{Viewer}' else '{Accountant,Viewer}' end, jsonb_build_object('n', i), '{}', i % 2 = 0, false,
			'2026-01-01'::timestamptz + i % 50 * interval '1 minute', case when i % 3 > 0 then '2026-02-01'::timestamptz + i * interval '1 s' end
		from generate_series(1, 130) i, unnest('{USER,SERVICE_ACCOUNT}'::text[]) k;
	insert into entityapi.tenant_admin select '$listed', pg_temp.n('USER', i) from generate_series(1, 130, 11) i;
	insert into entityapi.service_account select pg_temp.n('SERVICE_ACCOUNT', i), 'client' || i, '\\x',
		case when i % 3 > 0 then '2026-02-01'::timestamptz + i * interval '1 s' end from generate_series(1, 130) i;
	insert into entityapi.personal_api_key select pg_temp.n('k', i), case when i % 2 = 0 then pg_temp.n('USER', i) else '$lister->{id}' end,
		'token' || i, '\\x', 'key ' || i * 7 % 1009, case i % 3 when 0 then 'ACTIVE' when 1 then 'DISABLED' else 'REVOKED' end, '{Viewer}', '{"a": 1}',
		case when i % 5 > 0 then now() + (i - 65) * interval '1 day' end, '2026-01-01'::timestamptz + i * interval '1 minute',
		case when i % 3 > 0 then '2026-02-01'::timestamptz + i * interval '1 s' end from generate_series(1, 130) i;
	insert into entityapi.invite select pg_temp.n('i', i), '$listed', 'invite' || i, '\\x', 'm' || i * 7 % 1009 || '\@b', 'u' || i % 60, '{Viewer}',
		case when i % 3 = 0 then 'ACCEPTED' else 'PENDING' end, now() + (i - 65) * interval '1 day',
		'2026-01-01'::timestamptz + i * interval '1 minute' from generate_series(1, 130) i;
	SQL

# Address, caller, and how many there are
my %lists = (
	tenants => [ '/manage/tenants', $root ],
	users => [ "/manage/tenants/$listed/users", $lister ],
	invites => [ "/manage/tenants/$listed/invites", $lister ],
	'service-accounts' => [ "/manage/tenants/$listed/service-accounts", $lister ],
	'personal-api-keys' => [ "/manage/tenants/$listed/personal-api-keys", $lister ],
	'own keys' => [ '/auth/me/api-keys', $lister ]);

sub compare
{
	my ($x, $y) = @_;

	return defined $x ? defined $y ? $x cmp $y : -1 : defined $y ? 1 : 0;
}

sub borders
{
	my ($get, $all) = @_;
	my $n = @$all;

	for my $size (1, 7, 99, 100)
	{
		my $pages = int(($n + $size - 1) / $size);
		for my $number (1, 2, $pages, $pages + 1, $pages + 1000)
		{
			my $page = $get->("page[size]=$size&page[number]=$number");
			my $last = $number * $size > $n ? $n : $number * $size;
			my @part = $number > $pages ? () : @$all[ ($number - 1) * $size .. $last - 1 ];
			is_deeply($page->{json}{data}, \@part, "page $number of size $size");
			is_deeply($page->{json}{meta}{pagination}, { number => $number, size => $size, totalPages => $pages, totalRecords => $n }, 'totals');
		}
	}
	is($get->($_)->{status}, 400, $_)
	  for qw(page[size]=0 page[size]=101 page[size]=-1 page[size]=x page[number]=0 page[number]=-1 page[number]=9223372036854775807
	  page[number]=99999999999999999999 page[size] page[size]=1&page[size]=2 page[after]=x);
	is(scalar @{ $get->('')->{json}{data} }, 20, '20 if nothing else is said');
	is_deeply($get->('page[totals]=false&page[size]=3')->{json}{meta}{pagination}, { number => 1, size => 3 }, 'without totals');
	is_deeply($get->('filter=id==' . $nowhere)->{json}{meta}{pagination}, { number => 1, size => 20, totalPages => 0, totalRecords => 0 }, 'nothing');
	return;
}

# Sorted and filtered by one member, of which some value is known
sub member
{
	my ($get, $brief, $all, $name, $pages) = @_;
	my @values = map { $_->{$name} } @$all;
	my ($value) = grep { defined } @values[ 3 .. $#values ];
	my $ids = sub { [ map { $_->{id} } @_ ] };
	my $found = sub { my ($filter) = @_; my @got;
		for (1 .. $pages)
		{
			my ($status, @page) = $brief->("filter=$filter&page[size]=100&page[number]=$_&page[totals]=false");
			return $status if $status != 200;
			push @got, @page;
		}
		return \@got };
	my $check = sub { my ($filter, $test) = @_; is_deeply($found->($filter), $ids->(grep { $test->($_->{$name}) } @$all), "filter $filter") };

	if (ref $value eq 'HASH')
	{
		is($found->("$name==x"), 400, "filter by $name") && is($get->("sort=$name")->{status}, 400, "sort by $name");
		$check->("$name=isnull=true", sub { !defined $_[0] });
		return;
	}
	if (ref $value eq 'ARRAY')
	{
		my $has = sub { my ($list) = @_; scalar grep { $_ eq 'Viewer' } @$list };
		is($get->("sort=$name")->{status}, 400, "sort by $name");
		$check->("$name==Viewer", $has);
		$check->("$name!=Viewer", sub { !$has->($_[0]) });
		$check->("$name=in=(Viewer,Nobody)", $has);
		$check->("$name=out=(Viewer,Nobody)", sub { !$has->($_[0]) });
		is($found->("$name=gt=Viewer"), 400, "order of $name");
		return;
	}
	my $bool = JSON::PP::is_bool($value);
	my $text = sub { defined $_[0] && $bool ? ($_[0] ? 'true' : 'false') : $_[0] };
	my $literal = $bool ? $text->($value) : "'$value'";
	$literal =~ s/\+/%2B/g;

	for my $down (0, 1)
	{
		my @got = map { (undef, my @page) = $brief->('sort=' . ($down ? '-' : '') . "$name&page[size]=100&page[number]=$_"); @page } 1 .. $pages;
		my @sorted = sort { ($down ? compare($text->($b->{$name}), $text->($a->{$name})) : compare($text->($a->{$name}), $text->($b->{$name})))
			  || $a->{id} cmp $b->{id} } @$all;
		is_deeply(\@got, $ids->(@sorted), 'sort by ' . ($down ? '-' : '') . $name);
	}
	$check->("$name==$literal", sub { defined $_[0] && $text->($_[0]) eq $text->($value) });
	$check->("$name!=$literal", sub { defined $_[0] && $text->($_[0]) ne $text->($value) });
	$check->("$name=in=($literal)", sub { defined $_[0] && $text->($_[0]) eq $text->($value) });
	$check->("$name=out=($literal)", sub { defined $_[0] && $text->($_[0]) ne $text->($value) });
	$check->("$name=isnull=true", sub { !defined $_[0] });
	$check->("$name=isnull=false", sub { defined $_[0] });
	if ($bool || $name =~ /(?:^i|I)d$/ && $value =~ /^[0-9a-f-]{36}$/)
	{
		is($found->("$name=gt=$literal"), 400, "order of $name");
	}
	else
	{
		$check->("$name=ge=$literal", sub { defined $_[0] && $_[0] ge $value });
		$check->("$name=lt=$literal", sub { defined $_[0] && $_[0] lt $value });
	}
	if (!$bool && $value !~ /^\d{4}-\d\d-\d\dT|^[0-9a-f-]{36}$/)
	{
		my $part = substr $value, 1;
		$check->("$name=like='%25$part'", sub { defined $_[0] && $_[0] =~ /\Q$part\E$/ });
		$check->("$name=ilike='%25" . uc($part) . "'", sub { defined $_[0] && $_[0] =~ /\Q$part\E$/i });
	}
	else
	{
		is($found->("$name==x"), 400, "$name is not just anything");
		is($found->("$name=like=x"), 400, "nor text");
	}
	return;
}

for my $list (sort keys %lists)
{
	my ($path, $token) = @{ $lists{$list} };
	my $get = sub { my ($query) = @_; $query =~ s/ /%20/g; $shim->http(GET => "$path?$query", { token => $token }) };

	# status and ids only: reading all of the JSON in Perl takes its time
	my $client = HTTP::Tiny->new(keep_alive => 1);
	my $brief = sub { my ($query) = @_; $query =~ s/ /%20/g;
		my $answer = $client->get($shim->url . "$path?$query", { headers => { authorization => "Bearer $token->{accessToken}" } });
		return ($answer->{status}, $answer->{content} =~ /[[,]\{"id":"([^"]+)"/g) };
	my $first = $get->('page[size]=100')->{json};
	my $pages = $first->{meta}{pagination}{totalPages};
	my @all = map { @{ $get->("page[size]=100&page[number]=$_")->{json}{data} } } 1 .. $pages;

	subtest "list of $list" => sub {
		cmp_ok(scalar @all, '>', 64, 'long enough');
		is_deeply([ map { $_->{id} } @all ], [ sort map { $_->{id} } @all ], 'by id');
		subtest 'pages' => sub { borders($get, \@all) };
		for my $name (sort keys %{ $all[0] }) { subtest $name => sub { member($get, $brief, \@all, $name, $pages) } }
		is($get->($_)->{status}, 400, $_) for qw(sort=nope sort=id.x filter=nope==1 filter=id.x==1 include=x fields[users]=id nope=1);
	};
}

# -------- settings --------

subtest 'settings of keys, inherited and not' => sub {
	my $own = "/manage/tenants/$acme/settings/personal-api-keys";
	my $global = '/manage/settings/personal-api-keys';
	my $put = sub { my ($path, $who, $json) = @_; $shim->must(200, PUT => $path, { %{ $caller->{$who} }, json => $json }) };
	my %default = (enabled => $true, allowNonExpiring => $false);
	my $user = $shim->user($acme, 'keyed', ['Viewer']);
	my $key = $shim->must(201, POST => '/auth/me/api-keys', { token => $user, json => { name => 'k', expiresAt => $soon } });
	my @values = (undef, $true, $false);

	for my $g (@values)
	{
		for my $t (@values)
		{
			for my $name (sort keys %default)
			{
				my $effective = $t // $g // $default{$name};
				my $what = sprintf '%s, global %s, tenant %s', $name, map { defined ? $_ ? 'true' : 'false' : 'null' } $g, $t;

				# set in either order: the global one counts for whoever inherits, whenever it changes
				$put->($own, 'own', { $name => $t });
				my $shown = $put->($global, 'super', { $name => $g });
				is_deeply($shown, { %default, $name => $g // $default{$name} }, "$what: the global ones");
				my $theirs = $shim->must(200, GET => $own, $caller->{own});
				is_deeply($theirs, { enabled => undef, allowNonExpiring => undef, $name => $t, effective => { %default, $name => $effective } },
					"$what: the tenant's");
				is_deeply($shim->must(200, GET => "/manage/tenants/$other/settings/personal-api-keys", $caller->{foreign})->{effective},
					{ %default, $name => $g // $default{$name} }, "$what: another tenant's");

				if ($name eq 'enabled')
				{
					is($shim->http(GET => '/auth/me', { headers => { 'x-api-key' => $key->{key} } })->{status}, $effective ? 200 : 401, 'use');
					is($shim->http(POST => '/auth/me/api-keys', { token => $user, json => { name => 'k', expiresAt => $soon } })->{status},
						$effective ? 201 : 403, 'issue');
				}
				else
				{
					is($shim->http(POST => '/auth/me/api-keys', { token => $user, json => { name => 'k' } })->{status},
						$effective ? 201 : 400, 'one that does not expire');
				}
			}
		}
	}
	$put->($_->[0], $_->[1], {}) for [ $own, 'own' ], [ $global, 'super' ];
	for my $path ($own, $global)
	{
		is($shim->http(PUT => $path, { token => $root, json => $_ })->{status}, 400, "$path: " . JSON::PP->new->canonical->encode($_))
		  for { enabled => 1 }, { enabled => 'true' }, { unknown => $true }, { effective => {} }, [];
	}
};

done_testing;
