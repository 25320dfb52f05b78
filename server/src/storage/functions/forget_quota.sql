create or replace function forget_quota() returns trigger
language plpgsql as $$
begin
  delete from upstream_quotas where upstream_id = old.id;
  delete from upstream_polls where upstream_id = old.id;
  return null;
end
$$;
