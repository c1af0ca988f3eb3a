//! Where the steps put what they find.

use crate::decode::document::{Draft, MAX_FAULTS};
use crate::finding::Code;
use crate::pointer::Path;

/// The findings of one record, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    pub(crate) list: Vec<Draft>,
    /// How many came after [`MAX_FAULTS`] of their code.
    pub(crate) dropped: usize,
    /// How many are in the list, indexed by [`Code`]: many of one hide none of another.
    kept: [u16; Code::ALL.len()],
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
        if self.has_room(code) {
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

    /// Whether another finding of this code is kept, which it then must be; where not, it is
    /// counted.
    pub(crate) fn has_room(&mut self, code: Code) -> bool {
        let kept = &mut self.kept[code as usize];
        let room = usize::from(*kept) < MAX_FAULTS;
        *kept += u16::from(room);
        self.dropped += usize::from(!room);
        room
    }
}
