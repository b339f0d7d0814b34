-- Records and journals. Text is compared byte by byte, `value` is JSON text, byte for byte as it was given.
-- Whoever writes has the lock of each key and of each journal first, which are taken in the order of their numbers. So
-- the versions of a key and the numbers of a journal, which come from sequences, are seen in their order.
-- `expires`: from then on it is as if it were not there, until it is removed; NULL if it is kept for good.
CREATE TABLE record (
    shelf   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    expires bigint,
    value   bytea  NOT NULL,
    PRIMARY KEY (shelf, key)
);
CREATE INDEX record_expires ON record (expires) WHERE expires IS NOT NULL;
-- No version is given twice, also not to a key that was removed meanwhile.
CREATE SEQUENCE record_version;

-- The entries of all journals.
CREATE TABLE journal_entry (
    journal text COLLATE "C" NOT NULL,
    number  bigint GENERATED ALWAYS AS IDENTITY,
    at      bigint NOT NULL,
    expires bigint,
    subject text COLLATE "C" NOT NULL,
    value   bytea  NOT NULL,
    PRIMARY KEY (journal, number)
);
CREATE INDEX journal_entry_subject ON journal_entry (journal, subject, number);
CREATE INDEX journal_entry_expires ON journal_entry (expires) WHERE expires IS NOT NULL;
