# Send generated requests through the shim, most of them good ones, and hold
# the answers against what is known:
#
#	what was written is read back, and what was deleted is gone
#	a list has the rows, in number and in page, that the model says
#	what was there at a time is there with asOf, and what was done in the
#	history (Papers.pm)
#	no answer has an id of another tenant
#	a read answers the same without the look-ups past the executor
#	of some, the answer is as the description of the API has it
#	no answer 500, no text of SQL, no growth of memory
#
# Not one of "make test": it looks for new faults, with another seed each time.
# "make fuzz" runs it on sanitized builds; by itself it is
#
#	FUZZ_COUNT=5000 make test TESTS=t/tools/fuzz/http.t
#
# with FUZZ_SECONDS instead of a number, and FUZZ_SEED.

use strict;
use warnings;

use File::Basename ();
use File::Temp ();
use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Node;
use lib File::Basename::dirname(__FILE__);
use Papers;

my $seconds = $ENV{FUZZ_SECONDS} || 0;
my $count = $ENV{FUZZ_COUNT} || ($seconds ? 0 : 3000);
my $seed = $ENV{FUZZ_SEED} || time ^ $$ << 8;
srand $seed;
diag("seed $seed");

# Those that are held against the description: enough of few requests, and not
# too much of many, as each is preceded by a look whether it is still the same.
my $described = EntityApi::Test::checkout() . '/t/tools/openapi';
my $no_node = EntityApi::Test::Node::install($described);
my $record = File::Temp->newdir;
my $share = $no_node ? 0 : !$count || $count > 50_000 ? 0.02 : $count > 1000 ? 1000 / $count : 1;

my $json = JSON::PP->new->canonical->allow_nonref->utf8;
my $uuid = qr/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(map { EntityApi::Test::checkout() . "/$_" } 't/data/entities', 't/tools/fuzz/past.yaml');
my $shim = EntityApi::Test->shim($cluster, access_log => 'false', pool_wait_ms => 60_000);

# Each tenant with what is in it: specimens by id, their attributes as they are
# to be read, papers, users, and all ids that it has ever had.
my @tenants = map {
	my $record = $shim->tenant($_);
	my ($ann, $bob) = map { $shim->user($record->{id}, @$_) } [ "ann-$_", ['Editor'], securityAttributes => { shelf => 'any' } ],
	  [ "bob-$_", ['Reader'], securityAttributes => { shelf => 'red' }, profile => { zone => 'CET' } ];
	my %users = map { $_->{id} => $_->{username} } $ann, $bob;
	{ id => $record->{id}, login => $ann, reader => $bob, users => \%users,
		specimens => {}, papers => {}, ids => { map { $_ => 1 } $record->{id}, keys %users } };
} qw(acme other);
my $born = time;

sub any { return $_[ rand @_ ] }

my ($sent, $faults, %statuses, %kinds) = (0, 0);

sub fault
{
	my ($what, $request, $answer) = @_;

	return if ++$faults > 20;
	diag("$what\n  ", $json->encode($request), "\n  ",
		$answer ? ($answer->{status} // '') . ' ' . substr($answer->{body} // '', 0, 1500) : '');
	return;
}

# Logins hold for 15 minutes.
sub fresh
{
	my ($tenant, $who) = @_;

	if (time - $born > 600)
	{
		$_->{accessToken} = $shim->login($_->{username}, $_->{password})->{accessToken} for map { @$_{qw(login reader)} } @tenants;
		$born = time;
	}
	return $tenant->{ $who // 'login' }{accessToken};
}

# One request of a tenant's, with what holds for all answers; "as" says whose.
sub ask
{
	my ($kind, $tenant, $method, $target, $options) = @_;
	my $request = [ $method, $target, $options ];
	my $who = ($options // {})->{as};
	local $ENV{ENTITYAPI_RECORD} = "$record" if rand() < $share;
	my $answer = eval { $shim->http($method, $target, { token => fresh($tenant, $who), %{ $options // {} } }) };

	$sent++;
	$kinds{$kind}++;
	if (!$answer)
	{
		fault("no answer: $@", $request);
		return { status => 0, body => '', json => {} };
	}
	$statuses{ $answer->{status} }++;
	my $body = $answer->{body} // '';
	fault('an internal error', $request, $answer) if $answer->{status} >= 500;
	fault('no errors in a refusal', $request, $answer)
	  if $answer->{status} >= 400 && $method ne 'HEAD' && $body !~ /"errors"/;
	fault('text of SQL', $request, $answer)
	  if $body =~ /ERROR:|SQLSTATE|relation "|tenant_id|_pkey|_fkey|\.c:[0-9]|syntax error at/
	  && $json->encode($request) !~ /tenant_id|_pkey|_fkey/;
	my $own = $json->encode($request);
	for my $stranger (grep { $_ != $tenant } @tenants)
	{
		for my $id ($body =~ /$uuid/g)
		{
			fault('an id of another tenant', $request, $answer)
			  if $stranger->{ids}{$id} && index($own, $id) < 0;
		}
	}
	return $answer;
}

# -------- values, each as it is sent and as it is read --------

my %values = (
	name => sub { my $text = any('a', "x\x{e9}", "\x{1F600}", "it's", '"', '\\', '%_', 'a b') . int rand 50; [ $text, $text ] },
	letters => sub { my $text = any('ab', 'xyz', 'abcabc'); [ $text, $text ] },
	colour => sub { my $text = any(qw(RED GREEN BLUE)); [ $text, $text ] },
	essay => sub { my $text = any('', 'long ' x rand 300, "line\nline"); [ $text, $text ] },
	count => sub { my $number = any(-5 .. 20, 2147483647, -2147483648); [ $number, $number ] },
	grade => sub { my $number = 1 + int rand 6; [ $number, $number ] },
	flag => sub { my $truth = any(JSON::PP::true, JSON::PP::false); [ $truth, $truth ] },
	day => sub { my $day = sprintf '20%02d-%02d-%02d', rand 100, 1 + rand 12, 1 + rand 28; [ $day, $day ] },
	moment => sub { my $day = sprintf '20%02d-%02d-%02dT%02d:00:00Z', rand 100, 1 + rand 12, 1 + rand 28, rand 24; [ $day, $day ] },
	token => sub { my $id = sprintf '%08x-0000-4000-8000-%012x', rand 2**32, rand 2**40; [ any(uc $id, $id), $id ] },
	extra => sub { my $tree = any({ a => [ 1, {} ] }, [], { "\x{fc}" => 'b' }, 'text'); [ $tree, $tree ] },
	level => sub { my $number = int rand 100; [ $number, $number ] },
	secret => sub { my $text = 's' . int rand 5; [ $text, $text ] });

sub attributes
{
	my (@always) = @_;
	my (%sent, %read);

	for my $name (sort keys %values)
	{
		next unless rand() < 0.4 || grep { $_ eq $name } @always;
		($sent{$name}, $read{$name}) = $name eq 'name' || $name eq 'level' || rand() < 0.85
		  ? @{ $values{$name}->() } : (undef, undef);
	}
	return (\%sent, \%read);
}

sub must_be
{
	my ($tenant, $id, $resource, $request, $answer) = @_;
	my $known = $tenant->{specimens}{$id} or return fault('a resource that is not there', $request, $answer);

	for my $name (grep { exists $resource->{attributes}{$_} } keys %$known)
	{
		my ($want, $got) = map { $json->encode($_) } $known->{$name}, $resource->{attributes}{$name};
		s/^"(-?\d+)"$/$1/ for $want, $got;
		fault("$name is $got, not $want", $request, $answer) if $want ne $got;
	}
	return;
}

sub known { my ($tenant) = @_; return any(keys %{ $tenant->{specimens} }) }

# -------- good requests --------

sub create
{
	my ($tenant) = @_;
	my ($sent, $read) = attributes('name');
	my $answer = ask(create => $tenant, POST => '/api/v1/specimens',
		{ json => { data => { type => 'specimens', attributes => $sent } } });

	if ($answer->{status} != 201) { fault('not created', $sent, $answer); return }
	my $id = $answer->{json}{data}{id};
	$tenant->{specimens}{$id} = { (map { $_ => undef } keys %values), level => 7, %$read };
	$tenant->{ids}{$id} = 1;
	must_be($tenant, $id, $answer->{json}{data}, $sent, $answer);
	return;
}

sub update
{
	my ($tenant) = @_;
	my $id = known($tenant) // return create($tenant);
	my ($sent, $read) = attributes();
	my $answer = ask(update => $tenant, PATCH => "/api/v1/specimens/$id",
		{ json => { data => { type => 'specimens', id => $id, attributes => $sent } } });

	if ($answer->{status} != 200) { fault('not updated', $sent, $answer); return }
	$tenant->{specimens}{$id} = { %{ $tenant->{specimens}{$id} }, %$read };
	must_be($tenant, $id, $answer->{json}{data}, $sent, $answer);
	return;
}

sub remove
{
	my ($tenant) = @_;
	my $id = known($tenant) // return create($tenant);
	my $answer = ask(delete => $tenant, DELETE => "/api/v1/specimens/$id");

	fault('not deleted', $id, $answer) if $answer->{status} != 204;
	delete $tenant->{specimens}{$id};
	return if rand() < 0.7;
	$answer = ask(gone => $tenant, GET => "/api/v1/specimens/$id");
	fault('not gone', $id, $answer) if $answer->{status} != 404;
	return;
}

sub fetch
{
	my ($tenant) = @_;
	my $id = known($tenant) // return create($tenant);
	my $target = "/api/v1/specimens/$id" . any('', '', '?fields[specimens]=' . join ',', any(keys %values), 'born');
	my $answer = ask(fetch => $tenant, any('GET', 'GET', 'HEAD'), $target);

	fault('not found', $target, $answer) if $answer->{status} != 200;
	must_be($tenant, $id, $answer->{json}{data}, $target, $answer) if $answer->{json};
	return;
}

# A comparison, and whether it holds of a row; where a value is missing none
# does but those that ask for that.
sub comparison
{
	my $name = any(qw(count level colour grade flag letters secret name));
	my $kind = rand;

	if ($kind < 0.15)
	{
		my $truth = any('true', 'false');
		return ("$name=isnull=$truth", sub { defined $_[0]{$name} ? $truth eq 'false' : $truth eq 'true' });
	}
	if ($name =~ /^(?:count|level|grade)$/)
	{
		my ($op, $number) = (any(qw(== != =gt= =ge= =lt= =le=)), any(-3 .. 30));
		my %holds = ('==' => sub { $_[0] == $number }, '!=' => sub { $_[0] != $number },
			'=gt=' => sub { $_[0] > $number }, '=ge=' => sub { $_[0] >= $number },
			'=lt=' => sub { $_[0] < $number }, '=le=' => sub { $_[0] <= $number });
		return ("$name$op$number", sub { defined $_[0]{$name} ? $holds{$op}->($_[0]{$name}) : undef });
	}
	my @asked = map { $values{$name}->()->[0] } 0 .. any(0, 0, 1, 2);
	my %asked = map { $_ => 1 } @asked;
	my $list = join ',', map { my $text = $name eq 'flag' ? ($_ ? 'true' : 'false') : $_; $text =~ s/([\\"])/\\$1/g; "\"$text\"" } @asked;
	my $op = any(qw(=in= =out=));
	return ("$name$op($list)", sub { defined $_[0]{$name} ? ($asked{ $_[0]{$name} } xor $op eq '=out=') : undef });
}

sub filter
{
	my ($depth) = @_;

	return comparison() if $depth > 2 || rand() < 0.5;
	my $or = rand() < 0.5;
	my @parts = map { [ filter($depth + 1) ] } 0 .. 1 + rand 2;
	return ('(' . join($or ? ',' : ';', map { $_->[0] } @parts) . ')', sub {
		my ($row) = @_;
		my @truths = map { $_->[1]->($row) } @parts;
		my @asked = grep { defined && ($or ? $_ : !$_) } @truths;
		return $or if @asked;
		return undef if grep { !defined } @truths;
		return !$or;
	});
}

sub escaped
{
	my ($text) = @_;

	utf8::encode($text);
	$text =~ s/([^A-Za-z0-9_.~()=,;!'-])/sprintf '%%%02X', ord $1/ge;
	return $text;
}

# Reads to be asked once more in another way
my @reads;

sub list
{
	my ($tenant) = @_;
	my ($text, $holds) = rand() < 0.8 ? filter(0) : ('', sub { 1 });
	my %there = map { $_ => 1 } grep { $holds->($tenant->{specimens}{$_}) } keys %{ $tenant->{specimens} };
	my $size = any(1, 2, 7, 50, 100);
	my $target = "/api/v1/specimens?page[size]=$size" . ($text eq '' ? '' : '&filter=' . escaped($text))
	  . any('', '&sort=' . join ',', map { any('', '-') . $_ } any('name', 'count', 'day'), 'level');
	my $answer = ask(list => $tenant, GET => $target);

	if ($answer->{status} != 200) { fault('no list', $target, $answer); return }
	my $rows = $answer->{json}{data};
	my $total = $answer->{json}{meta}{pagination}{totalRecords};
	my $n = keys %there;
	fault("a total of $total, not $n", $target, $answer) if $total != $n;
	fault('a page of another size', $target, $answer) if @$rows != ($n < $size ? $n : $size);
	for my $row (@$rows)
	{
		fault("$row->{id} does not belong there", $target, $answer) unless $there{ $row->{id} };
		must_be($tenant, $row->{id}, $row, $target, $answer);
	}
	push @reads, [ $tenant, $target ] if rand() < 0.3;
	walk($tenant, "$target&page[totals]=false", \%there, $size) if rand() < 0.15 && $n < 12 * $size;
	return;
}

# A read of a paper is asked once more, too
sub paper
{
	my ($tenant) = @_;
	my $target = any(@Papers::reads)->($tenant);

	push @reads, [ $tenant, $target ] if ($target // '') =~ m{^/api} && rand() < 0.2;
	return;
}

sub wrong_paper { my ($tenant) = @_; return Papers::wrong($tenant, grep { $_ != $tenant } @tenants) }

# All pages by cursor have each row once.
sub walk
{
	my ($tenant, $target, $there, $size) = @_;
	my %seen;
	my $next = $target . '&page[after]=';

	for (my $pages = 0; defined $next && $pages < 20; $pages++)
	{
		my $answer = ask(walk => $tenant, GET => $next);

		if ($answer->{status} != 200) { fault('no page', $next, $answer) if $pages > 0; return }
		$seen{ $_->{id} }++ for @{ $answer->{json}{data} };
		$next = $answer->{json}{links}{next};
	}
	my @wrong = grep { ($seen{$_} // 0) != 1 || !$there->{$_} } keys %{ { %seen, %$there } };
	fault('pages miss or repeat @wrong', $target) if @wrong;
	return;
}

# Several in one request, the second by the name that the first has there.
sub atomic
{
	my ($tenant) = @_;
	my ($sent, $read) = attributes('name');
	my ($change, $changed) = attributes();
	my $answer = ask(atomic => $tenant, POST => '/api/v1/operations',
		{   headers => { 'Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"' },
			json => { 'atomic:operations' => [
		{ op => 'add', data => { type => 'specimens', lid => 'l', attributes => $sent } },
		{ op => 'update', ref => { type => 'specimens', lid => 'l' }, data => { type => 'specimens', lid => 'l', attributes => $change } } ] } });

	if ($answer->{status} != 200) { fault('no operations', [ $sent, $change ], $answer); return }
	my $resource = $answer->{json}{'atomic:results'}[1]{data};
	$tenant->{specimens}{ $resource->{id} } = { (map { $_ => undef } keys %values), level => 7, %$read, %$changed };
	$tenant->{ids}{ $resource->{id} } = 1;
	must_be($tenant, $resource->{id}, $resource, $sent, $answer);
	return;
}

# -------- requests that something is wrong with --------

my @scalars = (undef, JSON::PP::true, 0, -1, 1e15, '', 'RED', "'", '"', "\x{1F600}", '2026-02-30', 'NaN',
	'x' x 300, '9999-12-31T23:59:59.999999-23:59', [], {}, [ {} ], { id => 1 });

sub mutated
{
	my ($node) = @_;

	return any(@scalars) if !ref $node || JSON::PP::is_bool($node) || rand() < 0.1;
	if (ref $node eq 'ARRAY')
	{
		my @copy = @$node;
		my $at = int rand @copy;
		$copy[$at] = mutated($copy[$at]) if @copy;
		return \@copy;
	}
	my %copy = %$node;
	my $name = any(sort keys %copy) // return { a => any(@scalars) };
	my $way = rand;
	if ($way < 0.15) { delete $copy{$name} }
	elsif ($way < 0.3) { $copy{ any(qw(data type id lid meta links born stamp tenantId x)) } = any(@scalars) }
	else { $copy{$name} = mutated($copy{$name}) }
	return \%copy;
}

sub spoiled
{
	my ($bytes) = @_;

	substr($bytes, rand length $bytes, any(0, 1, 3)) = any('', "\0", "\xff", '[', '"', '\ud800', ',', '%', ';', '(', '==')
	  for 0 .. rand 2;
	return $bytes;
}

# What it may have made is asked for, so that the model stays true.
sub settle
{
	my ($tenant, $answer) = @_;
	my $data = ($answer->{json} // {})->{data};

	return unless $answer->{status} =~ /^20[01]$/ && ref $data eq 'HASH' && ($data->{type} // '') eq 'specimens';
	my $now = ask(settle => $tenant, GET => "/api/v1/specimens/$data->{id}");
	$tenant->{ids}{ $data->{id} } = 1;
	$tenant->{specimens}{ $data->{id} } = { map { $_ => $now->{json}{data}{attributes}{$_} } keys %values };
	return;
}

sub wrong_document
{
	my ($tenant) = @_;
	my $id = known($tenant);
	my ($sent) = attributes('name');
	my $document = mutated({ data => { type => 'specimens', $id ? (id => $id) : (), attributes => $sent } });
	my %options = rand() < 0.7 ? (json => $document)
	  : (body => spoiled($json->encode($document)), headers => { 'Content-Type' => 'application/vnd.api+json' });

	settle($tenant, ask(wrong_document => $tenant, $id ? (PATCH => "/api/v1/specimens/$id") : (POST => '/api/v1/specimens'), \%options));
	return;
}

sub wrong_target
{
	my ($tenant) = @_;
	my ($text) = filter(0);
	my $target = any("filter=" . escaped(spoiled($text)), 'filter=' . spoiled(escaped($text)), 'sort=' . any('x', 'extra', '--', 'a.b', ','),
		'page[after]=' . any('AQE', 'x' x 300, '%00'), 'page[number]=' . any(0, -1, '9' x 30), 'include=' . any(qw(x a.b.c.d.e.f.g)),
		'fields[specimens]=' . any('x', 'a,,b'), any('=', '&&', 'a=1&a=2', '%zz'));

	$target =~ s/[^\x21-\x7e]/%20/g;
	$target =~ s/#/%23/g;
	ask(wrong_target => $tenant, GET => "/api/v1/specimens?$target");
	return;
}

sub wrong_token
{
	my ($tenant) = @_;
	my $answer = ask(wrong_token => $tenant, GET => '/api/v1/specimens',
		{ token => any(spoiled(fresh($tenant)) =~ s/[^\x21-\x7e]/x/gr, 'a.b.c', '..', 'x' x 9000, 'eap_' . 'a' x 71) });

	fault('a token that nobody made', 'token', $answer)
	  if $answer->{status} == 200 && $answer->{json}{data} && !%{ $tenant->{specimens} };
	return;
}

sub strange
{
	my ($tenant) = @_;
	my ($other) = grep { $_ != $tenant } @tenants;
	my $id = known($other) // return;
	my $answer = ask(strange => $tenant, any(qw(GET DELETE)), "/api/v1/specimens/$id");

	fault('a resource of another tenant', $id, $answer) if $answer->{status} != 404;
	return;
}

# Bytes of a whole request: head and chunks
sub raw
{
	my ($tenant) = @_;
	my $body = $json->encode({ data => { type => 'specimens', attributes => { name => 'raw' } } });
	my @pieces = $body =~ /(.{1,@{[ 1 + int rand 30 ]}})/gs;
	my $bytes = "POST /api/v1/specimens HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer @{[ fresh($tenant) ]}\r\n"
	  . "Content-Type: application/vnd.api+json\r\nTransfer-Encoding: chunked\r\n\r\n"
	  . join('', map { sprintf "%x\r\n%s\r\n", length, $_ } @pieces) . "0\r\n\r\n";
	my $good = rand() < 0.5;

	$bytes = spoiled($bytes) unless $good;
	my $text = $shim->raw($bytes, timeout => 2, half_close => 1) // '';
	my ($status) = $text =~ m{^HTTP/1\.1 (\d+)};
	$sent++;
	$kinds{ $good ? 'chunks' : 'wrong_bytes' }++;
	$statuses{ $status // 'none' }++;
	fault('an answer 500 to bytes', $bytes, { status => $status, body => $text }) if ($status // 0) == 500;
	fault('chunks are not taken', $bytes, { status => $status, body => $text }) if $good && ($status // 0) != 201;
	if (($status // 0) == 201 && $text =~ /"id":"($uuid)"/)
	{
		my $now = ask(settle => $tenant, GET => "/api/v1/specimens/$1");
		$tenant->{ids}{$1} = 1;
		$tenant->{specimens}{ $now->{json}{data}{id} } = { map { $_ => $now->{json}{data}{attributes}{$_} } keys %values };
	}
	return;
}

# -------- without the look-ups past the executor --------

# The executor reads the same as what goes past it.
sub compare_reads
{
	my @asked = splice @reads;

	return unless @asked;
	my $sql = join '', map {
		my ($tenant, $target) = @$_;
		my $headers = $json->encode({ authorization => 'Bearer ' . fresh($tenant) });
		s/'/''/g for $target, $headers;
		"select status || ' ' || body from entityapi.handle('GET', '$target', '$headers', null, '127.0.0.1');\n"
	} @asked;
	my ($direct, $executed) = map { [ split /\n/, $cluster->psql($_) ] } $sql,
	  "load 'entityapi';\nset entityapi.direct_scans = off;\n$sql";
	for my $i (0 .. $#asked)
	{
		$kinds{compared}++;
		my ($status) = $direct->[$i] =~ /^(200|404) /;

		# what is not there has an id of its own in each answer
		fault("the executor reads $executed->[$i]", $asked[$i][1], { status => $direct->[$i], body => '' })
		  if !$status || ($status == 200 ? $direct->[$i] ne $executed->[$i] : $executed->[$i] !~ /^404 /);
	}
	return;
}

# -------- against the description --------

# How many answers were as described, and what was not
sub held
{
	my $checked = EntityApi::Test::run([ 'node', "$described/answers.mjs", "$record" ]);
	my $result = eval { JSON::PP->new->utf8->decode($checked->{out}) };

	return (0, "nothing was held against it: $checked->{err}") if !$result;
	return ($result->{held}, @{ $result->{faults} });
}

# kB of memory of its own: of the shim, and of the largest of its backends
sub memory
{
	my @backends = split /\n/, $cluster->psql("select pid from pg_stat_activity where usename = 'entityapi_shim'");
	my ($shim_kb, @kb) = map { my $status = eval { EntityApi::Test::slurp("/proc/$_/status") } // ''; $status =~ /RssAnon:\s+(\d+)/ ? $1 : 0 } $shim->pid, @backends;

	return ($shim_kb, (sort { $b <=> $a } @kb)[0] // 0);
}

Papers::begin(\&ask, \&fault);
my @good = (@Papers::good, (\&paper) x 10, (\&create) x 4, (\&update) x 4, (\&fetch) x 4, (\&list) x 5, (\&remove) x 2, \&atomic);
my @wrong = ((\&wrong_paper) x 4, (\&wrong_document) x 3, (\&wrong_target) x 3, \&wrong_token, \&strange, \&raw);
my $begin = time;
my ($warm, @warm) = $count ? $count / 3 : 0;

while ($count ? $sent < $count : time - $begin < $seconds)
{
	my $tenant = any(@tenants);

	# neither grows without end
	if (keys %{ $tenant->{specimens} } > 150) { remove($tenant) }
	else { (rand() < 0.75 ? any(@good) : any(@wrong))->($tenant) }
	compare_reads() if @reads >= 60;
	@warm = memory() if !@warm && ($count ? $sent > $warm : time - $begin > $seconds / 3);
}
compare_reads();

for my $tenant (@tenants)
{
	my $rows = $cluster->psql("select count(*) from app.specimen where tenant_id = '$tenant->{id}'");

	fault("count(*) is $rows, not " . keys %{ $tenant->{specimens} }, $tenant->{id}) if $rows != keys %{ $tenant->{specimens} };
	$rows = $cluster->psql("select count(*) filter (where deleted_at is null) || ' ' || count(*) from app.paper where tenant_id = '$tenant->{id}'");
	my $papers = join ' ', map { scalar(() = Papers::of($tenant, $_)) } qw(live all);
	fault("there are $rows papers, not $papers", $tenant->{id}) if $rows ne $papers;
}
my @end = memory();
fault("the shim has grown from $warm[0] to $end[0] kB", 'memory') if @warm && $end[0] > $warm[0] * 1.5 + 8192;
fault("a backend has grown from $warm[1] to $end[1] kB", 'memory') if @warm && $end[1] > $warm[1] * 1.5 + 16384;
my $good = 0;
$good += $statuses{$_} for grep { /^2/ } keys %statuses;
my $log = EntityApi::Test::slurp($cluster->log);
my @causes = $log =~ /(PANIC.*|TRAP.*|.*AddressSanitizer.*|.*runtime error.*|.*terminated by signal.*|LOG:  entityapi request \S+ failed: .*)/g;

is($faults, 0, 'no answer is other than it must be');
cmp_ok($good * 2, '>', $sent, 'more than half are answered 2xx');
is(scalar @causes, 0, 'nothing in the server\'s log') or diag(map { "$_\n" } @causes[ 0 .. ($#causes > 9 ? 9 : $#causes) ]);
SKIP:
{
	skip "the description of the API: $no_node", 2 if $no_node;
	my ($held, @other) = held();
	is(scalar @other, 0, 'answers are as described') or diag(map { utf8::encode(my $text = $_); "$text\n" } @other[ 0 .. ($#other > 9 ? 9 : $#other) ]);
	cmp_ok($held, '>', $sent * $share / 3, 'so many were held against the description');
	diag("$held answers held against the description");
}
diag(sprintf '%d requests, %.1f %% answered 2xx', $sent, 100 * $good / ($sent || 1));
diag('statuses: ', join ' ', map { "$_:$statuses{$_}" } sort keys %statuses);
diag('kinds: ', join ' ', map { "$_:$kinds{$_}" } sort keys %kinds);
diag(sprintf 'memory: shim %d to %d kB, largest backend %d to %d kB', $warm[0] // 0, $end[0], $warm[1] // 0, $end[1]);
done_testing;
