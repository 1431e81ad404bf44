# A rule over other rows, in a hook: the pattern of docs/security.md holds it
# when two requests are at it at once, which it would not without its lock.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my ($rule) = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/docs/security.md') =~ /^### Rules over other rows\n.*?^```sql\n(.*?)^```$/ms;
my $lock = qr/^\tperform from app\.customer .*;\n/m;
my $folder = EntityApi::Test::folder();

open my $out, '>', "$folder/all.yaml" or die "all.yaml: $!\n";
print $out <<'YAML';
apiVersion: entityapi/v1
kind: Service
metadata: {name: shop}
spec: {tenancy: POOL}
---
apiVersion: entityapi/v1
kind: Roles
metadata: {name: roles}
spec: {roles: {Sales: {}}}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Customer}
spec: {fields: {name: {type: string}}, permissions: {Sales: [create, read]}}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Invoice}
spec:
  fields:
    status: {type: string, enum: [DRAFT, SENT], default: DRAFT, required: true}
    customer: {type: ref, target: Customer, relation: ManyToOne, required: true}
  permissions: {Sales: [create, read, update]}
---
apiVersion: entityapi/v1
kind: Hook
metadata: {name: FewDrafts}
spec: {entity: Invoice, phase: validate, on: [create, update], function: rules.few_drafts}
---
apiVersion: entityapi/v1
kind: Hook
metadata: {name: Held}
spec: {entity: Invoice, phase: after, on: [create], function: rules.held}
YAML
close $out;
like($rule, $lock, 'the page shows a lock');
$cluster->psql($rule);
$cluster->psql(<<'SQL');
set role entityapi_owner;
create function rules.held(context jsonb) returns jsonb language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(41); return null; end $$;
SQL
$cluster->apply("$folder/all.yaml");

my $shim = EntityApi::Test->shim($cluster, statement_timeout_ms => 120000, pool_wait_ms => 60000);
my $tenant = $shim->tenant('acme')->{id};
my $sales = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'sam', ['Sales']), '/api/v1');

sub draft
{
	my ($customer) = @_;
	return { type => 'invoices', attributes => {}, relationships => { customer => { data => { type => 'customers', id => $customer } } } };
}

# The answers to two drafts at once, of a customer who has two: neither ends before both have come as far as they can
sub two_at_once
{
	my ($name) = @_;
	my $customer = $sales->good(201, POST => '/customers', data => { type => 'customers', attributes => { name => $name } })->{json}{data}{id};
	$sales->good(201, POST => '/invoices', data => draft($customer)) for 1, 2;

	my $holder = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo,
		'-c', 'select pg_advisory_lock(41)', '-c', 'select pg_sleep(600)' ]);
	EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_locks where locktype = 'advisory' and objid = 41 and mode = 'ExclusiveLock' and granted}) == 1 });
	my @readers;
	for my $i (1, 2)
	{
		my $pid = open(my $reader, '-|') // die "fork: $!\n";
		if (!$pid)
		{
			my $answer = $sales->call(POST => '/invoices', data => draft($customer));
			print "$answer->{status} ", $answer->{json}{errors} ? $answer->{json}{errors}[0]{detail} : '', "\n";
			close STDOUT;
			POSIX::_exit(0);
		}
		push @readers, $reader;
		EntityApi::Test::wait_until(60, sub { $cluster->psql(q{select count(*) from pg_stat_activity where usename = 'entityapi_shim' and wait_event_type = 'Lock'}) == $i });
	}
	$cluster->psql(q{select pg_terminate_backend(pid, 60000) from pg_stat_activity where query = 'select pg_sleep(600)'});
	waitpid $holder, 0;
	my @answers = sort map { my $reader = $_; my $line = <$reader>; close $reader; $line } @readers;
	chomp @answers;
	return (@answers, 0 + $cluster->psql("select count(*) from app.invoice where customer_id = '$customer'"));
}

is_deeply([ two_at_once('locked') ], [ '201 ', '400 FewDrafts hook rejected the request: this customer has three drafts', 3 ], 'with the lock one of two is refused');
my $customer = $cluster->psql(q{select id from app.customer where name = 'locked'});
$sales->refused('the rule by itself', 400, undef, undef, POST => '/invoices', data => draft($customer));
my $invoice = $cluster->psql("select id from app.invoice where customer_id = '$customer' limit 1");
$sales->good(200, PATCH => "/invoices/$invoice", data => { type => 'invoices', id => $invoice, attributes => { status => 'SENT' } });
$sales->good(201, POST => '/invoices', data => draft($customer));
$sales->refused('a change that would break it', 400, undef, undef, PATCH => "/invoices/$invoice", data => { type => 'invoices', id => $invoice, attributes => { status => 'DRAFT' } });

$cluster->psql($rule =~ s/$lock//r);
is_deeply([ two_at_once('raced') ], [ '201 ', '201 ', 4 ], 'without it both pass');

done_testing;
