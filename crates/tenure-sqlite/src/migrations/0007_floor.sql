-- floor: every fence that is granted is greater. It takes the place of `epoch`, which was the upper part of each.
-- A file cannot tell whether it is a copy, or was put back as it was once. So each program that opens it raises the
-- floor, and a copy needs no mark.
UPDATE meta SET name = 'floor', value = value << 40 WHERE name = 'epoch';
DELETE FROM meta WHERE name = 'restored';
