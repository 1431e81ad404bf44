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
use EntityApi::Test::Conformance;

use constant { CALLS => 10, STEADY => 4 };

my $file = EntityApi::Test::checkout() . '/bench/instructions.txt';
my ($server) = qx(@{[EntityApi::Test::server_program('postgres')]} --version) =~ /(\d+)/;
my $valgrind = qx(valgrind --version 2>&1) // '';

plan skip_all => "valgrind, which counts, is not installed" if $valgrind !~ /^valgrind/;
plan skip_all => 'the numbers are those of direct scans, which are switched off here' if ($ENV{ENTITYAPI_TEST_CONF} // '') =~ /direct_scans/;

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

sub statement
{
	my ($request, $n) = @_;
	my (undef, $method, $target, $document) = @$request;
	my $message = "$method /api/v1$target 127.0.0.1\n"
	  . "x-request-id: 01980000-0000-4000-8000-000000000000\n"
	  . ($method eq 'PATCH' ? "if-match: *\n" : '')
	  . "host: localhost\nauthorization: Bearer $editor->{token}{accessToken}\n"
	  . 'accept: ' . ($target eq '/operations' ? $atomic : $plain) . "\n"
	  . ($document ? 'content-type: ' . ($target eq '/operations' ? $atomic : $plain) . "\n" : '')
	  . "\n" . ($document ? $json->encode($document->($n)) : '');

	return "select entityapi.handle('\\x" . unpack('H*', $message) . "');\n";
}

# --- the count --------------------------------------------------------------

my $folder = EntityApi::Test::folder('instructions');

# as the shim's role, which takes the way through the door
my $script = join '', "set session authorization entityapi_shim\n", map { my $request = $_; map { statement($request, $_) } 1 .. CALLS } @requests;

$cluster->psql('vacuum analyze');
$cluster->stop('fast');
my $run = EntityApi::Test::run(
	[ 'valgrind', '--tool=callgrind', "--callgrind-out-file=$folder/count",
		'--toggle-collect=ea_sql_handle_message', '--dump-after=ea_sql_handle_message',
		EntityApi::Test::private_program('postgres'), '--single', '-D', $cluster->data,
		'-c', 'search_path=pg_catalog, pg_temp', '-c', 'client_min_messages=error', '-c', 'log_min_messages=fatal', 'entityapi' ],
	in => $script, service => 1);
$cluster->start;

my @statuses = map { pack 'H*', $_ } $run->{out} =~ /handle = "\\x(\w{6})/g;
my @wanted = map { (/create/ ? 201 : /found/ ? 404 : 200) x CALLS } map { $_->[0] } @requests;
is_deeply(\@statuses, \@wanted, 'every request is answered')
  or diag substr($run->{out}, 0, 600), $run->{err} =~ s/^==.*\n//mgr;

my %count;
for my $i (0 .. $#requests)
{
	my @last = map {
		EntityApi::Test::slurp("$folder/count." . ($i * CALLS + $_)) =~ /^(?:totals|summary): (\d+)/m ? $1 : die "no count\n"
	} CALLS - STEADY + 1 .. CALLS;

	$count{ $requests[$i][0] } = (sort { $a <=> $b } @last)[ STEADY / 2 ];
}

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
