# An error that a request does not answer but throws is told whole: where it was
# raised, too, although the memory of the request is gone by then.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/lists');
my $shim = EntityApi::Test->shim($cluster);
my $ed = EntityApi::Test::Cases->new($shim, $shim->user($shim->tenant('acme')->{id}, 'ed', ['Editor']), '/api/v1');

# The last operation waits, with more behind it than an allocator keeps.
my $json = JSON::PP->new->canonical;
my $body = $json->encode({ 'atomic:operations' => [
	(map { { op => 'add', data => { type => 'groups', attributes => { title => "group $_ " . 'x' x 200 } } } } 1 .. 90),
	{ op => 'add', data => { type => 'items', attributes => { name => 'waits' } } } ] });
my $headers = $json->encode({ authorization => "Bearer $ed->{token}{accessToken}",
	'content-type' => 'application/vnd.api+json; ext="https://jsonapi.org/ext/atomic"', accept => 'application/vnd.api+json; ext="https://jsonapi.org/ext/atomic"' });

# Somebody has the table until he is told
my $go = EntityApi::Test::folder() . '/go';
my $pid = fork // die "fork: $!\n";
if ($pid == 0)
{
	$cluster->try_psql("begin; lock table app.item;\ndo \$\$ begin while pg_stat_file('$go', true) is null loop perform pg_sleep(0.02); end loop; end \$\$; commit;");
	POSIX::_exit(0);
}
ok(EntityApi::Test::wait_until(60, sub { $cluster->psql("select count(*) from pg_locks where relation = 'app.item'::regclass and mode = 'AccessExclusiveLock' and granted") }), 'the table is taken');

$cluster->psql(<<"SQL");
create function ask() returns int language sql volatile as \$f\$
	select h.status from entityapi.handle('POST', '/api/v1/operations', \$j\$$headers\$j\$, convert_to(\$j\$$body\$j\$, 'UTF8'), null) h
\$f\$;
SQL
my %ways = (
	'from an SQL function' => 'select ask();',
	'from a block' => 'do $$ begin perform ask(); end $$;',
	'caught and thrown on' => 'do $$ begin perform ask(); exception when others then raise; end $$;');

for my $way (sort keys %ways)
{
	my $result = $cluster->try_psql("\\set VERBOSITY verbose\nset lock_timeout = '50ms';\n$ways{$way}\n");

	like($result->{err}, qr/ERROR:  55P03: /, $way) or diag $result->{err};
	like($result->{err}, qr/^LOCATION:  \w+, \w+\.c:\d+$/m, 'and where') or diag $result->{err};
}
open my $file, '>', $go or die "$go: $!\n";
waitpid $pid, 0;
is(scalar(() = EntityApi::Test::slurp($cluster->log) =~ /terminated by signal/g), 0, 'the server goes on');

done_testing;
