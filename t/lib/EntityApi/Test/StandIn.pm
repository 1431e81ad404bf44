package EntityApi::Test::StandIn;

=head1 NAME

EntityApi::Test::StandIn - a cluster without the extension, for tests of the transport

=head1 SYNOPSIS

	use EntityApi::Test::StandIn;

	my $cluster = EntityApi::Test::StandIn->cluster;
	my $shim = EntityApi::Test->shim($cluster, pool_size => 2);

=head1 DESCRIPTION

The database holds a stand-in for C<entityapi.handle> that answers by the path
of the target:

	/fail/SQLSTATE     raises that error
	/retry/N           raises 40001 the first N times
	/sleep/SECONDS     sleeps
	/hold              waits until C<release>
	/big/N             a body of N bytes
	/status/N          an empty body with that status
	/header/NAME/VALUE a header more, the value a JSON string without quotes
	anything else      what it was called with, as a JSON object

C<calls> tells how often it was called, rolled back or not.  C<hold> makes
requests for /hold wait from now on, C<release> ends that, and C<at_work(N)>
waits until so many of its requests are in the database, which takes 40
connections, or as many as the option C<connections> of C<cluster> says.

=cut

use strict;
use warnings;

use parent -norequire, 'EntityApi::Test::Cluster';

use EntityApi::Test;

my @clusters;
my $owner = $$;

END
{
	my $status = $?;

	if ($$ == $owner)
	{
		$_->stop(EntityApi::Test::end_of_cluster()) for @clusters;
	}
	$? = $status;
}

sub cluster
{
	my ($class, %options) = @_;
	my $self = $class->SUPER::new(%options);

	push @clusters, $self;
	$self->{database} = 'postgres';
	EntityApi::Test::Cluster::copy_new($self->{data});
	$self->_append('postgresql.conf', "listen_addresses = ''",
		"port = $self->{port}", "unix_socket_directories = '$self->{folder}'",
		'fsync = off', 'shared_buffers = 16MB', 'max_connections = ' . ($options{connections} // 40),

		# a standby has settings of its own there
		"include_if_exists = 'entityapi.conf'");
	$self->start;
	$self->psql(_stand_in());
	return $self;
}

sub calls
{
	my ($self) = @_;
	return $self->psql('select calls()');
}

sub hold
{
	my ($self) = @_;
	return $self->psql("select setval('held', 2)");
}

sub release
{
	my ($self) = @_;
	return $self->psql("select setval('held', 1)");
}

sub at_work
{
	my ($self, $count) = @_;

	EntityApi::Test::wait_until(60, sub {
			$self->psql("select count(*) from pg_stat_activity where application_name = 'entityapi-shim' and state = 'active'") >= $count })
	  or die "$count requests are not at work\n";
	return;
}

sub _append
{
	my ($self, $file, @lines) = @_;

	EntityApi::Test::run([ 'sh', '-c', 'cat >>"$1"', '-', "$self->{data}/$file" ],
		in => join("\n", @lines, ''), service => 1);
	return;
}

sub _stand_in
{
	return <<~'SQL';
		set client_min_messages = warning;
		create schema entityapi;
		create role entityapi_shim login;
		grant usage on schema entityapi to entityapi_shim;
		create sequence handle_calls;
		create sequence retries;
		-- seen at once, whatever snapshot one has
		create sequence held;
		create function calls() returns bigint language sql as
		$$ select case when is_called then last_value else 0 end from handle_calls $$;
		create function entityapi.handle(method text, target text, in_headers jsonb,
			in_body bytea, remote inet, out status int, out headers jsonb, out body text)
		language plpgsql security definer set search_path = public as $$
		declare
			path text[] := string_to_array(target, '/');
		begin
			perform nextval('handle_calls');
			status := 200;
			headers := jsonb_build_object(
				'content-type', 'application/vnd.api+json',
				'x-request-id', in_headers->>'x-request-id',
				'x-entityapi-route', '/api/v{n}/stand-in',
				'x-entityapi-principal', '42',
				'x-entityapi-principal-kind', 'USER');
			body := '';
			case path[2]
				when 'fail' then
					raise exception 'secret cause' using errcode = path[3];
				when 'retry' then
					if nextval('retries') <= path[3]::int then
						raise exception 'conflict' using errcode = '40001';
					end if;
				when 'sleep' then perform pg_sleep(path[3]::float);
				when 'hold' then
					while (select last_value from held) > 1 loop
						perform pg_sleep(0.02);
					end loop;
				when 'big' then body := repeat('x', path[3]::int);
				when 'status' then status := path[3]::int;
				when 'header' then
					headers := headers || jsonb_build_object(path[3],
						to_jsonb(('["' || path[4] || '"]')::jsonb->>0));
				else
					body := jsonb_build_object('method', method, 'target', target,
						'headers', in_headers, 'remote', host(remote),
						'body', encode(in_body, 'base64'),
						'calls', calls(),
						'settings', jsonb_build_object(
							'statement_timeout', current_setting('statement_timeout'),
							'timezone', current_setting('timezone'),
							'application_name', current_setting('application_name')));
			end case;
		end $$;
		create function entityapi.housekeep(out deleted bigint, out more boolean)
		language sql as 'select 0::bigint, false';
		-- the messages of extension/entry/message.h, from and to the above
		create function entityapi.handle(message bytea) returns bytea
		language plpgsql security definer set search_path = public as $$
		declare
			cut int := position('\x0a0a'::bytea in message);
			lines text[] := string_to_array(
				convert_from(substr(message, 1, cut - 1), 'UTF8'), E'\n');
			words text[] := string_to_array(lines[1], ' ');
			sent jsonb;
			answer record;
			notes text;
			head text;
		begin
			select jsonb_object_agg(name, case when array_length(got, 1) = 1
					then to_jsonb(got[1]) else to_jsonb(got) end) into sent
			from (
				select split_part(line, ': ', 1) as name,
					array_agg(substr(line, strpos(line, ': ') + 2) order by i) as got
				from unnest(lines[2:]) with ordinality u(line, i) group by 1) g;
			select * into answer from entityapi.handle(words[1], words[2], sent,
				substr(message, cut + 2), nullif(words[3], '-')::inet);
			select string_agg(key || ': ' || value || E'\n', '')
					filter (where key like 'x-entityapi-%'),
				string_agg(initcap(key) || ': ' || value || E'\r\n', '')
					filter (where key not like 'x-entityapi-%')
				into notes, head
			from jsonb_each_text(answer.headers);
			return convert_to(answer.status || E'\n' || coalesce(notes, '') || E'\n'
				|| head || E'\r\n' || answer.body, 'UTF8');
		end $$;
		SQL
}

1;
