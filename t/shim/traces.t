# Traces: what a collector of OpenTelemetry gets of requests, and what becomes
# of requests when it does not take it.

use strict;
use warnings;

use EntityApi::Test::StandIn;
use EntityApi::Test;
use IO::Socket::INET;
use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $cluster = EntityApi::Test::StandIn->cluster;
my $folder = EntityApi::Test::folder();
my ($trace, $span) = ('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');
my $json = JSON::PP->new->utf8;
my (@children, $self);
$self = $$;
END
{
	if ($$ == $self)
	{
		my $status = $?;
		kill KILL => $_ for @children;
		waitpid $_, 0 for @children;
		$? = $status;
	}
}

# -------- a collector --------

# One request of a client: head and body, or nothing at its end
sub one_request
{
	my ($client) = @_;
	my $text = '';

	while ($text !~ /\r\n\r\n/)
	{
		sysread($client, $text, 65536, length $text) or return;
	}
	my ($head, $body) = $text =~ /^(.*?)\r\n\r\n(.*)$/s;
	my ($length) = $head =~ /^Content-Length: (\d+)/mi;
	while (length $body < $length)
	{
		sysread($client, $body, 65536, length $body) or return;
	}
	return ($head, $body);
}

# A process that writes what it gets to a file, a JSON array of head and body
# each, and answers in the words of its list: a status with further lines, 200
# beyond the last; "hang" never does.  Options are those of IO::Socket::SSL.
sub collector
{
	my ($answers, $tls, $port) = @_;
	my $file = "$folder/collector." . scalar @children;
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port // 0,
		Listen => 64, ReuseAddr => 1) or die "listen: $!\n";
	my @answers = @$answers;

	open my $out, '>>', $file or die "$file: $!\n";
	$out->autoflush(1);
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		$SIG{PIPE} = 'IGNORE';
		while (my $client = $listener->accept)
		{
			IO::Socket::SSL->start_SSL($client, SSL_server => 1, %$tls) || next if $tls;
			while (my ($head, $body) = one_request($client))
			{
				my ($status, @lines) = @{ shift @answers // [ '200 OK' ] };
				my $content = @lines && $lines[-1] =~ /^\{/ ? pop @lines : '{}';

				print $out $json->encode([ $head, $body ]), "\n";
				sleep 3600 if $status eq 'hang';
				syswrite $client, join "\r\n", "HTTP/1.1 $status", 'Content-Type: application/json',
				  'Content-Length: ' . length $content, @lines, '', $content;
			}
		}
		POSIX::_exit(0);
	}
	push @children, $pid;
	return { file => $file, port => $listener->sockport, pid => $pid,
		url => ($tls ? 'https' : 'http') . '://127.0.0.1:' . $listener->sockport . '/v1/traces' };
}

sub messages
{
	my ($collector) = @_;
	return map { $json->decode($_) } grep { /\n\z/ } EntityApi::Test::slurp($collector->{file}) =~ /([^\n]*\n)/g;
}

sub spans_in
{
	return map { @{ $_->{spans} } } map { @{ $_->{scopeSpans} } }
	  map { @{ $json->decode($_->[1])->{resourceSpans} } } @_;
}

# All spans so far, their attributes as a hash of texts
sub spans
{
	my ($collector) = @_;
	my @spans = spans_in(messages($collector));

	for my $span (@spans)
	{
		$span->{attributes} = { map { $_->{key} => (values %{ $_->{value} })[0] } @{ $span->{attributes} } };
	}
	return @spans;
}

# The spans of the request with that id, once they are there; its own first
sub spans_of
{
	my ($collector, $id) = @_;
	my (@all, $own);

	EntityApi::Test::wait_until(30, sub {
			@all = spans($collector);
			($own) = grep { ($_->{attributes}{'entityapi.request_id'} // '') eq $id } @all });
	return unless $own;
	return ($own, grep { ($_->{parentSpanId} // '') eq $own->{spanId} } @all);
}

sub shim
{
	my ($collector, %flags) = @_;
	return EntityApi::Test->shim($cluster, metrics => 'true', otlp_delay_ms => 50,
		otlp_endpoint => ref $collector ? $collector->{url} : $collector, %flags);
}

sub get
{
	my ($shim, $id, $target, %headers) = @_;
	return $shim->http(GET => $target, { headers => { 'X-Request-Id' => $id, %headers } });
}

sub counter
{
	my ($shim, $name) = @_;
	my ($value) = $shim->http(GET => '/actuator/prometheus')->{body} =~ /^entityapi_spans_${name}_total (\d+)$/m;
	return $value;
}

sub reaches
{
	my ($shim, $name, $least) = @_;
	return EntityApi::Test::wait_until(30, sub { counter($shim, $name) >= $least });
}

# -------- tests --------

subtest 'what is told of a request' => sub {
	my $collector = collector([]);
	my $headers = EntityApi::Test::folder() . '/headers';
	EntityApi::Test::run([ 'sh', '-c', 'cat >"$1"', '-', $headers ], in => "Authorization: Bearer hush-collector\nX-Scope: a\n", service => 1);
	my $shim = shim($collector, otlp_headers_file => $headers, otlp_service_name => 'shop');
	my $before = time;

	get($shim, 'told-1', '/api/v1/invoices/hush-id?filter=name==hush-value&hush-name=1', traceparent => "00-$trace-$span-01",
		Authorization => 'Bearer hush-token', tracestate => 'hush=state', Cookie => 'hush-cookie');
	my ($own, @children_of) = spans_of($collector, 'told-1');
	my $after = time;

	is($own->{traceId}, $trace, 'the trace of the client');
	is($own->{parentSpanId}, $span, 'its span is the parent');
	like($own->{spanId}, qr/^[0-9a-f]{16}$/, 'an id of its own');
	isnt($own->{spanId}, $span, 'which is another one');
	is($own->{kind}, 2, 'a server');
	is($own->{flags}, 0x301, 'sampled, of a remote parent');
	is($own->{name}, 'GET /api/v{n}/stand-in', 'method and route');
	is_deeply($own->{attributes}, { 'http.request.method' => 'GET', 'http.route' => '/api/v{n}/stand-in',
			'http.response.status_code' => '200', 'url.scheme' => 'http', 'entityapi.request_id' => 'told-1' }, 'attributes');
	ok(!exists $own->{status}, 'no error');
	like($_, qr/^\d{19}$/, 'nanoseconds, as text') for @$own{qw(startTimeUnixNano endTimeUnixNano)};
	cmp_ok($own->{startTimeUnixNano} / 1e9, '>=', $before - 0.1, 'begins after it was sent');
	cmp_ok($own->{endTimeUnixNano} / 1e9, '<=', $after + 0.1, 'ends before it was told');

	my ($call) = grep { $_->{kind} == 3 } @children_of;
	is($call->{name}, 'SELECT entityapi.handle', 'the call is a child');
	is($call->{traceId}, $trace, 'of the same trace');
	isnt($call->{spanId}, $own->{spanId}, 'with an id of its own');
	is($call->{flags}, 0x101, 'whose parent is not remote');
	is_deeply($call->{attributes}, { 'db.system.name' => 'postgresql', 'db.operation.name' => 'SELECT',
			'db.stored_procedure.name' => 'entityapi.handle', 'db.query.summary' => 'SELECT entityapi.handle' }, 'its attributes');
	cmp_ok($call->{startTimeUnixNano}, 'ge', $own->{startTimeUnixNano}, 'within the other');
	cmp_ok($call->{endTimeUnixNano}, 'le', $own->{endTimeUnixNano}, 'to its end');

	my ($message) = messages($collector);
	like($message->[0], qr{^POST /v1/traces HTTP/1\.1\r$}m, 'a POST');
	like($message->[0], qr/^Content-Type: application\/json\r$/m, 'of JSON');
	like($message->[0], qr/^Authorization: Bearer hush-collector\r$/m, 'with the headers of the setting');
	like($message->[0], qr/^X-Scope: a\r?$/m, 'all of them');
	unlike($message->[1], qr/hush|invoices/, 'nothing of query, target, headers');
	my %resource = map { $_->{key} => $_->{value}{stringValue} } @{ $json->decode($message->[1])->{resourceSpans}[0]{resource}{attributes} };
	is($resource{'service.name'}, 'shop', 'the name of the service');
	like($resource{'service.version'}, qr/^\d+\.\d+$/, 'its version');
	like($resource{'service.instance.id'}, qr/^[0-9a-f]{16}$/, 'its instance');

	my $line = $shim->logged(qr/"told-1"/);
	is($json->decode($line)->{traceId}, $trace, 'the access log has the trace');
	is($json->decode($line)->{spanId}, $own->{spanId}, 'and the span of the request');
	is($shim->stop, 0, 'ends with 0');
	unlike(EntityApi::Test::slurp($shim->err), qr/hush/, 'nothing secret in the log');
};

subtest 'errors and waits' => sub {
	my $collector = collector([]);
	my $shim = shim($collector, pool_size => 1, login_pool_share => 1, trace_per_million => 1_000_000);

	get($shim, 'status-404', '/status/404');
	get($shim, 'status-500', '/status/500');
	get($shim, 'fails', '/fail/XX000');
	my ($own) = spans_of($collector, 'status-404');
	ok(!exists $own->{status}, '404 is no error of ours');
	($own, my @calls) = spans_of($collector, 'status-500');
	is_deeply($own->{status}, { code => 2 }, '500 is one');
	is($own->{attributes}{'error.type'}, '500', 'of that type');
	ok(!exists $calls[0]{status}, 'the call has done what it does');
	($own, @calls) = spans_of($collector, 'fails');
	is($own->{attributes}{'http.response.status_code'}, 500, 'a failure in the database');
	is_deeply($calls[0]{status}, { code => 2 }, 'is one of the call');
	is($calls[0]{attributes}{'error.type'}, 'internal', 'with its cause');
	unlike($json->encode([ spans($collector) ]), qr/secret cause/, 'and not its text');

	$shim->raw("PROPFIND /x HTTP/1.1\r\nHost: a\r\nX-Request-Id: brew\r\nContent-Length: 0\r\n\r\n");
	($own) = spans_of($collector, 'brew');
	is($own && $own->{attributes}{'http.request.method'}, '_OTHER', 'a method of no list');
	unlike($json->encode([ $own ]), qr/PROPFIND/, 'is not named');

	# one holds the only connection, another one waits for it
	$cluster->hold;
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		get($shim, 'holds', '/hold');
		POSIX::_exit(0);
	}
	$cluster->at_work(1);
	my $waiter = fork // die "fork: $!\n";
	if ($waiter == 0)
	{
		get($shim, 'waits', '/x');
		POSIX::_exit(0);
	}
	# both, and who asks how many there are
	EntityApi::Test::wait_until(60, sub {
			HTTP::Tiny->new(timeout => 60)->get($shim->url . '/actuator/prometheus')->{content} =~ /^entityapi_http_requests_in_flight 3$/m })
	  or diag 'nobody waits';
	sleep 0.05;
	$cluster->release;
	waitpid $_, 0 for $pid, $waiter;
	($own, my @others) = spans_of($collector, 'waits');
	my ($wait) = grep { $_->{name} eq 'wait for a connection' } @others;
	my ($call) = grep { $_->{kind} == 3 } @others;
	is($wait && $wait->{kind}, 1, 'the wait for a connection is a span');
	is($wait->{endTimeUnixNano}, $call->{startTimeUnixNano}, 'up to the call');
	cmp_ok($wait->{endTimeUnixNano} - $wait->{startTimeUnixNano}, '>=', 1e6, 'as long as it was');
	my %ids = map { $_->{spanId} => 1 } spans($collector);
	is(scalar keys %ids, scalar(my @all = spans($collector)), 'all ids differ');
};

subtest 'which requests are traced' => sub {
	my $collector = collector([]);

	# one each, as a collector listens to one shim at a time
	my %collectors = map { $_ => collector([]) } 0, 1_000_000;
	my %shims = map { $_ => shim($collectors{$_}, trace_per_million => $_) } keys %collectors;
	my %bad = (short => "00-$trace-$span-1", upper => '00-' . uc($trace) . "-$span-01", zero => '00-' . '0' x 32 . "-$span-01",
		version => "ff-$trace-$span-01", long => "00-$trace-$span-01-x");

	for my $ratio (sort keys %shims)
	{
		my $shim = $shims{$ratio};

		get($shim, "$ratio-flag-$_", '/x', traceparent => "00-$trace-$span-$_") for qw(00 01 02 03 fe ff);
		get($shim, "$ratio-later", '/x', traceparent => "cc-$trace-$span-01-more");
		get($shim, "$ratio-none", '/x');
		get($shim, "$ratio-bad-$_", '/x', traceparent => $bad{$_}) for keys %bad;

		# those before it have been sent by then
		get($shim, "$ratio-last", '/x', traceparent => "00-$trace-$span-01");
		spans_of($collectors{$ratio}, "$ratio-last");
		is($shim->stop, 0, 'ends with 0');
	}
	my %own = map { $_->{attributes}{'entityapi.request_id'} => $_ } grep { $_->{kind} == 2 } map { spans($_) } values %collectors;
	my @always = qw(flag-01 flag-03 flag-ff last later);

	is_deeply([ sort grep { /^0-/ } keys %own ], [ sort map { "0-$_" } @always ], 'by the flag alone');
	is_deeply([ sort grep { /^1000000-(?!bad|none)/ } keys %own ], [ sort map { "1000000-$_" } @always ], 'the flag counts in either case');
	for my $name ('none', map { "bad-$_" } sort keys %bad)
	{
		my $root = $own{"1000000-$name"};

		like($root && $root->{traceId}, qr/^(?!0{32})[0-9a-f]{32}$/, "$name: a trace of our own");
		isnt($root->{traceId}, $trace, 'which is new');
		ok(!exists $root->{parentSpanId}, 'without a parent');
		is($root->{flags}, 0x101, 'nor a remote one');
		my ($line) = EntityApi::Test::slurp($shims{1_000_000}->log) =~ /^(.*"1000000-$name".*)$/m;
		is($json->decode($line)->{traceId}, $root->{traceId}, 'and in the access log');
	}
	my ($line) = EntityApi::Test::slurp($shims{0}->log) =~ /^(.*"0-flag-00".*)$/m;
	is($json->decode($line)->{spanId}, $span, 'who is not traced has the client\'s span there, as ever');

	my $half = shim($collector, trace_per_million => 500_000);
	get($half, "half-$_", '/x') for 1 .. 200;
	get($half, 'last', '/x', traceparent => "00-$trace-$span-01");
	spans_of($collector, 'last');
	is($half->stop, 0, 'ends with 0');
	my $traced = grep { ($_->{attributes}{'entityapi.request_id'} // '') =~ /^half-/ } spans($collector);
	cmp_ok($traced, '>', 40, 'half of them');
	cmp_ok($traced, '<', 160, 'and not all');
};

subtest 'many go out together, and the end sends what waits' => sub {
	my ($collector, @ids);

	# At its end a shim waits for two seconds: where they have passed, and not all
	# is there, it says nothing.
	my $end = sub {
		my ($name, $count, $before) = @_;

		return EntityApi::Test::wait_until(60, sub {
				$collector = collector([]);
				my $shim = shim($collector, otlp_delay_ms => 60_000, trace_per_million => 1_000_000);

				get($shim, "$name-$_", '/x') for 1 .. $count;
				$before->($shim);
				my $began = time;
				is($shim->stop, 0, 'ends with 0');
				my $took = time - $began;
				@ids = grep { defined && /^$name/ } map { $_->{attributes}{'entityapi.request_id'} } spans($collector);
				return @ids == $count || $took < 2;
			});
	};

	$end->('batch', 20, sub { is(scalar(messages($collector)), 0, 'they wait for others') });
	is(scalar(messages($collector)), 1, 'the end sends one message');
	is_deeply(\@ids, [ map { "batch-$_" } 1 .. 20 ], 'with all of them');

	$end->('many', 300, sub { ok(reaches($_[0], 'exported', 256), 'a full batch does not wait') });
	is(scalar @ids, 300, 'none is lost');
};

subtest 'a collector that errs' => sub {
	my $collector = collector([ [ '503 Busy', 'Retry-After: 1' ], [ '429 Slower' ], [ '200 OK' ], [ '400 Bad' ],
			[ '302 Found', 'Location: http://127.0.0.1:1/' ], [ '200 OK', '{"partialSuccess":{"rejectedSpans":"2"}}' ] ]);
	my $shim = shim($collector);
	my @traced = (traceparent => "00-$trace-$span-01");

	get($shim, 'again', '/x', @traced);
	ok(reaches($shim, 'exported', 2), 'is asked again');
	is(counter($shim, 'failures'), 2, 'failures are counted');
	is(counter($shim, 'dropped'), 0, 'nothing is lost');
	my @messages = messages($collector);
	is(scalar @messages, 3, 'three times');
	is($messages[2][1], $messages[0][1], 'with the same');

	my ($taken, $lost) = (scalar(spans_in($messages[2])), 0);
	for my $case ([ bad => 'what is refused is dropped' ], [ moved => 'nobody is sent elsewhere' ])
	{
		get($shim, $case->[0], '/x', @traced);
		ok(reaches($shim, 'dropped', $lost + 2), $case->[1]);
		$lost += spans_in((messages($collector))[-1]);
		is(counter($shim, 'dropped'), $lost, 'and counted');
	}
	get($shim, 'partial', '/x', @traced);
	ok(reaches($shim, 'dropped', $lost + 2), 'what is refused in part counts');
	is(counter($shim, 'exported'), $taken + spans_in((messages($collector))[-1]) - 2, 'as not taken');
	is(scalar(messages($collector)), 6, 'and is not sent again');
	is($shim->stop, 0, 'ends with 0');
	my @told = EntityApi::Test::slurp($shim->err) =~ /"message":"the collector ([^"]+)"/g;
	is_deeply(\@told, [ 'does not take spans: HTTP 503', 'takes spans again', 'does not take spans: HTTP 400', 'takes spans again' ],
		'the log has the beginning and the end');
};

subtest 'a collector that is away' => sub {
	my $port = EntityApi::Test::free_port();
	my $shim = shim("http://127.0.0.1:$port/v1/traces", trace_per_million => 1_000_000);

	is(get($shim, 'away', '/x')->{status}, 200, 'the service starts, and serves');
	ok(reaches($shim, 'failures', 1), 'the failure is counted');
	my $collector = collector([], undef, $port);
	ok(scalar(spans_of($collector, 'away')), 'when it is back it gets what there was');
	is($shim->stop, 0, 'ends with 0');

	$shim = shim("http://127.0.0.1:1/v1/traces", trace_per_million => 1_000_000);
	get($shim, 'lost', '/x');
	my $began = time;
	is($shim->stop, 0, 'one that stays away holds no end up');
	cmp_ok(time - $began, '<', 30 * EntityApi::Test::SLOWNESS(), 'for long');
};

subtest 'a collector that hangs' => sub {
	my $collector = collector([ [ 'hang' ] ]);
	my $shim = shim($collector, trace_per_million => 1_000_000);

	get($shim, 'first', '/x');
	ok(EntityApi::Test::wait_until(30, sub { scalar(messages($collector)) == 1 }), 'it has been asked');
	my @wrong = grep { get($shim, "more-$_", '/status/204')->{status} != 204 } 1 .. 2400;
	is(scalar @wrong, 0, 'requests go on');
	cmp_ok(counter($shim, 'dropped'), '>', 0, 'what finds no place is counted');
	is(counter($shim, 'exported'), 0, 'nothing was taken');
	my $began = time;
	is($shim->stop, 0, 'ends with 0');
	cmp_ok(time - $began, '<', 30 * EntityApi::Test::SLOWNESS(), 'and does not wait for it');
};

SKIP:
{
	skip 'IO::Socket::SSL is not installed', 1 unless eval { require IO::Socket::SSL };
	subtest 'TLS' => sub {
		my $made = EntityApi::Test::run([ qw(openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext),
				'subjectAltName=IP:127.0.0.1', '-keyout', "$folder/key", '-out', "$folder/cert" ], service => 1);
		is($made->{status}, 0, 'a certificate') or diag $made->{err};
		my $tls = { SSL_cert_file => "$folder/cert", SSL_key_file => "$folder/key" };

		my $known = shim(my $collector = collector([], $tls), otlp_ca_file => "$folder/cert", trace_per_million => 1_000_000);
		get($known, 'known', '/x');
		ok(scalar(spans_of($collector, 'known')), 'who is known gets spans');
		$known->stacks_are_enough;
		is($known->stop, 0, 'ends with 0');
		my $stranger = shim($collector = collector([], $tls), trace_per_million => 1_000_000);
		get($stranger, 'stranger', '/x');
		ok(reaches($stranger, 'failures', 1), 'nobody else does');
		is(scalar(messages($collector)), 0, 'not one');
		is($stranger->stop, 0, 'ends with 0');
	};
}

subtest 'settings' => sub {
	my $refused = sub {
		my (@flags) = @_;
		my $run = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'), 'serve', '--print-config', @flags ]);
		return ($run->{status}, $run->{err} . $run->{out});
	};

	for my $url ('ftp://a/', 'http://', 'http:///v1', 'http://u:p@a/', 'http://a/?key=1', 'http://a /', 'a:4318')
	{
		my ($status, $said) = $refused->('--otlp-endpoint', $url);
		isnt($status, 0, "$url is refused");
		like($said, qr/otlp_endpoint/, 'by name');
	}
	for my $headers ('hush', 'a hush: b', "a: hush\rb: c", "a: b\n: hush")
	{
		my ($status, $said) = $refused->('--otlp-headers', $headers);
		isnt($status, 0, 'headers that are none are refused');
		unlike($said, qr/hush/, 'and not shown');
	}
	my ($status, $said) = $refused->('--otlp-headers', 'Authorization: hush', '--otlp-endpoint', 'https://a:4318/v1/traces');
	is($status, 0, 'good ones');
	unlike($said, qr/hush/, 'are not shown, either');
};

done_testing;
