-- The languages of the API, as tools for developers

CREATE FUNCTION entityapi.parse_rsql(filter text) RETURNS jsonb
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_parse_rsql';

COMMENT ON FUNCTION entityapi.parse_rsql(text) IS
	'How a filter is understood: its tree, or an error with the position';

REVOKE ALL ON FUNCTION entityapi.parse_rsql(text) FROM PUBLIC;
