# The end of a tenant: gone with the request, for everybody and at once; its
# data removed afterwards in short steps, whatever refers to what, by any shim,
# also after a crash.

use strict;
use warnings;

use JSON::PP ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;
use EntityApi::Test::Wire;

my $rows = $ENV{ENTITYAPI_ROWS} // ($ENV{ENTITYAPI_TEST_CITUS} ? 30_000 : 100_000);
my $true = JSON::PP::true;

sub ref_to { my ($target, @more) = @_; return { type => 'ref', target => $target, relation => 'ManyToOne', @more } }
sub many { my ($target) = @_; return { type => 'ref', target => $target, relation => 'ManyToMany' } }

# References in circles: optional ones (author, book), required ones (hen,
# egg), to oneself, through a one-of, across two of them
my %fields = (
	Author => { name => { type => 'string' }, best => ref_to('Book'), mentor => ref_to('Author') },
	Book => { title => { type => 'string' }, author => ref_to('Author', required => $true), tags => many('Tag'),
		languages => many('Language'), spoken => ref_to('Language') },
	Hen => { egg => ref_to('Egg', required => $true), farm => ref_to('Farm', required => $true) },
	Egg => { hen => ref_to('Hen', required => $true) },
	Farm => { neighbour => ref_to('Farm', required => $true), pride => ref_to('Hen') },
	Tag => { name => { type => 'string' } },
	Note => { about => { type => 'oneof', target => 'Subject', required => $true }, reply => ref_to('Note') },
	Line => { amount => { type => 'integer' }, book => ref_to('Book', required => $true, onDelete => 'cascade') },
	Language => { code => { type => 'string' } });

my $manifest = JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Any => { assignableBy => 'superAdmin' } } } },
	{ kind => 'OneOf', metadata => { name => 'Subject' }, spec => { members => [qw(Author Book Farm)] } },
	map { {
		kind => 'Entity', metadata => { name => $_ }, spec => { fields => $fields{$_},
			permissions => { Any => [qw(create read update delete)] },
			$_ eq 'Language' ? (tenantScoped => JSON::PP::false) : (), $_ eq 'Note' ? (softDelete => $true) : () } } }
	  sort keys %fields ]);

my $cluster = EntityApi::Test->cluster;
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my ($doomed, $other) = map { $shim->tenant($_)->{id} } qw(doomed other);
my ($ann, $bob) = ($shim->user($doomed, 'ann', ['Any']), $shim->user($other, 'bob', ['Any']));

# -------- as many rows as are asked for, and some of everything --------

sub fill
{
	my ($tenant, $lines, $crowd) = @_;
	my $id = sub { "entityapi_id('$_[0]', $_[1])" };

	$cluster->psql(<<~SQL);
		begin;
		@{[$cluster->unchecked]}
		create or replace function pg_temp.entityapi_id(kind text, n bigint) returns uuid language sql immutable as
		\$\$ select (substr(md5('$tenant' || kind), 1, 8) || '-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid \$\$;
		set search_path = pg_temp, app;
		create function pg_temp.own(variadic cols text[]) returns void language plpgsql as \$\$ begin
			execute format('insert into app.%s (tenant_id, created_at, updated_at, id%s) select %L, now(), now(), %s from generate_series(1, %s) i',
				cols[1], cols[2], '$tenant', cols[3], cols[4]); end \$\$;
		insert into language (id, created_at, updated_at) select gen_random_uuid(), now(), now() from generate_series(1, 3);
		select pg_temp.own('author', ', best_id, mentor_id',
			\$\$ pg_temp.entityapi_id('author', i), pg_temp.entityapi_id('book', i), pg_temp.entityapi_id('author', 1 + (i * 7) % 1000) \$\$, '1000'),
			pg_temp.own('book', ', author_id, spoken_id', \$\$ pg_temp.entityapi_id('book', i), pg_temp.entityapi_id('author', 1 + i % 1000),
				(select id from app.language limit 1) \$\$, '2000'),
			pg_temp.own('tag', '', \$\$ pg_temp.entityapi_id('tag', i) \$\$, '50'),
			pg_temp.own('farm', ', neighbour_id, pride_id', \$\$ pg_temp.entityapi_id('farm', i), pg_temp.entityapi_id('farm', 1 + i % 700),
				pg_temp.entityapi_id('hen', i) \$\$, '700'),
			pg_temp.own('hen', ', egg_id, farm_id', \$\$ pg_temp.entityapi_id('hen', i), pg_temp.entityapi_id('egg', i),
				pg_temp.entityapi_id('farm', 1 + i % 700) \$\$, '1500'),
			pg_temp.own('egg', ', hen_id', \$\$ pg_temp.entityapi_id('egg', i), pg_temp.entityapi_id('hen', 1 + i % 1500) \$\$, '1500'),
			pg_temp.own('note', ', about_farm_id, reply_id, deleted_at',
				\$\$ pg_temp.entityapi_id('note', i), pg_temp.entityapi_id('farm', 1 + i % 700), pg_temp.entityapi_id('note', 1 + i % 900),
					case when i % 2 = 0 then now() end \$\$, '900'),
			pg_temp.own('line', ', amount, book_id', \$\$ pg_temp.entityapi_id('line', i), i, pg_temp.entityapi_id('book', 1 + i % 2000) \$\$, '$lines');
		insert into book_tags select '$tenant', b.id, t.id from book b, tag t where b.tenant_id = '$tenant' and t.tenant_id = '$tenant'
			and ('x' || right(b.id::text, 2))::bit(8)::int % 20 = ('x' || right(t.id::text, 2))::bit(8)::int % 20;
		insert into book_languages select '$tenant', b.id, l.id from book b, language l where b.tenant_id = '$tenant';
		insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile, security_attributes,
				password_change_required, is_super_admin, created_at)
			select pg_temp.entityapi_id('account', i), '$tenant', 'USER', '$tenant' || i, '$tenant' || i, 'ACTIVE', '{}', '{}', '{}', false, false, now()
			from generate_series(1, $crowd) i;
		insert into entityapi.session select pg_temp.entityapi_id('session', i), pg_temp.entityapi_id('account', 1 + i % 3), now(), now() + '1 day',
			null, false from generate_series(1, $crowd) i;
		insert into entityapi.refresh_token select '$tenant' || i, pg_temp.entityapi_id('session', 1 + i % 5), '\\x', now() + '1 day'
			from generate_series(1, $crowd) i;
		insert into entityapi.invite select pg_temp.entityapi_id('invite', i), '$tenant', '$tenant' || i, '\\x', 'a\@b', 'x', '{}', 'PENDING',
			now() + '1 day', now() from generate_series(1, $crowd) i;
		insert into entityapi.personal_api_key_setting values ('$tenant', true, true);
		commit;
		analyze;
		SQL
	return;
}

# Rows of a tenant in every table that knows tenants, the log but for
sub left
{
	my ($tenant) = @_;
	my $union = $cluster->psql(<<~SQL);
		select string_agg(format('select count(*) from %s where tenant_id = %L', c.oid::regclass, '$tenant'), ' union all ')
		from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
		where c.relkind = 'r' and c.relname !~ '^audit'
		SQL
	return $cluster->psql("select sum(count) from ($union) u");
}

sub orphans
{
	return $cluster->psql('select (select count(*) from entityapi.session where account_id not in (select id from entityapi.account))'
		. ' + (select count(*) from entityapi.refresh_token where session_id not in (select id from entityapi.session))');
}

my $step = q(select format('{"deleted":%s,"more":%s}', deleted, more::text) from entityapi.housekeep());
sub step { return $cluster->psql($step) }
sub wait_for_end { my ($id) = @_; return EntityApi::Test::wait_until(60, sub { !$cluster->psql("select count(*) from entityapi.tenant where id = '$id'") }) }

fill($doomed, $rows, 3000);
fill($other, 500, 20);
my $theirs = left($other);
cmp_ok(left($doomed), '>', $rows, 'there is much of it');
is($cluster->psql("select count(*) from entityapi.tenant where id = '$doomed'"), 1, 'and it is there');

my $key = $shim->must(201, POST => '/auth/me/api-keys', { token => $ann, json => { name => 'k', expiresAt => '2099-01-01T00:00:00Z' } });
my $usual = $shim->must(200, GET => '/api/v1/lines?page[size]=1&page[totals]=false', { token => $bob });

subtest 'gone with the request' => sub {
	my $path = "/manage/tenants/$doomed";
	my $started = $cluster->processor;
	is($shim->http(DELETE => $path, { token => $root })->{status}, 204, 'deleted');
	cmp_ok($cluster->processor - $started, '<', 2, 'with little work');
	is($shim->http(DELETE => $path, { token => $root })->{status}, 404, 'again');
	cmp_ok(left($doomed), '>', $rows, 'the data are still there');

	is($shim->http(GET => '/auth/me', { token => $ann })->{status}, 401, 'no token');
	is($shim->http(GET => '/auth/me', { headers => { 'x-api-key' => $key->{key} } })->{status}, 401, 'no key');
	is($shim->http(POST => '/auth/refresh', { json => { refreshToken => $ann->{refreshToken} } })->{status}, 401, 'no refresh');
	my $nowhere = '00000000-0000-4000-8000-000000000000';
	for my $case ([ GET => '' ], [ PATCH => '', {} ], [ DELETE => '' ], [ GET => '/users' ], [ POST => '/users', { username => 'u' } ],
		[ PATCH => "/users/$ann->{id}", {} ], [ DELETE => "/users/$ann->{id}" ], [ PUT => "/users/$ann->{id}/roles", { roles => [] } ],
		[ POST => "/tenant-admins/$ann->{id}" ], [ DELETE => "/tenant-admins/$ann->{id}" ], [ GET => '/invites' ],
		[ POST => '/invites', { email => 'a@b', username => 'x', roles => [] } ], [ GET => '/service-accounts' ],
		[ POST => '/service-accounts', { name => 'x' } ], [ GET => '/personal-api-keys' ],
		[ POST => "/personal-api-keys/$key->{id}/revoke" ], [ GET => '/settings/personal-api-keys' ],
		[ PUT => '/settings/personal-api-keys', {} ])
	{
		my ($method, $suffix, $json) = @$case;
		my @answers = map { my $a = $shim->http($method => "/manage/tenants/$_$suffix",
					{ token => $root, headers => { 'x-request-id' => 'same' }, $json ? (json => $json) : () });
			"$a->{status} $a->{body}" } $doomed, $nowhere;
		like($answers[0], qr/^404 /, "$method $suffix");
		is($answers[0], $answers[1], 'as an invented one');
	}
	is($shim->http(GET => '/api/v1/lines', { token => $root, headers => { 'x-tenant-id' => $doomed } })->{status}, 400, 'nobody acts there');
	unlike($shim->http(GET => '/manage/tenants', { token => $root })->{body}, qr/\Q$doomed\E/, 'not listed');
	is($shim->must(201, POST => '/manage/tenants', { token => $root, json => { name => 'doomed', slug => 'doomed' } })->{name},
		'doomed', 'name and slug are free');
	my $record = $shim->must(200, GET => "/manage/audit?filter=targetId==$doomed;action==TENANT_DELETED;outcome==SUCCESS", { token => $root });
	is_deeply($record->{data}[0]{changes}{slug}, [ 'doomed', undef ], 'on record');
};

subtest 'in short steps, beside the others' => sub {
	my $before = left($doomed);
	my ($longest, $steps) = (0, 0);

	is(step(), '{"deleted":0,"more":true}', 'of a cluster the first one lets requests end') if $cluster->nodes > 1;
	while ($steps++ < 5)
	{
		my $started = $cluster->processor;
		like(step(), qr/^\{"deleted":[1-9]\d*,"more":true\}$/, 'a step has done something');
		my $took = $cluster->processor - $started;
		$longest = $took if $took > $longest;
	}
	step() while left($doomed) == $before && $steps++ < 5000;
	cmp_ok(left($doomed), '<', $before, 'there is less');
	cmp_ok(left($doomed), '>', $before / 10, 'but much is left');
	cmp_ok($longest, '<', 3, 'none was much work');

	# somebody else at it, who does not come to an end: nobody waits for him
	my $other = EntityApi::Test::Wire->new($cluster, 'postgres');
	$other->query("begin; select 1 from entityapi.housekeep()")->send->answers;
	like(step(), qr/"deleted":0,"more":false/, 'two do not get into each other\'s way');
	is($shim->http(GET => '/api/v1/lines?page[size]=1', { token => $bob })->{status}, 200, 'others read');
	is($shim->http(POST => '/api/v1/tags', { token => $bob, json => { data => { type => 'tags', attributes => { name => 'x' } } } })->{status},
		201, 'and write');
	$other->query('rollback')->send->answers;
	$other->close;
};

subtest 'a crash half-way' => sub {
	my $other = EntityApi::Test::Wire->new($cluster, 'postgres');
	$other->query("begin; select 1 from entityapi.housekeep()")->send->answers;
	my $before = left($doomed);
	$cluster->stop('immediate');
	$other->close;
	$cluster->start;
	is(left($doomed), $before, 'the step under way has never been');
	is($shim->http(GET => '/auth/me', { token => $ann })->{status}, 401, 'still gone');
	like(step(), qr/"more":true/, 'and it goes on');
};

subtest 'shims see to it' => sub {
	# two of them, a killed one, and requests of another tenant meanwhile; they
	# are held up until there were some, so that a busy machine has time for them
	my $holder = EntityApi::Test::Wire->new($cluster, 'postgres');
	$holder->query("begin; select 1 from entityapi.handle('SWEEP', '*', null, null, null)")->send->answers;
	my @sweepers = map { EntityApi::Test->shim($cluster, sweep_interval_ms => 50) } 1 .. 2;
	my ($strong, $asked_for) = (0, 0);
	my %statuses;
	my $started = time;

	while ($asked_for < 5 || time - $started < 300 && $cluster->psql("select count(*) from entityapi.tenant where id = '$doomed'"))
	{
		my $answer = $shim->http(GET => '/api/v1/lines?page[size]=1&page[totals]=false', { token => $bob });
		$statuses{ $answer->{status} }++;
		$asked_for++;
		my ($locks) = $cluster->psql("select"
			. " (select count(*) from pg_locks l where l.pid <> pg_backend_pid() and l.locktype = 'relation' and l.database <> 0"
			. "  and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') and l.pid in"
			. "   (select pid from pg_stat_activity where usename = 'entityapi_shim'))");
		$strong += $locks;
		if ($asked_for == 3)
		{
			$holder->query('rollback')->send->answers;
			$holder->close;
		}
		$sweepers[0]->stop('KILL') if $asked_for == 5;
	}
	ok(wait_for_end($doomed), 'all done');
	is_deeply([ keys %statuses ], [200], "others were answered meanwhile ($asked_for times)");
	is($strong, 0, 'no table was locked against writers');
	is(left($doomed), 0, 'nothing is left');
	is(orphans(), 0, 'nor of what hung on it');
	is(left($other) - $theirs, 1, 'others lost nothing');
	is($cluster->psql("select count(*) from entityapi.account where username = 'ann'"), 0, 'the name is free');
	like($cluster->psql("select detail from entityapi.audit where action = 'TENANT_ERASED' and tenant_id = '$doomed'"),
		qr/by a role of the database/, 'on record');
	cmp_ok($cluster->psql("select count(*) from entityapi.audit where tenant_id = '$doomed'"), '>', 3, 'the log stays');
	is($shim->http(GET => '/auth/me', { token => $ann })->{status}, 401, 'its token is nobody\'s for ever');
	is($sweepers[1]->stop, 0, 'a shim that sweeps ends well');
};

subtest 'requests that were under way' => sub {
	my $late = $shim->tenant('late')->{id};
	my $user = $shim->user($late, 'late', ['Any']);
	my $go = EntityApi::Test::folder('late') . '/go';
	my $pid = fork // die;
	if (!$pid)
	{
		# begins before the deletion, and writes after the rest is gone
		$cluster->psql("begin isolation level repeatable read; select count(*) from app.tag;"
			. " do 'begin while pg_stat_file(''$go'', true) is null loop perform pg_sleep(0.05); end loop; end';"
			. " insert into app.tag (tenant_id, id, created_at, updated_at) values ('$late', gen_random_uuid(), now(), now()); commit");
		require POSIX;
		POSIX::_exit(0);
	}
	ok(EntityApi::Test::wait_until(60, sub { $cluster->psql("select count(*) from pg_stat_activity where query like '%pg_stat_file%' and pid <> pg_backend_pid()") }),
		'one has begun');
	is($shim->http(DELETE => "/manage/tenants/$late", { token => $root })->{status}, 204, 'deleted');

	# in one session: a step is as long as it may be, however much that is
	$cluster->psql("$step;" x 40);
	is($cluster->psql("select count(*) from entityapi.tenant where id = '$late'"), 1, 'waits for what it does not see yet');
	is($cluster->psql("select count(*) from entityapi.account where tenant_id = '$late'"), 0, 'without keeping anything');
	open my $file, '>', $go or die "$go: $!";
	waitpid $pid, 0;
	is(left($late), 1, 'there it is');
	$cluster->psql('select entityapi.sweep();' x 40);
	is($cluster->psql("select count(*) from entityapi.tenant where id = '$late'"), 0, 'gone, by hand');
	is(left($late), 0, 'with all');
};

subtest 'who keeps house' => sub {
	my $as = sub { $cluster->try_psql($_[1], user => $_[0]) };
	$cluster->psql('create role nobody_special login');
	my $call = 'select deleted, more from entityapi.housekeep()';
	is($as->(entityapi_shim => "$call;")->{out}, '0|f', 'the role of shims, as they call handle()');
	for my $sql ("begin; $call; commit", 'select count(*) from entityapi.housekeep()',
		"do 'begin perform entityapi.housekeep(); end'", 'select more, deleted / 0 from entityapi.housekeep()')
	{
		like($as->(entityapi_shim => "$sql;")->{err}, qr/housekeep\(\) must be a statement and a transaction of its own/, $sql);
	}
	like($as->(nobody_special => "$call;")->{err}, qr/permission denied/, 'nobody else');
	like($as->(entityapi_shim => 'select entityapi.sweep()')->{err}, qr/permission denied/, 'and no other way');

	# what a shim of 1.1 sends, and reads
	my $old = unpack 'H*', "SWEEP * -\n\n";
	my $answer = $as->(entityapi_shim => "select entityapi.handle('\\x$old');");
	is(pack('H*', $answer->{out} =~ s/^\\x//r), qq(200\n\n\r\n\r\n{"more":false}), 'an older shim, too');
	is($cluster->psql("select status from entityapi.handle('SWEEP', '*', null, null, null)"), 400, 'which is no request');

	# a newer shim, on a database that has not been updated
	$cluster->psql('alter function entityapi.housekeep() rename to other');
	my $new = EntityApi::Test->shim($cluster, sweep_interval_ms => 50);
	ok(EntityApi::Test::wait_until(30, sub { (EntityApi::Test::slurp($new->err) . EntityApi::Test::slurp($new->log)) =~ /older than this shim/ }),
		'a newer one says what is wrong');
	is($new->http(GET => '/actuator/health')->{status}, 200, 'and serves');
	$new->stop;
	$cluster->psql('alter function entityapi.other() rename to housekeep');
};

subtest 'no way in from outside' => sub {
	like($shim->http(SWEEP => '/actuator/health', {})->{status}, qr/^40[05]$/, 'not with the method');
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port);
	print $socket "SWEEP * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	local $/;
	like(<$socket>, qr{^HTTP/1.1 (?:400|404|405|501) }, 'not with the target it takes');
};

done_testing;
