create table words(id integer primary key, word text, length int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 12)
insert into words select i, 'word' || i, i * 7 % 5 from n;
create index by_length on words(length);
select length, count(*), max(word) from words group by length order by 2 desc, 1;
select a.word from words a join words b on a.id = b.length where b.id > 9;
begin; delete from words where length = 2; rollback;
select count(*) from words where word like '%1%';
