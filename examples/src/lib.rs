//! Examples live beside this file, in `examples/`.
