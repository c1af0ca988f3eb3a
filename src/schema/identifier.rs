//! Identifiers of section 2: capability names and clearances (R7).

/// Whether `text` is an identifier: `[a-z0-9]+(\.[a-z0-9-]+)+`, the whole string.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut segments = text.split('.');
    let domain = segments
        .next()
        .is_some_and(|s| !s.is_empty() && s.bytes().all(is_domain_byte));
    let mut rest = 0;
    domain
        && segments.all(|segment| {
            rest += 1;
            !segment.is_empty() && segment.bytes().all(|b| is_domain_byte(b) || b == b'-')
        })
        && rest > 0
}

fn is_domain_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::is_identifier;

    #[test]
    fn inside_the_grammar() {
        for text in [
            "a.b",
            "0.0",
            "order.investigate",
            "data.pii-read",
            "a.b.c",
            "a.-",
            "1.2-3.x",
        ] {
            assert!(is_identifier(text), "{text}");
        }
    }

    #[test]
    fn outside_the_grammar() {
        for text in [
            "", "a", "a.", ".a", "a..b", "A.b", "a.B", "a-b.c", "a.b ", " a.b", "a.b_c", "é.b",
            "a.b\n",
        ] {
            assert!(!is_identifier(text), "{text:?}");
        }
    }
}
