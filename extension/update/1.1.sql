-- From 1.1: what cannot be derived from the parts in extension/install.

-- After the parts

-- a signing key that is revoked where rows come by replication
ALTER TABLE entityapi.signing_key ENABLE ALWAYS TRIGGER announce_keys;
