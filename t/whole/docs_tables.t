# Tables of the pages that tell what the program has are compared with it, in
# both directions: settings, functions, routes, codes, events, metrics, kinds and
# keys of manifests.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Pages;

my $checkout = EntityApi::Test::checkout();
my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/examples/billing");
my $shim = EntityApi::Test->shim($cluster, metrics => 'true');

sub table
{
	return EntityApi::Test::Pages::table(@_);
}

sub code
{
	return EntityApi::Test::Pages::code($_[0]);
}

# The sources of a folder, however deep they lie
sub sources
{
	my ($folder) = @_;

	return join '', map { EntityApi::Test::slurp($_) } grep { !/\bcivetweb/ } glob("$checkout/$folder/*.[ch] $checkout/$folder/*/*.[ch]");
}

sub same
{
	my ($shown, $there, $name) = @_;

	cmp_ok(scalar @$there, '>', 0, "$name: there are some");
	return is(join("\n", sort @$shown), join("\n", sort @$there), $name);
}

# A table with one thing a row: its name, then what it is by default
sub defaults
{
	return map { my ($value) = code($_->[1]); "$_->[0] " . ($value // '') }
	  map { [ (code($_->[0]))[0], $_->[1] ] } @_;
}

subtest 'settings of the extension' => sub {
	my @there = split /\n/, $cluster->psql(
		"load 'entityapi'; select name || ' ' || boot_val from pg_settings where name like 'entityapi.%'");
	my @set = split /\n/, $cluster->psql(
		"load 'entityapi'; select name || ' ' || current_setting(name) from pg_settings where name like 'entityapi.%' and source = 'default'");
	my @shown = defaults(table('docs/operations.md', 'Settings of the extension'));

	same([ map { s/ .*//r } @shown ], [ map { s/ .*//r } @there ], 'names');
	my %shown = map { $_ => 1 } @shown;
	is(join("\n", grep { !$shown{$_} } @set), '', 'values as SHOW tells them');
	cmp_ok(scalar @set, '>', 30, 'of nearly all');
};

subtest 'settings of the shim' => sub {
	my @rows = table('docs/shim.md', 'Settings');
	my $run = EntityApi::Test::run([ 'env', '-i', EntityApi::Test::private_program('entityapi-shim'), 'serve', '--print-config' ]);
	my $there = JSON::PP->new->decode($run->{out});
	my %shown = map { (code($_->[0]))[0] => $_ } @rows;

	same([ keys %shown ], [ keys %$there ], 'names');
	for my $name (sort keys %$there)
	{
		my $text = ($shown{$name} // next)->[1];
		my $value = JSON::PP::is_bool($there->{$name}) ? ($there->{$name} ? 'true' : 'false') : $there->{$name};

		next if $text =~ /^[a-z]/;    # worked out from others
		is((code($text))[0] // '', $value, "default of $name");
	}
	my %again = sources('shim') =~ /^\t(?:STRING|INTEGER|BOOLEAN)\((\w+),(.*?)\n\t\t/msg;
	my @again = grep { $again{$_} =~ /RELOADABLE/ } keys %again;
	same([ map { (code($_->[0]))[0] } grep { $_->[0] =~ /\*$/ } @rows ], \@again, 'which SIGHUP changes');
};

subtest 'functions' => sub {
	my @there = split /\n/, $cluster->psql(<<~'SQL');
		select distinct proname || '(' || coalesce((select string_agg(name, ', ' order by n)
			from unnest(proargnames, proargmodes) with ordinality a(name, mode, n)
			where coalesce(mode, 'i') = 'i'), '') || ')'
		from pg_proc
		where pronamespace = 'entityapi'::regnamespace and prorettype <> 'trigger'::regtype
			and (has_function_privilege('entityapi_owner', oid, 'execute') or proname in ('create_restore_point', 'compare_nodes'))
			and not has_function_privilege('entityapi_reader', oid, 'execute')
		SQL
	my @rows = table('docs/operations.md', 'SQL functions');
	same([ map { code($_->[0]) } @rows ], \@there, 'that one may call');
};

my @routes = map {
	my ($methods, $paths) = @$_;
	my @paths = code($paths);
	map { my $method = $_; map { "$method $_" } @paths } split /, /, $methods
} table('docs/api.md', 'Routes');

subtest 'routes' => sub {
	my $paths = $shim->must(200, GET => '/api/v1/openapi.json')->{paths};
	my %there = map { ("GET $_" => 1) } '/actuator/metrics', '/actuator/metrics/{name}', '/actuator/prometheus';

	# nothing of the example is deleted softly
	$there{'POST /api/v{n}/{entities}/{id}/restore'} = 1;
	for my $path (keys %$paths)
	{
		my $route = $path =~ s{^/api/v1/}{/api/v{n}/}r;

		$route =~ s{^(/api/v\{n\}/\{?)\w+(\}?/\{id\}/relationships/)\w+$}{/api/v{n}/{entities}/{id}/relationships/{relationship}}
		  || $route =~ s{^/api/v\{n\}/\w+(/\{id\}/history)$}{/api/v{n}/{entities}$1}
		  || $route =~ s{^/api/v\{n\}/\w+/\{id\}/\w+$}{/api/v{n}/{entities}/{id}/{relationship}}
		  || $route =~ s{^/api/v\{n\}/\w+/\{id\}$}{/api/v{n}/{entities}/{id}}
		  || $route =~ s{^/api/v\{n\}/(?!operations$)\w+$}{/api/v{n}/{entities}};
		$there{ uc($_) . " $route" } = 1 for grep { ref $paths->{$path}{$_} eq 'HASH' } keys %{ $paths->{$path} };
	}
	same(\@routes, [ keys %there ], 'of the description');
	is($shim->http(GET => "/actuator/$_")->{status}, 200, "/actuator/$_") for qw(metrics prometheus);
};

subtest 'codes' => sub {
	my ($own) = sources('extension') =~ /ea_error_table\[\] =\s*\{(.*?)\n\};/s;
	my @own = map { s/^(\d+)\W+/$1 /r } $own =~ /(\d{3}, "[A-Z_]+)"/g;
	my %shim = map { s/^(\d+)\W+/$1 /r => 1 } map { EntityApi::Test::slurp($_) =~ /(\d{3}, "[A-Z_]+)"/g }
	  glob("$checkout/shim/refusal.[ch] $checkout/shim/*/refusal.[ch]");
	my $rows = sub {
		map { my ($status, $codes) = @$_; map { "$status $_" } code($codes) } table('docs/api.md', $_[0]);
	};

	same([ $rows->('Errors') ], \@own, 'of the extension');
	same([ $rows->('Refusals of the shim') ], [ keys %shim ], 'of the shim');
};

subtest 'events' => sub {
	my @rows = table('docs/audit.md', 'Events of identity and management');
	my @shown = map { $_->[1] =~ s/`//gr } @rows;
	my $source = sources('extension');

	same([ map { split /, / } @shown ], [ grep { !/^GET/ && !m{ /api/} } @routes ], 'one for each route that changes something');
	is(join(' ', grep { $source !~ /"$_"/ } map { code($_->[0]) } @rows), '', 'called so');
};

subtest 'metrics' => sub {
	my %there = map { $_ => 1 } $shim->http(GET => '/actuator/prometheus')->{body} =~ /^# TYPE (\w+)/mg;
	my @shown;

	for my $row (table('docs/shim.md', 'Metrics'))
	{
		my ($first, @others) = code($row->[0]);
		push @shown, $first, map { /^\.\.\./ ? ($first =~ /^(.*_)opened_total$/)[0] . s/^\.\.\._//r : $_ } @others;
	}
	same(\@shown, [ keys %there ], 'by name');
};

subtest 'manifests' => sub {
	my $source = sources('extension');
	my @kinds = $source =~ /\{"([A-Z]\w+)", (?:true|false), \w*read_\w+\}/g;
	my ($field) = $source =~ /\bfield_keys\[\] =\s*\{(.*?)\n\};/s;
	my ($entity) = $source =~ /\bentity_keys\[\] =\s*\{(.*?)\n\};/s;
	my @rows = table('docs/manifests.md', 'Kinds');

	same([ map { (code($_->[0]))[0] } @rows ], \@kinds, 'kinds');
	same([ map { code($_->[0]) } table('docs/manifests.md', 'Keys of fields') ], [ ($field // '') =~ /[{(]"(\w+)", EA_KEY/g ], 'keys of fields');
	same([ grep { /^[a-z]\w+$/ } code($rows[0][1]) ], [ ($entity // '') =~ /[{(]"(\w+)", EA_KEY/g ], 'keys of entities');

	my @types = EntityApi::Test::slurp("$checkout/extension/model/typelist.h") =~ /^\s+EA_TYPE_NAME\("(\w+)"\)/mg;
	same([ grep { !/^(?:ref|oneof)$/ } map { code($_->[0]) } table('docs/manifests.md', 'Types') ], \@types, 'types');
};

done_testing;
