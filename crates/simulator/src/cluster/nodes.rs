//! Accelerators: the nodes they are on, who has them, and where more come from.

use super::World;
use super::faults::Fault;
use super::queue::Event;
use super::replicas::State;
use crate::chance::{Purpose, stream};
use crate::seconds::Seconds;
use flyball_core::snapshot::Purchase;
use rand::RngExt;
use std::collections::BTreeSet;

/// A node with accelerators.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) pool: usize,
    pub(super) purchase: Purchase,
    pub(super) gpus: u32,
    pub(super) used: u32,
    pub(super) came: Seconds,
    pub(super) gone: Option<Seconds>,
    /// It will be taken away, and gets nothing new.
    pub(super) leaving: bool,
    /// It was delivered, so it goes again when nobody needs it.
    delivered: bool,
    /// How often it got something: an old alarm about its idleness is told by it.
    uses: u32,
    /// Which model's which variant has left its image here.
    images: BTreeSet<(usize, usize)>,
}

/// A node that was ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeOrder {
    pool: usize,
    purchase: Purchase,
    /// It came, or was given up.
    done: bool,
    /// It could have come but there was no stock.
    late: bool,
}

impl Node {
    fn free(&self) -> u32 {
        if self.gone.is_some() || self.leaving { 0 } else { self.gpus - self.used }
    }

    pub(super) fn is_there(&self) -> bool {
        self.gone.is_none()
    }
}

impl World<'_> {
    pub(super) fn add_node(&mut self, pool: usize, purchase: Purchase, delivered: bool) {
        let gpus = self.setup.pools[pool].gpus_per_node;
        self.nodes.push(Node {
            pool,
            purchase,
            gpus,
            used: 0,
            came: self.now,
            gone: None,
            leaving: false,
            delivered,
            uses: 0,
            images: BTreeSet::new(),
        });
        if delivered {
            self.watch_idle(self.nodes.len() - 1);
        }
    }

    /// Gives a replica its accelerators, if they are free: on one node, or on as many whole ones as
    /// it takes.
    fn place(&mut self, replica: usize) -> bool {
        let (pool, purchase, gpus) = self.needs(replica);
        let per_node = self.setup.pools[pool].gpus_per_node.max(1);
        let each = gpus.min(per_node);
        let fits = |node: &Node| {
            node.pool == pool && node.purchase == purchase && node.free() >= each && each > 0
        };
        // The fullest node that has room, so that whole nodes stay free for those who need them.
        let mut open: Vec<usize> =
            (0..self.nodes.len()).filter(|n| fits(&self.nodes[*n])).collect();
        open.sort_by_key(|node| (self.nodes[*node].free(), *node));
        let needed = gpus.div_ceil(per_node) as usize;
        if open.len() < needed {
            return false;
        }
        open.truncate(needed);
        let (model, variant) = (self.replicas[replica].model, self.replicas[replica].variant);
        let has_image = open.iter().all(|n| self.nodes[*n].images.contains(&(model, variant)));
        for node in &open {
            let node = &mut self.nodes[*node];
            node.used += each;
            node.uses += 1;
            node.images.insert((model, variant));
        }
        self.replicas[replica].nodes = open.into_iter().map(|node| (node, each)).collect();
        self.replica_placed(replica, has_image);
        true
    }

    /// Takes its accelerators back.
    pub(super) fn release(&mut self, replica: usize) {
        for (node, gpus) in std::mem::take(&mut self.replicas[replica].nodes) {
            self.nodes[node].used -= gpus;
            self.nodes[node].uses += 1;
            self.watch_idle(node);
        }
    }

    /// Gives free accelerators to those that wait, and orders nodes for the rest.
    pub(super) fn place_pending(&mut self, pool: usize) {
        let waits = |world: &Self, replica: usize| {
            world.replicas[replica].state == State::Pending && world.needs(replica).0 == pool
        };
        let pending: Vec<usize> =
            self.present.iter().copied().filter(|replica| waits(self, *replica)).collect();
        for replica in pending {
            self.place(replica);
        }
        self.order_nodes(pool);
    }

    /// Orders the nodes that pending replicas need and nobody has ordered; late ones come first.
    pub(super) fn order_nodes(&mut self, pool: usize) {
        if !self.setup.pools[pool].can_grow {
            return;
        }
        self.deliver_late(pool);
        for purchase in [Purchase::Reserved, Purchase::OnDemand, Purchase::Spot] {
            let needed = self.nodes_needed(pool, purchase);
            let open = |order: &&NodeOrder| {
                order.pool == pool && order.purchase == purchase && !order.done
            };
            let ordered = self.orders.iter().filter(open).count() as u32;
            for _ in ordered..needed {
                let order = self.orders.len();
                self.orders.push(NodeOrder { pool, purchase, done: false, late: false });
                let mut chance =
                    stream(self.setup.seed, Purpose::ColdStarts, 1_000_000 + order as u64);
                let after = self.setup.pools[pool].node_supply.draw(&mut chance);
                self.queue.plan(self.now + after, Event::NodeComes { order });
            }
        }
    }

    fn nodes_needed(&self, pool: usize, purchase: Purchase) -> u32 {
        let per_node = self.setup.pools[pool].gpus_per_node.max(1);
        let waits = |replica: &&usize| {
            let needs = self.needs(**replica);
            self.replicas[**replica].state == State::Pending
                && (needs.0, needs.1) == (pool, purchase)
        };
        let gpus = self.present.iter().filter(waits).map(|replica| {
            // Replicas do not share a node with another half of themselves.
            let gpus = self.needs(*replica).2;
            if gpus >= per_node { gpus.div_ceil(per_node) * per_node } else { gpus }
        });
        gpus.sum::<u32>().div_ceil(per_node)
    }

    fn deliver_late(&mut self, pool: usize) {
        for order in 0..self.orders.len() {
            let NodeOrder { pool: of, done, late, .. } = self.orders[order];
            if of == pool && late && !done {
                self.node_comes(order);
            }
        }
    }

    pub(super) fn node_comes(&mut self, order: usize) {
        let NodeOrder { pool, purchase, done, .. } = self.orders[order];
        if done {
            return;
        }
        if self.nodes_needed(pool, purchase) == 0 {
            // Nobody waits for it any more.
            self.orders[order].done = true;
            return;
        }
        if !self.has_stock(pool) {
            self.orders[order].late = true;
            return;
        }
        self.orders[order].done = true;
        self.add_node(pool, purchase, true);
        self.place_pending(pool);
    }

    fn has_stock(&self, pool: usize) -> bool {
        let have = self.nodes.iter().filter(|n| n.pool == pool && n.is_there()).count() as u32;
        let setup = &self.setup.pools[pool];
        let stock = setup.stock.iter().rev().find(|(from, _)| *from <= self.now);
        let out =
            self.suffers(|fault| matches!(fault, Fault::StockOut { pool: p, .. } if *p == pool));
        !out && stock.is_none_or(|(_, most)| have < *most)
    }

    fn watch_idle(&mut self, node: usize) {
        let Node { used, delivered, uses, pool, .. } = self.nodes[node];
        if used == 0 && delivered {
            let at = self.now + self.setup.pools[pool].idle_node;
            self.queue.plan(at, Event::NodeIdles { node, since_use: uses });
        }
    }

    pub(super) fn node_idles(&mut self, node: usize, since_use: u32) {
        let Node { used, uses, gone, .. } = self.nodes[node];
        if used == 0 && uses == since_use && gone.is_none() {
            self.nodes[node].gone = Some(self.now);
        }
    }

    /// Some spot nodes get notice: what runs on them is told to end by then.
    pub(super) fn reclaim(&mut self, pool: usize, count: u32, notice: Seconds) {
        let spot = |node: &Node| node.purchase == Purchase::Spot;
        for node in self.pick_nodes(pool, count, spot) {
            self.nodes[node].leaving = true;
            for replica in self.on_node(node) {
                self.terminate(replica, notice);
            }
            self.queue.plan(self.now + notice, Event::NodeGoes { node });
        }
        self.reconcile();
    }

    /// Some nodes vanish, and what runs on them too.
    pub(super) fn lose_nodes(&mut self, pool: usize, count: u32) {
        for node in self.pick_nodes(pool, count, |_| true) {
            self.node_goes(node);
        }
    }

    pub(super) fn node_goes(&mut self, node: usize) {
        if self.nodes[node].gone.is_some() {
            return;
        }
        self.nodes[node].leaving = true;
        for replica in self.on_node(node) {
            self.kill(replica);
        }
        self.nodes[node].gone = Some(self.now);
        self.reconcile();
        self.place_pending(self.nodes[node].pool);
    }

    fn pick_nodes(&mut self, pool: usize, count: u32, which: impl Fn(&Node) -> bool) -> Vec<usize> {
        let mut open: Vec<usize> = (0..self.nodes.len())
            .filter(|n| {
                let node = &self.nodes[*n];
                node.pool == pool && node.is_there() && !node.leaving && which(node)
            })
            .collect();
        let mut picked = Vec::new();
        while picked.len() < count as usize && !open.is_empty() {
            picked.push(open.swap_remove(self.misfortune.random_range(0..open.len())));
        }
        picked
    }

    fn on_node(&self, node: usize) -> Vec<usize> {
        let here = |replica: &usize| self.replicas[*replica].nodes.iter().any(|(n, _)| *n == node);
        self.present.iter().copied().filter(here).collect()
    }

    /// The pool, purchase and accelerators that a replica needs.
    pub(super) fn needs(&self, replica: usize) -> (usize, Purchase, u32) {
        let replica = &self.replicas[replica];
        let variant = &self.setup.models[replica.model].variants[replica.variant];
        (variant.pool, replica.purchase, variant.gpus_per_replica)
    }
}
