//! Where the steps put what they find.

use crate::decode::document::{Draft, MAX_FAULTS};
use crate::finding::Code;
use crate::pointer::Path;

/// The findings of one record, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    pub(crate) list: Vec<Draft>,
    /// How many came after [`MAX_FAULTS`].
    pub(crate) dropped: usize,
}

impl Drafts {
    /// Adds a finding at the member at `at`.
    #[cold]
    pub(crate) fn add(
        &mut self,
        code: Code,
        rule: &'static str,
        at: &Path,
        message: String,
        detail: String,
    ) {
        if self.has_room() {
            let detail = (!detail.is_empty()).then_some(detail);
            let pointer = at.render();
            self.list.push(Draft {
                code,
                rule,
                pointer,
                predicate: None,
                message,
                detail,
            });
        }
    }

    /// Whether another finding is kept; where not, it is counted.
    pub(crate) fn has_room(&mut self) -> bool {
        let room = self.list.len() < MAX_FAULTS;
        self.dropped += usize::from(!room);
        room
    }
}
