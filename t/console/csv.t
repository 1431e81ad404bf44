# CSV of the console: each text is quoted, so that no program splits it and
# runs the rest, and what was written is read again.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my ($node) = grep { -x } map { "$_/node" } split /:/, $ENV{PATH};
plan skip_all => 'node is not installed' unless $node;

my $folder = EntityApi::Test::folder();
my $checkout = EntityApi::Test::checkout();

sub write_file { my ($name, $text) = @_; return EntityApi::Test::write_file("$folder/$name", $text) }

# as a browser takes them: modules
write_file('package.json', '{"type": "module"}');
write_file($_, EntityApi::Test::slurp("$checkout/shim/console/$_")) for qw(csv.js text.js);
my $main = write_file('main.js', <<~'JS');
	import { cell, line, plain, readCsv } from './csv.js'

	const texts = ['x;=1+1', 'a\t=1+1', '=1+1', '+1', '-1', '@x', '\t=1', 'a"b', 'a,b', 'a\r\nb', 'plain', '']
	const again = readCsv(line(['name']) + texts.filter((text) => text !== '').map((text) => line([text])).join(''))
	console.log(JSON.stringify({
	  texts: texts.map(cell),
	  others: [1, -1.5, true, null, undefined, { a: ';=1' }, [1]].map(cell),
	  line: line(['id', 1, null, 'b']),
	  lost: texts.filter((text) => text !== '' && !again.rows.some((row) => plain(row.name) === text)),
	}))
	JS
my $result = EntityApi::Test::run([ $node, $main ]);
is($result->{status}, 0, 'runs') or diag $result->{err};
my $said = EntityApi::Test::json()->decode($result->{out});

is_deeply($said->{texts}, [ '"x;=1+1"', qq("a\t=1+1"), q("'=1+1"), q("'+1"), q("'-1"), q("'@x"), qq("'\t=1"), '"a""b"', '"a,b"', qq("a\r\nb"), '"plain"', '""' ],
	'texts are quoted, and formulas are none');
is_deeply($said->{others}, [ '1', '-1.5', 'true', '', '', '"{""a"":"";=1""}"', '"[1]"' ], 'numbers are not, and what is JSON is');
is($said->{line}, qq("id",1,,"b"\r\n), 'a line');
is_deeply($said->{lost}, [], 'what was written is read');

done_testing;
