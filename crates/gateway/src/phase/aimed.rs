//! A request that knows where it goes.

use super::Phase;
use super::identified::Identified;
use super::open::Open;
use super::reading::Reading;
use crate::aim::{Aim, Job, Read, Target};
use crate::answer::Problem;
use crate::finished::Finished;
use crate::identify::Caller;
use crate::room::Place;
use http::HeaderMap;
use std::sync::Arc;

/// A request that knows where it goes.
pub(crate) struct Aimed {
    pub(super) reading: Reading,
    model: Arc<str>,
    split: Option<Arc<str>>,
}

impl Open<Reading> {
    /// Finds its model. With it come what the model's engines get, and the same for a mirror if it is
    /// copied: both are let go long before the request is over.
    pub(crate) fn aim(
        self,
        headers: HeaderMap,
        read: Read,
    ) -> Result<(Open<Aimed>, Box<Job>, Option<Box<Job>>), Problem> {
        let target = {
            let head = self.head();
            let (live, served) = (head.shared.live(), head.shared.served());
            let (caller, surface) = (&*self.identified.caller, head.surface);
            let own = caller.access.as_ref();
            let terms = own.and_then(|own| head.shared.quota.terms(&own.access));
            let aim = Aim { live: &live, served: &served, caller, surface, terms };
            aim.at(headers, read)
        };
        let (reading, Target { job, split, copy }) = self.or_refuse(target)?;
        let model = Arc::clone(job.model.name());
        Ok((reading.then(|reading| Aimed { reading, model, split }), job, copy))
    }
}

impl Aimed {
    /// Who asks.
    pub(crate) const fn caller(&self) -> &Arc<Caller> {
        &self.reading.identified.caller
    }

    /// That of a copy for this model, which has a place of its own and is nobody's.
    pub(super) fn copy(&self, model: Arc<str>, place: Place, nobody: Arc<Caller>) -> Self {
        let reading = self.reading.copy(Identified { caller: nobody }, place);
        Self { reading, model, split: self.split.clone() }
    }
}

impl Phase for Aimed {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        self.reading.describe(finished);
        finished.model = Some(&self.model);
        finished.split = self.split.as_deref();
    }
}
