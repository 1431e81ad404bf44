-- What entities and fields were called, so that records of the audit log can
-- be read under the names of today.  A row for each name and the revisions of
-- the manifests that it was good for.  It holds what continues until now:
-- what is taken away goes from here as well, and while the log is off for
-- entities it is empty.

CREATE TABLE entityapi.past_name (
	entity text NOT NULL,
	field text NOT NULL,
	name text NOT NULL,
	first integer NOT NULL,
	last integer,
	PRIMARY KEY (entity, field, first)
);

COMMENT ON TABLE entityapi.past_name IS
	'What records of the audit log call entities and fields, by revisions';
COMMENT ON COLUMN entityapi.past_name.field IS
	'As it is called today; empty: the entity, which records call by its type';
COMMENT ON COLUMN entityapi.past_name.last IS
	'Null: it is still called so';

SELECT pg_catalog.pg_extension_config_dump('entityapi.past_name', '');
