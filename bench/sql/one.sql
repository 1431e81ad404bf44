SELECT json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/customers/' || c.id),
	'data', @customer.part@)
FROM app.customer c
WHERE c.tenant_id = '@TENANT@' AND c.id = @ID@;
