//! How many files may be open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// What is left of the descriptors for everything else: connections, checkpoints, the output. At
/// most a half, where there are few.
const RESERVED: u64 = 512;

/// Raises the limit of this process as far as it is allowed to, and returns how many files may be
/// followed.
pub(super) fn max_files() -> usize {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return usize::MAX;
    };
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    usize::try_from(limit - RESERVED.min(limit / 2)).unwrap_or(usize::MAX)
}
