# Tenants that are made by an id: those that are there elsewhere.  One that has
# gone is made anew by its id, and is another, but for what the log keeps.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Wire;

my $cluster = EntityApi::Test->cluster;
my @document = map { { apiVersion => 'entityapi/v1', kind => $_->[0], metadata => { name => $_->[1] }, spec => $_->[2] } }
  ([ Service => 'service', {} ], [ Roles => 'roles', { roles => { Clerk => {} } } ],
	[ Entity => 'Note', { fields => { words => { type => 'string' } }, permissions => { Clerk => [qw(create read update delete history)] } } ]);
my $manifest = JSON::PP->new->canonical->encode(\@document);
$cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $known = '0193d7a0-1111-7aaa-8bbb-0123456789ab';
my $n = 0;

sub make
{
	my ($id, %more) = @_;

	$n++;
	return $shim->http(POST => '/manage/tenants', { token => $root, json => { id => $id, name => "t$n", slug => "t$n", %more } });
}

sub refused
{
	my ($name, $answer, $status, $code, @places) = @_;
	my $errors = $answer->{json}{errors};

	is($answer->{status}, $status, $name) or diag $answer->{body};
	is_deeply([ map { "$_->{code} " . ($_->{source}{pointer} // '') } @$errors ], [ map { "$code $_" } @places ], "$name: code and place");
	return;
}

sub write_note
{
	my ($user, $words) = @_;

	return $shim->must(201, POST => '/api/v1/notes', { token => $user,
			json => { data => { type => 'notes', attributes => { words => $words } } } })->{data}{id};
}

sub notes { return join ' ', map { $_->{attributes}{words} } @{ $shim->must(200, GET => '/api/v1/notes?sort=words', { token => $_[0] })->{data} } }

# All that is left of tenants that have gone
sub sweep
{
	EntityApi::Test::wait_until(60, sub { $cluster->psql('select entityapi.sweep()') eq '0' }) or die "there is always more\n";
	return;
}

sub count { return $cluster->psql("select count(*) from $_[0]") }

subtest 'made' => sub {
	my $made = make($known, admin => { username => 'boss' });
	is($made->{status}, 201, 'created') or diag $made->{body};
	is($made->{json}{id}, $known, 'by its id');
	like($made->{headers}{location}, qr{/manage/tenants/$known$}, 'where it is');
	is($shim->must(200, GET => "/manage/tenants/$known", { token => $root })->{slug}, 't1', 'and is found');
	is($cluster->psql("select tenant_id from entityapi.account where username = 'boss'"), $known, 'its administrator is there');
	my $record = $shim->must(200, GET => '/manage/audit?filter=action==TENANT_CREATED', { token => $root })->{data}[0];
	is_deeply($record->{target}, { type => 'tenant', id => $known }, 'recorded');
	my $other = make(undef);
	is($other->{status}, 201, 'null is as good as none');
	isnt($other->{json}{id}, $known, 'and the service makes the id');
	like($other->{json}{id}, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7/, 'as ever');
};

subtest 'refused' => sub {
	my $before = count('entityapi.tenant');
	my %bad = ('' => 'an empty one', 'x' => 'no UUID', uc $known => 'in capitals', "{$known}" => 'in braces', $known =~ tr/-//dr => 'without hyphens',
		" $known" => 'a space before', "$known\n" => 'a line behind', '00000000-0000-0000-0000-000000000000' => 'that of nobody');
	refused($bad{$_}, make($_), 400, INVALID_VALUE => '/id') for sort keys %bad;
	refused($_->[0], make($_->[1]), 400, INVALID_VALUE => '/id') for [ 'a number' => 7 ], [ 'a list' => [$known] ], [ 'an object' => {} ];
	refused('one that is taken', make($known), 409, UNIQUE_VIOLATION => '/id');
	refused('all of it', make($known, name => 't1', slug => 't1'), 409, UNIQUE_VIOLATION => qw(/name /slug /id));
	refused('with a fault elsewhere', make('x', slug => 'NO'), 400, INVALID_VALUE => qw(/slug /id));
	refused('a change of it', $shim->http(PATCH => "/manage/tenants/$known", { token => $root, json => { id => $known } }), 400, UNKNOWN_FIELD => '/id');
	my $boss = $shim->user($known, 'ann', ['Clerk']);
	refused('by others', $shim->http(POST => '/manage/tenants', { token => $boss, json => { id => 'x', name => 'n', slug => 's' } }), 403, FORBIDDEN => '');
	is(count('entityapi.tenant'), $before, 'nothing was made');
};

subtest 'many at once make one' => sub {
	my $id = $known =~ s/^0/1/r;
	my @answers = map {
		my $pid = open(my $answer, '-|') // die "$!\n";
		if (!$pid)
		{
			my $json = JSON::PP->new->encode({ id => $id, name => "at once $_", slug => "at-once-$_" });
			my $answer = HTTP::Tiny->new->post($shim->url . '/manage/tenants', { content => $json,
					headers => { 'content-type' => 'application/json', authorization => "Bearer $root->{accessToken}" } });
			print $answer->{status};
			STDOUT->flush;
			POSIX::_exit(0);
		}
		$answer;
	} 1 .. 8;
	is_deeply([ sort map { scalar readline $_ } @answers ], [ 201, (409) x 7 ], 'one was first');
	is(count("entityapi.tenant where id = '$id'"), 1, 'and is there');
};

subtest 'made anew' => sub {
	my $ann = $shim->login('ann', $shim->must(200, PATCH => "/manage/tenants/$known/users/"
			. $cluster->psql("select id from entityapi.account where username = 'ann'"),
			{ token => $root, json => { temporaryPassword => 'temporary-word-3' } }) && 'temporary-word-3');
	$ann = $shim->must(200, POST => '/auth/change-password', { token => $ann,
			json => { currentPassword => 'temporary-word-3', newPassword => 'plainly-for-a-test-4' } });
	my $old = write_note($ann, 'old');

	is($shim->http(DELETE => "/manage/tenants/$known", { token => $root })->{status}, 204, 'deleted');
	refused('while it goes, its id is taken', make($known), 409, UNIQUE_VIOLATION => '/id');
	sweep();
	is(make($known)->{status}, 201, 'then it is free');
	is($shim->http(GET => '/auth/me', { token => $ann })->{status}, 401, 'a token of before is nobody\'s');
	is($shim->http(POST => '/auth/refresh', { json => { refreshToken => $ann->{refreshToken} } })->{status}, 401, 'nor is it renewed');

	my $eve = $shim->user($known, 'eve', ['Clerk']);
	is(notes($eve), '', 'it has none of the rows that the service kept');
	for my $past ('', '/history', '?asOf=2099-01-01T00:00:00Z')
	{
		is($shim->http(GET => "/api/v1/notes/$old$past", { token => $eve })->{status}, 404, "of a row that went nothing is shown ($past)");
	}
	write_note($eve, 'new');
	is(notes($eve), 'new', 'rows of its own are there');
	is($cluster->psql("select string_agg(action, ' ' order by at, id) from entityapi.audit where target_id = '$known' and outcome = 'SUCCESS'"),
		'TENANT_CREATED TENANT_DELETED TENANT_ERASED TENANT_CREATED', 'all is on record');
	$shim->must(204, POST => "/manage/tenants/$known/tenant-admins/$eve->{id}", { token => $root });
	my $log = $shim->must(200, GET => "/manage/audit?filter=targetId==$old", { token => $eve });
	is_deeply([ map { $_->{action} } @{ $log->{data} } ], ['ENTITY_CREATE'], 'the log of the one before is kept, and its administrators read it');
};

# A session that was at the rows of the one before begins with those of the
# next at the beginning
subtest 'it ends again' => sub {
	my $id = make('0193d7a0-2222-7aaa-8bbb-0123456789ab')->{json}{id};
	my $user = $shim->user($id, 'one', ['Clerk']);
	my $fill = sub { $cluster->psql("begin; @{[ $cluster->unchecked ]} insert into app.note (tenant_id, id, created_at, updated_at, words)"
			. " select '$id', gen_random_uuid(), now(), now(), 'x' from generate_series(1, 30000); commit") };
	my $left = sub { count("app.note where tenant_id = '$id'") };

	$fill->();
	is($shim->http(DELETE => "/manage/tenants/$id", { token => $root })->{status}, 204, 'the first end');
	my $session = EntityApi::Test::Wire->new($cluster, 'postgres');
	$session->query('select 1 from entityapi.housekeep()')->send->answers;
	cmp_ok($left->(), '>', 0, 'a session has done some of it');
	sweep();
	is(count("entityapi.tenant where id = '$id'"), 0, 'others the rest');
	is(make($id)->{status}, 201, 'made anew');
	$fill->();
	is($shim->http(DELETE => "/manage/tenants/$id", { token => $root })->{status}, 204, 'the second end');
	EntityApi::Test::wait_until(60, sub {
		$session->query('select 1 from entityapi.housekeep()')->send->answers;
		return !count("entityapi.tenant where id = '$id'");
	});
	is($left->(), 0, 'nothing is left');
	$session->close;
};

subtest 'described' => sub {
	my $document = $shim->must(200, GET => '/api/v1/openapi.json', { token => $root });
	my $creation = $document->{components}{schemas}{TenantCreation};
	is_deeply($creation->{properties}{id}, { type => [qw(string null)], format => 'uuid' }, 'the id') or diag explain $creation;
	is_deeply($creation->{required}, [qw(name slug)], 'which may be left out');
};

done_testing;
