# Ids of any key in the console: in addresses, and in the filters that its
# builder writes and reads.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my ($node) = grep { -x } map { "$_/node" } split /:/, $ENV{PATH};
plan skip_all => 'node is not installed' unless $node;

my $folder = EntityApi::Test::folder();
my $checkout = EntityApi::Test::checkout();

sub write_file { my ($name, $text) = @_; return EntityApi::Test::write_file("$folder/$name", $text) }

write_file('package.json', '{"type": "module"}');
write_file($_, EntityApi::Test::slurp("$checkout/shim/console/$_")) for qw(route.js rsql.js text.js);
my $main = write_file('main.js', <<~'JS');
	import { here, link } from './route.js'
	import { kindOfIds, operatorsFor, read, write } from './rsql.js'

	const ids = ['17,3', 'a~1b,~2', ',', '~3', '%2F,', "o'x,\\", 'a b,ä', 'x?#&', '-5,-7']
	const asked = (id) => [{ selector: 'id', operator: '==', value: id }]
	const number = '(0|-?[1-9][0-9]*)'
	const date = '(-?infinity|-?[0-9]{4,7}(-[0-9]{2}){2})'
	const text = '([^~/,\\\\]|~[0124])*'
	const back = (id) => { globalThis.location = { hash: link(['data', 'orders', id]) }; return here().parts[2] }
	console.log(JSON.stringify({
	  lost: ids.filter((id) => back(id) !== id),
	  unread: ids.filter((id) => read(write(asked(id), ';'))?.conditions[0].value !== id),
	  written: write(asked('17,3'), ';'),
	  kinds: [{ format: 'uuid' }, {}, ...[number, date, text, number + ',' + date, text + ',' + text]
	    .map((one) => ({ pattern: '^' + one + '$' }))].map(kindOfIds),
	  lists: operatorsFor('parts').filter(([operator]) => ['=in=', '=out='].includes(operator)).length
	}))
	JS
my $result = EntityApi::Test::run([ $node, $main ]);
is($result->{status}, 0, 'runs') or diag $result->{err};
my $said = EntityApi::Test::json()->decode($result->{out});

is_deeply($said->{lost}, [], 'each is itself in an address');
is_deeply($said->{unread}, [], 'and in a filter');
is($said->{written}, q(id=='17,3'), 'in quotation marks, as a comma is an OR');
is_deeply($said->{kinds}, [qw(uuid uuid integer uuid uuid parts parts)], 'those of several parts are known by their pattern');
is($said->{lists}, 0, 'and not asked for in lists, which are split at commas');

done_testing;
