# What a change replaced, from tables that others made: columns with names that
# need quotes, of domains, behind a column that was dropped.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my %all = ('*' => [qw(create read update delete)]);

$cluster->psql(<<'SQL');
create schema own authorization entityapi_owner;
grant usage on schema own to entityapi_reader;
set role entityapi_owner;
create domain own.short as text check (length(value) < 40);
create table own."Thing" (tenant_id uuid not null, gone text, "The Id" uuid not null, "say ""it""" text, "Say" text, say text,
	"""" text, domain own.short, big text, primary key (tenant_id, "The Id"));
alter table own."Thing" drop column gone;
create table own.plain (tenant_id uuid not null, gone text, id uuid not null, gone_too int, word text, big text, primary key (tenant_id, id));
alter table own.plain drop column gone, drop column gone_too;
SQL

sub declared
{
	my ($name, $spec) = @_;

	open my $file, '>', "$folder/$name.json" or die "$name: $!\n";
	print {$file} JSON::PP->new->canonical->encode({ apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name }, spec => { permissions => \%all, %$spec } });
	close $file;
	return;
}

my %columns = (it => 'say "it"', upper => 'Say', lower => 'say', mark => '"', short => 'domain', big => 'big');
declared(Thing => { table => 'own.Thing', columns => { id => 'The Id', %columns }, fields => { map { $_ => { type => 'text' } } keys %columns } });
declared(Plain => { table => 'own.plain', fields => { word => { type => 'text' }, big => { type => 'text' } } });
my $applied = $cluster->try_apply($folder);
is($applied->{status}, 0, 'applied') or diag $applied->{err}, $applied->{out};

my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($shim->tenant('acme')->{id}, 'ann'), '/api/v1');
my $long = join ' ', map { $_ * 7919 % 10007 } 1 .. 3000;

# Change a resource once more, and compare the record with what was there
sub changes
{
	my ($collection, %fields) = @_;
	my %values = map { $_ => "first $_" } keys %fields;
	my $id = $ann->good(201, POST => "/$collection", data => { type => $collection, attributes => {%values} })->{json}{data}{id};

	for my $new (\%fields, { map { $_ => undef } keys %fields }, { map { $_ => "last $_" } keys %fields })
	{
		my %expected = map { $_ => [ $values{$_}, $new->{$_} ] } keys %fields;

		$ann->good(200, PATCH => "/$collection/$id", data => { type => $collection, id => $id, attributes => $new });
		my $told = $cluster->psql("select changes from entityapi.audit where target_id = '$id' order by id desc limit 1");
		is_deeply(JSON::PP::decode_json($told), \%expected, "$collection: what there was, and what there is");
		%values = %$new;
	}
	return;
}

changes('things', it => 'a', upper => 'b', lower => 'c', mark => 'd', big => $long);
changes('things', it => 'a', short => 'short');
changes('plains', word => 'a', big => $long);

is($shim->stop, 0, 'ends with 0');
done_testing;
