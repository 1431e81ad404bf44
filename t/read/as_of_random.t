# After random writes, with other names in between, asOf shows of any time what
# there was to be seen then.
#
# ENTITYAPI_SEED repeats a run; a failure prints its seed.

use strict;
use warnings;

use JSON::PP ();
use Test::More;
use Time::HiRes ();

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
my $writes = $ENV{ENTITYAPI_WRITES} // 150;
srand $seed;

my $json = JSON::PP->new->canonical->allow_nonref;
my $cluster = EntityApi::Test->cluster;
my $true = JSON::PP::true;
my %roles = (Chief => [qw(create read update delete history)], Editor => [qw(create read update delete history)]);

# Entities and fields have keys that stay, whatever they are called
my %entity = (
	a => { name => 'Alpha', spec => { optimisticLocking => $true }, fields => {
			s => { name => 'text', spec => { type => 'string' } }, n => { name => 'number', spec => { type => 'decimal', precision => 10, scale => 2 } },
			up => { name => 'parent', to => 'a', spec => { type => 'ref', relation => 'ManyToOne', onDelete => 'setNull' } },
			b => { name => 'beta', to => 'b', spec => { type => 'ref', relation => 'ManyToOne', onDelete => 'setNull' } } } },
	b => { name => 'Beta', spec => { softDelete => $true }, fields => {
			s => { name => 'text', spec => { type => 'text' } }, t => { name => 'time', spec => { type => 'datetime' } }, j => { name => 'extra', spec => { type => 'json' } },
			c => { name => 'gamma', to => 'c', spec => { type => 'ref', relation => 'OneToOne', onDelete => 'setNull' } } } },
	c => { name => 'Gamma', spec => {}, fields => {
			s => { name => 'text', spec => { type => 'string', default => 'none' } }, f => { name => 'flag', spec => { type => 'boolean' } } } });
my $names = 0;

sub type_of { return lc($entity{ $_[0] }{name}) . 's' }

sub apply
{
	my %renamed = @_;
	my @documents = ({ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => undef } keys %roles } } });

	for my $key (sort keys %entity)
	{
		my $e = $entity{$key};
		my %fields;

		for my $f (sort keys %{ $e->{fields} })
		{
			my $field = $e->{fields}{$f};
			$fields{ $field->{name} } = { %{ $field->{spec} }, $field->{to} ? (target => $entity{ $field->{to} }{name}) : (),
				$renamed{"$key.$f"} ? (renamedFrom => $renamed{"$key.$f"}) : () };
		}
		push @documents, { kind => 'Entity', metadata => { name => $e->{name} }, spec => {
				%{ $e->{spec} }, permissions => \%roles, fields => \%fields, plural => type_of($key), $renamed{$key} ? (renamedFrom => $renamed{$key}) : () } };
	}
	my $text = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } } @documents ]);
	$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$)");
	return;
}

apply();
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my ($chief, $editor) = map { EntityApi::Test::Cases->new($shim, $shim->user($tenant, lc $_, [$_]), '/api/v1') } qw(Chief Editor);

# -------- what there is to be seen --------

sub state
{
	my ($key, $data) = @_;
	my %fields;

	for my $f (keys %{ $entity{$key}{fields} })
	{
		my $field = $entity{$key}{fields}{$f};
		my $part = $field->{to} ? 'relationships' : 'attributes';

		next unless exists $data->{$part}{ $field->{name} };
		my $value = $data->{$part}{ $field->{name} };
		$fields{$f} = !$field->{to} ? $value : $value->{data} ? "$field->{to} $value->{data}{id}" : undef;
	}
	return $json->encode({ fields => \%fields, version => $data->{meta}{version} });
}

sub snapshot
{
	my %all;

	for my $key (sort keys %entity)
	{
		my $list = $chief->good(200, GET => '/' . type_of($key) . '?page[size]=100')->{json};

		die "too many\n" if defined $list->{links}{next};
		$all{ $_->{id} } = [ $key, state($key, $_) ] for @{ $list->{data} };
	}
	my $at = Time::HiRes::time();
	my @t = gmtime int $at;
	Time::HiRes::sleep(0.001);
	return { all => \%all, at => sprintf('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000) };
}

# -------- writes --------

my (%live, %ever);

sub pick { return $_[ rand @_ ] }
sub one_of { my ($key) = @_; return pick(grep { $live{$_} eq $key } sort keys %live) }

sub value
{
	my ($spec) = @_;

	return undef if rand() < 0.2;
	return pick('', 'x', "\x{e4} \"'", 'long ' x int rand 200) if $spec->{type} =~ /string|text/;
	return pick(0, 1.5, -3, 1234567.89, 10) if $spec->{type} eq 'decimal';
	return sprintf '20%02d-02-03T04:05:06.%dZ', rand 90, rand 1000 if $spec->{type} eq 'datetime';
	return pick({ a => [ 1, 2.50, undef ] }, [], 'text', 1.0) if $spec->{type} eq 'json';
	return rand() < 0.5 ? JSON::PP::true : JSON::PP::false;
}

sub resource
{
	my ($key, $id, $all) = @_;
	my %data = (type => type_of($key), $id ? (id => $id) : ());

	for my $f (sort keys %{ $entity{$key}{fields} })
	{
		my $field = $entity{$key}{fields}{$f};

		next if rand() < ($all ? 0.2 : 0.6);
		if ($field->{to})
		{
			my $target = rand() < 0.3 ? undef : one_of($field->{to});
			$data{relationships}{ $field->{name} } = { data => $target && { type => type_of($field->{to}), id => $target } };
		}
		else
		{
			$data{attributes}{ $field->{name} } = value($field->{spec});
		}
	}
	return \%data;
}

my %any = (headers => { 'If-Match' => '*' });
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my %done;

sub note_made { my ($key, $id) = @_; $live{$id} = $ever{$id} = $key; return }

# What a deletion took along is seen in the next snapshot
my @writes = (
	[ create => 25, sub {
		my $key = pick(sort keys %entity);
		my $answer = $chief->call(POST => '/' . type_of($key), data => resource($key, undef, 1));
		note_made($key, $answer->{json}{data}{id}) if $answer->{status} == 201;
		return $answer->{status};
	} ],
	[ update => 40, sub {
		my $id = pick(sort keys %live) or return;
		return $chief->call(PATCH => '/' . type_of($live{$id}) . "/$id", data => resource($live{$id}, $id), %any)->{status};
	} ],
	[ relate => 12, sub {
		my $id = pick(sort keys %live) or return;
		my $f = pick(grep { $entity{ $live{$id} }{fields}{$_}{to} } sort keys %{ $entity{ $live{$id} }{fields} }) or return;
		my $field = $entity{ $live{$id} }{fields}{$f};
		my $target = rand() < 0.3 ? undef : one_of($field->{to});
		return $chief->call(PATCH => '/' . type_of($live{$id}) . "/$id/relationships/$field->{name}", data => $target && { type => type_of($field->{to}), id => $target }, %any)->{status};
	} ],
	[ operations => 8, sub {
		my (@operations, @keys);
		for (1 .. 1 + rand 4)
		{
			my $id = rand() < 0.5 ? undef : pick(sort keys %live);
			my $key = $id ? $live{$id} : pick(sort keys %entity);
			push @keys, $id ? undef : $key;
			push @operations, { op => $id ? 'update' : 'add', data => resource($key, $id) };
			$operations[-1]{data}{meta} = { version => $chief->good(200, GET => "/" . type_of($key) . "/$id")->{json}{data}{meta}{version} + grep { ($_->{data}{id} // '') eq $id } @operations[ 0 .. $#operations - 1 ] }
			  if $id && $entity{$key}{spec}{optimisticLocking};
		}
		my $answer = $chief->call(POST => '/operations', body => $json->encode({ 'atomic:operations' => \@operations }), headers => { 'Content-Type' => $atomic, Accept => $atomic });
		return $answer->{status} if $answer->{status} != 200;
		$keys[$_] && note_made($keys[$_], $answer->{json}{'atomic:results'}[$_]{data}{id}) for 0 .. $#keys;
		return 200;
	} ],
	[ delete => 10, sub {
		my $id = pick(sort keys %live) or return;
		my $status = $chief->call(DELETE => '/' . type_of($live{$id}) . "/$id", %any)->{status};
		delete $live{$id} if $status == 204;
		return $status;
	} ],
	[ rename => 5, sub {
		my $key = pick(sort keys %entity);
		my $f = rand() < 0.3 ? undef : pick(sort keys %{ $entity{$key}{fields} });
		my $thing = defined $f ? $entity{$key}{fields}{$f} : $entity{$key};
		my $from = $thing->{name};
		$thing->{name} = (defined $f ? 'name' : 'Name') . ++$names;
		apply((defined $f ? "$key.$f" : $key) => $from);
		return 200;
	} ],
	[ exchange => 2, sub {
		my $key = pick(qw(a b c));
		my ($f, $g) = sort { rand() <=> 0.5 } grep { !$entity{$key}{fields}{$_}{to} } keys %{ $entity{$key}{fields} };
		return if !defined $g;
		my ($one, $other) = map { $entity{$key}{fields}{$_} } $f, $g;
		($one->{name}, $other->{name}) = ($other->{name}, $one->{name});
		apply("$key.$f" => $other->{name}, "$key.$g" => $one->{name});

		# what is stored of it would stand for the way back as well
		apply();
		return 200;
	} ],
	[ add => 2, sub {
		my $key = pick(sort keys %entity);
		$entity{$key}{fields}{ 'x' . ++$names } = { name => "extra$names", spec => pick({ type => 'string' }, { type => 'string', default => 'new' }, { type => 'decimal', precision => 10, scale => 2 }) };
		apply();
		return 200;
	} ]);

my @kept = (snapshot());
for (1 .. $writes)
{
	my $at = rand 104;
	my ($write) = grep { ($at -= $_->[1]) < 0 } @writes;
	my $status = ($write // $writes[1])->[2]->();

	next unless defined $status;
	$done{"$write->[0] $status"}++;
	push @kept, snapshot();
	%live = map { $_ => $kept[-1]{all}{$_}[0] } keys %{ $kept[-1]{all} };
}
note join ', ', map { "$_: $done{$_}" } sort keys %done;
ok(!(grep { /5\d\d$/ } keys %done), "no error of the server (seed $seed)");

# -------- what it was --------

# fields that went meanwhile are shown neither then nor now; none go here
my (@wrong, %seen);
for my $n (0 .. $#kept)
{
	for my $id (map { pick(sort keys %ever) // () } 1 .. 4)
	{
		my $path = '/' . type_of($ever{$id}) . "/$id?asOf=$kept[$n]{at}";
		my $was = $kept[$n]{all}{$id};
		my ($one, $other) = map { $_->call(GET => $path) } $chief, $editor;
		my $existed = grep { $kept[$_]{all}{$id} } 0 .. $n;
		my $told = $one->{status} == 200 ? state($ever{$id}, $one->{json}{data}) : $one->{status};

		$seen{ $was ? 'there' : $existed ? 'ended' : 'before' }++;
		if ($was)
		{
			push @wrong, "$path\n  was  $was->[1]\n  told $told" if $told ne $was->[1] || $other->{status} != 200;
		}
		elsif ($existed)
		{
			my ($last) = map { $kept[$_]{all}{$id}[1] } grep { $kept[$_]{all}{$id} } reverse 0 .. $n;

			# references may have been released on its way out, and versions grow
			# a row that stays gets what is declared later
			if ($one->{status} == 200)
			{
				my ($is, $had) = map { $json->decode($_) } $told, $last;
				delete $is->{fields}{$_} for grep { !exists $had->{fields}{$_} } keys %{ $is->{fields} };
				($told, $last) = map { $json->encode($_) } $is, $had;
			}
			my @forms = map { s/"version":\d+/"version":_/r =~ s/"[abc] [0-9a-f-]{36}"/null/gr } $told, $last;
			push @wrong, "$path\n  ended as $last\n  told $told" if $forms[0] ne $forms[1] || $other->{status} != 200;
		}
		elsif ($one->{status} != 404 || $other->{status} != 404)
		{
			push @wrong, "$path: $one->{status}, $other->{status} before it was made";
		}
	}
}
cmp_ok($seen{there} // 0, '>', $writes / 4, 'answers of what was there');
is(scalar @wrong, 0, "asOf shows what there was (seed $seed)") or diag join "\n", @wrong[ 0 .. ($#wrong > 5 ? 5 : $#wrong) ];
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;

is($shim->stop, 0, 'ends with 0');
done_testing;
