//! Numbers with their intervals.

use flyball_resources::model_service::SpanStatus;

/// `18,792 (16,913 to 20,671)`, or one number if there is no doubt.
pub(super) fn span(span: &SpanStatus) -> String {
    match span.low == span.high {
        true => thousands(span.point),
        false => {
            let [low, point, high] = [span.low, span.point, span.high].map(thousands);
            format!("{point} ({low} to {high})")
        }
    }
}

/// The same, or that it is unknown.
pub(super) fn rate(rate: Option<&SpanStatus>) -> String {
    rate.map_or("unknown".to_owned(), span)
}

fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
#[test]
fn intervals_read_well() {
    let of = |low, point, high| SpanStatus { low, point, high, origin: String::new() };
    assert_eq!(span(&of(16_913, 18_792, 20_671)), "18,792 (16,913 to 20,671)");
    assert_eq!(span(&of(1, 1, 1)), "1");
    assert_eq!(rate(None), "unknown");
    assert_eq!(thousands(-1_234_567), "-1,234,567");
}
