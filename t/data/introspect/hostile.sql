-- What somebody may call things who means no good.

create schema U&"../../etc\000a\0009#!/bin/sh: {x}";
create schema "--- !!binary";

create table U&"../../etc\000a\0009#!/bin/sh: {x}"."passwd
# root: [0]
---
kind: Entity" (id uuid primary key, "
spec: {permissions: {'*': [read, update]}}" text, "# no" integer, U&"a\2028b\0085c\0007d\001b[31me" boolean, "- x: &a *a" text,
	"'" text, """" text, "\" text, "," text, "{}" text, "~" text, "null" text, "No" text, " lead" text, "trail " text,
	U&"\FEFFbom" text, U&"\+01F600" text, "%TAG" text, "<<" text, "source" text, "=" text, "!!str x" text);
comment on table U&"../../etc\000a\0009#!/bin/sh: {x}"."passwd
# root: [0]
---
kind: Entity" is E'*/ """ \'\'\' \n---\nkind: Roles\n\u0001\u001b]0;title\u0007\r\n\u2029\uFFFE\U0010FFFF  ends: ';
create table "--- !!binary".aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg (id uuid primary key,
	aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff_id uuid
	references "--- !!binary".aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg on delete cascade,
	aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg text);
create table "--- !!binary"."aaaaaaaaaa.bbbbbbbbb""ccccccccccddddddddddeeeeeeeeeeffffffffffggg" (id uuid primary key);
create table "--- !!binary"."Order" (id uuid primary key);
create table "--- !!binary"."order" (id uuid primary key);
create table "--- !!binary"."ORDERS" (id uuid primary key);
create table "--- !!binary"."or-ders" (id uuid primary key);
create table "--- !!binary"."service" (id uuid primary key);
create table "--- !!binary"."日本" (id uuid primary key, "一" text, "二" text, "三" uuid references "--- !!binary"."日本");
create table "--- !!binary"."日本語" (id uuid primary key);
create table "--- !!binary".nothing ();
create table "--- !!binary".only_id (id uuid primary key);
create table public."a.b" (id uuid primary key);
create table public."""" (id uuid primary key);
create table public."%n%s%1$s" ("%s" uuid primary key, "%d" text);
