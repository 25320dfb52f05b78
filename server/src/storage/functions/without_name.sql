-- What a row of the audit log says, with the name in it erased.
create or replace function without_name(facts jsonb) returns jsonb
language sql immutable parallel safe
return case when facts ? 'name' then facts || '{"name": "erased"}' else facts end;
