package Papers;

# Papers of t/tools/fuzz/past.yaml, as http.t writes and reads them: rows that
# know who and when, are deleted softly and come back, and have a past.  What
# is known of each is kept with the time since which it is so, and every way of
# asking is held against that:
#
#	the resource, alone and in lists, with show[deleted] and without
#	asOf of any time that was noted, for who sees all and for who sees some
#	the history, page by page, in both directions
#
# A tenant is a hash with the ids and tokens of http.t, and has here
#
#	papers => { id => { n, shelf, deletion, data, past => [ ... ] } }
#
# n is the order in which they were made, data what a read shows, deletion what
# took it along; each of past has at, action, data and whether it is deleted.

use strict;
use warnings;

use JSON::PP ();
use Time::HiRes ();

use EntityApi::Test;

my $json = JSON::PP->new->canonical->allow_nonref->utf8;
my $most = 60;
my ($ask, $fault);

# The functions of http.t that send a request, and that tell what is wrong
sub begin { ($ask, $fault) = @_; return }

sub any { return $_[ rand @_ ] }

sub time_text
{
	my ($at) = @_;
	my @t = gmtime int $at;
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', $t[5] + 1900, $t[4] + 1, @t[ 3, 2, 1, 0 ], ($at - int $at) * 1_000_000;
}

# -------- what is known --------

# What a resource says of itself: no links, and of relationships those with a
# column, which the past has as well.
sub known_of
{
	my ($resource) = @_;
	my %to_one = map { $_ => $resource->{relationships}{$_}{data} }
	  grep { exists $resource->{relationships}{$_}{data} } qw(keeper maker whole createdBy updatedBy);

	return { attributes => $resource->{attributes}, to_one => \%to_one, version => $resource->{meta}{version} };
}

# The id of a relationship's target, or nothing; what is known stays as it is
sub id_of
{
	my ($data, $name) = @_;
	my $target = $data->{to_one}{$name};

	return $target ? $target->{id} : '';
}

# Who has the shelf "red" sees these only
sub sees
{
	my ($reader, $data) = @_;

	return !$reader || $data->{attributes}{shelf} eq 'red';
}

sub of { my ($tenant, $want) = @_; return grep { $want eq 'all' || !!$tenant->{papers}{$_}{deletion} == ($want eq 'deleted') } sort keys %{ $tenant->{papers} } }
sub live { return any(of($_[0], 'live')) }

# A write is over: so it is since now.
sub note
{
	my ($tenant, $id, $action, $data) = @_;
	my $paper = $tenant->{papers}{$id};

	$paper->{data} = $data if $data;
	push @{ $paper->{past} }, { at => time_text(Time::HiRes::time()), action => $action, data => $paper->{data}, deleted => !!$paper->{deletion} };
	return;
}

# What a read of today shows: what it refers to only if that is live
sub shown
{
	my ($tenant, $paper) = @_;
	my $whole = id_of($paper->{data}, 'whole');

	return $paper->{data} if $whole eq '' || !$tenant->{papers}{$whole}{deletion};
	return { %{ $paper->{data} }, to_one => { %{ $paper->{data}{to_one} }, whole => undef } };
}

# Is what is told what is known?  Who sees some of the papers only is not
# shown all that these refer to.
sub must_be
{
	my ($what, $told, $known, $reader, $request, $answer) = @_;
	my @parts = $reader ? qw(attributes version) : qw(attributes to_one version);
	my ($got, $want) = map { my $data = $_; $json->encode({ map { $_ => $data->{$_} } @parts }) } $told, $known;

	$fault->("$what:\n  is   $got\n  must be $want", $request, $answer) if $got ne $want;
	return;
}

# -------- writes --------

my %values = (
	title => sub { return any('a', "x\x{e9}", "\x{1F600}", "it's", '"\\', 'a b') . int rand 1e6 },
	shelf => sub { return any('red', 'blue') },
	pages => sub { return any(undef, 0, -1, 2147483647, int rand 1000) },
	price => sub { return any(undef, 0, 1.5, -3.25, 12345.67) },
	due => sub { return any(undef, sprintf '20%02d-02-03T04:05:06.%03dZ', rand 100, 1 + rand 998) },
	rest => sub { return any(undef, [], { a => [ 1, JSON::PP::null ] }, 'text', JSON::PP::true) });

sub attributes { return { map { $_ => $values{$_}->() } grep { $_ eq ($_[0] // '') || rand() < 0.4 } sort keys %values } }

sub keeper
{
	my ($tenant) = @_;
	return { data => any(undef, map { { type => 'users', id => $_ } } sort keys %{ $tenant->{users} }) };
}

# What was sent is what is there, and the service's own fields are as they say.
sub must_be_written
{
	my ($tenant, $sent, $data, $before, $answer) = @_;
	my %want = (%{ $before ? $before->{attributes} : {} }, %{ $sent->{attributes} });
	my ($told, $is) = ($data->{attributes}, $before ? 'updated' : 'created');

	for my $name (sort keys %values)
	{
		my ($got, $want) = map { $json->encode($_) } $told->{$name}, $want{$name};
		s/(\.\d*?)0+(?=Z"$)/$1/ for $got, $want;
		s/^"?(-?[\d.]+)"?$/$1/ for $got, $want;
		$fault->("$name of what was $is is $got, not $want", $sent, $answer) if $got ne $want;
	}
	for my $by ('updatedBy', $before ? () : ('createdBy', 'maker'))
	{
		$fault->("$by is not who wrote", $sent, $answer) if id_of($data, $by) ne $tenant->{login}{id};
	}
	$fault->('made anew', $sent, $answer) if $before && $before->{attributes}{createdAt} ne $told->{createdAt};
	$fault->('updatedAt lies before createdAt', $sent, $answer) if $told->{updatedAt} lt $told->{createdAt};
	$fault->("version $data->{version} after $before->{version}", $sent, $answer)
	  if $before && $data->{version} != $before->{version} && $data->{version} != $before->{version} + 1;
	return;
}

sub create
{
	my ($tenant) = @_;

	return rand() < 0.5 ? restore($tenant) : remove($tenant) if of($tenant, 'all') >= $most;
	my $whole = rand() < 0.4 ? live($tenant) : undef;
	my %sent = (type => 'papers', attributes => attributes('title'),
		relationships => { keeper => keeper($tenant), $whole ? (whole => { data => { type => 'papers', id => $whole } }) : () });
	my $before = time_text(Time::HiRes::time());
	my $answer = $ask->(paper_create => $tenant, POST => '/api/v1/papers', { json => { data => \%sent } });

	return $fault->('not created', \%sent, $answer) if $answer->{status} != 201;
	my $id = $answer->{json}{data}{id};
	my $data = known_of($answer->{json}{data});
	must_be_written($tenant, { attributes => { (map { $_ => undef } keys %values), shelf => 'red', %{ $sent{attributes} } } }, $data, undef, $answer);
	$fault->('belongs to another whole', \%sent, $answer) if id_of($data, 'whole') ne ($whole // '');
	$tenant->{ids}{$id} = 1;
	$tenant->{papers}{$id} = { n => ++$tenant->{made}, before => $before, past => [] };
	note($tenant, $id, ENTITY_CREATE => $data);
	return;
}

sub if_match
{
	my ($paper) = @_;
	return (headers => { 'If-Match' => any('*', "\"$paper->{data}{version}\"") });
}

sub update
{
	my ($tenant) = @_;
	my $id = live($tenant) // return create($tenant);
	my $paper = $tenant->{papers}{$id};
	my %sent = (type => 'papers', id => $id, attributes => attributes(), rand() < 0.3 ? (relationships => { keeper => keeper($tenant) }) : ());
	my $answer = $ask->(paper_update => $tenant, PATCH => "/api/v1/papers/$id", { json => { data => \%sent }, if_match($paper) });

	return $fault->('not updated', \%sent, $answer) if $answer->{status} != 200;
	my $data = known_of($answer->{json}{data});
	must_be_written($tenant, \%sent, $data, $paper->{data}, $answer) if $data->{version} != $paper->{data}{version};
	note($tenant, $id, ENTITY_UPDATE => $data) if $data->{version} != $paper->{data}{version};
	return;
}

# The address of a relationship tells no state, so that is asked for.
sub relate
{
	my ($tenant) = @_;
	my $id = live($tenant) // return create($tenant);
	my $paper = $tenant->{papers}{$id};
	my @older = grep { $tenant->{papers}{$_}{n} < $paper->{n} } of($tenant, 'live');
	my ($name, $sent) = rand() < 0.5 ? (keeper => keeper($tenant)) : (whole => { data => any(undef, map { { type => 'papers', id => $_ } } @older) });
	my $answer = $ask->(paper_relate => $tenant, PATCH => "/api/v1/papers/$id/relationships/$name", { json => $sent, if_match($paper) });

	return $fault->('not related', $sent, $answer) if $answer->{status} !~ /^20[04]$/;
	my $now = $ask->(paper_settle => $tenant, GET => "/api/v1/papers/$id");
	return $fault->('not there', $sent, $now) if $now->{status} != 200;
	my $data = known_of($now->{json}{data});
	$fault->("$name is not what was sent", $sent, $now) if id_of($data, $name) ne ($sent->{data} ? $sent->{data}{id} : '');
	note($tenant, $id, RELATIONSHIP_REPLACE => $data) if $data->{version} != $paper->{data}{version};
	return;
}

# A paper and all that are parts of it
sub with_parts
{
	my ($tenant, $id) = @_;
	my @all = ($id);

	for (my $i = 0; $i < @all; $i++)
	{
		push @all, grep { id_of($tenant->{papers}{$_}{data}, 'whole') eq $all[$i] } of($tenant, 'live');
	}
	return @all;
}

# Versions that a deletion or a restore made are asked for.
sub settle
{
	my ($tenant, $action, $ids) = @_;

	for my $id (@$ids)
	{
		my $now = $ask->(paper_settle => $tenant, GET => "/api/v1/papers/$id?show[deleted]=with");
		my $paper = $tenant->{papers}{$id};

		if ($now->{status} != 200) { $fault->("not there after $action", $id, $now); next }
		my $data = known_of($now->{json}{data});
		$fault->("$action from $paper->{data}{version} to $data->{version}", $id, $now) if $data->{version} != $paper->{data}{version} + 1;
		$fault->("$action, and something else", $id, $now)
		  if $json->encode({ %{ $data->{attributes} }, updatedAt => 0 }) ne $json->encode({ %{ $paper->{data}{attributes} }, updatedAt => 0 });
		$fault->('deletedAt', $id, $now) if !!$paper->{deletion} != defined $now->{json}{data}{meta}{deletedAt};
		must_be($action, { to_one => $data->{to_one} }, { to_one => { %{ shown($tenant, $paper)->{to_one} }, updatedBy => $data->{to_one}{updatedBy} } }, 0, $id, $now);
		$data->{to_one}{whole} = $paper->{data}{to_one}{whole};
		note($tenant, $id, $action => $data);
	}
	return;
}

sub remove
{
	my ($tenant) = @_;
	my $id = live($tenant) // return create($tenant);
	my @with = with_parts($tenant, $id);
	my $answer = $ask->(paper_delete => $tenant, DELETE => "/api/v1/papers/$id", { if_match($tenant->{papers}{$id}) });

	return $fault->('not deleted', $id, $answer) if $answer->{status} != 204;
	$tenant->{papers}{$_}{deletion} = $id for @with;
	settle($tenant, ENTITY_DELETE => \@with);
	my $gone = any(@with);
	$answer = $ask->(paper_gone => $tenant, any(GET => 'DELETE'), "/api/v1/papers/$gone", { headers => { 'If-Match' => '*' } });
	$fault->('not gone', $gone, $answer) if $answer->{status} != 404;
	return;
}

# A paper comes back with what went with it; a part not without its whole.
sub restore
{
	my ($tenant) = @_;
	my @deleted = of($tenant, 'deleted') or return remove($tenant);
	my $id = any(@deleted);
	my $papers = $tenant->{papers};
	my @with = grep { $papers->{$_}{deletion} eq $papers->{$id}{deletion} } @deleted;
	my $whole = id_of($papers->{$id}{data}, 'whole');
	my $answer = $ask->(paper_restore => $tenant, POST => "/api/v1/papers/$id/restore");

	if ($whole && $papers->{$whole}{deletion})
	{
		$fault->('a part without its whole', $id, $answer) if $answer->{status} != 409 || $answer->{body} !~ /STILL_DELETED/;
		return;
	}
	return $fault->('not restored', $id, $answer) if $answer->{status} != 200;
	$fault->('a member of a deletion that was not its root', $id, $answer) if $papers->{$id}{deletion} ne $id;
	delete $papers->{$_}{deletion} for @with;
	settle($tenant, ENTITY_RESTORE => \@with);
	must_be('what was restored', known_of($answer->{json}{data}), $papers->{$id}{data}, 0, $id, $answer);
	return;
}

# -------- reads --------

# Who asks: the one who sees all, or who sees some
sub who { my ($tenant) = @_; return rand() < 0.6 ? (0) : (1, as => 'reader') }

sub list
{
	my ($tenant) = @_;
	my ($reader, %as) = who($tenant);
	my $shown = any('live', 'live', 'deleted', 'all');
	my $papers = $tenant->{papers};
	my ($text, $holds) = @{ any([ '', sub { 1 } ], [ 'shelf==blue', sub { $_[0]{attributes}{shelf} eq 'blue' } ],
		[ 'pages=isnull=true', sub { !defined $_[0]{attributes}{pages} } ],
		[ "createdBy.username==$tenant->{login}{username}", sub { 1 } ], [ "updatedBy.id!=$tenant->{login}{id}", sub { 0 } ],
		[ 'maker.kind==USER', sub { 1 } ], [ 'updatedBy.kind=in=(SERVICE_ACCOUNT)', sub { 0 } ], [ 'keeper=isnull=false', sub { defined $_[0]{to_one}{keeper} } ],
		[ "keeper.id==$tenant->{login}{id}", sub { id_of($_[0], 'keeper') eq $tenant->{login}{id} } ],
		[ 'createdAt=le=' . time_text(time - 5), undef ], [ 'updatedAt=gt=2026-01-01T00:00:00Z', sub { 1 } ]) };
	my $size = any(1, 3, 20, 100);
	my $target = "/api/v1/papers?page[size]=$size" . ($text eq '' ? '' : "&filter=$text")
	  . ($shown eq 'live' ? '' : '&show[deleted]=' . ($shown eq 'all' ? 'with' : 'only'))
	  . any('', '&sort=-updatedAt', '&sort=createdBy.username,-createdAt', '&sort=whole.title,title', '&sort=-shelf')
	  . any('', '', '&include=maker,keeper', '&include=whole.maker,parts', '&fields[papers]=title,updatedAt,updatedBy,parts&fields[users]=username,zone');
	my $answer = $ask->(paper_list => $tenant, GET => $target, {%as});

	return $fault->('no list', $target, $answer) if $answer->{status} != 200;
	return if !$holds;
	my %there = map { $_ => 1 } grep { sees($reader, $papers->{$_}{data}) && $holds->($papers->{$_}{data}) } of($tenant, $shown);
	my ($n, $rows) = (scalar keys %there, $answer->{json}{data});
	my $total = $answer->{json}{meta}{pagination}{totalRecords};

	$fault->("a total of $total, not $n", $target, $answer) if $total != $n;
	$fault->('a page of another size', $target, $answer) if @$rows != ($n < $size ? $n : $size);
	for my $row (@$rows)
	{
		my $paper = $papers->{ $row->{id} };

		if (!$there{ $row->{id} }) { $fault->("$row->{id} does not belong there", $target, $answer); next }
		$fault->('deletedAt', $target, $answer) if !!$paper->{deletion} != defined $row->{meta}{deletedAt};
		must_be('a row', known_of($row), shown($tenant, $paper), $reader, $target, $answer) if $target !~ /fields/;
	}
	walk($tenant, $target, \%there, 'after', %as) if rand() < 0.2 && $n < 12 * $size;
	return $target;
}

# All pages by cursor have each once, if it is said which.
sub walk
{
	my ($tenant, $target, $there, $way, %as) = @_;
	my ($begin, $link) = $way eq 'after' ? ('start', 'next') : ('end', 'prev');
	my $next = $target . ($target =~ /\?/ ? '&' : '?') . "page[$way]=$begin";
	my @seen;

	for (my $pages = 0; defined $next && $pages < 30; $pages++)
	{
		my $answer = $ask->(paper_walk => $tenant, GET => $next, {%as});

		return $fault->('no page', $next, $answer) if $answer->{status} != 200;
		my @ids = map { $_->{id} } @{ $answer->{json}{data} };
		@seen = $way eq 'after' ? (@seen, @ids) : (@ids, @seen);
		$next = $answer->{json}{links}{$link};
	}
	$fault->('pages miss, repeat or go on', $target)
	  if defined $next || $there && join(' ', sort @seen) ne join(' ', sort keys %$there);
	return @seen;
}

sub read_one
{
	my ($tenant) = @_;
	my ($reader, %as) = who($tenant);
	my $id = any(of($tenant, 'all')) // return create($tenant);
	my $paper = $tenant->{papers}{$id};
	my $shown = any('', '?show[deleted]=with', '?show[deleted]=only');
	my $target = "/api/v1/papers/$id$shown";
	my $answer = $ask->(paper_read => $tenant, GET => $target, {%as});
	my $there = sees($reader, $paper->{data}) && ($paper->{deletion} ? $shown ne '' : $shown !~ /only/);

	return $fault->('there or not', $target, $answer) if $answer->{status} != ($there ? 200 : 404);
	must_be('the resource', known_of($answer->{json}{data}), shown($tenant, $paper), $reader, $target, $answer) if $there;
	return $target;
}

# What it was, of a time after one of its writes and before the next
sub as_of
{
	my ($tenant) = @_;
	my ($reader, %as) = who($tenant);
	my $id = any(of($tenant, 'all')) // return create($tenant);
	my $paper = $tenant->{papers}{$id};
	my $was = rand() < 0.1 ? undef : any(@{ $paper->{past} });
	my $target = "/api/v1/papers/$id?asOf=" . ($was ? $was->{at} : $paper->{before}) . any('', '', '&fields[papers]=title,shelf,whole');
	my $answer = $ask->(paper_as_of => $tenant, GET => $target, {%as});
	my $there = $was && sees($reader, $was->{data}) && sees($reader, $paper->{data});

	return $fault->("there or not", $target, $answer) if $answer->{status} != ($there ? 200 : 404);
	return $target if !$there;
	my $told = $answer->{json}{data};
	$fault->('deletedAt', $target, $answer) if $was->{deleted} != defined $told->{meta}{deletedAt};
	if ($target =~ /fields/)
	{
		$fault->('the title', $target, $answer) if $told->{attributes}{title} ne $was->{data}{attributes}{title};
	}
	else
	{
		must_be('what it was', known_of($told), $was->{data}, $reader, $target, $answer);
	}
	return $target;
}

# What was done to it, as far as it was seen before and after
sub history
{
	my ($tenant) = @_;
	my ($reader, %as) = who($tenant);
	my $id = any(of($tenant, 'all')) // return create($tenant);
	my $paper = $tenant->{papers}{$id};
	my @past = @{ $paper->{past} };
	my $at = rand() < 0.3 ? int rand @past : undef;
	my @shown = grep { sees($reader, $past[$_]{data}) && ($_ == 0 || sees($reader, $past[ $_ - 1 ]{data})) } reverse 0 .. ($at // $#past);
	my $size = any(1, 2, 5, 100);
	my $target = "/api/v1/papers/$id/history?page[size]=$size" . (defined $at ? "&asOf=$past[$at]{at}" : '');
	my $answer = $ask->(paper_history => $tenant, GET => $target, {%as});
	my $there = sees($reader, $past[ $at // $#past ]{data}) && sees($reader, $paper->{data});

	return $fault->('there or not', $target, $answer) if $answer->{status} != ($there ? 200 : 404);
	return $target if !$there;
	my @data = @{ $answer->{json}{data} };
	my @page = @shown > $size ? @shown[ 0 .. $size - 1 ] : @shown;
	my ($got, $want) = (join(' ', map { "$_->{attributes}{action} $_->{attributes}{version}" } @data),
		join ' ', map { "$past[$_]{action} $past[$_]{data}{version}" } @page);
	$fault->("the history is\n  $got, not\n  $want", $target, $answer) if $got ne $want;
	for my $item (@data)
	{
		$fault->('done by another', $target, $answer) if ($item->{attributes}{actor}{id} // '') ne $tenant->{login}{id};
	}
	return $target if rand() < 0.5 || @shown > 20 * $size;

	# Those of the first page, at least, are told in this order.
	my $all = $ask->(paper_history => $tenant, GET => $target =~ s/page\[size\]=\d+/page[size]=100/r, {%as});
	my @ids = map { $_->{id} } @{ $all->{json}{data} };
	my @seen = walk($tenant, $target, undef, any('after', 'before'), %as);
	my %once = map { $_ => 1 } @seen;

	$fault->(@seen . " records on the pages of a history, not " . @shown, $target) if @seen != @shown || keys %once != @shown;
	splice @seen, 100 if @seen > 100;
	$fault->('pages of a history in another order', $target) if "@ids" ne "@seen";
	return $target;
}

sub users
{
	my ($tenant) = @_;
	my $id = any(sort keys %{ $tenant->{users} });
	my ($target, @there) = @{ any([ '/api/v1/users?sort=username', sort keys %{ $tenant->{users} } ], [ "/api/v1/users/$id", $id ],
		[ "/api/v1/users?filter=username==$tenant->{users}{$id}", $id ], [ '/api/v1/users?filter=kind==SERVICE_ACCOUNT' ]) };
	my $answer = $ask->(users => $tenant, GET => $target, { rand() < 0.5 ? (as => 'reader') : () });
	my $data = ($answer->{json} // {})->{data};

	return $fault->('no users', $target, $answer) if $answer->{status} != 200;
	$fault->('other users', $target, $answer) if join(' ', sort map { $_->{id} } ref $data eq 'ARRAY' ? @$data : $data) ne join ' ', sort @there;
	return $target;
}

# -------- requests that something is wrong with --------

sub wrong
{
	my ($tenant, $other) = @_;
	my $id = any(of($tenant, 'all')) // return create($tenant);
	my $strange = any(of($other, 'all')) // $id;
	my $deleted = any(of($tenant, 'deleted'));
	my $garbage = any('', 'x', 'now', '2026-02-30T00:00:00Z', '2026-11-25', '0001-01-01T00:00:00+23:59', '9999-12-31T23:59:60Z', "%00", '%F0%9F%98%80', '1' x 300, '2026-11-25T10:00:00%2B01:00', '-infinity');
	my $cursor = any('x', 'AAAA', 'A' x 22, 'a' x 300, '%00', 'AZrPqAAAcAAAAAAAAAAAAA', "\xe9" =~ s/(.)/%E9/r);
	my $case = any(
		[ [400, 404], GET => "/api/v1/papers/$id?asOf=" . ($garbage =~ /%2B/ ? 'x' : $garbage) ],
		[ [400], GET => "/api/v1/papers/$id?asOf=2026-11-25T10:00:00Z&include=maker" ],
		[ [400], GET => "/api/v1/papers/$id?asOf=2026-11-25T10:00:00Z&show[deleted]=with" ],
		[ [400], GET => "/api/v1/papers/$id?asOf=2026-11-25T10:00:00Z&fields[papers]=parts" ],
		[ [400], GET => '/api/v1/papers?asOf=2026-11-25T10:00:00Z' ],
		[ [400], GET => "/api/v1/papers?show[deleted]=$garbage" ],
		[ [400], GET => '/api/v1/books?show[deleted]=with' ],
		[ [ 200, 400, 404 ], GET => "/api/v1/papers/$id/history?page[" . any('after', 'before', 'size', 'number') . "]=$cursor", any({}, { as => 'reader' }) ],
		[ [ 400, 404 ], GET => "/api/v1/papers/$id/history?asOf=$garbage&page[size]=" . any(0, 101, -1, 'x') ],
		[ [405], any(qw(POST PATCH DELETE)) => "/api/v1/papers/$id/history", { json => {} } ],
		[ [405], any(qw(GET PATCH DELETE)) => "/api/v1/papers/$id/restore", { json => {} } ],
		[ [404], POST => "/api/v1/books/$id/restore" ], [ [403], GET => "/api/v1/lockers/$id/history" ],
		[ [405], any(POST => 'PATCH') => '/api/v1/users', { json => { data => { type => 'users' } } } ],
		[ [405], any(qw(PATCH DELETE)) => "/api/v1/users/$tenant->{login}{id}", { json => { data => { type => 'users', id => $tenant->{login}{id}, attributes => {} } } } ],
		[ [400], POST => '/api/v1/papers', { json => { data => { type => 'papers', attributes => { title => 't', any(qw(createdAt updatedAt)) => '2026-01-01T00:00:00Z' } } } } ],
		[ [400], POST => '/api/v1/papers', { json => { data => { type => 'papers', attributes => { title => 't' }, relationships => { any(qw(createdBy updatedBy maker)) => { data => undef } } } } } ],
		[ [403], POST => '/api/v1/papers', { as => 'reader', json => { data => { type => 'papers', attributes => { title => 't' } } } } ],
		[ [404], GET => "/api/v1/papers/$strange" . any('', '/history', '/whole', '?show[deleted]=with', '?asOf=' . time_text(time)) ],
		[ [404], POST => "/api/v1/papers/$strange/restore" ],
		$deleted ? ([ [400], POST => "/api/v1/papers/$deleted/restore", { json => any({}, [], { data => undef }) } ],
			[ [412], POST => "/api/v1/papers/$deleted/restore", { headers => { 'If-Match' => '"9999999"' } } ],
			[ [400], POST => "/api/v1/papers/$deleted/restore?show[deleted]=with" ],
			[ [404], PATCH => "/api/v1/papers/$deleted", { json => { data => { type => 'papers', id => $deleted, attributes => {} } }, headers => { 'If-Match' => '*' } } ]) : ());
	my ($statuses, $method, $target, $options) = @$case;

	return if $target =~ m{/papers/\Q$strange\E} && $strange eq $id && grep { $_ == 404 } @$statuses;
	my $answer = $ask->(paper_wrong => $tenant, $method, $target, $options // {});
	$fault->("not @$statuses", $target, $answer) unless grep { $_ == $answer->{status} } @$statuses;
	return;
}

our @good = ((\&create) x 2, (\&update) x 4, \&relate, \&remove, (\&restore) x 2);
our @reads = ((\&read_one) x 2, (\&list) x 3, (\&as_of) x 4, (\&history) x 3, \&users);

1;
