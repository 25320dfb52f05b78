-- The credential in whose row the running period of an allowance stands, or stood last. A file of its own, for the reason that 0038 gives.
alter table allowances add column credential_id uuid;
