-- The languages of the API, as tools for developers

CREATE FUNCTION entityapi.parse_rsql(filter text) RETURNS jsonb
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_parse_rsql';

COMMENT ON FUNCTION entityapi.parse_rsql(text) IS
	'How a filter is understood: its tree, or an error with the position';

REVOKE ALL ON FUNCTION entityapi.parse_rsql(text) FROM PUBLIC;

CREATE FUNCTION entityapi.check_expression(expression text) RETURNS jsonb
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_check_expression';

COMMENT ON FUNCTION entityapi.check_expression(text) IS
	'How a policy expression is understood: its tree, or an error with the '
	'position';
