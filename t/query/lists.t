# Query parameters of entity endpoints: what they find, and how wrong ones are
# refused.

use strict;
use warnings;
use utf8;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $editor = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'ed', ['Editor']), '/api/v1');
my $reader = $editor->as($shim->user($tenant->{id}, 'rea', ['Reader']));
my $nobody = '01980000-0000-7000-8000-000000000000';

sub escape
{
	my ($text) = @_;

	$text = EntityApi::Test::utf8_bytes($text);
	return $text =~ s/([^A-Za-z0-9_.~-])/sprintf '%%%02X', ord $1/ger;
}

sub made
{
	my ($collection, $attributes, $relationships) = @_;

	return $editor->good(201, POST => "/$collection",
		data => {
			type       => lc $collection,
			attributes => $attributes,
			$relationships ? (relationships => $relationships) : () })->{json}{data};
}

sub to
{
	return { data => { type => $_[0]{type}, id => $_[0]{id} } };
}

sub to_many
{
	return { data => [ map { to($_)->{data} } @_ ] };
}

# --- data -------------------------------------------------------------------

my $token = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11';
my @specimens = (
	{ name => 'This, that & more' },
	{ name => q{it's "quoted"},  essay => 'back\\slash 100%' },
	{ name => 'under_score',     essay => 'underXscore' },
	{ name => 'Žluťoučký kůň',   count => 1, price => '0.10', flag => JSON::PP::true() },
	{ name => '😀',              count => 2, price => '0.20', flag => JSON::PP::false() },
	{ name => 'null',            count => 3, big => '9007199254740993', amount => '123456789012345.6789' },
	{ name => '',                count => 4, big => '9007199254740992', colour => 'RED' },
	{ name => 'a+b',             count => 5, exact => '12345678901234567.89', colour => 'GREEN' },
	{ name => 'acme',            count => 6, day => '2024-02-29', secret => 'abc' },
	{ name => 'Acme',            count => 7, moment => '2024-02-29T00:00:00Z', token => $token },
	{ name => 'x=y',             count => -8, moment => '2024-02-29T12:30:00.5+02:00', colour => 'BLUE' },
	{ name => '%',               count => 9, extra => { a => 1 } },
);
# Numbers beyond a double travel as text, as the API writes them.
for my $attributes (@specimens)
{
	my $json = JSON::PP->new->utf8->encode($attributes) =~ s/"big":"(\d+)"/"big":$1/r;

	$editor->good(201, POST => '/specimens', body => qq({"data":{"type":"specimens","attributes":$json}}));
}
my @people = map { made(people => { name => $_ }) } qw(Ann Bob Cid);
my @tags = map { made(tags => { word => $_ }) } qw(one two three);
my $book = made(books => { title => 'Title', pages => 9 });
my $toy = made(toys => { title => 'Title', minimumAge => 3 });
my $vault = made(vaults => { place => 'below' });
my @boxes = (
	made(boxes => { label => 'A', weight => 1 },
		{ owner => to($people[0]), tags => to_many(@tags), content => to($book) }),
	made(boxes => { label => 'B', weight => 2 },
		{ owner => to($people[0]), keeper => to($people[1]), tags => to_many($tags[0]), content => to($toy) }),
	made(boxes => { label => 'C' }, { owner => to($people[1]), vault => to($vault) }));

sub names
{
	my ($filter) = @_;
	my $answer = $editor->call(GET => '/specimens?sort=id&page[size]=100&filter=' . escape($filter));

	return "$answer->{status}: $answer->{body}" if $answer->{status} != 200;
	is($answer->{json}{meta}{pagination}{totalRecords}, scalar @{ $answer->{json}{data} }, "total of $filter");
	return join '|', map { $_->{attributes}{name} } @{ $answer->{json}{data} };
}

# --- filter -----------------------------------------------------------------

subtest 'filters that hold' => sub {
	for my $case (
		[ q{name=='This, that & more'}, 'This, that & more' ],
		[ q{name=='it\'s "quoted"'}, q{it's "quoted"} ], [ q{name=="it's \"quoted\""}, q{it's "quoted"} ],
		[ q{name=='Žluťoučký kůň'}, 'Žluťoučký kůň' ], [ 'name==😀', '😀' ],
		[ 'name==null', 'null' ], [ q{name==''}, '' ], [ 'name==a+b', 'a+b' ], [ q{name=='x=y'}, 'x=y' ],
		[ 'name==%', '%' ], [ 'name==$', '' ], [ q{name=='under_score'}, 'under_score' ], [ q{name=='under%'}, '' ],
		[ q{name==*}, '' ], [ q{name==ac*}, '' ],
		[ 'name=like=ac%', 'acme' ], [ 'name=ilike=AC%', 'acme|Acme' ], [ 'name=like=under_score', 'under_score' ],
		[ 'essay=like=under_score', 'under_score' ], [ q{essay=like='under\\\\_score'}, '' ],
		[ q{essay=like='%\\\\%'}, q{it's "quoted"} ], [ q{essay=like='back\\\\\\\\%'}, q{it's "quoted"} ],
		[ 'name=like=_', '😀|%' ],
		[ 'name=in=(acme,Acme,nothing)', 'acme|Acme' ], [ 'name=in=acme', 'acme' ], [ q{name=in=('This, that & more',acme)}, 'This, that & more|acme' ],
		[ 'name=in=(acme or Acme)', 'acme|Acme' ], [ 'name==acme or name==Acme', 'acme|Acme' ], [ ' name == acme ', 'acme' ],
		[ 'count==1,count==2', 'Žluťoučký kůň|😀' ], [ 'count>=1;count<3', 'Žluťoučký kůň|😀' ], [ 'count=gt=8', '%' ],
		[ 'count==9,count==1;name==acme', '%' ], [ '(count==9,count==1);name==%', '%' ], [ 'count==1 and name=like=Ž%', 'Žluťoučký kůň' ],
		[ 'count=lt=0', 'x=y' ], [ 'count==-8', 'x=y' ], [ 'count=isnull=true', q{This, that & more|it's "quoted"|under_score} ],
		[ 'count!=1;count!=2;count=out=(3,4,5);count<8', 'acme|Acme|x=y' ],
		[ 'price==0.1', 'Žluťoučký kůň' ], [ 'price==0.100', 'Žluťoučký kůň' ], [ 'price==1e-1', 'Žluťoučký kůň' ],
		[ 'price==0.1000000000000000055511151231257827', '' ], [ 'price=gt=0.1999999999999999999999999', '😀' ],
		[ 'price!=0.1', '😀' ], [ 'exact==12345678901234567.89', 'a+b' ], [ 'exact==12345678901234567.88', '' ],
		[ 'big==9007199254740993', 'null' ], [ 'big=in=(9007199254740992)', '' ], [ 'big=gt=9007199254740992', 'null' ],
		[ 'amount==123456789012345.6789', 'null' ], [ 'amount=ge=123456789012345.67891', '' ],
		[ 'flag==true', 'Žluťoučký kůň' ], [ 'flag!=true', '😀' ], [ 'flag=in=(true,false)', 'Žluťoučký kůň|😀' ],
		[ 'colour==RED', '' ], [ 'colour=gt=BLUE', '|a+b' ], [ 'colour=in=(GREEN,BLUE)', 'a+b|x=y' ], [ 'colour!=RED', 'a+b|x=y' ],
		[ 'day==2024-02-29', 'acme' ], [ 'day<2024-03-01', 'acme' ], [ 'day=gt=2024-02-29', '' ],
		[ 'moment==2024-02-29T00:00:00Z', 'Acme' ], [ 'moment==2024-02-29', 'Acme' ],
		[ 'moment==2024-02-29T01:00:00+01:00', 'Acme' ], [ 'moment=gt=2024-02-29T10:30:00.499999Z', 'x=y' ],
		[ 'moment==2024-02-29T10:30:00.5Z', 'x=y' ],
		[ "token==$token", 'Acme' ], [ 'token==' . uc $token, 'Acme' ], [ "token=in=($token)", 'Acme' ],
		[ 'extra=isnull=false', '%' ], [ "id==$nobody", '' ], [ 'secret==abc', 'acme' ],
		[ 'name!=nothing;name=isnull=true', '' ])
	{
		my ($filter, $expected) = @$case;
		is(names($filter), $expected, $filter);
	}
	is($editor->good(200, GET => '/specimens?filter=name%3D%3D%27This%2C+that+%26+more%27')->{json}{meta}{pagination}{totalRecords},
		1, 'form-encoded');
	is($editor->good(200, GET => '/specimens?filter=name%3D%3Da%2Bb')->{json}{meta}{pagination}{totalRecords}, 1, '%2B is a plus');
	is($editor->good(200, GET => "/specimens?filter=name=='x=y'")->{json}{meta}{pagination}{totalRecords}, 1, 'raw');
};

# Random expressions, evaluated here as well
subtest 'precedence and nulls' => sub {
	my %test = (
		'==' => sub { $_[0] == $_[1] }, '!=' => sub { $_[0] != $_[1] }, '>' => sub { $_[0] > $_[1] },
		'=le=' => sub { $_[0] <= $_[1] });
	my $expression;

	$expression = sub {
		my ($depth) = @_;

		if ($depth == 0 || rand() < 0.3)
		{
			my ($operator, $value) = ((sort keys %test)[ rand 4 ], int rand(12) - 2);
			return ("count$operator$value", sub { defined $_[0]{count} && $test{$operator}->($_[0]{count}, $value) });
		}
		my ($left, $left_holds) = $expression->($depth - 1);
		my ($right, $right_holds) = $expression->($depth - 1);
		return rand() < 0.5
		  ? ("($left;$right)", sub { $left_holds->(@_) && $right_holds->(@_) })
		  : ("($left,$right)", sub { $left_holds->(@_) || $right_holds->(@_) });
	};
	srand 42;
	for (1 .. 60)
	{
		my ($text, $holds) = $expression->(4);

		is(names($text), join('|', map { $_->{name} } grep { $holds->($_) } @specimens), $text);
	}
	for my $case (
		[ 'count==1,count==2;count==3', '1' ], [ 'count==3;count==2,count==1', '1' ],
		[ 'count==1;count==1,count==2;count==2', '1 2' ], [ '(count==1,count==2);count==2', '2' ])
	{
		my ($text, $counts) = @$case;
		my @names = map { $_->{name} } map { my $n = $_; grep { ($_->{count} // 0) == $n } @specimens } split / /, $counts;
		is(names($text), join('|', @names), $text);
	}
};

subtest 'filters that are refused' => sub {
	my @bad = (
		# grammar
		'a', 'count', 'count==', '==1', 'count=1', 'count===1', 'count=!1', '!count==1', 'not count==1', 'count<>1', '()',
		'(count==1', 'count==1)', '(count==1)(count==2)', 'count==1;', ';count==1', 'count==1;;count==2', 'count==1,', ',',
		'count=in=()', 'count=in=(1,,2)', 'count=in=(1,2,)', 'count=in=(1,)', 'count=in=(1;2)', 'count=in=((1),2)',
		'count==1 AND count==2', 'count==1 and(count==2)', 'name==a c', q{name=='a' b}, q{name==a'b}, q{name=='un'closed'},
		q{name=='unclosed}, q{'count'==1}, 'count==1==2', 'count=GT=1', 'count=foo=1', 'count==(1,2)', 'count=gt=(1,2)', 'count~=1',
		'name==x=y', "name==a\tb", "name==a\nb", '.count==1', 'count.==1', 'owner..name==1', 'name=like=(a,b)',
		# names
		'nothing==1', 'Count==1', 'tenant_id==1', 'tenantId==1', '_tenant_id==1', 'version==0', 'ctid==1', 'xmin==1', 'tableoid==1', 'oid==1',
		'created_at==2024-01-01', 'updated_at==2024-01-01', 'deleted_at=isnull=true', 'count.x==1', 'name.length==1', 'id.x==1', 'a"b==1', 'a::text==1',
		'count->x==1', "nothing.name==1", 'specimens.count==1', "count'==1",
		# literals
		'count==abc', 'count==1.0', 'count==0x10', q{count==' 7'}, 'count==99999999999', 'count==2147483648', 'count==1e3', q{count==''}, 'count==+1', 'count==١',
		'big==9223372036854775808', 'price==abc', 'price==NaN', 'price==Infinity', 'price==-inf', 'price==1e999999', 'price==1e', 'price==.', q{price==''}, 'price==1_0', 'price==0x1',
		'flag==1', 'flag==t', 'flag==yes', 'flag==TRUE', 'flag==on', q{flag==''}, 'day==now', 'day==today', 'day==infinity', 'day==01/02/2024', 'day==J2451187', 'day==2024-02-30',
		'day==2024-13-01', 'day==20240229', 'day==2024-02-29T00:00:00Z ', 'moment==now', 'moment==epoch', 'moment==2024-02-30T00:00:00Z', 'moment==2024-02-29T00:00:00', 'moment==2024-02-29T25:00:00Z',
		q{moment=='2024-02-29T00:00:00 02:00'}, 'moment==-infinity', 'token==x', 'token==' . ($token =~ tr/-//dr), "token=={$token}", 'id==x', 'id==1', q{id==''}, 'colour==PINK', 'colour==red', 'colour=in=(RED,PINK)',
		'count=isnull=1', 'count=isnull=TRUE', q{count=isnull=''}, 'count=isnull=(true,false)', 'count=in=(1,x)',
		# operators that do not fit
		'count=like=1%', 'price=like=1%', 'flag=gt=true', 'flag=like=t%', 'token=gt=' . $token, 'token=like=a%', 'colour=like=R%', 'colour=ilike=R%', 'extra==1', 'extra=like=a', 'extra=in=(1)',
		'day=like=2024%', 'id=like=0%', 'id=gt=' . $nobody,
		q{name=like='abc\\\\'}, q{name=ilike='\\\\'}, 'name=like=' . 'a' x 300, 'name=like=' . '%_' x 200,
		# limits
		'(' x 65 . 'count==1' . ')' x 65, '(' x 1300 . 'count==1' . ')' x 1300, '(' x 2000, join(',', ('count==1') x 257), 'count=in=(' . join(',', (1) x 1001) . ')', 'name==' . 'x' x 4100);

	for my $filter (@bad)
	{
		$editor->refused(substr($filter, 0, 70) =~ s/\n/\\n/r, 400, 'INVALID_FILTER', [ parameter => 'filter' ],
			GET => '/specimens?filter=' . escape($filter));
	}
	for my $filter ('owner==x', 'owner=like=x', 'owner.nothing==1', 'owner.tenant_id==1', 'content.nothing==1', 'content.version==1',
		'tags==x', 'tags.nothing==x', 'label.x==1', 'owner_id==' . $people[0]{id}, 'content_book_id==' . $book->{id},
		'owner.boss.boss.boss.boss.boss.boss.name==x', 'slips.box.slips.box.slips.box.label==x',
		"keeper.name.x=isnull=true")
	{
		$editor->refused($filter, 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => '/boxes?filter=' . escape($filter));
	}
	is($editor->call(GET => '/specimens?filter=' . escape(join ',', ('count==1') x 256))->{status}, 200, '256 comparisons are not too many');
	is($editor->call(GET => '/specimens?filter=' . escape('count=in=(' . join(',', (1) x 1000) . ')'))->{status}, 200, 'nor 1000 members');
	is($editor->call(GET => '/specimens?filter=' . escape('(' x 64 . 'count==1' . ')' x 64))->{status}, 200, 'nor 64 parentheses');
	is(names(q{name=='\\'); drop table specimen;--'}), '', 'what looks like SQL is text');
	is(names(q{name==‘1’}), '', 'so are typographic quotes');
	is($editor->good(200, GET => '/specimens')->{json}{meta}{pagination}{totalRecords}, scalar @specimens, 'all is still there');
};

subtest 'paths' => sub {
	my $labels = sub {
		my ($filter) = @_;
		my $answer = $editor->call(GET => '/boxes?sort=label&filter=' . escape($filter));
		return $answer->{body} if $answer->{status} != 200;
		return join '', map { $_->{attributes}{label} } @{ $answer->{json}{data} };
	};
	for my $case (
		[ 'owner.name==Ann', 'AB' ], [ 'keeper.name==Bob', 'B' ], [ 'keeper.name!=Bob', '' ], [ 'keeper.name=isnull=true', 'AC' ],
		[ 'keeper=isnull=true', 'AC' ], [ 'keeper=isnull=false', 'B' ], [ 'content=isnull=true', 'C' ], [ "owner.id==$people[0]{id}", 'AB' ],
		[ 'content.title==Title', 'AB' ], [ 'content.pages=gt=1', 'A' ], [ 'content.pages=isnull=true', 'BC' ], [ 'content.minimumAge==3', 'B' ],
		[ "content.id==$toy->{id}", 'B' ], [ 'tags.word==one', 'AB' ], [ 'tags.word==two;tags.word==three', 'A' ], [ 'tags.word=in=(one,two,three)', 'AB' ],
		[ 'tags.boxes.label==B', 'AB' ], [ 'owner.boxes.keeper.name==Bob', 'AB' ], [ 'vault.place==below', 'C' ], [ 'label==A,owner.name==Bob', 'AC' ])
	{
		my ($filter, $expected) = @$case;
		is($labels->($filter), $expected, $filter);
	}
	for my $parameter ('filter=vault.place==below', 'filter=vault=isnull=true', 'filter=vault.id==' . $vault->{id}, 'sort=vault.place')
	{
		my $known = $reader->call(GET => "/boxes?$parameter");
		my $unknown = $reader->call(GET => '/boxes?' . $parameter =~ s/vault/xxxxx/r);

		is($known->{status}, 400, "$parameter: what may not be read");
		is($known->{json}{errors}[0]{detail} =~ s/vault/xxxxx/gr, $unknown->{json}{errors}[0]{detail}, 'is unknown');
	}
	for my $parameter ('filter=secret=like=a%25', 'filter=secret=isnull=true', 'sort=secret', 'fields[specimens]=secret')
	{
		my $known = $reader->call(GET => "/specimens?$parameter");
		my $unknown = $reader->call(GET => '/specimens?' . $parameter =~ s/secret/xxxxxx/r);

		is($known->{status}, 400, "$parameter: what may not be read");
		is($known->{body} =~ s/secret/xxxxxx/gr =~ s/"id":"[^"]*"//r, $unknown->{body} =~ s/"id":"[^"]*"//r, 'is unknown');
	}
	my $data = $reader->good(200, GET => "/boxes/$boxes[2]{id}")->{json}{data};
	ok(!exists $data->{relationships}{vault}, 'a relationship to what may not be read is left out');
	$reader->refused('and not included', 403, 'FORBIDDEN', [ parameter => 'include' ], GET => '/boxes?include=vault');
	$reader->refused('nor set', 400, undef, undef, GET => '/boxes?fields[vaults]=place');
};

# --- the other parameters ---------------------------------------------------

subtest 'parameters' => sub {
	for my $case (
		[ 'UNKNOWN_PARAMETER', 'nothing', '/people', 'nothing=1' ], [ 'UNKNOWN_PARAMETER', 'filters[a]', '/people', 'filters[a]=1' ],
		[ 'UNKNOWN_PARAMETER', 'where', '/people', 'where=1' ], [ 'UNKNOWN_PARAMETER', 'filter[$ne]', '/people', 'filter[$ne]=1' ],
		[ 'UNKNOWN_PARAMETER', 'filter[name]', '/people', 'filter%5Bname%5D=Ann' ], [ 'UNKNOWN_PARAMETER', 'page', '/people', 'page=1' ],
		[ 'UNKNOWN_PARAMETER', 'page[limit]', '/people', 'page[limit]=1' ], [ 'UNKNOWN_PARAMETER', 'Sort', '/people', 'Sort=name' ],
		[ 'UNKNOWN_PARAMETER', 'tenantId', '/people', 'tenantId=1' ],
		[ undef, 'filter', '/people', 'filter=name==Ann&filter=name==Bob' ], [ undef, 'sort', '/people', 'sort=name&sort=id' ],
		[ undef, 'page[size]', '/people', 'page[size]=1&page%5Bsize%5D=2' ], [ undef, 'include', '/people', 'include=boss&include=team' ],
		[ undef, 'fields[people]', '/people', 'fields[people]=name&fields[people]=boss' ],
		[ undef, 'filter', '/people', 'filter=' ], [ undef, 'filter', '/people', 'filter' ], [ undef, 'sort', '/people', 'sort=' ], [ undef, 'page[size]', '/people', 'page[size]=' ],
		[ 'INVALID_SORT', 'sort', '/people', 'sort=nothing' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=%2Bname' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=+name' ],
		[ 'INVALID_SORT', 'sort', '/people', 'sort=name,' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=,name' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=--name' ],
		[ 'INVALID_SORT', 'sort', '/people', 'sort=-' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=name%20desc' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=team.name' ],
		[ 'INVALID_SORT', 'sort', '/people', 'sort=boss' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=boss.nothing' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=boss.' ],
		[ 'INVALID_SORT', 'sort', '/people', 'sort=boss.boss.boss.boss.boss.boss.name' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=name;drop' ],
		[ 'INVALID_SORT', 'sort', '/specimens', 'sort=extra' ], [ 'INVALID_SORT', 'sort', '/people', 'sort=created_at' ], [ 'INVALID_SORT', 'sort', '/boxes', 'sort=tags.word' ],
		(map { [ 'INVALID_PAGE', 'page[size]', '/people', "page[size]=$_" ] }
			qw(101 1000000 0 -1 1e3 0x10 2147483648 99999999999999999999 1.5 abc %201 1%20 +1 %2B1)),
		(map { [ 'INVALID_PAGE', 'page[number]', '/people', "page[number]=$_" ] } qw(0 -1 1.5 abc 9223372036854775808 9223372036854775807 99999999999999999999)),
		[ 'INVALID_PAGE', 'page[totals]', '/people', 'page[totals]=no' ],
		(map { [ 'INVALID_INCLUDE', 'include', '/boxes', "include=$_" ] }
			qw(nothing owner.nothing label owner.name tags.word content.nothing owner..boss .owner owner. *), 'owner,', ',owner', 'owner.boss.boss.boss.boss.boss'),
		(map { [ 'INVALID_FIELDS', undef, '/boxes', "fields$_" ] } qw([nothings]=name [boxes]=nothing [boxes]=owner.name [Boxes]=label [boxes]=tenant_id),
			'[boxes]=label,nothing', '[boxes]=label,'),
		[ undef, 'fields[]', '/boxes', 'fields[]=label' ], [ undef, undef, '/boxes', 'fields=label' ])
	{
		my ($code, $parameter, $target, $query) = @$case;
		$editor->refused("$target?$query", 400, $code, defined $parameter ? [ parameter => $parameter ] : undef, GET => "$target?$query");
	}
	for my $query ('filter=name==%zz', 'filter=name==%', 'filter=name==%2', 'filter=name==%00', 'filter=name==%C3%28', 'filter=name==%FF', '%FF=1', 'so%00rt=name')
	{
		$editor->refused($query, 400, undef, undef, GET => "/people?$query");
	}
	for my $parameter ('filter=name==Ann', 'sort=name', 'page[size]=1', 'page[number]=1', 'page[totals]=false')
	{
		my ($name) = $parameter =~ /^([^=]+)/;
		my $data = { type => 'people', attributes => { name => 'Not' } };

		$editor->refused("GET of one: $parameter", 400, undef, [ parameter => $name ], GET => "/people/$people[0]{id}?$parameter");
		$editor->refused("POST: $parameter", 400, undef, [ parameter => $name ], POST => "/people?$parameter", data => $data);
		$editor->refused("PATCH: $parameter", 400, undef, [ parameter => $name ],
			PATCH => "/people/$people[0]{id}?$parameter", data => { %$data, id => $people[0]{id} });
		$editor->refused("DELETE: $parameter", 400, undef, [ parameter => $name ], DELETE => "/people/$people[0]{id}?$parameter");
	}
	is($editor->good(200, GET => '/people')->{json}{meta}{pagination}{totalRecords}, 3, 'nothing came of it');
};

subtest 'pages' => sub {
	for my $number (1 .. 5)
	{
		my $json = $editor->good(200, GET => "/specimens?page[size]=3&page[number]=$number&filter=name!='q+q'&sort=-count")->{json};
		my %page = map { $_ => $json->{links}{$_} && $json->{links}{$_} =~ /page%5Bnumber%5D=(\d+)/ ? $1 : undef } qw(self first prev next last);

		is_deeply($json->{meta}{pagination}, { number => $number, size => 3, totalPages => 4, totalRecords => 12 }, "page $number of 4");
		is(scalar @{ $json->{data} }, $number <= 4 ? 3 : 0, 'rows');
		is_deeply(\%page,
			{ self => $number, first => 1, last => 4, next => $number < 4 ? $number + 1 : undef,
			  prev => $number == 1 ? undef : $page{prev} }, 'links');
		is($page{prev}, $number - 1, 'prev') if $number > 1 && $number <= 4;
		for my $link (grep { defined } values %{ $json->{links} })
		{
			like($link, qr{^/api/v1/specimens\?}, 'path-absolute');
			unlike($link, qr/[\[\]'" ]/, 'encoded');
			is($editor->call(GET => $link)->{json}{meta}{pagination}{totalRecords}, 12, 'and leads there');
		}
	}
	is_deeply($editor->good(200, GET => '/memos')->{json}{meta}{pagination},
		{ number => 1, size => 20, totalPages => 0, totalRecords => 0 }, 'an empty set');
	is_deeply($editor->good(200, GET => '/memos')->{json}{data}, [], 'is an empty array');
	is($editor->call(GET => '/people?page[number]=92233720368547758&page[size]=100')->{status}, 200, 'a deep page that still fits');
	is($editor->good(200, GET => '/specimens?page%5Bsize%5D=2')->{json}{meta}{pagination}{size}, 2, 'encoded brackets');
};

subtest 'sort' => sub {
	my $order = sub {
		return join ' ', map { $_->{attributes}{count} // '-' }
		  @{ $editor->good(200, GET => "/specimens?page[size]=100&sort=$_[0]")->{json}{data} };
	};
	is($order->('count'), '-8 1 2 3 4 5 6 7 9 - - -', 'nulls last');
	is($order->('-count'), '- - - 9 7 6 5 4 3 2 1 -8', 'nulls first when descending');
	is($order->('colour,-count'), '-8 5 4 - - - 9 7 6 3 2 1', 'enums as text, then the next key');
	is($order->('-moment,count'), '1 2 3 4 5 6 9 - - - -8 7', 'descending moments');
	is($order->('id'), $order->('count,id') =~ s/^(-8) (.*?9) (- - -)$/- - - $2/r =~ s/7 9/7 -8 9/r, 'by id');
	is(join('', map { $_->{attributes}{label} } @{ $editor->good(200, GET => '/boxes?sort=-keeper.name,-owner.name,label')->{json}{data} }),
		'CAB', 'through to-one paths, empty ones as null');
	is(join('', map { $_->{attributes}{label} } @{ $editor->good(200, GET => '/boxes?sort=keeper.id,-label')->{json}{data} }), 'BCA', 'by an id at the end of a path');
};

subtest 'fields' => sub {
	my $box = "/boxes/$boxes[0]{id}";
	my $get = sub { return $editor->good(200, GET => $_[0])->{json} };

	is_deeply([ sort keys %{ $get->("$box?fields[boxes]=label,owner")->{data}{attributes} } ], ['label'], 'attributes');
	is_deeply([ sort keys %{ $get->("$box?fields[boxes]=label,owner")->{data}{relationships} } ], ['owner'], 'relationships');
	my $data = $get->("$box?fields[boxes]=")->{data};
	ok(!%{ $data->{attributes} // {} } && !%{ $data->{relationships} // {} }, 'none');
	is($data->{type} . $data->{id}, "boxes$boxes[0]{id}", 'but type and id');
	my $json = $get->("$box?fields[boxes]=label&include=owner&fields[people]=name");
	is($json->{included}[0]{attributes}{name}, 'Ann', 'an include whose linkage is not shown');
	ok(!exists $json->{data}{relationships}, 'really not');
	$json = $get->("$box?include=content&fields[books]=pages&fields[toys]=title");
	is_deeply($json->{included}[0]{attributes}, { pages => 9 }, 'of a member of a one-of');
	is_deeply(
		$editor->good(201, POST => '/people?fields[people]=boss&include=boss',
			data => { type => 'people', attributes => { name => 'Dan' }, relationships => { boss => to($people[0]) } })
		  ->{json}{data}{attributes} // {},
		{}, 'on POST, too');
};

subtest 'include' => sub {
	my $get = sub { return $editor->good(200, GET => $_[0])->{json} };
	my $types = sub { return join ' ', sort map { $_->{type} } @{ $get->($_[0])->{included} } };

	is($types->('/boxes?include=content'), 'books toys', 'members of a one-of');
	is($types->('/boxes?include=owner,keeper'), 'people people', 'shared ones once');
	is($types->('/boxes?include=keeper.boss'), 'people', 'through null');
	is($types->('/boxes?include=tags.boxes.tags.boxes'), 'tags tags tags', 'in circles');
	is($types->("/people/$people[0]{id}?include=boxes.tags,boxes.content"), 'books boxes boxes tags tags tags toys', 'to many');
	is_deeply($get->("/boxes/$boxes[0]{id}?include=keeper")->{included}, [], 'of nothing');
	is_deeply($get->("/boxes/$boxes[0]{id}?include=")->{included}, [], 'empty');
	is_deeply($get->('/boxes?filter=label==nothing&include=tags')->{included}, [], 'of an empty list');
	ok(!exists $get->("/boxes/$boxes[0]{id}")->{included}, 'not unasked');
	is_deeply($get->("/people/$people[0]{id}?include=boxes.owner")->{included}[0]{type}, 'boxes', 'back to what is primary');
	my $created = $editor->good(201, POST => '/boxes?include=owner,tags',
		data => { type => 'boxes', attributes => { label => 'D' }, relationships => { owner => to($people[2]), tags => to_many(@tags[ 0, 1 ]) } })->{json};
	is(join(' ', sort map { $_->{type} } @{ $created->{included} }), 'people tags tags', 'on POST');
	my $patched = $editor->good(200, PATCH => "/boxes/$created->{data}{id}?include=keeper", headers => { 'If-Match' => '*' },
		data => { type => 'boxes', id => $created->{data}{id}, relationships => { keeper => to($people[1]) } })->{json};
	is($patched->{included}[0]{id}, $people[1]{id}, 'on PATCH');
};

done_testing;
