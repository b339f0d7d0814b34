-- Jobs that have ended, by when they did: what failed since noon, and what has ended since somebody last looked. What has
-- ended together has one entry.
CREATE INDEX receipt_ended ON receipt (ended);
CREATE INDEX standing_ended ON standing (ended, seq) WHERE ended IS NOT NULL;
