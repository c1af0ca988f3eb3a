//! Identifiers of section 2: capability names and clearances (R7).

/// Whether `text` is an identifier: `[a-z0-9]+(\.[a-z0-9-]+)+`, the whole string.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    // The byte before decides what may follow; a dot only after something, and not at the end.
    let mut before = b'.';
    let mut dotted = false;
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' if dotted => {}
            b'.' if before != b'.' => dotted = true,
            _ => return false,
        }
        before = byte;
    }
    dotted && before != b'.'
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
