# What a request takes follows entityapi.max_memory, whatever the route and
# whatever the size of the values: many small ones, some of 1 MB, few of 10 MB.
#
# ENTITYAPI_MEMORY=10 does the last as well, which takes a minute, and shows
# what each request took.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $MB = 1024 * 1024;
my $max = 32;
my $bound = 1.25 * $max + 16;
my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster(conf => [ q{shared_buffers = 1MB}, q{work_mem = 64kB}, q{autovacuum = off} ]);
plan skip_all => 'what a node takes for others is not a request' if $cluster->nodes > 1;
my ($pid_status, $clear) = map { my $file = $_; sub { "/proc/$_[0]/$file" } } qw(status clear_refs);
my $true = JSON::PP::true;
my @all = qw(create read update delete history);

sub document
{
	my ($kind, $name, $spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

sub part { return { type => 'ref', target => $_[0], relation => 'ManyToOne', onDelete => 'cascade' } }
my %text = (name => { type => 'string' }, note => { type => 'text' });
my $text = $json->encode([
	document(Service => s => { schema => 'app' }), document(Roles => r => { roles => { Editor => undef } }),
	document(SecurityAttributes => a => { attributes => { region => { type => 'string' } } }),
	document(Policy => Mine => { expression => q{#record.name != #user.securityAttributes['region']} }),
	document(Entity => Folder => { softDelete => $true, permissions => { Editor => [ @all, 'restore' ] }, fields => {%text} }),
	document(Entity => Doc => { softDelete => $true, permissions => { Editor => [ @all, 'restore' ] }, policies => { Mine => ['read'] }, fields => { %text, folder => part('Folder') } }),
	document(Entity => Box => { permissions => { Editor => [@all] }, fields => { %text, box => part('Box'), tags => { type => 'ref', target => 'Doc', relation => 'ManyToMany' } } }) ]);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$)");
$cluster->psql("alter role entityapi_shim set entityapi.max_memory = '${max}MB'; alter role entityapi_shim set entityapi.max_body = '32MB'");
my $shim = EntityApi::Test->shim($cluster, pool_size => 1, max_body => int($max * $MB / 3));
my $tenant = $shim->tenant('acme')->{id};
my $admin = $shim->user($tenant, 'ada', []);
$cluster->psql("insert into entityapi.tenant_admin values ('$tenant', '$admin->{id}')");
$admin = $admin->{accessToken};
my $user = $shim->user($tenant, 'ed', ['Editor'], securityAttributes => { region => 'hidden' });
my $super = $shim->superadmin->{accessToken};

sub kilobytes { my ($pid, $name) = @_; return EntityApi::Test::slurp($pid_status->($pid)) =~ /^$name:\s+(\d+)/m ? $1 : 0 }
sub backends { return split /\n/, $cluster->psql(q{select pid from pg_stat_activity where usename = 'entityapi_shim'}) }

# Private memory at its most, since the last look
sub most
{
	my $most = 0;

	for my $pid (backends())
	{
		my $own = kilobytes($pid, 'VmHWM') - kilobytes($pid, 'RssFile') - kilobytes($pid, 'RssShmem');
		$most = $own if $own > $most;
	}
	return $most / 1024;
}

sub begin
{
	for my $pid (backends())
	{
		open my $refs, '>', $clear->($pid) or plan skip_all => 'the memory of other processes is not shown here';
		print $refs 5;
		close $refs;
	}
	return;
}

my (@table, $took);

sub asked
{
	my ($name, $method, $path, %options) = @_;
	my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

	begin();
	my $answer = $shim->http($method => $path =~ m{^/} ? $path : "/api/v1/$path", { token => $options{token} // $user->{accessToken},
		headers => { $options{atomic} ? ('Content-Type' => $atomic, Accept => $atomic) : ref $options{data} ? ('Content-Type' => 'application/vnd.api+json') : () },
		defined $options{body} ? (body => $options{body}) : () });
	$took = most();
	my $code = $answer->{json}{errors}[0]{code} // '';

	push @table, sprintf '%-44s %3d %-18s %6.1f MB', $name, $answer->{status}, $code, $took;
	cmp_ok($took, '<', $bound, "$name: $answer->{status} $code");
	ok($answer->{status} < 500, "$name: no error of the server") or diag $answer->{body};
	return $answer;
}

my $number = 0;
sub id { return sprintf '01900000-0000-7000-8000-%012d', ++$number }
sub resource { my ($type, $id, %attributes) = @_; return $json->encode({ data => { type => $type, defined $id ? (id => $id) : (), attributes => \%attributes } }) }

# Rows and records as the service would have made them, of one size
sub fill
{
	my ($size, $rows, $records) = @_;
	my ($folder, $box) = (id(), id());
	my $value = "left(repeat(md5(i::text), $size / 32 + 1), $size)";

	$cluster->psql(<<~"SQL");
		insert into app.folder (tenant_id, id, name, note, created_at, updated_at) select '$tenant', '$folder', 'f', $value, now(), now() from generate_series(1, 1) i;
		insert into app.doc (tenant_id, id, name, note, folder_id, created_at, updated_at)
			select '$tenant', gen_random_uuid(), 'd', $value, '$folder', now(), now() from generate_series(1, $rows) i;
		insert into app.box (tenant_id, id, name, note, created_at, updated_at) select '$tenant', '$box', 'b', $value, now(), now() from generate_series(1, 1) i;
		insert into app.box (tenant_id, id, name, note, box_id, created_at, updated_at)
			select '$tenant', gen_random_uuid(), 'b' || i, $value, '$box', now(), now() from generate_series(1, $rows) i;
		insert into entityapi.audit (id, at, tenant_id, actor_id, actor_kind, actor_username, action, outcome, target_type, target_id, changes, revision)
			select ('01900000-0000-7000-9' || t.n || '00-' || lpad(i::text, 12, '0'))::uuid, now() - interval '1 second' + i * interval '1 microsecond', '$tenant', '$user->{id}', 'USER', 'ed',
				case i when 1 then 'ENTITY_CREATE' else 'ENTITY_UPDATE' end, 'SUCCESS', t.type, t.id,
				case i when 1 then json_build_object('note', json_build_array(null, left(repeat(md5('2'), $size / 32 + 1), $size)), 'name', json_build_array(null, left(t.type, 1)),
					'folder', json_build_array(null, case t.type when 'docs' then json_build_object('type', 'folders', 'id', '$folder') end))
				else json_build_object('note', json_build_array($value, left(repeat(md5((i + 1)::text), $size / 32 + 1), $size))) end,
				(select max(revision) from entityapi.revision)
			from generate_series(1, $records) i, (values ('folders', '$folder', 1), ('boxes', '$box', 2), ('docs', (select id::text from app.doc where folder_id = '$folder' limit 1), 3)) t (type, id, n);
		SQL
	return ($folder, $box, $cluster->psql("select target_id from entityapi.audit where target_type = 'docs' and target_id in (select id::text from app.doc where folder_id = '$folder') limit 1"));
}

for (['1 byte', 1, 1000, 1000], [ '1 MB', $MB, 48, 40 ], ($ENV{ENTITYAPI_MEMORY} // 0) >= 10 ? [ '10 MB', 10 * $MB, 8, 8 ] : ())
{
	my ($name, $size, $rows, $records) = @$_;
	my ($folder, $box, $doc) = fill($size, $rows, $records);
	my $of = "filter=folder.id==$folder";
	my $soon = '2099-01-01T00:00:00Z';
	my $then = $cluster->psql(qq{select to_char((min(at) + (max(at) - min(at)) / 2) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') from entityapi.audit where target_id = '$folder'});
	my $value = 'v' x $size;

	subtest "values of $name" => sub {
		asked("$name: $_->[0]", GET => $_->[1]) for
		  [ 'a list', "docs?$of&page[size]=100" ], [ 'a list by cursors', 'boxes?page[size]=100&page[after]=start' ], [ 'a list without them', "docs?$of&page[size]=100&fields[docs]=name" ],
		  [ 'sorted by them', "docs?$of&sort=-note&page[size]=2&fields[docs]=name" ], [ 'filtered by them', "docs?$of;note=like=*x*&fields[docs]=name" ],
		  [ 'included', "boxes/$box?include=box,tags" ], [ 'a list with includes', "docs?$of&include=folder&page[size]=100" ], [ 'related', "docs/$doc/folder" ],
		  [ 'linkage', "boxes/$box/relationships/tags" ], [ 'one', "folders/$folder" ], [ 'deleted too', "docs?$of&show[deleted]=with&page[size]=100" ],
		  [ 'history', "folders/$folder/history?page[size]=100" ], [ 'one record of it', "folders/$folder/history?page[size]=1" ],
		  [ 'history where policies ask', "docs/$doc/history?page[size]=1" ], [ 'history at a time', "boxes/$box/history?asOf=$then&page[size]=1" ],
		  [ 'what was', "folders/$folder?asOf=$then" ], [ 'a part of what was', "folders/$folder?asOf=$then&fields[folders]=name" ],
		  [ 'where policies ask', "docs/$doc?asOf=$then&fields[docs]=name" ], [ 'what is', "folders/$folder?asOf=$soon" ], [ 'description', 'openapi.json' ];
		$cluster->psql("update app.doc set name = 'hidden' where id = '$doc'");
		for my $hidden ("docs/$doc?asOf=$then", "docs/$doc?asOf=$soon", "docs/$doc/history")
		{
			my $absent = '01980000-0000-7000-8000-000000000000';

			is(asked("$name: absent", GET => $hidden =~ s/$doc/$absent/r)->{status}, 404, 'is absent');
			my $little = $took;
			is(asked("$name: hidden", GET => $hidden)->{status}, 404, 'is hidden');
			cmp_ok($took - $little, '<', 2, 'and takes as little');
		}
		asked("$name: audit", GET => '/manage/audit?page[size]=100', token => $_) for $super, $admin;
		asked("$name: users", GET => "/manage/tenants/$tenant/users", token => $admin);
		my $made = asked("$name: POST", POST => 'folders', data => {}, body => resource('folders', undef, name => 'n', note => $value));
		asked("$name: PATCH", PATCH => "folders/$folder", data => {}, body => resource('folders', $folder, note => $value));
		asked("$name: PATCH of little", PATCH => "folders/$folder", data => {}, body => resource('folders', $folder, name => 'other'));
		asked("$name: operations", POST => 'operations', atomic => 1, body => $json->encode({ 'atomic:operations' => [ map { { op => 'add', data => { type => 'folders', attributes => { note => $value } } } } 1 .. ($size < 4 * $MB ? 3 : 1) ] }));
		asked("$name: relationship", POST => "boxes/$box/relationships/tags", data => {}, body => $json->encode({ data => [ { type => 'docs', id => $cluster->psql("select id from app.doc where name <> 'hidden' and folder_id = '$folder' limit 1") } ] }));
		for (1, 2)
		{
			is(asked("$name: soft DELETE with all parts", DELETE => "folders/$folder")->{status}, 204, 'done');
			is(asked("$name: restore", POST => "folders/$folder/restore?fields[folders]=name")->{status}, 200, 'done');
		}
		asked("$name: DELETE with all parts", DELETE => "boxes/$box");
		is($cluster->psql("select count(*) from entityapi.audit where action in ('ENTITY_RESTORE', 'ENTITY_DELETE') and target_type <> 'boxes' and changes is not null"), 0, 'no value is logged of what stays');
	};
}
note join "\n", '', @table;
diag join "\n", '', @table if $ENV{ENTITYAPI_MEMORY};

is($shim->stop, 0, 'ends with 0');
subtest 'bodies' => sub {
	my $large = EntityApi::Test->shim($cluster, pool_size => 1, max_body => 32 * $MB);
	my $answer = $large->http(POST => '/api/v1/folders', { token => $user->{accessToken}, headers => { 'Content-Type' => 'application/vnd.api+json' },
			body => resource('folders', undef, name => 'n', note => 'v' x ($max * $MB / 3)) });

	is("$answer->{status} $answer->{json}{errors}[0]{code}", '413 PAYLOAD_TOO_LARGE', 'have a third of the memory');
};

done_testing;
