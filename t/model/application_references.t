# Made tables that refer to an application's: without a foreign key, as that would
# bind the application.  What is read of both is read as the role, of which only the
# service's own tables in the service's own text are not; nothing of others gains by it.

use strict;
use warnings;

use JSON::PP ();
use Test::More;

use EntityApi::Test;
use EntityApi::Test::Cases;
use EntityApi::Test::Client;
use EntityApi::Test::Session;

delete $ENV{ENTITYAPI_TEST_MAPPED};

# the service waits as long as others let it
my $cluster = EntityApi::Test->cluster(conf => ['deadlock_timeout = 100s']);
my $folder = EntityApi::Test::folder();
my $encoder = JSON::PP->new->canonical;
my $true = JSON::PP::true;
my $atomic = 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"';
my @all = qw(create read update delete history);

sub declared
{
	my ($kind, $name, $spec) = @_;

	EntityApi::Test::write_file("$folder/$name.json",
		$encoder->encode({ apiVersion => 'entityapi/v1', kind => $kind, metadata => { name => $name }, spec => $spec }));
	return;
}
sub ref_to { my ($target, %more) = @_; return { type => 'ref', target => $target, %more } }
sub many { my ($target, $by) = @_; return ref_to($target, relation => 'OneToMany', mappedBy => $by) }

$cluster->psql(<<'SQL');
create role shop_app;
create role shop_web login;
create schema shop authorization shop_app;
grant usage on schema shop to shop_web;
set role shop_app;
create table shop.customer (id uuid primary key default gen_random_uuid(), name varchar(100), region text);
create table shop.product (id uuid primary key default gen_random_uuid(), name text);
grant select, insert, update, delete on shop.customer to shop_web;
grant select on shop.product to shop_web;
insert into shop.product (name) values ('pen');
reset role;
SQL

my %rights = (permissions => { Reader => ['read'], Editor => [@all] });
my %text = (text => { type => 'text' });
my %spec = (
	Customer => { table => 'shop.customer', fields => { name => { type => 'string', maxLength => 100 }, region => { type => 'text' }, notes => many(Note => 'customer'),
		card => ref_to('Card', relation => 'OneToOne', mappedBy => 'customer') }, %rights },
	Product => { table => 'shop.product', fields => { name => { type => 'text' } }, permissions => { Reader => ['read'], Editor => ['read'] } },
	Note => { fields => { %text, customer => ref_to('Customer', required => $true, onDelete => 'cascade'), product => ref_to('Product') }, %rights },
	Reply => { plural => 'replies', fields => { %text, note => ref_to('Note', required => $true, onDelete => 'cascade') }, %rights },
	Ticket => { fields => { %text, customer => ref_to('Customer', onDelete => 'setNull') }, optimisticLocking => $true, %rights },
	Bill => { fields => { %text, customer => ref_to('Customer') }, %rights },
	Card => { fields => { %text, customer => ref_to('Customer', relation => 'OneToOne', onDelete => 'cascade') }, %rights },
	Common => { plural => 'commons', tenantScoped => JSON::PP::false, fields => { %text, customer => ref_to('Customer', onDelete => 'cascade') }, %rights },
	Old => { plural => 'olds', softDelete => $true, fields => { %text, customer => ref_to('Customer') }, permissions => { Reader => ['read'], Editor => [ @all, 'restore' ] } },
	Guarded => { plural => 'guardeds', fields => { %text, customer => ref_to('Customer', required => $true, onDelete => 'cascade'), tags => ref_to('Label', relation => 'ManyToMany') },
		policies => { North => [ 'create', 'read', 'update', 'delete' ] }, %rights },
	Label => { fields => { %text, customer => ref_to('Customer'), guarded => ref_to('Guarded', relation => 'ManyToMany', mappedBy => 'tags') }, policies => { Labelled => ['read'] }, %rights },
	Free => { plural => 'frees', fields => { %text, customer => ref_to('Customer') }, policies => { Nobodys => ['read'] }, %rights });

declared(Service => service => { tenancy => 'SINGLE', existing => { role => 'shop_web', searchPath => ['shop'] } });
declared(Roles => roles => { roles => { Reader => {}, Editor => { assignableBy => 'superAdmin' } } });
declared(Policy => North => { expression => q{#row.customer.region == 'north'} });
declared(Policy => Labelled => { expression => q{#record.customer.region == 'north'} });
declared(Policy => Nobodys => { expression => '#record.customer == null' });

sub try_apply
{
	declared(Entity => $_ => $spec{$_}) for keys %spec;
	return $cluster->try_apply($folder);
}
my $dump = sub { return join "\n", grep { !/^\\(?:un)?restrict/ } split /\n/,
	qx{pg_dump -s -n shop -h @{[ $cluster->host ]} -p @{[ $cluster->port ]} -U postgres @{[ $cluster->conninfo =~ /dbname=(\S+)/ ]} 2>&1} };
my $before = $dump->();

{
	local $spec{Product}{fields} = { %{ $spec{Product}{fields} }, note => ref_to('Note') };
	like(try_apply()->{err}, qr{/spec/fields/note/target: Product is not tenant-scoped and cannot lead to Note, which is}, 'a table of the application refers to none that is made');
	$spec{Product}{fields}{note} = ref_to('Common');
	like(try_apply()->{err}, qr{/spec/fields/note: leads to Common, whose table is not the application's: a foreign key would bind the application}, 'nor to one of no tenant');
}
{
	local $spec{Note}{fields} = { %{ $spec{Note}{fields} }, products => ref_to('Product', relation => 'ManyToMany') };
	like(try_apply()->{err}, qr{/spec/fields/products: the table of Product is the application's, and no join table leads there}, 'nor does a join table lead there');
}
my $applied = try_apply();
is($applied->{status}, 0, 'applied') or BAIL_OUT($applied->{err});
is($dump->(), $before, 'the schema is as it was, with its rights');
is($cluster->psql(q{select count(*) from pg_constraint where contype = 'f' and confrelid in ('shop.customer'::regclass, 'shop.product'::regclass)}), 0, 'no foreign key leads there');
is($cluster->psql(q{select has_schema_privilege('shop_web', 'app', 'usage') or has_table_privilege('shop_web', 'app.note', 'select')}), 'f', 'the role has no right of the service');
is(try_apply()->{out}, "nothing to change\n", 'applied again');

my $shim = EntityApi::Test->shim($cluster);
my $tenant = $cluster->psql('select id from entityapi.tenant');
my $ann = EntityApi::Test::Cases->new($shim, $shim->user($tenant, 'ann', ['Editor']), '/api/v1');
my $token = $ann->{token}{accessToken};
my $product = $cluster->psql('select id from shop.product');

sub made
{
	my ($type, $attributes, %to) = @_;

	return $ann->good(201, POST => "/$type", data => { type => $type, attributes => $attributes, %to ? (relationships => { map { $_ => { data => $to{$_} } } keys %to }) : () })->{json}{data};
}
sub is_of { my ($data) = @_; return { type => $data->{type}, id => $data->{id} } }
sub texts { return join ' ', map { $_->{attributes}{text} // $_->{attributes}{name} } @{ $_[0]{json}{data} } }
sub listed { return texts($ann->good(200, GET => $_[0])) }
sub records { my ($data, $action) = @_; return $cluster->psql("select count(*) from entityapi.audit where target_id = '$data->{id}' and action = '$action' and outcome = 'SUCCESS'") }
sub batch { return $ann->call(POST => '/operations', headers => { 'Content-Type' => $atomic }, body => $encoder->encode({ 'atomic:operations' => \@_ })) }
sub send_request
{
	my ($method, $path, $data) = @_;
	my $client = EntityApi::Test::Client::connected($shim);
	my $body = defined $data ? $encoder->encode({ data => $data }) : '';

	print {$client} "$method /api/v1$path HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer $token\r\n",
	  $body eq '' ? "\r\n" : "Content-Type: application/vnd.api+json\r\nContent-Length: @{[ length $body ]}\r\n\r\n$body";
	return $client;
}
# What functions have said since it was asked last: a read can write nothing else
my $heard = 0;
sub told
{
	my $log = EntityApi::Test::slurp($cluster->log);
	my %said = map { $_ => 1 } substr($log, $heard) =~ /LOG:  TOLD (.*)/g;

	$heard = length $log;
	return join '; ', sort keys %said;
}
sub somebody_waits { return EntityApi::Test::wait_until(60, sub { $cluster->psql('select count(*) from pg_locks where not granted') > 0 }) || fail('somebody waits') }

my ($north, $south);
for my $way ('on', 'off')
{
	$cluster->set("entityapi.$_", $way) for qw(direct_reads direct_writes);
	subtest "written and read, direct: $way" => sub {
		$cluster->psql("delete from app.$_") for qw(reply note ticket bill card common old guarded_tags guarded label free);
		$cluster->psql('delete from shop.customer');
		$north = made(customers => { name => 'ann', region => 'north' });
		$south = made(customers => { name => 'bob', region => 'south' });
		my $note = made(notes => { text => 'one' }, customer => is_of($north), product => { type => 'products', id => $product });
		made(notes => { text => 'two' }, customer => is_of($south));
		my $reply = made(replies => { text => 'yes' }, note => is_of($note));
		my $nobody = { type => 'customers', id => '00000000-0000-4000-8000-000000000000' };

		$ann->refused('a target that is not there', 404, 'RELATED_NOT_FOUND', [ pointer => '/data/relationships/customer/data' ], POST => '/notes',
			data => { type => 'notes', attributes => {}, relationships => { customer => { data => $nobody } } });
		$ann->refused('nor by PATCH', 404, 'RELATED_NOT_FOUND', undef, PATCH => "/notes/$note->{id}/relationships/product", json => { data => { type => 'products', id => $nobody->{id} } });
		is(batch({ op => 'add', data => { type => 'customers', lid => 'c', attributes => { name => 'new', region => 'east' } } },
			{ op => 'add', data => { type => 'notes', attributes => { text => 'three' }, relationships => { customer => { data => { type => 'customers', lid => 'c' } } } } })->{status}, 200, 'to one that an operation makes');
		is(batch({ op => 'add', data => { type => 'notes', lid => 'n', attributes => { text => 'early' } } }, { op => 'add', data => { type => 'customers', lid => 'l', attributes => { name => 'late' } } },
			{ op => 'update', ref => { type => 'notes', lid => 'n', relationship => 'customer' }, data => { type => 'customers', lid => 'l' } })->{status}, 200, 'also a later one, as no key refuses');

		is(listed('/notes?filter=customer.region==north'), 'one', 'by a path');
		is(listed('/notes?filter=customer.name=in=(ann,bob)&sort=-customer.name'), 'two one', 'in an order');
		is($ann->good(200, GET => '/notes?filter=customer.region==north&page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 1, 'counted');
		is(listed('/replies?filter=note.customer.region==north'), 'yes', 'by two sides');
		is(listed('/customers?filter=notes.text==two'), 'bob', 'from the other side');
		is(listed('/customers?filter=notes.product.name==pen'), 'ann', 'there and back');
		is(join(' ', sort map { $_->{attributes}{name} // $_->{attributes}{text} } @{ $ann->good(200, GET => "/replies/$reply->{id}?include=note.customer,note.product")->{json}{included} }), 'ann one pen', 'included');
		is(join(' ', sort map { $_->{attributes}{text} } @{ $ann->good(200, GET => '/customers?include=notes&filter=region=in=(north,south)')->{json}{included} }), 'one two', 'and from the other side');
		is(listed("/customers/$north->{id}/notes"), 'one', 'a related list');
		is($ann->good(200, GET => "/notes/$note->{id}/customer")->{json}{data}{id}, $north->{id}, 'a related resource');

		my $card = made(cards => { text => 'c' }, customer => is_of($north));
		is($ann->good(200, GET => "/customers/$north->{id}?include=card")->{json}{included}[0]{id}, $card->{id}, 'one to one');
		is(listed('/customers?filter=card.text==c'), 'ann', 'and by a path');
		is($ann->call(PATCH => "/customers/$south->{id}/relationships/notes", json => { data => [ is_of($note) ] })->{status}, 400, 'members with a required reference stay');
		is($ann->call(POST => "/customers/$south->{id}/relationships/notes", json => { data => [ is_of($note) ] })->{status}, 204, 'others come');
		is(listed('/notes?filter=customer.region==south&sort=text'), 'one two', 'to the other');
		is($ann->call(PATCH => "/notes/$note->{id}/relationships/customer", json => { data => is_of($north) })->{status}, 204, 'and back');
	};

	subtest "what others delete, direct: $way" => sub {
		my $gone = made(customers => { name => 'gone', region => 'west' });
		my @to = (customer => is_of($gone));
		my $note = made(notes => { text => 'left' }, @to);
		my $ticket = made(tickets => { text => 'left' }, @to);
		my $free = made(frees => { text => 'left' }, @to);

		is($ann->call(GET => "/frees/$free->{id}")->{status}, 404, 'a policy sees the link');
		$cluster->psql("set role shop_app; delete from shop.customer where id = '$gone->{id}'");
		is($ann->good(200, GET => "/notes/$note->{id}")->{json}{data}{relationships}{customer}{data}, undef, 'reads as null');
		is($ann->good(200, GET => '/notes?filter=text==left')->{json}{data}[0]{relationships}{customer}{data}, undef, 'in a list');
		my $answer = $ann->good(200, GET => "/notes/$note->{id}?include=customer");
		is_deeply([ $answer->{json}{data}{relationships}{customer}{data}, $answer->{json}{included} // [] ], [ undef, [] ], 'nothing is included');
		is($ann->good(200, GET => "/notes/$note->{id}/customer")->{json}{data}, undef, 'nothing is related');
		is($ann->good(200, GET => "/notes/$note->{id}/relationships/customer")->{json}{data}, undef, 'nor linked');
		is(listed("/notes?filter=$_"), '', "not found by $_") for 'customer.name==gone', "customer.id==$gone->{id}", 'text==left;customer=isnull=false';
		is(listed("/notes?filter=text==left;$_"), 'left', "found by $_") for 'customer=isnull=true', 'customer.name=isnull=true', 'customer.id=isnull=true';
		is($ann->good(200, GET => '/notes?filter=customer=isnull=true&page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 1, 'and counted so');
		is(listed('/notes?filter=text=in=(left,one)&sort=customer.name'), 'one left', 'last in an order');
		is($ann->call(GET => "/frees/$free->{id}")->{status}, 200, 'a policy sees none');
		is($ann->call(GET => "/customers/$gone->{id}/notes")->{status}, 404, 'it has no notes');
		is($ann->call(PATCH => "/notes/$note->{id}", data => { %{ is_of($note) }, attributes => { text => 'still' } })->{status}, 200, 'the row is changed as any');
		$answer = $ann->call(PATCH => "/tickets/$ticket->{id}", data => { %{ is_of($ticket) }, attributes => { text => 'x' } }, headers => { 'If-Match' => '"0"' });
		is($answer->{json}{data}{relationships}{customer}{data}, undef, 'and answered so') or diag $answer->{body};
		$ann->refused('the link is not made again', 404, 'RELATED_NOT_FOUND', undef, PATCH => "/notes/$note->{id}/relationships/customer", json => { data => is_of($gone) });
		$ann->good(204, DELETE => "/$_->{type}/$_->{id}", headers => { 'If-Match' => '*' }) for $note, $ticket, $free;
	};

	subtest "what the service deletes, direct: $way" => sub {
		my $goes = made(customers => { name => 'goes', region => 'west' });
		my @to = (customer => is_of($goes));
		my ($note, $ticket, $card, $common) = map { made($_ => { text => 't' }, @to) } qw(notes tickets cards commons);
		my $reply = made(replies => { text => 't' }, note => is_of($note));
		my $bill = made(bills => { text => 't' }, @to);
		my $old = made(olds => { text => 't' }, @to);

		$ann->refused('two rows refer to it', 409, 'STILL_REFERENCED', undef, DELETE => "/customers/$goes->{id}");
		$ann->good(204, DELETE => "/olds/$old->{id}");
		$ann->refused('one row refers to it', 409, 'STILL_REFERENCED', undef, DELETE => "/customers/$goes->{id}");
		is($ann->call(GET => "/notes/$note->{id}")->{status}, 200, 'nothing goes along');
		$ann->good(204, DELETE => "/bills/$bill->{id}");
		$ann->good(204, DELETE => "/customers/$goes->{id}");
		for my $along ($note, $reply, $card, $common)
		{
			is($ann->call(GET => "/$along->{type}/$along->{id}")->{status}, 404, "one of $along->{type} goes along");
			is(records($along, 'ENTITY_DELETE'), 1, 'with a record');
		}
		is($ann->good(200, GET => "/tickets/$ticket->{id}")->{headers}{etag}, '"1"', 'another is let go, with its version');
		is($cluster->psql("select customer_id from app.ticket where id = '$ticket->{id}'"), '', 'in its table');
		is(records($ticket, 'ENTITY_UPDATE'), 1, 'with a record');
		is($cluster->psql("select customer_id from app.old where id = '$old->{id}'"), '', 'and what is hidden holds nothing back');
		$ann->good(200, POST => "/olds/$old->{id}/restore");
	};

	subtest "policies over both sides, direct: $way" => sub {
		my $mine = made(guardeds => { text => 'mine' }, customer => is_of($north));
		my $label = made(labels => { text => 'l' }, customer => is_of($north));

		$ann->refused('made for another', 403, 'FORBIDDEN', undef, POST => '/guardeds', data => { type => 'guardeds', attributes => {}, relationships => { customer => { data => is_of($south) } } });
		is(listed('/guardeds'), 'mine', 'read');
		is($ann->good(200, GET => '/guardeds?page[totals]=true')->{json}{meta}{pagination}{totalRecords}, 1, 'counted');
		is($ann->call(PATCH => "/guardeds/$mine->{id}", data => { %{ is_of($mine) }, attributes => { text => 'changed' } })->{status}, 200, 'changed');
		is(listed('/guardeds'), 'changed', 'so it is');
		my $time = $cluster->psql(q{select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')});
		$ann->good(200, PATCH => "/guardeds/$mine->{id}", data => { %{ is_of($mine) }, attributes => { text => 'later' } });
		is($ann->good(200, GET => "/guardeds/$mine->{id}?asOf=$time")->{json}{data}{attributes}{text}, 'changed', 'as it was');
		is(scalar @{ $ann->good(200, GET => "/guardeds/$mine->{id}/history")->{json}{data} }, 3, 'its history');
		$ann->good(200, PATCH => "/guardeds/$mine->{id}", data => { %{ is_of($mine) }, attributes => { text => 'changed' } });
		$ann->refused('moved to another', 403, 'FORBIDDEN', undef, PATCH => "/guardeds/$mine->{id}/relationships/customer", json => { data => is_of($south) });
		is($ann->call(PATCH => "/guardeds/$mine->{id}/relationships/tags", json => { data => [ is_of($label) ] })->{status}, 204, 'linked');
		is($ann->call(PATCH => "/guardeds/$mine->{id}/relationships/tags", json => { data => [] })->{status}, 204, 'and cut off');
		is($cluster->psql('select count(*) from app.guarded_tags'), 0, 'so it is');
		$ann->call(POST => "/guardeds/$mine->{id}/relationships/tags", json => { data => [ is_of($label) ] });
		$cluster->psql(qq{update shop.customer set region = 'south' where id = '$north->{id}'});
		is(listed('/guardeds'), '', 'the application moves it away');
		is(listed('/labels'), '', 'and what is labelled');
		is($ann->call($_->[0] => "/guardeds/$mine->{id}", @{ $_->[1] })->{status}, 404, "no $_->[0]")
		  for [ GET => [] ], [ DELETE => [] ], [ PATCH => [ data => { %{ is_of($mine) }, attributes => { text => 'x' } } ] ];
		is($cluster->psql('select text from app.guarded'), 'changed', 'it is as it was');
		is($ann->call(PATCH => "/labels/$label->{id}", data => { %{ is_of($label) }, attributes => { text => 'x' } })->{status}, 404, 'nor is a label changed');
		$cluster->psql(qq{update shop.customer set region = 'north' where id = '$north->{id}'});
		is($ann->call(PATCH => "/labels/$label->{id}", data => { %{ is_of($label) }, attributes => { text => 'y' } })->{status}, 200, 'until it is back');
		is($ann->call(PATCH => "/labels/$label->{id}/relationships/guarded", json => { data => [] })->{status}, 204, 'and cut off from the other side');
		is($cluster->psql('select count(*) from app.guarded_tags'), 0, 'so it is');
		$ann->good(204, DELETE => "/guardeds/$mine->{id}");
		$ann->good(204, DELETE => "/labels/$label->{id}");
	};
}

# -------- between a look and a write --------

subtest 'a target that goes meanwhile' => sub {
	my $session = EntityApi::Test::Session->new($cluster);

	for my $table ('customer', 'product')
	{
		for my $end ('rollback', 'commit')
		{
			my $id = $cluster->psql("insert into shop.$table (name) values ('x') returning id");
			my $to = { type => "${table}s", id => $id };

			$session->must('begin');
			$session->must("delete from shop.$table where id = '$id'");
			my $client = send_request(POST => '/notes', { type => 'notes', attributes => { text => "$table $end" }, relationships => { customer => { data => is_of($north) }, $table => { data => $to } } });
			somebody_waits();
			$session->must($end);
			is(EntityApi::Test::Client::answer($client)->{status}, $end eq 'commit' ? 404 : 201, "$table: $end");
			$cluster->psql("delete from app.note where text = '$table $end'; delete from shop.$table where id = '$id'");
		}
	}

	# The role may only read products, and holds one as long as a request lasts
	$session->must('begin');
	my $id = $cluster->psql(q{insert into shop.product (name) values ('held') returning id});
	$session->must('lock table app.note in share mode');
	my $client = send_request(POST => '/notes', { type => 'notes', attributes => { text => 'held' }, relationships => { customer => { data => is_of($north) }, product => { data => { type => 'products', id => $id } } } });
	somebody_waits();
	my $other = $cluster->try_psql("set lock_timeout = 200; set role shop_app; delete from shop.product where id = '$id'");
	like($other->{err}, qr/lock timeout/, 'no deletion comes between');
	is($cluster->try_psql("set lock_timeout = 200; set role shop_app; update shop.product set name = 'other' where id = '$id'")->{status}, 0, 'other changes do');
	is($cluster->try_psql("select 1 from shop.product for key share", user => 'shop_web')->{err} =~ /permission denied/ ? 1 : 0, 1, 'by itself the role may not lock');
	$session->must('commit');
	is(EntityApi::Test::Client::answer($client)->{status}, 201, 'made');
	$cluster->psql("delete from app.note where text = 'held'");
};

# -------- what others gain --------

# Code of the application that a statement over both sides comes by: policies, in
# each form in which a function can stand in a statement.
$cluster->psql(<<'SQL');
set role shop_app;
set check_function_bodies = off;
create function shop.rise(place text) returns boolean language plpgsql as $$
declare
	attack text;
begin
	foreach attack in array array['select 1 from app.note', 'select 1 from entityapi.signing_key', 'select 1 from entityapi.account', 'set role entityapi_owner',
		'select entityapi.list_differences()', 'insert into app.note (text) values (''x'')', 'create temp table t (a int)', 'prepare p as select 1'] loop
		begin
			execute attack;
			raise log 'TOLD % % %', current_user, place, attack;
		exception when others then
			null;
		end;
	end loop;
	raise log 'TOLD % % ran', current_user, place;
	return true;
end $$;
create function shop.leak() returns table (id uuid, s text) language sql stable as $$ select c.id, c.text::text from app.note c $$;
create function shop.leak_key() returns table (s text) language sql stable as $$ select k::text from entityapi.signing_key k $$;
create function shop.leak_one() returns text language sql stable as $$ select max(text) from app.note $$;
create function shop.seen() returns table (s boolean) language plpgsql stable as $$ begin return query select shop.rise('rows'); end $$;
create view shop.v as select shop.rise('view') as ok;
create table shop.member (ok boolean default shop.rise('default'));
insert into shop.member values (true);
create function shop.is_member(shop.member) returns boolean language sql as $$ select shop.rise('member') $$;
create function shop.same(varchar, text) returns boolean language plpgsql as $$ begin return shop.rise('operator'); end $$;
create operator shop.=== (leftarg = varchar, rightarg = text, function = shop.same);
create function shop.good(text) returns boolean language plpgsql as $$ begin return shop.rise('domain'); end $$;
create domain shop.word as text check (shop.good(value));
create function shop.folded() returns boolean immutable language plpgsql as $$ begin return shop.rise('folded'); end $$;
grant select on shop.v, shop.member to shop_web;
alter table shop.customer enable row level security;
reset role;
SQL
# a function body is only checked where its owner may see the tables
$spec{Customer}{rowSecurity} = $true;

my $mixed = sub { return [ map { $ann->call(GET => $_)->{status} } '/notes?filter=customer.name==ann', '/customers?filter=notes.text==one', '/guardeds', '/notes?sort=customer.name&page[totals]=true' ] };
subtest 'code of the application' => sub {
	$cluster->psql('set role shop_app; create policy p on shop.customer using (true) with check (true)');
	is(try_apply()->{status}, 0, 'applied with row security');
	made(guardeds => { text => 'g' }, customer => is_of($north));
	is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'it is read');
	my %ran = (rise => "shop.rise('function')", rows => 'exists (select from shop.seen())', view => '(select ok from shop.v)', member => 'exists (select from shop.member m where shop.is_member(m))', operator => q{name operator(shop.===) 'x'::text},
		domain => "(name::text)::shop.word is not null", folded => 'shop.folded()');
	for my $form (sort keys %ran)
	{
		$cluster->psql("set role shop_app; alter policy p on shop.customer using ($ran{$form})");
		told();
		is_deeply($mixed->(), [ 200, 200, 200, 200 ], "$form: read");
		like(told(), qr/^shop_web \w+ ran$/, "$form: it ran, as the role, and gained nothing");
	}
	my %denied = (inlined => 'exists (select from shop.leak())', 'of keys' => 'exists (select from shop.leak_key())', scalar => 'shop.leak_one() is not null');
	for my $form (sort keys %denied)
	{
		$cluster->psql("set role shop_app; alter policy p on shop.customer using ($denied{$form})");
		is_deeply($mixed->(), [ 500, 500, 500, 500 ], "$form: refused");
		like(EntityApi::Test::slurp($cluster->log), qr/permission denied for schema (?:app|entityapi)/, 'for want of rights');
	}
	is($cluster->psql('set role entityapi_owner; select count(*) from app.note') > 0 ? 1 : 0, 1, 'who has the rights would see rows');
	$cluster->psql('set role shop_app; alter policy p on shop.customer using (true)');
	is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'mended');

	# a view of the same name, and words that are the same text
	$cluster->psql(q{set role shop_app; create function shop.text_of_ours() returns boolean language plpgsql as $$
		begin perform 1 from app.note t0 where t0.tenant_id is not null; return true; exception when insufficient_privilege then return true; end $$;
		alter policy p on shop.customer using (shop.text_of_ours())});
	is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'the same words gain nothing');
	$cluster->psql('set role shop_app; alter policy p on shop.customer using (true)');
};

# Members of entityapi_owner put code on made tables: none of it runs as the role
subtest 'code of deployers' => sub {
	$cluster->psql(<<~'SQL');
		create role deployer login;
		grant entityapi_owner to deployer;
		set role entityapi_owner;
		create function app.tell() returns void volatile language plpgsql as $$
		begin
			if current_user <> 'entityapi_owner' then
				raise log 'TOLD % deployer ran', current_user;
			end if;
		end $$;
		create function app.evil(text) returns text immutable language plpgsql as $$ begin perform app.tell(); return $1; end $$;
		create function app.evil_rows() returns boolean stable language plpgsql as $$ begin perform app.evil('x'); return true; end $$;
		reset role;
		SQL
	$cluster->psql(q{select app.evil('x')});
	is(told(), 'postgres deployer ran', 'it tells who else runs it');
	for my $change (
		[ q{create index evil on app.note ((app.evil('x')))}, 'drop index app.evil' ],
		[ q{create index evil on app.note (text) where app.evil('x') = 'x'}, 'drop index app.evil' ],
		[ q{create statistics app.evil on (app.evil('x') || text), text from app.note}, 'drop statistics app.evil' ],
		[ 'alter table app.note force row level security; create policy evil on app.note using (app.evil_rows())', 'drop policy evil on app.note; alter table app.note no force row level security' ],
		[ q{alter table app.note add constraint evil check (app.evil('x') = 'x')}, 'alter table app.note drop constraint evil' ])
	{
		$cluster->psql("set role entityapi_owner; $change->[0]");
		$mixed->();
		$cluster->psql('analyze app.note');
		$mixed->();
		unlike(told(), qr/shop_web/, "nothing ran as the role: $change->[0]");
		$cluster->psql("set role entityapi_owner; $change->[1]");
		is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'and all is read without it');
	}
	my $trigger = 'create trigger evil before insert or update or delete on app.note for each row execute function app.on_note()';
	$cluster->psql(q{set role entityapi_owner; create function app.on_note() returns trigger language plpgsql as $$ begin perform app.evil('x'); return case when tg_op = 'DELETE' then old else new end; end $$;} . $trigger);
	my $note = made(notes => { text => 'triggered' }, customer => is_of($north));
	$ann->good(200, PATCH => "/notes/$note->{id}", data => { %{ is_of($note) }, attributes => { text => 'x' } });
	$ann->good(204, DELETE => "/notes/$note->{id}");
	is(told(), '', 'nor does a trigger');
	$cluster->psql('set role entityapi_owner; drop trigger evil on app.note');
};

subtest 'plans that become invalid' => sub {
	for my $change ('analyze shop.customer', 'analyze app.note', 'set role shop_app; alter table shop.customer add more text', 'set role shop_app; alter table shop.customer drop more',
		'set role entityapi_owner; create index later on app.note (text)', 'drop index app.later', 'alter role shop_web set work_mem = 1024', 'create role another', 'grant another to shop_web',
		'revoke another from shop_web', 'set role shop_app; create index on shop.customer (region)', 'revoke usage on schema shop from public')
	{
		$cluster->psql($change);
		is_deeply($mixed->(), [ 200, 200, 200, 200 ], $change) for 1 .. 2;
	}
	$cluster->psql('set role shop_app; revoke select on shop.customer from shop_web');
	is_deeply($mixed->(), [ 500, 500, 500, 500 ], 'a right that is taken is missed');
	is($ann->call(GET => '/notes?fields[notes]=text')->{status}, 200, 'what is made alone is read');
	$cluster->psql('set role shop_app; grant select on shop.customer to shop_web');
	is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'and given back');
	$cluster->psql('alter role shop_web superuser');
	is_deeply($mixed->(), [ 500, 500, 500, 500 ], 'a superuser is none');
	$cluster->psql('alter role shop_web nosuperuser');
	is_deeply($mixed->(), [ 200, 200, 200, 200 ], 'until he is none');
};

subtest 'others' => sub {
	my $principal = $encoder->encode({ kind => 'USER', tenantId => $tenant, userId => $cluster->psql(q{select id from entityapi.account where username = 'ann'}), roles => ['Editor'] });
	my $plan = sub { return $cluster->try_psql("select * from entityapi.explain('GET', '/api/v1/notes?filter=customer.name==ann', '$principal')", user => $_[0]) };

	like($plan->('postgres')->{out}, qr/customer.*Scan|Scan.*customer/s, 'a superuser sees the plans');
	unlike($plan->('deployer')->{out}, qr/Scan/, 'a deployer does not');
	like($cluster->psql(q{select pg_get_expr(polqual, polrelid) from pg_policy where polrelid = 'app.guarded'::regclass}), qr/AND false/, 'a reader by SQL sees no rows that the application decides about');
	unlike($cluster->psql(q{select pg_get_expr(polqual, polrelid) from pg_policy where polrelid = 'app.note'::regclass}), qr/false/, 'but others');
};

is($cluster->psql(q{select count(*) from entityapi.list_differences() where kind = 'difference'}), 0, 'nothing has drifted');
$shim->stop;
done_testing;
