# What Citus adds to the instructions of a request, and of a reader's statement, on
# the tenant's own node, counted as t/engine/instructions.t counts them, beside a
# server without Citus that has the same rows: numbers that repeat where times do
# not.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Callgrind;
use EntityApi::Test::Lists;

use constant { CALLS => 10, STEADY => 4, ROWS => 2000 };

if (my $why = EntityApi::Test::Citus::missing() // EntityApi::Test::Callgrind::missing()) { plan skip_all => $why }

my $media = 'application/vnd.api+json';
my @requests = @EntityApi::Test::Lists::requests;

# Somebody has written on the node before each, so that it looks whether what
# others change concerns it.  That is 25 000 instructions, with the lock of the
# table that others count on, and of less: one node alone knows the caller by
# the pages of his rows.
push @requests, { %{ $requests[0] }, name => "$requests[0]{name}, after a write", aim => 1.48, before => 'select pg_current_xact_id()' };
my @statements = @EntityApi::Test::Lists::statements;

sub message
{
	my ($request, $token) = @_;
	my ($target, $body) = EntityApi::Test::Lists::given($request, 7);
	my $method = $request->{method} // 'GET';

	return EntityApi::Test::Callgrind::message($method, $target, ($method eq 'PATCH' ? "if-match: *\n" : '')
		  . "authorization: Bearer $token\naccept: $media\n" . (defined $body ? "content-type: $media\n" : ''), $body);
}

# How many each request takes on the node of a tenant
sub counted
{
	my ($name, $cluster, $node, $tenant, $user) = @_;

	EntityApi::Test::Lists::fill($cluster, $tenant, ROWS);
	$cluster->psql("create role bi login in role entityapi_reader; select entityapi.map_role('bi', '$user->{username}')");
	my ($counts, $statuses, $run) = EntityApi::Test::Callgrind::count($node, [ map { my $request = $_; sub { (message($request, $user->{accessToken}), $request->{before}) } } @requests ], CALLS, STEADY);
	my @wanted = map { (($_->{method} // '') eq 'POST' ? 201 : 200) x CALLS } @requests;

	is_deeply($statuses, \@wanted, "every request is answered $name")
	  or diag substr($run->{out}, 0, 600), $run->{err} =~ s/^==.*\n//mgr;
	return @$counts, map { EntityApi::Test::Callgrind::statement($node, 'bi', EntityApi::Test::Lists::statement($_, $tenant, 7)) } @statements;
}

sub started
{
	my ($cluster, @node) = @_;

	$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
	return EntityApi::Test->shim($cluster, @node, pool_size => 1);
}

my $alone = EntityApi::Test->cluster(nodes => 1);
my $shim = started($alone);
my $tenant = $shim->tenant('alone')->{id};
my @without = counted('without Citus', $alone, $alone, $tenant, $shim->user($tenant, 'ed', ['Editor']));
$shim->stop;

my $cluster = EntityApi::Test->cluster(nodes => 2);
my (undef, $there) = $cluster->place(started($cluster, node => 0), 'Editor');
my @with = counted('with it', $cluster, $cluster->node($there->{node}), @$there{qw(id user)});

for my $i (0 .. $#with)
{
	my ($name, $most) = @{ (@requests, @statements)[$i] }{qw(name aim)};
	my $ratio = $with[$i] / $without[$i];

	ok($ratio <= $most, sprintf '%s: %d instead of %d, %.2f times, at most %.2f', $name, $with[$i], $without[$i], $ratio, $most);
}

done_testing;
