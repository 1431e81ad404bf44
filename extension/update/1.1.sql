-- What 1.2 changes of 1.1 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- a mapping that was good until now is that of the role that has the name
ALTER TABLE entityapi.mapped_role ADD COLUMN role_oid oid;
UPDATE entityapi.mapped_role m SET role_oid = r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = m.role;

-- After the parts

-- a signing key that is revoked where rows come by replication
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;
