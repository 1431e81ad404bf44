package EntityApi::Test::Costs;

=head1 NAME

EntityApi::Test::Costs - what a request costs, on many rows

=head1 SYNOPSIS

	my $costs = EntityApi::Test::Costs->new;
	my $cost = $costs->of({ method => 'GET', target => '/invoices?sort=note' });
	print "$cost->{status} $cost->{ms} $cost->{rows} $cost->{bytes}\n";

=head1 DESCRIPTION

A cluster with examples/billing and t/data/costs/rows.sql, and one session that asks
entityapi.handle() as an Accountant.  There are as many invoices as
ENTITYAPI_COSTS_ROWS says, 5000 without it.  Other arguments of C<new> are
settings of the session.  A request's C<body> is a structure; who asks with a large
one again and again gives its C<text>, too.  C<rows> of a request are the rows that the tables'
scans have returned, with those of indexes; nothing else has an influence on
them.  C<cpu> is the processor time of the backend in ms, C<memory> by how many
bytes it was larger at its largest than before, without what it shares.

C<asked> is the same request through a shim with one connection, as a client
asks it: what it writes stays.  It knows no C<rows>.
=cut

use strict;
use warnings;

use EntityApi::Test;
use JSON::PP ();
use List::Util ();
use Time::HiRes ();

my $json = JSON::PP->new->canonical->utf8;

# Processor time of a backend, in ms
use constant SPENT => <<'SQL';
create function spent() returns float language sql as
$$ select coalesce(split_part(pg_read_file('/proc/self/schedstat', 0, 100, true), ' ', 1)::float / 1e6,
	10 * (f[12]::float + f[13]::float)) from string_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '^.*\) ', ''), ' ') f $$;
SQL

sub new
{
	my ($class, %settings) = @_;
	my $cluster = EntityApi::Test->cluster(conf => ['max_wal_size = 4GB', 'fsync = off']);

	$cluster->apply(EntityApi::Test::checkout() . '/examples/billing');
	my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
	my $tenant = $shim->tenant_here('acme')->{id};
	my $user = $shim->user($tenant, 'ann', ['Accountant']);
	my $rows = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/costs/rows.sql');

	my $n = $ENV{ENTITYAPI_COSTS_ROWS} // 5000;

	$rows =~ s/:'tenant'/'$tenant'/g;
	$rows =~ s/:n\b/$n/g;
	$cluster->psql($rows);
	$cluster->psql(SPENT . <<~'SQL');
		vacuum analyze;
		create function visited() returns bigint language sql set citus.override_table_visibility = off as
		$$ select sum(pg_stat_get_xact_tuples_returned(oid))::bigint
			from pg_class where relkind in ('r', 'i') and relnamespace = 'app'::regnamespace $$;
		create function memory(kind text) returns bigint language sql as
		$$ select 1024 * (regexp_match(pg_read_file('/proc/self/status'), kind || ':\s+(\d+)'))[1]::bigint $$;
		create function own_memory(kind text) returns bigint language sql as
		$$ select memory(kind) - memory('RssShmem') - memory('RssFile') $$;
		create function cost(method text, target text, headers jsonb, body text, out status int, out bytes int, out ms float, out cpu float, out rows bigint, out memory bigint, out code text, out place text)
		language plpgsql as $$
		declare
			answer record;
			began timestamptz;
			before bigint := visited();
			spent_before float := spent();
			memory_before bigint := own_memory('VmRSS');
		begin
			began := clock_timestamp();
			begin
				select h.* into answer from entityapi.handle(method, target, headers, convert_to(body, 'UTF8'), null) h;
				status := answer.status;
				bytes := octet_length(answer.body);
			exception when query_canceled then
				status := 503;
			end;
			ms := extract(epoch from clock_timestamp() - began) * 1000;
			cpu := spent() - spent_before;
			memory := greatest(own_memory('VmHWM') - memory_before, 0);
			rows := visited() - before;
			if status >= 400 and status <> 503 then
				code := answer.body::jsonb->'errors'->0->>'code';
				place := coalesce(answer.body::jsonb->'errors'->0->'source'->>'parameter', answer.body::jsonb->'errors'->0->'source'->>'pointer');
			end if;
		end $$;
		SQL
	return bless { cluster => $cluster, shim => $shim, tenant => $tenant, n => $n, user => $user, token => $user->{accessToken}, since => time, set => settings(%settings) }, $class;
}

sub settings
{
	my (%settings) = @_;

	return join '', map { "set entityapi.$_ = '$settings{$_}';\n" } sort keys %settings;
}

# The same cluster with other settings
sub with
{
	my ($self, %settings) = @_;

	return bless { %$self, set => settings(%settings) }, ref $self;
}

sub cluster { return $_[0]{cluster} }
sub tenant  { return $_[0]{tenant} }
sub n       { return $_[0]{n} }

# Statement timeout in ms, 0 for none; the default is the shim's.
sub of
{
	my ($self, $request, $timeout) = @_;
	my $call = 'cost(' . $self->arguments($request) . ')';
	my $timeout_ms = $timeout // 5000;

	# what it changes is undone; a plan is made as often as it is in service
	my $sql = "$self->{set}set jit = off; set statement_timeout = $timeout_ms; begin;\n"
	  . "select array_to_json(array[status::text, bytes::text, round(ms)::text, round(cpu)::text, rows::text, memory::text, code, place]) from $call;\nrollback;";
	my ($done, %cost);

	# The time may also be over between the answer and the last figure; and
	# PostgreSQL signals its end twice, of which the second may come late.
	for (1 .. 10)
	{
		$done = $self->{cluster}->try_psql($sql);
		last if $done->{err} !~ /canceling statement due to (?:statement timeout|user request)/;
	}
	die "psql: $done->{err}\n" if $done->{status} != 0;

	@cost{qw(status bytes ms cpu rows memory code place)} = @{ $json->decode((split /\n/, $done->{out})[-1]) };
	return \%cost;
}

sub arguments
{
	my ($self, $request) = @_;

	return join ', ', map { $self->quote($_) } $request->{method}, "/api/v1$request->{target}",
	  $json->encode($self->headers($request)), $request->{text} // ($request->{body} ? $json->encode($request->{body}) : undef);
}

# What PostgreSQL says of the plans that it uses, while one session asks so many
# times; before each time the statistics change, and so the plans are invalid.
sub plans
{
	my ($self, $request, $times) = @_;
	my $log = $self->{cluster}->log;
	my $old = -s $log;

	$self->{cluster}->psql("$self->{set}load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;\n"
		  . ('analyze app.invoice, app.invoice_tags; select status from cost(' . $self->arguments($request) . ");\n") x $times);
	return substr EntityApi::Test::slurp($log), $old;
}

# The figures of a process, as spent() and own_memory() have them.
sub spent
{
	my ($pid) = @_;
	return -e "/proc/$pid/schedstat" ? (split ' ', EntityApi::Test::slurp("/proc/$pid/schedstat"))[0] / 1e6
	  : 10 * List::Util::sum((split ' ', EntityApi::Test::slurp("/proc/$pid/stat") =~ s/^.*\) //sr)[ 11, 12 ]);
}

sub own_memory
{
	my ($pid, $kind) = @_;
	my %figure = EntityApi::Test::slurp("/proc/$pid/status") =~ /^(\w+):\s+(\d+) kB$/mg;

	return 1024 * ($figure{$kind} - $figure{RssShmem} - $figure{RssFile});
}

# The backend that the shim asks: one, which comes with the first request after
# another was given up.
sub backend
{
	my ($self) = @_;
	my $pid;

	EntityApi::Test::wait_until(60, sub {
			($pid) = $self->{cluster}->psql("select pid from pg_stat_activity where usename = 'entityapi_shim'") =~ /^(\d+)$/;
			$self->{shim}->http(GET => '/api/v1/tags?page[size]=1', { headers => $self->headers({ method => 'GET', target => '/tags' }) }) if !$pid;
			return $pid;
		}) or die "the shim has no backend\n";
	return $pid;
}

sub asked
{
	my ($self, $request) = @_;
	my $shim = $self->{shim};

	# tokens do not live as long as a search may take
	@$self{qw(token since)} = ($shim->login(@{ $self->{user} }{qw(username password)})->{accessToken}, time)
	  if time - $self->{since} > 600;
	my $pid = $self->backend;

	# the largest size from now on, where one may begin it
	if (open my $refs, '>', "/proc/$pid/clear_refs") { print $refs 5; close $refs }
	my ($spent, $memory, $began) = (spent($pid), own_memory($pid, 'VmRSS'), Time::HiRes::time());
	my $answer = $shim->http($request->{method}, "/api/v1$request->{target}", {
		headers => $self->headers($request),
		$request->{body} ? (body => $json->encode($request->{body})) : () });
	my $error = $answer->{json} && $answer->{json}{errors} ? $answer->{json}{errors}[0] : {};

	# a shim that gives up a request ends its connection, and the backend ends
	my $ended = !-e "/proc/$pid/status";
	my $largest = $ended ? 0 : own_memory($pid, 'VmHWM') - $memory;

	return {
		status => $answer->{status}, bytes => length $answer->{body}, ms => int(1000 * (Time::HiRes::time() - $began)),
		cpu => $ended ? 0 : int(spent($pid) - $spent), ended => $ended ? JSON::PP::true : JSON::PP::false, memory => $largest > 0 ? $largest : 0, code => $error->{code},
		place => $error->{source} && ($error->{source}{parameter} // $error->{source}{pointer}) };
}

sub headers
{
	my ($self, $request) = @_;
	my $atomic = $request->{target} eq '/operations';
	my $type = 'application/vnd.api+json' . ($atomic ? ';ext="https://jsonapi.org/ext/atomic"' : '');

	return { authorization => "Bearer $self->{token}", accept => $type,
		$request->{body} ? ('content-type' => $type) : (),
		$request->{method} eq 'GET' ? () : ('if-match' => '*') };
}

sub quote
{
	my ($self, $text) = @_;

	return 'null' unless defined $text;
	return "E'" . ($text =~ s/([\\'])/\\$1/gr) . "'";
}

1;
