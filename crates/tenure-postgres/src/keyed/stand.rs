//! Where a job that is to wait stands: behind the first closed gate, or in line; and who may go on after it.

use std::sync::Arc;

use tenure_core::{Block, Gates, Key, State, StateName, Terms};
use tenure_store::{Fault, Happening};

use super::row::KeyedRow;
use crate::aside::Odd;
use crate::query::Query;
use crate::rows::{self, Kept, Stored};
use crate::sheet::Place;
use crate::transition::place_of;
use crate::writing::Writing;
use crate::{code, value};

const WAITS: &str = "SELECT EXISTS (SELECT FROM dependency WHERE waiter = $1)";

const LIMITED: &str = "UPDATE lane SET limited = true WHERE id = $1 AND NOT limited";

/// Who may go on: who wants this turn, or the room of this limit.
enum Goes {
    Turn(Key),
    Room(Key),
}

impl Writing<'_> {
    /// Lets a job that is to wait stand where it belongs; it stands nowhere at the moment.
    pub(crate) async fn stand(&mut self, stored: &mut Stored) -> Result<(), Fault> {
        let (State::Waiting { due, why } | State::Blocked { due, why, .. }) = stored.job.state else {
            return Ok(());
        };
        stored.ties.round = None;
        stored.ties.fair |= self.keys.fair.contains(&stored.job.queue);
        if !stored.is_keyed() {
            stored.job.state = State::Waiting { due, why };
            self.place(stored, due);
            return Ok(());
        }
        let terms = Arc::clone(&stored.job.terms);
        let jobs_ended = terms.after.is_none() || !self.waits(stored.job.seq).await?;
        let has_turn = match &terms.ordering {
            Some(ordering) if jobs_ended => self.gives_turn(&ordering.key, stored.job.seq).await?,
            Some(_) | None => true,
        };
        let gates = Gates { jobs_ended, has_turn, has_room: true };
        stored.job.state = gates.state(&terms, due, why, self.now);
        match stored.job.state {
            State::Waiting { .. } if due <= self.now => return self.join_line(stored).await,
            State::Waiting { .. } => stored.kept = Kept::InDiary,
            State::Blocked { .. } | State::Running { .. } | State::Finished { .. } => {
                stored.kept = Kept::Behind;
            }
        }
        self.index(stored).await
    }

    /// Keeps a new job, which is written and stands nowhere yet.
    pub(crate) async fn accept(&mut self, mut stored: Stored) -> Result<(), Fault> {
        if let Some(limit) = &stored.job.terms.limit {
            self.load_limits(std::slice::from_ref(&limit.key)).await?;
            self.limit(&limit.key).hear(limit.most);
        }
        self.let_wait(&stored).await?;
        self.stand(&mut stored).await?;
        self.news.due = true;
        self.tell(&stored.job, || Happening::Enqueued);
        self.pass_on(&stored.job.terms).await
    }

    /// Lets a job that is in line, by what it is, stand there: queued if there is room, blocked if not.
    pub(crate) async fn join_line(&mut self, stored: &mut Stored) -> Result<(), Fault> {
        let (State::Waiting { due, why } | State::Blocked { due, why, .. }) = stored.job.state else {
            return Ok(());
        };
        stored.ties.round = self.round_for(stored).await?;
        let place = place_of(stored, due);
        if self.has_room(stored, place).await? {
            stored.job.state = State::Waiting { due, why };
            stored.kept = Kept::InLine;
            self.news.due = true;
        } else {
            stored.job.state = State::Blocked { on: Block::Limit, due, why };
            stored.kept = Kept::Behind;
        }
        self.index(stored).await
    }

    /// Enters an unfinished job: its place, its counters, its keys.
    pub(crate) async fn index(&mut self, stored: &Stored) -> Result<(), Fault> {
        let lane = stored.lane;
        match (stored.job.state, stored.kept) {
            (State::Waiting { due, .. }, Kept::InLine) => {
                self.goes_into_line(place_of(stored, due));
                self.sheet.count(lane, StateName::Queued, 1);
                self.keys.has_newcomers = true;
            }
            (State::Waiting { due, .. }, _) => {
                self.sheet.joins_diary(place_of(stored, due));
                self.sheet.count(lane, StateName::Scheduled, 1);
            }
            (State::Blocked { .. }, _) => self.sheet.count(lane, StateName::Blocked, 1),
            (State::Running { .. }, _) => self.sheet.count(lane, StateName::Running, 1),
            (State::Finished { .. }, _) => return Ok(()),
        }
        if !stored.is_keyed() {
            return Ok(());
        }
        let row = KeyedRow::of(stored);
        if let Some(limit) = &stored.job.terms.limit {
            self.load_limits(std::slice::from_ref(&limit.key)).await?;
            self.limit(&limit.key).enter(lane, row.at);
            if self.keys.limited.insert(lane) {
                self.write(Query::new(LIMITED).with(lane))?;
            }
        }
        self.keys.keep(row);
        Ok(())
    }

    /// Strikes a job: its place, its counters, its keys. If it has a turn it keeps it until somebody looks.
    pub(crate) async fn unindex(&mut self, stored: &Stored) -> Result<(), Fault> {
        self.uncount(stored);
        if stored.job.state.is_finished() || !stored.is_keyed() {
            return Ok(());
        }
        let row = KeyedRow::of(stored);
        if let Some(limit) = &stored.job.terms.limit {
            self.load_limits(std::slice::from_ref(&limit.key)).await?;
            self.limit(&limit.key).strike(row.lane, row.at);
        }
        self.keys.drop_row(row.seq);
        Ok(())
    }

    /// Lets go on who waited for what was written of a job with these terms: its ordering key and its limit.
    pub(crate) async fn pass_on(&mut self, terms: &Terms) -> Result<(), Fault> {
        let mut left = Vec::new();
        let push = |left: &mut Vec<Goes>, terms: &Terms| {
            left.extend(terms.limit.as_ref().map(|limit| Goes::Room(limit.key.clone())));
            left.extend(terms.ordering.as_ref().map(|ordering| Goes::Turn(ordering.key.clone())));
        };
        push(&mut left, terms);
        while let Some(goes) = left.pop() {
            let key = match goes {
                Goes::Room(key) => {
                    self.look_at_limit(&key).await?;
                    continue;
                }
                Goes::Turn(key) => key,
            };
            let Some(next) = self.pass_turn(&key).await? else { continue };
            if next.at != code::AT_ORDER {
                continue;
            }
            let read = self.read(vec![rows::by_ids([next.id])]).await?;
            let Some(row) = read.iter().flatten().next() else { continue };
            match self.found(row).await? {
                Ok(mut stored) => {
                    self.unindex(&stored).await?;
                    self.stand(&mut stored).await?;
                    push(&mut left, &stored.job.terms);
                }
                Err(fault) => {
                    self.set_turn_aside(Odd { seq: next.seq, id: value::of_job(next.id) }, &fault)?
                }
            }
        }
        Ok(())
    }

    /// Lets a job stand anew that has come due, or need not wait for others any more.
    pub(super) async fn stand_again(&mut self, mut stored: Stored) -> Result<(), Fault> {
        self.unindex(&stored).await?;
        self.stand(&mut stored).await?;
        self.pass_on(&stored.job.terms).await
    }

    /// A job as it is after what was written.
    pub(crate) async fn find(&mut self, id: tenure_core::JobId) -> Result<Option<Stored>, Fault> {
        let read = self.read(vec![rows::by_ids([id])]).await?;
        read.iter().flatten().next().map(rows::stored).transpose()
    }

    pub(super) async fn waits(&mut self, seq: u64) -> Result<bool, Fault> {
        let read = self.read(vec![Query::new(WAITS).with(value::signed(seq))]).await?;
        Ok(read.iter().flatten().next().is_some_and(|row| row.get(0)))
    }

    /// A job of a limit comes into line, or leaves it for want of room.
    pub(super) fn open(&mut self, mut row: KeyedRow) {
        row.at = code::AT_LINE;
        self.goes_into_line(row.place());
        self.sheet.count(row.lane, StateName::Blocked, -1);
        self.sheet.count(row.lane, StateName::Queued, 1);
        self.keys.has_newcomers = true;
        self.keys.shut.remove(&row.seq);
        self.news.due = true;
        self.keys.keep(row);
    }

    /// A job leaves its line for want of room.
    pub(super) fn shut(&mut self, mut row: KeyedRow) {
        row.at = code::AT_LIMIT;
        let place: Place = row.place();
        self.sheet.leaves_line(place);
        self.sheet.count(row.lane, StateName::Queued, -1);
        self.sheet.count(row.lane, StateName::Blocked, 1);
        self.keys.shut.insert(row.seq);
        self.keys.keep(row);
    }
}
