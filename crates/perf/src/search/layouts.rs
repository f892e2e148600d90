//! Which layouts there are to try.

use super::Rejection;
use crate::architecture::Architecture;
use crate::hardware::Accelerator;
use crate::layout::ServingLayout;

/// Widest split of a matrix that engines offer.
const WIDEST: u32 = 16;

/// Every layout of a replica on this part, whether or not it makes sense. Powers of two, as all
/// engines want: matrices split, layers in stages, and copies of the attention around shared
/// experts where the cache cannot be split as far as the matrices.
pub fn serving(model: &Architecture, part: &Accelerator) -> Vec<ServingLayout> {
    let host = part.node_gpus.get().min(part.scale_up_domain.get()).max(1);
    let mut found = Vec::new();
    for tensor in powers(host.max(part.node_gpus.get()).min(WIDEST)) {
        for pipeline in [1, 2, 4] {
            // Stages pay off when one host is too small, not inside it.
            if pipeline == 1 || tensor == host {
                found.push(ServingLayout { tensor, pipeline, ..ServingLayout::ONE });
            }
        }
    }
    if model.feed_forward.experts.is_some() {
        for copies in powers(host).filter(|copies| *copies > 1) {
            found.push(ServingLayout {
                attention_copies: copies,
                whole_experts: true,
                ..ServingLayout::ONE
            });
        }
        for tensor in powers(host).filter(|tensor| *tensor > 1) {
            found.push(ServingLayout { tensor, whole_experts: true, ..ServingLayout::ONE });
        }
    }
    found
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
