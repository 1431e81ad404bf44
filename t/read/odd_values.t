# Values that only plain SQL can store (infinity, NaN, years that the API does
# not take): they are shown as strings, never as null, and what was read can be
# written back, which changes nothing.  Tables of others take them of the API,
# too; made tables only where they are stored.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $existing = $cluster->nodes == 1;
my $manifests = EntityApi::Test::folder() . '/odd.json';
my $seed = $ENV{ENTITYAPI_TEST_SEED} // time;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);

srand $seed;
note("ENTITYAPI_TEST_SEED=$seed");

my %fields = (
	s => { type => 'string', maxLength => 40 }, t => { type => 'text' }, i => { type => 'integer' }, l => { type => 'long' },
	n => { type => 'decimal', precision => 14, scale => 3 }, b => { type => 'boolean' }, d => { type => 'date' },
	at => { type => 'datetime' }, u => { type => 'uuid' }, j => { type => 'json' },
	hidden => { type => 'date', readRoles => ['Boss'], writeRoles => ['Editor'] });
my %kinds = (Made => 'mades', $existing ? (Other => 'others') : ());
my %table = (Made => 'app.made', Other => 'shop.other');

$cluster->psql(<<'SQL') if $existing;
create schema shop authorization entityapi_owner;
set role entityapi_owner;
create table shop.other (tenant_id uuid not null, id uuid not null default gen_random_uuid(), s varchar(40), t text, i int, l bigint, n numeric(14,3), b boolean,
	d date, at timestamptz, u uuid, j jsonb, hidden date, primary key (tenant_id, id));
reset role;
grant usage on schema shop to entityapi_reader;
SQL

sub declare
{
	my (%service) = @_;

	open my $out, '>', $manifests or die "$manifests: $!\n";
	print $out JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => \%service },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => undef, Boss => undef } } },
		{ kind => 'Policy', metadata => { name => 'Compares' }, spec => { expression => "#record.d < '2026-01-01' or #record.n > 3 or #record.at < '2026-01-01T00:00:00Z' or #record.n == #record.i" } },
		{ kind => 'Entity', metadata => { name => 'Ruled' }, spec => { plural => 'ruleds', policies => { Compares => [qw(read update)] },
			fields => { map { $_ => $fields{$_} } qw(d at n i) }, permissions => { Editor => [qw(create read update delete history)] } } },
		map { { kind => 'Entity', metadata => { name => $_ }, spec => { ($table{$_} =~ /^shop/ ? (table => $table{$_}) : ()), plural => $kinds{$_}, fields => \%fields,
			permissions => { Editor => [qw(create read update delete history)], Boss => ['read'] } } } } sort keys %kinds ]);
	close $out or die "$manifests: $!\n";
	$cluster->apply($manifests);
	return;
}

declare();
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $ed = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ed', ['Editor']), '/api/v1');

# A row by plain SQL; columns and their SQL
sub stored
{
	my ($kind, %values) = @_;
	my @names = sort keys %values;

	return $cluster->psql("insert into $table{$kind} (" . join(', ', 'tenant_id', 'id', ($kind eq 'Made' ? qw(created_at updated_at) : ()), @names)
		. ") values ('$tenant', gen_random_uuid(), " . join(', ', ($kind eq 'Made' ? qw(now() now()) : ()), @values{@names}) . ') returning id');
}

sub row { my ($kind, $id) = @_; return $cluster->psql("select md5(r::text) from (select s, t, i, l, n, b, d, at, u, j, hidden from $table{$kind} where id = '$id') r") }

sub patch
{
	my ($kind, $id, $attributes) = @_;

	return (PATCH => "/$kinds{$kind}/$id", body => qq({"data":{"type":"$kinds{$kind}","id":"$id","attributes":$attributes}}));
}

# The attributes of an answer, to the byte
sub attributes
{
	my ($answer) = @_;
	my $body = $answer->{body};

	utf8::decode($body);
	return $body =~ /"attributes":(\{.*?\}),"(?:relationships|links|meta)"/s ? $1 : die "no attributes: $body\n";
}

my @odd = (
	[ d => q{'infinity'}, '"infinity"' ], [ d => q{'-infinity'}, '"-infinity"' ], [ d => q{'0044-03-15 BC'}, '"-0043-03-15"' ],
	[ d => q{'0001-12-31 BC'}, '"0000-12-31"' ], [ d => q{'4713-01-01 BC'}, '"-4712-01-01"' ], [ d => q{'5874897-12-31'}, '"5874897-12-31"' ],
	[ d => q{'10000-01-01'}, '"10000-01-01"' ], [ d => q{'0005-02-29 BC'}, '"-0004-02-29"' ],
	[ at => q{'infinity'}, '"infinity"' ], [ at => q{'-infinity'}, '"-infinity"' ], [ at => q{'0044-03-15 12:00:00+00 BC'}, '"-0043-03-15T12:00:00Z"' ],
	[ at => q{'0001-01-01 00:00:00.5+00 BC'}, '"0000-01-01T00:00:00.5Z"' ], [ at => q{'4714-11-24 00:00:00+00 BC'}, '"-4713-11-24T00:00:00Z"' ],
	[ at => q{'294276-12-31 23:59:59.999999+00'}, '"294276-12-31T23:59:59.999999Z"' ],
	[ n => q{'NaN'}, '"NaN"' ]);

for my $kind (sort keys %kinds)
{
	for my $odd (@odd)
	{
		my ($member, $sql, $shown) = @$odd;

		subtest "$kind: $member = $sql" => sub {
			my $id = stored($kind, $member => $sql);
			my $before = row($kind, $id);
			my $read = $ed->good(200, GET => "/$kinds{$kind}/$id");

			like($read->{body}, qr/"$member":\Q$shown\E[,}]/, 'is shown');
			like($ed->good(200, GET => "/$kinds{$kind}?page[after]=start&sort=$member,-id&page[size]=100")->{body}, qr/"$member":\Q$shown\E[,}]/, 'in lists');
			my $written = $ed->good(200, patch($kind, $id, attributes($read)));
			is(attributes($written), attributes($read), 'and written back');
			is(row($kind, $id), $before, 'as it was');
			is_deeply($ed->good(200, GET => "/$kinds{$kind}/$id/history")->{json}{data}[0]{attributes}{changes}, {}, 'which is no change');
			$ed->good(200, POST => '/operations', headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"', Accept => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
				body => qq({"atomic:operations":[{"op":"update","data":{"type":"$kinds{$kind}","id":"$id","attributes":{"$member":$shown}}}]}));
			is(row($kind, $id), $before, 'nor in an atomic operation');
			$ed->good(200, patch($kind, $id, qq({"$member":null})));
			is($cluster->psql("select $member is null from $table{$kind} where id = '$id'"), 't', 'null is another value');
			like($ed->good(200, GET => "/$kinds{$kind}/$id/history")->{body}, qr/"changes":\{"$member":\{"from":\Q$shown\E,"to":null\}\}/, 'and a change');

			# what is not stored any more
			if ($kind eq 'Made')
			{
				$ed->refused('not there', 400, 'INVALID_VALUE', [ pointer => "/data/attributes/$member" ], patch($kind, $id, qq({"$member":$shown})));
				$ed->refused('nor in a new one', 400, 'INVALID_VALUE', [ pointer => "/data/attributes/$member" ], POST => "/$kinds{$kind}",
					body => qq({"data":{"type":"$kinds{$kind}","attributes":{"$member":$shown}}}));
			}
			else
			{
				$ed->good(200, patch($kind, $id, qq({"$member":$shown})));
				is(row($kind, $id), $before, 'others\' tables take it');
				my $made = $ed->good(201, POST => "/$kinds{$kind}", body => qq({"data":{"type":"$kinds{$kind}","attributes":{"$member":$shown}}}));
				like($made->{body}, qr/"$member":\Q$shown\E[,}]/, 'in a new one as well');
				is($cluster->psql("select $member = $sql from $table{$kind} where id = '$made->{json}{data}{id}'"), 't', 'as meant');
			}
			my $filter = "/$kinds{$kind}?filter=$member=='" . ($shown =~ tr/"//dr) . "'";
			if ($kind eq 'Made')
			{
				$ed->refused('in filters', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => $filter);
			}
			else
			{
				my $again = stored($kind, $member => $sql);
				my @found = map { $_->{id} } @{ $ed->good(200, GET => "$filter&page[size]=100")->{json}{data} };
				ok(scalar(grep { $_ eq $again } @found), 'in filters');
			}
		};
	}
	my $id = stored($kind, hidden => q{'infinity'}, d => q{'infinity'});
	my $hidden = $ed->call(patch($kind, $id, '{"hidden":"infinity"}'));
	is($hidden->{status}, $kind eq 'Made' ? 400 : 200, "$kind: what is stored is not told to who may not read it");
	$ed->refused("$kind: another of its kind", 400, 'INVALID_VALUE', [ pointer => '/data/attributes/d' ], patch($kind, $id, '{"d":"5874897-12-31"}')) if $kind eq 'Made';
	$ed->refused("$kind: $_", 400, 'INVALID_VALUE', undef, patch($kind, $id, qq({$_}))) for
	  map({ qq("d":"$_") } qw(Infinity inf +infinity -0000-01-01 00000-01-01 012345-01-01 -0043-02-30 -4713-01-01 5874898-01-01 99999999-01-01 -043-03-15 nan)),
	  map({ qq("at":"$_") } qw(12345-01-01 -0043-03-15 294277-01-01T00:00:00Z -4713-11-23T00:00:00Z -0043-03-15T12:00:00 5874897-12-31T00:00:00Z)),
	  map({ qq("n":"$_") } qw(nan Infinity infinity -infinity +NaN)), '"j":1e2000';
	$ed->refused("$kind: and no row, no such thing", 404, 'NOT_FOUND', undef, patch($kind, '01980000-0000-7000-8000-0000000000ff', '{"d":"infinity"}'));
}

# -------- policies compare them as PostgreSQL does --------

for my $values ([ q{'-infinity'}, q{'infinity'}, '1', 200 ], [ q{'infinity'}, q{'infinity'}, q{'NaN'}, 200 ], [ q{'infinity'}, q{'0044-03-15 12:00:00+00 BC'}, '1', 200 ],
	[ q{'infinity'}, q{'infinity'}, '1', 404 ], [ q{'0044-03-15 BC'}, q{'infinity'}, '1', 200 ])
{
	my ($d, $at, $n, $status) = @$values;
	my $id = $cluster->psql("insert into app.ruled (tenant_id, id, created_at, updated_at, d, at, n, i) values ('$tenant', gen_random_uuid(), now(), now(), $d, $at, $n, 7) returning id");
	my $read = $ed->call(GET => "/ruleds/$id");

	is($read->{status}, $status, "a policy over $d, $at, $n");
	is($ed->call(PATCH => "/ruleds/$id", body => qq({"data":{"type":"ruleds","id":"$id","attributes":) . ($status == 200 ? attributes($read) : '{"i":8}') . '}}')->{status}, $status, 'for changes, too');
}

# -------- what the description says of them --------

if ($existing)
{
	my $schemas = $shim->must(200, GET => '/api/v1/openapi.json', { token => $ed->{token} })->{components}{schemas};
	my %of = map { $_ => $schemas->{ (grep { /^other.*attributes$/i } keys %$schemas)[0] }{properties}{$_} } qw(n d at);

	like("NaN", qr/$of{n}{pattern}/, 'NaN is described');
	ok(scalar(grep { $_ eq 'number' } @{ $of{n}{type} }), 'numbers are');
	like("-0043-03-15", qr/$of{d}{anyOf}[1]{pattern}/, 'a date');
	like("-infinity", qr/$of{at}{anyOf}[1]{pattern}/, 'a time');
}

# -------- a cursor goes over them, and what is asked in order --------

for my $kind (sort keys %kinds)
{
	my ($after, @seen) = ('start');
	my $wanted = $cluster->psql("select count(*) from $table{$kind}");

	while (defined $after && @seen <= $wanted)
	{
		my $page = $ed->good(200, GET => "/$kinds{$kind}?sort=d,-at,n&page[size]=3&page[after]=$after")->{json};

		push @seen, map { $_->{id} } @{ $page->{data} };
		$after = @{ $page->{data} } ? $page->{meta}{pagination}{after} : undef;
	}
	my %once = map { $_ => 1 } @seen;
	is(scalar(keys %once), $wanted, "$kind: pages hold each row");
	is(scalar @seen, $wanted, "$kind: once");
}

# -------- any value of any type, there and back --------

sub one { return $_[ rand @_ ] }

sub text
{
	my $text = join '', map { one('a', 'Z', '"', '\\', "\n", "\t", chr 1, chr 127, "\x{2028}", 'ü', '€', "\x{1f600}", ' ', '<', '%') } 1 .. rand 40;

	return '$x$' . $text . '$x$';
}

sub day { return sprintf "'%04d-%02d-%02d%s'", one(1 + int rand 9999, 1 + int rand 4700), 1 + rand 12, 1 + rand 28, one('', ' BC') =~ s/ BC//r }

sub ancient { return sprintf "'%04d-%02d-%02d%s BC'", 1 + rand 4700, 1 + rand 12, 1 + rand 28, $_[0] // '' }

my %any = (
	s => sub { text() }, t => sub { one(text(), "repeat('ü', 3000)") },
	i => sub { one(-2147483648, 2147483647, 0, int(rand 1e9)) }, l => sub { one(-9223372036854775808, '9223372036854775807', '-9223372036854775808', 0, int rand 1e15) },
	n => sub { one("'NaN'", '-0.000', '99999999999.999', '-99999999999.999', '0.001', sprintf '%.3f', rand 1e6) },
	b => sub { one('true', 'false') },
	d => sub { one("'infinity'", "'-infinity'", "'5874897-12-31'", "'4714-11-24 BC'", ancient(), day()) },
	at => sub { one("'infinity'", "'-infinity'", "'294276-12-31 23:59:59.999999+00'", "'4714-11-24 00:00:00+00 BC'", ancient(' 11:12:13.000014+00'),
		sprintf "to_timestamp(%d) + interval '%d microseconds'", rand 4e9, rand 1e6) },
	u => sub { one('gen_random_uuid()', "'00000000-0000-0000-0000-000000000000'") },
	j => sub { one("'[]'", "'{}'", q{'{"a": [1, -0, 1e400, 1e-400, "\u20ac\u0001", {"": null}]}'}, q{'{"n": 1e5000}'}, q{'[1e-3000, -1e2000]'}, "to_jsonb(" . text() . "::text)", '\'"infinity"\'') });

$any{l} = sub { one("'-9223372036854775808'", "'9223372036854775807'", 0, int rand 1e15) };

for my $decimals ('number', 'string')
{
	declare(decimals => $decimals) if $decimals eq 'string';
	for my $kind (sort keys %kinds)
	{
		for my $n (1 .. 40)
		{
			my %values = map { $_ => $any{$_}->() } grep { rand() < 0.8 } keys %any;
			my $id = stored($kind, %values);
			my $before = row($kind, $id);
			my $read = $ed->call(GET => "/$kinds{$kind}/$id");
			my $told = join ', ', map { "$_ = $values{$_}" } sort keys %values;

			my $written = $ed->call(patch($kind, $id, attributes($read)));
			is($written->{status}, 200, "$kind $n is written back") or diag("$told\n$written->{body}");
			is(row($kind, $id), $before, 'and is what it was') or diag($told);
			is_deeply($ed->good(200, GET => "/$kinds{$kind}/$id/history")->{json}{data}[0]{attributes}{changes}, {}, 'without a change') or diag($told);
		}
	}
}

done_testing;
