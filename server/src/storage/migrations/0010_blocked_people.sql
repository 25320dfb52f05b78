-- Since when an operator has a person blocked, who then neither signs in nor gives grants. The audit log says why.
alter table people add column blocked_at timestamptz;
