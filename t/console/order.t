# The console shows attributes and relationships in the order of the manifest:
# its modules, as the shim serves them, run with elements that only remember
# what was put in.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my ($node) = grep { -x } map { "$_/node" } split /:/, $ENV{PATH};
plan skip_all => 'node is not installed' unless $node;

my $folder = EntityApi::Test::folder();
my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;

sub write_file { my ($name, $text) = @_; return EntityApi::Test::write_file("$folder/$name", $text) }

# The name is neither first nor last, what is required stands among the rest,
# and what is long before what is short.
$cluster->apply(write_file('manifest.yaml', <<~'YAML'));
	apiVersion: entityapi/v1
	kind: Roles
	metadata: {name: roles}
	spec: {roles: {Editor: {}, Reader: {}}}
	---
	apiVersion: entityapi/v1
	kind: Entity
	metadata: {name: Patient}
	spec:
	  fields: {name: {type: string}}
	  permissions: {Editor: [create, read], Reader: [read]}
	---
	apiVersion: entityapi/v1
	kind: Entity
	metadata: {name: User}
	spec: {accounts: true, permissions: {Editor: [read], Reader: [read]}}
	---
	apiVersion: entityapi/v1
	kind: Entity
	metadata: {name: Stay}
	spec:
	  system: [updatedBy, createdAt]
	  fields:
	    zone: {type: integer}
	    remarks: {type: text}
	    patient: {type: ref, target: Patient, relation: ManyToOne}
	    bedCount: {type: integer, required: true}
	    secret: {type: string, readRoles: [Reader], writeRoles: [Editor]}
	    name: {type: string, required: true}
	    attended: {type: ref, target: Patient, relation: ManyToOne, required: true}
	    at: {type: date}
	  permissions: {Editor: [create, read, update], Reader: [read]}
	YAML
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $user = $shim->user($tenant->{id}, 'eve', ['Editor']);

sub create
{
	my ($type, $attributes, $relationships) = @_;

	return $shim->must(201, POST => "/api/v1/$type",
		{ token => $user, headers => { 'Content-Type' => 'application/vnd.api+json' }, json => { data => { type => $type, attributes => $attributes, relationships => $relationships } } })->{data}{id};
}

my $patient = create(patients => { name => 'Ann' }, {});
my $stay = create(stays => { name => 'One', bedCount => 2, zone => 7 }, { map { $_ => { data => { type => 'patients', id => $patient } } } qw(patient attended) });

write_file('package.json', '{"type": "module"}');
write_file(s{.*/}{}r, EntityApi::Test::slurp($_)) for glob "$checkout/shim/console/*.js";
my $main = write_file('try.js', <<~'JS');
	const [, , base, token, id] = process.argv
	globalThis.Node = class {
	  constructor(name) { Object.assign(this, { localName: name, attributes: {}, children: [], style: {}, classList: { add() {}, toggle() {} } }) }
	  setAttribute(name, value) { this.attributes[name] = value }
	  removeAttribute(name) { delete this.attributes[name] }
	  getAttribute(name) { return this.attributes[name] ?? null }
	  addEventListener() {}
	  append(...children) { this.children.push(...children) }
	  replaceChildren(...children) { this.children = children }
	  get firstChild() { return this.children[0] }
	  set textContent(text) { this.children = [text] }
	  get textContent() { return this.children.map((one) => one instanceof Node ? one.textContent : one).join('') }
	  all(test) { return this.children.filter((one) => one instanceof Node).flatMap((one) => [...(test(one) ? [one] : []), ...one.all(test)]) }
	}
	const make = (name) => new Node(name)
	globalThis.document = Object.assign(make('html'), { baseURI: `${base}/console/`, createElement: make, createElementNS: (_, name) => make(name), body: make('body') })
	globalThis.window = globalThis
	globalThis.addEventListener = () => {}
	globalThis.location = { hash: '' }
	globalThis.sessionStorage = globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} }
	const ask = fetch
	globalThis.fetch = (url, options) => ask(url, { ...options, headers: { ...options.headers, Authorization: `Bearer ${token}` } })

	const { load, loadPermissions, model, openapi } = await import('./model.js')
	await load()
	const entity = model.byType.get('stays')
	const { csvOf } = await import('./transfer.js')
	const list = await import('./list.js')
	const record = await import('./record.js')
	const declarations = await import('./declarations.js')
	const { filterBuilder } = await import('./filter.js')
	const signal = new AbortController().signal
	const tree = (parts) => { const top = make('top'); top.append(...[parts].flat(9).filter((one) => one instanceof Node)); return top }
	const named = (top, name) => top.all((one) => one.localName === name)
	const route = { parts: ['data', 'stays'], query: {}, signal }
	const orders = async () => {
	  const page = tree(await list.show(route))
	  const one = tree(await record.show({ parts: ['data', 'stays', id], query: {}, signal }))
	  return {
	    table: named(page, 'th').map((one) => one.attributes.title),
	    leads: named(page, 'tbody')[0].all((one) => one.localName === 'td').map((td) => named(td, 'a')[0]?.attributes.href ?? ''),
	    form: tree(await record.showNew({ ...route, parts: ['data', 'stays', 'new'] })).all((one) => one.localName === 'label').map((one) => one.attributes.title),
	    facts: named(one, 'dt').map((one) => one.attributes.title),
	    csv: csvOf(entity, []).trim(),
	    picture: named(tree(declarations.show()), 'a').find((one) => one.attributes['aria-label'] === 'Stays').all((one) => !one.attributes.class && one.localName === 'text').map((one) => one.textContent),
	    filter: named(tree(filterBuilder(entity, 'zone==1', () => {}).node), 'option').map((one) => one.attributes.value ?? one.value).filter((one) => /^(zone|remarks|patient|bedCount|secret|name|attended|at|createdAt|updatedBy)(\.id)?$/.test(one))
	  }
	}
	const apart = await orders()
	await loadPermissions()
	console.log(JSON.stringify({ apart, together: await orders(), document: openapi() !== null }))
	process.exit(0)
	JS
my $result = EntityApi::Test::run([ $node, $main, $shim->url, $user->{accessToken}, $stay ]);
is($result->{status}, 0, 'runs') or diag $result->{err};
my $said = EntityApi::Test::json()->decode($result->{out});

sub in_order
{
	my ($got, $wanted, $name) = @_;

	return is(join(' ', map { $_ // '-' } @{ $got // [] }), $wanted, $name);
}

my $together = $said->{together};
in_order($together->{table}, 'zone patient bedCount name attended at createdAt', 'columns of a table');
in_order([ map { m{^#/data/(\w+)} ? $1 : '-' } @{ $together->{leads} } ], '- patients - stays patients - -', 'the name leads to the resource');
in_order($together->{form}, 'zone remarks patient bedCount secret name attended at', 'a form');
in_order($together->{facts}, 'zone remarks patient bedCount name attended at updatedBy createdAt', 'one resource');
is($together->{csv}, '"id","zone","remarks","patient","bedCount","name","attended","at","updatedBy","createdAt"', 'CSV');
in_order($together->{picture}, 'zone remarks patient bedCount * secret name * attended * at updatedBy createdAt', 'the picture');
in_order($together->{filter}, 'zone remarks patient.id bedCount name attended.id at updatedBy.id createdAt', 'what is asked for');

# A service that does not tell what one may do has no order of both together.
my $apart = $said->{apart};
in_order($apart->{table}, 'zone bedCount name at patient attended', 'without: columns of a table');
is($apart->{csv}, '"id","zone","remarks","bedCount","name","at","patient","attended","createdAt","updatedBy"', 'without: CSV');

done_testing();
