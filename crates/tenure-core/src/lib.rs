//! The domain of Tenure: values and transitions. No async, no I/O, no clock, no chance.
