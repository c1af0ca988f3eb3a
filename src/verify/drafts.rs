//! Where the steps put what they find.

use crate::decode::document::{Draft, MAX_FAULTS};
use crate::finding::Code;
use crate::pointer::Path;

/// The findings of one record, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct Drafts {
    pub(crate) list: Vec<Draft>,
    /// How many were found, indexed by [`Code`]: many of one hide none of another.
    found: [u32; Code::ALL.len()],
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
        let found = &mut self.found[code as usize];
        *found += 1;
        *found as usize <= MAX_FAULTS
    }

    /// The codes of which findings are not in the list, and how many.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = (Code, usize)> {
        let dropped = |&code: &Code| {
            let dropped = (self.found[code as usize] as usize).saturating_sub(MAX_FAULTS);
            (dropped > 0).then_some((code, dropped))
        };
        Code::ALL.iter().filter_map(dropped)
    }
}
