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

-- Where users have logged in from, which the failures of others do not close
-- to them: a hash of the username and the address together, so neither can be
-- read from it.
CREATE TABLE entityapi.login_origin (
	origin_hash bytea PRIMARY KEY,
	account_id uuid NOT NULL REFERENCES entityapi.account ON DELETE CASCADE,
	succeeded_at timestamptz NOT NULL,
	failures int NOT NULL,
	failed_at timestamptz
);

CREATE INDEX login_origin_account_id ON entityapi.login_origin (account_id);
CREATE INDEX login_origin_succeeded_at
	ON entityapi.login_origin (succeeded_at);

-- What has ended is looked for by its end.
CREATE INDEX session_expires_at ON entityapi.session (expires_at);
CREATE INDEX session_revoked_at ON entityapi.session (revoked_at)
	WHERE revoked_at IS NOT NULL;
CREATE INDEX refresh_token_expires_at ON entityapi.refresh_token (expires_at);

SELECT pg_catalog.pg_extension_config_dump('entityapi.service_account', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.personal_api_key', '');
SELECT pg_catalog.pg_extension_config_dump(
		'entityapi.personal_api_key_setting', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.invite', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.login_throttle', '');
SELECT pg_catalog.pg_extension_config_dump('entityapi.login_origin', '');

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
	'Delete ended sessions, used-up tokens and forgotten failures, at most so '
	'many of each, and some rows of deleted tenants; 0 when nothing is left';
