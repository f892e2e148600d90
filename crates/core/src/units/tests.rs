use super::*;
use proptest::prelude::*;

fn usd(micros: i64) -> Money {
    Money::from_micros(micros, Currency::USD)
}

#[test]
fn counts_are_shown_with_their_unit() {
    let shown = [
        (Gpus::new(1).to_string(), "1 GPU"),
        (Gpus::new(8).to_string(), "8 GPUs"),
        (Replicas::ZERO.to_string(), "0 replicas"),
        (MilliReplicas::new(4_290).to_string(), "4.2 replicas"),
        (Requests::new(1).to_string(), "1 request"),
        (Tokens::new(999).to_string(), "999 tokens"),
        (Tokens::new(12_345).to_string(), "12.3 k tokens"),
        (TokensPerSecond::new(2_400_000).to_string(), "2.4 M tokens/s"),
        (Bytes::new(512).to_string(), "512 B"),
        (Bytes::new(256 * 1024).to_string(), "256.0 KiB"),
        (Bytes::MAX.to_string(), "16383.9 PiB"),
    ];
    for (got, want) in shown {
        assert_eq!(got, want);
    }
}

#[test]
fn lengths_of_time_are_shown_as_people_say_them() {
    let shown = [
        (Micros::ZERO, "0 ms"),
        (Micros::new(250), "250 µs"),
        (Micros::new(7_590), "7.5 ms"),
        (Micros::from_millis(430), "430 ms"),
        (Micros::new(999_999), "999.9 ms"),
        (Micros::from_millis(1_250), "1.2 s"),
        (Micros::from_seconds(60), "1 min"),
        (Micros::from_seconds(100), "1 min 40 s"),
        (Micros::from_millis(400_900), "6 min 40 s"),
        (Micros::from_minutes(120), "2 h"),
        (Micros::from_minutes(49 * 60), "2 d 1 h"),
    ];
    for (length, want) in shown {
        assert_eq!(length.to_string(), want);
    }
}

#[test]
fn lengths_and_points_are_seconds_where_a_formula_wants_them() {
    assert_eq!(Micros::from_millis(1_250).as_seconds(), 1.25);
    assert_eq!(Micros::from_millis(1_999).whole_seconds(), 1);
    assert_eq!(Timestamp::from_millis(2_500).as_seconds(), 2.5);
}

#[test]
fn points_in_time_are_shown_as_rfc_3339() {
    let shown = [
        (0, "1970-01-01T00:00:00.000000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000000Z"),
        (951_868_800_000, "2000-03-01T00:00:00.000000Z"),
        (1_735_689_599_999, "2024-12-31T23:59:59.999000Z"),
        (1_794_700_930_123, "2026-11-15T00:02:10.123000Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000000Z"),
    ];
    for (millis, want) in shown {
        assert_eq!(Timestamp::from_millis(millis).to_string(), want);
    }
}

#[test]
fn money_is_shown_with_its_currency() {
    let shown = [
        (usd(13_760_000), "13.76 USD"),
        (usd(125), "0.000125 USD"),
        (usd(-1_500_000), "-1.50 USD"),
        (usd(i64::MIN), "-9223372036854.775808 USD"),
        (Money::zero(Currency::EUR), "0.00 EUR"),
    ];
    for (amount, want) in shown {
        assert_eq!(amount.to_string(), want);
    }
    let price = Price::per_gpu_hour(usd(6_880_000)).unwrap();
    assert_eq!(price.to_string(), "6.88 USD/GPU-h");
    assert_eq!(GpuMicros::of(Gpus::new(8), Micros::from_minutes(45)).to_string(), "6.0 GPU-hours");
}

#[test]
fn a_currency_is_three_capital_letters() {
    assert_eq!("EUR".parse(), Ok(Currency::EUR));
    for wrong in ["", "eur", "EURO", "E1R", "€"] {
        assert_eq!(wrong.parse::<Currency>(), Err(MoneyError::UnknownCurrency(wrong.to_owned())));
    }
}

#[test]
fn gpu_hours_at_a_price() {
    let price = Price::per_gpu_hour(usd(6_880_000)).unwrap();
    let cost = price.cost_of(GpuMicros::of(Gpus::new(4), Micros::HOUR));
    assert_eq!(cost, Ok(usd(27_520_000)));
    // A half rounds up: half a millionth per hour, for one hour.
    let tiny = Price::per_gpu_hour(usd(1)).unwrap();
    assert_eq!(tiny.cost_of(GpuMicros::new(1_800_000_000)), Ok(usd(1)));
    assert_eq!(tiny.cost_of(GpuMicros::new(1_799_999_999)), Ok(usd(0)));
    assert_eq!(Price::per_gpu_hour(usd(-1)), Err(MoneyError::NegativePrice));
}

#[test]
fn a_reading_that_is_no_count_is_refused_and_not_zero() {
    for reading in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.1, 2e19] {
        assert_eq!(Tokens::from_sample(reading), None, "{reading}");
    }
    assert_eq!(Tokens::from_sample(12.2), Some(Tokens::new(13)));
    assert_eq!(TokensPerSecond::from_sample(0.33), Some(TokensPerSecond::new(1)));
    assert_eq!(TokensPerSecond::from_sample(-0.0), Some(TokensPerSecond::ZERO));
}

fn currency() -> impl Strategy<Value = Currency> {
    "[A-Z]{3}".prop_map(|code| code.parse().unwrap())
}

fn money() -> impl Strategy<Value = Money> {
    (any::<i64>(), currency()).prop_map(|(micros, currency)| Money::from_micros(micros, currency))
}

proptest! {
    #[test]
    fn count_arithmetic_never_panics_and_agrees(a: u64, b: u64, c: u64) {
        let (a, b, c) = (Tokens::new(a), Tokens::new(b), Tokens::new(c));
        prop_assert_eq!(a.checked_add(b).unwrap_or(Tokens::MAX), a.saturating_add(b));
        prop_assert_eq!(a.checked_sub(b).unwrap_or(Tokens::ZERO), a.saturating_sub(b));
        prop_assert_eq!(
            a.saturating_add(b).saturating_add(c),
            a.saturating_add(b.saturating_add(c))
        );
        let _ = a.saturating_mul(b.get());
    }

    #[test]
    fn only_a_zero_reads_as_zero(reading in prop::num::f64::POSITIVE) {
        let sample = TokensPerSecond::from_sample(reading);
        prop_assert!(sample.is_none_or(|rate| !rate.is_zero()));
        prop_assert_eq!(sample.is_none(), reading >= 2_f64.powi(64));
    }

    #[test]
    fn a_currency_survives_its_text(currency in currency()) {
        prop_assert_eq!(currency.to_string().parse(), Ok(currency));
    }

    #[test]
    fn mixed_currencies_are_refused_and_not_ordered(a in money(), b in money()) {
        prop_assume!(a.currency() != b.currency());
        let refused = Err(MoneyError::CurrencyMismatch {
            left: a.currency(), right: b.currency(),
        });
        prop_assert_eq!(a.checked_add(b), refused.clone());
        prop_assert_eq!(a.checked_sub(b), refused);
        prop_assert_eq!(a.partial_cmp(&b), None);
    }

    #[test]
    fn money_adds_up_the_same_in_any_order(amounts in prop::collection::vec(-(1_i64 << 50)..1 << 50, 0..20)) {
        let forward = Money::sum(Currency::USD, amounts.iter().copied().map(usd));
        let backward = Money::sum(Currency::USD, amounts.iter().rev().copied().map(usd));
        prop_assert_eq!(forward, backward);
    }

    #[test]
    fn money_never_wraps(a: i64, b: i64, times: u32) {
        prop_assert_eq!(usd(a).checked_add(usd(b)).ok(), a.checked_add(b).map(usd));
        prop_assert_eq!(usd(a).checked_sub(usd(b)).ok(), a.checked_sub(b).map(usd));
        prop_assert_eq!(usd(a).checked_mul(times).ok(), a.checked_mul(times.into()).map(usd));
    }

    #[test]
    fn pricing_in_parts_is_off_by_at_most_half_a_millionth_each(
        price in 0_i64..100_000_000, parts in prop::collection::vec(0_u64..1 << 40, 1..20),
    ) {
        let price = Price::per_gpu_hour(usd(price)).unwrap();
        let whole = price.cost_of(parts.iter().copied().map(GpuMicros::new).sum()).unwrap();
        let apart: i64 = parts
            .iter()
            .map(|part| price.cost_of(GpuMicros::new(*part)).unwrap().micros())
            .sum();
        let halves = i64::try_from(parts.len()).unwrap() + 1;
        prop_assert!((whole.micros() - apart).abs() * 2 <= halves);
    }

    #[test]
    fn pricing_never_panics_and_is_never_negative(price in 0..=i64::MAX, time: u64) {
        let cost = Price::per_gpu_hour(usd(price)).unwrap().cost_of(GpuMicros::new(time));
        prop_assert!(cost.is_err() || cost.is_ok_and(|cost| !cost.is_negative()));
    }

    #[test]
    fn time_shown_sorts_as_time(a in 0_u64..1 << 57, b in 0_u64..1 << 57) {
        // Text of equal length sorts like time, which is why RFC 3339 is used. 2^57 µs is year 6536.
        let (a, b) = (Timestamp::from_micros(a), Timestamp::from_micros(b));
        prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
    }

    #[test]
    fn time_passes_and_comes_back(at in 0_u64..1 << 60, length in 0_u64..1 << 60) {
        let (at, length) = (Timestamp::from_micros(at), Micros::new(length));
        let later = at.saturating_add(length);
        prop_assert_eq!((at.apart(later), later.apart(at)), (length, length));
        prop_assert_eq!(later.since(at), Some(length));
        prop_assert_eq!(later.saturating_sub(length), at);
        prop_assert_eq!(at.since(later).is_some(), length.is_zero());
    }

    #[test]
    fn showing_never_panics(value: u64) {
        let _ = (Micros::new(value).to_string(), Timestamp::from_micros(value).to_string());
        let _ = (Bytes::new(value).to_string(), GpuMicros::new(value).to_string());
    }
}
