//! The same work for several things at once.

use anyhow::{Result, anyhow};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` for every item, each in a thread of its own, and returns the first error by order of
/// the items once all have ended.
pub fn for_each<T: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
            .fold(Ok(()), Result::and)
    })
}

/// The answers of `work` for every item, in the order of the items, worked out on all cores: each
/// takes the next item as soon as it is free.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::{for_each, map};
    use anyhow::bail;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn all_run_and_the_first_error_is_told() {
        let ran = AtomicU32::new(0);
        let result = for_each(0..4, |item| {
            ran.fetch_add(1, Ordering::Relaxed);
            if item > 1 {
                bail!("item {item}");
            }
            Ok(())
        });
        assert_eq!(result.unwrap_err().to_string(), "item 2");
        assert_eq!(ran.into_inner(), 4);
    }

    #[test]
    fn answers_come_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(map(&items, |item| item * 2), items.iter().map(|n| n * 2).collect::<Vec<_>>());
        assert_eq!(map(&[], |item: &u32| *item), [0; 0]);
    }
}
