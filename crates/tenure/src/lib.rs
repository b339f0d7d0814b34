//! Durable jobs for software that runs as more than one instance.
