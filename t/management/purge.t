# What was deleted softly is gone for good after purgeAfterDays, and not before:
# a deletion at a time, with a record of it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test::Conformance;

my $editor = EntityApi::Test::Conformance->begin('trash');
my ($cluster, $shim) = ($editor->cluster, $editor->shim);
my $other = $editor->other;
my $admin = $shim->superadmin;

sub delete_it
{
	my ($who, $resource) = @_;

	return $who->good(204, DELETE => $who->path($resource), headers => { 'If-Match' => '*' });
}

# An earlier time of deletion, by functions that depend on no setting: Citus
# takes no others
sub days_before { return "(deleted_at at time zone 'UTC' - interval '$_[0] days') at time zone 'UTC'" }

# As if it had been that many days ago
sub days_ago
{
	my ($days, @tables) = @_;

	$cluster->psql("update app.$_ set deleted_at = @{[days_before($days)]} where deleted_at > now() - interval '1 day'")
	  for @tables ? @tables : qw(folder note pin badge cabinet);
	return;
}

# Steps are short; what cannot go is no row that went
sub sweep
{
	my $total = 0;

	for (1 .. 50)
	{
		my $n = $cluster->psql('select entityapi.sweep()') or last;
		$total += $n;
	}
	return $total;
}

sub purged
{
	my $log = $shim->http(GET => '/manage/audit?filter=action==ENTITY_PURGE&page[size]=100', { token => $admin })->{json}{data};

	return join "\n", sort map { "$_->{target}{type} $_->{target}{id} $_->{detail}" } @$log;
}

sub rows { return $cluster->psql('select (select count(*) from app.folder), (select count(*) from app.note), (select count(*) from app.pin), (select count(*) from app.badge)') }

sub tree
{
	my ($name) = @_;
	my $folder = $editor->made(folders => { name => $name }, { tags => [ $editor->made(tags => { word => $name }) ] });
	my $child = $editor->made(folders => { name => "$name/sub" }, { parent => $folder });
	my @notes = map { $editor->made(notes => { text => "$name $_" }, { folder => $child }) } 1 .. 2;

	$editor->made(pins => { colour => 'red' }, { thing => $notes[1] });
	$editor->made(badges => { label => $name }, { folder => $folder });
	return ($folder, $child, @notes);
}

subtest 'when it is due' => sub {
	my ($folder) = tree('due');

	delete_it($editor, $folder);
	sweep();
	is(rows(), '2|2|1|1', 'not at once');
	days_ago(29);
	sweep();
	is(rows(), '2|2|1|1', 'nor a day before');
	$cluster->psql("update app.$_ set deleted_at = @{[days_before(2)]} where deleted_at is not null") for qw(folder note pin badge);
	is(sweep(), 6, 'then all that went together');
	is(rows(), '0|0|0|0', 'is gone for good');
	is($cluster->psql('select count(*) from app.folder_tags'), 0, 'with its links');
	is(purged(), "folders $folder->{id} 6 rows, by a role of the database", 'and one record of it');
	my $record = $shim->http(GET => "/manage/audit?filter=targetId==$folder->{id};action==ENTITY_PURGE", { token => $admin })->{json}{data}[0];
	is($record->{tenantId}, $editor->{tenant}, 'which the tenant sees');
	is($cluster->psql("select count(*) from entityapi.audit where action = 'ENTITY_DELETE' and target_id = '$folder->{id}'"), 1, 'the deletion was recorded before');
	is($editor->call(POST => $editor->path($folder, 'restore'))->{status}, 404, 'nothing can be restored');
	is(sweep(), 0, 'nothing is left to do');
};

subtest 'what is not due' => sub {
	my ($live) = tree('live');
	my ($folder, $child, @notes) = tree('parts');
	my $cabinet = $editor->made(cabinets => { name => 'kept' });
	my $foreign = $other->made(folders => { name => 'abroad' });
	my $before;

	delete_it($editor, $notes[0]);
	delete_it($editor, $cabinet);
	delete_it($other, $foreign);
	days_ago(31);
	delete_it($editor, $folder);
	sweep();
	is(rows(), '4|3|2|2', 'a part that was deleted before, and what is of another tenant');
	is($editor->call(POST => $editor->path($cabinet, 'restore'))->{status}, 200, 'an entity without purgeAfterDays keeps all');
	is($editor->call(POST => $editor->path($folder, 'restore'))->{status}, 200, 'what was deleted later is there');
	ok(!$editor->gone($notes[1]), 'with what went with it');
	like(purged(), qr/^notes $notes[0]{id} 1 row,/m, 'a record of the part');
	like(purged(), qr/^folders $foreign->{id} 1 row,/m, 'and of the other tenant');
	is($cluster->psql("select tenant_id from entityapi.audit where action = 'ENTITY_PURGE' and target_id = '$foreign->{id}'"),
		$cluster->psql("select tenant_id from entityapi.audit where action = 'ENTITY_CREATE' and target_id = '$foreign->{id}'"), 'which is its own');
	ok(!$editor->gone($live), 'live ones stay');
};

subtest 'deletions that cannot be without another' => sub {
	my ($folder, $child, @notes) = tree('twice');
	my ($pin) = @{ $editor->good(200, GET => $editor->path($notes[1], 'pins'))->{json}{data} };

	delete_it($editor, $pin);
	delete_it($editor, $child);
	delete_it($editor, $folder);
	days_ago(31);
	sweep();
	is($cluster->psql("select count(*) from app.pin where id = '$pin->{id}'"), 0, 'go with it, whatever their own days are');
	like(purged(), qr/^$_/m, 'and are recorded') for "folders $folder->{id} 2 rows,", "folders $child->{id} 3 rows,", "pins $pin->{id} 1 row,";
};

subtest 'several at once' => sub {
	my @all = map { [ tree("several $_") ] } 1 .. 3;
	my $before = () = purged() =~ /\n/g;

	delete_it($editor, $_->[0]) for @all;
	days_ago(40);
	$cluster->psql('select * from entityapi.housekeep()') for 1 .. 10;
	my $after = () = purged() =~ /\n/g;
	is($after - $before, 3, 'a record for each deletion');
	is($cluster->psql('select count(*) from app.folder where deleted_at is not null'), 0, 'none is left');
};

subtest 'what cannot go' => sub {
	my ($held, $child, @notes) = tree('held');
	my ($free) = tree('free');

	delete_it($editor, $held);
	days_ago(50);
	delete_it($editor, $free);
	days_ago(40);
	# somebody makes a part of it live again, by hand
	$cluster->psql("update app.note set deleted_at = null, deletion_id = null where id = '$notes[0]{id}'");
	sweep() for 1 .. 2;
	is($cluster->psql("select count(*) from app.note where id = '$notes[0]{id}'"), 1, 'a live row stays');
	is($cluster->psql("select count(*) from app.folder where id = '$held->{id}'"), 1, 'and what it cannot be without');
	is($cluster->psql("select count(*) from app.folder where id = '$free->{id}'"), 0, 'others are not kept back');
	like(EntityApi::Test::slurp($cluster->log), qr/entityapi cannot purge \w+ [0-9a-f-]{36}: .*violates foreign key/, 'the log tells');
	$cluster->psql("update app.note set deleted_at = now() - interval '50 days' where id = '$notes[0]{id}'");
	sweep();
	is($cluster->psql("select count(*) from app.folder where id = '$held->{id}'"), 0, 'until it is mended');
};

subtest 'circles' => sub {
	my @ring = map { $editor->made(folders => { name => "ring $_" }) } 1 .. 3;

	$editor->update($ring[$_], {}, { parent => $ring[ ($_ + 1) % 3 ] }) for 0 .. 2;
	delete_it($editor, $ring[0]);
	days_ago(31);
	sweep();
	is($cluster->psql("select count(*) from app.folder where name like 'ring%'"), 0, 'end');
};

subtest 'who is at it' => sub {
	my ($folder) = tree('locked');

	delete_it($editor, $folder);
	days_ago(31);
	my $seen = $cluster->psql(<<"SQL");
create extension if not exists dblink;
select dblink_connect('other', 'dbname=entityapi host=' || split_part(current_setting('unix_socket_directories'), ',', 1) || ' port=' || current_setting('port'));
select dblink_exec('other', 'begin');
select count(*) from dblink('other', 'select id from app.folder where tenant_id = ''$editor->{tenant}'' and id = ''$folder->{id}'' for update') as t (id uuid);
select entityapi.sweep();
select count(*) from app.note n join app.folder f on f.tenant_id = n.tenant_id and f.id = n.folder_id where f.deleted_at is not null;
select dblink_exec('other', 'rollback');
select entityapi.sweep();
SQL
	is((split /\n/, $seen)[-4], 0, 'what is held is left, all of it') or diag $seen;
	is((split /\n/, $seen)[-3], 2, 'its parts, too') or diag $seen;
	is((split /\n/, $seen)[-1], 6, 'and goes with the next step');
};

subtest 'without a log' => sub {
	my ($folder) = tree('quiet');
	my $folder_of = EntityApi::Test::folder();
	my $before = purged();

	delete_it($editor, $folder);
	days_ago(31);
	EntityApi::Test::run([ 'cp', '-r', EntityApi::Test::checkout() . '/t/data/conformance/trash/.', $folder_of ]);
	my $text = EntityApi::Test::slurp("$folder_of/entities.yaml") =~ s/spec: \{schema: app\}/spec: {schema: app, audit: {entities: false}}/r;
	open my $out, '>', "$folder_of/entities.yaml" or die "$folder_of: $!\n";
	print $out $text;
	close $out;
	$cluster->apply($folder_of);
	is(sweep(), 6, 'it goes all the same');
	is(purged(), $before, 'and nothing is recorded');
	my $done = $cluster->apply($folder_of);
	unlike($done, qr/CREATE|ALTER/, 'applied once');
};

subtest 'taken away' => sub {
	my ($folder) = tree('kept');
	my $folder_of = EntityApi::Test::folder();

	delete_it($editor, $folder);
	days_ago(31);
	EntityApi::Test::run([ 'cp', '-r', EntityApi::Test::checkout() . '/t/data/conformance/trash/.', $folder_of ]);
	my $text = EntityApi::Test::slurp("$folder_of/entities.yaml") =~ s/^  purgeAfterDays: 30\n//gmr;
	open my $out, '>', "$folder_of/entities.yaml" or die "$folder_of: $!\n";
	print $out $text;
	close $out;
	my $told = $cluster->apply($folder_of);
	like($told, qr/DROP INDEX app\.folder__deleted_at_idx/, 'its index goes');
	is(sweep(), 0, 'nothing is swept');
	is($editor->call(POST => $editor->path($folder, 'restore'))->{status}, 200, 'it comes back');
};

done_testing;
