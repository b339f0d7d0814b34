-- Leases, who waits for them, the ledger, and app ids. Times are microseconds since 1970, ids sixteen bytes.

-- freed: grows whenever a lease becomes free, so that those who wait elsewhere look.
INSERT INTO meta (name, value) VALUES ('freed', 0);

-- A name that was ever held. A row is never deleted: its fence outlives every ownership and the name itself.
-- `forgotten`: 1 if somebody removed the name.
-- `freed`: since when it has been free, if it was released or broken.
-- What follows is the last ownership, all of it NULL once it was given back.
-- `phase`: 0 held, 1 being broken, 2 broken, 3 lapsed, as is on record. `until`: NULL if it has no end.
-- `ttl`: for how long at a time; NULL until it is given back. `meta` is JSON, and NULL if it is empty.
-- `began`: the number of the note with which it began.
CREATE TABLE lease (
    number    INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL,
    fence     INTEGER NOT NULL,
    forgotten INTEGER NOT NULL,
    freed     INTEGER NOT NULL,
    phase     INTEGER,
    id        BLOB,
    since     INTEGER,
    ttl       INTEGER,
    until     INTEGER,
    host      BLOB,
    who       TEXT,
    meta      TEXT,
    began     INTEGER
) STRICT;
-- Text is compared byte by byte, which is how names are.
CREATE UNIQUE INDEX lease_name ON lease (name);
-- Those that people see, so that a page does not pass by all that were ever forgotten.
CREATE INDEX lease_shown ON lease (name) WHERE forgotten = 0;
CREATE INDEX lease_until ON lease (until) WHERE phase = 0;

-- Who waits for which lease. `place`: who came first has the smallest.
CREATE TABLE lease_line (
    lease INTEGER NOT NULL,
    id    BLOB    NOT NULL,
    place INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (lease, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX lease_line_place ON lease_line (lease, place);
CREATE INDEX lease_line_until ON lease_line (until);

-- What happened, in order. It is only added to, and pruned by age. A number is never given twice.
-- `what`:    0 acquired, 1 took over, 2 renewed late, 3 changed, 4 refused, 5 broke, 6 lapsed, 7 released,
--            8 forgotten.
-- `present`: 1 while the ownership lasts that began with it: such a note is not pruned.
CREATE TABLE ledger (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    lease   INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    what    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    present INTEGER NOT NULL,
    host    BLOB,
    who     TEXT    NOT NULL,
    meta    TEXT,
    since   INTEGER,
    until   INTEGER,
    note    TEXT    NOT NULL
) STRICT;
CREATE INDEX ledger_lease ON ledger (lease);
CREATE INDEX ledger_at ON ledger (present, at);
-- Who was refused is told once for each ownership.
CREATE INDEX ledger_refused ON ledger (lease, fence, who, host) WHERE what = 4;

-- Which program uses which app id.
CREATE TABLE app (
    app     TEXT PRIMARY KEY,
    program TEXT    NOT NULL,
    host    BLOB    NOT NULL,
    since   INTEGER NOT NULL,
    seen    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
