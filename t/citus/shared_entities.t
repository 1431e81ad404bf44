# What all tenants share is on all nodes; who writes it waits for others that
# do at most: whatever many write at the same time is answered, and none ends
# another by a deadlock.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1, conf => ['deadlock_timeout = 100ms']);
my $manifests = EntityApi::Test::folder() . '/shared.json';
my %all = (permissions => { Clerk => [qw(read create update delete)] });
my %shared = (tenantScoped => JSON::PP::false, %all);
my $name = { type => 'string' };
my %documents = (
	Service => { s => { distribution => 'citus' } },
	Roles => { r => { roles => { Clerk => { assignableBy => 'superAdmin' } } } },
	Entity => {
		Country => { %shared, fields => { name => $name } },
		City => { %shared, fields => { name => $name, country => { type => 'ref', target => 'Country', relation => 'ManyToOne', onDelete => 'cascade' } } },
		Street => { %shared, fields => { name => $name, city => { type => 'ref', target => 'City', relation => 'ManyToOne', onDelete => 'cascade' },
				near => { type => 'ref', target => 'City', relation => 'ManyToMany' } } },
		Shop => { %all, fields => { name => $name, city => { type => 'ref', target => 'City', relation => 'ManyToOne' } } } });

open my $out, '>', $manifests or die "$manifests: $!\n";
print $out JSON::PP->new->canonical->encode([ map { my $kind = $_;
			map { { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $_ }, spec => $documents{$kind}{$_} } }
			  sort keys %{ $documents{$kind} } } sort keys %documents ]);
close $out or die "$manifests: $!\n";
$cluster->apply($manifests);

my $shim = EntityApi::Test->shim($cluster, threads => 64, pool_queue => 64);
my $tenant = $shim->tenant('acme')->{id};
my $root = $shim->superadmin;
my $ann = $shim->user($tenant, 'ann', ['Clerk']);
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';

sub to_one { my ($type, $id) = @_; return { data => { type => $type, id => $id } } }

sub resource
{
	my ($type, $id, $relationships) = @_;

	return { type => $type, $id ? (id => $id) : (), attributes => { name => 'x' . rand },
		$relationships ? (relationships => $relationships) : () };
}

sub create { my ($type, $to) = @_; return $shim->must(201, POST => "/api/v1/$type", { token => $ann, json => { data => resource($type, undef, $to) } })->{data}{id} }
sub change { my ($type, $id, $to) = @_; return $shim->must(200, PATCH => "/api/v1/$type/$id", { token => $ann, json => { data => resource($type, $id, $to) } }) }

my @countries = map { create('countries') } 1 .. 4;
my @cities = map { create(cities => { country => to_one(countries => $_) }) } @countries;
my @streets = map { create(streets => { city => to_one(cities => $_) }) } @cities;
my @shops = map { create(shops => { city => to_one(cities => $_) }) } @cities;

# In either order
sub all_at_once
{
	my (@operations) = @_;

	@operations = reverse @operations if rand() < 0.5;
	return $shim->must(200, POST => '/api/v1/operations', { token => $ann, json => { 'atomic:operations' => \@operations },
			headers => { 'content-type' => $atomic, accept => $atomic } });
}

sub any { my ($of) = @_; return $of->[ rand @$of ] }

my @work = (
	sub { change(countries => any(\@countries)) },
	sub { change(cities => any(\@cities), { country => to_one(countries => any(\@countries)) }) },
	sub { change(streets => any(\@streets), { city => to_one(cities => any(\@cities)),
				near => { data => [ map { { type => 'cities', id => $_ } } @cities[ 0, 1 + int rand 3 ] ] } }) },
	sub { change(shops => any(\@shops), { city => to_one(cities => any(\@cities)) }) },
	sub {
		my $id = create('countries');

		create(streets => { city => to_one(cities => create(cities => { country => to_one(countries => $id) })) });
		$shim->must(204, DELETE => "/api/v1/countries/$id", { token => $ann });
	},
	sub {
		my @updates = map { { op => 'update', data => resource(@$_) } }
		  [ countries => any(\@countries) ], [ cities => any(\@cities) ], [ streets => any(\@streets) ];

		all_at_once(@updates);
	},
	# with what is the tenant's own
	sub { all_at_once(map { { op => 'update', data => resource(@$_) } } [ countries => any(\@countries) ], [ shops => $shops[0] ]) },
	sub { all_at_once(map { { op => 'update', data => resource(@$_) } } [ streets => any(\@streets) ], [ shops => $shops[0] ]) },
	sub {
		my $user = $shim->must(201, POST => "/manage/tenants/$tenant/users",
			{ token => $root, json => { username => 'u' . int rand 1e12, roles => ['Clerk'] } });

		$shim->must(204, DELETE => "/manage/tenants/$tenant/users/$user->{id}", { token => $root });
	});

my @pids;
for my $worker (1 .. 8)
{
	my $pid = fork // die "fork: $!\n";

	if ($pid)
	{
		push @pids, $pid;
		next;
	}
	srand $worker;
	my $done = eval {
		for my $round (1 .. 5) { $work[ ($worker + $_) % @work ]->() for 0 .. $#work }
		1;
	};
	print STDERR "# worker $worker: $@" if !$done;
	POSIX::_exit($done ? 0 : 1);
}
waitpid $_, 0 and is($?, 0, 'all of a worker is done') for @pids;
for my $node ($cluster->nodes)
{
	my @deadlocks = EntityApi::Test::slurp($node->log) =~ /^(.*deadlock.*(?:\n.*){0,5})/mg;

	is_deeply(\@deadlocks, [], 'nobody waited for who waited for him');
}

done_testing;
