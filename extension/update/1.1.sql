-- What 1.2 changes of 1.1 that cannot be derived from the parts in
-- extension/install, which is all about tables that are there already (new
-- columns at the end, constraints, indexes without a name, rows) and what goes.

-- Names are compared in NFKC now.  Of names that have become one, the oldest
-- account keeps it; the others go by their old keys, and log in by these.
UPDATE entityapi.account a
SET username_key = k.key
FROM (
	SELECT DISTINCT ON (f.key) f.id, f.key
	FROM (
		SELECT n.id, n.created_at,
			pg_catalog.normalize(pg_catalog.lower(pg_catalog.normalize(n.username, 'NFKC')), 'NFKC') AS key
		FROM entityapi.account n
		WHERE n.username_key IS NOT NULL
	) f
	ORDER BY f.key, f.created_at, f.id
) k
WHERE k.id OPERATOR(pg_catalog.=) a.id AND a.username_key OPERATOR(pg_catalog.<>) k.key
	AND NOT EXISTS (
		SELECT FROM entityapi.account o WHERE o.username_key OPERATOR(pg_catalog.=) k.key
	);

-- After the parts
