# Check constraints are read, planned and compiled once, not in each statement:
# and yet each write meets those that the table has at that moment.  One session
# does the same twice, with entityapi.direct_scans on, when they are kept, and
# off, when the executor makes them anew.  At last a rule leaves a write without
# any plan.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $ed = $shim->user($shim->tenant_here('acme')->{id}, 'ed', ['Editor']);
my $id = $shim->must(201, POST => '/api/v1/items', { token => $ed, json => { data => { type => 'items', attributes => { name => 'one', rank => 1 } } } })->{data}{id};
my $headers = qq({"authorization": "Bearer $ed->{accessToken}", "content-type": "application/vnd.api+json"});

sub patch
{
	my ($rank) = @_;

	return "select 'patch $rank: ' || status from entityapi.handle('PATCH', '/api/v1/items/$id', '$headers',
		convert_to('{\"data\":{\"type\":\"items\",\"id\":\"$id\",\"attributes\":{\"rank\":$rank}}}', 'UTF8'), '192.0.2.1');";
}

sub post
{
	my ($name) = @_;

	return "select 'post $name: ' || status from entityapi.handle('POST', '/api/v1/items', '$headers',
		convert_to('{\"data\":{\"type\":\"items\",\"attributes\":{\"name\":\"$name\",\"rank\":1}}}', 'UTF8'), '192.0.2.1');";
}

sub link_to_none
{
	return "select 'link: ' || status from entityapi.handle('PATCH', '/api/v1/items/$id/relationships/group', '$headers',
		convert_to('{\"data\":null}', 'UTF8'), '192.0.2.1');";
}

sub check { return 'alter table app.item drop constraint if exists mine; ' . ($_[0] ? "alter table app.item add constraint mine check ($_[0]) not valid;" : '') }

# Citus renames no constraint, and takes no rule, nor a row as a value
my $several = $cluster->nodes > 1;

# what is done, and the last answer that is to come
my @steps = (
	[ patch(50),                                                     200, 'without a constraint of others' ],
	[ patch(51),                                                     200, 'again' ],
	[ check('rank < 10') . patch(52),                                400, 'one was added' ],
	[ patch(9),                                                      200, 'what it allows' ],
	[ check('rank < 100') . patch(53),                               200, 'another one of that name' ],
	[ patch(100),                                                    400, 'is as good' ],
	[ check('rank < 100 and rank <> 54') . patch(54),                400, 'a longer one' ],
	[ check('rank = any (array[1, 2, 3])') . patch(4),               400, 'a list' ],
	[ patch(3),                                                      200, 'a member of it' ],
	[ check(q(name::varchar = any (array['one'::varchar, 'two'::varchar]::text[]))) . patch(3), 200, 'a list of texts, as that of an enum is' ],
	[ post('three'),                                                 400, 'no member of it' ],
	[ check('rank = any (array[rank, 2])') . patch(3),               200, 'a list of what is in the row' ],
	[ check('rank is not null and not (rank between 5 and 6)') . patch(5), 400, 'a range' ],
	[ 'begin; ' . check('rank > 1000') . patch(56),                  400, 'in a transaction' ],
	[ 'rollback; ' . patch(57),                                      200, 'that was undone' ],
	$several ? () : ([ 'alter table app.item rename constraint mine to other; ' . patch(5), 400, 'renamed' ],
		[ 'alter table app.item rename constraint other to mine; ' . patch(5), 400, 'and back' ]),
	[ check('limited(rank)') . patch(59),                            200, 'by a function' ],
	[ 'create or replace function limited(int) returns boolean language sql immutable as $$ select $1 < 20 $$; ' . patch(60), 400, 'that is another one now' ],
	[ 'create or replace function limited(int) returns boolean language sql immutable as $$ select $1 < 70 $$; ' . patch(61), 200, 'and another one' ],
	[ check('rank < most()') . patch(62),                            200, 'against what a function says' ],
	[ patch(70),                                                     400, 'which is too much' ],
	[ 'create or replace function far() returns int language sql immutable as $$ select 20 $$; ' . patch(63), 400, 'that calls another one now' ],
	[ 'create or replace function far() returns int language sql immutable as $$ select 80 $$; ' . patch(70), 200, 'and yet another one' ],
	[ check(q(name ~ '^[a-z ]*$') . ($several ? '' : ' and not item is null')) . post('some name'), 201, 'over a whole row' ],
	[ post('Name'),                                                  400, 'which holds' ],
	[ check(q(name ~ '^[a-z ]*$')) . post('Name'),                   400, 'for what is made' ],
	[ post('name'),                                                  201, 'as it should be' ],
	[ check(q(num_nonnulls(name, rank) > 1)) . post('name'),         201, 'any number of columns' ],
	[ check(q(num_nonnulls(name, rank) > 2)) . post('name'),         400, 'too few of them' ],
	[ check(q(coalesce(rank, 0) < case when flag then 0 else 65 end)) . patch(66), 400, 'what is never kept' ],
	[ patch(64),                                                     200, 'holds as well' ],
	[ check('') . patch(58),                                         200, 'none any more' ],
	[ link_to_none(),                                                204, 'a relationship' ],
	$several ? () : ([ 'create rule mine as on update to app.item do instead nothing; ' . link_to_none(), 500, 'a rule leaves nothing of that' ],
		[ link_to_none(),                                            500, 'nor the next time' ],
		[ 'drop rule mine on app.item; ' . link_to_none(),           204, 'and has gone' ]));

my $script = 'set client_min_messages = error; create function limited(int) returns boolean language sql immutable as $$ select $1 < 70 $$; '
  . 'create function far() returns int language sql immutable as $$ select 70 $$; '
  . 'create function most() returns int language sql immutable as $$ select public.far() $$; '
  . join('', map { "alter function $_ owner to entityapi_owner; " } 'limited(int)', 'far()', 'most()')
  . join "\n", map { "select '--'; $_->[0]" } @steps;

for my $switch (qw(on off))
{
	my $out = $cluster->psql("select entityapi.version(); set entityapi.direct_scans = $switch; $script; drop function limited(int), far(), most()");
	my (undef, @answers) = split /^--$/m, $out;

	for my $i (0 .. $#steps)
	{
		my ($status) = $answers[$i] =~ /: (\d+)\s*\z/;
		is($status, $steps[$i][1], "$switch: $steps[$i][2]");
	}
}

is($cluster->psql('select rank from app.item where name = \'one\''), 58, 'and plain SQL has the last of it');

# item has an enum, so what was kept above is more than texts; Citus has a hook
# on whatever is looked up for a statement, and where there is one nothing is kept
like($cluster->psql(patch(57) . patch(58) . <<~'SQL'), $several ? qr/^0\|\z/m : qr/^1\|t\z/m, $several ? 'nothing is kept' : 'what is kept is ready to run');
	select count(*), sum(used_bytes) >
		1000 + (select sum(2 ^ ceil(log(2, length(conbin::text) + 17))) from pg_constraint
			where contype = 'c' and conrelid = 'app.item'::regclass)
	from pg_backend_memory_contexts where name = 'entityapi checks';
	SQL
is($shim->stop, 0, 'ends with 0');
done_testing;
