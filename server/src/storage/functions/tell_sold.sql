-- Whoever switches something off or on, and however, every process learns of it with the commit. Which models are listed follows from it too.
create or replace function tell_sold() returns trigger
language plpgsql as $$
begin
  perform record_change('sold', 'all');
  perform record_change('models', 'all');
  return null;
end
$$;
