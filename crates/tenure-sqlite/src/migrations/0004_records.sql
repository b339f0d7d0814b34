-- Records and journals. Times are microseconds since 1970. `value` is JSON text, byte for byte as it was given.
-- `expires`: from then on it is as if it were not there, until it is removed; NULL if it is kept for good.

-- The last version that a record got: none is given again, also when the record is gone.
INSERT INTO meta (name, value) VALUES ('versions', 0);

CREATE TABLE record (
    shelf   TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    expires INTEGER,
    value   BLOB    NOT NULL,
    PRIMARY KEY (shelf, key)
) STRICT;
CREATE INDEX record_expires ON record (expires) WHERE expires IS NOT NULL;

-- The entries of all journals. Numbers are not used again.
CREATE TABLE journal_entry (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    journal TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    expires INTEGER,
    subject TEXT    NOT NULL,
    value   BLOB    NOT NULL
) STRICT;
CREATE INDEX journal_entry_journal ON journal_entry (journal, number);
CREATE INDEX journal_entry_subject ON journal_entry (journal, subject, number);
CREATE INDEX journal_entry_expires ON journal_entry (expires) WHERE expires IS NOT NULL;
