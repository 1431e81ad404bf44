-- What every other test relies on: the extension, and cheap password hashes.
SET client_min_messages = warning;
CREATE EXTENSION entityapi CASCADE;
DO $$
BEGIN
	EXECUTE format('ALTER DATABASE %I SET entityapi.bcrypt_cost = 10', current_database());
END
$$;
SELECT entityapi.version();
SELECT extname, CASE extname WHEN 'entityapi' THEN extversion END AS extversion
FROM pg_extension WHERE extname IN ('entityapi', 'pgcrypto') ORDER BY 1;
