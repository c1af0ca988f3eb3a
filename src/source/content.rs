//! What a source holds: its bytes as they are, or decompressed where they are an archive's.

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::unix::fs::FileExt;

use super::archive::{Archive, Format, MAGIC_BYTES};
use super::block::Block;

/// What is to become of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Archives {
    /// They are decompressed.
    Decompress,
    /// They are refused: where a run follows, an archive has no end to wait for.
    Refuse,
}

/// The content of one source.
pub(super) struct Content<R> {
    state: State<R>,
    archives: Archives,
    /// How much of the source was read when it was asked last.
    told: u64,
}

enum State<R> {
    /// Nothing was read yet.
    Begins(Counted<R>),
    Plain(Counted<R>),
    Archive(Box<Archive<Counted<R>>>),
    /// It failed at its beginning.
    Failed,
}

impl Content<File> {
    /// Whether a file begins like an archive.
    pub(super) fn is_archive(file: &File) -> io::Result<bool> {
        let mut magic = [0; MAGIC_BYTES];
        match file.read_exact_at(&mut magic, 0) {
            Ok(()) => Ok(Format::of(&magic).is_some()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<R: Read> Content<R> {
    pub(super) fn new(source: R, archives: Archives) -> Self {
        let source = Counted { source, bytes: 0 };
        Content {
            state: State::Begins(source),
            archives,
            told: 0,
        }
    }

    /// What is known to be no archive, from somewhere within.
    pub(super) fn plain(source: R) -> Self {
        let source = Counted { source, bytes: 0 };
        Content {
            state: State::Plain(source),
            archives: Archives::Refuse,
            told: 0,
        }
    }

    /// Puts the next bytes of the content into `block`; none at its end.
    pub(super) fn fill(&mut self, block: &mut Block) -> io::Result<usize> {
        match &mut self.state {
            State::Begins(_) => self.begin(block),
            State::Plain(source) => block.fill(source),
            State::Archive(archive) => block.fill(archive),
            State::Failed => Ok(0),
        }
    }

    /// How much of the source, compressed or not, was read since this was asked last.
    pub(super) fn newly_read(&mut self) -> u64 {
        let bytes = match &self.state {
            State::Begins(source) | State::Plain(source) => source.bytes,
            State::Archive(archive) => archive.source().bytes,
            State::Failed => self.told,
        };
        bytes - mem::replace(&mut self.told, bytes)
    }

    fn begin(&mut self, block: &mut Block) -> io::Result<usize> {
        let State::Begins(mut source) = mem::replace(&mut self.state, State::Failed) else {
            unreachable!("only a source that begins is begun");
        };
        block.fill(&mut source)?;
        // The first byte of a trace decides already, so that nobody waits here for the second.
        while block.bytes().len() < MAGIC_BYTES
            && Format::is_undecided(block.bytes())
            && block.refill(0, &mut source)? > 0
        {}
        match Format::of(block.bytes()) {
            None => {
                self.state = State::Plain(source);
                Ok(block.bytes().len())
            }
            Some(format) if self.archives == Archives::Refuse => Err(refusal(format)),
            Some(format) => {
                let input = mem::replace(block, Block::new());
                let mut archive = Box::new(Archive::new(format, input, source)?);
                let filled = block.fill(&mut archive);
                self.state = State::Archive(archive);
                filled
            }
        }
    }
}

fn refusal(format: Format) -> io::Error {
    let tool = format.tool();
    io::Error::new(
        io::ErrorKind::Unsupported,
        format!(
            "this is {format} data, which --follow does not decompress; put `{tool} |` before tracecheck"
        ),
    )
}

/// Counts what is read.
struct Counted<R> {
    source: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(out)?;
        self.bytes += length as u64;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most so many bytes at once.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(out.len());
            self.0.read(&mut out[..length])
        }
    }

    /// The content, what was wrong with it, and how much is told to have been read.
    fn read(bytes: &[u8], piece: usize, archives: Archives) -> (Vec<u8>, Option<String>, u64) {
        let mut content = Content::new(Pieces(bytes, piece), archives);
        let (mut block, mut all, mut told) = (Block::new(), Vec::new(), 0);
        loop {
            let filled = content.fill(&mut block);
            told += content.newly_read();
            match filled {
                Ok(0) => return (all, None, told),
                Ok(_) => all.extend_from_slice(block.bytes()),
                Err(error) => return (all, Some(error.to_string()), told),
            }
        }
    }

    #[test]
    fn what_is_no_archive_is_left_as_it_is() {
        for text in [
            &b""[..],
            b"{}\n",
            b"(",
            b"P",
            b"P*M",
            b"(\xB5\x2F",
            b"\x1F",
            b"\x1F\x8C\x08",
            b"BZh91AY",
            b"\xFD7zXZ\0",
        ] {
            for (piece, archives) in [(1, Archives::Decompress), (99, Archives::Refuse)] {
                let expected = (text.to_vec(), None, text.len() as u64);
                assert_eq!(read(text, piece, archives), expected);
            }
        }
    }

    #[test]
    fn what_is_read_is_counted_as_it_is_compressed() {
        let text = b"{\"seq\":1}\n".repeat(100_000);
        let archive = zstd::encode_all(&text[..], 1).unwrap();
        for piece in [1000, 1 << 20] {
            let (content, fault, told) = read(&archive, piece, Archives::Decompress);
            assert!(content == text && fault.is_none());
            assert_eq!(told, archive.len() as u64);
        }
    }

    #[test]
    fn archives_are_refused_where_a_run_follows() {
        for (magic, tool) in [
            (&b"\x1F\x8B\x08\0"[..], "`gzip -dc |`"),
            (b"\x28\xB5\x2F\xFD", "`zstd -dc |`"),
        ] {
            let (content, fault, _) = read(magic, 1, Archives::Refuse);
            assert!(content.is_empty());
            let fault = fault.expect("refused");
            assert!(
                fault.contains(tool) && fault.contains("--follow"),
                "{fault}"
            );
        }
    }
}
