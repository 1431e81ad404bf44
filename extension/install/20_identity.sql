-- Tenants, accounts, sessions, signing keys
--
-- Nobody but the owner has any right on these tables.  Their rows belong to
-- the database, not to the extension, so dumps hold them.

-- A tenant that is DELETED does not exist for anybody; its row, without name
-- and slug, stays until its data are gone.  Requests that began before
-- deleted_by, the transaction that deleted it, had ended may still add to
-- them; when none of their statements goes on, that is the transaction before
-- which theirs began, and becomes NULL when there is none any more.
--
-- row_there is of tenants that are rows of an application: true while there is
-- the row, false where the tenant is suspended because it went.
CREATE TABLE entityapi.tenant (
	id uuid PRIMARY KEY,
	name text NOT NULL UNIQUE,
	slug text NOT NULL UNIQUE,
	status text NOT NULL CHECK (status IN ('ACTIVE', 'SUSPENDED', 'DELETED')),
	attributes jsonb NOT NULL,
	created_at timestamptz NOT NULL,
	deleted_at timestamptz,
	deleted_by xid8,
	row_there boolean,
	CHECK ((status = 'DELETED') = (deleted_at IS NOT NULL))
);

CREATE INDEX tenant_deleted_at ON entityapi.tenant (deleted_at, id)
	WHERE deleted_at IS NOT NULL;

-- Whoever can have a credential.  A SuperAdmin belongs to no tenant, anybody
-- else to one.  username_key is fold_case() of the username, by which it is
-- compared; a service account has no such key, so nobody can log in as one.
-- With password_nfc the hash is of the password in NFC; before 1.3, and until
-- the next login since, it is of what was typed.
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
	password_nfc boolean NOT NULL DEFAULT false,
	CHECK (is_super_admin = (tenant_id IS NULL)),
	CHECK (kind <> 'USER' OR username_key IS NOT NULL)
);

CREATE INDEX account_tenant_id ON entityapi.account (tenant_id, id);

-- The costs of password hashes: a login of anybody takes as long as one of the
-- highest of them.
CREATE INDEX account_hash_cost ON entityapi.account
	((pg_catalog.substr(password_hash, 5, 2) COLLATE "C"))
	WHERE password_hash IS NOT NULL;

-- A part of a profile as text that the type can read, NULL if it is no value
-- of that type.
CREATE FUNCTION entityapi.profile_value(profile jsonb, part text, type text,
										most int4, scale int4) RETURNS text
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_profile_value';

-- The rows of the entity User, where manifests declare it
CREATE FUNCTION entityapi.copy_account() RETURNS trigger
	LANGUAGE c
	AS 'MODULE_PATHNAME', 'ea_sql_copy_account';

-- Sessions that were open when 1.0 or 1.1 was updated have a library without
-- that function.  Until a shim is restarted they go on with accounts, of which
-- there is nothing to copy, as nobody can have declared User before.
CREATE FUNCTION entityapi.copies_accounts() RETURNS boolean
	LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp
	AS $$
BEGIN
	-- Citus takes an expression that asks a table for a query of its own
	IF entityapi.version() NOT IN ('1.0', '1.1') THEN
		RETURN true;
	END IF;
	RETURN EXISTS (SELECT FROM entityapi.entity
				   WHERE definition::jsonb @> '{"accounts": true}');
END
$$;

CREATE TRIGGER copy_account
	AFTER INSERT OR DELETE OR
		UPDATE OF username, email, status, kind, profile
	ON entityapi.account
	FOR EACH ROW WHEN (entityapi.copies_accounts())
	EXECUTE FUNCTION entityapi.copy_account();

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

CREATE INDEX session_account_id ON entityapi.session (account_id);

-- One that was exchanged names its successor, and has a hash of itself and the
-- address that it came from, by which nobody finds the address without it.
CREATE TABLE entityapi.refresh_token (
	id text COLLATE "C" PRIMARY KEY,
	session_id uuid NOT NULL REFERENCES entityapi.session ON DELETE CASCADE,
	secret_hash bytea NOT NULL,
	expires_at timestamptz NOT NULL,
	used_at timestamptz,
	used_from bytea,
	successor_id text COLLATE "C"
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

-- also where rows come by replication: a key that is revoked is to be
-- forgotten
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;

-- As fold_case() has them.  Built-in rows come with the extension, not with a
-- dump.
CREATE TABLE entityapi.common_password (
	password text COLLATE "C" PRIMARY KEY,
	built_in boolean NOT NULL DEFAULT FALSE
);

-- By Unicode alone, whatever the database's locale is.
CREATE FUNCTION entityapi.fold_case(name text) RETURNS text
	LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_fold_case';

COMMENT ON FUNCTION entityapi.fold_case(text) IS
	'A username or password in NFC and without case';

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

CREATE FUNCTION entityapi.rename_account(id uuid, name text) RETURNS void
	LANGUAGE c STRICT
	SET search_path = pg_catalog, pg_temp
	AS 'MODULE_PATHNAME', 'ea_sql_rename_account';

COMMENT ON FUNCTION entityapi.rename_account(uuid, text) IS
	'Give a user another username';

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
