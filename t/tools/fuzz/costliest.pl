#!/usr/bin/perl
#
# Look for the costliest legal request on 100 000 rows: filters, paths, sort
# keys, includes, fields, pages, operations and relationship writes of
# examples/billing, changed at random; what costs more is changed on.
#
#	SECONDS=600 perl -It/lib t/tools/fuzz/costliest.pl [--seed N] [--by cpu,memory] [--keep FILE]
#
# Reads go through a shim; writes are asked of handle() and undone, so that all
# requests meet the same rows.  --by says which figures are to grow: cpu, memory,
# ms, bytes.  The seed repeats the choices as far as the costs repeat; with
# --keep the next run goes on from what this one has found.
#
# The environment is that of the TAP tests.  Prints the worst, one JSON object a
# line; t/data/costs/corpus.jsonl keeps what was found, t/whole/costs.t holds it.

use strict;
use warnings;

use Getopt::Long;
use JSON::PP ();
use List::Util qw(first shuffle);
use Time::HiRes qw(time);

use EntityApi::Test::Costs;

my ($seconds, $seed, $by, $keep) = ($ENV{SECONDS} // 300, time, 'cpu,memory');
GetOptions('seconds=i' => \$seconds, 'seed=i' => \$seed, 'by=s' => \$by, 'keep=s' => \$keep)
  or die "usage: $0 [--seconds N] [--seed N] [--by cpu,memory,ms,bytes] [--keep FILE]\n";
my @figures = split /,/, $by;
srand $seed;
print "seed $seed\n";

my $json = JSON::PP->new->canonical->utf8;
$ENV{ENTITYAPI_COSTS_ROWS} //= 100_000;
my $costs = EntityApi::Test::Costs->new;

# Attributes with literals, and relationships with what they lead to
my %entities = (
	customers => [ { region => ['NORTH'], active => ['true'], creditLimit => ['5'], name => [ 'Customer x', '%a%' ], city => [ 'City 1', '%7%' ], email => [ 'c1@example.com', '%9%' ], customerSince => ['2022-01-01'] },
		{ country => 'countries', invoices => 'invoices' }, [] ],
	countries => [ { code => [ 'AA', '%B%' ], name => [ 'Country 1', '%try%' ] }, {}, [] ],
	invoices => [ { number => [ 'big-7', '%g-%7%' ], status => ['PAID'], total => ['17.5'], note => [ 'x', '%e%a%c%' ], dueOn => ['2024-06-01'], issuedAt => ['2024-06-01'] },
		{ customer => 'customers', lineItems => 'lineItems', payments => 'payments', tags => 'tags' }, [] ],
	lineItems => [ { position => ['2'], description => [ 'Line', '%ab%' ], quantity => ['5'], unitPrice => ['50'] },
		{ invoice => 'invoices', billable => 'billables' }, [] ],
	billables => [ { name => [ 'Product 1', '%a%7%' ] }, {}, [] ],
	products => [ { sku => [ 'big-1', '%g%1%' ], name => [ 'Product 1', '%o%1' ], inStock => ['5'] }, {}, [] ],
	payments => [ { amount => ['17'], reference => [ 'ref 7', '%7' ], paidOn => ['2024-06-01'] }, { invoice => 'invoices' }, [] ],
	tags => [ { name => [ 'big-1', '%g%1%' ], colour => [ '#00ff00', '%f%' ] }, { invoices => 'invoices' }, [] ]);
my %number = (customers => 2, countries => 1, invoices => 3, products => 4, lineItems => 6, payments => 7, tags => 8);
my @collections = sort keys %number;

# no type that has an order, or that can be listed
my %unordered = map { $_ => 1 } qw(id active status region);
my %to_many = map { $_ => 1 } qw(invoices lineItems payments tags);

sub any { return $_[ rand @_ ] }
sub id { return sprintf '01900000-0000-7%03d-8000-%012x', @_ }

# A path of at most so many hops; returns it and where it leads
sub path
{
	my ($collection, $hops, $to_one) = @_;
	my @path;

	for (1 .. int rand($hops + 1))
	{
		my $next = $entities{$collection}[1];
		my @names = grep { !$to_one || !$to_many{$_} } sort keys %$next;
		last unless @names;
		my $name = any(@names);
		push @path, $name;
		$collection = $next->{$name};
	}
	return (\@path, $collection);
}

sub comparison
{
	my ($collection) = @_;
	my ($path, $end) = path($collection, 5);
	my $attribute = any(sort keys %{ $entities{$end}[0] });
	my $literals = $entities{$end}[0]{$attribute};
	my $selector = join '.', @$path, $attribute;
	my $operator = any($literals->[1] ? qw(=ilike= =like= =ilike=) : (), qw(== != =in= =out= =isnull=),
		$unordered{$attribute} ? () : qw(=gt= =ge= =lt= =le=));

	# one that fits all, or none, or an absence that is nowhere
	my $literal = rand() < 0.6 || $unordered{$attribute} || $literals->[0] =~ /^[\d.-]+$/ ? $literals->[0] : 'x' . int rand 1e6;

	return "$selector=isnull=" . any(qw(true false)) if $operator eq '=isnull=';
	return "$selector$operator('" . join("','", ($literal) x (1 + rand any(3, 100))) . "')" if $operator =~ /in|out/;
	return "$selector$operator'" . ($operator =~ /like/ ? $literals->[1] =~ s/%/%25/gr : $literal) . "'";
}

sub sort_key
{
	my ($collection) = @_;
	my ($path, $end) = path($collection, 4, 1);

	return any('', '-') . join '.', @$path, any(sort keys %{ $entities{$end}[0] });
}

# A request is a tree of parts; changing one part gives another request.
sub fresh
{
	my $collection = any(@collections);

	return { collection => 'operations', writes => [ write_of() ] } if rand() < 0.2;
	return { collection => $collection, filter => [], sort => [], include => [], size => 100, under => under($collection) };
}


# A list is the whole one or that of a relationship
sub under
{
	my ($collection) = @_;
	my @from = grep { ($entities{ $_->[0] }[1]{ $_->[1] } // '') eq $collection && $to_many{ $_->[1] } && $number{ $_->[0] } }
	  map { my $from = $_; map { [ $from, $_ ] } sort keys %{ $entities{$from}[1] } } @collections;

	return $collection if !@from || rand() < 0.7;
	my ($from, $name) = @{ any(@from) };
	return "$from/" . id($number{$from}, 1) . any('/', '/relationships/') . $name;
}

# Identifiers of some of the first so many
sub identifiers
{
	my ($type, $kind, $n, $of) = @_;

	return [ map { { type => $type, id => id($kind, 1 + ($_ * 7) % $of) } } 1 .. $n ];
}

# One write; the same for a request of its own and as an operation
sub write_of
{
	my $n = any(1, 20, 100);

	return any(
		{ op => 'add', data => { type => 'tags', attributes => { name => 'made-' . int rand 1e9 } } },
		{ op => 'update', data => { type => 'invoices', id => id(3, 1 + int rand 1000), attributes => { note => 'n' x any(1, 1000) }, relationships => { tags => { data => identifiers('tags', 8, $n, 100) } } } },
		{ op => any(qw(add update remove)), ref => { type => 'invoices', id => id(3, 1 + int rand 1000), relationship => 'tags' }, data => identifiers('tags', 8, $n, 100) },
		{ op => any(qw(add remove)), ref => { type => 'tags', id => id(8, 1 + int rand 100), relationship => 'invoices' }, data => identifiers('invoices', 3, 10 * $n, 100_000) },
		{ op => 'add', data => { type => 'invoices', attributes => { number => 'made-' . int rand 1e9, currency => 'EUR', note => 'n' x any(1, 10_000) },
				relationships => { customer => { data => { type => 'customers', id => id(2, 1) } }, tags => { data => identifiers('tags', 8, $n, 100) } } } },
		{ op => 'update', data => { type => 'tags', id => id(8, 1 + int rand 100), attributes => { colour => '#ff0000' }, relationships => { invoices => { data => identifiers('invoices', 3, any(1, 100, 10_000), 100_000) } } } },
		{ op => 'update', ref => { type => 'tags', id => id(8, 1), relationship => 'invoices' }, data => identifiers('invoices', 3, any(1, 100, 10_000), 100_000) },
		{ op => 'remove', ref => { type => 'invoices', id => id(3, 5 * (1 + int rand 100)) } },
		{ op => 'remove', ref => { type => 'tags', id => id(8, 1 + int rand 100) } });
}

sub changed_writes
{
	my ($old) = @_;
	my @writes = @{ $old->{writes} };

	any(sub { push @writes, map { write_of() } 1 .. any(1, 10, 100) },
		sub { push @writes, @writes[ 0 .. $#writes ] },
		sub { splice @writes, rand @writes, 1 if @writes > 1 },
		sub { @writes = shuffle @writes })->();
	splice @writes, 1000 if @writes > 1000;
	return { collection => 'operations', writes => \@writes };
}

sub changed
{
	my ($old) = @_;
	return changed_writes($old) if $old->{writes};
	my $new = $json->decode($json->encode($old));
	my $c = $new->{collection};
	my @changes = (
		sub { push @{ $new->{filter} }, map { comparison($c) } 1 .. any(1, 1, 2, 8, 30) },
		sub { splice @{ $new->{filter} }, rand @{ $new->{filter} }, 1 },
		sub { push @{ $new->{filter} }, (any(@{ $new->{filter} })) x any(1, 4) if @{ $new->{filter} } },
		sub { $new->{joint} = any(';', ',') },
		sub { $new->{under} = under($c) },
		sub { push @{ $new->{sort} }, map { sort_key($c) } 1 .. any(1, 2, 8) },
		sub { splice @{ $new->{sort} }, rand @{ $new->{sort} }, 1 },
		sub { push @{ $new->{include} }, map { join '.', @{ (path($c, 5))[0] } } 1 .. any(1, 3, 20) },
		sub { splice @{ $new->{include} }, rand @{ $new->{include} }, 1 },
		sub { $new->{number} = any(undef, 1, 2, 50, 900) },
		sub { $new->{totals} = any(undef, 'false') },
		sub { $new->{cursor} = any(undef, 'page[after]=start', 'page[before]=end') },
		sub { $new->{fields} = any(undef, 'number,customer', 'number') });

	any(@changes)->() for 1 .. any(1, 1, 2, 3);
	my %seen;
	$new->{sort} = [ grep { !$seen{ s/^-//r }++ } @{ $new->{sort} } ];
	$new->{include} = [ grep { length && !$seen{"i$_"}++ } @{ $new->{include} } ];
	return $new;
}

sub request
{
	my ($parts) = @_;
	if (my $writes = $parts->{writes})
	{
		my ($only) = @$writes;

		# a write of a relationship alone has an endpoint of its own
		return { method => { add => 'POST', update => 'PATCH', remove => 'DELETE' }->{ $only->{op} },
			target => "/$only->{ref}{type}/$only->{ref}{id}/relationships/$only->{ref}{relationship}", body => { data => $only->{data} } }
		  if @$writes == 1 && $only->{ref} && $only->{ref}{relationship};
		return { method => 'POST', target => '/operations', body => { 'atomic:operations' => $writes } };
	}
	my @query = 'page[size]=' . $parts->{size};

	push @query, 'filter=' . join $parts->{joint} // ';', @{ $parts->{filter} } if @{ $parts->{filter} };
	push @query, 'sort=' . join ',', @{ $parts->{sort} } if @{ $parts->{sort} };
	push @query, 'include=' . join ',', @{ $parts->{include} } if @{ $parts->{include} };
	push @query, $parts->{cursor} ? $parts->{cursor} : $parts->{number} ? "page[number]=$parts->{number}" : ();
	push @query, 'page[totals]=' . $parts->{totals} if $parts->{totals};
	push @query, "fields[invoices]=$parts->{fields}" if $parts->{fields};
	return { method => 'GET', target => "/$parts->{under}?" . join('&', @query) =~ s/ /%20/gr };
}

# What is asked, with what it costs
sub found
{
	my ($parts) = @_;
	my $request = request($parts);

	return if length $request->{target} > 8000 || length($json->encode($request)) > 1_000_000;
	my $cost = $parts->{writes} ? $costs->of($request) : $costs->asked($request);
	my $kind = join ' ', $parts->{under} // $parts->{collection}, grep { @{ $parts->{$_} // [] } } qw(filter sort include);

	# what ends by the timeout, or by a limit on memory, is legal
	die $json->encode([ $request, $cost ]) if $cost->{status} >= 500 && $cost->{status} != 503;
	print 'given up: ', $json->encode([ $request, $cost ]), "\n" if $cost->{ended};
	return { kind => $kind, parts => $parts, request => $request, cost => $cost };
}

# The worst of each kind of request are kept, so that not all are the same.
sub keep
{
	my ($best, $figure, $found) = @_;
	my $same = first { $_->{kind} eq $found->{kind} } @$best;

	if (!$same) { push @$best, $found }
	elsif (($same->{cost}{$figure} // 0) < ($found->{cost}{$figure} // 0)) { $best = [ map { $_ == $same ? $found : $_ } @$best ] }
	my @sorted = sort { ($b->{cost}{$figure} // 0) <=> ($a->{cost}{$figure} // 0) } @$best;
	return [ splice @sorted, 0, 16 ];
}

my %best = map { $_ => [] } @figures;
my %tried;
my ($asked, $refused) = (0, 0);
my $end = time + $seconds;
my @kept = $keep && -e $keep ? map { $json->decode($_) } split /\n/, EntityApi::Test::slurp($keep) : ();

while (time < $end)
{
	my $from = $best{ any(@figures) };
	my $parts = @kept ? shift @kept : @$from && rand() < 0.8 ? changed(any(@$from)->{parts}) : changed(fresh());

	next if $tried{ $json->encode($parts) }++;
	my $found = found($parts) or next;
	$asked++;
	if ($found->{cost}{status} >= 300 && $found->{cost}{status} != 503) { $refused++; next }
	$best{$_} = keep($best{$_}, $_, $found) for @figures;
}

print "$asked asked, $refused refused\n";
my %shown;
my @worst = grep { !$shown{ $json->encode($_->{request}) }++ } map { @$_ } @best{@figures};
print $json->encode({ %{ $_->{request} }, cost => $_->{cost} }), "\n" for @worst;
if ($keep)
{
	open my $file, '>', $keep or die "$keep: $!\n";
	print $file $json->encode($_->{parts}), "\n" for @worst;
	close $file or die "$keep: $!\n";
}
