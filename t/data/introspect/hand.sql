-- As somebody wrote it over the years: domains, views, partitions, generated
-- columns, names of all kinds, what is no table at all.

create schema shop;
create schema archive;
create schema "Geschäft.1";

create type shop.order_state as enum ('open', 'paid', 'sent');
create domain shop.email as varchar(120) check (value like '%@%');
create domain shop.work_email as shop.email not null;
create domain shop.money as numeric(12, 2);
create collation shop.nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);

create table shop.customers (
    customer_no uuid primary key default gen_random_uuid(),
    name text not null,
    mail shop.work_email,
    credit shop.money not null default 0,
    nickname text collate shop.nocase,
    since timestamptz(0) not null default now(),
    seen timestamptz,
    name_and_mail text generated always as (name || ' ' || mail::text) stored,
    serial integer generated always as identity
);
comment on table shop.customers is E'Who buys.\nNobody else: not "prospects", and no #hashtags';
comment on column shop.customers.credit is 'never below 0';

create table shop.orders (
    id uuid primary key,
    customer uuid not null references shop.customers,
    state shop.order_state not null default 'open',
    "select" text,
    "Größe" integer,
    "a b" integer,
    "aB" integer,
    a_b integer,
    "2nd" boolean,
    "true" boolean,
    weight numeric,
    flags bit(8),
    area box,
    tags text[],
    matrix integer[][],
    note json,
    total money
);

-- keys that no primary key says
create table shop.vouchers (code char(8) not null unique, worth shop.money not null, orders_id uuid references shop.orders on delete set null);
create table shop.coupons (token uuid not null, worth numeric(3, -2), unique (token));
create table shop.drafts (token uuid, unique (token));
create table shop.notes (body text);
create table shop.late (id uuid primary key deferrable, n integer);
create table shop.moods (mood shop.order_state primary key, said text);
create table shop.days (day date primary key, open boolean not null);
create table shop.partial (token uuid not null, gone boolean not null);
create unique index partial_token on shop.partial (token) where not gone;

-- names that somebody has already
create table shop.users (id uuid primary key, version integer, "createdAt" timestamptz, type text, links text, meta jsonb);
create table shop.operations (id uuid primary key, changes uuid references shop.users);
create table shop.changes (id uuid primary key, actions uuid references shop.operations);
create table archive.orders (id uuid primary key, customer_id uuid references shop.customers on delete cascade);
create table archive.services (id uuid primary key);
create table archive.roles (id uuid primary key, "order" uuid references archive.orders);
create table "Geschäft.1"."Kunden ""Süd""" (id uuid primary key, "Straße" text, "Straße.2" text);
create table "Geschäft.1"."таблица" (id uuid primary key, "поле" text, "другое" text);

-- two keys over one column, one not validated, one to a column that is no key
create table shop.shipments (
    id uuid primary key,
    order_id uuid references shop.orders,
    payer_id uuid,
    token uuid references shop.coupons (token),
    serial integer
);
create unique index customers_serial on shop.customers (serial);
alter table shop.shipments add constraint shipments_payer foreign key (payer_id) references shop.customers not valid;
alter table shop.shipments add constraint shipments_order_again foreign key (order_id) references shop.orders;
alter table shop.shipments add constraint shipments_serial foreign key (serial) references shop.customers (serial);

create view shop.open_orders as select id, customer from shop.orders where state = 'open';
create materialized view shop.totals as select customer, count(*) as n from shop.orders group by customer;
create table shop.events (id uuid not null, at timestamptz not null, what text, primary key (id, at)) partition by range (at);
create table shop.events_2026 partition of shop.events for values from ('2026-01-01') to ('2027-01-01');
create table shop.measures (id integer not null, day date not null, what text, primary key (id, day)) partition by range (day);
create table shop.measures_2026 partition of shop.measures for values from ('2026-01-01') to ('2027-01-01');
create table shop.vehicles (id uuid primary key, wheels integer);
create table shop.cars (doors integer) inherits (shop.vehicles);
create unlogged table shop.cache (id uuid primary key);
create table shop.ruled (id uuid primary key);
create rule nothing as on delete to shop.ruled do instead nothing;
create table shop.secured (id uuid primary key);
alter table shop.secured enable row level security, force row level security;
