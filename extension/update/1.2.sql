-- Changes of 1.3 that cannot be derived from the parts in extension/install.

ALTER TABLE entityapi.refresh_token
	ADD COLUMN used_from bytea,
	ADD COLUMN successor_id text COLLATE "C";

-- It has one more column.
DROP FUNCTION IF EXISTS entityapi.list_differences();
