-- Plain SQL as a reader: who asks, and what the policies on the tables call
--
-- The functions look things up as entityapi_owner, and any reader may call
-- them, so that none may go by the search path of its caller.
--
-- A role is mapped by name and oid: one that gets the name later is another.
-- Dumps have both, so in another cluster, where the role of that name has
-- another oid, it sees nothing until it is mapped again.

CREATE TABLE entityapi.mapped_role (
	role text PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	role_oid oid,
	node_oids jsonb
);

COMMENT ON COLUMN entityapi.mapped_role.node_oids IS
	'With Citus: the oids that it has, by the groups of nodes';

SELECT pg_catalog.pg_extension_config_dump('entityapi.mapped_role', '');

CREATE FUNCTION entityapi.map_role(role name, username text) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_map_role';

COMMENT ON FUNCTION entityapi.map_role(name, text) IS
	'Let a login that is a member of entityapi_reader see what this user '
	'sees; null ends it';

CREATE FUNCTION entityapi.set_principal(principal jsonb) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_set_principal';

COMMENT ON FUNCTION entityapi.set_principal(jsonb) IS
	'Let this session see what the principal sees, until the next call; for '
	'those it is granted to';

-- What policies call has its path pinned in C: declared, that would cost each
-- call more than the answer does that it remembers.
CREATE FUNCTION entityapi.current_tenant() RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_current_tenant';

CREATE FUNCTION entityapi.caller_reads(entity text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_reads';

CREATE FUNCTION entityapi.caller_bypasses(entity text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_bypasses';

-- The tenant whose rows of an entity the roles of the caller let him read
CREATE FUNCTION entityapi.readable_tenant(entity text) RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_readable_tenant';

-- Whether a request of the caller would show him the row with this id
CREATE FUNCTION entityapi.caller_sees(entity text, id uuid) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_sees';

CREATE FUNCTION entityapi.caller_boolean(property text, key text)
	RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_boolean';

CREATE FUNCTION entityapi.caller_number(property text, key text)
	RETURNS numeric
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_number';

CREATE FUNCTION entityapi.caller_text(property text, key text) RETURNS text
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_text';

CREATE FUNCTION entityapi.caller_uuid(property text, key text) RETURNS uuid
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_uuid';

CREATE FUNCTION entityapi.caller_date(property text, key text) RETURNS date
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_date';

CREATE FUNCTION entityapi.caller_datetime(property text, key text)
	RETURNS timestamptz
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_datetime';

CREATE FUNCTION entityapi.caller_texts(property text, key text) RETURNS text[]
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_texts';

CREATE FUNCTION entityapi.caller_known(property text, key text) RETURNS boolean
	LANGUAGE c STABLE PARALLEL RESTRICTED
	AS 'MODULE_PATHNAME', 'ea_sql_caller_known';
