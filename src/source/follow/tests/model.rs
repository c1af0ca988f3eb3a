//! Random things happen to a file, with looks in between; what is heard is held against a toy model
//! of what was written and could have been read.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

use super::harness::{Harness, How, KEYED, POLLED, UNKEYED};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A line, or the end of one.
    Line,
    /// A part of a line.
    Part,
    /// A line in the file that was renamed last.
    Late,
    /// The file is renamed and created anew.
    Rotate,
    /// The same with a copy.
    CopyTruncate,
    Truncate,
    /// Another file is renamed over it.
    Replace,
    DeleteCreate,
    /// A look that reads what can be read at once.
    Look,
    /// Time passes until everything is read.
    Settle,
    /// Another process goes on; it has not looked yet.
    Restart,
}

/// One content of the file.
#[derive(Debug, Default)]
struct Content {
    written: String,
    /// How much of it is certain to be heard.
    required: usize,
    /// Whether it began with a truncation, so that it is held back up to its first line.
    is_truncated: bool,
    /// Whether the reader has it open.
    is_held: bool,
    /// Whether it is on the disk under a rotated name, and will be found there.
    is_kept: bool,
    is_gone: bool,
}

struct Model {
    harness: Harness,
    inputs: &'static str,
    how: How,
    contents: Vec<Content>,
    lines: usize,
    rotations: usize,
    /// The rotated file that may still be written to, and its content.
    late: Option<(String, usize)>,
    /// Whether generations that nobody has seen can be found.
    has_history: bool,
    /// What was heard of each content by former processes.
    heard: BTreeMap<usize, String>,
}

impl Model {
    fn new(inputs: &'static str, how: How) -> Model {
        let mut harness = Harness::new(&[inputs], how);
        harness.write("a.log", "");
        harness.look();
        let first = Content {
            is_held: true,
            ..Content::default()
        };
        Model {
            harness,
            inputs,
            how,
            contents: vec![first],
            lines: 0,
            rotations: 0,
            late: None,
            has_history: true,
            heard: BTreeMap::new(),
        }
    }

    fn take(mut self, step: Step) -> Model {
        match step {
            Step::Line => self.append(true),
            Step::Part => self.append(false),
            Step::Late => self.append_late(),
            Step::Rotate => self.rotate(),
            Step::CopyTruncate => {
                self.rotations += 1;
                let copy = format!("a.log.{:03}", self.rotations);
                std::fs::copy(self.harness.at("a.log"), self.harness.at(&copy)).unwrap();
                let was_read = self.current().required > 0;
                self.truncate(was_read);
            }
            Step::Truncate => self.truncate(false),
            Step::Replace => {
                self.harness.tick();
                self.harness.write("tmp", "");
                self.harness.rename("tmp", "a.log");
                self.drop_current();
                self.contents.push(Content::default());
            }
            Step::DeleteCreate => {
                self.harness.remove("a.log");
                self.harness.tick();
                self.harness.write("a.log", "");
                self.drop_current();
                self.contents.push(Content::default());
            }
            Step::Look => {
                self.harness.look();
                self.look();
            }
            Step::Settle => self.settle(),
            Step::Restart => return self.restart(),
        }
        self
    }

    fn current(&mut self) -> &mut Content {
        self.contents.last_mut().expect("there is always one")
    }

    /// A beginning of a line that tells which content it is in.
    fn text(&mut self, content: usize, is_line: bool) -> String {
        self.lines += 1;
        let text = format!("{content} {}", self.lines);
        let is_within = !self.contents[content].written.ends_with('\n')
            && !self.contents[content].written.is_empty();
        match (is_within, is_line) {
            (true, true) => "end\n".to_owned(),
            (true, false) => "more".to_owned(),
            (false, true) => text + "\n",
            (false, false) => text,
        }
    }

    fn append(&mut self, is_line: bool) {
        let text = self.text(self.contents.len() - 1, is_line);
        self.harness.append("a.log", &text);
        self.current().written += &text;
    }

    fn append_late(&mut self) {
        if let Some((path, content)) = self.late.clone() {
            let text = self.text(content, true);
            self.harness.append(&path, &text);
            self.contents[content].written += &text;
        }
    }

    fn rotate(&mut self) {
        self.rotations += 1;
        let rotated = format!("a.log.{:03}", self.rotations);
        self.harness.rename("a.log", &rotated);
        self.harness.tick();
        self.harness.write("a.log", "");
        self.late = Some((rotated, self.contents.len() - 1));
        let has_history = self.has_history;
        let current = self.current();
        current.is_kept = has_history || current.is_held;
        current.is_gone = true;
        self.contents.push(Content::default());
    }

    fn truncate(&mut self, is_kept: bool) {
        let current = self.current();
        let is_held = current.is_held;
        current.is_gone = true;
        current.is_kept = is_kept;
        current.is_held = false;
        if !current.written.is_empty() {
            self.contents.push(Content {
                is_truncated: true,
                is_held,
                ..Content::default()
            });
        } else {
            current.is_gone = false;
            current.is_held = is_held;
        }
        self.harness.write("a.log", "");
    }

    fn drop_current(&mut self) {
        self.current().is_gone = true;
    }

    fn look(&mut self) {
        let has_history = self.has_history;
        for content in &mut self.contents {
            if !content.is_gone || content.is_kept {
                content.is_held = true;
            }
            // What is open is read whatever its name.
            content.is_kept &= has_history;
        }
        self.has_history = true;
    }

    fn settle(&mut self) {
        self.look();
        self.harness.settle();
        self.late = self.late.take().filter(|_| self.inputs != "a.log");
        for content in &mut self.contents {
            let is_readable = !content.is_truncated || content.written.contains('\n');
            if content.is_held && is_readable {
                content.required = content.written.len();
            }
        }
    }

    fn restart(mut self) -> Model {
        self.settle();
        for heard in &self.harness.heard {
            let text = heard.text();
            let end = match heard.end {
                None => text.rfind('\n').map_or(0, |at| at + 1),
                Some(_) => text.len(),
            };
            note(&mut self.heard, &text[..end]);
        }
        for (index, content) in self.contents.iter_mut().enumerate() {
            content.required = self.heard.get(&index).map_or(0, String::len);
            content.is_held = false;
            content.is_kept = false;
        }
        self.late = None;
        let open = self
            .harness
            .heard
            .iter()
            .filter(|heard| heard.end.is_none());
        self.has_history = open.count() > 0;
        self.harness = self.harness.restart(&[self.inputs], self.how);
        self
    }

    fn check(mut self) {
        self.settle();
        for heard in &self.harness.heard {
            note(&mut self.heard, heard.text());
        }
        for (index, content) in self.contents.iter().enumerate() {
            let heard = self.heard.get(&index).map_or("", String::as_str);
            assert!(
                content.written.starts_with(heard) && heard.len() >= content.required,
                "content {index}: {heard:?} of {content:?}",
            );
        }
    }
}

fn note(heard: &mut BTreeMap<usize, String>, text: &str) {
    if let Some((content, _)) = text.split_once(' ') {
        let content = content.parse().unwrap();
        heard.entry(content).or_default().push_str(text);
    }
}

/// A log is rotated in one way: copies of former contents look like files that had its name.
fn steps(copies: bool) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Line),
        2 => Just(Step::Part),
        1 => Just(Step::Late),
        2 => Just(Step::Rotate),
        1 => Just(Step::Truncate),
        1 => Just(Step::Replace),
        1 => Just(Step::DeleteCreate),
        4 => Just(Step::Look),
        1 => Just(Step::Settle),
        1 => Just(Step::Restart),
    ];
    let step = step.prop_map(move |step| match step {
        Step::Rotate if copies => Step::CopyTruncate,
        Step::Replace | Step::DeleteCreate if copies => Step::Truncate,
        other => other,
    });
    prop::collection::vec(step, 1..30)
}

proptest! {
    #![proptest_config(Config { cases: 100, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_could_be_read_is_read_once(
        steps in any::<bool>().prop_flat_map(steps),
        how in select(vec![KEYED, UNKEYED, POLLED]),
        inputs in select(vec!["a.log", "a.log*"]),
    ) {
        let mut model = Model::new(inputs, how);
        for step in steps {
            model = model.take(step);
        }
        model.check();
    }
}

#[test]
fn the_model_itself_knows_loss() {
    let mut model = Model::new("a.log", KEYED);
    model.append(true);
    model.truncate(false);
    model.harness.pass(Duration::from_millis(1));
    assert_eq!(model.contents.len(), 2);
    assert_eq!(model.contents[0].required, 0);
    model.check();
}
