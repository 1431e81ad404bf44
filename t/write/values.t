# Values at their borders, in every direction: what is written is what is read,
# found and written again, digit by digit.

use strict;
use warnings;
use utf8;

use Encode qw(encode decode);
use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $editor = EntityApi::Test::Conformance->begin('library', conf => ['entityapi.max_linkage = 3']);
my $plain = $EntityApi::Test::Conformance::type;
my $text_of = JSON::PP->new->allow_nonref->canonical;

*ids = \&EntityApi::Test::Conformance::ids;

# Send a document whose attribute is this JSON text, as bytes.
sub sent
{
	my ($method, $path, $id, $attribute, $value) = @_;
	my $body = sprintf '{"data":{"type":"samples",%s"attributes":{%s"%s":%s}}}', defined $id ? "\"id\":\"$id\"," : '',
	  defined $id || $attribute eq 'label' ? '' : '"label":"v",', $attribute, $value;

	return $editor->call($method => "$path?fields[samples]=$attribute", body => $body, headers => { 'Content-Type' => $plain });
}

# The JSON text of the attribute in an answer that was asked for nothing else
sub value_of
{
	my ($answer, $attribute) = @_;
	my $body = decode('UTF-8', $answer->{body});

	return $body =~ /"attributes":\{"\Q$attribute\E":(.*?)\},"links"/ ? $1 : "status $answer->{status}: $body";
}

# Its filter literal: quoted, percent-encoded
sub literal
{
	my ($text) = @_;

	$text =~ s/([\\'])/\\$1/g;
	return join '', map { sprintf '%%%02X', ord } split //, encode('UTF-8', "'$text'");
}

sub round_trip
{
	my ($name, $attribute, $in, $out, $literal) = @_;
	my $made = sent(POST => '/samples', undef, $attribute, encode('UTF-8', $in));

	$out //= $in;
	is(value_of($made, $attribute), $out, "$name: answered") or return;
	my $id = $made->{json}{data}{id};
	my $query = "?fields[samples]=$attribute";
	my $read = value_of($editor->call(GET => "/samples/$id$query"), $attribute);
	is($read, $out, "$name: read");
	is(value_of($editor->call(GET => "/samples$query&filter=id==$id"), $attribute), $out, "$name: in a list");
	is(value_of(sent(PATCH => "/samples/$id", $id, $attribute, encode('UTF-8', $read)), $attribute), $out, "$name: written again");
	my $batch = $editor->call(POST => '/operations',
		body    => encode('UTF-8', qq({"atomic:operations":[{"op":"update","data":{"type":"samples","id":"$id","attributes":{"$attribute":$read}}}]})),
		headers => { 'Content-Type' => $EntityApi::Test::Conformance::atomic });
	like(decode('UTF-8', $batch->{body}), qr/"\Q$attribute\E":\Q$out\E[,}]/, "$name: in a batch");
	return $id if !defined $literal;
	my $found = $editor->good(200, GET => "/samples?page[size]=100&filter=id==$id;$attribute==" . literal($literal))->{json}{data};
	is(ids(@$found), $id, "$name: found");
	return $id;
}

sub refused
{
	my ($name, $attribute, $value, $pointer) = @_;
	my $answer = sent(POST => '/samples', undef, $attribute, $value);
	my $source = $answer->{json}{errors}[0]{source}{pointer};

	is($answer->{status}, 400, "$name: refused") or diag $answer->{body};
	is($source, "/data/attributes/$attribute", "$name: the attribute is named") if $pointer;
	return;
}

subtest 'decimals' => sub {
	my $digits = '1234567890123456789012345678901234567890';

	for my $case (
		[ amount => '0.0001' ], [ amount => '-0.0001' ], [ amount => '123456789012345.6789' ],
		[ amount => '999999999999999.9999' ], [ amount => '-999999999999999.9999' ],
		[ amount => '4999.00', '4999.0000' ], [ amount => '0.1', '0.1000' ], [ amount => '0.3', '0.3000' ], [ amount => '-0', '0.0000' ],
		[ amount => '1.1', '1.1000' ], [ amount => '1E3', '1000.0000' ], [ amount => '12e-1', '1.2000' ],
		[ amount => '9007199254740993.0', undef, 400 ],
		[ amount => '90071992547409.9301' ], [ amount => '"90071992547409.9301"', '90071992547409.9301' ],
		[ exact => "$digits.12345678901234567890" ], [ exact => "-$digits.12345678901234567890" ],
		[ exact => "\"$digits.00000000000000000001\"", "$digits.00000000000000000001" ],
		[ exact => '0.00000000000000000001' ], [ exact => '9007199254740993.00000000000000000001' ],
		[ exact => "1$digits", undef, 400 ], [ exact => '0.000000000000000000001', undef, 400 ])
	{
		my ($attribute, $in, $out, $status) = @$case;

		if ($status)
		{
			refused($in, $attribute, $in, 1);
			next;
		}
		my $shown = $out // $in;
		round_trip($in, $attribute, $in, $out, $shown);
	}

	my $exact = "$digits.00000000000000000001";
	my %id;
	for my $value ("$digits.0", $exact, "$digits.00000000000000000002")
	{
		my $answer = sent(POST => '/samples', undef, exact => $value);
		$id{$value} = $answer->{json}{data}{id};
	}
	my $among = 'id=in=(' . join(',', values %id) . ')';
	for my $case (
		[ "exact==$exact", $exact ], [ "exact!=$exact;$among", grep { $_ ne $exact } keys %id ],
		[ "exact=gt=$exact;$among", "$digits.00000000000000000002" ], [ "exact=lt=$exact;$among", "$digits.0" ],
		[ "exact==${exact}1;$among" ], [ "exact=gt=${exact}1;$among", "$digits.00000000000000000002" ],
		[ "exact==$digits;$among", "$digits.0" ])
	{
		my ($filter, @expected) = @$case;
		my $found = $editor->good(200, GET => "/samples?filter=$filter&page[size]=100")->{json}{data};
		my %wanted = map { $_ => 1 } @id{@expected};
		is(join(' ', sort grep { my $id = $_; grep { $_ eq $id } values %id } map { $_->{id} } @$found),
			join(' ', sort keys %wanted), "compared exactly: " . ($filter =~ s/;id=in.*//r));
	}
	my $sorted = $editor->good(200, GET => "/samples?filter=$among&sort=-exact")->{json}{data};
	is_deeply([ map { $_->{id} } @$sorted ], [ @id{ "$digits.00000000000000000002", $exact, "$digits.0" } ], 'and sorted');
};

subtest 'long' => sub {
	round_trip($_, big => $_, undef, $_)
	  for qw(0 9007199254740991 9007199254740992 9007199254740993 -9007199254740993 9223372036854775807 -9223372036854775808);
	refused($_, big => $_, 1) for qw(9223372036854775808 -9223372036854775809 1e30 0.5 "1" true 99999999999999999999999);
};

subtest 'dates' => sub {
	for my $case (
		[ '2026-11-20T17:29:00Z' ], [ '2026-11-20T17:29:00.123456Z' ], [ '2026-11-20T17:29:00.1Z' ], [ '2026-11-20T17:29:00.000001Z' ],
		[ '2026-11-20T17:29:00.120000Z', '2026-11-20T17:29:00.12Z' ], [ '2026-11-20T17:29:00.123456789Z', '2026-11-20T17:29:00.123457Z' ], [ '2026-11-20T17:29:00+00:00', '2026-11-20T17:29:00Z' ],
		[ '2026-11-20T17:29:00-00:00', '2026-11-20T17:29:00Z' ], [ '2026-11-20T00:29:00+02:00', '2026-11-19T22:29:00Z' ],
		[ '2026-11-20T17:29:00-07:30', '2026-11-21T00:59:00Z' ], [ '2026-11-20T17:29:00+05:45', '2026-11-20T11:44:00Z' ],
		[ '2026-12-31T23:59:59.999999-14:00', '2027-01-01T13:59:59.999999Z' ], [ '2027-01-01T00:00:00+14:00', '2026-12-31T10:00:00Z' ],
		[ '2024-02-29T12:00:00Z' ], [ '0001-01-01T00:00:00Z' ], [ '9999-12-31T23:59:59Z' ], [ '1582-10-10T00:00:00Z' ],
		[ '1900-01-01T00:00:00Z' ], [ '2000-02-29T23:59:59Z' ])
	{
		my ($in, $out) = @$case;
		round_trip($in, moment => "\"$in\"", defined $out ? "\"$out\"" : undef, $in);
	}
	refused($_, moment => "\"$_\"", 1)
	  for '2026-11-20T17:29:00', '2026-11-20', '2026-02-29T00:00:00Z', '1900-02-29T00:00:00Z', '2026-11-20T17:29:00+0200', '2026-11-20T17:29:00+2',
	  '2026-11-20T17:29:00+24:00', '2026-11-20T17:29:00+02:60', '2026-11-20T17:29:00ZZ', ' 2026-11-20T17:29:00Z', '20261120T172900Z', '2026-W47-5T00:00:00Z',
	  '2026-11-20T17:29:00,5Z', '2026-11-20T17:29:60Z', '2026-11-20T17:29:00.1234567890123Z', '2026-11-20T17:29:00.Z', '+12026-11-20T17:29:00Z', '2026-11-20T17:29:00Z BC', 'yesterday', '-infinity', '';
	round_trip($_, day => "\"$_\"", undef, $_) for '0001-01-01', '1582-10-15', '2024-02-29', '9999-12-31';
	refused($_, day => "\"$_\"", 1) for '2026-02-29', '2026-00-01', '2026-01-32', '26-01-01', '2026/01/01', '10000-01-01', '0000-01-01';
};

subtest 'text' => sub {
	my @planes = map { my $plane = $_; map { chr($plane * 0x10000 + $_) } 0x0123, 0x4e2d, 0xfffd } 0 .. 16;

	for my $attribute (qw(label essay))
	{
		for my $plane (0 .. 16)
		{
			my $text = join '', @planes[ 3 * $plane .. 3 * $plane + 2 ];
			my $escaped = join '', map { $_ > 0xffff
				? sprintf('\\u%04x\\u%04X', 0xd800 + (($_ - 0x10000) >> 10), 0xdc00 + (($_ - 0x10000) & 0x3ff))
				: sprintf('\\u%04x', $_) } map { ord } split //, $text;
			my $id = round_trip("plane $plane of $attribute", $attribute, "\"$text\"", undef, $text);
			is(value_of(sent(PATCH => "/samples/$id", $id, $attribute, "\"$escaped\""), $attribute), "\"$text\"", 'also by escapes');
		}
		round_trip("$attribute: $_->[0]", $attribute, @$_[ 1 .. 3 ])
		  for [ 'quotes', '"\"\\\\\/\b\f\n\r\t"', '"\"\\\\/\b\f\n\r\t"' ], [ 'controls', '"\u0001\u001f"' ],
		  [ 'combining marks', "\"e\x{301} \x{e9}\"", undef, "e\x{301} \x{e9}" ], [ 'a joined emoji', "\"👩‍👩‍👧\"", undef, "👩‍👩‍👧" ],
		  [ 'right to left', "\"\x{202e}abc\x{202c} שלום\"", undef, "\x{202e}abc\x{202c} שלום" ], [ 'line separators', "\"\x{2028}\x{2029}\"", undef, "\x{2028}\x{2029}" ],
		  [ 'nothing', '""', undef, '' ],
		  [ 'blanks', '"  a  "', undef, '  a  ' ], [ 'looks like SQL', "\"'); drop table app.sample;--\"", undef, "'); drop table app.sample;--" ],
		  [ 'looks like a template', '"%s $1 {0} \\\\x41 &amp;"', '"%s $1 {0} \\\\x41 &amp;"', '%s $1 {0} \\x41 &amp;' ];
	}
	my $found = $editor->good(200, GET => '/samples?filter=label==' . literal("\x{e9}") . ';label==' . literal("e\x{301}"))->{json}{data};
	is_deeply($found, [], 'nothing is normalised');

	for my $attribute (qw(label essay extra))
	{
		refused("$attribute: $_->[0]", $attribute, $_->[1])
		  for [ 'U+0000', '"a\u0000b"' ], [ 'half a pair', '"\ud800"' ], [ 'the other half', '"\udc00"' ], [ 'half and more', '"\ud83dx"' ],
		  [ 'two first halves', '"\ud83d\ud83d"' ], [ 'halves in the wrong order', '"\ude00\ud83d"' ], [ 'a short escape', '"\u12"' ], [ 'an unknown escape', '"\x41"' ],
		  [ 'a raw U+0000', "\"a\0b\"" ], [ 'a raw newline', "\"a\nb\"" ], [ 'a raw tab', "\"a\tb\"" ],
		  [ 'invalid UTF-8', "\"\xff\"" ], [ 'half of UTF-8', "\"\xc3\"" ], [ 'overlong UTF-8', "\"\xc0\x80\"" ], [ 'an encoded surrogate', "\"\xed\xa0\x80\"" ],
		  [ 'beyond U+10FFFF', "\"\xf4\x90\x80\x80\"" ];
	}
	refused('U+0000 in a key', extra => '{"\u0000":1}');
	refused('half a pair in a key', extra => '{"\ud800":1}');
	for my $body ("\xef\xbb\xbf" . '{"data":{"type":"samples","attributes":{"label":"x"}}}', '{"data":{"type":"samples","attributes":{"label":"x"}}} x',
		'{"data":{"type":"samples","attributes":{"label":"x",}}}', "{'data':{}}", '{"data":{"type":"samples","attributes":{"label":"x","label":"y"}}}',
		'{"data":{"type":"samples","attributes":{"label":NaN}}}', '{"data":{"type":"samples","attributes":{"label":"x","big":01}}}',
		'{"data":{"type":"samples","attributes":{"label":"x","big":+1}}}', '{"data":{"type":"samples","attributes":{"label":"x","amount":.5}}}',
		'{"data":{"type":"samples","attributes":{"label":"x","amount":5.}}}', '{/**/"data":{"type":"samples","attributes":{"label":"x"}}}')
	{
		is($editor->call(POST => '/samples', body => $body, headers => { 'Content-Type' => $plain })->{status}, 400, "no JSON: $body");
	}
};

subtest 'json' => sub {
	for my $value ('{}', '[]', 'null', 'true', 'false', '0', '""', '[null]', '{"":{"":""}}', '[[],[[]],{}]', '{"a":[1,2.50,{"b":null}],"c":"ü 😀"}',
		'12345678901234567890123456789.123456789', '[1.10,0.1,-0.0,9007199254740993]', '{"key with \"quotes\"":1,"a/b~c":2}', "{\"\x{1f600}\":\"\x{10fffd}\"}",
		'"\\u0001"', '[1e400]', '[1E-5]')
	{
		my $made = sent(POST => '/samples', undef, extra => encode('UTF-8', $value));
		my $out = value_of($made, 'extra');
		my $id = $made->{json}{data}{id};

		is($made->{status}, 201, "$value: taken") or next;
		is(value_of($editor->call(GET => "/samples/$id?fields[samples]=extra"), 'extra'), $out, 'read as answered');
		is(value_of(sent(PATCH => "/samples/$id", $id, extra => encode('UTF-8', $out)), 'extra'), $out, 'written again');
		is($editor->{cluster}->psql("select '" . $value =~ s/'/''/gr . "'::jsonb = '" . $out =~ s/'/''/gr . "'::jsonb"), 't', 'the same in meaning');
		like($out, qr/1\.10/, 'digits are kept') if $value =~ /1\.10/;
	}
	$editor->refused('not to be sorted by', 400, 'INVALID_SORT', [ parameter => 'sort' ], GET => '/samples?sort=extra');
	$editor->refused('nor filtered', 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/samples?filter=extra==1');
	$editor->good(200, GET => '/samples?filter=extra=isnull=false');
};

subtest 'nesting' => sub {
	# The document, data and attributes are three levels
	for my $case ([ 1, 201 ], [ 61, 201 ], [ 62, 400 ], [ 100, 400 ], [ 10_000, 400 ], [ 400_000, 400 ])
	{
		my ($depth, $status) = @$case;

		is(sent(POST => '/samples', undef, extra => '[' x $depth . ']' x $depth)->{status}, $status, "$depth arrays");
		next if $depth > 100_000;
		is(sent(POST => '/samples', undef, extra => '{"a":' x $depth . '1' . '}' x $depth)->{status}, $status, "$depth objects");
	}
	is($editor->call(POST => '/samples', body => '[' x 900_000, headers => { 'Content-Type' => $plain })->{status}, 400, 'never closed');
	is($editor->call(POST => '/samples', body => '{"x":' . '[' x 63 . ']' x 63 . ',"data":{"type":"samples","attributes":{"label":"x"}}}',
			headers => { 'Content-Type' => $plain })->{status}, 201, '64 levels of what is ignored');
	is($editor->call(POST => '/samples', body => '{"x":' . '[' x 64 . ']' x 64 . ',"data":{"type":"samples","attributes":{"label":"x"}}}',
			headers => { 'Content-Type' => $plain })->{status}, 400, 'and 65');
	$editor->good(200, GET => '/samples?page[size]=1');
};

subtest 'large linkage' => sub {
	my $ann = $editor->made(authors => { name => 'Ann' });
	my $work = $editor->made(works => { title => 'Full' }, { author => $ann });
	my @notes = map { $editor->made(notes => { text => "n$_" }) } 1 .. 5;
	my @genres = map { $editor->made(genres => { name => "g$_" }) } 1 .. 5;

	for my $case ([ notes => \@notes ], [ genres => \@genres ])
	{
		my ($name, $members) = @$case;
		my $path = $editor->path($work);

		is($editor->relate(POST => $work, $name, [ @$members[ 0 .. 2 ] ])->{status}, 204, "three $name");
		my $relationship = $editor->current($work)->{relationships}{$name};
		is(ids(@{ $relationship->{data} }), ids(@$members[ 0 .. 2 ]), 'are linked');
		ok(!exists $relationship->{meta}, 'without a count');
		is($editor->relate(POST => $work, $name, $members)->{status}, 204, 'two more, and a write may name as many as it likes');
		for my $answer (
			$editor->good(200, GET => $path), $editor->good(200, GET => "$path?include=author"),
			$editor->good(200, GET => '/works?filter=title==Full'), $editor->update($work, {}))
		{
			my $data = $answer->{json}{data};
			$relationship = (ref $data eq 'ARRAY' ? $data->[0] : $data)->{relationships}{$name};
			is_deeply($relationship, {
					links => { self => "/api/v1$path/relationships/$name", related => "/api/v1$path/$name" },
					meta => { count => 5 } }, 'are counted instead');
		}
		# What is included is linked, however much it is: full linkage.
		my $answer = $editor->good(200, GET => "$path?include=$name")->{json};
		is(ids(@{ $answer->{included} }), ids(@$members), 'all are included');
		is(ids(@{ $answer->{data}{relationships}{$name}{data} }), ids(@$members), 'and linked then');
		is($editor->linked($work, $name), ids(@$members), 'the relationship has them all');
		is($editor->good(200, GET => "$path/$name")->{json}{meta}{pagination}{totalRecords}, 5, 'and they are related');
		is($editor->relate(PATCH => $work, $name, [ $members->[4] ])->{status}, 204, 'replaced');
		is(ids(@{ $editor->current($work)->{relationships}{$name}{data} }), $members->[4]{id}, 'by one');
	}
};

subtest 'totals' => sub {
	for my $path ('/samples', '/samples?filter=label==none', '/works')
	{
		my $sign = $path =~ /\?/ ? '&' : '?';
		my $with = $editor->good(200, GET => "$path${sign}page[size]=2&page[totals]=true")->{json};
		my $without = $editor->good(200, GET => "$path${sign}page[size]=2&page[totals]=false")->{json};

		ok(exists $with->{meta}{pagination}{totalRecords} && exists $with->{meta}{pagination}{totalPages}, "$path: totals");
		is_deeply($without->{meta}{pagination}, { number => 1, size => 2 }, 'or none');
		is_deeply($without->{data}, $with->{data}, 'the same page');
		is($with->{meta}{pagination}{totalPages}, int(($with->{meta}{pagination}{totalRecords} + 1) / 2), 'pages');
	}
	my ($seen, $next) = (0, '/samples?page[size]=50&page[totals]=false&sort=-label');
	while ($next && $seen < 10_000)
	{
		my $page = $editor->good(200, GET => $next)->{json};
		$seen += @{ $page->{data} };
		$next = $page->{links}{next};
	}
	is($seen, $editor->total('samples'), 'next leads to the end without them');

	# What is made meanwhile comes last: no page shows a row of another again.
	my %times;
	my $before = $editor->total('samples');
	$next = '/samples?page[size]=40';
	while ($next)
	{
		my $page = $editor->good(200, GET => $next)->{json};
		$times{ $_->{id} }++ for @{ $page->{data} };
		$next = keys %times < $before ? $page->{links}{next} : undef;
		$editor->made(samples => { label => 'meanwhile' });
	}
	cmp_ok(scalar keys %times, '>=', $before, 'all pages together have all rows');
	is_deeply([ grep { $_ > 1 } values %times ], [], 'each once');
};

done_testing;
