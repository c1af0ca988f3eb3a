//! A checkpoint file: a header, entries, and a seal.
//!
//! ```text
//! header   8 bytes   "tracechk"
//!          4 bytes   format version
//! entry    4 bytes   length of the rest
//!          1 byte    kind: 1 meta (the first entry and no other), 2 file, 3 state
//!          n bytes   the entry, as postcard writes it
//! ...
//! seal     8 bytes   "tcsealed"
//!         16 bytes   XXH3 (128 bits) of everything before the seal
//! ```
//!
//! Numbers are little-endian. What a state is, is not this module's business. Entries are written as
//! they come and read as they come, so that a million of them need no second copy in memory; the
//! checksum of the whole is verified before the first is believed.
//!
//! **Any change of the bytes, also of the types that a state is made of, needs another
//! [`VERSION`]**: postcard describes nothing, and would read the old bytes as something else.
//!
//! The seal comes apart from the rest: a file without it is one whose output has not been delivered,
//! or one that was cut short. Neither is used.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracecheck::framing::Position;
use xxhash_rust::xxh3::Xxh3;

use crate::source::{Fingerprint, Generation, SavedFile};

/// The version that is written, and the only one that is read.
pub(crate) const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"tracechk";
const SEAL: [u8; 8] = *b"tcsealed";
const HEADER_BYTES: u64 = (MAGIC.len() + size_of::<u32>()) as u64;
const SEAL_BYTES: u64 = (SEAL.len() + size_of::<u128>()) as u64;
const LENGTH_BYTES: u64 = size_of::<u32>() as u64;

/// Longest entry. A trace's state is a few megabytes at the most; beyond, something is wrong with
/// the program, and better no checkpoint than one that takes the memory of whoever reads it.
const MAX_ENTRY_BYTES: u64 = 256 << 20;

/// How much is read or written at once: enough that calls cost nothing.
const BUFFER_BYTES: usize = 64 * 1024;

/// What a checkpoint says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// When it was taken, in seconds since 1970. The wall clock is right here: only it goes on
    /// while the process does not.
    pub(crate) created: u64,
    pub(crate) identity: Identity,
}

/// What must be the same for positions and states to mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// `a3` or `ag-ui`.
    pub(crate) protocol: String,
    /// The member that tells traces apart.
    pub(crate) trace_key: Option<String>,
}

/// A file that was read, and when it was last there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub(crate) file: SavedFile,
    /// In seconds since 1970.
    pub(crate) last_seen: u64,
}

/// What comes after the meta entry. `S` is what is kept of the verifier.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry<S> {
    File(FileEntry),
    State(S),
}

/// Why a file is no checkpoint that can be used.
#[derive(Debug)]
pub(crate) enum Damage {
    Empty,
    NoCheckpoint,
    Version(u32),
    /// It has no seal.
    Unfinished,
    Checksum,
    /// The checksum is right and the entry of that number makes no sense all the same.
    Entry(u64),
    Unreadable(io::Error),
}

/// Writes a checkpoint up to its seal.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    out: BufWriter<Hashing<W>>,
    /// The entry that is being written.
    frame: Vec<u8>,
}

/// A checkpoint that lacks nothing but its seal.
#[derive(Debug)]
pub(crate) struct Unsealed<W> {
    out: Hashing<W>,
}

/// Reads a checkpoint that is whole.
#[derive(Debug)]
pub(crate) struct Reader {
    meta: Meta,
    bytes: u64,
    /// Where the entry after the meta entry begins.
    first: u64,
    frames: Frames,
}

impl<W: Write> Writer<W> {
    /// Begins a checkpoint.
    pub(crate) fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let hashing = Hashing {
            inner: out,
            hasher: Box::new(Xxh3::new()),
        };
        let mut writer = Writer {
            out: BufWriter::with_capacity(BUFFER_BYTES, hashing),
            frame: Vec::new(),
        };
        writer.out.write_all(&MAGIC)?;
        writer.out.write_all(&VERSION.to_le_bytes())?;
        writer.entry(Kind::Meta, meta)?;
        Ok(writer)
    }

    /// Adds a file that was there at `last_seen`, in seconds since 1970.
    pub(crate) fn file(&mut self, file: &SavedFile, last_seen: u64) -> io::Result<()> {
        self.entry(Kind::File, &StoredFile::new(file, last_seen))
    }

    /// Adds a part of the verifier's state.
    pub(crate) fn state(&mut self, state: &impl Serialize) -> io::Result<()> {
        self.entry(Kind::State, state)
    }

    /// Hands over everything that was written.
    pub(crate) fn finish(self) -> io::Result<Unsealed<W>> {
        let out = self.out.into_inner().map_err(|error| error.into_error())?;
        Ok(Unsealed { out })
    }

    fn entry(&mut self, kind: Kind, value: &impl Serialize) -> io::Result<()> {
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.push(kind as u8);
        self.frame = postcard::to_extend(value, frame).map_err(io::Error::other)?;
        let length = u32::try_from(self.frame.len())
            .ok()
            .filter(|&length| u64::from(length) <= MAX_ENTRY_BYTES)
            .ok_or_else(|| io::Error::other("an entry is too long"))?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(&self.frame)
    }
}

impl<W: Write> Unsealed<W> {
    /// Makes it a checkpoint that loading believes.
    pub(crate) fn seal(self) -> io::Result<W> {
        let Hashing { mut inner, hasher } = self.out;
        let mut seal = Vec::with_capacity(SEAL_BYTES as usize);
        seal.extend_from_slice(&SEAL);
        seal.extend_from_slice(&hasher.digest128().to_le_bytes());
        inner.write_all(&seal)?;
        Ok(inner)
    }
}

impl Reader {
    /// Reads the whole file once, and trusts it if its checksum is right.
    pub(crate) fn new(mut file: File) -> Result<Reader, Damage> {
        let bytes = file.metadata()?.len();
        check_header(&mut file, bytes)?;
        let left = bytes
            .checked_sub(HEADER_BYTES + SEAL_BYTES)
            .ok_or(Damage::Unfinished)?;
        check_seal(&mut file, bytes - SEAL_BYTES)?;
        file.seek(SeekFrom::Start(HEADER_BYTES))?;
        let mut frames = Frames {
            file: BufReader::with_capacity(BUFFER_BYTES, file),
            left,
            number: 0,
            frame: Vec::new(),
        };
        let meta = match frames.next()? {
            Some(Kind::Meta) => frames.decode()?,
            _ => return Err(Damage::Entry(1)),
        };
        Ok(Reader {
            meta,
            bytes,
            first: HEADER_BYTES + left - frames.left,
            frames,
        })
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// How long the file is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next entry, if there is one.
    pub(crate) fn read<S: DeserializeOwned>(&mut self) -> Result<Option<Entry<S>>, Damage> {
        let frames = &mut self.frames;
        Ok(match frames.next()? {
            None => None,
            Some(Kind::File) => Some(Entry::File(frames.decode::<StoredFile<'_>>()?.into())),
            Some(Kind::State) => Some(Entry::State(frames.decode()?)),
            Some(Kind::Meta) => return Err(Damage::Entry(frames.number)),
        })
    }

    /// The next state, if there is one; files are passed over.
    pub(crate) fn read_state<S: DeserializeOwned>(&mut self) -> Result<Option<S>, Damage> {
        while let Some(kind) = self.frames.next()? {
            if let Kind::State = kind {
                return self.frames.decode().map(Some);
            }
        }
        Ok(None)
    }

    /// Goes back to the first entry.
    pub(crate) fn rewind(&mut self) -> Result<(), Damage> {
        self.frames.file.seek(SeekFrom::Start(self.first))?;
        self.frames.left = self.bytes - SEAL_BYTES - self.first;
        self.frames.number = 1;
        Ok(())
    }
}

/// The entries of a file, not yet decoded.
#[derive(Debug)]
struct Frames {
    file: BufReader<File>,
    /// How many bytes there are up to the seal.
    left: u64,
    /// How many entries were read.
    number: u64,
    /// The last of them, with its kind.
    frame: Vec<u8>,
}

impl Frames {
    fn next(&mut self) -> Result<Option<Kind>, Damage> {
        if self.left == 0 {
            return Ok(None);
        }
        self.number += 1;
        let damage = || Damage::Entry(self.number);
        let room = self.left.checked_sub(LENGTH_BYTES).ok_or_else(damage)?;
        let mut length = [0; LENGTH_BYTES as usize];
        self.file.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        if length == 0 || length > room.min(MAX_ENTRY_BYTES) {
            return Err(damage());
        }
        self.frame.resize(length as usize, 0);
        self.file.read_exact(&mut self.frame)?;
        self.left = room - length;
        Kind::of(self.frame[0]).map(Some).ok_or_else(damage)
    }

    fn decode<'f, T: Deserialize<'f>>(&'f self) -> Result<T, Damage> {
        match postcard::take_from_bytes(&self.frame[1..]) {
            Ok((value, [])) => Ok(value),
            _ => Err(Damage::Entry(self.number)),
        }
    }
}

fn check_header(file: &mut File, bytes: u64) -> Result<(), Damage> {
    if bytes == 0 {
        return Err(Damage::Empty);
    }
    let mut header = Vec::with_capacity(HEADER_BYTES as usize);
    file.take(HEADER_BYTES).read_to_end(&mut header)?;
    let version = header.strip_prefix(&MAGIC).ok_or(Damage::NoCheckpoint)?;
    let version = version.try_into().map_err(|_| Damage::Unfinished)?;
    match u32::from_le_bytes(version) {
        VERSION => Ok(()),
        other => Err(Damage::Version(other)),
    }
}

/// Whether a right seal stands at `at` and the file ends there. A file without any is told
/// without reading the whole.
fn check_seal(file: &mut File, at: u64) -> Result<(), Damage> {
    file.seek(SeekFrom::Start(at))?;
    let mut seal = [0; SEAL_BYTES as usize];
    file.read_exact(&mut seal)?;
    let checksum = seal.strip_prefix(&SEAL).ok_or(Damage::Unfinished)?;
    file.seek(SeekFrom::Start(0))?;
    match hash(&mut file.take(at))?.to_le_bytes() == checksum {
        true => Ok(()),
        false => Err(Damage::Checksum),
    }
}

fn hash(from: &mut impl Read) -> io::Result<u128> {
    let mut hasher = Box::new(Xxh3::new());
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(hasher.digest128()),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Meta = 1,
    File = 2,
    State = 3,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        match byte {
            1 => Some(Kind::Meta),
            2 => Some(Kind::File),
            3 => Some(Kind::State),
            _ => None,
        }
    }
}

/// A [`FileEntry`] as it is written: serde has no paths that are not UTF-8, and file systems do.
#[derive(Serialize, Deserialize)]
struct StoredFile<'a> {
    path: &'a [u8],
    generation: Generation,
    fingerprint: Cow<'a, Fingerprint>,
    position: Position,
    last_seen: u64,
}

impl<'a> StoredFile<'a> {
    fn new(file: &'a SavedFile, last_seen: u64) -> StoredFile<'a> {
        StoredFile {
            path: file.path.as_os_str().as_bytes(),
            generation: file.generation,
            fingerprint: Cow::Borrowed(&file.fingerprint),
            position: file.position,
            last_seen,
        }
    }
}

impl From<StoredFile<'_>> for FileEntry {
    fn from(stored: StoredFile<'_>) -> FileEntry {
        FileEntry {
            file: SavedFile {
                path: PathBuf::from(OsStr::from_bytes(stored.path)),
                generation: stored.generation,
                fingerprint: stored.fingerprint.into_owned(),
                position: stored.position,
            },
            last_seen: stored.last_seen,
        }
    }
}

/// Hashes what is written.
struct Hashing<W> {
    inner: W,
    hasher: Box<Xxh3>,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: fmt::Debug> fmt::Debug for Hashing<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashing").field(&self.inner).finish()
    }
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Damage {
        Damage::Unreadable(error)
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Empty => f.write_str("it is empty"),
            Damage::NoCheckpoint => f.write_str("it does not begin as a checkpoint does"),
            Damage::Version(version) => write!(
                f,
                "its format has version {version}, and this program knows {VERSION}"
            ),
            Damage::Unfinished => f.write_str("its end is missing"),
            Damage::Checksum => f.write_str("its checksum is wrong"),
            Damage::Entry(number) => write!(f, "its entry {number} makes no sense"),
            Damage::Unreadable(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl std::error::Error for Damage {}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::{Sample, entry, identity, sample};
    use super::*;

    type Entries = Vec<Entry<Sample>>;

    fn meta() -> Meta {
        Meta {
            created: 1_772_357_400,
            identity: identity(),
        }
    }

    fn unsealed(entries: &Entries) -> Writer<Vec<u8>> {
        let mut writer = Writer::new(Vec::new(), &meta()).expect("memory takes it");
        for entry in entries {
            match entry {
                Entry::File(entry) => writer.file(&entry.file, entry.last_seen),
                Entry::State(state) => writer.state(state),
            }
            .expect("memory takes it");
        }
        writer
    }

    fn sealed(entries: &Entries) -> Vec<u8> {
        let unsealed = unsealed(entries).finish().expect("memory takes it");
        unsealed.seal().expect("memory takes it")
    }

    fn some() -> Entries {
        vec![
            Entry::File(entry("/var/log/a.jsonl", 7, 1_772_357_399)),
            Entry::State(sample("a")),
            Entry::State(sample("")),
            Entry::File(entry(OsStr::from_bytes(b"/not \xff UTF-8"), u64::MAX, 0)),
        ]
    }

    /// Reads through a file, as there is no other way.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            Place(tempfile::tempdir().expect("created"))
        }

        fn path(&self) -> std::path::PathBuf {
            self.0.path().join("file")
        }

        fn reader(&self, bytes: &[u8]) -> Result<Reader, Damage> {
            fs::write(self.path(), bytes).expect("written");
            Reader::new(File::open(self.path()).expect("opened"))
        }

        fn read(&self, bytes: &[u8]) -> Result<Entries, Damage> {
            let mut reader = self.reader(bytes)?;
            std::iter::from_fn(|| reader.read().transpose()).collect()
        }
    }

    /// A file with a right seal, whatever is in it.
    fn forged(entries: &[u8]) -> Vec<u8> {
        let mut bytes = sealed(&Vec::new());
        bytes.truncate(bytes.len() - SEAL_BYTES as usize);
        bytes.extend_from_slice(entries);
        let seal = xxhash_rust::xxh3::xxh3_128(&bytes).to_le_bytes();
        bytes.extend_from_slice(&SEAL);
        bytes.extend_from_slice(&seal);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let place = Place::new();
        for entries in [some(), Vec::new()] {
            let bytes = sealed(&entries);
            assert_eq!(place.read(&bytes).expect("whole"), entries);
            let reader = place.reader(&bytes).expect("whole");
            assert_eq!(*reader.meta(), meta());
            assert_eq!(reader.bytes(), bytes.len() as u64);
        }
    }

    #[test]
    fn states_are_read_again_without_the_files() {
        let place = Place::new();
        let mut reader = place.reader(&sealed(&some())).expect("whole");
        while reader.read::<Sample>().expect("whole").is_some() {}
        for _ in 0..2 {
            reader.rewind().expect("the file is there");
            let states = std::iter::from_fn(|| reader.read_state::<Sample>().expect("whole"));
            assert_eq!(states.collect::<Vec<_>>(), [sample("a"), sample("")]);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let place = Place::new();
        let mut bytes = sealed(&some());
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                let read = place.reader(&bytes);
                assert!(read.is_err(), "bit {bit} of byte {at}: {read:?}");
                bytes[at] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn every_cut_is_noticed() {
        let place = Place::new();
        let bytes = sealed(&some());
        for length in 0..bytes.len() {
            let read = place.reader(&bytes[..length]);
            let expected = match length {
                0 => matches!(read, Err(Damage::Empty)),
                1..8 => matches!(read, Err(Damage::NoCheckpoint)),
                _ => matches!(read, Err(Damage::Unfinished)),
            };
            assert!(expected, "{length}: {read:?}");
        }
        let longer = [&bytes[..], b"\n"].concat();
        assert!(matches!(place.reader(&longer), Err(Damage::Unfinished)));
        let twice = [&bytes[..], &bytes].concat();
        assert!(matches!(place.reader(&twice), Err(Damage::Checksum)));
    }

    #[test]
    fn what_is_not_sealed_is_unfinished() {
        let writer = unsealed(&some());
        let unsealed = writer.finish().expect("memory takes it");
        let read = Place::new().reader(&unsealed.out.inner);
        assert!(matches!(read, Err(Damage::Unfinished)), "{read:?}");
    }

    #[test]
    fn other_files_are_told_by_their_beginning() {
        let place = Place::new();
        for other in [&[0; 4096][..], b"{\"offset\":1}\n", b"\n"] {
            assert!(matches!(place.reader(other), Err(Damage::NoCheckpoint)));
        }
        for version in [0, VERSION + 1, u32::MAX] {
            let mut bytes = sealed(&some());
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let error = place.reader(&bytes).expect_err("of another version");
            assert!(matches!(error, Damage::Version(found) if found == version));
        }
        let directory = Reader::new(File::open(place.0.path()).expect("opened"));
        assert!(directory.is_err());
    }

    #[test]
    fn nonsense_with_a_right_checksum_is_noticed() {
        let place = Place::new();
        assert_eq!(place.read(&forged(b"")).expect("whole"), []);
        let huge = u32::MAX.to_le_bytes();
        for entries in [
            &b"\0"[..],                            // less than a length
            b"\0\0\0\0",                           // no kind
            b"\x02\0\0\0\x03",                     // longer than the file
            b"\x01\0\0\0\x04",                     // no such kind
            b"\x01\0\0\0\x01",                     // a second meta entry
            b"\x01\0\0\0\x03",                     // a state that ends early
            b"\x05\0\0\0\x03\0\0\0\0",             // a state and more
            b"\x07\0\0\0\x02\xff\xff\xff\xff\x7f", // a path longer than its entry
            &huge,
        ] {
            let read = place.read(&forged(entries));
            assert!(
                matches!(read, Err(Damage::Entry(2))),
                "{entries:?}: {read:?}"
            );
        }
    }

    /// If this fails, checkpoints of older programs mean something else: change [`VERSION`].
    #[test]
    fn the_bytes_are_those_of_this_version() {
        let entries = vec![Entry::File(entry("/a", 7, 9))];
        let bytes = sealed(&entries);
        let hash = xxhash_rust::xxh3::xxh3_64(&bytes);
        assert_eq!(
            (VERSION, bytes.len(), format!("{hash:016x}").as_str()),
            (1, 133, "fd5ab7158b848d70")
        );
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_is_full() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let written = bytes.len().min(self.0);
                self.0 -= written;
                match written {
                    0 => Err(io::ErrorKind::StorageFull.into()),
                    _ => Ok(written),
                }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let write = |room| -> io::Result<()> {
            let mut writer = Writer::new(Full(room), &meta())?;
            writer.state(&sample("x".repeat(2 * BUFFER_BYTES)))?;
            writer.state(&sample("y"))?;
            writer.finish()?.seal()?;
            Ok(())
        };
        let needed = 2 * BUFFER_BYTES + 200;
        assert!(write(needed).is_ok());
        for room in (0..needed - 200).step_by(1_000) {
            let error = write(room).expect_err("full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{room}");
        }
    }

    #[test]
    fn damage_is_told_in_words() {
        let missing = Damage::from(io::Error::from(io::ErrorKind::UnexpectedEof));
        for (damage, text) in [
            (Damage::Empty, "it is empty"),
            (
                Damage::Version(2),
                "its format has version 2, and this program knows 1",
            ),
            (Damage::Entry(3), "its entry 3 makes no sense"),
            (missing, "it cannot be read: unexpected end of file"),
        ] {
            assert_eq!(damage.to_string(), text);
        }
    }
}
