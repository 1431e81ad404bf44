-- As Hibernate writes it (hbm2ddl) in its own schema: sequences, enums as
-- checked texts, joined inheritance, embedded ids, tables of Envers.

create schema crm;
create sequence crm.person_seq start with 1 increment by 50;
create sequence crm.revinfo_seq start with 1 increment by 50;

create table crm.person (id bigint not null, birth_date date, name varchar(255) not null, primary key (id));
create table crm.employee (salary numeric(38,2), id bigint not null, boss_id bigint, primary key (id));
create table crm.account (id uuid not null, balance numeric(19,4) not null, opened timestamp(6) with time zone not null,
    state varchar(255) not null check (state in ('OPEN','FROZEN','CLOSED')), version bigint not null, owner_id bigint,
    primary key (id));
create table crm.booking (id uuid not null, amount numeric(19,4) not null, memo varchar(140), booked_at timestamp(6),
    rate float(53), day smallint, account_id uuid not null, reverses_id uuid unique, primary key (id));
create table crm.order_line (order_no integer not null, line_no integer not null, booking_id uuid, quantity integer not null,
    primary key (line_no, order_no));
create table crm.line_note (id uuid not null, order_no integer, line_no integer, note oid, primary key (id));
create table crm.account_tags (account_id uuid not null, tags varchar(255));
create table crm.revinfo (rev integer not null, revtstmp bigint, primary key (rev));
create table crm.account_aud (id uuid not null, rev integer not null, revtype smallint, balance numeric(19,4),
    primary key (rev, id));

alter table if exists crm.employee add constraint FKem01 foreign key (id) references crm.person;
alter table if exists crm.employee add constraint FKem02 foreign key (boss_id) references crm.employee;
alter table if exists crm.account add constraint FKac01 foreign key (owner_id) references crm.person;
alter table if exists crm.booking add constraint FKbo01 foreign key (account_id) references crm.account on delete cascade;
alter table if exists crm.booking add constraint FKbo02 foreign key (reverses_id) references crm.booking;
alter table if exists crm.order_line add constraint FKol01 foreign key (booking_id) references crm.booking on delete set null;
alter table if exists crm.line_note add constraint FKln01 foreign key (order_no, line_no) references crm.order_line (order_no, line_no) on delete cascade;
alter table if exists crm.account_tags add constraint FKat01 foreign key (account_id) references crm.account on delete cascade;
alter table if exists crm.account_aud add constraint FKaa01 foreign key (rev) references crm.revinfo;
