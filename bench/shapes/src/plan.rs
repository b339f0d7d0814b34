//! Which contestants a plan sets against each other.

use crate::begun::Begun;
use crate::floor::Floor;
use crate::life::Drive;
use crate::parted::Parted;
use crate::shape::{Choices, Finished, Shape};
use crate::sided::Sided;
use crate::whole::Whole;

/// A shape, how it is driven and what it is loaded with beforehand.
pub struct Contestant {
    pub name: String,
    pub shape: Box<dyn Shape>,
    pub drive: Drive,
    /// So many jobs finished and so many waiting before the measurement.
    pub preload: usize,
}

const PLAIN: Choices = Choices {
    id_index: true,
    settle_by_id: false,
    claim_as_set: false,
    until_index: true,
    finished: Finished::Expiry,
};

fn shape(letter: &str, choices: Choices) -> Box<dyn Shape> {
    match letter {
        "A" => Box::new(Whole { choices, narrow: false }),
        "B" => Box::new(Sided { choices, narrow: false }),
        "C" => Box::new(Sided { choices, narrow: true }),
        "D" => Box::new(Parted { choices }),
        "E" => Box::new(Whole { choices, narrow: true }),
        "F" => Box::new(Begun { choices }),
        _ => Box::new(Floor),
    }
}

/// The contestants of a plan.
pub fn contestants(plan: &str, jobs: usize) -> Vec<Contestant> {
    let drive = Drive { jobs, batch: 100, args: 100, synchronous: "FULL", autocheckpoint: 1000 };
    let set = Choices { claim_as_set: true, ..PLAIN };
    let one = |letter: &str, note: &str, choices: Choices, drive: Drive, preload: usize| Contestant {
        name: format!("{letter}{note}"),
        shape: shape(letter, choices),
        drive,
        preload,
    };
    let mut field = vec![one("floor", "", PLAIN, drive, 0)];
    match plan {
        "shapes" => {
            for letter in ["A", "B", "C", "D", "E", "F"] {
                field.push(one(letter, " each", PLAIN, drive, 0));
                field.push(one(letter, " set", set, drive, 0));
            }
        }
        "batches" => {
            field.clear();
            for batch in [1, 1000] {
                let drive = Drive { batch, jobs: if batch == 1 { jobs / 10 } else { jobs }, ..drive };
                field.push(one("floor", "", PLAIN, drive, 0));
                for letter in ["A", "B", "C", "D", "E", "F"] {
                    field.push(one(letter, " set", set, drive, 0));
                }
            }
        }
        "choices" => {
            for letter in ["A", "D", "F"] {
                let mut vary =
                    |note: &str, choices: Choices| field.push(one(letter, note, choices, drive, 0));
                vary("", set);
                vary(" no id index", Choices { id_index: false, ..set });
                vary(" settle by id", Choices { settle_by_id: true, ..set });
                vary(" no until index", Choices { until_index: false, ..set });
                vary(" no expiry", Choices { finished: Finished::Unfindable, ..set });
                vary(" ended index", Choices { finished: Finished::Ended, ..set });
                vary(" full phase", Choices { finished: Finished::ExpiryAndPhase, ..set });
                vary(" trouble phase", Choices { finished: Finished::ExpiryAndTrouble, ..set });
            }
        }
        "durability" => {
            for letter in ["floor", "A", "D", "F"] {
                field.push(one(letter, " checkpoint 4000", set, Drive { autocheckpoint: 4000, ..drive }, 0));
                field.push(one(letter, " normal", set, Drive { synchronous: "NORMAL", ..drive }, 0));
            }
        }
        "args" => {
            for args in [1000, 4000] {
                let drive = Drive { args, ..drive };
                for letter in ["floor", "A", "C", "D", "E", "F"] {
                    field.push(one(letter, "", set, drive, 0));
                }
            }
        }
        "load" => {
            field.clear();
            for preload in [0, 1_000_000] {
                for letter in ["floor", "F"] {
                    field.push(one(letter, "", set, drive, preload));
                }
            }
        }
        _ => field.clear(),
    }
    field
}
