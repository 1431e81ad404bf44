# Ids that no service would make: texts that have to be escaped, or that are
# routes, long ones, and those that a number or a date has but once.  Each is
# found by every address that the API gives of it, and by no other one.

use strict;
use warnings;
use utf8;

use Encode qw(decode_utf8 encode_utf8);
use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

# The text, and the id that it is in the API
my @texts = ([ '0' => '0' ], [ '-1' => '-1' ], [ '017' => '017' ], [ ' 1' => ' 1' ], [ 'a/b' => 'a~1b' ], [ 'a,b' => 'a~2b' ], [ 'a~b' => 'a~0b' ], [ '~' => '~0' ], [ '~0' => '~00' ], [ '~3' => '~03' ],
	[ '%' => '%' ], [ '%2F' => '%2F' ], [ 'at its end ' => 'at its end ' ], [ '' => '~3' ], [ '.' => '~3.' ], [ '..' => '~3..' ], [ '...' => '...' ], [ 'aggregates' => '~3aggregates' ],
	[ 'Aggregates' => 'Aggregates' ], [ 'history' => 'history' ], [ 'relationships' => 'relationships' ], [ 'a\\b' => 'a~4b' ], [ '\\' => '~4' ], [ '😀' => '😀' ], [ 'é' => 'é' ], [ "e\x{301}" => "e\x{301}" ],
	[ '"quoted"' => '"quoted"' ], [ "it's" => "it's" ], [ 'a?b#c&d=e+f' => 'a?b#c&d=e+f' ], [ "tab\there" => "tab\there" ], [ "line\nbreak" => "line\nbreak" ], [ '<b>' => '<b>' ], [ 'null' => 'null' ],
	[ '//' => '~1~1' ], [ '../..' => '..~1..' ], [ 'x' x 250 => 'x' x 250 ], [ 'y' x 500 => 'y' x 500 ], [ 'ö' x 100 => 'ö' x 100 ]);
my @numbers = qw(0 -1 2147483648 9223372036854775807 -9223372036854775808 7);

$cluster->psql(<<'SQL');
create role shop_owner;
create role shop_web login;
create schema shop authorization shop_owner;
grant usage on schema shop to shop_web;
set role shop_owner;
create table shop.word (word text primary key, note text);
create table shop.part (id bigserial primary key, word text references shop.word on delete cascade deferrable, note text);
create table shop.number (number bigint primary key, note text);
create table shop.code (code char(3) primary key, note text);
grant select, insert, update, delete on all tables in schema shop to shop_web;
grant usage on all sequences in schema shop to shop_web;
reset role;
SQL

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}

my %given = (permissions => { Editor => [qw(create read update delete history)] });
declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Editor => {} } });
declared(Entity => Word => { %given, table => 'shop.word', key => 'word', fields => { note => { type => 'text' }, parts => { type => 'ref', target => 'Part', relation => 'OneToMany', mappedBy => 'word' } } });
declared(Entity => Part => { %given, table => 'shop.part', key => 'id', columns => { word => 'word' }, fields => { note => { type => 'text' }, word => { type => 'ref', target => 'Word', onDelete => 'cascade' } } });
declared(Entity => Number => { %given, table => 'shop.number', key => 'number', fields => { note => { type => 'text' } } });
declared(Entity => Code => { %given, table => 'shop.code', key => 'code', fields => { note => { type => 'text' } } });
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($cluster->psql('select id from entityapi.tenant'), 'ann', ['Editor']), '/api/v1');

sub literal { my ($text) = @_; $text =~ s/'/''/g; return "'$text'" }
sub encoded { my $bytes = encode_utf8($_[0]); $bytes =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ge; return $bytes }
sub quoted { my ($id) = @_; $id =~ s/([\\'])/\\$1/g; return encoded("'$id'") }
sub path { my ($link) = @_; $link =~ s{^https?://[^/]+}{}; return $link }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => encode_utf8($encoder->encode({ 'atomic:operations' => \@_ }))) }
sub named { my ($id) = @_; return length $id > 40 ? substr($id, 0, 20) . '... (' . length($id) . ')' : $encoder->allow_nonref->encode($id) }

$cluster->psql(encode_utf8('insert into shop.word values ' . join ', ', map { '(' . literal($_->[0]) . ', ' . literal("note of $_->[1]") . ')' } @texts));
$cluster->psql(encode_utf8('insert into shop.part (word, note) select word, word from shop.word'));
$cluster->psql('insert into shop.number values ' . join ', ', map { "($_, 'n$_')" } @numbers);
$cluster->psql(q{insert into shop.code values ('a', 'a'), ('ab', 'ab'), ('', 'none'), ('a/b', 'slash'), (' a', 'before')});

my %links = map { $_->{id} => $_->{links}{self} } @{ $ann->good(200, GET => '/words?page[size]=100')->{json}{data} };
is_deeply([ sort keys %links ], [ sort map { $_->[1] } @texts ], 'all are listed');

for my $case (@texts)
{
	my ($text, $id) = @$case;
	subtest named($id) => sub {
		my $link = path($links{$id} // die 'it is not listed');
		my $one = $ann->call(GET => $link);
		is($one->{status}, 200, 'its own link leads to it') or return;
		is($one->{json}{data}{id}, $id, 'with its id');
		is($one->{json}{data}{attributes}{note}, "note of $id", 'it is this row');
		is($link, '/api/v1/words/' . join('', map { m{[,:()]} ? $_ : encoded($_) } split //, $id), 'the link is the id, encoded');
		is($ann->call(GET => '/words/' . encoded($id))->{json}{data}{id}, $id, 'encoded in another way, too');
		is_deeply([ map { $_->{id} } @{ $ann->good(200, GET => '/words?filter=id==' . quoted($id))->{json}{data} } ], [$id], 'by a filter');
		is_deeply([ map { $_->{id} } @{ $ann->good(200, GET => '/words?filter=id=in=(' . quoted($id) . ')')->{json}{data} } ], [$id], 'of several');
		is_deeply([ map { $_->{relationships}{word}{data} } @{ $ann->good(200, GET => '/parts?filter=word.id==' . quoted($id))->{json}{data} } ], [ { type => 'words', id => $id } ], 'by what refers to it');
		is(scalar @{ $ann->good(200, GET => path($one->{json}{data}{relationships}{parts}{links}{related}))->{json}{data} }, 1, 'related');
		is(scalar @{ $ann->good(200, GET => path($one->{json}{data}{relationships}{parts}{links}{self}))->{json}{data} }, 1, 'its linkage');
		my ($part) = @{ $ann->good(200, GET => path($one->{json}{data}{relationships}{parts}{links}{related}) . '?include=word')->{json}{data} };
		is($ann->good(200, GET => "/parts/$part->{id}/word")->{json}{data}{id}, $id, 'from the other side');
		is($ann->call(PATCH => $link, data => { type => 'words', id => $id, attributes => { note => 'changed' } })->{status}, 200, 'changed');
		is($ann->call(PATCH => "/parts/$part->{id}/relationships/word", json => { data => { type => 'words', id => $id } })->{status}, 204, 'referred to');
		my $history = $ann->call(GET => "$link/history");
		is($history->{status}, 200, 'its history') or diag $history->{body};
		is(scalar @{ $history->{json}{data} // [] }, 1, 'has one change');
		is(path($history->{json}{links}{self}), "$link/history", 'and this address');
		is(batch({ op => 'update', href => $link, data => { type => 'words', id => $id, attributes => { note => 'again' } } },
			{ op => 'update', ref => { type => 'words', id => $id }, data => { type => 'words', id => $id, attributes => { note => 'and again' } } })->{status}, 200, 'by operations');
		is($cluster->psql(encode_utf8('select note from shop.word where word = ' . literal($text))), 'and again', 'it is this row that changed');
		is($ann->call(DELETE => $link)->{status}, 204, 'deleted');
		is($ann->call(GET => $link)->{status}, 404, 'it is gone');
		is($cluster->psql(encode_utf8('select count(*) from shop.word where word = ' . literal($text))), 0, 'from the table');

		my $made = $ann->call(POST => '/words', data => { type => 'words', id => $id, attributes => { note => "note of $id" } });
		if (length encode_utf8($id) > 255)
		{
			is("$made->{status} $made->{json}{errors}[0]{code} $made->{json}{errors}[0]{source}{pointer}", '400 VALUE_TOO_LARGE /data/id', 'it is too long to be made');
			return;
		}
		is($made->{status}, 201, 'made') or diag $made->{body};
		is(path($made->{headers}{location} // ''), $link, 'with the same address');
		is($cluster->psql(encode_utf8('select count(*) from shop.word where word = ' . literal($text))), 1, 'in the table');
		is(scalar @{ $ann->good(200, GET => "$link/history")->{json}{data} }, 1, 'its past is its own');
	};
}

subtest 'longer than the log can take' => sub {
	$cluster->psql(q{insert into shop.word select string_agg(md5(i::text), ''), 'long' from generate_series(1, 82) i});
	my ($id) = map { $_->{id} } @{ $ann->good(200, GET => '/words?filter=note==long')->{json}{data} };
	is(length $id, 2624, 'it is listed');
	is($ann->good(200, GET => "/words/$id")->{json}{data}{id}, $id, 'and read');
	$ann->refused('it is not changed', 400, 'VALUE_TOO_LARGE', undef, PATCH => "/words/$id", data => { type => 'words', id => $id, attributes => { note => 'x' } });
	$ann->refused('nor deleted', 400, 'VALUE_TOO_LARGE', undef, DELETE => "/words/$id");
	$cluster->psql(q{delete from shop.word where note = 'long'});
};

my @seen;
my $next = '/api/v1/words?sort=-id&page[after]=start&page[size]=3';
while ($next && @seen < 100)
{
	my $page = $ann->good(200, GET => path($next));
	push @seen, map { $_->{id} } @{ $page->{json}{data} };
	$next = $page->{json}{links}{next};
}
is(scalar(@seen), scalar(@texts) - 1, 'cursors go over all of them');
is(scalar(keys %{ { map { $_ => 1 } @seen } }), scalar @seen, 'and over none twice');

$ann->refused('no other form: ' . named($_), 404, undef, undef, GET => '/words/' . encoded($_))
  for 'a,b', 'a~b', '~', '~5', '~1~', '~30', '~3x', '~3~3', '~3history', '~.';
$ann->refused('nor does the shim take: ' . named($_), 400, 'MALFORMED_REQUEST', undef, GET => '/words/' . encoded($_)) for 'a/b', 'a\\b', "a~1b\x{0}";
$ann->refused('no other form is made: ' . named($_), 400, 'INVALID_VALUE', [ pointer => '/data/id' ], POST => '/words', data => { type => 'words', id => $_, attributes => {} })
  for 'a/b', 'a,b', 'a~b', 'a\\b', '~', '~5', '~30', '~3x', '', '.', '..', 'aggregates';
$ann->refused('nor referred to: ' . named($_), 404, 'RELATED_NOT_FOUND', undef, POST => '/parts', data => { type => 'parts', attributes => {}, relationships => { word => { data => { type => 'words', id => $_ } } } })
  for 'a/b', 'aggregates', '', '~';
$ann->refused('nor asked for: ' . named($_), 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/words?filter=id==' . quoted($_)) for 'a/b', 'a,b', 'aggregates', '', '.';

for my $number (@numbers)
{
	is($ann->good(200, GET => "/numbers/$number")->{json}{data}{attributes}{note}, "n$number", $number);
	is(scalar @{ $ann->good(200, GET => "/numbers?filter=id==$number")->{json}{data} }, 1, 'by a filter');
}
is(join(' ', map { $_->{id} } @{ $ann->good(200, GET => '/numbers?sort=id')->{json}{data} }), join(' ', -9223372036854775807 - 1, -1, 0, 7, 2147483648, 9223372036854775807), 'in the order of numbers');
$ann->refused("$_ names none", 404, undef, undef, GET => '/numbers/' . encoded($_)) for '9223372036854775808', '-9223372036854775809', '-0', '+7', '07', ' 7', '7 ', '7.0', '1e3', '';

for my $case ([ a => 'a' ], [ ab => 'ab' ], [ '~3' => 'none' ], [ 'a~1b' => 'slash' ], [ ' a' => 'before' ])
{
	is($ann->good(200, GET => '/codes/' . encoded($case->[0]))->{json}{data}{attributes}{note}, $case->[1], 'char(3): ' . named($case->[0]));
}
$ann->refused('with padding it names none', 404, undef, undef, GET => '/codes/a%20%20');

unlike(EntityApi::Test::slurp($cluster->log), qr/entityapi request \S+ failed/, 'no request failed for a reason of ours')
  or diag join "\n", EntityApi::Test::slurp($cluster->log) =~ /(.*entityapi request \S+ failed.*)/g;

done_testing;
