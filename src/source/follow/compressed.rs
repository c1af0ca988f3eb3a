//! Compressed content, which is no trace and has no end to wait for.

use std::path::Path;

/// A format with the bytes that its files begin with; no JSON text and no event stream begins so.
const MAGICS: [(&str, &[u8]); 6] = [
    ("gzip", b"\x1F\x8B"),
    ("zstd", b"\x28\xB5\x2F\xFD"),
    ("xz", b"\xFD7zXZ\0"),
    ("bzip2", b"BZh"),
    ("zip", b"PK\x03\x04"),
    ("lz4", b"\x04\x22\x4D\x18"),
];

/// What compressing tools append to a name.
const EXTENSIONS: [&str; 6] = ["gz", "zst", "xz", "bz2", "zip", "lz4"];

/// What the first bytes of a file say of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Plain,
    Compressed(&'static str),
    /// A few more bytes have to come first.
    Undecided,
}

impl Content {
    pub(super) fn of(head: &[u8]) -> Content {
        for (format, magic) in MAGICS {
            if head.starts_with(magic) {
                return Content::Compressed(format);
            }
            if !head.is_empty() && magic.starts_with(head) {
                return Content::Undecided;
            }
        }
        Content::Plain
    }
}

/// Whether the name promises compressed content.
pub(super) fn is_archive_name(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|one| extension == *one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_decide() {
        for (head, content) in [
            (&b""[..], Content::Plain),
            (b"{\"seq\":1}\n", Content::Plain),
            (b"\0\0\0", Content::Plain),
            (b"\x1F", Content::Undecided),
            (b"\x1F\x8B\x08", Content::Compressed("gzip")),
            (b"\x1F\n", Content::Plain),
            (b"BZ", Content::Undecided),
            (b"BZh9", Content::Compressed("bzip2")),
            (b"\x28\xB5\x2F\xFD", Content::Compressed("zstd")),
            (b"\xFD7zXZ\0", Content::Compressed("xz")),
            (b"PK\x03\x04", Content::Compressed("zip")),
            (b"\x04\x22\x4D\x18", Content::Compressed("lz4")),
        ] {
            assert_eq!(Content::of(head), content, "{head:?}");
        }
        assert!(is_archive_name(Path::new("a.jsonl.gz")));
        assert!(!is_archive_name(Path::new("a.jsonl")));
    }
}
