# Changes of manifests: a name, the entities before and after, and what else
# there is to a case.  t/ddl/changes.t says what the keys mean; the statements
# or faults that each of them must give are in cases.out.

use strict;
use warnings;

use JSON::PP ();

sub yes { return JSON::PP::true() }
sub off { return JSON::PP::false() }

# A field: its type, then other keys
sub f { my ($type, %more) = @_; return { type => $type, %more } }
sub str { my ($length, %more) = @_; return f('string', maxLength => $length, %more) }
sub ref_to { my ($target, %more) = @_; return f('ref', target => $target, %more) }
sub many_to_many { my ($target, %more) = @_; return ref_to($target, relation => 'ManyToMany', %more) }

# An entity: its fields, then other keys
sub e { my ($fields, %more) = @_; return { fields => $fields, %more } }

# One entity "Item" with one field "a"
sub item { my ($field, %more) = @_; return { Item => e({ a => $field }, %more) } }

my @three = map { { id => $_, a => "'v$_'" } } 1 .. 3;
my @numbers = map { { id => $_, a => $_ } } 1 .. 3;
my $values = 'SELECT a FROM kept.item ORDER BY id';

# A maker and its items
sub makers { my ($item, %more) = @_; return { Maker => e({ name => str(10) }), Item => e({ made => $item }, %more) } }
my @made = ([ maker => { id => 1, name => "'one'" }, { id => 2, name => "'two'" } ],
	[ item => { id => 1, made_id => 'id(1)' }, { id => 2, made_id => 'id(1)' }, { id => 3 } ]);
my @once = ($made[0], [ item => { id => 1, made_id => 'id(1)' }, { id => 3 } ]);
my $made = 'SELECT m.name FROM kept.item i LEFT JOIN kept.maker m ON (m.tenant_id, m.id) = (i.tenant_id, i.made_id) ORDER BY i.id';

# Tags of items
sub tagged { my ($name, $field, %more) = @_; return { Tag => e({ name => str(10) }), Item => e({ $name => $field }), %more } }
my @tagged = ([ tag => { id => 5, name => "'red'" } ], [ item => { id => 1 } ],
	[ item_tags => { item_id => 'id(1)', tag_id => 'id(5)' } ]);

# Payments for one thing or another
my %things = (Bike => e({ name => str(10) }), Car => e({ name => str(10) }), Boat => e({ name => str(10) }));
sub paid { my ($field, @members) = @_; return { %things, Payment => e({ for => $field }), -Thing => [@members] } }
my @paid = ([ bike => { id => 1, name => "'bike'" } ], [ car => { id => 2, name => "'car'" } ],
	[ payment => { id => 1, for_bike_id => 'id(1)' }, { id => 2, for_car_id => 'id(2)' } ]);

my $hidden = 'SELECT id FROM kept.item ORDER BY id';

return (
	# entities
	{ name => 'entity added', from => item(str(10)), to => { %{ item(str(10)) }, New => e({ b => f('text') }) },
		rows => [ [ item => @three ] ], kept => $values },
	{ name => 'entity dropped', from => { %{ item(str(10)) }, Old => e({ b => f('text') }) }, to => item(str(10)),
		rows => [ [ old => { id => 1 } ], [ item => @three ] ], kept => $values },
	{ name => 'entity dropped, allowed', from => { %{ item(str(10)) }, Old => e({ b => f('text') }) }, to => item(str(10)),
		rows => [ [ old => { id => 1 } ], [ item => @three ] ], kept => $values, allow => ['Old'] },
	{ name => 'entity renamed', from => item(str(10, unique => yes(), index => yes(), enum => [qw(v1 v2 v3)]), indexes => [ ['a'] ]),
		to => { Thing => e({ a => str(10, unique => yes(), index => yes(), enum => [qw(v1 v2 v3)]) }, renamedFrom => 'Item', indexes => [ ['a'] ]) },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT a FROM kept.thing ORDER BY id' ] },
	{ name => 'entity renamed, with all that leads to it',
		from => { Item => e({ tags => many_to_many('Tag') }), Tag => e({ items => many_to_many('Item', mappedBy => 'tags') }),
			Note => e({ about => f('oneof', target => 'Any'), of => ref_to('Item') }), -Any => [qw(Item Tag)] },
		to => { Thing => e({ tags => many_to_many('Tag') }, renamedFrom => 'Item'), Tag => e({ items => many_to_many('Thing', mappedBy => 'tags') }),
			Note => e({ about => f('oneof', target => 'Any'), of => ref_to('Thing') }), -Any => [qw(Thing Tag)] },
		rows => [ [ item => { id => 1 } ], [ tag => { id => 2 } ], [ item_tags => { item_id => 'id(1)', tag_id => 'id(2)' } ],
			[ note => { id => 3, about_item_id => 'id(1)', of_id => 'id(1)' } ] ],
		kept => [ 'SELECT t.tag_id, n.about_item_id, n.of_id FROM kept.item_tags t JOIN kept.note n USING (tenant_id)',
			'SELECT t.tag_id, n.about_thing_id, n.of_id FROM kept.thing_tags t JOIN kept.note n USING (tenant_id)' ] },
	{ name => 'two entities exchange their names',
		from => { One => e({ a => str(10), other => ref_to('Two') }), Two => e({ b => str(10) }) },
		to => { Two => e({ a => str(10), other => ref_to('One') }, renamedFrom => 'One'), One => e({ b => str(10) }, renamedFrom => 'Two') },
		rows => [ [ two => { id => 2, b => "'b'" } ], [ one => { id => 1, a => "'a'", other_id => 'id(2)' } ] ],
		kept => [ 'SELECT a, b FROM kept.one o JOIN kept.two t ON (t.tenant_id, t.id) = (o.tenant_id, o.other_id)', 'SELECT a, b FROM kept.two o JOIN kept.one t ON (t.tenant_id, t.id) = (o.tenant_id, o.other_id)' ] },
	{ name => 'entities renamed in a chain', from => { One => e({ a => str(10) }), Two => e({ b => str(10) }) },
		to => { Two => e({ a => str(10) }, renamedFrom => 'One'), Three => e({ b => str(10) }, renamedFrom => 'Two') },
		rows => [ [ one => { id => 1, a => "'a'" } ], [ two => { id => 2, b => "'b'" } ] ],
		kept => [ 'SELECT a, b FROM kept.one JOIN kept.two USING (tenant_id)', 'SELECT a, b FROM kept.two JOIN kept.three USING (tenant_id)' ] },
	{ name => 'entity renamed to one that goes', from => { One => e({ a => str(10) }), Two => e({ b => str(10) }) },
		to => { Two => e({ a => str(10) }, renamedFrom => 'One') }, allow => ['Two'],
		rows => [ [ one => { id => 1, a => "'a'" } ], [ two => { id => 2, b => "'b'" } ] ],
		kept => [ 'SELECT a FROM kept.one', 'SELECT a FROM kept.two' ] },
	{ name => 'entity renamed that is still declared', from => item(str(10)),
		to => { %{ item(str(10)) }, Thing => e({ a => str(10) }, renamedFrom => 'Item') } },
	{ name => 'entity renamed that leads to itself',
		from => { Node => e({ parent => ref_to('Node'), near => many_to_many('Node'), far => many_to_many('Node', mappedBy => 'near') }) },
		to => { Knot => e({ parent => ref_to('Knot'), near => many_to_many('Knot'), far => many_to_many('Knot', mappedBy => 'near') }, renamedFrom => 'Node') },
		rows => [ [ node => { id => 1 }, { id => 2, parent_id => 'id(1)' } ], [ node_near => { node_id => 'id(1)', near_id => 'id(2)' } ] ],
		kept => [ 'SELECT n.parent_id, l.near_id FROM kept.node n JOIN kept.node_near l USING (tenant_id) ORDER BY n.id', 'SELECT n.parent_id, l.near_id FROM kept.knot n JOIN kept.knot_near l USING (tenant_id) ORDER BY n.id' ] },
	{ name => 'entity renamed, with policies and rights of columns',
		from => { Item => e({ a => str(10), b => str(10, readRoles => ['Auditor']) }, policies => { Own => ['read'] }), -policies => { Own => '#record.a == #user.username' } },
		to => { Thing => e({ c => str(10, renamedFrom => 'a'), b => str(10, readRoles => ['Auditor']) }, renamedFrom => 'Item', policies => { Own => ['read'] }), -policies => { Own => '#record.c == #user.username' } },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT c FROM kept.thing ORDER BY id' ] },

	# fields
	{ name => 'field added', from => item(str(10)), to => { Item => e({ a => str(10), b => f('integer') }) }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'required field added to rows', from => item(str(10)), to => { Item => e({ a => str(10), b => f('integer', required => yes()) }) }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'required field added to an empty table', from => item(str(10)), to => { Item => e({ a => str(10), b => f('integer', required => yes()) }) } },
	{ name => 'required field with a default added', from => item(str(10)), to => { Item => e({ a => str(10), b => f('integer', required => yes(), default => 7) }) },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT a FROM kept.item WHERE b = 7 ORDER BY id' ] },
	{ name => 'field dropped', from => { Item => e({ a => str(10), b => f('integer') }) }, to => item(str(10)), rows => [ [ item => { id => 1, a => "'x'", b => 5 } ] ], kept => 'SELECT a, b FROM kept.item' },
	{ name => 'field dropped, allowed', from => { Item => e({ a => str(10), b => f('integer', index => yes()) }) }, to => item(str(10)), allow => ['Item.b'], rows => [ [ item => { id => 1, a => "'x'", b => 5 } ] ], kept => $values },
	{ name => 'field renamed', from => item(str(10, unique => yes(), index => yes())), to => { Item => e({ b => str(10, unique => yes(), index => yes(), renamedFrom => 'a') }) },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT b FROM kept.item ORDER BY id' ] },
	{ name => 'field renamed and widened', from => item(str(10)), to => { Item => e({ b => f('text', renamedFrom => 'a') }) },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT b FROM kept.item ORDER BY id' ] },
	{ name => 'two fields exchange their names', from => { Item => e({ a => str(10, unique => yes()), b => f('integer', index => yes(), minimum => 0) }) },
		to => { Item => e({ b => str(10, unique => yes(), renamedFrom => 'a'), a => f('integer', index => yes(), minimum => 0, renamedFrom => 'b') }) },
		rows => [ [ item => { id => 1, a => "'x'", b => 5 } ] ], kept => [ 'SELECT a, b FROM kept.item', 'SELECT b, a FROM kept.item' ] },
	{ name => 'fields renamed in a chain', from => { Item => e({ a => str(10), b => str(10) }) },
		to => { Item => e({ b => str(10, renamedFrom => 'a'), c => str(10, renamedFrom => 'b') }) },
		rows => [ [ item => { id => 1, a => "'x'", b => "'y'" } ] ], kept => [ 'SELECT a, b FROM kept.item', 'SELECT b, c FROM kept.item' ] },
	{ name => 'field renamed to one that goes', from => { Item => e({ a => str(10), b => f('integer') }) }, to => { Item => e({ b => str(10, renamedFrom => 'a') }) }, allow => ['Item.b'],
		rows => [ [ item => { id => 1, a => "'x'", b => 5 } ] ], kept => [ $values, 'SELECT b FROM kept.item' ] },
	{ name => 'policy looks at exchanged fields',
		from => { Item => e({ a => str(10), b => str(10) }, policies => { Own => ['read'] }), -policies => { Own => '#record.a == #user.username' } },
		to => { Item => e({ b => str(10, renamedFrom => 'a'), a => str(10, renamedFrom => 'b') }, policies => { Own => ['read'] }), -policies => { Own => '#record.a == #user.username' } },
		rows => [ [ item => @three ] ], kept => [ $values, 'SELECT b FROM kept.item ORDER BY id' ] },

	# types
	{ name => 'string lengthened', from => item(str(10)), to => item(str(20)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'string shortened', from => item(str(10)), to => item(str(1)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'string shortened, allowed', from => item(str(10)), to => item(str(1)), allow => ['Item.a'], rows => [ [ item => @three ] ], kept => [ $values, $values, "v\nv\nv" ] },
	{ name => 'string shortened until values are equal', from => item(str(10, unique => yes())), to => item(str(1, unique => yes())), allow => ['Item.a'], rows => [ [ item => @three ] ], kept => $values },
	{ name => 'string to text, with members', from => item(str(10, enum => [qw(v1 v2 v3)])), to => item(f('text', enum => [qw(v1 v2 v3)])), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'text to string', from => item(f('text')), to => item(str(10)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'integer to long', from => item(f('integer', minimum => 0)), to => item(f('long', minimum => 0)), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'long to decimal', from => item(f('long')), to => item(f('decimal', precision => 19, scale => 0)), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'long to a smaller decimal', from => item(f('long')), to => item(f('decimal', precision => 3, scale => 2)), allow => ['Item.a'], rows => [ [ item => { id => 1, a => 12 }, { id => 2, a => 5 } ] ], kept => $values },
	{ name => 'long to integer, with values beyond', from => item(f('long')), to => item(f('integer')), allow => ['Item.a'], rows => [ [ item => { id => 1, a => 5000000000 } ] ], kept => $values },
	{ name => 'long to integer, allowed', from => item(f('long')), to => item(f('integer')), allow => ['Item.a'], rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'decimal with more digits', from => item(f('decimal', precision => 8, scale => 2)), to => item(f('decimal', precision => 10, scale => 3)), rows => [ [ item => { id => 1, a => 1.25 } ] ], kept => [ $values, $values, '1.250' ] },
	{ name => 'decimal with fewer digits', from => item(f('decimal', precision => 8, scale => 2)), to => item(f('decimal', precision => 8, scale => 1)), rows => [ [ item => { id => 1, a => 1.25 }, { id => 2, a => 1.5 } ] ], kept => $values },
	{ name => 'decimal rounded, allowed', from => item(f('decimal', precision => 8, scale => 2)), to => item(f('integer')), allow => ['Item.a'], rows => [ [ item => { id => 1, a => 1.75 } ] ], kept => [ $values, $values, '2' ] },
	{ name => 'integer to string', from => item(f('integer')), to => item(str(11)), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'boolean to text', from => item(f('boolean')), to => item(f('text')), rows => [ [ item => { id => 1, a => 'true' } ] ], kept => [ $values, $values, 'true' ] },
	{ name => 'uuid to string', from => item(f('uuid')), to => item(str(36)), rows => [ [ item => { id => 1, a => 'id(1)' } ] ], kept => $values },
	{ name => 'date to datetime', from => item(f('date')), to => item(f('datetime')), rows => [ [ item => { id => 1, a => "date '2020-02-29'" } ] ], kept => [ $values, "SELECT (a AT TIME ZONE 'UTC')::date FROM kept.item WHERE a = '2020-02-29T00:00:00Z'" ] },
	{ name => 'datetime to date, allowed', from => item(f('datetime')), to => item(f('date')), allow => ['Item.a'], rows => [ [ item => { id => 1, a => "'2020-02-29T23:59:00Z'" } ] ], kept => [ $values, $values, '2020-02-29' ] },
	{ name => 'string to date', from => item(str(10)), to => item(f('date')), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'string to date, allowed', from => item(str(10, index => yes())), to => item(f('date', index => yes())), allow => ['Item.a'], rows => [ [ item => @three ] ], kept => [ 'SELECT id FROM kept.item ORDER BY id', 'SELECT id FROM kept.item WHERE a IS NULL ORDER BY id' ] },
	{ name => 'column made anew where not all may be read',
		from => { Item => e({ a => str(10), b => str(10, readRoles => ['Auditor']) }) }, to => { Item => e({ a => f('date'), b => str(10, readRoles => ['Auditor']) }) },
		allow => ['Item.a'], rows => [ [ item => { id => 1, a => "'x'", b => "'y'" } ] ], kept => 'SELECT b FROM kept.item' },
	{ name => 'attribute to reference', from => { %{ item(str(10)) }, Maker => e({}) }, to => { Item => e({ a => ref_to('Maker') }), Maker => e({}) }, rows => [ [ item => @three ] ], kept => $values },

	# what values may be
	{ name => 'member added', from => item(str(10, enum => [qw(v1 v2 v3)])), to => item(str(10, enum => [qw(v1 v2 v3 v4)])), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'member removed that rows have', from => item(str(10, enum => [qw(v1 v2 v3)])), to => item(str(10, enum => [qw(v1)])), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'member removed that no row has', from => item(str(10, enum => [qw(v1 v2 v3 v4)])), to => item(str(10, enum => [qw(v1 v2 v3)])), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'required', from => item(str(10)), to => item(str(10, required => yes())), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'required, with rows that lack it', from => item(str(10)), to => item(str(10, required => yes())), rows => [ [ item => @three, { id => 4 }, { id => 5 } ] ], kept => $values },
	{ name => 'required, with a default for rows that lack it', from => item(str(10)), to => item(str(10, required => yes(), default => 'none')), rows => [ [ item => @three, { id => 4 } ] ], kept => [ $values, $values, "v1\nv2\nv3\nnone" ] },
	{ name => 'required and unique, with a default for too many rows', from => item(str(10)), to => item(str(10, required => yes(), unique => yes(), default => 'none')), rows => [ [ item => @three, { id => 4 }, { id => 5 } ] ], kept => $values },
	{ name => 'no longer required', from => item(str(10, required => yes())), to => item(str(10)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'unique', from => item(str(10)), to => item(str(10, unique => yes())), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'unique, with equal values', from => item(str(10)), to => item(str(10, unique => yes())), rows => [ [ item => @three, { id => 4, a => "'v1'" } ] ], kept => $values },
	{ name => 'no longer unique', from => item(str(10, unique => yes())), to => item(str(10)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'indexed', from => item(str(10)), to => item(str(10, index => yes())), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'no longer indexed', from => item(str(10, index => yes())), to => item(str(10)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'indexes over several fields', from => { Item => e({ a => str(10), b => str(10), c => str(10) }, indexes => [ [qw(a b)] ]) },
		to => { Item => e({ a => str(10), b => str(10), c => str(10) }, indexes => [ [qw(b a)], [qw(a c)] ]) }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'default', from => item(str(10, default => 'x')), to => item(str(10, default => 'y')), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'minimum raised', from => item(f('integer', minimum => 0)), to => item(f('integer', minimum => 1, maximum => 3)), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'minimum raised beyond rows', from => item(f('integer', minimum => 0)), to => item(f('integer', minimum => 2, maximum => 2)), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'no minimum', from => item(f('integer', minimum => 0)), to => item(f('integer')), rows => [ [ item => @numbers ] ], kept => $values },
	{ name => 'pattern and lengths hold for what is written', from => item(f('text')), to => item(f('text', pattern => '^w', minLength => 5, maxLength => 6)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'who may read a field', from => { Item => e({ a => str(10), b => str(10) }) }, to => { Item => e({ a => str(10), b => str(10, readRoles => ['Auditor']) }) }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'what the API says of a field', from => item(str(10)), to => item(str(10, readOnly => yes(), description => 'x')), rows => [ [ item => @three ] ], kept => $values },

	# references
	{ name => 'ManyToOne to OneToOne', from => makers(ref_to('Maker')), to => makers(ref_to('Maker', relation => 'OneToOne')), rows => \@once, kept => $made },
	{ name => 'ManyToOne to OneToOne, with a target of several', from => makers(ref_to('Maker')), to => makers(ref_to('Maker', relation => 'OneToOne')), rows => \@made, kept => $made },
	{ name => 'OneToOne to ManyToOne', from => makers(ref_to('Maker', relation => 'OneToOne')), to => makers(ref_to('Maker')), rows => \@once, kept => $made },
	{ name => 'ManyToOne to ManyToMany', from => makers(ref_to('Maker')), to => makers(many_to_many('Maker')), rows => \@made, kept => $made },
	{ name => 'ManyToMany to ManyToOne', from => tagged(tags => many_to_many('Tag')), to => tagged(tags => ref_to('Tag')), rows => \@tagged, kept => 'SELECT item_id, tag_id FROM kept.item_tags' },
	{ name => 'column moves to the other side', from => makers(ref_to('Maker')), to => { Maker => e({ name => str(10), item => ref_to('Item') }), Item => e({ made => ref_to('Maker', relation => 'OneToMany', mappedBy => 'item') }) }, rows => \@made, kept => $made },
	{ name => 'inverse side', from => makers(ref_to('Maker')), to => { Maker => e({ name => str(10), items => ref_to('Item', relation => 'OneToMany', mappedBy => 'made') }), Item => e({ made => ref_to('Maker') }) }, rows => \@made, kept => $made },
	{ name => 'reference renamed', from => makers(ref_to('Maker')), to => { Maker => e({ name => str(10) }), Item => e({ by => ref_to('Maker', renamedFrom => 'made') }) }, rows => \@made,
		kept => [ $made, 'SELECT m.name FROM kept.item i LEFT JOIN kept.maker m ON (m.tenant_id, m.id) = (i.tenant_id, i.by_id) ORDER BY i.id' ] },
	{ name => 'other target, with references', from => { %{ makers(ref_to('Maker')) }, Other => e({}) }, to => { %{ makers(ref_to('Other')) }, Other => e({}) }, rows => \@made, kept => $made },
	{ name => 'other target, allowed', from => { %{ makers(ref_to('Maker')) }, Other => e({}) }, to => { %{ makers(ref_to('Other')) }, Other => e({}) }, rows => \@made, allow => ['Item.made'], kept => $hidden },
	{ name => 'other target, without references', from => { %{ makers(ref_to('Maker')) }, Other => e({}) }, to => { %{ makers(ref_to('Other')) }, Other => e({}) }, rows => [ [ item => { id => 1 } ] ], kept => $hidden },
	{ name => 'onDelete', from => makers(ref_to('Maker')), to => makers(ref_to('Maker', onDelete => 'cascade')), rows => \@made, kept => $made },
	{ name => 'reference required', from => makers(ref_to('Maker')), to => makers(ref_to('Maker', required => yes())), rows => \@made, kept => $made },
	{ name => 'required reference added to rows', from => { Maker => e({ name => str(10) }), Item => e({}) }, to => makers(ref_to('Maker', required => yes())), rows => [ [ item => { id => 1 } ] ], kept => $hidden },
	{ name => 'circle of required references', from => item(str(10)),
		to => { %{ item(str(10)) }, One => e({ two => ref_to('Two', required => yes()) }), Two => e({ three => ref_to('Three', required => yes()) }), Three => e({ one => ref_to('One', required => yes()) }) },
		rows => [ [ item => @three ] ], kept => $values },
	{ name => 'circle of required references dropped', allow => [qw(One Two)],
		from => { %{ item(str(10)) }, One => e({ two => ref_to('Two', required => yes()) }), Two => e({ one => ref_to('One', required => yes()) }) }, to => item(str(10)),
		rows => [ [ item => @three ] ], kept => $values },

	# links
	{ name => 'ManyToMany renamed', from => tagged(tags => many_to_many('Tag')), to => tagged(labels => many_to_many('Tag', renamedFrom => 'tags')), rows => \@tagged,
		kept => [ 'SELECT item_id, tag_id FROM kept.item_tags', 'SELECT item_id, tag_id FROM kept.item_labels' ] },
	{ name => 'inverse side of a ManyToMany renamed', from => { %{ tagged(tags => many_to_many('Tag')) }, Tag => e({ name => str(10), items => many_to_many('Item', mappedBy => 'tags') }) },
		to => { %{ tagged(tags => many_to_many('Tag')) }, Tag => e({ name => str(10), all => many_to_many('Item', mappedBy => 'tags', renamedFrom => 'items') }) },
		rows => \@tagged, kept => 'SELECT item_id, tag_id FROM kept.item_tags' },
	{ name => 'sides of a ManyToMany change places', from => { %{ tagged(tags => many_to_many('Tag')) }, Tag => e({ name => str(10), items => many_to_many('Item', mappedBy => 'tags') }) },
		to => { %{ tagged(tags => many_to_many('Tag', mappedBy => 'items')) }, Tag => e({ name => str(10), items => many_to_many('Item') }) },
		rows => \@tagged, kept => [ 'SELECT item_id, tag_id FROM kept.item_tags', 'SELECT item_id, tag_id FROM kept.tag_items' ] },
	{ name => 'ManyToMany dropped', from => tagged(tags => many_to_many('Tag')), to => { Tag => e({ name => str(10) }), Item => e({}) }, rows => \@tagged, kept => 'SELECT item_id, tag_id FROM kept.item_tags' },
	{ name => 'ManyToMany dropped, allowed', from => tagged(tags => many_to_many('Tag')), to => { Tag => e({ name => str(10) }), Item => e({}) }, allow => ['Item.tags'], rows => \@tagged, kept => 'SELECT name FROM kept.tag' },
	{ name => 'ManyToMany with another target', from => tagged(tags => many_to_many('Tag')), to => tagged(tags => many_to_many('Item')), rows => \@tagged, kept => 'SELECT item_id, tag_id FROM kept.item_tags' },

	# one-of
	{ name => 'one-of member added', from => paid(f('oneof', target => 'Thing', required => yes()), qw(Bike Car)), to => paid(f('oneof', target => 'Thing', required => yes()), qw(Bike Car Boat)),
		rows => \@paid, kept => 'SELECT for_bike_id, for_car_id FROM kept.payment ORDER BY id' },
	{ name => 'one-of member removed that rows have', from => paid(f('oneof', target => 'Thing'), qw(Bike Car Boat)), to => paid(f('oneof', target => 'Thing'), qw(Bike Boat)), rows => \@paid, kept => 'SELECT for_bike_id, for_car_id FROM kept.payment ORDER BY id' },
	{ name => 'one-of member removed that no row has', from => paid(f('oneof', target => 'Thing'), qw(Bike Car Boat)), to => paid(f('oneof', target => 'Thing'), qw(Bike Car)), rows => \@paid, kept => 'SELECT for_bike_id, for_car_id FROM kept.payment ORDER BY id' },
	{ name => 'required one-of member removed, allowed, with rows that have it', from => paid(f('oneof', target => 'Thing', required => yes()), qw(Bike Car Boat)), to => paid(f('oneof', target => 'Thing', required => yes()), qw(Bike Boat)), allow => ['Payment.for'], rows => \@paid, kept => 'SELECT for_bike_id, for_car_id FROM kept.payment ORDER BY id' },
	{ name => 'one-of renamed', from => paid(f('oneof', target => 'Thing'), qw(Bike Car)), to => { %{ paid(undef, qw(Bike Car)) }, Payment => e({ what => f('oneof', target => 'Thing', renamedFrom => 'for') }) },
		rows => \@paid, kept => [ 'SELECT for_bike_id, for_car_id FROM kept.payment ORDER BY id', 'SELECT what_bike_id, what_car_id FROM kept.payment ORDER BY id' ] },
	{ name => 'reference to one-of', from => { %{ paid(ref_to('Bike'), qw(Bike Car)) } }, to => paid(f('oneof', target => 'Thing'), qw(Bike Car)),
		rows => [ $paid[0], [ payment => { id => 1, for_id => 'id(1)' } ] ], kept => [ 'SELECT for_id FROM kept.payment', 'SELECT for_bike_id FROM kept.payment' ] },
	{ name => 'one-of required', from => paid(f('oneof', target => 'Thing'), qw(Bike Car)), to => paid(f('oneof', target => 'Thing', required => yes()), qw(Bike Car)),
		rows => [ [ payment => { id => 1 } ] ], kept => 'SELECT id FROM kept.payment' },

	# entities as a whole
	{ name => 'softDelete', from => item(str(10, unique => yes())), to => item(str(10, unique => yes()), softDelete => yes()), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'no softDelete', from => item(str(10, unique => yes()), softDelete => yes()), to => item(str(10, unique => yes())), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'no softDelete, with hidden rows', from => item(str(10, unique => yes()), softDelete => yes()), to => item(str(10, unique => yes())),
		rows => [ [ item => @three, { id => 4, a => "'v1'", deleted_at => 'now()' } ] ], kept => $hidden },
	{ name => 'no softDelete, hidden rows may go', from => item(str(10, unique => yes()), softDelete => yes()), to => item(str(10, unique => yes())), allow => ['Item'],
		rows => [ [ item => @three, { id => 4, a => "'v1'", deleted_at => 'now()' } ] ], kept => [ 'SELECT a FROM kept.item WHERE deleted_at IS NULL ORDER BY id', $values ] },
	{ name => 'no softDelete of two, hidden rows may go', allow => [qw(Item Maker)],
		from => { Maker => e({}, softDelete => yes()), Item => e({ made => ref_to('Maker') }, softDelete => yes()) }, to => { Maker => e({}), Item => e({ made => ref_to('Maker') }) },
		rows => [ [ maker => { id => 1, deleted_at => 'now()' }, { id => 2 } ], [ item => { id => 1, made_id => 'id(1)', deleted_at => 'now()' }, { id => 2, made_id => 'id(2)' } ] ],
		kept => [ 'SELECT made_id FROM kept.item WHERE deleted_at IS NULL', 'SELECT made_id FROM kept.item' ] },
	{ name => 'purgeAfterDays', from => item(str(10), softDelete => yes()), to => item(str(10), softDelete => yes(), purgeAfterDays => 30), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'no purgeAfterDays', from => item(str(10), softDelete => yes(), purgeAfterDays => 30), to => item(str(10), softDelete => yes()), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'optimisticLocking', from => item(str(10)), to => item(str(10), optimisticLocking => yes()), rows => [ [ item => @three ] ], kept => [ $values, 'SELECT a FROM kept.item WHERE version = 0 ORDER BY id' ] },
	{ name => 'no optimisticLocking', from => item(str(10), optimisticLocking => yes()), to => item(str(10)), rows => [ [ item => map { { %$_, version => 1 } } @three ] ], kept => $values },
	{ name => 'tenantScoped of an empty table', from => item(str(10)), to => item(str(10), tenantScoped => off()) },
	{ name => 'tenantScoped of rows', from => item(str(10)), to => item(str(10), tenantScoped => off()), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'plural', from => item(str(10)), to => item(str(10), plural => 'pieces'), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'permissions', from => item(str(10)), to => item(str(10), permissions => { '*' => ['read'] }), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'policy', from => item(str(10)), to => { %{ item(str(10), policies => { Own => ['read'] }) }, -policies => { Own => '#record.a == #user.username' } }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'entity dropped beside one with policies and links', allow => ['Old'],
		from => { %{ tagged(tags => many_to_many('Tag')) }, Old => e({}), Mine => e({ a => str(10) }, policies => { Own => ['read'] }), -policies => { Own => '#record.a == #user.username' } },
		to => { %{ tagged(tags => many_to_many('Tag')) }, Mine => e({ a => str(10) }, policies => { Own => ['read'] }), -policies => { Own => '#record.a == #user.username' } },
		rows => \@tagged, kept => 'SELECT item_id, tag_id FROM kept.item_tags' },
	{ name => 'versions', from => item(str(10)), to => { %{ item(str(10, since => 2), removedIn => 3) }, -versions => { 1 => {}, 2 => {} } }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'version no longer declared', from => { %{ item(str(10, since => 2)) }, -versions => { 1 => {}, 2 => {} } }, to => item(str(10, since => 2)), rows => [ [ item => @three ] ], kept => $values },
	{ name => 'hook', from => item(str(10)), to => { %{ item(str(10)) }, -hook => { entity => 'Item', phase => 'validate', on => ['create'], function => 'checks.check' } }, rows => [ [ item => @three ] ], kept => $values },

	# the service
	{ name => 'schema', from => tagged(tags => many_to_many('Tag')), to => tagged(tags => many_to_many('Tag'), -service => { schema => 'moved' }), rows => \@tagged,
		kept => [ 'SELECT item_id, tag_id FROM kept.item_tags', 'SELECT item_id, tag_id FROM moved.item_tags' ] },
	{ name => 'schema and entity at once', from => item(str(10, unique => yes())), to => { Thing => e({ a => str(10, unique => yes()) }, renamedFrom => 'Item'), -service => { schema => 'moved' } }, rows => [ [ item => @three ] ],
		kept => [ $values, 'SELECT a FROM moved.thing ORDER BY id' ] },
	{ name => 'audit', from => item(str(10)), to => { %{ item(str(10)) }, -service => { audit => { entities => off() } } }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'tenancy', from => item(str(10)), to => { %{ item(str(10)) }, -service => { tenancy => 'SINGLE' } }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'role that nobody has', from => item(str(10)), to => { %{ item(str(10)) }, -roles => [qw(Clerk)] }, rows => [ [ item => @three ] ], kept => $values },
	{ name => 'role that somebody has', from => item(str(10)), to => { %{ item(str(10)) }, -roles => [qw(Clerk)] }, account => { roles => [qw(Clerk Auditor)] }, kept => 'SELECT roles FROM entityapi.account' },
	{ name => 'role that somebody has, allowed', from => item(str(10)), to => { %{ item(str(10)) }, -roles => [qw(Clerk)] }, account => { roles => [qw(Clerk Auditor)] }, allow => ['Roles/Auditor'], kept => [ 'SELECT roles FROM entityapi.account', 'SELECT roles FROM entityapi.account', '{Clerk}' ] },
	{ name => 'security attribute that somebody has', from => { %{ item(str(10)) }, -attributes => { region => { type => 'string' } } }, to => item(str(10)), account => { security_attributes => { region => 'north' } }, kept => 'SELECT security_attributes FROM entityapi.account' },
	{ name => 'security attribute of another type', from => { %{ item(str(10)) }, -attributes => { level => { type => 'number' }, same => { type => 'integer' } } }, to => { %{ item(str(10)) }, -attributes => { level => { type => 'integer' }, same => { type => 'number' } } },
		account => { security_attributes => { level => 1.5, same => 3 } }, kept => 'SELECT security_attributes FROM entityapi.account' },
	{ name => 'security attribute with fewer values, allowed', from => { %{ item(str(10)) }, -attributes => { region => { type => 'string[]' } } }, to => { %{ item(str(10)) }, -attributes => { region => { type => 'string[]', allowedValues => ['south'] } } },
		account => { security_attributes => { region => [qw(north south)] } }, allow => ['SecurityAttributes/region'], kept => [ 'SELECT security_attributes FROM entityapi.account', 'SELECT security_attributes FROM entityapi.account', '{}' ] },
);
