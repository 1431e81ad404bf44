# Every change of a manifest: the statements it takes, or why it is refused;
# what becomes of the rows; and that the result is what one gets who begins
# with it.
#
# t/data/changes/cases.pl names the cases: from, to (entities by name; -Name is a
# OneOf, -service, -roles, -policies, -attributes, -versions and -hook are what
# they say), rows (tables in the schema "kept", values in SQL; id(n) is an id),
# account (columns of one), allow (losses), kept (a query before, one after,
# what the latter gives if not the same).  t/data/changes/cases.out has the answers;
# with ENTITYAPI_ACCEPT it is written anew, for reading the difference.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;

my $folder = EntityApi::Test::checkout() . '/t/data/changes';
my @cases = do "$folder/cases.pl" or die "$folder/cases.pl: " . ($@ || $!) . "\n";
my $json = JSON::PP->new->canonical->ascii->pretty(0);

# all within the transaction; what is left for later is the matter of ddl/pending_steps.t
my $cluster = EntityApi::Test->cluster(conf => [ 'entityapi.online_rows = 0' ]);

$cluster->psql(EntityApi::Test::slurp("$folder/functions.sql"));
$cluster->psql(<<~'SQL');
	CREATE FUNCTION id(n int) RETURNS uuid LANGUAGE sql AS $$
		SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid
	$$;
	CREATE SCHEMA checks;
	GRANT USAGE ON SCHEMA checks TO entityapi_owner;
	CREATE FUNCTION checks.check(context jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS 'SELECT NULL::jsonb';
	INSERT INTO entityapi.tenant VALUES (id(999), 'kept', 'kept', 'ACTIVE', '{}', now());
	SQL

sub quoted
{
	my ($text) = @_;
	return q(') . ($text =~ s/'/''/gr) . q(');
}

sub document
{
	my ($kind, $name, $spec) = @_;
	return { apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec };
}

my %kinds = (
	-service => sub { document('Service', 'service', { schema => 'kept', %{ $_[0] } }) },
	-roles => sub { document('Roles', 'roles', { roles => { map { ($_ => {}) } @{ $_[0] } } }) },
	-attributes => sub { document('SecurityAttributes', 'attributes', { attributes => $_[0] }) },
	-versions => sub { document('Versions', 'versions', { versions => $_[0] }) },
	-hook => sub { document('Hook', 'hook', $_[0]) },
	-policies => sub {
		my ($policies) = @_;
		map { document('Policy', $_, { expression => $policies->{$_} }) } sort keys %$policies;
	});

sub documents
{
	my ($manifest) = @_;
	my %all = (-service => {}, -roles => [qw(Clerk Auditor)], %$manifest);
	my @documents;

	for my $name (sort keys %all)
	{
		push @documents, $kinds{$name} ? $kinds{$name}->($all{$name})
		  : $name =~ /^-(.*)/ ? document('OneOf', $1, { members => $all{$name} })
		  : document('Entity', $name, $all{$name});
	}
	return quoted($json->encode(\@documents)) . '::jsonb';
}

sub row
{
	my ($table, $row) = @_;
	my %values = (tenant_id => 'id(999)', %$row, exists $row->{id}
		  ? (id => "id($row->{id})", created_at => 'now()', updated_at => 'now()') : ());
	my @columns = sort keys %values;

	return sprintf "INSERT INTO kept.%s (%s) VALUES (%s);\n", $table, join(', ', @columns), join(', ', @values{@columns});
}

sub account
{
	my ($values) = @_;
	my $roles = quoted('{' . join(',', @{ $values->{roles} // [] }) . '}');
	my $attributes = quoted($json->encode($values->{security_attributes} // {}));

	return "INSERT INTO entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile,"
	  . " security_attributes, password_change_required, is_super_admin, created_at)"
	  . " VALUES (id(1), id(999), 'USER', 'ann', 'ann', 'ACTIVE', $roles, '{}', $attributes, false, false, now());\n";
}

# The answer as cases.out has it: without the schema and the texts of policies
sub shortened
{
	my ($text) = @_;

	$text =~ s/ USING \(.*\)$// if $text =~ /^CREATE POLICY/;
	$text =~ s/\bkept\.//g;
	return $text;
}

# What a case asks: each line of the answer begins with what it is.
sub questions
{
	my ($case) = @_;
	my ($before, $after) = ref $case->{kept} ? @{ $case->{kept} } : ($case->{kept}, $case->{kept});
	my ($from, $to) = map { documents($case->{$_}) } qw(from to);
	my $allowed = quoted('{' . join(',', @{ $case->{allow} // [] }) . '}');
	my $sql = "SELECT 'case', " . quoted($case->{name}) . ";\n"
	  . "SELECT 'cleared', faults FROM changes.apply('[]', ARRAY(SELECT name FROM entityapi.entity));\n"
	  . "DELETE FROM entityapi.account;\n"
	  . "SELECT 'begun', faults FROM changes.apply($to);\n"
	  . "SELECT changes.state() AS fresh \\gset\n"
	  . "SELECT 'cleared', faults FROM changes.apply('[]', ARRAY(SELECT name FROM entityapi.entity));\n"
	  . "SELECT 'from', faults FROM changes.apply($from);\n";
	my $kept = sub { my ($name, $query) = @_; $query ? "SELECT '$name', x.* FROM ($query) x;\n" : '' };

	for my $table (@{ $case->{rows} // [] })
	{
		my ($name, @rows) = @$table;
		$sql .= row($name, $_) for @rows;
	}
	$sql .= account($case->{account}) if $case->{account};
	$sql .= $kept->('before', $before)
	  . "SELECT count(*) AS planned FROM changes.apply($to, $allowed, true), unnest(statements) \\gset\n"
	  . "SELECT coalesce(statements, '{}') AS statements, coalesce(faults, '{}') AS faults, faults IS NULL AS done FROM changes.apply($to, $allowed) \\gset\n"
	  . "SELECT 'planned', cardinality(:'statements'::text[]) = :planned;\n"
	  . "\\if :done\n"
	  . "SELECT 'statement', s FROM unnest(:'statements'::text[]) s;\n"
	  . $kept->('after', $after)
	  . "SELECT 'differs', changes.difference(:'fresh', changes.state());\n"
	  . "SELECT 'again', statements FROM changes.apply($to);\n"
	  . "SELECT 'exported', statements FROM changes.apply(entityapi.export_manifest()::jsonb);\n"
	  . "\\else\n"
	  . "SELECT 'fault', f FROM unnest(:'faults'::text[]) f;\n"
	  . $kept->('after', $before)
	  . "\\endif\n";

	return $sql;
}

# All in one session, since most of the time goes to the start of one
my %answers;
my $current;
for my $line (split /\n/, $cluster->psql(join '', "SET client_min_messages = warning;\n", map { questions($_) } @cases))
{
	my ($kind, $value) = $line =~ /^(\w+)\|(.*)$/ or next;

	if ($kind eq 'case') { $current = $value }
	else { push @{ $answers{$current}{$kind} }, $value }
}

my %expected;
my $name;
for my $line (-e "$folder/cases.out" ? split(/\n/, EntityApi::Test::slurp("$folder/cases.out")) : ())
{
	if ($line =~ /^== (.*)$/) { $name = $1; $expected{$name} = '' }
	elsif ($line ne '') { $expected{$name} .= "$line\n" }
}

# the statements are others on a cluster; what comes of them is not
my $distributed = $cluster->isa('EntityApi::Test::Citus');
my $written = '';
my $refused = 0;
for my $case (@cases)
{
	subtest $case->{name} => sub {
		my $got = $answers{ $case->{name} };
		my $text = join '', map { shortened($_) . "\n" }
		  @{ $got->{statement} // [] }, map { "refused: $_" } @{ $got->{fault} // [] };
		my $kept = $case->{kept};
		my $last = ref $kept && @$kept > 2 && !$got->{fault} ? $kept->[2] : join("\n", @{ $got->{before} // [] });

		$text = "nothing\n" if $text eq '';
		$written .= "== $case->{name}\n$text\n";
		$refused++ if $got->{fault};
		is($text, $expected{ $case->{name} }, 'what is done') if !$ENV{ENTITYAPI_ACCEPT} && !$distributed;
		is(join("\n", @{ $got->{from} // [] }), '', 'begins with what is valid');
		is($got->{planned}[0], $got->{fault} ? 'f' : 't', 'a dry run says the same') if !$got->{fault};
		if ($kept)
		{
			isnt(join("\n", @{ $got->{before} // [] }), '', 'there are rows');
			is(join("\n", @{ $got->{after} // [] }), $last, 'which are kept');
		}
		if (!$got->{fault})
		{
			is(join("\n", @{ $got->{differs} // [] }), '', 'as if begun with');
			is(join("\n", @{ $got->{again} // [] }), '{}', 'nothing to do again');
			is(join("\n", @{ $got->{exported} // [] }), '{}', 'nor for what is exported');
		}
	};
}
# Who calls sees the same rows under new names, from the next request on.
subtest 'over HTTP' => sub {
	my $manifest = sub {
		my ($name, $field, %more) = @_;
		my ($renamed, $was) = @more{qw(entity field)};

		return documents({ -roles => $more{roles} // [qw(Clerk Guest)],
			$name => { fields => { $field => { type => 'string', maxLength => 20, $was ? (renamedFrom => $was) : () } },
				permissions => { Clerk => [qw(create read)] }, $renamed ? (renamedFrom => $renamed) : () } });
	};
	my $apply = sub {
		my ($documents, $allowed) = @_;
		return $cluster->psql("SELECT faults FROM changes.apply($documents, '{$allowed}')");
	};

	$cluster->psql("SELECT changes.apply('[]', ARRAY(SELECT name FROM entityapi.entity) || '{SecurityAttributes/region}'::text[]);"
		  . "DELETE FROM entityapi.account");
	is($apply->($manifest->('Item', 'label'), ''), '', 'declared');
	my $shim = EntityApi::Test->shim($cluster);
	my $tenant = $shim->tenant('acme');
	my $user = $shim->user($tenant->{id}, 'ann', ['Clerk']);
	my $made = $shim->http(POST => '/api/v1/items',
		{ token => $user, json => { data => { type => 'items', attributes => { label => 'one' } } },
			headers => { 'Content-Type' => 'application/vnd.api+json' } });
	is($made->{status}, 201, 'made');

	is($apply->($manifest->('Thing', 'title', entity => 'Item', field => 'label'), ''), '', 'renamed');
	my $list = $shim->http(GET => '/api/v1/things', { token => $user })->{json}{data};
	is_deeply([ map { [ $_->{id}, $_->{attributes} ] } @$list ], [ [ $made->{json}{data}{id}, { title => 'one' } ] ], 'the same row');
	is($shim->http(GET => '/api/v1/items', { token => $user })->{status}, 404, 'the old path is gone');

	my $without = $manifest->('Thing', 'title', entity => 'Item', field => 'label', roles => ['Guest']) =~ s/Clerk/Guest/gr;
	like($apply->($without, ''), qr/accounts have the role/, 'a role that is held stays');
	is($apply->($without, 'Roles/Clerk'), '', 'unless that is allowed');
	is($shim->http(GET => '/api/v1/things', { token => $user })->{status}, 403, 'then it is gone at once');
	is($apply->($manifest->('Thing', 'title', entity => 'Item', field => 'label'), ''), '', 'declared again');
	is($shim->http(GET => '/api/v1/things', { token => $user })->{status}, 403, 'it is nobody\'s');
};

cmp_ok(scalar @cases, '>=', 60, scalar(@cases) . " cases, of which $refused are refused");
if ($ENV{ENTITYAPI_ACCEPT})
{
	open my $out, '>', "$folder/cases.out" or die "$folder/cases.out: $!\n";
	print $out $written;
	close $out;
}

done_testing;
