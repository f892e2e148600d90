//! A request of a known caller.

use super::open::Open;
use super::{Arrived, Phase};
use crate::answer::Problem;
use crate::finished::Finished;
use crate::identify::Caller;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;
use std::sync::Arc;

/// A request of a known caller.
pub(crate) struct Identified {
    pub(crate) caller: Arc<Caller>,
}

impl Open<Arrived> {
    /// Says who asks, and whether we could read it.
    pub(crate) fn identify(self, headers: &HeaderMap) -> Result<Open<Identified>, Problem> {
        let head = self.head();
        let caller = head.shared.identify(headers, head.started);
        let (arrived, caller) = self.or_refuse(caller.ok_or(Problem::NoKey))?;
        let identified = arrived.then(|Arrived| Identified { caller });
        if headers.contains_key(CONTENT_ENCODING) {
            return Err(identified.refuse(Problem::Encoded));
        }
        Ok(identified)
    }
}

impl Phase for Identified {
    fn describe<'a>(&'a self, finished: &mut Finished<'a>) {
        finished.caller = &self.caller.name;
        finished.key = self.caller.key.as_deref();
    }
}
