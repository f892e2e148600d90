//! Which layouts there are to try.

use super::Rejection;
use crate::architecture::Architecture;
use crate::hardware::Accelerator;
use crate::layout::ServingLayout;
use crate::precision::Dtype;

/// Widest split of a matrix that engines offer.
const WIDEST: u32 = 16;

/// Products of FP8 weights work on blocks of 128; an expert cut below that is kept whole instead.
const BLOCK: u32 = 128;

/// The layouts of a replica on this part that engines are run with, whether or not they make sense
/// here. Powers of two: matrices split, up to a host; hosts in stages; and for experts, copies of the
/// attention around them inside a host, where the cache cannot be split as far as the matrices.
pub fn serving(model: &Architecture, part: &Accelerator) -> Vec<ServingLayout> {
    let host = part.node_gpus.get().max(1);
    let mut found = Vec::new();
    for tensor in powers(host.min(WIDEST)) {
        let whole_experts = cuts_blocks(model, tensor);
        for pipeline in [1, 2, 4] {
            // Stages pay off when one host is too small, not inside it.
            if pipeline == 1 || tensor == host {
                found.push(ServingLayout { tensor, pipeline, whole_experts, ..ServingLayout::ONE });
            }
        }
    }
    if model.feed_forward.experts.is_some() {
        let domain = host.min(part.scale_up_domain.get());
        for copies in powers(domain).filter(|copies| *copies > 1) {
            found.push(ServingLayout {
                attention_copies: copies,
                whole_experts: true,
                ..ServingLayout::ONE
            });
        }
    }
    found
}

fn cuts_blocks(model: &Architecture, tensor: u32) -> bool {
    let eight_bit = model.stored.routed_experts == Dtype::Fp8;
    model.feed_forward.experts.is_some_and(|experts| {
        eight_bit && tensor > 1 && !experts.width.is_multiple_of(tensor * BLOCK)
    })
}

/// Why the model cannot be cut like this at all.
pub fn indivisible(model: &Architecture, layout: &ServingLayout) -> Option<Rejection> {
    let divides = |what: &'static str, count: u32, by: u32| {
        (!count.is_multiple_of(by)).then_some(Rejection::Indivisible { what, count, by })
    };
    let experts = model.feed_forward.experts.map_or(0, |experts| experts.routed);
    divides("attention heads", model.attention.heads(), layout.tensor)
        .or_else(|| {
            (layout.pipeline > model.layers.total()).then_some(Rejection::Indivisible {
                what: "layers",
                count: model.layers.total(),
                by: layout.pipeline,
            })
        })
        .or_else(|| match layout.whole_experts {
            true => divides("experts", experts, layout.abreast()),
            false => None,
        })
}

/// 1, 2, 4, … up to and including `most`.
pub(super) fn powers(most: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|shift| 1 << shift).take_while(move |power| *power <= most)
}
