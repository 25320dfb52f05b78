-- How the upstreams of a route differ from what their protocol says. The defaults are the protocols' own documents, so that a
-- process of the version before, which does not know these columns, makes routes that mean what they did.

alter table model_routes
  -- The member by which they limit output. Null: the one that the caller wrote, or the protocol's own.
  add column output_limit text check (length(output_limit) between 1 and 100),
  -- What becomes of members of a request that nobody here knows.
  add column unknown_members text not null default 'refuse' check (unknown_members in ('refuse', 'pass')),
  -- Whether they count reasoning among the output tokens, or apart from them and in the total alone.
  add column reasoning text not null default 'within' check (reasoning in ('within', 'apart')),
  -- Whether they stop generating, and so counting, when the connection is closed.
  add column on_abort text not null default 'runs_on' check (on_abort in ('stops', 'runs_on'));
