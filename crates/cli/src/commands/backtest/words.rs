//! Numbers and times as people read them.

use super::answer::Spread;

/// `0.38 %`, `12 %`: a share.
pub(in crate::commands) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size >= 9.95 => format!("{percent:.0} %"),
        size if size >= 2.995 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

/// `1,012`, `97.3`, `4.21`: three digits at least, and thousands set apart.
pub(in crate::commands) fn grouped(value: f64) -> String {
    match value.abs() {
        size if size >= 999.5 => thousands(value.round()),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// `207`, or `6.7` where it is a mean over seeds that is not whole.
pub(in crate::commands) fn count(value: f64) -> String {
    if value >= 99.5 || value == value.round() {
        thousands(value.round())
    } else {
        format!("{value:.1}")
    }
}

/// `8.6 M`, `412 k`, `950`: how many there were, roughly.
pub(in crate::commands) fn many(value: f64) -> String {
    match value {
        v if v >= 9.95e9 => format!("{:.0} G", v / 1e9),
        v if v >= 9.995e8 => format!("{:.1} G", v / 1e9),
        v if v >= 9.95e6 => format!("{:.0} M", v / 1e6),
        v if v >= 9.995e5 => format!("{:.1} M", v / 1e6),
        v if v >= 9.95e3 => format!("{:.0} k", v / 1e3),
        v => thousands(v.round()),
    }
}

/// `0.4 s`, `38 ms`, `2 min 10 s`.
pub(in crate::commands) fn seconds(value: f64) -> String {
    match value {
        v if v < 0.0995 => format!("{:.0} ms", v * 1e3),
        v if v < 9.95 => format!("{v:.1} s"),
        v if v < 119.5 => format!("{v:.0} s"),
        v => span(v),
    }
}

/// `38 ms`, `140 ms`: the time of a token, in the unit in which its target is given.
pub(in crate::commands) fn pace(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

/// `7 d`, `1 d 12 h`, `45 min`: how long something lasted, in two units at most.
pub(in crate::commands) fn span(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut rest = whole;
    let mut parts: Vec<String> = Vec::new();
    for (name, length) in units {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(format!("{count} {name}"));
        }
        // The unit below the first is enough.
        if !parts.is_empty() && (parts.len() == 2 || count == 0) {
            break;
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// A value, and after it half the width of its interval if there is one.
pub(in crate::commands) fn spread(
    spread: Spread,
    label: impl Fn(f64) -> String,
    half: impl Fn(f64) -> String,
) -> String {
    // An interval that rounds to nothing says nothing.
    let seen = |width: &f64| half(*width).chars().any(|c| c.is_ascii_digit() && c != '0');
    match spread.half().filter(seen) {
        Some(width) => format!("{} ±{}", label(spread.mean), half(width)),
        None => label(spread.mean),
    }
}

fn thousands(whole: f64) -> String {
    let digits = format!("{:.0}", whole.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if whole < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([0.0041, 0.0192, 0.14].map(percent), ["0.41 %", "1.92 %", "14 %"]);
        assert_eq!(
            [1012.2, 97.34, 4.212, 12_345_678.0].map(grouped),
            ["1,012", "97.3", "4.21", "12,345,678"]
        );
        assert_eq!([207.0, 6.67, 1234.4].map(count), ["207", "6.7", "1,234"]);
        assert_eq!(
            [950.0, 9_400.0, 412_345.0, 8.64e6].map(many),
            ["950", "9,400", "412 k", "8.6 M"]
        );
        assert_eq!(
            [0.0381, 2.94, 12.3, 130.0].map(seconds),
            ["38 ms", "2.9 s", "12 s", "2 min 10 s"]
        );
        let spans = [604_800.0, 129_600.0, 2_700.0, 3_605.0, 0.0].map(span);
        assert_eq!(spans, ["7 d", "1 d 12 h", "45 min", "1 h", "0 s"]);
    }
}
