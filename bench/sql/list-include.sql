WITH page AS MATERIALIZED (
	SELECT * FROM app.invoice
	WHERE tenant_id = '@TENANT@' ORDER BY id LIMIT 20)
SELECT json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/invoices'),
	'data', (SELECT json_agg(@invoice.part@) FROM page i),
	'included', (
		SELECT json_agg(@customer.part@)
		FROM app.customer c
		WHERE c.tenant_id = '@TENANT@'
		AND c.id = ANY (ARRAY(SELECT customer_id FROM page))));
