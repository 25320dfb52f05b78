-- What becomes of a stream whose caller has left, where the request itself does not say: finish has the upstream heard out, cancel
-- gives it up where that stops its meter. Null is the default of the installation.
alter table api_keys add column on_disconnect text check (on_disconnect in ('finish', 'cancel'));
alter table grants add column on_disconnect text check (on_disconnect in ('finish', 'cancel'));
