# Applying to tables in use: what waits for whom, and what is left for after
# the transaction, seen by HTTP until it is done.

use strict;
use warnings;

use JSON::PP;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use EntityApi::Test;
use EntityApi::Test::Cases;

my $json = JSON::PP->new->canonical;
my $cluster = EntityApi::Test->cluster;
my $folder = EntityApi::Test::folder();
my %fields = (code => { type => 'string' }, size => { type => 'integer' }, kind => { type => 'string' });

# Manifests with these fields of Item
sub manifests
{
	my (%more) = @_;

	return [
		{ kind => 'Entity', metadata => { name => 'Item' }, spec => { fields => { %fields, %more }, permissions => { '*' => [qw(create read update delete)] } } },
		{ kind => 'Entity', metadata => { name => 'Box' }, spec => { fields => { name => { type => 'string' } }, permissions => { '*' => [qw(create read)] } } },
	];
}

my $files = 0;

sub file
{
	my $name = "$folder/" . ++$files . '.json';
	my @documents = map { { apiVersion => 'entityapi/v1', %$_ } } @{ manifests(@_) };

	open my $file, '>', $name or die "$name: $!\n";
	print $file $json->encode(\@documents);
	close $file;
	return $name;
}

# Applied by SQL alone: what is left stays
sub apply_sql
{
	my $text = EntityApi::Test::slurp(file(@_));

	return $cluster->psql("select count(*) from entityapi.apply_manifest(\$json\$$text\$json\$)");
}

$cluster->apply(file());
my $shim = EntityApi::Test->shim($cluster);
my $root = $shim->superadmin;
my $tenant = $shim->tenant('acme');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant->{id}, 'ann'), '/api/v1');

sub make { return $ann->call(POST => '/items', data => { type => 'items', attributes => {@_} }) }
sub status { return $shim->must(200, GET => '/manage/migrations/status', { token => $root }) }

# A transaction that keeps what the statement takes until it is ended
sub hold
{
	my ($sql) = @_;
	my $mark = 'holder' . ++$files;
	my $pid = EntityApi::Test::start([ EntityApi::Test::server_program('psql'), '-XAtq', '-d', $cluster->conninfo ],
		in => "set application_name = '$mark'; begin; $sql; select pg_sleep(600)");

	EntityApi::Test::wait_until(10, sub {
		$cluster->psql("select count(*) from pg_stat_activity where application_name = '$mark' and wait_event = 'PgSleep'") })
	  or die "$sql: nothing is held\n";
	return sub {
		$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where application_name = '$mark'");
		waitpid $pid, 0;
	};
}

is(make(code => "c$_", size => $_, kind => 'A')->{status}, 201, "item $_") for 1 .. 3;

subtest 'pending, failed, done' => sub {
	my %unique = (code => { type => 'string', unique => JSON::PP::true, required => JSON::PP::true });
	my $before = status();

	is($before->{status}, 'UP_TO_DATE', 'nothing is pending');
	apply_sql(%unique);
	my $status = status();
	is($status->{status}, 'PENDING', 'on a table that holds rows');
	is($status->{manifestRevision}, $before->{manifestRevision} + 1, 'applied all the same');
	is_deeply([ map { [ @$_{qw(status what entity field)}, scalar @{ $_->{statements} } ] } @{ $status->{pending} } ],
		[ [ 'PENDING', 'required field item__code_filled', 'Item', 'code', 3 ],
			[ 'PENDING', 'unique key item__code_key', 'Item', 'code', 2 ] ], 'what');
	like($status->{pending}[1]{why}, qr/holds rows/, 'and why');
	is_deeply($status->{revisions}[0]{statements}[-1], $status->{pending}[1]{statements}[-1], 'the revision has all its statements');
	$ann->refused('required at once', 400, undef, [ pointer => '/data/attributes' ],
		POST => '/items', data => { type => 'items', attributes => { size => 1 } });

	# as the documentation says, this is not refused yet
	my $twin = make(code => 'c1');
	is($twin->{status}, 201, 'not unique yet');
	my $again = $cluster->try_apply('--resume');
	is($again->{status}, 1, 'cannot be made');
	like($again->{out}, qr/SET NOT NULL;\n-- done/, 'but what can be is done');
	like($again->{err}, qr/FAILED: CREATE UNIQUE INDEX CONCURRENTLY item__code_key .*could not create unique index/, 'what');
	like($again->{err}, qr/1 of the pending steps failed; .*Change the rows, then run "entityapi-shim apply --resume"/, 'and what to do');
	unlike($again->{out} . $again->{err}, qr/c1/, 'no values');
	$status = status();
	is($status->{status}, 'FAILED', 'by HTTP, too');
	is(scalar @{ $status->{pending} }, 1, 'only this one');
	my $failed = $status->{pending}[0];
	is("$failed->{status}: $failed->{reason}", 'FAILED: Rows have equal values.', 'why');
	like($failed->{hint}, qr/--resume/, 'what to do');
	like($failed->{failedAt}, qr/^20.*Z$/, 'when');
	unlike($json->encode($status->{pending}), qr/c1/, 'no values');
	is($cluster->psql('select count(*) from pg_index where not indisvalid'), 0, 'nothing half made is left');

	$ann->good(204, DELETE => "/items/$twin->{json}{data}{id}");
	my $done = $cluster->try_apply(file(%unique));
	is($done->{status}, 0, 'the same manifests go on, too') or diag $done->{err};
	like($done->{out}, qr/\Anothing to change\nCREATE UNIQUE INDEX CONCURRENTLY .*;\n-- done in .* s\nALTER TABLE .* USING INDEX .*;\n-- done/, 'and say what they did');
	is(status()->{status}, 'UP_TO_DATE', 'done');
	is_deeply(status()->{pending}, [], 'nothing is left');
	$ann->refused('unique', 409, 'UNIQUE_VIOLATION', [ pointer => '/data/attributes/code' ],
		POST => '/items', data => { type => 'items', attributes => { code => 'c1' } });
	%fields = (%fields, %unique);
};

subtest 'no longer wanted' => sub {
	apply_sql(kind => { type => 'string', index => JSON::PP::true, enum => ['A'] });
	is(scalar @{ status()->{pending} }, 2, 'pending');
	my $revision = status()->{manifestRevision};
	apply_sql();
	is_deeply([ @{ status() }{qw(status pending)} ], [ 'UP_TO_DATE', [] ], 'taken back');
	is(make(code => 'b', kind => 'B')->{status}, 201, 'and no trace is left');
};

subtest 'interrupted' => sub {
	my @wanted = (kind => { type => 'string', index => JSON::PP::true });
	my $release = hold('select count(*) from app.item');
	my $pid = EntityApi::Test::start([ EntityApi::Test::private_program('entityapi-shim'),
			'apply', '--database', $cluster->conninfo, file(@wanted) ]);

	ok(EntityApi::Test::wait_until(20, sub {
		$cluster->psql(q{select count(*) from pg_stat_progress_create_index where phase ~ 'wait'}) }), 'waits for a reader');
	is($ann->call(GET => '/items?filter=kind==B')->{status}, 200, 'reads go on');
	is(make(code => 'meanwhile')->{status}, 201, 'writes, too');
	is(status()->{status}, 'PENDING', 'it is pending');
	my $second = EntityApi::Test::start([ EntityApi::Test::private_program('entityapi-shim'),
			'apply', '--database', $cluster->conninfo, '--resume' ], out => "$folder/second");
	ok(EntityApi::Test::wait_until(10, sub { -e "$folder/second" && EntityApi::Test::slurp("$folder/second") =~ /waiting for another/ }),
		'a second one waits');
	kill KILL => $pid, $second;
	waitpid $_, 0 for $pid, $second;
	$cluster->psql("select pg_terminate_backend(pid, 60000) from pg_stat_activity where query ~ '^CREATE INDEX'");
	$release->();
	is($cluster->psql('select count(*) from pg_index where not indisvalid'), 1, 'half an index');
	is(status()->{status}, 'PENDING', 'still pending');
	my $done = $cluster->try_apply('--resume');
	like($done->{out}, qr/\ADROP INDEX CONCURRENTLY .*\n-- done.*\nCREATE INDEX CONCURRENTLY .*\n-- done/, 'made again') or diag $done->{err};
	is(status()->{status}, 'UP_TO_DATE', 'done');
	is($cluster->psql("select indisvalid from pg_index where indexrelid = 'app.item__kind_idx'::regclass"), 't', 'and valid');
	is($cluster->try_apply('--resume')->{out}, '', 'nothing more to do');
	%fields = (%fields, @wanted);
};

subtest 'after a restart' => sub {
	apply_sql(size => { type => 'integer', minimum => 0 });
	$cluster->restart;
	is(status()->{status}, 'PENDING', 'still known');
	is($cluster->try_apply('--resume')->{status}, 0, 'done');
	is(status()->{status}, 'UP_TO_DATE', 'over');
	apply_sql();
};

subtest 'tables in use' => sub {
	my @more = (note => { type => 'string' });
	my $release = hold('select count(*) from app.item');
	my $start = time;
	my $result;

	# the first attempt may take all of the second
	EntityApi::Test::wait_until(60, sub { $result = $cluster->try_apply(file(@more), '--wait', 1); $result->{err} =~ /trying again/ });
	is($result->{status}, 1, 'given up in the end');
	like($result->{err}, qr/in use, trying again \(1\)/, 'after more than one attempt');
	# a busy machine makes it longer only
	cmp_ok(time - $start, '>=', 1, 'as long as asked for');
	like($result->{err}, qr/ERROR:  other transactions did not release app\.item within \d+ ms\nDETAIL:  Nothing was changed.*\nHINT:  Apply again/,
		'says why');
	is($cluster->psql("select count(*) from pg_attribute where attrelid = 'app.item'::regclass and attname = 'note'"), 0, 'nothing was changed');
	my $refused = $cluster->try_psql('set entityapi.apply_lock_timeout = 50; \set VERBOSITY verbose' . "\n"
		  . 'select entityapi.apply_manifest($json$' . EntityApi::Test::slurp(file(@more)) . '$json$)');
	like($refused->{err}, qr/55P03: .*within 50 ms/, 'by SQL, too');

	# whoever comes meanwhile never waits longer than one attempt lasts
	my $pid = EntityApi::Test::start([ EntityApi::Test::private_program('entityapi-shim'),
			'apply', '--database', $cluster->conninfo, file(@more), '--wait', 600 ], out => "$folder/more", err => "$folder/more.err");
	my $tries = sub { return -e "$folder/more.err" ? EntityApi::Test::slurp("$folder/more.err") =~ /.*in use, trying again \((\d+)\)/s ? $1 : 0 : 0 };
	my ($good, $asked) = (0, 0);
	EntityApi::Test::wait_until(60, sub { $tries->() > 0 });
	while ($asked < 20 || $asked < 2000 && $tries->() < 4)
	{
		$asked++;
		$good++ if $ann->call(GET => '/items')->{status} == 200 && make(size => 1, code => "w$asked")->{status} == 201;
	}
	cmp_ok($tries->(), '>=', 2, 'among more than one attempt');
	is($good, $asked, 'requests are answered meanwhile');
	is(waitpid($pid, POSIX::WNOHANG()), 0, 'while the change waits');
	$release->();
	waitpid $pid, 0;
	is($?, 0, 'applied when it was released');
	is($ann->good(200, GET => '/items')->{json}{data}[0]{attributes}{note}, undef, 'and seen');
	ok(exists $ann->good(200, GET => '/items')->{json}{data}[0]{attributes}{note}, 'at once');
	%fields = (%fields, @more);
};

subtest 'who applies' => sub {
	$cluster->psql('create role deployer login; grant usage on schema entityapi to deployer;
		grant execute on function entityapi.apply_manifest(json, boolean, text[]), entityapi.claim_apply() to deployer');
	$cluster->psql('grant execute on all functions in schema undeclared to deployer') if $cluster->isa('EntityApi::Test::Citus');
	my $deploy = sub {
		return EntityApi::Test::run([ EntityApi::Test::private_program('entityapi-shim'),
				'apply', '--database', $cluster->conninfo('deployer'), @_ ]);
	};
	is($deploy->(file(extra => { type => 'string' }))->{status}, 0, 'nothing is left for later');
	my $result = $deploy->(file(extra => { type => 'string', index => JSON::PP::true }));
	is($result->{status}, 1, 'what is left takes more');
	like($result->{err}, qr/takes a member of entityapi_owner/, 'as it says');
	is(status()->{status}, 'PENDING', 'and is pending');
	$cluster->psql('grant entityapi_owner to deployer');
	is($deploy->('--resume')->{status}, 0, 'as a member');
	is($cluster->psql("select relowner::regrole from pg_class where relname = 'item__extra_idx'"), 'entityapi_owner', 'owned as all is');
	is($cluster->apply('--allow-data-loss', 'Item.extra', file()), "DROP INDEX app.item__extra_idx;\nALTER TABLE app.item DROP COLUMN extra;\n", 'away');

	my $release = hold('select count(*) from entityapi.apply_manifest(entityapi.export_manifest(), true)');
	like($cluster->try_psql("select entityapi.apply_manifest('[]')")->{err}, qr/another change of the declarations is under way/, 'one at a time');
	$release->();
};

subtest 'dry run' => sub {
	$cluster->psql('analyze app.item');
	my $result = $cluster->try_apply('--dry-run', file(
		size => { type => 'long', minimum => 0 }, note => { type => 'string', maxLength => 300, index => JSON::PP::true }, more => { type => 'text' }));
	my $rows = $cluster->psql('select count(*) from app.item');

	is($result->{status}, 0, 'planned') or diag $result->{err};
	for my $line ('ALTER TABLE app.item ADD COLUMN more text; -- ACCESS EXCLUSIVE lock',
		"ALTER TABLE app.item ALTER COLUMN size TYPE int8 USING size::int8; -- ACCESS EXCLUSIVE lock, rewrites the table, about $rows",
		'ALTER TABLE app.item ALTER COLUMN note TYPE varchar(300) USING note::varchar(300); -- ACCESS EXCLUSIVE lock',
		'-- then, one by one, while requests are served:',
		"ALTER TABLE app.item VALIDATE CONSTRAINT item__size_minimum; -- SHARE UPDATE EXCLUSIVE lock, reads all rows, about $rows",
		"CREATE INDEX CONCURRENTLY item__note_idx ON app.item (tenant_id, note); -- SHARE UPDATE EXCLUSIVE lock, builds an index, about $rows")
	{
		like($result->{out}, qr/^\Q$line\E$/m, $line);
	}
	is(status()->{status}, 'UP_TO_DATE', 'only planned');
	$result = $cluster->try_apply('--defer', file(note => { type => 'string', index => JSON::PP::true }));
	is($result->{status}, 0, 'put off');
	is(status()->{status}, 'PENDING', 'is pending');
	is($cluster->try_apply('--resume', file())->{status}, 2, 'no manifests with --resume');
	is($cluster->try_apply('--wait', 'long', file())->{status}, 2, 'no such time');
};

done_testing;
