# Call the extension's SQL functions with generated arguments, and send
# generated messages, as who may do so: every error is one that tells of the
# arguments, and the backend goes on.
#
# Not one of "make test"; "make fuzz" runs it on sanitized builds, and so does
# FUZZ_SECONDS=60 make test TESTS=t/tools/fuzz/functions.t (or FUZZ_COUNT, FUZZ_SEED).

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Corpus;
use EntityApi::Test;

my $seconds = $ENV{FUZZ_SECONDS} || 0;
my $count = $ENV{FUZZ_COUNT} || ($seconds ? 0 : 5000);
my $seed = $ENV{FUZZ_SEED} || time;
srand $seed;
diag("seed $seed");

my $json = JSON::PP->new->canonical->allow_nonref;
my $cluster = EntityApi::Test->cluster;
$cluster->apply(EntityApi::Test::checkout() . '/t/data/entities');

sub any { return $_[ rand @_ ] }

# The documents that are applied, as the shim would send them
my $documents = $json->decode($cluster->psql('select documents from entityapi.revision order by revision desc limit 1'));
my %corpus = map { $_ => [ EntityApi::Corpus::inputs($_) ] } qw(rsql policy message jsonread);

my @words = (undef, JSON::PP::true, 0, -1, 1.5, '', 'x', 'string', 'ref', 'ManyToOne', 'Specimen', 'Person', 'Editor',
	'read', 'POOL', 'SINGLE', 'entity', "it's", '"', "\x{e9}", 'a' x 100, 'select', 'tenantId', '^[a-z', '#user.superAdmin',
	"#record.name == 'x'", [], {}, ['x'], { x => 1 });

sub mutated
{
	my ($node) = @_;

	return any(@words) if !ref $node || JSON::PP::is_bool($node) || rand() < 0.05;
	if (ref $node eq 'ARRAY')
	{
		my @copy = @$node or return [ any(@words) ];
		my $at = int rand @copy;
		$copy[$at] = mutated($copy[$at]);
		return \@copy;
	}
	my %copy = %$node;
	my $name = any(sort keys %copy) // return { x => any(@words) };
	my $way = rand;
	if ($way < 0.12) { delete $copy{$name} }
	elsif ($way < 0.24) { $copy{ any($name, qw(type target mappedBy required unique default enum maximum policies hooks table column renamedFrom)) } = any(@words) }
	else { $copy{$name} = mutated($copy{$name}) }
	return \%copy;
}

sub spoiled
{
	my ($bytes) = @_;

	substr($bytes, rand(1 + length $bytes), any(0, 1, 3)) = any('', "\x01", "\xff", '[', '"', ',', '(', '==', "\n", ' ')
	  for 0 .. rand 3;
	return $bytes;
}

sub text
{
	my ($text) = @_;

	return 'null' unless defined $text;
	$text =~ tr/\0-\x08\x7f-\xff/?/ if !utf8::is_utf8($text);
	$text =~ s/([\\'])/$1$1/g;
	return "E'$text'";
}

sub bytes { return "'\\x" . unpack('H*', $_[0]) . "'::bytea" }

# Of each type: values as SQL writes them
my %of_type = (
	text => sub { text(any(map({ spoiled(any(@{ $corpus{$_} })) } qw(rsql policy)), map { ref ? 'x' : $_ } @words)) },
	map({ my $type = $_; ($type => sub { text($json->encode(rand() < 0.7 ? mutated($documents) : any(@words))) . "::$type" }) } qw(json jsonb)),
	bytea => sub { bytes(spoiled(any(@{ $corpus{message} }, @{ $corpus{jsonread} }))) },
	inet => sub { any("'127.0.0.1'", "'::ffff:192.0.2.1'", 'null', "'10.0.0.0/8'") . '::inet' },
	uuid => sub { any("'01980000-0000-7000-8000-000000000000'", 'null', 'gen_random_uuid()') . '::uuid' },
	boolean => sub { any(qw(true false null)) },
	integer => sub { any(qw(0 1 -1 2147483647 -2147483648 null)) . '::integer' },
	bigint => sub { any(qw(0 1 -1 9223372036854775807 null)) . '::bigint' },
	interval => sub { any("'1 day'", "'-1 day'", "'infinity'", "'178000000 years'", 'null') =~ s/'infinity'/'1 s'/r . '::interval' },
	timestamptz => sub { any("'infinity'", "'-infinity'", "'2026-01-01'", "'294276-12-31'", 'null') . '::timestamptz' },
	'text[]' => sub { any("'{}'", "'{a,NULL}'", 'null', "'{{a,b},{c,d}}'", "array['Editor']") . '::text[]' });
$of_type{'timestamp with time zone'} = $of_type{timestamptz};

# All functions of the extension that take arguments of these types
my @functions = grep {
	my $types = $_->[1];
	!grep { !$of_type{$_} } @$types
} map { [ (split /\|/)[0], [ split /;/, (split /\|/)[1] // '' ] ] } split /\n/, $cluster->psql(<<~'SQL');
	select p.oid::regproc || '|' || array_to_string(array(select format_type(t, null) from unnest(p.proargtypes) t), ';')
	from pg_proc p join pg_depend d on d.objid = p.oid and d.classid = 'pg_proc'::regclass and d.deptype = 'e'
		join pg_extension e on e.oid = d.refobjid and d.refclassid = 'pg_extension'::regclass
	where e.extname = 'entityapi' and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype and p.pronargs > 0
	order by 1
	SQL
diag(scalar @functions, ' functions');

sub call
{
	my $kind = rand;

	return 'entityapi.handle(' . $of_type{bytea}->() . ')' if $kind < 0.2;
	return 'entityapi.apply_manifest(' . $of_type{ any(qw(json jsonb)) }->() . ', ' . any('true', 'false') . ')' if $kind < 0.45;
	return 'entityapi.check_expression(' . text(spoiled(any(@{ $corpus{policy} }))) . ')' if $kind < 0.55;
	return 'entityapi.parse_rsql(' . text(spoiled(any(@{ $corpus{rsql} }))) . ')' if $kind < 0.65;
	my $function = any(@functions);
	return "$function->[0](" . join(', ', map { $of_type{$_}->() } @{ $function->[1] }) . ')';
}

# Errors that tell of no caller's fault
my $runner = <<~'SQL';
	set client_min_messages = error;
	create function pg_temp.try(call text) returns text language plpgsql as $$
	begin
		begin
			execute 'select ' || call;
			raise exception using errcode = 'ZZ000';
		exception when others then
			return sqlstate || ' ' || sqlerrm;
		end;
	end $$;
	SQL

my (%states, %faults, $calls);
my $begin = time;
while ($count ? ($calls // 0) < $count : time - $begin < $seconds)
{
	my @calls = map { call() } 1 .. 100;
	my $sql = "begin;\n$runner" . join '', map {
		my $quoted = $_;
		my $tag = 'q';
		$tag .= 'q' while index($quoted, "\$$tag\$") >= 0;
		"select pg_temp.try(\$$tag\$$quoted\$$tag\$);\n"
	} @calls;
	my $result = $cluster->try_psql($sql . "rollback;\n");

	$calls += @calls;
	if ($result->{status} != 0)
	{
		$faults{"the session ended: $result->{err}"} //= join "\n", @calls;
		EntityApi::Test::wait_until(20, sub { $cluster->try_psql('select 1')->{status} == 0 });
		next;
	}
	my @said = $result->{out} =~ /^([0-9A-Z]{5} .*)$/mg;
	for my $i (0 .. $#said)
	{
		my ($state, $message) = $said[$i] =~ /^(.{5}) (.*)/s;

		$states{$state}++;
		$faults{"$state $message"} //= $calls[$i] if $state =~ /^XX/;
	}
}

is(scalar keys %faults, 0, 'every error tells of the arguments')
  or diag(map { "$_\n  " . substr($faults{$_}, 0, 3000) . "\n" } (sort keys %faults)[ 0 .. (keys %faults > 9 ? 9 : keys(%faults) - 1) ]);
my $log = EntityApi::Test::slurp($cluster->log);
my @causes = $log =~ /(PANIC.*|TRAP.*|.*AddressSanitizer.*|.*runtime error.*|.*terminated by signal.*)/g;
is(scalar @causes, 0, 'nothing in the server\'s log') or diag(map { "$_\n" } @causes[ 0 .. ($#causes > 9 ? 9 : $#causes) ]);
diag("$calls calls: ", join ' ', map { "$_:$states{$_}" } sort keys %states);
done_testing;
