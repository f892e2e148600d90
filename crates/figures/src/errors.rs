//! An error in words: what happened, because of what, and last what to do about it.

/// Joins the causes and moves every `hint:` behind them; a hint in the middle would be overlooked.
pub fn in_words(error: &anyhow::Error) -> String {
    let (mut causes, mut hints) = (Vec::new(), Vec::new());
    for cause in error.chain() {
        let text = cause.to_string();
        match text.split_once("\n\nhint: ") {
            Some((what, hint)) => {
                causes.push(what.to_owned());
                hints.push(format!("\n\nhint: {hint}"));
            }
            None => causes.push(text),
        }
    }
    format!("{}{}", causes.join(": "), hints.concat())
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_hint_comes_last_whichever_cause_had_it() {
        let error = Err::<(), _>(anyhow!("exit status 1"))
            .context("the code is not formatted\n\nhint: cargo fmt --all")
            .unwrap_err();
        assert_eq!(
            in_words(&error),
            "the code is not formatted: exit status 1\n\nhint: cargo fmt --all"
        );
    }
}
