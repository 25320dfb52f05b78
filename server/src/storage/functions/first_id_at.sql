-- The lowest UUIDv7 of a moment. Charges are partitioned by the day that their id carries, so that an id has one place
-- whenever it is settled.
create or replace function first_id_at(at timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid;
