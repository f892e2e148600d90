//! Saving a run: how many bytes, how often, and what failures cost all the same.

/// GPU-seconds between two interruptions of a run: 419 unexpected ones in 54 days on 16,384 H100
/// (arXiv 2407.21783, section 3.3.4), so one in 50,700 GPU-hours.
pub const GPU_SECONDS_PER_INTERRUPTION: f64 = 54.0 * 86_400.0 * 16_384.0 / 419.0;

/// Bytes of a checkpoint from which training goes on: FP32 weights and both moments of Adam. The
/// 16-bit weights follow from the FP32 ones and are not saved twice.
pub fn bytes(parameters: u64) -> f64 {
    parameters as f64 * 12.0
}

/// The save interval that loses the least time, in seconds (Daly 2006; Young's `sqrt(2 C M)` is
/// its first term), for a save that stops the run for `save` seconds and a failure every `mtbf`.
pub fn interval(save: f64, mtbf: f64) -> f64 {
    if save >= 2.0 * mtbf {
        return mtbf;
    }
    let ratio = (save / (2.0 * mtbf)).sqrt();
    (2.0 * save * mtbf).sqrt() * (1.0 + ratio / 3.0 + ratio * ratio / 9.0) - save
}

/// Share of the time that goes into saving, into work done again, and into coming back.
pub fn lost_share(save: f64, restart: f64, mtbf: f64, interval: f64) -> f64 {
    (save / (interval + save) + (interval / 2.0 + restart) / mtbf).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_big_run_saves_every_few_minutes() {
        // 16,384 GPUs fail every 3.1 hours; a save of 10 s pays every eight minutes.
        let mtbf = GPU_SECONDS_PER_INTERRUPTION / 16_384.0;
        assert!((mtbf / 3600.0 - 3.09).abs() < 0.01);
        let every = interval(10.0, mtbf);
        assert!((450.0..480.0).contains(&every), "{every}");
    }

    proptest! {
        /// The interval is the best one: neither half nor twice of it loses less.
        #[test]
        fn no_other_interval_loses_less(save in 1.0..300.0f64, mtbf in 3_600.0..1e7f64) {
            let best = interval(save, mtbf);
            let lost = |every| lost_share(save, 0.0, mtbf, every);
            prop_assert!(lost(best) <= lost(best / 2.0) + 1e-9);
            prop_assert!(lost(best) <= lost(best * 2.0) + 1e-9);
        }
    }
}
