UPDATE app.customer c
SET city = 'City ' || @NUMBER@, credit_limit = 250.75, updated_at = now()
WHERE c.tenant_id = '@TENANT@' AND c.id = @ID@
RETURNING json_build_object(
	'jsonapi', json_build_object('version', '1.1'),
	'links', json_build_object('self', '/api/v1/customers/' || c.id),
	'data', @customer.part@);
