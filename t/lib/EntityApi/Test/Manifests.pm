package EntityApi::Test::Manifests;

=head1 NAME

EntityApi::Test::Manifests - random manifests, and what becomes of them

=head1 SYNOPSIS

	srand 42;
	my $one = EntityApi::Test::Manifests::random();
	my $other = EntityApi::Test::Manifests::changed($one);
	my @names = EntityApi::Test::Manifests::names($one, $other);

=head1 DESCRIPTION

A manifest is a hash: C<entities> (name to spec), C<one_ofs> (name to members),
C<policies> (name to expression), C<roles> (names), C<schema>.  documents()
makes the documents of it.  All are valid, and use rand() only, so that srand()
tells which one it is.  Few names are used, so that two manifests have many in
common.

=cut

use strict;
use warnings;

use List::Util qw(max min shuffle);
use Storable   qw(dclone);

my @entities = qw(Alpha Beta GammaRay Delta Epsilon Zeta);
my @fields = qw(one two threeParts four five six seven);
my @links = qw(links bonds);
my %target_of_policy = (OwnOne => 'one', OwnTwo => 'two');

sub _one_of { return $_[ int rand @_ ] }
sub _maybe { return rand() < $_[0] }
sub _some { my ($n, @of) = @_; my @s = shuffle(@of); return @s[ 0 .. min($n, scalar @s) - 1 ] }

my @attributes = (
	sub { return { type => 'string', maxLength => _one_of(5, 20, 100) } },
	sub { return { type => 'string', maxLength => 20, enum => [ _some(1 + int rand 3, qw(A B C D)) ] } },
	sub { return { type => 'text' } },
	sub { return { type => 'integer', _maybe(0.3) ? (minimum => _one_of(0, -5)) : () } },
	sub { return { type => 'long', _maybe(0.3) ? (maximum => 1000) : () } },
	sub { return { type => 'decimal', precision => _one_of(6, 12, 30), scale => _one_of(0, 2, 4) } },
	sub { return { type => 'boolean' } },
	sub { return { type => 'date' } },
	sub { return { type => 'datetime', _maybe(0.3) ? (minimum => '2000-01-01T00:00:00Z') : () } },
	sub { return { type => 'uuid' } },
	sub { return { type => 'json' } },
);

my %default_of = (string => 'A', text => 'x', integer => 5, long => 7, decimal => 1,
	boolean => JSON::PP::true(), date => '2020-02-03', datetime => '2020-02-03T04:05:06Z',
	uuid => '00000000-0000-0000-0000-00000000000d', json => {});

sub _attribute
{
	my $field = _one_of(@attributes)->();
	my $indexable = $field->{type} ne 'json' && $field->{type} ne 'text';

	$field->{unique} = JSON::PP::true() if $indexable && _maybe(0.15);
	$field->{index} = JSON::PP::true() if $indexable && _maybe(0.2);
	$field->{readRoles} = ['Auditor'] if _maybe(0.15);
	$field->{required} = JSON::PP::true() if _maybe(0.25);
	$field->{default} = $field->{enum} ? $field->{enum}[0] : $default_of{ $field->{type} }
	  if _maybe(0.4);
	return $field;
}

# Entities that this one may point at
sub _targets
{
	my ($m, $entity) = @_;

	return sort grep { _scoped($m, $entity) || !_scoped($m, $_) } keys %{ $m->{entities} };
}

sub _scoped
{
	my ($m, $entity) = @_;
	return $m->{entities}{$entity}{tenantScoped};
}

sub _reference
{
	my ($m, $entity) = @_;
	my @one_ofs = grep { _scoped($m, $entity) || !_scoped($m, $m->{one_ofs}{$_}[0]) }
	  sort keys %{ $m->{one_ofs} };
	my $field = @one_ofs && _maybe(0.3)
	  ? { type => 'oneof', target => _one_of(@one_ofs) }
	  : { type => 'ref', target => _one_of(_targets($m, $entity)),
		relation => _one_of(qw(ManyToOne ManyToOne OneToOne)) };

	$field->{onDelete} = _one_of(qw(restrict cascade)) if _maybe(0.5);
	$field->{required} = JSON::PP::true() if _maybe(0.2);
	return $field;
}

sub _link
{
	my ($m, $entity) = @_;
	return { type => 'ref', relation => 'ManyToMany', target => _one_of(_targets($m, $entity)) };
}

sub _field
{
	my ($m, $entity, $name) = @_;

	$m->{entities}{$entity}{fields}{$name} =
	  (grep { $_ eq $name } @links) ? _link($m, $entity)
	  : _maybe(0.7) ? _attribute() : _reference($m, $entity);
	return;
}

# One-ofs that name what there is
sub _one_ofs
{
	my ($m) = @_;
	my @members = sort grep { _scoped($m, $_) } keys %{ $m->{entities} };

	$m->{one_ofs} = {};
	$m->{one_ofs}{Either} = [ sort(_some(2 + int rand 2, @members)) ] if @members >= 2;
	return;
}

# Remove what names something that is gone, and make anew what depends on all.
sub _settle
{
	my ($m) = @_;
	my $entities = $m->{entities};
	my %used;

	for my $name (sort keys %{ $m->{one_ofs} })
	{
		my @left = grep { $entities->{$_} && _scoped($m, $_) } @{ $m->{one_ofs}{$name} };

		$m->{one_ofs}{$name} = \@left;
		delete $m->{one_ofs}{$name} if @left < 2;
	}
	for my $entity (sort keys %$entities)
	{
		my $spec = $entities->{$entity};
		my $fields = $spec->{fields};

		for my $name (sort keys %$fields)
		{
			my $field = $fields->{$name};

			if ($field->{type} eq 'oneof')
			{
				delete $fields->{$name} if !$m->{one_ofs}{ $field->{target} } || !_scoped($m, $entity);
			}
			elsif ($field->{type} eq 'ref')
			{
				my ($target, $mirror) = @$field{qw(target mappedBy)};
				my $there = $entities->{$target} && (_scoped($m, $entity) || !_scoped($m, $target));

				# inverse sides come last, see below
				delete $fields->{$name} if !$there || $mirror;
			}

			# what only hides rows takes nothing along that would be gone
						my @onto = $field->{type} eq 'oneof' ? @{ $m->{one_ofs}{ $field->{target} } || [] } : $field->{target} // ();
			delete $field->{onDelete}
			  if ($field->{onDelete} // '') eq 'cascade' && !$spec->{softDelete} && grep { $entities->{$_}{softDelete} } grep { $entities->{$_} } @onto;
		}

		my @indexable = grep {
			my $f = $fields->{$_};
			$f->{type} !~ /^(?:json|text|oneof|ref)$/
			  || ($f->{type} eq 'ref' && $f->{relation} =~ /ToOne/)
		} sort keys %$fields;
		$spec->{indexes} =
		  [ grep { my $i = $_; !grep { my $f = $_; !grep { $_ eq $f } @indexable } @$i } @{ $spec->{indexes} || [] } ];
		push @{ $spec->{indexes} }, [ _some(2, @indexable) ] if @indexable >= 2 && _maybe(0.15);

		$spec->{policies} = {};
		for my $policy (sort keys %target_of_policy)
		{
			my $field = $fields->{ $target_of_policy{$policy} };

			next if !$field || $field->{type} !~ /^(?:string|text)$/ || _maybe(0.5);
			$spec->{policies}{$policy} = [ 'read', 'delete' ];
			$used{$policy} = 1;
		}
	}
	for my $entity (sort keys %$entities)
	{
		my $field = $entities->{$entity}{fields}{links} or next;
		my $target = $entities->{ $field->{target} };

		next if !$target->{tenantScoped} || _maybe(0.5) || $target->{fields}{mirror};
		next if !$entities->{$entity}{tenantScoped};
		$target->{fields}{mirror} =
		  { type => 'ref', relation => 'ManyToMany', target => $entity, mappedBy => 'links' };
	}
	$m->{policies} = { map { ($_ => "#record.$target_of_policy{$_} == #user.username") } sort keys %used };
	return $m;
}

=head2 random()

A manifest of one to five entities.

=cut

sub random
{
	my $m = { entities => {}, schema => _one_of(qw(drawn other)) };

	for my $entity (_some(1 + int rand 5, @entities))
	{
		$m->{entities}{$entity} = { tenantScoped => _maybe(0.85) ? 1 : 0, fields => {},
			softDelete => _maybe(0.25), optimisticLocking => _maybe(0.25) };
	}
	_one_ofs($m);
	for my $entity (sort keys %{ $m->{entities} })
	{
		_field($m, $entity, $_) for _some(1 + int rand 6, @fields, @links);
	}
	return _settle($m);
}

# Give a name another one, everywhere.
sub _rename_entity
{
	my ($m, $from, $to) = @_;
	my $entities = $m->{entities};
	my %map = ($from => $to, $to => $from);
	my %renamed;

	for my $name (sort keys %$entities)
	{
		my $new = $map{$name} // $name;

		$renamed{$new} = $entities->{$name};
		$renamed{$new}{renamedFrom} = $name if $new ne $name;
		for my $field (values %{ $renamed{$new}{fields} })
		{
			$field->{target} = $map{ $field->{target} }
			  if $field->{type} eq 'ref' && $map{ $field->{target} };
		}
	}
	$m->{entities} = \%renamed;
	$_ = [ map { $map{$_} // $_ } @$_ ] for values %{ $m->{one_ofs} };
	return;
}

sub _rename_field
{
	my ($m, $entity, $from, $to) = @_;
	my $fields = $m->{entities}{$entity}{fields};
	my %map = ($from => $to, $to => $from);
	my %renamed;

	for my $name (sort keys %$fields)
	{
		my $new = $map{$name} // $name;

		$renamed{$new} = $fields->{$name};
		$renamed{$new}{renamedFrom} = $name if $new ne $name;
	}
	$m->{entities}{$entity}{fields} = \%renamed;
	return;
}

my @changes = (
	sub { my ($m, $e) = @_; _field($m, $e, _one_of(@fields, @links)) },
	sub { my ($m, $e) = @_; _field($m, $e, _one_of(@fields, @links)) },
	sub {
		my ($m, $e) = @_;
		my $fields = $m->{entities}{$e}{fields};

		delete $fields->{ _one_of(sort keys %$fields) } if %$fields;
	},
	sub { my ($m, $e) = @_; delete $m->{entities}{$e} if keys %{ $m->{entities} } > 1 },
	sub { my ($m, $e) = @_; $m->{entities}{$e}{softDelete} = !$m->{entities}{$e}{softDelete} },
	sub { my ($m, $e) = @_; $m->{entities}{$e}{optimisticLocking} = !$m->{entities}{$e}{optimisticLocking} },
	sub { my ($m, $e) = @_; $m->{entities}{$e}{tenantScoped} = !$m->{entities}{$e}{tenantScoped} },
	sub { _one_ofs($_[0]) },
	sub { $_[0]{schema} = _one_of(qw(drawn other)) },
	sub {
		my ($m, $e) = @_;
		my ($name) = _some(1, grep { !$m->{entities}{$e}{fields}{$_}{mappedBy} }
			  sort keys %{ $m->{entities}{$e}{fields} }) or return;
		my $field = $m->{entities}{$e}{fields}{$name};

		$field->{required} = $field->{required} ? JSON::PP::false() : JSON::PP::true()
		  if ($field->{relation} // '') ne 'ManyToMany';
	},
);

my @renamings = (
	sub {
		my ($m, $e) = @_;
		_rename_entity($m, $e, _one_of(@entities));
	},
	sub {
		my ($m, $e) = @_;
		my @names = grep { $_ ne 'mirror' && $_ !~ /^(?:links|bonds)$/ }
		  sort keys %{ $m->{entities}{$e}{fields} };

		_rename_field($m, $e, _one_of(@names), _one_of(@fields)) if @names;
	},
	sub {
		my ($m, $e) = @_;
		my $fields = $m->{entities}{$e}{fields};

		_rename_field($m, $e, 'links', 'bonds') if $fields->{links} || $fields->{bonds};
	},
);

=head2 changed($manifest)

Another one, made from it by some changes and renamings.

=cut

sub changed
{
	my ($from) = @_;
	my $m = dclone($from);

	for my $spec (values %{ $m->{entities} })
	{
		delete $spec->{renamedFrom};
		delete $_->{renamedFrom} for values %{ $spec->{fields} };
	}

	# renamings first, so that they name what was there; one at most of each
	# kind, since a second one would name what never was
	for my $renaming (_some(int rand 3, @renamings))
	{
		$renaming->($m, _one_of(sort keys %{ $m->{entities} }));
	}
	for (1 .. int rand 5)
	{
		_one_of(@changes)->($m, _one_of(sort keys %{ $m->{entities} }));
	}
	_settle($m);

	# what a name was taken from must be gone, or be renamed itself
	my %still = map { ($_ => $m->{entities}{$_}{renamedFrom}) } keys %{ $m->{entities} };
	for my $name (sort keys %still)
	{
		my $spec = $m->{entities}{$name};
		my $was = $spec->{renamedFrom};

		delete $spec->{renamedFrom} if defined $was && exists $still{$was} && !defined $still{$was};
		for my $field (sort keys %{ $spec->{fields} })
		{
			my $old = $spec->{fields}{$field}{renamedFrom} // next;
			my $other = $spec->{fields}{$old};

			delete $spec->{fields}{$field}{renamedFrom} if $other && !$other->{renamedFrom};
		}
	}
	return $m;
}

=head2 documents($manifest)

The documents, as data.

=cut

sub _document
{
	my ($kind, $name, $spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

sub documents
{
	my ($m) = @_;
	my @documents = (
		_document('Service', 'service', { schema => $m->{schema} }),
		_document('Roles',   'roles',   { roles => { Clerk => { assignableBy => 'superAdmin' }, Auditor => {} } }),
	);

	for my $name (sort keys %{ $m->{entities} })
	{
		my $spec = { %{ $m->{entities}{$name} }, permissions => { Clerk => [qw(create read update delete)] } };

		$spec->{purgeAfterDays} = 30 if $spec->{softDelete} && $spec->{optimisticLocking};
		$spec->{$_} = $spec->{$_} ? JSON::PP::true() : JSON::PP::false()
		  for qw(tenantScoped softDelete optimisticLocking);
		push @documents, _document('Entity', $name, $spec);
	}
	push @documents, _document('OneOf', $_, { members => $m->{one_ofs}{$_} }) for sort keys %{ $m->{one_ofs} };
	push @documents, _document('Policy', $_, { expression => $m->{policies}{$_} }) for sort keys %{ $m->{policies} };
	return \@documents;
}

=head2 names(@manifests)

All that a change from one to another could lose.

=cut

sub names
{
	my @manifests = @_;
	my %entities = map { ($_ => 1) } map { keys %{ $_->{entities} } } @manifests;
	my %fields = map { ($_ => 1) } @fields, @links, 'mirror';
	my @names;

	for my $entity (sort keys %entities)
	{
		push @names, $entity, map { "$entity.$_" } sort keys %fields;
	}
	return @names;
}

1;
