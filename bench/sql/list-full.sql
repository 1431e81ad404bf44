SELECT json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/invoices'),
	'data', json_agg(@invoice.part@))
FROM (SELECT * FROM app.invoice
	  WHERE tenant_id = '@TENANT@' ORDER BY id LIMIT 20) i;
