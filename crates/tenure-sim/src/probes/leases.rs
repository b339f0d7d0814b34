//! Probes about leases and what runs under them.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{Fence, LeaseAct, LeaseName, LeaseOutcome, LeaseRefusal, What as Noted};

use super::{Hits, Probe};
use crate::history::{Entry, Leased, Stands, What, Who};

/// What is needed to know when a probe about leases is hit.
#[derive(Debug, Default)]
pub(super) struct LeaseProbes {
    at_work: BTreeMap<(LeaseName, Fence), u32>,
    knows: BTreeSet<(LeaseName, Fence)>,
    /// Who last worked under a lease of a service.
    served: BTreeMap<LeaseName, Who>,
}

impl LeaseProbes {
    pub(super) fn see(&mut self, entry: &Entry, hits: &mut Hits) {
        match &entry.what {
            What::Leased(leased) => self.leased(leased, hits),
            What::Ledger(told) => {
                let took = told.iter().filter(|told| told.note.what == Noted::TookOver);
                took.for_each(|_| hits.hit(Probe::LeaseTakenOver));
            }
            What::Effect { taken: false, .. } => hits.hit(Probe::StaleWriteRefused),
            What::Work { name, fence, stands } => self.works(entry.who, (name, *fence), *stands, hits),
            What::Writes { name, .. } => self.serves(entry.who, name, Probe::WriterSucceeded, hits),
            _ => {}
        }
    }

    fn leased(&mut self, leased: &Leased, hits: &mut Hits) {
        match (&leased.act, &leased.outcome) {
            (LeaseAct::Break { .. }, LeaseOutcome::Breaks { .. }) => hits.hit(Probe::LeaseBroken),
            (_, LeaseOutcome::RenewedLate { .. }) => hits.hit(Probe::LeaseRenewedLate),
            (_, LeaseOutcome::Refused(LeaseRefusal::Lapsed { .. })) => hits.hit(Probe::LeaseLapseRefused),
            (_, LeaseOutcome::Refused(LeaseRefusal::Awaited { .. })) => hits.hit(Probe::KeptBackInLine),
            (_, LeaseOutcome::Refused(LeaseRefusal::Lost { .. })) => hits.hit(Probe::StaleOwnerRefused),
            (_, LeaseOutcome::Left) => hits.hit(Probe::LeftTheLine),
            _ => {}
        }
    }

    fn works(&mut self, who: Who, owned: (&LeaseName, Fence), stands: Stands, hits: &mut Hits) {
        let owned = (owned.0.clone(), owned.1);
        let works = self.at_work.entry(owned.clone()).or_default();
        match stands {
            Stands::Begins => {
                *works += 1;
                if owned.0.as_str().starts_with("singleton/") {
                    self.serves(who, &owned.0, Probe::SingletonMoved, hits);
                }
            }
            Stands::Ends => *works = works.saturating_sub(1),
            Stands::Believes => {}
            Stands::KnowsLost if self.knows.insert(owned) => hits.hit(Probe::WorkUnderLostLease),
            Stands::KnowsLost => {}
            Stands::LetsGo if *works > 0 => hits.hit(Probe::LetGoUnderWork),
            Stands::LetsGo => {}
        }
    }

    fn serves(&mut self, who: Who, name: &LeaseName, probe: Probe, hits: &mut Hits) {
        let before = self.served.insert(name.clone(), who);
        if before.is_some_and(|before| before != who) {
            hits.hit(probe);
        }
    }
}
