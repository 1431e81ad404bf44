# What the costliest requests cost on 100 000 rows: they visit no more rows than
# that times a constant, and a statement timeout ends each of them wherever it
# is.  t/costs/corpus.jsonl has them; t/fuzz/costliest.pl looks for others.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Costs;

my $costs = EntityApi::Test::Costs->new;
my $cluster = $costs->cluster;
my $tenant = $costs->tenant;
my @corpus = map { JSON::PP::decode_json($_) } split /\n/, EntityApi::Test::slurp('t/costs/corpus.jsonl');
my $invoice = '01900000-0000-7003-8000-000000000001';

# Loops in C that no statement is part of: long texts, long documents
$cluster->psql("update app.invoice set note = repeat(chr(1) || chr(34), 4000000) where number = 'big-7'");
my @identifiers = map { { type => 'tags', id => sprintf '01900000-0000-7008-8000-%012x', $_ } } 1 .. 100;
my @others = (
	{ method => 'GET', target => '/invoices/01900000-0000-7003-8000-000000000007' },
	{ method => 'PATCH', target => '/invoices/01900000-0000-7003-8000-000000000007', body => { data => { type => 'invoices', id => '01900000-0000-7003-8000-000000000007', attributes => { note => "\x01\"" x 100_000 }, meta => {} } } },
	{ method => 'GET', target => "/invoices/$invoice?include=lineItems.invoice.lineItems.billable" },
	{ method => 'POST', target => '/operations', body => { 'atomic:operations' => [ map { { op => 'add', data => { type => 'tags', attributes => { name => "made-$_" } } } } 1 .. 1000 ] } },
	{ method => 'POST', target => '/operations', body => { 'atomic:operations' => [ map { { op => 'update', ref => { type => 'invoices', id => sprintf('01900000-0000-7003-8000-%012x', $_), relationship => 'tags' }, data => \@identifiers } } 1 .. 90 ] } },
	{ method => 'PATCH', target => '/tags/01900000-0000-7008-8000-000000000001/relationships/invoices', body => { data => [ map { { type => 'invoices', id => sprintf '01900000-0000-7003-8000-%012x', $_ } } 1 .. 10_000 ] } },
	{ method => 'GET', target => '/openapi.json' });

for my $request (@corpus, @others)
{
	my $name = "$request->{method} " . substr $request->{target}, 0, 90;
	my $whole = $costs->of($request, 0);
	my $text = join ' ', map { "$_=" . ($whole->{$_} // '-') } qw(status ms cpu rows bytes code place);

	note("$name: $text");
	ok($whole->{status} < 500, "$name: it is answered ($whole->{status})");
	cmp_ok($whole->{rows}, '<', 4_000_000, "$name: rows visited");
	cmp_ok($whole->{bytes}, '<=', 64 * 1024 * 1024, "$name: bytes");

	# as processor time, so that it says the same on a busy machine
	for my $timeout (20, int($whole->{ms} / 2))
	{
		next if $timeout < 20 || $timeout >= $whole->{ms};
		my $cut = $costs->of($request, $timeout);

		cmp_ok($cut->{cpu}, '<', $timeout + 1000, "$name: ended $timeout ms after its begin ($cut->{status})");
	}
}
done_testing;
