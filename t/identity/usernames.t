# Names hold what can be seen, by Unicode's properties.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('acme');
my $users = "/manage/tenants/$tenant->{id}/users";
my $admin = $shim->superadmin;

sub create
{
	my ($name) = @_;
	return $shim->http(POST => $users, { token => $admin, json => { username => $name } });
}

# Every code point against the properties that this perl knows, as far as the
# table's Unicode is its own.
subtest 'the table' => sub {
	require Unicode::UCD;
	my $text = EntityApi::Test::slurp("$checkout/extension/identity/username_chars.h");
	my ($version) = $text =~ /Unicode ([\d.]+)\./ or die "no version\n";
	my $own = Unicode::UCD::UnicodeVersion();
	my %blank = map { $_ => 1 } 0x2800, 0x1D159, 0x16FE4;
	my ($last, $allowed) = (-1, '');

	while ($text =~ /\{0x(\w+), 0x(\w+)\}/g)
	{
		my ($first, $end) = map { hex } $1, $2;

		fail("$1 is out of order") if $first <= $last || $end < $first;
		vec($allowed, $_, 1) = 1 for $first .. $end;
		$last = $end;
	}
	plan skip_all => "it is of Unicode $version, and this perl has $own" if $version ne $own;
	my @wrong;
	for my $code (0 .. 0xD7FF, 0xE000 .. 0x10FFFF)
	{
		no warnings 'nonchar';
		my $char = chr $code;
		my $hidden = $blank{$code} || $char =~ /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/
		  || $char =~ /\p{Default_Ignorable_Code_Point}/ || ($char =~ /\p{Zs}/ && $code != 0x20);

		push @wrong, sprintf 'U+%04X', $code if !!vec($allowed, $code, 1) == !!$hidden;
	}
	is("@wrong[0 .. ($#wrong > 9 ? 9 : $#wrong)]", '', 'is what the properties say');
	is(system("cd '$checkout' && scripts/edit/username-chars --check"), 0, 'and what the script writes');
};

subtest 'what cannot be seen' => sub {
	my %hidden = (
		'a joiner' => 0x034F, 'a variation selector' => 0xFE0F, 'a filler' => 0x3164, 'a narrow filler' => 0xFFA0,
		'a leading filler' => 0x1160, 'an inherent vowel' => 0x17B4, 'a Mongolian selector' => 0x180B,
		'a blank pattern' => 0x2800, 'a format of music' => 0x1D173, 'a late selector' => 0xE01EF,
		'a private one' => 0xE000, 'an unassigned one' => 0x3FFFD, 'a tag' => 0xE0041, 'no break' => 0x00A0,
		'an empty note' => 0x1D159, 'a line' => 0x2028, 'a paragraph' => 0x2029, 'delete' => 0x7F);

	for my $name (sort keys %hidden)
	{
		my $answer = create('boss' . chr($hidden{$name}) . 'x');

		is($answer->{status}, 400, $name);
		is($answer->{json}{errors}[0]{source}{pointer}, '/username', 'there');
	}
	is(create("boss \x{e9}\x{4e2d}\x{1F600}-_.@")->{status}, 201, 'what can is taken');
};

subtest 'case and composition make no second user, width does' => sub {
	is(create("caf\x{e9}")->{status}, 201, 'one');
	is(create($_)->{status}, 409, 'the same')
	  for "CAF\x{c9}", "cafe\x{301}", " caf\x{e9} ";
	is(create("caf\x{ff45}")->{status}, 201, 'another');

	my ($whole, $parts) = ("\x{1f82}" x 128, "\x{3b1}\x{313}\x{300}\x{345}" x 128);
	my $made = create($whole);

	is($made->{status}, 201, 'the longest');
	is(create($parts)->{status}, 409, 'which is the same in as many parts as there are');
	is($shim->http(POST => '/auth/login', { json => { username => $_, password => $made->{json}{temporaryPassword} } })->{status}, 200, 'and logs in')
	  for $whole, $parts;
	is(create($_)->{status}, 400, 'a longer one is none') for "$parts\x{3b1}", "a\x{301}\x{323}" x 600;
};

subtest 'names that were taken before' => sub {
	my $old = $shim->user($tenant->{id}, 'carl', []);

	# as version 1.1 had it
	$cluster->psql("update entityapi.account set username = U&'ca\\200brl\\FF21', username_key = U&'ca\\200brl\\FF41'"
		  . " where username = 'carl'");
	is($shim->http(POST => '/auth/login', { json => { username => "CA\x{200b}RL\x{FF21}", password => $old->{password} } })
		  ->{status}, 200, 'still log in');
};

done_testing();
