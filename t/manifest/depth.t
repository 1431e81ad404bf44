# Manifests and settings that are nested too deep are a fault, in each command
# that reads them: told with its place, and no end of the program, however small
# its stack is.

use strict;
use warnings;

use EntityApi::Test;
use Test::More;

my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');
my $cluster = EntityApi::Test->cluster;

sub put
{
	my ($name, $text) = @_;

	open my $out, '>', "$folder/$name" or die "$name: $!\n";
	print $out $text;
	close $out or die "$name: $!\n";
	return "$folder/$name";
}

# A program with a stack of 256 KB; its status and what it told.
sub run_small
{
	my $ran = EntityApi::Test::run([ 'sh', '-c', 'ulimit -s 256; exec "$@"', '-', $program, @_ ]);

	return ($ran->{status}, $ran->{out}, $ran->{err} =~ s/\Q$folder\E\///gr);
}

# -------- the documents --------

# So deep, with the value of a field of type json in it; its collections begin
# at the fifth level.
my $fields = 4;
my %forms = (
	json => sub {
		my ($n) = @_;
		my $value = '[' x ($n - $fields) . ']' x ($n - $fields);

		return qq({"apiVersion":"entityapi/v1","kind":"Entity","metadata":{"name":"Deep"},\n)
		  . qq("spec":{"fields":{"name":{"type":"string"},"extra":{"type":"json",\n"default":$value}}}});
	},
	yaml => sub {
		my ($n) = @_;

		return "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Deep}\nspec:\n  fields:\n    name: {type: string}\n"
		  . "    extra:\n      type: json\n      default: " . '[' x ($n - $fields) . ']' x ($n - $fields) . "\n";
	},
	'block.yaml' => sub {
		my ($n) = @_;

		return "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Deep}\nspec:\n  fields:\n    name: {type: string}\n"
		  . "    extra:\n      type: json\n      default:\n        " . '- ' x ($n - $fields) . "1\n";
	},
	# of anchors within each other
	'alias.yaml' => sub {
		my ($n) = @_;
		my $deep = $n - $fields - 1;
		my $half = int($deep / 2);

		return "apiVersion: entityapi/v1\nkind: Entity\nmetadata: {name: Deep}\nspec:\n  fields:\n    name: {type: string}\n"
		  . "    extra:\n      type: json\n      default:\n"
		  . "      - &half " . '[' x $half . ']' x $half . "\n      - " . '[' x ($deep - $half) . '*half' . ']' x ($deep - $half) . "\n";
	});

for my $form (sort keys %forms)
{
	for my $depth (63, 64, 65, 10_000, 1_000_000)
	{
		my $fine = $depth <= 64;
		my $file = put("$depth.$form", $form eq 'alias.yaml' && $depth > 65 ? chain($depth) : $forms{$form}->($depth));

		for my $command (qw(validate apply diff))
		{
			my @options = $command eq 'apply' ? ('--database', $cluster->conninfo, '--dry-run', $file) :
			  $command eq 'diff' ? ($file, $file) : $file;
			my ($status, $out, $err) = run_small($command, @options);

			is($status, $fine ? 0 : $command eq 'diff' ? 2 : 1, "$command $depth.$form") or diag $err;
			like($err, $fine ? qr/^(?:WARNING.*\n|HINT.*\n)*\z/ : qr/^\Q$depth.$form\E:\d+: nested deeper than 64$/m,
				$fine ? 'nothing is told' : 'which is told');
		}
	}
}

# Each anchor holds the one before, so the text is short and the depth is not.
sub chain
{
	my ($depth) = @_;
	my $text = "a0: &a0 [1]\n";
	my $links = $depth > 10_000 ? 200 : $depth / 50;

	for my $i (1 .. $links)
	{
		$text .= "a$i: &a$i " . '[' x 50 . "*a@{[ $i - 1 ]}" . ']' x 50 . "\n";
	}
	return $text;
}

subtest 'what is deep is served' => sub {
	$cluster->apply("$folder/64.json");
	my $shim = EntityApi::Test->shim($cluster);
	is($shim->http(GET => '/api/v1/openapi.json')->{status}, 200, 'described');
	is($shim->http(GET => '/api/v1/deeps')->{status}, 401, 'and loaded');
	is($shim->stop, 0, 'ends with 0');
};

# -------- forms that are no documents --------

for my $text ('[' x 1_000_000, '{"a":' x 1_000_000, '[{"a":' x 500_000, ']' x 10 . '[' x 1_000_000)
{
	for my $suffix (qw(json yaml))
	{
		my $file = put("other.$suffix", $text);

		for my $command ([ validate => $file ], [ diff => $file, $file ])
		{
			my ($status, undef, $err) = run_small(@$command);
			is($status, $command->[0] eq 'diff' ? 2 : 1, "$command->[0]: " . substr($text, 0, 12) . "... as $suffix is a fault");
			like($err, qr/^other\.$suffix:\d+: /, 'that is told');
		}
	}
}

# Many documents, one after the other, are not looked at again for each
{
	my $file = put('many.json', '{"kind":"Roles"}' x 50_000);
	my ($status, undef, $err) = run_small(validate => $file);
	is($status, 1, 'many documents');
}

# -------- settings --------

for my $case ([ 64 => 'unknown setting "deep"' ], [ 65 => 'nested deeper than 64' ], [ 10_000 => 'nested deeper than 64' ],
	[ 500_000 => 'nested deeper than 64' ])
{
	my ($depth, $what) = @$case;

	for my $closed (0, 1)
	{
		next if $depth == 64 && !$closed;
		my $file = put('settings.json', '{"deep":' . '[' x ($depth - 1) . (']' x ($depth - 1) . '}') x $closed);
		my ($status, undef, $err) = run_small('serve', '--config', $file);

		like($status, qr/^[12]\z/, "settings of $depth levels" . ($closed ? ' are' : ', not closed, are') . ' refused');
		like($err, qr/\Q$what\E/, 'as they are');
	}
}
{
	my ($status, undef, $err) = run_small('serve', '--config', put('settings.json', '{"a":"' . 'x' x (2 << 20) . '"}'));
	like($status, qr/^[12]\z/, 'settings that are too large are refused');
	like($err, qr/settings\.json: File too large/, 'as such');
}

done_testing;
