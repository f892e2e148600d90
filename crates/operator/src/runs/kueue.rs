//! What a Workload of Kueue says. Pure.

use super::RunKey;
use crate::observe::{JobKind, JobObjects};
use flyball_core::units::Timestamp;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::Value;

/// On a Workload: a number that is added to its priority. Kueue's own, behind its gate `PriorityBoost`.
pub(crate) const BOOST: &str = "kueue.x-k8s.io/priority-boost";

/// A Workload of Kueue.
#[derive(Clone, Debug)]
pub(super) struct KueueWorkload {
    pub(super) name: String,
    /// Whether it may hold nothing.
    pub(super) inactive: bool,
    pub(super) admitted: bool,
    /// Whether it has quota, admitted or not.
    pub(super) reserved: bool,
    pub(super) finished: bool,
    /// What it waits for.
    waits: Option<String>,
    /// When Kueue took its machines away last, and its word for why.
    pub(super) evicted: Option<(Timestamp, String)>,
    /// The ClusterQueue whose quota it has.
    cluster_queue: Option<String>,
    pub(super) priority: i32,
    pub(super) boost: Option<i64>,
}

impl KueueWorkload {
    pub(super) fn of(object: &DynamicObject) -> Self {
        let (spec, status) = (&object.data["spec"], &object.data["status"]);
        let waits = ["QuotaReserved", "Admitted"].iter().find_map(|name| {
            let all = status["conditions"].as_array()?;
            all.iter().find(|one| one["type"] == *name && one["status"] == "False")
        });
        let evicted =
            condition(status, "Evicted").and_then(|one| Some((since(one)?, text(&one["reason"]))));
        let priority = spec["priority"].as_i64().and_then(|one| i32::try_from(one).ok());
        Self {
            name: object.name_any(),
            inactive: spec["active"] == false,
            admitted: condition(status, "Admitted").is_some(),
            reserved: condition(status, "QuotaReserved").is_some(),
            finished: condition(status, "Finished").is_some(),
            waits: waits.map(|one| text(&one["message"])),
            evicted,
            cluster_queue: status["admission"]["clusterQueue"].as_str().map(str::to_owned),
            priority: priority.unwrap_or(0),
            boost: object.annotations().get(BOOST).and_then(|text| text.parse().ok()),
        }
    }

    /// The Workload of this object.
    pub(super) fn owned(
        all: &JobObjects,
        kind: JobKind,
        (namespace, name): &RunKey,
    ) -> Option<Self> {
        let place = (namespace.clone(), String::new());
        let of_namespace = all.range(place..).take_while(|((one, _), _)| one == namespace);
        let mut workloads = of_namespace.map(|(_, one)| one);
        workloads.find(|one| is_owned(one, kind, name)).map(|one| Self::of(one))
    }

    /// The ClusterQueue whose quota it has, and its priority there.
    pub(super) fn in_queue(&self) -> Option<(String, i32)> {
        Some((self.cluster_queue.clone()?, self.priority))
    }

    /// What it waits for.
    pub(super) fn waits_for(&self) -> String {
        self.waits.as_ref().map_or_else(
            || "it waits for Kueue".to_owned(),
            |message| format!("it waits for Kueue: {message}"),
        )
    }
}

/// Whether a Workload is that of an object.
pub(super) fn is_owned(workload: &DynamicObject, kind: JobKind, name: &str) -> bool {
    let mut owners = workload.owner_references().iter();
    owners.any(|owner| owner.kind == kind.name() && owner.name == name)
}

/// A list in a status, empty where there is none.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A condition that is true.
pub(super) fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    let all = status["conditions"].as_array()?;
    all.iter().find(|one| one["type"] == name && one["status"] == "True")
}

pub(super) fn since(condition: &Value) -> Option<Timestamp> {
    let at = condition["lastTransitionTime"].as_str()?.parse::<jiff::Timestamp>().ok()?;
    Some(crate::time::of_date(at))
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().chars().take(512).collect()
}
