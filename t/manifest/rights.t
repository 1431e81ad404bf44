# apply --dry-run --rights, and the SQL function beneath it: what each role
# gains and loses by a change, before it is made, and how many rows it reads.
# What is told before is what the API shows afterwards.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $folder = EntityApi::Test::folder();
my $files = 0;
my %now = (
	Service => { s => { tenancy => 'POOL' } },
	Roles => { r => { roles => { map { $_ => undef } qw(Chief Clerk Editor Ghost) } } },
	SecurityAttributes => { a => { attributes => { region => { type => 'string' } } } },
	Policy => {
		All => { expression => q{#record.id != null} },
		Region => { expression => q{#record.region == #user.securityAttributes['region']} },
		North => { expression => q{#record.region == 'north'} },
		South => { expression => q{#record.region == 'south'} },
		Own => { expression => q{#record.name == #user.username} },
		Boxed => { expression => q{#record.box.label == 'first'} } },
	Entity => {
		Item => {
			fields => {
				name => { type => 'string' }, region => { type => 'string' }, level => { type => 'integer', default => 1 },
				secret => { type => 'string', readRoles => ['Chief'], writeRoles => ['Chief'] }, box => { type => 'ref', target => 'Box', relation => 'ManyToOne' } },
			permissions => { Clerk => ['read'], Editor => [qw(create read update)], Ghost => ['read'] }, policies => {} },
		Box => { softDelete => JSON::PP::true, fields => { label => { type => 'string' } }, permissions => { Clerk => ['read'], Editor => ['read'] }, policies => {} },
		Country => { tenantScoped => JSON::PP::false, fields => { code => { type => 'string' } }, permissions => { Clerk => ['read'] }, policies => {} } });
# A policy that nothing names is a fault, so each is named when it is wanted
my %policies = %{ delete $now{Policy} };

sub documents
{
	my ($all) = @_;
	my @list;

	for my $kind (sort keys %$all)
	{
		push @list, { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $_ }, spec => $all->{$kind}{$_} } for sort keys %{ $all->{$kind} };
	}
	my %named = map { $_ => 1 } map { keys %{ $_->{policies} || {} } } values %{ $all->{Entity} };
	push @list, { apiVersion => 'entityapi/v1', kind => 'Policy', metadata => { name => $_ }, spec => $policies{$_} } for sort keys %named;
	return $json->encode(\@list);
}

sub file
{
	my ($all) = @_;
	my $name = "$folder/" . ++$files . '.json';

	open my $out, '>', $name or die "$name: $!\n";
	print $out documents($all);
	close $out;
	return $name;
}

sub changed
{
	my ($change) = @_;
	my $copy = $json->decode($json->encode(\%now));

	$change->($copy);
	return $copy;
}

# What differs for whom, a line each: role, entity, rows, rights
sub rights
{
	my ($all, $losses, @more) = @_;
	my $arguments = join ', ', 'documents => $d$' . documents($all) . '$d$', "allow_data_loss => '{" . ($losses // '') . "}'", @more;

	return $cluster->psql(qq{select concat_ws(' ', role, entity, coalesce(rows_before || '->' || rows_after || ' +' || rows_gained || '-' || rows_lost, 'nobody'),
		'by ' || nullif(callers, 0), case when complete then null else 'partly' end, '+' || nullif(array_to_string(gained, ','), ''), '-' || nullif(array_to_string(lost, ','), ''))
		from entityapi.compare_rights($arguments)});
}

$cluster->apply(file(\%now));
my %tenant = map { $_ => $shim->tenant($_)->{id} } qw(one two);
my %token = (
	map({ $_->[0] => $shim->user($tenant{ $_->[1] }, $_->[0], [ $_->[2] ]) } [ 'ann', 'one', 'Clerk' ], [ 'bob', 'one', 'Clerk' ], [ 'cyd', 'one', 'Clerk' ], [ 'dan', 'two', 'Clerk' ], [ 'eve', 'one', 'Editor' ]));
$cluster->psql(q{update entityapi.account set security_attributes = jsonb_build_object('region', case when username = 'bob' then 'south' else 'north' end) where username <> 'root';
	update entityapi.account set security_attributes = '{}' where username = 'dan'});

# 10 items in one tenant, 3 in the north, 2 in the first box; 4 in the other
$cluster->psql(qq{
	insert into app.box (tenant_id, id, label, created_at, updated_at, deleted_at)
	select '$tenant{one}', gen_random_uuid(), case n when 1 then 'first' else 'box' end, now(), now(), case when n > 3 then now() end from generate_series(1, 5) n;
	insert into app.item (tenant_id, id, name, region, level, secret, box_id, created_at, updated_at)
	select case when n <= 10 then '$tenant{one}' else '$tenant{two}' end::uuid, gen_random_uuid(), case n when 5 then 'bob' else 'item' end, case when n <= 3 then 'north' else 'south' end, n, 'hush-hush',
		case when n <= 2 then (select id from app.box where label = 'first') end, now(), now() from generate_series(1, 14) n;
	insert into app.country (id, code, created_at, updated_at) select gen_random_uuid(), 'c' || n, now(), now() from generate_series(1, 6) n});

$cluster->psql(qq{create table app.legacy (tenant_id uuid not null, id uuid not null, title text, primary key (tenant_id, id)); alter table app.legacy owner to entityapi_owner;
	insert into app.legacy (tenant_id, id) select '$tenant{one}', gen_random_uuid() from generate_series(1, 4)});

is(rights(\%now), '', 'nothing changes');

# A table that was given back: its owner's policies are not asked.  Citus does not
# take such a policy.
if (!$ENV{ENTITYAPI_TEST_CITUS})
{
	$cluster->apply(file(changed(sub {
		$_[0]{Entity}{Legacy} = { table => 'app.legacy', plural => 'legacies', fields => { title => { type => 'text' } }, permissions => { Clerk => ['read'] }, policies => {} };
	})));
	$cluster->psql(<<~'SQL');
	create role mallory;
	create schema evil authorization mallory;
	grant usage on schema evil to public;
	alter table app.legacy owner to mallory;
	grant usage on schema app to mallory;
	set role mallory;
	create sequence evil.calls;
	grant all on sequence evil.calls to public;
	create policy p on app.legacy as restrictive for select to entityapi_owner
		using (pg_catalog.query_to_xml('select pg_catalog.nextval(''evil.calls'')', true, true, '') is not null);
	grant select on app.legacy to entityapi_owner;
	SQL
	ok(!eval { rights(\%now); 1 }, 'a table that was given back, with policies of its owner: an error');
	is($cluster->psql('select is_called from evil.calls'), 'f', 'and none of these ran');
	$cluster->psql('drop policy p on app.legacy; revoke all on app.legacy from entityapi_owner; alter table app.legacy owner to entityapi_owner');
	$cluster->apply(file(\%now));
}

my $revisions = $cluster->psql('select count(*) from entityapi.revision');
my $all_fields = 'read box,read level,read name,read region';
for my $case (
	[ 'a role gains an entity', "Editor Country 0->6 +6-0 by 1 +read,read code", sub { $_[0]{Entity}{Country}{permissions}{Editor} = ['read'] } ],
	[ 'one that nobody has', "Ghost Country nobody +read,read code", sub { $_[0]{Entity}{Country}{permissions}{Ghost} = ['read'] } ],
	[ 'a role loses one', "Clerk Country 6->0 +0-6 by 1 -read,read code", sub { $_[0]{Entity}{Country}{permissions} = {} } ],
	[ 'one that others refer to', "Clerk Box 3->0 +0-3 by 2 -read,read label\nClerk Item 14->14 +0-0 by 2 -read box", sub { delete $_[0]{Entity}{Box}{permissions}{Clerk} } ],
	[ 'operations', "Editor Item 10->10 +0-0 by 1 +delete -update", sub { $_[0]{Entity}{Item}{permissions}{Editor} = [qw(create read delete)] } ],
	[ 'a right to write only', "Clerk Item 14->14 +0-0 by 2 +create,write box,write level,write name,write region", sub { push @{ $_[0]{Entity}{Item}{permissions}{Clerk} }, 'create' } ],
	[ 'rights without reading', "Clerk Box 3->0 +0-3 by 2 +create,write label -read,read label\nClerk Item 14->14 +0-0 by 2 -read box", sub { $_[0]{Entity}{Box}{permissions}{Clerk} = ['create'] } ],
	[ 'a policy: 10 become 3', "Clerk Item 14->3 +0-11 by 2\nEditor Item 10->3 +0-7 by 1", sub { $_[0]{Entity}{Item}{policies}{North} = ['read'] } ],
	[ 'one that asks who reads: each kind of reader once', "Clerk Item 24->10 +0-14 by 3\nEditor Item 10->3 +0-7 by 1", sub { $_[0]{Entity}{Item}{policies}{Region} = ['read'] } ],
	[ 'one by name: each reader is another', "Clerk Item 34->1 +0-33 by 4\nEditor Item 10->0 +0-10 by 1", sub { $_[0]{Entity}{Item}{policies}{Own} = ['read'] } ],
	[ 'one along a reference', "Clerk Item 14->2 +0-12 by 2\nEditor Item 10->2 +0-8 by 1", sub { $_[0]{Entity}{Item}{policies}{Boxed} = ['read'] } ],
	[ 'one that leaves all', '', sub { $_[0]{Entity}{Item}{policies}{All} = ['read'] } ],
	[ 'one of another operation', '', sub { $_[0]{Entity}{Item}{policies}{North} = ['update'] } ],
	[ 'a field for all', join("\n", map { "$_ Item " . ($_ eq 'Clerk' ? '14->14 +0-0 by 2' : $_ eq 'Editor' ? '10->10 +0-0 by 1' : 'nobody') . ' +read secret' } qw(Clerk Editor Ghost)),
		sub { delete $_[0]{Entity}{Item}{fields}{secret}{readRoles} } ],
	[ 'a field for some', join("\n", map { "$_ Item " . ($_ eq 'Clerk' ? '14->14 +0-0 by 2' : 'nobody') . ' -read level' } qw(Clerk Ghost)),
		sub { $_[0]{Entity}{Item}{fields}{level}{readRoles} = ['Editor'] } ],
	[ 'a field that is only read', "Editor Item 10->10 +0-0 by 1 -write name\nTenantAdmin Item nobody -write name", sub { $_[0]{Entity}{Item}{fields}{name}{readOnly} = JSON::PP::true } ],
	[ 'a field more', "Clerk Country 6->6 +0-0 by 1 +read area", sub { $_[0]{Entity}{Country}{fields}{area} = { type => 'decimal', precision => 9, scale => 2 } } ],
	[ 'a field less', "Clerk Box 3->3 +0-0 by 2 +read size -read label\nEditor Box 3->3 +0-0 by 1 +read size -read label\nTenantAdmin Box nobody +read size,write size -read label,write label", sub { $_[0]{Entity}{Box}{fields} = { size => { type => 'integer' } } }, 'Box.label' ],
	[ 'a field renamed', '', sub { $_[0]{Entity}{Country}{fields} = { short => { type => 'string', renamedFrom => 'code' } } } ],
	[ 'a field renamed and asked for', "Clerk Item 14->3 +0-11 by 2\nEditor Item 10->3 +0-7 by 1", sub {
			$_[0]{Entity}{Item}{fields}{region} = { type => 'string' };
			$_[0]{Entity}{Item}{fields}{area} = { %{ delete $_[0]{Entity}{Item}{fields}{region} }, renamedFrom => 'region' };
			$_[0]{Entity}{Item}{policies}{Area} = ['read'] } ],
	[ 'one of another type', "Clerk Item 14->1 +0-13 by 2\nEditor Item 10->1 +0-9 by 1", sub {
			$_[0]{Entity}{Item}{fields}{level}{type} = 'string'; $_[0]{Entity}{Item}{fields}{level}{default} = 'x'; $_[0]{Entity}{Item}{policies}{Level} = ['read'] } ],
	[ 'a new field, which rows get a value for', "Clerk Item 14->0 +0-14 by 2 +read extra\nEditor Item 10->0 +0-10 by 1 +read extra,write extra\nGhost Item nobody +read extra\nTenantAdmin Item nobody +read extra,write extra", sub {
			$_[0]{Entity}{Item}{fields}{extra} = { type => 'string', required => JSON::PP::true, default => 'old' }; $_[0]{Entity}{Item}{policies}{Extra} = ['read'] } ],
	[ 'one along a reference to what is renamed', "Clerk Item 14->2 +0-12 by 2\nEditor Item 10->2 +0-8 by 1", sub {
			$_[0]{Entity}{Crate} = { %{ delete $_[0]{Entity}{Box} }, renamedFrom => 'Box' }; $_[0]{Entity}{Item}{fields}{box}{target} = 'Crate';
			$_[0]{Entity}{Item}{policies}{Boxed} = ['read'] } ],
	[ 'a table that is there', "Clerk Old 0->4 +4-0 by 2 +read,read title\nTenantAdmin Old nobody +create,read,update,delete,history,read title,write title", sub {
			$_[0]{Entity}{Old} = { table => 'app.legacy', fields => { title => { type => 'text' } }, permissions => { Clerk => ['read'] } } } ],
	[ 'an entity renamed', '', sub { $_[0]{Entity}{Land} = { %{ delete $_[0]{Entity}{Country} }, renamedFrom => 'Country' } } ],
	[ 'renamed, and for another role', "Clerk Land 6->0 +0-6 by 1 -read,read code\nEditor Land 0->6 +6-0 by 1 +read,read code",
		sub { $_[0]{Entity}{Land} = { %{ delete $_[0]{Entity}{Country} }, renamedFrom => 'Country', permissions => { Editor => ['read'] } } } ],
	[ 'an entity more', "Clerk New 0->0 +0-0 by 2 +read,read x\nTenantAdmin New nobody +create,read,update,delete,history,read x,write x",
		sub { $_[0]{Entity}{New} = { fields => { x => { type => 'string' } }, permissions => { Clerk => ['read'] } } } ],
	[ 'an entity less', "Clerk Country 6->0 +0-6 by 1 -read,read code", sub { delete $_[0]{Entity}{Country} }, 'Country' ],
	[ 'a role renamed', "Clark Box nobody +read,read label\nClark Item nobody +read,$all_fields\nClerk Box 3->0 +0-3 by 2 -read,read label\nClerk Item 14->0 +0-14 by 2 -read,$all_fields",
		sub {
			delete $_[0]{Roles}{r}{roles}{Clerk}; $_[0]{Roles}{r}{roles}{Clark} = undef;
			$_[0]{Entity}{$_}{permissions}{Clark} = delete $_[0]{Entity}{$_}{permissions}{Clerk} for qw(Item Box);
			$_[0]{Entity}{Country}{permissions} = { Clark => ['read'] } }, 'Roles/Clerk' ],
	[ 'all may read', '*', sub { $_[0]{Entity}{Country}{permissions}{'*'} = ['read'] } ],
	[ 'what a TenantAdmin passes', 'TenantAdmin', sub { $_[0]{Service}{s}{tenantAdminBypass} = JSON::PP::false } ],
	[ 'a hook, a description, an index', '', sub { $_[0]{Entity}{Item}{description} = 'a thing'; $_[0]{Entity}{Item}{fields}{name}{index} = JSON::PP::true } ],
  )
{
	my ($name, $expected, $change, $losses) = @$case;

	local $policies{Area} = { expression => q{#record.area == 'north'} };
	local $policies{Level} = { expression => q{#record.level == '7'} };
	local $policies{Extra} = { expression => q{#record.extra != 'old'} };
	my $told = rights(changed($change), $losses);
	if ($expected eq '*')
	{
		like($told, qr/^\* Country 0->6 \+6-0 by 1 \+read,read code$/m, $name);
		like($told, qr/^Editor Country 0->6 /m, "$name: and so each role");
		unlike($told, qr/^Clerk/m, "$name: but for the one that could");
	}
	elsif ($expected eq 'TenantAdmin')
	{
		like($told, qr/^TenantAdmin Item nobody -create,read,update,delete,history,read box,/m, $name);
		unlike($told, qr/^(?!TenantAdmin)/m, "$name: nobody else is told of");
	}
	else
	{
		$expected .= "\nClark Country nobody +read,read code\nClerk Country 6->0 +0-6 by 1 -read,read code" if $name eq 'a role renamed';
		is($told, join("\n", sort split /\n/, $expected), $name);
	}
}

is($cluster->psql('select count(*) from entityapi.revision'), $revisions, 'nothing was applied');

# What a caller is shown
sub shown
{
	my ($who, $path) = @_;
	my $answer = $shim->http(GET => "/api/v1/$path", { token => $token{$who} });

	return $answer->{status} == 200 ? $answer->{json}{meta}{pagination}{totalRecords} : $answer->{status};
}

subtest 'and so it comes' => sub {
	my $next = changed(sub { $_[0]{Entity}{Item}{policies}{Region} = ['read']; $_[0]{Entity}{Item}{policies}{Boxed} = ['read'];
		$_[0]{Entity}{Country}{permissions} = { Editor => ['read'] }; $_[0]{Entity}{Box}{permissions} = { Clerk => ['read'] } });
	my %before = map { my $path = $_; $path => { map { $_ => shown($_, $path) } sort keys %token } } qw(items boxes countries);
	my $told = rights($next);

	is("@{ $before{items} }{qw(ann bob cyd dan eve)}", '10 10 10 4 10', 'items before');
	is($told, join("\n", 'Clerk Country 6->0 +0-6 by 1 -read,read code', 'Clerk Item 24->2 +0-22 by 3', 'Editor Box 3->0 +0-3 by 1 -read,read label',
		'Editor Country 0->6 +6-0 by 1 +read,read code', 'Editor Item 10->0 +0-10 by 1 -read box,write box') =~ s/,write box//r, 'what is told');
	$cluster->apply(file($next));
	is(join(' ', map { shown($_, 'items') } qw(ann bob cyd dan eve)), '2 0 2 0 0', 'items afterwards');
	is(join(' ', map { shown($_, 'boxes') } qw(ann dan eve)), '3 0 403', 'boxes');
	is(join(' ', map { shown($_, 'countries') } qw(ann eve)), '403 6', 'countries');
	is($cluster->apply(file(\%now)) =~ /nothing/ ? 1 : 0, 0, 'back again');
};

subtest 'other rows, and as many' => sub {
	$cluster->apply(file(changed(sub { $_[0]{Entity}{Item}{policies}{North} = ['read'] })));
	is(rights(changed(sub { $_[0]{Entity}{Item}{policies}{South} = ['read'] })), "Clerk Item 3->11 +11-3 by 2\nEditor Item 3->7 +7-3 by 1", 'none in common');
	is(rights(\%now), "Clerk Item 3->14 +11-0 by 2\nEditor Item 3->10 +7-0 by 1", 'a policy goes');
	is(rights(changed(sub { $_[0]{Entity}{Item}{policies}{North} = ['read'] })), '', 'none goes');
	$cluster->apply(file(\%now));
};

subtest 'rows that are deleted softly' => sub {
	is(rights(changed(sub { delete $_[0]{Entity}{Box}{softDelete} }), 'Box'), 'TenantAdmin Box nobody -restore', 'go with what hid them');
	is(rights(changed(sub { $_[0]{Entity}{Item}{softDelete} = JSON::PP::true })), 'TenantAdmin Item nobody +restore', 'there are none yet');
	is(rights(changed(sub { $_[0]{Entity}{Box}{permissions}{Ghost} = ['restore'] })), 'Ghost Box nobody +restore', 'who may bring them back');
	$cluster->psql(q{update app.box set deleted_at = now() where label = 'first'});
	is(rights(changed(sub { $_[0]{Entity}{Item}{policies}{Boxed} = ['read'] })), "Clerk Item 14->0 +0-14 by 2\nEditor Item 10->0 +0-10 by 1", 'lead nowhere');
	$cluster->psql(q{update app.box set deleted_at = null where label = 'first'});
};

my $narrow = changed(sub { $_[0]{Entity}{Item}{policies}{North} = ['read'] });

subtest 'bounds' => sub {
	is(rights($narrow, '', 'max_rows => 14'), "Clerk Item 14->3 +0-11 by 2\nEditor Item 10->3 +0-7 by 1", 'as many rows as there are');
	like(rights($narrow, '', 'max_rows => 13'), qr/^Clerk Item 13->[0-3] \+0-1[0-3] by 2 partly\nEditor Item 10->3 \+0-7 by 1$/, 'one more');
	like(rights($narrow, '', 'max_rows => 0'), qr/^Clerk Item 0->0 \+0-0 by 1 partly\nEditor Item 0->0 \+0-0 by 1 partly$/, 'none');
	$cluster->psql(q{insert into app.country (id, code, created_at, updated_at) select gen_random_uuid(), 'd' || n, now(), now() from generate_series(7, 100000) n});
	my $more = changed(sub { $_[0]{Entity}{Country}{permissions}{Editor} = ['read'] });
	is(rights($more), 'Editor Country 0->100000 +100000-0 by 1 +read,read code', 'a hundred thousand');
	$cluster->psql(q{insert into app.country (id, code, created_at, updated_at) select gen_random_uuid(), 'last', now(), now()});
	is(rights($more), 'Editor Country 0->100000 +100000-0 by 1 partly +read,read code', 'and one');
	my ($counted, $read) = split /\n/, $cluster->psql('begin; select rows_after from entityapi.compare_rights($d$' . documents($more) . q{$d$, max_rows => 10);
		select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relid = 'app.country'::regclass});
	is($counted, 10, 'ten of them are counted');
	cmp_ok($read, '<', 50, 'and not many more are read');
	$cluster->psql(q{delete from app.country where code !~ '^c'});
	$cluster->psql(qq{insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile, security_attributes, password_change_required, is_super_admin, created_at)
		select gen_random_uuid(), '$tenant{two}', 'USER', 'u' || n, 'u' || n, 'ACTIVE', '{Editor}', '{}', '{}', false, false, now() from generate_series(1, 1001) n});
	is(rights($more), 'Editor Country 0->6 +6-0 by 1 partly +read,read code', 'a thousand that have the role, and two');
	$cluster->psql(q{delete from entityapi.account where username ~ '^u\d'});
	$cluster->psql(q{update entityapi.account set status = 'DISABLED' where username = 'eve'});
	is(rights($more), 'Editor Country nobody +read,read code', 'nobody who could log in has it');
	$cluster->psql(q{update entityapi.account set status = 'ACTIVE' where username = 'eve'});
};

subtest 'a table on the terminal' => sub {
	my $done = $cluster->try_apply('--dry-run', '--rights', file(changed(sub {
		$_[0]{Entity}{Item}{policies}{North} = ['read']; $_[0]{Entity}{Item}{permissions}{Editor} = [qw(read update delete)]; $_[0]{Entity}{Country}{permissions}{Ghost} = ['read'] })));

	is($done->{status}, 0, 'done') or diag $done->{err};
	like($done->{out}, qr/^-- permission Item\.create: - Editor$/m, 'after what a dry run tells');
	is($done->{out} =~ s/.*?\n\n//sr, <<'END', 'the table');
role    entity   rows  then  new  gone  rights
Clerk   Item       14     3    0    11
Editor  Item       10     3    0     7  + delete; - create
Ghost   Country     -     -    -     -  + read, read code
-: nobody has this role
END
	is($cluster->apply('--dry-run', '--rights', file(\%now)), "nothing to change\n\nno role gains or loses anything\n", 'nothing changes');

	my $faulty = $cluster->try_apply('--dry-run', '--rights', file(changed(sub { $_[0]{Entity}{Item}{permissions}{Clark} = ['read'] })));
	is($faulty->{status}, 1, 'a fault of the manifests');
	like($faulty->{err}, qr{/spec/permissions/Clark: role "Clark" is not declared}, 'is told as ever');
	is($faulty->{out}, '', 'and no table');
	my $lost = $cluster->try_apply('--dry-run', '--rights', file(changed(sub { delete $_[0]{Entity}{Country} })));
	is($lost->{status}, 1, 'a loss that is not allowed');
	like($cluster->apply('--dry-run', '--rights', '--allow-data-loss', 'Country', file(changed(sub { delete $_[0]{Entity}{Country} }))), qr/^Clerk +Country +6 +0 +0 +6  - read, read code$/m,
		'and one that is');
	for my $wrong ([ '--rights' ], [ '--dry-run', '--rights', '--repair' ])
	{
		my $refused = $cluster->try_apply(@$wrong, file(\%now));
		is($refused->{status}, 2, "@$wrong: wrong use");
		like($refused->{err}, qr/--rights goes with --dry-run, and without --repair/, 'which is said');
	}
};

subtest 'who may, and who waits' => sub {
	my $call = 'select count(*) from entityapi.compare_rights($d$' . documents($narrow) . '$d$)';

	$cluster->psql('create role deployer login; grant entityapi_owner to deployer; create role passer login');
	is($cluster->try_psql($call, user => 'deployer')->{out}, '2', 'who may apply');
	like($cluster->try_psql($call, user => $_)->{err}, qr/permission denied/, "not $_") for qw(passer entityapi_shim);
	is($cluster->psql("begin; $call; select string_agg(distinct mode, ',') from pg_locks l where l.relation in ('app.item'::regclass, 'app.box'::regclass)"),
		"2\nAccessShareLock", 'tables are read, and nobody waits who does not drop them');
	unlike($cluster->psql('select c from entityapi.compare_rights($d$' . documents(changed(sub { $_[0]{Entity}{Item}{policies}{Own} = ['read'] })) . '$d$) c'), qr/hush|bob/, 'no values');
	for my $nothing ('null', q{'[]', null}, q{'[]', '{}', null})
	{
		like($cluster->try_psql("select entityapi.compare_rights($nothing)")->{err}, qr/arguments of compare_rights must not be null/, "$nothing is no argument");
	}
};

subtest 'interrupted' => sub {
	my $holder = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo ],
		in => 'begin; lock table app.item in access exclusive mode; select pg_sleep(600)');
	EntityApi::Test::wait_until(30, sub { $cluster->psql("select count(*) from pg_stat_activity where wait_event = 'PgSleep'") }) or die "nothing is locked\n";
	my $waits = q{set entityapi.apply_lock_timeout = '10min'; select count(*) from entityapi.compare_rights($d$} . documents($narrow) . '$d$)';
	my $pid = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-v', 'VERBOSITY=verbose', '-d', $cluster->conninfo ], in => $waits, err => "$folder/interrupted");
	EntityApi::Test::wait_until(30, sub { $cluster->psql("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'compare_rights' and pid <> pg_backend_pid()") })
	  or die "it does not wait\n";
	$cluster->psql("select pg_cancel_backend(pid) from pg_stat_activity where query ~ 'compare_rights' and pid <> pg_backend_pid()");
	waitpid $pid, 0;
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where wait_event = 'PgSleep'");
	waitpid $holder, 0;
	like(EntityApi::Test::slurp("$folder/interrupted"), qr/ERROR:  57014: canceling statement due to user request/, 'at once');
	is(rights($narrow), "Clerk Item 14->3 +0-11 by 2\nEditor Item 10->3 +0-7 by 1", 'and the next one is answered');
	is($cluster->apply(file(\%now)), "nothing to change\n", 'nothing is held');
};

done_testing;
