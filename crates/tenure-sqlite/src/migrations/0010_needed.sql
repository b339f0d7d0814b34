-- Unfinished jobs (`seq`) and the jobs that they name in `after_jobs` (`on_seq`), ended ones included. Pruning removes no job
-- that is named here.
CREATE TABLE needed_by (
    on_seq INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (on_seq, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX needed_by_seq ON needed_by (seq);
-- Terms that cannot be read name no job.
INSERT OR IGNORE INTO needed_by (on_seq, seq)
    SELECT o.seq, j.seq FROM job j LEFT JOIN standing s ON s.seq = j.seq
    CROSS JOIN json_each(CASE WHEN json_valid(j.terms) THEN j.terms END, '$.after.jobs') named
    CROSS JOIN job o ON o.id = unhex(named.value, '-')
    WHERE j.terms IS NOT NULL AND ifnull(s.state, 0) < 2 AND o.seq < j.seq;
