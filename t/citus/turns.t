# Who writes what all nodes have takes a turn: nobody makes others wait for a
# hash in it, tenants come to their end however busy it is, a role can be taken
# away while accounts are made, and a month of the log be made while others wait.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1, conf => [ 'entityapi.bcrypt_cost = 13' ]);

# Declared with these roles, once: status and error
sub declare
{
	my (@roles) = @_;
	my %documents = (
		Service => { s => { distribution => 'citus' } },
		Roles => { r => { roles => { map { $_ => undef } @roles } } },
		Entity => { Shop => { permissions => { Clerk => ['read'] }, fields => { name => { type => 'string' } } } });

	my $json = JSON::PP->new->canonical->encode([ map { my $kind = $_;
				map { { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $_ }, spec => $documents{$kind}{$_} } }
				  sort keys %{ $documents{$kind} } } sort keys %documents ]);
	my $done = $cluster->try_psql("select count(*) from entityapi.apply_manifest(\$json\$$json\$json\$, allow_data_loss => '{Roles/Guest}')");
	return "$done->{status} " . ($done->{status} == 0 ? '' : $done->{err});
}

is(declare(qw(Clerk Guest)), '0 ', 'declared');

my $shim = EntityApi::Test->shim($cluster, threads => 64, pool_queue => 64);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $path = "/manage/tenants/$tenant";

# Work in processes of their own, until it is ended; each says how often
sub begin
{
	my ($n, $work) = @_;

	return map {
		my $number = $_;
		my $pid = open(my $child, '-|') // die "fork: $!\n";

		if ($pid == 0)
		{
			my $ended = 0;
			my $done = 0;

			local $SIG{TERM} = sub { $ended = 1 };
			$done++ while !$ended && $work->($number);
			syswrite STDOUT, $ended ? $done : 'failed';
			POSIX::_exit(0);
		}
		[ $pid, $child ];
	} 1 .. $n;
}

sub end
{
	kill 'TERM', map { $_->[0] } @_;
	return map { local $/; scalar readline $_->[1] } @_;
}

# Whether somebody has EA_TURN_EVERYWHERE, 0xEA16, which is shown as a smallint
sub is_taken
{
	return scalar grep { $_->psql('select count(*) from pg_locks where locktype = $$advisory$$ and objsubid = -5610 and granted') > 0 } $cluster->nodes;
}

subtest 'a hash' => sub {
	my $made = 0;
	my @workers = begin(1, sub { $shim->http(POST => "$path/users",
				{ token => $root, json => { username => 'u' . int rand 1e12, roles => [], temporaryPassword => 'plainly-for-a-test-5' } })->{status} == 201 });
	my @taken = map { sleep 0.02; is_taken() } 1 .. 60;
	my ($done) = end(@workers);

	cmp_ok($done, '>', 0, 'users are made');
	cmp_ok(scalar(grep { $_ } @taken), '<', 20, 'and their passwords are hashed before the turn is taken');
};

subtest 'the end of a tenant' => sub {
	my @robots = map { $shim->must(201, POST => "$path/service-accounts", { token => $root, json => { name => "r$_", roles => [] } }) } 1 .. 12;
	my $doomed = $shim->tenant('doomed')->{id};
	my @workers = begin(12, sub { my $robot = $robots[ $_[0] - 1 ];
			return $shim->http(POST => '/auth/token', { json => { map { $_ => $robot->{$_} } qw(clientId clientSecret) } })->{status} == 200 });

	sleep 1;
	$shim->must(204, DELETE => "/manage/tenants/$doomed", { token => $root });
	ok(EntityApi::Test::wait_until(30, sub {
				$cluster->psql('select entityapi.sweep()');
				return $cluster->psql("select count(*) from entityapi.tenant where id = '$doomed'") == 0;
			}), 'comes while the turn is busy');
	is(scalar(grep { /^[1-9]/ } end(@workers)), 12, 'and all others were served');
};

subtest 'a month of the log' => sub {
	my @robots = map { $shim->must(201, POST => "$path/service-accounts", { token => $root, json => { name => "m$_", roles => [] } }) } 1 .. 12;
	my @workers = begin(12, sub { my $robot = $robots[ $_[0] - 1 ];
			return $shim->http(POST => '/auth/token', { json => { map { $_ => $robot->{$_} } qw(clientId clientSecret) } })->{status} == 200 });

	sleep 1;

	# Who has the turn may be about to make a month, and then waits for those who
	# hold these; who writes a record has them for writing.
	my $held = q{select count(*) from (select from pg_locks l join pg_class c on c.oid = l.relation where c.relname like 'audit_default%' group by l.pid having not bool_or(l.mode = 'RowExclusiveLock')) h};
	is(scalar(grep { $_ > 0 } map { map { $_->psql($held) } $cluster->nodes } 1 .. 20), 0, 'nobody who waits for his turn holds its last resort');

	for my $year (1 .. 10)
	{
		my $done = $cluster->try_psql("set client_min_messages = error; select entityapi.extend_audit(now() + interval '$year years', 1)");

		is("$done->{status} $done->{err}", '0 ', 'months are made');
	}
	is(scalar(grep { /^[1-9]/ } end(@workers)), 12, 'and all others are served');
};

subtest 'a role' => sub {
	my @workers = begin(2, sub { $shim->http(POST => "$path/service-accounts", { token => $root, json => { name => 'x', roles => ['Clerk'] } })->{status} == 201 });

	for (1 .. 2)
	{
		$shim->must(201, POST => "$path/service-accounts", { token => $root, json => { name => 'y', roles => ['Guest'] } });
		is(declare('Clerk'), '0 ', 'is taken away while accounts are made');
		is(declare(qw(Clerk Guest)), '0 ', 'and comes back');
	}
	is(scalar(grep { /^[1-9]/ } end(@workers)), 2, 'which are made');
};

done_testing;
