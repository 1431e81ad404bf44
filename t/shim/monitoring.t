# The dashboard of Grafana and the alert rules of Prometheus ask for metrics
# that there are, by labels that these have; and the file for who finds a fault
# of security.

use strict;
use warnings;

use EntityApi::Test;
use IO::Socket::INET;
use JSON::PP ();
use Test::More;

my $checkout = EntityApi::Test::checkout();
my $folder = EntityApi::Test::folder();
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster, metrics => 'true');

# -------- what there is: metric, its type, the values of its labels --------

my ($text, %type, %labels);
my $scrape = sub {
	$text = $shim->http(GET => '/actuator/prometheus')->{body};
	%type = $text =~ /^# TYPE (\w+) (\w+)$/mg;
	%labels = ();
	while ($text =~ /^(\w+)(?:\{(.*)\})? \S+$/mg)
	{
		my ($name, $pairs) = ($1, $2 // '');
		$labels{$name} //= {};
		$labels{$name}{$1}{$2} = 1 while $pairs =~ /(\w+)="([^"]*)"/g;
	}
	return 1;
};
$shim->tenant('acme-monitoring');
$shim->http(POST => '/auth/login', { json => { username => 'nobody', password => 'wrong' } });
my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $shim->port) or die "$!\n";
print $socket "GET /without-host HTTP/1.1\r\n\r\n";
ok(EntityApi::Test::wait_until(60, sub {
			$scrape->() && ($labels{entityapi_logins_total}{outcome} // {})->{failure} && $labels{entityapi_http_refused_total} }),
	'there are metrics');

# Prometheus adds these.
my %everywhere = map { $_ => 1 } qw(job instance);

# What is wrong with an expression of PromQL, and the metrics that it names
sub faults
{
	my ($expr) = @_;
	my (@faults, %used, %known);

	while ($expr =~ /\b((?:entityapi|process)_\w+)(?:\{([^}]*)\})?(\[)?/g)
	{
		my ($name, $matchers, $range) = ($1, $2 // '', $3);
		my $base = exists $type{$name} ? $name : $name =~ s/_(?:bucket|sum|count)$//r;

		$used{$base} = 1;
		push(@faults, "there is no $name"), next if !exists $type{$base};
		push @faults, "$name is a histogram" if $base eq $name && $type{$base} eq 'histogram';
		push @faults, "$name has no parts" if $base ne $name && $type{$base} ne 'histogram';
		push @faults, "$name is no counter" if $range && $type{$base} eq 'gauge';
		push @faults, "$name is a counter, and grows" if !$range && $type{$base} ne 'gauge';
		$known{$_} = 1 for keys %everywhere, keys %{ $labels{$name} // {} };
		while ($matchers =~ /(\w+)(=~|=|!=|!~)"([^"]*)"/g)
		{
			my ($label, $how, $value) = ($1, $2, $3);

			next if $everywhere{$label};
			push(@faults, "$name has no $label"), next if !$labels{$name}{$label};
			next if $how eq '=~' && $value =~ /\./;
			push @faults, "no $label of $name is $_" for grep { !$labels{$name}{$label}{$_} } split /\|/, $value;
		}
	}
	for my $list ($expr =~ /\bby \(([^)]*)\)/g)
	{
		push @faults, "by $_, which nothing has" for grep { !$known{$_} } split /, */, $list;
	}
	return (\@faults, \%used, \%known);
}

is("@{ (faults('rate(entityapi_https_total[5m])'))[0] }", 'there is no entityapi_https_total', 'a slip would be found');
is("@{ (faults('sum by (colour) (rate(entityapi_pool_size[5m]))'))[0] }", 'entityapi_pool_size is no counter by colour, which nothing has', 'others, too');
is("@{ (faults('entityapi_pool_connections{state=\"lost\"}'))[0] }", 'no state of entityapi_pool_connections is lost', 'and values');

# -------- the dashboard --------

my $dashboard = JSON::PP->new->decode(EntityApi::Test::slurp("$checkout/examples/monitoring/dashboard.json"));
my (%shown, %ids, %cells, @faults, @exprs);
for my $panel (@{ $dashboard->{panels} })
{
	my ($x, $y, $w, $h) = @{ $panel->{gridPos} }{qw(x y w h)};

	push @faults, "$panel->{title}: its id is taken" if $ids{ $panel->{id} }++;
	push @faults, "$panel->{title}: beyond the edge" if $x + $w > 24;
	push @faults, "$panel->{title}: over another" if grep { $cells{$_}++ } map { my $c = $_; map { "$c $_" } $y .. $y + $h - 1 } $x .. $x + $w - 1;
	next if $panel->{type} eq 'row';
	push @faults, "$panel->{title}: no data source" if $panel->{datasource}{uid} ne '${datasource}';
	push @faults, "$panel->{title}: asks nothing" if !@{ $panel->{targets} };
	for my $target (@{ $panel->{targets} })
	{
		my ($found, $used, $known) = faults($target->{expr});

		push @exprs, $target->{expr};
		push @faults, map { "$panel->{title}: $_" } @$found;
		push @faults, map { "$panel->{title}: legend of $_" } grep { !$known->{$_} } $target->{legendFormat} =~ /\{\{(\w+)\}\}/g;
		push @faults, "$panel->{title}: not of the chosen shims" if grep { index $_, 'job="$job",instance=~"$instance"' } $target->{expr} =~ /\{([^}]*)\}/g;
		$shown{$_} = 1 for keys %$used;
	}
}
is(join("\n", @faults), '', 'the dashboard asks for what there is');
is(join(' ', grep { !$shown{$_} } sort keys %type), '', 'and shows all that there is');
is(join(' ', map { $_->{name} } @{ $dashboard->{templating}{list} }), 'datasource job instance', 'of the shims that are chosen');

# -------- the alerts --------

my $alerts = EntityApi::Test::slurp("$checkout/examples/monitoring/alerts.yaml");
my %alert = $alerts =~ /^      - alert: (\w+)\n        expr: (.*?)\n        (?:for|labels):/msg;
cmp_ok(scalar keys %alert, '>', 5, 'there are alerts');
is(scalar keys %alert, scalar(() = $alerts =~ /- alert:/g), 'all are read');
for my $name (sort keys %alert)
{
	my $expr = $alert{$name} =~ s/^>-\s+|\s+(?=\n)//gr;
	my ($found) = faults($expr);

	push @exprs, $expr;
	is(join("\n", @$found), '', $name);
}
my ($job) = EntityApi::Test::slurp("$checkout/examples/monitoring/prometheus.yaml") =~ /job_name: (\w+)/;
like($alert{EntityapiDown}, qr/job="$job"/, 'of the job that is scraped');

SKIP:
{
	skip 'no promtool here', 2 if system('command -v promtool >/dev/null') != 0;
	my $run = EntityApi::Test::run([ qw(promtool check config), "$checkout/examples/monitoring/prometheus.yaml" ]);
	is($run->{status}, 0, 'Prometheus reads the rules') or diag $run->{out}, $run->{err};
	open my $out, '>', "$folder/rules.json" or die "$!\n";
	print $out JSON::PP->new->canonical->encode({ groups => [ { name => 'all', rules => [ map { { record => "x:$_", expr => $exprs[$_] =~ s/\$__rate_interval/5m/gr } } 0 .. $#exprs ] } ] });
	close $out;
	$run = EntityApi::Test::run([ qw(promtool check rules), "$folder/rules.json" ]);
	is($run->{status}, 0, 'and all expressions') or diag $run->{out}, $run->{err};
}

# -------- security.txt --------

subtest 'security.txt' => sub {
	my $path = '/.well-known/security.txt';
	my $write = sub {
		my ($content) = @_;

		open my $out, '>:raw', "$folder/security.txt" or die "$!\n";
		print $out $content;
		close $out;
		chmod 0644, "$folder/security.txt";
	};
	my $content = "Contact: mailto:security\@example.com\nExpires: 2030-01-01T00:00:00Z\n";

	is($shim->http(GET => $path)->{status}, 404, 'by default there is none');
	for my $wrong ("Expires: 2030-01-01T00:00:00Z\n", "Contact: x\n", "${content}Expires: 2031-01-01T00:00:00Z\n", "$content\xff\n", '')
	{
		$write->($wrong);
		my $run = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'), 'serve', '--print-config', '--security-txt', "$folder/security.txt" ]);
		is($run->{status}, 2, 'a file that is none stops the start');
		like($run->{err}, qr/security_txt: .*(?:must be UTF-8|not text)/, 'with a word');
	}
	$write->($content);
	my $own = EntityApi::Test->shim($cluster, security_txt => "$folder/security.txt", metrics => 'false');
	my $answer = $own->http(GET => $path);
	is($answer->{status}, 200, 'it is shown');
	is($answer->{body}, $content, 'as it is');
	is($answer->{headers}{'content-type'}, 'text/plain; charset=utf-8', 'as text');
	is($own->http(HEAD => $path)->{headers}{'content-length'}, length $content, 'HEAD');
	is($own->http(POST => $path, { json => {} })->{status}, 405, 'nobody writes it');
	is($own->http(GET => "$path/x")->{status}, 404, 'nothing below it');
	is($own->http(GET => '/actuator/prometheus')->{status}, 404, 'nor is anything else shown');
	is($own->http(GET => '/actuator/health')->{status}, 200, 'all else is as before');
	$write->($content =~ s/2030/2031/r);
	kill HUP => $own->pid;
	ok(EntityApi::Test::wait_until(30, sub { $own->http(GET => $path)->{body} =~ /2031/ }), 'SIGHUP reads it again');
};

done_testing;
