# Filters and sort keys, thousands of random ones, against a plain interpreter
# of the same expressions over the same rows.
#
# ENTITYAPI_SEED repeats a run; a failure prints its seed.

use strict;
use warnings;
use utf8;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Rows;

my $expressions = 2500;
my $spoiled = 600;
my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
srand $seed;
binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $cluster = EntityApi::Test->cluster(
	# what expressions mean is the matter here, not what they may cost
	conf => [ 'entityapi.max_filter_crossings = 4096', 'entityapi.max_filter_patterns = 256', 'entityapi.max_like_length = 4096' ]);
$cluster->apply(EntityApi::Test::checkout() . '/t/data/rsql');
my $shim = EntityApi::Test->shim($cluster);
my ($ours, $theirs) = map { $shim->tenant($_)->{id} } qw(ours theirs);
my $token = $shim->user($ours, 'reader', ['Reader'])->{accessToken};

# -------- the declarations once more --------

my %types = (
	things => {
		name => 'string', note => 'string', count => 'integer', big => 'integer',
		price => 'decimal', day => 'date', moment => 'datetime', flag => 'boolean',
		colour => 'enum', token => 'uuid', extra => 'json', id => 'uuid' },
	people => { name => 'string', age => 'integer', id => 'uuid' },
	badges => { code => 'string', id => 'uuid' },
	parts => { label => 'string', weight => 'decimal', id => 'uuid' },
	tags => { word => 'string', rank => 'integer', id => 'uuid' },
	books => { title => 'string', pages => 'integer', id => 'uuid' },
	toys => { title => 'string', minimumAge => 'integer', id => 'uuid' },
);

# Name => [ to-many, members ]
my %relationships = (
	things => {
		owner => [ 0, 'people' ], content => [ 0, 'books', 'toys' ],
		tags => [ 1, 'tags' ], parts => [ 1, 'parts' ] },
	people => {
		boss => [ 0, 'people' ], team => [ 1, 'people' ], badge => [ 0, 'badges' ],
		things => [ 1, 'things' ] },
	badges => { holder => [ 0, 'people' ] },
	parts => { thing => [ 0, 'things' ], maker => [ 0, 'people' ] },
	tags => { things => [ 1, 'things' ] },
	books => { author => [ 0, 'people' ] },
	toys => {},
);

my %operators = (
	string => [qw(== != =in= =out= =gt= =ge= =lt= =le= =like= =ilike= =isnull=)],
	integer => [qw(== != =in= =out= =gt= =ge= =lt= =le= =isnull=)],
	boolean => [qw(== != =in= =out= =isnull=)],
	json => [qw(=isnull=)],
);
@operators{qw(decimal date datetime enum)} = ($operators{integer}) x 4;
$operators{uuid} = $operators{boolean};

# All that the program has is asked here.
{
	my %asked = map { $_ => 1 } map { @$_ } values %operators;
	my %declared = map { $_ => 1 } EntityApi::Test::slurp(EntityApi::Test::checkout() . '/t/data/rsql/things.yaml') =~ /\btype: (\w+)/g;

	is(join(' ', sort keys %asked), join(' ', sort map { $_->{name} } EntityApi::Test::Rows::operators()), 'each operator is asked');
	is(join(' ', grep { !$declared{$_} } map { $_->{name} } EntityApi::Test::Rows::types()), '', 'of each type there is an attribute');
}

# -------- the rows --------

# Values as the interpreter holds them: decimals in ten-thousandths, instants
# in microseconds of 2026, all else as it is written.
my %pool = (
	string => [
		'', 'a', 'b', 'A', 'ab', 'aB', 'abc', 'and', 'or', 'null', 'true', '%', '_', 'a%b', 'a_b', 'a\\b', '\\',
		"it's", 'say "hi"', 'a,b;c', '(a)', 'a=b', 'a b', ' a ', "\x{e9}", "e\x{301}", "\x{df}",
		"\x{65e5}\x{672c}", "\x{1F600}", 'x.y', '100%', "two\nlines", '==', '1', '2026-01-01' ],
	integer => [ -2147483648, -7, -1, 0, 1, 2, 3, 10, 100, 2147483647 ],
	decimal => [ -123450000, -10000, -1, 0, 1, 9999, 10000, 10001, 15000, 20000, 123456789012, 99999999 ],
	date => [ '0001-01-01', '1999-12-31', '2000-02-29', '2026-01-01', '2026-11-20', '9999-12-31' ],
	datetime => [ 0, 1, 500_000, 1_000_000, 3_600_000_000, 86_400_000_000, 86_400_000_001, 20_000_000_000_000 ],
	boolean => [ 'true', 'false' ],
	enum => [ 'RED', 'GREEN', 'deep blue', 'and' ],
	uuid => [ map { sprintf '%08x-0000-7000-8000-00000000abcd', $_ } 1 .. 4 ],
	json => [ '{}', 'null', '[1]', '"a"' ],
);

my %rows;    # collection => [ rows ]; a row's relationships are rows, too
my %count = (things => 60, people => 14, badges => 8, parts => 70, tags => 9, books => 8, toys => 6);
my @order = qw(people badges books toys tags things parts);

sub any { return $_[ rand @_ ] }

sub make_rows
{
	my $number = 0;

	for my $collection (@order)
	{
		for (1 .. $count{$collection})
		{
			my %row = (type => $collection, id => sprintf('018f0000-0000-7000-8000-%012x', ++$number * 7919 % 65536));

			for my $name (sort keys %{ $types{$collection} })
			{
				$row{$name} = rand() < 0.2 ? undef : any(@{ $pool{ $types{$collection}{$name} } })
				  if $name ne 'id';
			}
			push @{ $rows{$collection} }, \%row;
		}
	}
	for my $person (@{ $rows{people} })
	{
		$person->{boss} = rand() < 0.6 ? any(@{ $rows{people} }) : undef;
	}
	my @holders = @{ $rows{people} };
	for my $badge (@{ $rows{badges} })
	{
		next if rand() < 0.2;
		$badge->{holder} = splice @holders, rand @holders, 1;
		$badge->{holder}{badge} = $badge;
	}
	$_->{author} = rand() < 0.7 ? any(@{ $rows{people} }) : undef for @{ $rows{books} };
	$_->{gone} = rand() < 0.3 for @{ $rows{tags} };
	for my $thing (@{ $rows{things} })
	{
		$thing->{owner} = rand() < 0.8 ? any(@{ $rows{people} }) : undef;
		$thing->{content} = rand() < 0.75 ? any(@{ $rows{ any('books', 'toys') } }) : undef;
		$thing->{linked} = { map { $_->{id} => $_ } map { any(@{ $rows{tags} }) } 1 .. rand 4 };
	}
	for my $part (@{ $rows{parts} })
	{
		$part->{thing} = rand() < 0.9 ? any(@{ $rows{things} }) : undef;
		$part->{maker} = rand() < 0.6 ? any(@{ $rows{people} }) : undef;
	}

	# the other sides
	push @{ $_->{boss}{team} }, $_ for grep { $_->{boss} } @{ $rows{people} };
	push @{ $_->{owner}{things} }, $_ for grep { $_->{owner} } @{ $rows{things} };
	push @{ $_->{thing}{parts} }, $_ for grep { $_->{thing} } @{ $rows{parts} };
	for my $thing (@{ $rows{things} })
	{
		for my $tag (grep { !$_->{gone} } values %{ $thing->{linked} })
		{
			push @{ $thing->{tags} }, $tag;
			push @{ $tag->{things} }, $thing;
		}
	}
	$rows{tags} = [ grep { !$_->{gone} } @{ $rows{tags} } ];
	return;
}

# A value in SQL and, without quotes, in a filter
sub plain
{
	my ($type, $value) = @_;

	if ($type eq 'decimal')
	{
		return sprintf '%s%d.%04d', $value < 0 ? '-' : '', int(abs($value) / 10000), abs($value) % 10000;
	}
	if ($type eq 'datetime')
	{
		my $micro = $value % 1_000_000;
		my $seconds = ($value - $micro) / 1_000_000;
		my @at = gmtime(1_767_225_600 + $seconds);

		return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $at[5] + 1900, $at[4] + 1, @at[ 3, 2, 1, 0 ], $micro;
	}
	return $value;
}

sub quoted
{
	my ($value) = @_;

	return 'null' unless defined $value;
	$value =~ s/'/''/g;
	return "'$value'";
}

sub insert_rows
{
	my ($tenant, @gone) = @_;
	my %table = (people => 'person', badges => 'badge', books => 'book', toys => 'toy', tags => 'tag', things => 'thing', parts => 'part');
	my @sql = ('set standard_conforming_strings = on; begin;', $cluster->unchecked);

	for my $collection (@order)
	{
		for my $row (@{ $rows{$collection} }, $collection eq 'tags' ? @gone : ())
		{
			my %columns = (tenant_id => quoted($tenant), created_at => 'now()', updated_at => 'now()');

			for my $name (sort keys %{ $types{$collection} })
			{
				my $type = $types{$collection}{$name};

				$columns{ lcfirst($name) =~ s/([A-Z])/_\l$1/gr } =
				  quoted(defined $row->{$name} ? plain($type, $row->{$name}) : undef);
			}
			for my $name (grep { $row->{$_} } qw(boss holder author owner thing maker))
			{
				$columns{"${name}_id"} = quoted($row->{$name}{id});
			}
			$columns{"content_$table{$row->{content}{type}}_id"} = quoted($row->{content}{id}) if $row->{content};
			$columns{deleted_at} = 'now()' if $row->{gone};
			push @sql, sprintf 'insert into app.%s (%s) values (%s);', $table{$collection},
			  join(', ', sort keys %columns), join(', ', @columns{ sort keys %columns });
			push @sql, map { "insert into app.thing_tags values ('$tenant', '$row->{id}', '$_');" } keys %{ $row->{linked} // {} };
		}
	}
	$cluster->psql(join "\n", @sql, 'commit; analyze;');
	return;
}

make_rows();
{
	my %seen = map { $_->{id} => $_ } map { values %{ $_->{linked} } } @{ $rows{things} };

	# the other tenant has the same rows, with the same ids
	insert_rows($_, grep { $_->{gone} } values %seen) for $ours, $theirs;
}

# -------- random expressions --------

# A path from a collection: its names, the type of what it ends in
# ("relationship" for one that ends there), and the number of names up to the
# last to-many relationship.
sub random_path
{
	my ($collection, $hops, $to_many) = @_;
	my ($many, $last_to_many, @names) = (0);
	my @members = ($collection);

	while ($hops-- > 0)
	{
		my %next = map { %{ $relationships{$_} } } @members;
		my @usable = grep { $to_many || !$next{$_}[0] } sort keys %next;

		last unless @usable;
		push @names, any(@usable);
		($last_to_many, @members) = @{ $next{ $names[-1] } };
		$many = @names if $last_to_many;
		return ([@names], 'relationship', $many) if rand() < 0.08 && !$last_to_many;
	}
	my %last = map { %{ $types{$_} } } @members;
	my $name = any(sort keys %last);

	return ([ @names, $name ], $last{$name}, $many);
}

sub random_pattern
{
	my $text = any(@{ $pool{string} });

	$text =~ s/\\/\\\\/g if rand() < 0.7;
	$text =~ s/(.)/any($1, $1, '%', '_')/gse;
	$text = any('', '%') . $text . any('', '%');
	$text =~ s/\\+$/\\\\/;
	return $text;
}

sub random_comparison
{
	my ($collection) = @_;
	my ($path, $type, $many) = random_path($collection, any(0, 0, 0, 1, 1, 2, 3), 1);
	my $operator = $type eq 'relationship' ? '=isnull=' : any(@{ $operators{$type} });
	my @values;

	if ($operator eq '=isnull=') { @values = any('true', 'false') }
	elsif ($operator =~ /like/) { @values = random_pattern() }
	else
	{
		my @choice = $path->[-1] eq 'id' ? map { $_->{id} } map { @{ $rows{$_} } } sort keys %rows : @{ $pool{$type} };

		@values = map { any(@choice) } 1 .. ($operator =~ /in|out/ ? 1 + rand 4 : 1);
		@values = map { $_ + any(0, 0, 1, -1) } @values if $type eq 'decimal';
	}
	return { path => $path, many => $many, type => $type, operator => $operator, values => \@values };
}

sub random_tree
{
	my ($collection, $depth) = @_;

	return random_comparison($collection) if $depth == 0 || rand() < 0.3;
	return { joint => any('and', 'or'), parts => [ map { random_tree($collection, $depth - 1) } 1 .. 1 + rand 3.5 ] };
}

# -------- their text, in any of its spellings --------

sub literal
{
	my ($type, $value, $operator) = @_;

	if ($type eq 'decimal' && rand() < 0.4)
	{
		return $value . any('E-4', 'e-4', '.000e-04');
	}
	if ($type eq 'datetime')
	{
		my $hours = any(0, 0, 2, -5);
		my $text = plain($type, $value + $hours * 3_600_000_000);

		$text =~ s/\.?0+Z$/Z/ if rand() < 0.5;
		return any($text, $text, $value % 86_400_000_000 == 0 ? substr($text, 0, 10) : $text) if $hours == 0;
		$text =~ s/Z$/sprintf '%s%02d:00', $hours < 0 ? '-' : '+', abs $hours/e;
		return $text;
	}
	return uc $value if $type eq 'uuid' && rand() < 0.3;
	return plain($type, $value);
}

sub value_text
{
	my ($comparison, $value) = @_;
	my $text = $comparison->{operator} =~ /like|isnull/ ? $value
	  : literal($comparison->{type}, $value);
	my $bare = $text =~ /^[^"'();,=<>!~ \p{Cc}]+$/;

	return $text if $bare && rand() < 0.7;
	my $quote = any("'", '"');
	$text =~ s/([\\$quote])/\\$1/g;
	$text =~ s/([a-z])/\\$1/ if rand() < 0.1;
	return "$quote$text$quote";
}

sub blank { return any('', '', '', ' ', '  ') }

my %short = ('=gt=' => '>', '=ge=' => '>=', '=lt=' => '<', '=le=' => '<=');

sub text_of
{
	my ($tree, $within) = @_;

	if ($tree->{path})
	{
		my $operator = $tree->{operator};
		my @values = map { value_text($tree, $_) } @{ $tree->{values} };
		my $list = join any(',', ' , ', ' or '), @values;

		$operator = $short{$operator} if $short{$operator} && rand() < 0.5;
		$list = '(' . blank() . $list . blank() . ')' if @values > 1 || rand() < 0.2;
		return join('.', @{ $tree->{path} }) . blank() . $operator . blank() . $list;
	}
	my $joint = $tree->{joint};
	my $text = join '', map { $_->[0] . $_->[1] }
	  map { [ $_ == 0 ? '' : $joint eq 'and' ? any(';', ' ; ', ' and ', '  and  ') : any(',', ' , ', ' or '),
			text_of($tree->{parts}[$_], @{ $tree->{parts} } > 1 ? $joint : $within) ] } 0 .. $#{ $tree->{parts} };

	# "and" binds tighter, and is needless to bracket within itself
	my $bracket = @{ $tree->{parts} } > 1 && $within eq 'and' && $joint eq 'or' || rand() < 0.3;
	return $bracket ? '(' . blank() . $text . blank() . ')' : $text;
}

# -------- what they mean --------

# The values a path leads to.  An empty to-one, and a member without the
# attribute, lead to null, but to no member of a to-many beyond them: $many is
# the number of names up to the last to-many relationship.
sub values_of
{
	my ($row, $many, @path) = @_;
	my $name = shift @path;
	my $relationship = $row && $relationships{ $row->{type} }{$name};

	return $many > 0 ? () : (undef)
	  unless $row && ($relationship || exists $types{ $row->{type} }{$name});
	return ($row->{$name}) unless $relationship;
	my @targets = $relationship->[0] ? @{ $row->{$name} // [] } : ($row->{$name});
	return @path ? map { values_of($_, $many - 1, @path) } @targets : @targets;
}

sub pattern
{
	my ($like, $any_case) = @_;
	my $regex = '';

	while ($like =~ /\G(?:\\(.)|(.))/gs)
	{
		$regex .= defined $1 ? quotemeta $1 : $2 eq '%' ? '.*' : $2 eq '_' ? '.' : quotemeta $2;
	}
	return $any_case ? qr/\A$regex\z/si : qr/\A$regex\z/s;
}

sub compare
{
	my ($type, $left, $right) = @_;

	return $type =~ /^(?:integer|decimal|datetime)$/ ? $left <=> $right : $left cmp $right;
}

sub holds
{
	my ($comparison, $value) = @_;
	my ($type, $operator, @values) = (@$comparison{qw(type operator)}, @{ $comparison->{values} });

	return ($values[0] eq 'true') == !defined $value if $operator eq '=isnull=';
	return 0 unless defined $value;
	return $value =~ ($comparison->{pattern} //= pattern($values[0], $operator eq '=ilike=')) if $operator =~ /like/;
	my @orders = map { compare($type, $value, $_) } @values;
	return scalar grep { $_ == 0 } @orders if $operator eq '==' || $operator eq '=in=';
	return !grep { $_ == 0 } @orders if $operator eq '!=' || $operator eq '=out=';
	return $orders[0] > 0 if $operator eq '=gt=';
	return $orders[0] >= 0 if $operator eq '=ge=';
	return $orders[0] < 0 if $operator eq '=lt=';
	return $orders[0] <= 0 if $operator eq '=le=';
	die "operator $operator";
}

sub matches
{
	my ($tree, $row) = @_;

	return scalar grep { holds($tree, $_) } values_of($row, $tree->{many}, @{ $tree->{path} }) if $tree->{path};
	my $true = grep { matches($_, $row) } @{ $tree->{parts} };
	return $tree->{joint} eq 'or' ? $true > 0 : $true == @{ $tree->{parts} };
}

# -------- sort keys --------

# Text is ordered by code points, which is what the cluster's locale does.
sub random_sort
{
	my ($collection) = @_;
	my (@keys, %seen);

	for (1 .. rand 4)
	{
		my ($path, $type) = random_path($collection, any(0, 0, 1, 2), 0);

		next if $type =~ /relationship|json/ || $seen{"@$path"}++;
		push @keys, { path => $path, type => $type, down => rand() < 0.5 };
	}
	return @keys;
}

sub sorted
{
	my ($keys, @found) = @_;
	my %values;

	for my $row (@found)
	{
		$values{ $row->{id} } = [ map { (values_of($row, 0, @{ $_->{path} }))[0] } @$keys ];
	}
	return sort {
		my $order = 0;

		for my $i (0 .. $#$keys)
		{
			my ($left, $right) = ($values{ $a->{id} }[$i], $values{ $b->{id} }[$i]);

			$order = defined $left && defined $right ? compare($keys->[$i]{type}, $left, $right)
			  : defined $left ? -1 : defined $right ? 1 : 0;
			$order = -$order if $keys->[$i]{down};
			last if $order;
		}
		$order || $a->{id} cmp $b->{id};
	} @found;
}

# -------- asking --------

sub encoded
{
	my ($text) = @_;

	utf8::encode($text);
	$text =~ s/([^A-Za-z0-9._~-])/sprintf '%%%02X', ord $1/ge;
	return $text;
}

# All in one connection: for each target its status and the ids, in order, or
# the body of what was refused.
sub ask
{
	my (@targets) = @_;
	my $n = 0;
	my $rows = join ",\n", map { sprintf "(%d, '%s')", $n++, $_ } @targets;
	my $out = $cluster->psql(<<~"SQL");
		create temp table request (n int, target text);
		insert into request values $rows;
		select r.n, a.status,
			case when a.status = 200 then (a.body::jsonb #>> '{meta,pagination,totalRecords}') || ':' ||
				coalesce((select string_agg(d.value->>'id', ' ' order by d.ordinality)
					from jsonb_array_elements(a.body::jsonb->'data') with ordinality d), '')
				else a.body end
		from request r, lateral entityapi.handle('GET', r.target,
			jsonb_build_object('authorization', 'Bearer $token'), null, '127.0.0.1') a
		order by r.n;
		SQL

	return map { [ (split /\|/, $_, 3)[ 1, 2 ] ] } split /\n/, $out;
}

# The end of an id tells them apart.
sub brief { return $_[0] =~ s/018f0000-0000-7000-8000-0{8}//gr }

my @cases;
for (1 .. $expressions)
{
	my $collection = any(qw(things things things people parts tags badges books));
	my $tree = random_tree($collection, any(0, 0, 1, 1, 2, 3));
	my @keys = random_sort($collection);
	my $case = { collection => $collection, tree => $tree, text => text_of($tree, ''), keys => \@keys };

	next if length encoded($case->{text}) > 7000 || length $case->{text} > 2000;
	$case->{sort} = join ',', map { ($_->{down} ? '-' : '') . join '.', @{ $_->{path} } } @keys;
	$case->{target} = "/api/v1/$collection?page%5Bsize%5D=100&fields%5B$collection%5D=&filter=" . encoded($case->{text})
	  . ($case->{sort} eq '' ? '' : "&sort=$case->{sort}");
	push @cases, $case;
}
cmp_ok(scalar @cases, '>=', 2000, "seed $seed: enough expressions");

my @answers = ask(map { $_->{target} } @cases);
is(scalar @answers, scalar @cases, 'all are answered');

my ($wrong, $empty, $all) = (0, 0, 0);
for my $i (0 .. $#cases)
{
	my $case = $cases[$i];
	my @found = sorted($case->{keys}, grep { matches($case->{tree}, $_) } @{ $rows{ $case->{collection} } });
	my $expected = @found . ':' . join ' ', map { $_->{id} } @found;
	my ($status, $answer) = @{ $answers[$i] // [ 0, '' ] };

	$empty++ if !@found;
	$all++ if @found == @{ $rows{ $case->{collection} } };
	next if $status == 200 && $answer eq $expected;
	diag "seed $seed, $case->{collection}, sort \"$case->{sort}\", filter\n$case->{text}\n$case->{target}\nanswer $status " . brief($answer) . "\nmust be " . brief($expected)
	  if $wrong++ < 5;
}
is($wrong, 0, scalar(@cases) . ' expressions mean what they say');
cmp_ok(@cases - $empty - $all, '>', @cases / 4, 'and many of them tell rows apart');

# Whatever is spoiled is a filter still, or is refused as one.
my @spoiled = map {
	my $text = any(@cases)->{text};

	for (1 .. 1 + rand 2)
	{
		my $at = int rand length $text;

		substr($text, $at, any(0, 1, 1, 2)) = any('', '', '(', ')', '"', "'", '\\', ';', ',', '=', '.', ' ', '~', '!', "\x{7f}", 'and', '%')
		  if $at < length $text;
	}
	"/api/v1/things?filter=" . encoded($text)
} 1 .. $spoiled;
my @others = grep { $_->[0] != 200 && !($_->[0] == 400 && $_->[1] =~ /"code":"INVALID_(?:FILTER|PARAMETER)"/) } ask(@spoiled);
is_deeply(\@others, [], "seed $seed: spoiled ones are answered by 200 or 400");

is(scalar(() = EntityApi::Test::slurp($cluster->log) =~ /entityapi request .* failed/g), 0, 'no request failed inside');

done_testing;
