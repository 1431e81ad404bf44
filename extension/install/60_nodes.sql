-- What the nodes of a cluster ask of each other
--
-- A statement goes to the node whose rows it is about, or to all of them, and
-- on the way it can call a function there, in the transaction that the nodes
-- share.  None of these is immutable; but Citus sends no other ones along with
-- a change of rows, and with the anchor, which is of the rows, none of them is
-- called but where these are.

-- One row, on each node.
CREATE TABLE entityapi.everywhere (
	present boolean PRIMARY KEY CHECK (present)
);

INSERT INTO entityapi.everywhere VALUES (true);

COMMENT ON TABLE entityapi.everywhere IS
	'A row that each node of a cluster has, by which all are asked';

-- Have foreign keys of shards on this node checked later, or now.
CREATE FUNCTION entityapi.let_wait(anchor bigint, tenant uuid, tables text[],
								   keys text[], deferred boolean)
	RETURNS boolean
	LANGUAGE c IMMUTABLE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_let_wait';

-- Take a turn for the cluster, on the node that keeps what is the platform's.
CREATE FUNCTION entityapi.take_turn(anchor bigint, turn int, wait boolean)
	RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_turn';

-- Take a slot of a login, there too; returns how many others have.
CREATE FUNCTION entityapi.take_slots(anchor bigint, class int, name bigint,
									 n int)
	RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_slots';

-- Enter or leave the gate before them.
CREATE FUNCTION entityapi.pass_gate(anchor bigint, enter boolean) RETURNS int
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_pass_gate';

-- Wait a moment for the transactions of this node; an error if one goes on.
CREATE FUNCTION entityapi.let_end(anchor boolean) RETURNS boolean
	LANGUAGE c IMMUTABLE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_let_end';
