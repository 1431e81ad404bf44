# After any series of renames, drops, names used again, entities made again and
# read roles moved, a TenantAdmin sees in the log what the history shows him,
# and of what is shown, by them and by asOf, each value belongs to a member that
# he may read today, and has that name.
#
# ENTITYAPI_SEED repeats a run, ENTITYAPI_STEPS says how long it is.

use strict;
use warnings;

use JSON::PP;
use Test::More;
use Time::HiRes ();

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
my $steps = $ENV{ENTITYAPI_STEPS} // 40;
srand $seed;

my $json = JSON::PP->new->canonical->allow_nonref;
my $cluster = EntityApi::Test->cluster;
my @operations = qw(create read update delete history);
my ($numbers, %lost) = (0);

sub pick { return $_[ rand @_ ] }
sub chance { return rand() < $_[0] }

# -------- what is declared --------

# Entities by their names, which come again; a thing of each is one of its own:
# whatever is dropped takes its values along, and a value tells whose it is
my (%entity, %field);
my @entity_names = qw(Ant Bee Cow Dog);
my @field_names = qw(one two three four five);
my @kinds = ({ type => 'string' }, { type => 'string' }, { type => 'text' }, { type => 'json' });

sub new_field
{
	my ($name) = @_;
	my $field = { id => 'f' . ++$numbers, name => $name, secret => chance(0.4), spec => pick(@kinds) };

	return $field{ $field->{id} } = $field;
}

sub new_entity
{
	my ($name) = @_;
	my @names = sort { rand() <=> 0.5 } @field_names;

	return { id => 'e' . ++$numbers, name => $name, type => lc($name) . 's', shown => chance(0.7), rows => {},
		fields => [ map { new_field($_) } @names[ 0 .. 1 + rand 3 ] ], links => {} };
}

sub document
{
	my ($entity, $renamed) = @_;
	my %fields = map { $_->{name} => { %{ $_->{spec} }, $_->{secret} ? (readRoles => ['Boss']) : (),
			$renamed->{ $_->{id} } ? (renamedFrom => $renamed->{ $_->{id} }) : () } } @{ $entity->{fields} };

	$fields{$_} = { type => 'ref', target => $entity->{links}{$_}{name},
		$_ eq 'link' ? (relation => 'ManyToOne', onDelete => 'setNull') : (relation => 'ManyToMany') }
	  for keys %{ $entity->{links} };
	return { kind => 'Entity', metadata => { name => $entity->{name} }, spec => { plural => $entity->{type}, fields => \%fields,
			$renamed->{ $entity->{id} } ? (renamedFrom => $renamed->{ $entity->{id} }) : (),
			permissions => { Boss => \@operations, $entity->{shown} ? (Auditor => [qw(read history)]) : (Historian => [qw(read history)]) } } };
}

sub apply
{
	my %renamed = @_;
	my $text = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app', tenantAdminBypass => JSON::PP::false } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => undef } qw(Boss Auditor Historian) } } },
		map { document($entity{$_}, \%renamed) } sort keys %entity ]);
	my $lost = join ',', sort keys %lost;

	%lost = ();
	$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$, false, '{$lost}')");
	return;
}

$entity{$_} = new_entity($_) for @entity_names[ 0 .. 2 ];
apply();
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my ($boss, $admin) = map { EntityApi::Test::Cases->new($shim, $shim->user($tenant, lc $_, [$_]), '/api/v1') } qw(Boss Auditor);
$boss->as($shim->superadmin)->good(204, POST => "/manage/tenants/$tenant/tenant-admins/" . $admin->good(200, GET => '/auth/me')->{json}{userId});

# -------- what is done --------

my (%ever, @times);

sub any_entity { return $entity{ pick(sort keys %entity) } }

# A value that says of which field it is
sub value
{
	my ($field) = @_;
	my $text = "$field->{id}." . ++$numbers;

	return undef if chance(0.1);
	return $field->{spec}{type} eq 'json' ? { v => [ $text, 1.50 ] } : $text;
}

sub resource
{
	my ($entity, $id) = @_;
	my %links;

	for my $name (keys %{ $entity->{links} })
	{
		my $target = $entity->{links}{$name};
		my @ids = map { { type => $target->{type}, id => $_ } } grep { chance(0.5) } sort keys %{ $target->{rows} };

		$links{$name} = { data => $name eq 'link' ? $ids[0] : \@ids };
	}
	return { type => $entity->{type}, $id ? (id => $id) : (), relationships => \%links,
		attributes => { map { $_->{name} => value($_) } grep { !$id || chance(0.6) } @{ $entity->{fields} } } };
}

sub create
{
	my $entity = any_entity();
	my $id = $boss->good(201, POST => "/$entity->{type}", data => resource($entity))->{json}{data}{id};

	$entity->{rows}{$id} = 1;
	$ever{$id} = $entity;
	return;
}

sub drop_entity
{
	my ($entity) = @_;

	delete $entity{ $entity->{name} };
	$lost{ $entity->{name} } = 1;
	$entity->{gone} = 1;
	$_->{gone} = 1 for @{ $entity->{fields} };
	for my $other (values %entity)
	{
		for my $name (grep { $other->{links}{$_} == $entity } keys %{ $other->{links} })
		{
			delete $other->{links}{$name};
			$lost{"$other->{name}.$name"} = 1;
		}
	}
	return;
}

my @steps = (
	[ create => 22, \&create ],
	[ update => 22, sub {
		my $entity = any_entity();
		my $id = pick(sort keys %{ $entity->{rows} }) // return create();
		$boss->good(200, PATCH => "/$entity->{type}/$id", data => resource($entity, $id));
	} ],
	[ delete => 6, sub {
		my $entity = any_entity();
		my $id = pick(sort keys %{ $entity->{rows} }) // return create();
		$boss->good(204, DELETE => "/$entity->{type}/$id");
		delete $entity->{rows}{$id};
	} ],
	[ rename_field => 7, sub {
		my $entity = any_entity();
		my %taken = map { $_->{name} => 1 } @{ $entity->{fields} };
		my $field = pick(@{ $entity->{fields} }) // return;
		my $from = $field->{name};
		$field->{name} = pick(grep { !$taken{$_} } @field_names) // return $field->{name} = $from;
		apply($field->{id} => $from);
		apply() if chance(0.5);
	} ],
	[ exchange => 7, sub {
		my $entity = any_entity();
		my ($one, $other) = sort { rand() <=> 0.5 } @{ $entity->{fields} };
		return if !defined $other;
		($one->{name}, $other->{name}) = ($other->{name}, $one->{name});
		apply($one->{id} => $other->{name}, $other->{id} => $one->{name});

		# what is stored of it would stand for the way back as well
		apply();
	} ],
	[ drop_field => 7, sub {
		my $entity = any_entity();
		my $field = splice(@{ $entity->{fields} }, rand @{ $entity->{fields} }, 1) // return;
		$field->{gone} = 1;
		$lost{"$entity->{name}.$field->{name}"} = 1;
		apply();
	} ],
	[ add_field => 9, sub {
		my $entity = any_entity();
		my %taken = map { $_->{name} => 1 } @{ $entity->{fields} };
		my $name = pick(grep { !$taken{$_} } @field_names) // return;
		push @{ $entity->{fields} }, new_field($name);
		apply();
	} ],
	[ move_roles => 8, sub {
		$_->{secret} = !$_->{secret} for grep { chance(0.4) } map { @{ $_->{fields} } } values %entity;
		my $entity = any_entity();
		$entity->{shown} = !$entity->{shown} if chance(0.3);
		apply();
	} ],
	[ rename_entity => 4, sub {
		my $entity = any_entity();
		my $from = $entity->{name};
		my $name = pick(grep { !$entity{$_} } @entity_names) // return;
		delete $entity{$from};
		@$entity{qw(name type)} = ($name, lc($name) . 's');
		$entity{$name} = $entity;

		# what refers to it says so by its name
		apply($entity->{id} => $from);
		apply() if chance(0.5);
	} ],
	[ drop_entity => 3, sub {
		drop_entity(any_entity()) if keys %entity > 1;
		apply();
	} ],
	[ made_again => 5, sub {
		my $name = any_entity()->{name};
		drop_entity($entity{$name}) if chance(0.5);
		apply();
		$name = pick(grep { !$entity{$_} } @entity_names) // return;
		$entity{$name} = new_entity($name);
		apply();
	} ],
	[ link => 6, sub {
		my ($entity, $name) = (any_entity(), pick(qw(link list)));
		$lost{"$entity->{name}.$name"} = 1 if delete $entity->{links}{$name};
		apply();
		$entity->{links}{$name} = any_entity() if chance(0.8);
		apply();
	} ]);

# -------- what is seen --------

my (@wrong, %seen);

# Each value that he is shown must be one of a member that is there, is for
# him, and is called so
sub judge
{
	my ($where, $id, $name, $value) = @_;
	my $entity = $ever{$id};

	return if !defined $value;
	if ($name eq 'link' || $name eq 'list')
	{
		my $target = $entity->{links}{$name};
		my @ids = ref $value eq 'ARRAY' ? @$value : $value->{id};

		push @wrong, "$where: $name has " . $json->encode($value)
		  if !$target || $entity->{gone} || !$entity->{shown} || grep { $ever{$_} != $target || !$target->{shown} } @ids;
		return;
	}
	my ($of) = $json->encode($value) =~ /(f\d+)\.\d/;
	my $field = $field{ $of // '' };
	push @wrong, "$where: $name has " . $json->encode($value)
	  if !$field || $field->{gone} || $field->{secret} || $field->{name} ne $name
	  || $entity->{gone} || !$entity->{shown} || !grep { $_ == $field } @{ $entity->{fields} };
	$seen{values}++;
	return;
}

# The records of the log, newest first, with their changes
sub log_of
{
	my ($id) = @_;
	my $list = $admin->good(200, GET => "/manage/audit?filter=targetId==$id&page[size]=100")->{json}{data};

	return map { $_->{id} => $_->{changes} } grep { $_->{outcome} eq 'SUCCESS' } @$list;
}

sub look
{
	my ($id) = @_;
	my $entity = $ever{$id};
	my %log = log_of($id);
	my %told;

	# Another entity may have its type by now, or a type that it had
	for my $type (sort { $a cmp $b } keys %{ { map { $_ => 1 } $entity->{type}, lc(pick(@entity_names)) . 's' } })
	{
		my $answer = $admin->call(GET => "/$type/$id/history?page[size]=100");

		push @wrong, "$type/$id/history: $answer->{status}" if $answer->{status} !~ /^(?:200|403|404)$/;
		for my $item ($answer->{status} == 200 ? @{ $answer->{json}{data} } : ())
		{
			my $changes = $item->{attributes}{changes};

			$told{ $item->{id} } = { map { $_ => [ @{ $changes->{$_} }{qw(from to)} ] } keys %$changes };
		}
		my $at = pick(@times);
		my $then = $admin->call(GET => "/$type/$id?asOf=$at");
		push @wrong, "$type/$id at $at: $then->{status}" if $then->{status} !~ /^(?:200|403|404|410)$/;
		next if $then->{status} != 200;
		my $data = $then->{json}{data};
		$seen{past}++;
		judge("$type/$id at $at", $id, $_, $data->{attributes}{$_}) for keys %{ $data->{attributes} // {} };
		judge("$type/$id at $at", $id, $_, $data->{relationships}{$_}{data}) for keys %{ $data->{relationships} // {} };
	}
	for my $record (sort keys %log)
	{
		my ($log, $history) = map { $json->encode($_) } $log{$record}, $told{$record} // {};

		push @wrong, "$id, record $record:\n  log     $log\n  history $history" if $log ne $history;
		for my $name (keys %{ $log{$record} })
		{
			judge("$id, record $record", $id, $name, $_) for @{ $log{$record}{$name} };
		}
		$seen{records}++;
	}
	return;
}

sub now
{
	my $at = Time::HiRes::time();
	my @t = gmtime int $at;

	Time::HiRes::sleep(0.001);
	return sprintf('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000);
}

my $all = 0;
$all += $_->[1] for @steps;

# until something of each kind was there to be looked at
for (my $n = 1; $n <= $steps || ($n <= 20 * $steps && grep { !$seen{$_} } qw(records values past)); $n++)
{
	my $at = rand $all;
	my ($step) = grep { ($at -= $_->[1]) < 0 } @steps;

	last if !eval { $step->[2]->(); 1 } && push @wrong, "$step->[0]: $@";
	push @times, now();
	next if $n % 10 != 0 && $n != $steps;
	my @ids = sort { rand() <=> 0.5 } sort keys %ever;
	look($_) for @ids[ 0 .. ($#ids > 7 ? 7 : $#ids) ];
	last if @wrong;
}
cmp_ok($seen{$_} // 0, '>', 0, "$_ were looked at") for qw(records values past);
is(scalar @wrong, 0, "nothing is shown but what is there for him (seed $seed)") or diag join "\n", @wrong[ 0 .. ($#wrong > 5 ? 5 : $#wrong) ];
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;

is($shim->stop, 0, 'ends with 0');
done_testing;
