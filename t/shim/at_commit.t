# A transaction may fail at its very end, when the rows of its statement are on
# their way already: then nothing was written, and no answer says that it was.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use HTTP::Tiny;
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;

# A body with the name of an error is written, and that is found out at the end;
# "40001" is one once.
$cluster->psql(<<~'SQL');
	create table written (value text not null);
	create sequence conflicts;
	create function at_the_end() returns trigger language plpgsql security definer as $$
	begin
		if new.value <> '40001' or nextval('public.conflicts') % 2 = 1 then
			raise exception 'too late' using errcode = new.value;
		end if;
		return null;
	end $$;
	create constraint trigger at_the_end after insert on written deferrable initially deferred
		for each row when (new.value <> 'fine') execute function at_the_end();
	alter function entityapi.handle(text, text, jsonb, bytea, inet) rename to stand_in;
	create function entityapi.handle(method text, target text, in_headers jsonb,
		in_body bytea, remote inet, out status int, out headers jsonb, out body text)
	language plpgsql security definer set search_path = public as $$
	begin
		if method = 'POST' then
			insert into written values (convert_from(in_body, 'utf8'));
		end if;
		select h.* into status, headers, body
		from entityapi.stand_in(method, '/x', in_headers, in_body, remote) h;
	end $$;
	SQL

my $shim = EntityApi::Test->shim($cluster, pool_size => 2);
my $client = HTTP::Tiny->new(timeout => 60);

# A login has a thread and a connection for itself, others are side by side.
for my $target ('/api/v1/items', '/auth/login')
{
	# where another server was lost, nobody knows what it has done
	for my $case ([ fine => 200, 1 ], [ 23505 => 500, 0, 'INTERNAL_ERROR' ], [ '08006' => 503, 0, 'OUTCOME_UNKNOWN' ],
		[ 57014 => 503, 0, 'UNAVAILABLE', 1 ], [ 40001 => 200, 1 ])
	{
		my ($value, $status, $rows, $code, $after) = @$case;
		my $answer = $client->post($shim->url . $target, { content => $value, headers => { 'content-type' => 'application/vnd.api+json' } });

		is($answer->{status}, $status, "$target: $value");
		is(($answer->{content} =~ /"code":"(\w+)"/)[0], $code, 'for that reason');
		is($answer->{headers}{'retry-after'}, $after, 'and to be sent again or not');
		is($cluster->psql("select count(*) from written where value = '$value'"), $rows, 'and what is there agrees');
	}
	$cluster->psql('truncate written');
}
is($client->get($shim->url . '/x')->{status}, 200, 'it goes on');

done_testing;
