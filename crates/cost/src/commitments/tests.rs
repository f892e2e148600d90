use super::*;
use proptest::prelude::*;

fn dollars(text: &str) -> PicoDollars {
    PicoDollars::read(text).unwrap()
}

fn need(accelerator: &str, prices: [&str; 3], gpus: Vec<u32>) -> PastNeed {
    let [on_demand, reserved, plan] = prices.map(dollars);
    let some = |price: PicoDollars| (!price.is_zero()).then_some(price);
    PastNeed {
        accelerator: accelerator.into(),
        on_demand,
        reserved: some(reserved),
        plan: some(plan),
        gpus,
    }
}

fn past(needs: Vec<PastNeed>) -> PastNeeds {
    PastNeeds { step: Micros::HOUR, needs }
}

#[test]
fn what_is_needed_longer_than_its_price_is_worth_is_reserved() {
    // Six of ten hours at least four, three of ten hours eight; a reserved hour costs half.
    let gpus = vec![2, 2, 2, 2, 4, 4, 4, 8, 8, 8];
    let past = past(vec![need("h100", ["10", "5", "0"], gpus)]);
    let advice = advise(&past).unwrap();
    assert_eq!(advice.commitment, Commitment::Reserved(vec![4]));
    assert_eq!(advice.on_demand, dollars("440"));
    assert_eq!(advice.cost, dollars("320"));
    assert_eq!(advice.break_even[0].used_ppm, 600_000);
    assert_eq!(advice.break_even[0].needed_ppm, 500_000);
    // Halved: 4 reserved for ten hours at 5, and nothing above them.
    assert_eq!(advice.loss_if_halved, dollars("200") - dollars("220"));
    // Chosen on the calm half (2), judged on the busy one: 2 x 5 x 5 + (2 + 2 + 6 + 6 + 6) x 10, the best is 8.
    let best = 8 * 5 * 5;
    assert_eq!(advice.regret_ppm, Some((50 + 220 - best) * 1_000_000 / best));
}

#[test]
fn nothing_is_committed_to_where_it_does_not_pay() {
    for prices in [["10", "10", "10"], ["10", "12", "11"], ["10", "0", "0"], ["0", "1", "1"]] {
        let past = past(vec![need("h100", prices, vec![3, 0, 7])]);
        assert_eq!(advise(&past).unwrap().commitment, Commitment::OnDemand, "{prices:?}");
    }
    assert_eq!(advise(&past(vec![])), None);
    assert_eq!(advise(&past(vec![need("h100", ["10", "5", "0"], vec![])])), None);
}

#[test]
fn a_plan_follows_demand_that_moves_between_accelerators() {
    // Each is needed half of the time: no reservation pays at 60 %, a plan that covers both does.
    let one = need("h100", ["10", "6", "7"], vec![4, 0, 4, 0]);
    let other = need("a100", ["5", "3", "3.5"], vec![0, 8, 0, 8]);
    let advice = advise(&past(vec![one, other])).unwrap();
    assert_eq!(advice.commitment, Commitment::SavingsPlan(dollars("28")));
    assert_eq!((advice.cost, advice.on_demand), (dollars("112"), dollars("160")));
}

#[test]
fn a_plan_is_spent_where_it_saves_most() {
    let one = need("a", ["10", "0", "8"], vec![1]);
    let other = need("b", ["10", "0", "4"], vec![1]);
    // Four dollars cover `b`; `a` is paid on demand.
    assert_eq!(plan_cost(&past(vec![one, other]), dollars("4")), dollars("14"));
}

prop_compose! {
    fn needs()(
        count in 1usize..4,
        steps in 1usize..12,
    )(
        gpus in proptest::collection::vec(proptest::collection::vec(0u32..9, steps), count),
        prices in proptest::collection::vec((1i128..40, 0i128..45, 0i128..45), count),
    ) -> PastNeeds {
        let some = |price: i128| (price > 0).then_some(PicoDollars::new(price * 1_000_000));
        let mut needs = Vec::new();
        for (gpus, (on_demand, reserved, plan)) in gpus.into_iter().zip(prices) {
            needs.push(PastNeed {
                accelerator: format!("gpu-{}", needs.len()),
                on_demand: PicoDollars::new(on_demand * 1_000_000),
                reserved: some(reserved),
                plan: some(plan),
                gpus,
            });
        }
        past(needs)
    }
}

proptest! {
    #[test]
    fn no_other_number_of_gpus_and_no_other_plan_is_cheaper(past in needs()) {
        let best = past.cost(&past.best().unwrap());
        prop_assert!(best <= past.cost(&Commitment::OnDemand));
        for (index, need) in past.needs.iter().enumerate() {
            if need.reserved.is_none() {
                continue;
            }
            for gpus in 0..10 {
                let mut all = vec![0; past.needs.len()];
                all[index] = gpus;
                prop_assert!(best <= past.cost(&Commitment::Reserved(all)), "{} of {}", gpus, index);
            }
        }
        let most: i128 = past.needs.iter().filter_map(|need| need.plan).map(|plan| plan.get() * 9).sum();
        for part in 0..=60 {
            let hourly = PicoDollars::new(most * part / 60);
            // A pico-dollar a step is rounding.
            let slack = PicoDollars::new(40);
            prop_assert!(best <= past.cost(&Commitment::SavingsPlan(hourly)) + slack, "{}", hourly);
        }
    }
}
