WITH i AS (
	INSERT INTO app.invoice (tenant_id, id, number, status, issued_at, due_on,
							 currency, total, note, customer_id, version,
							 created_at, updated_at)
	SELECT '@TENANT@', gen_random_uuid(), 'C' || @NUMBER@ || '-' || n, 'DRAFT',
		timestamptz '2024-05-01 UTC', date '2024-06-01', 'EUR', 12.5, 'A note',
		@ID@, 1, now(), now()
	FROM generate_series(1, 100) n
	RETURNING *)
SELECT json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'atomic:' || 'results', json_agg(json_build_object('data', @invoice.part@)))
FROM i;
