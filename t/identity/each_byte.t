# Each byte of a token counts, and each byte of a text is looked at.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('library');
my $cluster = EntityApi::Test->cluster;
my $shim = EntityApi::Test->shim($cluster);
my $user = $shim->user($shim->tenant('bytes')->{id}, 'ann');
my $token = $user->{accessToken};
my $sql = '';

for my $i (0 .. length($token) - 1)
{
	my $c = substr $token, $i, 1;
	my $forged = $token;

	substr($forged, $i, 1) = $c eq 'A' ? 'Q' : $c eq 'Q' ? 'g' : 'A';
	$sql .= "select $i || ' ' || status from entityapi.handle('GET', '/auth/me', '{\"authorization\": \"Bearer $_\"}', null, null);\n" for $token, $forged;
}

my %status;
push @{ $status{ (split)[0] } }, (split)[1] for split /\n/, $cluster->psql($sql);
is_deeply([ grep { "@{ $status{$_} }" ne '200 401' } sort { $a <=> $b } keys %status ], [], 'no token with one character changed');

my @bad;
for my $at (0 .. 17)
{
	for (map({ [ 400, $_ ] } '%00', '%80', '%C3', '%FF', '%C0%80', '%ED%A0%80', '%F4%90%80%80'), map({ [ 200, $_ ] } '%C3%A9', '%F0%9F%98%80'))
	{
		my ($expected, $text) = @$_;
		my $status = $editor->call(GET => '/authors?filter=name==x' . 'a' x $at . $text . 'b' x (17 - $at))->{status};

		push @bad, "$at $text $status" if $status != $expected;
	}
}
is_deeply(\@bad, [], 'texts');

# The head of a message
for my $at (0 .. 17)
{
	for my $bad (qw(00 80 ff c3))
	{
		my $got = $cluster->try_psql("select entityapi.handle(convert_to('GET /nothing' || repeat('a', $at), 'UTF8') || '\\x$bad'::bytea || convert_to(repeat('b', 17 - $at) || E'\\n\\n', 'UTF8'))");
		like($got->{err}, qr/invalid byte sequence/, "$bad at $at");
	}
}

done_testing();
