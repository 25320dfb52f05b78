-- Whether processes of this release may begin and end calls by their own statements. A later migration that changes what a call writes, or where, replaces it by one that
-- says no: then all calls are judged by functions, which it replaces too. It is a part of the plans that ask for it, and costs nothing.
create or replace function calls_may_fit() returns boolean
language sql stable parallel safe
return true;
