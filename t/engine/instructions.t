# How many instructions a request takes inside of entityapi.handle(), counted by
# callgrind in a single backend: a number that repeats where times do not.  None
# may grow by more than a tenth over bench/instructions.txt, unless that file is
# changed on purpose:
#
#	INSTRUCTIONS=write make test TESTS=t/engine/instructions.t

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Callgrind;
use EntityApi::Test::Conformance;

use constant { CALLS => 10, STEADY => 4 };

my $file = EntityApi::Test::checkout() . '/bench/instructions.txt';
my ($server) = qx(@{[EntityApi::Test::server_program('postgres')]} --version) =~ /(\d+)/;
my $missing = EntityApi::Test::Callgrind::missing();

plan skip_all => $missing if defined $missing;

# --- the requests -----------------------------------------------------------

my $editor = EntityApi::Test::Conformance->begin('library');
my $cluster = $editor->cluster;
my $json = JSON::PP->new->canonical;
my $plain = $EntityApi::Test::Conformance::type;
my $atomic = $EntityApi::Test::Conformance::atomic;

my $ann = $editor->made(authors => { name => 'Ann', rank => 3 });
my @genres = map { $editor->made(genres => { name => "genre $_" }) } 1 .. 5;
my @works = map {
	$editor->made(works => { title => "Work $_", price => 1.5 * $_ }, { author => $ann, genres => \@genres })
} 1 .. 30;
my $desk = $editor->made(desks => { number => 1 });

# So many that the planner takes an index for one of them
$cluster->psql("insert into app.desk (tenant_id, id, number, created_at, updated_at) select tenant_id, gen_random_uuid(), 1000 + i, now(), now() from app.desk, generate_series(1, 3000) i; analyze app.desk; analyze");

sub add { return { op => 'add', data => $editor->document(notes => { text => "x$_[0]" }, { work => $works[ $_[0] ] }) } }

# name, method, target, document of the n-th call
my @requests = (
	[ 'one resource',           GET => "/desks/$desk->{id}" ],
	[ 'one with relationships', GET => "/works/$works[3]{id}" ],
	[ 'list of 20',             GET => '/works?fields[works]=title,price&page[totals]=false' ],
	[ 'filtered list',          GET => '/works?filter=price=gt=3;title==W*,title==Work*&sort=-price&fields[works]=title&page[totals]=false' ],
	[ 'list with relationships', GET => '/works?page[totals]=false' ],
	[ 'list with include',      GET => '/works?include=author,genres&page[totals]=false' ],
	[ 'create',                 POST => '/works', sub { { data => $editor->document(works => { title => "New $_[0]" }, { author => $ann }) } } ],
	[ 'update',                 PATCH => "/desks/$desk->{id}", sub { { data => { type => 'desks', id => $desk->{id}, attributes => { number => $_[0] } } } } ],
	[ 'ten adds',               POST => '/operations', sub { { 'atomic:operations' => [ map { add($_) } 1 .. 10 ] } } ],
	[ 'not found',              GET => "/desks/$EntityApi::Test::Conformance::nobody" ]);

sub message
{
	my ($request, $n) = @_;
	my (undef, $method, $target, $document) = @$request;
	my $media = $target eq '/operations' ? $atomic : $plain;

	return EntityApi::Test::Callgrind::message($method, $target,
		($method eq 'PATCH' ? "if-match: *\n" : '') . "authorization: Bearer $editor->{token}{accessToken}\naccept: $media\n"
		  . ($document ? "content-type: $media\n" : ''), $document ? $json->encode($document->($n)) : '');
}

# --- the count --------------------------------------------------------------

my ($counts, $statuses, $run, $called) = EntityApi::Test::Callgrind::count($cluster, [ map { my $request = $_; sub { message($request, $_[0]) } } @requests ], CALLS, STEADY);
my @wanted = map { (/create/ ? 201 : /found/ ? 404 : 200) x CALLS } map { $_->[0] } @requests;
is_deeply($statuses, \@wanted, 'every request is answered')
  or diag substr($run->{out}, 0, 600), $run->{err} =~ s/^==.*\n//mgr;

my %count = map { $requests[$_][0] => $counts->[$_] } 0 .. $#requests;

# While others write a caller's rows are known by their pages, and nobody asks how
# long their files are.  While nothing is written not even those are looked at.
my $find = qr/^(?:ea_session_lookup|look_up|find_row|find_in_place|has_page|ea_kept_sessions_find_rows|are_there)/;
my $of_caller = sub { my ($i) = @_; return { map { %{ $called->[$i]{$_} } } grep { /$find/ } keys %{ $called->[$i] } } };
my ($one) = grep { $requests[$_][0] eq 'one resource' } 0 .. $#requests;
my ($write) = grep { $requests[$_][0] eq 'update' } 0 .. $#requests;
ok($of_caller->($write){ea_seen_row_is_there}, 'the caller of an update is known by the pages of his rows');
ok(!$of_caller->($write){heap_fetch}, 'which are not read');
ok(!$of_caller->($write){RelationGetNumberOfBlocksInFork}, 'without a question to the file system');
ok(!(grep { $called->[$write]{$_}{ExecutorStart} } keys %{ $called->[$write] }), 'and his row is changed without the executor');
ok(!$of_caller->($one){$_}, "that of one resource, while nothing is written, without them: $_") for qw(ea_seen_row_is_there heap_fetch);

# --- the comparison ---------------------------------------------------------

my $kept = -e $file ? EntityApi::Test::slurp($file) : '';
my ($version) = $kept =~ /PostgreSQL (\d+)/;

if (($ENV{INSTRUCTIONS} // '') eq 'write')
{
	open my $out, '>', $file or die "$file: $!\n";
	print $out "# Instructions inside of entityapi.handle(), PostgreSQL $server (t/engine/instructions.t)\n",
	  map { sprintf "%-24s %9d\n", $_->[0], $count{ $_->[0] } } @requests;
	close $out;
	pass('written anew');
}
elsif (($version // 0) != $server)
{
	SKIP: { skip "bench/instructions.txt is not of PostgreSQL $server", 1 }
}
else
{
	for my $name (map { $_->[0] } @requests)
	{
		my ($before) = $kept =~ /^\Q$name\E +(\d+)$/m;

		ok(defined $before && $count{$name} <= 1.1 * $before, "$name: $count{$name}")
		  or diag "$name took " . ($before // 'nothing') . " instructions before, now $count{$name}";
		diag "$name takes $count{$name} instructions only, no longer $before: say so in bench/instructions.txt"
		  if defined $before && $count{$name} < 0.9 * $before;
	}
}

done_testing;
