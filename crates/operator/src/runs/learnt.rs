//! What a run's zones taught as a line of text in its status, so that the next leader need not learn it again. Pure.
//!
//! There is one version of one form. What cannot be read is learnt again.

use crate::persist::{checksum, exact, exactly};
use flyball_core::units::Timestamp;
use flyball_training::{LearntMarket, LearntZone, RunMemory, ZoneName};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Longer texts are neither written nor read; the schema of the resource says the same.
const LONGEST: usize = 4_096;

const VERSION: &str = "1";

/// The text for a status; `None` before anything was learnt. Of more zones than there is space for, those that were seen
/// the shortest time are left out.
pub(super) fn write(memory: &RunMemory) -> Option<String> {
    let learnt = memory.learnt()?;
    // As Kubernetes has them in labels; others would not be read again.
    let is_plain = |name: &&ZoneName| {
        name.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    let zones = learnt.zones.iter().filter(|(name, _)| is_plain(name));
    let mut zones: Vec<(&ZoneName, &LearntZone)> = zones.collect();
    zones.sort_by_key(|(name, zone)| (Reverse(zone.hours[1].to_bits()), *name));
    loop {
        let zone = |(name, zone): &(&ZoneName, &LearntZone)| {
            format!(
                "{} {} {} {}",
                name.as_str(),
                state(zone.available),
                exact(&zone.hours),
                exact(&zone.lives)
            )
        };
        let zones_now: Vec<String> = zones.iter().map(zone).collect();
        let body = [
            VERSION.to_owned(),
            learnt.seen_at.as_micros().to_string(),
            learnt.market.map_or_else(String::new, state),
            exact(&learnt.elsewhere),
            exact(&learnt.all),
            exact(&learnt.none),
            zones_now.join(","),
        ]
        .join(";");
        let text = format!("{body};{:08x}", checksum(&body));
        if text.len() <= LONGEST {
            return Some(text);
        }
        zones.pop()?;
    }
}

/// What a text says, if an operator of this version wrote it.
pub(super) fn read(text: &str) -> Option<RunMemory> {
    let (body, sum) = text.rsplit_once(';').filter(|_| text.len() <= LONGEST)?;
    if u32::from_str_radix(sum, 16) != Ok(checksum(body)) {
        return None;
    }
    let parts: Vec<&str> = body.split(';').collect();
    let [VERSION, seen_at, market, elsewhere, all, none, zones] = parts[..] else { return None };
    let market = match market {
        "" => None,
        market => Some(of_state(market)?),
    };
    let zones = zones.split(',').filter(|zone| !zone.is_empty()).map(zone);
    RunMemory::restored(&LearntMarket {
        zones: zones.collect::<Option<BTreeMap<_, _>>>()?,
        all: exactly(all)?,
        none: exactly(none)?,
        market,
        elsewhere: exactly(elsewhere)?,
        seen_at: Timestamp::from_micros(seen_at.parse().ok()?),
    })
}

fn zone(text: &str) -> Option<(ZoneName, LearntZone)> {
    let (name, rest) = text.split_once(' ')?;
    let mut parts = rest.splitn(5, ' ');
    let mut next = || parts.next();
    let available = of_state(&format!("{} {}", next()?, next()?))?;
    let hours = exactly(&format!("{} {}", next()?, next()?))?;
    let lives = exactly(next()?)?;
    Some((ZoneName::new(name), LearntZone { lives, available, hours }))
}

fn state((is_so, since): (bool, Timestamp)) -> String {
    format!("{} {}", if is_so { "up" } else { "down" }, since.as_micros())
}

fn of_state(text: &str) -> Option<(bool, Timestamp)> {
    let (word, since) = text.split_once(' ')?;
    let is_so = match word {
        "up" => true,
        "down" => false,
        _ => return None,
    };
    Some((is_so, Timestamp::from_micros(since.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flyball_core::units::{Currency, Gpus, Micros, Money, Price};
    use flyball_training::{HeldMachine, SpotState, SpotZone, TrainingSnapshot, decide};

    fn at(minutes: u64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + minutes * 60_000)
    }

    fn usd(cents: i64) -> Price {
        Price::per_gpu_hour(Money::from_micros(cents * 10_000, Currency::USD)).expect("a price")
    }

    /// Zones whose machines come and go, each at a time of its own.
    fn snapshot(minute: u64, zones: u64) -> TrainingSnapshot {
        let zone = |place: u64| {
            let turn = 37 + 13 * place;
            let since = at(minute - minute % turn);
            let state = match (minute / turn).is_multiple_of(2) {
                true => SpotState::Available(since),
                false => SpotState::Unavailable(since),
            };
            (ZoneName::new(&format!("zone-{place}")), SpotZone { price: usd(95), state })
        };
        TrainingSnapshot {
            now: at(minute),
            deadline: at(6_000),
            work_left: Micros::from_minutes(1_000),
            unsaved: Micros::ZERO,
            restart: Micros::from_minutes(13),
            save: Micros::from_seconds(30),
            tick: Micros::from_minutes(1),
            gpus: Gpus::new(8),
            on_demand: usd(306),
            held: HeldMachine::NONE,
            zones: (0..zones).map(zone).collect(),
        }
    }

    fn seen(zones: u64) -> RunMemory {
        let mut memory = RunMemory::default();
        (1..2_000).for_each(|minute| memory.see(&snapshot(minute, zones)));
        memory
    }

    #[test]
    fn whoever_goes_on_from_the_text_decides_as_the_one_before() {
        let memory = seen(5);
        let text = write(&memory).unwrap();
        let restored = read(&text).unwrap();
        assert_eq!(restored.learnt(), memory.learnt());
        let (mut before, mut after) = (memory, restored);
        for minute in 2_000..2_200 {
            let now = snapshot(minute, 5);
            let (one, other) = (decide(&now, None, before), decide(&now, None, after));
            assert_eq!(one.0, other.0, "minute {minute}");
            (before, after) = (one.1, other.1);
        }
        assert!(before.reclaims_seen() > 20.0);
    }

    #[test]
    fn of_too_many_zones_some_are_left_out_and_the_text_has_a_bound() {
        let text = write(&seen(60)).unwrap();
        assert!(text.len() <= LONGEST, "{}", text.len());
        let zones = read(&text).unwrap().learnt().unwrap().zones.len();
        assert!((5..60).contains(&zones), "{zones}");
    }

    #[test]
    fn what_nobody_has_learnt_is_not_read() {
        assert_eq!(write(&RunMemory::default()), None);
        let text = write(&seen(2)).unwrap();
        assert!(read(&text).is_some());
        for place in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[place] = if damaged[place] == b'7' { b'3' } else { b'7' };
            let damaged = String::from_utf8(damaged).unwrap();
            assert_eq!(read(&damaged), None, "place {place}");
        }
        let forged = |body: &str| read(&format!("{body};{:08x}", checksum(body)));
        let lives = ["0"; 14].join(" ");
        let good = format!("1;5;;0 0;{lives};{lives};a up 5 1 2 {lives}");
        assert!(forged(&good).is_some());
        for (from, to) in [
            ("a up 5 1 2", "a up 5 3 2"),
            ("a up 5 1 2", "a up 5 -1 2"),
            ("a up 5 1 2", "a up 5 1 NaN"),
            ("a up 5 1 2", "a up 5 1 1e300"),
            ("a up 5 1 2", "a sideways 5 1 2"),
            ("1;5;;0 0", "1;5;;1 0"),
            ("1;5;;0 0", "2;5;;0 0"),
            ("1;5;;0 0", "1;-5;;0 0"),
            ("1;5;;0 0", "1;5;;0"),
            ("1;5;;0 0", "1;5;;0 0;"),
        ] {
            assert!(good.contains(from));
            assert!(forged(&good.replace(from, to)).is_none(), "{to}");
        }
        for text in ["", ";", ";;;;;;;", &"1;".repeat(5_000)] {
            assert!(forged(text).is_none() && read(text).is_none());
        }
    }
}
