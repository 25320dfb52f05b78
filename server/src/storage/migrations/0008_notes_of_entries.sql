-- What an operator notes of money: the reference by which who paid knows it, once for each payment, and a note of their own.
create table entry_notes (
  entry_id uuid primary key references entries,
  reference text unique check (length(reference) between 1 and 200),
  note text check (length(note) between 1 and 2000)
);
