//! Numbers as people read them.

use std::fmt;

/// `1,204 records`, `1 record`: a number with its noun, whose plural is regular.
pub(crate) struct Count {
    /// How many.
    pub(crate) number: u64,
    /// What, in the singular.
    pub(crate) noun: &'static str,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.number == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", grouped(self.number), self.noun)
    }
}

/// `1,204`: in groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.9 MB`, in powers of a thousand.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1_000 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1e3;
    let mut unit = "kB";
    for larger in ["MB", "GB", "TB", "PB"] {
        // What would be shown as 1000.0 goes to the next unit.
        if scaled < 999.95 {
            break;
        }
        scaled /= 1e3;
        unit = larger;
    }
    format!("{scaled:.1} {unit}")
}

/// `0.02 s`, with about two significant digits.
pub(super) fn seconds(number: f64) -> String {
    match number {
        _ if number < 0.01 => format!("{:.1} ms", number.max(0.0) * 1e3),
        _ if number < 10.0 => format!("{number:.2} s"),
        _ if number < 100.0 => format!("{number:.1} s"),
        _ => format!("{number:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn one_is_singular() {
        let text = |number| {
            Count {
                number,
                noun: "trace",
            }
            .to_string()
        };
        assert_eq!(
            (text(0), text(1), text(1204)),
            ("0 traces".into(), "1 trace".into(), "1,204 traces".into())
        );
    }

    #[test]
    fn bytes_have_units() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_902_417, "1.9 MB"),
            (3_000_000_000, "3.0 GB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn seconds_keep_two_digits() {
        for (number, text) in [
            (-1.0, "0.0 ms"),
            (0.000_417, "0.4 ms"),
            (0.0204, "0.02 s"),
            (1.234, "1.23 s"),
            (12.34, "12.3 s"),
            (1234.5, "1234 s"),
        ] {
            assert_eq!(seconds(number), text);
        }
    }
}
