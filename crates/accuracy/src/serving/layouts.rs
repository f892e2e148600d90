//! How a line's deployment was spread, from columns that publishers fill in different ways.

use super::rows::Point;
use super::scope::Scope;
use flyball_perf::hardware::Accelerator;
use flyball_perf::layout::ServingLayout;
use std::collections::BTreeMap;

/// A layout and, of a disaggregated deployment, the requests in one decode worker.
#[derive(Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) layout: ServingLayout,
    pub(super) pool: Option<f64>,
}

type Read = BTreeMap<&'static str, usize>;

/// N3 to N7; refuses by S2, S3 and S4.
pub(super) fn placed(
    point: &Point,
    part: &Accelerator,
    read_as: &mut Read,
) -> Result<Placed, Scope> {
    if point.mode == "agg" {
        return Ok(Placed { layout: together(point, read_as)?, pool: None });
    }
    // N7: the notes describe the workers that decode, as `D 2x(tp8,adp1,ep8,bs32)`.
    let pool = decode_pool(&point.notes).ok_or(Scope::S4)?;
    let requests = f64::from(pool.batch) * f64::from(pool.copies);
    if point.concurrency.is_some_and(|clients| clients != f64::from(pool.workers) * requests) {
        return Err(Scope::S4);
    }
    if pool.tensor * pool.copies > part.scale_up_domain.get() {
        return Err(Scope::S3);
    }
    *read_as.entry("N7: decode workers from the notes").or_default() += 1;
    let layout = ServingLayout {
        attention_copies: pool.copies,
        whole_experts: pool.experts > 1,
        ..ServingLayout::tensor(pool.tensor)
    };
    Ok(Placed { layout, pool: Some(requests) })
}

/// One deployment for prompts and answers.
fn together(point: &Point, read_as: &mut Read) -> Result<ServingLayout, Scope> {
    let tensor = point.tp.ok_or(Scope::S2)?;
    // N3: an empty or zero degree is 1.
    let degree = |value: Option<f64>| value.filter(|value| *value > 0.0).unwrap_or(1.0);
    let [experts, copies, stages] = [point.ep, point.attn_dp, point.pp].map(degree);
    if point.ep.is_none_or(|ep| ep <= 0.0) || point.attn_dp.is_none_or(|dp| dp <= 0.0) {
        *read_as.entry("N3: an empty degree is 1").or_default() += 1;
    }
    let all = tensor * copies;
    let multiplied = experts > 1.0
        && all > 8.0
        && all % experts == 0.0
        && all / experts > 1.0
        && (copies == 1.0 || copies == all);
    let (tensor, copies) = if multiplied {
        // N4: the column holds the product with the expert degree.
        *read_as.entry("N4: a degree that holds a product").or_default() += 1;
        let abreast = all / experts;
        if copies == 1.0 { (abreast, 1.0) } else { (1.0, abreast) }
    } else if experts > 1.0 && copies > 1.0 && tensor > 1.0 && experts == all {
        // N5: such rows take the time of a plain split over `tp`.
        *read_as.entry("N5: copies that are the same GPUs again").or_default() += 1;
        (tensor, 1.0)
    } else {
        // N6: as it stands.
        (tensor, copies)
    };
    if ![1.0, 2.0, 4.0, 8.0].contains(&(tensor * copies)) {
        return Err(Scope::S3);
    }
    Ok(ServingLayout {
        tensor: tensor as u32,
        pipeline: stages as u32,
        attention_copies: copies as u32,
        whole_experts: experts > 1.0,
    })
}

#[derive(Debug, PartialEq)]
struct DecodePool {
    workers: u32,
    tensor: u32,
    copies: u32,
    experts: u32,
    batch: u32,
}

/// Finds `D 2x(tp8,adp1,ep8,bs32)` anywhere in a text.
fn decode_pool(notes: &str) -> Option<DecodePool> {
    notes.match_indices("D ").find_map(|(at, mark)| {
        let mut rest = &notes[at + mark.len()..];
        let mut number = |before: &str| {
            rest = rest.strip_prefix(before)?;
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            rest = after;
            number.parse::<u32>().ok()
        };
        let pool = DecodePool {
            workers: number("")?,
            tensor: number("x(tp")?,
            copies: number(",adp")?,
            experts: number(",ep")?,
            batch: number(",bs")?,
        };
        rest.starts_with(')').then_some(pool)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_workers_are_found_in_notes() {
        let found = decode_pool("P 1x(tp4,adp1,ep1,bs1) D 2x(tp1,adp8,ep8,bs32); MTP off");
        let pool = DecodePool { workers: 2, tensor: 1, copies: 8, experts: 8, batch: 32 };
        assert_eq!(found, Some(pool));
        assert_eq!(decode_pool("D 2x(tp1,adp8"), None);
    }
}
