# `distribution: none` while requests go on: it gets through, each request is
# done or 503, and what was said to be done is there, with its record.

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $cluster = EntityApi::Test->cluster(nodes => 3, undeclared => 1);
my $folder = EntityApi::Test::folder();
my $apply = sub {
	my ($how) = @_;
	EntityApi::Test::write_file("$folder/item.json", JSON::PP->new->canonical->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => { distribution => $how } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => {} } } },
		{ kind => 'Entity', metadata => { name => 'Item' }, spec => { fields => { name => { type => 'string' } }, permissions => { Editor => [qw(create read)] } } } ]));
	my $done = $cluster->try_apply("$folder/item.json");
	is("$done->{status} $done->{err}", '0 ', "applied with $how");
};

$apply->('citus');
my $shim = EntityApi::Test->shim($cluster, node => 0, pool_size => 8, sweep_interval_ms => 0);
my @users = map { $shim->user($shim->tenant("t$_")->{id}, "u$_", ['Editor']) } 1 .. 4;

# One user's requests until there is an end of it; what came of each is a line
sub work
{
	my ($user, $log) = @_;
	my $child = fork // die "$!\n";

	return $child if $child != 0;
	my $parent = getppid;
	my $http = HTTP::Tiny->new(timeout => EntityApi::Test::PATIENCE(),
		default_headers => { Authorization => "Bearer $user->{accessToken}", 'Content-Type' => 'application/vnd.api+json' });
	my $body = JSON::PP::encode_json({ data => { type => 'items', attributes => { name => 'x' } } });
	open my $out, '>', $log or POSIX::_exit(1);
	$out->autoflush(1);
	while (!-e "$folder/end" && getppid == $parent)
	{
		for my $answer ($http->post($shim->url . '/api/v1/items', { content => $body }), $http->get($shim->url . '/api/v1/items?page[size]=3'))
		{
			print $out join(' ', $answer->{status}, $answer->{status} == 201 ? $answer->{content} =~ /"id":"([-0-9a-f]{36})"/ : ()), "\n";
		}
	}
	POSIX::_exit(0);
}

for my $round (1 .. 3)
{
	unlink "$folder/end";
	my @children = map { work($users[$_], "$folder/log$_") } 0 .. $#users;
	my $served = sub { my ($status, $n) = @_; EntityApi::Test::wait_until(60, sub {
		@users == grep { my $log = "$folder/log$_"; -e $log && $n <= (() = EntityApi::Test::slurp($log) =~ /^$status/mg) } 0 .. $#users }) };

	ok($served->(201, 5), "round $round: requests go on");
	$apply->('none');
	my @before = map { scalar(() = EntityApi::Test::slurp("$folder/log$_") =~ /^201/mg) } 0 .. $#users;
	ok($served->(201, 5 + (sort { $b <=> $a } @before)[0]), 'and afterwards again');
	EntityApi::Test::write_file("$folder/end", '');
	waitpid $_, 0 for @children;
	my $told = join '', map { EntityApi::Test::slurp("$folder/log$_") } 0 .. $#users;
	my %other = map { $_ => 1 } grep { !/^(?:200|201|503)$/ } $told =~ /^(\d+)/mg;
	my $ids = join ',', map { "'$_'" } my @made = $told =~ /^201 (\S+)/mg;

	is(join(' ', sort keys %other), '', 'each was done, or 503');
	is($cluster->psql("select count(*) from app.item where id in ($ids)"), scalar @made, 'what was said to be made is there');
	is($cluster->psql("select count(distinct target_id) from entityapi.audit where action = 'ENTITY_CREATE' and target_id in ($ids)"), scalar @made, 'with its record');
	$apply->('citus') if $round < 3;
}

is($cluster->psql('select count(*) from pg_dist_partition'), 0, 'Citus has nothing');

done_testing;
