-- Changes of 1.3 that cannot be derived from the parts in extension/install.

ALTER TABLE entityapi.refresh_token
	ADD COLUMN used_from bytea,
	ADD COLUMN successor_id text COLLATE "C";

-- It has one more column.
DROP FUNCTION IF EXISTS entityapi.list_differences();

-- Hashes of before are of what was typed.
ALTER TABLE entityapi.account
	ADD COLUMN password_nfc boolean NOT NULL DEFAULT false;

-- After the parts

-- Until now the locale of the database said what a name is without case.  The
-- key that a name gets may be another's of before: all that change go first,
-- to what no name can be.
DO $$
DECLARE
	twins text;
BEGIN
	SELECT pg_catalog.string_agg(t.names, E'\n' ORDER BY t.names COLLATE "C")
	INTO twins
	FROM (SELECT pg_catalog.string_agg(
				pg_catalog.format('"%s" (%s)', username, id), ' and '
				ORDER BY username COLLATE "C", id) AS names
		  FROM entityapi.account
		  WHERE kind = 'USER'
		  GROUP BY entityapi.fold_case(username)
		  HAVING pg_catalog.count(*) > 1) t;
	IF twins IS NOT NULL THEN
		RAISE EXCEPTION 'usernames that were two become one without case'
			USING ERRCODE = 'unique_violation', DETAIL = twins,
				  HINT = 'Give one of each another name, then update: '
						 'CREATE FUNCTION pg_temp.rename_account(id uuid, '
						 'name text) RETURNS void LANGUAGE c STRICT AS '
						 '''MODULE_PATHNAME'', ''ea_sql_rename_account''; '
						 'SELECT pg_temp.rename_account(id, name);';
	END IF;
	UPDATE entityapi.account SET username_key = E'\x01' || id::text
	WHERE kind = 'USER' AND username_key <> entityapi.fold_case(username);
	UPDATE entityapi.account SET username_key = entityapi.fold_case(username)
	WHERE username_key ~~ E'\x01%';

	-- a longer one is nobody's password
	INSERT INTO entityapi.common_password (password)
	SELECT DISTINCT entityapi.fold_case(password)
	FROM entityapi.common_password
	WHERE NOT built_in AND pg_catalog.octet_length(password) <= 512
	ON CONFLICT DO NOTHING;
	DELETE FROM entityapi.common_password
	WHERE NOT built_in AND pg_catalog.octet_length(password) <= 512
	  AND password <> entityapi.fold_case(password);
END
$$;
