-- What else was agreed about a queue: how many jobs may wait in it, and what holds for those that say nothing of their own.
-- JSON, NULL if nothing was. `gone`: whether it was removed, and nobody has named it since: its lanes keep their ids.
ALTER TABLE queue ADD COLUMN terms TEXT;
ALTER TABLE queue ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
