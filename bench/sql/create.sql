INSERT INTO app.invoice AS i (tenant_id, id, number, status, issued_at, due_on,
							  currency, total, note, customer_id, version,
							  created_at, updated_at)
VALUES ('@TENANT@', gen_random_uuid(), 'C' || @NUMBER@, 'DRAFT',
		timestamptz '2024-05-01 UTC', date '2024-06-01', 'EUR', 12.5, 'A note',
		@ID@, 1, now(), now())
RETURNING json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/invoices/' || i.id),
	'data', @invoice.part@);
