//! The yardstick: each line to simd-json's tape, with everything reused, and nothing done with it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use simd_json::{Buffers, Tape, fill_tape};

const BLOCK_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

/// Reads a file in blocks that begin at a page, as fast as it can be read.
pub(crate) fn read(file: &Path) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut storage = vec![0; BLOCK_BYTES + PAGE_BYTES];
    let start = storage.as_ptr().align_offset(PAGE_BYTES);
    let mut lines = Lines {
        buffers: Buffers::new(BLOCK_BYTES),
        tape: Some(Tape::null()),
        nodes: 0,
    };
    let mut unfinished = Vec::new();
    loop {
        let block = &mut storage[start..start + BLOCK_BYTES];
        let length = file.read(block)?;
        if length == 0 {
            break;
        }
        let mut rest = &mut block[..length];
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, behind) = rest.split_at_mut(end);
            if unfinished.is_empty() {
                lines.line(line)?;
            } else {
                unfinished.extend_from_slice(line);
                lines.line(&mut unfinished)?;
                unfinished.clear();
            }
            rest = &mut behind[1..];
        }
        unfinished.extend_from_slice(rest);
    }
    println!("{}", lines.nodes);
    Ok(())
}

struct Lines {
    buffers: Buffers,
    /// Empty between two lines, so that it borrows from none.
    tape: Option<Tape<'static>>,
    nodes: u64,
}

impl Lines {
    fn line(&mut self, line: &mut [u8]) -> io::Result<()> {
        let mut tape = self.tape.take().unwrap_or_else(Tape::null).reset();
        fill_tape(line, &mut self.buffers, &mut tape).map_err(io::Error::other)?;
        self.nodes += tape.0.len() as u64;
        self.tape = Some(tape.reset());
        Ok(())
    }
}
