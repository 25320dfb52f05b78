-- Lists whose pages are few among very many others: changes of one kind, and keys of a state in one mode. While an index is built, nothing is written to its
-- table. So there is nothing else in this file: whoever only reads does not wait.

create index audit_in_order on audit (workspace_id, at, id);
-- One action, and all of a kind. Each in the order of time, which an index of the one can't give for the other.
create index audit_by_action on audit (workspace_id, action, at, id);
create index audit_by_kind on audit (workspace_id, split_part(action, '.', 1), at, id);

create index credentials_active on credentials (account_id, id) where active;
create index credentials_ended on credentials (account_id, id) where not active;

-- What workspaces know of somebody who has left them, which goes when the person is erased.
create index api_keys_of_person on api_keys (member_person) where member_person is not null;
create index budgets_of_members on budgets (subject) where kind = 'member';
