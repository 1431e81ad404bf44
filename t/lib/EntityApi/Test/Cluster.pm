package EntityApi::Test::Cluster;

=head1 NAME

EntityApi::Test::Cluster - a private PostgreSQL cluster of a TAP test

=head1 DESCRIPTION

Made by C<< EntityApi::Test->cluster >>, as a copy of one cluster that is made
once per test run.  The superuser is "postgres"; everybody is trusted on the
socket, and there is no TCP port.

=cut

use strict;
use warnings;

use Time::HiRes ();
use Encode ();
use POSIX ();
use Fcntl qw(:flock);

use EntityApi::Test::Details;
use EntityApi::Test::Mapped;

use constant { SUPERADMIN_PASSWORD => 'plainly-for-a-test-1', USER_PASSWORD => 'plainly-for-a-test-2' };

sub new
{
	my ($class, %options) = @_;
	my $folder = EntityApi::Test::folder();

	return bless {
		folder   => $folder,
		data     => "$folder/data",
		log      => "$folder/log",
		port     => 5432,
		database => 'entityapi',
		options  => \%options,
	}, $class;
}

=head1 METHODS

=head2 host, port, data, log

The folder of the socket, the port that names the socket, the data folder, the
path of the server's log.

=cut

sub host { return $_[0]{folder} }
sub port { return $_[0]{port} }
sub data { return $_[0]{data} }
sub log  { return $_[0]{log} }

=head2 conninfo($user, $database)

A connection string of libpq, by default for the superuser and "entityapi".

=cut

sub conninfo
{
	my ($self, $user, $database) = @_;

	return sprintf 'host=%s port=%d user=%s dbname=%s', $self->host,
	  $self->port, $user // 'postgres', $database // $self->{database};
}

=head2 start, stop($mode), restart

=cut

sub start
{
	my ($self) = @_;

	my $result = $self->_pg_ctl('start', '-p', EntityApi::Test::private_program('postgres'),
		'-l', $self->log);
	die "PostgreSQL does not start:\n" . EntityApi::Test::slurp($self->log)
	  if $result->{status} != 0;
	return $self;
}

sub stop
{
	my ($self, $mode) = @_;

	$self->_pg_ctl('stop', '-m', $mode // 'fast') if -e "$self->{data}/postmaster.pid";
	return $self;
}

sub restart
{
	my ($self) = @_;
	return $self->stop->start;
}

sub _pg_ctl
{
	my ($self, $verb, @arguments) = @_;

	return EntityApi::Test::run(
		[   EntityApi::Test::server_program('pg_ctl'), '-D', $self->{data},
			'-w', '-s', '-t', EntityApi::Test::PATIENCE(), @arguments, $verb ],
		service => 1);
}

=head2 psql($sql, %options)

Run SQL, also several statements, and return its output: unaligned, without
headers, without the last newline.  Dies of the first error.  Options: C<user>,
C<database>.

=head2 try_psql($sql, %options), insist($sql, %options)

The same, but an error is part of the answer: a hash of C<status> (0 is good),
C<out> and C<err>.  C<insist> differs on several nodes only.

=cut

sub try_psql
{
	my ($self, $sql, %options) = @_;

	my $result = EntityApi::Test::run(
		[   EntityApi::Test::server_program('psql'), '-XAtq', '-v',
			'ON_ERROR_STOP=1', '-f', '-', '-d',
			$self->conninfo($options{user}, $options{database}) ],
		in  => $sql,
		env => { PGCLIENTENCODING => 'UTF8', PGOPTIONS => '' });
	chomp $result->{out};
	$_ = Encode::decode('UTF-8', $_) for @$result{qw(out err)};
	EntityApi::Test::Details::hear($result->{out});
	return $result;
}

sub insist { return shift->try_psql(@_) }

sub psql
{
	my ($self, $sql, %options) = @_;
	my $result = $self->try_psql($sql, %options);

	die "psql: $result->{err}\n" if $result->{status} != 0;
	return $result->{out};
}

=head2 apply(@arguments)

Apply manifests through the shim: files, folders and flags of "entityapi-shim
apply".  Returns its output, dies of an error.

=head2 try_apply(@arguments)

The same with a hash as try_psql.  Whatever is applied to the extension itself,
"entityapi-shim validate" must have nothing against.

=cut

sub try_apply
{
	my ($self, @arguments) = @_;
	my $program = EntityApi::Test::private_program('entityapi-shim');
	my $applied = EntityApi::Test::run([ $program, 'apply', '--database', $self->conninfo, @arguments ]);
	my @files = grep { ref $self eq __PACKAGE__ && -e } @arguments;

	if ($applied->{status} == 0 && @files > 0)
	{
		my $validated = EntityApi::Test::run([ $program, 'validate', @files ]);

		die "validate refuses what was applied: $validated->{err}" if $validated->{status} != 0;
	}
	return $applied;
}

sub apply
{
	my ($self, @arguments) = @_;
	my $result = $self->try_apply(@arguments);

	die "apply: $result->{out}$result->{err}\n" if $result->{status} != 0;
	EntityApi::Test::Mapped::take_over($self) if $ENV{ENTITYAPI_TEST_MAPPED};
	return $result->{out};
}

=head2 set($name, $value)

Set a setting for all sessions, those that run included; undef takes it back.

=cut

sub set
{
	my ($self, $name, $value) = @_;

	my $before = $self->_loaded;

	$self->psql("load 'entityapi';\n"
		  . (defined $value ? "alter system set $name = '$value';" : "alter system reset $name;")
		  . "\nselect pg_reload_conf()");

	# The postmaster passes the signal on when it has read the file itself, and
	# lets nobody in before it has.
	EntityApi::Test::wait_until(60, sub { $self->_loaded ne $before }) or die "$name is not read\n";
	return;
}

# When the postmaster read its settings; sessions are told as they begin.
sub _loaded { return $_[0]->psql('select pg_conf_load_time()') }

=head2 nodes, on_all($sql, %options)

All nodes, and what C<psql> says on each, as lists.

=cut

sub nodes { return wantarray ? $_[0] : 1 }

sub on_all
{
	my ($self, $sql, %options) = @_;

	return map { $_->psql($sql, %options) } $self->nodes;
}

=head2 everywhere($sql), on_rows($table, $sql)

What Citus has no part in: SQL on each node, or on what holds the rows of a
table, which is %s in the text.  On one node that is the table.

=cut

sub everywhere
{
	my ($self, $sql) = @_;

	$self->psql($sql);
	return;
}

sub on_rows
{
	my ($self, $table, $sql) = @_;

	$self->psql(sprintf $sql, $table);
	return;
}

=head2 home($tenant), recovered

The node that has a tenant's rows; wait until what a stop has left in the midst
of a commit is ended on all nodes.

=cut

sub home { return $_[0] }
sub recovered { return 1 }

=head2 unchecked

SQL for the begin of a transaction in which a superuser writes rows before those
that they refer to, wherever they lie.

=cut

sub unchecked
{
	return q{set local citus.propagate_set_commands = 'local'; set local citus.multi_shard_modify_mode = 'sequential';
		set local session_replication_role = replica;};
}

=head2 settle

For a test that asks before it has applied anything, which a cluster of several
nodes answers as one does only then.

=cut

sub settle { return }

=head2 superadmin

A hash of C<username> and C<password>; the first call creates that SuperAdmin.

=cut

sub superadmin
{
	my ($self) = @_;

	$self->{superadmin} //= do
	{
		$self->psql(EntityApi::Test::slurp(_template() . '.superadmin'));
		{ username => 'superadmin', password => SUPERADMIN_PASSWORD };
	};
	return $self->{superadmin};
}

=head2 user_hash

What the password of all users that tests make is stored as.

=cut

sub user_hash
{
	my ($self) = @_;

	return $self->{user_hash} //= EntityApi::Test::slurp(_template() . '.user_hash');
}

# Make the data folder and start.
sub begin
{
	my ($self) = @_;
	my $options = $self->{options};
	my $template = _template();

	_must('cp', '-a', '--reflink=auto', $template, $self->{data});
	$self->_configure(@{ $options->{conf} // [] });
	$self->start;
	$self->psql('drop database entityapi; create database entityapi',
		database => 'postgres')
	  if $options->{bare};
	return $self;
}

# Start as a hot standby of another one.
sub follow
{
	my ($self, $primary, $name) = @_;

	_must_as_service(EntityApi::Test::server_program('pg_basebackup'), '-R',
		'-X', 'stream', '-c', 'fast', '-N', '-D', $self->{data},
		'-d', $primary->conninfo(undef, 'postgres'));
	$self->_configure("cluster_name = '$name'", 'wal_receiver_timeout = 5s',
		'wal_retrieve_retry_interval = 200ms', @{ $self->{options}{conf} // [] });
	return $self->start;
}

=head2 processor

Seconds of processor time that the server has taken so far, what has ended
included.  Unlike the clock it does not tell what else the machine does.

=cut

sub processor
{
	my ($self) = @_;
	my ($postmaster) = EntityApi::Test::slurp("$self->{data}/postmaster.pid") =~ /^(\d+)/;
	my ($ticks, $ended);

	# What ends meanwhile would be found in neither place.
	do
	{
		$ended = join ' ', (_ticks($postmaster))[ 3, 4 ];
		$ticks = 0;
		for my $file (glob '/proc/[0-9]*/stat')
		{
			my ($pid) = $file =~ /(\d+)/;
			my ($parent, @times) = _ticks($pid) or next;

			if ($pid == $postmaster) { $ticks += $_ for @times }
			elsif ($parent == $postmaster) { $ticks += $_ for @times[ 0, 1 ] }
		}
	} until join(' ', (_ticks($postmaster))[ 3, 4 ]) eq $ended;
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# A process's parent, its times as user and system, and those of what it waited
# for
sub _ticks
{
	my ($pid) = @_;
	my $text = eval { EntityApi::Test::slurp("/proc/$pid/stat") } // return;

	return $text =~ /^\d+ .*\) \S (\d+)(?: \S+){9} (\d+) (\d+) (\d+) (\d+) /;
}

=head2 promote

Make a standby a primary.

=cut

sub promote
{
	my ($self) = @_;

	$self->_pg_ctl('promote');
	return $self;
}

sub discard
{
	my ($self) = @_;

	$self->stop(EntityApi::Test::end_of_cluster());
	return;
}

# Until then a bitmap scan that needs no column could count rows that a vacuum
# had just removed: what is compared with it would seem to be wrong.
sub _exact_counts
{
	my %since = (15 => 13, 16 => 9, 17 => 5);
	my $version = EntityApi::Test::run([ EntityApi::Test::server_program('postgres'), '--version' ])->{out};
	my ($major, $minor) = $version =~ /(\d+)\.(\d+)/ or return ();

	return $minor < ($since{$major} // 0) ? 'enable_bitmapscan = off' : ();
}

# Files below the data folder are written by their owner.
sub _configure
{
	my ($self, @lines) = @_;
	my $text = join "\n", "listen_addresses = ''", "port = $self->{port}",
	  "unix_socket_directories = '$self->{folder}'", 'fsync = off',
	  'jit = off', 'max_connections = 60', 'shared_buffers = 64MB',
	  "log_line_prefix = '%m [%p] %q%u@%d '",
	  'log_parameter_max_length = 0', 'log_parameter_max_length_on_error = 0',
	  'entityapi.bcrypt_cost = 10',

	  # many log in at once, and each is to be answered, however long it takes
	  'entityapi.hash_wait = 60000',

	  # no test outlives its tokens
	  'entityapi.access_token_ttl = 86400',

	  # where all takes long, so does what is waited for
	  EntityApi::Test::SLOWNESS() > 1 ? 'entityapi.apply_lock_timeout = ' . 500 * EntityApi::Test::SLOWNESS() : (),

	  # its snapshots make erasure wait, its statistics plans be made again: not
	  # in the midst of a test, just because the machine is busy
	  'autovacuum = off', _exact_counts(), $ENV{ENTITYAPI_TEST_CONF} // '', @lines, '';

	my $result = EntityApi::Test::run(
		[ 'sh', '-c', 'cat >"$1"', '-', "$self->{data}/entityapi.conf" ],
		in => $text, service => 1);
	die $result->{err} if $result->{status} != 0;
	return;
}

=head2 EntityApi::Test::Cluster::copy_new($path)

Make a data folder as initdb makes it, which is run once.

=cut

sub copy_new
{
	my ($path) = @_;
	my $where = _kept();

	open my $lock, '>', "$where/new.lock" or die "$where: $!\n";
	flock $lock, LOCK_EX or die "$where: $!\n";
	if (!-d "$where/new")
	{
		# where the server's user may write
		my $made = EntityApi::Test::folder() . '/new';

		_must_as_service(EntityApi::Test::server_program('initdb'), '-N', '-D', $made,
			'--username=postgres', '--auth=trust', '--encoding=UTF8', '--wal-segsize=1', '--locale=' . _locale());
		_must('cp', '-a', $made, "$where/new.part");
		rename "$where/new.part", "$where/new" or die "$where/new: $!\n";
	}
	_must('cp', '-a', '--reflink=auto', "$where/new", $path);
	return;
}

# Where what is copied lies.  Test files run at the same time; the first one
# makes it while the others wait.
my $private_template;

sub _kept
{
	return $ENV{ENTITYAPI_TEST_DIR} // ($private_template //= EntityApi::Test::folder());
}

# The data folder that all clusters are copies of
sub _template
{
	my $where = _kept();
	my $template = "$where/template";

	open my $lock, '>', "$where/template.lock" or die "$where: $!\n";
	flock $lock, LOCK_EX or die "$where: $!\n";
	return $template if -d $template;

	my $self = __PACKAGE__->new;
	copy_new($self->{data});
	_must_as_service('sh', '-c', q{echo "include 'entityapi.conf'" >>"$1"},
		'-', "$self->{data}/postgresql.conf");
	$self->_configure;
	$self->start;
	my $made = eval {
		$self->psql('create database entityapi', database => 'postgres');
		$self->psql(<<~'SQL');
			set client_min_messages = warning;
			create extension entityapi cascade;
			create role entityapi_shim login;
			grant entityapi_client to entityapi_shim;
			SQL
		_keep_hashes($self, $template);
		1;
	};
	my $error = $@;
	$self->stop;
	die $error unless $made;
	_must('cp', '-a', $self->{data}, "$template.new");
	rename "$template.new", $template or die "$template: $!\n";
	return $template;
}

# Hashing is slow, and all clusters have the same passwords: what it takes to
# have a SuperAdmin, and what a user's password becomes.
sub _keep_hashes
{
	my ($self, $template) = @_;
	my $made = $self->psql(<<~"SQL");
		begin;
		select entityapi.create_superadmin('superadmin', '@{[SUPERADMIN_PASSWORD]}') \\g /dev/null
		select format('insert into entityapi.account select * from json_populate_record(null::entityapi.account, %L);', row_to_json(a))
		from entityapi.account a;
		select format('insert into entityapi.audit select (json_populate_record(null::entityapi.audit, %L)).*;', row_to_json(a))
		from entityapi.audit a;
		rollback;
		SQL
	my $hash = $self->psql(<<~"SQL");
		begin;
		select entityapi.create_superadmin('user', '@{[USER_PASSWORD]}') \\g /dev/null
		select password_hash from entityapi.account;
		rollback;
		SQL

	for ([ superadmin => $made ], [ user_hash => $hash ])
	{
		my ($name, $text) = @$_;

		open my $file, '>', "$template.$name" or die "$template.$name: $!\n";
		print $file $text;
		close $file or die "$template.$name: $!\n";
	}
	return;
}

sub _locale
{
	return `locale -a` =~ /^C\.utf-?8$/im ? 'C.UTF-8' : 'C';
}

sub _must_as_service
{
	my (@command) = @_;
	my $result = EntityApi::Test::run(\@command, service => 1);

	die "$command[0]: $result->{out}$result->{err}\n" if $result->{status} != 0;
	return;
}

sub _must
{
	my (@command) = @_;
	my $result = EntityApi::Test::run(\@command);

	die "$command[0]: $result->{err}\n" if $result->{status} != 0;
	return;
}

1;
