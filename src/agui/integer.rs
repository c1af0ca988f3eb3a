//! Numbers whose value is an integer, however they are written.

/// The greatest integer below which every integer is a double: 2^53-1.
pub(super) const MAX: i64 = (1 << 53) - 1;

/// The value of a JSON number, where it is an integer from -(2^53-1) to 2^53-1. `1e3`, `1000.0` and
/// `1000` are the same number; nothing is rounded.
pub(super) fn exact(text: &str) -> Option<i64> {
    let value = match text.parse() {
        Ok(value) => value,
        Err(_) => from_parts(text)?,
    };
    (-MAX..=MAX).contains(&value).then_some(value)
}

/// The value of a number with a fraction or an exponent, or of one that is too long for `i64`.
fn from_parts(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(0);
    }
    let zeros = (digits.len() - significant.len()) as i64;
    // One that is beyond `i64` puts the value out of reach anyway.
    let exponent: i64 = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let shift = exponent
        .checked_add(zeros)?
        .checked_sub(fraction.len() as i64)?;
    let shift = u32::try_from(shift).ok()?;
    let power = 10_i64.checked_pow(shift)?;
    Some(sign * significant.parse::<i64>().ok()?.checked_mul(power)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_known_by_their_value() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("0e999999999999999999999999", 0),
            ("0.000E-5", 0),
            ("7", 7),
            ("-7", -7),
            ("1.0", 1),
            ("1e3", 1000),
            ("1E+3", 1000),
            ("1.5e1", 15),
            ("1500e-2", 15),
            ("0.00001e5", 1),
            ("9007199254740991", MAX),
            ("9007199254740991.000", MAX),
            ("9007199254740991000000000000000000e-18", MAX),
            ("90071992547409.91e2", MAX),
            ("-9007199254740991", -MAX),
        ] {
            assert_eq!(exact(text), Some(value), "{text}");
        }
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740991.5",
            "9007199254740991.4",
            "1.5",
            "1e-1",
            "1e16",
            "1e400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
            "10000000000000000000000000000000000000",
            "1.00000000000000000000000001",
        ] {
            assert_eq!(exact(text), None, "{text}");
        }
    }
}
