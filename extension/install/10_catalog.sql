-- What is declared: revisions as they were applied, and the definitions
-- compiled from the last of them, which backends load

CREATE TABLE entityapi.revision (
	revision integer PRIMARY KEY,
	applied_at timestamptz NOT NULL,
	checksum text NOT NULL,
	extension_version text NOT NULL,
	documents json NOT NULL,
	statements text[] NOT NULL
);

COMMENT ON TABLE entityapi.revision IS
	'Manifests as applied, one row a change; the last is in force';

CREATE TABLE entityapi.entity (
	name text PRIMARY KEY,
	collection text NOT NULL UNIQUE,
	collection_lower text NOT NULL UNIQUE,
	type text NOT NULL UNIQUE,
	definition text NOT NULL,
	applied_at timestamptz
);

COMMENT ON TABLE entityapi.entity IS
	'Compiled declarations of entities, written by apply_manifest only';
COMMENT ON COLUMN entityapi.entity.applied_at IS
	'Since when the definition has been as it is; null: nobody knows';

CREATE TABLE entityapi.service (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	definition text NOT NULL
);

COMMENT ON TABLE entityapi.service IS
	'Compiled declarations of the service as a whole';

CREATE TABLE entityapi.application (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	role regrole NOT NULL,
	owner regrole
);

COMMENT ON TABLE entityapi.application IS
	'The role as which statements on tables of an application run, and the '
	'owner of these, as they were when it was applied';

CREATE TABLE entityapi.openapi_document (
	version integer PRIMARY KEY,
	made_for text NOT NULL,
	etag text NOT NULL,
	document text NOT NULL
);

/* read whole, and often: unpacking would take longer than reading more */
ALTER TABLE entityapi.openapi_document
	ALTER COLUMN document SET STORAGE EXTERNAL;

COMMENT ON TABLE entityapi.openapi_document IS
	'The description of each version, as made when manifests were last '
	'applied; made_for says what from';

SELECT pg_catalog.pg_extension_config_dump('entityapi.revision', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.entity', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.service', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.application', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.openapi_document', '');

-- Documents of json and text keep the order in which they declare fields,
-- those of jsonb have that of jsonb.  A literal without a type is text:
-- between json and jsonb alone PostgreSQL could not choose.
CREATE FUNCTION entityapi.apply_manifest(
		documents json,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_apply_manifest';

COMMENT ON FUNCTION entityapi.apply_manifest(json, boolean, text[]) IS
	'Make the documents the declared state; returns the statements it took';

CREATE FUNCTION entityapi.apply_manifest(
		documents text,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_apply_manifest';

COMMENT ON FUNCTION entityapi.apply_manifest(text, boolean, text[]) IS
	'Make the documents the declared state; returns the statements it took';

CREATE FUNCTION entityapi.apply_manifest(
		documents jsonb,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text,
		OUT deferred boolean,
		OUT lock text,
		OUT effect text,
		OUT rows bigint)
	RETURNS SETOF record
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET client_min_messages = 'warning'
	AS 'MODULE_PATHNAME', 'ea_sql_apply_manifest';

COMMENT ON FUNCTION entityapi.apply_manifest(jsonb, boolean, text[]) IS
	'Make the documents the declared state; returns the statements it took';

CREATE FUNCTION entityapi.export_manifest() RETURNS json
	LANGUAGE sql STABLE SECURITY DEFINER PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS $$
		SELECT coalesce((SELECT r.documents
						   FROM entityapi.revision r
						  ORDER BY r.revision DESC
						  LIMIT 1), '[]')
	$$;

COMMENT ON FUNCTION entityapi.export_manifest() IS
	'The documents in force; applying them changes nothing';

CREATE FUNCTION entityapi.openapi(version integer DEFAULT 1) RETURNS json
	LANGUAGE c STABLE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_openapi';

COMMENT ON FUNCTION entityapi.openapi(integer) IS
	'The OpenAPI 3.1 document of a version of the API; null when it is not '
	'declared';
