# What changes on one node is so for the next request of another, whose session
# of the server has been at work for a while: credentials, rights, declarations.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

if (my $why = EntityApi::Test::Citus::missing()) { plan skip_all => $why }

my $lists = EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/lists/lists.yaml');
my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster(nodes => 3, conf => [ 'entityapi.login_delay = 900', 'entityapi.login_max_delay = 900' ]);

sub apply
{
	my ($text, @losses) = @_;

	open my $file, '>', "$folder/lists.yaml" or die "lists.yaml: $!\n";
	print $file $text;
	close $file;
	return $cluster->apply((map { ('--allow-data-loss', $_) } @losses), "$folder/lists.yaml");
}

apply($lists);

# One session of the server each, so that what it knows is what it knew
my @shims = map { EntityApi::Test->shim($cluster, node => $_, pool_size => 1) } 0 .. 2;
my $root = $shims[0]->superadmin;
my ($tenant) = $cluster->place($shims[0], 'Editor');
my $made = 0;

sub user { return $shims[0]->user($tenant->{id}, 'someone' . ++$made, [ $_[0] // 'Editor' ]) }
sub asked { my ($options, $target, @on) = @_; return join ' ', map { $_->http(GET => $target // '/api/v1/items', $options)->{status} } @on ? @on : @shims }

# What is done on one node counts on all: three times, each node in its turn.
# Asked again at once, a session of the server takes what it keeps of the caller.
sub counts
{
	my ($name, $before, $after, $scene) = @_;

	return subtest $name => sub {
		for my $i (0 .. 2)
		{
			my ($done, $options, $target) = $scene->($shims[$i]);

			is(asked($options, $target), join(' ', ($before) x 3), 'before') for 1 .. 4;
			$done->();

			# the node where it was done comes last
			is(asked($options, $target, @shims[ ($i + 1) % 3, ($i + 2) % 3, $i ]), join(' ', ($after) x 3), "done on node $i") for 1 .. 3;
		}
	};
}

my $path = "/manage/tenants/$tenant->{id}";

counts('a session is ended', 200, 401, sub {
		my ($shim) = @_;
		my $user = user();
		return (sub { $shim->must(204, POST => '/auth/logout', { token => $user, json => { refreshToken => $user->{refreshToken} } }) }, { token => $user }) });
counts('a user is disabled', 200, 401, sub {
		my ($shim) = @_;
		my $user = user();
		return (sub { $shim->must(200, PATCH => "$path/users/$user->{id}", { token => $root, json => { status => 'DISABLED' } }) }, { token => $user }) });
counts('a role is taken away', 200, 403, sub {
		my ($shim) = @_;
		my $user = user();
		return (sub { $shim->must(200, PUT => "$path/users/$user->{id}/roles", { token => $root, json => { roles => [] } }) }, { token => $user }) });
counts('a key is revoked', 200, 401, sub {
		my ($shim) = @_;
		my $user = user();
		my $key = $shim->must(201, POST => '/auth/me/api-keys',
			{ token => $user, json => { name => 'k', domainRoles => ['Editor'], expiresAt => '2099-01-01T00:00:00Z' } });
		return (sub { $shim->must(200, POST => "$path/personal-api-keys/$key->{id}/revoke", { token => $root }) }, { headers => { 'x-api-key' => $key->{key} } }) });
counts('a tenant is suspended', 200, 401, sub {
		my ($shim) = @_;
		my $id = $shim->tenant('short' . ++$made)->{id};
		my $user = $shim->user($id, "short$made", ['Editor']);
		return (sub { $shim->must(200, PATCH => "/manage/tenants/$id", { token => $root, json => { status => 'SUSPENDED' } }) }, { token => $user }) });
counts('a signing key is revoked', 200, 401, sub {
		# with the one before, the tokens of the SuperAdmin have gone as well
		delete $_->{superadmin} for @shims;
		my $user = user();
		return (sub { $cluster->psql('select entityapi.rotate_signing_key(); select entityapi.revoke_signing_key(kid) from (select kid from entityapi.signing_key order by created_at desc, state offset 1) k') },
			{ token => $user }) });

# All tokens are gone with the keys.
delete $_->{superadmin} for @shims;
$root = $shims[0]->superadmin;

subtest 'declarations' => sub {
	my $reader = user('Reader');
	my %by = (token => $reader);
	my $group = '    group: {type: ref, target: Group, relation: ManyToOne, onDelete: setNull}';

	is(asked(\%by), '200 200 200', 'may read') for 1, 2;
	is(asked(\%by, '/api/v1/items?filter=added==1'), '400 400 400', 'no such field');
	my $without = $lists =~ s/(name: Item\}.*?)\n    Reader: \[read\]/$1/sr;
	isnt($without, $lists, 'a permission less');
	apply($without);
	is(asked(\%by), '403 403 403', 'may not read');
	my $more = $lists =~ s/\Q$group\E/$&\n    added: {type: integer, index: true}/r;
	apply($more);
	is(asked(\%by), '200 200 200', 'may again');
	is(asked(\%by, '/api/v1/items?filter=added==1'), '200 200 200', 'and by a new field');
	my $entity = "$more---\napiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Extra}\nspec:\n  fields: {word: {type: string}}\n  permissions: {Reader: [read]}\n";
	is(asked(\%by, '/api/v1/extras'), '404 404 404', 'no such entity');
	apply($entity);
	is(asked(\%by, '/api/v1/extras'), '200 200 200', 'a new one');
	apply($lists, 'Extra', 'Item.added');
	is(asked(\%by, '/api/v1/extras'), '404 404 404', 'that is gone');
	is(asked(\%by, '/api/v1/items?filter=added==1'), '400 400 400', 'as the field is');
};

# Failed logins count for the name, wherever they come from.
subtest 'guesses count for the cluster' => sub {
	my $user = user();
	my $guess = sub { my ($shim) = @_; return $shim->http(POST => '/auth/login', { json => { username => $user->{username}, password => 'wrong' } })->{status} };
	my $tries = 0;

	1 while $tries < 60 && $guess->($shims[ $tries++ % 3 ]) == 401;
	cmp_ok($tries, '<', 60, 'there is an end to them');
	is(join(' ', map { $guess->($_) } @shims), '429 429 429', "refused by one, after $tries, refused by all");
};

done_testing;
