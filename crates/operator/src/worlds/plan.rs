//! What a seed makes: who is there, what is asked, and what goes wrong when.

use super::Second;
use super::dice::Dice;

/// A world before it begins.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) length: Second,
    /// Seconds between looks.
    pub(super) tick_every: Second,
    /// Whether engines' series are asked for.
    pub(super) prometheus: bool,
    /// Nodes with accelerators, pool by pool.
    pub(super) nodes: Vec<NodePlan>,
    pub(super) pools: usize,
    pub(super) models: Vec<ModelPlan>,
    pub(super) gateways: Vec<GatewayPlan>,
    pub(super) others: Vec<OtherPlan>,
    pub(super) faults: Vec<Fault>,
}

#[derive(Clone, Debug)]
pub(super) struct NodePlan {
    pub(super) name: String,
    pub(super) pool: usize,
    pub(super) gpus: u32,
}

#[derive(Clone, Debug)]
pub(super) struct ModelPlan {
    pub(super) namespace: String,
    pub(super) name: String,
    /// What clients say.
    pub(super) public: String,
    pub(super) pool: usize,
    pub(super) gpus: u32,
    pub(super) acts: bool,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) sleeps: bool,
    /// Seconds from a node to ready.
    pub(super) start: Second,
    /// Streams that one replica works on at once, and tokens per second of each.
    pub(super) slots: u32,
    pub(super) speed: f64,
    pub(super) prompt: u32,
    pub(super) output: u32,
    /// What its owner says a replica can do, in parts of the truth; `None` if nothing.
    pub(super) stated: Option<f64>,
    /// Requests per second from each moment on.
    pub(super) stages: Vec<(Second, f64)>,
    pub(super) initial: u32,
    /// Whether its engines cut streams as soon as they are told to end.
    pub(super) cuts: bool,
    /// Requests per second that go around gateways.
    pub(super) bypass: f64,
}

#[derive(Clone, Debug)]
pub(super) struct GatewayPlan {
    pub(super) name: String,
    /// Models that it serves, by index. No two of one public name.
    pub(super) models: Vec<usize>,
    /// Whether the operator understands it.
    pub(super) understood: bool,
}

/// A pod of somebody else that holds accelerators.
#[derive(Clone, Debug)]
pub(super) struct OtherPlan {
    pub(super) node: usize,
    pub(super) gpus: u32,
    pub(super) from: Second,
    pub(super) until: Second,
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// A gateway says nothing, and its traffic goes on.
    SilentGateway { gateway: usize, from: Second, until: Second },
    /// A gateway dies with its node; its pod object stays for so long.
    DeadGateway { gateway: usize, at: Second, stays: Second },
    /// A node is lost. Its pods are told to end after five minutes and stay until it is back, if ever.
    LostNode { node: usize, at: Second, back: Option<Second> },
    /// Pods of a model are sick.
    Sick { model: usize, from: Second, until: Second, kind: Sickness },
    /// Another operator leads from now on, and gateways come to it within so many seconds.
    Failover { at: Second, within: Second },
    /// Series cannot be asked for.
    NoSeries { from: Second, until: Second },
    /// The API server takes no writes.
    NoWrites { from: Second, until: Second },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sickness {
    /// Pods that are made now never become ready.
    NeverReady,
    /// One pod that serves is not ready any more, with its streams open.
    Lapses,
    /// Pods that are made now crash again and again.
    Crashes,
}

const LENGTH: Second = 1_500;

/// The world of a seed.
pub(super) fn plan(seed: u64) -> Plan {
    let mut dice = Dice::new(seed, 0);
    let pools = dice.index(2) + 1;
    let mut nodes = Vec::new();
    for pool in 0..pools {
        let gpus = dice.one_of(&[2, 4, 8]);
        for n in 0..dice.small(1, 3) {
            nodes.push(NodePlan { name: format!("gpu-{pool}-{n}"), pool, gpus });
        }
    }
    let mut models: Vec<ModelPlan> =
        (0..dice.small(1, 4)).map(|n| model(&mut dice, n, pools)).collect();
    if dice.happens(0.3) {
        let twin = twin(&models[0], dice.index(pools));
        models.push(twin);
    }
    let gateways = gateways(&mut dice, &models);
    let others = (0..dice.small(0, 2)).filter(|_| dice.happens(0.5));
    let others: Vec<u32> = others.collect();
    let others = others.into_iter().map(|_| other(&mut dice, &nodes)).collect();
    let faults = (0..dice.small(0, 4))
        .map(|_| fault(&mut dice, models.len(), nodes.len(), gateways.len()))
        .collect();
    let (tick_every, prometheus) = (dice.one_of(&[5, 15]), dice.happens(0.6));
    let mut plan = Plan {
        seed,
        length: LENGTH,
        tick_every,
        prometheus,
        nodes,
        pools,
        models,
        gateways,
        others,
        faults,
    };
    plan.hide_nothing();
    plan
}

impl Plan {
    /// What goes around gateways, or through one that the operator does not understand, only engines can
    /// tell of: where nobody asks them, nobody can know.
    fn hide_nothing(&mut self) {
        if self.prometheus {
            let around = self.models.iter().any(|model| model.bypass > 0.0)
                || self.gateways.iter().any(|gateway| !gateway.understood);
            self.faults.retain(|fault| !(around && matches!(fault, Fault::NoSeries { .. })));
            return;
        }
        self.models.iter_mut().for_each(|model| model.bypass = 0.0);
        self.gateways.iter_mut().for_each(|gateway| gateway.understood = true);
    }
}

fn model(dice: &mut Dice, n: u32, pools: usize) -> ModelPlan {
    let (slots, speed) = (dice.small(2, 12), dice.between(10.0, 60.0));
    let (prompt, output) = (dice.small(50, 2_000), dice.small(20, 1_200));
    let seconds = (f64::from(output) / speed).max(1.0);
    let replica_rate = f64::from(slots) / seconds;
    let (min, max) = (dice.small(1, 2), dice.small(3, 8));
    let level = |dice: &mut Dice| replica_rate * dice.one_of(&[0.0, 0.0, 0.3, 1.0, 2.0, 4.0]);
    let stages = (0..5).map(|n| (n * LENGTH / 5 + dice.whole(0, 60), level(dice))).collect();
    let stated = match dice.small(0, 3) {
        0 => None,
        1 => Some(dice.between(0.3, 3.0)),
        _ => Some(1.0),
    };
    ModelPlan {
        namespace: format!("team-{}", dice.small(0, 1)),
        name: format!("model-{n}"),
        public: format!("model-{n}"),
        pool: dice.index(pools),
        gpus: dice.one_of(&[1, 1, 2]),
        acts: dice.happens(0.8),
        min,
        max,
        sleeps: dice.happens(0.4),
        start: dice.whole(5, 60),
        slots,
        speed,
        prompt,
        output,
        stated,
        stages,
        initial: dice.small(0, 3),
        cuts: dice.happens(0.5),
        bypass: if dice.happens(0.2) { replica_rate * 0.2 } else { 0.0 },
    }
}

/// The same public name in another namespace, which nobody asks for anything.
fn twin(of: &ModelPlan, pool: usize) -> ModelPlan {
    ModelPlan {
        namespace: "team-twin".to_owned(),
        pool,
        acts: true,
        sleeps: false,
        stages: Vec::new(),
        initial: 1,
        bypass: 0.0,
        ..of.clone()
    }
}

/// One to three gateways for everything, and one of its own for a twin.
fn gateways(dice: &mut Dice, models: &[ModelPlan]) -> Vec<GatewayPlan> {
    let first = |n: &usize| {
        let public = &models[*n].public;
        models.iter().position(|other| other.public == *public) == Some(*n)
    };
    let (main, rest): (Vec<usize>, Vec<usize>) = (0..models.len()).partition(first);
    let mut all: Vec<GatewayPlan> = (0..dice.small(1, 3))
        .map(|n| GatewayPlan {
            name: format!("gateway-{n}"),
            models: main.clone(),
            understood: n == 0 || dice.happens(0.9),
        })
        .collect();
    if !rest.is_empty() {
        let name = "gateway-twin".to_owned();
        all.push(GatewayPlan { name, models: rest, understood: true });
    }
    all
}

fn other(dice: &mut Dice, nodes: &[NodePlan]) -> OtherPlan {
    let node = dice.index(nodes.len());
    let from = dice.whole(0, LENGTH / 2);
    let gpus = dice.small(1, nodes[node].gpus);
    OtherPlan { node, gpus, from, until: from + dice.whole(60, LENGTH) }
}

fn fault(dice: &mut Dice, models: usize, nodes: usize, gateways: usize) -> Fault {
    let from = dice.whole(30, LENGTH * 2 / 3);
    let until = from + dice.whole(30, 900);
    let (gateway, node, model) = (dice.index(gateways), dice.index(nodes), dice.index(models));
    match dice.small(0, 8) {
        0 | 1 => Fault::SilentGateway { gateway, from, until },
        2 => Fault::DeadGateway { gateway, at: from, stays: dice.whole(60, 1_000) },
        3 => Fault::LostNode { node, at: from, back: dice.happens(0.5).then_some(until) },
        4 | 5 => {
            let kinds = [Sickness::NeverReady, Sickness::Lapses, Sickness::Crashes];
            Fault::Sick { model, from, until, kind: dice.one_of(&kinds) }
        }
        6 => Fault::Failover { at: from, within: dice.whole(1, 90) },
        7 => Fault::NoSeries { from, until },
        _ => Fault::NoWrites { from, until },
    }
}

impl ModelPlan {
    /// Requests per second at a moment.
    pub(super) fn rate(&self, now: Second) -> f64 {
        let mut begun = self.stages.iter().filter(|(from, _)| *from <= now);
        begun.next_back().map_or(0.0, |(_, rate)| *rate)
    }

    /// Seconds that one answer takes.
    pub(super) fn seconds(&self) -> Second {
        (f64::from(self.output) / self.speed).ceil().max(1.0) as Second
    }

    /// Whether anybody ever asks for it.
    pub(super) fn is_requested(&self) -> bool {
        self.stages.iter().any(|(_, rate)| *rate > 0.0) || self.bypass > 0.0
    }
}
