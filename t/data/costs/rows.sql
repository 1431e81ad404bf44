-- :n invoices and what belongs to them, of the tenant :'tenant', in the
-- tables of examples/billing.  Some are far more than others: customer 1 has
-- 800 invoices, tag 1 is on every fifth, every 50th note is long.

set session_replication_role = replica;

create function pg_temp.id(kind int, n bigint) returns uuid immutable language sql as
$$ select ('01900000-0000-7' || lpad(kind::text, 3, '0') || '-8000-' || lpad(to_hex(n), 12, '0'))::uuid $$;

insert into app.country (id, code, name, created_at, updated_at)
select pg_temp.id(1, i), chr(65 + i / 26) || chr(65 + i % 26), 'Country ' || i, now(), now()
from generate_series(0, 199) i on conflict do nothing;

insert into app.customer (tenant_id, id, name, email, city, region, active, customer_since, country_id, created_at, updated_at)
select :'tenant', pg_temp.id(2, i), 'Customer ' || md5(i::text), 'c' || i || '@example.com', 'City ' || i % 500,
	(array['NORTH', 'SOUTH', 'EAST', 'WEST'])[1 + i % 4], i % 7 > 0, date '2020-01-01' + i % 2000,
	(select id from app.country order by code offset i % 100 limit 1), now(), now()
from generate_series(1, :n / 10) i;

insert into app.invoice (tenant_id, id, number, status, issued_at, due_on, currency, total, note, customer_id, version, created_at, updated_at)
select :'tenant', pg_temp.id(3, i), 'big-' || i, (array['DRAFT', 'SENT', 'PAID', 'OVERDUE', 'VOID'])[1 + i % 5],
	case when i % 5 > 0 then timestamptz '2024-01-01' + i * interval '7 minutes' end, date '2024-01-01' + i % 700,
	'EUR', i % 9973 + 0.5, case when i % 50 = 0 then repeat('a note ' || i || ' ', 200) else 'note ' || md5(i::text) end,
	pg_temp.id(2, case when i <= 800 then 1 else 2 + i % (:n / 10 - 1) end), 0, now(), now()
from generate_series(1, :n) i;

insert into app.product (tenant_id, id, sku, name, unit_price, in_stock, discontinued, created_at, updated_at)
select :'tenant', pg_temp.id(4, i), 'big-' || i, 'Product ' || i, i, i % 100, i % 9 = 0, now(), now()
from generate_series(1, 1000) i;

insert into app.service_package (tenant_id, id, code, name, monthly_fee, created_at, updated_at)
select :'tenant', pg_temp.id(5, i), 'big-' || i, 'Package ' || i, i, now(), now()
from generate_series(1, 200) i;

insert into app.line_item (tenant_id, id, position, description, quantity, unit_price, invoice_id, billable_product_id, billable_service_package_id, created_at, updated_at)
select :'tenant', pg_temp.id(6, i), 1 + i % 3, 'Line ' || md5(i::text), i % 10, i % 100,
	pg_temp.id(3, case when i <= 3000 then 1 else 1 + i % :n end),
	case when i % 3 > 0 then pg_temp.id(4, 1 + i % 1000) end, case when i % 3 = 0 then pg_temp.id(5, 1 + i % 200) end, now(), now()
from generate_series(1, :n) i;

insert into app.payment (tenant_id, id, amount, method, paid_on, reference, invoice_id, created_at, updated_at)
select :'tenant', pg_temp.id(7, i), 1 + i % 500, 'CARD', date '2024-01-01' + i % 700, 'ref ' || i, pg_temp.id(3, 1 + i * 7 % :n), now(), now()
from generate_series(1, :n / 2) i;

insert into app.tag (tenant_id, id, name, colour, created_at, updated_at)
select :'tenant', pg_temp.id(8, i), 'big-' || i, '#00ff00', now(), now()
from generate_series(1, 100) i;

insert into app.invoice_tags (tenant_id, invoice_id, tag_id)
select distinct :'tenant'::uuid, pg_temp.id(3, i), pg_temp.id(8, t)
from generate_series(1, :n) i,
	lateral (values (case when i % 5 = 0 then 1 else 2 + i % 99 end), (2 + i * 31 % 99)) tags (t);

reset session_replication_role;
analyze;
