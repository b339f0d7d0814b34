-- A host that fell silent is kept for some time, so that people see that it is gone. `heard`: when it last announced itself, NULL if
-- a program that does not know of it wrote the row.
ALTER TABLE host ADD COLUMN heard bigint;
-- Jobs that were taken from a host. `ended_by` 5 is lost.
CREATE INDEX attempt_lost ON attempt (holder, seq) WHERE ended_by = 5;
