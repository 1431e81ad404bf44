package EntityApi::Test::Citus;

=head1 NAME

EntityApi::Test::Citus - a private cluster of several nodes, with Citus

=head1 SYNOPSIS

	my $cluster = EntityApi::Test->cluster(nodes => 3);
	$cluster->apply('examples/billing');
	my $shim = EntityApi::Test->shim($cluster);
	my $other = EntityApi::Test->shim($cluster, node => 2);
	$cluster->node(1)->stop('immediate');
	$cluster->on_all('select 1');

=head1 DESCRIPTION

A L<EntityApi::Test::Cluster> whose first node, the coordinator, is what that
class's methods talk to; the others are workers, and all of them have tenants.  C<start>, C<stop>, C<restart>
and C<set> concern all of them.  Nodes find each other by the folders of their
sockets.

Whatever is applied is declared to be distributed (C<distribution: citus>),
unless its Service says something of that itself, so tests of one node can be
run as they are.  C<undeclared> in the options prevents that,
and leaves the extension's own tables as they are without Citus.

C<ENTITYAPI_TEST_CITUS>, a number of nodes, makes every cluster one of these
that the test does not want C<bare>, or with C<< nodes => 1 >>.  A shim has then
siblings for the other nodes, and C<http> asks them in turns.

=cut

use strict;
use warnings;

use Fcntl qw(:flock);
use POSIX ();

use parent -norequire, 'EntityApi::Test::Cluster';

# What every node is configured with.  The log says nothing of statements that
# Citus sends, nor who has which node.
my @conf = ("shared_preload_libraries = 'citus'", 'wal_level = logical', 'max_connections = 150',
	'max_prepared_transactions = 150', 'max_worker_processes = 24', 'max_logical_replication_workers = 12',
	'max_sync_workers_per_subscription = 2', 'wal_retrieve_retry_interval = 500ms', 'shared_buffers = 48MB', "citus.node_conninfo = 'sslmode=disable'",
	'citus.enable_statistics_collection = off', 'citus.shard_count = 6', 'citus.recover_2pc_interval = 5s');

=head2 EntityApi::Test::Citus::missing

Why there can be none: undef, or a sentence for C<skip_all>.

=cut

sub missing
{
	my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
	chomp(my $share = `$pg_config --sharedir`);
	my $root = EntityApi::Test::private_program('postgres') =~ s{\Q@{[EntityApi::Test::server_program('postgres')]}\E$}{}r;

	return -e "$root$share/extension/citus.control" ? undef : 'there is no Citus (make test-citus)';
}

sub new
{
	my ($class, %options) = @_;
	my @nodes = map { EntityApi::Test::Cluster->new(%options) } 1 .. $options{nodes};

	# the coordinator, and more
	return bless { %{ $nodes[0] }, nodes => \@nodes }, $class;
}

=head1 METHODS

=head2 nodes, node($i)

All nodes, and one: clusters of their own, the coordinator is number 0.

=cut

sub nodes { return @{ $_[0]{nodes} } }
sub node { return $_[0]{nodes}[ $_[1] ] }

=head2 node_of($tenant), shard_of($tenant)

The number of the node that has a tenant's rows, and the shard of C<app.item>
that they are in.

=head2 move($tenant, $to, $mode)

Moves a tenant's part to the node of that number, and returns what psql did.
What an earlier move has left there is cleared away first; while somebody still
has it, Citus says so, and the same statement goes through later.

=head2 place($shim, @roles)

One tenant on each node that takes shards, with a user of these roles: a list
of C<id>, C<node> and C<user>, by the nodes' numbers.

=cut

sub shard_of
{
	my ($self, $tenant) = @_;

	return $self->psql("select get_shard_id_for_distribution_column('app.item', '$tenant')");
}

sub node_of
{
	my ($self, $tenant) = @_;
	my $host = $self->home($tenant)->host;
	my ($i) = grep { $self->node($_)->host eq $host } 0 .. $self->nodes - 1;

	return $i;
}

sub move
{
	my ($self, $tenant, $to, $mode) = @_;
	my $result;

	EntityApi::Test::wait_until(60, sub {
		$result = $self->try_psql(sprintf q{set client_min_messages = error; select citus_move_shard_placement(%d, '%s', %d, '%s', %d, '%s')},
			$self->shard_of($tenant), (map { $_->host, $_->port } $self->home($tenant), $self->node($to)), $mode);
		return $result->{err} !~ /leftover from the previous move could not be cleaned up/;
	});
	return $result;
}

sub place
{
	my ($self, $shim, @roles) = @_;
	my $wanted = $self->psql('select count(*) from pg_dist_node where shouldhaveshards');
	my %on;

	for (my $i = 0; keys %on < $wanted; $i++)
	{
		my $id = $shim->tenant("place$i")->{id};
		my $node = $self->node_of($id);

		$on{$node} //= { id => $id, node => $node, user => $shim->user($id, "user$i", \@roles) };
	}
	return map { $on{$_} } sort keys %on;
}

=head2 psql($sql, %options), insist($sql, %options)

As those of one node.  What was ended, because it and others waited for each
other, is made again, as the shim would do: here it waits for what Citus locks,
and takes no turn as requests do.  C<psql> does so with single statements only.

=cut

sub insist
{
	my ($self, $sql, %options) = @_;
	my $tries = 10;
	my $result;

	do { $result = $self->try_psql($sql, %options) }
	  while --$tries > 0 && $result->{status} != 0 && $result->{err} =~ /deadlock detected|involved in a distributed deadlock/;
	return $result;
}

sub psql
{
	my ($self, $sql, %options) = @_;
	my $result = $sql =~ /;\s*\S/ ? $self->try_psql($sql, %options) : $self->insist($sql, %options);

	die "psql: $result->{err}\n" if $result->{status} != 0;
	return $result->{out};
}

=head2 add

Starts one more node, which the cluster knows nothing of yet, and returns it:
C<< $cluster->psql($cluster->joining($node)) >> makes it one of its nodes.

=head2 joining($node)

=cut

sub add
{
	my ($self) = @_;
	my $node = EntityApi::Test::Cluster->new(%{ $self->{options} });

	EntityApi::Test::Cluster::copy_new($node->{data});
	_include($node);
	_configured($self, $node);
	push @{ $self->{nodes} }, $node;
	$node->start;
	$node->psql('create database entityapi', database => 'postgres');
	$node->psql('set client_min_messages = error; create extension citus');
	return $node;
}

sub joining
{
	my ($self, $node) = @_;

	return sprintf q{select citus_add_node('%s', %d)}, $node->host, $node->port;
}

=head2 join_all($database)

Makes the nodes know each other in a database that has Citus on all of them.

=head2 declare($database)

From now on, what is applied in this database is declared to be distributed.

=cut

sub join_all
{
	my ($self, $database) = @_;
	my ($coordinator, @workers) = $self->nodes;
	my $place = sprintf q{'%s', %d}, $coordinator->host, $coordinator->port;

	$coordinator->psql(join(';', 'set client_min_messages = error', "select citus_set_coordinator_host($place)",
			(map { $self->joining($_) } @workers), "select citus_set_node_property($place, 'shouldhaveshards', true)"),
		database => $database);
	return;
}

sub declare
{
	my ($self, $database) = @_;

	return $self->node(0)->psql(_declaring(), database => $database);
}

=head2 settle

The first manifests that are applied say that the service is distributed, and
until then it answers nothing.  A test that asks before it has applied any gets
some that say no more than that.

=cut

sub settle
{
	my ($self) = @_;

	$self->psql(q{select entityapi.apply_manifest('[]')})
	  if !$self->{options}{undeclared} && !$self->psql('select count(*) from entityapi.revision');
	return;
}

# All at once: each waits for itself
for my $verb (qw(start stop))
{
	no strict 'refs';
	*$verb = sub {
		my ($self, @arguments) = @_;
		my @pids = map { _apart($_, $verb, @arguments) } $self->nodes;
		my @failed = grep { waitpid $_, 0; $? } @pids;

		die "not all nodes $verb\n" if @failed;
		return $self;
	};
}

sub _apart
{
	my ($node, $verb, @arguments) = @_;
	my $pid = fork // die "fork: $!\n";

	return $pid if $pid;
	eval { $node->$verb(@arguments); 1 } or print(STDERR $@), POSIX::_exit(1);
	POSIX::_exit(0);
}

sub set
{
	my ($self, @setting) = @_;

	$_->set(@setting) for $self->nodes;
	return;
}

sub processor
{
	my ($self) = @_;
	my $sum = 0;

	$sum += $_->processor for $self->nodes;
	return $sum;
}

sub home
{
	my ($self, $tenant) = @_;
	my $host = $self->psql("select nodename from pg_dist_shard_placement where shardid = get_shard_id_for_distribution_column('entityapi.audit', '$tenant')");
	my ($node) = grep { $_->host eq $host } $self->nodes;

	return $node;
}

sub recovered
{
	my ($self) = @_;

	return EntityApi::Test::wait_until(60, sub { !grep { $_->try_psql('select count(*) from pg_prepared_xacts')->{out} ne '0' } $self->nodes });
}

sub everywhere
{
	my ($self, $sql) = @_;

	$self->on_all("set citus.enable_ddl_propagation = off; $sql");
	return;
}

sub on_rows
{
	my ($self, $table, $sql) = @_;
	my $failed = $self->psql("select string_agg(result, ' ') from run_command_on_shards('$table', \$sql\$$sql\$sql\$) where not success");

	die "on_rows: $failed\n" if $failed ne '';
	return;
}

# The records of a SuperAdmin as they are made on one node, where the log keeps
# what concerns no tenant under one that there is none of.
sub superadmin
{
	my ($self) = @_;

	return $self->{superadmin} //= do
	{
		my $sql = EntityApi::Test::slurp(EntityApi::Test::Cluster::_template() . '.superadmin');
		my $nil = '00000000-0000-0000-0000-000000000000';

		$sql =~ s/(entityapi\.audit .*?)"tenant_id":null/$1"tenant_id":"$nil"/
		  if $self->psql(q{select count(*) from pg_dist_partition where logicalrelid = 'entityapi.audit'::regclass});
		$self->psql($sql);
		{ username => 'superadmin', password => EntityApi::Test::Cluster::SUPERADMIN_PASSWORD };
	};
}

sub begin
{
	my ($self) = @_;
	my @nodes = $self->nodes;
	my $template = _template(scalar @nodes, $self->{options}{undeclared});

	for my $i (0 .. $#nodes)
	{
		EntityApi::Test::Cluster::_must('cp', '-a', '--reflink=auto', "$template/$i", $nodes[$i]{data});
		_configured($self, $nodes[$i]);
	}
	$self->start;

	# who is where, on each node
	my $places = join ' ', map { "when $_ then '" . $nodes[$_]->host . q{'} } 0 .. $#nodes;
	$self->on_all("update pg_dist_node set nodename = case groupid $places end");
	$self->psql('select public.declare_distributed(false)') if $self->{options}{undeclared};
	return $self;
}

# A node finds itself by the same name as others do.
sub _configured
{
	my ($self, $node) = @_;

	$node->_configure(@conf, _plugins(), "citus.local_hostname = '" . $node->host . q{'},
		map { s/^(shared_preload_libraries = ')/$1citus,/r } @{ $self->{options}{conf} // [] });
	return;
}

# Since 2026 releases of PostgreSQL have a list of what may decode changes, which
# Citus does when it divides a shard.
my $plugins;

sub _plugins
{
	$plugins //= EntityApi::Test::run([ EntityApi::Test::server_program('postgres'), '--describe-config' ], service => 1)->{out} =~ /^output_plugin_libraries\t/m
	  ? q{output_plugin_libraries = 'pgoutput, citus'} : '';
	return $plugins;
}

sub _include
{
	my ($node) = @_;

	return EntityApi::Test::Cluster::_must_as_service('sh', '-c', q{echo "include 'entityapi.conf'" >>"$1"},
		'-', "$node->{data}/postgresql.conf");
}

# The data folders that all clusters of so many nodes are copies of: the nodes
# know each other, and have the extension, whose tables are distributed but for
# who wants them undeclared.
sub _template
{
	my ($n, $undeclared) = @_;
	my $where = EntityApi::Test::Cluster::_kept();
	my $template = "$where/citus-$n" . ($undeclared ? '-undeclared' : '');

	open my $lock, '>', "$template.lock" or die "$template.lock: $!\n";
	flock $lock, LOCK_EX or die "$template.lock: $!\n";
	return $template if -d $template;

	my $self = __PACKAGE__->new(nodes => 1, conf => []);
	my $made = eval {
		$self->{nodes} = [];
		$self->add for 1 .. $n;
		my ($coordinator) = $self->nodes;

		$self->join_all('entityapi');
		$coordinator->psql(<<~'SQL');
			set client_min_messages = error;
			create extension entityapi cascade;
			create role entityapi_shim login;
			grant entityapi_client to entityapi_shim;
			SQL

		# what the first apply would do before anything else
		$self->declare('entityapi');
		$coordinator->psql('select entityapi.distribute_own()') unless $undeclared;
		1;
	};
	my $error = $@;
	$self->stop;
	die $error unless $made;
	mkdir "$template.new" or die "$template.new: $!\n";
	EntityApi::Test::Cluster::_must('cp', '-a', $self->node($_)->{data}, "$template.new/$_") for 0 .. $n - 1;
	rename "$template.new", $template or die "$template: $!\n";
	return $template;
}

# Functions that take declarations are wrapped, so that these say what tests of
# one node do not.
sub _declaring
{
	return <<~'SQL';
		set citus.enable_ddl_propagation = off;
		set client_min_messages = error;
		create function public.declared(documents jsonb) returns jsonb language plpgsql immutable as $$
		begin
			if jsonb_typeof(documents) is distinct from 'array' then
				return documents;
			elsif documents @? '$[*] ? (@.kind == "Service")' then
				return (select jsonb_agg(case when d ->> 'kind' = 'Service' and jsonb_typeof(d -> 'spec') = 'object'
						then jsonb_set(d, '{spec}', '{"distribution": "citus"}' || (d -> 'spec')) else d end order by n)
					from jsonb_array_elements(documents) with ordinality e (d, n));
			else
				return documents || '[{"apiVersion": "entityapi/v1", "kind": "Service", "metadata": {"name": "service"},
					"spec": {"distribution": "citus"}}]';
			end if;
		end $$;

		-- the others as they are, in their order
		create function public.declared(documents json) returns json language plpgsql immutable as $$
		begin
			if json_typeof(documents) is distinct from 'array' then
				return documents;
			end if;
			return (select json_agg(d order by n) from (
				select case when e.d ->> 'kind' = 'Service' then (public.declared(jsonb_build_array(e.d)) -> 0)::json else e.d end as d, n
				from json_array_elements(documents) with ordinality e (d, n)
				union all
				select (public.declared(jsonb '[]') -> 0)::json, null
				where not exists (select from json_array_elements(documents) e where json_typeof(e) = 'object' and e ->> 'kind' = 'Service')) e);
		end $$;
		create function public.declared(documents text) returns text language plpgsql immutable as $$
		begin
			return public.declared(documents::json);
		exception when others then
			return documents;
		end $$;

		-- the names of the functions are those of the wrappers, or their own again
		create function public.declare_distributed(wanted boolean) returns void language plpgsql as $body$
		declare
			f record;
		begin
			perform set_config('citus.enable_ddl_propagation', 'off', true);
			for f in select p.oid, p.proname, p.oid::regprocedure as signature, pg_get_function_identity_arguments(p.oid) as types, pg_get_function_arguments(p.oid) as arguments, pg_get_function_result(p.oid) as result,
					array_to_string(p.proargnames[2 : p.pronargs], ', ') as others, p.proowner, p.proacl
				from pg_proc p
				where pronamespace = 'entityapi'::regnamespace and proname in ('apply_manifest', 'repair_and_apply', 'compare_rights')
					and wanted or pronamespace = 'undeclared'::regnamespace
			loop
				if wanted then
					execute format('alter function %s set schema undeclared', f.signature);
					execute format('create function entityapi.%I(%s) returns %s language plpgsql as $f$
						#variable_conflict use_column
						begin
							return query select * from undeclared.%I(public.declared(documents), %s);
						end $f$', f.proname, f.arguments, f.result, f.proname, f.others);

					-- whose it is, and for whom
					update pg_proc set proowner = f.proowner, proacl = f.proacl where pronamespace = 'entityapi'::regnamespace and proname = f.proname
						and pg_get_function_identity_arguments(oid) = f.types;
				else
					execute format('drop function entityapi.%I(%s)', f.proname, f.types);
					execute format('alter function %s set schema entityapi', f.signature);
				end if;
			end loop;
		end $body$;
		create schema undeclared;
		grant usage on schema undeclared to public;
		select public.declare_distributed(true);
		SQL
}

1;
