//! The lower bound: a linear program in which replicas may be fractions.
//!
//! Time is cut into pieces and steps are averaged, both so that the result can only get lower.
//! A piece begins with whatever it likes for free. Averaging: take any plan and average each of
//! its numbers over the blocks. Costs of running and the rows are linear, so they hold on average;
//! averages move up and down no more than the numbers did, so starts cost no more. A start's lead
//! is rounded down to whole blocks, which holds on average because the sum of all starts so far
//! never falls.
//!
//! For a model with one variant the row is tightened: whole replicas are needed, and the last of
//! them saves only what is left for it. Without that, a plan of fractions would look too cheap.
//! With several variants the same is done by mixed-integer rounding (Nemhauser and Wolsey, 1990),
//! one further row for each of them, where steps are not averaged.

use super::super::sizing::whole;
use super::super::solver::{Column, Program, Unsolved};
use super::{ClairvoyantProblem, ClairvoyantVariant, Grain};
use std::ops::Range;

/// The bound, and the fractions it is reached with.
pub(super) struct Relaxed {
    pub(super) bound: f64,
    /// Per variant and step.
    pub(super) replicas: Vec<Vec<f64>>,
}

pub(super) fn relax(problem: &ClairvoyantProblem<'_>, grain: Grain) -> Result<Relaxed, Unsolved> {
    let (merge, piece) = (grain.merge.max(1), grain.piece.max(1));
    let replicas = vec![vec![0.0; problem.steps()]; problem.variants.len()];
    let mut relaxed = Relaxed { bound: 0.0, replicas };
    for stretch in problem.stretches() {
        let mut from = stretch.steps.start;
        while from < stretch.steps.end {
            let upto = stretch.steps.end.min(from + merge * piece);
            let given = from == stretch.steps.start && !stretch.after_gap;
            let blocks = (from..upto).step_by(merge).map(|at| at..upto.min(at + merge)).collect();
            Piece { problem, blocks, merge, given }.solve(&mut relaxed)?;
            from = upto;
        }
    }
    Ok(relaxed)
}

/// One linear program.
struct Piece<'a> {
    problem: &'a ClairvoyantProblem<'a>,
    blocks: Vec<Range<usize>>,
    merge: usize,
    /// Whether what runs before it is given, or free.
    given: bool,
}

/// Columns of something that runs and has to be started, per block.
struct Track {
    size: Vec<Column>,
    more: Vec<Column>,
}

impl Piece<'_> {
    fn solve(&self, relaxed: &mut Relaxed) -> Result<(), Unsolved> {
        let mut program = Program::new();
        let tracks: Vec<Track> = self
            .problem
            .variants
            .iter()
            .map(|variant| {
                let start = variant.price * variant.cold_start.get();
                self.track(&mut program, variant.price, start, variant.initial)
            })
            .collect();
        for model in 0..self.problem.work.len() {
            self.serve(&mut program, model, &tracks);
        }
        self.share(&mut program, &tracks);
        let answer = program.solve()?;
        relaxed.bound += answer.cost;
        for (track, replicas) in tracks.iter().zip(&mut relaxed.replicas) {
            for (block, &size) in self.blocks.iter().zip(&track.size) {
                replicas[block.clone()].fill(answer.value(size));
            }
        }
        Ok(())
    }

    fn seconds(&self, block: &Range<usize>) -> f64 {
        block.len() as f64 * self.problem.step.get()
    }

    fn track(&self, program: &mut Program, price: f64, start: f64, initial: u32) -> Track {
        let mut track = Track { size: Vec::new(), more: Vec::new() };
        for (at, block) in self.blocks.iter().enumerate() {
            let size = program.column(price * self.seconds(block), f64::INFINITY);
            let free = at == 0 && !self.given;
            let more = program.column(if free { 0.0 } else { start }, f64::INFINITY);
            match track.size.last() {
                Some(&before) => {
                    program.at_most(&[(size, 1.0), (before, -1.0), (more, -1.0)], 0.0);
                }
                None if self.given => {
                    program.at_most(&[(size, 1.0), (more, -1.0)], f64::from(initial));
                }
                None => {}
            }
            track.size.push(size);
            track.more.push(more);
        }
        track
    }

    /// Rows that say what is served, and columns for what is not.
    fn serve(&self, program: &mut Program, model: usize, tracks: &[Track]) {
        let variants: Vec<(&ClairvoyantVariant, &Track)> =
            self.problem.variants.iter().zip(tracks).filter(|(v, _)| v.model == model).collect();
        for (at, block) in self.blocks.iter().enumerate() {
            let work = &self.problem.work[model][block.clone()];
            let price = self.problem.price_of_a_miss * self.seconds(block);
            if let [(variant, track)] = variants[..] {
                let mut row = vec![(track.size[at], 1.0)];
                let (need, lacks) = lacks(work, variant.serves);
                for lack in lacks {
                    row.push((program.column(price * lack.lost, lack.most), 1.0));
                }
                program.at_least(&row, need);
            } else {
                let mean = work.iter().sum::<f64>() / work.len() as f64;
                let missed = program.column(price, mean);
                let sizes: Vec<(Column, f64)> =
                    variants.iter().map(|(v, track)| (track.size[at], v.serves)).collect();
                let mut row = vec![(missed, 1.0)];
                row.extend(&sizes);
                program.at_least(&row, mean);
                if block.len() == 1 {
                    whole_rows(program, missed, &sizes, mean);
                }
            }
        }
    }

    /// Rows of the pool.
    fn share(&self, program: &mut Program, tracks: &[Track]) {
        let Some(pool) = self.problem.pool else { return };
        let lent = pool
            .lending
            .map(|lending| self.track(program, -lending.value, lending.restart, lending.initial));
        for at in 0..self.blocks.len() {
            let mut row: Vec<(Column, f64)> = Vec::new();
            for (variant, track) in self.problem.variants.iter().zip(tracks) {
                let gpus = f64::from(variant.gpus);
                row.push((track.size[at], gpus));
                let last = (at + self.problem.lead(variant) / self.merge).min(track.more.len() - 1);
                row.extend(track.more[at + 1..=last].iter().map(|&more| (more, gpus)));
            }
            row.extend(lent.iter().map(|lent| (lent.size[at], 1.0)));
            program.at_most(&row, f64::from(pool.gpus));
        }
    }
}

/// Rows that hold for whole replicas only: with work counted in replicas of one variant, a part of
/// a replica is either there in full or missed.
fn whole_rows(program: &mut Program, missed: Column, sizes: &[(Column, f64)], work: f64) {
    for &(_, unit) in sizes {
        let (need, part) = ((work / unit).ceil(), (work / unit).fract());
        // Very small parts would only spread the numbers of the row.
        if part < 1e-3 {
            continue;
        }
        let mut row = vec![(missed, 1.0 / (unit * part))];
        row.extend(sizes.iter().map(|&(size, serves)| {
            let worth = serves / unit;
            (size, worth.floor() + (worth.fract() / part).min(1.0))
        }));
        program.at_least(&row, need);
    }
}

/// Replicas that may be lacking, and the work per second that each then loses.
struct Lack {
    most: f64,
    lost: f64,
}

/// Replicas needed on average, and what lacking them loses, cheapest first.
///
/// In each step the last replica saves what is left for it, and each other one all it can serve.
/// Over the steps of a block the cheapest are lacking first, whichever step they belong to. Four
/// classes are enough to tell them apart; each takes the least of its members.
fn lacks(work: &[f64], serves: f64) -> (f64, Vec<Lack>) {
    let steps = work.len() as f64;
    let (mut need, mut full) = (0.0, 0.0);
    let mut last: Vec<f64> = Vec::with_capacity(work.len());
    for &work in work {
        let replicas = f64::from(whole(work / serves));
        need += replicas;
        if replicas > 0.0 {
            full += replicas - 1.0;
            last.push((work - (replicas - 1.0) * serves).min(serves));
        }
    }
    last.sort_by(f64::total_cmp);
    let class = last.len().div_ceil(4).max(1);
    let mut lacks: Vec<Lack> = last
        .chunks(class)
        .map(|class| Lack { most: class.len() as f64 / steps, lost: class[0] })
        .collect();
    if full > 0.0 {
        lacks.push(Lack { most: full / steps, lost: serves });
    }
    (need / steps, lacks)
}
