//! Reading a document: for `check`, `match` and `--declaration`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tracecheck::documents::NamedText;

/// Longest document that is read: as long as a record may be, and far longer than any that a
/// person writes.
const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// A document as it was read.
pub(crate) struct DocumentFile {
    name: String,
    text: Vec<u8>,
}

impl DocumentFile {
    /// Reads a file, or standard input where there is none or it is `-`.
    ///
    /// # Errors
    ///
    /// What to tell the user.
    pub(crate) fn read(path: Option<&Path>) -> Result<DocumentFile, String> {
        let (name, read) = match path {
            Some(path) if !is_stdin(path) => {
                let name = path.display().to_string();
                (name, File::open(path).and_then(read_whole))
            }
            _ => ("stdin".to_owned(), read_whole(io::stdin().lock())),
        };
        match read {
            Ok(text) => Ok(DocumentFile { name, text }),
            Err(error) => Err(format!("cannot read `{name}`: {error}")),
        }
    }

    pub(crate) fn named(&self) -> NamedText<'_> {
        NamedText {
            name: &self.name,
            text: &self.text,
        }
    }
}

/// Whether this stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn read_whole(source: impl Read) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    source.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_DOCUMENT_BYTES {
        let limit = MAX_DOCUMENT_BYTES >> 20;
        return Err(io::Error::other(format!(
            "it is longer than {limit} MiB, and no document is"
        )));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_met_to_the_byte() {
        let read = |bytes| read_whole(io::repeat(b' ').take(bytes)).map(|text| text.len() as u64);
        assert_eq!(read(MAX_DOCUMENT_BYTES).expect("fits"), MAX_DOCUMENT_BYTES);
        assert!(read(MAX_DOCUMENT_BYTES + 1).is_err());
        assert!(read(u64::MAX).is_err());
    }
}
