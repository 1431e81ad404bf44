-- tables.sql: customers and invoices as Directus can serve them.
--
-- It takes no table whose key has two columns, so the tenant is no part of the
-- keys here; what the service sets by itself are defaults.  The rest is as
-- examples/billing has it.

CREATE TABLE customer (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	tenant_id uuid NOT NULL,
	city varchar(100),
	name varchar(200) NOT NULL,
	email varchar(254),
	active boolean NOT NULL,
	region varchar(255)
		CHECK (region IN ('NORTH', 'SOUTH', 'EAST', 'WEST')),
	country_id uuid,
	credit_limit numeric(12, 2) CHECK (credit_limit >= 0),
	customer_since date,
	created_at timestamptz NOT NULL DEFAULT now(),
	updated_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON customer (tenant_id, country_id, id);
CREATE INDEX ON customer (tenant_id, name);

CREATE TABLE invoice (
	id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
	tenant_id uuid NOT NULL,
	note text,
	due_on date,
	total numeric(14, 2) NOT NULL,
	number varchar(40) NOT NULL,
	status varchar(255) NOT NULL DEFAULT 'DRAFT'
		CHECK (status IN ('DRAFT', 'SENT', 'PAID', 'OVERDUE', 'VOID')),
	currency varchar(255) NOT NULL DEFAULT 'EUR',
	customer_id uuid NOT NULL REFERENCES customer,
	issued_at timestamptz,
	version bigint NOT NULL DEFAULT 1,
	created_at timestamptz NOT NULL DEFAULT now(),
	updated_at timestamptz NOT NULL DEFAULT now(),
	UNIQUE (tenant_id, number));
CREATE INDEX ON invoice (customer_id);
CREATE INDEX ON invoice (tenant_id, due_on);
CREATE INDEX ON invoice (tenant_id, status, issued_at);
