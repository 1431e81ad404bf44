-- What t/engine/direct_scans.t compares, and the work that goes on meanwhile.

create table token (n serial primary key, name text, access text, session uuid, account uuid, tenant uuid);
create table pool (n serial primary key, item uuid, grp uuid, tenant uuid);
create table clock (started timestamptz);
insert into clock select now();

-- -------- what is asked --------

create function headers(who int) returns jsonb language sql stable as $$
	select jsonb_build_object('authorization', 'Bearer ' || access, 'x-request-id', 'model',
		'content-type', 'application/vnd.api+json') from token where n = who
$$;

create function any_of_pool(t uuid default null) returns pool language plpgsql volatile as $$
declare
	p pool;
begin
	select * into p from pool where t is null or tenant = t order by random() limit 1;
	return p;
end $$;

-- Most ask for what is their tenant's.
create function any_target(who int) returns text language plpgsql volatile as $$
declare
	p pool := any_of_pool(case when random() < 0.9 then (select tenant from token where n = who) end);
begin
	return case floor(random() * 12)::int
		when 0 then '/auth/me'
		when 1 then '/api/v1/items?page[size]=' || 1 + floor(random() * 5)
		when 2 then '/api/v1/items?page[size]=2&filter=rank==' || floor(random() * 50)
		when 3 then '/api/v1/items?page[size]=1&filter=state==OPEN'
		when 4 then '/api/v1/groups/' || p.grp || '/items?page[size]=3'
		when 5 then '/api/v1/groups/' || p.grp || '?include=items&fields[items]=name'
		when 6 then '/api/v1/items/' || p.item || '?include=group'
		when 7 then '/api/v1/items/' || p.item || '/group'
		when 8 then '/api/v1/items/' || p.item || '/relationships/labels'
		when 9 then '/api/v1/items?sort=-rank,name&page[size]=3&page[after]=start'
		else '/api/v1/items/' || p.item end;
end $$;

create function answer(switch text, method text, target text, head jsonb, body bytea) returns text language plpgsql stable as $$
declare
	a text;
begin
	perform set_config('entityapi.direct_scans', switch, true);
	select concat_ws(e'\n', h.status, h.headers, h.body) into a from entityapi.handle(method, target, head, body, null) h;
	return a;
end $$;

-- Both ways in one statement's snapshot: this function is stable, so nothing in
-- it takes another.  The other way round every second time, since the first
-- look leaves hints behind.
create function compare(target text, who int, turned boolean) returns text language plpgsql stable as $$
declare
	head jsonb := headers(who);
	a text := answer(case when turned then 'off' else 'on' end, 'GET', target, head, null);
	b text := answer(case when turned then 'on' else 'off' end, 'GET', target, head, null);
begin
	if a is distinct from b then
		raise exception 'DIFFERENT (%): % % by %', case when turned then 'off, on' else 'on, off' end, target, e'\n' || a || e'\n----\n' || b, who
			using errcode = 'ZZ001';
	end if;
	return left(a, 3);
end $$;

-- All pages by cursor, as the service follows them from either end, and the same
-- by one statement.
create function compare_walk(who int, t uuid, size int) returns text language plpgsql stable as $$
declare
	orders text[] := array[['rank,-name', 'rank, name desc'], ['name', 'name'], ['-rank', 'rank desc'], ['-name,rank', 'name desc, rank']];
	turn int := 1 + size % 4;
	back boolean := size % 8 >= 4;
	target text := '/api/v1/items?sort=' || orders[turn][1] || '&fields[items]=name&page[size]=' || size
		|| case when back then '&page[before]=end' else '&page[after]=start' end;
	ids uuid[];
	found uuid[] := '{}';
	wanted uuid[];
	page text;
	body jsonb;
	pages int := 0;
begin
	while target is not null loop
		page := answer(case when pages % 2 = 0 then 'on' else 'off' end, 'GET', target, headers(who), null);
		if page !~ '^200' then
			return left(page, 3);
		end if;
		body := (regexp_match(page, '(\{"(?:jsonapi|links|data|meta)".*)$'))[1]::jsonb;
		ids := coalesce((select array_agg((d->>'id')::uuid order by o) from jsonb_array_elements(body->'data') with ordinality x(d, o)), '{}');
		found := case when back then ids || found else found || ids end;
		target := body->'links'->>(case when back then 'prev' else 'next' end);
		pages := pages + 1;
	end loop;
	execute format('select coalesce(array_agg(id order by %s, id), ''{}'') from app.item where tenant_id = $1', orders[turn][2]) into wanted using t;
	if found <> wanted then
		raise exception 'DIFFERENT (cursors, % %): % ids, by a statement %', orders[turn][1], case when back then 'backwards' else 'forwards' end,
			cardinality(found), cardinality(wanted) using errcode = 'ZZ001';
	end if;
	return '200';
end $$;

-- By a scan of the table.  On a standby the executor takes an index that the
-- primary has made after the snapshot, too, and that has no entries for rows
-- which only this snapshot sees.
create function count_in_table(t uuid, r int) returns bigint language sql stable
set enable_indexscan = off set enable_indexonlyscan = off set enable_bitmapscan = off as $$
	select count(*) from app.item where tenant_id = t and rank = r
$$;

-- The count on an index, and what PostgreSQL says
create function compare_count(who int, t uuid, r int) returns text language plpgsql stable as $$
declare
	page text := answer('on', 'GET', '/api/v1/items?page[size]=1&filter=rank==' || r, headers(who), null);
	told bigint := (regexp_match(page, '"totalRecords":(\d+)'))[1];
	n bigint := case when pg_is_in_recovery() then count_in_table(t, r)
		else (select count(*) from app.item where tenant_id = t and rank = r) end;
begin
	if page ~ '^200' and told is distinct from n then
		raise exception 'DIFFERENT (count): % %', told, n using errcode = 'ZZ001';
	end if;
	return left(page, 3);
end $$;

-- A write, both ways, each undone.  The row is ours before, so that both meet
-- the same one.
create function try_write(switch text, method text, target text, head jsonb, body text) returns text language plpgsql volatile as $$
declare
	a text;
begin
	begin
		perform set_config('entityapi.direct_scans', switch, true);
		select concat_ws(e'\n', h.status, h.headers, h.body) into a
			from entityapi.handle(method, target, head, convert_to(body, 'UTF8'), null) h;
		raise exception 'undo' using errcode = 'ZZ002';
	exception when sqlstate 'ZZ002' then
		null;
	end;
	return a;
end $$;

create function compare_write(who int) returns text language plpgsql volatile as $$
declare
	p pool;
	head jsonb := headers(who);
	target text;
	method text;
	body text;
	a text;
	b text;
begin
	p := any_of_pool((select tenant from token where n = who));
	perform from app.item where id = p.item for update;
	target := '/api/v1/items/' || p.item;
	case floor(random() * 4)::int
		when 0 then method := 'DELETE';
		when 1 then method := 'PATCH'; target := target || '/relationships/group';
			body := format('{"data": {"type": "groups", "id": "%s"}}', p.grp);
		else method := 'PATCH';
			body := format('{"data": {"type": "items", "id": "%s", "attributes": {"note": "w", "rank": %s}}}', p.item, floor(random() * 50));
	end case;
	a := try_write('on', method, target, head, body);
	b := try_write('off', method, target, head, body);
	if a is distinct from b then
		raise exception 'DIFFERENT (write): % % %', method, target, e'\n' || a || e'\n----\n' || b using errcode = 'ZZ001';
	end if;
	return left(a, 3);
end $$;

-- Compare for some seconds and tell what was done, also on the way.  What the
-- database itself refuses, because others came between, is tried again.
create procedure compare_for(seconds float8, kind text, batch int) language plpgsql as $$
declare
	until timestamptz := clock_timestamp() + seconds * interval '1 s';
	told timestamptz := clock_timestamp();
	tenant uuid := (select t.tenant from token t where t.n = 1);
	tokens int := (select max(t.n) from token t);
	who int;
	n bigint := 0;
	again bigint := 0;
	good bigint := 0;
	status text;
begin
	perform set_config('entityapi.clock', (select started::text from clock), false);
	commit;
	loop
		begin
			for i in 1 .. batch loop
				who := 1 + greatest(0, floor(random() * 2 * tokens) - tokens);
				status := case
					when kind = 'write' then compare_write(1)
					when kind = 'count' then compare_count(1, tenant, floor(random() * 50)::int)
					when kind = 'walk' then compare_walk(1, tenant, 40 + floor(random() * 60)::int)
					else compare(any_target(who), who, random() < 0.5) end;
				n := n + 1;
				good := good + (status ~ '^2')::int;
			end loop;
		exception when serialization_failure or deadlock_detected or lock_not_available or query_canceled then
			again := again + 1;
		end;
		commit;
		if clock_timestamp() > least(until, told + interval '0.2 s') then
			raise notice 'COMPARED % good % again %', n, good, again;
			n := 0;
			good := 0;
			again := 0;
			told := clock_timestamp();
		end if;
		exit when clock_timestamp() > until;
	end loop;
end $$;

-- -------- what goes on meanwhile --------

create function insert_some(t uuid, many int) returns void language sql volatile as $$
	insert into app.item (tenant_id, id, name, state, rank, note, created_at, updated_at)
	select t, gen_random_uuid(), 'w' || i, (array['NEW', 'OPEN', 'DONE', null])[1 + i % 4], i % 50, repeat('x', i % 200), now(), now()
	from generate_series(1, many) i
$$;

-- Ids that are known come and go.
create function put_back(p pool) returns void language sql volatile as $$
	insert into app.item (tenant_id, id, name, state, rank, group_id, created_at, updated_at)
	select p.tenant, p.item, 'again', 'OPEN', p.n % 50, g.id, now(), now()
	from (select 1) x left join app.group g on g.id = p.grp and p.n % 3 > 0
	on conflict do nothing
$$;

create procedure write_for(seconds float8) language plpgsql as $$
declare
	until timestamptz := clock_timestamp() + seconds * interval '1 s';
	p pool;
	r int;
begin
	while clock_timestamp() < until loop
		p := any_of_pool();
		r := floor(random() * 50);
		begin
			case floor(random() * 14)::int
				when 0 then perform insert_some(p.tenant, 1 + floor(random() * 60)::int);
				when 1 then update app.item set note = 'hot' where id = p.item;
				when 2 then update app.item set note = 'hot', hidden = 'h' where tenant_id = p.tenant and rank = r and id in (select item from pool);
				when 3 then update app.item set rank = floor(random() * 50) where id = p.item;
				when 4 then update app.item set state = 'OPEN', rank = r where tenant_id = p.tenant and rank = (r + 1) % 50 and name < 'w3';
				when 5 then delete from app.item where id = p.item; 
				when 6 then perform put_back(p);
				when 7 then delete from app.item where tenant_id = p.tenant and rank = r and random() < 0.7;
				when 8 then
					update app.item set rank = r where tenant_id = p.tenant and rank < 5;
					raise exception 'undo' using errcode = 'ZZ002';
				when 9 then
					perform insert_some(p.tenant, 200);
					raise exception 'undo' using errcode = 'ZZ002';
				when 10 then
					begin
						delete from app.item where id = p.item;
						begin
							perform put_back(p);
							update app.item set note = 'kept', rank = r where id = p.item;
						exception when others then null;
						end;
						if random() < 0.5 then
							raise exception 'undo' using errcode = 'ZZ002';
						end if;
					exception when sqlstate 'ZZ002' then
						update app.item set note = 'sub' where id = p.item;
					end;
				when 11 then
					delete from app.item where id = p.item;
					perform put_back(p);
				when 12 then update app.group set title = 't' || r where id = p.grp;
				else perform from app.item where id = p.item for key share; perform pg_sleep(0.002);
			end case;
		exception when sqlstate 'ZZ002' or serialization_failure or deadlock_detected or lock_not_available or foreign_key_violation then
			null;
		end;
		commit;
	end loop;
end $$;

-- Sessions, accounts, tenants and who administers them
create procedure sessions_for(seconds float8) language plpgsql as $$
declare
	until timestamptz := clock_timestamp() + seconds * interval '1 s';
	k token;
	s entityapi.session;
begin
	while clock_timestamp() < until loop
		-- that of the first one stays, so that something is answered
		select * into k from token where n > 1 order by random() limit 1;
		begin
			case floor(random() * 13)::int
				when 0 then update entityapi.session set expires_at = expires_at + interval '1 s' where id = k.session;
				when 1 then update entityapi.session set revoked_at = case when revoked_at is null and random() < 0.3 then now() end where id = k.session;
				when 2 then
					delete from entityapi.session where id = k.session returning * into s;
					if found then
						insert into entityapi.session values (s.*);
					end if;
				when 3 then
					delete from entityapi.session where id = k.session;
					perform pg_sleep(0.002);
					raise exception 'undo' using errcode = 'ZZ002';
				when 4, 5 then update entityapi.account set profile = jsonb_build_object('n', random(), 'x', repeat('y', floor(random() * 3000)::int)) where id = k.account;
				when 6 then update entityapi.account set username = 'u' || random(), username_key = 'u' || random() where id = k.account;
				when 7 then update entityapi.account set status = case when status = 'ACTIVE' and random() < 0.3 then 'DISABLED' else 'ACTIVE' end where id = k.account;
				when 8 then update entityapi.account set roles = array[(array['Editor', 'Reader'])[1 + floor(random() * 2)::int]] where id = k.account;
				when 9 then
					update entityapi.tenant set name = 'n' || random() where id = (select tenant_id from entityapi.account where id = k.account);
				when 10 then
					insert into entityapi.tenant_admin (tenant_id, account_id) select tenant_id, id from entityapi.account where id = k.account
						on conflict do nothing;
				when 11 then delete from entityapi.tenant_admin where account_id = k.account;
				else
					begin
						update entityapi.account set status = 'DISABLED' where id = k.account;
						update entityapi.session set revoked_at = now() where id = k.session;
						raise exception 'undo' using errcode = 'ZZ002';
					exception when sqlstate 'ZZ002' then
						update entityapi.account set email = 'e' || random() where id = k.account;
					end;
			end case;
		exception when sqlstate 'ZZ002' or serialization_failure or deadlock_detected or lock_not_available then
			null;
		end;
		commit;
		perform pg_sleep(0.001);
	end loop;
end $$;

-- So that a table does not grow without an end, and its last pages are free
create procedure thin_out() language plpgsql as $$
begin
	if (select count(*) from app.item) > 6000 then
		delete from app.item where ctid >= ('(' || pg_relation_size('app.item') / 8192 / 3 || ',1)')::tid;
	end if;
end $$;
