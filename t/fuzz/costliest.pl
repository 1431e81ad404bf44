#!/usr/bin/perl
#
# Look for the costliest legal request on 100 000 rows: filters, paths, sort
# keys, includes, fields, pages, operations and relationship writes of
# examples/billing, changed at random; what costs more is changed on.
#
#	perl -It/lib t/fuzz/costliest.pl [--seconds N] [--seed N] [--by ms|rows|bytes]
#
# The environment is that of the TAP tests.  Prints the worst, one JSON object a
# line; t/costs/corpus.jsonl keeps what was found, t/113_costs.t holds it.

use strict;
use warnings;

use Getopt::Long;
use JSON::PP ();
use List::Util qw(first max shuffle);
use Time::HiRes qw(time);

use EntityApi::Test::Costs;

my ($seconds, $seed, $by) = (300, time, 'ms');
GetOptions('seconds=i' => \$seconds, 'seed=i' => \$seed, 'by=s' => \$by)
  or die "usage: $0 [--seconds N] [--seed N] [--by ms|rows|bytes]\n";
srand $seed;
print "seed $seed\n";

my $json = JSON::PP->new->canonical->utf8;
$ENV{ENTITYAPI_COSTS_ROWS} //= 100_000;
my $costs = EntityApi::Test::Costs->new;

# Attributes with literals, and relationships with what they lead to
my %entities = (
	customers => [ { name => [ 'Customer x', '%a%' ], city => [ 'City 1', '%7%' ], email => [ 'c1@example.com', '%9%' ], customerSince => ['2022-01-01'] },
		{ country => 'countries', invoices => 'invoices' }, [] ],
	countries => [ { code => [ 'AA', '%B%' ], name => [ 'Country 1', '%try%' ] }, {}, [] ],
	invoices => [ { number => [ 'big-7', '%g-%7%' ], status => ['PAID'], total => ['17.5'], note => [ 'x', '%e%a%c%' ], dueOn => ['2024-06-01'], issuedAt => ['2024-06-01'] },
		{ customer => 'customers', lineItems => 'lineItems', payments => 'payments', tags => 'tags' }, [] ],
	lineItems => [ { position => ['2'], description => [ 'Line', '%ab%' ], quantity => ['5'], unitPrice => ['50'] },
		{ invoice => 'invoices' }, ['billable'] ],
	payments => [ { amount => ['17'], reference => [ 'ref 7', '%7' ], paidOn => ['2024-06-01'] }, { invoice => 'invoices' }, [] ],
	tags => [ { name => [ 'big-1', '%g%1%' ] }, { invoices => 'invoices' }, [] ]);
my %to_many = map { $_ => 1 } qw(invoices lineItems payments tags);

sub any { return $_[ rand @_ ] }

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
	my $operator = any($literals->[1] ? qw(=ilike= =like= =ilike=) : (), qw(== != =gt= =le= =in= =out= =isnull=));

	return "$selector=isnull=" . any(qw(true false)) if $operator eq '=isnull=';
	$operator = '==' if $operator =~ /gt|le/ && $attribute eq 'status';
	return "$selector$operator('" . join("','", map { "$literals->[0]" } 1 .. 1 + rand 3) . "')" if $operator =~ /in|out/;
	return "$selector$operator'" . ($operator =~ /like/ ? $literals->[1] =~ s/%/%25/gr : $literals->[0]) . "'";
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
	my $collection = any(sort keys %entities);

	return { collection => 'operations', writes => [ write_of() ] } if rand() < 0.2;
	return { collection => $collection, filter => [], sort => [], include => [], size => 100 };
}

sub id { return sprintf '01900000-0000-7%03d-8000-%012x', @_ }

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
	return { method => 'GET', target => "/$parts->{collection}?" . join('&', @query) =~ s/ /%20/gr };
}

my @best;
my %tried;
my ($asked, $refused) = (0, 0);
my $end = time + $seconds;

while (time < $end)
{
	my $parts = @best && rand() < 0.8 ? changed((any(@best))->{parts}) : changed(fresh());
	my $request = request($parts);

	next if length $request->{target} > 8000 || length($json->encode($request)) > 1_000_000
	  || (!$request->{body} && $tried{ $request->{target} }++);
	my $cost = $costs->of($request);
	$asked++;
	if ($cost->{status} >= 300 && $cost->{status} != 503)
	{
		$refused++;
		die $json->encode([ $request, $cost ]) if $cost->{status} >= 500;
		next;
	}

	# the worst of each kind of request is kept, so that not all are the same
	my $kind = join ' ', $parts->{collection}, grep { @{ $parts->{$_} // [] } } qw(filter sort include);
	my $same = first { $_->{kind} eq $kind } @best;
	my $found = { kind => $kind, parts => $parts, request => $request, cost => $cost };
	if (!$same)
	{
		push @best, $found;
	}
	elsif (($same->{cost}{$by} // 0) < ($cost->{$by} // 0))
	{
		%$same = %$found;
	}
	@best = sort { ($b->{cost}{$by} // 0) <=> ($a->{cost}{$by} // 0) } @best;
	splice @best, 16 if @best > 16;
}
print "$asked asked, $refused refused\n";
print $json->encode({ %{ $_->{request} }, cost => $_->{cost} }), "\n" for @best;
