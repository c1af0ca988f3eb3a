//! Sizes as people write them: `16MiB`, `500kB`, `4096`.

/// What a size looks like, for messages.
pub(super) const EXPECTED_SIZE: &str = "whole bytes or a unit, such as 4096, 500kB or 16MiB";

/// Units in lower case. `M` alone is none: it means a million to some and 2^20 to others.
const UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// The number of bytes, or `None` where the text is no size. Letter case of a unit does not matter;
/// a size beyond `u64` is `u64::MAX`, which is beyond every limit all the same.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let unit = unit.to_ascii_lowercase();
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: u64 = digits.parse().unwrap_or(u64::MAX);
    Some(number.saturating_mul(*factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("4096B", 4096),
            ("64KiB", 65_536),
            ("500kB", 500_000),
            ("500KB", 500_000),
            ("16MiB", 16_777_216),
            ("16mib", 16_777_216),
            ("20MB", 20_000_000),
            ("1GiB", 1_073_741_824),
            ("1gb", 1_000_000_000),
            ("99999999999999999999", u64::MAX),
            ("99999999999GiB", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
        }
    }

    #[test]
    fn no_sizes() {
        for text in [
            "", "MiB", "1.5MiB", "-1", "+1", "16 MiB", " 16", "16M", "16Mi", "16TiB", "0x10",
            "1_000", "sixteen", "١٦", "1e6",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
