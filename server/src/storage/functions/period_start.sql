-- Stable, as date_trunc is: declared immutable it would not be inlined.
create or replace function period_start(period text, at timestamptz) returns timestamptz
language sql stable parallel safe
return case period
  when 'day' then date_trunc('day', at, 'UTC')
  when 'week' then date_trunc('week', at, 'UTC')
  when 'month' then date_trunc('month', at, 'UTC')
  else timestamptz '2000-01-01 00:00:00+00'
end;
