package EntityApi::Test::Callgrind;

=head1 NAME

EntityApi::Test::Callgrind - how many instructions requests take

=head1 DESCRIPTION

Callgrind counts them inside of entityapi.handle(), in a single backend: numbers
that repeat where times do not.  The database is vacuumed before.

=head2 missing

Why nothing can be counted here, or nothing.

=head2 message($method, $target, $headers, $body)

A message as the shim sends it, for count(): the headers as lines.

=head2 count($cluster, \@requests, $calls, $steady)

Each request is a function of the number of its call, which returns a message
and, if there is to be one, a statement that is run before.  It is made so often;
counted are the last ones, and their median is returned with the statuses of all
calls, as arrays in the order of requests; then the run, and for each request
what its last call called: by the name of a function a hash of those that it
called.

=head2 statement($cluster, $role, $sql)

How many a statement takes of a session of that role which has run it before,
from its text to its commit.

=cut

use strict;
use warnings;

use EntityApi::Test;

# Plans that are kept are planned for their values five times, and once without.
use constant { FEW => 10, MORE => 20 };

sub missing
{
	return 'valgrind, which counts, is not installed' if (qx(valgrind --version 2>&1) // '') !~ /^valgrind/;
	return 'the numbers are those of direct scans, which are switched off here' if ($ENV{ENTITYAPI_TEST_CONF} // '') =~ /direct_scans/;
	return;
}

sub message
{
	my ($method, $target, $headers, $body) = @_;

	return "$method /api/v1$target 127.0.0.1\nx-request-id: 01980000-0000-4000-8000-000000000000\nhost: localhost\n$headers\n" . ($body // '');
}

# The graph of a dump, in which each name stands once, with a number.
sub _calls
{
	my ($file) = @_;
	my (%names, %calls, $in);

	for (split /\n/, EntityApi::Test::slurp($file))
	{
		my ($called, $number, $name) = /^(c?)fn=\((\d+)\)(?: ([^'\s]+))?/ or next;

		$names{$number} = $name if defined $name;
		$calls{$in}{ $names{$number} } = 1 if $called;
		$in = $names{$number} if !$called;
	}
	return \%calls;
}

# What a single backend has done
sub _run
{
	my ($cluster, $script, @callgrind) = @_;

	return EntityApi::Test::run(
		[ 'valgrind', '--tool=callgrind', @callgrind, EntityApi::Test::private_program('postgres'), '--single', '-D', $cluster->data,
			'-c', 'search_path=pg_catalog, pg_temp', '-c', 'client_min_messages=error', '-c', 'log_min_messages=fatal', 'entityapi' ],
		in => $script, service => 1);
}

sub _total { my ($file) = @_; return EntityApi::Test::slurp($file) =~ /^(?:totals|summary): (\d+)/m ? $1 : die "no count\n" }

sub statement
{
	my ($cluster, $role, $sql) = @_;
	my $file = EntityApi::Test::folder('instructions') . '/count';

	$cluster->stop('fast');
	my ($few, $more) = map {
		my $run = _run($cluster, "set session authorization $role\n" . "$sql\n" x $_, "--callgrind-out-file=$file");

		die "$sql: $run->{err}\n" if $run->{out} !~ /\t 1: \w+ = "/;
		_total($file);
	} FEW, MORE;
	$cluster->start;
	return ($more - $few) / (MORE - FEW);
}

sub count
{
	my ($cluster, $requests, $calls, $steady) = @_;
	my $folder = EntityApi::Test::folder('instructions');

	# as the shim's role, which takes the way through the door
	my $script = join '', "set session authorization entityapi_shim\n", map {
		my $request = $_;
		map {
			my ($message, $before) = $request->($_);

			(defined $before ? "$before\n" : '') . "select entityapi.handle('\\x" . unpack('H*', $message) . "');\n"
		} 1 .. $calls
	} @$requests;

	$cluster->psql('vacuum analyze');
	$cluster->stop('fast');
	my $run = _run($cluster, $script, "--callgrind-out-file=$folder/count", '--toggle-collect=ea_sql_handle_message', '--dump-after=ea_sql_handle_message');
	$cluster->start;

	my @statuses = map { pack 'H*', $_ } $run->{out} =~ /handle = "\\x(\w{6})/g;
	my @counts = map {
		my $i = $_;
		my @last = map {
			_total("$folder/count." . ($i * $calls + $_))
		} $calls - $steady + 1 .. $calls;

		(sort { $a <=> $b } @last)[ $steady / 2 ];
	} 0 .. $#$requests;
	my @called = map { _calls("$folder/count." . $calls * ($_ + 1)) } 0 .. $#$requests;
	return (\@counts, \@statuses, $run, \@called);
}

1;
