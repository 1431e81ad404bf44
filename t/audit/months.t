# Months of the audit log begin and end in UTC, whatever a role or a session has
# set: the bounds pass through text.

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;

# IST is printed for Kolkata's time and read as Israel's; CST and others alike
my @settings = (
	"set datestyle = 'SQL, DMY'; set timezone = 'Asia/Kolkata'",
	"set datestyle = 'Postgres, MDY'; set timezone = 'Asia/Shanghai'",
	"set datestyle = 'German'; set timezone = 'Asia/Kolkata'; set intervalstyle = 'sql_standard'",
	"set datestyle = 'SQL, MDY'; set timezone = 'Australia/Sydney'; set timezone_abbreviations = 'Australia'; set intervalstyle = 'iso_8601'",
	"set timezone = 'Pacific/Apia'; set extra_float_digits = -15",
	"set timezone = 'XYZ+13:37'; set datestyle = 'Postgres, DMY'",
	"set timezone = 'Asia/Kolkata'; set standard_conforming_strings = off; set escape_string_warning = off",
);

$cluster->psql('create role deployer login; grant entityapi_owner to deployer');

sub bounds
{
	my ($year) = @_;

	return $cluster->psql(qq{set timezone = 'UTC';
		select string_agg(pg_get_expr(c.relpartbound, c.oid), E'\n' order by c.relname) from pg_class c where c.relname ~ '^audit_$year'});
}

my $year = 2050;
for my $level ('session', 'role')
{
	for my $settings (@settings)
	{
		my $set = $settings;

		$year++;
		if ($level eq 'role')
		{
			$cluster->psql('alter role deployer reset all; ' . join '; ', map { s/^\s*set /alter role deployer set /r } split /;\s*/, $settings);
			$set = '';
		}
		# records for which there is no month yet, around its ends
		$cluster->psql(qq{insert into entityapi.audit (id, at, action, outcome)
			select gen_random_uuid(), at::timestamptz, 'OLD', 'SUCCESS' from unnest(array['$year-01-31T23:59:59.999999Z', '$year-02-01T00:00:00Z',
				'$year-02-28T23:59:59.999999Z', '$year-03-01T00:00:00Z']) at});
		my $done = $cluster->try_psql("$set; select entityapi.extend_audit('$year-02-01T00:00:00Z', 1)", user => 'deployer');
		is($done->{err}, '', "$level: $settings");
		is(bounds($year), join("\n", map { "FOR VALUES FROM ('$year-0$_-01 00:00:00+00') TO ('$year-0${\($_ + 1)}-01 00:00:00+00')" } 2, 3), 'the months are those of UTC');
		is($cluster->psql("select string_agg(tableoid::regclass::text, ' ' order by at) from entityapi.audit where extract(year from at at time zone 'UTC') = $year"),
			"entityapi.audit_default entityapi.audit_${year}_02 entityapi.audit_${year}_02 entityapi.audit_${year}_03", 'and the records are in them');
		is($cluster->psql(q{select c.reltablespace = 0 and c.relam = (select oid from pg_am where amname = 'heap') and c.relowner = 'postgres'::regrole
				from pg_class c where c.relname = } . "'audit_${year}_02'"), 't', 'made as all are');
	}
}

# What is dropped, and what audit_default has, goes by the same months
my $past = 1980;
for my $settings (@settings)
{
	$past++;
	$cluster->psql('alter role deployer reset all');
	$cluster->psql(qq{insert into entityapi.audit (id, at, action, outcome)
		select gen_random_uuid(), at::timestamptz, 'OLD', 'SUCCESS' from unnest(array['$past-01-31T23:59:59.999999Z', '$past-02-01T00:00:00Z',
			'$past-02-28T23:59:59.999999Z', '$past-03-01T00:00:00Z']) at});
	my $done = $cluster->try_psql("$settings; select entityapi.purge_audit('$past-03-01T00:00:00Z')", user => 'deployer');
	is($done->{err}, '', "purge: $settings");
	is($cluster->psql(qq{set timezone = 'UTC'; select string_agg(at::text, ' ') from entityapi.audit where at < '$past-12-31'}), "$past-03-01 00:00:00+00",
		'all from before is gone, and nothing else');
	like($cluster->psql(q{select detail from entityapi.audit where action = 'AUDIT_PURGED' order by at desc limit 1}),
		qr/^\d+ months with 3 records, all from before $past-03-01T00:00:00Z, by a role of the database$/, 'as the record says');
	$cluster->psql("select entityapi.purge_audit('$past-12-31')");
}

done_testing();
