# Those who write, those who alter tables, and one who cancels, each a process
# with a session of its own (t/engine/random_load.t).  Each notes what it did
# in a file, when it has ended, as JSON.

package Workers;

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Time::HiRes qw(sleep time);

use EntityApi::Test;
use EntityApi::Test::Session;
use Tables;

my $json = JSON::PP->new->canonical;

sub pick { return $_[ rand @_ ] }
sub between { my ($from, $to) = @_; return $from + int rand($to - $from + 1) }

# The world: tables, folder, until, folders, docs, labels
sub new
{
	my ($class, %world) = @_;
	return bless {%world}, $class;
}

# Begin all of them, by kind and number; their process ids
sub begin
{
	my ($self, @kinds) = @_;
	my $number = 0;

	return map {
		my ($kind, $seed, $name) = ($_, int rand 2**31, $number++);
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			srand $seed;
			@$self{qw(done maybe sum strange)} = ({}, {}, {}, {});
			eval { $self->$kind($name); 1 } or $self->{strange}{$@}++;
			open my $out, '>', "$self->{folder}/$kind.$name" or POSIX::_exit(1);
			print $out $json->encode({ map { $_ => $self->{$_} } qw(done maybe sum strange) });
			close $out;
			POSIX::_exit(0);
		}
		$pid;
	} @kinds;
}

sub notes { my ($self) = @_; return map { $json->decode(EntityApi::Test::slurp($_)) } glob "$self->{folder}/*.[0-9]*" }

sub _goes_on { return time < $_[0]{until} }

# -------- writers --------

# SQLSTATEs that a statement may end with: it was cancelled or lost, or others
# were there first; or the transaction is at its end
my %usual = map { $_ => 1 } qw(57014 40001 40P01 55P03 25P02 25001 3B001);

# What answers may have but for what the request is about
my $wrong = qr/^5(?!03)/;

sub _session
{
	my ($self) = @_;

	return if $self->{session};
	$self->{session} = EntityApi::Test::Session->new($self->{tables}{cluster}, name => 'writer');
	$self->_ask('set entityapi.plan_cache_size = ' . pick(10, 20, 500));
	$self->_ask('set plan_cache_mode = ' . pick(qw(force_custom_plan force_generic_plan))) if rand() < 0.2;
	return;
}

# Ends the attempt by an exception that the caller knows.
sub _ask
{
	my ($self, $sql) = @_;
	my $answer = $self->{session}->ask($sql);

	return $answer if $answer->{sqlstate} eq '00000';
	die { %$answer, sql => $sql };
}

sub _request
{
	my ($self, @request) = @_;
	my $answer = $self->_ask($self->{tables}->request(@request));
	my ($status, $body) = $answer->{out} =~ /^(\d+)\|(.*)$/s;

	$self->{sum}{"$request[0] $status"}++;
	$self->{strange}{"$request[0] $status $body"}++ if $status =~ $wrong;
	return ($status, $body);
}

sub noise { my ($n) = @_; return join '', map { chr 97 + int rand 10 } 1 .. $n }

# A document's number and version as they are read
sub _read
{
	my ($self, $id) = @_;
	my ($status, $body) = $self->_request(GET => "/docs/$id");

	return if $status != 200;
	my $data = $json->decode($body)->{data};
	return ($data->{attributes}{n} // 0, $data->{meta}{version});
}

sub _increment
{
	my ($self) = @_;
	my $id = pick(@{ $self->{docs} });
	my ($n, $version) = $self->_read($id) or return;
	my %new = (n => $n + 1);
	my $which = rand;

	$new{note} = noise(pick(10, 3000, 9000)) if $which < 0.3;
	$new{m} = between(0, 50) if $which > 0.6;
	$new{name} = 'n' . between(0, 99) if $which > 0.8;
	my ($status) = $self->_request(PATCH => "/docs/$id",
		Tables::resource(docs => \%new, rand() < 0.3 ? { folder => Tables::identifier(folders => pick(@{ $self->{folders} })) } : undef, $id), "\"$version\"");
	$self->{pending}{$id}++ if $status == 200;
	return;
}

sub _increment_thrice
{
	my ($self) = @_;
	my $id = pick(@{ $self->{docs} });
	my ($n, $version) = $self->_read($id) or return;
	my ($status) = $self->_request(POST => '/operations', { 'atomic:operations' => [
				map { { op => 'update', data => { type => 'docs', id => $id, attributes => { n => $n + $_ + 1, m => between(0, 50) }, meta => { version => $version + $_ } } } } 0 .. 2 ] });

	$self->{pending}{$id} += 3 if $status == 200;
	return;
}

sub _create
{
	my ($self) = @_;
	my ($status, $body) = $self->_request(POST => '/docs', Tables::resource(docs => { name => 'w' . between(0, 9), code => 'c' . between(0, 400), m => between(0, 50), note => 'z' x pick(1, 5000) },
			rand() < 0.7 ? { folder => Tables::identifier(folders => pick(@{ $self->{folders} })) } : undef));

	push @{ $self->{mine} }, Tables::id_of($body) if $status == 201;
	return;
}

sub _delete
{
	my ($self) = @_;
	my $mine = $self->{mine} //= [];

	$self->_request(DELETE => '/docs/' . splice(@$mine, rand @$mine, 1), undef, '*') if @$mine;
	return;
}

sub _link
{
	my ($self) = @_;
	my ($method, $n) = @{ pick([ POST => 2 ], [ POST => 2 ], [ DELETE => 1 ]) };

	$self->_request($method => '/docs/' . pick(@{ $self->{docs} }) . '/relationships/labels', { data => [ map { Tables::identifier(labels => pick(@{ $self->{labels} })) } 1 .. $n ] }, '*');
	return;
}

sub _folder
{
	my ($self) = @_;
	my $id = pick(@{ $self->{folders} });

	$self->_request(PATCH => "/folders/$id", Tables::resource(folders => { size => between(-1, 9), title => 'f' . between(0, 300) },
			rand() < 0.5 ? { parent => Tables::identifier(folders => pick($id, @{ $self->{folders} }[ 0 .. 4 ])) } : undef, $id));
	return;
}

sub _folder_goes
{
	my ($self) = @_;
	my ($status, $body) = $self->_request(POST => '/folders', Tables::resource(folders => { title => 'x' . between(0, 1000) }));

	return if $status != 201;
	my $id = Tables::id_of($body);
	$self->_request(POST => '/docs', Tables::resource(docs => { name => 'in' }, { folder => Tables::identifier(folders => $id) }));
	$self->_request(DELETE => "/folders/$id");
	return;
}

sub _label
{
	my ($self) = @_;
	my $id = pick(@{ $self->{labels} });

	$self->_request(rand() < 0.5 ? (DELETE => "/labels/$id") : (POST => "/labels/$id/restore"));
	return;
}

sub _list
{
	my ($self) = @_;
	my ($status, $body) = $self->_request(GET => '/docs?page[size]=5&sort=' . pick('name', '-m,name', 'code') . '&filter=m=ge=' . between(0, 50) . pick('', '&include=folder,labels'));
	my $next = $status == 200 ? $json->decode($body)->{links}{next} : undef;

	$self->_request(GET => $next =~ s{^.*?/api/v1}{}r) if $next;
	return;
}

my @actions = ((\&_increment) x 35, (\&_increment_thrice) x 10, (\&_create) x 15, (\&_delete) x 8, (\&_link) x 10, (\&_folder) x 5, (\&_folder_goes) x 3, (\&_label) x 4, (\&_list) x 10);

# In a block: some, with savepoints; then it ends by one of four ways.
sub _block
{
	my ($self) = @_;

	$self->_ask('begin isolation level ' . pick(('read committed') x 5, 'repeatable read', 'serializable'));
	for (1 .. between(1, 5))
	{
		my $sub = rand() < 0.5;
		my %before = %{ $self->{pending} };

		$self->_ask('savepoint s') if $sub;
		pick(@actions)->($self);
		if ($sub && rand() < 0.3) { $self->_ask('rollback to s'); $self->{pending} = \%before; }
		elsif ($sub) { $self->_ask('release s'); }
	}
	my $end = rand;
	if ($end < 0.15) { $self->{pending} = {}; $self->_ask('rollback'); }
	elsif ($end < 0.2) { $self->_prepare; }
	else { $self->_ask('commit'); }
	return;
}

# What waits prepared keeps others waiting, so it must not wait long.
sub _prepare
{
	my ($self) = @_;
	my $name = "p$$-" . int rand 1_000_000_000;
	my $commits = rand() < 0.5;

	$self->_ask("prepare transaction '$name'");
	sleep rand 0.02;
	$self->{session}->ask('set statement_timeout = 0');
	for (1 .. 10)
	{
		my $answer = $self->{session}->ask(($commits ? 'commit' : 'rollback') . " prepared '$name'");

		die {%$answer} if $answer->{sqlstate} eq 'lost';
		last if $answer->{sqlstate} eq '00000' || $answer->{sqlstate} eq '42704';
	}
	$self->{pending} = {} unless $commits;
	return;
}

sub _add { my ($to, $from) = @_; $to->{$_} += $from->{$_} for keys %$from; return }

sub writer
{
	my ($self) = @_;

	while ($self->_goes_on)
	{
		my $committed = 1;

		$self->{pending} = {};
		eval
		{
			$self->_session;
			$self->_ask('set statement_timeout = ' . (rand() < 0.08 ? pick(3, 6, 12, 30, 60) : 60_000));
			rand() < 0.4 ? $self->_block : pick(@actions)->($self);
			1;
		} or do
		{
			my $error = $@;

			$committed = 0;
			die $error if !ref $error;
			$self->{sum}{$error->{sqlstate}}++;
			$self->{strange}{"$error->{sqlstate} $error->{message}"}++ unless $usual{ $error->{sqlstate} } || $error->{sqlstate} eq 'lost';

			# a single request that was acknowledged is done, whatever came then
			if ($error->{sqlstate} eq 'lost') { _add($self->{maybe}, $self->{pending}); $self->{session} = undef; }
			else { $self->{session}->ask('rollback'); }
		};
		_add($self->{done}, $self->{pending}) if $committed;
	}
	$self->{session}->end if $self->{session};
	return;
}

# -------- one who alters the tables --------

my @work = grep { /\S/ } split /\n/, <<'SQL';
vacuum app.doc
vacuum (freeze, index_cleanup on) app.doc
vacuum full app.doc
vacuum full app.folder
vacuum full entityapi.session
vacuum full entityapi.account
cluster app.doc using doc__pkey
reindex table concurrently app.doc
reindex table concurrently app.folder
reindex index concurrently app.doc__pkey
reindex table app.doc
create index concurrently if not exists x_note on app.doc (md5(note))
drop index concurrently if exists app.x_note
create index concurrently if not exists x_brin on app.doc using brin (m) with (pages_per_range = 1)
drop index concurrently if exists app.x_brin
create index concurrently if not exists x_hash on app.doc using hash (m)
drop index concurrently if exists app.x_hash
create index concurrently if not exists x_gin on app.doc using gin (to_tsvector('simple', coalesce(note, '')))
drop index concurrently if exists app.x_gin
create index concurrently if not exists x_part on app.doc (n) where m > 25
drop index concurrently if exists app.x_part
create unique index concurrently if not exists x_uni on app.doc (id) include (n, m)
drop index concurrently if exists app.x_uni
alter table app.doc add column if not exists extra int default 7
alter table app.doc add column if not exists extra2 text default 'qq'
alter table app.doc drop column if exists extra
alter table app.doc drop column if exists extra2
alter table app.doc add constraint x_check check (n >= 0) not valid
alter table app.doc validate constraint x_check
alter table app.doc drop constraint if exists x_check
alter table app.doc replica identity full
alter table app.doc replica identity default
alter table app.doc set (fillfactor = 100)
alter table app.doc alter column note set storage external
alter table app.doc alter column note set storage extended
alter table app.doc set tablespace ts
alter table app.doc set tablespace pg_default
create trigger x_trg after update on app.doc for each row execute function x_fn()
drop trigger if exists x_trg on app.doc
create trigger x_st after update on app.doc referencing new table as nt for each statement execute function x_fn()
drop trigger if exists x_st on app.doc
alter table app.doc enable trigger all
alter table app.doc add constraint x_ex exclude using hash (id with =)
alter table app.doc drop constraint if exists x_ex
alter index app.doc__pkey set (fillfactor = 70)
analyze app.doc
vacuum app.folder, app.label
vacuum entityapi.session, entityapi.account, entityapi.tenant
checkpoint
SQL

# Of those that may fail: what is there already, or not yet, or was in the way
my %in_the_way = map { $_ => 1 } qw(57014 55P03 42710 42P07 40P01 42704);

sub alters
{
	my ($self) = @_;
	my $session;

	while ($self->_goes_on)
	{
		$session //= do
		{
			my $new = EntityApi::Test::Session->new($self->{tables}{cluster}, name => 'alters');
			$new->ask('set statement_timeout = 4000');
			$new->ask('set lock_timeout = 1000');
			$new;
		};
		my $sql = pick(@work);
		my $answer = $session->ask($sql);

		if ($answer->{sqlstate} eq '00000') { $self->{sum}{DDL}++; }
		elsif ($answer->{sqlstate} eq 'lost') { $session = undef; }
		elsif (!$in_the_way{ $answer->{sqlstate} }) { $self->{strange}{"$sql: $answer->{sqlstate} $answer->{message}"}++; }
		sleep rand 0.05;
	}
	$session->end if $session;
	return;
}

# -------- one who cancels, and now and then ends a session --------

sub cancels
{
	my ($self) = @_;
	my $session = EntityApi::Test::Session->new($self->{tables}{cluster}, name => 'cancels');

	while ($self->_goes_on)
	{
		my $how = rand() < 0.01 ? 'terminate' : 'cancel';
		my $n = $session->must("select count(pg_${how}_backend(pid)) from (select pid from pg_stat_activity where application_name in ('writer', 'alters') order by random() limit 1) x");

		$self->{sum}{$how} += $n;
		sleep rand 0.3;
	}
	$session->end;
	return;
}

1;
