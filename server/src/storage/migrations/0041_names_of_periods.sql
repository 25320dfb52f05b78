-- Windows and periods under their old names, for those who read them: all of them, wherever they stand. They are changed by functions alone.

-- So that nobody is in a statement that names the tables.
lock table accounts in access exclusive mode;

drop view kept_periods;
drop view group_windows;
drop trigger windows_of_credentials on windows;
drop function refuse_old_window();

-- Whoever waited for the last migration to mark calls as unsettled did that by the text of before, and left the count as it was. None of those is running any more.
-- The few that count are found first: PostgreSQL knows nothing yet of how many have which count.
update credentials row set calls_at_once = (select count(*) from holds where credential_id = row.id and at_once)
where row.id = any (array(select id from credentials where calls_at_once > 0 union select credential_id from holds where at_once))
  and row.calls_at_once <> (select count(*) from holds where credential_id = row.id and at_once);

-- Of what was there before, the windows of the group "all" are read by nobody.
alter table windows rename to group_windows;
alter table allowance_periods rename to kept_periods;

create view windows as
select credential_id, limit_group, started_at, requests, tokens from group_windows where limit_group <> 'all'
union all
select id, 'all', all_started_at, all_requests, all_tokens from credentials where all_started_at is not null;

create view allowance_periods as
select allowance_id, starts_at, amount, charged, held from kept_periods
union all
select budget_id, budget_starts_at, budget_amount, budget_charged, budget_held from credentials where budget_id is not null;
