//! Where bytes come from: the only place that reads the world.
//!
//! One thread reads the sources one after the other and sends what it reads through a bounded
//! channel, so that reading and verifying overlap and a slow pipe can be interrupted. Archives are
//! decompressed on that thread.

mod archive;
mod block;
mod content;
mod fingerprint;
pub(crate) mod follow;
mod identity;
pub(crate) mod listen;
mod message;
mod paths;
mod reader;

pub(crate) use content::Archives;
pub(crate) use fingerprint::Fingerprint;
pub(crate) use identity::{FileId, Generation};
pub(crate) use message::{Follows, Message, Opened, SavedFile, SourceId, SourceKind};
pub(crate) use paths::{Expansion, expand};
pub(crate) use reader::{Reader, Unheard, read_all};

use std::path::PathBuf;

/// A single source, to be opened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    /// Standard input.
    Stdin,
    /// A file, or what else can be opened by a path.
    File(PathBuf),
}

impl Origin {
    pub(crate) fn kind(&self) -> SourceKind {
        match self {
            Origin::Stdin => SourceKind::Stdin,
            Origin::File(_) => SourceKind::File,
        }
    }

    /// The name that findings carry: the path as given or matched, or `stdin`.
    pub(crate) fn name(&self) -> String {
        match self {
            Origin::Stdin => "stdin".to_owned(),
            Origin::File(path) => path.display().to_string(),
        }
    }
}
