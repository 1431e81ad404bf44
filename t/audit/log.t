# The audit log over HTTP: events of all kinds, what several connections do to
# its months, and that a dump brings all of it back.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster(conf => ['deadlock_timeout = 100ms']);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');
my $shim = EntityApi::Test->shim($cluster, pool_wait_ms => 60_000);
my $root = $shim->superadmin;
my $acme = $shim->tenant('acme');
my $beta = $shim->tenant('beta');
my $eve = $shim->user($acme->{id}, 'eve', ['Editor']);
my $ron = $shim->user($acme->{id}, 'ron', ['Reader']);
my $zoe = $shim->user($beta->{id}, 'zoe', ['Editor']);
my $admin;

# A TenantAdmin of a tenant
sub admin_of
{
	my ($slug) = @_;
	my $made = $shim->must(201, POST => '/manage/tenants',
		{   token => $root,
			json  => {
				name  => $slug, slug => $slug,
				admin => { username => "$slug-admin", temporaryPassword => 'a word for a while' } } });
	my $first = $shim->login("$slug-admin", 'a word for a while');

	return $made,
	  $shim->must(200, POST => '/auth/change-password',
		{ token => $first, json => { currentPassword => 'a word for a while', newPassword => 'a word for longer' } });
}

my ($gamma, $gamma_admin) = admin_of('gamma');

sub records
{
	my ($who, $query) = @_;

	return @{ $shim->must(200, GET => "/manage/audit?$query", { token => $who })->{data} };
}

sub request
{
	my ($who, $id, $method, $target, %options) = @_;

	return $shim->http($method, $target,
		{ token => $who, %options, headers => { 'X-Request-Id' => $id, %{ $options{headers} // {} } } });
}

# The records of a request, as lines
sub of
{
	my ($id, $who) = @_;

	return [
		map { join ' ', map { $_ // '-' } @$_{qw(action outcome)}, $_->{target}{type}, $_->{actor}{username} }
		reverse records($who // $root, "page[size]=100&filter=requestId==$id") ];
}

sub document
{
	my ($type, $id, $attributes, $relationships) = @_;

	return json => {
		data => {
			type => $type, $id ? (id => $id) : (),
			attributes => $attributes // {},
			$relationships ? (relationships => $relationships) : () } };
}

# Set the time of all connections
sub set_clock
{
	my ($time) = @_;

	$cluster->set('entityapi.clock', $time eq '' ? undef : $time);
	return;
}

subtest 'a record' => sub {
	my $made = request($eve, 'r1', POST => '/api/v1/people', document(people => undef, { name => 'Ann' }));
	my ($record) = records($root, 'filter=requestId==r1');

	is($made->{status}, 201, 'created');
	like($record->{at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/, 'time');
	like($record->{id}, qr/^[0-9a-f-]{36}$/, 'id');
	delete @$record{qw(at id)};
	is_deeply($record,
		{   tenantId => $acme->{id},
			actor    => { id => $eve->{id}, kind => 'USER', username => 'eve', keyId => undef },
			action    => 'ENTITY_CREATE',
			outcome   => 'SUCCESS',
			target    => { type => 'people', id => $made->{json}{data}{id} },
			changes   => { name => [ undef, 'Ann' ] },
			requestId => 'r1',
			ip        => '127.0.0.1',
			detail    => undef },
		'all the rest');
	my $answer = $shim->http(GET => '/manage/audit', { token => $root });
	is($answer->{headers}{'content-type'}, 'application/json', 'JSON');
	is($answer->{headers}{'cache-control'}, 'no-store', 'not to be stored');
};

subtest 'refusals stay' => sub {
	for my $case (
		[ 'a role that may not', 403, $ron, POST => '/api/v1/people', [ document(people => undef, { name => 'x' }) ],
			'ENTITY_CREATE DENIED people ron' ],
		[ 'an unknown attribute', 400, $eve, POST => '/api/v1/people', [ document(people => undef, { nome => 'x' }) ],
			'ENTITY_CREATE FAILURE people eve' ],
		[ 'nothing there', 404, $eve, DELETE => '/api/v1/people/01980000-0000-7000-8000-000000000000', [],
			'ENTITY_DELETE FAILURE people eve' ],
		[ 'a read that may not', 403, $ron, GET => '/api/v1/vaults', [], 'ACCESS_DENIED DENIED vaults ron' ],
		[ 'a read that may', 200, $eve, GET => '/api/v1/people', [] ],
		[ 'a read of nothing', 404, $eve, GET => '/api/v1/people/1', [] ],
		[ 'no credential', 401, undef, POST => '/api/v1/people', [] ],
		[ 'a false one', 401, 'not-a-token', POST => '/api/v1/people', [], 'AUTHENTICATION FAILURE people -' ],
		[ 'a wrong password', 401, undef, POST => '/auth/login',
			[ json => { username => 'EVE', password => 'a wrong one' } ], 'LOGIN FAILURE user eve' ],
		[ 'an unknown name', 401, undef, POST => '/auth/login',
			[ json => { username => 'a-password-by-mistake', password => 'x' } ], 'LOGIN FAILURE user -' ],
		[ 'no authority', 403, $eve, PUT => "/manage/tenants/$beta->{id}/users/$zoe->{id}/roles",
			[ json => { roles => [] } ], 'ROLES_CHANGED DENIED user eve' ],
		[ 'not for users', 403, $eve, GET => '/manage/audit', [], 'ACCESS_DENIED DENIED - eve' ],
		[ 'one operation of two', 409, $eve, POST => '/api/v1/operations',
			[   headers => { 'content-type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
				json => { 'atomic:operations' => [
					{ op => 'add', data => { type => 'tags', attributes => { word => 'same' } } },
					{ op => 'add', data => { type => 'tags', attributes => { word => 'same' } } } ] } ],
			'OPERATIONS FAILURE tags eve' ])
	{
		my ($name, $status, $who, $method, $target, $options, @lines) = @$case;
		my $id = join '-', 'refused', split /\W+/, $name;

		is(request($who, $id, $method, $target, @$options)->{status}, $status, $name);
		is_deeply(of($id), \@lines, "$name: recorded as it should be") or diag explain of($id);
	}
	is($cluster->psql("select count(*) from entityapi.audit where audit::text like '%by-mistake%'"),
		0, 'what was typed for a name is not kept');
	is_deeply([ map { $_->{tenantId} } records($root, 'filter=requestId==refused-no-authority') ],
		[ $acme->{id} ], 'nor does another tenant hear of it');
};

subtest 'keys, invites, service accounts' => sub {
	my $base = "/manage/tenants/$acme->{id}";
	my $check = sub {
		my ($id, $status, $line, $who, $method, $target, %options) = @_;
		my $answer = request($who, $id, $method, $target, %options);

		is($answer->{status}, $status, "$id: status") or diag $answer->{body};
		is_deeply(of($id), [$line], "$id: recorded") or diag explain of($id);
		my ($record) = records($root, "filter=requestId==$id");
		return ($answer->{json}, $record);
	};

	my ($key, $record) = $check->('key', 201, 'API_KEY_CREATED SUCCESS personal-api-key eve', $eve,
		POST => '/auth/me/api-keys', json => { name => 'k', domainRoles => ['Editor'], expiresAt => '2099-01-01T00:00:00Z' });
	is($record->{target}{id}, $key->{id}, 'which key');
	request(undef, 'by-key', POST => '/api/v1/people', document(people => undef, { name => 'Kim' }),
		headers => { 'X-API-Key' => $key->{key} });
	($record) = records($root, 'filter=requestId==by-key');
	is_deeply($record->{actor}, { id => $eve->{id}, kind => 'PERSONAL_API_KEY', username => 'eve', keyId => $key->{id} },
		'what it does is recorded with it');
	$check->('key-off', 200, 'API_KEY_DISABLED SUCCESS personal-api-key eve', $eve,
		POST => "/auth/me/api-keys/$key->{id}/disable");

	(my $invite, $record) = $check->('invite', 201, 'INVITE_CREATED SUCCESS invite superadmin', $root,
		POST => "$base/invites", json => { email => 'i@acme.example', username => 'ivy', roles => ['Reader'] });
	is_deeply([ $record->{target}{id}, $record->{tenantId} ], [ $invite->{id}, $acme->{id} ], 'which invite, and where');
	(my $ivy, $record) = $check->('accept', 201, 'INVITE_ACCEPTED SUCCESS user ivy', undef, POST => '/auth/accept-invite',
		json => { token => $invite->{token}, username => 'ivy', password => 'a phrase of ivy' });
	is_deeply([ $record->{target}{id}, $record->{tenantId} ], [ $ivy->{userId}, $acme->{id} ], 'who, and where');
	$check->('accept-again', 400, 'INVITE_ACCEPTED FAILURE user -', undef, POST => '/auth/accept-invite',
		json => { token => $invite->{token}, username => 'ivo', password => 'a phrase of ivo' });

	(my $account, $record) = $check->('account', 201, 'SERVICE_ACCOUNT_CREATED SUCCESS service-account superadmin', $root,
		POST => "$base/service-accounts", json => { name => 'robot', roles => ['Reader'] });
	is($record->{target}{id}, $account->{id}, 'which account');
	my $client = { clientId => $account->{clientId}, clientSecret => $account->{clientSecret} };
	(undef, $record) = $check->('token', 200, 'TOKEN_ISSUED SUCCESS service-account robot', undef, POST => '/auth/token', json => $client);
	is($record->{actor}{kind}, 'SERVICE_ACCOUNT', 'an account of its kind');
	$check->('no-token', 401, 'TOKEN_ISSUED FAILURE service-account -', undef, POST => '/auth/token',
		json => { %$client, clientSecret => 'x' });
	my $form = { headers => { 'content-type' => 'application/x-www-form-urlencoded' } };
	$check->('no-token-form', 401, 'TOKEN_ISSUED FAILURE service-account -', undef, POST => '/auth/token', %$form,
		body => "grant_type=client_credentials&client_id=$client->{clientId}&client_secret=x");
	request(undef, 'no-form', POST => '/auth/token', %$form, body => 'x=y');
	is_deeply(of('no-form'), [], 'what is not understood is no event');
	$check->('rotate', 200, 'SERVICE_ACCOUNT_SECRET_ROTATED SUCCESS service-account superadmin', $root,
		POST => "$base/service-accounts/$account->{id}/rotate-secret");

	(undef, $record) = $check->('roles', 200, 'ROLES_CHANGED SUCCESS user superadmin', $root,
		PUT => "$base/users/$ron->{id}/roles", json => { roles => [ 'Helper', 'Reader' ] });
	is_deeply($record->{changes}, { roles => [ ['Reader'], [ 'Helper', 'Reader' ] ] }, 'from which roles to which');
	my @secrets = ($key->{key}, $invite->{token}, $account->{clientSecret}, 'a phrase of iv', $root->{accessToken});
	my $all = $cluster->psql('select string_agg(a::text, chr(10)) from entityapi.audit a');
	is(scalar(grep { index($all, $_) >= 0 } @secrets), 0, 'no secret is in any of it');
};

subtest 'who sees what' => sub {
	my %tenants = map { ($_->{tenantId} // '-') => 1 } records($root, 'page[size]=100');

	cmp_ok(scalar keys %tenants, '>=', 4, 'the SuperAdmin sees all tenants');
	%tenants = map { ($_->{tenantId} // '-') => 1 } records($gamma_admin, 'page[size]=100');
	is_deeply([ keys %tenants ], [ $gamma->{id} ], 'a TenantAdmin the own one');
	for my $filter ("tenantId==$acme->{id}", "actorId==$eve->{id}", 'requestId==r1')
	{
		is(scalar records($gamma_admin, "filter=$filter"), 0, "and finds nothing by $filter");
	}
	my ($first) = @{ $shim->must(200, GET => '/manage/audit?page[size]=1', { token => $root })->{data} };
	my $cursor = $shim->must(200, GET => '/manage/audit?page[size]=1', { token => $root })->{meta}{page}{after};
	%tenants = map { ($_->{tenantId} // '-') => 1 } records($gamma_admin, "page[after]=$cursor");
	is_deeply([ keys %tenants ], [ $gamma->{id} ], 'whatever cursor is sent');
};

subtest 'no control character gets through' => sub {
	my $name = "x\r\nLOGIN SUCCESS root \e[31m \"}],";
	my $made = request($eve, 'injection', POST => '/api/v1/people', document(people => undef, { name => $name }));

	is($made->{status}, 201, 'created');
	my ($record) = records($root, 'filter=requestId==injection');
	is($record->{changes}{name}[1], $name, 'one record with the name as it is');
	is($shim->http(GET => '/manage/audit?page[size]=1', { token => $root })->{body} =~ tr/\x00-\x1f//, 0, 'escaped');
};

subtest 'many members' => sub {
	my @ids = map { $_->{data}{id} } @{
		request($eve, 'many-tags', POST => '/api/v1/operations',
			headers => { 'content-type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
			json => { 'atomic:operations' =>
				[ map { +{ op => 'add', data => { type => 'tags', attributes => { word => "w$_" } } } } 1 .. 1000 ] })
		  ->{json}{'atomic:results'} };
	my $ann = request($eve, 'ann', POST => '/api/v1/people', document(people => undef, { name => 'Ann' }))->{json}{data};
	my $to = sub { return [ map { { type => 'tags', id => $_ } } @_ ] };
	my $box = request($eve, 'box', POST => '/api/v1/boxes', document(boxes => undef, { label => 'all' },
			{ owner => { data => { type => 'people', id => $ann->{id} } }, tags => { data => $to->(@ids) } }))->{json}{data};
	my $more = request($eve, 'more', POST => '/api/v1/tags', document(tags => undef, { word => 'more' }))->{json}{data}{id};
	my $most = request($eve, 'most', POST => '/api/v1/tags', document(tags => undef, { word => 'most' }))->{json}{data}{id};
	my $change = sub {
		my ($id, $method, @members) = @_;

		is(request($eve, $id, $method, "/api/v1/boxes/$box->{id}/relationships/tags",
				headers => { 'if-match' => '*' }, json => { data => $to->(@members) })->{status}, 204, "$id: done");
		my ($record) = records($root, "filter=requestId==$id");
		return ($record->{changes}{tags}[0], $record->{changes}{tags}[1], $record->{detail});
	};

	is($cluster->psql("select count(*) from entityapi.audit where request_id = 'many-tags'"), 1000, 'a record each');
	my ($before, $after, $detail) = $change->('add', POST => $more, $ids[0]);
	is(scalar @$before, 1000, 'a thousand before');
	is(scalar @$after, 1000, 'and no more are kept');
	is($detail, 'Members beyond 1000 are left out.', 'which is said');
	($before, $after, $detail) = $change->('add-again', POST => $most);
	is_deeply([ $before, $after ], [ [], [$most] ], 'then what is added counts');
	($before, $after, $detail) = $change->('remove', DELETE => $more, $most);
	is_deeply([ $before, $after ], [ [ sort $more, $most ], [] ], 'or taken out');
	($before, $after, $detail) = $change->('replace', PATCH => $ids[5]);
	is_deeply([ scalar @$before, $after, $detail ], [ 1000, [ $ids[5] ], undef ], 'replaced');
};

subtest 'what was there before is what was replaced' => sub {
	my $id = request($eve, 'chain', POST => '/api/v1/people', document(people => undef, { name => 'first' }))->{json}{data}{id};
	my @children = map {
		my $child = $_;
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			my $client = HTTP::Tiny->new(default_headers => {
					authorization => "Bearer $eve->{accessToken}", 'content-type' => 'application/vnd.api+json',
					'x-request-id' => 'chained' });
			my $bad = 0;
			for my $n (1 .. 12)
			{
				$bad++ if $client->request(PATCH => $shim->url . "/api/v1/people/$id", { content =>
						JSON::PP::encode_json({ data => { type => 'people', id => $id, attributes => { name => "$child-$n" } } }) })
				  ->{status} != 200;
			}
			require POSIX;
			POSIX::_exit($bad);
		}
		$pid;
	} 1 .. 6;
	my $bad = 0;
	for (@children)
	{
		waitpid $_, 0;
		$bad += $? >> 8;
	}
	is($bad, 0, 'six at once: all are done');
	my @changes = map { $_->{changes}{name} } records($root, 'page[size]=100&filter=requestId==chained');
	my %before = map { $_->[0] => 1 } @changes;
	is(scalar @changes, 72, 'and recorded');
	is(scalar keys %before, 72, 'each replaces something else');
	my @last = grep { !$before{$_} } map { $_->[1] } @changes;
	is_deeply(\@last, [ $shim->must(200, GET => "/api/v1/people/$id", { token => $eve })->{data}{attributes}{name} ],
		'from the first name to the last');
};

subtest 'months' => sub {
	plan skip_all => 'the tables of a single server' if $cluster->nodes > 1;
	my $months = sub {
		return $cluster->psql("select count(*) from pg_inherits where inhparent = 'entityapi.audit'::regclass");
	};
	my $default = sub { return $cluster->psql('select count(*) from entityapi.audit_default') };

	my $first = $months->();
	my $ahead = $cluster->psql(q{select count(to_regclass('entityapi.audit_' || to_char(now() at time zone 'UTC' + i * interval '1 month', 'YYYY_MM'))),
		count(to_regclass('entityapi.audit_default')) from generate_series(0, 2) i});
	is($ahead, '3|3', 'this month, two more, and the last resort');
	is($default->(), 0, 'which holds nothing');

	# every connection finds the month missing at once
	set_clock('2040-05-31T23:59:59Z');
	EntityApi::Test::wait_until(10, sub {
			$shim->http(POST => '/auth/login', { json => { username => 'nobody', password => 'x' } });
			$months->() == $first + 3;
		});
	is($months->(), $first + 3, 'months of another time');
	set_clock('2041-05-31T23:59:59Z');
	my @children = map {
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			my $client = HTTP::Tiny->new;
			my $bad = 0;
			for (1 .. 3)
			{
				my $answer = $client->post($shim->url . '/auth/login',
					{ headers => { 'content-type' => 'application/json' }, content => '{"username": "nobody", "password": "y"}' });

				next if $answer->{status} =~ /^(401|429)$/;
				diag("$answer->{status} $answer->{content}");
				$bad++;
			}
			require POSIX;
			POSIX::_exit($bad);
		}
		$pid;
	} 1 .. 8;
	my $bad = 0;
	for (@children)
	{
		waitpid $_, 0;
		$bad += $? >> 8;
	}
	is($bad, 0, 'eight at once: every request is answered');
	is($months->(), $first + 6, 'each month is made once');
	is($default->(), 0, 'and all records are in theirs');

	# a lock that is not to be had: the record goes to the last resort
	my $holder = EntityApi::Test::start(
		[   EntityApi::Test::server_program('psql'), '-Xq', '-d', $cluster->conninfo, '-c',
			'begin; lock entityapi.audit_default in access share mode; select pg_sleep(600)' ],
		out => '/dev/null', err => '/dev/null');
	EntityApi::Test::wait_until(10, sub {
			$cluster->psql("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query like '%pg_sleep(600)%'") > 0;
		});
	set_clock('2042-01-01T00:00:00Z');
	for (1 .. 2)
	{
		is($shim->http(POST => '/auth/login', { json => { username => 'no one', password => 'x' } })->{status}, 401,
			'a request while the month cannot be made');
	}
	is($default->(), 2, 'is recorded');
	kill TERM => $holder;
	waitpid $holder, 0;
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid()");
	$cluster->psql(q{select entityapi.extend_audit('2042-01-01T00:00:00Z', 0)});
	is($default->(), 0, 'and moves when the month is made');
	is($cluster->psql('select count(*) from entityapi.audit_2042_01'), 2, 'to where it belongs');
	set_clock('');
};

subtest 'a dump brings it back' => sub {
	plan skip_all => 'the tables of a single server' if $cluster->nodes > 1;
	my $sum = q{select count(*), md5(string_agg(a::text, '|' order by a.id)) from entityapi.audit a};
	my $parts = q{select string_agg(inhrelid::regclass || pg_get_expr(c.relpartbound, c.oid)
		|| (select count(*) from pg_index i where i.indrelid = c.oid) || (select count(*) from pg_trigger g where g.tgrelid = c.oid and g.tgenabled = 'A'), ' ' order by 1)
		from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'entityapi.audit'::regclass};
	my $folder = EntityApi::Test::folder();
	my $tool = sub { return EntityApi::Test::server_program($_[0]) };

	# one record without a month of its own
	$cluster->psql(q{insert into entityapi.audit (id, at, action, outcome) values (gen_random_uuid(), '2010-01-01', 'OLD', 'SUCCESS')});
	my ($records, $partitions) = map { $cluster->psql("set timezone = 'UTC'; $_") } $sum, $parts;
	my $dumped = EntityApi::Test::run([ $tool->('pg_dump'), '-d', $cluster->conninfo, '-f', "$folder/dump.sql" ]);
	is($dumped->{status}, 0, 'dumped') or diag $dumped->{err};
	$cluster->psql('create database restored', database => 'postgres');
	my $restored = EntityApi::Test::run([ $tool->('psql'), '-Xq', '-v', 'ON_ERROR_STOP=1', '-d',
			$cluster->conninfo('postgres', 'restored'), '-f', "$folder/dump.sql" ]);
	is($restored->{status}, 0, 'restored without an error') or diag $restored->{err};
	is($cluster->psql("set timezone = 'UTC'; $sum", database => 'restored'), $records, 'the same records');
	is($cluster->psql("set timezone = 'UTC'; $parts", database => 'restored'), $partitions, 'in the same partitions');
	like($cluster->try_psql('delete from entityapi.audit_2042_01', database => 'restored')->{err},
		qr/append-only/, 'as safe as before');
	is($cluster->psql(q{select entityapi.purge_audit('2010-02-01')}), 'audit_2010_01', 'and old months go');
};

subtest 'no page scans a partition' => sub {
	plan skip_all => 'the tables of a single server' if $cluster->nodes > 1;

	# whoever has served others has more to report, some time
	$shim->stop;
	EntityApi::Test::wait_until(60, sub { !$cluster->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim'") });
	my $header = '{"authorization": "Bearer ' . $root->{accessToken} . '"}';
	my $get = sub {
		return "select status from entityapi.handle('GET', '/manage/audit?$_[0]', '$header', null, null);\n";
	};
	my ($start, $month) = split /\|/, $cluster->psql(q{set timezone = 'UTC'; select date_trunc('month', now()), to_char(now(), '"audit_"YYYY_MM')});
	my $scans = "select seq_scan from pg_stat_user_tables where relname = '$month'";

	$cluster->psql(qq{
		insert into entityapi.audit (id, at, tenant_id, action, outcome, target_type, target_id, request_id)
		select gen_random_uuid(), '$start'::timestamptz + i * interval '1 ms', ('00000000-0000-7000-8000-00000000000' || i % 5)::uuid,
			'FILLER', 'SUCCESS', 'people', i::text, 'filler' from generate_series(1, 50000) i;
		analyze entityapi.audit;
		select pg_stat_force_next_flush()});
	my $before = $cluster->psql($scans);
	$cluster->psql(join '', map { $get->($_) } 'page[size]=100', 'filter=targetId==777',
		'filter=tenantId==00000000-0000-7000-8000-000000000002', 'filter=at=lt=2026-01-01T00:00:00Z');
	$cluster->psql('select pg_stat_force_next_flush()');
	is($cluster->psql($scans), $before, 'all of them go by an index');
};

done_testing();
