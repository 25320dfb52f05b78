-- When the user confirmed to us for whom the link is, or declined; once, whatever comes of it.
alter table link_attempts add column decided_at timestamptz;
