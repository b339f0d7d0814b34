//! What a worker was told to be.

use std::time::Duration;

use tenure_core::{Invalid, Kind, QueueName, Serves, limits};
use tenure_store::Kinds;

use super::attempt::Grace;
use super::lease::Lease;
use crate::Error;

/// The order in which a worker fills its slots when it serves several queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QueueOrder {
    /// At random, in proportion to their weights; no queue starves.
    #[default]
    Weighted,
    /// In the order of the queues: a queue is served only when those before it are empty.
    Strict,
}

/// The policy of a worker for jobs of a kind without a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownKinds {
    /// Leaves the job for another worker; it blocks nothing.
    #[default]
    Leave,
    /// Fails the job for good.
    Fail,
}

/// One served queue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Served {
    pub(crate) name: QueueName,
    pub(crate) slots: usize,
    pub(crate) weight: u32,
}

/// A worker's settings, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) queues: Vec<Served>,
    pub(crate) order: QueueOrder,
    pub(crate) all_slots: usize,
    pub(crate) prefetch: usize,
    pub(crate) unknown: UnknownKinds,
    pub(crate) lease: Duration,
    pub(crate) poll: Duration,
    pub(crate) finish_within: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) name: Option<String>,
    /// It runs no jobs.
    pub(crate) only_timers: bool,
    /// It fires no timers.
    pub(crate) no_timers: bool,
    /// Nobody tells it through the store what to do.
    pub(crate) heeds_nobody: bool,
    /// Kinds may name queues that it does not serve.
    pub(crate) queues_elsewhere: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            queues: Vec::new(),
            order: QueueOrder::default(),
            all_slots: limits::SLOTS,
            prefetch: 0,
            unknown: UnknownKinds::default(),
            lease: Lease::DEFAULT,
            poll: Duration::from_millis(2_500),
            finish_within: Duration::from_secs(20),
            stop_grace: Duration::from_secs(5),
            name: None,
            only_timers: false,
            no_timers: false,
            heeds_nobody: false,
            queues_elsewhere: false,
        }
    }
}

impl Settings {
    pub(crate) fn queue(&mut self, name: &str, slots: usize, weight: u32) -> Result<(), Invalid> {
        let name = QueueName::new(name)?;
        if slots == 0 || slots > limits::SLOTS {
            return Err(Invalid::new(
                format!("slots of queue {name}"),
                slots,
                format_args!("1 to {}", limits::SLOTS),
            ));
        }
        if weight == 0 || weight > 1_000 {
            return Err(Invalid::new(format!("weight of queue {name}"), weight, "1 to 1000"));
        }
        if self.queues.iter().any(|served| served.name == name) {
            return Err(Invalid::new("queue", format_args!("{name}, twice"), "each queue once"));
        }
        if self.queues.len() == limits::QUEUES {
            return Err(Invalid::new(
                "queues",
                format_args!("more than {}", limits::QUEUES),
                format_args!("at most {}", limits::QUEUES),
            ));
        }
        self.queues.push(Served { name, slots, weight });
        Ok(())
    }

    pub(crate) fn check(&self, kinds: &[Kind], beside: usize) -> Result<Lease, Error> {
        if self.only_timers && (beside > 0 || !self.queues.is_empty() || !kinds.is_empty()) {
            return Err(Error::Settings("it is set to run only timers, but also has other work".into()));
        }
        if self.only_timers && self.no_timers {
            return Err(Error::Settings("it is set to run only timers, and also to run none".into()));
        }
        if self.queues.is_empty() && !self.only_timers && (beside == 0 || !kinds.is_empty()) {
            return Err(Error::Settings("it serves no queue; add one with Worker::queue".into()));
        }
        if !self.queues.is_empty() && kinds.is_empty() && self.unknown == UnknownKinds::Leave {
            return Err(Error::Settings("it has no handler; add one with Worker::job".into()));
        }
        if self.all_slots == 0 || self.all_slots > limits::SLOTS {
            return Err(Invalid::new("slots", self.all_slots, format_args!("1 to {}", limits::SLOTS)).into());
        }
        if self.prefetch > limits::RESERVE_JOBS {
            return Err(Invalid::new(
                "prefetch",
                self.prefetch,
                format_args!("0 to {}", limits::RESERVE_JOBS),
            )
            .into());
        }
        let poll = Duration::from_millis(10)..=Duration::from_secs(3600);
        if !poll.contains(&self.poll) {
            return Err(Invalid::new(
                "poll",
                format_args!("{} s", self.poll.as_secs_f64()),
                "0.01 s to 3600 s",
            )
            .into());
        }
        tenure_core::delay_of("finish_within", self.finish_within)?;
        tenure_core::delay_of("stop_grace", self.stop_grace)?;
        Lease::new(self.lease)
    }

    /// Refuses a kind whose jobs go into a queue that the worker does not serve: they would wait without a word.
    pub(crate) fn check_queues<'a>(
        &self,
        mut homes: impl Iterator<Item = (&'a Kind, &'a QueueName)>,
    ) -> Result<(), Error> {
        let is_served = |queue: &QueueName| self.queues.iter().any(|served| served.name == *queue);
        match homes.find(|(_, queue)| !self.queues_elsewhere && !is_served(queue)) {
            None => Ok(()),
            Some((kind, queue)) => Err(Error::Settings(format!(
                "it has a handler for kind {kind} and does not serve queue {queue}, into which jobs of this kind are \
                 enqueued; add Worker::queue(\"{queue}\", slots), or mark the worker with queues_elsewhere"
            ))),
        }
    }

    pub(crate) fn kinds(&self, known: &[Kind]) -> Kinds {
        match self.unknown {
            UnknownKinds::Leave => Kinds::Only(known.into()),
            UnknownKinds::Fail => Kinds::All,
        }
    }

    /// How many jobs the worker runs at once, of all queues together.
    pub(crate) fn slots(&self) -> u32 {
        let of_queues = self.queues.iter().map(|served| served.slots).fold(0, usize::saturating_add);
        u32::try_from(of_queues.min(self.all_slots)).unwrap_or(u32::MAX)
    }

    /// What the worker serves of each queue.
    pub(crate) fn serves(&self, known: &[Kind]) -> Vec<Serves> {
        let kinds = match self.unknown {
            UnknownKinds::Leave => Some(known.to_vec()),
            UnknownKinds::Fail => None,
        };
        let slots = |served: &Served| u32::try_from(served.slots.min(self.all_slots)).unwrap_or(u32::MAX);
        self.queues
            .iter()
            .map(|served| Serves {
                queue: served.name.clone(),
                kinds: kinds.clone(),
                slots: slots(served),
                all_waiting: false,
            })
            .collect()
    }

    pub(crate) fn grace(&self) -> Grace {
        Grace { lost: self.stop_grace, host_stops: self.stop_grace }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let mut settings = Settings::default();
        assert!(settings.check(&[], 0).unwrap_err().to_string().contains("Worker::queue"));
        settings.only_timers = true;
        assert!(settings.check(&[], 0).is_ok());
        assert!(settings.check(&[], 1).unwrap_err().to_string().contains("only timers"));
        settings.no_timers = true;
        assert!(settings.check(&[], 0).unwrap_err().to_string().contains("run none"));
        (settings.only_timers, settings.no_timers) = (false, false);
        assert_eq!(settings.queue("mail", 0, 1).unwrap_err().field, "slots of queue mail");
        assert_eq!(settings.queue("mail", 1, 0).unwrap_err().field, "weight of queue mail");
        assert_eq!(settings.queue("", 1, 1).unwrap_err().field, "queue");
        settings.queue("mail", 1, 1).unwrap();
        assert_eq!(settings.queue("mail", 1, 1).unwrap_err().field, "queue");
        assert!(settings.check(&[], 0).unwrap_err().to_string().contains("Worker::job"));
    }
}
