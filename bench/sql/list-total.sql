SELECT json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/invoices'),
	'data', json_agg(@fields.part@),
	'meta', json_build_object('pagination', json_build_object(
		'number', 1, 'size', 20, 'totalRecords', (
			SELECT count(*) FROM app.invoice
			WHERE tenant_id = '@TENANT@' AND status = 'PAID'))))
FROM (SELECT * FROM app.invoice
	  WHERE tenant_id = '@TENANT@' AND status = 'PAID'
	  ORDER BY issued_at DESC, id LIMIT 20) i;
