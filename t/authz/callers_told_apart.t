# Callers are told apart by each thing that a policy can see of them: what one
# of them may see is nothing that is remembered of the next one.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $json = JSON::PP->new->canonical;
my ($one, $two) = map { $shim->tenant($_)->{id} } qw(one two);
my %caller = (userId => 'ann', username => 'ann', kind => 'USER', tenantId => $one, roles => ['A'], profile => { x => 'y' }, securityAttributes => { region => 'EAST' });
my %other = (userId => 'eve', username => 'eve', kind => 'SERVICE_ACCOUNT', tenantId => $two, roles => ['B'], profile => { x => 'z' }, securityAttributes => { region => 'WEST' }, tenantAdmin => JSON::PP::true, superAdmin => JSON::PP::true);
my %expression = (userId => "#user.userId == 'ann'", username => "#user.username == 'ann'", kind => "#user.kind == 'USER'", tenantId => "#user.tenantId == '$one'", roles => "'A' in #user.roles",
	profile => "#user.profile['x'] == 'y'", securityAttributes => "#user.securityAttributes['region'] == 'EAST'", tenantAdmin => '#user.tenantAdmin == false', superAdmin => '#user.superAdmin == false');
my @properties = sort keys %expression;

sub document { my ($kind, $name, $spec) = @_; return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec } }

my $manifests = $json->encode([
	document(Service => 's', { tenancy => 'POOL', tenantAdminBypass => JSON::PP::false }),
	document(Roles => 'roles', { roles => { map { $_ => { description => $_ } } qw(A B) } }),
	document(SecurityAttributes => 'attributes', { attributes => { region => { type => 'string' } } }),
	map({ document(Policy => "P$_", { description => 'p', expression => $expression{$_} }) } @properties),
	map({ document(Entity => "Of$_", { tenantScoped => JSON::PP::false, permissions => { A => ['read'], B => ['read'] }, policies => { "P$_" => ['read'] }, fields => { name => { type => 'string' } } }) } @properties) ]);
my $applied = $cluster->try_psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");
is($applied->{status}, 0, 'applied') or do { diag($applied->{err}); exit 1 };
my %id;
my %path;
for (@properties)
{
	my $table = "of" . ($_ =~ s/([A-Z])/_\l$1/gr);
	($path{$_}) = $cluster->psql("select collection from entityapi.entity where name = 'Of$_'");
	$id{$_} = $cluster->psql("insert into app.$table (id, name, created_at, updated_at) values (gen_random_uuid(), 'x', now(), now()) returning id") =~ s/\n.*//sr;
}
$cluster->psql(q(set role entityapi_owner; create schema val; create function val.who(request jsonb) returns jsonb language sql as $$select jsonb_build_object('principal', (request->'headers'->>'x-who')::jsonb)$$));

sub get { my ($path, $who) = @_; return "select status from entityapi.handle('GET', '/api/v1/$path', jsonb_build_object('authorization', 'Bearer x', 'x-who', \$h\$" . $json->encode($who) . "\$h\$::text), null, null);\n" }

for my $property (@properties)
{
	next if $property eq 'superAdmin';

	my %changed = (%caller, $property => $other{$property});
	my $path = "$path{$property}/$id{$property}";
	my $out = $cluster->psql("set entityapi.credential_validator = 'val.who';\n" . join '', map { get($path, $_) } \%caller, \%caller, \%changed, \%changed, \%caller, \%changed);

	is(join(' ', split /\n/, $out), '200 200 404 404 200 404', "$property is told apart");
}

done_testing();
