//! Continuous batching in its steady state.
//!
//! With `n` requests decoding, each step gives `n` tokens, so `n / output` requests end per step,
//! as many begin, and `n * input / output` prompt tokens have to be computed per step. Engines do
//! that a prompt at a time, or a chunk of a long one, so a share of the steps carries prompt tokens
//! and the others none. Everything else follows from the time of those two kinds of step. It is all a function of `n`, which makes
//! "what can one replica carry?" a search over one number.
//!
//! Waiting for the first token is a queue in front of the chunks. The formula holds for arrivals
//! without bursts; under bursts only a replay of the traffic says more.

use super::batch::{Batch, StepTime};

/// What requests look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestShape {
    /// Mean prompt tokens that are not found in a cache.
    pub input: f64,
    /// Mean tokens written.
    pub output: f64,
    /// Squared coefficient of variation of the prompt length; 0 if all are equal.
    pub input_variation: f64,
    /// 95th percentile of the prompt length over its mean.
    pub input_p95: f64,
}

impl RequestShape {
    /// Steps that one prompt takes in chunks, on average. A prompt just over the chunk takes two, so
    /// lengths that vary take more than their mean: for exponential ones, 1 / (1 - exp(-chunk / mean)).
    fn steps_per_prompt(&self, chunk: f64) -> f64 {
        let alike = (self.input / chunk).max(1.0);
        let exponential = 1.0 / -(-chunk / self.input).exp_m1();
        let varied = self.input_variation.clamp(0.0, 1.0);
        alike + varied * (exponential - alike).max(0.0)
    }

    /// Tokens that a request holds on the mean while it is inside: half of its answer is there.
    pub fn held(&self) -> f64 {
        self.input + self.output / 2.0
    }

    /// Mean tokens of a prompt and of an answer before any were seen: those of a chat.
    pub const CHAT: (f64, f64) = (1_000.0, 300.0);

    /// Requests of which only the means are known: prompts vary as much as the 28,000 of Azure's two recorded
    /// hours do (squared variation 0.92 and 0.93, 95th percentile 3.5 and 3.6 times the mean).
    pub const fn usual(input: f64, output: f64) -> Self {
        Self { input, output, input_variation: 0.92, input_p95: 3.5 }
    }

    /// Every request alike.
    pub const fn uniform(input: f64, output: f64) -> Self {
        Self { input, output, input_variation: 0.0, input_p95: 1.0 }
    }
}

/// What the engine and its memory allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineLimits {
    /// Prompt tokens in one step, per copy of the attention.
    pub chunk: f64,
    /// Copies of the attention, which take prompts at the same time.
    pub copies: f64,
    /// Requests that run at once.
    pub sequences: f64,
    /// Tokens that fit into the cache.
    pub cache_tokens: f64,
    /// Share of its answer that a request must find room for before it starts. Half of it is
    /// there on average; an engine that never preempts asks for all of it.
    pub output_held: f64,
}

impl EngineLimits {
    /// Requests that can decode at once: what the engine admits, what the cache holds, and what one
    /// chunk of prompt per step can replace as they end.
    pub fn running(&self, shape: &RequestShape) -> f64 {
        let replaced = self.chunk * self.copies * shape.output / shape.input;
        self.admitted(shape).min(replaced)
    }

    /// What the engine admits and the cache holds.
    pub fn admitted(&self, shape: &RequestShape) -> f64 {
        let held = self.cache_tokens / (shape.input + self.output_held * shape.output);
        self.sequences.min(held)
    }
}

/// A replica at work, in seconds and requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operating {
    /// Requests that are decoding.
    pub running: f64,
    /// Requests per second that it carries like this.
    pub rate: f64,
    /// Mean time per output token.
    pub tpot: f64,
    /// A step that only decodes, a step with prompt tokens, and the share of the latter.
    pub plain_step: f64,
    pub prompt_step: f64,
    pub prompt_share: f64,
    /// Prompt tokens in such a step.
    pub prompt_tokens: f64,
    pub ttft_mean: f64,
    pub ttft_p95: f64,
    /// Share of the prompt capacity in use; a replica at 1 falls behind.
    pub prompt_load: f64,
    /// Share of the requests that fit at once; at 1 the next one waits for another to end.
    pub slots: f64,
}

impl Operating {
    /// 95th percentile of the time between two tokens, with every step `factor` times as long.
    ///
    /// It is the longer step as soon as one step in twenty carries a prompt. Slower steps mean more
    /// requests inside and so more of them that do, hence the factor on the share too.
    pub fn itl_p95(&self, factor: f64) -> f64 {
        let often = self.prompt_share * factor > 0.05;
        factor * if often { self.prompt_step } else { self.plain_step }
    }
}

/// The two kinds of step, with `running` requests decoding.
struct Mix {
    /// A step that only decodes.
    plain: f64,
    /// A step with prompt tokens.
    mixed: f64,
    /// Prompt tokens in such a step.
    carried: f64,
    /// Share of the steps that are so.
    share: f64,
}

impl Mix {
    fn of(step: &impl StepTime, shape: &RequestShape, limits: &EngineLimits, running: f64) -> Self {
        let decoding = decoding(shape, running);
        let needed = running * shape.input / shape.output;
        let at_once = shape.input / shape.steps_per_prompt(limits.chunk);
        let carried = (at_once * limits.copies).max(needed);
        Self {
            plain: step.seconds(&decoding),
            mixed: step.seconds(&decoding.with_prompt(carried, shape.input)),
            carried,
            share: needed / carried,
        }
    }

    fn mean(&self) -> f64 {
        self.plain + self.share * self.extra()
    }

    fn extra(&self) -> f64 {
        (self.mixed - self.plain).max(0.0)
    }
}

/// Half of the answer is in the cache, on average.
fn decoding(shape: &RequestShape, running: f64) -> Batch {
    Batch::decoding(running, shape.input + shape.output / 2.0)
}

/// The replica with `running` requests decoding.
pub fn operating(
    step: &impl StepTime,
    shape: &RequestShape,
    limits: &EngineLimits,
    running: f64,
) -> Operating {
    let mix = Mix::of(step, shape, limits, running);
    let tpot = mix.mean();
    let rate = running / (shape.output * tpot);
    // Under load short prompts share a step, up to the chunk: what falls behind is measured in full steps.
    // One prompt at a time would call a replica full that carries a small part of a chunk in each step.
    let most = limits.chunk * limits.copies;
    let full = step.seconds(&decoding(shape, running).with_prompt(most, shape.input));
    let prompt_load = rate * shape.input / most * full;

    // A long prompt takes several steps, each as full as a chunk.
    let one_prompt = mix.mixed * shape.steps_per_prompt(limits.chunk);
    let longest = (shape.input * shape.input_p95 / limits.chunk).ceil();
    let long_prompt = one_prompt.max(mix.mixed * longest);
    let busy = prompt_load.min(0.999);
    let waiting = busy / (1.0 - busy) * one_prompt * (1.0 + shape.input_variation) / 2.0;
    // The wait's tail falls off exponentially: P(W > t) = busy * exp(-t * busy / mean).
    let waiting_p95 = if busy > 0.05 { waiting / busy * (busy / 0.05).ln() } else { 0.0 };
    let spread = (waiting_p95 - waiting).max(0.0).hypot(long_prompt - one_prompt);
    // A request arrives somewhere inside a running step.
    let ttft_mean = tpot / 2.0 + waiting + one_prompt;
    Operating {
        running,
        rate,
        tpot,
        plain_step: mix.plain,
        prompt_step: mix.mixed,
        prompt_share: mix.share,
        prompt_tokens: mix.carried,
        ttft_mean,
        ttft_p95: ttft_mean + spread,
        prompt_load,
        slots: running / limits.admitted(shape),
    }
}

/// Mean seconds per output token when so many clients each wait for an answer before they ask
/// again: while one's prompt is computed it does not decode, so fewer decode than ask.
pub fn closed_loop(
    step: &impl StepTime,
    shape: &RequestShape,
    limits: &EngineLimits,
    clients: f64,
) -> f64 {
    let running = clients.min(limits.admitted(shape)).max(f64::MIN_POSITIVE);
    let first = Mix::of(step, shape, limits, running);
    let answering = shape.output * first.mean();
    let prompts = first.extra() * (shape.input * limits.copies / first.carried).max(1.0);
    Mix::of(step, shape, limits, running * answering / (answering + prompts)).mean()
}

/// The prompts of clients that all begin at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wave {
    /// Seconds until all prompts are computed.
    pub prompts: f64,
    /// Steps that takes; below 1 never, because a step is a step.
    pub groups: f64,
}

impl Wave {
    /// Prompts fill whole steps of their own, ahead of all decoding.
    pub fn of(
        step: &impl StepTime,
        shape: &RequestShape,
        limits: &EngineLimits,
        clients: f64,
    ) -> Self {
        let tokens = clients * shape.input;
        let carried = tokens.min(limits.chunk * limits.copies);
        let groups = tokens / carried;
        let one = step.seconds(&Batch::default().with_prompt(carried, shape.input));
        Self { prompts: groups * one, groups }
    }

    /// Mean wait for the first token: a request's group is in the middle, on average.
    pub fn first_token(&self) -> f64 {
        self.prompts * (1.0 + 1.0 / self.groups) / 2.0
    }
}

/// The same for clients that begin at once with an engine that computes all prompts before it goes
/// on decoding: they end at once too, and so begin together again. A request then decodes none of
/// its answer while the prompts of later groups are computed, and waits for no others.
pub fn in_step(
    step: &impl StepTime,
    shape: &RequestShape,
    limits: &EngineLimits,
    clients: f64,
) -> f64 {
    let running = clients.min(limits.admitted(shape)).max(f64::MIN_POSITIVE);
    let wave = Wave::of(step, shape, limits, running);
    let later = wave.prompts - wave.first_token();
    step.seconds(&decoding(shape, running)) + later / shape.output
}

/// Output tokens per second when there is always another request waiting.
pub fn saturated(step: &impl StepTime, shape: &RequestShape, limits: &EngineLimits) -> f64 {
    let running = limits.admitted(shape);
    running / Mix::of(step, shape, limits, running).mean()
}

/// Where to look for the most a replica can carry: at most this many requests at once, because
/// beyond it no engine of today keeps its step time.
const MOST_RUNNING: f64 = 16_384.0;

/// The largest number of running requests for which `fits` holds, or `None` if it holds for none.
///
/// `fits` must hold up to some number and fail from there on, which latencies do.
pub fn most_running(
    step: &impl StepTime,
    shape: &RequestShape,
    limits: &EngineLimits,
    fits: impl Fn(&Operating) -> bool,
) -> Option<Operating> {
    let at = |running: f64| operating(step, shape, limits, running);
    let most = limits.running(shape).min(MOST_RUNNING);
    if most <= 0.0 {
        return None;
    }
    let fullest = at(most);
    if fits(&fullest) {
        return Some(fullest);
    }
    // A replica that runs one request a tenth of the time is still a replica.
    let mut low = at((0.1_f64).min(most));
    if !fits(&low) {
        return None;
    }
    let mut high = most;
    // Ten halvings of the logarithm leave an error below one per cent of a request in a hundred.
    for _ in 0..12 {
        let middle = (low.running * high).sqrt();
        let there = at(middle);
        if fits(&there) {
            low = there;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// The replica at a given rate, or `None` if it cannot carry that.
pub fn at_rate(
    step: &impl StepTime,
    shape: &RequestShape,
    limits: &EngineLimits,
    rate: f64,
) -> Option<Operating> {
    let most = limits.running(shape).min(MOST_RUNNING);
    if most <= 0.0 || operating(step, shape, limits, most).rate < rate {
        return None;
    }
    let (mut low, mut high) = (1e-3_f64.min(most), most);
    for _ in 0..16 {
        let middle = (low * high).sqrt();
        if operating(step, shape, limits, middle).rate < rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(operating(step, shape, limits, high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A step of 10 ms, 0.05 ms per decoding request and 0.02 ms per prompt token.
    fn simple(batch: &Batch) -> f64 {
        0.010 + 5e-5 * batch.decodes + 2e-5 * batch.prefill
    }

    const LIMITS: EngineLimits = EngineLimits {
        chunk: 2048.0,
        copies: 1.0,
        sequences: 256.0,
        cache_tokens: 1e6,
        output_held: 1.0,
    };

    #[test]
    fn an_idle_replica_answers_after_one_prompt() {
        let shape = RequestShape::uniform(1000.0, 100.0);
        let idle = operating(&simple, &shape, &LIMITS, 1e-6);
        // Half a step of waiting, then the prompt in one step.
        assert!((idle.ttft_mean - (0.005 + 0.030)).abs() < 1e-4, "{idle:?}");
        assert!((idle.tpot - 0.010).abs() < 1e-4, "{idle:?}");
    }

    /// With prompts of 100 tokens every step carries some long before a chunk of 2,048 is full.
    #[test]
    fn short_prompts_share_a_step() {
        let shape = RequestShape::uniform(100.0, 100.0);
        let at = operating(&simple, &shape, &LIMITS, 200.0);
        assert_eq!((at.prompt_share, at.prompt_tokens), (1.0, 200.0));
        // A full step takes 10 + 10 + 41 ms for ten times the prompts of this one of 24 ms.
        assert!((at.prompt_load - 200.0 / 2048.0 * 0.06096 / 0.024).abs() < 1e-6, "{at:?}");
        assert!(at.ttft_mean < 0.1, "{at:?}");
    }

    #[test]
    fn memory_limits_what_runs() {
        let small = EngineLimits { cache_tokens: 11_000.0, ..LIMITS };
        let shape = RequestShape::uniform(1000.0, 100.0);
        let most = most_running(&simple, &shape, &small, |_| true).unwrap();
        assert_eq!(most.running, 10.0);
        let none = EngineLimits { cache_tokens: 0.0, ..LIMITS };
        assert!(most_running(&simple, &shape, &none, |_| true).is_none());
    }

    #[test]
    fn the_most_that_fits_a_bound_lies_just_inside_it() {
        let shape = RequestShape::uniform(500.0, 200.0);
        let most = most_running(&simple, &shape, &LIMITS, |at| at.tpot <= 0.020).unwrap();
        assert!(most.tpot <= 0.020 && most.tpot > 0.0195, "{most:?}");
        assert!(most_running(&simple, &shape, &LIMITS, |at| at.tpot <= 0.009).is_none());
    }

    #[test]
    fn clients_in_step_wait_for_half_of_the_other_prompts() {
        let shape = RequestShape::uniform(1024.0, 100.0);
        // 16 prompts of 1024 tokens are 8 steps of 2048, each 10 + 41 ms.
        let wave = Wave::of(&simple, &shape, &LIMITS, 16.0);
        assert_eq!(wave.groups, 8.0);
        assert!((wave.prompts - 8.0 * 0.05096).abs() < 1e-9, "{wave:?}");
        let tpot = in_step(&simple, &shape, &LIMITS, 16.0);
        assert!((tpot - (0.0108 + 3.5 * 0.05096 / 100.0)).abs() < 1e-9, "{tpot}");
        // Whose prompts fit one step waits for nobody.
        assert_eq!(in_step(&simple, &shape, &LIMITS, 2.0), 0.0101);
    }

    proptest! {
        /// Little's law: requests inside = rate times the time that each spends decoding.
        #[test]
        fn littles_law_holds(input in 10.0..4000.0f64, output in 2.0..2000.0f64, n in 0.1..256.0f64) {
            let at = operating(&simple, &RequestShape::uniform(input, output), &LIMITS, n);
            prop_assert!((at.rate * output * at.tpot / n - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_rate_is_found_again(input in 10.0..4000.0f64, output in 2.0..2000.0f64, n in 1.0..200.0f64) {
            let shape = RequestShape::uniform(input, output);
            let there = operating(&simple, &shape, &LIMITS, n.min(LIMITS.running(&shape)));
            let found = at_rate(&simple, &shape, &LIMITS, there.rate).unwrap();
            prop_assert!((found.rate / there.rate - 1.0).abs() < 0.01, "{found:?} {there:?}");
        }

        #[test]
        fn more_requests_are_never_faster(input in 10.0..4000.0f64, output in 2.0..2000.0f64, n in 1.0..200.0f64) {
            let shape = RequestShape::uniform(input, output);
            let few = operating(&simple, &shape, &LIMITS, n);
            let more = operating(&simple, &shape, &LIMITS, n * 1.1);
            prop_assert!(more.tpot >= few.tpot && more.ttft_p95 >= few.ttft_p95 * 0.999);
        }
    }
}
