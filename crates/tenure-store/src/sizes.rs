//! What a store takes of its disk.

/// What a store takes of its disk, as far as it is told without reading what it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sizes {
    /// How many bytes each part takes, by its name: files of a file, tables of a database. A part may be within another
    /// one, as what is free within a file is.
    pub parts: Vec<(String, u64)>,
    /// How many bytes are free on the disk; `None` if it cannot tell.
    pub disk_free: Option<u64>,
}
