/* Roles belong to the cluster: other databases may have made them already. */
DO $$
DECLARE
	role text;
BEGIN
	FOREACH role IN ARRAY ARRAY['entityapi_owner', 'entityapi_client', 'entityapi_reader']
	LOOP
		IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = role) THEN
			EXECUTE pg_catalog.format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', role);
		END IF;
	END LOOP;
	EXECUTE pg_catalog.format('GRANT CREATE ON DATABASE %I TO entityapi_owner',
							  pg_catalog.current_database());
END
$$;

ALTER SCHEMA entityapi OWNER TO entityapi_owner;
REVOKE ALL ON SCHEMA entityapi FROM PUBLIC;
GRANT USAGE ON SCHEMA entityapi TO entityapi_client, entityapi_reader;
-- What is declared: revisions as they were applied, and the definitions
-- compiled from the last of them, which backends load

CREATE TABLE entityapi.revision (
	revision integer PRIMARY KEY,
	applied_at timestamptz NOT NULL,
	checksum text NOT NULL,
	extension_version text NOT NULL,
	documents jsonb NOT NULL,
	statements text[] NOT NULL
);

COMMENT ON TABLE entityapi.revision IS
	'Manifests as applied, one row a change; the last is in force';

CREATE TABLE entityapi.entity (
	name text PRIMARY KEY,
	collection text NOT NULL UNIQUE,
	collection_lower text NOT NULL UNIQUE,
	type text NOT NULL UNIQUE,
	definition text NOT NULL
);

COMMENT ON TABLE entityapi.entity IS
	'Compiled declarations of entities, written by apply_manifest only';

CREATE TABLE entityapi.service (
	singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
	definition text NOT NULL
);

COMMENT ON TABLE entityapi.service IS
	'Compiled declarations of the service as a whole';

SELECT pg_catalog.pg_extension_config_dump('entityapi.revision', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.entity', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.service', '');

CREATE FUNCTION entityapi.apply_manifest(
		documents jsonb,
		dry_run boolean DEFAULT false,
		allow_data_loss text[] DEFAULT '{}',
		OUT step integer,
		OUT statement text)
	RETURNS SETOF record
	LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	SET lock_timeout = '5s'
	AS 'MODULE_PATHNAME', 'ea_sql_apply_manifest';

COMMENT ON FUNCTION entityapi.apply_manifest(jsonb, boolean, text[]) IS
	'Make the documents the declared state; returns the statements it took';

CREATE FUNCTION entityapi.export_manifest() RETURNS jsonb
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
-- Tenants, accounts, sessions, signing keys
--
-- Nobody but the owner has any right on these tables.  Their rows belong to
-- the database, not to the extension, so dumps hold them.

CREATE TABLE entityapi.tenant (
	id uuid PRIMARY KEY,
	name text NOT NULL UNIQUE,
	slug text NOT NULL UNIQUE,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'SUSPENDED')),
	attributes jsonb NOT NULL,
	created_at timestamptz NOT NULL
);

-- Whoever can have a credential.  A SuperAdmin belongs to no tenant, anybody
-- else to one.  username_key is the username as it is compared, without
-- case; a service account has no such key, so nobody can log in as one.
CREATE TABLE entityapi.account (
	id uuid PRIMARY KEY,
	tenant_id uuid REFERENCES entityapi.tenant ON DELETE CASCADE,
	kind text NOT NULL CHECK (kind IN ('USER', 'SERVICE_ACCOUNT')),
	username text NOT NULL,
	username_key text COLLATE "C" UNIQUE CHECK (username_key <> ''),
	email text,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'DISABLED')),
	roles text[] NOT NULL,
	profile jsonb NOT NULL CHECK (jsonb_typeof(profile) = 'object'),
	security_attributes jsonb NOT NULL
		CHECK (jsonb_typeof(security_attributes) = 'object'),
	password_hash text,
	password_change_required boolean NOT NULL,
	is_super_admin boolean NOT NULL,
	created_at timestamptz NOT NULL,
	last_login_at timestamptz,
	CHECK (is_super_admin = (tenant_id IS NULL)),
	CHECK (kind <> 'USER' OR username_key IS NOT NULL)
);

CREATE INDEX account_tenant_id ON entityapi.account (tenant_id, id);

-- Authority over a tenant is kept apart from roles.
CREATE TABLE entityapi.tenant_admin (
	tenant_id uuid NOT NULL REFERENCES entityapi.tenant ON DELETE CASCADE,
	account_id uuid NOT NULL UNIQUE
		REFERENCES entityapi.account ON DELETE CASCADE,
	PRIMARY KEY (tenant_id, account_id)
);

-- One login: the family of its refresh tokens, "sid" of its access tokens.
CREATE TABLE entityapi.session (
	id uuid PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	created_at timestamptz NOT NULL,
	expires_at timestamptz NOT NULL,
	revoked_at timestamptz,
	forced boolean NOT NULL
);

CREATE INDEX session_account_id ON entityapi.session (account_id)
	WHERE revoked_at IS NULL;

CREATE TABLE entityapi.refresh_token (
	id text COLLATE "C" PRIMARY KEY,
	session_id uuid NOT NULL REFERENCES entityapi.session ON DELETE CASCADE,
	secret_hash bytea NOT NULL,
	expires_at timestamptz NOT NULL,
	used_at timestamptz
);

CREATE INDEX refresh_token_session_id ON entityapi.refresh_token (session_id);

CREATE TABLE entityapi.signing_key (
	kid text COLLATE "C" PRIMARY KEY,
	algorithm text NOT NULL,
	secret bytea NOT NULL,
	state text NOT NULL CHECK (state IN ('ACTIVE', 'RETIRED', 'REVOKED')),
	created_at timestamptz NOT NULL,
	retired_at timestamptz,
	CHECK (state <> 'RETIRED' OR retired_at IS NOT NULL)
);

-- Backends keep the keys until a change is announced to them.
CREATE FUNCTION entityapi.announce_keys() RETURNS trigger
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'ea_sql_announce_keys';

CREATE TRIGGER announce_keys
	BEFORE INSERT OR UPDATE OR DELETE ON entityapi.signing_key
	FOR EACH STATEMENT EXECUTE FUNCTION entityapi.announce_keys();

-- Lower case.  Built-in rows come with the extension, not with a dump.
CREATE TABLE entityapi.common_password (
	password text COLLATE "C" PRIMARY KEY,
	built_in boolean NOT NULL DEFAULT FALSE
);

SELECT pg_catalog.pg_extension_config_dump('entityapi.tenant', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.account', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.tenant_admin', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.session', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.refresh_token', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.signing_key', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.common_password',
										   'where not built_in');

CREATE FUNCTION entityapi.create_superadmin(username text, password text)
	RETURNS uuid
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_create_superadmin';

COMMENT ON FUNCTION entityapi.create_superadmin(text, text) IS
	'Make a platform administrator; returns the id of the account';

CREATE FUNCTION entityapi.rotate_signing_key() RETURNS text
	LANGUAGE c
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_rotate_signing_key';

COMMENT ON FUNCTION entityapi.rotate_signing_key() IS
	'Sign access tokens with a new key from now on; returns its kid';

-- Passwords that are long enough and yet tried first: digits in a row, keys
-- in a row, words with a year or a counter.
INSERT INTO entityapi.common_password (password, built_in)
SELECT pg_catalog.unnest(ARRAY[
	'!@#$%^&*()_+', '!qaz2wsx3edc', '!qaz@wsx#edc', '000000000000',
	'012345678901', '0123456789012', '098765432109', '0987654321098',
	'101010101010', '111111111111', '111222333444', '112233445566',
	'112233445566778899', '121212121212', '123123123123', '123321123321',
	'123412341234', '123456123456', '123456654321', '123456789012',
	'1234567890123', '12345678901234', '123456789012345', '1234567890123456',
	'1234567890qwertyuiop', '1234567891011', '123qwe123qwe', '123qweasdzxc',
	'147258369000', '147258369147', '159357159357', '159753159753',
	'1q2w3e4r5t6y', '1q2w3e4r5t6y7u', '1q2w3e4r5t6y7u8i',
	'1q2w3e4r5t6y7u8i9o', '1q2w3e4r5t6y7u8i9o0p', '1qaz!qaz2wsx@wsx',
	'1qaz2wsx3edc', '1qaz2wsx3edc4rfv', '1qaz@wsx3edc', '1qazxsw23edc',
	'210987654321', '222222222222', '333333333333', '444444444444',
	'555555555555', '666666666666', '741852963000', '777777777777',
	'789456123000', '789456123789', '888888888888', '987654321000',
	'987654321012', '9876543210123', '999999999999', 'a12345678900',
	'a123456789012', 'a1b2c3d4e5f6', 'a1s2d3f4g5h6', 'aa12345678900',
	'aaaaaaaaaaaa', 'abc123abc123', 'abcd12345678', 'abcdefg12345',
	'abcdefg1234567', 'abcdefgh1234', 'abcdefghijkl', 'abcdefghijklm',
	'abcdefghijklmnop', 'abcdefghijklmnopqrstuvwxyz', 'admin1234567',
	'admin12345678', 'admin123456789', 'admin123admin', 'admin@123456',
	'adminadminadmin', 'administrator', 'administrator1', 'administrator123',
	'adminpassword', 'adminpassword1', 'arsenal12345', 'asdf12345678',
	'asdfasdfasdf', 'asdfghjkl123', 'asdfghjkl1234', 'asdfghjklzxcvbnm',
	'asdfqwerzxcv', 'autumn123456', 'azertyuiop12', 'azertyuiop123',
	'azertyuiopqsdfghjklm', 'barcelona123', 'baseball1234', 'basketball12',
	'basketball123', 'batman123456', 'blessed12345', 'business1234',
	'changeitnow1', 'changeme1234', 'changeme12345', 'changemeplease',
	'charlie12345', 'chelsea12345', 'company12345', 'company123456',
	'computer1234', 'computer12345', 'contrasena12', 'contrasena123',
	'correct horse battery staple', 'correcthorsebatterystaple',
	'corvette1234', 'database1234', 'december1234', 'december2024',
	'default12345', 'defaultpassword', 'demopassword', 'dragon123456',
	'entityapi123', 'entityapi1234', 'everything12', 'ferrari12345',
	'football1234', 'football12345', 'forgetmenot1', 'freedom12345',
	'godblessyou1', 'godislove123', 'guestguest12', 'haslo1234567',
	'iloveyou1234', 'iloveyou12345', 'iloveyoubaby', 'iloveyouforever',
	'iloveyouiloveyou', 'iloveyousomuch', 'internet1234', 'internet12345',
	'january12345', 'jennifer1234', 'jessica12345', 'jesuschrist1',
	'jesusislord1', 'jordan123456', 'juventus1234', 'letmein12345',
	'letmein123456', 'letmeinletmein', 'letmeinplease', 'liverpool123',
	'liverpool1234', 'lovelovelove', 'loveyouforever', 'manchester12',
	'manchesterunited', 'mercedes1234', 'michael12345', 'monkey123456',
	'motdepasse12', 'motdepasse123', 'mylove123456', 'mynameis1234',
	'mypassword12', 'mypassword123', 'mypassword1234', 'newpassword1',
	'newpassword12', 'newpassword123', 'nopassword12', 'nothing12345',
	'november1234', 'november2024', 'oldpassword1', 'opensesame12',
	'p455w0rd1234', 'p@ssw0rd1234', 'p@ssw0rd12345', 'p@ssword1234',
	'pa$$word1234', 'pa55word1234', 'parola123456', 'passpasspass',
	'passphrase12', 'passphrase123', 'passw0rd1234', 'password1234',
	'password12345', 'password123456', 'password1password', 'passwordabcd',
	'passwordpassword', 'passwort1234', 'passwort12345', 'pleasechangeme',
	'pokemon12345', 'postgres1234', 'postgrespassword', 'postgresql12',
	'princess1234', 'princess12345', 'q1w2e3r4t5y6', 'q1w2e3r4t5y6u7',
	'q1w2e3r4t5y6u7i8', 'qazwsxedcrfv', 'qazwsxedcrfvtgb', 'qwe123qwe123',
	'qweasdzxc123', 'qweasdzxcrty', 'qwer12345678', 'qwer1234asdf',
	'qwer1234qwer', 'qwerty123456', 'qwerty1234567', 'qwerty12345678',
	'qwerty123456789', 'qwertyqwerty', 'qwertyuiop!@#$', 'qwertyuiop12',
	'qwertyuiop123', 'qwertyuiop1234', 'qwertyuiop1234567890', 'qwertyuiop[]',
	'qwertyuiopas', 'qwertyuiopasdfghjkl', 'qwertyuiopasdfghjklzxcvbnm',
	'qwertzuiop12', 'qwertzuiopas', 'realmadrid12', 'rootpassword',
	'rootrootroot', 'samsung12345', 'secret123456', 'secretpassword',
	'secretsecret', 'security1234', 'security12345', 'senha1234567',
	'september123', 'spiderman123', 'spring123456', 'starwars1234',
	'summer123456', 'summer2024!!', 'sunshine1234', 'sunshine12345',
	'superadmin123', 'superadministrator', 'superman1234', 'superman12345',
	'superuser123', 'systemadmin1', 'temporary123', 'temporarypassword',
	'temppassword', 'temppassword1', 'test12345678', 'test123456789',
	'testing12345', 'testing123456', 'testpassword', 'testpassword1',
	'testtesttest', 'thisisapassword', 'thisismypassword', 'trustno1trustno1',
	'unbelievable', 'user12345678', 'userpassword', 'useruseruser',
	'wachtwoord12', 'wachtwoord123', 'welcome12345', 'welcome123456',
	'welcome@1234', 'welcomewelcome', 'whatever1234', 'winter123456',
	'winter2024!!', 'xxxxxxxxxxxx', 'yourpassword', 'zaq12wsxcde3',
	'zaq1xsw2cde3', 'zxcv12345678', 'zxcvbnm12345', 'zxcvbnm123456',
	'zxcvbnmasdfghjkl', 'zzzzzzzzzzzz'
]), true;
-- Service accounts, personal API keys, invites, throttling

-- What an account of the kind SERVICE_ACCOUNT has besides.
CREATE TABLE entityapi.service_account (
	account_id uuid PRIMARY KEY
		REFERENCES entityapi.account ON DELETE CASCADE,
	client_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	last_used_at timestamptz
);

-- A delegation of its owner's identity: roles and attributes that were his
-- when the key was made, and have to be his whenever it is used.
CREATE TABLE entityapi.personal_api_key (
	id uuid PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	token_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	name text NOT NULL,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'DISABLED', 'REVOKED')),
	roles text[] NOT NULL,
	security_attributes jsonb NOT NULL
		CHECK (jsonb_typeof(security_attributes) = 'object'),
	expires_at timestamptz,
	created_at timestamptz NOT NULL,
	last_used_at timestamptz
);

CREATE INDEX personal_api_key_account_id
	ON entityapi.personal_api_key (account_id);

-- One row for each tenant that has settings of its own, and one without a
-- tenant for all others.  NULL means: as the others.
CREATE TABLE entityapi.personal_api_key_setting (
	tenant_id uuid UNIQUE NULLS NOT DISTINCT
		REFERENCES entityapi.tenant ON DELETE CASCADE,
	enabled boolean,
	allow_non_expiring boolean
);

CREATE TABLE entityapi.invite (
	id uuid PRIMARY KEY,
	tenant_id uuid NOT NULL REFERENCES entityapi.tenant ON DELETE CASCADE,
	token_id text COLLATE "C" NOT NULL UNIQUE,
	secret_hash bytea NOT NULL,
	email text NOT NULL,
	username text NOT NULL,
	roles text[] NOT NULL,
	status text NOT NULL CHECK (status IN ('PENDING', 'ACCEPTED')),
	expires_at timestamptz NOT NULL,
	created_at timestamptz NOT NULL
);

CREATE INDEX invite_tenant_id ON entityapi.invite (tenant_id, id);

-- Failed logins.  What was typed as a name may be a password, so there is
-- only a hash of it; an IPv6 address stands for its /64.
CREATE TABLE entityapi.login_throttle (
	username_hash bytea PRIMARY KEY,
	failures int NOT NULL,
	last_failure_at timestamptz NOT NULL
);

CREATE INDEX login_throttle_last_failure_at
	ON entityapi.login_throttle (last_failure_at);

CREATE TABLE entityapi.address_failure (
	address inet NOT NULL,
	failed_at timestamptz NOT NULL
);

CREATE INDEX address_failure_address
	ON entityapi.address_failure (address, failed_at);
CREATE INDEX address_failure_failed_at
	ON entityapi.address_failure (failed_at);

-- What has ended is looked for by its end.
CREATE INDEX session_expires_at ON entityapi.session (expires_at);
CREATE INDEX session_revoked_at ON entityapi.session (revoked_at)
	WHERE revoked_at IS NOT NULL;
CREATE INDEX refresh_token_expires_at ON entityapi.refresh_token (expires_at);

SELECT pg_catalog.pg_extension_config_dump('entityapi.service_account', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.personal_api_key', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.personal_api_key_setting',
										   '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.invite', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.login_throttle', '');

CREATE FUNCTION entityapi.revoke_signing_key(kid text) RETURNS boolean
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_revoke_signing_key';

COMMENT ON FUNCTION entityapi.revoke_signing_key(text) IS
	'Believe no token of a signing key any more; false if there is none';

CREATE FUNCTION entityapi.sweep(max_rows int DEFAULT 1000) RETURNS bigint
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_sweep';

COMMENT ON FUNCTION entityapi.sweep(int) IS
	'Delete ended sessions, used-up tokens and forgotten failures, at most so many of each';
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
	'How a policy expression is understood: its tree, or an error with the position';
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
	detail text
) PARTITION BY RANGE (at);

COMMENT ON TABLE entityapi.audit IS
	'Records of writes, events and refusals; append-only';

CREATE TABLE entityapi.audit_default PARTITION OF entityapi.audit DEFAULT;

ALTER TABLE entityapi.audit_default ADD PRIMARY KEY (at, id);
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id);
CREATE INDEX ON entityapi.audit_default (target_id, at, id);
CREATE INDEX ON entityapi.audit_default (actor_id, at, id);
CREATE INDEX ON entityapi.audit_default (action, at, id);
CREATE INDEX ON entityapi.audit_default (request_id);
CREATE INDEX ON entityapi.audit_default (at, id) WHERE outcome <> 'SUCCESS';
CREATE INDEX ON entityapi.audit_default (tenant_id, at, id) WHERE outcome <> 'SUCCESS';

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

SELECT pg_catalog.pg_extension_config_dump('entityapi.audit_default', '');

-- The partition of a month, given by its first moment in UTC.  Records of the
-- month that had to go to audit_default move over.
CREATE FUNCTION entityapi.make_audit_partition(month timestamp) RETURNS void
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
DECLARE
	name text := to_char(month, '"audit_"YYYY_MM');
	first timestamptz := month AT TIME ZONE 'UTC';
	beyond timestamptz := (month + interval '1 month') AT TIME ZONE 'UTC';
BEGIN
	EXECUTE format('CREATE TABLE entityapi.%I (LIKE entityapi.audit_default INCLUDING ALL)',
				   name);
	IF EXISTS (SELECT FROM entityapi.audit_default WHERE at >= first AND at < beyond) THEN
		ALTER TABLE entityapi.audit_default DISABLE TRIGGER append_only;
		EXECUTE format('WITH moved AS ('
					   ' DELETE FROM entityapi.audit_default WHERE at >= $1 AND at < $2 RETURNING *)'
					   ' INSERT INTO entityapi.%I SELECT * FROM moved', name)
			USING first, beyond;
		ALTER TABLE entityapi.audit_default ENABLE ALWAYS TRIGGER append_only;
	END IF;
	EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entityapi.%I'
				   ' FOR EACH STATEMENT EXECUTE FUNCTION entityapi.refuse_audit_change()', name);
	EXECUTE format('ALTER TABLE entityapi.%I ENABLE ALWAYS TRIGGER append_only', name);
	EXECUTE format('ALTER TABLE entityapi.audit ATTACH PARTITION entityapi.%I FOR VALUES FROM (%L) TO (%L)',
				   name, first, beyond);
END
$$;

-- Whoever finds the month of a record missing waits for his turn to make it;
-- a later one is made by one session, and the others go on.
CREATE FUNCTION entityapi.extend_audit(at timestamptz, ahead int)
	RETURNS void
	LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	SET lock_timeout = '1s'
	AS $$
DECLARE
	month timestamp := date_trunc('month', at AT TIME ZONE 'UTC');
BEGIN
	IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM')) IS NULL THEN
		PERFORM pg_advisory_xact_lock('entityapi.audit'::regclass::oid::bigint);
	ELSIF NOT pg_try_advisory_xact_lock('entityapi.audit'::regclass::oid::bigint) THEN
		RETURN;
	END IF;
	FOR i IN 0 .. ahead LOOP
		IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM')) IS NULL THEN
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
	SET lock_timeout = '10s'
	AS $$
DECLARE
	bound timestamp := least(before, now()) AT TIME ZONE 'UTC';
	month timestamp;
	name text;
	records bigint;
	partitions bigint := 0;
	total bigint := 0;
BEGIN
	IF before IS NULL THEN
		RAISE EXCEPTION 'purge_audit needs the time before which records may go'
			USING ERRCODE = 'null_value_not_allowed';
	END IF;
	PERFORM pg_advisory_xact_lock('entityapi.audit'::regclass::oid::bigint);

	-- what is in audit_default goes by months as well
	FOREACH month IN ARRAY ARRAY(
		SELECT DISTINCT date_trunc('month', d.at AT TIME ZONE 'UTC')
		FROM entityapi.audit_default d
		WHERE d.at < bound AT TIME ZONE 'UTC') LOOP
		IF to_regclass('entityapi.' || to_char(month, '"audit_"YYYY_MM')) IS NULL THEN
			PERFORM entityapi.make_audit_partition(month);
		END IF;
	END LOOP;

	FOREACH name IN ARRAY ARRAY(
		SELECT c.relname
		FROM pg_inherits i
		JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'entityapi.audit'::regclass
		  AND c.relname ~ '^audit_\d{4}_\d\d$'
		ORDER BY c.relname) LOOP
		month := make_timestamp(substr(name, 7, 4)::int, substr(name, 12, 2)::int, 1, 0, 0, 0);
		EXIT WHEN month + interval '1 month' > bound;
		EXECUTE format('SELECT count(*) FROM entityapi.%I', name) INTO records;
		EXECUTE format('DROP TABLE entityapi.%I', name);
		partitions := partitions + 1;
		total := total + records;
		RETURN NEXT name;
	END LOOP;

	INSERT INTO entityapi.audit (id, at, actor_username, action, outcome, target_type, detail)
	VALUES (gen_random_uuid(), clock_timestamp(), session_user, 'AUDIT_PURGED', 'SUCCESS', 'audit',
			format('%s months with %s records, all from before %s, by a role of the database',
				   partitions, total, to_char(bound, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')));
END
$$;

COMMENT ON FUNCTION entityapi.purge_audit(timestamptz) IS
	'Drop the months that ended before a time, and leave a record of it';
-- Plain SQL as a reader: who asks, and what the policies on the tables call
--
-- The functions look things up as the owner, and any reader may call them, so
-- that none may go by the search path of its caller.

CREATE TABLE entityapi.mapped_role (
	role text PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE
);

SELECT pg_catalog.pg_extension_config_dump('entityapi.mapped_role', '');

CREATE FUNCTION entityapi.map_role(role name, username text) RETURNS void
	LANGUAGE c VOLATILE SECURITY DEFINER PARALLEL UNSAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_map_role';

COMMENT ON FUNCTION entityapi.map_role(name, text) IS
	'Let a login that is a member of entityapi_reader see what this user sees; null ends it';

CREATE FUNCTION entityapi.set_principal(principal jsonb) RETURNS void
	LANGUAGE c VOLATILE PARALLEL UNSAFE
	AS 'MODULE_PATHNAME', 'ea_sql_set_principal';

COMMENT ON FUNCTION entityapi.set_principal(jsonb) IS
	'Let this session see what the principal sees, until the next call; for those it is granted to';

CREATE FUNCTION entityapi.current_tenant() RETURNS uuid
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_current_tenant';

CREATE FUNCTION entityapi.caller_reads(entity text) RETURNS boolean
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_reads';

CREATE FUNCTION entityapi.caller_bypasses(entity text) RETURNS boolean
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_bypasses';

CREATE FUNCTION entityapi.caller_boolean(property text, key text) RETURNS boolean
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_boolean';

CREATE FUNCTION entityapi.caller_number(property text, key text) RETURNS numeric
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_number';

CREATE FUNCTION entityapi.caller_text(property text, key text) RETURNS text
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_text';

CREATE FUNCTION entityapi.caller_uuid(property text, key text) RETURNS uuid
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_uuid';

CREATE FUNCTION entityapi.caller_date(property text, key text) RETURNS date
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_date';

CREATE FUNCTION entityapi.caller_datetime(property text, key text) RETURNS timestamptz
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_datetime';

CREATE FUNCTION entityapi.caller_texts(property text, key text) RETURNS text[]
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_texts';

CREATE FUNCTION entityapi.caller_known(property text, key text) RETURNS boolean
	LANGUAGE c STABLE SECURITY DEFINER PARALLEL RESTRICTED
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_caller_known';
/* The whole API. */
CREATE FUNCTION entityapi.handle(method text, target text, headers jsonb, body bytea, remote inet,
								 OUT status int, OUT headers jsonb, OUT body text)
	RETURNS record
	LANGUAGE C VOLATILE SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_handle';

CREATE FUNCTION entityapi.version() RETURNS text
	LANGUAGE C IMMUTABLE PARALLEL SAFE
	AS 'MODULE_PATHNAME', 'ea_sql_version';

/* Statements run for requests by this session since the last call. */
CREATE FUNCTION entityapi.statement_count() RETURNS int
	LANGUAGE C VOLATILE
	AS 'MODULE_PATHNAME', 'ea_sql_statement_count';

CREATE FUNCTION entityapi.explain(method text, target text, principal jsonb) RETURNS SETOF text
	LANGUAGE C VOLATILE STRICT SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_explain';

COMMENT ON FUNCTION entityapi.explain(text, text, jsonb) IS
	'The statements that a request of this principal runs, with their plans; nothing of it is kept';
/* All that was made above belongs to entityapi_owner and is nobody else's. */
DO $$
DECLARE
	object record;
BEGIN
	FOR object IN
		SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END AS kind,
			   c.oid::pg_catalog.regclass::text AS name
		FROM pg_catalog.pg_class c
		WHERE c.relnamespace = 'entityapi'::pg_catalog.regnamespace
		  AND c.relkind IN ('r', 'p', 'S', 'v')
		UNION ALL
		SELECT 'FUNCTION', p.oid::pg_catalog.regprocedure::text
		FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'entityapi'::pg_catalog.regnamespace
	LOOP
		EXECUTE pg_catalog.format('ALTER %s %s OWNER TO entityapi_owner', object.kind, object.name);
		EXECUTE pg_catalog.format('REVOKE ALL ON %s %s FROM PUBLIC', object.kind, object.name);
	END LOOP;
END
$$;

GRANT EXECUTE ON FUNCTION entityapi.handle(text, text, jsonb, bytea, inet) TO entityapi_client;

GRANT EXECUTE ON FUNCTION
	entityapi.current_tenant(),
	entityapi.caller_reads(text), entityapi.caller_bypasses(text),
	entityapi.caller_boolean(text, text), entityapi.caller_number(text, text),
	entityapi.caller_text(text, text), entityapi.caller_uuid(text, text),
	entityapi.caller_date(text, text), entityapi.caller_datetime(text, text),
	entityapi.caller_texts(text, text), entityapi.caller_known(text, text)
	TO entityapi_reader;
