//! Whole clusters of Tenure in one thread, by seed.
