/*
 * The whole API, as entityapi_owner whoever calls: extension/trust/owner.h.
 */
CREATE FUNCTION entityapi.handle(method text, target text, headers jsonb,
								 body bytea, remote inet,
								 OUT status int, OUT headers jsonb,
								 OUT body text)
	RETURNS record
	LANGUAGE C VOLATILE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_handle';

/*
 * The same for the shim, as one message each way: extension/entry/message.h
 * has the form.
 */
CREATE FUNCTION entityapi.handle(message bytea) RETURNS bytea
	LANGUAGE C VOLATILE STRICT
	AS 'MODULE_PATHNAME', 'ea_sql_handle_message';

COMMENT ON FUNCTION entityapi.handle(bytea) IS
	'handle() for the shim: the same requests and answers, each as one '
	'message';

CREATE FUNCTION entityapi.housekeep(OUT deleted bigint, OUT more boolean)
	RETURNS record
	LANGUAGE C VOLATILE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_housekeep';

COMMENT ON FUNCTION entityapi.housekeep() IS
	'A step of what the service does when nobody asks, for the shim: deletes '
	'what is over; null if it failed, which the log tells of';

CREATE FUNCTION entityapi.version() RETURNS text
	LANGUAGE C IMMUTABLE PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_version';

/* Statements run for requests by this session since the last call. */
CREATE FUNCTION entityapi.statement_count() RETURNS int
	LANGUAGE C VOLATILE
	AS 'MODULE_PATHNAME', 'ea_sql_statement_count';

CREATE FUNCTION entityapi.explain(method text, target text, principal jsonb)
	RETURNS SETOF text
	LANGUAGE C VOLATILE STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_explain';

COMMENT ON FUNCTION entityapi.explain(text, text, jsonb) IS
	'The statements that a request of this principal runs, with their plans; '
	'nothing of it is kept';
