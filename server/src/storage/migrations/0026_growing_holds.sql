-- How what an upstream makes is bounded while a stream runs, so that its hold can grow with the answer: seen is a route whose output is
-- streamed as it is made, every token of which counts as so many bytes at the least; a top speed bounds what is made unseen.
alter table model_routes
  add column output_shown text not null default 'hidden' check (output_shown in ('seen', 'hidden')),
  add column token_bytes smallint not null default 1 check (token_bytes between 1 and 4),
  add column top_speed integer check (top_speed between 1 and 100000);

-- What is held for a stream where the request itself does not say: full holds the most that it can cost, growing what it needs as it goes
-- on. Null is the default of the installation.
alter table api_keys add column holding text check (holding in ('full', 'growing'));
alter table grants add column holding text check (holding in ('full', 'growing'));
