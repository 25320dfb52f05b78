-- Terms of a key that an operator has set, by the names that callers know: members do not change them.
alter table api_keys add column operator_terms text[] not null default '{}';
