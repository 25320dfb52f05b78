-- What is sold, as the worker last saw it: operations, models, prices and limits, with the time of the observation in the bytes
-- themselves. One row: a snapshot replaces the one before. Bytes that are not those of the hash are refused here, and once more by
-- whoever reads them.
create table sales_snapshots (
  is_newest boolean primary key default true check (is_newest),
  content_hash text not null check (content_hash = encode(sha256(bytes), 'hex')),
  bytes bytea not null check (length(bytes) between 2 and 16777216),
  -- Since when no other could be made; null where the last attempt made this one.
  failed_at timestamptz
);

-- Read whole or not at all.
alter table sales_snapshots alter column bytes set storage external;
