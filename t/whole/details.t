# Details and titles of errors have one voice wherever they are written: in
# what is given to the functions that note them, in the shim's table, on pages
# and in examples.  What answers say is looked at by every test that gets them.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Details;
use EntityApi::Test::Pages;

my $checkout = EntityApi::Test::checkout();
my $string = qr/"(?:[^"\\]|\\.)*"/;

# Functions and macros that take a detail, and as which arguments
my %takes = (
	ea_errors_add   => [4],
	ea_errors_throw => [4],
	malformed       => [2],
	note_of         => [ 3, 4 ],
	REFUSAL         => [4]);

sub text { return EntityApi::Test::slurp("$checkout/$_[0]") }

# Sources without comments, with all lines
my %text = map { $_ => text($_) =~ s{/\*.*?\*/}{ $& =~ tr/\n//cdr }gesr =~ s/\\\n/ \n/gr }
  map { substr $_, length "$checkout/" } glob "$checkout/extension/*/*.[ch] $checkout/shim/*/*.[ch]";
my %macro = map { /^\#define (\w+)\s+($string(?:\s*$string)*)$/mg } values %text;

# The parts, with commas between them, of what goes on from there to its end
sub parts
{
	my ($text, $at, $between) = @_;
	my @parts = ('');
	my $depth = 0;

	pos($text) = $at;
	while ($text =~ /\G($string|'(?:[^'\\]|\\.)'|[^"'])/gs)
	{
		my $token = $1;

		last if $depth == 0 && $token =~ /^[);]/;
		$depth++ if $token =~ /^[({[]/;
		$depth-- if $token =~ /^[)}\]]/;
		if   ($depth == 0 && $token =~ ($between // qr/^,/)) { push @parts, '' }
		else                                                 { $parts[-1] .= $token }
	}
	return map { s/\A\s+|\s+\z//gr } @parts;
}

# What stands behind each place that a pattern finds, up to its end
sub behind
{
	my ($text, $pattern) = @_;
	my @found;

	push @found, join ', ', parts($text, pos $text) while $text =~ /$pattern/g;
	return @found;
}

sub joined
{
	my ($literals) = @_;

	return join('', map { substr $_, 1, -1 } $literals =~ /$string/g) =~ s/\\(.)/$1/gr;
}

# The texts that an expression may be: either of "?:", and formats; of a name,
# all that it is set to in that file; of a function, all that it returns.
sub texts
{
	my ($path, $expression, $depth) = @_;
	my $function = $expression =~ /\A(\w+)\s*\(/ ? $1 : undef;
	my @either = parts($expression, 0, qr/^[?:]/);

	$depth++;
	return joined($expression) if $expression =~ /\A$string(?:\s*$string)*\z/;
	return joined($macro{$expression}) if exists $macro{$expression};
	return () if $expression =~ /\A(?:NULL|0)\z/ || $depth > 6;
	return map { texts($path, $either[$_], $depth) } grep { $_ % 2 == 1 || $_ == $#either } 0 .. $#either
	  if @either > 1;
	return map { texts($path, $_, $depth) } (parts($expression, length "$function("))[0]
	  if ($function // '') eq 'psprintf';
	if (defined $function)
	{
		my ($where) = grep { $text{$_} =~ /^$function\(/m } $path, sort keys %text;

		return "an unknown $function()" if !defined $where;
		my ($body) = $text{$where} =~ /^$function\(.*?^\{(.*?)^\}/ms;
		return map { texts($where, $_, $depth) } behind($body, qr/\breturn\s+/);
	}
	return map { texts($path, $_, $depth) } grep { $_ ne $expression } behind($text{$path}, qr/\b$expression(?:\[\])?\s*=(?!=)\s*/)
	  if $expression =~ /\A\w+\z/;
	return "an unknown $expression";
}

# As an answer has it
sub filled
{
	my ($format) = @_;

	return $format =~ s/%z?[du]/20/gr =~ s/%s/x/gr;
}

# -------- the form itself --------

my %fault = (
	'The address is longer than 8192 bytes.'                                     => undef,
	'The query parameter "limit" is unknown (did you mean "page[size]"?).'       => undef,
	'The service is busy. Try again soon.'                                       => undef,
	'unknown query parameter "limit"'                                            => 'no capital letter at its beginning',
	'"name" must not be null.'                                                   => 'no capital letter at its beginning',
	'The field "name" must not be null'                                          => 'no full stop at its end',
	'Did you mean "page[size]"?'                                                 => 'no full stop at its end',
	'The cursor must be one of this list..'                                      => 'no full stop at its end',
	'Refused.'                                                                   => 'one word',
	'With asOf nothing can be included.'                                         => 'no subject at its beginning',
	"The request\nfailed."                                                       => 'a line break');
is(EntityApi::Test::Details::fault($_), $fault{$_}, $_) for sort keys %fault;
is(EntityApi::Test::Details::title_fault($_), undef, $_) for 'Not found', 'URI too long';
ok(EntityApi::Test::Details::title_fault($_), $_) for 'not found', 'Not found.', 'HTTP Version Not Supported', 'What it needs is deleted';

my $error = '{"id":"x","status":"400","code":"%s","title":"%s","detail":"%s"}';
is(join("\n", EntityApi::Test::Details::faults(join ',', map { sprintf $error, @$_ }
	[ INVALID_PAGE => 'Invalid page', 'page is wrong' ],
	[ INVALID_PAGE => 'invalid page', 'The \"page\" is wrong.' ],
	[ HOOK_REJECTED => 'Rejected by a hook', 'checkTotal hook rejected the request: too much' ],
	[ HOOK_REJECTED => 'Rejected by a hook', 'Too much.' ])),
	"INVALID_PAGE: page is wrong (no capital letter at its beginning)\n"
	  . "INVALID_PAGE: invalid page (no capital letter at its beginning, title)\n"
	  . 'HOOK_REJECTED: Too much. (not as told)', 'answers that have another one are found');

# -------- sources --------

my (@faults, %said);

for my $path (sort keys %text)
{
	while ($text{$path} =~ /\b(@{[ join '|', sort keys %takes ]})\s*\(/g)
	{
		my ($function, $line) = ($1, 1 + (substr($text{$path}, 0, $-[0]) =~ tr/\n//));
		my @given = parts($text{$path}, pos $text{$path});

		# its declaration, or words of the deployment
		next if grep { /\A(?:const char \*\w+|detail|\.\.\.)\z/ } @given[ @{ $takes{$function} } ];
		next if $given[1] =~ /\AEA_ERR_(?:HOOK_REJECTED|REFUSED_BY_TABLE)\z/ && "@given" =~ /\breason\b|\bmessage\b/;
		for my $at (@{ $takes{$function} })
		{
			my @texts = $given[$at] eq '"%s"' ? texts($path, $given[ $at + 1 ]) : texts($path, $given[$at]);

			for my $text (@texts)
			{
				my $fault = EntityApi::Test::Details::fault(filled($text));

				push @faults, "$path:$line: $text ($fault)" if $fault;
				$said{$text}++;
			}
		}
	}
}
is(join("\n", @faults), '', 'details are whole sentences');
cmp_ok(scalar keys %said, '>', 180, scalar(keys %said) . ' of them');
is(join("\n", grep { !$said{$_} } 'There is no such resource.', 'This role is not declared.', 'The member "op" must be "add", "update" or "remove".',
	'A password has %d to %d characters.', 'The refresh token is not valid.', 'The values are taken.', 'The service is busy. Try again soon.'),
	'', 'those among them that are not given as they are');

my @titles = (
	$text{'extension/request/errors.c'} =~ /\{\d+, "[A-Z_]+", "([^"]+)"\}/g,
	map { joined($_) } $text{'shim/base/refusal.h'} =~ /REFUSAL\(\w+, \d+, "[A-Z_]+",\s*($string)/g);
is(join("\n", map { my $fault = EntityApi::Test::Details::title_fault($_); $fault ? "$_ ($fault)" : () } @titles), '', 'titles are names');
cmp_ok(scalar @titles, '>', 70, scalar(@titles) . ' of them');

# -------- pages and examples --------

for my $path (EntityApi::Test::Pages::pages(), 'examples/nginx/entityapi.conf')
{
	my @details = map { s/\\(.)/$1/gr } text($path) =~ /"detail":"((?:[^"\\]|\\.)*)"/g;
	my @wrong = grep { EntityApi::Test::Details::fault($_) } @details;

	is(join("\n", @wrong), '', "$path: " . @details . ' details') if @details;
}

done_testing;
