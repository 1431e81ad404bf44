# Values of the log belong to the members that they were written to, whatever
# has the name of these by now: the log and the history say the same of them.

use strict;
use warnings;

use JSON::PP;
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;

my $cluster = EntityApi::Test->cluster;
my $json = JSON::PP->new->canonical;
my %all = (Boss => [qw(create read update delete history)], Auditor => [qw(read history)]);
my $no = JSON::PP::false;

sub ref_to { my ($target, %more) = @_; return { type => 'ref', target => $target, relation => 'ManyToOne', onDelete => 'setNull', %more } }

# Entities by name: fields, and more of the spec
sub apply
{
	my ($entities, @lost) = @_;
	my $text = $json->encode([ map { { apiVersion => 'entityapi/v1', %$_ } }
		{ kind => 'Service', metadata => { name => 's' }, spec => { schema => 'app', tenantAdminBypass => $no } },
		{ kind => 'Roles', metadata => { name => 'r' }, spec => { roles => { map { $_ => undef } keys %all } } },
		$entities->{Folder} ? { kind => 'Policy', metadata => { name => 'Open' }, spec => { expression => q('Boss' in #user.roles or #record.open == true) } } : (),
		$entities->{Secret} ? { kind => 'OneOf', metadata => { name => 'Subject' }, spec => { members => [qw(Note Secret)] } } : (),
		map { { kind => 'Entity', metadata => { name => $_ }, spec => { permissions => \%all, %{ $entities->{$_} } } } } sort keys %$entities ]);

	$cluster->psql("select count(*) from entityapi.apply_manifest(\$j\$$text\$j\$, false, '{" . join(',', @lost) . "}')");
	return;
}

my $nick = { type => 'string' };
my $salary = { type => 'string', readRoles => ['Boss'] };

apply({ Person => { plural => 'people', fields => { nick => $nick, salary => $salary } } });
my $shim = EntityApi::Test->shim($cluster);
my $tenant = $shim->tenant('here')->{id};
my $root = EntityApi::Test::Cases->new($shim, $shim->superadmin, '/api/v1');
my $boss = $root->as($shim->user($tenant, 'boss', ['Boss']));
my $admin = $root->as($shim->user($tenant, 'admin', ['Auditor']));
$root->good(204, POST => "/manage/tenants/$tenant/tenant-admins/" . $admin->good(200, GET => '/auth/me')->{json}{userId});

sub make
{
	my ($type, $attributes, %relationships) = @_;

	return $boss->good(201, POST => "/$type", data => { type => $type, attributes => $attributes,
		relationships => { map { $_ => { data => $relationships{$_} } } keys %relationships } })->{json}{data}{id};
}

# Of the record of a creation: what the log shows, and what the history does
sub told
{
	my ($who, $type, $id) = @_;
	my $list = $who->good(200, GET => "/manage/audit?filter=targetId==$id;action==ENTITY_CREATE")->{json}{data};
	my $history = $who->call(GET => "/$type/$id/history");
	my ($item) = grep { $_->{attributes}{action} eq 'ENTITY_CREATE' } @{ $history->{json}{data} // [] };

	return { map { $_ => $list->[0]{changes}{$_}[1] } keys %{ $list->[0]{changes} } },
	  { map { $_ => $item->{attributes}{changes}{$_}{to} } keys %{ $item->{attributes}{changes} // {} } };
}

sub both
{
	my ($expected, $name, @which) = @_;
	my ($log, $history) = told($admin, @which);

	is_deeply($log, $expected, "$name: the log");
	is_deeply($history, $expected, "$name: the history");
	return;
}

my $joe = make(people => { nick => 'Joe', salary => 'SECRET' });
both({ nick => 'Joe' }, 'as it is', people => $joe);

apply({ Person => { plural => 'people', fields => { salary => { %$nick, renamedFrom => 'nick' }, nick => { %$salary, renamedFrom => 'salary' } } } });
both({ salary => 'Joe' }, 'names exchanged', people => $joe);
is_deeply((told($root, people => $joe))[0], { nick => 'Joe', salary => 'SECRET' }, 'a SuperAdmin sees the record as it is');

apply({ Person => { plural => 'people', fields => { salary => $salary, nick => $nick } } });
both({ nick => 'SECRET' }, 'read roles moved', people => $joe);

apply({ Person => { plural => 'people', fields => { salary => $nick } } }, 'Person.nick');
apply({ Person => { plural => 'people', fields => { salary => $nick, nick => $nick } } });
both({ salary => 'Joe' }, 'a field dropped, and another of its name', people => $joe);

apply({ Person => { plural => 'people', fields => { salary => { type => 'integer' }, nick => $nick } } }, 'Person.salary');
both({}, 'a value that the type does not take goes with its column', people => $joe);

apply({}, 'Person');
my $human = { plural => 'people', fields => { salary => $nick, nick => $nick } };
apply({ Human => $human });
both({}, 'an entity dropped, and another of its type', people => $joe);
is_deeply((told($root, people => $joe))[0], { nick => 'Joe', salary => 'SECRET' }, 'the SuperAdmin sees what there was');

my $ann = make(people => { nick => 'Ann', salary => 'open' });
my %man = (Man => { %$human, plural => 'men' });
apply({ Man => { %{ $man{Man} }, renamedFrom => 'Human' } });
apply({ %man, Human => { plural => 'people', fields => { salary => $nick } } });
both({ nick => 'Ann', salary => 'open' }, 'a renamed entity, though another has its type', men => $ann);

# -------- relationships --------

my %kinds = (Secret => { fields => { name => $nick } }, Note => { fields => { name => $nick } });
my %page = (Page => { fields => { title => $nick, about => ref_to('Note'),
			on => { type => 'oneof', target => 'Subject', onDelete => 'setNull' }, notes => { type => 'ref', target => 'Note', relation => 'ManyToMany' } } });

apply({ %kinds, %page }, qw(Man Human));
my ($note, $secret) = (make(notes => { name => 'n' }), make(secrets => { name => 's' }));
my ($to_note, $to_secret) = ({ type => 'notes', id => $note }, { type => 'secrets', id => $secret });
my $page = make(pages => { title => 'p' }, about => $to_note, on => $to_secret, notes => [$to_note]);
both({ title => 'p', about => $to_note, on => $to_secret, notes => [$note] }, 'relationships', pages => $page);

apply({ %kinds, Note => { %{ $kinds{Note} }, plural => 'remarks' }, %page });
my $to_remark = { %$to_note, type => 'remarks' };
both({ title => 'p', about => $to_remark, on => $to_secret, notes => [$note] }, 'a target by its new type', pages => $page);

# The members of a one-of change, and an entity comes back under its name
my %alone = (Page => { fields => { %{ $page{Page}{fields} }, on => ref_to('Note') } });
apply({ Note => $kinds{Note}, %alone }, qw(Secret Page.on));
both({ title => 'p', about => $to_note, notes => [$note] }, 'a target that is there no more', pages => $page);
apply({ %kinds, %page });
both({ title => 'p', about => $to_note, notes => [$note] }, 'nor is it its namesake', pages => $page);

my %bare = (Page => { fields => { title => $nick } });
apply({ %bare }, qw(Note Secret Page.about Page.on Page.notes));
apply({ %kinds, %page });
both({ title => 'p' }, 'relationships to what has gone', pages => $page);

# -------- what would tell that there is something --------

my $hidden = { fields => { name => $nick, open => { type => 'boolean' } }, policies => { Open => ['read'] } };
apply({ Folder => $hidden, Doc => { fields => { title => $nick, folder => ref_to('Folder'), folders => { type => 'ref', target => 'Folder', relation => 'ManyToMany' } } } },
	qw(Note Secret Page));
my %folder = map { $_ => { type => 'folders', id => make(folders => { name => $_, open => $_ eq 'seen' ? JSON::PP::true : $no }) } } qw(seen hidden);
my @docs = map { make(docs => { title => 't' }, %$_) } {}, { folder => undef, folders => [] }, map { { folder => $_, folders => [$_] } } @folder{qw(hidden seen)};
my ($none, $null, $unseen, $seen) = map { (told($admin, docs => $_))[1] } @docs;
is_deeply($_, { title => 't' }, 'nothing of what is hidden, as of what is not there') for $none, $null, $unseen;
is_deeply($seen, { title => 't', folder => $folder{seen}, folders => [ $folder{seen}{id} ] }, 'what is seen');

sub history_of { my ($who, $id) = @_; return [ map { $_->{attributes}{changes} } @{ $who->good(200, GET => "/docs/$id/history")->{json}{data} } ] }

$boss->good(200, PATCH => "/docs/$docs[3]", data => { type => 'docs', id => $docs[3], relationships => {
		folder => { data => $folder{hidden} }, folders => { data => [ @folder{qw(seen hidden)} ] } } });
is_deeply(history_of($admin, $docs[3])->[0], { folder => { from => $folder{seen}, to => undef } }, 'a link that goes to what is hidden; a list that is the same');
is_deeply((told($admin, docs => $docs[3]))[0], { title => 't' }, 'the log shows nothing that leads to what may be hidden');

is($shim->stop, 0, 'ends with 0');
done_testing;
