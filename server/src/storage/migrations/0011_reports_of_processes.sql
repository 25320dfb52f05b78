-- What each process says of itself, as JSON, written with its lease. A row goes with its lease: at once where the process stops, and later where it died.
create table process_reports (
  owner_id uuid primary key references owners on delete cascade,
  at timestamptz not null,
  report text not null check (octet_length(report) <= 8192)
) with (fillfactor = 50);
