BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
SELECT set_config('search_path', 'app, public', true), set_config('role', 'postgres', true), set_config('request.jwt.claims', '{"role":"postgres","sub":"01900000-0000-7000-8000-000000000000","exp":1999999999}', true), set_config('request.method', 'GET', true), set_config('request.path', '/customer', true), set_config('request.headers', '{"host":"localhost","accept":"application/json","user-agent":"wrk"}', true), set_config('request.cookies', '{}', true);
WITH source AS (
	SELECT c.* FROM app.customer c
	WHERE c.tenant_id = '@TENANT@' AND c.id = @ID@)
SELECT NULL::bigint AS total, count(t) AS rows, coalesce(json_agg(t), '[]') AS body
FROM (SELECT * FROM source) t;
COMMIT;
