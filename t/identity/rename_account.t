# An operator gives a user another name: it logs in by that one, and what it had
# goes on.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();

open my $file, '>', "$folder/user.json" or die "user.json: $!\n";
print {$file} JSON::PP->new->canonical->encode([ { apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {} } } },
	{ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'User' },
		spec => { accounts => JSON::PP::true, permissions => { Editor => ['read'] }, fields => { zone => { type => 'string', from => 'profile.zone' } } } } ]);
close $file;
$cluster->apply("$folder/user.json");

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $ann = $shim->user($tenant->{id}, 'ann', ['Editor']);
my $bob = $shim->user($tenant->{id}, 'bob', ['Editor']);
my $rename = sub { $cluster->try_psql("select entityapi.rename_account('$_[0]', '$_[1]')", user => $_[2] // 'postgres')->{err} };
my $login = sub { $shim->http(POST => '/auth/login', { json => { username => $_[0], password => $ann->{password} } })->{status} };

is($rename->($ann->{id}, " A\x{308}nn "), '', 'renamed');
is($login->('ann'), 401, 'not by the old name');
is($login->("\N{U+e4}NN"), 200, 'but by the new one');
is($shim->must(200, GET => '/auth/me', { token => $ann })->{username}, "\N{U+c4}nn", 'its session goes on');
is($shim->must(200, GET => "/api/v1/users/$ann->{id}", { token => $bob })->{data}{attributes}{username}, "\N{U+c4}nn", 'its row of User follows');
like($rename->($bob->{id}, "\N{U+e4}nn"), qr/this username is taken/, 'a name is one user\'s');
is($rename->($ann->{id}, "\N{U+c4}NN"), '', 'its own one in other letters is free');
like($rename->($tenant->{id}, 'x'), qr/there is no user with this id/, 'of users alone');
my $records = $shim->must(200, GET => "/manage/audit?filter=action==USER_RENAMED", { token => $shim->superadmin });
is(scalar @{ $records->{items} // $records->{data} }, 2, 'each is in the log') or diag explain $records;
$cluster->psql('create role deployer login; grant entityapi_owner to deployer; create role mallory login');
is($rename->($bob->{id}, 'bo', 'deployer'), '', 'a member of entityapi_owner may');
like($rename->($bob->{id}, 'b', $_), qr/permission denied/, "$_ may not") for qw(mallory entityapi_shim);

done_testing();
