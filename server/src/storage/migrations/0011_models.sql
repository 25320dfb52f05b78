-- The models that are sold, what their tokens cost, and by whom they are answered.

create table models (
  -- The name that callers ask for.
  id text primary key check (id ~ '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$'),
  display_name text not null check (length(display_name) between 1 and 200),
  owned_by text not null check (length(owned_by) between 1 and 200),
  context_window integer not null check (context_window > 0),
  -- How long an answer may get where the caller names no limit, and the most that a caller may name.
  output_cap integer not null check (output_cap > 0),
  output_most integer not null check (output_most > 0),
  -- The most tokens of one part that is no text, by its kind. A kind that is not named may fill the context window.
  part_tokens jsonb not null default '{}',
  tokenizer text not null check (tokenizer in ('o200k', 'cl100k', 'bytes_3')),
  enabled boolean not null default true,
  created_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  constraint cap_is_within_most check (output_cap <= output_most),
  constraint part_tokens_are_readable check (
    jsonb_typeof(part_tokens) = 'object'
    and part_tokens - array['image', 'audio', 'file'] = '{}'
    and not jsonb_path_exists(
      part_tokens, 'strict $.* ? (@.type() != "number" || @ < 1 || @ > 2147483647 || @ != @.floor())'
    )
  )
);

-- Whether these are prices of pictures by their size and quality, as decimal texts: {"1024x1024/high": "0.167"}.
create function are_picture_prices(prices jsonb) returns boolean
language sql immutable
return jsonb_typeof(prices) = 'object'
  and prices <> '{}'
  and not jsonb_path_exists(
    prices, 'strict $.* ? (@.type() != "string" || !(@ like_regex "^[0-9]{1,18}([.][0-9]{1,18})?$"))'
  )
  and not jsonb_path_exists(
    prices, 'strict $.keyvalue() ? (!(@.key like_regex "^[A-Za-z0-9._-]{1,32}/[A-Za-z0-9._-]{1,32}$"))'
  );

-- What a million tokens cost, in USD. A row is never changed: the newest version of a model is its price. Versions outlive
-- the model, so that one that comes back does not give an old number to a new price.
create table model_prices (
  model text not null check (length(model) between 1 and 200),
  version integer not null check (version > 0),
  input numeric not null,
  output numeric not null,
  -- Null: as input.
  cache_read numeric,
  cache_write numeric,
  -- What the upstream charges us. Null: not known; of a cache: as input.
  provider_input numeric,
  provider_output numeric,
  provider_cache_read numeric,
  provider_cache_write numeric,
  -- What one picture costs, of a model that sells them by the piece: then tokens cost nothing beside it.
  images jsonb,
  provider_images jsonb,
  created_at timestamptz not null default clock_timestamp(),
  primary key (model, version),
  constraint input_is_readable check (input >= 0 and input < 1e18 and scale(input) <= 18),
  constraint output_is_readable check (output >= 0 and output < 1e18 and scale(output) <= 18),
  constraint cache_read_is_readable check (cache_read >= 0 and cache_read < 1e18 and scale(cache_read) <= 18),
  constraint cache_write_is_readable check (cache_write >= 0 and cache_write < 1e18 and scale(cache_write) <= 18),
  constraint provider_input_is_readable
    check (provider_input >= 0 and provider_input < 1e18 and scale(provider_input) <= 18),
  constraint provider_output_is_readable
    check (provider_output >= 0 and provider_output < 1e18 and scale(provider_output) <= 18),
  constraint provider_cache_read_is_readable
    check (provider_cache_read >= 0 and provider_cache_read < 1e18 and scale(provider_cache_read) <= 18),
  constraint provider_cache_write_is_readable
    check (provider_cache_write >= 0 and provider_cache_write < 1e18 and scale(provider_cache_write) <= 18),
  constraint images_are_readable check (are_picture_prices(images)),
  constraint provider_images_are_readable check (are_picture_prices(provider_images)),
  constraint one_way_to_pay check (images is null or (input = 0 and output = 0))
);

-- Where a model can be asked: at the upstreams of a slot, of the caller's mode, in a protocol and under a name of theirs.
create table model_routes (
  id uuid primary key,
  model text not null references models on delete cascade,
  slot text not null check (slot ~ '^[a-z0-9][a-z0-9_.-]{0,99}$'),
  protocol text not null
    check (protocol in ('openai', 'anthropic', 'gemini', 'openai_embeddings', 'openai_images')),
  upstream_model text not null check (length(upstream_model) between 1 and 200),
  -- The lowest is asked first; among equals, each as often as its weight says.
  priority integer not null default 0,
  weight integer not null default 1 check (weight > 0),
  enabled boolean not null default true,
  unique (model, slot, protocol, upstream_model)
);

-- Whoever changes what belongs to a model, and however, every process learns of it with the commit. The argument names the
-- column that has the model's name.
create function tell_model() returns trigger
language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform record_change('model', to_jsonb(old) ->> tg_argv[0]);
  end if;
  if tg_op <> 'DELETE' then
    perform record_change('model', to_jsonb(new) ->> tg_argv[0]);
  end if;
  return null;
end
$$;

create trigger model_changes after insert or update or delete on models
for each row execute function tell_model('id');
create trigger model_price_changes after insert or update or delete on model_prices
for each row execute function tell_model('model');
create trigger model_route_changes after insert or update or delete on model_routes
for each row execute function tell_model('model');

-- The list says which models can be asked in which mode, so upstreams change it too.
create function tell_models() returns trigger
language plpgsql as $$
begin
  perform record_change('models', 'all');
  return null;
end
$$;

create trigger list_changes after insert or update or delete on models
for each statement execute function tell_models();
create trigger list_changes after insert or update or delete on model_prices
for each statement execute function tell_models();
create trigger list_changes after insert or update or delete on model_routes
for each statement execute function tell_models();
create trigger list_changes after insert or update or delete on upstreams
for each statement execute function tell_models();

-- How many requests a minute our account there may send. Null: nobody counts.
alter table upstreams add column requests_per_minute integer check (requests_per_minute > 0);

-- How much of it the processes have taken for themselves in the current window. A crash of PostgreSQL forgets it, which
-- sends one more allowance at the most.
create unlogged table upstream_quotas (
  upstream_id uuid primary key,
  started_at timestamptz not null,
  leased integer not null check (leased >= 0)
) with (fillfactor = 50);

-- Gives a process some of an upstream's quota: as many as it needs now, and some ahead of need, of which a twentieth of what
-- is left is the most. What one process has ahead and never uses is lost to the others until the window ends.
create function lease_quota(
  upstream uuid,
  quota integer,
  seconds double precision,
  needed integer,
  ahead integer,
  out granted integer,
  out ends_in_ms double precision
)
language plpgsql volatile as $$
declare
  at timestamptz;
  since timestamptz;
  taken integer;
  rest integer;
begin
  insert into upstream_quotas (upstream_id, started_at, leased) values (upstream, clock_timestamp(), 0)
  on conflict (upstream_id) do nothing;
  select started_at, leased into since, taken from upstream_quotas where upstream_id = upstream for update;
  -- Read after the wait for the row. A clock that was set back begins a new window, as nobody knows when the old one ends.
  at := clock_timestamp();
  if since is null or at < since or at >= since + make_interval(secs => seconds) then
    since := at;
    taken := 0;
  end if;
  rest := greatest(0, quota - taken);
  granted := least(rest, needed + least(ahead, rest / 20));
  update upstream_quotas set started_at = since, leased = taken + granted where upstream_id = upstream;
  ends_in_ms := extract(epoch from since + make_interval(secs => seconds) - at) * 1000;
end
$$;

create function forget_quota() returns trigger
language plpgsql as $$
begin
  delete from upstream_quotas where upstream_id = old.id;
  return null;
end
$$;

create trigger quota_of_removed after delete on upstreams
for each row execute function forget_quota();
