//! Holes in a file (R1): where it was truncated and its writer went on where it was, the system
//! fills what is between with NUL bytes.

/// Passes over NUL bytes where a line should begin, and counts them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holes {
    pub(crate) are_skipped: bool,
    /// Bytes of the hole that may still go on.
    open: u64,
    /// Bytes of holes that have ended and that nobody has asked for.
    ended: u64,
}

impl Holes {
    /// Holes are passed over; by default they are not.
    pub(crate) fn skipped() -> Self {
        Holes {
            are_skipped: true,
            ..Holes::default()
        }
    }

    /// How many of `bytes`, with which a line begins or a hole goes on, belong to a hole.
    #[inline]
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> usize {
        if !self.are_skipped || bytes.first().is_none_or(|&byte| byte != 0) && self.open == 0 {
            return 0;
        }
        self.measure(bytes)
    }

    #[cold]
    fn measure(&mut self, bytes: &[u8]) -> usize {
        let length = leading_nuls(bytes);
        self.open += length as u64;
        if length < bytes.len() {
            self.ended += std::mem::take(&mut self.open);
        }
        length
    }

    /// How many bytes were passed over, up to something else, since this was asked last.
    pub(crate) fn take_ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }
}

/// How many NUL bytes a text begins with. Holes may have gigabytes: they are compared in pieces.
fn leading_nuls(bytes: &[u8]) -> usize {
    const PIECE: usize = 4096;
    static NULS: [u8; PIECE] = [0; PIECE];
    let is_hole = |piece: &&[u8]| **piece == NULS[..piece.len()];
    let whole: usize = bytes
        .chunks(PIECE)
        .take_while(is_hole)
        .map(<[u8]>::len)
        .sum();
    let rest = bytes[whole..].iter().take_while(|&&byte| byte == 0);
    whole + rest.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nuls_are_counted_to_the_first_other_byte() {
        for length in [0, 1, 4095, 4096, 4097, 10_000] {
            let mut text = vec![0; length];
            assert_eq!(leading_nuls(&text), length);
            text.extend_from_slice(b"x\0\0");
            assert_eq!(leading_nuls(&text), length);
        }
    }

    #[test]
    fn a_hole_is_told_once_it_has_ended() {
        let mut holes = Holes::skipped();
        assert_eq!((holes.skip(b"\0\0"), holes.take_ended()), (2, 0));
        assert_eq!((holes.skip(b"\0x"), holes.take_ended()), (1, 3));
        assert_eq!((holes.skip(b"x\0"), holes.take_ended()), (0, 0));
        assert_eq!((holes.skip(b"\0"), holes.skip(b"x")), (1, 0));
        assert_eq!(holes.take_ended(), 1);
        assert_eq!(Holes::default().skip(b"\0x"), 0);
    }
}
