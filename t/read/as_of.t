# ?asOf: what a resource was, to whom it is shown, and when nobody can tell.

use strict;
use warnings;

use JSON::PP ();
use Test::More;
use Time::HiRes ();

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my @all = qw(create read update delete);
my %roles = (Editor => [ @all, 'history' ], Chief => [ @all, 'history' ], Reader => ['read'], Auditor => ['history']);
my %hides = (%roles, Chief => [ @all, 'history', 'restore' ]);
my %entity;
my %service = (schema => 'app');

sub reset_entities
{
	%entity = (
		Customer => { softDelete => $true, fields => { name => { type => 'string' } }, permissions => {%hides} },
		Contact => { softDelete => $true, optimisticLocking => $true, permissions => {%hides},
			fields => { name => { type => 'string' }, customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne', onDelete => 'cascade' } } },
		Branch => { fields => { name => { type => 'string' }, region => { type => 'string' } }, permissions => {%roles}, policies => { Region => ['read'] } },
		Tag => { fields => { name => { type => 'string' } }, permissions => {%roles} },
		Invoice => { optimisticLocking => $true, permissions => {%roles},
			fields => {
				number => { type => 'string', required => $true }, total => { type => 'decimal', precision => 10, scale => 2 }, note => { type => 'text' },
				issuedAt => { type => 'datetime' }, extra => { type => 'json' }, paid => { type => 'boolean', default => $false },
				secret => { type => 'string', readRoles => ['Chief'] }, later => { type => 'string', since => 2 },
				customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne', onDelete => 'restrict' },
				branch => { type => 'ref', target => 'Branch', relation => 'ManyToOne', onDelete => 'setNull' },
				tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' },
				about => { type => 'oneof', target => 'About' } } },
		User => { accounts => $true, permissions => { '*' => ['read'] } },
		Kept => { system => [qw(createdAt updatedAt createdBy updatedBy)], permissions => {%roles}, fields => { name => { type => 'string' },
				assignee => { type => 'ref', target => 'User', relation => 'ManyToOne', onDelete => 'setNull' } } },
		Plain => { fields => { name => { type => 'string' }, size => { type => 'integer' } }, permissions => {%roles} });
	return;
}

sub document
{
	my ($kind, $name, $spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

sub apply
{
	my (@losses) = @_;
	my $text = $json->encode([
		document(Service => s => {%service}), document(Versions => v => { versions => { 1 => {}, 2 => {} } }),
		document(Roles => r => { roles => { map { $_ => undef } keys %roles } }),
		document(SecurityAttributes => a => { attributes => { region => { type => 'string' } } }),
		document(Policy => Region => { expression => q{#record.region == #user.securityAttributes['region']} }),
		document(OneOf => About => { members => [qw(Tag Plain)] }),
		map { document(Entity => $_ => $entity{$_}) } sort keys %entity ]);
	my $losses = join ',', @losses;
	return $cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$, false, '{$losses}')");
}

reset_entities();
apply();
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);

sub caller_of
{
	my ($tenant, $name, $roles, $region) = @_;
	my $user = $shim->user($tenant, $name, $roles, securityAttributes => { region => $region });

	return EntityApi::Test::Cases->new($shim, $user, '/api/v1');
}

my $chief = caller_of($ours, 'cleo', ['Chief'], 'north');
my $editor = caller_of($ours, 'ed', ['Editor'], 'north');
my @halves = (caller_of($ours, 'ron', ['Reader'], 'north'), caller_of($ours, 'ann', ['Auditor'], 'north'));
my $southern = caller_of($ours, 'sue', ['Chief'], 'south');
my $stranger = caller_of($theirs, 'sam', ['Chief'], 'north');

sub one { return { data => $_[1] && { type => $_[0], id => $_[1] } } }

sub make
{
	my ($who, $type, $attributes, $relationships) = @_;
	return $who->good(201, POST => "/$type", data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data}{id};
}

sub change
{
	my ($who, $type, $id, $attributes, $relationships) = @_;
	return $who->good(200, PATCH => "/$type/$id", headers => { 'If-Match' => '*' },
		data => { type => $type, id => $id, attributes => $attributes // {}, $relationships ? (relationships => $relationships) : () });
}

# Between what came before and what comes
sub now
{
	my $at = Time::HiRes::time();
	my @t = gmtime int $at;

	Time::HiRes::sleep(0.002);
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000;
}

# What a snapshot of today and an answer of asOf have in common
sub state
{
	my ($data) = @_;
	my %linked = map { $_ => $data->{relationships}{$_}{data} } grep { /^(?:customer|branch|about|createdBy|updatedBy|assignee)$/ } keys %{ $data->{relationships} // {} };

	return { attributes => $data->{attributes}, linked => \%linked, meta => $data->{meta} };
}

sub snapshot { my ($who, $path) = @_; return state($who->good(200, GET => $path)->{json}{data}) }
sub as_of { my ($who, $path, $at) = @_; return state($who->good(200, GET => "$path?asOf=$at")->{json}{data}) }
sub gone { my ($name, $who, $path, $at) = @_; return $who->refused($name, 410, 'GONE_BEYOND_LOG', [ parameter => 'asOf' ], GET => "$path?asOf=$at") }
sub absent { my ($name, $who, $path, $at) = @_; return $who->refused($name, 404, 'NOT_FOUND', undef, GET => "$path?asOf=$at")->{body} =~ s/"id":"[^"]*"//r }

my $customer = make($chief, 'customers', { name => 'Hansen' });
my ($north, $south) = (make($chief, 'branches', { name => 'N', region => 'north' }), make($southern, 'branches', { name => 'S', region => 'south' }));
my ($tag, $plain) = (make($chief, 'tags', { name => 't' }), make($chief, 'plains', { name => 'p', size => 1 }));

subtest 'as it was' => sub {
	my $before = now();
	my $id = make($chief, 'invoices', { number => '1', total => 10.5, note => "a\x{e4}\n", issuedAt => '2026-01-01T00:00:00.5Z', extra => { a => [ 1, { b => undef } ] }, secret => 's' },
		{ customer => one(customers => $customer), branch => one(branches => $north), about => one(tags => $tag) });
	my $path = "/invoices/$id";
	my @steps = (
		sub { change($chief, 'invoices', $id, { total => 11, note => undef }) },
		sub { change($chief, 'invoices', $id, { extra => [1], paid => $true }, { about => one(plains => $plain), customer => one(customers => undef) }) },
		sub { change($chief, 'invoices', $id) },
		sub { $chief->good(204, PATCH => "$path/relationships/branch", data => undef, headers => { 'If-Match' => '*' }) },
		sub { $chief->good(204, POST => "$path/relationships/tags", data => [ { type => 'tags', id => $tag } ]) },
		sub { $chief->good(204, PATCH => "$path/relationships/about", data => undef, headers => { 'If-Match' => '*' }) },
		sub { change($chief, 'invoices', $id, { total => 10.5, secret => undef, issuedAt => undef }) });
	my @kept = ([ now(), snapshot($chief, $path), snapshot($editor, $path) ]);

	for my $step (@steps)
	{
		$step->();
		push @kept, [ now(), snapshot($chief, $path), snapshot($editor, $path) ];
	}
	for my $n (0 .. $#kept)
	{
		is_deeply(as_of($chief, $path, $kept[$n][0]), $kept[$n][1], "after $n changes");
		is_deeply(as_of($editor, $path, $kept[$n][0]), $kept[$n][2], 'for another one, too');
	}
	is_deeply(as_of($chief, $path, '2099-01-01T00:00:00Z'), $kept[-1][1], 'in times to come it is what it is');
	absent('before it was made', $chief, $path, $before);

	my $answer = $chief->good(200, GET => "$path?asOf=$kept[0][0]");
	is($answer->{headers}{etag}, undef, 'no ETag');
	is($answer->{json}{data}{meta}{version}, 0, 'but the version');
	is_deeply([ sort keys %{ $answer->{json}{data}{relationships} } ], [qw(about branch customer)], 'what stands in the row');
	is_deeply([ sort keys %{ $chief->good(200, GET => "$path?asOf=$kept[0][0]&fields[invoices]=total,customer")->{json}{data}{attributes} } ], ['total'], 'sparse');
	like($answer->{json}{links}{self}, qr/asOf=/, 'the link says so');

	$chief->refused("not with $_->[0]", 400, $_->[1], [ parameter => $_->[2] ], GET => "$path?asOf=$kept[0][0]&$_->[0]")
	  for [ 'include=customer', 'INVALID_INCLUDE', 'include' ], [ 'fields[invoices]=tags', 'INVALID_FIELDS', 'fields[invoices]' ], [ 'include=', 'INVALID_INCLUDE', 'include' ],
	  [ "asOf=$kept[1][0]", 'INVALID_PARAMETER', 'asOf' ], [ 'fields[invoices]=later', 'INVALID_FIELDS', 'fields[invoices]' ];
	$chief->refused("no time: $_", 400, 'INVALID_PARAMETER', [ parameter => 'asOf' ], GET => "$path?asOf=$_") for '', 'x', '2026-01-01', '2026-01-01T00:00:00', 'infinity', '2026-13-01T00:00:00Z';
	$chief->refused("not of $_", 400, 'UNKNOWN_PARAMETER', [ parameter => 'asOf' ], GET => "$_?asOf=$kept[0][0]") for '/invoices', "$path/customer", "$path/relationships/tags";
	$chief->refused('nor when it is changed', 400, 'UNKNOWN_PARAMETER', [ parameter => 'asOf' ], DELETE => "$path?asOf=$kept[0][0]", headers => { 'If-Match' => '*' });

	my @refusals = map { absent(@$_) } [ 'of nothing', $chief, '/invoices/01980000-0000-7000-8000-000000000000', $kept[0][0] ], [ 'of others', $stranger, $path, $kept[0][0] ],
	  [ 'of no id', $chief, '/invoices/x', $kept[0][0] ], [ 'by who may not know', $stranger, $path, '2000-01-01T00:00:00Z' ];
	is_deeply(\@refusals, [ ($refusals[0]) x 4 ], 'all alike');
	for my $half (@halves)
	{
		$half->refused("needs read and history: $_", 403, 'FORBIDDEN', undef, GET => $_)
		  for map { ("$_?asOf=$kept[0][0]", "$_?asOf=x", $half == $halves[0] ? () : "$_/history?asOf=$kept[0][0]") } $path, '/invoices/01980000-0000-7000-8000-000000000000';
	}
	$halves[0]->good(200, GET => $path);
	$editor->refused('without a role', 401, undef, undef, GET => "$path?asOf=$kept[0][0]", plain => 1);
};

subtest 'after its end' => sub {
	my $id = make($chief, 'plains', { name => 'one', size => 1 });
	my $made = now();
	change($chief, 'plains', $id, { name => 'two' });
	$chief->good(204, DELETE => "/plains/$id");
	my $ended = now();

	is(as_of($editor, "/plains/$id", $made)->{attributes}{name}, 'one', 'what it was before');
	my $last = as_of($chief, "/plains/$id", $ended);
	is($last->{attributes}{name}, 'two', 'what it was then');
	like($last->{meta}{deletedAt}, qr/^\d{4}-.*Z$/, 'with the time of its end');
	is(as_of($chief, "/plains/$id", $made)->{meta}, undef, 'which it had not then');
	absent('others see nothing', $stranger, "/plains/$id", $ended);
};

subtest 'gone and back' => sub {
	my $parent = make($chief, 'customers', { name => 'p' });
	my $id = make($chief, 'contacts', { name => 'one' }, { customer => one(customers => $parent) });
	my $made = now();
	my $was = snapshot($chief, "/contacts/$id");
	$chief->good(204, DELETE => "/customers/$parent");
	my $ended = now();
	$chief->good(200, POST => "/customers/$parent/restore");
	my $back = now();
	my $is = snapshot($chief, "/contacts/$id");
	change($chief, 'contacts', $id, { name => 'two' });
	my $later = now();
	$chief->good(204, DELETE => "/contacts/$id", headers => { 'If-Match' => '*' });

	is_deeply(as_of($editor, "/contacts/$id", $made), $was, 'before it went');
	like(as_of($chief, "/contacts/$id", $ended)->{meta}{deletedAt}, qr/^2/, 'while it was away');
	is(as_of($chief, "/contacts/$id", $ended)->{attributes}{name}, 'one', 'with what it had');
	is_deeply(as_of($editor, "/contacts/$id", $back), $is, 'when it was back');
	is(as_of($editor, "/contacts/$id", $later)->{attributes}{name}, 'two', 'and later');
	like(as_of($editor, "/contacts/$id", now())->{meta}{deletedAt}, qr/^2/, 'until it went again');
	is(as_of($editor, "/contacts/$id", now())->{attributes}{name}, 'two', 'with what it has');
	is($cluster->psql("select string_agg(action || ' ' || coalesce(changes::text, '-') || ' ' || (detail ~ '^deletion [0-9a-f-]{36}\$'), ', ' order by id) from entityapi.audit where target_id = '$id' and action ~ 'DELETE|RESTORE'"),
		'ENTITY_DELETE - true, ENTITY_RESTORE - true, ENTITY_DELETE - true', 'and the log has no values of it');
	is_deeply([ map { "$_->{attributes}{action} $_->{attributes}{version}" } @{ $chief->good(200, GET => "/contacts/$id/history")->{json}{data} } ],
		[ 'ENTITY_DELETE 4', 'ENTITY_UPDATE 3', 'ENTITY_RESTORE 2', 'ENTITY_DELETE 1', 'ENTITY_CREATE 0' ], 'its history');
	$chief->refused('not both', 400, 'INVALID_PARAMETER', [ parameter => 'show[deleted]' ], GET => "/contacts/$id?asOf=$made&show[deleted]=with");
	$chief->good(200, POST => "/contacts/$id/restore", headers => { 'If-Match' => '*' });
	is(as_of($chief, "/contacts/$id", now())->{attributes}{name}, 'two', 'and back once more');
};

subtest 'whom it referred to' => sub {
	my $gone = make($chief, 'customers', { name => 'Gone' });
	my $sold = make($chief, 'branches', { name => 'Sold', region => 'north' });
	my $id = make($chief, 'invoices', { number => 'r' }, { customer => one(customers => $gone), branch => one(branches => $sold) });
	my $at = now();
	my $was = snapshot($chief, "/invoices/$id");
	change($chief, 'invoices', $id, {}, { customer => one(customers => undef) });
	$chief->good(204, DELETE => "/customers/$gone");
	$chief->good(204, DELETE => "/branches/$sold");
	is_deeply(as_of($chief, "/invoices/$id", $at), $was, 'though it is there no more');
	is(as_of($southern, "/invoices/$id", $at)->{linked}{branch}, undef, 'not what a policy hid');
	change($southern, 'invoices', $id, {}, { branch => one(branches => $south) });
	my $then = now();
	change($chief, 'invoices', $id, {}, { branch => one(branches => $north) });
	is(as_of($chief, "/invoices/$id", $then)->{linked}{branch}, undef, 'nor what it hides now');
	is_deeply(as_of($southern, "/invoices/$id", $then)->{linked}{branch}, { type => 'branches', id => $south }, 'from who may not see it');
};

subtest 'policies of what it was' => sub {
	my $id = make($southern, 'branches', { name => 'Moved', region => 'south' });
	my $then = now();
	change($southern, 'branches', $id, { region => 'north' });
	my $later = now();

	absent('a policy hides what it was', $chief, "/branches/$id", $then);
	is(as_of($chief, "/branches/$id", $later)->{attributes}{name}, 'Moved', 'not what it has become');
	absent('what is hidden now is hidden for every time', $southern, "/branches/$id", $_) for $then, $later, '2000-01-01T00:00:00Z', '2099-01-01T00:00:00Z';
	$southern->refused('its history, too', 404, 'NOT_FOUND', undef, GET => "/branches/$id/history");
	$cluster->psql("update app.branch set name = 'quietly' where id = '$id'");
	is(as_of($chief, "/branches/$id", $later)->{attributes}{name}, 'quietly', 'the row tells all since its last record');
	gone('who sees it hears that what was before is not known', $chief, "/branches/$id", $then);
	absent('who does not, hears nothing', $southern, "/branches/$id", $then);
};

subtest 'what plain SQL did' => sub {
	my $id = make($chief, 'plains', { name => 'a', size => 1 });
	my $first = now();
	$cluster->psql("update app.plain set size = 2 where id = '$id'");
	my $second = now();
	is(as_of($chief, "/plains/$id", $_)->{attributes}{size}, 2, 'the row tells all since its last record') for $first, $second;
	change($chief, 'plains', $id, { size => 3 });
	my $third = now();
	gone('a change that the log does not know', $chief, "/plains/$id", $first);
	gone('what it led from', $chief, "/plains/$id", $second);
	is_deeply($chief->good(200, GET => "/plains/$id?asOf=$first&fields[plains]=name")->{json}{data}{attributes}, { name => 'a' }, 'of the one field');
	is(as_of($chief, "/plains/$id", $third)->{attributes}{size}, 3, 'until it is overwritten');
	is($cluster->psql("select changes->'size' from entityapi.audit where target_id = '$id' order by id desc limit 1"), '[2,3]', 'which is known');

	my $same = make($chief, 'invoices', { number => 'same' });
	my $at = now();
	$cluster->psql("update app.invoice set version = version + 1 where id = '$same'");
	is(as_of($chief, "/invoices/$same", $at)->{meta}{version}, 1, 'the version is that of the row, too');
	change($chief, 'invoices', $same, { number => 'other' });
	gone('a version that nobody made', $chief, "/invoices/$same", $at);

	my $planted = '01980000-0000-7000-8000-0000000000aa';
	my $unplanted = now();
	$cluster->psql("insert into app.plain (tenant_id, id, name, created_at, updated_at) values ('$ours', '$planted', 'x', now(), now())");
	my $growing = now();
	is(as_of($chief, "/plains/$planted", $growing)->{attributes}{name}, 'x', 'a row that it made is what it is');
	gone('but was not before', $chief, "/plains/$planted", $unplanted);
	absent('is not told to others', $stranger, "/plains/$planted", now());
	change($chief, 'plains', $planted, { name => 'y' });
	gone('what it was before its first record is not known', $chief, "/plains/$planted", $growing);
	is(as_of($chief, "/plains/$planted", now())->{attributes}{name}, 'y', 'what it is, is');

	my $lost = make($chief, 'plains', { name => 'lost' });
	my $there = now();
	$cluster->psql("delete from app.plain where id = '$lost'");
	absent('a row that it deleted', $chief, "/plains/$lost", $there);
	$cluster->psql("insert into app.plain (tenant_id, id, name, created_at, updated_at) values ('$ours', '$lost', 'other', now(), now())");
	gone('and made again', $chief, "/plains/$lost", $there);
};

subtest 'while the log was off' => sub {
	my $id = make($chief, 'plains', { name => 'a', size => 1 });
	my $before = now();
	$service{audit} = { entities => $false };
	apply();
	change($chief, 'plains', $id, { size => 2 });
	change($chief, 'plains', $id, { size => 1 });
	my $silent = make($chief, 'plains', { name => 'silent' });
	my $meanwhile = now();
	gone('nothing is known', $chief, "/plains/$id", $before);
	delete $service{audit};
	apply();
	change($chief, 'plains', $id, { name => 'b' });
	gone('of before', $chief, "/plains/$id", $before);
	gone('of then', $chief, "/plains/$id", $meanwhile);
	is(as_of($chief, "/plains/$silent", now())->{attributes}{name}, 'silent', 'what was made then is known since');
	gone('not of then', $chief, "/plains/$silent", $meanwhile);
	my $new = make($chief, 'plains', { name => 'new' });
	is(as_of($chief, "/plains/$new", now())->{attributes}{name}, 'new', 'it counts anew');
	is($chief->good(200, GET => "/plains/$id?asOf=" . now() . '&fields[plains]=name')->{json}{data}{attributes}{name}, 'b', 'for fields as well');
};

subtest 'what has been purged' => sub {
	my $id = make($chief, 'plains', { name => 'old', size => 1 });
	# as if it had been made long ago
	my $old = '01980000-0000-7000-8000-0000000000bb';
	$cluster->psql("insert into app.plain (tenant_id, id, name, size, created_at, updated_at) select tenant_id, '$old', name, 2, '2024-01-01', now() from app.plain where id = '$id';
		insert into entityapi.audit (id, at, tenant_id, action, outcome, target_type, target_id, changes, revision)
		select '018c0000-0000-7000-8000-000000000001', '2024-01-01', tenant_id, action, outcome, target_type, '$old', changes, revision from entityapi.audit where target_id = '$id';
		insert into entityapi.audit (id, at, tenant_id, action, outcome, target_type, target_id, changes, revision)
		select '018d0000-0000-7000-8000-000000000001', '2024-03-01', tenant_id, 'ENTITY_UPDATE', outcome, target_type, '$old', '{\"size\":[1,2]}', revision from entityapi.audit where target_id = '$id';");
	is(as_of($chief, "/plains/$old", '2024-02-01T00:00:00Z')->{attributes}{size}, 1, 'long ago');
	absent('before', $chief, "/plains/$old", '2023-02-01T00:00:00Z');
	$cluster->psql("select entityapi.purge_audit('2024-02-15')");
	gone('is known no more', $chief, "/plains/$old", '2024-02-01T00:00:00Z');
	is_deeply(as_of($chief, "/plains/$old", $_)->{attributes}, { name => 'old', size => 2 }, "the present is: $_") for now(), '2024-04-01T00:00:00Z', '2099-01-01T00:00:00Z';
	$cluster->psql("select entityapi.purge_audit('2024-06-15')");
	is_deeply(as_of($chief, "/plains/$old", $_)->{attributes}, { name => 'old', size => 2 }, "with no record left: $_") for now(), '2099-01-01T00:00:00Z';
	gone('but not of months that are gone', $chief, "/plains/$old", '2024-04-01T00:00:00Z');
};

subtest 'what the service fills' => sub {
	my $super = { token => $shim->superadmin->{accessToken}, headers => { 'X-Tenant-Id' => $ours, 'Content-Type' => 'application/vnd.api+json' } };
	my $user = $shim->user($ours, 'passing', ['Chief']);
	my $passing = EntityApi::Test::Cases->new($shim, $user, '/api/v1');
	my $id = make($passing, 'kepts', { name => 'a' }, { assignee => one(users => $user->{id}) });
	my $path = "/kepts/$id";
	my @kept = ([ now(), snapshot($chief, $path) ]);

	for my $step (sub { change($chief, 'kepts', $id, { name => 'b' }) }, sub { change($passing, 'kepts', $id) },
		sub { $shim->must(200, PATCH => "/api/v1$path", { %$super, json => { data => { type => 'kepts', id => $id, attributes => { name => 'c' } } } }) }, sub { change($editor, 'kepts', $id, { name => 'd' }) })
	{
		$step->();
		push @kept, [ now(), snapshot($chief, $path) ];
	}
	is_deeply(as_of($chief, $path, $kept[$_][0]), $kept[$_][1], "after $_ changes") for 0 .. $#kept;
	$shim->must(204, DELETE => "/manage/tenants/$ours/users/$user->{id}", { token => $super->{token} });
	my $gone = now();
	my $today = snapshot($chief, $path);
	is_deeply(as_of($chief, $path, $gone), $today, 'when an account has gone');
	for my $n (0 .. $#kept)
	{
		my $was = $kept[$n][1];
		for my $name (qw(createdBy updatedBy assignee))
		{
			$was->{linked}{$name} = undef if (($was->{linked}{$name} // {})->{id} // "") eq $user->{id};
		}
		is_deeply(as_of($chief, $path, $kept[$n][0]), $was, "before that, without it: $n");
	}
	$chief->refused('of accounts there is no past', 403, 'FORBIDDEN', undef, GET => "/users/$_?asOf=" . now()) for map { $_->{id} } @{ $chief->good(200, GET => '/users?page[size]=1')->{json}{data} };
	$chief->refused('and no history', 403, 'FORBIDDEN', undef, GET => '/users/' . $chief->good(200, GET => '/users?page[size]=1')->{json}{data}[0]{id} . '/history');
};

subtest 'a table that others made' => sub {
	plan skip_all => 'tables of others are on one node' if $cluster->nodes > 1;
	$cluster->psql(<<~'SQL');
		create schema own authorization entityapi_owner;
		grant usage on schema own to entityapi_reader;
		set role entityapi_owner;
		create table own.thing (tenant_id uuid not null, id uuid not null, name text, stamp text default 'stamped', primary key (tenant_id, id));
		create function own.upper() returns trigger language plpgsql as $$ begin new.name = upper(new.name); return new; end $$;
		SQL
	$entity{Own} = { table => 'own.thing', othersWrite => $false, permissions => {%roles}, fields => { name => { type => 'text' }, stamp => { type => 'text', readOnly => $true } } };
	apply();
	my $id = make($chief, 'owns', { name => 'a' });
	my $at = now();
	change($chief, 'owns', $id, { name => 'b' });
	is_deeply(as_of($chief, "/owns/$id", $at)->{attributes}, { name => 'a' }, 'without what it fills by itself');
	is_deeply(as_of($chief, "/owns/$id", now())->{attributes}, { name => 'b' }, 'now as well');
	$chief->refused('which cannot be asked for', 400, 'INVALID_FIELDS', [ parameter => 'fields[owns]' ], GET => "/owns/$id?asOf=$at&fields[owns]=stamp");
	delete $entity{Own}{othersWrite};
	apply();
	gone('where others write, two records tell nothing of the time between', $chief, "/owns/$id", $at);
	is_deeply(as_of($chief, "/owns/$id", now())->{attributes}, { name => 'b' }, 'the row tells all since the last');
	$cluster->psql('set role entityapi_owner; create trigger upper before insert or update on own.thing for each row execute function own.upper()');
	my $other = make($chief, 'owns', { name => 'c' });
	my $made = now();
	is_deeply(as_of($chief, "/owns/$other", $made)->{attributes}, { name => 'C' }, 'what a trigger made of it is what it is');
	change($chief, 'owns', $other, { name => 'd' });
	$entity{Own}{othersWrite} = $false;
	apply();
	is_deeply(as_of($chief, "/owns/$other", $made)->{attributes}, { name => 'C' }, 'and was it before, as its record says');
	$entity{Plain}{othersWrite} = $false;
	ok(!eval { apply(); 1 } && $@ =~ m{/spec/othersWrite}, 'of a made table it is not said') or diag $@;
	delete $entity{Plain}{othersWrite};
	delete $entity{Own};
	apply();
};

subtest 'versions that came later' => sub {
	my $id = make($chief, 'plains', { name => 'a' });
	my $first = now();
	change($chief, 'plains', $id, { name => 'b' });
	my $second = now();
	$entity{Plain}{optimisticLocking} = $true;
	apply();
	change($chief, 'plains', $id, { name => 'c' });
	my $third = now();
	change($chief, 'plains', $id, { name => 'd' });
	is_deeply([ map { my $state = as_of($chief, "/plains/$id", $_); "$state->{attributes}{name} $state->{meta}{version}" } $first, $second, $third, now() ], [ 'a 0', 'b 0', 'c 1', 'd 2' ],
		'begin with 0');
	delete $entity{Plain}{optimisticLocking};
	apply('Plain');
};

subtest 'other names' => sub {
	my $id = make($chief, 'plains', { name => 'a', size => 1 });
	my $invoice = make($chief, 'invoices', { number => 'n' }, { about => one(plains => $plain) });
	my $at = now();
	$entity{Thing} = { %{ delete $entity{Plain} }, renamedFrom => 'Plain', fields => {
			size => { type => 'string', renamedFrom => 'name' }, name => { type => 'integer', renamedFrom => 'size' }, colour => { type => 'string', default => 'red', required => $true } } };
	# the one-of names it
	{
		no warnings 'redefine';
		my $document = \&document;
		local *main::document = sub { $_[0] eq 'OneOf' ? $document->(OneOf => About => { members => [qw(Tag Thing)] }) : $document->(@_) };
		apply();
		is_deeply(as_of($chief, "/things/$id", $at)->{attributes}, { size => 'a', name => 1 }, 'those of today; what was not declared was not there');
		is_deeply(as_of($chief, "/invoices/$invoice", $at)->{linked}{about}, { type => 'things', id => $plain }, 'of references, too');
		my $added = now();
		is(as_of($chief, "/things/$id", $added)->{attributes}{colour}, 'red', 'what it was given');
		change($chief, 'things', $id, { colour => 'blue' });
		is(as_of($chief, "/things/$id", $added)->{attributes}{colour}, 'red', 'and had');
		delete $entity{Thing}{renamedFrom};
		$entity{Thing}{fields} = { name => { type => 'long' }, colour => { type => 'string', default => 'red', required => $true } };
		apply('Thing.size');
		is_deeply(as_of($chief, "/things/$id", $at)->{attributes}, { name => 1 }, 'what is gone is not shown');
		$entity{Thing}{fields}{size} = { type => 'string' };
		apply();
		is_deeply(as_of($chief, "/things/$id", $at)->{attributes}, { name => 1 }, 'nor is it what has its name now');
		is(as_of($chief, "/things/$id", now())->{attributes}{size}, undef, 'which is empty');
		change($chief, 'things', $id, { size => 'new' });
		is(as_of($chief, "/things/$id", now())->{attributes}{size}, 'new', 'and then not');
	}
};

subtest 'writers at once' => sub {
	my $id = make($chief, 'tags', { name => 'start' });
	my @pids;
	for my $n (1 .. 6)
	{
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			$chief->call(PATCH => "/tags/$id", data => { type => 'tags', id => $id, attributes => { name => "n$n-$_" } }) for 1 .. 8;
			require POSIX;
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	waitpid $_, 0 for @pids;
	my @at = split /\n/, $cluster->psql("select to_char(at at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') from entityapi.audit where target_id = '$id' order by at");
	my %status;
	$status{ $chief->call(GET => "/tags/$id?asOf=$_")->{status} }++ for @at;
	is_deeply(\%status, { 200 => 49 }, 'the log tells of each of them');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
