/*
 * The attribute types: a row says all about one.
 *
 * There is no guard: a file that lists the types defines EA_TYPE(id, ...) and
 * includes this.  A row has a part for each of the macros below, in any order;
 * what is left out of a part, or a whole part, does not compile.
 *
 *	EA_TYPE_NAME(name)			as manifests spell it
 *	EA_TYPE_COLUMN(sql, oid, modifier, size, scale)
 *								PostgreSQL's type of a column, without
 *								modifier, schema-qualified; its OID; which
 *								modifier columns have, and what it is unless
 *								the field says so
 *	EA_TYPE_VALUE(form, oid, array_oid)
 *								how a Datum is to be taken, and the types of
 *								parameters for one and for a list
 *	EA_TYPE_QUERY(can)			EA_CAN_*
 *	EA_TYPE_MANIFEST(keys)		EA_KEYS_*
 *	EA_TYPE_DOCUMENT(kinds, read, write, write_text)
 *								JSON that is taken, and the functions;
 *								write_text: as a string, for clients whose
 *								numbers are doubles, NULL: there is no need
 *	EA_TYPE_SCHEMA(type, format, pattern)
 *								in OpenAPI; the pattern is that of values that
 *								may be sent as strings, too
 *	EA_TYPE_CONVERSION(digits, characters)
 *								before the point, and of values as text, where
 *								no modifier says so
 *	EA_TYPE_POLICY(type)		as which policies take a value
 */
EA_TYPE(STRING,
		EA_TYPE_NAME("string"),
		EA_TYPE_COLUMN("pg_catalog.varchar", VARCHAROID,
					   EA_MODIFIER_LENGTH, 255, 0),
		EA_TYPE_VALUE(EA_FORM_TEXT, TEXTOID, TEXTARRAYOID),
		EA_TYPE_QUERY(CAN_ALL | EA_CAN_MATCH),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_TEXT),
		EA_TYPE_DOCUMENT(JSON(STRING), read_text, write_text, NULL),
		EA_TYPE_SCHEMA("string", NULL, NULL),
		EA_TYPE_CONVERSION(0, EA_CHARACTERS_ANY),
		EA_TYPE_POLICY(EA_POLICY_STRING))

EA_TYPE(TEXT,
		EA_TYPE_NAME("text"),
		EA_TYPE_COLUMN("pg_catalog.text", TEXTOID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_TEXT, TEXTOID, TEXTARRAYOID),
		EA_TYPE_QUERY(CAN_ALL | EA_CAN_MATCH),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_TEXT),
		EA_TYPE_DOCUMENT(JSON(STRING), read_text, write_text, NULL),
		EA_TYPE_SCHEMA("string", NULL, NULL),
		EA_TYPE_CONVERSION(0, EA_CHARACTERS_ANY),
		EA_TYPE_POLICY(EA_POLICY_STRING))

EA_TYPE(INTEGER,
		EA_TYPE_NAME("integer"),
		EA_TYPE_COLUMN("pg_catalog.int4", INT4OID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_INT32, INT4OID, INT4ARRAYOID),
		EA_TYPE_QUERY(CAN_ALL),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_LIMITS),
		EA_TYPE_DOCUMENT(JSON(NUMBER), read_integer, write_integer, NULL),
		EA_TYPE_SCHEMA("integer", "int32", NULL),
		EA_TYPE_CONVERSION(10, 11),
		EA_TYPE_POLICY(EA_POLICY_NUMBER))

EA_TYPE(LONG,
		EA_TYPE_NAME("long"),
		EA_TYPE_COLUMN("pg_catalog.int8", INT8OID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_INT64, INT8OID, INT8ARRAYOID),
		EA_TYPE_QUERY(CAN_ALL),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_LIMITS),
		EA_TYPE_DOCUMENT(JSON(NUMBER), read_long, write_long,
						 write_long_text),
		EA_TYPE_SCHEMA("integer", "int64", "^-?[0-9]+$"),
		EA_TYPE_CONVERSION(19, 20),
		EA_TYPE_POLICY(EA_POLICY_NUMBER))

EA_TYPE(DECIMAL,
		EA_TYPE_NAME("decimal"),
		EA_TYPE_COLUMN("pg_catalog.numeric", NUMERICOID,
					   EA_MODIFIER_DIGITS, 19, 4),
		EA_TYPE_VALUE(EA_FORM_NUMERIC, NUMERICOID, NUMERICARRAYOID),
		EA_TYPE_QUERY(CAN_ALL),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_LIMITS | EA_KEYS_DIGITS),
		EA_TYPE_DOCUMENT(JSON(NUMBER) | JSON(STRING), read_decimal,
						 write_decimal, write_decimal_text),
		EA_TYPE_SCHEMA("number", NULL,
					   "^-?[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]+)?$"),
		EA_TYPE_CONVERSION(0, 0),
		EA_TYPE_POLICY(EA_POLICY_NUMBER))

EA_TYPE(BOOLEAN,
		EA_TYPE_NAME("boolean"),
		EA_TYPE_COLUMN("pg_catalog.bool", BOOLOID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_BOOL, BOOLOID, BOOLARRAYOID),
		EA_TYPE_QUERY(EA_CAN_EQUAL | EA_CAN_SORT),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX),
		EA_TYPE_DOCUMENT(JSON(BOOL), read_boolean, write_boolean, NULL),
		EA_TYPE_SCHEMA("boolean", NULL, NULL),
		EA_TYPE_CONVERSION(0, 5),
		EA_TYPE_POLICY(EA_POLICY_BOOLEAN))

EA_TYPE(DATE,
		EA_TYPE_NAME("date"),
		EA_TYPE_COLUMN("pg_catalog.date", DATEOID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_DATE, DATEOID, DATEARRAYOID),
		EA_TYPE_QUERY(CAN_ALL),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_LIMITS),
		EA_TYPE_DOCUMENT(JSON(STRING), ea_times_read_date,
						 ea_times_write_date, NULL),
		EA_TYPE_SCHEMA("string", "date", NULL),
		EA_TYPE_CONVERSION(0, EA_CHARACTERS_NONE),
		EA_TYPE_POLICY(EA_POLICY_DATE))

EA_TYPE(DATETIME,
		EA_TYPE_NAME("datetime"),
		EA_TYPE_COLUMN("pg_catalog.timestamptz", TIMESTAMPTZOID,
					   EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_TIMESTAMP, TIMESTAMPTZOID,
					  TIMESTAMPTZARRAYOID),
		EA_TYPE_QUERY(CAN_ALL),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX | EA_KEYS_LIMITS | EA_KEYS_ZONE),
		EA_TYPE_DOCUMENT(JSON(STRING), ea_times_read_datetime,
						 ea_times_write_datetime, NULL),
		EA_TYPE_SCHEMA("string", "date-time", NULL),
		EA_TYPE_CONVERSION(0, EA_CHARACTERS_NONE),
		EA_TYPE_POLICY(EA_POLICY_DATETIME))

EA_TYPE(UUID,
		EA_TYPE_NAME("uuid"),
		EA_TYPE_COLUMN("pg_catalog.uuid", UUIDOID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_UUID, UUIDOID, UUIDARRAYOID),
		EA_TYPE_QUERY(EA_CAN_EQUAL | EA_CAN_SORT),
		EA_TYPE_MANIFEST(EA_KEYS_INDEX),
		EA_TYPE_DOCUMENT(JSON(STRING), read_uuid, write_uuid, NULL),
		EA_TYPE_SCHEMA("string", "uuid", NULL),
		EA_TYPE_CONVERSION(0, 36),
		EA_TYPE_POLICY(EA_POLICY_UUID))

EA_TYPE(JSON,
		EA_TYPE_NAME("json"),
		EA_TYPE_COLUMN("pg_catalog.jsonb", JSONBOID, EA_MODIFIER_NONE, 0, 0),
		EA_TYPE_VALUE(EA_FORM_JSONB, JSONBOID, JSONBARRAYOID),
		EA_TYPE_QUERY(0),
		EA_TYPE_MANIFEST(0),
		EA_TYPE_DOCUMENT(JSON_ALL, read_json, ea_host_jsonb_write, NULL),
		EA_TYPE_SCHEMA(NULL, NULL, NULL),
		EA_TYPE_CONVERSION(0, EA_CHARACTERS_NONE),
		EA_TYPE_POLICY(EA_POLICY_JSON))
