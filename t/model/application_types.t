# The types of columns that tables of an application have besides those of made
# tables: as the table stores them, and back.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical->allow_nonref;
my ($true, $false) = (JSON::PP::true, JSON::PP::false);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my %documents;

sub declared
{
	my ($kind, $name, $spec) = @_;

	$documents{$name} = $spec;
	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

$cluster->psql(<<'SQL');
create role shop_app login;
create schema shop authorization shop_app;
set role shop_app;
create table shop.thing (id uuid primary key default gen_random_uuid(), name varchar(100) not null,
	at timestamp, here timestamp, short timestamp(0), zoned timestamptz(3), small smallint, real real, wide double precision, open numeric, exact numeric(12,2),
	kept timestamp not null default now(), state text not null default 'new', rank smallint not null default 7);
create index on shop.thing (at, id);
reset role;
SQL

my @all = qw(create read update delete history);
my %fields = (name => { type => 'string', maxLength => 100, required => $true },
	at => { type => 'datetime', zone => 'UTC' }, here => { type => 'localDatetime' }, short => { type => 'localDatetime' }, zoned => { type => 'datetime' },
	small => { type => 'integer' }, real => { type => 'float' }, wide => { type => 'float' }, open => { type => 'decimal' }, exact => { type => 'decimal' },
	kept => { type => 'datetime', zone => 'UTC', required => $true }, state => { type => 'text', required => $true }, rank => { type => 'integer', required => $true });
my %service = (tenancy => 'SINGLE', existing => { role => 'shop_app', searchPath => ['shop'], settings => { TimeZone => 'UTC' } });

declared(Service => service => \%service);
declared(Roles => roles => { roles => { Reader => {}, Editor => {} } });
declared(Entity => Thing => { table => 'shop.thing', fields => \%fields, permissions => { Reader => ['read'], Editor => \@all } });

# Faults of manifests; the last word is that of the right ones.
subtest 'faults' => sub {
	my $refused = sub { my ($name, $pattern, $kind, $document, $spec) = @_;
		my $was = $documents{$document};
		declared($kind => $document => $spec);
		my $applied = $cluster->try_apply($folder);
		isnt($applied->{status}, 0, $name);
		like($applied->{err}, $pattern, "$name: says why");
		delete $documents{$document};
		$was ? declared($kind => $document => $was) : unlink "$folder/$document.json" };
	my $field = sub { my ($field, $type) = @_;
		return (Entity => Thing => { %{ $documents{Thing} }, fields => { %fields, $field => $type } }) };

	$refused->('another zone', qr/zone: the setting TimeZone is Asia\/Tokyo/, Service => service => { %service, existing => { %{ $service{existing} }, settings => { TimeZone => 'Asia/Tokyo' } } });
	$refused->('no zone', qr/"at" is timestamp without time zone and must be timestamp with time zone/, $field->(at => { type => 'datetime' }));
	$refused->('a zone too many', qr/"zoned" is timestamp\(3\) with time zone and must be timestamp without time zone/, $field->(zoned => { type => 'datetime', zone => 'UTC' }));
	$refused->('another zone than UTC', qr/zone: must be one of UTC/, $field->(at => { type => 'datetime', zone => 'CET' }));
	$refused->('a zone of a date', qr/zone: goes with datetime, not with date/, $field->(at => { type => 'date', zone => 'UTC' }));
	$refused->('a float for an integer', qr/"small" is smallint and must be double precision/, $field->(small => { type => 'float' }));
	$refused->('digits of a column without', qr/"open" is numeric and must be numeric\(9,2\)/, $field->(open => { type => 'decimal', precision => 9, scale => 2 }));
	$refused->("$_ of a made table", qr/type: "$_" goes with a table of an application/, Entity => Made => { fields => { x => { type => $_ } } }) for qw(float localDatetime);
	$refused->('a zone of a made table', qr/zone: goes with a table of an application/, Entity => Made => { fields => { x => { type => 'datetime', zone => 'UTC' } } });
	$refused->('no role', qr/"localDatetime" goes with a table of an application \(name its role in the Service: existing:/, Service => service => { tenancy => 'SINGLE' });
	$refused->('a limit beyond the type', qr/minimum: is out of range/, $field->(small => { type => 'integer', minimum => 40000 }));
};

my $schema = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -x -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $schema->();
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($schema->(), $before, 'the schema is as it was');

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');

sub attack
{
	my ($name, $code) = @_;

	subtest $name => sub { eval { $code->(); 1 } or fail("ended early: $@") };
	return;
}
sub made { return $ann->good(201, POST => '/things', data => { type => 'things', attributes => { name => 'x', @_ } })->{json}{data} }
sub change { my ($id, %attributes) = @_; return $ann->good(200, PATCH => "/things/$id", data => { type => 'things', id => $id, attributes => \%attributes })->{json}{data} }
sub stored { my ($expression, $id) = @_; return $cluster->psql("select $expression from shop.thing where id = '$id'") }
sub names { return join ' ', map { $_->{attributes}{name} } @{ $_[0]{json}{data} } }
sub raw { my ($answer, $field) = @_; return $answer->{body} =~ /"$field":("[^"]*"|[^,}]+)/ ? $1 : undef }

# name, field, JSON that is sent, SQL of it as text, JSON that is shown (as sent)
my @values = (
	[ 'a time in UTC', at => '"2026-03-29T01:30:00.123456Z"', '2026-03-29 01:30:00.123456' ],
	[ 'with an offset', at => '"2026-03-29T02:30:00+02:00"', '2026-03-29 00:30:00', '"2026-03-29T00:30:00Z"' ],
	[ 'infinity', at => '"infinity"', 'infinity' ],
	[ '44 BC', at => '"-0043-03-15T12:00:00Z"', '0044-03-15 12:00:00 BC' ],
	[ 'a local time', here => '"2026-03-29T02:30:00"', '2026-03-29 02:30:00' ],
	[ 'its end', here => '"-infinity"', '-infinity' ],
	[ 'the year 0', here => '"0000-01-01T00:00:00"', '0001-01-01 00:00:00 BC' ],
	[ 'a time that rounds', short => '"2026-01-01T00:00:00.7"', '2026-01-01 00:00:01', '"2026-01-01T00:00:01"' ],
	[ 'one with a zone', zoned => '"2026-01-01T00:00:00.9996Z"', '2026-01-01 00:00:01+00', '"2026-01-01T00:00:01Z"' ],
	[ 'a small number', small => '-32768', '-32768' ],
	[ 'a float', wide => '0.1', '0.1' ],
	[ 'a large float', wide => '1.7976931348623157e308', '1.7976931348623157e+308', '1.7976931348623157e+308' ],
	[ 'a tiny one', wide => '5e-324', '5e-324' ],
	[ 'minus zero', wide => '-0', '-0' ],
	[ 'no number', wide => '"NaN"', 'NaN' ],
	[ 'an infinite one', wide => '"-infinity"', '-Infinity' ],
	[ 'a short float', real => '0.1', '0.1' ],
	[ 'more digits than it has', real => '16777217', '1.6777216e+07', '1.6777216e+07' ],
	[ 'no short number', real => '"NaN"', 'NaN' ],
	[ 'a number of many digits', open => '12345678901234567890.12345678901234567890', '12345678901234567890.12345678901234567890' ],
	[ 'zeros at its end', open => '1.500', '1.500' ],
	[ 'an infinite number', open => '"infinity"', 'Infinity' ],
	[ 'no open number', open => '"NaN"', 'NaN' ],
	[ 'the digits of the column', exact => '1234567890.50', '1234567890.50' ],
);

for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	attack "values, direct ways $way" => sub {
		my $thing = made();
		is($thing->{attributes}{state}, 'new', 'a default of the table');
		is($thing->{attributes}{rank}, 7, 'of a small number');
		like($thing->{attributes}{kept}, qr/^20\d\d-.*Z$/, 'and of a time');
		for my $value (@values)
		{
			my ($name, $field, $json, $text, $shown) = @$value;
			my $body = qq({"data":{"type":"things","id":"$thing->{id}","attributes":{"$field":$json}}});
			$shown //= $json;

			$cluster->psql("update shop.thing set $field = null where id = '$thing->{id}'");
			my $answer = $ann->call(PATCH => "/things/$thing->{id}", body => $body);
			is($answer->{status}, 200, "$name: written") or diag $answer->{body};
			is(raw($answer, $field), $shown, "$name: answered");
			is(stored("$field\::text", $thing->{id}), $text, "$name: stored");
			$answer = $ann->call(GET => "/things/$thing->{id}");
			is(raw($answer, $field), $shown, "$name: read");
			my $literal = $shown =~ s/"//gr =~ s/\+/%2B/gr;
			is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field==$literal")), $text eq 'NaN' ? 'x' : 'x', "$name: found");
			is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field=in=($literal)")), 'x', "$name: found among some");
			is(names($ann->good(200, GET => "/things?filter=id==$thing->{id};$field!=$literal")), '', "$name: and not otherwise");
			my $back = $ann->call(PATCH => "/things/$thing->{id}", body => qq({"data":{"type":"things","id":"$thing->{id}","attributes":{"$field":$shown}}}));
			is($back->{status}, 200, "$name: written back");
			is(stored("$field\::text", $thing->{id}), $text, "$name: as it was");
			my $record = $cluster->psql("select changes->'$field'->>1 from entityapi.audit where target_id = '$thing->{id}' and action = 'ENTITY_UPDATE' and changes->'$field' is not null order by at desc, id desc limit 1");
			is($record, $shown =~ s/^"|"$//gr, "$name: recorded");
		}
		my $history = $ann->good(200, GET => "/things/$thing->{id}/history?page[size]=100");
		cmp_ok(scalar @{ $history->{json}{data} }, '>=', 2, 'a history');
		is($ann->good(200, GET => "/things?filter=id==$thing->{id}&page[totals]=true")->{json}{meta}{pagination}{totalRecords}, 1, 'counted');
		$ann->good(204, DELETE => "/things/$thing->{id}");
	};
}

attack 'refusals' => sub {
	my $thing = made();
	for my $case ([ here => '2026-01-01T00:00:00Z' ], [ here => '2026-01-01T00:00:00+01:00' ], [ at => '2026-01-01T00:00:00' ], [ small => 32768 ], [ small => 1.5 ], [ small => '5' ], [ wide => '1.5' ],
		[ wide => 'Infinity' ], [ real => 1e39 ], [ exact => 1.005 ], [ rank => undef ], [ open => 'x' ], [ kept => undef ])
	{
		my ($field, $value) = @$case;

		$ann->refused("$field of " . ($value // 'null'), 400, defined $value ? 'INVALID_VALUE' : 'REQUIRED', [ pointer => "/data/attributes/$field" ],
			PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { $field => $value } });
	}
	$ann->refused("filter $_", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/things?filter=$_")
	  for 'small==40000', 'here==2026-01-01T00:00:00Z', 'at==2026-01-01T00:00:00', 'wide==x', 'wide=like=1', 'real==1e39';
};

attack 'order, cursors, batches' => sub {
	$cluster->psql(q{truncate shop.thing; insert into shop.thing (name, at, here, wide, real, small, open) select i, case when i % 7 > 0 then timestamp '2026-01-01' + i * interval '7.000001 hours' end,
		timestamp '2026-06-01' - i * interval '1 day', case i when 3 then 'NaN' when 4 then 'infinity' when 5 then '-infinity' when 6 then -0.0 else sqrt(i) end, 1.0 / i, i % 5, i / 3.0 from generate_series(1, 20) i});
	for my $sort (qw(at here wide real small open -at -here -wide -real -small -open), 'kept,-wide')
	{
		my ($field, @rest) = split /,/, $sort;
		my $order = join ', ', map { s/^-// ? "$_ desc" : $_ } map { my $x = $_; $x } $field, @rest;
		my $wanted = $cluster->psql("select string_agg(name, ' ' order by $order, id) from shop.thing");
		my ($next, @seen) = ("/api/v1/things?sort=$sort&page[after]=start&page[size]=3");
		while ($next && @seen < 30)
		{
			my $page = $ann->call(GET => $next);
			is($page->{status}, 200, 'a page') or diag($page->{body}), last;
			push @seen, map { $_->{attributes}{name} } @{ $page->{json}{data} };
			$next = $page->{json}{links}{next};
		}
		is("@seen", $wanted, "by cursors: $sort");
	}
	is(names($ann->good(200, GET => '/things?filter=at=gt=2026-01-01T08:00:00Z;at=lt=2026-01-02T00:00:00Z&sort=at')), $cluster->psql(q{select string_agg(name, ' ' order by at) from shop.thing where at > '2026-01-01 08:00' and at < '2026-01-02'}), 'a range of times');
	is(names($ann->good(200, GET => '/things?filter=at=ge=2026-01-01T08:00:00%2B02:00;at=lt=2026-01-02&sort=at')), $cluster->psql(q{select string_agg(name, ' ' order by at) from shop.thing where at >= '2026-01-01 06:00' and at < '2026-01-02'}), 'with an offset, and a day');
	is(names($ann->good(200, GET => '/things?filter=wide=gt=4.2&sort=wide')), $cluster->psql(q{select string_agg(name, ' ' order by wide) from shop.thing where wide > 4.2}), 'numbers, NaN among them');

	my $batch = $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => [
		map { +{ op => 'add', data => { type => 'things', attributes => { name => "b$_", at => "2030-01-0${_}T00:00:00Z", wide => $_ / 10, real => $_ / 10, small => $_, open => $_, $_ == 2 ? (state => 'given', rank => 1) : () } } } } 1 .. 4 ] }));
	is($batch->{status}, 200, 'several rows') or diag $batch->{body};
	is(join(' ', map { "$_->{data}{attributes}{name}$_->{data}{attributes}{state}$_->{data}{attributes}{rank}" } @{ $batch->{json}{'atomic:results'} }), 'b1new7 b2given1 b3new7 b4new7', 'each with its defaults, in order');
	is($cluster->psql(q{select string_agg(concat_ws('/', name, at, wide, real, small, open, state, rank), ' ' order by name) from shop.thing where name like 'b%'}), join(' ', map { my $n = $_; "b$n/2030-01-0$n 00:00:00/0.$n/0.$n/$n/$n/" . ($n == 2 ? 'given/1' : 'new/7') } 1 .. 4), 'as they are stored');
	is($cluster->psql(q{select changes->'state'->>1 || (changes->'rank'->>1) from entityapi.audit where target_id = (select id::text from shop.thing where name = 'b1')}), 'new7', 'defaults are recorded') or diag $cluster->psql('select target_id, changes from entityapi.audit order by id desc limit 4');
};

attack 'policies' => sub {
	$cluster->psql(q{truncate shop.thing; insert into shop.thing (name, at, here, wide, real, small, open) values ('old', '2000-01-01', '2000-01-01', 0.1, 0.1, 1, 0.1), ('new', now() at time zone 'UTC' + interval '1 hour', '2100-01-01', 0.3, 0.3, 3, 0.3)});
	for my $case ([ "#record.at > #now", 'new' ], [ "#record.at == '2000-01-01T00:00:00Z'", 'old' ], [ "#record.here > '2050-01-01T00:00:00'", 'new' ], [ '#record.real == 0.1', 'old' ], [ '#record.real in {0.1, 7}', 'old' ], [ '#record.wide == 0.1', 'old' ],
		[ '#record.small in {3, 4}', 'new' ], [ '#record.open < 0.2', 'old' ], [ '#record.at < #record.zoned', '' ], [ '#record.at < #record.kept', 'old' ], [ "#record.at in {'2000-01-01T00:00:00Z', #now}", 'old' ])
	{
		my ($expression, $seen) = @$case;

		declared(Policy => Shown => { expression => $expression });
		declared(Entity => Thing => { %{ $documents{Thing} }, policies => { Shown => ['read'] } });
		$cluster->apply($folder);
		is(names($ann->good(200, GET => '/things?sort=name')), $seen, $expression);
	}
	for my $case ([ "#input.at > '2020-01-01T00:00:00Z'", at => '2021-01-01T00:00:00Z', '2001-01-01T00:00:00Z' ], [ "#input.here > '2020-01-01T00:00:00'", here => '2021-01-01T00:00:00', '2001-01-01T00:00:00' ],
		[ '#input.real == 0.1', real => 0.1, 0.2 ], [ '#input.wide < 0.15', wide => 0.1, 'NaN' ], [ '#input.small == 3', small => 3, 4 ])
	{
		my ($expression, $field, $good, $bad) = @$case;

		declared(Policy => Shown => { expression => $expression });
		declared(Entity => Thing => { %{ $documents{Thing} }, policies => { Shown => ['create'] } });
		$cluster->apply($folder);
		is($ann->call(POST => '/things', data => { type => 'things', attributes => { name => 'p', $field => $good } })->{status}, 201, "$expression holds");
		is($ann->call(POST => '/things', data => { type => 'things', attributes => { name => 'p', $field => $bad } })->{status}, 403, "$expression does not");
	}
	delete $documents{Thing}{policies};
	declared(Entity => Thing => $documents{Thing});
	unlink "$folder/Shown.json";
	$cluster->apply($folder);
};

attack 'the description' => sub {
	my $schemas = $shim->http(GET => '/api/v1/openapi.json', { token => $shim->user($tenant, 'ann2', ['Editor'])->{accessToken} })->{json}{components}{schemas};
	my $thing = $schemas->{ThingCreateDocument} // {};
	my ($attributes) = grep { $_->{properties}{attributes} } map { $_->{properties}{data} // () } $thing;
	$attributes = $attributes->{properties}{attributes};
	is_deeply([ sort @{ $attributes->{required} } ], ['name'], 'what has a default of the table need not be given') or diag explain $thing;
	is_deeply($attributes->{properties}{wide}{type}, [qw(number string null)], 'numbers, and words for others');
	is($attributes->{properties}{at}{anyOf}[0]{format}, 'date-time', 'a time');
	ok(!exists $attributes->{properties}{here}{format} && $attributes->{properties}{here}{pattern}, 'one without a zone has another form');
};

# The application goes on changing its tables
attack 'columns that change' => sub {
	my $thing = made(small => 5, at => '2026-01-01T00:00:00Z');
	$cluster->psql('set role shop_app; alter table shop.thing alter small type integer');
	is($ann->call(GET => "/things/$thing->{id}")->{status}, 500, 'another type');
	like($cluster->psql("select string_agg(message, '; ') from entityapi.list_differences()"), qr/small/, 'is told as a difference');
	$cluster->apply($folder);
	is($ann->good(200, GET => "/things/$thing->{id}")->{json}{data}{attributes}{small}, 5, 'applied again, it is served');
	is($ann->call(PATCH => "/things/$thing->{id}", data => { type => 'things', id => $thing->{id}, attributes => { small => 70000 } })->{status}, 200, 'as what it is');
	$cluster->psql('set role shop_app; alter table shop.thing alter at type timestamp(0)');
	is($ann->call(GET => "/things/$thing->{id}")->{status}, 500, 'one that has come to round');
	$cluster->apply($folder);
	is(change($thing->{id}, at => '2026-01-01T00:00:00.6Z')->{attributes}{at}, '2026-01-01T00:00:01Z', 'applied again, it rounds');
	is($cluster->psql('select count(*) from entityapi.list_differences()'), 0, 'no difference is left');
};

$shim->stop;
done_testing;
