-- Jobs that have ended, by when they did: what failed since noon, and what has ended since somebody last looked.
CREATE INDEX standing_ended ON standing (ended) WHERE ended IS NOT NULL;
