# Random triggers of a deployer against all kinds of writes: no backend ends, and
# neither an answer nor the audit log tells of anything that is not in the tables.
# ENTITYAPI_TRIGGERS says how many (12), ENTITYAPI_SEED with which seed (1).

use strict;
use warnings;

use Test::More;

use EntityApi::Test;

my $checkout = EntityApi::Test::checkout();
my $rounds = $ENV{ENTITYAPI_TRIGGERS} || 12;
my $seed = $ENV{ENTITYAPI_SEED} || 1;
srand $seed;

my $cluster = EntityApi::Test->cluster;
$cluster->apply("$checkout/t/data/triggers");
my $shim = EntityApi::Test->shim($cluster, pool_size => 1);
my $tenant = $shim->tenant_here('acme')->{id};
my $ed = $shim->user($tenant, 'ed', ['Editor']);
my $json = EntityApi::Test::json();

$cluster->everywhere(<<'SQL');
create table public.seen (what text);
grant insert on public.seen to entityapi_owner;
create function public.act() returns trigger language plpgsql as $$
declare
	r record;
	what text := tg_argv[0];
	other record;
begin
	if tg_op = 'DELETE' then r := old; else r := new; end if;
	perform set_config('act.n', (coalesce(nullif(current_setting('act.n', true), ''), '0')::int + 1)::text, true);
	if current_setting('act.n')::int % tg_argv[1]::int <> tg_argv[2]::int then return r; end if;
	if what = 'skip' then
		return null;
	elsif what = 'raise' then
		raise exception 'a trigger does not like it';
	elsif what = 'elsewhere' then
		insert into public.seen values (tg_op);
	elsif tg_op = 'DELETE' then
		if what = 'again' then execute format('insert into %s select ($1).*', tg_relid::regclass) using old; end if;
	elsif tg_table_name = 'item_tags' then
		if what in ('id', 'another', 'value') then r.tag_id := (select id from app.tag where id <> r.tag_id and tenant_id = r.tenant_id order by id limit 1); end if;
		if what in ('undo', 'again') then execute format('delete from %s where item_id = $1 and tag_id = $2', tg_relid::regclass) using r.item_id, r.tag_id; end if;
	elsif what = 'value' then
		r.note := 'by a trigger';
	elsif what = 'id' then
		r.id := gen_random_uuid();
	elsif what = 'another' then
		execute format('select * from %s where id <> $1 and tenant_id = $2 order by id limit 1', tg_relid::regclass) into other using r.id, r.tenant_id;
		if other.id is not null then
			if tg_op = 'INSERT' then other.id := gen_random_uuid(); end if;
			return other;
		end if;
	elsif what = 'again' then
		execute format('update %s set note = $2 where id = $1 and note is distinct from $2', tg_relid::regclass) using r.id, 'afterwards';
	elsif what = 'undo' then
		execute format('delete from %s where id = $1', tg_relid::regclass) using r.id;
	end if;
	return r;
end $$;
SQL

my @tables = qw(item part doc leaf tag item_tags);
my %type_of = (item => 'items', part => 'parts', doc => 'docs', leaf => 'leaves', tag => 'tags');
my %table_of = reverse %type_of;
my %fields = (item => [qw(name note buddy)], part => [qw(name note item other)], doc => [qw(name note)], leaf => [qw(name note doc)], tag => [qw(name note)]);
my %target = (buddy => 'items', item => 'items', other => 'items', doc => 'docs');

# Everything of the tenant that is live, by table and id; links; and what the
# log got since.  One question, as each is a session.
my $last = '0';

sub column { my ($field) = @_; return $target{$field} ? "$field\_id" : $field }

my $question = 'select json_build_object(' . join(', ', (map {
		my $table = $_;
		my $live = $table =~ /^(?:doc|leaf)$/ ? ' and deleted_at is null' : '';
		"'$table', (select coalesce(json_object_agg(id, json_build_object(" . join(', ', map { "'$_', " . column($_) } @{ $fields{$table} })
		  . ")), '{}') from app.$table where tenant_id = '$tenant'$live)"
	} grep { $_ ne 'item_tags' } @tables),
	"'item_tags', (select coalesce(json_agg(item_id || ' ' || tag_id order by item_id, tag_id), '[]') from app.item_tags where tenant_id = '$tenant')",
	"'abroad', (select count(*) from app.item where tenant_id <> '$tenant')",
	"'seen', (select count(*) from public.seen)",
	"'log', (select coalesce(json_agg(json_build_object('id', id, 'action', action, 'outcome', outcome, 'type', target_type, 'target', target_id, 'changes', changes) order by id), '[]')"
	  . " from entityapi.audit where tenant_id = '$tenant' and (action like 'ENTITY%%' or action like 'RELATIONSHIP%%') and id::text > '%s')") . ')';

sub look
{
	my $seen = $json->decode($cluster->psql(sprintf $question, $last));

	$last = $seen->{log}[-1]{id} if @{ $seen->{log} };
	return $seen;
}

sub same { my ($x, $y) = map { delete local $_->{log}; JSON::PP->new->canonical->encode($_) } @_; return $x eq $y }
sub shown { my ($field, $value) = @_; return !defined $value ? undef : $target{$field} ? "$target{$field} $value" : $value }
sub told { my ($value) = @_; return ref $value eq 'HASH' ? "$value->{type} $value->{id}" : $value }
sub equal { my ($x, $y) = @_; return defined $x ? defined $y && $x eq $y : !defined $y }

my %count;

# What is wrong with an answer, by what is in the tables before and after
sub faults
{
	my ($request, $answer, $before, $after) = @_;
	my @done = grep { $_->{outcome} eq 'SUCCESS' } @{ $after->{log} };
	my $status = $answer->{status};
	my $code = $answer->{json}{errors}[0]{code} // '';
	my @faults;

	$count{"$status $code"}++;
	return "status $status $code" if $status == 503;
	if ($status >= 400)
	{
		push @faults, "refused, and the tables have changed" unless same($before, $after);
		push @faults, "refused, and recorded as done" if @done;
		push @faults, "status 500" if $status == 500 && $request->{what} ne 'raise';
		push @faults, "no such refusal: $status $code" if $status == 412;
		return @faults;
	}

	# records: of what is there, and of all of it, but for what triggers set in
	# rows of which another one's relationship is written
	my $beside = $request->{method} ne 'PATCH' || $request->{target} =~ /relationships/ ;
	my (%made, %gone, %changed);
	for my $record (@done)
	{
		my $table = $table_of{ $record->{type} } or next;
		my ($id, $changes) = ($record->{target}, $record->{changes} // {});
		my ($old, $new) = map { $_->{$table}{$id} } $before, $after;

		$made{"$table $id"} = 1 if $record->{action} =~ /CREATE|RESTORE/;
		$gone{"$table $id"} = 1 if $record->{action} =~ /DELETE/;
		push @faults, "a record of $record->{action} of what is not there" if $record->{action} =~ /CREATE|RESTORE|UPDATE/ && !$new;
		push @faults, "a record of $record->{action} of what is there" if $record->{action} =~ /DELETE/ && $new;
		for my $field (keys %$changes)
		{
			my ($from, $to) = @{ $changes->{$field} };

			if (ref $from eq 'ARRAY' || ref $to eq 'ARRAY')
			{
				my @now = $field eq 'tags' ? map { /^$id (.*)/ ? $1 : () } @{ $after->{item_tags} }
				  : $field eq 'items' ? map { /^(.*) $id$/ ? $1 : () } @{ $after->{item_tags} }
				  : $field eq 'leaves' ? grep { equal($after->{leaf}{$_}{doc}, $id) } keys %{ $after->{leaf} }
				  : grep { equal($after->{part}{$_}{ $field eq 'parts' ? 'item' : 'other' }, $id) } keys %{ $after->{part} };
				push @faults, "members of $field recorded as @$to, and are @now" if "@{[ sort @$to ]}" ne "@{[ sort @now ]}";
				next;
			}
			$changed{"$table $id $field"} = 1;

			# a row that is hidden, or comes back, has had its values told before
			next if $table =~ /^(?:doc|leaf)$/ && $record->{action} =~ /DELETE|RESTORE/;
			push @faults, "$field recorded as " . (told($to) // 'null') . ', and is ' . (shown($field, $new->{$field}) // 'null')
			  if $new && !equal(told($to), shown($field, $new->{$field}));
			push @faults, "$field recorded as before " . (told($from) // 'null') . ', and was ' . (shown($field, $old->{$field}) // 'null')
			  if $old && $record->{action} !~ /CREATE|RESTORE/ && !equal(told($from), shown($field, $old->{$field}));
		}
	}
	for my $table (keys %fields)
	{
		for my $id (keys %{ { %{ $before->{$table} }, %{ $after->{$table} } } })
		{
			my ($old, $new) = map { $_->{$table}{$id} } $before, $after;

			push @faults, "$table $id has come without a record" if !$old && !$made{"$table $id"};
			push @faults, "$table $id has gone without a record" if !$new && !$gone{"$table $id"};
			next unless $old && $new;
			push @faults, map { "$table $_ has changed without a record" }
			  grep { !equal($old->{$_}, $new->{$_}) && !$changed{"$table $id $_"} && !($_ eq 'note' && ($beside || $request->{target} !~ /$id/)) } @{ $fields{$table} };
		}
	}

	# what the answer shows
	my @shown = $answer->{json}{'atomic:results'} ? map { $_->{data} // () } @{ $answer->{json}{'atomic:results'} }
	  : ref $answer->{json}{data} eq 'HASH' ? $answer->{json}{data} : ();
	push @faults, 'results: ' . @{ $answer->{json}{'atomic:results'} }
	  if $answer->{json}{'atomic:results'} && @{ $answer->{json}{'atomic:results'} } != $request->{results};
	for my $resource (@shown)
	{
		my $table = $table_of{ $resource->{type} };
		my $row = $after->{$table}{ $resource->{id} };

		push @faults, "$resource->{type} $resource->{id} is answered, and not there" unless $row;
		next if !$row || $answer->{json}{'atomic:results'};
		push @faults, map { "$_ is answered as " . ($resource->{attributes}{$_} // 'null') . ', and is ' . ($row->{$_} // 'null') }
		  grep { !equal($resource->{attributes}{$_}, $row->{$_}) } grep { exists $resource->{attributes}{$_} } @{ $fields{$table} };
	}
	push @faults, 'what was deleted is there' if $request->{gone} && $after->{ $request->{gone}[0] }{ $request->{gone}[1] };
	push @faults, "the link $_ is not there" for grep { my $link = $_; !grep { $_ eq $link } @{ $after->{item_tags} } } @{ $request->{linked} // [] };
	push @faults, "the link $_ is there" for grep { my $link = $_; grep { $_ eq $link } @{ $after->{item_tags} } } @{ $request->{unlinked} // [] };
	return @faults;
}

my $n = 0;

sub data { my ($type, $attributes, $relationships, $id) = @_; return { type => $type, defined $id ? (id => $id) : (), attributes => $attributes, $relationships ? (relationships => { map { $_ => { data => $relationships->{$_} } } keys %$relationships }) : () } }
sub ref_to { my ($type, $id) = @_; return { type => $type, id => $id } }
sub ask { my ($method, $target, %more) = @_; return { method => $method, target => "/api/v1$target", %more } }
sub send_it
{
	my ($request) = @_;

	return $shim->http($request->{method}, $request->{target}, { token => $ed, headers => { 'If-Match' => '*',
			$request->{atomic} ? ('Content-Type' => 'application/vnd.api+json;ext="https://jsonapi.org/ext/atomic"') : () },
		$request->{atomic} ? (body => $json->encode({ 'atomic:operations' => $request->{atomic} })) : exists $request->{data} ? (json => { data => $request->{data} }) : () });
}

sub must { my ($method, $target, $data) = @_; my $answer = send_it(ask($method, $target, data => $data)); die "$method $target: $answer->{body}" if $answer->{status} >= 400; return $answer->{json}{data} }

# Requests of all kinds of writes, on rows that are made before the trigger
sub requests
{
	my @item = map { must(POST => '/items', data('items', { name => "i" . $n++, note => 'n' }))->{id} } 1 .. 3;
	my @tag = map { must(POST => '/tags', data('tags', { name => "t" . $n++ }, { items => [ ref_to(items => $item[0]) ] }))->{id} } 1 .. 2;
	my $new_tag = must(POST => '/tags', data('tags', { name => "t" . $n++ }))->{id};
	my @part = map { must(POST => '/parts', data('parts', { name => "p" . $n++, note => 'n' }, { item => ref_to(items => $item[$_]), other => ref_to(items => $item[1]) }))->{id} } 0, 1;
	my @doc = map { must(POST => '/docs', data('docs', { name => "d" . $n++, note => 'n' }))->{id} } 1 .. 3;
	my @leaf = map { must(POST => '/leaves', data('leaves', { name => "l" . $n++, note => 'n' }, { doc => ref_to(docs => $doc[$_]) }))->{id} } 0, 1;

	send_it({ method => 'DELETE', target => "/api/v1/docs/$doc[1]" });
	must(PATCH => "/items/$item[2]", data('items', {}, { buddy => ref_to(items => $item[1]) }, $item[2]));

	my $op = sub { my ($verb, %more) = @_; return { op => $verb, %more } };
	return (
		ask(POST => '/items', data => data('items', { name => 'new', note => 'x' }, { buddy => ref_to(items => $item[0]) })),
		ask(POST => '/items', data => data('items', { name => 'linked' }, { tags => [ map { ref_to(tags => $_) } @tag ], extras => [ ref_to(parts => $part[1]) ] })),
		ask(POST => '/parts', data => data('parts', { name => 'new' }, { item => ref_to(items => $item[0]) })),
		ask(POST => '/docs', data => data('docs', { name => 'new' })),
		ask(PATCH => "/items/$item[0]", data => data('items', { name => 'other', note => undef }, undef, $item[0])),
		ask(PATCH => "/items/$item[0]", data => data('items', { name => 'both' }, { tags => [ ref_to(tags => $tag[0]) ], buddy => ref_to(items => $item[1]) }, $item[0]), linked => ["$item[0] $tag[0]"], unlinked => ["$item[0] $tag[1]"]),
		ask(PATCH => "/docs/$doc[0]", data => data('docs', { name => 'other' }, undef, $doc[0])),
		ask(PATCH => "/parts/$part[0]/relationships/other", data => ref_to(items => $item[2])),
		ask(POST => "/items/$item[0]/relationships/tags", data => [ ref_to(tags => $new_tag) ], linked => ["$item[0] $new_tag"]),
		ask(PATCH => "/items/$item[1]/relationships/tags", data => [ map { ref_to(tags => $_) } @tag ], linked => [ map { "$item[1] $_" } @tag ]),
		ask(DELETE => "/items/$item[0]/relationships/tags", data => [ ref_to(tags => $tag[0]) ], unlinked => ["$item[0] $tag[0]"]),
		ask(POST => "/tags/$tag[1]/relationships/items", data => [ ref_to(items => $item[2]) ], linked => ["$item[2] $tag[1]"]),
		ask(POST => "/items/$item[2]/relationships/extras", data => [ ref_to(parts => $part[0]) ]),
		ask(PATCH => "/items/$item[1]/relationships/extras", data => []),
		ask(POST => "/docs/$doc[1]/restore"),
		ask(DELETE => "/docs/$doc[0]", gone => [ doc => $doc[0] ]),
		ask(DELETE => "/leaves/$leaf[1]", gone => [ leaf => $leaf[1] ]),
		ask(POST => '/operations', results => 6, atomic => [
			$op->(add => data => { %{ data('items', { name => 'a1' }) }, lid => 'a' }),
			$op->(add => data => { %{ data('items', { name => 'a2' }, { buddy => { type => 'items', lid => 'a' } }) }, lid => 'b' }),
			$op->(add => data => data('items', { name => 'a3' }, { buddy => { type => 'items', lid => 'b' } })),
			$op->(add => data => data('parts', { name => 'a4' }, { item => { type => 'items', lid => 'b' } })),
			$op->(update => ref => { type => 'items', lid => 'a', relationship => 'tags' }, data => [ ref_to(tags => $tag[0]) ]),
			$op->(remove => ref => { type => 'parts', id => $part[1] }) ]),
		ask(DELETE => "/tags/$tag[1]", gone => [ tag => $tag[1] ]),
		ask(DELETE => "/items/$item[1]", gone => [ item => $item[1] ]),
		ask(DELETE => "/items/$item[0]", gone => [ item => $item[0] ]));
}

sub backends { return $cluster->psql("select string_agg(pid::text, ' ' order by pid) from pg_stat_activity where usename = 'entityapi_shim'") }

my $backends = backends();
my ($failed, $asked) = (0, 0);

for my $round (1 .. $rounds)
{
	$cluster->set('entityapi.direct_scans', $round % 2 ? undef : 'off') if $rounds < 50 ? $round <= 2 || $round == $rounds / 2 : 1;
	my @requests = requests();
	my $table = $tables[ rand @tables ];
	my $timing = rand() < 0.7 ? 'before' : 'after';
	my @kinds = $timing eq 'before' ? qw(skip skip value value id id another raise elsewhere) : qw(again undo raise elsewhere);
	my $what = $kinds[ rand @kinds ];
	my @events = grep { rand() < 0.6 } qw(insert update delete);
	my $every = 1 + int rand 3;
	my $which = int rand $every;
	@events = ('insert') unless @events;
	my $trigger = "$timing " . join(' or ', @events) . " on app.$table: $what ($which of $every)";

	$cluster->on_rows("app.$table", "create trigger act $timing " . join(' or ', @events) . " on %s for each row execute function public.act('$what', '$every', '$which')");
	my $before = look();
	for my $request (@requests)
	{
		my $answer = send_it({ %$request });
		my $after = look();
		my @faults = faults({ %$request, what => $what }, $answer, $before, $after);

		$asked++;
		if (@faults)
		{
			$failed++;
			diag "round $round, $trigger\n$request->{method} $request->{target}: $answer->{status}\n", map({ "  $_\n" } @faults), substr($answer->{body} // '', 0, 300);
		}
		$before = $after;
	}
	$cluster->on_rows("app.$table", 'drop trigger act on %s');
}

is($failed, 0, "$rounds triggers, $asked requests");
note join ', ', map { "$_: $count{$_}" } sort keys %count;
ok($count{'409 NOT_WRITTEN'}, 'some were not written');
is(backends(), $backends, 'no backend has ended');
unlike(EntityApi::Test::slurp($cluster->log), qr/terminated by signal/, 'nor the cluster');

done_testing();
