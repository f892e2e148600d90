//! Changes as people type and read them.

use flyball_resources::admin_api::{Changes, OtherPrice};
use flyball_resources::decimal;
use flyball_resources::pool::PurchaseSpec;

/// `+50%`, `-20%`, `3x`: in percent of what it is now.
pub(super) fn rate(text: &str) -> Result<u32, String> {
    let wrong = || "write it as +50%, -20% or 3x".to_owned();
    let percent = |number: &str| decimal::micros(number).map(|micros| micros / 10_000);
    let whole = match (text.strip_suffix('%'), text.strip_suffix('x')) {
        (Some(percent), _) => {
            let micros = |digits: &str| decimal::micros(digits).ok_or_else(wrong);
            match (percent.strip_prefix('+'), percent.strip_prefix('-')) {
                (Some(more), _) => 100 + micros(more)? / 1_000_000,
                (_, Some(less)) => 100 - micros(less)? / 1_000_000,
                (None, None) => return Err("write +50% or -50%: the sign is missing".to_owned()),
            }
        }
        (None, Some(times)) => percent(times).ok_or_else(wrong)?,
        (None, None) => return Err(wrong()),
    };
    u32::try_from(whole).map_err(|_| "there cannot be less than no work".to_owned())
}

/// `h100=2.0`, `h100/spot=1.2`.
pub(super) fn price(text: &str) -> Result<OtherPrice, String> {
    let wrong = || "write it as POOL=2.0 or POOL/spot=1.2".to_owned();
    let (place, amount) = text.split_once('=').ok_or_else(wrong)?;
    let (pool, purchase) = match place.split_once('/') {
        None => (place, None),
        Some((pool, way)) => (pool, Some(purchase(way).ok_or_else(wrong)?)),
    };
    if pool.is_empty() || decimal::micros(amount).is_none() {
        return Err(wrong());
    }
    Ok(OtherPrice { pool: pool.to_owned(), purchase, per_gpu_hour: amount.to_owned() })
}

fn purchase(word: &str) -> Option<PurchaseSpec> {
    match word.to_ascii_lowercase().as_str() {
        "spot" => Some(PurchaseSpec::Spot),
        "ondemand" | "on-demand" => Some(PurchaseSpec::OnDemand),
        "reserved" => Some(PurchaseSpec::Reserved),
        _ => None,
    }
}

/// The changes, in words.
pub(super) fn words(changes: &Changes) -> Vec<String> {
    let mut words = Vec::new();
    let model = changes.model.as_deref().unwrap_or_default();
    if let Some(percent) = changes.rate_percent {
        words.push(match percent {
            100.. => format!("{model} has {} % more work", percent - 100),
            _ => format!("{model} has {} % less work", 100 - percent),
        });
    }
    words.extend(changes.min.map(|min| format!("{model} has at least {min}")));
    words.extend(changes.max.map(|max| format!("{model} has at most {max}")));
    words.extend(changes.lost_pools.iter().map(|pool| format!("pool {pool} is gone")));
    words.extend(changes.prices.iter().map(|price| {
        let way = price.purchase.map(|way| format!(" ({way:?})")).unwrap_or_default();
        format!("an accelerator of {}{way} costs {} an hour", price.pool, price.per_gpu_hour)
    }));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_as_people_type_them() {
        for (text, percent) in [("+50%", 150), ("-20%", 80), ("3x", 300), ("1.5x", 150), ("0x", 0)]
        {
            assert_eq!(rate(text), Ok(percent), "{text}");
        }
        for wrong in ["50%", "50", "-120%", "x", "", "+%", "soon"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn prices_are_read_as_people_type_them() {
        let spot = price("h100/spot=1.2").unwrap();
        assert_eq!((spot.pool.as_str(), spot.purchase), ("h100", Some(PurchaseSpec::Spot)));
        assert_eq!(price("h100=2.0").unwrap().purchase, None);
        for wrong in ["h100", "=2", "h100=", "h100=cheap", "h100/gold=2", "h100=-1"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }
}
