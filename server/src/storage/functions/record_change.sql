-- NOTIFY is a hint that saves the wait for the next poll. It serialises the commits of all transactions that use it, so
-- the statements that begin and end calls never come here.
create or replace function record_change(topic text, key text) returns void
language sql volatile
begin atomic
  insert into change_log (topic, key) values (record_change.topic, record_change.key);
  select pg_notify('farebox_changes', '');
end;
