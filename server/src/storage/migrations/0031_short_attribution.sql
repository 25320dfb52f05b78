-- What the edge refuses, whoever writes: what is there already is not looked at. By itself, because it locks holds for a moment.
alter table holds add constraint short_attribution check (
  length(end_user_label) <= 64 and (tags is null or cardinality(tags) <= 8 and length(tags::text) <= 1000)
) not valid;
