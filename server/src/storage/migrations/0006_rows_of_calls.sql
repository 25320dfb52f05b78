-- The statements that begin and end calls take what calls ask as rows of these types: PostgreSQL takes longer for an array of each field. A process writes fields by place,
-- so a type that was released never changes.
-- Functions: give_back.
create type account_to_begin as (id uuid, amount bigint);
create type credential_to_begin as (
  id uuid, account_id uuid, allowance uuid, seconds integer, calls integer, places integer, tokens bigint, amount bigint,
  request_limit integer, token_limit bigint, place_limit integer
);
create type call_to_begin as (
  id uuid, account_id uuid, credential_id uuid, allowance uuid, operation text, amount bigint, terms text, tokens bigint, at_once boolean,
  model text, end_user uuid, end_user_label text, tags text
);
create type call_to_end as (
  id uuid, account_id uuid, credential_id uuid, allowance uuid, amount bigint, voided boolean, value bigint, upstream_cost bigint, executed boolean, failed boolean,
  input_tokens bigint, output_tokens bigint, cache_read_tokens bigint, cache_write_tokens bigint, route text
);
drop function if exists give_back(uuid[], bigint[], integer[], integer[]);
