-- The audit log: who did what, and what was refused
--
-- One partition a month, by UTC.  They are made at run time, a while ahead,
-- by whoever writes a record, so that they are ordinary tables: a dump holds
-- them as they are, and restoring finds none of them in its way.  For the
-- same reason the parent has no index of its own; all partitions are made
-- like audit_default, which also takes the records for which no partition
-- could be made in time.

CREATE TABLE entityapi.audit (
	id uuid NOT NULL,
	at timestamptz NOT NULL,
	tenant_id uuid,
	actor_id text,
	actor_kind text,
	actor_username text,
	actor_key_id text,
	action text NOT NULL,
	outcome text NOT NULL,
	target_type text,
	target_id text,
	changes json,
	request_id text,
	ip inet,
	detail text,
	version bigint,
	revision integer
) PARTITION BY RANGE (at);

COMMENT ON TABLE entityapi.audit IS
	'Records of writes, events and refusals; append-only';
COMMENT ON COLUMN entityapi.audit.version IS
	'That the target had afterwards, if it is locked optimistically';
COMMENT ON COLUMN entityapi.audit.revision IS
	'Of the manifests: under its names the record was written';

CREATE TABLE entityapi.audit_default PARTITION OF entityapi.audit DEFAULT;

ALTER TABLE entityapi.audit_default ADD PRIMARY KEY (at, id);
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id);
CREATE INDEX ON entityapi.audit_default (target_id, at, id);
CREATE INDEX ON entityapi.audit_default (actor_id, at, id);
CREATE INDEX ON entityapi.audit_default (action, at, id)
	WHERE action !~~ 'ENTITY%ATE';
-- it is looked for alone, and never in an order
CREATE INDEX ON entityapi.audit_default (request_id text_pattern_ops);
CREATE INDEX ON entityapi.audit_default (at, id) WHERE outcome <> 'SUCCESS';
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id)
	WHERE outcome <> 'SUCCESS';

CREATE FUNCTION entityapi.refuse_audit_change() RETURNS trigger
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	RAISE EXCEPTION 'the audit log is append-only'
		USING ERRCODE = 'insufficient_privilege';
END
$$;

-- Statement triggers hold for statements that find no row, too.  Those of the
-- parent guard statements over all of it, those of a partition the rest, and
-- none of them can be avoided by pretending to replicate.
CREATE TRIGGER append_only
	BEFORE UPDATE OR DELETE OR TRUNCATE ON entityapi.audit
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.refuse_audit_change();
ALTER TABLE entityapi.audit ENABLE ALWAYS TRIGGER append_only;
CREATE TRIGGER append_only
	BEFORE UPDATE OR DELETE OR TRUNCATE ON entityapi.audit_default
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.refuse_audit_change();
ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;

-- Whether Citus has the log: 60_distribution.sql
CREATE FUNCTION entityapi.audit_is_distributed() RETURNS boolean
	LANGUAGE plpgsql STABLE
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
		RETURN false;
	END IF;
	RETURN EXISTS (SELECT FROM pg_dist_partition
				   WHERE logicalrelid = 'entityapi.audit'::regclass);
END
$$;

-- What Citus does for this transaction on other nodes waits there no longer
-- than here.
CREATE FUNCTION entityapi.carry_lock_timeout() RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	PERFORM set_config('citus.propagate_set_commands', 'local', true);
	EXECUTE format('SET LOCAL lock_timeout = %L',
				   current_setting('lock_timeout'));
	PERFORM set_config('citus.propagate_set_commands', 'none', true);
END
$$;

-- The same for a table of the log as it is.  Shards get no trigger that is for
-- TRUNCATE as well.
CREATE FUNCTION entityapi.guard_audit(part regclass) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	guard text[];
BEGIN
	FOREACH guard SLICE 1 IN ARRAY
		CASE WHEN entityapi.audit_is_distributed() THEN
			ARRAY[['append_only', 'UPDATE OR DELETE'],
				  ['append_only_all', 'TRUNCATE']]
		ELSE
			ARRAY[['append_only', 'UPDATE OR DELETE OR TRUNCATE']]
		END
	LOOP
		EXECUTE format('CREATE TRIGGER %I BEFORE %s ON %s FOR EACH STATEMENT'
					   ' EXECUTE FUNCTION entityapi.refuse_audit_change()',
					   guard[1], guard[2], part);
		EXECUTE format('ALTER TABLE ONLY %s ENABLE ALWAYS TRIGGER %I', part,
					   guard[1]);
	END LOOP;
END
$$;

SELECT pg_catalog.pg_extension_config_dump('entityapi.audit_default', '');

-- The log is the installer's, its owner's only to read and to add to.  So the
-- functions that make and drop its months run with the installer's rights, and
-- under settings that leave nothing to the session that calls: bounds pass
-- through text.

-- One session at a time makes or drops months.  False: another one does.
CREATE FUNCTION entityapi.take_audit_turn(wait boolean) RETURNS boolean
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_take_audit_turn';

CREATE FUNCTION entityapi.note_purge(detail text) RETURNS void
	LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_note_purge';

-- The partition of a month, given by its first moment in UTC.  Records of the
-- month that had to go to audit_default move over.
CREATE FUNCTION entityapi.make_audit_partition(month timestamp) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	SET datestyle = 'ISO, YMD'
	SET timezone = 'UTC'
	SET default_tablespace = ''
	SET default_table_access_method = 'heap'
	AS $$
DECLARE
	name text := to_char(month, '"audit_"YYYY_MM');
	first timestamptz := month AT TIME ZONE 'UTC';
	beyond timestamptz := (month + interval '1 month') AT TIME ZONE 'UTC';
	moved boolean := false;
BEGIN
	IF entityapi.audit_is_distributed() THEN
		PERFORM set_config('citus.multi_shard_modify_mode', 'sequential',
						   true),
				set_config('citus.enable_unsafe_triggers', 'on', true),
				entityapi.carry_lock_timeout();
	END IF;
	EXECUTE format('CREATE TABLE entityapi.%I'
				   ' (LIKE entityapi.audit_default INCLUDING ALL)', name);

	-- nobody adds any once the trigger is off
	IF EXISTS (SELECT 1 FROM entityapi.audit_default
			   WHERE at >= first AND at < beyond) THEN
		ALTER TABLE entityapi.audit_default DISABLE TRIGGER append_only;
		EXECUTE format('INSERT INTO entityapi.%I'
					   ' SELECT * FROM entityapi.audit_default'
					   ' WHERE at >= $1 AND at < $2', name)
			USING first, beyond;
		DELETE FROM entityapi.audit_default WHERE at >= first AND at < beyond;
		ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;
		moved := true;
	END IF;
	PERFORM entityapi.guard_audit(format('entityapi.%I', name)::regclass);
	EXECUTE format('GRANT SELECT ON entityapi.%I TO entityapi_owner', name);
	EXECUTE format('ALTER TABLE entityapi.audit ATTACH PARTITION entityapi.%I'
				   ' FOR VALUES FROM (%L) TO (%L)', name, first, beyond);
	IF moved AND entityapi.audit_is_distributed() THEN
		EXECUTE format('ALTER TABLE entityapi.%I'
					   ' DISABLE TRIGGER append_only_all', name);
		PERFORM truncate_local_data_after_distributing_table(
					format('entityapi.%I', name));
		EXECUTE format('ALTER TABLE entityapi.%I'
					   ' ENABLE ALWAYS TRIGGER append_only_all', name);
	END IF;
END
$$;

-- Whoever finds the month of a record missing waits for his turn to make it;
-- a later one is made by one session, and the others go on.
CREATE FUNCTION entityapi.extend_audit(at timestamptz, ahead int)
	RETURNS void
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET timezone = 'UTC'
	SET lock_timeout = '1s'
	AS $$
DECLARE
	month timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
BEGIN
	-- with these a month has a name, and so have those after it
	IF (at >= '0001-01-01 00:00:00+00'
		AND at < '9900-01-01 00:00:00+00') IS NOT TRUE THEN
		RAISE EXCEPTION 'extend_audit makes months of the years 1 to 9899'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF (ahead BETWEEN 0 AND 120) IS NOT TRUE THEN
		RAISE EXCEPTION 'extend_audit makes 120 months ahead at most'
			USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM'))
		IS NULL THEN
		PERFORM entityapi.take_audit_turn(true);
	ELSIF NOT entityapi.take_audit_turn(false) THEN
		RETURN;
	END IF;
	FOR i IN 0 .. ahead LOOP
		IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM'))
			IS NULL THEN
			PERFORM entityapi.make_audit_partition(month);
		END IF;
		month := month + interval '1 month';
	END LOOP;
END
$$;

COMMENT ON FUNCTION entityapi.extend_audit(timestamptz, int) IS
	'Make the partitions of a month and of those after it; called as needed';

CREATE FUNCTION entityapi.purge_audit(before timestamptz) RETURNS SETOF text
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET timezone = 'UTC'
	SET lock_timeout = '10s'
	AS $$
DECLARE
	bound timestamp := least(before, now()) AT TIME ZONE 'UTC';
	kept timestamptz := date_trunc('month', bound) AT TIME ZONE 'UTC';
	month timestamp;
	name text;
	names text[];
	records bigint;
	partitions bigint := 0;
	total bigint := 0;
BEGIN
	IF before IS NULL THEN
		RAISE EXCEPTION
			'purge_audit needs the time before which records may go'
			USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM entityapi.take_audit_turn(true);
	IF entityapi.audit_is_distributed() THEN
		PERFORM set_config('citus.multi_shard_modify_mode', 'sequential',
						   true),
				set_config('citus.enable_unsafe_triggers', 'on', true),
				entityapi.carry_lock_timeout();
	END IF;

	-- what is in audit_default goes by months as well, of whatever time it
	-- says to be: a table of its own for each is what not every time can have
	IF EXISTS (SELECT 1 FROM entityapi.audit_default d WHERE d.at < kept) THEN
		ALTER TABLE entityapi.audit_default DISABLE TRIGGER append_only;
		SELECT array_agg(c.month ORDER BY c.month), sum(c.n) INTO names, total
		FROM (
			SELECT coalesce(to_char(d.at AT TIME ZONE 'UTC',
									'"audit_"YYYY_MM'),
							'audit_default') AS month, count(*) AS n
			FROM entityapi.audit_default d WHERE d.at < kept
			GROUP BY 1
		) c;
		DELETE FROM entityapi.audit_default WHERE at < kept;
		ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;
		partitions := cardinality(names);
		RETURN QUERY SELECT unnest(names);
	END IF;

	FOREACH name IN ARRAY ARRAY(
		SELECT c.relname
		FROM pg_inherits i
		JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'entityapi.audit'::regclass
		  AND c.relname ~ '^audit_[0-9]{4}_[0-9]{2}$'
		ORDER BY c.relname) LOOP
		month := make_timestamp(substr(name, 7, 4)::int,
								substr(name, 12, 2)::int, 1, 0, 0, 0);
		EXIT WHEN month + interval '1 month' > bound;
		EXECUTE format('SELECT count(*) FROM entityapi.%I', name) INTO records;
		EXECUTE format('DROP TABLE entityapi.%I', name);
		partitions := partitions + 1;
		total := total + records;
		RETURN NEXT name;
	END LOOP;

	PERFORM entityapi.note_purge(
		format('%s months with %s records, all from before %s',
			   partitions, total,
			   to_char(bound, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
END
$$;

COMMENT ON FUNCTION entityapi.purge_audit(timestamptz) IS
	'Drop the months that ended before a time, and leave a record of it';
