//! Who takes part in which comparison.

use crate::begun::{Address, Begun, PLAIN};
use crate::blocks::blocks;
use crate::floor::floor;
use crate::granted::{granted, receipts};
use crate::shape::Shape;
use crate::whole::whole;

/// The contestants of a plan.
pub fn contestants(plan: &str) -> Vec<Shape> {
    let id = Begun { address: Address::Id, ..PLAIN };
    let place = Begun { address: Address::Place, ..PLAIN };
    let copy = Begun { copy: true, ..PLAIN };
    match plan {
        "shapes" => vec![
            floor(),
            whole("A: one row", 70),
            Begun { grants: false, ..PLAIN }.shape("F: as on SQLite"),
            PLAIN.shape("F+grants"),
            copy.shape("F+grants, copy"),
            granted("G: standing at the end", Address::Seq, false),
            receipts("H: receipts", Address::Seq, false),
            blocks("I: blocks", false),
            blocks("I: blocks, copy", true),
        ],
        "choices" => vec![
            floor(),
            PLAIN.shape("F+grants"),
            Begun { block: true, ..PLAIN }.shape("block of numbers"),
            copy.shape("copy"),
            id.shape("by id"),
            place.shape("by place"),
            Begun { settle_by_place: true, ..PLAIN }.shape("settle by place"),
            Begun { locks: false, ..PLAIN }.shape("one claimer a lane"),
            Begun { fillfactor: 100, ..PLAIN }.shape("fillfactor 100"),
            Begun { fillfactor: 30, ..PLAIN }.shape("fillfactor 30"),
            Begun { tally: true, ..PLAIN }.shape("tally"),
            whole("A, fillfactor 40", 40),
        ],
        "processes" => vec![
            floor(),
            PLAIN.shape("F+grants"),
            blocks("I: blocks", false),
            Begun { locks: false, ..PLAIN }.shape("one claimer a lane"),
        ],
        "hard" => vec![floor(), PLAIN.shape("F+grants"), blocks("I: blocks", false)],
        _ => Vec::new(),
    }
}
