# Requests of all kinds while the types of columns, their names and who may read
# them change, by manifests and by hand: no crash, no value but one that was
# right before or after, no field too much.
#
# ENTITYAPI_CHANGES chooses how many changes (150).

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

my $changes = $ENV{ENTITYAPI_CHANGES} // 150;
my $seed = $ENV{ENTITYAPI_SEED} // int rand 1_000_000;
my $cluster = EntityApi::Test->cluster(conf => [ 'max_wal_size = 2GB' ]);
my $folder = EntityApi::Test::folder();
my $json = JSON::PP->new->canonical;
srand $seed;

# --- what may be declared -------------------------------------------------------

my @sizes = ({ type => 'integer' }, { type => 'long' }, { type => 'decimal', precision => 12, scale => 2 }, { type => 'text' });
my @swapped = ([ { type => 'text' }, { type => 'integer' } ], [ { type => 'integer' }, { type => 'text' } ]);

# alpha and beta hold a text and a number, nick and code a word that all may
# read and one that few may; each pair exchanges its names.
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
	return [ map { { apiVersion => 'entityapi/v1', %$_ } } (
		{ kind => 'Roles', metadata => { name => 'roles' }, spec => { roles => { Viewer => {}, Editor => {} } } },
		{ kind => 'Entity', metadata => { name => 'Doc' }, spec => { %all, fields => \%fields } },
		{ kind => 'Entity', metadata => { name => 'Folder' }, spec => { %all, fields => { name => { type => 'string' },
			docs => { type => 'ref', target => 'Doc', relation => 'OneToMany', mappedBy => 'folder' } } } }) ];
}

sub application
{
	my $documents = $json->encode(documents(@_));

	return "select count(*) from entityapi.apply_manifest(\$m\$$documents\$m\$::jsonb, false, array['Doc.size']);\n";
}

my %state = (size => 0, names => 0, words => 0);
my $applied = $cluster->try_psql(application(\%state));
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
my $shim = EntityApi::Test->shim($cluster, pool_size => CLIENTS);
my $tenant = $shim->tenant('acme')->{id};
my $vera = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'vera', ['Viewer']), '/api/v1');
my $doc = '01980000-0000-7000-8000-000000000001';
my $folder_id = '01980000-0000-7000-8000-0000000000ff';

$cluster->psql(<<"SQL");
insert into app.folder (tenant_id, id, name, created_at, updated_at) values ('$tenant', '$folder_id', 'folder', now(), now());
insert into app.doc (tenant_id, id, title, size, alpha, beta, nick, code, folder_id, created_at, updated_at)
select '$tenant', ('01980000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid, 'title', 777, 'hello', 123456, 'PUBLIC', 'SECRET', '$folder_id', now(), now()
from generate_series(1, 20) i;
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

	return map { $_->{attributes} // () } map { ref eq 'ARRAY' ? @$_ : $_ // () } $document->{data}, $document->{included};
}

# Statuses that are in order: 403 and 400 where the field is not the viewer's,
# 503 where a request was overtaken more often than the shim repeats it
my %fine = map { $_ => 1 } 200, 201, 204, 503;

sub requests
{
	my ($n) = @_;
	my %data = (type => 'docs', id => $doc);

	return (
		[ GET => "/docs/$doc?fields[docs]=size,alpha,beta" ],
		[ GET => '/docs?fields[docs]=size,alpha,beta&page[totals]=true&page[size]=3' ],
		[ GET => '/docs?fields[docs]=alpha,beta&sort=size&page[after]=start&page[size]=2' ],
		[ GET => "/docs?fields[docs]=nick&filter=title==title" ],
		[ GET => "/docs/$doc?fields[docs]=code" ],
		[ GET => "/folders/$folder_id?include=docs" ],
		[ PATCH => "/docs/$doc?fields[docs]=size,alpha,beta", data => { %data, attributes => { title => 'title' } } ],
		[ PATCH => "/docs/$doc", data => { %data, attributes => { size => $n % 2 ? 777 : '777' } } ],
		[ POST => '/docs?fields[docs]=title', data => { type => 'docs', attributes => { title => 'new' } } ]);
}

# Goes on until the file "stop" is there, then leaves its counts and faults
sub client
{
	my ($client, $by_hand) = @_;
	my (%statuses, @faults);

	for (my $n = 0; !-e "$folder/stop"; $n++)
	{
		for my $request (requests($n))
		{
			my $answer = eval { $vera->call(@$request) } // { status => 0, body => $@ };
			my $status = $answer->{status};
			my $about = "@$request[0, 1]";
			my @attributes = eval { attributes_of($answer->{json}) };

			$statuses{$status}++;
			push @faults, "$about: $status $answer->{body}" if !$fine{$status} && !($status == 500 && $by_hand) &&
				!($status =~ /^40[03]$/ && ($about =~ /fields\[docs\]=(?:nick|code)/ || exists $request->[3]{attributes}{size}));
			push @faults, "$about: SECRET" if $answer->{body} =~ /SECRET/;
			push @faults, map { my $why = is_right($_); $why ? "$about: $why" : () } @attributes
			  if $about !~ /^POST/ && $answer->{status} == 200;

			# what was made goes again
			$vera->call(DELETE => "/docs/$answer->{json}{data}{id}") if $status == 201;
		}
	}
	open my $out, '>', "$folder/client$client" or die "$client: $!\n";
	print $out $json->encode({ statuses => \%statuses, faults => [ @faults[ 0 .. ($#faults < 9 ? $#faults : 9) ] ] });
	close $out;
	return;
}

# Plain SQL by a role that has the viewer's rights
sub reader
{
	my (%statuses, @faults);
	my $sql = join '', map { "select 'v', $_ from app.doc where title = 'title' limit 3;\n" } qw(nick code size alpha);

	while (!-e "$folder/stop")
	{
		my $result = EntityApi::Test::run([ EntityApi::Test::server_program('psql'), '-XAtq', '-f', '-', '-d', $cluster->conninfo('reader') ], in => $sql x 5);
		for my $line (split /\n/, $result->{out})
		{
			$statuses{rows}++;
			push @faults, "plain SQL: $line" if $line !~ /^v\|(?:PUBLIC|777(?:\.00)?|hello|123456)?$/;
		}
	}
	open my $out, '>', "$folder/client" . CLIENTS or die "$!\n";
	print $out $json->encode({ statuses => \%statuses, faults => [ @faults[ 0 .. ($#faults < 9 ? $#faults : 9) ] ] });
	close $out;
	return;
}

# --- changes ----------------------------------------------------------------------

# Each returns SQL; by hand the table is altered and put back.
sub another_size
{
	$state{size} = ($state{size} + 1 + int rand(@sizes - 1)) % @sizes;
	return application(\%state) . "update app.doc set size = 777 where title = 'title' and size is null;\n";
}

# The words of a renaming are carried out once, so they go in between.
sub exchange
{
	my ($what, $pair) = @_;

	$state{$what} = 1 - $state{$what};
	return application(\%state, $pair), application(\%state);
}

my @types = ('int4', 'int8', 'numeric(12,2)', 'text');
my @by_hand = (
	sub {
		my $other = $types[ ($state{size} + 1 + int rand(@types - 1)) % @types ];
		return ("alter table app.doc alter size type $other using size::text::numeric::$other;\n", "alter table app.doc alter size type $types[$state{size}] using size::text::numeric::$types[$state{size}];\n");
	},
	sub { return ("alter table app.doc rename size to other;\n", "alter table app.doc rename other to size;\n") },
	sub { return ("alter table app.doc add column more text default 'x';\n", "alter table app.doc drop column more;\n") },
	sub { return ("begin; alter table app.doc drop column title; alter table app.doc add column title varchar(50) default 'title'; commit;\n") },
	sub { return ("begin; create table app.copy (like app.doc including all); insert into app.copy select * from app.doc; drop table app.doc cascade;"
			. " alter table app.copy rename to doc; alter table app.doc owner to entityapi_owner; commit;\n") },
	sub { return ("alter schema app owner to postgres;\n", "alter schema app owner to entityapi_owner;\n") });

sub change
{
	my ($by_hand) = @_;
	my $which = int rand($by_hand ? 6 : 3);

	return another_size() if $which == 0;
	return exchange(names => [qw(alpha beta)]) if $which == 1;
	return exchange(words => [qw(nick code)]) if $which == 2;
	return $by_hand[ int rand @by_hand ]->();
}

sub play
{
	my ($n, $by_hand) = @_;
	my $script = "set lock_timeout = '10s';\nset client_min_messages = error;\n";
	my @clients;
	my $made = 0;

	unlink "$folder/stop";
	while ($made < $n)
	{
		my @statements = change($by_hand);

		$made += @statements;
		$script .= join "select pg_sleep(0.002);\n", @statements, '';
	}
	for my $client (0 .. CLIENTS)
	{
		my $pid = fork // die "fork: $!\n";
		if ($pid == 0)
		{
			eval { $client < CLIENTS ? client($client, $by_hand) : reader(); 1 } or print STDERR $@;
			POSIX::_exit(0);
		}
		push @clients, $pid;
	}
	my $start = time;
	my $result = $cluster->try_psql($script);
	my $took = time - $start;
	open my $stop, '>', "$folder/stop" or die "stop: $!\n";
	close $stop;
	waitpid $_, 0 for @clients;

	my (%statuses, @faults);
	for my $client (0 .. CLIENTS)
	{
		my $left = $json->decode(EntityApi::Test::slurp("$folder/client$client"));
		$statuses{$_} += $left->{statuses}{$_} for keys %{ $left->{statuses} };
		push @faults, @{ $left->{faults} };
		unlink "$folder/client$client";
	}
	my $name = $by_hand ? 'by hand as well' : 'by manifests';
	diag sprintf '%s: %d changes in %.0f s, seed %d; answers %s', $name, $made, $took, $seed, $json->encode(\%statuses);
	is($result->{status}, 0, "$name: the changes went through") or diag $result->{err};
	is(scalar(() = EntityApi::Test::slurp($cluster->log) =~ /terminated by signal/g), 0, "$name: no crash");
	is(scalar @faults, 0, "$name: no other value, no field too much") or diag join "\n", @faults;
	cmp_ok($statuses{200} // 0, '>', 20, "$name: requests were answered meanwhile");
	return;
}

play($changes - int($changes / 3), 0);
play(int($changes / 3), 1);

done_testing;
