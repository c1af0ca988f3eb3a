//! The table of contradictions as plainly as it can be written: every event of a run is kept, and
//! each row looks at all of them. It shares nothing with the library but the table's words.

use serde_json::Value;

/// A complaint: the number of the event, from 0, and the field.
pub(crate) type Complaint = (usize, &'static str);

/// What contradicts `declaration` in `events`, by event and then in the order of the table.
pub(crate) fn complaints(declaration: &Value, events: &[Value]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (first, run) in runs(events) {
        for row in ROWS {
            if is_declared(declaration, row.0)
                && let Some(index) = (row.1)(run, declaration)
            {
                found.push((first + index, row.0));
            }
        }
    }
    let rank = |pointer: &str| ROWS.iter().position(|row| row.0 == pointer);
    found.sort_by_key(|&(index, pointer)| (index, rank(pointer)));
    found
}

/// The runs, each with the number of its first event.
fn runs(events: &[Value]) -> Vec<(usize, &[Value])> {
    let mut runs = Vec::new();
    let mut first = 0;
    for (index, event) in events.iter().enumerate() {
        if event["type"] == "RUN_STARTED" && index > first {
            runs.push((first, &events[first..index]));
            first = index;
        }
        if event["type"] == "RUN_FINISHED" || event["type"] == "RUN_ERROR" {
            runs.push((first, &events[first..=index]));
            first = index + 1;
        }
    }
    if first < events.len() {
        runs.push((first, &events[first..]));
    }
    runs
}

/// A field, and the first event of a run that contradicts it.
type Row = (&'static str, fn(&[Value], &Value) -> Option<usize>);

const ROWS: [Row; 12] = [
    ("/tools/supported", |run, _| {
        first(run, |t| t.starts_with("TOOL_CALL_"))
    }),
    ("/tools/parallelCalls", |run, _| parallel_call(run)),
    ("/state/snapshots", |run, _| {
        first(run, |t| t == "STATE_SNAPSHOT")
    }),
    ("/state/deltas", |run, _| first(run, |t| t == "STATE_DELTA")),
    ("/multiAgent/supported", |run, _| {
        first(run, |t| t == "SUBAGENT_STARTED")
    }),
    ("/multiAgent/delegation", |run, _| {
        first(run, |t| t == "SUBAGENT_STARTED")
    }),
    ("/reasoning/supported", |run, _| {
        first(run, |t| t.starts_with("REASONING_"))
    }),
    ("/reasoning/streaming", |run, _| second_piece(run)),
    ("/reasoning/encrypted", |run, _| {
        first(run, |t| t == "REASONING_ENCRYPTED_VALUE")
    }),
    ("/humanInTheLoop/supported", |run, _| interrupt(run)),
    ("/humanInTheLoop/interrupts", |run, _| interrupt(run)),
    ("/execution/maxExecutionTime", overtime),
];

fn is_declared(declaration: &Value, pointer: &str) -> bool {
    match declaration.pointer(pointer) {
        Some(Value::Bool(value)) => !value,
        Some(Value::Number(_)) => true,
        _ => false,
    }
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().expect("the generator gives types")
}

fn first(run: &[Value], is_it: impl Fn(&str) -> bool) -> Option<usize> {
    run.iter().position(|event| is_it(kind(event)))
}

fn interrupt(run: &[Value]) -> Option<usize> {
    run.iter().position(|event| {
        kind(event) == "RUN_FINISHED" && event.pointer("/outcome/type") == Some(&"interrupt".into())
    })
}

fn overtime(run: &[Value], declaration: &Value) -> Option<usize> {
    let limit = declaration
        .pointer("/execution/maxExecutionTime")?
        .as_i64()?;
    let (start, end) = (run.first()?, run.last()?);
    let ends = matches!(kind(end), "RUN_FINISHED" | "RUN_ERROR") && kind(start) == "RUN_STARTED";
    let took = end["timestamp"].as_i64()? - start["timestamp"].as_i64()?;
    (ends && took > limit).then_some(run.len() - 1)
}

/// For each event that opens a call, looks back for one that is open or unanswered there.
fn parallel_call(run: &[Value]) -> Option<usize> {
    (0..run.len()).find(|&index| {
        let Some(call) = opened(run, index) else {
            return false;
        };
        let parent = run[index]["parentMessageId"].as_str();
        (0..index).any(|earlier| {
            let Some(other) = opened(run, earlier).filter(|&other| other != call) else {
                return false;
            };
            let since = &run[earlier + 1..index];
            let had = |what: &str| {
                let is_it = |event: &Value| kind(event) == what && event["toolCallId"] == other;
                since.iter().any(is_it)
            };
            let is_open = kind(&run[earlier]) == "TOOL_CALL_START" && !had("TOOL_CALL_END");
            let is_sibling = parent.is_some() && run[earlier]["parentMessageId"].as_str() == parent;
            // A call that began again later counts from there.
            let again = (earlier + 1..index).any(|later| opened(run, later) == Some(other));
            !again && (is_open || (is_sibling && !had("TOOL_CALL_RESULT")))
        })
    })
}

/// The call that an event opens.
fn opened(run: &[Value], index: usize) -> Option<&str> {
    let call = run[index]["toolCallId"].as_str()?;
    let began = |event: &Value| {
        matches!(kind(event), "TOOL_CALL_START" | "TOOL_CALL_CHUNK") && event["toolCallId"] == call
    };
    match kind(&run[index]) {
        "TOOL_CALL_START" => Some(call),
        "TOOL_CALL_CHUNK" if !run[..index].iter().any(began) => Some(call),
        _ => None,
    }
}

fn second_piece(run: &[Value]) -> Option<usize> {
    let mut last = None;
    let mut pieces: Vec<&str> = Vec::new();
    for (index, event) in run.iter().enumerate() {
        let kind = kind(event);
        if !["START", "CONTENT", "CHUNK"]
            .iter()
            .any(|end| kind == format!("REASONING_MESSAGE_{end}"))
        {
            continue;
        }
        let named = event["messageId"].as_str();
        let message = match named {
            None if kind == "REASONING_MESSAGE_CHUNK" => last,
            named => named,
        };
        let Some(message) = message else { continue };
        last = Some(message);
        let is_piece = kind == "REASONING_MESSAGE_CONTENT"
            || (kind == "REASONING_MESSAGE_CHUNK" && event["delta"].is_string());
        if is_piece && pieces.contains(&message) {
            return Some(index);
        }
        if is_piece {
            pieces.push(message);
        }
    }
    None
}
