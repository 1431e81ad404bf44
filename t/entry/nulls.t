# No function of the extension takes a backend down that is called with nulls.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use Test::More;

my $cluster = EntityApi::Test->cluster;
my @calls = split /\n/, $cluster->psql(<<~'SQL');
	select format('entityapi.%I(%s)', p.proname,
		(select string_agg(format('null::%s', a::regtype), ', ' order by i)
		 from unnest(p.proargtypes) with ordinality u(a, i)))
	from pg_proc p
	where p.pronamespace = 'entityapi'::regnamespace and p.pronargs > 0
	  and p.prorettype <> 'trigger'::regtype
	  and has_function_privilege('entityapi_owner', p.oid, 'EXECUTE')
	order by 1
	SQL
cmp_ok(scalar @calls, '>', 30, scalar(@calls) . ' functions');
for my $call (@calls)
{
	my $result = $cluster->try_psql("begin; set local role entityapi_owner; select * from $call; rollback");

	unlike($result->{err}, qr/server closed the connection|terminat/, $call) or last;
}
done_testing;
