# entityapi-shim introspect: manifests of databases that others made, and what
# it says of them.
#
# Each t/data/introspect/x.sql is a database; x.out is what is said and written
# of it, x.all the same where the service understands everything that manifests
# can say by now (each row of shim/command/introspect_served.c).  With
# ENTITYAPI_ACCEPT both are written anew, for reading the difference.

use strict;
use warnings;

use File::Path qw(make_path remove_tree);
use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $data = "$checkout/t/data/introspect";
my $folder = EntityApi::Test::folder();
my $program = EntityApi::Test::private_program('entityapi-shim');
my $cluster = EntityApi::Test->cluster(bare => 1, conf => ["timezone = 'UTC'"]);
my @names = grep { !/_rows$/ } map { m{/(\w+)\.sql$} } sort glob "$data/*.sql";

$cluster->psql('create role shop_web login; create role peeper login');

# Made by the application's role; anybody may look
sub database
{
	my ($name, $sql) = @_;

	$cluster->psql(qq(create database "$name" owner shop_web));
	$cluster->psql("set client_min_messages = warning;\n$sql", user => 'shop_web', database => $name);
	return $name;
}

sub introspect
{
	my ($database, @arguments) = @_;
	my $by = ref $arguments[0] ? shift @arguments : [$program];

	return EntityApi::Test::run([ @$by, 'introspect', '--database', $cluster->conninfo('peeper', $database), @arguments ]);
}

# Files of a folder, by name
sub texts
{
	my ($path) = @_;
	return map { (m{([^/]*)$})[0] => EntityApi::Test::slurp($_) } sort glob "$path/*";
}

sub together
{
	my ($run, $path) = @_;
	my %text = texts($path);

	return $run->{out} . join '', map { "==== $_\n$text{$_}" } sort keys %text;
}

# Compares with what a file has.
sub same_as
{
	my ($file, $got, $name) = @_;

	if ($ENV{ENTITYAPI_ACCEPT})
	{
		open my $out, '>:raw', "$data/$file" or die "$file: $!\n";
		print $out $got;
		close $out;
	}
	return is($got, -e "$data/$file" ? EntityApi::Test::slurp("$data/$file") : '', $name);
}

sub valid
{
	my ($path, $name) = @_;
	my $run = EntityApi::Test::run([ $program, 'validate', $path ]);

	return is("$run->{status}$run->{err}", 0, $name);
}

# A program that understands all that manifests can say: the same with another
# table, in a copy with its objects.
sub all_on
{
	my $copy = "$folder/copy";
	my $served = "$copy/shim/command/introspect_served.c";

	make_path($copy);
	system("tar -C '$checkout' -cf - shim scripts/build/shim-pages scripts/build/known-flags scripts/build/check-needs extension entityapi.control | tar -C '$copy' -xf -") == 0 or die;
	my $text = EntityApi::Test::slurp($served);
	cmp_ok($text =~ s/\{false, /{true, /g, '>', 0, 'rows that are off');
	EntityApi::Test::write_file($served, $text);
	my $made = EntityApi::Test::run([ 'env', '-u', 'MAKEFLAGS', 'make', '-s', '-C', "$copy/shim", 'entityapi-shim' ]);
	is($made->{status}, 0, 'a program with all of them on') or diag $made->{err};
	return "$copy/shim/entityapi-shim";
}

for my $name (@names)
{
	subtest $name => sub {
		database($name, EntityApi::Test::slurp("$data/$name.sql"));
		my $run = introspect($name, "$folder/$name");
		is($run->{err}, '', 'nothing amiss');
		is($run->{status}, 0, 'done');
		same_as("$name.out", together($run, "$folder/$name"), 'said and written');
		like($run->{out}, qr/^\d+ of \d+ tables, \d+ % of columns\n\z/m, 'the sum comes last');
		valid("$folder/$name", 'manifests that apply would take');
		ok(!(grep { !/^[A-Za-z][A-Za-z0-9]*\.yaml$/ } keys %{ { texts("$folder/$name") } }), 'files whose names do no harm');

		introspect($name, "$folder/$name-again");
		is_deeply({ texts("$folder/$name-again") }, { texts("$folder/$name") }, 'the same once more');
		my $check = introspect($name, '--check', "$folder/$name");
		is_deeply([ @$check{qw(status out err)} ], [ 0, @$run{qw(out err)} ], 'nothing differs');
	};
}

subtest 'what is served later' => sub {
	my $all = all_on();

	for my $name (@names)
	{
		my $run = introspect($name, [$all], "$folder/$name-all");
		is("$run->{status}$run->{err}", 0, "$name: done");
		same_as("$name.all", together($run, "$folder/$name-all"), 'said and written');
	}
	introspect('rails', [$all], '--timestamps', 'utc', '--tenant', 'organization_id', "$folder/utc");
	my %text = texts("$folder/utc");
	like($text{'Invoice.yaml'}, qr/^    createdAt: \{type: datetime, zone: UTC, required: true\}$/m, 'times in UTC');
	like($text{'Invoice.yaml'}, qr/^  tenant: \{column: organization_id\}$/m, 'a tenant by its column');
	unlike($text{'Invoice.yaml'}, qr/organization:/, 'which is no field');
	like($text{'User.yaml'} // $text{'UserEntity.yaml'} // '', qr/^  global: \[index_users_on_email\]$/m, 'uniques without the tenant');
	like($text{'Profile.yaml'}, qr/^  tenant: \{by: user\}$/m, 'a tenant by what it refers to');
	like($text{'Category.yaml'}, qr/^  tenantScoped: false\n(?!.*^  permissions).*^  # permissions: /ms, 'of no tenant: nobody reads it');
	like($text{'service.yaml'}, qr/tenancy: POOL\n  existing: \{.*settings: \{TimeZone: UTC\}\}$/m, 'in the service, too');
};

subtest 'a path that sessions set' => sub {
	database('music', 'create schema archive; create table archive.image (id uuid primary key); '
		  . 'create schema music; create table music.song (id uuid primary key); create table music.act (id uuid primary key)');
	introspect('music', "$folder/music");
	like(EntityApi::Test::slurp("$folder/music/service.yaml"), qr/searchPath: \[music, public\]/, 'the schema of most tables comes first');
	$cluster->psql('alter role shop_web in database music set search_path = public');
	introspect('music', "$folder/music-set");
	like(EntityApi::Test::slurp("$folder/music-set/service.yaml"), qr/searchPath: \[public\]/, 'not where a path is set');
};

subtest 'join tables' => sub {
	database('joins', <<~'SQL');
		create table person (id uuid primary key);
		create table film (id int primary key);
		create table follows (who uuid references person, whom uuid references person, primary key (who, whom));
		create table likes (person uuid references person on delete cascade, film int references film);
		create table plays (person uuid references person, film int references film, role text, primary key (person, film));
		create unlogged table watches (person uuid references person, film int references film, primary key (person, film));
		create table rents (person uuid references person, film int references film, primary key (person, film)) partition by hash (film);
		create table half (person uuid, film int references film, primary key (person, film));
		create table twice (film int references film references film, other int, primary key (film, other));
		create table star (person uuid primary key references person);
		create table shines (person uuid references star, film int references film, primary key (person, film));
		SQL
	my $run = introspect('joins', "$folder/joins");
	my %text = texts("$folder/joins");
	my ($person) = $text{'Person.yaml'} =~ /^  fields:\n(.*?)^  permissions/ms;

	is($run->{err}, '', 'nothing amiss');
	is($person, <<~'END', 'of both ends, of one entity, and without an index');
		    person: {type: ref, target: Person, relation: ManyToMany, through: public.follows}
		    personByFollows: {type: ref, target: Person, relation: ManyToMany, mappedBy: person}
		    film: {type: ref, target: Film, relation: ManyToMany, through: public.likes}
		    plays: {type: ref, target: Play, relation: OneToMany, mappedBy: person}
		    rents: {type: ref, target: Rent, relation: OneToMany, mappedBy: person}
		    star: {type: ref, target: Star, relation: OneToOne, mappedBy: person}
		END
	like($text{'Person.yaml'}, qr/^  columns: \{.*\bperson: \[who, whom\].*\}$/m, 'their columns');
	like($text{'Film.yaml'}, qr/^    person: \{type: ref, target: Person, relation: ManyToMany, mappedBy: film\}$/m, 'the other side');
	unlike($text{'Person.yaml'}, qr/unseen/, 'what their keys do is seen');
	unlike(join('', values %text), qr/through: public\.(?:plays|watches|rents|half|twice)/, 'no others');
	like($text{'service.yaml'}, qr/public\.watches: unlogged tables are not served/, 'with their own reason');
	valid("$folder/joins", 'manifests that apply would take');

	# "person" is a column of the join table and one of the entity's
	like($text{'Star.yaml'}, qr/^  columns: \{.*\bfilm: \[person, film\].*\}$/m, 'of one whose key is a reference');
	my $check = introspect('joins', '--check', "$folder/joins");
	is($check->{status}, 0, 'and nothing differs') or diag $check->{out};
};

subtest 'what has tenants, and what has none' => sub {
	database('firms', <<~'SQL');
		create table brand (id uuid primary key default gen_random_uuid());
		create table item (id uuid primary key default gen_random_uuid(), firm uuid not null, brand uuid references brand);
		create table shelf (id uuid primary key default gen_random_uuid(), firm uuid not null);
		create table suits (brand uuid references brand, item uuid references item, primary key (brand, item));
		create table holds (shelf uuid references shelf, item uuid references item, primary key (shelf, item));
		SQL
	introspect('firms', '--tenant', 'firm', "$folder/firms");
	my %text = texts("$folder/firms");
	like($text{'Item.yaml'}, qr/^    brand: \{type: ref, target: Brand, relation: ManyToOne\}$/m, 'a row of a tenant leads to one of all');
	unlike($text{'Brand.yaml'}, qr/target: Item/, 'and not the other way');
	like($text{'Shelf.yaml'}, qr/through: public\.holds\}$/m, 'a join table within tenants');
	unlike(join('', values %text), qr/through: public\.suits/, 'and none across');
	valid("$folder/firms", 'manifests that apply would take');
};

subtest 'who may see what' => sub {
	my $run = introspect('chinook', '--role', 'nobody yet', "$folder/grants");
	like($run->{out}, qr/^create role "nobody yet";$/m, 'a role that is to be made');

	$cluster->psql('create role reader; grant select on users to reader; create table counted (id uuid primary key, n serial)',
		database => 'rails', user => 'postgres');
	$run = introspect('rails', '--role', 'reader', "$folder/reader");
	my ($grant) = $run->{out} =~ /^grant select on (.*?) to reader;$/ms;
	like($grant, qr/public\.invoices/, 'what it needs');
	unlike($grant, qr/public\.users/, 'and nothing that it has');
	unlike($run->{out}, qr/grant usage on schema/, 'PUBLIC may use the schema');
	like($run->{out}, qr/^-- and to create rows: grant usage on sequence public\.counted_n_seq to reader;$/m, 'a sequence');
	is($cluster->psql("begin; grant select on $grant to reader; rollback", database => 'rails'), '', 'a statement that runs');

	$cluster->psql('drop table counted', database => 'rails');
	like(introspect('rails', '--role', 'postgres', "$folder/super")->{out}, qr/^-- postgres is a superuser, /, 'no superuser');
	is(introspect('rails', "$folder/owner")->{out} =~ /grant/, '', 'the owner needs nothing');

	$cluster->psql('create role other; alter table attachments owner to other', database => 'rails');
	like(introspect('rails', "$folder/owners")->{out}, qr/^1 table: all tables belong to one owner, these to another$/m, 'two owners');
	$cluster->psql('alter table attachments owner to postgres', database => 'rails');
	unlike(introspect('rails', "$folder/owners2")->{out}, qr/owner/, 'a superuser is none of them');
	$cluster->psql('alter table attachments owner to shop_web', database => 'rails');
};

subtest 'settings of role and database' => sub {
	$cluster->psql(q{alter database prisma set timezone = 'Asia/Tokyo';
		alter role shop_web in database prisma set search_path = 'nowhere', "$user", PUBLIC, "public"});
	introspect('prisma', "$folder/settings");
	like({ texts("$folder/settings") }->{'service.yaml'},
		qr/existing: \{role: shop_web, searchPath: \[public\], settings: \{TimeZone: "Asia\/Tokyo"\}\}/, 'as they hold');
	$cluster->psql(q{create schema tools; alter role shop_web in database prisma set search_path = tools, public}, database => 'prisma');
	introspect('prisma', "$folder/tools");
	like(EntityApi::Test::slurp("$folder/tools/service.yaml"), qr/searchPath: \[tools, public\]/,
		'schemas whose functions the code of tables may call, too');
	$cluster->psql('drop schema tools', database => 'prisma');
	$cluster->psql(q{alter role shop_web in database prisma set timezone = 'UTC'});
	introspect('prisma', "$folder/settings2");
	like({ texts("$folder/settings2") }->{'service.yaml'}, qr/TimeZone: UTC\}/, 'the role before the database');
	$cluster->psql('alter role shop_web in database prisma reset all; alter database prisma reset all');
};

subtest 'some tables' => sub {
	my $files = sub {
		my $run = introspect('hand', @_, my $to = "$folder/some" . ++our $n);
		return "$run->{status}$run->{err}" if $run->{status};
		my %text = texts($to);
		return join ' ', grep { !/^[a-z]/ } sort keys %text;
	};
	is($files->('--schema', 'archive'), 'Order.yaml Role.yaml ServiceEntity.yaml', 'a schema; names by themselves');
	is($files->('--schema=archive', '--schema', 'Geschäft.1', '--table', 'orders', '--table', '"Geschäft.1"."Kunden ""Süd"""'),
		'KundenSud.yaml Order.yaml', 'two, and tables of them');
	is($files->('--table', 'shop.coupons'), 'Coupon.yaml', 'one');
	is($files->('--table', 'shop.cupons', '--table', 'users'), "1entityapi-shim introspect: there is no table shop.cupons\n", 'none such');
	is($files->('--schema', 'Shop'), "1entityapi-shim introspect: there is no table in the schema Shop\n", 'no such schema');
	is($files->('--schema', 'pg_catalog'), "1entityapi-shim introspect: there is no table in the schema pg_catalog\n", 'nor the system');
};

sub patched
{
	my ($text, $path) = @_;

	my $run = EntityApi::Test::run([ 'patch', '-s', '-p0', '-d', $path ], in => $text);
	return "$run->{status}$run->{out}$run->{err}";
}

subtest 'later' => sub {
	my $to = "$folder/later";

	database('later', <<~'SQL');
		create table authors (id uuid primary key, name text, born date);
		create table books (id uuid primary key, author_id uuid references authors, title varchar(80));
		create table shelves (id uuid primary key);
		SQL
	introspect('later', $to);
	my $before = { texts($to) };
	my $run = introspect('later', $to);
	is_deeply([ @$run{qw(status out)} ], [ 1, '' ], 'nothing is written twice');
	like($run->{err}, qr{^entityapi-shim introspect: \Q$to\E/service\.yaml is there already; --update }, 'and why');
	is_deeply({ texts($to) }, $before, 'nothing was');

	# a person: another name of the entity, of its collection and of a field, and a description
	EntityApi::Test::write_file("$to/Book.yaml", $before->{'Book.yaml'} =~ s/name: Book/name: Volume/r =~ s/plural: books/plural: library/r
		  =~ s/title: \{/heading: {/r =~ s/  fields/  columns: {heading: title}\n  fields/r =~ s/(?=  plural)/  description: All of them\n/r);
	EntityApi::Test::write_file("$to/Author.yaml", $before->{'Author.yaml'} =~ s/target: Book/target: Volume/r =~ s/^    books:/    library:/mr);
	valid($to, 'valid');
	$run = introspect('later', '--check', $to);
	is($run->{status}, 1, 'the description differs');
	my ($patch) = $run->{out} =~ /\A(.*?)(?=^\d+ of )/ms;
	is($patch, <<~'PATCH', 'and nothing else: names stay');
		--- Book.yaml
		+++ Book.yaml
		@@ -2,7 +2,6 @@
		 kind: Entity
		 metadata: {name: Volume}
		 spec:
		-  description: All of them
		   plural: library
		   table: public.books
		   columns: {heading: title}
		PATCH
	is(EntityApi::Test::slurp("$to/Author.yaml"), $before->{'Author.yaml'} =~ s/target: Book/target: Volume/r =~ s/^    books:/    library:/mr, 'nothing is written');

	# a migration
	$cluster->psql(<<~'SQL', database => 'later', user => 'shop_web');
		alter table authors drop born, add email varchar(100) not null default '';
		create table loans (id uuid primary key, book_id uuid not null references books on delete cascade);
		create table logs (at timestamptz);
		drop table shelves;
		SQL
	$run = introspect('later', '--check', $to);
	is($run->{status}, 1, 'a migration is seen');
	is_deeply([ sort keys %{ { texts($to) } } ], [ qw(Author.yaml Book.yaml Shelf.yaml roles.yaml service.yaml) ], 'nothing is written');
	like($run->{out}, qr{^--- /dev/null\n\+\+\+ Loan\.yaml\n\@\@ -0,0 \+1,\d+ \@\@\n\+apiVersion}m, 'a new file');
	like($run->{out}, qr{^--- Shelf\.yaml\n\+\+\+ /dev/null\n\@\@ -1,\d+ \+0,0 \@\@\n-apiVersion}m, 'one that goes');
	$run = introspect('later', '--update', $to);
	is($run->{status}, 0, '--update');
	like($run->{out}, qr{^new: \Q$to\E/Loan\.yaml$}m, 'writes what is new');
	ok(-e "$to/Loan.yaml" && -e "$to/Shelf.yaml", 'and leaves the rest');
  SKIP:
	{
		if (EntityApi::Test::run([ 'patch', '--version' ])->{status} != 0)
		{
			remove_tree($to);
			introspect('later', $to);
			skip 'no patch here', 4;
		}
		is(patched($run->{out}, $to), 0, 'the patch fits, beside what else is said');
		my $check = introspect('later', '--check', $to);
		is($check->{status}, 0, 'then nothing differs');
		ok(!-e "$to/Shelf.yaml", 'the file has gone');
		valid($to, 'valid');
	}

	# what is somewhere else is not written beside it
	make_path("$to-own");
	my %text = texts($to);
	EntityApi::Test::write_file("$to-own/all.yaml", join "---\n", map { $text{$_} } grep { !/Loan/ } sort keys %text);
	$run = introspect('later', '--update', "$to-own");
	is_deeply([ sort keys %{ { texts("$to-own") } } ], [ 'Loan.yaml', 'all.yaml' ], 'one file for the new table');
	like($run->{out}, qr{^Author is declared in all\.yaml, which is not compared$}m, 'and a word on the others');
	$run = introspect('later', '--check', "$to-own");
	is($run->{status}, 0, 'which is no difference');
	EntityApi::Test::write_file("$to-own/broken.yaml", "a: [\n");
	is(introspect('later', '--update', "$to-own")->{status}, 1, 'manifests that cannot be read');
};

subtest 'what people add' => sub {
	my $to = "$folder/added";

	database('added', <<~'SQL');
		create table authors (id uuid primary key, name text not null, email varchar(80), note text);
		create table books (id uuid primary key, "authorId" uuid references authors on delete cascade, title varchar(80), state text);
		create table shelves (id uuid primary key, book_id uuid references books);
		SQL
	introspect('added', $to);
	my $before = { texts($to) };
	my $change = sub {
		my ($file, @pairs) = @_;
		my $text = EntityApi::Test::slurp("$to/$file");
		while (my ($from, $with) = splice @pairs, 0, 2)
		{
			$text =~ s/$from/$with/m or fail("$file: no $from");
		}
		EntityApi::Test::write_file("$to/$file", $text);
	};
	my $nothing = qr/\A\d+ of \d+ tables, \d+ % of columns\n\z/;
	my $same = sub {
		my ($name, @options) = @_;
		my $run = introspect('added', '--check', @options, $to);
		is($run->{status}, 0, $name) or diag $run->{err};
		like($run->{out}, $nothing, "$name: not a line");
	};

	# rights, members, columns without a field, keys of fields, other forms and orders, and a made table
	$change->('Author.yaml', qr/^  permissions: .*\n/m, "  # who may\n  permissions:\n    Editor: [create, read, update]\n    # all\n    Reader: [read]\n  policies: {Own: [read]}\n",
		qr/^  fields:/m, "  optimisticLocking: true\n  columns: {version: xmin}\n  fields:", qr/^    name: \{(.*)\}\n/m, "    name: {\$1, readRoles: [Editor], pattern: '[a-z]{1,3}, or }'}\n" =~ s/\$1/type: text, required: true/r,
		qr/^    email: .*\n/m, "    email:\n      type: string\n      maxLength: 80\n      writeRoles: [Editor]\n", qr/^    books: /m, "    notes: {type: ref, target: Note, relation: OneToMany, mappedBy: author}\n    books: ");
	$change->('Book.yaml', qr/^  permissions: .*\n/m, '', qr/^  columns: .*\n/m, "  columns:\n    author: authorId\n    createdAt: made\n", qr/^    title: (.*)\n    state: (.*)\n/m, "    state: {type: text, default: new}\n    title: {maxLength: 80, type: string}\n");
	$change->('roles.yaml', qr/^    Reader: .*/m, "    Reader: {}\n    Editor: {}");
	$change->('service.yaml', qr/^(  existing: .*)\}$/m, "  audit: {entities: true}\n  existing: {role: shop_web, searchPath: [public], settings: {TimeZone: UTC, app.user: '#user.username'}}");
	$same->('all of it stays');
	$same->("some tables: @$_", @$_) for [ '--table', 'books' ], [ '--table', 'authors' ], [ '--table', 'authors', '--table', 'shelves' ], [ '--schema', 'public' ];

	# a migration shows, and nothing else
	$cluster->psql('alter table authors add born date, alter email type varchar(100), alter name drop not null, drop note; alter table books rename "authorId" to writer_id', database => 'added', user => 'shop_web');
	my $run = introspect('added', '--check', $to);
	is($run->{status}, 1, 'a migration is seen');
	is_deeply([ sort grep { /^[-+] / && !/^(?:---|\+\+\+)/ } split /\n/, $run->{out} ], [ sort
			q(-    name: {type: text, required: true, readRoles: [Editor], pattern: '[a-z]{1,3}, or }'}), '-    email:', '-      type: string', '-      maxLength: 80', '-      writeRoles: [Editor]', '-    note: {type: text}',
			q(+    name: {type: text, readRoles: [Editor], pattern: '[a-z]{1,3}, or }'}), '+    email: {type: string, maxLength: 100, writeRoles: [Editor]}', '+    born: {type: date}',
			(map { $_->[0] . "    books: {type: ref, target: Book, relation: OneToMany, mappedBy: $_->[1]}" } [ '-', 'author' ], [ '+', 'writer' ]),
			(map { $_->[0] . "    $_->[1]: {type: ref, target: Author, relation: ManyToOne, onDelete: cascade}" } [ '-', 'author' ], [ '+', 'writer' ]),
			'-  columns:', '-    author: authorId', '-    createdAt: made', '+  columns: {createdAt: made}' ], 'with what people have added') or diag $run->{out};
	plan skip_all => 'no patch here' if EntityApi::Test::run([ 'patch', '--version' ])->{status} != 0;
	is(patched($run->{out}, $to), 0, 'the patch fits');
	$same->('and ends it');
	like(EntityApi::Test::slurp("$to/Author.yaml"), qr/Editor: \[create, read, update\]/, 'rights are as they were');
	$cluster->psql('drop table shelves', database => 'added', user => 'shop_web');
	$run = introspect('added', '--check', $to);
	like($run->{out}, qr/^-    shelves: \{type: ref, target: Shelf, /m, 'the other side of what has gone goes');
	unlike($run->{out}, qr/^-.*notes/m, 'that of a made table does not');
};

subtest 'patches' => sub {
	my $to = "$folder/patches";
	my @kinds = map { my $n = $_; "t$n (id uuid primary key" . join('', map { ", c$_ text" } 1 .. 12 + $n) . ')' } 0 .. 9;

	database('patches', join '', map { "create table $_;" } @kinds);
	introspect('patches', $to);
	srand 7;
	for my $path (sort glob "$to/T*.yaml")
	{
		my @lines = split /^/, EntityApi::Test::slurp($path);
		for (1 .. 5)
		{
			my @fields = grep { $lines[$_] =~ /^    c\d+:/ } 0 .. $#lines;
			my $how = int rand 3;
			splice @lines, $fields[rand @fields], $how != 0, $how == 1 ? () : "    # another line\n";
		}
		chomp $lines[-1] if $path =~ /T3/;
		EntityApi::Test::write_file($path, join '', @lines);
	}
	my $run = introspect('patches', '--check', $to);
	plan skip_all => 'no patch here' if EntityApi::Test::run([ 'patch', '--version' ])->{status} != 0;
	is("$run->{status}$run->{err}", 1, 'they differ');
	like($run->{out}, qr/^\\ No newline at end of file$/m, 'also at the end');
	is(patched($run->{out}, $to), 0, 'patches fit');
	is(introspect('patches', '--check', $to)->{status}, 0, 'and end it');
};

subtest 'many tables' => sub {
	database('many', <<~'SQL');
		do $$ begin
			for i in 1..10000 loop
				execute format('create table t%s (id uuid primary key, parent_id uuid %s, a int not null, b date)', i,
					case when i % 10 = 0 then 'references t1 on delete cascade' end);
				if i % 500 = 0 then commit; end if;
			end loop;
		end $$
		SQL
	my $since = time;
	my $run = introspect('many', "$folder/many");
	cmp_ok(time - $since, '<', 60 * EntityApi::Test::SLOWNESS(), 'seconds');
	is("$run->{status}$run->{err}", 0, 'done');
	like($run->{out}, qr/^10000 of 10000 tables, 100 % of columns$/m, 'all of them');
	$run = introspect('many', '--check', "$folder/many");
	is("$run->{status}$run->{err}", 0, 'nothing differs');
	$cluster->psql('drop database many', database => 'postgres');
	remove_tree("$folder/many");
};

subtest 'faults' => sub {
	my $said = sub {
		my $run = introspect(@_);
		return "$run->{status} $run->{out}" . $run->{err} =~ s/entityapi-shim introspect: //gr;
	};
	is($said->('rails'), "2 a folder is to be named\n", 'no folder');
	is($said->('rails', 'a', 'b'), "2 one folder is to be named\n", 'two');
	is($said->('rails', ''), "2 one folder is to be named\n", 'an empty name');
	is($said->('rails', '--update', '--check', 'a'), "2 --update and --check exclude each other\n", 'both');
	is($said->('rails', '--timestamps', 'gmt', 'a'), "2 --timestamps takes utc or local\n", 'another zone');
	is($said->('rails', '--tabel', 'a'), "2 unknown argument --tabel; did you mean --table?\n", 'a mistyped option');
	is($said->('rails', '--role'), "2 --role needs a value\n", 'no value');
	like($said->('nowhere', "$folder/none"), qr/^1 .*database "nowhere" does not exist\n\z/, 'no database');
	$cluster->psql('create database empty');
	is($said->('empty', "$folder/none"), "1 there is no table\n", 'no table');
	is($said->('rails', "$program/x"), "1 $program/x: Not a directory\n", 'no folder there');
	is($said->('rails', '--update', $program), "1 $program: Not a directory\n", 'a file');
	is($said->('rails', "$folder/no/such"), "1 $folder/no/such: No such file or directory\n", 'only one folder is made');
	ok(!-e "$folder/none", 'nothing is made for nothing');

	$cluster->psql(q{create role barred login connection limit 0});
	my $run = EntityApi::Test::run([ $program, 'introspect', '--database', $cluster->conninfo('barred', 'rails'), "$folder/none" ]);
	like("$run->{status}$run->{err}", qr/^1entityapi-shim introspect: .*too many connections for role "barred"\n\z/, 'a login that may not connect');
	$cluster->psql(q{alter role peeper set statement_timeout = 1});
	like($said->('hand', "$folder/none"), qr/^(?:1 ERROR: +canceling statement due to statement timeout\n|0 )/, 'a statement that fails');
	$cluster->psql(q{alter role peeper reset all});
};

subtest 'only reads' => sub {
	$cluster->psql(q{alter role peeper set log_statement = 'all'; alter role peeper set default_transaction_read_only = on});
	introspect('rails', "$folder/reads");
	my @ran = grep { !/set search_path/ } EntityApi::Test::slurp($cluster->log) =~ /LOG:  (?:statement|execute <unnamed>): (.*)/g;
	like(shift @ran, qr/^begin isolation level repeatable read read only$/, 'a snapshot');
	is(scalar(grep { !/^(?:select|with recursive) / } @ran), 0, 'and questions');
	cmp_ok(scalar @ran, '<', 10, 'a few');
	$cluster->psql(q{alter role peeper reset all});
};

subtest 'Ctrl-C' => sub {
	# a lock on a catalog holds the first question
	my $held = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-Xqd', $cluster->conninfo('postgres', 'rails'),
		'-c', 'begin; lock pg_description; select pg_sleep(600)' ]);
	my $waits = sub { $cluster->psql(q{select count(*) from pg_stat_activity where usename = 'peeper' and wait_event_type = 'Lock'}) };
	ok(EntityApi::Test::wait_until(EntityApi::Test::PATIENCE(),
		sub { $cluster->psql(q{select count(*) from pg_locks where relation = 'pg_description'::regclass and mode = 'AccessExclusiveLock' and granted}) > 0 }), 'a catalog is locked');
	my $err = "$folder/interrupted";
	my $pid = EntityApi::Test::start([ $program, 'introspect', '--database', $cluster->conninfo('peeper', 'rails'), "$folder/none" ], err => $err);
	ok(EntityApi::Test::wait_until(EntityApi::Test::PATIENCE(), sub { $waits->() > 0 }), 'it waits');
	kill INT => $pid;
	waitpid $pid, 0;
	is($? >> 8, 1, 'it ends');
	like(EntityApi::Test::slurp($err), qr/canceling statement due to user request/, 'and says so');
	ok(EntityApi::Test::wait_until(EntityApi::Test::PATIENCE(), sub { $waits->() == 0 }), 'and so does its statement');
	ok(!-e "$folder/none", 'nothing is written');
	kill TERM => $held;
	waitpid $held, 0;
};

subtest 'memory' => sub {
	plan skip_all => 'no valgrind here' if EntityApi::Test::run([ 'valgrind', '--version' ])->{status} != 0;
	plan skip_all => 'a sanitized program' if EntityApi::Test::slurp($program) =~ /__asan_init|__tsan_init|__ubsan_handle/;
	my @valgrind = ('valgrind', '-q', '--error-exitcode=99', '--leak-check=full', '--show-leak-kinds=definite,possible', $program);

	for my $name (qw(hand hostile))
	{
		my $run = introspect($name, [@valgrind], '--check', "$folder/$name");
		is("$run->{status}$run->{err}", 0, "$name: nothing is lost");
	}
	my $run = introspect('later', [@valgrind], '--check', "$folder/hand");
	is($run->{status}, 1, 'nor where all differs');
	is($run->{err}, '', 'not a byte');
};

subtest 'served' => sub {
	my $service = EntityApi::Test->cluster;
	$service->psql(<<~'SQL');
		create schema sales authorization entityapi_owner;
		grant usage on schema sales to entityapi_reader;
		set role entityapi_owner;
		create table sales.customers (customer_no uuid primary key, full_name varchar(80) not null);
		create table sales.invoices (id uuid primary key, number int not null unique,
			customer_id uuid not null references sales.customers deferrable);
		insert into sales.customers values ('00000000-0000-7000-8000-000000000001', 'Ann');
		insert into sales.invoices values ('00000000-0000-7000-8000-000000000002', 7, '00000000-0000-7000-8000-000000000001');
		SQL
	my $run = EntityApi::Test::run([ $program, 'introspect', '--database', $service->conninfo, '--schema', 'sales', "$folder/sales" ]);
	is($run->{out}, "2 of 2 tables, 100 % of columns\n", 'all of it');
	unlike($service->apply("$folder/sales"), qr/create table/i, 'is applied');
	my $shim = EntityApi::Test->shim($service);
	my $answer = $shim->must(200, GET => '/api/v1/invoices?include=customer&filter=customer.fullName==Ann',
		{ token => $shim->superadmin->{accessToken} // $shim->superadmin });
	is($answer->{data}[0]{attributes}{number}, 7, 'and answers');
	is($answer->{included}[0]{attributes}{fullName}, 'Ann', 'with what it refers to');
	is($shim->must(200, GET => '/api/v1/customers/00000000-0000-7000-8000-000000000001/invoices',
		{ token => $shim->superadmin->{accessToken} // $shim->superadmin })->{data}[0]{id}, '00000000-0000-7000-8000-000000000002', 'and back');

	# what the service made is its own
	$run = EntityApi::Test::run([ $program, 'introspect', '--database', $service->conninfo, "$folder/own" ]);
	like("$run->{status}$run->{err}", qr/^1.*there is no table$/, 'its own tables are nobody else\'s');
};

# Tables that stay their owner's: no statement on them, from the first command to
# the last request
subtest 'served by their role' => sub {
	for my $name (qw(rails prisma django hibernate))
	{
		my $service = EntityApi::Test->cluster;
		my $tables = "select string_agg(format('%s %s %s %s', c.relname, c.relacl, c.relrowsecurity, c.relhastriggers), ' ' order by c.relname)"
		  . " from pg_class c where c.relowner = 'shop_web'::regrole";

		$service->psql('create role shop_web login; grant create on schema public to shop_web; grant create on database '
			  . $service->psql('select quote_ident(current_database())') . ' to shop_web');
		$service->psql("set client_min_messages = warning;\n" . EntityApi::Test::slurp("$data/$name.sql"), user => 'shop_web');
		my $before = $service->psql($tables);
		my $run = EntityApi::Test::run([ $program, 'introspect', '--database', $service->conninfo('shop_web'), "$folder/$name-served" ]);
		is($run->{status}, 0, "$name: introspected") or diag $run->{err};
		my $applied = $service->try_apply("$folder/$name-served");
		is($applied->{status}, 0, "$name: applied") or diag $applied->{err};
		is($service->psql($tables), $before, "$name: its tables are as they were");
		my $shim = EntityApi::Test->shim($service);
		my %token = (token => $shim->superadmin->{accessToken} // $shim->superadmin);
		my %text = texts("$folder/$name-served");
		my @collections = map { /^  plural: (\w+)$/m } grep { /^kind: Entity$/m } values %text;

		is($shim->http(GET => "/api/v1/$_", {%token})->{status}, 200, "$name: $_") for sort @collections;
		$shim->stop;
		$service->stop;
	}
};

done_testing;
