CREATE TABLE numbers (id INTEGER PRIMARY KEY, value INTEGER, name TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
INSERT INTO numbers SELECT i, i * 7919 % 100003, printf('name %d', i * 31 % 65537) FROM n;
CREATE INDEX by_value ON numbers (value);
CREATE INDEX by_name ON numbers (name);
SELECT value % 100, count(*), sum(length(name)) FROM numbers GROUP BY 1 ORDER BY 2, 3 LIMIT 3;
SELECT count(*) FROM numbers a JOIN numbers b ON a.value = b.id WHERE b.name LIKE '%77%';
SELECT name, count(*) OVER (PARTITION BY value % 10 ORDER BY name) FROM numbers ORDER BY 2 DESC LIMIT 3;
UPDATE numbers SET name = upper(name) || value WHERE value % 3 = 0;
DELETE FROM numbers WHERE value % 5 = 0;
CREATE VIRTUAL TABLE words USING fts5(text);
INSERT INTO words SELECT name || ' ' || value FROM numbers LIMIT 40000;
SELECT count(*) FROM words WHERE words MATCH 'name AND 1*';
SELECT json_extract(json_object('id', id, 'name', name), '$.name') FROM numbers ORDER BY 1 DESC LIMIT 3;
