package EntityApi::Test::Costs;

=head1 NAME

EntityApi::Test::Costs - what a request costs, on many rows

=head1 SYNOPSIS

	my $costs = EntityApi::Test::Costs->new;
	my $cost = $costs->of({ method => 'GET', target => '/invoices?sort=note' });
	print "$cost->{status} $cost->{ms} $cost->{rows} $cost->{bytes}\n";

=head1 DESCRIPTION

A cluster with examples/billing and t/costs/rows.sql, and one session that asks
entityapi.handle() as an Accountant.  There are as many invoices as
ENTITYAPI_COSTS_ROWS says, 5000 without it.  Other arguments of C<new> are
settings of the session.  C<rows> of a request are the rows that the tables'
scans have returned, with those of indexes; nothing else has an influence on
them.
=cut

use strict;
use warnings;

use EntityApi::Test;
use JSON::PP ();

my $json = JSON::PP->new->canonical->utf8;

sub new
{
	my ($class, %settings) = @_;
	my $cluster = EntityApi::Test->cluster(conf => ['max_wal_size = 4GB', 'fsync = off']);

	$cluster->apply(EntityApi::Test::checkout() . '/examples/billing');
	my $shim = EntityApi::Test->shim($cluster);
	my $tenant = $shim->tenant('acme')->{id};
	my $user = $shim->user($tenant, 'ann', ['Accountant']);
	my $rows = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/costs/rows.sql');

	my $n = $ENV{ENTITYAPI_COSTS_ROWS} // 5000;

	$rows =~ s/:'tenant'/'$tenant'/g;
	$rows =~ s/:n\b/$n/g;
	$cluster->psql($rows);
	$cluster->psql(<<~'SQL');
		vacuum analyze;
		create function visited() returns bigint language sql as
		$$ select sum(pg_stat_get_xact_tuples_returned(oid))::bigint
			from pg_class where relkind in ('r', 'i') and relnamespace = 'app'::regnamespace $$;
		-- processor time of this backend, in ms
		create function spent() returns float language sql as
		$$ select 10 * (f[12]::float + f[13]::float) from string_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '^.*\) ', ''), ' ') f $$;
		create function cost(method text, target text, headers jsonb, body text, out status int, out bytes int, out ms float, out cpu float, out rows bigint, out code text, out place text)
		language plpgsql as $$
		declare
			answer record;
			began timestamptz;
			before bigint := visited();
			spent_before float := spent();
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
			rows := visited() - before;
			if status >= 400 and status <> 503 then
				code := answer.body::jsonb->'errors'->0->>'code';
				place := coalesce(answer.body::jsonb->'errors'->0->'source'->>'parameter', answer.body::jsonb->'errors'->0->'source'->>'pointer');
			end if;
		end $$;
		SQL
	return bless { cluster => $cluster, shim => $shim, tenant => $tenant, n => $n, token => $user->{accessToken}, set => settings(%settings) }, $class;
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
	my $atomic = $request->{target} eq '/operations';
	my $type = 'application/vnd.api+json' . ($atomic ? ';ext="https://jsonapi.org/ext/atomic"' : '');
	my $headers = $json->encode({ authorization => "Bearer $self->{token}", accept => $type,
		$request->{body} ? ('content-type' => $type) : (),
		$request->{method} eq 'GET' ? () : ('if-match' => '*') });
	my $body = $request->{body} ? $self->quote($json->encode($request->{body})) : 'null';
	my $call = 'cost(' . join(', ', $self->quote($request->{method}), $self->quote("/api/v1$request->{target}"),
		$self->quote($headers), $body) . ')';
	my $timeout_ms = $timeout // 5000;

	# what it changes is undone; a plan is made as often as it is in service
	my $line = $self->{cluster}->psql("$self->{set}set jit = off; set statement_timeout = $timeout_ms; begin;\n"
		  . "select array_to_json(array[status::text, bytes::text, round(ms)::text, round(cpu)::text, rows::text, code, place]) from $call;\nrollback;");
	my %cost;

	@cost{qw(status bytes ms cpu rows code place)} = @{ $json->decode((split /\n/, $line)[-1]) };
	return \%cost;
}

sub quote
{
	my ($self, $text) = @_;

	return "E'" . ($text =~ s/([\\'])/\\$1/gr) . "'";
}

1;
