//! Numbers as letters and digits.

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Appends a number, the first byte of which is the highest, as so many characters; what does not fit into them is left
/// out at the high end.
pub(super) fn push(text: &mut String, number: &[u8], length: usize) {
    let mut rest = number.to_vec();
    let mut digits = vec![b'0'; length];
    for digit in digits.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut rest {
            let value = (remainder << 8) | u32::from(*byte);
            // Below 62 * 256 / 62.
            *byte = (value / 62) as u8;
            remainder = value % 62;
        }
        *digit = DIGITS[remainder as usize];
    }
    text.extend(digits.into_iter().map(char::from));
}

/// The value of 32 bits in so many characters; `None` if a character is wrong, or if it is more than 32 bits.
pub(super) fn value(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0_u32, |value, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            b'a'..=b'z' => byte - b'a' + 36,
            _ => return None,
        };
        value.checked_mul(62)?.checked_add(u32::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_and_read_back() {
        for number in [0, 1, 61, 62, 3_843, u32::MAX] {
            let mut text = String::new();
            push(&mut text, &number.to_be_bytes(), 6);
            assert_eq!(text.len(), 6);
            assert_eq!(value(text.as_bytes()), Some(number));
        }
        let mut text = String::new();
        push(&mut text, &62_u32.to_be_bytes(), 6);
        assert_eq!(text, "000010");
        // 2^32, and something that is no digit.
        assert_eq!(value(b"4gfFC4"), None);
        assert_eq!(value(b"00000_"), None);
    }
}
