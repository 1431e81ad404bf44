# What workers do for others: no value of a tenant gets into a log of theirs,
# whatever goes wrong there, and who waits there for a lock, or too long for
# anything, is told so in time.

use strict;
use warnings;

use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $folder = EntityApi::Test::folder();
my $manifest = <<'YAML';
apiVersion: entityapi/v1
kind: Service
metadata: {name: s}
spec: {schema: app}
---
apiVersion: entityapi/v1
kind: Roles
metadata: {name: r}
spec: {roles: {Editor: {}}}
---
apiVersion: entityapi/v1
kind: Entity
metadata: {name: Item}
spec:
  fields:
    name: {type: string, required: true}
    code: {type: string, unique: true}
    amount: {type: integer, minimum: 0}
    parent: {type: ref, target: Item, relation: ManyToOne, onDelete: restrict}
  permissions: {Editor: [create, read, update, delete]}
YAML
open my $file, '>', "$folder/item.yaml" or die "item.yaml: $!\n";
print $file $manifest;
close $file;

# As a server would log that is looked at for slow statements and errors
my $cluster = EntityApi::Test->cluster(nodes => 3, conf => ['log_min_duration_statement = 0', 'log_min_error_statement = error', 'deadlock_timeout = 200ms']);
$cluster->apply("$folder/item.yaml");
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 2) } 0 .. 2;
my @tenants = $cluster->place($shims[0], 'Editor');
my ($tenant) = grep { $_->{node} == 1 } @tenants;
my $secret = 'Xq7secretZ';

sub ask
{
	my ($shim, $method, $target, $attributes, $id, %relationships) = @_;
	return $shim->http($method => "/api/v1/items$target", { token => $tenant->{user}, $attributes ? (json => { data => { type => 'items',
				$id ? (id => $id) : (), attributes => $attributes, %relationships ? (relationships => \%relationships) : () } }) : () });
}

sub told { my ($answer) = @_; my $error = $answer->{json}{errors}[0]; return "$answer->{status} " . ($error->{source}{pointer} // $error->{code}) }

my %first = (name => "$secret name", code => "$secret code", amount => 77);
my $item = ask($shims[0], POST => '', \%first)->{json}{data};
my $child = ask($shims[1], POST => '', { name => "$secret child" }, undef, parent => { data => { type => 'items', id => $item->{id} } })->{json}{data};
ok($child->{id}, 'made') or BAIL_OUT('nothing is made');

for my $i (0 .. 2)
{
	my $shim = $shims[$i];

	subtest "refused on node $i" => sub {
		is(told(ask($shim, POST => '', \%first)), '409 /data/attributes/code', 'a value that is there');
		is(told(ask($shim, PATCH => "/$child->{id}", { code => "$secret code" }, $child->{id})), '409 /data/attributes/code', 'changed to it');
		is(ask($shim, DELETE => "/$item->{id}")->{status}, 409, 'one that is referred to');
		is(ask($shim, GET => "?filter=name=='$secret*'&sort=-code")->{status}, 200, 'found');
	};
	subtest "locked, asked on node $i" => sub {
		my $patient = EntityApi::Test->shim($cluster, node => $i, pool_size => 1,
			database => $cluster->node($i)->conninfo('entityapi_shim') . q{ options='-c lock_timeout=400ms'});
		my $pid = open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/locked$i", '-d', $cluster->conninfo;
		$psql->autoflush(1);
		print $psql "begin; select id from app.item where tenant_id = '$tenant->{id}' and id = '$item->{id}' for update;\n";
		EntityApi::Test::wait_until(20, sub { -s "$folder/locked$i" });
		my $answer = ask($patient, PATCH => "/$item->{id}", { name => "$secret again $i" }, $item->{id});
		is($answer->{status}, 503, 'is answered') or diag $answer->{body};
		ok($patient->said(qr/given up after 3 conflicts/), 'by the lock timeout, three times');
		$patient->stop;
		my $hurried = EntityApi::Test->shim($cluster, node => $i, pool_size => 1, statement_timeout_ms => 1000);
		my $by_timeout = EntityApi::Test::wait_until(60, sub {
				is(ask($hurried, PATCH => "/$item->{id}", { name => "$secret once more $i" }, $item->{id})->{status}, 503, 'without one');
				return EntityApi::Test::slurp($hurried->err) =~ /"sqlstate":"57014"/;
			});
		ok($by_timeout, 'by that of statements');
		$hurried->stop;
		my $nobody = EntityApi::Test::wait_until(60, sub {
				join('', $cluster->on_all(q{select count(*) from pg_stat_activity where wait_event_type = 'Lock'})) eq '000' });
		ok($nobody, 'nobody goes on waiting');
		print $psql "rollback;\n";
		close $psql;
		is(ask($shim, PATCH => "/$item->{id}", { name => "$secret now $i" }, $item->{id})->{status}, 200, 'afterwards it goes');
	};
}
# Whoever reads by plain SQL, and whoever writes as the owner, sends values, too.
my $reader = $shims[0]->user($tenant->{id}, 'reads', ['Editor']);
$cluster->psql(q{set client_min_messages = error; create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'reads');
	create role keeper login in role entityapi_owner});
my $which = "tenant_id = '$tenant->{id}' and id = '$item->{id}'";

for my $i (0 .. 2)
{
	my $node = $cluster->node($i);
	my $told = sub { my ($role, $sql) = @_; return $node->try_psql("\\set VERBOSITY sqlstate\n$sql", user => $role)->{err} =~ s/.*ERROR:\s+(\w+).*/$1/sr };
	my $own = sub { return $told->('keeper', "set role entityapi_owner; $_[0]") };

	subtest "plain SQL on node $i" => sub {
		is($told->(bi => 'select sum(name::int) from app.item'), '22P02', 'a cast');
		is($told->(bi => "select count(*) from app.item where name ~ '$secret' and 1 / (amount - 77) > 0"), '22012', 'a division');
		is($told->(bi => "set statement_timeout = '300ms'; select count(*) from app.item where name >= '$secret' and pg_sleep(2) is not null"), '57014', 'a timeout');
		is($told->(bi => "update app.item set name = '$secret'"), '42501', 'what he may not');
		is($own->("update app.item set amount = -5, name = '$secret neg' where $which"), '23514', 'a check');
		is($own->("insert into app.item select * from app.item where $which"), '23505', 'a key');
		is($own->("update app.item set parent_id = md5('$secret')::uuid where $which"), '23503', 'a foreign key');
		is($own->("update app.item set name = null, code = '$secret null' where $which"), '23502', 'no value');
		is($own->("update app.item set name = repeat('$secret', 100) where $which"), '22001', 'too long a value');
		is($own->("update app.item set amount = 2147483647, name = '$secret' where $which and amount + 2147483647 > 0"), '22003', 'out of range');
	};
}

subtest 'a deadlock' => sub {
	my @locked = map { my $i = $_; my $name = "$secret deadlock $i";
		open my $psql, '|-', 'sh', '-c', 'exec 2>"$0" "$@"', "$folder/victim$i", EntityApi::Test::server_program('psql'), '-XAtq', '-v', 'VERBOSITY=sqlstate', '-o', "$folder/dead$i", '-d', $cluster->node($i)->conninfo('keeper') or die $!;
		$psql->autoflush(1);
		[ $psql, $name ] } 0, 2;
	my @ids = ($item->{id}, $child->{id});
	my $change = sub { my ($n, $id) = @_; print { $locked[$n][0] } "update app.item set name = '$locked[$n][1]' where tenant_id = '$tenant->{id}' and id = '$id' returning 1;\n" };

	print { $_->[0] } "set role entityapi_owner; begin;\n" for @locked;
	$change->(0, $ids[0]);
	$change->(1, $ids[1]);
	EntityApi::Test::wait_until(20, sub { -s "$folder/dead0" && -s "$folder/dead2" });
	$change->($_, $ids[ 1 - $_ ]) for 0, 1;
	print { $_->[0] } "rollback;\nselect 'over';\n" for @locked;
	close $_->[0] for @locked;
	is(join(' ', map { EntityApi::Test::slurp("$folder/dead$_") =~ /over/ ? 'over' : 'no' } 0, 2), 'over over', 'is ended');
	like(join(' ', map { EntityApi::Test::slurp("$folder/victim$_") =~ /(40P01)/ } 0, 2), qr/40P01/, 'by one of them');
};

# What a server logs of a process that ended, by a signal or for want of memory,
# is what it said it was doing.
subtest 'a process that is killed' => sub {
	my $node = $cluster->node(1);

	open my $psql, '|-', EntityApi::Test::server_program('psql'), '-XAtq', '-o', "$folder/held", '-d', $node->conninfo or die "psql: $!\n";
	$psql->autoflush(1);
	print $psql "begin; select id from app.item where $which for update;\n";
	EntityApi::Test::wait_until(20, sub { -s "$folder/held" });
	my $pid = fork // die "fork: $!\n";
	if (!$pid)
	{
		ask($shims[0], PATCH => "/$item->{id}", { name => "$secret killed" }, $item->{id});
		POSIX::_exit(0);
	}
	my $waits = q{select coalesce(max(pid), 0) from pg_locks where not granted};
	EntityApi::Test::wait_until(20, sub { $node->psql($waits) });
	unlike($node->psql(q{select coalesce(string_agg(query, ' '), '') from pg_stat_activity where usename = 'entityapi_owner'}), qr/\Q$secret/, 'says nothing of it meanwhile');
	kill KILL => $node->psql($waits);
	EntityApi::Test::wait_until(20, sub { EntityApi::Test::slurp($node->log) =~ /terminated by signal 9/ });
	waitpid $pid, 0;
	close $psql;
	ok(EntityApi::Test::wait_until(60, sub { ask($shims[0], GET => "/$item->{id}")->{status} == 200 }), 'all goes on');
};

for my $i (0 .. 2)
{
	# but for what a session asks of its own node
	my @lines = grep { /\Q$secret\E/ && !/ keeper\@/ } split /\n/, EntityApi::Test::slurp($cluster->node($i)->log);

	is(scalar @lines, 0, "no value is in the log of node $i") or diag join "\n", @lines[ 0 .. ($#lines > 5 ? 5 : $#lines) ];
}

done_testing;
