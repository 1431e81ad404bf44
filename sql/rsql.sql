--
-- The filter language: what parses, to what, and what is refused where
--

-- Shows a tree, or the fault, for each of several filters
CREATE FUNCTION pg_temp.parsed(VARIADIC filters text[])
	RETURNS TABLE (filter text, outcome text) LANGUAGE plpgsql AS $$
BEGIN
	FOREACH filter IN ARRAY filters LOOP
		BEGIN
			outcome := entityapi.parse_rsql(filter)::text;
		EXCEPTION WHEN syntax_error THEN
			outcome := sqlerrm;
		END;
		RETURN NEXT;
	END LOOP;
END $$;

-- Only whether, for what is too long to show
CREATE FUNCTION pg_temp.accepted(filter text) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN p.outcome LIKE '{%' THEN 'accepted' ELSE p.outcome END
	FROM pg_temp.parsed(filter) p
$$;

\pset format unaligned

-- Comparisons
SELECT * FROM pg_temp.parsed('a==1', 'a == 1', ' a==1 ', 'a!=1', 'a=gt=1',
	'a>1', 'a=ge=1', 'a>=1', 'a=lt=1', 'a<1', 'a=le=1', 'a<=1', 'a=in=1',
	'a=in=(1)', 'a=out=(1,2)', 'a=like=x%', 'a=ilike=x%', 'a=isnull=true');

-- Values
SELECT * FROM pg_temp.parsed('a==''''', 'a==""', 'a==''it\''s''',
	'a=="it''s"', 'a==''say \"hi\"''', 'a==x\y', 'a==''x\\y''',
	'a==(1)', 'a==2020-01-01T00:00:00Z', 'a==2020-01-01T00:00:00+02:00',
	'a==a:b/c?d[e]{f}|g^h', 'a==čau', 'a==''Žluťoučký kůň''', 'a==😀',
	'a==null', E'a==''tab\there''', 'a==''\č''', 'a==''100%''');

-- Lists
SELECT * FROM pg_temp.parsed('a=in=( 1 , 2 )', 'a=in=(a or b)',
	'a=in=(or or or)', 'a=in=(''a,b'',c)', 'a=out=("(",")")');

-- Paths
SELECT * FROM pg_temp.parsed('a.b==1', 'a.b.c==1', 'a.b.c.d.e.f==1',
	'čas.věc==1');

-- Words that are operators, names or values
SELECT * FROM pg_temp.parsed('order==1', 'android==1', 'and==1', 'or==1',
	'a==and', 'a==or', 'a==1 or or==2', 'a==1 and and==2', 'a==or or b==and',
	'a==1 and b==2', 'a==1  and  b==2', '(a==1) and (b==2)',
	'a==1 or (b==2)');

-- Precedence, grouping, and parts of parts of one kind
SELECT * FROM pg_temp.parsed('a==1,b==2;c==3', '(a==1,b==2);c==3',
	'a==1 ; b==2 , c==3', 'a==1 or b==2 and c==3', 'a==1,b==2,c==3',
	'a==1;(b==2;c==3)', '(a==1,(b==2,c==3)),d==4', '((((a==1))))');

-- Incomplete
SELECT * FROM pg_temp.parsed('', ' ', 'a', 'a==', 'a== ', '==1', 'a=1',
	'a=!1', 'a=in=', '(a==1', 'a==1)', '()', '(', ')', 'a==1;', ';a==1',
	'a==1;;b==2', 'a==1,', 'a==1 or', 'a==1 or ', 'a==1 and');

-- Not an operator
SELECT * FROM pg_temp.parsed('a===1', 'a<>1', 'a=>1', 'a~=1', 'a=GT=1',
	'a=foo=1', 'a=in1=1', 'a!1', 'a==1==2', '!a==1', 'not a==1', 'a = = 1',
	'a> =1', 'a=İn=1');

-- Not joined properly
SELECT * FROM pg_temp.parsed('(a==1)(b==2)', 'a==1 AND b==2', 'a==1 OR b==2',
	'a==1 and(b==2)', '(a==1)and b==2', 'a==1 b==2', 'a==1 && b==2');

-- Not a value
SELECT * FROM pg_temp.parsed('a==b c', 'a==''a'' b', 'a==a''b',
	'a==''un''closed''', 'a==''unclosed', 'a=="unclosed''', 'a==''x\',
	'a==''x\''', 'a==x=y', 'a==<1', 'a==!');

-- Control characters stand in quotes only
SELECT pg_temp.accepted(f.filter)
	FROM (VALUES (E'a==x\ty'), (E'a==\x7F'), (E'a==\u0085'), (E'a\t==1'),
		(E'\na==1'), (E'a==''\x01\x7F\u0085''')) f (filter);

-- Not a list
SELECT * FROM pg_temp.parsed('a=in=()', 'a=in=( )', 'a=in=(1,)',
	'a=in=(,1)', 'a=in=(1,,2)', 'a=in=(a;b)', 'a=in=((1),2)', 'a=in=(1 2)',
	'a=in=(1', 'a=in=(1,', 'a=in=(a and b)', 'a==(1,2)', 'a=gt=(1,2)',
	'a=like=(a,b)', 'a=isnull=(true,false)', 'a=in=1,2');

-- Not a selector
SELECT * FROM pg_temp.parsed('''a''==1', '"a"==1', '.a==1', 'a.==1',
	'a..b==1', '.==1', 'a.b.c.d.e.f.g==1', 'a b==1', 'a .b==1');

-- Positions count characters
SELECT * FROM pg_temp.parsed('č==😀;==1', 'a==''😀😀'' x');

-- Injection is data or a fault, never SQL
SELECT * FROM pg_temp.parsed('a==1'' OR ''1''=''1',
	'a=="x\";drop table x;--"', 'a==''\''); drop table x;--''',
	'a=in=(1);select', 'a;--==1', 'a->>''x''==1', 'a::text==1', 'a==’x’');

-- Limits
SELECT depth, pg_temp.accepted(repeat('(', depth) || 'a==1' ||
							   repeat(')', depth))
	FROM (VALUES (64), (65), (2000)) d (depth);
SELECT depth, pg_temp.accepted(repeat('(', depth))
	FROM (VALUES (64), (65), (100000)) d (depth);
SELECT n, pg_temp.accepted(rtrim(repeat('a==1,', n), ','))
	FROM (VALUES (256), (257)) c (n);
SELECT n, pg_temp.accepted('a=in=(' || rtrim(repeat('1,', n), ',') || ')')
	FROM (VALUES (1000), (1001)) c (n);
SELECT n, pg_temp.accepted('a==' || repeat('x', n))
	FROM (VALUES (4093), (4094)) c (n);

-- What is shown parses again to the same: whatever bytes a value has
SELECT count(*) AS values_kept
	FROM generate_series(1, 1000) i,
		LATERAL (SELECT string_agg(chr(c.code), '' ORDER BY c.k)
				 FROM generate_series(1, 12) k (k),
					LATERAL (SELECT k.k, 1 + (i * 7919 + k.k * 104729) % 1000)
						c (k, code)) v (raw),
		LATERAL (SELECT 'a==''' || replace(replace(v.raw, '\', '\\'),
			'''', '\''') || '''') f (filter)
	WHERE entityapi.parse_rsql(f.filter) #>> '{values,0}' = v.raw;

-- Pieces of the language in any order are a tree or a fault, nothing else.
-- Fewer where every cache is discarded all the time, as that takes hours.
SELECT bool_or(o.outcome = 'accepted') AS some_parse,
		bool_or(o.outcome LIKE 'filter: % at position %') AS some_do_not,
		bool_and(o.outcome = 'accepted' OR
				 o.outcome LIKE 'filter: % at position %') AS nothing_else
	FROM (SELECT string_agg(
				(ARRAY['a==1', 'a.b', '==', '=in=', '(', ')', ',', ';', ' ',
					' or ', ' and ', '''', '"', '\', 'č', '=', '!', 'b!=2'])
				[1 + (i * 31 + k * (i % 97) * 17 + k * k * (i % 13)) % 18],
				'' ORDER BY k)
			FROM generate_series(1, CASE current_setting('debug_discard_caches')
				WHEN '0' THEN 20000 ELSE 200 END) i,
				LATERAL generate_series(1, 1 + i % 9) k
			GROUP BY i) t (filter),
		LATERAL pg_temp.accepted(t.filter) o (outcome);
