/*
 * The operators of filters: a row says all about one.
 *
 * There is no guard: a file that makes a list of operators defines
 * EA_OPERATOR(id, ...) and includes this.  A row has a part for each of the
 * macros below, in this order; a row that lacks one does not compile.
 *
 *	EA_OPERATOR_NAME(name, other, title)
 *								as it is shown; another spelling, or NULL; in
 *								words, for OpenAPI
 *	EA_OPERATOR_VALUES(needs, takes)
 *								the EA_CAN_* of types that have it, and what
 *								stands on its right
 *	EA_OPERATOR_SQL(before, between, after)
 *								the column, what is between, the parameter
 *	EA_OPERATOR_MEMBER(before, between, after)
 *								the same where the column is an array, and a
 *								member of it is asked for; NULL: that cannot be
 *
 * =isnull= has no SQL: what it asks depends on where its path leads.
 */
EA_OPERATOR(EQ,
			EA_OPERATOR_NAME("==", NULL, "equal"),
			EA_OPERATOR_VALUES(EA_CAN_EQUAL, EA_OF_ONE),
			EA_OPERATOR_SQL("", " = ", ""),
			EA_OPERATOR_MEMBER("", " @> ARRAY[", "]"))

EA_OPERATOR(NE,
			EA_OPERATOR_NAME("!=", NULL, "not equal"),
			EA_OPERATOR_VALUES(EA_CAN_EQUAL, EA_OF_ONE),
			EA_OPERATOR_SQL("", " <> ", ""),
			EA_OPERATOR_MEMBER("NOT ", " @> ARRAY[", "]"))

EA_OPERATOR(GT,
			EA_OPERATOR_NAME("=gt=", ">", "greater"),
			EA_OPERATOR_VALUES(EA_CAN_ORDER, EA_OF_ONE),
			EA_OPERATOR_SQL("", " > ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(GE,
			EA_OPERATOR_NAME("=ge=", ">=", "greater or equal"),
			EA_OPERATOR_VALUES(EA_CAN_ORDER, EA_OF_ONE),
			EA_OPERATOR_SQL("", " >= ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(LT,
			EA_OPERATOR_NAME("=lt=", "<", "less"),
			EA_OPERATOR_VALUES(EA_CAN_ORDER, EA_OF_ONE),
			EA_OPERATOR_SQL("", " < ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(LE,
			EA_OPERATOR_NAME("=le=", "<=", "less or equal"),
			EA_OPERATOR_VALUES(EA_CAN_ORDER, EA_OF_ONE),
			EA_OPERATOR_SQL("", " <= ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(IN,
			EA_OPERATOR_NAME("=in=", NULL, "one of a list"),
			EA_OPERATOR_VALUES(EA_CAN_EQUAL, EA_OF_LIST),
			EA_OPERATOR_SQL("", " = ANY (", ")"),
			EA_OPERATOR_MEMBER("", " && ", ""))

EA_OPERATOR(OUT,
			EA_OPERATOR_NAME("=out=", NULL, "none of a list"),
			EA_OPERATOR_VALUES(EA_CAN_EQUAL, EA_OF_LIST),
			EA_OPERATOR_SQL("", " <> ALL (", ")"),
			EA_OPERATOR_MEMBER("NOT ", " && ", ""))

EA_OPERATOR(LIKE,
			EA_OPERATOR_NAME("=like=", NULL, "LIKE of SQL"),
			EA_OPERATOR_VALUES(EA_CAN_MATCH, EA_OF_PATTERN),
			EA_OPERATOR_SQL("", " LIKE ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(ILIKE,
			EA_OPERATOR_NAME("=ilike=", NULL, "LIKE without case"),
			EA_OPERATOR_VALUES(EA_CAN_MATCH, EA_OF_PATTERN),
			EA_OPERATOR_SQL("", " ILIKE ", ""),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))

EA_OPERATOR(ISNULL,
			EA_OPERATOR_NAME("=isnull=", NULL, "true: without a value"),
			EA_OPERATOR_VALUES(0, EA_OF_TRUTH),
			EA_OPERATOR_SQL(NULL, NULL, NULL),
			EA_OPERATOR_MEMBER(NULL, NULL, NULL))
