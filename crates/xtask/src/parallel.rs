//! The same work for several things at once.

use anyhow::{Result, anyhow};

/// Runs `work` for every item, each in a thread of its own, and returns the first error by order of
/// the items once all have ended.
pub(crate) fn for_each<T: Send>(
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

#[cfg(test)]
mod tests {
    use super::for_each;
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
}
