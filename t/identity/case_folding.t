# Names and common passwords are compared by Unicode's simple case folding, of
# every character, as perl has it.

use strict;
use warnings;
use utf8;

use Test::More;
use Unicode::Normalize qw(NFC);
use Unicode::UCD ();

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $admin = $shim->superadmin;
my $tenant = $shim->tenant('acme');

# What CaseFolding.txt says, status C and S
my $folds = Unicode::UCD::all_casefolds();

sub folded
{
	my $text = NFC($_[0]);

	$text =~ s/(.)/my $to = $folds->{ord $1}{simple} || ''; $to eq '' ? $1 : chr hex $to/ges;
	return NFC($text);
}

sub shown
{
	return join '', map { ord > 126 ? sprintf '{%x}', ord : $_ } split //, $_[0];
}

my $version = Unicode::UCD::UnicodeVersion();
my ($table) = EntityApi::Test::slurp("$checkout/extension/identity/case_folding.h") =~ /Unicode ([\d.]+)\./;
my ($names) = EntityApi::Test::slurp("$checkout/extension/identity/username_chars.h") =~ /Unicode ([\d.]+)\./;

is($table, $names, 'the tables of characters and of their case are of one Unicode');

SKIP:
{
	skip "the table is of Unicode $table, and this perl has $version", 2 if $version ne $table;
	is(system("cd '$checkout' && scripts/edit/case-folding --check"), 0, 'the table is what the script writes');

	my $moved = $cluster->psql(q{select string_agg(to_hex(c) || ':' || upper(encode(convert_to(entityapi.fold_case(chr(c)), 'UTF8'), 'hex')), ' ' order by c)
		from (select generate_series(1, x'1ffff'::int) except select generate_series(x'd800'::int, x'dfff'::int)) a (c)
		where entityapi.fold_case(chr(c)) <> chr(c)});
	my @expected;

	for my $code (1 .. 0xD7FF, 0xE000 .. 0x1FFFF)
	{
		no warnings 'nonchar';
		my $char = chr $code;
		my $text = folded($char);

		next if $text eq $char;
		utf8::encode($text);
		push @expected, sprintf '%x:%s', $code, uc unpack 'H*', $text;
	}
	cmp_ok(scalar @expected, '>', 2000, 'characters that change');
	my %is = map { split /:/ } split / /, $moved;
	my %should = map { split /:/ } @expected;
	my @wrong = grep { ($is{$_} // '') ne ($should{$_} // '') } sort keys %{ { %is, %should } };
	is("@wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]", '', 'each as Unicode has it');
}

is($cluster->psql(q{select count(*) from (select generate_series(1, x'd7ff'::int)) a (c), unnest(array['', chr(769), chr(775), chr(837), chr(803) || chr(837)]) mark,
	lateral (select entityapi.fold_case(chr(c) || mark)) o (once) where entityapi.fold_case(once) <> once}), 0, 'twice is once');

# Each with its other spellings, and with what is somebody else
for (
	[ "\x{130}stanbul", ["I\x{307}stanbul"], [qw(istanbul), "\x{131}stanbul"] ],
	[ 'titi', [qw(TITI Titi)], ["t\x{131}t\x{131}"] ],
	[ "stra\N{U+df}e", ["STRA\x{1e9e}E"], ['strasse'] ],
	[ "\x{3bf}\x{3b4}\x{3bf}\x{3c2}", ["\x{39f}\x{394}\x{39f}\x{3a3}", "\x{3bf}\x{3b4}\x{3bf}\x{3c3}"], [] ],
	[ "j\N{U+ec}m", ["J\N{U+cc}M", "JI\x{300}M", "ji\x{300}m"], ['jim'] ],
	[ "\N{U+b5}m", ["\x{3bc}m", "\x{39c}M"], ['um'] ],
	[ "\x{10428}x", ["\x{10400}X"], [] ])
{
	my ($name, $same, $other) = @$_;
	my $create = sub { $shim->http(POST => "/manage/tenants/$tenant->{id}/users", { token => $admin, json => { username => $_[0] } })->{status} };

	is($create->($name), 201, 'a user ' . shown($name));
	is($create->($_), 409, 'the same as ' . shown($_)) for @$same;
	is($create->($_), 201, 'not the same as ' . shown($_)) for @$other;
}

subtest 'common passwords' => sub {
	$cluster->psql("insert into entityapi.common_password values (entityapi.fold_case('Unser \N{U+c4}rger 1234'))");
	my $fault = sub {
		my $answer = $shim->http(POST => "/manage/tenants/$tenant->{id}/users", { token => $admin, json => { username => 'somebody', temporaryPassword => $_[0] } });
		return $answer->{status} == 400 ? $answer->{json}{errors}[0]{code} : $answer->{status};
	};
	is($fault->($_), 'WEAK_PASSWORD', shown($_)) for "unser \N{U+e4}rger 1234", "UNSER A\x{308}RGER 1234", '1234567890QWERTYUIOP';
	is($fault->("unser arger 1234"), 201, 'another one');
};

like($cluster->try_psql(q{select entityapi.fold_case(repeat('x', 2049))})->{err}, qr/no longer than 2048 bytes/, 'there is an end');

done_testing();
