# What the costliest requests visit: each row that t/data/costs/rows.sql makes a
# number of times that does not grow with them, told by "rows" in
# t/data/costs/corpus.jsonl for each invoice that there is.  t/tools/fuzz/costliest.pl looks
# for others.  Nor do they take more of the processor than some readings of the
# largest table do, in the same backend, or more memory than they may.  What would
# cost more is refused, at its place.
#
# ENTITYAPI_COSTS_ROWS chooses how many invoices there are (5000).

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(min);
use Test::More;

use EntityApi::Test::Costs;

my $costs = EntityApi::Test::Costs->new;
my @corpus = map { JSON::PP::decode_json($_) } split /\n/, EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/costs/corpus.jsonl');

# Once through the texts of all invoices; what else the machine does only adds
my $scan = min(map { $costs->of({ method => 'GET', target => "/invoices?filter=note=ilike='%25zzz%25'" }, 60_000)->{cpu} } 1 .. 3);
note("a reading takes $scan ms");

for my $request (@corpus)
{
	my $name = "$request->{method} " . substr $request->{target}, 0, 100;
	my $cost = $costs->of($request, 60_000);
	my $text = join ' ', map { "$_=" . ($cost->{$_} // '-') } qw(status ms cpu rows bytes memory code place);

	note("$name: $text");
	if ($request->{code})
	{
		is($cost->{status}, 400, "$name: refused");
		is($cost->{code}, $request->{code}, "$name: its code");
		is($cost->{place}, $request->{place}, "$name: its place");
		cmp_ok($cost->{rows}, '<', 100, "$name: before anything is read");
		next;
	}
	if ($request->{may} && $cost->{status} == 400)
	{
		# what it includes grows with the rows, up to a limit
		is($cost->{code}, $request->{may}, "$name: too much");
	}
	else
	{
		is($cost->{status}, 200, "$name: answered");
	}
	cmp_ok($cost->{rows}, '<=', $request->{rows} * $costs->n, "$name: rows visited");
	cmp_ok($cost->{bytes}, '<=', 64 * 1024 * 1024, "$name: bytes");
	cmp_ok($cost->{memory}, '<=', 384 * 1024 * 1024, "$name: memory");

	# besides, the plan takes its time, however many rows there are
	cmp_ok($cost->{cpu}, '<=', 40 * $scan + 2000, "$name: processor time");
}

# The limits themselves, each one below what is refused
my @limits = (
	[ 'patterns', 'filter', sub { 'filter=' . join ',', map { "note=ilike='%25z$_%25'" } 1 .. $_[0] }, 8 ],
	[ 'relationships of a filter', 'filter', sub { 'filter=' . join ',', map { "customer.city==x$_" } 1 .. $_[0] }, 32 ],
	[ 'relationships to many of a filter', 'filter', sub { 'filter=' . join ';', map { "tags.name!=x$_" } 1 .. $_[0] }, 8 ]);
for (@limits)
{
	my ($name, $place, $query, $limit) = @$_;
	my $refused = $costs->of({ method => 'GET', target => '/invoices?' . $query->($limit + 1) });

	is($costs->of({ method => 'GET', target => '/invoices?' . $query->($limit) }, 60_000)->{status}, 200, "$limit $name");
	is($refused->{status}, 400, "more $name");
	is($refused->{place}, $place, "more $name: the place");
}

# Beyond estimates there are no nested loops, also when a plan is made again or
# kept for any values; elsewhere there are.
for ([ 'tags.invoices.tags.name==nope', 0 ], [ 'tags.invoices.number==nope', 1 ])
{
	my ($filter, $loops) = @$_;
	my @plans = grep { /FROM app\.invoice(?:_\d+)? t0/ } split /Query Text:/, $costs->plans({ method => 'GET', target => "/invoices?filter=$filter" }, 8);

	cmp_ok(scalar @plans, '>=', 8, "$filter: plans");
	is(scalar(grep { /Nested Loop/ } @plans), $loops * @plans, "$filter: those with nested loops");
}

# What many sort keys begin with is joined, and counted, once: here one more
# relationship than is allowed, or as many
my $keys = join ',', qw(billable.name billable.id invoice.number invoice.note invoice.total invoice.customer.name
  invoice.customer.city invoice.customer.email invoice.customer.country.code invoice.customer.country.name);
for ([ 4, 400, 'sort' ], [ 5, 200, undef ])
{
	my ($limit, $status, $place) = @$_;
	my $cost = $costs->with(max_sort_crossings => $limit)->of({ method => 'GET', target => "/lineItems?sort=$keys" }, 60_000);

	is($cost->{status}, $status, "5 relationships of a sort, of $limit");
	is($cost->{place}, $place, 'the place');
	cmp_ok($cost->{rows}, '<=', 10 * $costs->n, 'rows visited');
}
done_testing;
