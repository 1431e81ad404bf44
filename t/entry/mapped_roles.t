# A mapping is of the role that was there, not of whatever has its name later.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;

$cluster->apply("$checkout/t/data/entities");
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $eve = $shim->user($tenant->{id}, 'eve', ['Editor']);
$shim->must(201, POST => '/api/v1/people', { token => $eve, json => { data => { type => 'people', attributes => { name => 'Ann' } } } });

sub seen { return $cluster->psql('select count(*) from app.person', user => $_[0]) }

$cluster->psql(q{create role bi login in role entityapi_reader; select entityapi.map_role('bi', 'eve')});
is(seen('bi'), 1, 'mapped');
$cluster->psql('alter role bi rename to bi2');
is(seen('bi2'), 0, 'not under another name');
$cluster->psql('create role bi login in role entityapi_reader');
is(seen('bi'), 0, 'nor another role under this name');
$cluster->psql('drop role bi; alter role bi2 rename to bi');
is(seen('bi'), 1, 'but the same');
$cluster->psql('drop role bi; create role bi login in role entityapi_reader');
is(seen('bi'), 0, 'dropped and made again it is another');
$cluster->psql(q{select entityapi.map_role('bi', 'eve')});
is(seen('bi'), 1, 'until it is mapped itself');
$cluster->psql(q{select entityapi.map_role('bi', null)});
is(seen('bi'), 0, 'and no more');
like($cluster->try_psql(q{select entityapi.map_role('nobody', 'eve')})->{err}, qr/role "nobody" does not exist/, 'there has to be one');

subtest 'from a version that went by the name' => sub {
	# its extension is in one database alone, and its roles may not log in
	plan skip_all => 'no released version has been on several nodes' if $cluster->nodes > 1;
	EntityApi::Test::Released::install($cluster) or plan skip_all => 'a released version is installed only into the copy of the server that make test makes';
	$cluster->psql('create database mapped', database => 'postgres');
	$cluster->psql(q{create extension pgcrypto; create extension entityapi version '1.1';
		insert into entityapi.tenant values ('01980000-0000-7000-8000-000000000001', 'A', 'a', 'ACTIVE', '{}', now());
		insert into entityapi.account values ('01980000-0000-7000-8000-000000000002', '01980000-0000-7000-8000-000000000001', 'USER', 'eve', 'eve', null, 'ACTIVE',
			'{}', '{}', '{}', null, false, false, now());
		insert into entityapi.mapped_role values ('bi', '01980000-0000-7000-8000-000000000002'), ('gone', '01980000-0000-7000-8000-000000000002')}, database => 'mapped');
	$cluster->psql('alter extension entityapi update', database => 'mapped');
	is($cluster->psql(q{select string_agg(role || ' ' || coalesce(role_oid::regrole::text, 'nobody'), ', ' order by role) from entityapi.mapped_role}, database => 'mapped'),
		'bi bi, gone nobody', 'the roles of that time are mapped');
	is($cluster->psql('select entityapi.current_tenant()', database => 'mapped', user => 'bi'), '01980000-0000-7000-8000-000000000001', 'and go on');
	$cluster->psql('create role gone login in role entityapi_reader');
	is($cluster->psql('select entityapi.current_tenant() is null', database => 'mapped', user => 'gone'), 't', 'what was none then is none');
};

done_testing();
