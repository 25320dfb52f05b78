-- Whom we call. A slot is what an operation asks for; several upstreams can fill one, by priority and weight.
create table upstreams (
  id uuid primary key,
  slot text not null check (slot ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
  mode text not null check (mode in ('live', 'test')),
  base_url text not null check (length(base_url) between 1 and 2000),
  -- How a failure to reach it is told to callers.
  kind text not null check (kind in ('native', 'managed')),
  -- Sealed: readable with the master key alone, and only as this upstream's at this address.
  credential bytea check (length(credential) between 38 and 8192),
  -- The vendor's own words for the placeholders in our paths.
  segments jsonb not null default '{}' check (jsonb_typeof(segments) = 'object'),
  -- The lowest is asked first.
  priority integer not null default 0,
  weight integer not null default 1 check (weight > 0),
  enabled boolean not null default true,
  changed_at timestamptz not null default clock_timestamp()
);

create index upstreams_of_slot on upstreams (slot, mode);

-- Whoever changes an upstream, and however, every process learns of it with the commit.
create function tell_upstream() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform record_change('upstream', old.slot || ' ' || old.mode);
  end if;
  if tg_op <> 'DELETE' then
    perform record_change('upstream', new.slot || ' ' || new.mode);
  end if;
  return null;
end
$$;

create trigger upstream_changes after insert or update or delete on upstreams
for each row execute function tell_upstream();
