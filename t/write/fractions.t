# Date-times are read as PostgreSQL reads them, to the microsecond, with up to 12 digits of a fraction, wherever one is
# read: thousands at random and on borders, written by the executor and without it, found again, and compared.
#
# ENTITYAPI_SEED repeats a run.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $seed = $ENV{ENTITYAPI_SEED} // int(time) ^ $$ << 8;
srand $seed;
note "ENTITYAPI_SEED=$seed";

my $json = JSON::PP->new->canonical;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my $cluster = EntityApi::Test->cluster;
my $limit = '2026-05-04T03:02:01.1234565Z';
my @documents = map { { apiVersion => 'entityapi/v1', %$_ } } (
	{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app' } },
	{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { Editor => undef } } },
	{ kind => 'Policy', metadata => { name => 'Early' }, spec => { expression => "#record.until <= '2026-01-01T00:00:00.000000500001Z'" } },
	{ kind => 'Entity', metadata => { name => 'Moment' }, spec => {
		system => ['createdAt'],
		fields => { at => { type => 'datetime' }, until => { type => 'datetime', default => '2025-01-01T00:00:00Z' },
			kept => { type => 'datetime', default => '2026-07-08T09:10:11.999999500001Z' },
			limited => { type => 'datetime', minimum => $limit, maximum => '2026-05-04T03:02:01.9999995Z' } },
		permissions => { Editor => [qw(create read update delete history)] }, policies => { Early => ['read'] } } });

# What apply says, and validate in the same words
sub applied
{
	my ($name, @list) = @_;
	my $file = EntityApi::Test::folder() . '/manifest.json';

	open my $out, '>', $file or die "$file: $!\n";
	print $out $json->encode(\@list);
	close $out;
	my $said = $cluster->try_apply($file)->{err};
	my $found = EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'), 'validate', $file ])->{err};

	s/^entityapi-shim \w+: //gm for $said, $found;
	is($found, $said, "$name: validate and apply agree");
	return $said;
}

is(applied('12 digits', @documents), '', 'digits of limits, defaults and policies');
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme')->{id};
my $ann = $shim->user($tenant, 'ann', ['Editor']);
my $ed = EntityApi::Test::Cases->new($shim, $ann, '/api/v1');

# -------- values --------

sub digits { return join '', map { int rand 10 } 1 .. $_[0] }

# The fraction that is so many picoseconds
sub fraction { return sprintf '%012d', $_[0] }

sub a_fraction
{
	my $which = rand;

	return digits(1 + int rand 12) if $which < 0.3;
	return digits(6) . '5' . '0' x int rand 6 if $which < 0.6;    # halves
	return fraction(int(rand 1e6) * 1e6 + 500_000 + int(rand 5) - 2) if $which < 0.8;
	return substr('9' x 12, 0, 7 + int rand 6) if $which < 0.85;
	return substr('999999' . (4, 49, 499999, 5, 500001, '500000')[ rand 6 ], 0, 12) if $which < 0.9;
	return substr('000000' . (4, 49, 499999, 5, 500001, '500000')[ rand 6 ], 0, 12) if $which < 0.95;
	return '0' x int(rand 12) . '1';
}

sub a_text
{
	my $year = rand() < 0.5 ? 1970 + int rand 100 : 2 + int rand 9997;
	my $zone = (map { sprintf '%s%02d:%02d', rand() < 0.5 ? '+' : '-', rand 15, rand 60 } 1)[0];

	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.%s%s', $year, 1 + rand 12, 1 + rand 28, rand 24, rand 60, rand 60, a_fraction(), rand() < 0.7 ? 'Z' : $zone;
}

my @texts = ((map { ("2026-12-31T23:59:59.$_" . 'Z', "1969-12-31T23:59:59.$_" . 'Z', "0001-01-01T00:00:00.$_" . 'Z') }
		qw(9999994 9999995 999999500001 999999499999 0000005 000000500001 0000015 0000025 1 100000000000 000000000001 999999999999)),
	'9999-12-31T23:59:59.9999994Z', (map { a_text() } 1 .. 3000));

# What PostgreSQL makes of them, in the form of answers
sub by_server
{
	my $list = join ',', map { "'$_'" } @_;
	my $text = $cluster->psql("set timezone = 'UTC'; select to_char(t::timestamptz, 'YYYY-MM-DD\"T\"HH24:MI:SS.US') from unnest(array[$list]) with ordinality u(t, i) order by i");

	return map { s/\.?0+$//r . 'Z' } map { /\./ ? $_ : "$_.0" } split /\n/, $text;
}

my %stored;
@stored{@texts} = by_server(@texts);
is(scalar(grep { !defined } @stored{@texts}), 0, 'PostgreSQL reads all');
cmp_ok(scalar(grep { $stored{$_} !~ /\./ } @texts), '>', 20, 'some become whole seconds');

sub operations
{
	my $answer = $shim->must(200, POST => '/api/v1/operations', { token => $ann, headers => { 'Content-Type' => $atomic, Accept => $atomic }, json => { 'atomic:operations' => [@_] } });
	return map { $_->{data} } @{ $answer->{'atomic:results'} };
}

sub differ
{
	my ($name, $texts, $made) = @_;
	my @wrong = grep { $made->[$_]{attributes}{at} ne $stored{ $texts->[$_] } } 0 .. $#$texts;

	is(scalar @wrong, 0, "$name: as PostgreSQL reads them")
	  or diag map { "$texts->[$_]: $made->[$_]{attributes}{at}, not $stored{ $texts->[$_] }\n" } @wrong[ 0 .. ($#wrong < 4 ? $#wrong : 4) ];
	return;
}

my @rows = map { operations(map { { op => 'add', data => { type => 'moments', attributes => { at => $_ } } } } @texts[ $_ * 500 .. ($_ * 500 + 499 > $#texts ? $#texts : $_ * 500 + 499) ]) } 0 .. $#texts / 500;
differ('created', \@texts, \@rows);

for my $way (qw(on off))
{
	$cluster->set('entityapi.direct_writes' => $way);
	my @some = (@texts[ 0 .. 36 ], map { $texts[ rand @texts ] } 1 .. 400);
	my @changed = operations(map { { op => 'update', data => { type => 'moments', id => $rows[$_]{id}, attributes => { at => $some[$_] } } } } 0 .. $#some);

	differ("changed, direct_writes = $way", \@some, \@changed);
	@changed = map { my $id = $rows[$_]{id};
		$ed->good(200, PATCH => "/moments/$id", data => { type => 'moments', id => $id, attributes => { at => $some[$_] } })->{json}{data} } 0 .. 60;
	differ("one by one, direct_writes = $way", [ @some[ 0 .. 60 ] ], \@changed);
	is($cluster->psql("set timezone = 'UTC'; select count(*) from app.moment where id in (" . join(',', map { "'$rows[$_]{id}'" } 0 .. 60) . ')'
				. " and to_char(at, 'YYYY-MM-DD\"T\"HH24:MI:SS.US') || 'Z' not in (" . join(',', map { my ($whole, $rest) = /^([^.]*?)(?:\.(\d+))?Z$/; "'$whole." . substr(($rest // '') . '000000', 0, 6) . "Z'" } @stored{ @some[ 0 .. 60 ] }) . ')'),
		0, "and so they are stored, direct_writes = $way");
}
$cluster->set('entityapi.direct_writes' => undef);

# -------- where else they are read --------

my $one = $ed->good(201, POST => '/moments', data => { type => 'moments', attributes => { until => '2026-01-01T00:00:00.000001Z' } })->{json}{data};
my $id = $one->{id};

sub literal { return $_[0] =~ s/\+/%2B/r }

subtest 'filters' => sub {
	my @wrong;

	for my $text (@texts[ 0 .. 36 ], map { $texts[ rand @texts ] } 1 .. 120)
	{
		$cluster->psql("update app.moment set at = '$text' where id = '$id'");
		my @found = map { scalar @{ $ed->good(200, GET => "/moments?filter=id==$id;at$_" . literal($text))->{json}{data} } } qw(== =lt= =ge=);

		push @wrong, "$text: @found" if "@found" ne '1 0 1';
	}
	is("@wrong", '', 'compare with what is stored');
	$ed->refused("$_ digits", 400, 'INVALID_FILTER', [ parameter => 'filter' ], GET => "/moments?filter=at=ge=2026-11-20T17:29:00." . '1' x $_ . 'Z') for 13, 20, 300;
	like($ed->call(GET => '/moments?filter=at==2026-11-20T17:29:00.1234567890123Z')->{body}, qr/must have at most 12 digits of a fraction of a second/, 'and told so');
	$ed->refused('beyond the last year', 400, 'INVALID_FILTER', undef, GET => '/moments?filter=at==9999-12-31T23:59:59.9999996Z');
};

subtest 'documents' => sub {
	for my $text ('2026-11-20T17:29:00.1234567890123Z', '2026-11-20T17:29:00.' . '0' x 13 . 'Z', '2026-11-20T17:29:00.' . '5' x 1000 . '+01:00', '9999-12-31T23:59:59.9999995Z', '2026-11-20T17:29:00.Z')
	{
		$ed->refused(substr($text, 0, 40), 400, 'INVALID_VALUE', [ pointer => '/data/attributes/at' ], POST => '/moments', data => { type => 'moments', attributes => { at => $text } });
	}
	like($ed->call(PATCH => "/moments/$id", data => { type => 'moments', id => $id, attributes => { at => '2026-11-20T17:29:00.1234567890123Z' } })->{body},
		qr/The field \\"at\\" must have at most 12 digits of a fraction of a second\./, 'told so');
	is($one->{attributes}{kept}, (by_server('2026-07-08T09:10:11.999999500001Z'))[0], 'a default');
	my ($low, $high) = by_server($limit, '2026-05-04T03:02:01.9999995Z');
	my $limited = sub { $ed->call(POST => '/moments', data => { type => 'moments', attributes => { limited => $_[0] } }) };
	is($limited->($_)->{status}, 201, "$_ is within") for $low, $limit, $high, '2026-05-04T03:02:01.1234565001Z';
	is($limited->($_)->{status}, 400, "$_ is beyond") for '2026-05-04T03:02:01.123455Z', '2026-05-04T03:02:01.1234554Z', '2026-05-04T03:02:02.0000006Z';

	# what the service keeps may be repeated
	my $repeat = sub { $ed->call(PATCH => "/moments/$id", data => { type => 'moments', id => $id, attributes => { createdAt => $_[0] } })->{status} };
	my ($whole, $rest) = $one->{attributes}{createdAt} =~ /^(.*?)(?:\.(\d+))?Z$/;
	my $six = substr(($rest // '') . '000000', 0, 6);
	is($repeat->("$whole.${six}4Z"), 200, 'another spelling of what is stored');
	is($repeat->("$whole.${six}6Z"), 400, 'another time');
};

subtest 'policies' => sub {
	my $shown = sub { $cluster->psql("update app.moment set until = '$_[0]' where id = '$id'"); $ed->call(GET => "/moments/$id")->{status} };

	is($shown->('2026-01-01T00:00:00.000001Z'), 200, 'the literal is rounded upwards');
	is($shown->('2026-01-01T00:00:00.000002Z'), 404, 'to the nearest');
	$cluster->psql("update app.moment set until = '2025-01-01T00:00:00Z' where id = '$id'");
};

subtest 'asOf' => sub {
	my $id = $ed->good(201, POST => '/moments', data => { type => 'moments' })->{json}{data}{id};
	my $seen = sub { $ed->call(GET => "/moments/$id?asOf=$_[0]")->{status} };
	my ($second, $before) = split /\|/, $cluster->psql("set timezone = 'UTC'; select to_char(t, 'YYYY-MM-DD\"T\"HH24:MI:SS.US') || '|' || to_char(t - interval '1 us', 'YYYY-MM-DD\"T\"HH24:MI:SS.US') from (select created_at as t from app.moment where id = '$id') m");

	is($seen->("$second${_}Z"), 200, "created, and $_ of a microsecond") for '', '000001', '4', '499999';
	is($seen->("$before${_}Z"), 404, "before, and $_ of a microsecond") for '', '4';
	is($seen->("$before${_}Z"), 200, "before, and $_ of a microsecond") for '6', '500001', '999999';
	my ($rounded) = by_server("${before}5Z");
	is($seen->("${before}5Z"), $seen->($rounded), 'a half');
	$ed->refused('too many digits', 400, 'INVALID_PARAMETER', [ parameter => 'asOf' ], GET => "/moments/$id?asOf=${second}0000000Z");
};

subtest 'accounts and their log' => sub {
	my $root = $ed->as($shim->superadmin);
	my $made = $ann->{id};

	$cluster->psql("update entityapi.account set created_at = '2026-02-03T04:05:06.123456Z' where id = '$made'");
	my $of = sub { my ($list, $name, $text) = @_; $root->call(GET => "/manage/tenants/$tenant/$list?filter=$name==$text") };
	is(scalar @{ $of->(users => createdAt => "2026-02-03T04:05:06.123456${_}Z")->{json}{data} // [] }, 1, "a list, and $_") for '', '4', '499999';
	is($of->(users => createdAt => '2026-02-03T04:05:06.1234560000001Z')->{status}, 400, 'a list, 13 digits');
	is($root->call(GET => '/manage/audit?filter=at=ge=2026-02-03T04:05:06.' . '1' x $_ . 'Z')->{status}, $_ > 12 ? 400 : 200, "the log, $_ digits") for 7, 12, 13;
	my $key = sub { $ed->call(POST => '/auth/me/api-keys', json => { name => 'k', expiresAt => $_[0] }) };
	my ($soon) = $cluster->psql("set timezone = 'UTC'; select to_char(now() + interval '1 day', 'YYYY-MM-DD\"T\"HH24:MI:SS')");
	is($key->("$soon.1234566Z")->{json}{expiresAt}, "$soon.123457Z", 'a key');
	is($key->("$soon.1234566000000Z")->{status}, 400, 'a key, 13 digits');
};

subtest 'manifests' => sub {
	my $field = $documents[-1]{spec}{fields}{kept};
	my $expression = \$documents[2]{spec}{expression};
	my $long = '2026-07-08T09:10:11.9999995000010Z';

	local $field->{default} = $long;
	like(applied('13 digits', @documents), qr{/spec/fields/kept/default: must have at most 12 digits of a fraction of a second}, 'a default');
	$field->{default} = '2026-07-08T09:10:11Z';
	$$expression = "#record.until < '$long'";
	like(applied('13 digits, a policy', @documents), qr{/spec/expression: the text is not a date-time}, 'a policy');
};

done_testing();
