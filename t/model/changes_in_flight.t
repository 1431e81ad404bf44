# Requests of all kinds while the types of columns, their names and who may read
# them change, by manifests and by hand, of made tables and of existing ones: no
# crash, no value but one that was right before or after, no field too much, no
# row missed, a record of each write.
#
# ENTITYAPI_CHANGES chooses how many changes (150, or 30 on nodes, where each
# takes longer), ENTITYAPI_SEED which.

use strict;
use warnings;

use JSON::PP ();
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use EntityApi::Test;
use EntityApi::Test::Cases;

use constant CLIENTS => 4;

delete $ENV{ENTITYAPI_TEST_MAPPED};

my $seed = $ENV{ENTITYAPI_SEED} // int rand 1_000_000;
my $cluster = EntityApi::Test->cluster(conf => [ 'max_wal_size = 2GB' ]);
my $several = $cluster->nodes > 1;
my $changes = $ENV{ENTITYAPI_CHANGES} // ($several ? 30 : 150);
my $folder = EntityApi::Test::folder();
my $json = JSON::PP->new->canonical;
srand $seed;

# on nodes, whoever asks may have a table for as long as it takes to go there
$cluster->set('entityapi.apply_lock_timeout' => '10s') if $several;

# --- what may be declared -------------------------------------------------------

my @sizes = ({ type => 'integer' }, { type => 'long' }, { type => 'decimal', precision => 12, scale => 2 }, { type => 'text' });
my @swapped = ([ { type => 'text' }, { type => 'integer' } ], [ { type => 'integer' }, { type => 'text' } ]);

# alpha and beta hold a text and a number, nick and code a word that all may
# read and one that few may; each pair exchanges its names.  Of the existing
# table it exchanges its columns.
sub documents
{
	my ($state, @exchanged) = @_;
	my %fields = (title => { type => 'string', maxLength => 50 }, size => $sizes[ $state->{size} ]);
	my %word = (type => 'string', maxLength => 50);

	@fields{qw(alpha beta)} = map { {%$_} } @{ $swapped[ $state->{names} ] };
	@fields{qw(nick code)} = ({%word}, {%word});
	$fields{ $state->{words} ? 'nick' : 'code' }{readRoles} = ['Editor'];
	for my $pair (@exchanged)
	{
		my ($one, $two) = @$pair;
		$fields{$one}{renamedFrom} = $two;
		$fields{$two}{renamedFrom} = $one;
	}
	$fields{folder} = { type => 'ref', target => 'Folder', relation => 'ManyToOne' };
	my %all = (permissions => { '*' => [qw(create read update delete)] });
	my %old = (size => $sizes[ $state->{old_size} ], (map { $_ => {%word} } qw(title nick code)));
	my %columns;

	@old{qw(alpha beta)} = map { {%$_} } @{ $swapped[ $state->{old_names} ] };
	$old{ $state->{old_words} ? 'nick' : 'code' }{readRoles} = ['Editor'];
	@columns{qw(alpha beta)} = $state->{old_names} ? qw(number word) : qw(word number);
	@columns{qw(nick code)} = $state->{old_words} ? qw(secret public) : qw(public secret);
	return [ map { { apiVersion => 'entityapi/v1', %$_ } } (
		{ kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Viewer => {}, Editor => {} } } },
		{ kind => 'Entity', metadata => { name => 'Doc' }, spec => { %all, fields => \%fields } },
		{ kind => 'Entity', metadata => { name => 'Folder' }, spec => { %all, fields => { name => { type => 'string' },
			docs => { type => 'ref', target => 'Doc', relation => 'OneToMany', mappedBy => 'folder' } } } },
		{ kind => 'Entity', metadata => { name => 'Old' }, spec => { %all, table => 'sales.old', columns => \%columns, fields => \%old } }) ];
}

my $apply = 'apply_manifest';

sub application
{
	my $documents = $json->encode(documents(@_));

	# what is done by hand in between may have lost something
	return "select count(*) from entityapi.$apply(\$m\$$documents\$m\$::jsonb, false, array['Doc.size']);\n";
}

$cluster->psql(<<'SQL');
create role mallory;
create schema sales authorization entityapi_owner;
grant usage on schema sales to entityapi_reader;
create table sales.old (tenant_id uuid not null, id uuid not null, title varchar(50) default 'title', size int4, word text, number int4,
	public varchar(50), secret varchar(50), primary key (tenant_id, id));
alter table sales.old owner to entityapi_owner;
SQL

my %state = map { $_ => 0 } qw(size names words old_size old_names old_words);
my $applied = $cluster->try_psql(application(\%state));
is($applied->{status}, 0, 'applied') or diag($applied->{err}), BAIL_OUT('nothing to test');
my $shim = EntityApi::Test->shim($cluster, pool_size => CLIENTS + 1, sweep_interval_ms => 100);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme')->{id};
my $vera = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'vera', ['Viewer']), '/api/v1');
my $doc = '01980000-0000-7000-8000-000000000001';
my $folder_id = '01980000-0000-7000-8000-0000000000ff';

$cluster->psql(<<"SQL");
insert into app.folder (tenant_id, id, name, created_at, updated_at) values ('$tenant', '$folder_id', 'folder', now(), now());
insert into app.doc (tenant_id, id, title, size, alpha, beta, nick, code, folder_id, created_at, updated_at)
select '$tenant', ('01980000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'title', 777, 'hello', 123456, 'PUBLIC', 'SECRET', '$folder_id', now(), now()
from generate_series(1, 20) i;
insert into sales.old (tenant_id, id, size, word, number, public, secret)
select '$tenant', ('01980000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 777, 'hello', 123456, 'PUBLIC', 'SECRET' from generate_series(1, 20) i;
create role reader login in role entityapi_reader;
select entityapi.map_role('reader', 'vera');
SQL

# --- what may be answered ---------------------------------------------------------

# The value of a field is one of those that it has or had, of the kind it is.
sub is_right
{
	my ($attributes) = @_;
	my $size = $attributes->{size};
	my ($alpha, $beta) = @$attributes{qw(alpha beta)};

	# a text that becomes a number begins anew, empty, until it is filled
	return "size $size" if defined $size && $size !~ /^777(?:\.00)?$/;
	return "alpha, beta: " . join(',', map { $_ // 'null' } $alpha, $beta)
	  if exists $attributes->{alpha} && join(' ', sort map { $_ // 'null' } $alpha, $beta) ne '123456 hello';
	for my $word (qw(nick code))
	{
		return "$word " . ($attributes->{$word} // 'null') if exists $attributes->{$word} && ($attributes->{$word} // '') ne 'PUBLIC';
	}
	return;
}

sub attributes_of
{
	my ($document) = @_;

	# those that clients make are not filled
	return map { $_->{attributes} // () } grep { ($_->{id} // '') =~ /^01980000/ } map { ref eq 'ARRAY' ? @$_ : $_ // () } $document->{data}, $document->{included};
}

# Statuses that are in order: 400 and 403 where a field may not be the viewer's
# or a value not of its type, 503 where a request was overtaken more often than
# the shim repeats it.  None is missed: there is no 404.
my %fine = map { $_ => 1 } 200, 201, 204, 503;

# What is asked, and whether it may be refused
sub requests
{
	my ($n) = @_;
	my @requests = (
		[ 0, GET => "/folders/$folder_id?include=docs" ],
		[ 0, POST => "/folders/$folder_id/relationships/docs", data => [ { type => 'docs', id => $doc } ] ],
		[ 0, GET => '/manage/audit?page[size]=5', token => $root ]);

	for my $type (qw(docs olds))
	{
		my %data = (type => $type, id => $doc);

		push @requests,
		  [ 0, GET => "/$type/$doc?fields[$type]=size,alpha,beta" ],
		  [ 0, GET => "/$type?fields[$type]=size,alpha,beta&page[totals]=true&page[size]=3" ],
		  [ 1, GET => "/$type?fields[$type]=alpha,beta&sort=size&page[after]=start&page[size]=2" ],
		  [ 1, GET => "/$type?fields[$type]=nick&filter=title==title" ],
		  [ 1, GET => "/$type/$doc?fields[$type]=code" ],
		  [ 1, GET => "/$type?fields[$type]=size&filter=code==SECRET,nick==SECRET" ],
		  [ 0, PATCH => "/$type/$doc?fields[$type]=size,alpha,beta", data => { %data, attributes => { title => 'title' } } ],
		  [ 1, PATCH => "/$type/$doc", data => { %data, attributes => { size => $n % 2 ? 777 : '777' } } ],
		  [ 0, POST => "/$type?fields[$type]=title", data => { type => $type, attributes => { title => 'new' } } ];
	}
	return @requests;
}

# What is wrong with an answer
sub faults
{
	my ($request, $answer, $by_hand) = @_;
	my ($refusable, $method, $target) = @$request;
	my $status = $answer->{status};
	my @faults;

	push @faults, "$status $answer->{body}"
	  if !$fine{$status} && !($status == 500 && $by_hand) && !($status =~ /^40[03]$/ && $refusable);
	push @faults, 'SECRET' if $answer->{body} =~ /SECRET/ && $target !~ /SECRET/;
	push @faults, "PostgreSQL's words: $answer->{body}" if $status == 500 && $answer->{body} =~ /column|relation|type/;
	return @faults if $status != 200 || $target =~ /^.manage/;

	push @faults, grep { defined } map { is_right($_) } attributes_of($answer->{json});
	push @faults, "found: $answer->{body}" if $target =~ /SECRET/ && @{ $answer->{json}{data} };

	# beyond a cursor there is nothing if the values have moved before it
	push @faults, "a row is missing: $answer->{body}"
	  if $target !~ /^.api/ && ref $answer->{json}{data} eq 'ARRAY' && $target !~ /SECRET/ && !@{ $answer->{json}{data} };
	push @faults, "members are missing: $answer->{body}" if $target =~ /include/ && @{ $answer->{json}{included} // [] } < 20;
	push @faults, "total: $answer->{body}" if $target =~ /totals/ && ($answer->{json}{meta}{page}{totalElements} // 20) < 20;
	return @faults;
}

sub leave
{
	my ($client, $statuses, $faults) = @_;

	open my $out, '>', "$folder/client$client" or die "$client: $!\n";
	print $out $json->encode({ statuses => $statuses, faults => [ @$faults[ 0 .. ($#$faults < 9 ? $#$faults : 9) ] ] });
	close $out;
	return;
}

# Goes on until the file "stop" is there, then leaves its counts and faults
sub client
{
	my ($client, $by_hand) = @_;
	my (%statuses, @faults);

	for (my $n = 0; !-e "$folder/stop"; $n++)
	{
		my @requests = requests($n);

		while (my $request = shift @requests)
		{
			my (undef, $method, $target, @options) = @$request;
			my $answer = eval { $vera->call($method, $target, @options) } // { status => 0, body => $@ };
			my ($kind) = $target =~ m{^(?:/api/v1)?/(\w+)};

			$statuses{ $answer->{status} }++;
			$statuses{"$method $kind"}++ if $method ne 'GET' && $answer->{status} =~ /^20[01]$/;
			push @faults, map { "$method $target: $_" } faults($request, $answer, $by_hand);

			# a cursor is gone on with, and what was made goes again
			my $next = $answer->{json} && ref $answer->{json}{links} eq 'HASH' && $answer->{json}{links}{next};
			push @requests, [ 1, GET => $next =~ s{^https?://[^/]+}{}r ] if $next && $target =~ /after.*=start/;
			next if $answer->{status} != 201;
			my $gone = eval { $vera->call(DELETE => "/$kind/$answer->{json}{data}{id}")->{status} } // 0;
			$statuses{$gone}++;
			$statuses{"DELETE $kind"}++ if $gone == 204;

			# by hand a table is copied, without what is written meanwhile
			push @faults, "DELETE $kind: $gone" if $gone != 204 && $gone != 503 && !($gone =~ /^(?:404|500)$/ && $by_hand);
		}
	}
	leave($client, \%statuses, \@faults);
	return;
}

# Plain SQL by a role that has the viewer's rights
sub reader
{
	my (%statuses, @faults);
	my $sql = join '', map { "select 'v', $_ limit 3;\n" }
	  (map { "$_ from app.doc where title = 'title'" } qw(nick code size alpha)),
	  (map { "$_ from sales.old where title = 'title'" } qw(public secret size word));

	while (!-e "$folder/stop")
	{
		my $result = EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-XAtq', '-f', '-', '-d', $cluster->conninfo('reader') ], in => $sql x 5);
		for my $line (split /\n/, $result->{out})
		{
			$statuses{rows}++;
			push @faults, "plain SQL: $line" if $line !~ /^v\|(?:PUBLIC|777(?:\.00)?|hello|123456)?$/;
		}
	}
	leave(CLIENTS, \%statuses, \@faults);
	return;
}

# Tenants that end, with rows
sub eraser
{
	my ($by_hand) = @_;
	my (%statuses, @faults);

	for (my $n = 0; !-e "$folder/stop"; $n++)
	{
		my $made = $shim->http(POST => '/manage/tenants', { token => $root, json => { name => 'Ends', slug => "ends-$$-$n" } });
		my $id = $made->{json}{id} // next;
		$cluster->try_psql(<<"SQL");
insert into app.doc (tenant_id, id, title, created_at, updated_at) select '$id', gen_random_uuid(), 'title', now(), now() from generate_series(1, 30);
insert into sales.old (tenant_id, id) select '$id', gen_random_uuid() from generate_series(1, 30);
SQL
		my $ended = $shim->http(DELETE => "/manage/tenants/$id", { token => $root })->{status};
		$statuses{ended}++ if $ended =~ /^20[24]$/;
		push @faults, "a tenant's end: $ended" if $ended !~ /^(?:20[24]|503)$/ && !($ended == 500 && $by_hand);
		sleep 0.2;
	}
	leave(CLIENTS + 1, \%statuses, \@faults);
	return;
}

# --- changes ----------------------------------------------------------------------

# Each returns SQL; by hand a table is altered and put back.
my @types = ('int4', 'int8', 'numeric(12,2)', 'text');

sub another { my ($size) = @_; return ($size + 1 + int rand(@types - 1)) % @types }

sub altered
{
	my ($table, $n) = @_;
	my $using = $n == 3 ? 'trunc(size::text::numeric)::text' : "size::text::numeric::$types[$n]";

	return "alter table $table alter size type $types[$n] using $using;\n";
}

# The words of a renaming are carried out once, so they go in between.
sub exchange
{
	my ($what, $pair) = @_;

	$state{$what} = 1 - $state{$what};
	return application(\%state, $pair), application(\%state);
}

my @by_manifest = (
	sub {
		$state{size} = another($state{size});
		return application(\%state) . "update app.doc set size = 777 where title = 'title' and size is null;\n";
	},
	sub { return exchange(names => [qw(alpha beta)]) },
	sub { return exchange(words => [qw(nick code)]) },
	sub {
		$state{old_size} = another($state{old_size});
		return "begin; set local role entityapi_owner;\n" . altered('sales.old', $state{old_size}) . "reset role;\n" . application(\%state) . "commit;\n";
	},
	map {
		my $what = $_;
		sub { $state{$what} = 1 - $state{$what}; return application(\%state) }
	} qw(old_names old_words));

sub anew
{
	my ($table) = @_;
	my ($schema, $name) = split /\./, $table;

	my $given = $several ? "select create_distributed_table('$schema.copy', 'tenant_id', colocate_with => 'entityapi.audit');" : '';

	# rows that are erased meanwhile must not come back with the copy
	return "begin; set local role entityapi_owner; lock table $table in share row exclusive mode; create table $schema.copy (like $table including all); $given insert into $schema.copy select * from $table;"
	  . " drop table $table cascade; alter table $schema.copy rename to $name; commit;\n";
}

my @by_hand = map {
	my ($table, $schema, $size) = @$_;
	(   sub { return (altered($table, another($state{$size})), altered($table, $state{$size})) },
		sub { return ("alter table $table rename size to other;\n", "alter table $table rename other to size;\n") },
		sub { return ("alter table $table add column more text default 'x';\n", "alter table $table drop column more;\n") },
		sub { return ("begin; alter table $table drop column title; alter table $table add column title varchar(50) default 'title'; commit;\n") },
		sub { return anew($table) },
		sub { return ("alter schema $schema owner to postgres;\n", "alter schema $schema owner to entityapi_owner;\n") },
		sub { return ("alter table $table owner to mallory;\n", "alter table $table owner to entityapi_owner;\n") })
} ([ 'app.doc', 'app', 'size' ], [ 'sales.old', 'sales', 'old_size' ]);

sub change
{
	my ($by_hand) = @_;
	my @from = $by_hand && rand() < 0.5 ? @by_hand : @by_manifest;

	return $from[ int rand @from ]->();
}

# Records of what was done to the two tables since the beginning
sub recorded
{
	return map { /^(\S+) (\S+) (\d+)/ ? ("$1 $2" => $3) : () } split /\n/, $cluster->psql(<<'SQL');
select case action when 'ENTITY_CREATE' then 'POST' when 'ENTITY_UPDATE' then 'PATCH' else 'DELETE' end || ' ' || target_type || ' ' || count(*)
from entityapi.audit where target_type in ('docs', 'olds') and action like 'ENTITY%' and outcome = 'SUCCESS' group by action, target_type
SQL
}

sub play
{
	my ($name, $n, $by_hand) = @_;
	my %before = recorded();
	my $script = "set lock_timeout = '@{[ 10 * EntityApi::Test::SLOWNESS ]}s';\nset client_min_messages = error;\n";
	my @clients;
	my $made = 0;

	$apply = $by_hand ? 'repair_and_apply' : 'apply_manifest';
	unlink "$folder/stop";
	while ($made < $n)
	{
		my @statements = change($by_hand);

		$made += @statements;
		$script .= join "select pg_sleep(0.002);\n", @statements, '';
	}
	for my $client (0 .. CLIENTS + 1)
	{
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			eval { $client < CLIENTS ? client($client, $by_hand) : $client == CLIENTS ? reader() : eraser($by_hand); 1 } or print STDERR $@;
			POSIX::_exit(0);
		}
		push @clients, $pid;
	}
	my $start = time;
	my @lines = split /^/, $script;
	my $result = $cluster->try_psql($script);

	# changes of several tables by hand can deadlock with requests, and a busy
	# machine keeps them for longer than is waited for a table: then once more
	# from there, or from where its transaction began
	my $tries = 50;

	for (my $line = 0; $result->{status} != 0 && $line < @lines && $tries-- > 0
		&& $result->{err} =~ /<stdin>:(\d+): ERROR:  (?:deadlock detected|canceling the transaction since it was involved in a distributed deadlock|canceling statement due to lock timeout|other transactions did not release )/;)
	{
		my $at = $line == 0 ? $1 - 1 : $line + $1 - 3;
		my ($ends) = grep { $lines[$_] =~ /^begin;|commit;$/ } reverse 2 .. $at - 1;

		$line = defined $ends && $lines[$ends] !~ /commit;$/ ? $ends : $at;
		$result = $cluster->try_psql(join '', @lines[ 0, 1, $line .. $#lines ]);
	}
	my $took = time - $start;
	open my $stop, '>', "$folder/stop" or die "stop: $!\n";
	close $stop;
	waitpid $_, 0 for @clients;

	my (%statuses, @faults);
	for my $client (0 .. CLIENTS + 1)
	{
		my $left = $json->decode(EntityApi::Test::slurp("$folder/client$client"));
		$statuses{$_} += $left->{statuses}{$_} for keys %{ $left->{statuses} };
		push @faults, @{ $left->{faults} };
		unlink "$folder/client$client";
	}
	diag sprintf '%s: %d changes in %.0f s, seed %d; answers %s', $name, $made, $took, $seed, $json->encode(\%statuses);
	is($result->{status}, 0, "$name: the changes went through")
	  or die "$result->{err}\nThe tables are not what is believed, from here on.\n";
	is(scalar(() = join(q{}, map { EntityApi::Test::slurp($_->log) } $cluster->nodes) =~ /terminated by signal/g), 0, "$name: no crash");
	is(scalar @faults, 0, "$name: no other value, no field too much") or diag join "\n", @faults;
	cmp_ok($statuses{200} // 0, '>', 20, "$name: requests were answered meanwhile");

	my %after = recorded();
	my %records = map { $_ => ($after{$_} // 0) - ($before{$_} // 0) } map { my $m = $_; map { "$m $_" } qw(docs olds) } qw(POST PATCH DELETE);
	is_deeply(\%records, { map { $_ => $statuses{$_} // 0 } keys %records }, "$name: a record of each write, and no other")
	  unless $statuses{0};
	is($cluster->psql(<<'SQL'), '', "$name: no other value in the records, either");
select string_agg(distinct changes::text, ', ') from entityapi.audit, json_each(changes) c, json_array_elements_text(c.value) v
where target_type in ('docs', 'olds') and c.key <> 'folder' and v.value is not null
and v.value !~ '^(777(\.00)?|hello|123456|PUBLIC|SECRET|title|new)$'
SQL
	for my $type (qw(docs olds))
	{
		my $answer = $vera->call(GET => "/$type/$doc");
		my $why = $answer->{status} == 200 ? is_right($answer->{json}{data}{attributes}) : "$answer->{status} $answer->{body}";
		is($why, undef, "$name: $type as ever, at the end");
	}
	return;
}

my $third = int($changes / 3);
play('by manifests', $changes - 2 * $third, 0);
play('by hand as well', $third, 1);

# With others' hooks each statement goes through planner and executor
$cluster->everywhere('alter system set shared_preload_libraries = ' . ($several ? 'citus, ' : '') . 'pg_stat_statements');
$cluster->restart;
$cluster->psql('create extension pg_stat_statements');
$cluster->set('pg_stat_statements.track' => 'all');
EntityApi::Test::wait_until(30, sub { $vera->call(GET => "/docs/$doc")->{status} == 200 });
play('with hooks of others', $third, 1);
my ($seen) = sort { $b <=> $a } $cluster->on_all(q{select count(*) from pg_stat_statements where query ~ 'app\.doc(_\d+)? t0'});
cmp_ok($seen, '>', 5, 'which saw the statements');

# No row of a tenant that has ended stays
my $left = sub {
	return $cluster->psql(join ' union all ', map {
		"select '$_ ' || d.tenant_id || coalesce(' ' || t.status, '') || ' ' || count(*) from $_ d left join entityapi.tenant t on t.id = d.tenant_id
		where t.status is distinct from 'ACTIVE' group by d.tenant_id, t.status"
	} qw(app.doc sales.old));
};
my $since = time;
EntityApi::Test::wait_until(600, sub { $left->() eq '' });
diag sprintf '%.0f s until they were gone', time - $since;
is($left->(), '', 'tenants that ended leave nothing')
  or diag join "\n", $cluster->on_all(q{select gid || ' prepared ' || prepared from pg_prepared_xacts});

done_testing;
