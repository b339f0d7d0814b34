-- Rows that could not be read and that a repair has taken out of their tables. `seq` and `id` are of the job.
-- `source`: the table. `content`: the row as a JSON object.
CREATE TABLE quarantine (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    seq     bigint NOT NULL,
    id      text,
    source  text NOT NULL,
    reason  text NOT NULL,
    content text NOT NULL
);
