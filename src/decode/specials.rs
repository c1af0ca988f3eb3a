//! Which of sixteen bytes ends the plain run of a string: the one loop that decides how fast a
//! record is read. Measured, it is worth a third of the time of a record with long texts against
//! eight bytes in an ordinary register.

/// How many bytes are looked at together.
pub(super) const CHUNK: usize = 16;

/// Index of the first quote, backslash or control character.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
pub(super) fn first(chunk: &[u8; CHUNK]) -> Option<usize> {
    // SAFETY: SSE2 is part of x86-64; there is no such processor, and no such Rust target, without
    // it. Nothing else is asked of the caller: the function takes its bytes by reference, and
    // every intrinsic that it calls works on values.
    unsafe { first_sse2(chunk) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn first_sse2(chunk: &[u8; CHUNK]) -> Option<usize> {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let (low, high) = chunk.split_at(CHUNK / 2);
    let word = |half: &[u8]| i64::from_le_bytes(half.try_into().expect("half a chunk"));
    let text = _mm_set_epi64x(word(high), word(low));
    let control = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
    let quote = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'"' as i8));
    let backslash = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'\\' as i8));
    let mask = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(control, quote), backslash));
    (mask != 0).then(|| mask.trailing_zeros() as usize)
}

/// Index of the first quote, backslash or control character.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn first(chunk: &[u8; CHUNK]) -> Option<usize> {
    first_portable(chunk)
}

/// Eight bytes at a time in ordinary registers.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn first_portable(chunk: &[u8; CHUNK]) -> Option<usize> {
    let (low, high) = chunk.split_at(CHUNK / 2);
    let word = |half: &[u8]| u64::from_le_bytes(half.try_into().expect("half a chunk"));
    first_in_word(word(low)).or_else(|| Some(CHUNK / 2 + first_in_word(word(high))?))
}

/// The lowest bit that is set is exact; a borrow can make higher ones wrong.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn first_in_word(word: u64) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let zero_in = |x: u64| x.wrapping_sub(LOW) & !x;
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    let quote = zero_in(word ^ (LOW * b'"' as u64));
    let backslash = zero_in(word ^ (LOW * b'\\' as u64));
    let mask = (control | quote | backslash) & HIGH;
    (mask != 0).then(|| mask.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(chunk: &[u8; CHUNK]) -> Option<usize> {
        chunk
            .iter()
            .position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\')
    }

    fn assert_right(chunk: &[u8; CHUNK]) {
        assert_eq!(first(chunk), naive(chunk), "{chunk:?}");
        assert_eq!(first_portable(chunk), naive(chunk), "{chunk:?}");
    }

    #[test]
    fn every_byte_at_every_place_behind_every_byte() {
        for filler in 0..=u8::MAX {
            for byte in 0..=u8::MAX {
                let mut chunk = [filler; CHUNK];
                assert_right(&chunk);
                for place in 0..CHUNK {
                    chunk[place] = byte;
                    assert_right(&chunk);
                    chunk[place] = filler;
                }
            }
        }
    }

    #[test]
    fn random_chunks() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200_000 {
            let chunk = std::array::from_fn(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                // Mostly harmless bytes, so that the first special one may be anywhere.
                let byte = (state >> 32) as u8;
                if state.is_multiple_of(16) {
                    byte
                } else {
                    byte | 0x60
                }
            });
            assert_right(&chunk);
        }
    }
}
