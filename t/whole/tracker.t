# The second example: its manifests apply, its data loads through the API, and
# what its README shows is there.  All of it without a line of SQL.

use strict;
use warnings;
use utf8;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $checkout = EntityApi::Test::checkout();

$cluster->apply("$checkout/examples/tracker");
like($cluster->apply("$checkout/examples/tracker"), qr/\S/, 'applying again is harmless');

my $shim = EntityApi::Test->shim($cluster);
my $password = 'plainly-for-a-test-3';
my $superadmin = $cluster->superadmin;
my $load = EntityApi::Test::run(
	["$checkout/scripts/service/demo"],
	env => {
		MANIFESTS                     => "$checkout/examples/tracker",
		ENTITYAPI_URL                 => $shim->url,
		ENTITYAPI_SUPERADMIN_USERNAME => $superadmin->{username},
		ENTITYAPI_SUPERADMIN_PASSWORD => $superadmin->{password},
		DEMO_PASSWORD                 => $password });
is($load->{status}, 0, 'the data loads') or BAIL_OUT($load->{err});
is($load->{out}, "Loaded the example data of Harbour Works.\n", 'of one tenant');

my %as = map { $_ => EntityApi::Test::Cases->new($shim, $shim->login("harbour-$_", $password), '/api/v1') } qw(admin mia ben dora gus);

sub titles
{
	my ($who, $query) = @_;

	return [ map { $_->{attributes}{title} } @{ $as{$who}->good(200, GET => '/tasks?sort=title' . ($query // ''))->{json}{data} } ];
}

my @engineering = ('Scan plates in rain', 'Second camera', 'Stop within 200 ms');
my @design = ('Icons that gloves can hit', 'Screen for the night shift');

is_deeply(titles('mia'), \@engineering, 'the tasks of one\'s department');
is_deeply(titles('dora'), \@design, 'of another one');
is_deeply(titles('ben'), [ sort @engineering, $design[0] ], 'and what is assigned to oneself');
is_deeply(titles('gus'), [], 'a guest of a department without tasks');
is_deeply(titles('admin'), [ sort @engineering, @design ], 'an administrator');
is_deeply(titles('ben', '&filter=assignee.username==harbour-ben;status!=DONE'), [ 'Scan plates in rain', 'Stop within 200 ms' ], 'what is mine to do');
is_deeply([ map { $_->{attributes}{text} } @{ $as{mia}->good(200, GET => '/comments?sort=createdAt')->{json}{data} } ],
	[ '340 ms at the moment; the brake waits for the network.', 'Then the brake must not wait for it.' ], 'comments on what one sees');

my @shown = EntityApi::Test::slurp("$checkout/examples/tracker/README.md") =~ m{^call GET '/api/v1(\S+)'$}mg;
is(scalar @shown, 2, 'what the README shows');
is_deeply([ map { scalar @{ $as{ben}->good(200, GET => $_)->{json}{data} } } @shown ], [ 2, 4 ], 'is there');

my ($stop) = @{ $as{ben}->good(200, GET => '/tasks?filter=priority==5&include=comments.author,assignee,createdBy')->{json}{data} };
my $said = $as{ben}->good(201, POST => '/comments', data => { type => 'comments', attributes => { text => 'Done.' },
		relationships => { task => { data => { type => 'tasks', id => $stop->{id} } } } })->{json}{data};
my $me = $as{ben}->good(200, GET => '/users?filter=username==harbour-ben')->{json}{data}[0];
is($said->{relationships}{author}{data}{id}, $me->{id}, 'a comment is by who writes it');
is_deeply([ sort keys %{ $me->{attributes} } ], [qw(createdAt displayName kind timezone username)], 'what members see of one another');
is($as{mia}->good(200, GET => "/users/$me->{id}")->{json}{data}{attributes}{email}, 'ben@harbour.example', 'managers see addresses');
$as{dora}->refused('a comment on what one does not see', 404, 'RELATED_NOT_FOUND', undef, POST => '/comments', data => { type => 'comments',
		attributes => { text => 'x' }, relationships => { task => { data => { type => 'tasks', id => $stop->{id} } } } });
$as{gus}->refused('a guest writes nothing', 403, 'FORBIDDEN', undef, POST => '/labels', data => { type => 'labels', attributes => { name => 'x' } });

my $changed = $as{ben}->good(200, PATCH => "/tasks/$stop->{id}", headers => { 'If-Match' => '"0"' },
	data => { type => 'tasks', id => $stop->{id}, attributes => { status => 'DONE' } })->{json}{data};
is($changed->{relationships}{updatedBy}{data}{id}, $me->{id}, 'a change has an author');
isnt($changed->{relationships}{createdBy}{data}{id}, $me->{id}, 'which is another than who made it');

done_testing();
