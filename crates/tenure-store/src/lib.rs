//! The store contract of Tenure, the memory store, the faulty store and the conformance suite.
