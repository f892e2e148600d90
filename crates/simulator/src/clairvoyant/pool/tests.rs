use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// A small case, owned.
#[derive(Clone, Debug)]
struct Case {
    work: Vec<Vec<f64>>,
    variants: Vec<ClairvoyantVariant>,
    pool: Option<ClairvoyantPool>,
    price_of_a_miss: f64,
}

impl Case {
    fn problem(&self) -> ClairvoyantProblem<'_> {
        ClairvoyantProblem {
            work: &self.work,
            masked: &[],
            step: Seconds(1.0),
            variants: &self.variants,
            pool: self.pool,
            price_of_a_miss: self.price_of_a_miss,
        }
    }
}

fn variant(model: usize) -> impl Strategy<Value = ClairvoyantVariant> {
    // A cold start of up to two steps occupies the pool for at most one whole step: that is as
    // far as the comparison looks.
    (1_u32..=3, 1_u32..=4, 1_u32..=2, 0_u32..=7, 0_u32..=2).prop_map(
        move |(serves, price, gpus, quarters, initial)| ClairvoyantVariant {
            model,
            serves: f64::from(serves),
            price: f64::from(price),
            gpus,
            cold_start: Seconds(f64::from(quarters) / 4.0),
            initial,
        },
    )
}

fn pool() -> impl Strategy<Value = Option<ClairvoyantPool>> {
    let lending = (1_u32..=3, 0_u32..=4, 0_u32..=2).prop_map(|(value, restart, initial)| {
        ClairvoyantLending { value: 0.3 * f64::from(value), restart: f64::from(restart), initial }
    });
    prop::option::weighted(
        0.8,
        (1_u32..=4, prop::option::weighted(0.7, lending))
            .prop_map(|(gpus, lending)| ClairvoyantPool { gpus, lending }),
    )
}

/// One model with one or two variants, or two models with one each.
fn cases() -> impl Strategy<Value = Case> {
    let variants = prop_oneof![
        variant(0).prop_map(|one| vec![one]),
        (variant(0), variant(0)).prop_map(|(one, other)| vec![one, other]),
        (variant(0), variant(1)).prop_map(|(one, other)| vec![one, other]),
    ];
    let work = prop::collection::vec((0_u32..=8, 0_u32..=8), 1..=8);
    (variants, work, pool(), 0.2..8.0_f64).prop_map(|(variants, work, pool, price_of_a_miss)| {
        let halves = |work: u32| f64::from(work) / 2.0;
        let mut both = vec![work.iter().map(|work| halves(work.0)).collect::<Vec<_>>()];
        if variants.iter().any(|variant| variant.model == 1) {
            both.push(work.iter().map(|work| halves(work.1)).collect());
        }
        Case { work: both, variants, pool, price_of_a_miss }
    })
}

/// A state: replicas of each variant, and lent accelerators at the end.
fn states(case: &Case) -> Vec<Vec<u32>> {
    let mut most: Vec<u32> = case
        .variants
        .iter()
        .map(|v| {
            let peak = case.work[v.model].iter().fold(0.0_f64, |most, &work| most.max(work));
            (peak / v.serves).ceil() as u32
        })
        .collect();
    let lends = case.pool.is_some_and(|pool| pool.lending.is_some());
    most.push(if lends { case.pool.map_or(0, |pool| pool.gpus) } else { 0 });
    most.iter().fold(vec![Vec::new()], |states, &most| {
        states
            .iter()
            .flat_map(|state| (0..=most).map(move |n| [state.as_slice(), &[n]].concat()))
            .collect()
    })
}

/// Least cost over all whole plans, by trying every pair of neighbouring states in every step.
fn brute(case: &Case) -> f64 {
    let count = case.variants.len();
    let lending = case.pool.and_then(|pool| pool.lending);
    let rise = |from: &[u32], to: &[u32], v: usize| to[v].saturating_sub(from[v]);
    let moves = |from: &[u32], to: &[u32]| {
        let starts = (0..count).map(|v| {
            let variant = case.variants[v];
            f64::from(rise(from, to, v)) * variant.price * variant.cold_start.get()
        });
        let again = lending.map_or(0.0, |l| l.restart * f64::from(rise(from, to, count)));
        starts.sum::<f64>() + again
    };
    let fits = |from: &[u32], to: Option<&[u32]>| {
        case.pool.is_none_or(|pool| {
            let used = (0..count).map(|v| {
                let early = case.variants[v].cold_start.get() >= 1.0;
                let starting = to.filter(|_| early).map_or(0, |to| rise(from, to, v));
                case.variants[v].gpus * (from[v] + starting)
            });
            used.sum::<u32>() + from[count] <= pool.gpus
        })
    };
    let holds = |state: &[u32], step: usize| {
        let mut cost = -lending.map_or(0.0, |l| l.value * f64::from(state[count]));
        for (model, work) in case.work.iter().enumerate() {
            let mut left = work[step];
            for (variant, &n) in case.variants.iter().zip(state) {
                if variant.model == model {
                    left -= variant.serves * f64::from(n);
                }
            }
            cost += case.price_of_a_miss * left.max(0.0);
        }
        let run = case.variants.iter().zip(state).map(|(v, &n)| v.price * f64::from(n));
        cost + run.sum::<f64>()
    };
    let states: Vec<Vec<u32>> =
        states(case).into_iter().filter(|state| fits(state, None)).collect();
    let mut initial: Vec<u32> = case.variants.iter().map(|variant| variant.initial).collect();
    initial.push(lending.map_or(0, |lending| lending.initial));
    let mut cost: Vec<f64> =
        states.iter().map(|state| moves(&initial, state) + holds(state, 0)).collect();
    for step in 1..case.work[0].len() {
        let next = states.iter().map(|to| {
            let ways = states.iter().zip(&cost).filter(|(from, _)| fits(from, Some(to)));
            let least =
                ways.map(|(from, cost)| cost + moves(from, to)).fold(f64::INFINITY, f64::min);
            least + holds(to, step)
        });
        cost = next.collect();
    }
    cost.into_iter().fold(f64::INFINITY, f64::min)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_best_plan_lies_between_bound_and_rounded(
        case in cases(), merge in 1_usize..=3, piece in 1_usize..=8,
    ) {
        let problem = case.problem();
        let least = brute(&case);
        let close = 1e-6 * (1.0 + least.abs());
        let fine = bounded(&problem, Grain { merge: 1, piece: 8 }).unwrap();
        prop_assert!(fine.bound <= least + close, "bound {} over {least}", fine.bound);
        let plan = fine.bill.total();
        prop_assert!(plan >= least - close, "plan {plan} under {least}");
        prop_assert_eq!(bill(&problem, &fine.mix), Some(fine.bill));
        let coarse = bounded(&problem, Grain { merge, piece }).unwrap();
        prop_assert!(coarse.bound <= least + close, "coarse bound {} over {least}", coarse.bound);
        let relaxed = |grain| relax::relax(&problem, grain).unwrap().bound;
        let (low, high) = (relaxed(Grain { merge, piece }), relaxed(Grain { merge: 1, piece: 8 }));
        prop_assert!(low <= high + close, "averages gave {low}, steps {high}");
        if case.pool.is_none() && case.work.len() == case.variants.len() {
            prop_assert!((fine.bound - least).abs() < close, "{} and {least}", fine.bound);
            prop_assert!((plan - least).abs() < close, "{plan} and {least}");
        }
    }
}

/// A guard on how good the rounding is, not on whether it is right: over cases that are all tight,
/// plans cost 0.05 % more than the best ones when this was written, and 99 % were best.
#[test]
fn rounded_plans_are_close_to_the_best() {
    let mut runner = TestRunner::deterministic();
    let (mut best, mut more, mut spent) = (0, 0.0, 0.0);
    for _ in 0..1000 {
        let case = cases().new_tree(&mut runner).unwrap().current();
        let apart = |plan: &Bounded| plan.bill.total() - brute(&case);
        let plan = bounded(&case.problem(), Grain { merge: 1, piece: 8 }).unwrap();
        best += usize::from(apart(&plan) < 1e-6);
        more += apart(&plan);
        spent += plan.bill.spent();
    }
    assert!(best >= 970, "{best} of 1000 were best");
    assert!(more < 0.002 * spent, "{more} more than {spent}");
}

/// A gap resets what runs, and neither costs nor serves anything.
#[test]
fn a_gap_costs_nothing() {
    let work = [vec![2.0, 9.0, 3.0]];
    let (serves, price, cold_start) = (1.0, 1.0, Seconds(5.0));
    let variants =
        [ClairvoyantVariant { model: 0, serves, price, gpus: 1, cold_start, initial: 0 }];
    let problem = ClairvoyantProblem {
        work: &work,
        masked: &[false, true, false],
        step: Seconds(1.0),
        variants: &variants,
        pool: Some(ClairvoyantPool { gpus: 3, lending: None }),
        price_of_a_miss: 100.0,
    };
    let plan = bounded(&problem, Grain { merge: 1, piece: 8 }).unwrap();
    // Two replicas for a second with two starts of five, then three for a second.
    assert_eq!(plan.bill.total(), 15.0);
    assert!((plan.bound - 15.0).abs() < 1e-9);
}
