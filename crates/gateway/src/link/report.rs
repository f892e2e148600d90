//! What goes up each second.

use crate::admit::{AdmittedDemand, ModelNow};
use crate::serve::RunningGateway;
use flyball_fleet::{EngineNow, EngineState};
use flyball_resources::stream::{
    self, EndpointLoad, EndpointState, MAX_ENDPOINTS, MAX_MODELS, ModelDemand,
};
use std::collections::BTreeSet;

/// How things stand at a gateway that goes by the orders of this number.
pub(super) fn demand(running: &RunningGateway, orders: u64) -> stream::ReportedDemand {
    let fleet = running.fleet();
    let now = running.glance(fleet.models().map(|model| &*model.name));
    // A model that is not served any more is not wanted, but its last requests may be under way.
    let unserved: BTreeSet<&str> = fleet.gone().map(|(model, _)| model).collect();
    let unserved =
        running.glance(unserved.into_iter().filter(|model| fleet.model(model).is_none()));
    let mut demand = stream::ReportedDemand {
        models: now.iter().map(|model| of_model(&model.queue, running)).collect(),
        endpoints: now.iter().chain(&unserved).flat_map(of_endpoints).collect(),
        orders,
        ..stream::ReportedDemand::default()
    };
    cut(&mut demand);
    demand
}

/// Leaves out what does not fit: the idle first, because the operator waits for those that drain.
fn cut(demand: &mut stream::ReportedDemand) {
    let left_out = |len: usize, most: usize| u32::try_from(len.saturating_sub(most));
    demand.models_left_out = left_out(demand.models.len(), MAX_MODELS).unwrap_or(u32::MAX);
    demand.endpoints_left_out = left_out(demand.endpoints.len(), MAX_ENDPOINTS).unwrap_or(u32::MAX);
    if demand.models_left_out > 0 {
        demand.models.sort_by_key(|model| model.waiting == 0 && model.in_flight == 0);
        demand.models.truncate(MAX_MODELS);
    }
    if demand.endpoints_left_out > 0 {
        let idle = |load: &EndpointLoad| load.in_flight == 0 && load.state() == EndpointState::Open;
        demand.endpoints.sort_by_key(idle);
        demand.endpoints.truncate(MAX_ENDPOINTS);
    }
}

fn of_model(queue: &AdmittedDemand, running: &RunningGateway) -> ModelDemand {
    let long = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    ModelDemand {
        model: queue.model.clone(),
        engines: u32::try_from(queue.engines).unwrap_or(u32::MAX),
        waiting: long(queue.waiting),
        held: long(queue.held),
        backlog_tokens: queue.backlog_tokens,
        backlog_cost: queue.backlog_cost,
        oldest_ms: queue.oldest_ms,
        wait_ms: queue.wait_ms,
        waking: queue.waking,
        in_flight: queue.in_flight,
        unread_tokens: queue.unread_tokens,
        window: queue.window,
        arrived: queue.arrived,
        arrived_tokens: queue.arrived_tokens,
        uncached_tokens: Some(queue.uncached_tokens),
        spent_cost: queue.spent_cost,
        shed: queue.shed,
        wake_calls: queue.wake_calls,
        output_tokens: queue.output_tokens,
        answered: Some(queue.answered),
        paced_tokens: queue.paced_tokens,
        paced_micros: queue.paced_micros,
        judged: queue.judged,
        missed: queue.missed,
        missed_first_token: queue.missed_first_token,
        missed_between_tokens: queue.missed_between_tokens,
        held_tokens: queue.held_tokens,
        namespace: running.namespace(&queue.model).unwrap_or_default(),
    }
}

fn of_endpoints(model: &ModelNow) -> impl Iterator<Item = EndpointLoad> {
    model.engines.iter().map(|engine: &EngineNow| EndpointLoad {
        name: engine.name.to_string(),
        address: engine.address.to_string(),
        model: model.name.to_string(),
        in_flight: engine.in_flight,
        state: state(engine.state).into(),
        // Of the others there is one at a time, and a hundred thousand of them must fit.
        uid: match (engine.state, &engine.uid) {
            (EngineState::Gone, Some(uid)) => uid.to_string(),
            _ => String::new(),
        },
    })
}

const fn state(state: EngineState) -> EndpointState {
    match state {
        EngineState::Open => EndpointState::Open,
        EngineState::Draining => EndpointState::Draining,
        EngineState::Quarantined => EndpointState::Quarantined,
        EngineState::Broken => EndpointState::Broken,
        EngineState::Gone => EndpointState::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_drain_are_told_of_before_idle_ones_and_what_is_left_out_is_counted() {
        let open = EndpointLoad { state: EndpointState::Open.into(), ..EndpointLoad::default() };
        let drains =
            EndpointLoad { state: EndpointState::Draining.into(), ..EndpointLoad::default() };
        let mut endpoints = vec![open; MAX_ENDPOINTS];
        endpoints.push(drains.clone());
        let mut demand = stream::ReportedDemand { endpoints, ..stream::ReportedDemand::default() };
        cut(&mut demand);
        assert_eq!((demand.endpoints.len(), demand.endpoints_left_out), (MAX_ENDPOINTS, 1));
        assert!(demand.endpoints.contains(&drains));
        assert_eq!(demand.models_left_out, 0);
    }
}
