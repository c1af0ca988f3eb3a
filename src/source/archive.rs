//! Archives: gzip and Zstandard, decompressed as they are read.
//!
//! An archive is a row of *parts*, gzip members or Zstandard frames, and its content is theirs one
//! behind the other. What stands before a damage is handed out to the last byte that can be made
//! out, in whatever pieces the archive is read; only then comes the error. A checksum stands at the
//! end of its part, so a changed byte that still decodes is found after what it decodes to.

use std::fmt;
use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::block::Block;

/// Binary logarithm of the largest window of a Zstandard frame: 128 MiB. It is what the tool `zstd`
/// takes without being asked to take more, and enough for all its levels and for `--long`. The
/// window is the memory that an archive may claim, and only what it fills is ever taken.
const MAX_ZSTD_WINDOW_LOG: u32 = 27;

/// What gzip's window can be at the most, 32 KiB.
const GZIP_WINDOW_LOG: u8 = 15;

/// How a file is compressed, as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// RFC 1952.
    Gzip,
    /// RFC 8878, without a dictionary.
    Zstd,
}

/// Most bytes that [`Format::of`] has to see.
pub(super) const MAGIC_BYTES: usize = 4;

const GZIP_MAGIC: [u8; 2] = [0x1F, 0x8B];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Of a frame that holds nothing to decompress, behind a byte from 0x50 to 0x5F.
const ZSTD_SKIPPABLE_MAGIC: [u8; 3] = [0x2A, 0x4D, 0x18];

impl Format {
    /// The format of what begins with these bytes. No JSON text begins so.
    pub(super) fn of(bytes: &[u8]) -> Option<Format> {
        if bytes.starts_with(&GZIP_MAGIC) {
            return Some(Format::Gzip);
        }
        let is_zstd = match bytes {
            [0x50..=0x5F, rest @ ..] => rest.starts_with(&ZSTD_SKIPPABLE_MAGIC),
            _ => bytes.starts_with(&ZSTD_MAGIC),
        };
        is_zstd.then_some(Format::Zstd)
    }

    /// Whether more bytes may make these the beginning of an archive of this format.
    fn may_begin(self, bytes: &[u8]) -> bool {
        match (self, bytes) {
            (Format::Gzip, _) => GZIP_MAGIC.starts_with(bytes),
            (Format::Zstd, [0x50..=0x5F, rest @ ..]) => ZSTD_SKIPPABLE_MAGIC.starts_with(rest),
            (Format::Zstd, _) => ZSTD_MAGIC.starts_with(bytes),
        }
    }

    /// Whether more bytes may make these the beginning of an archive.
    pub(super) fn is_undecided(bytes: &[u8]) -> bool {
        let formats = [Format::Gzip, Format::Zstd];
        formats.iter().any(|format| format.may_begin(bytes))
    }

    /// What the format calls a part.
    const fn part(self) -> &'static str {
        match self {
            Format::Gzip => "member",
            Format::Zstd => "frame",
        }
    }

    /// The tool that makes a stream of it.
    pub(super) const fn tool(self) -> &'static str {
        match self {
            Format::Gzip => "gzip -dc",
            Format::Zstd => "zstd -dc",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Gzip => "gzip",
            Format::Zstd => "zstd",
        })
    }
}

/// An archive that is being read.
pub(super) struct Archive<R> {
    source: R,
    format: Format,
    codec: Codec,
    /// What was read of the archive; the first `used` bytes are decompressed.
    input: Block,
    used: usize,
    /// Offset in the archive of the first byte of `input`.
    offset: u64,
    /// Number of the part that is decompressed or comes next, from 1.
    part: u64,
    /// Whether that part has begun.
    in_part: bool,
    /// What to say once everything before it was handed out.
    fault: Option<io::Error>,
}

impl<R: Read> Archive<R> {
    /// An archive whose first bytes were read into `input`.
    pub(super) fn new(format: Format, input: Block, source: R) -> io::Result<Self> {
        Ok(Archive {
            source,
            format,
            codec: Codec::new(format)?,
            input,
            used: 0,
            offset: 0,
            part: 1,
            in_part: false,
            fault: None,
        })
    }

    pub(super) fn source(&self) -> &R {
        &self.source
    }

    fn rest(&self) -> &[u8] {
        &self.input.bytes()[self.used..]
    }

    /// Reads more of the archive. Gives whether there was more.
    fn read_more(&mut self) -> io::Result<bool> {
        let used = std::mem::take(&mut self.used);
        self.offset += used as u64;
        Ok(self.input.refill(used, &mut self.source)? > 0)
    }

    /// Begins the next part, if there is one.
    fn begin_part(&mut self) -> io::Result<bool> {
        while self.rest().len() < MAGIC_BYTES && self.format.may_begin(self.rest()) {
            if !self.read_more()? {
                break;
            }
        }
        if self.rest().is_empty() {
            return Ok(false);
        }
        if Format::of(self.rest()) != Some(self.format) {
            return Err(match self.format.may_begin(self.rest()) {
                true => self.truncated(),
                false => self.something_else(),
            });
        }
        self.codec.begin_part();
        self.in_part = true;
        Ok(true)
    }

    fn end_part(&mut self) {
        self.in_part = false;
        self.part += 1;
    }

    /// Keeps the error for later if there is something to hand out before.
    fn stop(&mut self, written: usize, error: io::Error) -> io::Result<usize> {
        if written == 0 {
            return Err(error);
        }
        self.fault = Some(error);
        Ok(written)
    }

    /// Where the next byte to be decompressed is, for people.
    fn place(&self) -> String {
        let at = self.offset + self.used as u64;
        format!("byte {at} of the compressed data")
    }

    fn truncated(&self) -> io::Error {
        let (format, part, number, place) =
            (self.format, self.format.part(), self.part, self.place());
        let message = format!("{format} data ends in the middle of {part} {number}, at {place}");
        io::Error::new(io::ErrorKind::UnexpectedEof, message)
    }

    fn something_else(&self) -> io::Error {
        let (format, part, before, place) =
            (self.format, self.format.part(), self.part - 1, self.place());
        let message =
            format!("something that is no {format} {part} follows {part} {before}, at {place}");
        io::Error::new(io::ErrorKind::InvalidData, message)
    }

    fn damaged(&self, cause: &str) -> io::Error {
        let (format, part, number, place) =
            (self.format, self.format.part(), self.part, self.place());
        let message = format!(
            "{format} data cannot be decompressed in {part} {number}, near {place}: {cause}"
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    }
}

impl<R: Read> Read for Archive<R> {
    /// Gives what can be had without waiting for more of the archive, at least a byte before its end.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut written = 0;
        while written < out.len() {
            if !self.in_part {
                // To find out what follows may take waiting.
                if written > 0 && self.rest().len() < MAGIC_BYTES {
                    break;
                }
                match self.begin_part() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return self.stop(written, error),
                }
            }
            let step = self
                .codec
                .step(&self.input.bytes()[self.used..], &mut out[written..]);
            self.used += step.consumed;
            written += step.produced;
            match step.outcome {
                Err(cause) => {
                    let error = self.damaged(&cause);
                    return self.stop(written, error);
                }
                Ok(Progress::PartEnded) => self.end_part(),
                Ok(Progress::Goes) if step.consumed + step.produced > 0 => {}
                Ok(Progress::Goes) if written > 0 => break,
                Ok(Progress::Goes) => {
                    if !self.read_more()? {
                        return Err(self.truncated());
                    }
                }
            }
        }
        Ok(written)
    }
}

/// The state of decompression.
enum Codec {
    Gzip(Decompress),
    Zstd(Zstd),
}

/// What came of a piece of the archive.
struct Step {
    consumed: usize,
    /// Good even where the outcome is not.
    produced: usize,
    outcome: Result<Progress, String>,
}

enum Progress {
    /// The part goes on. If nothing was consumed or produced it needs more of the archive.
    Goes,
    PartEnded,
}

impl Codec {
    fn new(format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::Gzip => Codec::Gzip(Decompress::new_gzip(GZIP_WINDOW_LOG)),
            Format::Zstd => Codec::Zstd(Zstd::new()?),
        })
    }

    fn begin_part(&mut self) {
        match self {
            Codec::Gzip(inflate) => inflate.reset(true),
            Codec::Zstd(zstd) => zstd.wanted = MAGIC_BYTES,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        match self {
            Codec::Gzip(inflate) => inflate_step(inflate, input, output),
            Codec::Zstd(zstd) => zstd.step(input, output),
        }
    }
}

fn inflate_step(inflate: &mut Decompress, input: &[u8], output: &mut [u8]) -> Step {
    let (total_in, total_out) = (inflate.total_in(), inflate.total_out());
    let outcome = match inflate.decompress(input, output, FlushDecompress::None) {
        Ok(Status::StreamEnd) => Ok(Progress::PartEnded),
        Ok(Status::Ok | Status::BufError) => Ok(Progress::Goes),
        Err(error) => Err(inflate_cause(error.message())),
    };
    let length = |total: u64| usize::try_from(total).expect("no longer than its buffer");
    Step {
        consumed: length(inflate.total_in() - total_in),
        produced: length(inflate.total_out() - total_out),
        outcome,
    }
}

/// What the library says, unless that is that it has said it before.
fn inflate_cause(message: Option<&str>) -> String {
    match message {
        Some(message) if !message.contains("bad state") => message.to_owned(),
        _ => "invalid deflate data".to_owned(),
    }
}

/// Decompresses a block of a frame at a time: what the library produced in a call that fails is
/// lost, so no call may have both something to produce and something to fail at.
struct Zstd {
    decoder: Decoder<'static>,
    /// How much of the archive the library expects: the rest of the block and, behind it, the header
    /// of the next one.
    wanted: usize,
    /// Whether the library may hold content for which there was no room.
    may_hold: bool,
}

/// Length of a block's header in a Zstandard frame.
const ZSTD_BLOCK_HEADER_BYTES: usize = 3;

impl Zstd {
    fn new() -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_ZSTD_WINDOW_LOG))?;
        Ok(Zstd {
            decoder,
            wanted: MAGIC_BYTES,
            may_hold: false,
        })
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if self.may_hold {
            let held = self.run(&[], output);
            if held.produced > 0 || held.outcome.is_err() {
                return held;
            }
        }
        let header = match self.wanted {
            ..=ZSTD_BLOCK_HEADER_BYTES => 0,
            _ => ZSTD_BLOCK_HEADER_BYTES,
        };
        let length = input.len().min(self.wanted - header);
        self.run(&input[..length], output)
    }

    fn run(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(output);
        let outcome = match self.decoder.run(&mut input, &mut output) {
            Ok(0) => Ok(Progress::PartEnded),
            Ok(wanted) => {
                self.wanted = wanted;
                Ok(Progress::Goes)
            }
            Err(error) => {
                // What it failed at, so that the place told does not depend on the pieces.
                input.set_pos(input.src.len());
                Err(cause_of(&error))
            }
        };
        self.may_hold = output.pos() == output.capacity();
        Step {
            consumed: input.pos(),
            produced: output.pos(),
            outcome,
        }
    }
}

/// What the library says, and more where it is not damage.
fn cause_of(error: &io::Error) -> String {
    let cause = error.to_string();
    if cause.contains("too much memory") {
        let mib = (1_u64 << MAX_ZSTD_WINDOW_LOG) >> 20;
        return format!("its window is larger than {mib} MiB");
    }
    if cause.contains("Dictionary") {
        return "it needs a dictionary".to_owned();
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, GzBuilder};
    use std::io::Write;

    const SIZES: [usize; 3] = [1, 7, 1 << 20];

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzBuilder::new()
            .filename("trace.jsonl")
            .comment("a comment")
            .extra(&b"more"[..])
            .mtime(1)
            .write(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// How an archive is made.
    type Pack = fn(&[u8]) -> Vec<u8>;

    const PACKERS: [(Format, Pack); 2] = [(Format::Gzip, gzip), (Format::Zstd, zstd)];

    /// Lines that compress as traces do.
    fn text(lines: u32) -> Vec<u8> {
        let line = |n: u32| format!("{{\"seq\":{n},\"x\":{}}}\n", n.wrapping_mul(2_654_435_761));
        (0..lines).flat_map(|n| line(n).into_bytes()).collect()
    }

    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(out.len());
            self.0.read(&mut out[..length])
        }
    }

    /// The content, and what was wrong with it. `piece` limits each read of the archive, `room` each
    /// read of its content.
    fn unpack(bytes: &[u8], piece: usize, room: usize) -> (Vec<u8>, Option<String>) {
        let format = Format::of(bytes).expect("an archive");
        let mut input = Block::new();
        let mut source = Pieces(bytes, piece);
        input.fill(&mut source).unwrap();
        let mut archive = Archive::new(format, input, source).unwrap();
        let (mut all, mut out) = (Vec::new(), vec![0; room]);
        loop {
            match archive.read(&mut out) {
                Ok(0) => return (all, None),
                Ok(length) => all.extend_from_slice(&out[..length]),
                Err(error) => return (all, Some(error.to_string())),
            }
        }
    }

    /// [`unpack`], which must give the same in pieces of any size.
    #[track_caller]
    fn unpack_all(bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        let expected = unpack(bytes, 1 << 20, 1 << 20);
        for (piece, room) in [(1, 1 << 20), (1 << 20, 13), (5, 100)] {
            let (content, fault) = unpack(bytes, piece, room);
            assert!(content == expected.0, "content by {piece} and {room}");
            // Which rule of the format is found broken first may differ.
            let what = |fault: Option<String>| fault?.split(" near ").next().map(str::to_owned);
            assert_eq!(
                what(fault),
                what(expected.1.clone()),
                "by {piece} and {room}"
            );
        }
        expected
    }

    #[test]
    fn parts_are_read_one_behind_the_other() {
        let text = text(20_000);
        for (_, pack) in PACKERS {
            assert_eq!(unpack_all(&pack(b"")), (Vec::new(), None));
            let (first, second) = text.split_at(text.len() / 3);
            let archive = [pack(b""), pack(first), pack(b""), pack(second), pack(b"")].concat();
            assert!(unpack_all(&archive) == (text.clone(), None));
            for size in SIZES {
                assert!(unpack(&archive, size, 1 << 16) == (text.clone(), None));
            }
        }
    }

    #[test]
    fn frames_that_hold_nothing_are_skipped() {
        let skipped = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
            [&[0x5A, 0x2A, 0x4D, 0x18][..], &length, bytes].concat()
        };
        let archive = [
            skipped(b"12"),
            zstd(b"a"),
            skipped(b""),
            zstd(b"b"),
            skipped(&[0; 5000]),
        ];
        assert_eq!(unpack_all(&archive.concat()), (b"ab".to_vec(), None));
        let archive = [zstd(b"a"), skipped(b"12345")].concat();
        let (content, fault) = unpack_all(&archive[..archive.len() - 1]);
        assert_eq!(content, b"a");
        assert!(fault.unwrap().contains("ends in the middle of frame 2"));
    }

    #[test]
    fn every_cut_gives_what_is_before_it_and_says_where_it_is() {
        let text = text(60);
        let (first, second) = text.split_at(600);
        for (format, pack) in PACKERS {
            let parts = [pack(first), pack(second)];
            let archive = parts.concat();
            let magic = if format == Format::Gzip { 2 } else { 4 };
            let mut before = 0;
            for cut in magic..archive.len() {
                let (content, fault) = unpack_all(&archive[..cut]);
                assert!(
                    text.starts_with(&content) && content.len() >= before,
                    "{cut}"
                );
                before = content.len();
                if cut == parts[0].len() {
                    assert_eq!((&content[..], fault), (first, None));
                    continue;
                }
                let part = format!("{} {}", format.part(), 1 + u8::from(cut > parts[0].len()));
                // What stands at the end and cannot be used may be left unread.
                let expected = format!("{format} data ends in the middle of {part}, at byte ");
                let fault = fault.expect("cut off");
                assert!(fault.starts_with(&expected), "{cut}: {fault}");
            }
            assert_eq!(before, text.len(), "only the checksum is missing");
        }
    }

    #[test]
    fn no_changed_bit_goes_unnoticed_or_depends_on_the_pieces() {
        let text = text(40);
        for (format, pack) in PACKERS {
            let first = pack(&text[..500]);
            let archive = [first.clone(), pack(&text[500..])].concat();
            let mut found = 0;
            for bit in 0..archive.len() * 8 {
                let mut changed = archive.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                if Format::of(&changed) != Some(format) {
                    continue;
                }
                let (content, fault) = unpack_all(&changed);
                match fault {
                    // Some bits of a header mean nothing for the content.
                    None => assert!(content == text, "bit {bit}"),
                    Some(fault) => {
                        found += 1;
                        let is_second = bit / 8 >= first.len();
                        assert!(!is_second || content.starts_with(&text[..500]), "bit {bit}");
                        assert!(fault.contains(" byte "), "bit {bit}: {fault}");
                    }
                }
            }
            assert!(
                found > archive.len() * 4,
                "{found} of {} bytes",
                archive.len()
            );
        }
    }

    /// Nothing that stands before a damage is lost, though it may be decompressed in the same call.
    #[test]
    fn what_stands_before_a_damage_is_given() {
        let text = text(60_000);
        for (format, pack) in PACKERS {
            let archive = pack(&text);
            let mut changed = archive.clone();
            let from = archive.len() * 3 / 4;
            changed[from..].fill(0xFF);
            let (content, fault) = unpack_all(&changed);
            let same = content.iter().zip(&text).take_while(|(a, b)| a == b);
            // A block of zstd holds 128 KiB, and is given as a whole or not at all.
            let least = text.len() * 3 / 4 - (160 << 10);
            assert!(same.count() > least, "{} bytes of {format}", content.len());
            // What stands there may decode to something, and only its end be missing.
            let fault = fault.expect("damaged");
            assert!(fault.contains(&format!("{} 1, ", format.part())), "{fault}");
        }
    }

    #[test]
    fn what_follows_a_part_must_be_one_of_the_same_format() {
        for (format, pack) in PACKERS {
            let part = pack(b"text\n");
            let other = if format == Format::Gzip { zstd } else { gzip };
            for behind in [&b"{\"seq\":1}\n"[..], b"\0", b"\0\0\0\0\0\0", &other(b"x")] {
                let (content, fault) = unpack_all(&[&part[..], behind].concat());
                assert_eq!(content, b"text\n");
                let name = format.part();
                let expected = format!(
                    "something that is no {format} {name} follows {name} 1, at byte {} of the \
                     compressed data",
                    part.len()
                );
                assert_eq!(fault.as_deref(), Some(&*expected));
            }
        }
    }

    #[test]
    fn windows_and_dictionaries_are_bounded() {
        let frame = |descriptor: u8, rest: &[u8]| {
            let empty_last_block = [1, 0, 0];
            [&ZSTD_MAGIC[..], &[descriptor], rest, &empty_last_block].concat()
        };
        // The upper five bits of the window's descriptor are its logarithm, from 10.
        let window = |log: u32| u8::try_from(log - 10).unwrap() << 3;
        let largest = frame(0, &[window(MAX_ZSTD_WINDOW_LOG)]);
        assert_eq!(unpack_all(&largest), (Vec::new(), None));
        let fault = |bytes: &[u8]| unpack_all(bytes).1.expect("refused");
        let larger = fault(&frame(0, &[window(MAX_ZSTD_WINDOW_LOG + 1)]));
        assert!(
            larger.contains("its window is larger than 128 MiB"),
            "{larger}"
        );
        let with_dictionary = fault(&frame(1, &[window(20), 77]));
        assert!(
            with_dictionary.contains("it needs a dictionary"),
            "{with_dictionary}"
        );
    }
}
