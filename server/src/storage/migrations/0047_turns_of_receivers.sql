-- Who of a destination receives a message, as a hash, so that each has its turn, and what it is called among those of which the newest is enough.
alter table outbox add column receiver bytea, add column notice text;
create index outbox_of_receiver on outbox (receiver) where receiver is not null and due_at is not null;
