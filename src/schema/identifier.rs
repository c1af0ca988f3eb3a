//! Identifiers of section 2: capability names and clearances (R7).

/// Whether `text` is an identifier: `[a-z0-9]+(\.[a-z0-9-]+)+`, the whole string.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let bytes = text.as_bytes();
    let domain = bytes
        .iter()
        .take_while(|&&byte| CLASSES[byte as usize] == DOMAIN)
        .count();
    let Some((b'.', rest)) = bytes[domain..].split_first() else {
        return false;
    };
    // What is left are segments with dots between: no two dots side by side, none at an end.
    let mut before = DOT;
    for &byte in rest {
        let class = CLASSES[byte as usize];
        if class == OTHER || (class == DOT && before == DOT) {
            return false;
        }
        before = class;
    }
    domain > 0 && before != DOT
}

/// What a byte may be: part of any segment, part of any but the first, a dot, or nothing.
const CLASSES: [u8; 256] = {
    let mut classes = [OTHER; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => DOMAIN,
            b'-' => HYPHEN,
            b'.' => DOT,
            _ => OTHER,
        };
        byte += 1;
    }
    classes
};
const OTHER: u8 = 0;
const DOMAIN: u8 = 1;
const HYPHEN: u8 = 2;
const DOT: u8 = 3;

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
