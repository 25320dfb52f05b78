-- Wrong codes and recovery codes in a row since the second factor was last passed, or a password set.
alter table people add column factor_failures integer not null default 0;
