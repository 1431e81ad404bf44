# The tables that random tests attack, and requests to them as SQL.

package Tables;

use strict;
use warnings;

use JSON::PP ();

use EntityApi::Test;

my $json = JSON::PP->new->canonical->ascii;
my $type = 'application/vnd.api+json';
my $true = JSON::PP::true;

sub to { my ($target, $relation, @more) = @_; return { type => 'ref', target => $target, relation => $relation, @more } }

sub entity
{
	my ($name, $spec, @more) = @_;

	return {
		apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name },
		spec => { permissions => { Editor => [ qw(create read update delete), @more ] }, %$spec } };
}

sub documents
{
	return (
		{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'attacked' }, spec => { tenancy => 'POOL' } },
		{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Editor => {} } } },
		entity('Folder', { fields => {
				title    => { type => 'string', unique => $true },
				size     => { type => 'integer', default => 0, minimum => 0 },
				docs     => to('Doc', 'OneToMany', mappedBy => 'folder'),
				parent   => to('Folder', 'ManyToOne', onDelete => 'setNull'),
				children => to('Folder', 'OneToMany', mappedBy => 'parent') } }),
		entity('Doc', { optimisticLocking => $true, fields => {
				name   => { type => 'string', required => $true, maxLength => 20, index => $true },
				code   => { type => 'string', unique => $true },
				amount => { type => 'decimal', precision => 12, scale => 2, minimum => 0 },
				n      => { type => 'integer', default => 0 },
				m      => { type => 'integer', index => $true },
				state  => { type => 'string', enum => [qw(NEW OPEN)] },
				note   => { type => 'text' },
				folder => to('Folder', 'ManyToOne', onDelete => 'restrict'),
				labels => to('Label', 'ManyToMany') } }),
		entity('Label', { softDelete => $true, fields => {
				name => { type => 'string', unique => $true },
				docs => to('Doc', 'ManyToMany', mappedBy => 'labels') } }, 'restore'));
}

# The tables in a cluster, with an editor; options are as of cluster().
sub prepare
{
	my ($class, @conf) = @_;
	my $cluster = EntityApi::Test->cluster(conf => [ 'entityapi.access_token_ttl = 86400', @conf ]);

	$cluster->psql('select count(*) from entityapi.apply_manifest($m$' . $json->encode([ documents() ]) . '$m$::jsonb)');
	my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
	my $tenant = $shim->tenant('attacked')->{id};
	my $self = bless { cluster => $cluster, tenant => $tenant, token => $shim->user($tenant, 'ed', ['Editor'])->{accessToken} }, $class;

	# its sessions would be in the way of what is done to tables
	$shim->stop;
	return $self;
}

# -------- requests --------

# A document of primary data
sub resource
{
	my ($of, $attributes, $relationships, $id) = @_;

	return { data => { type => $of,
			defined $id ? (id => $id) : (),
			$attributes ? (attributes => $attributes) : (),
			$relationships ? (relationships => { map { $_ => { data => $relationships->{$_} } } keys %$relationships }) : () } };
}

sub identifier { return { type => $_[0], id => $_[1] } }

# A request as SQL: its status, a bar, and the answer
sub request
{
	my ($self, $method, $target, $document, $match) = @_;
	my $as = $target =~ m{^/operations} ? "$type;ext=\"https://jsonapi.org/ext/atomic\"" : $type;
	my $headers = $json->encode({ authorization => "Bearer $self->{token}", accept => $as,
			defined $document ? ('content-type' => $as) : (), defined $match ? ('if-match' => $match) : () });
	my $body = defined $document ? 'convert_to($j$' . $json->encode($document) . q{$j$, 'UTF8')} : 'null';

	return "select status, body from entityapi.handle('$method', \$t\$/api/v1$target\$t\$, \$h\$$headers\$h\$, $body, '192.0.2.1')";
}

# In a session: the status, the answer as text, and the SQLSTATE, if it threw
sub do_request
{
	my ($self, $session, @request) = @_;
	my $answer = $session->ask($self->request(@request));
	my ($status, $body) = $answer->{out} =~ /^(\d+)\|(.*)$/s;

	return ($status // 0, $body // '', $answer->{sqlstate}, $answer->{message});
}

sub id_of { return $_[0] =~ /^\{"data":\{[^{}]*?"id":"([0-9a-f-]{36})"/ ? $1 : $_[0] =~ /"id":"([0-9a-f-]{36})"/ ? $1 : undef }

# Makes one that must be there; its id
sub make
{
	my ($self, $session, @resource) = @_;
	my ($status, $body, $sqlstate, $message) = $self->do_request($session, POST => "/$resource[0]", resource(@resource));

	die "POST /$resource[0]: $status $sqlstate $message $body\n" if $status != 201;
	return id_of($body);
}

1;
