//! The API server: does it answer, and is it of an age we know?

use super::unknown;
use crate::commands::check::answer::{Outcome, Status};
use crate::commands::check::codes::Code;
use crate::commands::check::facts::{Facts, Found};
use crate::output::duration;

/// Validation rules inside custom resources (CEL) are stable from 1.29, admission policies from
/// 1.30; our resources rest on both.
const OLDEST_MINOR: u32 = 30;
/// The newest API this version was compiled against.
const NEWEST_MINOR: u32 = 36;

pub(super) fn judge(code: Code, facts: &Facts) -> Outcome {
    match (code, &facts.server) {
        (Code::ApiServer, Found::Known(server)) => Outcome::new(
            code,
            Status::Ok,
            format!("{}, {}", server.version, duration(server.latency)),
        ),
        (Code::ApiServer, missed) => {
            let outcome = unknown(code, missed, &format!("talk to {}", facts.address));
            match missed {
                Found::TimedOut(_) => outcome,
                _ => outcome.hint("try kubectl get --raw /version: does it answer?"),
            }
        }
        (_, Found::Known(server)) => {
            let Some(release) = server.release else {
                let detail = format!("cannot parse {:?}", server.version);
                return Outcome::new(code, Status::Unknown, detail)
                    .hint("kubectl get --raw /version shows the response of the API server");
            };
            let range = format!("supported are 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}");
            let found = format!("{}.{}", release.0, release.1);
            if release < (1, OLDEST_MINOR) {
                Outcome::new(code, Status::Fail, format!("{found} is too old; {range}"))
                    .effect("the custom resources of Flyball are not validated, or not accepted")
                    .hint(format!("upgrade the cluster to 1.{OLDEST_MINOR} or later"))
            } else if release > (1, NEWEST_MINOR) {
                Outcome::new(code, Status::Warn, format!("{found} is newer than tested; {range}"))
                    .hint("check for a newer Flyball")
            } else {
                Outcome::new(code, Status::Ok, format!("{found}; {range}"))
            }
        }
        (_, Found::Absent | Found::Failed(_) | Found::TimedOut(_)) => {
            unknown::<()>(code, &Found::Skipped, "")
        }
        (_, missed) => unknown(code, missed, "read /version"),
    }
}
