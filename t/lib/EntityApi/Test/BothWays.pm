package EntityApi::Test::BothWays;

=head1 NAME

EntityApi::Test::BothWays - what is done with and without the executor

=head1 SYNOPSIS

	EntityApi::Test::BothWays::apply($cluster, {});
	my $both = EntityApi::Test::BothWays->new($cluster, $user);
	$both->compare([ 'a change', $both->request(PATCH => "/docs/$id", $document), '200', 1 ]);

=head1 DESCRIPTION

Requests as SQL, run in a session of their own and undone, once with
C<entityapi.direct_scans> on and once off.  Everything must be the same: answers,
rows, records of the audit log, errors.

=cut

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;

use EntityApi::Test;

my $json = JSON::PP->new->canonical->ascii;
my $type = 'application/vnd.api+json';

=head1 FUNCTIONS

=head2 entity($name, %spec)

The document of an entity that editors may do everything with.

=cut

sub entity
{
	my ($name, %spec) = @_;

	return {
		apiVersion => 'entityapi/v1', kind => 'Entity', metadata => { name => $name },
		spec => { permissions => { Editor => [qw(create read update delete)] }, %spec } };
}

=head2 apply($cluster, \%fields, @documents)

Docs in folders: docs have these fields, too.  Other documents may come along.

=cut

sub apply
{
	my ($cluster, $fields, @documents) = @_;
	my $true = JSON::PP::true;
	my $manifests = $json->encode([
		{ apiVersion => 'entityapi/v1', kind => 'Service', metadata => { name => 'both' }, spec => { tenancy => 'POOL' } },
		{ apiVersion => 'entityapi/v1', kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Editor => { description => 'e' } } } },
		entity('Doc', optimisticLocking => $true, fields => {
				name   => { type => 'string', required => $true, maxLength => 20, index => $true },
				code   => { type => 'string', unique => $true },
				amount => { type => 'decimal', precision => 12, scale => 2, minimum => 0 },
				n      => { type => 'integer' },
				state  => { type => 'string', enum => [qw(NEW OPEN)] },
				note   => { type => 'text' },
				folder => { type => 'ref', target => 'Folder', relation => 'ManyToOne' }, %$fields }),
		entity('Folder', fields => {
				title => { type => 'string' },
				docs  => { type => 'ref', target => 'Doc', relation => 'OneToMany', mappedBy => 'folder' } }),
		@documents ]);

	return $cluster->psql("select count(*) from entityapi.apply_manifest(\$m\$$manifests\$m\$::jsonb)");
}

=head1 METHODS

=head2 new($cluster, $user)

Requests are the user's, by what C<< $shim->user >> returns.

=cut

sub new
{
	my ($class, $cluster, $user) = @_;

	return bless { cluster => $cluster, token => $user->{accessToken} }, $class;
}

=head2 request($method, $target, $document, $match)

One as SQL; its status and, of a refusal, the code.  The document is in a
literal; C<$match> is the version of C<If-Match>, or C<*>.

=cut

sub request
{
	my ($self, $method, $target, $document, $match) = @_;
	my $body = defined $document ? 'convert_to($j$' . $json->encode($document) . q{$j$, 'UTF8')} : 'null';
	my $as = $target =~ m{^/operations} ? qq($type;ext=\\"https://jsonapi.org/ext/atomic\\") : $type;
	my $headers = qq({"authorization": "Bearer $self->{token}", "content-type": "$as", "accept": "$as", "x-request-id": "it")
	  . (defined $match ? qq(, "if-match": "\\"$match\\"") : '') . '}';

	$headers =~ s/"\\"\*\\""/"*"/;
	return "select concat_ws(' ', status, nullif(body, '')::json #>> '{errors,0,code}') from entityapi.handle('$method', '/api/v1$target', '$headers', $body, '192.0.2.1');\n";
}

=head2 run($switch, $sql)

What SQL says in a transaction that is undone, in one line, with its error.

=cut

sub run
{
	my ($self, $switch, $sql) = @_;
	my $result = $self->{cluster}->try_psql("set client_min_messages = error; select from entityapi.version(); set entityapi.direct_scans = $switch; begin; $sql\nrollback;");
	my ($error) = $result->{err} =~ /ERROR:\s+(.*)$/m ? $1 : $result->{err};

	return join ' ', (grep { $_ ne '' } split /\n/, $result->{out}), $result->{status} ? "ERROR $error" : ();
}

=head2 compare(@cases)

Each a reference to name, SQL, what is to be seen, and how many plans are kept of
those that update a row without the executor; both may be undef.

=cut

my $kept = "select count(*) || ' kept' from pg_backend_memory_contexts where name = 'entityapi key update';\n";
my $records = q{select string_agg(concat_ws('|', action, outcome, target_type, md5(regexp_replace(changes::text, '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', '', 'g'))), ',' order by at, id) from entityapi.audit where request_id = 'it';};

sub as_it_should_be
{
	my ($got, $expected) = @_;

	return if !defined $expected;
	return ref $expected ? like($got, $expected, '... as it should be') : is($got, $expected, '... as it should be');
}

sub compare
{
	my ($self, @cases) = @_;

	for my $case (@cases)
	{
		my ($name, $sql, $expected, $plans) = @$case;
		my %got = map { $_ => $self->run($_, "$sql\n$kept$records") } qw(on off);
		my %kept = map { $_ => $got{$_} =~ s/ ?\b(\d+) kept\b// ? $1 : undef } qw(on off);
		my $answers = $got{on};

		# the records are the same, too, but are not written out here
		$answers =~ s/ ENTITY_\S+$//;
		is($got{on}, $got{off}, "$name: all the same");
		as_it_should_be($answers, $expected);
		is("$kept{on} $kept{off}", "$plans 0", '... and by that way') if defined $plans && defined $kept{on};
	}
	return;
}

=head2 crossed($switch, %how)

Somebody else has done C<first> in a transaction when C<request> is made, in one
of C<level>; he ends his by C<end>.  Whether the request waited, what it
answered, and what the SQL in C<told> says then.  C<restore> is run before, and
after the request was made once for its plans.

=cut

sub quoted { return '$d$' . $_[0] =~ s/;?\s*$//r . '$d$' }

sub crossed
{
	my ($self, $switch, %how) = @_;
	my $connection = q{'dbname=entityapi user=postgres host=' || split_part(current_setting('unix_socket_directories'), ',', 1) || ' port=' || current_setting('port')};
	my $warm = quoted($how{request} =~ s/"it"/"warm"/r);

	return $self->{cluster}->psql("set client_min_messages = error; create extension if not exists dblink; $how{restore}
		select from dblink_connect('a', $connection); select from dblink_connect('b', $connection);
		select from dblink_exec('b', 'load \$l\$entityapi\$l\$'); select from dblink_exec('b', 'set entityapi.direct_scans = $switch');
		select from dblink('b', $warm) x (y text); $how{restore}
		create temp table b as select pid from dblink('b', 'select pg_backend_pid()') x (pid int);
		select from dblink_exec('a', 'begin'); select from dblink_exec('b', 'begin isolation level $how{level}'); select from dblink('b', 'select count(*) from app.folder') x (y bigint);
		select from dblink_exec('a', @{[quoted($how{first})]});
		select from dblink_send_query('b', @{[quoted($how{request})]});
		do \$\$ begin
			for i in 1 .. 500 loop
				exit when (select wait_event_type = 'Lock' from pg_stat_activity join b using (pid)) or dblink_is_busy('b') = 0;
				perform pg_sleep(0.01);
				perform pg_stat_clear_snapshot();
			end loop;
		end \$\$;
		select case dblink_is_busy('b') when 1 then 'waits' else 'waits for nobody' end;
		select from dblink_exec('a', @{[quoted($how{end})]});
		select y from dblink_get_result('b', false) x (y text);
		select nullif(dblink_error_message('b'), 'OK');
		select from dblink_get_result('b') x (y text);
		select from dblink_exec('b', 'commit');
		$how{told} select from dblink_disconnect('a'); select from dblink_disconnect('b')") =~ s/\n+/ /gr =~ s/ $//r;
}

=head2 compare_crossed(\%all, @cases)

Each case a reference to name, level, first, request, end, and what is to be
seen; C<restore> and C<told> are the same for all.

=cut

sub compare_crossed
{
	my ($self, $all, @cases) = @_;

	for my $case (@cases)
	{
		my ($name, $level, $first, $request, $end, $expected) = @$case;
		my %got = map { $_ => $self->crossed($_, %$all, level => $level, first => $first, request => $request, end => $end) } qw(on off);

		is($got{on}, $got{off}, "$name, meanwhile: all the same");
		as_it_should_be($got{on}, $expected);
	}
	return;
}

=head2 at_once($seconds, %work)

Runs SQL in sessions of their own, again and again until the time is over: what
the functions return, by their names.  What each session has said, with errors.

=cut

sub at_once
{
	my ($self, $seconds, %work) = @_;
	my $folder = EntityApi::Test::folder();
	my $until = time + $seconds;
	my @pids;

	for my $name (sort keys %work)
	{
		my $pid = fork // die "fork: $!\n";

		push @pids, $pid;
		next if $pid;
		my $said = '';
		do
		{
			my $result = $self->{cluster}->try_psql($work{$name}->());
			$said .= "$result->{out}\n$result->{err}\n";
		} while (time < $until);
		open my $out, '>', "$folder/$name" or POSIX::_exit(1);
		print $out $said;
		close $out;
		POSIX::_exit(0);
	}
	waitpid $_, 0 for @pids;
	return map { $_ => EntityApi::Test::slurp("$folder/$_") } keys %work;
}

1;
