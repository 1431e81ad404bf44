-- data.sql: what the comparison runs over, for the tenants :one and :two.
--
-- Each has 20 000 customers, one invoice for each, and two lines an invoice.
-- The identifiers are counted, so that every side can name a random one:
-- 01900000-0000-7<kind><tenant>-8000-<number>, kinds 1 to 4.

CREATE FUNCTION pg_temp.counted(kind int, tenant int, number int)
	RETURNS uuid
	LANGUAGE sql IMMUTABLE
	RETURN format('01900000-0000-7%s%s-8000-%s', kind,
				  lpad(tenant::text, 2, '0'),
				  lpad(to_hex(number), 12, '0'))::uuid;

CREATE TEMP TABLE tenants (n int, id uuid);
INSERT INTO tenants VALUES (1, :'one'), (2, :'two');

INSERT INTO app.customer (tenant_id, id, name, email, city, region,
						  credit_limit, active, customer_since,
						  created_at, updated_at)
SELECT t.id, pg_temp.counted(1, t.n, i), 'Customer ' || i,
	   format('customer%s@example.com', i), 'City ' || i % 100,
	   (ARRAY['NORTH', 'SOUTH', 'EAST', 'WEST'])[1 + i % 4],
	   100.5 + i, i % 10 <> 0, date '2020-01-01' + i % 1000, now(), now()
FROM tenants t, generate_series(1, 20000) i;

INSERT INTO app.invoice (tenant_id, id, number, status, issued_at, due_on,
						 currency, total, note, customer_id, version,
						 created_at, updated_at)
SELECT t.id, pg_temp.counted(2, t.n, i), 'B-' || i,
	   (ARRAY['DRAFT', 'SENT', 'PAID', 'OVERDUE'])[1 + i % 4],
	   timestamptz '2024-01-01 UTC' + i * interval '1 minute',
	   date '2024-01-01' + i % 365, 'EUR', i + 0.25, 'Note ' || i,
	   pg_temp.counted(1, t.n, 1 + i * 7919 % 20000), 1, now(), now()
FROM tenants t, generate_series(1, 20000) i;

INSERT INTO app.product (tenant_id, id, sku, name, unit_price,
						 in_stock, discontinued, created_at,
						 updated_at)
SELECT t.id, pg_temp.counted(4, t.n, 1), 'P-1', 'Product', 10.25, 100,
	   false, now(), now()
FROM tenants t;

INSERT INTO app.line_item (tenant_id, id, position, description, quantity,
						   unit_price, invoice_id, billable_product_id,
						   created_at, updated_at)
SELECT t.id, pg_temp.counted(3, t.n, 2 * i + position), position, 'A line',
	   1.5, 10.25, pg_temp.counted(2, t.n, i), pg_temp.counted(4, t.n, 1),
	   now(), now()
FROM tenants t, generate_series(1, 20000) i, generate_series(1, 2) position;

VACUUM ANALYZE;
CHECKPOINT;
