package Bench;

=head1 NAME

Bench - what the comparisons of bench/run and bench/peers/run share

=head1 DESCRIPTION

The service that the environment names (ENTITYAPI_URL and the others of
DATA/env), with the rows of data.sql in two tenants and an accountant of the
first; requests to it; wrk; and RESULTS.md, whose parts have several writers.

=cut

use strict;
use warnings;

use Exporter 'import';
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP ();
use List::Util qw(max min sum0);

our @EXPORT = qw($cores $customer $dir $here $json $pool $rounds $seconds $threads $type $url CONNECTIONS
  command expect figure_lines free_port fresh_token median prepare ratio_cell ratios send_request state_lines tidy wrk
  write_part);

use constant CONNECTIONS => 16;
use constant TOKEN_AGE   => 600;    # seconds, of 900 that it lives

our $here = dirname(__FILE__);
our $url = $ENV{ENTITYAPI_URL} // '';
our $seconds = $ENV{BENCH_SECONDS} || 2;
our $rounds = $ENV{BENCH_ROUNDS} || 3;
our $cores = 0 + `getconf _NPROCESSORS_ONLN` || 1;
our $pool = $cores > 16 ? 32 : $cores > 2 ? 2 * $cores : 4;    # as the service by itself
our $threads = min($cores, CONNECTIONS);
our $dir = tempdir('entityapi.XXXXXXXX', TMPDIR => 1, CLEANUP => 1);
our $json = JSON::PP->new->utf8->canonical->space_after;
our $type = 'application/vnd.api+json';

# The identifiers of data.sql end in 12 digits; these come before them.
our $customer = '01900000-0000-7101-8000-';

my $http = HTTP::Tiny->new(keep_alive => 1, timeout => 60);
my ($user, $token, $token_time);


# --- the service, and its data ----------------------------------------------

# Returns the tenant that is asked.
sub prepare
{
	die "bench: ENTITYAPI_URL is not set\n" if $url eq '';
	my $word = join '', map { ('a' .. 'z', 0 .. 9)[ rand 36 ] } 1 .. 20;
	my $root = login($ENV{ENTITYAPI_SUPERADMIN_USERNAME},
		$ENV{ENTITYAPI_SUPERADMIN_PASSWORD});
	my @tenants = map {
		call($root, POST => '/manage/tenants',
			{ name => "Bench $_", slug => "bench-$_" })->{id}
	} 1, 2;

	$user = { name => 'bench-accountant', password => $word };
	call($root, POST => "/manage/tenants/$tenants[0]/users",
		{   username          => $user->{name},
			roles             => ['Accountant'],
			temporaryPassword => "first-$word" });
	call(login($user->{name}, "first-$word"),
		POST => '/auth/change-password',
		{ currentPassword => "first-$word", newPassword => $word });

	$ENV{PGTZ} = 'UTC';
	command('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-v', "one=$tenants[0]",
		'-v', "two=$tenants[1]", '-f', "$here/data.sql");
	return $tenants[0];
}

# Have the tables as they were, for whoever comes next.  What wrk had sent when
# it ended is still being done: with it some customers would have a hundred
# invoices more, and answers that are larger than expected.  Takes another
# schema and database than those of the service.
sub tidy
{
	my ($schema, @database) = @_;
	my @psql = ('psql', '-XAtq', map { ('-d', $_) } @database);
	my $gone;

	$schema //= 'app';

	do
	{
		select undef, undef, undef, 0.3;
		$gone = command(@psql, '-c',
			"WITH gone AS (DELETE FROM $schema.invoice WHERE number !~ '^B-'"
			  . ' RETURNING 1) SELECT count(*) FROM gone');
	} while ($gone > 0);
	command(@psql, '-c', "VACUUM $schema.invoice, $schema.customer");
	return;
}

sub login
{
	my ($name, $password) = @_;

	return call(undef, POST => '/auth/login',
		{ username => $name, password => $password })->{accessToken};
}

# Access tokens live for some minutes only; no login is ever measured.
sub fresh_token
{
	if (!defined $token_time || time - $token_time > TOKEN_AGE)
	{
		$token = login($user->{name}, $user->{password});
		$token_time = time;
	}
	return $token;
}

sub call
{
	my ($by, $method, $path, $body) = @_;
	my $answer = send_request($by, $method, $path,
		defined $body ? $json->encode($body) : '');

	die "bench: $method $path: $answer->{status}\n$answer->{content}\n"
	  if !$answer->{success};
	return $json->decode($answer->{content});
}

sub send_request
{
	my ($by, $method, $path, $body, $as) = @_;
	my %headers;

	$headers{Authorization} = "Bearer $by" if defined $by;
	$headers{'Content-Type'} = $as // ($path =~ m{^/api/}
		? $type : 'application/json') if $body ne '';
	return $http->request($method, $path =~ m{^/} ? $url . $path : $path,
		{ headers => \%headers, $body ne '' ? (content => $body) : () });
}

# Run a command; returns what it prints.
sub command
{
	my @command = @_;

	open my $out, '-|', @command or die "bench: $command[0]: $!\n";
	my $text = do { local $/; <$out> };
	close $out or die "bench: @command[0 .. min(3, $#command)] ... failed ($?)\n";
	return $text // '';
}

sub free_port
{
	return IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1')->sockport;
}


# --- measurements -----------------------------------------------------------

# Names and numbers differ in length, by less than a tenth of the whole.  wrk
# counts the head, too.
sub expect
{
	my ($work, $prefix, $answer) = @_;
	my %headers = %{ $answer->{headers} };
	my $body = length $answer->{content};
	my $head = length("HTTP/1.1 $answer->{status} $answer->{reason}\r\n\r\n")
	  + sum0(map { length("$_: $headers{$_}\r\n") } keys %headers);

	@$work{"${prefix}least", "${prefix}most"} =
	  map { int($_ * ($head + $body)) } 0.9, 1.1;
	@$work{qw(body_least body_most)} = map { int($_ * $body) } 0.9, 1.1
	  if $prefix eq '';
	return;
}

# Of a work: "method", "path", "body" and "type" of its requests; "least" and
# "most", between which the mean size of answers is to be, with the given
# prefix; "fault", a text that no answer may have.
sub wrk
{
	my ($work, $to, $by, $prefix, $connections) = @_;

	local $ENV{BENCH_METHOD} = $work->{method};
	local $ENV{BENCH_PATH} = $work->{path};
	local $ENV{BENCH_BODY} = $work->{body};
	local $ENV{BENCH_TYPE} = $work->{type};
	local $ENV{BENCH_LEAST} = $work->{"${prefix}least"};
	local $ENV{BENCH_MOST} = $work->{"${prefix}most"};
	local $ENV{BENCH_FAULT} = $work->{fault} // '';
	local $ENV{BENCH_TOKEN} = $by;
	my $text = command('sh', '-c', 'ulimit -n $(ulimit -H -n); exec "$@"', '-', 'wrk',
		'-t', $threads, '-c', $connections // CONNECTIONS, '-d',
		"${seconds}s", '-s', "$here/requests.lua", $to);

	$text =~ /^RESULT (\S+) (\S+) (\S+) (\S+)/m
	  or die "bench: wrk says\n$text\n";
	return { rate => $1, p50 => $2, p99 => $3, faults => $4 };
}


# --- what came out ----------------------------------------------------------

sub median
{
	my @sorted = sort { $a <=> $b } @_;

	return @sorted % 2 ? $sorted[ $#sorted / 2 ]
	  : ($sorted[ @sorted / 2 - 1 ] + $sorted[ @sorted / 2 ]) / 2;
}

# The ratios of a side to another, round by round
sub ratios
{
	my ($work, @sides) = @_;
	my ($ours, $theirs) = map { $work->{results}{$_} } @sides;

	return map { $ours->[$_]{rate} / ($theirs->[$_]{rate} || 1) } 0 .. $#$ours;
}

sub ratio_cell
{
	my @ratios = @_;

	return @ratios ? sprintf('**%.2f** (%.2f to %.2f)', median(@ratios),
		min(@ratios), max(@ratios)) : '';
}

sub figure_lines
{
	my ($work, @sides) = @_;
	my @lines = ('| work | side | per second | p50 | p99 | faults |',
		'|---|---|---|---|---|---|');

	for my $work (@$work)
	{
		for my $side (@sides ? @sides : sort keys %{ $work->{results} })
		{
			my @results = @{ $work->{results}{$side} };
			my @rates = map { $_->{rate} } @results;

			push @lines, sprintf('| %s | %s | %d (%d to %d) | %d us | %d us | %d |',
				$work->{title}, $side, median(@rates), min(@rates), max(@rates),
				median(map { $_->{p50} } @results),
				median(map { $_->{p99} } @results),
				sum0(map { $_->{faults} } @results));
		}
	}
	return @lines;
}

sub commit
{
	my $commit = `git -C '$here' rev-parse --short HEAD 2>/dev/null`;
	my $changes =
	  `git -C '$here' status --porcelain -- ../extension ../shim 2>/dev/null`;

	chomp $commit;
	return $commit eq '' ? 'no commit' : $changes eq '' ? $commit
	  : "$commit with changes";
}

sub memory
{
	open my $in, '<', '/proc/meminfo' or return 'unknown';
	my ($line) = grep { /^MemTotal/ } <$in>;
	close $in;
	return sprintf '%.0f GB', ($line =~ /(\d+)/)[0] / 1024 / 1024;
}

sub processor
{
	open my $in, '<', '/proc/cpuinfo' or return 'unknown processor';
	my ($line) = grep { /^model name/ } <$in>;
	close $in;
	return ($line // '') =~ /:\s*(.*\S)/ ? $1 : 'unknown processor';
}

# What the cluster has been told, but for where it is.
sub server_settings
{
	return join ', ', split /\n/, command('psql', '-XAtqc', <<~'SQL');
		SELECT name || ' = ' || current_setting(name) FROM pg_settings
		WHERE source IN ('configuration file', 'command line', 'environment variable')
		AND name !~ 'director|_file|listen|^port$|^log_|timezone|DateStyle|^lc_|default_text|stderr|^logging|socket|cluster_name|^dynamic_'
		ORDER BY 1
		SQL
}

# What was measured, and where
sub state_lines
{
	my $server = command('psql', '-XAtqc', 'SHOW server_version') =~ s/ .*//sr;

	return ("- commit: @{[commit()]}",
		"- machine: @{[processor()]}, $cores cores, @{[memory()]} of memory; load, service and"
		  . ' server on it together',
		"- PostgreSQL $server: @{[server_settings()]}");
}

# Print a part of RESULTS.md, and put it in place of the part with the same
# headline, or behind all.  The part with the headline of the first level is
# the first; the others stay as they are.
sub write_part
{
	my ($text) = @_;
	my ($head) = $text =~ /^(#.*)/;
	my $first = $head =~ /^# /;
	my $results = '';

	if (open my $in, '<', "$here/RESULTS.md")
	{
		local $/;
		$results = <$in> // '';
		close $in;
	}
	my @parts = grep { /\S/ } split /^(?=## )/m, $results;
	s/\n*\z/\n/ for $text, @parts;
	my ($at) = grep { $first ? $parts[$_] =~ /^# / : $parts[$_] =~ /^\Q$head\E$/m } 0 .. $#parts;
	splice @parts, $at // ($first ? 0 : @parts), defined $at ? 1 : 0, $text;

	open my $out, '>', "$here/RESULTS.md" or die "bench: RESULTS.md: $!\n";
	print {$out} join "\n", @parts;
	close $out or die "bench: RESULTS.md: $!\n";
	print $text;
	return;
}

1;
