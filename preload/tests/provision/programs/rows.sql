-- Everything is made by the program itself, so that the file must be the same wherever the memory is from.
pragma cache_size = -200000;
pragma mmap_size = 0;
create table rows (id integer primary key, value integer, words text);
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 150000)
insert into rows select n, (n * 7919) % 1000003, printf('row %d of %x', n, n * 31) from numbers;
create index by_value on rows (value);
create index by_words on rows (words);
select count(*), sum(value), min(words), max(words) from rows;
select value % 100 as part, count(*), total(id) from rows group by part order by part;
update rows set words = words || ' again' where value % 3 = 0;
delete from rows where value % 7 = 0;
select a.id, b.id from rows a join rows b on a.value = b.value + 1 order by a.value limit 20;
vacuum;
pragma integrity_check;
