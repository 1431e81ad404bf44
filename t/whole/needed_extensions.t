# What the extension needs belongs to nobody who could drop the service with it:
# pgcrypto is trusted, so whoever may make objects in a database can have it.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

my $cluster = EntityApi::Test->cluster;
my @versions = EntityApi::Test::Released::install($cluster) ? EntityApi::Test::Released::before('1.2') : ();

$cluster->psql('create role mallory login; create role boss login');

sub database
{
	my ($name, $owner) = @_;

	$cluster->psql("create database $name owner $owner; grant create on database $name to mallory", database => 'postgres');
	return (database => $name);
}

my $refused = qr/could drop the service with it: pgcrypto of mallory/;

my @first = database(first => 'boss');
$cluster->psql('create extension pgcrypto', user => 'mallory', @first);
like($cluster->try_psql('create extension entityapi cascade', @first)->{err}, $refused, 'installing is refused');
$cluster->psql('reassign owned by mallory to postgres; create extension entityapi', @first);
like($cluster->try_psql('drop extension pgcrypto cascade', user => 'mallory', @first)->{err}, qr/must be owner of extension pgcrypto/, 'once it is given away it is not');

my @second = database(second => 'boss');
$cluster->psql('create extension pgcrypto', user => 'boss', @second);
is($cluster->try_psql('create extension entityapi', @second)->{err}, '', 'that of the owner of the database will do');

for my $version (@versions)
{
	my @third = database('third_' . ($version =~ tr/./_/r), 'boss');

	$cluster->psql('create extension pgcrypto', user => 'mallory', @third);
	$cluster->psql("create extension entityapi version '$version'", @third);
	like($cluster->try_psql('alter extension entityapi update', @third)->{err}, $refused, "an update from $version is refused");
	$cluster->psql('reassign owned by mallory to postgres; alter extension entityapi update', @third);
}

# Nobody finds out at the first request.
for my $encoding (qw(SQL_ASCII LATIN1))
{
	$cluster->psql("create database other encoding $encoding locale 'C' template template0", database => 'postgres');
	my $result = $cluster->try_psql('create extension entityapi cascade', database => 'other');
	like($result->{err}, qr/ERROR:  entityapi needs a database with encoding UTF8\n.*HINT:.*createdb -T template0 -E UTF8/s, "$encoding is refused");
	$cluster->psql('drop database other', database => 'postgres');
}

done_testing();
