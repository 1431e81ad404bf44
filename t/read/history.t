# GET .../history: what was done to a resource, for whom, and page by page.

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
my $true = JSON::PP::true;
my %roles = (Editor => [qw(create read update delete)], Keeper => [qw(read history)], Chief => [qw(create read update delete history)], Auditor => ['history']);

sub document
{
	my ($kind, $name, $spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

my %entity = (
	Customer => { fields => { name => { type => 'string', required => $true }, region => { type => 'string' } }, permissions => {%roles}, policies => { Region => ['read'] } },
	Tag => { fields => { name => { type => 'string' } }, permissions => {%roles} },
	Vault => { fields => { name => { type => 'string' } }, permissions => { Chief => $roles{Chief}, Editor => $roles{Editor} } },
	Common => { tenantScoped => JSON::PP::false, fields => { name => { type => 'string' } }, permissions => { Keeper => $roles{Keeper} } },
	Invoice => { optimisticLocking => $true, permissions => {%roles},
		fields => {
			number => { type => 'string', unique => $true }, total => { type => 'decimal', precision => 10, scale => 2, default => 0 },
			secret => { type => 'string', readRoles => ['Chief'] }, later => { type => 'string', since => 2 },
			customer => { type => 'ref', target => 'Customer', relation => 'ManyToOne' }, vault => { type => 'ref', target => 'Vault', relation => 'ManyToOne' },
			tags => { type => 'ref', target => 'Tag', relation => 'ManyToMany' } } });

sub manifest
{
	return $json->encode([
		document(Service => s => { schema => 'app', tenantAdminBypass => $true }), document(Versions => v => { versions => { 1 => {}, 2 => {} } }),
		document(Roles => r => { roles => { map { $_ => undef } keys %roles } }),
		document(SecurityAttributes => a => { attributes => { region => { type => 'string' } } }),
		document(Policy => Region => { expression => q{#record.region == #user.securityAttributes['region']} }),
		map { document(Entity => $_ => $entity{$_}) } sort keys %entity ]);
}

sub apply
{
	my $text = manifest();
	return $cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$)");
}

apply();
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);

sub caller_of
{
	my ($tenant, $name, $roles, %members) = @_;
	my $user = $shim->user($tenant, $name, $roles, %members);

	return (EntityApi::Test::Cases->new($shim, $user, '/api/v1'), $user->{id});
}

my %north = (securityAttributes => { region => 'north' });
my ($editor, $editor_id) = caller_of($ours, 'ed', ['Editor'], %north);
my ($keeper) = caller_of($ours, 'kim', ['Keeper'], %north);
my ($chief, $chief_id) = caller_of($ours, 'cleo', ['Chief'], %north);
my ($auditor) = caller_of($ours, 'aud', ['Auditor'], %north);
my ($stranger) = caller_of($theirs, 'sam', ['Chief'], %north);
my ($southern) = caller_of($ours, 'sue', ['Chief'], securityAttributes => { region => 'south' });

sub make
{
	my ($who, $type, $attributes, $relationships) = @_;
	return $who->good(201, POST => "/$type", data => { type => $type, attributes => $attributes, $relationships ? (relationships => $relationships) : () })->{json}{data}{id};
}

sub change
{
	my ($who, $type, $id, $attributes, $relationships) = @_;
	return $who->good(200, PATCH => "/$type/$id", headers => { 'If-Match' => '*' },
		data => { type => $type, id => $id, $attributes ? (attributes => $attributes) : (), $relationships ? (relationships => $relationships) : () });
}

sub one { return { data => $_[1] && { type => $_[0], id => $_[1] } } }
sub history { my ($who, $path) = @_; return $who->good(200, GET => $path)->{json} }
sub items { return [ map { [ $_->{attributes}{action}, $_->{attributes}{changes} ] } @{ $_[0]{data} } ] }
sub now { return Time::HiRes::time() }

sub time_text
{
	my ($at) = @_;
	my @t = gmtime int $at;
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000;
}

my $hansen = make($chief, 'customers', { name => 'Hansen', region => 'north' });
my $south = make($southern, 'customers', { name => 'Sur', region => 'south' });
my @tags = map { make($chief, 'tags', { name => $_ }) } qw(a b);
my $safe = make($chief, 'vaults', { name => 'safe' });
my $invoice = make($editor, 'invoices', { number => '1', total => 10 }, { customer => one(customers => $hansen), vault => one(vaults => $safe) });
my $between = time_text(now());

change($editor, 'invoices', $invoice, { total => 12.5 });
change($chief, 'invoices', $invoice, { secret => 'x', total => 12.5 });
$chief->good(204, POST => "/invoices/$invoice/relationships/tags", data => [ map { { type => 'tags', id => $_ } } @tags ]);
$chief->good(204, PATCH => "/invoices/$invoice/relationships/customer", data => undef, headers => { 'If-Match' => '*' });
my $path = "/invoices/$invoice/history";

subtest 'the items' => sub {
	my $told = history($chief, $path);
	my @data = @{ $told->{data} };

	is(join(' ', map { $_->{attributes}{action} } @data), 'RELATIONSHIP_REPLACE RELATIONSHIP_ADD ENTITY_UPDATE ENTITY_UPDATE ENTITY_CREATE', 'the newest first');
	is(join(' ', map { $_->{attributes}{version} } @data), '4 3 2 1 0', 'each with its version');
	is_deeply([ map { $_->{type} } @data ], [ ('changes') x 5 ], 'of a type');
	is_deeply([ sort keys %{ $data[0]{attributes} } ], [qw(action actor at changes version)], 'members of an item');
	is_deeply($data[0]{attributes}{actor}, { id => $chief_id, kind => 'USER', username => 'cleo' }, 'who it was');
	is_deeply($data[0]{attributes}{changes}, { customer => { from => { type => 'customers', id => $hansen }, to => undef } }, 'a relationship');
	is_deeply($data[1]{attributes}{changes}, { tags => { from => [], to => [ sort @tags ] } }, 'to many');
	is_deeply($data[2]{attributes}{changes}, { secret => { from => undef, to => 'x' } }, 'what differs');
	is_deeply($data[3]{attributes}{changes}, { total => { from => 10, to => 12.5 } }, 'values');
	is_deeply($data[4]{attributes}{changes}{number}, { from => undef, to => '1' }, 'what it began with');
	is_deeply($data[4]{attributes}{changes}{vault}, { from => undef, to => { type => 'vaults', id => $safe } }, 'and whom it referred to');
	like($data[0]{attributes}{at}, qr/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, 'when');
	cmp_ok($data[0]{attributes}{at}, 'ge', $data[4]{attributes}{at}, 'in order');
	is_deeply($told->{meta}, { pagination => { size => 20, before => undef, after => undef } }, 'meta of the page');
	is($told->{links}{self}, "/api/v1$path", 'links');
};

subtest 'members that the caller may read' => sub {
	my @kim = @{ items(history($keeper, $path)) };

	is_deeply($kim[2][1], {}, 'readRoles hold');
	ok(!exists $kim[4][1]{vault}, 'no reference to what cannot be read');
	is_deeply([ map { scalar keys %{ $_->[1] } } @{ items(history($auditor, $path)) } ], [ (0) x 5 ], 'who may not read sees no values');
	
	change($chief->as($chief->{token}), 'invoices', $invoice, { number => '2' });
	$chief->good(200, PATCH => "/api/v2/invoices/$invoice", headers => { 'If-Match' => '*' }, data => { type => 'invoices', id => $invoice, attributes => { later => 'new' } });
	is_deeply(items(history($chief, $path))->[0][1], {}, 'not what another version shows');
	is_deeply(items($chief->good(200, GET => "/api/v2$path")->{json})->[0][1], { later => { from => undef, to => 'new' } }, 'but there');
	my $text = $json->encode(history($keeper, $path));
	unlike($text, qr/$safe|"x"/, 'nowhere');
};

subtest 'whom references led to' => sub {
	my $other = make($southern, 'invoices', { number => 's' }, { customer => one(customers => $south) });
	change($southern, 'invoices', $other, undef, { customer => one(customers => undef) });
	change($chief, 'invoices', $other, undef, { customer => one(customers => $hansen) });
	ok(!exists items(history($chief, "/invoices/$other/history"))->[2][1]{customer}, 'a policy hides it, and that there was one');
	is_deeply(items(history($chief, "/invoices/$other/history"))->[0][1]{customer}{to}, { type => 'customers', id => $hansen }, 'another one not');
	is_deeply(items(history($southern, "/invoices/$other/history"))->[2][1]{customer}{to}, { type => 'customers', id => $south }, 'nor from others');
};

subtest 'who may' => sub {
	my $absent = '01980000-0000-7000-8000-000000000000';

	$editor->refused('without history', 403, 'FORBIDDEN', undef, GET => $path);
	$editor->refused('even of nothing', 403, 'FORBIDDEN', undef, GET => "/invoices/$absent/history");
	$chief->refused('without a credential', 401, undef, undef, GET => $path, plain => 1);
	my @refusals = map { my ($who, $p) = @$_; $who->refused("not there: $p", 404, 'NOT_FOUND', undef, GET => $p)->{body} =~ s/"id":"[^"]*"//r }
	  [ $chief, "/invoices/$absent/history" ], [ $stranger, $path ], [ $southern, "/customers/$hansen/history" ], [ $chief, '/invoices/x/history' ];
	is_deeply(\@refusals, [ ($refusals[0]) x 4 ], 'absent, foreign, hidden: all alike');
	my $answer = $chief->call(POST => $path, data => {});
	is("$answer->{status} $answer->{headers}{allow}", '405 GET, HEAD', 'nothing is written there');
	is($chief->call(HEAD => $path)->{status}, 200, 'HEAD');
};

subtest 'policies of what it was' => sub {
	my $moving = make($southern, 'customers', { name => 'First', region => 'south' });
	change($southern, 'customers', $moving, { name => 'Second' });
	change($southern, 'customers', $moving, { region => 'north' });
	change($chief, 'customers', $moving, { name => 'Third' });
	is_deeply(items(history($chief, "/customers/$moving/history")), [ [ ENTITY_UPDATE => { name => { from => 'Second', to => 'Third' } } ] ], 'what was hidden then is not told');
	$southern->refused('nor of what is hidden now', 404, 'NOT_FOUND', undef, GET => "/customers/$moving/history");
	change($chief, 'customers', $hansen, { name => 'Hanson' });
	is(scalar @{ history($chief, "/customers/$hansen/history")->{data} }, 2, 'what was not, is');
};

subtest 'pages' => sub {
	my $id = make($chief, 'tags', { name => 'n0' });
	change($chief, 'tags', $id, { name => "n$_" }) for 1 .. 12;
	my $list = "/tags/$id/history";
	my @all = map { $_->{id} } @{ history($chief, $list)->{data} };

	is(scalar @all, 13, 'all on one');
	for my $size (1, 2, 5, 13)
	{
		my (@forward, @backward);

		for (my $next = "$list?page[size]=$size"; $next; )
		{
			my $page = history($chief, $next);
			push @forward, map { $_->{id} } @{ $page->{data} };
			$next = $page->{links}{next};
			last if @forward > 50;
		}
		for (my $prev = "$list?page[size]=$size&page[before]=end"; $prev; )
		{
			my $page = history($chief, $prev);
			unshift @backward, map { $_->{id} } @{ $page->{data} };
			$prev = $page->{links}{prev};
			last if @backward > 50;
		}
		is("@forward", "@all", "$size a page");
		is("@backward", "@all", "$size a page, backwards");
	}
	my $first = history($chief, "$list?page[size]=3&page[after]=start");
	is($first->{links}{prev}, undef, 'nothing before the first');
	is($first->{meta}{pagination}{after}, ($first->{links}{next} =~ /page%5Bafter%5D=([^&]+)/)[0], 'the cursor');
	change($chief, 'tags', $id, { name => 'more' });
	is_deeply([ map { $_->{id} } @{ history($chief, $first->{links}{next})->{data} } ], [ @all[ 3 .. 5 ] ], 'what comes meanwhile moves nothing');
	$chief->refused("not $_->[0]", 400, $_->[1], [ parameter => $_->[2] ], GET => "$list?$_->[0]")
	  for [ 'page[number]=1', 'UNKNOWN_PARAMETER', 'page[number]' ], [ 'sort=at', 'UNKNOWN_PARAMETER', 'sort' ], [ 'filter=at==1', 'UNKNOWN_PARAMETER', 'filter' ],
	  [ 'include=x', 'UNKNOWN_PARAMETER', 'include' ], [ 'page[size]=0', 'INVALID_PAGE', 'page[size]' ], [ 'page[after]=!', 'INVALID_PAGE', 'page[after]' ],
	  [ 'page[before]=aaaa', 'INVALID_PAGE', 'page[before]' ], [ 'page[after]=start&page[before]=end', 'INVALID_PAGE', 'page[before]' ],
	  [ 'fields[tags]=name', 'UNKNOWN_PARAMETER', 'fields[tags]' ], [ 'asOf=yesterday', 'INVALID_PARAMETER', 'asOf' ];
};

subtest 'at a time' => sub {
	is_deeply([ map { $_->[0] } @{ items(history($chief, "$path?asOf=$between")) } ], ['ENTITY_CREATE'], 'up to then');
	$chief->refused('before it was made', 404, 'NOT_FOUND', undef, GET => "$path?asOf=2020-01-01T00:00:00Z");
	$auditor->refused('takes read as well', 403, 'FORBIDDEN', undef, GET => "$path?asOf=$between");
};

subtest 'after its end' => sub {
	$chief->good(204, DELETE => "/invoices/$invoice", headers => { 'If-Match' => '*' });
	my $told = history($chief, $path);

	is($told->{data}[0]{attributes}{action}, 'ENTITY_DELETE', 'it is told of');
	is_deeply($told->{data}[0]{attributes}{changes}{number}, { from => '2', to => undef }, 'with what it had');
	$editor->refused('not to who may only read', 403, 'FORBIDDEN', undef, GET => $path);
	$stranger->refused('nor to others', 404, 'NOT_FOUND', undef, GET => $path);
	my $gone = make($southern, 'customers', { name => 'Gone', region => 'south' });
	$southern->good(204, DELETE => "/customers/$gone");
	is(scalar @{ history($southern, "/customers/$gone/history")->{data} }, 2, 'who saw it sees that it went');
	$chief->refused('who did not, does not', 404, 'NOT_FOUND', undef, GET => "/customers/$gone/history");
};

subtest 'what all tenants share' => sub {
	my %super = (token => $shim->superadmin->{accessToken});
	my $id = $shim->must(201, POST => '/api/v1/commons', { %super, headers => { 'X-Tenant-Id' => $theirs }, json => { data => { type => 'commons', attributes => { name => 'x' } } } })->{data}{id};

	is_deeply(history($keeper, "/commons/$id/history")->{data}[0]{attributes}{actor}, undef, 'who acted elsewhere is not told');
	is_deeply(items(history($keeper, "/commons/$id/history")), [ [ ENTITY_CREATE => { name => { from => undef, to => 'x' } } ] ], 'but what was done');
};

subtest 'other names' => sub {
	my $id = make($chief, 'tags', { name => 'one' });
	$entity{Label} = { %{ delete $entity{Tag} }, renamedFrom => 'Tag', fields => { title => { type => 'string', renamedFrom => 'name' } } };
	$entity{Invoice}{fields}{tags}{target} = 'Label';
	apply();
	$entity{Label}{fields} = { title => { type => 'string' }, name => { type => 'string' } };
	delete $entity{Label}{renamedFrom};
	apply();
	change($chief, 'labels', $id, { title => 'two', name => 'new' });
	is_deeply(items(history($chief, "/labels/$id/history")),
		[ [ ENTITY_UPDATE => { title => { from => 'one', to => 'two' }, name => { from => undef, to => 'new' } } ], [ ENTITY_CREATE => { title => { from => undef, to => 'one' } } ] ],
		'what was called otherwise has the name of today');
	delete $entity{Label}{fields}{title};
	my $text = manifest();
	$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$, false, '{Label.title}')");
	is_deeply(items(history($chief, "/labels/$id/history")), [ [ ENTITY_UPDATE => { name => { from => undef, to => 'new' } } ], [ ENTITY_CREATE => {} ] ], 'what is gone is told no more');
	$entity{Label}{fields}{title} = { type => 'string' };
	apply();
	is_deeply(items(history($chief, "/labels/$id/history"))->[1], [ ENTITY_CREATE => {} ], 'nor is it what has its name now');
};

subtest 'a relationship of that name' => sub {
	$entity{Vault}{fields}{history} = { type => 'ref', target => 'Label', relation => 'ManyToOne' };
	apply();
	is($chief->good(200, GET => "/vaults/$safe/history")->{json}{data}, undef, 'goes before');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
