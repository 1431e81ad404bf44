# The locale of a database changes nothing: names, common passwords and tables
# are the same under each, and a dump restored under another one lets everybody
# in who got in before.

use strict;
use warnings;
use utf8;

use Test::More;

use EntityApi::Test;

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my $password = 'plainly-for-a-test-1';

# Systems have few locales: those of these two languages are made
my $own = EntityApi::Test::folder();
my $made = EntityApi::Test::run([ 'sh', '-c', 'for l in tr_TR lt_LT; do localedef -i $l -f UTF-8 "$1/$l.UTF-8" || exit; done; chmod -R a+rX "$1"; for d in /usr/lib/locale/C.[uU]*; do
	test ! -e "$d" || ln -s "$d" "$1"; done', '-', $own ])->{status} == 0;

$ENV{LOCPATH} = $own if $made;
$cluster->restart;

my %locales = (
	c => "locale 'C'",
	utf8 => '',
	($made ? (turkish => "locale 'tr_TR.UTF-8'", lithuanian => "locale 'lt_LT.UTF-8'") : ()));
my %icu = (turkish_icu => 'tr', lithuanian_icu => 'lt');

sub create
{
	my ($name, $locale) = @_;
	return $cluster->try_psql("create database $name template template0 encoding 'UTF8' $locale", database => 'postgres')->{err};
}

for my $name (sort keys %icu)
{
	my $locale = "locale_provider icu icu_locale '$icu{$name}' locale 'C'";
	my $said = create("try_$name", $locale);

	$said =~ /ICU is not supported/ ? diag 'this server has no ICU' : is($said, '', "ICU has $icu{$name}");
	$locales{$name} = $locale if $said eq '';
}
diag 'there is no localedef, or it has no sources' if !$made;

sub shim { return EntityApi::Test->shim($cluster, database => $cluster->conninfo('entityapi_shim', $_[0])) }
sub login { return $_[0]->http(POST => '/auth/login', { json => { username => $_[1], password => $password } }) }

my $manifest = q([{"apiVersion": "entityapi/v1", "kind": "Entity", "metadata": {"name": "InvoiceItem"}, "spec": {"fields": {"itemID": {"type": "string"}}}}]);

for my $name (sort keys %locales)
{
	subtest $name => sub {
		create($name, $locales{$name});
		my $psql = sub { $cluster->psql($_[0], database => $name) };

		$psql->("create extension entityapi cascade; select entityapi.create_superadmin('TITIAN', '$password')");
		if ($name eq 'turkish' || $name eq 'turkish_icu')
		{
			is($psql->("select lower('TITI')"), "t\x{131}t\x{131}", 'the locale is another one');
		}
		my $shim = shim($name);

		is(login($shim, $_)->{status}, 200, "$_ logs in") for qw(TITIAN titian Titian);
		my $admin = login($shim, 'titian')->{json};
		my $tenant = $shim->must(201, POST => '/manage/tenants', { token => $admin, json => { name => 'Acme', slug => 'acme' } });
		my $create = sub {
			my (%members) = @_;
			my $answer = $shim->http(POST => "/manage/tenants/$tenant->{id}/users", { token => $admin, json => \%members });
			return $answer->{json}{errors}[0]{code} // $answer->{status};
		};

		is($create->(username => 'TITIz', temporaryPassword => $password), 201, 'a user');
		is($create->(username => 'titiz'), 'UNIQUE_VIOLATION', 'is one user');
		is($create->(username => "J\N{U+cc}M"), 201, 'a user of Lithuania');
		is($create->(username => "j\N{U+ec}m"), 'UNIQUE_VIOLATION', 'is one as well');
		is($create->(username => 'weak', temporaryPassword => '1234567890QWERTYUIOP'), 'WEAK_PASSWORD', 'a common password');
		is($create->(username => 'titian-and-titi', temporaryPassword => 'TITIAN-AND-TITI'), 'WEAK_PASSWORD', 'the name as password');
		is(login($shim, $_)->{status}, 200, "$_ logs in") for qw(TITIz titiz TITIZ);
		is($psql->('select string_agg(username_key, chr(32) order by username_key) from entityapi.account'), "j\N{U+ec}m titian titiz", 'by these keys');
		$psql->("select count(*) from entityapi.apply_manifest('$manifest')");
		is($psql->(q{select c.relname || ' ' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = 'app'::regnamespace and a.attname ~ '^item'}),
			'invoice_item item_id', 'names of tables and columns');
		$shim->stop;
	};
}

sub tool
{
	my ($name, @arguments) = @_;
	my $done = EntityApi::Test::run([ EntityApi::Test::server_program($name), @arguments ]);

	is($done->{status}, 0, $name) or diag $done->{err};
	return;
}

# From each kind to the next
my @names = sort keys %locales;

for my $i (0 .. $#names)
{
	my ($from, $to) = @names[$i, ($i + 1) % @names];

	subtest "a dump from $from to $to" => sub {
		my $restored = "from_$from";

		is(create($restored, $locales{$to}), '', 'a database');
		tool(pg_dump => '-d', $cluster->conninfo('postgres', $from), '-Fc', '-f', "$folder/$from.dump");
		tool(pg_restore => '-d', $cluster->conninfo('postgres', $restored), '--exit-on-error', "$folder/$from.dump");
		my $shim = shim($restored);

		is(login($shim, $_)->{status}, 200, "$_ logs in") for qw(TITIAN titian TITIz titiz);
		is($cluster->psql('select count(*) from entityapi.apply_manifest(entityapi.export_manifest())', database => $restored), 0, 'nothing to apply');
		$shim->stop;
	};
}

done_testing();
