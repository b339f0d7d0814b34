//! Tenure on one SQLite file: a writer thread, group commit, readers apart.
