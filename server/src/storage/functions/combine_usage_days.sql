-- Adds up the hours of usage_sums by day, for days that are over, the oldest first, and notes up to where: both, or neither. At most so many names of keys at
-- once, in the order of their index. What is added to such a day later, add_up_usage adds here too. Nobody adds up meanwhile. Says how many names it
-- took, at least 1 where a day was due; 0 where none is, and null where somebody else is at it.
create or replace function combine_usage_days(most integer) returns integer
language plpgsql volatile
set plan_cache_mode = force_generic_plan
as $$
declare
  combined usage_combined;
  due timestamptz;
  taken integer;
begin
  if not pg_try_advisory_xact_lock(hashtext('add_up_usage')) then return null; end if;
  select * into combined from usage_combined;
  select min(starts_at) into due from usage_totals
  where grain = 'day' and scope_id <> account_id and about not in ('operation', 'model') and starts_at >= coalesce(combined.until, '-infinity');
  -- Most of what is settled late is in its hours by then. Were it not, nothing would be wrong.
  if due is null or due + interval '24 hours 10 minutes' > clock_timestamp() then return 0; end if;
  if combined.until is distinct from due or combined.credential_id is null then
    -- A day from its beginning. Those in between have nothing.
    combined := row(true, due, '00000000-0000-0000-0000-000000000000', '', '')::usage_combined;
  end if;

  with places as materialized (
    select scope_id, about, subject from usage_totals
    where grain = 'day' and scope_id <> account_id and about not in ('operation', 'model') and starts_at = due
      and (scope_id, about, subject) > (combined.credential_id, combined.about, combined.subject)
    order by scope_id, about, subject limit most
  ), sums as (
    insert into usage_sums (credential_id, about, grain, subject, starts_at, operation, model, account_id, subject_label,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select used.credential_id, used.about, 'day', used.subject, due, used.operation, used.model, used.account_id, max(subject_label), sum(requests),
      sum(failed_requests), sum(input_tokens), sum(output_tokens), sum(cache_read_tokens), sum(cache_write_tokens), sum(value), sum(charged)
    -- Each looked up by itself.
    from places cross join lateral (
      select usage_sums.* from usage_sums
      where usage_sums.credential_id = places.scope_id and usage_sums.about = places.about and grain = 'hour' and usage_sums.subject = places.subject
        and starts_at >= due and starts_at < due + interval '24 hours'
      order by starts_at offset 0
    ) used
    group by 1, 2, 4, 6, 7, 8
  ), last as (
    select scope_id, about, subject from places order by scope_id desc, about desc, subject desc limit 1
  )
  select (select count(*) from places), last.scope_id, last.about, last.subject
  into taken, combined.credential_id, combined.about, combined.subject
  from (select) one left join last on true;

  if taken < most then combined := row(true, due + interval '24 hours', null, null, null)::usage_combined; end if;
  insert into usage_combined values (combined.*)
  on conflict (is_all) do update set until = excluded.until, credential_id = excluded.credential_id, about = excluded.about, subject = excluded.subject;
  return greatest(taken, 1);
end
$$;
