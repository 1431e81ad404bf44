# Regular expressions without a server: entityapi-shim validate takes what the
# server takes, refuses what it refuses in the same words, and finds in texts
# what it finds.  Thousands of random ones.
#
# They are always the same: among any others there may be one that PostgreSQL
# compiles for minutes.  ENTITYAPI_SEED makes others, ENTITYAPI_PATTERNS says how
# many there are; a failure prints its seed.

use strict;
use warnings;
use utf8;

use Encode ();
use JSON::PP ();
use Test::More;

use EntityApi::Test;

my $count = $ENV{ENTITYAPI_PATTERNS} // 10_000;
my $each = 1000;				# fields of one entity
my $seed = $ENV{ENTITYAPI_SEED} // 20_261_126;
srand $seed;
binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);

my $json = JSON::PP->new->canonical;
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');
my $cluster = EntityApi::Test->cluster(bare => 1);

# -------- what is asked --------

my @letters = ('a', 'a', 'b', 'B', 'A', '1', '_', '-', ' ', "\n", 'ä', 'Ä', '.', '0');
my @classes = qw(alnum alpha ascii blank cntrl digit graph lower print punct space upper xdigit word);
my @names = (qw(a - . ] alert NUL newline space hyphen zero left-brace low-line DEL nothing), '', 'ä', 'aa');
my @escapes = (qw(\d \D \s \S \w \W \n \t \. \\\\ \* \a \B \e \f \v \r \cA \u0061 \U00000061 \x61 \x0061 \x \u12 \0 \061 \101 \141 \777
	\q \z \i), '\\ä', '\\-', '\\]');
my @places = ('^', '$', '\A', '\Z', '\m', '\M', '\y', '\Y', '[[:<:]]', '[[:>:]]');
my @noise = split //, '()[]{}|*+?.^$\\,-:=!<>#1290abexiq ' . "\n";

sub one_of { return $_[ rand @_ ] }
sub chance { return rand() < $_[0] }

sub bracket_part
{
	return one_of(
		sub { one_of(@letters) }, sub { one_of(@letters) },
		sub { one_of(@letters, '+', '!') . '-' . one_of(@letters, 'z', '~') },
		sub { '[:' . one_of(@classes, @classes, 'nothing', '') . ':]' },
		sub { '[.' . one_of(@names) . '.]' . (chance(0.3) ? '-' . one_of('z', '[.z.]', '[=z=]') : '') },
		sub { '[=' . one_of(@names) . '=]' },
		sub { one_of(@escapes, '\m', '\1') },
		sub { one_of('-', '[', '^', ']', '\\') })->();
}

sub bracket
{
	return '[' . (chance(0.3) ? '^' : '') . (chance(0.05) ? ']' : '') . join('', map { bracket_part() } 1 .. 1 + rand 3) . (chance(0.98) ? ']' : '');
}

sub quantifier
{
	my $most = int rand 4;

	return one_of('*', '+', '?', '*?', '+?', '??', "{$most}", "{$most,}", "{$most,@{[ $most + int rand 3 ]}}", "{$most,5}?", '{0}', '{0,0}')
	  if chance(0.95);
	return one_of('{2,1}', '{255}', '{256}', '{0255}', '{1,256}', '{1', '{1', '{1,', '{1,', '{1,a}', '{,1}', '{a}', '{ 1}', '**', '+*');
}

sub atom
{
	my ($depth) = @_;
	my @kinds = (
		sub { one_of(@letters) }, sub { one_of(@letters) }, sub { one_of(@letters) }, sub { '.' },
		sub { bracket() }, sub { one_of(@escapes) }, sub { '\\' . one_of(1, 1, 1, 2, 3, 10, 11) });

	push @kinds, (sub { '(' . choice($depth - 1) . ')' }) x 3, (sub { '(?:' . choice($depth - 1) . ')' }) x 2
	  if $depth > 0;
	return one_of(@kinds)->();
}

sub item
{
	my ($depth) = @_;

	return one_of(@places) if chance(0.1);
	return '(?' . one_of('=', '!', '<=', '<!') . choice($depth - 1) . ')' if $depth > 0 && chance(0.06);
	return '(?#' . one_of('x', '', '(') . ')' if chance(0.02);
	return atom($depth) . (chance(0.35) ? quantifier() : '');
}

sub choice
{
	my ($depth) = @_;

	return join '|', map { join '', map { item($depth) } 1 .. int rand 4 } 1 .. (chance(0.25) ? 2 + int rand 2 : 1);
}

sub prefix
{
	return '' if chance(0.75);
	return one_of('***:', '***=', '***?', '***', '***a', '') . (chance(0.8) ? '(?' . join('', map { one_of(qw(b c e i i m n p q s t w x x k)) } 1 .. 1 + rand 2)
		  . (chance(0.97) ? ')' : '') : '');
}

sub pattern
{
	my $text = prefix() . choice(3);

	for (1 .. (chance(0.25) ? 1 + int rand 2 : 0))
	{
		my $at = int rand 1 + length $text;

		substr($text, $at, chance(0.5) ? 1 : 0) = chance(0.7) ? one_of(@noise) : ''
		  if $at < length $text || chance(0.5);
	}
	# basic expressions have backslashes where others have none
	$text =~ s/[(){}]/\\$&/g if $text =~ /^\(\?b/ && chance(0.7) && $text =~ s/^\(\?(b\w*)\)/ /;
	return $text eq '' ? 'a' : $text;
}

sub text { return join '', map { one_of(@letters) } 1 .. int rand 7 }

my @fixed = ('(a)(b)\2\1', '\10', '(a)\10', '((a)|b)*\2', '(a*)*\1b', '(?=(a))\1', 'a{255}{255}', '(((a{255}){255}){255}){255}', '***', '***=',
	'(' x 50 . ')' x 50, '[', '[a', '[]', '[]a]', '[^]a]', '[a-]', '[--/]', '[a\]b]', 'a\\', '(?', '(?<', '(?<a)', 'x**', '(?i)[A-Z]ä', '(?x) a # b', ')', '(?e))',
	'(?e)a)', '(?b)a\{1,2\}', '(?b)\(a\)\1', '(?b)^*a', '(?b)a\{1', '(?n)^a$', '(?w)a.b$', '(?p)a.b$', '(?q)a(b', '[[:<:]a]');
my @patterns = (@fixed, map { pattern() } @fixed + 1 .. $count);
my @texts;
for (@patterns)
{
	my %texts = map { text() => 1 } 1 .. 3;
	push @texts, [ sort keys %texts ];
}

# -------- what the server says --------

$cluster->psql(<<~'SQL');
	create table asked (n int, pattern text, texts text[]);
	create function verdict(pattern text, texts text[]) returns jsonb language plpgsql as $$
	declare
		text text;
		found jsonb := '[]';
	begin
		foreach text in array texts loop
			found := found || to_jsonb(text ~ pattern);
		end loop;
		return found;
	exception when invalid_regular_expression then
		return to_jsonb(replace(sqlerrm, 'invalid regular expression: ', ''));
	end $$;
	SQL

my @server;
for (my $from = 0; $from < @patterns; $from += $each)
{
	my @part = grep { $_ < @patterns } $from .. $from + $each - 1;
	my $asked = $json->encode([ map { [ $patterns[$_], $texts[$_] ] } @part ]);

	push @server, @{ $json->decode($cluster->psql(<<~SQL)) };
		select jsonb_agg(verdict(a->>0, array(select jsonb_array_elements_text(a->1))) order by n)
		from jsonb_array_elements(\$asked\$$asked\$asked\$) with ordinality e (a, n);
		SQL
}

# -------- what validate says --------

my @documents;
for my $n (0 .. $#patterns)
{
	push @documents, { apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => 'E' . @documents }, spec => { fields => {} } }
	  if $n % $each == 0;
	$documents[-1]{spec}{fields}{"f$n"} = { type => 'text', pattern => $patterns[$n], enum => $texts[$n] };
}
open my $file, '>:raw', "$folder/patterns.json" or die;
print $file Encode::encode('UTF-8', $json->encode(\@documents));
close $file;
my $run = EntityApi::Test::run([ $program, 'validate', "$folder/patterns.json" ], env => { ENTITYAPI_DATABASE => 'host=/nowhere' });
is($run->{status}, 1, 'there are faults');

my @found = map { [ (1) x @$_ ] } @texts;
my @others;
for (split /(?<=\n)(?=[^\n]*#\d+: \/)/, Encode::decode('UTF-8', $run->{err}))
{
	if (/#\d+: \/spec\/fields\/f(\d+)\/pattern: (.*) \(a POSIX regular expression\)\n\z/) { $found[$1] = $2 }
	elsif (/#\d+: \/spec\/fields\/f(\d+)\/enum\/(\d+): must match the pattern /) { $found[$1][$2] = 0 if ref $found[$1] }
	else { push @others, $_ }
}
is_deeply(\@others, [], 'no others');

# -------- and both --------

my %seen;
my $unruly = 0;
my @differ;
for my $n (0 .. $#patterns)
{
	my ($says, $expected) = map { ref $_ ? join ' ', map { $_ ? 'yes' : 'no' } @$_ : $_ } $found[$n], $server[$n];

	$seen{$_}++ for ref $server[$n] ? map { $_ ? 'yes' : 'no' } @{ $server[$n] } : $server[$n];
	# how large an automaton the server makes is known to nobody else, as where empty things are repeated
	next if $n >= @fixed && $expected =~ /regular expression is too complex\z/ && ref $found[$n];
	next if $says eq $expected;
	# what a back reference to something empty finds in a loop, or at the end, has no rule but the server's code
	next if ref $server[$n] && ref $found[$n] && $patterns[$n] =~ /\\[1-9]/ && ++$unruly <= $count / 500;
	push @differ, "$patterns[$n] over " . $json->encode($texts[$n]) . ": validate: $says, server: $expected";
}
is(join("\n", @differ[ 0 .. ($#differ > 20 ? 20 : $#differ) ]), '', 'the same of all patterns') or diag scalar(@differ) . " differ, ENTITYAPI_SEED=$seed";
note "$seen{$_} $_" for sort { $seen{$b} <=> $seen{$a} } keys %seen;
cmp_ok($seen{$_} // 0, '>', $count / 5000, "some: $_")
  for qw(yes no), 'brackets [] not balanced', 'parentheses () not balanced', 'braces {} not balanced', 'invalid repetition count(s)',
  'invalid escape \ sequence', 'invalid backreference number', 'invalid character class', 'invalid collating element', 'invalid character range',
  'quantifier operand invalid', 'invalid embedded option';

done_testing();
