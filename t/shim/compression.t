# Answers in gzip: when, when not, and that they are the same.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use EntityApi::Test::StandIn;
use EntityApi::Test;
use IO::Uncompress::Gunzip qw(gunzip $GunzipError);
use Test::More;

my $cluster = EntityApi::Test::StandIn->cluster;
my $shim = EntityApi::Test->shim($cluster);

sub ask
{
	my ($target, $accept, %options) = @_;
	my $method = delete $options{method} // 'GET';
	my $to = delete $options{to} // $shim;

	$options{headers}{'Accept-Encoding'} = $accept if defined $accept;
	return $to->http($method => $target, \%options);
}

sub coding { return $_[0]{headers}{'content-encoding'} // 'none' }

sub unpacked
{
	my ($answer) = @_;
	my $body = $answer->{body};

	gunzip(\$body => \my $text) or die "not gzip: $GunzipError\n";
	return $text;
}

sub varies
{
	my ($answer) = @_;
	my $vary = $answer->{headers}{vary} // '';

	return (ref $vary ? join ', ', @$vary : $vary) =~ /\bAccept-Encoding\b/ ? 1 : 0;
}

subtest 'bodies' => sub {
	for my $size (1024, 1025, 65_536, 1_000_000, 5_000_000)
	{
		my $answer = ask("/big/$size", 'gzip');

		is(coding($answer), 'gzip', "$size bytes");
		ok(unpacked($answer) eq 'x' x $size, 'are the same');
		is($answer->{headers}{'content-length'}, length $answer->{body}, 'length of what is sent');
		is(varies($answer), 1, 'Vary');
	}
	for my $size (0, 1, 1023)
	{
		my $answer = ask("/big/$size", 'gzip');

		is(coding($answer), 'none', "$size bytes stay");
		is($answer->{body}, 'x' x $size, 'as they are');
		is(varies($answer), 0, 'so nothing varies');
	}
	is(coding(ask('/big/5000')), 'none', 'not unless asked');
	is(varies(ask('/big/5000')), 0, 'fit for everybody');

	my $noise = join '', map { chr(33 + int rand 90) } 1 .. 4000;
	my $echo = ask('/x', 'gzip', method => 'POST', body => $noise);
	is(coding($echo), 'gzip', 'noise');
	like(unpacked($echo), qr/"method": ?"POST"/, 'comes through');
};

subtest 'HEAD' => sub {
	my $get = ask('/big/5000', 'gzip');
	my $head = ask('/big/5000', 'gzip', method => 'HEAD');

	is($head->{body}, '', 'no body');
	delete $_->{headers}{date}, delete $_->{headers}{'x-request-id'} for $get, $head;
	is_deeply($head->{headers}, $get->{headers}, 'the headers of GET');
};

subtest 'Accept-Encoding' => sub {
	my @cases = (
		[ 'gzip',                         'gzip' ],
		[ 'GZip',                         'gzip' ],
		[ 'x-gzip',                       'gzip' ],
		[ 'br, gzip, deflate',            'gzip' ],
		[ 'deflate;q=0.9,gzip;q=0.1',     'gzip' ],
		[ ' gzip ; q=1.000 ',             'gzip' ],
		[ 'gzip; q=0.001',                'gzip' ],
		[ '*',                            'gzip' ],
		[ '*;q=0.5',                      'gzip' ],
		[ 'identity;q=0.5, gzip',         'gzip' ],
		[ 'identity, gzip',               'gzip' ],
		[ 'gzip, identity;q=0',           'gzip' ],
		[ 'identity;q=0, *',              'gzip' ],
		[ [ 'br', 'gzip' ],               'gzip' ],
		[ ',,gzip,,',                     'gzip' ],
		[ 'gzip;q=0',                     'none' ],
		[ 'gzip;q=0.000',                 'none' ],
		[ 'gzip;q=0, *',                  'none' ],
		[ '*;q=0',                        'none' ],
		[ 'identity, gzip;q=0.5',         'none' ],
		[ 'identity',                     'none' ],
		[ 'br, deflate',                  'none' ],
		[ 'gzipped',                      'none' ],
		[ 'gzi',                          'none' ],
		[ 'gzip;q=',                      'none' ],
		[ 'gzip;q=2',                     'none' ],
		[ 'gzip;q=1.001',                 'none' ],
		[ 'gzip;q=0.0001',                'none' ],
		[ 'gzip;q=-1',                    'none' ],
		[ 'gzip;q=x',                     'none' ],
		[ 'gzip;level=9',                 'none' ],
		[ 'gzip;',                        'none' ],
		[ ';',                            'none' ],
		[ ';q=1',                         'none' ],
		[ '=gzip',                        'none' ],
		[ 'gzip deflate',                 'none' ],
		[ '"gzip"',                       'none' ],
		[ 'gzip;q=0.5;q=1',               'none' ],
		[ join(',', ('br;q=0.5') x 1000), 'none' ]);

	for my $case (@cases)
	{
		my ($accept, $expected) = @$case;
		my $answer = ask('/big/5000', $accept);
		my $name = ref $accept ? join '; ', @$accept : $accept;

		is(coding($answer), $expected, substr $name, 0, 50);
		ok(($expected eq 'gzip' ? unpacked($answer) : $answer->{body}) eq 'x' x 5000, 'the same body');
	}
	is(coding(ask('/big/500', 'gzip, identity;q=0')), 'gzip', 'a small one, if it must be');
	is(coding(ask('/big/500', 'gzip, *;q=0')), 'gzip', 'said in another way');
};

subtest 'settings' => sub {
	my $off = EntityApi::Test->shim($cluster, compression => 'false');
	my $answer = ask('/big/5000', 'gzip', to => $off);

	is(coding($answer), 'none', 'off');
	is(varies($answer), 0, 'and then no Vary');
	my $small = EntityApi::Test->shim($cluster, compression_min => 100);
	is(coding(ask('/big/100', 'gzip', to => $small)), 'gzip', 'a smaller limit');
	is(coding(ask('/big/99', 'gzip', to => $small)), 'none', 'and below it');
};

subtest 'secrets and caches' => sub {
	my $real = EntityApi::Test->cluster;
	$real->apply(EntityApi::Test::checkout() . '/examples/billing');
	my $api = EntityApi::Test->shim($real, compression_min => 1, metrics => 'true');
	my $tenant = $api->tenant('acme');
	my $ann = $api->user($tenant->{id}, 'ann', ['Accountant']);
	my %secret = (
		login   => [ POST => '/auth/login', { json => { username => 'ann', password => $ann->{password} } } ],
		refused => [ POST => '/auth/login', { json => { username => 'ann', password => 'not this one' } } ],
		me      => [ GET => '/auth/me', { token => $ann } ],
		manage  => [ GET => '/manage/tenants', { token => $api->superadmin } ],
		metrics => [ GET => '/actuator/prometheus', {} ],
		health  => [ GET => '/actuator/health', {} ]);

	for my $name (sort keys %secret)
	{
		my ($method, $target, $options) = @{ $secret{$name} };
		my $answer = $api->http($method, $target, { %$options, headers => { 'Accept-Encoding' => 'gzip, identity;q=0' } });

		is($answer->{headers}{'cache-control'}, 'no-store', "$name: not to be stored");
		is(coding($answer), 'none', 'and not compressed');
	}

	my $create = sub {
		my ($type, %members) = @_;
		return $api->must(201, POST => "/api/v1/$type", { token => $ann, json => { data => { type => $type, %members } } })->{data}{id};
	};
	my $customer = $create->('customers', attributes => { name => 'A long name, ' x 4 });
	my $invoice = $create->('invoices', attributes => { number => 'I-1' },
		relationships => { customer => { data => { type => 'customers', id => $customer } } });
	my $target = "/api/v1/invoices/$invoice";
	my $plain = $api->http(GET => $target, { token => $ann });
	my $packed = $api->http(GET => $target, { token => $ann, headers => { 'Accept-Encoding' => 'gzip' } });

	is(coding($packed), 'gzip', 'a resource');
	is(unpacked($packed), $plain->{body}, 'is the same');
	is($packed->{headers}{etag}, $plain->{headers}{etag}, 'its ETag names the version, whatever the coding');
	is($plain->{headers}{etag}, '"0"', 'as it should be');
	my $again = $api->http(GET => "$target?fields[invoices]=number", { token => $ann,
			headers => { 'Accept-Encoding' => 'gzip', 'If-None-Match' => $packed->{headers}{etag} } });
	is($again->{status}, 304, 'so that it serves for If-None-Match');
	my $patched = $api->http(PATCH => $target, { token => $ann,
			headers => { 'Accept-Encoding' => 'gzip', 'If-Match' => $packed->{headers}{etag} },
			json => { data => { type => 'invoices', id => $invoice, attributes => { note => 'Other' } } } });
	is($patched->{status}, 200, 'and for If-Match');
	is(coding($patched), 'gzip', 'whose answer is compressed as well');
};

done_testing;
