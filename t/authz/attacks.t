# What an attacker would try against the entity endpoints and behind them:
# other tenants' rows, what roles hide, injection, excess, the database itself.
#
# Many answers are compared with those to a harmless request ("alike"): from
# the difference between the two nothing may be learnt.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster(conf => ['log_statement = none']);
my $more = EntityApi::Test::folder() . '/more.yaml';
{
	open my $file, '>', $more or die "$more: $!\n";
	print $file <<~'YAML';
		apiVersion: entityapi/v1
		kind: Entity
		metadata: {name: Room}
		spec:
		  fields:
		    name: {type: string}
		    desks: {type: ref, target: Desk, relation: OneToMany, mappedBy: room}
		    fixed: {type: ref, target: Desk, relation: OneToMany, mappedBy: first}
		  permissions:
		    Editor: [create, read, update, delete]
		    Helper: [create, read, update]
		---
		apiVersion: entityapi/v1
		kind: Entity
		metadata: {name: Desk}
		spec:
		  fields:
		    name: {type: string}
		    room: {type: ref, target: Room, relation: ManyToOne, writeRoles: [Editor]}
		    first: {type: ref, target: Room, relation: ManyToOne, writeOnce: true}
		  permissions:
		    Editor: [create, read, update, delete]
		    Helper: [read]
		YAML
	close $file or die "$more: $!\n";
}
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities', $more);
my $shim = EntityApi::Test->shim($cluster);
my ($here, $there) = map { $shim->tenant($_) } qw(here there);
my %user = map { $_ => $shim->user($here->{id}, lc $_, [$_]) } qw(Editor Reader Helper);
my $stranger = $shim->user($there->{id}, 'stranger', ['Editor']);
my $ours = EntityApi::Test::Cases->new($shim, $user{Editor}, '/api/v1');
my ($reader, $helper, $theirs) = map { $ours->as($_) } $user{Reader}, $user{Helper}, $stranger;
my $root = $ours->as($shim->superadmin);
my $nobody = '01980000-0000-7000-8000-000000000000';
my $type = 'application/vnd.api+json';
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my @any = (headers => { 'If-Match' => '*' });

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

sub made
{
	my ($who, $collection, $attributes, %to) = @_;
	my %relationships = map { $_ => { data => $to{$_} } } keys %to;

	my $data = $who->good(201, POST => "/$collection",
		data => { type => lc $collection, attributes => $attributes, relationships => \%relationships })->{json}{data};
	return { type => $data->{type}, id => $data->{id} };
}

# Both tenants have the same things.
my (%mine, %foreign);
for ([ $ours, \%mine ], [ $theirs, \%foreign ])
{
	my ($who, $set) = @$_;

	$set->{people} = made($who, people => { name => 'Ann' });
	$set->{tags} = made($who, tags => { word => 'one' });
	$set->{books} = made($who, books => { title => 'A book' });
	$set->{vaults} = made($who, vaults => { place => 'cellar' });
	$set->{boxes} = made($who, boxes => { label => 'Box' }, owner => $set->{people},
		content => $set->{books}, tags => [ $set->{tags} ], vault => $set->{vaults});
	$set->{specimens} = made($who, specimens => { name => 'first', secret => 'apple', code => 'taken', essay => "50% of a_b\\c" });
}

sub absent { return { type => $_[0], id => $nobody } }

# All that an answer tells, but what differs for good reason
sub told
{
	my ($answer, @words) = @_;
	my %headers = %{ $answer->{headers} };
	my $text = $answer->{body};

	delete @headers{qw(date x-request-id)};
	$text =~ s/\Q$answer->{headers}{'x-request-id'}\E/ID/g;
	$text =~ s/\Q$_\E/WORD/g for grep { length } @words;
	$headers{$_} =~ s/\Q$words[0]\E/WORD/ for grep { @words && !ref $headers{$_} } keys %headers;
	delete $headers{'content-length'};
	return { status => $answer->{status}, headers => \%headers, body => $text };
}

# Two requests, and the word of each that is meant to be the only difference
sub alike
{
	my ($name, $status, $who, $one, $other) = @_;
	my ($word, @request) = @$one;
	my ($control, @harmless) = @$other;
	my ($got, $expected) = (told($who->call(@request), $word), told($who->call(@harmless), $control));

	is($got->{status}, $status, "$name: status") or diag $got->{body};
	is_deeply($got, $expected, "$name: alike");
	return;
}

sub count_of
{
	my ($table, $tenant) = @_;

	return $cluster->psql("select count(*) from app.$table where tenant_id = '$tenant->{id}'");
}

# The state of everything, to show that nothing was written
sub state_of
{
	return $cluster->psql(join ' union all ', map {
		"select '$_' || coalesce(string_agg(md5(t::text), '' order by t::text), '') from app.$_ t" }
		  qw(person locker box box_tags slip tag book toy vault specimen memo));
}

subtest "another tenant's rows" => sub {
	my $before = state_of();

	for my $collection (qw(people boxes tags specimens))
	{
		my $id = $foreign{$collection}{id};
		my @document = (type => $collection, attributes => {});

		for my $method (qw(GET HEAD))
		{
			alike("$method $collection", 404, $ours, [ $id, $method => "/$collection/$id" ],
				[ $nobody, $method => "/$collection/$nobody" ]);
		}
		alike("GET $collection, unchanged?", 404, $ours,
			[ $id, GET => "/$collection/$id?fields[$collection]=", headers => { 'If-None-Match' => '*' } ],
			[ $nobody, GET => "/$collection/$nobody?fields[$collection]=", headers => { 'If-None-Match' => '*' } ]);
		for my $match ('*', '"0"', '"7"')
		{
			my @headers = (headers => { 'If-Match' => $match });

			alike("PATCH $collection, If-Match $match", 404, $ours,
				[ $id, PATCH => "/$collection/$id", @headers, data => { @document, id => $id } ],
				[ $nobody, PATCH => "/$collection/$nobody", @headers, data => { @document, id => $nobody } ]);
			alike("DELETE $collection, If-Match $match", 404, $ours, [ $id, DELETE => "/$collection/$id", @headers ],
				[ $nobody, DELETE => "/$collection/$nobody", @headers ]);
		}
	}
	alike('PATCH without If-Match', 428, $ours,
		[ $foreign{boxes}{id}, PATCH => "/boxes/$foreign{boxes}{id}", data => $foreign{boxes} ],
		[ $nobody, PATCH => "/boxes/$nobody", data => absent('boxes') ]);
	for my $path (qw(relationships/owner relationships/tags relationships/content owner tags content slips))
	{
		alike("GET $path", 404, $ours, [ $foreign{boxes}{id}, GET => "/boxes/$foreign{boxes}{id}/$path" ],
			[ $nobody, GET => "/boxes/$nobody/$path" ]);
	}
	for my $method (qw(POST PATCH DELETE))
	{
		alike("$method of members", 404, $ours,
			[ $foreign{boxes}{id}, $method => "/boxes/$foreign{boxes}{id}/relationships/tags", @any, data => [ $mine{tags} ] ],
			[ $nobody, $method => "/boxes/$nobody/relationships/tags", @any, data => [ $mine{tags} ] ]);
	}
	is($ours->good(200, GET => "/$_")->{json}{meta}{pagination}{totalRecords}, 1, "$_: own ones only")
	  for qw(people boxes tags specimens);
	is(state_of(), $before, 'nothing was written');
};

subtest 'references to them' => sub {
	my $before = state_of();
	my ($box, $person) = ("/boxes/$mine{boxes}{id}", "/people/$mine{people}{id}");
	my %link = (owner => 'people', keeper => 'people', vault => 'vaults', content => 'books');

	for my $name (sort keys %link)
	{
		my ($target, $control) = ($foreign{ $link{$name} }, absent($link{$name}));
		my @create = map {
			my %to = (owner => { data => $mine{people} }, $name => { data => $_ });
			[ $_->{id}, POST => '/boxes', data => { type => 'boxes', attributes => { label => 'x' }, relationships => \%to } ]
		} $target, $control;
		my @update = map { [ $_->{id}, PATCH => $box, @any, data => { %{ $mine{boxes} }, relationships => { $name => { data => $_ } } } ] }
		  $target, $control;
		my @replace = map { [ $_->{id}, PATCH => "$box/relationships/$name", @any, data => $_ ] } $target, $control;

		alike("create with $name", 404, $ours, @create);
		alike("update of $name", 404, $ours, @update);
		alike("replacement of $name", 404, $ours, @replace);
	}
	for my $path ("$box/relationships/tags", "$box/relationships/slips", "$person/relationships/boxes", "$person/relationships/team")
	{
		my $member = { tags => 'tags', slips => 'slips', boxes => 'boxes', team => 'people' }->{ $path =~ s{.*/}{}r };
		my $target = $foreign{$member} // absent($member);

		for my $method (qw(POST PATCH))
		{
			alike("$method $path", 404, $ours, [ $target->{id}, $method => $path, @any, data => [$target] ],
				[ $nobody, $method => $path, @any, data => [ absent($member) ] ]);
		}
		is($ours->call(DELETE => $path, @any, data => [ $target ])->{status}, 204, "DELETE $path: no member, and none the wiser")
		  if $member eq 'slips';
	}
	my $after = state_of() =~ s/^box[^_].*//mr;
	is($after, $before =~ s/^box[^_].*//mr, 'nothing was written but a version');

	for my $sql ("update app.box set owner_id = '$foreign{people}{id}' where id = '$mine{boxes}{id}'",
		"update app.box set content_book_id = '$foreign{books}{id}' where id = '$mine{boxes}{id}'",
		"insert into app.box_tags values ('$here->{id}', '$mine{boxes}{id}', '$foreign{tags}{id}')")
	{
		like($cluster->try_psql($sql)->{err}, qr/violates foreign key constraint/, 'nor can plain SQL do it');
	}
};

subtest 'a tenant named by the caller' => sub {
	for my $name (qw(tenantId tenant))
	{
		$ours->refused("attribute $name on creation", 400, 'UNKNOWN_FIELD', [ pointer => "/data/attributes/$name" ],
			POST => '/people', data => { type => 'people', attributes => { name => 'x', $name => $there->{id} } });
		$ours->refused("attribute $name of one's own", 400, 'UNKNOWN_FIELD', undef, PATCH => "/people/$mine{people}{id}",
			data => { %{ $mine{people} }, attributes => { $name => $there->{id} } });
		$ours->refused("relationship $name", 400, 'UNKNOWN_FIELD', undef, POST => '/people',
			data => { type => 'people', attributes => { name => 'x' },
				relationships => { $name => { data => { type => 'tenants', id => $there->{id} } } } });
		$ours->refused("parameter $name", 400, 'UNKNOWN_PARAMETER', undef, GET => "/people?$name=$there->{id}");
		$ours->refused("filter by $name", 400, 'INVALID_FILTER', undef, GET => "/people?filter=$name==$there->{id}");
	}
	$ours->refused('header', 403, 'FORBIDDEN', undef, GET => '/people', headers => { 'X-Tenant-Id' => $there->{id} });
	$ours->refused('header of nobody', 403, 'FORBIDDEN', undef, GET => '/people', headers => { 'X-Tenant-Id' => $nobody });
	$ours->good(200, GET => '/people', headers => { 'X-Tenant-Id' => $here->{id} });

	my $before = count_of(person => $there);
	my $data = $ours->good(201, POST => '/people', headers => { 'Tenant-Id' => $there->{id} },
		data => { type => 'people', attributes => { name => 'Meta' }, meta => { tenantId => $there->{id} } })->{json}{data};
	is(count_of(person => $there), $before, 'meta is ignored');
	$ours->good(204, DELETE => "/people/$data->{id}");

	$root->refused('SuperAdmin without a tenant', 400, 'TENANT_REQUIRED', undef, GET => '/people');
	for my $tenant ($here, $there)
	{
		is_deeply([ map { $_->{id} } @{ $root->good(200, GET => '/people', headers => { 'X-Tenant-Id' => $tenant->{id} })->{json}{data} } ],
			[ $tenant == $here ? $mine{people}{id} : $foreign{people}{id} ], "SuperAdmin in $tenant->{slug}");
	}
	$root->refused('SuperAdmin, across', 404, 'RELATED_NOT_FOUND', undef, PATCH => "/people/$mine{people}{id}",
		headers => { 'X-Tenant-Id' => $here->{id} },
		data => { %{ $mine{people} }, relationships => { boss => { data => $foreign{people} } } });
};

subtest 'what the roles hide' => sub {
	my $specimen = "/specimens/$mine{specimens}{id}";
	my %hidden = ('/specimens' => [ 'secret', 'nothing' ], '/boxes' => [ 'vault.place', 'nothin.place' ]);

	for my $collection (sort keys %hidden)
	{
		my ($secret, $unknown) = @{ $hidden{$collection} };
		my ($word, $control) = map { (split /\./)[0] } $secret, $unknown;

		for my $operator ('==a', '=like=a%25', '=gt=a', '!=a', '=in=(a,b)', '=isnull=true')
		{
			alike("filter $secret$operator", 400, $reader, [ $word, GET => "$collection?filter=$secret$operator" ],
				[ $control, GET => "$collection?filter=$unknown$operator" ]);
		}
		alike("sort by $secret", 400, $reader, [ $secret, GET => "$collection?sort=-$secret" ],
			[ $unknown, GET => "$collection?sort=-$unknown" ])
		  if $secret !~ /\./;
		$reader->refused("sort by $secret", 400, 'INVALID_SORT', undef, GET => "$collection?sort=$secret");
	}
	alike('fields', 400, $reader, [ secret => GET => "$specimen?fields[specimens]=name,secret" ],
		[ nothing => GET => "$specimen?fields[specimens]=name,nothing" ]);
	ok(!exists $reader->good(200, GET => $specimen)->{json}{data}{attributes}{secret}, 'not shown');
	is($ours->good(200, GET => $specimen)->{json}{data}{attributes}{secret}, 'apple', 'but to those who may');

	my $box = "/boxes/$mine{boxes}{id}";
	my $answer = $reader->good(200, GET => $box);
	ok(!exists $answer->{json}{data}{relationships}{vault}, 'no linkage to what may not be read');
	unlike($answer->{body}, qr/$mine{vaults}{id}/, 'nor its id');
	$reader->refused('include', 403, 'FORBIDDEN', undef, GET => "$box?include=vault");
	$reader->refused('include beyond', 403, 'FORBIDDEN', undef, GET => "/people?include=boxes.vault");
	$reader->refused('linkage', 404, 'NOT_FOUND', undef, GET => "$box/relationships/vault");
	$reader->refused('related', 404, 'NOT_FOUND', undef, GET => "$box/vault");
	$reader->refused('write', 403, 'FORBIDDEN', undef, PATCH => "$box/relationships/vault", @any, data => undef);
	alike('a write to what cannot be seen', 400, $helper,
		[ secret => PATCH => $specimen, data => { %{ $mine{specimens} }, attributes => { secret => 'x' } } ],
		[ nothing => PATCH => $specimen, data => { %{ $mine{specimens} }, attributes => { nothing => 'x' } } ]);
};

# What may not be written on one side may not be written on the other.
subtest 'the other side' => sub {
	my @rooms = map { made($ours, rooms => { name => $_ }) } qw(one two);
	my $desk = made($ours, desks => { name => 'desk' }, room => $rooms[0], first => $rooms[0]);
	my $room = "/rooms/$rooms[1]{id}";

	for my $method (qw(POST PATCH DELETE))
	{
		$helper->refused("$method by a role that may not", 403, 'FORBIDDEN', undef, $method => "$room/relationships/desks", data => [$desk]);
		$ours->refused("$method of what is written once", 400, 'READ_ONLY', undef, $method => "$room/relationships/fixed", data => [$desk]);
	}
	$helper->refused('update', 403, 'FORBIDDEN', undef, PATCH => $room,
		data => { %{ $rooms[1] }, relationships => { desks => { data => [$desk] } } });
	$helper->refused('creation', 403, 'FORBIDDEN', undef, POST => '/rooms',
		data => { type => 'rooms', relationships => { desks => { data => [$desk] } } });
	$ours->refused('creation with what is written once', 400, 'READ_ONLY', undef, POST => '/rooms',
		data => { type => 'rooms', relationships => { fixed => { data => [$desk] } } });
	for my $name (qw(room first))
	{
		is_deeply($ours->good(200, GET => "/desks/$desk->{id}/relationships/$name")->{json}{data}, $rooms[0], "$name is as it was");
	}
	$ours->good(204, POST => "$room/relationships/desks", data => [$desk]);
	is_deeply($ours->good(200, GET => "/desks/$desk->{id}/relationships/room")->{json}{data}, $rooms[1], 'others may');
};

subtest 'filters that would widen' => sub {
	my @own = ($mine{people}{id});

	for my $case (
		[ "id==$foreign{people}{id}" ],
		[ "id==$foreign{people}{id},id==$nobody" ],
		[ "id=in=($foreign{people}{id},$mine{people}{id})", @own ],
		[ "id!=$nobody", @own ],
		[ "id=out=($nobody)", @own ],
		[ 'name==Ann', @own ],
		[ 'name==Ann,name!=Ann', @own ],
		[ "boxes.id==$foreign{boxes}{id}" ],
		[ 'boxes.tags.word==one', @own ],
		[ 'boxes.content.title==A*book' ],
		[ 'boxes.owner.name==Ann', @own ])
	{
		my ($filter, @expected) = @$case;
		my $json = $ours->good(200, GET => "/people?filter=$filter")->{json};

		is_deeply([ map { $_->{id} } @{ $json->{data} } ], \@expected, $filter);
		is($json->{meta}{pagination}{totalRecords}, scalar @expected, "$filter: total");
	}
	for my $name (qw(tenantId tenantid version deleted_at created_at ctid xmin tableoid oid boss_id owner_id name_ NAME t0 t0.id
		people.name attributes.name), 'a"b', 'a--', "a->>'x'", 'a::text', 'a/**/b', 'name[0]', '$1', "na\x{200b}me", "\x{ff4e}ame", '*')
	{
		my $encoded = join '', map { sprintf '%%%02X', $_ } unpack 'C*', do { utf8::encode(my $copy = $name); $copy };

		$ours->refused("filter by $name", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/people?filter=$encoded==1");
		$ours->refused("sort by $name", 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => "/people?sort=$encoded");
		$ours->refused("fields $name", 400, 'INVALID_FIELDS', undef, GET => "/people?fields[people]=$encoded");
		$ours->refused("include $name", 400, 'INVALID_INCLUDE', [ parameter => 'include' ], GET => "/people?include=$encoded");
	}
};

subtest 'injection' => sub {
	my $before = state_of();

	for my $text ("x' OR '1'='1", 'x"; DROP TABLE app.person; --', "x'; select pg_sleep(9); --", '$1', "\\'; --", "x\\", "'", '"', "''",
		"E'\\047'", '%', "\x{2019} or 1=1", "\x{ff07}", "x\x{0}1" =~ s/\x{0}/\x{1}/r, 'x) or (1==1', '{"a":1}', '${1}', '<script>', "\x{202e}")
	{
		my $quoted = $text =~ s/(["\\])/\\$1/gr;
		my $encoded = join '', map { sprintf '%%%02X', $_ } unpack 'C*', do { utf8::encode(my $copy = $quoted); $copy };
		my $answer = $ours->call(GET => "/people?filter=name==%22$encoded%22");

		is($answer->{status}, 200, "as a value: $text");
		is($answer->{json}{meta}{pagination}{totalRecords}, 0, "means itself: $text");
		my $made = $ours->call(POST => '/tags', data => { type => 'tags', attributes => { word => $text } });
		is($made->{status}, 201, "stored: $text") or next;
		is($made->{json}{data}{attributes}{word}, $text, "comes back: $text");
		is($ours->good(200, GET => "/tags?filter=word==%22$encoded%22")->{json}{meta}{pagination}{totalRecords}, 1, "is found: $text");
		$ours->good(204, DELETE => "/tags/$made->{json}{data}{id}");
	}
	for my $filter ("name==1' OR '1'='1", 'name=="x\\";drop--', 'name=in=(1);select', 'name==1;DROP TABLE', "name==\x{2019}a or 1=1")
	{
		my $encoded = join '', map { sprintf '%%%02X', $_ } unpack 'C*', do { utf8::encode(my $copy = $filter); $copy };

		$ours->refused("as a filter: $filter", 400, 'INVALID_FILTER', undef, GET => "/people?filter=$encoded");
	}
	is(state_of(), $before, 'nothing has changed');
};

subtest 'parameters' => sub {
	for my $name ('filters[name]', 'filter[name]', 'filter[$ne]', 'where', 'q', 'page', 'page[offset]', 'page[size][]', 'page[SIZE]', 'Filter',
		'fields', 'fields[]', 'fields[people', 'include[]', 'sort[]', '_method', 'callback', 'filter%00', 'page[size]x', '[page]')
	{
		$ours->refused("unknown: $name", 400, undef, undef, GET => "/people?$name=1");
	}
	$ours->refused("repeated: $_", 400, 'INVALID_PARAMETER', undef, GET => "/people?$_&$_")
	  for 'filter=name==a', 'sort=name', 'page[size]=1', 'page[number]=1', 'include=boss', 'fields[people]=name', 'page%5Bsize%5D=1&page[size]=2';
	$ours->refused("page[size]=$_", 400, 'INVALID_PAGE', undef, GET => "/people?page[size]=$_")
	  for qw(101 1000000 0 -1 1e3 0x10 1.0 2147483648 9223372036854775808 99999999999999999999 %201 1%20 ' true null);
	$ours->refused("page[number]=$_", 400, 'INVALID_PAGE', undef, GET => "/people?page[number]=$_")
	  for qw(0 -1 1e3 9223372036854775808 9223372036854775807 99999999999999999999999);
	is_deeply($ours->good(200, GET => '/people?page[number]=90071992547409')->{json}{data}, [], 'far beyond the end');
};

subtest 'values of another type' => sub {
	my %wrong = (
		count => [qw(abc 1.0 1e3 1e999 2147483648 0x1 true %2B1 null), '""', '" 1"', "\x{661}"],
		big => [qw(9223372036854775808 1.5 -)],
		amount => [qw(NaN Infinity -infinity 1e99999 1..2 .5 1. 0x1 1_000), "1,5x"],
		flag => [qw(1 0 yes t TRUE on null)],
		day => [qw(infinity now today epoch 2026-02-29 2026-13-01 0000-01-01 26-01-01 2026-1-1 20260101 2026-01-01T00:00:00Z)],
		moment => [qw(infinity now 2026-01-01T24:00:00Z 2026-01-01T00:00:60Z 2026-01-01T00:00:00 2026-01-01T00:00:00.1234567890123Z 2026-01-01T00:00:00%2B24:00 allballs)],
		token => [qw(x 1 01980000-0000-7000-8000 {01980000-0000-7000-8000-000000000000} 01980000000070008000000000000000)],
		colour => [qw(red REDD PINK null)],
		id => [qw(x 1 -1 null urn:uuid:01980000-0000-7000-8000-000000000000)]);

	for my $name (sort keys %wrong)
	{
		for my $value (@{ $wrong{$name} })
		{
			my $encoded = $value;

			utf8::encode($encoded);
			$encoded =~ s/([^\x21-\x7e]|["{}])/sprintf '%%%02X', ord $1/ge;
			$ours->refused("$name==$value", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/specimens?filter=$name==$encoded");
		}
	}
	$ours->refused("extra$_", 400, 'INVALID_FILTER', undef, GET => "/specimens?filter=extra$_") for '==1', '=gt=1', '=like=a', '=in=(1)';
	$ours->refused("flag$_", 400, 'INVALID_FILTER', undef, GET => "/specimens?filter=flag$_") for '=gt=true', '=like=t';
	$ours->refused('enum like', 400, 'INVALID_FILTER', undef, GET => '/specimens?filter=colour=like=R%25');
	$ours->refused('json sort', 400, 'INVALID_SORT', undef, GET => '/specimens?sort=extra');

	my %like = ('50\\\\\\%25 of%25' => 1, '%25a\\\\_b%25' => 1, '%25c' => 1, '50%25' => 1, '%25A\\\\_B%25' => 0, '%25\\\\\\\\c' => 1, '_' => 0);
	is($ours->good(200, GET => "/specimens?filter=essay=like='$_'" =~ s/ /%20/r)->{json}{meta}{pagination}{totalRecords}, $like{$_}, "like $_")
	  for sort keys %like;
	$ours->refused("trailing backslash on $_", 400, 'INVALID_FILTER', undef, GET => "/$_=like='a%5C%5C'") for 'specimens?filter=essay', 'toys?filter=title';
	$ours->refused('long pattern', 400, 'INVALID_FILTER', undef, GET => '/specimens?filter=essay=like=' . '%25_' x 200);
};

# What must be refused without being worked through
subtest 'excess' => sub {
	my %target = (
		'parentheses' => '/specimens?filter=' . '(' x 3000 . 'count==1' . ')' x 3000,
		'terms' => '/specimens?filter=' . join(',', ('count==1') x 400),
		'list items' => '/specimens?filter=count=in=(' . join(',', (1) x 1500) . ')',
		'length' => '/specimens?filter=name==' . 'x' x 5000,
		'address' => '/specimens?filter=name==' . 'x' x 9000,
		'hops' => '/people?filter=' . 'boss.' x 7 . 'name==a',
		'hops to sort by' => '/people?sort=' . 'boss.' x 7 . 'name',
		'crossings' => '/people?filter=' . join(',', ('boss.boss.boss.boss.boss.name==a') x 60),
		'include' => '/people?include=boss.boss.boss.boss.boss.boss',
		'sort keys' => '/specimens?sort=' . join(',', map { "name$_" } 1 .. 500));
	my %body = (
		'depth' => '{"data":' . '[' x 50_000 . ']' x 50_000 . '}',
		'depth of objects' => '{"data":' . '{"a":' x 10_000 . '1' . '}' x 10_000 . '}',
		'keys' => '{"data":{"type":"specimens","attributes":{' . join(',', map { "\"k$_\":1" } 1 .. 70_000) . '}}}',
		'equal keys' => '{"data":{"type":"specimens","type":"specimens","attributes":{"name":"x"}}}',
		'big number' => '{"data":{"type":"specimens","attributes":{"name":"x","amount":1e131071}}}',
		'bigger number' => '{"data":{"type":"specimens","attributes":{"name":"x","amount":1e200000}}}',
		'number in json' => '{"data":{"type":"specimens","attributes":{"name":"x","extra":[1e200000]}}}',
		'digits' => '{"data":{"type":"specimens","attributes":{"name":"x","amount":' . '9' x 500_000 . '}}}',
		'identifiers' => '{"data":{"type":"boxes","attributes":{"label":"x"},"relationships":{"tags":{"data":['
		  . join(',', ("{\"type\":\"tags\",\"id\":\"$nobody\"}") x 15_000) . ']}}}}',
		'byte-order mark' => "\xEF\xBB\xBF" . '{"data":{"type":"specimens","attributes":{"name":"x"}}}',
		'trailing text' => '{"data":{"type":"specimens","attributes":{"name":"x"}}}x',
		'NaN' => '{"data":{"type":"specimens","attributes":{"name":"x","amount":NaN}}}',
		'only spaces' => ' ' x 500_000);

	for my $name (sort keys %target)
	{
		my $start = $cluster->processor;
		my $answer = $ours->call(GET => $target{$name});

		like($answer->{status}, qr/^4(?:00|14)$/, "$name: status");
		cmp_ok($cluster->processor - $start, '<', 1, "$name: with little work");
	}
	for my $name (sort keys %body)
	{
		my $start = $cluster->processor;
		my $answer = $ours->call(POST => $name eq 'identifiers' ? '/boxes' : '/specimens', body => $body{$name});

		like($answer->{status}, $name eq 'identifiers' ? qr/^40[04]$/ : qr/^400$/, "$name: status") or diag substr $answer->{body}, 0, 500;
		cmp_ok($cluster->processor - $start, '<', 3, "$name: with little work");
	}
	is($ours->call(POST => '/specimens', body => '"' . 'x' x 3_000_000 . '"')->{status}, 413, 'size');
	my @operations = map { { op => 'add', data => { type => 'books', attributes => { title => "b$_" } } } } 1 .. 1001;
	is($ours->call(POST => '/operations', headers => { 'Content-Type' => $atomic },
			json => { 'atomic:operations' => \@operations })->{status}, 400, 'operations');
	is($ours->good(200, GET => '/books')->{json}{meta}{pagination}{totalRecords}, 1, 'none was carried out');
};

subtest 'characters that are none' => sub {
	my %bad = ('\\u0000' => '\\u0000', 'high surrogate' => '\\ud800', 'low surrogate' => '\\udc00x', 'two high ones' => '\\ud800\\ud800',
		'NUL' => "\0", 'c3 28' => "\xc3\x28", 'overlong' => "\xc0\xaf", 'ff' => "\xff", 'beyond' => "\xf4\x90\x80\x80",
		'surrogate in UTF-8' => "\xed\xa0\x80", 'cut off' => "\xe2\x82", 'newline' => "\n");

	for my $name (sort keys %bad)
	{
		for my $body (qq({"data":{"type":"people","attributes":{"name":"a$bad{$name}"}}}),
			qq({"data":{"type":"people","attributes":{"name":"a","b$bad{$name}":1}}}))
		{
			$ours->refused("$name in a body", 400, 'MALFORMED_JSON', undef, POST => '/people', body => $body);
		}
		$ours->refused("$name in a login", 400, undef, undef, POST => '/auth/login', plain => 1,
			headers => { 'Content-Type' => 'application/json' }, body => qq({"username":"u$bad{$name}","password":"p$bad{$name}"}));
	}
	for my $bytes (qw(%00 %C3%28 %C0%AF %FF %ED%A0%80 %F4%90%80%80 %E2%82 %zz % %4))
	{
		$ours->refused("$bytes in a path", 400, undef, undef, GET => "/people$bytes");
		$ours->refused("$bytes in an id", 400, undef, undef, GET => "/people/$mine{people}{id}$bytes");
		$ours->refused("$bytes in a value", 400, undef, undef, GET => "/people?filter=name==a$bytes");
		$ours->refused("$bytes in a name", 400, undef, undef, GET => "/people?filter$bytes=name==a");
	}
};

subtest 'atomic operations' => sub {
	my $list = '/atomic:operations';
	my @where = (POST => '/operations', headers => { 'Content-Type' => $atomic });
	my $before = state_of();
	my $add = { op => 'add', data => { type => 'books', attributes => { title => 'never' } } };
	my $run = sub {
		my ($name, $who, $status, $pointer, @operations) = @_;

		my $answer = $who->call(@where, json => { 'atomic:operations' => \@operations });
		my ($error) = @{ $answer->{json}{errors} };

		is($answer->{status}, $status, "$name: status") or diag $answer->{body};
		like($error->{source}{pointer}, qr/^\Q$pointer\E/, "$name: where");
		is(state_of(), $before, "$name: nothing was written");
	};

	$run->('no authority', $helper, 403, "$list/1", { op => 'add', data => { type => 'specimens', attributes => { name => 'never' } } }, $add);
	for my $target ($foreign{people}, absent('people'))
	{
		my $name = $target->{id} eq $nobody ? 'nobody' : 'a stranger';

		$run->("update of $name", $ours, 404, "$list/1", $add, { op => 'update', data => { %$target, attributes => { name => 'x' } } });
		$run->("removal of $name", $ours, 404, "$list/1", $add, { op => 'remove', ref => $target });
		$run->("members of $name", $ours, 404, "$list/1", $add,
			{ op => 'add', ref => { %$target, relationship => 'team' }, data => [ $mine{people} ] });
		$run->("reference to $name", $ours, 404, "$list/1", $add,
			{ op => 'update', data => { %{ $mine{people} }, relationships => { boss => { data => $target } } } });
		$run->("link to $name", $ours, 404, "$list/1", $add,
			{ op => 'update', href => "/people/$target->{id}", data => { %$target, attributes => { name => 'x' } } });
	}
	$run->('stale version', $ours, 412, "$list/1", $add, { op => 'update', data => { %{ $mine{boxes} }, meta => { version => 99 } } });
	$run->('read-only', $ours, 400, "$list/1/data/attributes/stamp", $add,
		{ op => 'update', data => { %{ $mine{specimens} }, attributes => { stamp => 'x' } } });
	$run->("another's attribute", $helper, 403, "$list/0/data/attributes/rated",
		{ op => 'update', data => { %{ $mine{specimens} }, attributes => { rated => 5 } } });
	$run->('unknown attribute', $helper, 400, "$list/0/data/attributes/secret",
		{ op => 'update', data => { %{ $mine{specimens} }, attributes => { secret => 'x' } } });
	$run->('type of a one-of', $ours, 400, "$list/1", $add,
		{ op => 'update', ref => { %{ $mine{boxes} }, relationship => 'content' }, data => $mine{people} });

	$run->('another local id', $ours, 400, "$list/1", $add,
		{ op => 'update', ref => { type => 'people', lid => 'b' }, data => { type => 'people', lid => 'a' } });

	# local ids where strings must be
	for my $lid (undef, JSON::PP::true, 1, [], {}, [ 'a' ], '')
	{
		my $shown = JSON::PP->new->allow_nonref->encode($lid);
		my %data = (type => 'people', lid => $shown eq '""' ? '' : 'a', attributes => { name => 'x' });

		$run->("lid $shown in ref", $ours, 400, "$list/1", $add, { op => 'update', ref => { type => 'people', lid => $lid }, data => \%data });
		$run->("lid $shown in ref of a removal", $ours, 400, "$list/1", $add, { op => 'remove', ref => { type => 'people', lid => $lid } });
		$run->("lid $shown in ref of a relationship", $ours, 400, "$list/1", $add,
			{ op => 'update', ref => { type => 'people', lid => $lid, relationship => 'boss' }, data => undef });
		$run->("lid $shown in data", $ours, 400, "$list/1", $add, { op => 'add', data => { %data, lid => $lid } });
		$run->("lid $shown in linkage", $ours, 400, "$list/1", $add,
			{ op => 'add', data => { %data, relationships => { boss => { data => { type => 'people', lid => $lid } } } } });
	}
};

subtest 'one-of, ids and unique values' => sub {
	my $before = state_of();
	my $box = "/boxes/$mine{boxes}{id}";

	for my $target ($mine{people}, $foreign{people}, absent('people'), { type => 'nothing', id => $nobody })
	{
		$ours->refused("content: $target->{type}", 400, 'TYPE_NOT_ALLOWED', undef, PATCH => $box, @any,
			data => { %{ $mine{boxes} }, relationships => { content => { data => $target } } });
		$ours->refused("content: $target->{type}, by itself", 400, 'TYPE_NOT_ALLOWED', undef, PATCH => "$box/relationships/content", @any,
			data => $target);
	}
	alike('id of somebody else', 403, $ours,
		[ $foreign{people}{id}, POST => '/people', data => { %{ $foreign{people} }, attributes => { name => 'x' } } ],
		[ $nobody, POST => '/people', data => { %{ absent('people') }, attributes => { name => 'x' } } ]);
	my $answer = $ours->refused('taken', 409, 'UNIQUE_VIOLATION', undef, POST => '/specimens',
		data => { type => 'specimens', attributes => { name => 'x', code => 'taken' } });
	unlike($answer->{json}{errors}[0]{detail}, qr/specimen|_key|"taken"/, 'taken: not by what');
	is(state_of(), $before, 'nothing was written');

	my $tag = $theirs->good(201, POST => '/tags', data => { type => 'tags', attributes => { word => 'only there' } })->{json}{data};
	my $own = $ours->good(201, POST => '/tags', data => { type => 'tags', attributes => { word => 'only there' } })->{json}{data};
	isnt($own->{id}, $tag->{id}, 'unique within a tenant only');
	$ours->good(204, DELETE => "/tags/$own->{id}");
};

subtest 'versions' => sub {
	my $box = "/boxes/$mine{boxes}{id}";
	my $version = $ours->good(200, GET => $box)->{headers}{etag} =~ tr/"//dr;
	my $write = sub { return (PATCH => $box, headers => { 'If-Match' => $_[0] }, data => { %{ $mine{boxes} }, attributes => { label => 'x' } }) };

	$ours->refused("If-Match $_->[0]", $_->[1], undef, undef, $write->($_->[0]))
	  for [ '"' . ($version + 1) . '"', 412 ], [ "W/\"$version\"", 412 ], [ "\"0$version\"", 412 ], [ '"99999999999999999999"', 412 ],
	  [ $version, 400 ], [ '""', 400 ], [ '"x"', 400 ], [ "\"-1\"", 400 ], [ "\"$version", 400 ], [ "* , \"$version\"", 400 ], [ ';', 400 ],
	  [ "\"$version\"\"$version\"", 400 ];
	is($ours->good(200, GET => $box)->{headers}{etag}, "\"$version\"", 'never written');
	$ours->good(200, $write->("\"99\", \"$version\""));
	is($ours->good(200, GET => $box)->{headers}{etag}, '"' . ($version + 1) . '"', 'a list that has it');
};

# No normal path lies behind a strange one.
subtest 'paths' => sub {
	my @strange = ('/api/v1/people%00', '/api/v1/people%2F' . $mine{people}{id}, '/api/v1/tags/..%2Fpeople', '/api/v1/%2e%2e/v1/people',
		'/api/v1/tags/../people', '/api/v1/./people', '/api/v1/tags/%2e%2e/people', '/api/v1/tags\\..\\people', '/api/v1/%5Cpeople', '//api/v1/people', '/api//v1/people',
		'/api/v1/people;a=b', '/api/v1/people/', '/api/v1/people%20', '/api/v1/people%3Ffilter', '/API/v1/people', '/api/v1/people.json', '/api/v1/people%252F');

	for my $path (@strange)
	{
		my $answer = $shim->raw("GET $path HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer $user{Editor}{accessToken}\r\nConnection: close\r\n\r\n");

		like($answer, qr{^HTTP/1\.[01] 40[04] }, $path);
	}
	for my $target ("http://127.0.0.1/api/v1/people", '*', '/api/v1/people#x', 'api/v1/people', '')
	{
		my $answer = $shim->raw("GET $target HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer $user{Editor}{accessToken}\r\nConnection: close\r\n\r\n", timeout => 2);

		like($answer, qr{^(?:HTTP/1\.[01] 4\d\d |\z)}, "target \"$target\"");
		unlike($answer, qr/Ann/, "target \"$target\": no data");
	}
};

subtest 'passwords and names' => sub {
	my $stem = 'Zq7' x 24;
	my @login = (POST => '/auth/login', plain => 1);

	$root->good(201, POST => "/manage/tenants/$here->{id}/users",
		json => { username => "J\x{f6}rg", roles => [], temporaryPassword => "$stem-first-tail" });
	is($root->call(@login, json => { username => "J\x{f6}rg", password => "$stem$_" })->{status}, $_ eq '-first-tail' ? 200 : 401, "tail \"$_\"")
	  for '-other-tail', '', '-first-tai', '-first-tail';
	is($root->call(@login, json => { username => $_, password => "$stem-first-tail" })->{status}, 200, "the same account: $_")
	  for "j\x{f6}RG", "  J\x{f6}rg ", "Jo\x{308}rg", "\x{a0}J\x{d6}RG";
	is($root->call(@login, json => { username => $_, password => "$stem-first-tail" })->{status}, 401, "another: $_")
	  for 'Jorg', "J\x{f6}rg.", "\x{ff2a}\x{f6}rg", 'x' x 10_000;
	is($root->call(POST => "/manage/tenants/$here->{id}/users", json => { username => $_, roles => [], temporaryPassword => "$stem-x" })->{status},
		409, "taken: $_")
	  for "JO\x{308}RG", " j\x{f6}rg";
	is($root->call(POST => "/manage/tenants/$here->{id}/users", json => { username => $_, roles => [] })->{status}, 400, 'no name')
	  for '', '   ', "a\tb", "a\r\nb", "a\x{200b}b", "a\x{202e}b", 'x' x 10_000, "\x{1b}[31m";
};

subtest 'logs' => sub {
	my $fake = "x\r\n{\"status\":200,\"fake\":\"canary-one\"}\x{1b}[2J";

	$root->call(POST => '/auth/login', plain => 1, json => { username => $fake, password => $fake },
		headers => { 'User-Agent' => 'canary-two', 'X-Request-Id' => 'canary three' });
	$ours->call(GET => '/people?filter=name==canary-four');
	$ours->call(GET => "/people/$nobody%22%7D");
	my $log = EntityApi::Test::slurp($shim->log);
	my @broken = grep { !eval { JSON::PP::decode_json($_) } } split /\n/, $log;

	is_deeply(\@broken, [], 'each line of the access log is one JSON object');
	unlike($log . EntityApi::Test::slurp($cluster->log), qr/canary/, 'nothing that was sent is in any log');
};

# -------- the database itself --------

sub as_shim
{
	return $cluster->try_psql($_[0], user => 'entityapi_shim');
}

sub handled
{
	my ($before) = @_;

	return as_shim(($before // '') . "\nselect status, body from entityapi.handle('GET', '/api/v1/specimens/$mine{specimens}{id}',"
		  . " '{\"authorization\":\"Bearer $user{Editor}{accessToken}\"}', null, '127.0.0.1');");
}

subtest "with the shim's role" => sub {
	my $normal = handled()->{out};

	like($normal, qr/^200\|/, 'what it may do');
	$cluster->psql('create function public.loud() returns text language sql as $$ select 1::text $$');
	for my $sql ('select * from entityapi.account', 'select * from entityapi.tenant', 'select * from entityapi.signing_key',
		'select * from entityapi.session', 'select * from entityapi.entity', 'select * from app.person', 'select * from app.box_tags',
		'insert into app.person select * from app.person', 'delete from entityapi.account', 'set role entityapi_owner', 'set role postgres',
		'set session authorization postgres', 'set role entityapi_reader',
		'set session_replication_role = replica', "select entityapi.create_superadmin('evil', 'plainly-for-a-test-9')",
		"select entityapi.apply_manifest('[]')", 'select entityapi.rotate_signing_key()', "select entityapi.parse_rsql('a==1')",
		"copy app.person to '/tmp/x'", "copy (select 1) to program 'true'", "select pg_read_file('/etc/passwd')", 'create table entityapi.x (a int)',
		'create table app.x (a int)', 'create schema evil', 'alter function entityapi.handle(text, text, jsonb, bytea, inet) owner to entityapi_shim',
		'drop function entityapi.handle(text, text, jsonb, bytea, inet)', 'create extension dblink', 'alter role entityapi_shim superuser',
		'grant entityapi_owner to entityapi_shim', "create or replace function entityapi.handle() returns int language sql as 'select 1'")
	{
		isnt(as_shim($sql)->{status}, 0, $sql);
	}

	for my $setting ("set row_security = off", "set search_path = pg_temp, public", "set standard_conforming_strings = off", "set bytea_output = 'escape'",
		"set DateStyle = 'SQL, DMY'", "set TimeZone = 'Asia/Kathmandu'", 'set extra_float_digits = -15', "set IntervalStyle = 'sql_standard'",
		"set xmloption = content", "set backslash_quote = off", "set array_nulls = off", "set transform_null_equals = on",
		'set enable_seqscan = off', 'set plan_cache_mode = force_generic_plan', 'set work_mem = 64',
		'set default_tablespace = pg_default', 'set lc_messages = C', 'set check_function_bodies = off', 'set quote_all_identifiers = on')
	{
		my $result = handled("$setting;");

		next if $result->{err} =~ /permission denied to set parameter/;

		is($result->{out}, $normal, "unmoved by \"$setting\"") or diag $result->{err};
	}

	# before the library is loaded anybody can set what has its prefix
	for my $setting ("entityapi.max_page_size = '100000'", "entityapi.max_body = '1'", "entityapi.clock = '2000-01-01'", "entityapi.base_url = 'http://evil'")
	{
		my $result = handled("set $setting;");

		is($result->{out}, $normal, "no setting of theirs: $setting");
		isnt(as_shim("select entityapi.handle('GET', '/', null, null, null); set $setting")->{status}, 0, "nor later: $setting");
	}

	$cluster->psql('grant create on schema public to entityapi_shim');
	my $shadow = handled(<<~'SQL');
		create function public.evil(text, text) returns boolean language plpgsql as $$ begin raise exception 'evil ran'; end $$;
		create function public.evil(uuid, uuid) returns boolean language plpgsql as $$ begin raise exception 'evil ran'; end $$;
		create operator public.= (function = public.evil, leftarg = text, rightarg = text);
		create operator public.= (function = public.evil, leftarg = uuid, rightarg = uuid);
		create function public.now() returns timestamptz language plpgsql as $$ begin raise exception 'evil ran'; end $$;
		create function public.count(bigint) returns bigint language plpgsql as $$ begin raise exception 'evil ran'; end $$;
		create temp table account (id uuid);
		create temp table specimen (id uuid);
		create temp table pg_class (id uuid);
		create domain pg_temp.text as int;
		set search_path = public, pg_temp, pg_catalog;
		SQL
	is($shadow->{out}, $normal, 'nor by functions, operators, tables and types of other schemas') or diag $shadow->{err};
	$cluster->psql('revoke create on schema public from entityapi_shim; drop owned by entityapi_shim cascade; grant entityapi_client to entityapi_shim');
};

subtest 'arguments of handle()' => sub {
	my $bearer = qq("authorization":"Bearer $user{Editor}{accessToken}");

	for my $arguments ("'', '', '{}', null, null", "'GET', '', null, null, null", "'GET', '/', '[]', null, null", "'GET', '/api/v1/people', '1', null, null",
		"'get', '/api/v1/people', '{$bearer}', null, null", "'GET', '/api/v1/people', '{\"authorization\":{}}', null, null",
		"'GET', '/api/v1/people', '{\"authorization\":[]}', null, null", "'GET', '/api/v1/people', '{\"authorization\":[1,2]}', null, null",
		"'GET', '/api/v1/people', '{\"authorization\":[\"Bearer a\",\"Bearer b\"]}', null, null",
		"'POST', '/api/v1/people', '{$bearer,\"content-type\":[\"a\",\"b\"]}', '\\x00', null",
		"'POST', '/api/v1/people', '{$bearer,\"content-type\":\"$type\"}', '\\xff00', '::1'",
		"'GET', repeat('/', 100000), '{}', null, null", "repeat('X', 100000), '/', '{}', null, null",
		"'GET', '/api/v1/people', '{\"authorization\":\"" . 'Bearer ' x 100_000 . "\"}', null, null",
		"'POST', '/api/v1/people', '{$bearer,\"content-type\":\"$type\"}', '" . '[' x 1_000_000 . "', null")
	{
		my $result = as_shim("select status from entityapi.handle($arguments);");

		like($result->{out}, qr/^4\d\d$/, substr $arguments, 0, 60) or diag $result->{err};
	}
	like(as_shim("select entityapi.handle(null, null, null, null, null)")->{err}, qr/must not be null/, 'nulls');
	is($cluster->psql('select count(h.status) from generate_series(1, 50) n, lateral entityapi.handle(\'GET\', \'/auth/me?\' || n, \'{}\', null, null) h'),
		50, 'many in one statement, by a superuser');
};

my $log = EntityApi::Test::slurp($cluster->log);
unlike($log, qr/terminated by signal|PANIC|TRAP:/, 'no backend has ended');
is_deeply([ $log =~ /(entityapi request .* failed: .*)/g ], [], 'no request failed inside');

done_testing;
