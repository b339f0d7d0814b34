//! Rows that the writer keeps in mind, so that a transaction reads and writes each of them at most once.

use std::collections::HashMap;
use std::hash::Hash;

/// Rows in mind beyond which all are forgotten: a program may use more keys than there is memory for.
const MOST: usize = 50_000;

/// Rows of one table, by id and by key. A row that was changed stays until it is written.
#[derive(Debug)]
pub(crate) struct Remembered<K, R> {
    rows: HashMap<i64, Known<K, R>>,
    ids: HashMap<K, i64>,
    /// In the order in which they were changed first.
    changed: Vec<i64>,
    /// How often any was changed.
    changes: u64,
}

#[derive(Debug)]
struct Known<K, R> {
    key: K,
    row: R,
    is_changed: bool,
}

impl<K, R> Default for Remembered<K, R> {
    fn default() -> Self {
        Self { rows: HashMap::new(), ids: HashMap::new(), changed: Vec::new(), changes: 0 }
    }
}

impl<K: Eq + Hash + Clone, R> Remembered<K, R> {
    /// The id of the row with this key, if it is in mind.
    pub(crate) fn id(&self, key: &K) -> Option<i64> {
        self.ids.get(key).copied()
    }

    /// The row, if it is in mind.
    pub(crate) fn get(&self, id: i64) -> Option<&R> {
        self.rows.get(&id).map(|known| &known.row)
    }

    /// The row, to be changed; it will have to be written.
    pub(crate) fn change(&mut self, id: i64) -> Option<&mut R> {
        let known = self.rows.get_mut(&id)?;
        self.changes += 1;
        if !known.is_changed {
            known.is_changed = true;
            self.changed.push(id);
        }
        Some(&mut known.row)
    }

    /// The row, to be changed while it is written.
    pub(crate) fn peek(&mut self, id: i64) -> Option<&mut R> {
        self.rows.get_mut(&id).map(|known| &mut known.row)
    }

    /// Takes a row to mind, as the file has it.
    pub(crate) fn learn(&mut self, id: i64, key: K, row: R) {
        self.ids.insert(key.clone(), id);
        self.rows.insert(id, Known { key, row, is_changed: false });
    }

    /// The rows that have to be written: whoever asks writes them now.
    pub(crate) fn take_changed(&mut self) -> Vec<i64> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            if let Some(known) = self.rows.get_mut(id) {
                known.is_changed = false;
            }
        }
        changed
    }

    /// The rows that will have to be written.
    pub(crate) fn changed(&self) -> impl Iterator<Item = &R> {
        self.changed.iter().filter_map(|id| self.get(*id))
    }

    /// Forgets a row that is gone.
    pub(crate) fn remove(&mut self, id: i64) {
        if let Some(known) = self.rows.remove(&id) {
            self.ids.remove(&known.key);
        }
    }

    /// How often any has been changed so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Forgets all.
    pub(crate) fn forget(&mut self) {
        *self = Self { changes: self.changes, ..Self::default() };
    }

    /// Forgets all if it is too much. Only once everything is written.
    pub(crate) fn trim(&mut self) {
        if self.rows.len() > MOST {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_row_is_written_once() {
        let mut rows: Remembered<&str, i64> = Remembered::default();
        rows.learn(1, "a", 10);
        rows.learn(2, "b", 20);
        *rows.change(2).unwrap() += 1;
        *rows.change(2).unwrap() += 1;
        assert_eq!(rows.changed().collect::<Vec<_>>(), [&22]);
        assert_eq!((rows.take_changed(), rows.take_changed()), (vec![2], vec![]));
        rows.remove(1);
        assert_eq!((rows.id(&"a"), rows.get(1), rows.get(2)), (None, None, Some(&22)));
        rows.forget();
        assert_eq!((rows.id(&"b"), rows.changes()), (None, 2));
    }
}
