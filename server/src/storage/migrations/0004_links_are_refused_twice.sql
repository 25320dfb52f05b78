-- When a platform first refused the tokens of a link: its owner was told then, and the next call tries once more before it ends.
alter table link_sessions add column refused_at timestamptz;
