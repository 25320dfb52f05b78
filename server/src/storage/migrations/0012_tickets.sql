-- A key that is given away: whoever has it spends up to a total, until an end. Neither can be taken from it.
alter table api_keys
  add column is_ticket boolean not null default false,
  add constraint ticket_has_total_and_end check (not is_ticket or (expires_at is not null and allowance_id is not null));
create index tickets_of_workspace on api_keys (workspace_id, id) where is_ticket;
-- Those that are to be ended by a worker.
create index tickets_by_end on api_keys (expires_at) where is_ticket and revoked_at is null;
