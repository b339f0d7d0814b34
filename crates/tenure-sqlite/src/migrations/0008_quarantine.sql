-- Rows that could not be read and that a repair has taken out of their tables. `seq` and `id` (hexadecimal) are of the job.
-- `source`: the table. `content`: the row as a JSON object; bytes, and text that is none, are {"hex": ...}.
CREATE TABLE quarantine (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    id      TEXT,
    source  TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    content TEXT    NOT NULL
) STRICT;
