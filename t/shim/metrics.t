# Metrics: who sees them, that they are right, and that no client can make them
# grow.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test;
use IO::Socket::INET;
use Test::More;

my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/examples/billing');
my $shim = EntityApi::Test->shim($cluster, metrics => 'true', keep_alive => 'yes');
my $tenant = $shim->tenant('acme-metrics');
my $ann = $shim->user($tenant->{id}, 'ann-metrics', ['Accountant']);
my $list = '/api/v{n}/{entities}';

# Prometheus text as a hash of "name{labels}" to value; complains of what is not
# of its form.
sub scrape
{
	my ($from) = @_;
	my $answer = ($from // $shim)->http(GET => '/actuator/prometheus');
	my (%value, %type, %seen, @faults);

	$answer->{status} == 200 or die "no metrics: $answer->{status}\n";
	for my $line (split /\n/, $answer->{body})
	{
		if ($line =~ /^# HELP (\w+) \S.*$/)
		{
			push @faults, "twice: $1" if $seen{$1}++;
		}
		elsif ($line =~ /^# TYPE (\w+) (counter|gauge|histogram)$/)
		{
			$type{$1} = $2;
		}
		elsif ($line =~ /^(\w+?)((?:_bucket|_sum|_count)?)(\{(?:\w+="(?:[^"\\]|\\.)*",?)+\})? (\d+(?:\.\d+)?)$/)
		{
			my $name = $type{$1} ? $1 : "$1$2";
			push @faults, "no type: $line" unless $type{$name};
			push @faults, "twice: $line" if exists $value{ "$1$2" . ($3 // '') };
			$value{ "$1$2" . ($3 // '') } = $4;
		}
		else
		{
			push @faults, "unreadable: $line";
		}
	}
	is_deeply(\@faults, [], 'well-formed') if @faults;
	like($answer->{body}, qr/\n\z/, 'ends with a line feed') if $answer->{body} !~ /\n\z/;
	return \%value;
}

sub requests
{
	my ($values, $route, $method, $status) = @_;
	return $values->{"entityapi_http_requests_total{route=\"$route\",method=\"$method\",status=\"$status\"}"} // 0;
}

# Counters are added after the answer has gone out.
sub settled
{
	my ($condition) = @_;
	my $values;

	EntityApi::Test::wait_until(60, sub { $values = scrape(); $condition->($values) });
	return $values;
}

subtest 'off by default' => sub {
	my $plain = EntityApi::Test->shim($cluster);
	my $unknown = $plain->http(GET => '/actuator/nothing', { headers => { 'X-Request-Id' => 'same' } });

	is($unknown->{status}, 404, 'an unknown address');
	for my $path ('/actuator/metrics', '/actuator/prometheus', '/actuator/metrics/process_open_fds')
	{
		my $answer = $plain->http(GET => $path, { headers => { 'X-Request-Id' => 'same' } });

		is($answer->{status}, 404, "$path: 404");
		is($answer->{body}, $unknown->{body}, 'as any unknown address');
		is($plain->http(POST => $path, { json => {} })->{status}, 404, 'for POST, too');
	}
	is($plain->stop, 0, 'ends with 0');
};

subtest 'forms' => sub {
	my $answer = $shim->http(GET => '/actuator/prometheus');
	is($answer->{headers}{'content-type'}, 'text/plain; version=0.0.4; charset=utf-8', 'content type');
	is($answer->{headers}{'cache-control'}, 'no-store', 'not kept');
	ok($answer->{headers}{'x-request-id'}, 'request id');

	my $names = $shim->http(GET => '/actuator/metrics')->{json}{names};
	my %types = $answer->{body} =~ /^# TYPE (\w+) (\w+)$/mg;
	is_deeply([ sort @$names ], [ sort keys %types ], 'the same names in both forms');
	for my $name (@$names)
	{
		my $one = $shim->http(GET => "/actuator/metrics/$name");

		is_deeply([ $one->{status}, $one->{json}{name}, $one->{json}{type}, ref $one->{json}{samples} ],
			[ 200, $name, $types{$name}, 'ARRAY' ], $name);
	}
	my $build = $shim->http(GET => '/actuator/metrics/entityapi_build_info')->{json}{samples};
	like($build->[0]{labels}{version}, qr/^\d+\.\d+$/, 'version of the service');
	unlike($answer->{body}, qr/postgres/i, 'nothing of the server');

	my $head = $shim->raw("HEAD /actuator/prometheus HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	like($head, qr/^HTTP\/1.1 200 OK\r\n.*\r\n\r\n$/s, 'HEAD has no body');
	like($head, qr/^Content-Length: [1-9]/m, 'but its length');
};

subtest 'tricks with paths' => sub {
	for my $path ('/actuator/metrics/', '/actuator/prometheus/', '/actuator/metrics/none', '/actuator/metrics/..',
		'/actuator/metrics/../prometheus', '/actuator/metrics/process_open_fds/', '/actuator/metrics//',
		'/actuator/metricsx', '/actuator/metrics/' . 'a' x 3000, '/ACTUATOR/metrics', '/actuator/prometheus;a=b')
	{
		is($shim->http(GET => $path)->{status}, 404, substr $path, 0, 50);
	}
	for my $path ('/actuator/metrics/%00', '/actuator/metrics%2Fnone', '/actuator/%zz')
	{
		is($shim->http(GET => $path)->{status}, 400, $path);
	}
	is($shim->http(GET => '/actuator/%6detrics?x=1')->{status}, 200, 'escapes mean what they stand for');
	for my $method (qw(POST PUT PATCH DELETE OPTIONS))
	{
		my $answer = $shim->http($method => '/actuator/metrics', { body => '{}' });

		is($answer->{status}, 405, "$method: 405");
		is($answer->{headers}{allow}, 'GET, HEAD', 'and what may be');
		is($answer->{json}{errors}[0]{code}, 'METHOD_NOT_ALLOWED', 'in an error document');
	}
};

subtest 'requests' => sub {
	my $before = scrape();
	my $base = requests($before, $list, 'GET', 200);

	$shim->must(200, GET => '/api/v1/customers?filter=name==secret-word', { token => $ann }) for 1 .. 5;
	$shim->http(HEAD => '/api/v1/invoices', { token => $ann });
	$shim->http(GET => '/api/v1/customers?filter=bad', { token => $ann }) for 1 .. 3;
	$shim->http(GET => '/api/v1/customers') for 1 .. 2;
	$shim->http(GET => "/nothing/of/$_") for 1 .. 4;
	my @counts = ([ 5, 'lists', $list, 'GET', 200 ], [ 1, 'HEAD', $list, 'HEAD', 200 ], [ 3, 'bad filters', $list, 'GET', 400 ],
		[ 2, 'without a credential', $list, 'GET', 401 ], [ 4, 'without a route', 'none', 'GET', 404 ]);
	my $of = sub { my ($values, undef, undef, @which) = @_; return requests($values, @which) - requests($before, @which) };
	my $after = settled(sub { my ($values) = @_; !grep { $of->($values, @$_) < $_->[0] } @counts });

	is($of->($after, @$_), $_->[0], $_->[1]) for @counts;

	my $labels = "route=\"$list\",method=\"GET\",status=\"200\"";
	my @buckets = map { $after->{"entityapi_http_request_duration_seconds_bucket{$labels,le=\"$_\"}"} }
	  qw(0.0001 0.00025 0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 +Inf);
	is(scalar(grep { defined } @buckets), 17, 'all buckets');
	is_deeply(\@buckets, [ sort { $a <=> $b } @buckets ], 'cumulative');
	is($buckets[-1], requests($after, $list, 'GET', 200), 'the last one is all');
	is($after->{"entityapi_http_request_duration_seconds_count{$labels}"}, $buckets[-1], 'and the count');
	cmp_ok($after->{"entityapi_http_request_duration_seconds_sum{$labels}"}, '>', 0, 'and there is a sum');
	cmp_ok($after->{entityapi_http_requests_in_flight}, '>=', 1, 'the scrape itself is in flight');

	my $text = $shim->http(GET => '/actuator/prometheus')->{body};
	unlike($text, qr/acme|ann-metrics|secret-word|customers|[0-9a-f]{8}-[0-9a-f]{4}/,
		'no tenant, user, query, entity or id');
};

subtest 'refusals of the shim' => sub {
	my %refused = (
		bad_host        => "GET /x HTTP/1.1\r\n\r\n",
		bad_length      => "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc",
		length_required => "POST /x HTTP/1.1\r\nHost: a\r\n\r\n",
		upgrade         => "GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n",
		malformed       => "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n");
	my $of = sub { $_[0]{"entityapi_http_refused_total{kind=\"$_[1]\"}"} // 0 };
	my $before = scrape();

	for my $kind (sort keys %refused)
	{
		$shim->raw($refused{$kind}) for 1 .. 2;
	}
	my $after = settled(sub { my ($values) = @_; !grep { $of->($values, $_) < 2 + $of->($before, $_) } keys %refused });
	is_deeply({ map { $_ => $of->($after, $_) - $of->($before, $_) } keys %refused },
		{ map { $_ => 2 } keys %refused }, 'by their kind');
};

subtest 'logins' => sub {
	my $before = scrape();
	my $of = sub { $_[0]{"entityapi_logins_total{kind=\"password\",outcome=\"$_[1]\"}"} };

	$shim->login('ann-metrics', $ann->{password}) for 1 .. 2;
	$shim->http(POST => '/auth/login', { json => { username => 'nobody-here', password => "wrong word $_" } })
	  for 1 .. 8;
	my %more = (success => 2, failure => 5, throttled => 3);
	my $after = settled(sub { my ($values) = @_; !grep { $of->($values, $_) < $of->($before, $_) + $more{$_} } keys %more });

	is_deeply({ map { $_ => $of->($after, $_) - $of->($before, $_) } keys %more }, \%more, 'by what came of them');
	is($after->{entityapi_throttled_total}, $before->{entityapi_throttled_total} + 3, 'throttled ones for themselves, too');
};

subtest 'what backends count' => sub {
	my $hit = sub { $_[0]{"entityapi_$_[1]_cache_lookups_total{result=\"hit\"}"} };
	my $miss = sub { $_[0]{"entityapi_$_[1]_cache_lookups_total{result=\"miss\"}"} };
	my $ask = sub { $shim->must(200, GET => '/api/v1/customers?page[size]=3', { token => $ann }) };

	# one client, one backend: LIFO
	$ask->() for 1 .. 20;
	sleep 1;
	$ask->();
	my $before = settled(sub { $miss->($_[0], 'catalog') > 0 });
	$ask->() for 1 .. 200;
	sleep 1;
	$ask->();
	my $after = settled(sub { $hit->($_[0], 'catalog') >= $hit->($before, 'catalog') + 200 });

	cmp_ok($hit->($after, 'catalog') - $hit->($before, 'catalog'), '>=', 200, 'requests that found the catalog');
	is($miss->($after, 'catalog'), $miss->($before, 'catalog'), 'none that did not');
	cmp_ok($hit->($after, 'plan') - $hit->($before, 'plan'), '>=', 200, 'statements that found their plan');
	is($miss->($after, 'plan'), $miss->($before, 'plan'), 'none that did not');

	$shim->must(200, GET => "/api/v1/customers?page[size]=$_&sort=name&filter=id=isnull=false", { token => $ann }) for 4 .. 6;
	my $new = settled(sub { $miss->($_[0], 'plan') > $miss->($after, 'plan') });
	cmp_ok($miss->($new, 'plan'), '>', $miss->($after, 'plan'), 'a new statement is a miss, told at once');

	my $secret = $shim->raw("GET /api/v1/customers HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	unlike($secret, qr/counters/i, 'clients are not told');
};

subtest 'the pool' => sub {
	my $values = settled(sub { $_[0]{'entityapi_pool_connections{state="in_use"}'} == 0 });

	cmp_ok($values->{entityapi_pool_size}, '>=', 4, 'size');
	cmp_ok($values->{'entityapi_pool_connections{state="idle"}'}, '>=', 1, 'idle ones');
	is($values->{'entityapi_pool_connections{state="in_use"}'}, 0, 'none in use');
	cmp_ok($values->{entityapi_database_connections_opened_total}, '>=', 1, 'opened');
	cmp_ok($values->{entityapi_pool_wait_seconds_count}, '>', 200, 'waits');
	cmp_ok($values->{entityapi_database_duration_seconds_count}, '>', 200, 'calls');

	$cluster->stop('immediate');
	is($shim->http(GET => '/api/v1/customers', { token => $ann })->{status}, 503, 'the database is away') for 1 .. 2;
	my $down = settled(sub { ($_[0]{'entityapi_http_refused_total{kind="unavailable"}'} // 0) >= 2 });
	cmp_ok($down->{entityapi_database_connections_failed_total}, '>=', 2, 'failures to connect, told meanwhile');
	cmp_ok($down->{entityapi_database_connections_discarded_total}, '>=', 1, 'and connections given up');
	cmp_ok($down->{'entityapi_http_refused_total{kind="unavailable"}'}, '>=', 2, 'and what clients got');
	is($down->{'entityapi_pool_connections{state="idle"}'}, 0, 'none is left');
	$cluster->start;
	is($shim->http(GET => '/api/v1/customers', { token => $ann })->{status}, 200, 'and on it goes');
};

subtest 'no client makes them grow' => sub {
	my $series = sub { scalar grep { /^entityapi_http_requests_total/ } keys %{ scrape() } };
	my $before = $series->();
	my $sent = 0;

	# 9 000 paths, as many ways to ask for what there is not, on few connections
	my @kinds = ('/nothing-%d', '/api/v%d/x', '/api/v1/e%d', '/api/v1/customers/%d', '/auth/%d', '/manage/%d',
		'/actuator/%d', '/%0%d', '/api/v1/customers/%d/relationships/%d');
	my @methods = qw(GET HEAD DELETE OPTIONS PROPFIND MKCOL);
	for my $round (1 .. 18)
	{
		my $text = join '', map {
			my $number = $_ + $round * 1000;
			my $path = $kinds[ $_ % @kinds ] =~ s/%d/$number/gr;
			"$methods[$_ % @methods] $path HTTP/1.1\r\nHost: a\r\nX-Odd: x$number\r\n"
			  . ($_ == 500 ? "Connection: close\r\n\r\n" : "\r\n");
		} 1 .. 500;
		my $answers = $shim->raw($text);

		$sent += () = $answers =~ m{HTTP/1\.1 \d}g;
	}
	is($sent, 9000, 'odd paths, all answered');
	my $odd = 0;
	for my $number (1 .. 1000)
	{
		$odd++ if $shim->raw("FOO$number /x$number HTTP/1.1\r\nHost: a\r\n\r\n") =~ m{^HTTP/1\.1 400 };
	}
	is($odd, 1000, 'odd methods, all refused');

	my $after = $series->();
	note "$before series before, $after after";
	cmp_ok($after, '<', $before + 80, 'few series more');
	my $text = $shim->http(GET => '/actuator/prometheus')->{body};
	cmp_ok(length $text, '<', 400_000, 'and a text of bounded size');
	unlike($text, qr/FOO|PROPFIND|nothing-|x500/, 'nothing of what was sent is in it');
	like($text, qr/method="other"/, 'but that it was something else');
};

is($shim->stop, 0, 'ends with 0');
done_testing;
