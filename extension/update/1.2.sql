-- Changes of 1.3 that cannot be derived from the parts in extension/install.

-- It has one more column.
DROP FUNCTION IF EXISTS entityapi.list_differences();
