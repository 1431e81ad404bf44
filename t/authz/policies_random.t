# Random policies over random rows and callers: what the API shows, and what
# plain SQL as a reader shows, against a plain interpreter of the expressions.
#
# ENTITYAPI_SEED repeats a run; a failure prints its seed.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $entities = 160;
my $rows = 16;
my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
srand $seed;

sub any { return $_[ rand @_ ] }

# -------- what there is --------

my %record = (
	word => 'string', other => 'string', count => 'number', price => 'number', flag => 'boolean',
	day => 'date', token => 'uuid', 'home.word' => 'string', 'home.count' => 'number' );
my %user = (
	userId => 'string', username => 'string', kind => 'string', superAdmin => 'boolean',
	"securityAttributes['team']" => 'string', "securityAttributes['level']" => 'number',
	"securityAttributes['ready']" => 'boolean', "profile['word']" => 'any', "profile['count']" => 'any' );
my %lists = (roles => 1, "securityAttributes['words']" => 1);
my %pool = (
	string => [ '', 'a', 'b', 'ab', 'A', "it's", '5', 'true', 'reader' ],
	number => [ -3, 0, 1, 2, 2.5, 5, 4000000000 ],
	boolean => [ 1, 0 ],
	date => [ '2026-01-01', '2026-11-20' ],
	uuid => [ map { sprintf '%08d-0000-7000-8000-000000000000', $_ } 1 .. 3 ] );

my @homes = map { { id => sprintf('018f0000-0000-7000-8000-%012d', $_), word => any(undef, 'a', 'b'), count => any(undef, 1, 5) } } 1 .. 4;
my @rows = map {
	{   id => sprintf('018f1111-0000-7000-8000-%012d', $_),
		word => any(undef, @{ $pool{string} }), other => any(undef, 'a', 'b', 'reader'), count => any(undef, -3, 0, 1, 5),
		price => any(undef, 0, 1, 2.5), flag => any(undef, 1, 0), day => any(undef, @{ $pool{date} }),
		token => any(undef, @{ $pool{uuid} }), home => any(undef, @homes) } } 1 .. $rows;

my @callers = (
	{ team => 'a', level => 2, ready => JSON::PP::true, words => [ 'a', 'reader' ], profile => { word => 'b', count => 5 } },
	{ team => 'b', level => 5, profile => { word => 5, count => 'a' } },
	{ level => 0, words => [], ready => JSON::PP::false, profile => {} },
	{ team => '5', profile => { word => undef, count => 2.5 } },
	{ profile => { word => [1], count => {} } } );

# -------- random expressions: [ kind, ... ] --------

sub literal
{
	my ($type) = @_;
	return [ 'literal', $type, any(@{ $pool{$type} }) ];
}

sub value
{
	my ($type) = @_;
	my @record = grep { $record{$_} eq $type } sort keys %record;
	my @user = grep { $user{$_} eq $type || $user{$_} eq 'any' && $type =~ /string|number|boolean/ } sort keys %user;
	my $kind = any(qw(record record record user user literal));

	return [ 'user', $type, any(@user) ] if $kind eq 'user' && @user;
	return [ 'record', $type, any(@record) ] if $kind ne 'literal' && @record;
	return literal($type);
}

sub condition
{
	my ($depth) = @_;
	my $kind = $depth > 0 ? any(qw(and or not and or compare in method null)) : any(qw(compare compare in method null flag));

	return [ $kind, map { condition($depth - 1) } 1 .. 2 + rand 2 ] if $kind =~ /and|or/;
	return [ 'not', condition($depth - 1) ] if $kind eq 'not';
	if ($kind eq 'compare')
	{
		my $type = any(qw(string string number number boolean date uuid));
		my @ops = $type =~ /boolean|uuid/ ? qw(== !=) : qw(== != < <= > >=);

		# one side at least has a type of its own
		my $left = $type =~ /date|uuid/ ? [ 'record', $type, $type eq 'date' ? 'day' : 'token' ] : value($type);
		my $right = $left->[0] eq 'user' && $left->[2] =~ /profile/ ? literal($type) : value($type);
		return [ 'compare', any(@ops), $left, $right ];
	}
	if ($kind eq 'in')
	{
		return [ 'inlist', value('string'), [ 'list', any(sort keys %lists) ] ] if rand() < 0.4;
		my $type = any(qw(string number));
		my $left = value($type);
		my $first = $left->[0] eq 'user' ? literal($type) : value($type);
		$first = literal($type) if $first->[0] eq 'user' && $first->[2] =~ /profile/;
		return [ 'in', $left, $first, map { any(literal($type), literal($type), [ 'record', $type, $type eq 'string' ? 'other' : 'count' ]) } 0 .. rand 3 ];
	}
	if ($kind eq 'method')
	{
		return [ 'has', [ 'list', any(sort keys %lists) ], value('string') ] if rand() < 0.4;
		my $path = value('string');
		$path = [ 'record', 'string', 'word' ] if $path->[0] eq 'literal';
		return [ any(qw(contains startsWith)), $path, value('string') ];
	}
	return [ 'null', any('==', '!='), any([ 'record', 'any', any(sort keys %record) ], [ 'user', 'any', any(sort keys %user) ]) ] if $kind eq 'null';
	return [ 'flag', any([ 'record', 'boolean', 'flag' ], [ 'user', 'boolean', any('superAdmin', "securityAttributes['ready']") ]) ];
}

sub text
{
	my ($node, $within) = @_;
	my ($kind, @args) = @$node;

	if ($kind eq 'literal')
	{
		return $args[1] ? 'true' : 'false' if $args[0] eq 'boolean';
		return $args[1] if $args[0] eq 'number';
		return q(') . $args[1] =~ s/'/''/gr . q(');
	}
	return "#$kind.$args[1]" if $kind =~ /record|user/;
	return "#user.$args[0]" if $kind eq 'list';
	return text($args[1]) . " $args[0] " . text($args[2]) if $kind eq 'compare';
	return text($args[0]) . ' in ' . text($args[1]) if $kind eq 'inlist';
	return text($args[0]) . ' in {' . join(', ', map { text($_) } @args[ 1 .. $#args ]) . '}' if $kind eq 'in';
	return text($args[0]) . '.contains(' . text($args[1]) . ')' if $kind eq 'has';
	return text($args[0]) . ".$kind(" . text($args[1]) . ')' if $kind =~ /contains|startsWith/;
	return text($args[1]) . " $args[0] null" if $kind eq 'null';
	return text($args[0]) if $kind eq 'flag';
	return any('!', 'not ') . '(' . text($args[0]) . ')' if $kind eq 'not';
	my $joint = $kind eq 'and' ? any(' and ', ' && ') : any(' or ', ' || ');
	return '(' . join($joint, map { text($_) } @args) . ')';
}

# -------- what they mean --------

my $missing;    # some value was not there

sub get
{
	my ($node, $row, $caller) = @_;
	my ($kind, $type, $name) = @$node;
	my $value;

	return $name if $kind eq 'literal';
	if ($kind eq 'record')
	{
		my ($first, $rest) = split /\./, $name;
		$value = $rest ? ($row->{home} ? $row->{home}{$rest} : undef) : $row->{$first};
	}
	else
	{
		if ($name =~ /^(\w+)\['(\w+)'\]/) { $value = $1 eq 'profile' ? $caller->{profile}{$2} : $caller->{$2} }
		else { $value = $caller->{$name} }
		# another type than the one expected is as good as nothing
		my $is = !defined $value ? 'null' : JSON::PP::is_bool($value) ? 'boolean' : ref $value ? 'other'
		  : $caller->{numbers}{$value} && $name =~ /profile|level/ ? 'number' : 'string';
		$value = undef if $type ne 'any' && $is ne $type;
	}
	return $value;
}

sub need
{
	my $value = get(@_);
	$missing = 1 unless defined $value;
	return $value;
}

sub order
{
	my ($type, $x, $y) = @_;
	return $type eq 'number' ? $x <=> $y : $type eq 'boolean' ? !!$x <=> !!$y : $x cmp $y;
}

my %test = (
	'==' => sub { $_[0] == 0 }, '!=' => sub { $_[0] != 0 }, '<' => sub { $_[0] < 0 },
	'<=' => sub { $_[0] <= 0 }, '>' => sub { $_[0] > 0 }, '>=' => sub { $_[0] >= 0 } );

# All parts are looked at, whatever the others say.
sub holds
{
	my ($node, $row, $caller) = @_;
	my ($kind, @args) = @$node;
	my $of = sub { need($_[0], $row, $caller) };
	my $list = sub {
		my ($name) = $args[ $_[0] ][1] =~ /(words|roles)/;
		$missing = 1 unless $caller->{$name};
		return @{ $caller->{$name} // [] };
	};

	if ($kind =~ /^(?:and|or|not)$/)
	{
		my @truths = map { holds($_, $row, $caller) } @args;
		my $true = grep { $_ } @truths;
		return $kind eq 'and' ? $true == @truths : $kind eq 'or' ? $true > 0 : !$true;
	}
	if ($kind eq 'null')
	{
		my $null = !defined get($args[1], $row, $caller);
		return $args[0] eq '==' ? $null : !$null;
	}
	return !!$of->($args[0]) if $kind eq 'flag';
	if ($kind eq 'compare')
	{
		my ($x, $y) = map { $of->($_) } @args[ 1, 2 ];
		return 0 if $missing;
		return $test{ $args[0] }->(order($args[1][1], $x, $y));
	}
	if ($kind eq 'inlist' || $kind eq 'has')
	{
		my $x = $of->($args[ $kind eq 'has' ? 1 : 0 ]);
		my @items = $list->($kind eq 'has' ? 0 : 1);
		return 0 if $missing;
		return scalar grep { $_ eq $x } @items;
	}
	my ($x, @rest) = map { $of->($_) } @args;
	return 0 if $missing;
	return scalar grep { order($args[0][1], $x, $_) == 0 } @rest if $kind eq 'in';
	return $kind eq 'contains' ? index($x, $rest[0]) >= 0 : index($x, $rest[0]) == 0;
}

sub visible
{
	my ($tree, $row, $caller) = @_;

	$missing = 0;
	my $truth = holds($tree, $row, $caller);
	return $truth && !$missing;
}

# -------- the declarations --------

my $json = JSON::PP->new->canonical;
my @documents = map { { apiVersion => 'entityapi/v1', %$_ } } (
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { reader => undef } } },
	{ kind => 'SecurityAttributes', metadata => { name => 'a' }, spec => { attributes => {
		team => { type => 'string' }, level => { type => 'integer' }, ready => { type => 'boolean' }, words => { type => 'string[]' } } } },
	{ kind => 'Entity', metadata => { name => 'Home' }, spec => {
		permissions => { '*' => ['read'] }, fields => { word => { type => 'string' }, count => { type => 'integer' } } } } );
my @trees = map { condition(any(0, 1, 2, 2, 3)) } 1 .. $entities;
my @texts = map { text($_) } @trees;

for my $i (0 .. $#trees)
{
	push @documents, map { { apiVersion => 'entityapi/v1', %$_ } } (
		{ kind => 'Policy', metadata => { name => "P$i" }, spec => { expression => $texts[$i] } },
		{ kind => 'Entity', metadata => { name => "Thing$i" }, spec => {
			plural => "Things$i", permissions => { reader => ['read'] }, policies => { "P$i" => ['read'] },
			fields => {
				word => { type => 'string' }, other => { type => 'string', index => JSON::PP::true }, count => { type => 'integer' },
				price => { type => 'decimal' }, flag => { type => 'boolean' }, day => { type => 'date' }, token => { type => 'uuid' },
				home => { type => 'ref', target => 'Home', relation => 'ManyToOne' } } } } );
}

sub quoted { return defined $_[0] ? q(') . $_[0] =~ s/'/''/gr . q(') : 'null' }

my $cluster = EntityApi::Test->cluster;
my $manifest = $json->encode(\@documents);
$cluster->psql("set client_min_messages = warning; select count(*) from entityapi.apply_manifest(\$json\$$manifest\$json\$)");
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);

for my $tenant ($ours, $theirs)
{
	my @sql = map { sprintf "insert into app.home (tenant_id, id, word, count, created_at, updated_at) values ('$tenant', '%s', %s, %s, now(), now());",
		$_->{id}, quoted($_->{word}), quoted($_->{count}) } @homes;
	my $values = join ', ', map { my $row = $_; "('$tenant'::uuid, " . join(', ', (map { quoted($row->{$_}) . '::text' } qw(id word other count price flag day token)),
		quoted($row->{home} && $row->{home}{id}) . '::text') . ')' } @rows;

	push @sql, map { "insert into app.thing$_ (tenant_id, id, word, other, count, price, flag, day, token, home_id, created_at, updated_at)"
		. ' select t, i::uuid, w, o, c::int, p::numeric, f::boolean, d::date, u::uuid, h::uuid, now(), now()'
		. " from (values $values) v (t, i, w, o, c, p, f, d, u, h);" } 0 .. $#trees;
	$cluster->psql(join "\n", @sql);
}

my $number = 0;
for my $caller (@callers)
{
	my $name = 'caller' . ++$number;
	my %attributes = map { $_ => $caller->{$_} } grep { exists $caller->{$_} } qw(team level ready words);
	my $user = $shim->user($ours, $name, [ 'reader' ], securityAttributes => \%attributes, profile => $caller->{profile});

	@$caller{qw(token username userId kind roles superAdmin)} = ($user->{accessToken}, $name, $user->{id}, 'USER', ['reader'], JSON::PP::false);
	$caller->{numbers} = { map { $_ => 1 } grep { defined && !ref && /^[\d.]+$/ && ($caller->{team} // '') ne $_ } $caller->{level}, values %{ $caller->{profile} } };
	$cluster->psql("create role $name login in role entityapi_reader; select entityapi.map_role('$name', '$name')");
	my @seen = split /\n/, $cluster->psql(join(' union all ', map { "select $_, id::text from app.thing$_" } 0 .. $#trees), user => $name);
	push @{ $caller->{reader}{ (split /\|/)[0] } }, (split /\|/)[1] for @seen;
}

# -------- the comparison --------

my ($cases, $shown, @wrong) = (0, 0);

for my $i (0 .. $#trees)
{
	for my $caller (@callers)
	{
		my $answer = $shim->http(GET => "/api/v1/things$i?page[size]=100&fields[things$i]=word", { token => $caller->{token} });

		if ($answer->{status} != 200)
		{
			push @wrong, "$texts[$i]\n  for $caller->{username}: $answer->{status}";
			next;
		}
		$answer = $answer->{json};
		my $got = join ' ', sort map { $_->{id} } @{ $answer->{data} };
		my $expected = join ' ', sort map { $_->{id} } grep { visible($trees[$i], $_, $caller) } @rows;
		my $reader = join ' ', sort @{ $caller->{reader}{$i} // [] };

		$cases += @rows;
		$shown += @{ $answer->{data} };
		push @wrong, "$texts[$i]\n  for $caller->{username}\n  API:      $got\n  reader:   $reader\n  expected: $expected"
		  if $got ne $expected || $reader ne $expected || $answer->{meta}{pagination}{totalRecords} != @{ $answer->{data} };
	}
}
cmp_ok($cases, '>=', 5000, 'cases');
cmp_ok($shown, '>', $cases / 50, 'of which enough are allowed');
is(scalar @wrong, 0, "the API, row-level security and the interpreter agree (seed $seed)")
  or diag join "\n", @wrong[ 0 .. ($#wrong > 5 ? 5 : $#wrong) ];

# -------- filters: the API and plain SQL --------

my @filters = (
	[ 'count=ge=1', 'count >= 1' ], [ 'word==a', q(word = 'a') ], [ 'flag==true', 'flag' ], [ 'price=lt=2', 'price < 2' ],
	[ 'other=isnull=true', 'other is null' ], [ 'day=gt=2026-02-01', q(day > '2026-02-01') ], [ q(word=like='a%'), q(word like 'a%') ],
	[ 'home.word==a', q(exists (select 1 from app.home h where (h.tenant_id, h.id) = (t.tenant_id, t.home_id) and h.word = 'a')) ] );
my ($compared, @differ) = (0);

for my $caller (@callers)
{
	my (@asked, @sql);

	for my $n (1 .. 60)
	{
		my ($i, $x, $y) = (int rand @trees, any(@filters), any(@filters));
		my $joint = any(';', ',');
		push @asked, [ $i, "$x->[0]$joint$y->[0]" ];
		push @sql, "select $n, id::text from app.thing$i t where ($x->[1]) " . ($joint eq ';' ? 'and' : 'or') . " ($y->[1])";
	}
	my %reader;
	push @{ $reader{ (split /\|/)[0] } }, (split /\|/)[1]
	  for split /\n/, $cluster->psql(join(' union all ', @sql), user => $caller->{username});
	for my $n (1 .. @asked)
	{
		my ($i, $filter) = @{ $asked[ $n - 1 ] };
		my $answer = $shim->must(200, GET => "/api/v1/things$i?page[size]=100&filter=" . $filter =~ s/([%'])/sprintf '%%%02X', ord $1/ger,
			{ token => $caller->{token} });

		$compared++;
		push @differ, "$texts[$i] with $filter for $caller->{username}"
		  if join(' ', sort map { $_->{id} } @{ $answer->{data} }) ne join(' ', sort @{ $reader{$n} // [] });
	}
}
cmp_ok($compared, '>=', 250, 'filtered lists');
is(scalar @differ, 0, "plain SQL as a reader finds the same (seed $seed)") or diag join "\n", @differ[ 0 .. ($#differ > 5 ? 5 : $#differ) ];

done_testing;
