-- As Rails writes it (db/structure.sql) with ids of uuid: a shop of many
-- organizations.

CREATE TABLE public.schema_migrations (
    version character varying NOT NULL PRIMARY KEY
);

CREATE TABLE public.ar_internal_metadata (
    key character varying NOT NULL PRIMARY KEY,
    value character varying,
    created_at timestamp(6) without time zone NOT NULL,
    updated_at timestamp(6) without time zone NOT NULL
);

CREATE TABLE public.organizations (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    name character varying NOT NULL,
    slug character varying(80) NOT NULL,
    settings jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp(6) without time zone NOT NULL,
    updated_at timestamp(6) without time zone NOT NULL
);
CREATE UNIQUE INDEX index_organizations_on_slug ON public.organizations USING btree (slug);

CREATE TABLE public.users (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    organization_id uuid NOT NULL,
    email character varying(254) DEFAULT ''::character varying NOT NULL,
    encrypted_password character varying DEFAULT ''::character varying NOT NULL,
    type character varying,
    sign_in_count integer DEFAULT 0 NOT NULL,
    confirmed_at timestamp without time zone,
    deleted_at timestamp with time zone
);
CREATE UNIQUE INDEX index_users_on_email ON public.users USING btree (email);
CREATE INDEX index_users_on_organization_id ON public.users USING btree (organization_id);

CREATE TABLE public.categories (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    parent_id uuid,
    name character varying NOT NULL
);

CREATE TABLE public.invoices (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    organization_id uuid NOT NULL,
    customer_id uuid NOT NULL,
    approver_id uuid,
    number bigint NOT NULL,
    status integer DEFAULT 0 NOT NULL,
    total_cents bigint DEFAULT 0 NOT NULL,
    vat numeric(5,2),
    rate double precision,
    tags character varying[] DEFAULT '{}'::character varying[],
    issued_on date,
    lock_version integer DEFAULT 0 NOT NULL,
    created_at timestamp(6) without time zone NOT NULL
);
COMMENT ON TABLE public.invoices IS 'What a customer owes';
COMMENT ON COLUMN public.invoices.total_cents IS 'with VAT, in cents';

-- polymorphic: nothing says what it refers to
CREATE TABLE public.attachments (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    record_type character varying NOT NULL,
    record_id uuid NOT NULL,
    filename character varying(255) NOT NULL
);

CREATE TABLE public.profiles (
    id uuid DEFAULT gen_random_uuid() NOT NULL PRIMARY KEY,
    user_id uuid NOT NULL,
    biography text
);
CREATE UNIQUE INDEX index_profiles_on_user_id ON public.profiles USING btree (user_id);

-- has_and_belongs_to_many: no key
CREATE TABLE public.categories_invoices (
    category_id uuid NOT NULL,
    invoice_id uuid NOT NULL
);

ALTER TABLE ONLY public.users ADD CONSTRAINT fk_rails_01 FOREIGN KEY (organization_id) REFERENCES public.organizations(id);
ALTER TABLE ONLY public.categories ADD CONSTRAINT fk_rails_02 FOREIGN KEY (parent_id) REFERENCES public.categories(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.invoices ADD CONSTRAINT fk_rails_03 FOREIGN KEY (organization_id) REFERENCES public.organizations(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.invoices ADD CONSTRAINT fk_rails_04 FOREIGN KEY (customer_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.invoices ADD CONSTRAINT fk_rails_05 FOREIGN KEY (approver_id) REFERENCES public.users(id);
ALTER TABLE ONLY public.profiles ADD CONSTRAINT fk_rails_06 FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.categories_invoices ADD CONSTRAINT fk_rails_07 FOREIGN KEY (category_id) REFERENCES public.categories(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.categories_invoices ADD CONSTRAINT fk_rails_08 FOREIGN KEY (invoice_id) REFERENCES public.invoices(id) ON DELETE CASCADE;
