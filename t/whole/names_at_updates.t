# Names that were two by the locale of a database, and are one by Unicode: the
# update refuses and names them, one is renamed while the objects are still the
# old ones, and then all keys are made anew.

use strict;
use warnings;
use utf8;

use Test::More;

use EntityApi::Test;
use EntityApi::Test::Released;

my $cluster = EntityApi::Test->cluster;
my @released = EntityApi::Test::Released::install($cluster) ? EntityApi::Test::Released::versions() : ();

plan skip_all => 'released versions are installed beside what make test makes only' if !@released;

sub id { return sprintf '01980000-0000-7000-8000-%012d', $_[0] }

# As a Turkish database has them: I is ı in lower case, İ is i
my @users = (
	[ 1, 'TITI', "t\x{131}t\x{131}" ], [ 2, 'titi', 'titi' ],
	[ 3, 'IX', "\x{131}x" ], [ 4, "\x{130}x", 'ix' ],
	[ 5, "\N{U+b5}", "\N{U+b5}" ], [ 6, "\x{39c}", "\x{3bc}" ], [ 7, 'plain', 'plain' ]);
my $rows = join ', ', map { sprintf "('%s', '01980000-0000-7000-8000-00000000000a', 'USER', '%s', '%s', 'ACTIVE', '{}', '{}', '{}', false, false, now())", id($_->[0]), @$_[1, 2] } @users;

for my $version (@released)
{
	subtest "from $version" => sub {
		my $database = 'from_' . $version =~ tr/./_/r;
		my $psql = sub { $cluster->psql($_[0], database => $database) };
		my $update = sub { $cluster->try_psql('alter extension entityapi update', database => $database)->{err} };
		my $keys = q{select string_agg(username || '=' || coalesce(username_key, '-'), ' ' order by id) from entityapi.account};

		$cluster->psql("create database $database", database => 'postgres');
		$psql->("create extension pgcrypto; create extension entityapi version '$version';
			insert into entityapi.tenant values ('01980000-0000-7000-8000-00000000000a', 'A', 'a', 'ACTIVE', '{}', now());
			insert into entityapi.account (id, tenant_id, kind, username, username_key, status, roles, profile, security_attributes, password_change_required, is_super_admin, created_at)
			values $rows;
			insert into entityapi.account (id, tenant_id, kind, username, status, roles, profile, security_attributes, password_change_required, is_super_admin, created_at)
			values ('${\id(8)}', '01980000-0000-7000-8000-00000000000a', 'SERVICE_ACCOUNT', 'TITI', 'ACTIVE', '{}', '{}', '{}', false, false, now());
			insert into entityapi.common_password values ('çok ı\N{U+b5} 12345'), ('çok ı\x{3bc} 12345'), ('\N{U+b5}-word 12345'), (repeat('x', 600))");

		my $before = $psql->($keys);
		my $said = $update->();
		like($said, qr/ERROR:  usernames that were two become one without case/, 'an update refuses');
		like($said, qr/DETAIL:  "TITI" \(${\id(1)}\) and "titi" \(${\id(2)}\)\n"\N{U+b5}" \(${\id(5)}\) and "\x{39c}" \(${\id(6)}\)\n/, 'names them, with their ids');
		my ($hint) = $said =~ /HINT:  .*?: (CREATE FUNCTION .*;)$/m or return fail('a hint');
		is($psql->($keys), $before, 'and changes nothing');

		# as the hint has it
		my ($make, $call) = $hint =~ /^(.*?;) (SELECT .*\()id, name\);$/ or return fail('two statements');
		my $rename = sub { $cluster->try_psql("$make ${call}'$_[0]', '$_[1]')", database => $database)->{err} };

		like($rename->(id(1), 'PLAIN'), qr/this username is taken/, 'not to a name of another');
		like($rename->(id(1), "\t"), qr/a username has 1 to 128 characters/, 'nor to what is none');
		like($rename->(id(8), 'new'), qr/there is no user with this id/, 'service accounts have no username');
		is($rename->(id(1), ' Titi of Sales '), '', 'one is renamed');
		like($update->(), qr/DETAIL:  "\N{U+b5}" \(${\id(5)}\) and "\x{39c}" \(${\id(6)}\)\n/, 'the others are left');
		is($rename->(id(5), 'micro'), '', 'and one more');
		is($psql->(q{select string_agg(concat_ws(' ', action, outcome, tenant_id is not null, actor_username, target_type, right(target_id, 1), changes, detail), E'\n' order by at) from entityapi.audit}),
			"USER_RENAMED SUCCESS t postgres user 1 {\"username\":[\"TITI\",\"Titi of Sales\"]} by a role of the database\n"
			. "USER_RENAMED SUCCESS t postgres user 5 {\"username\":[\"\N{U+b5}\",\"micro\"]} by a role of the database", 'both are in the log');
		is($update->(), '', 'then it is updated');
		is($psql->($keys), "Titi of Sales=titi of sales titi=titi IX=ix \x{130}x=\x{130}x micro=micro \x{39c}=\x{3bc} plain=plain TITI=-", 'by new keys');
		is($psql->(q{select string_agg(left(password, 20), ',' order by password) from entityapi.common_password where not built_in}),
			"xxxxxxxxxxxxxxxxxxxx,çok ı\x{3bc} 12345,\x{3bc}-word 12345", 'and so are passwords');
		is($psql->("select entityapi.rename_account('${\id(7)}', 'Plain')"), '', 'the function is there');
		is($psql->('select count(*) from entityapi.account where username = \'Plain\' and username_key = \'plain\''), 1, 'and works');
	};
}

done_testing();
