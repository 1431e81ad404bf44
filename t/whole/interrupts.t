# The statement timeout ends a request wherever it is: in a pattern on a long
# text, in plans with many tables, in loops over operations, members and
# documents.  And one that would keep too much ends by entityapi.max_memory.
#
# ENTITYAPI_COSTS_ROWS chooses how many invoices there are (5000); with 100000
# there are requests of t/data/costs/corpus.jsonl that a second does not suffice for.

use strict;
use warnings;

use JSON::PP ();
use List::Util qw(min);
use Test::More;

use EntityApi::Test::Costs;

my $costs = EntityApi::Test::Costs->new;
my $cluster = $costs->cluster;
my $tenant = $costs->tenant;
my $json = JSON::PP->new->canonical;
my @corpus = map { $json->decode($_) } split /\n/, EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/costs/corpus.jsonl');

sub id { return sprintf '01900000-0000-7%03x-8000-%012x', @_ }

# A text of a million letters, each of which begins what is looked for; as many
# patterns, and as long, as are allowed
$cluster->psql("update app.invoice set note = repeat('a', 1000000) where number = 'big-7'");
my $patterns = sub {
	my ($operator, $n, $pattern) = @_;
	return '/invoices?filter=number==big-7;(' . join(',', map { "note=$operator='$pattern$_'" } 1 .. $n) . ')';
};
my $deep = '[' x 60 . ']' x 60;
my @adversarial = (
	[ 'a pattern of one long part' => { target => $patterns->('like', 1, '%25' . 'a' x 250 . 'b') } ],
	[ 'the same without case' => { target => $patterns->('ilike', 1, '%25' . 'a' x 250 . 'b') } ],
	[ 'patterns of long parts' => { target => $patterns->('ilike', 8, '%25' . 'a' x 29 . 'b') } ],
	[ 'patterns of many parts' => { target => $patterns->('like', 8, '%25a' x 15) } ],
	[ 'patterns with any letters' => { target => $patterns->('ilike', 8, '%25_a' x 10) } ],
	[ 'operations' => { method => 'POST', target => '/operations', body => { 'atomic:operations' =>
				[ map { { op => 'add', data => { type => 'tags', attributes => { name => "made-$_" } } } } 1 .. 1000 ] } } ],
	[ 'operations on links' => { method => 'POST', target => '/operations', body => { 'atomic:operations' =>
				[ map { { op => 'update', ref => { type => 'invoices', id => id(3, $_), relationship => 'tags' },
						data => [ map { { type => 'tags', id => id(8, $_) } } 1 .. 100 ] } } 1 .. 90 ] } } ],
	[ 'members' => { method => 'PATCH', target => '/tags/' . id(8, 1) . '/relationships/invoices', body =>
				{ data => [ map { { type => 'invoices', id => id(3, $_) } } 1 .. 4500 ] } } ],
	[ 'a million bytes of text' => { method => 'PATCH', target => '/invoices/' . id(3, 9), body =>
				{ data => { type => 'invoices', id => id(3, 9), attributes => { note => "\x01\"" x 120_000 } } } } ],
	[ 'a million bytes of arrays' => { method => 'PATCH', target => '/invoices/' . id(3, 9), body =>
				{ data => { type => 'invoices', id => id(3, 9), attributes => {}, meta => { x => [ map { $json->decode($deep) } 1 .. 8000 ] } } } } ],
	[ 'a text with escapes' => { target => '/invoices/' . id(3, 7) } ]);

push @adversarial, map { [ substr($_->{target}, 0, 60) => $_ ] } grep { !$_->{code} } @corpus;

# How much longer than its timeout a request has worked: the time of the
# processor, which does not pass while the machine does something else.
sub late
{
	my ($run, $timeout) = @_;
	my @late;

	for (1 .. 3)
	{
		push @late, $run->() - $timeout;
		last if $late[-1] < 1000;
	}
	return min(@late);
}

for (@adversarial)
{
	my ($name, $request) = @$_;

	$request->{method} //= 'GET';
	$request->{text} = JSON::PP->new->utf8->encode($request->{body}) if $request->{body};

	# what takes longer than this is not waited for
	my $whole = $costs->of($request, 2000);
	my $timeout = $whole->{ms} > 1000 ? 1000 : int($whole->{ms} / 2);
	note(sprintf '%s: %d after %d ms', $name, @$whole{qw(status ms)});

	# what has ended before the first tick cannot be cut
	if ($timeout < 5)
	{
		cmp_ok($whole->{ms}, '<', 1000, "$name: short as it is");
		next;
	}
	cmp_ok(late(sub { $costs->of($request, $timeout)->{cpu} }, $timeout), '<', 1000, "$name: ended in time");
}

# Two thousand entities, in a call that cannot do them within a second
subtest 'manifests' => sub {
	my @documents = map {
		my $n = $_;
		{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => "Thing$n" }, spec => { plural => "Thing${n}s",
				fields => { name => { type => 'string', index => JSON::PP::true }, code => { type => 'string', unique => JSON::PP::true },
					$n > 1 ? (previous => { type => 'ref', target => 'Thing' . ($n - 1), relation => 'ManyToOne' }) : () },
				permissions => { '*' => ['read'] } } }
	} 1 .. 2000;

	my $empty = EntityApi::Test->cluster(conf => ['max_locks_per_transaction = 1024']);

	$empty->psql(EntityApi::Test::Costs::SPENT);
	$empty->psql(<<~'SQL' . 'create table manifests as select ' . $costs->quote($json->encode(\@documents)) . '::jsonb documents');
		create function applied(documents jsonb, out ms float, out ended text) language plpgsql as $$
		declare
			spent_before float := spent();
		begin
			begin
				perform entityapi.apply_manifest(documents);
				ended := 'done';
			exception when query_canceled then
				ended := 'cut';
			end;
			ms := spent() - spent_before;
		end $$;
		SQL
	for my $timeout (100, 300, 1000)
	{
		my $ended;
		my $late = late(sub {
			my ($ms, $how) = split /\|/, $empty->psql("set statement_timeout = $timeout; select a.* from manifests, applied(documents) a");
			$ended = $how;
			return $ms;
		}, $timeout);

		note("$timeout ms: $ended");
		is($ended, 'cut', "not done within $timeout ms") if $timeout == 100;
		cmp_ok($late, '<', 1000, "ended in time after $timeout ms");
	}
};

subtest 'what a deletion keeps' => sub {
	my $invoice = id(3, 8);
	my $lines = "select count(*) from app.line_item where invoice_id = '$invoice'";

	$cluster->psql(<<~"SQL");
		update app.invoice set status = 'DRAFT', issued_at = null where id = '$invoice';
		delete from app.payment where invoice_id = '$invoice';
		insert into app.line_item (tenant_id, id, position, description, quantity, unit_price, invoice_id, billable_product_id, created_at, updated_at)
		select '$tenant', gen_random_uuid(), 1, 'x', 1, 1, '$invoice', '@{[ id(4, 1) ]}', now(), now() from generate_series(1, 5000);
		SQL
	my $before = $cluster->psql($lines);
	my $delete = { method => 'DELETE', target => "/invoices/$invoice" };
	my $narrow = $costs->with(max_memory => '1MB')->of($delete);

	is($narrow->{status}, 400, 'more than may be kept: 400');
	is($narrow->{code}, 'ANSWER_TOO_LARGE', 'its code');
	is($cluster->psql($lines), $before, 'nothing is deleted');
	is($costs->of($delete, 60_000)->{status}, 204, 'with the usual memory');
};
done_testing;
