-- What changed, for the caches of every process. Rows are written in the transaction of the change itself and are read
-- by (transaction_id, id): ids alone are taken before commit, so a lower one can appear after a higher one was read.

create table change_log (
  id bigint generated always as identity primary key,
  transaction_id xid8 not null default pg_current_xact_id(),
  topic text not null check (length(topic) between 1 and 64),
  key text not null check (length(key) <= 512),
  changed_at timestamptz not null default clock_timestamp()
);

create index change_log_in_order on change_log (transaction_id, id);

-- NOTIFY is a hint that saves the wait for the next poll. It serialises the commits of all transactions that use it, so
-- the statements that begin and end calls never come here.
create function record_change(topic text, key text) returns void
language sql volatile
begin atomic
  insert into change_log (topic, key) values (record_change.topic, record_change.key);
  select pg_notify('farebox_changes', '');
end;

-- A reader's place is a row that it has read, so there is always one to start from.
select record_change('change_log', 'created');
