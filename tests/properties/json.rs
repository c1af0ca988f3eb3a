//! Valid JSON is never called malformed, and nothing else is ever accepted, whichever member of
//! the record it is in (R4).

use tracecheck::decode::MAX_DEPTH;
use tracecheck::{Code, Verifier};

use crate::{Choices, generate, reference};

/// Whether the line is accepted as a record, however wrong its members may be.
fn accepts(verifier: &mut Verifier, line: &[u8]) -> bool {
    let found = verifier.push(line);
    let mut broken = found.iter().filter(|finding| finding.pointer.is_empty());
    let is_broken = match broken.next() {
        Some(finding) => {
            assert_eq!(finding.code, Code::Structure);
            assert_eq!((finding.seq, &finding.kind), (None, &None));
            assert_eq!(found.len(), 1, "a line that is no record has one finding");
            true
        }
        None => false,
    };
    !is_broken
}

/// Holds our verdict on many lines against the reference's.
struct Comparison {
    verifier: Verifier,
    lines: usize,
    accepted: usize,
}

impl Comparison {
    fn new() -> Self {
        Comparison {
            verifier: Verifier::default(),
            lines: 0,
            accepted: 0,
        }
    }

    #[track_caller]
    fn check(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let expected = reference::accepts(line);
        self.lines += 1;
        self.accepted += usize::from(expected);
        assert_eq!(
            accepts(&mut self.verifier, line),
            expected,
            "{} {:?}",
            String::from_utf8_lossy(line),
            line
        );
    }
}

#[track_caller]
fn assert_accepted(line: &str, expected: bool) {
    let shown = line.get(..line.len().min(300)).unwrap_or(line);
    assert_eq!(reference::accepts(line.as_bytes()), expected, "{shown}");
    let ours = accepts(&mut Verifier::default(), line.as_bytes());
    assert_eq!(ours, expected, "{shown}");
}

#[test]
fn mutated_lines_are_accepted_as_the_grammar_says() {
    let mut comparison = Comparison::new();
    for seed in 0..10_000 {
        comparison.check(&generate::mutated_line(seed));
    }
    assert!((2000..8000).contains(&comparison.accepted));
}

/// Short records that have, between them, every sort of token in every place that is read.
const RECORDS: &[&str] = &[
    r#"{"seq":1,"kind":"note"}"#,
    r#" { "seq" : -0 , "kind" : "a\u00e9\ud83d\ude00" , "x" : [ ] } "#,
    r#"{"kind":"task.rejected","seq":18446744073709551615,"content":{"reason":["No agent",{"a":"b"}]}}"#,
    r#"{"seq":2,"content":{"agent":{"name":"a","namespace":"\"\\\/\b\f\n\r\t"}},"kind":"task.admitted"}"#,
    r#"{"seq":3,"kind":"task.submitted","content":{"requirements":{"tools":["é","😀"],"model":null}}}"#,
    r#"{"seq":4,"kind":"task.bound","content":{"resumed":true,"scheduling":{"recorded_in":{"seq":3}}}}"#,
    r#"{"x":[-1.5e+7,0.0,-0,1E400,[true,false,null],{"":{}}],"seq":5,"kind":"x"}"#,
    r#"{"seq":6,"kind":"x","content":[[[[]]]],"content":"twice"}"#,
    r#"{"seq":7,"kind":"task.bound","content":{"scheduling":{"scores":{"a":{"b":[1e9]}},"timings":0.5}}}"#,
    r#"{"seq":8,"kind":"task.bound","content":{"scheduling":{"declaration":{"v":"1","capabilities":[{"name":"a.b","version":1,"inputs":{"q":[0]}}]}}}}"#,
    "{\"seq\":9,\"kind\":\"\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}\u{10ffff}\"}",
    r#"{}"#,
];

/// Bytes of every sort that the grammar tells apart.
const BYTES: &[u8] =
    b"\"\\{}[]:,-+.019eEutrfnlsa/ \t\r\x00\x0b\x1f\x7f\x80\xbf\xc0\xc3\xe2\xed\xf0\xf4\xff";

#[test]
fn every_change_of_one_byte_and_every_truncation_is_judged_as_the_grammar_says() {
    let mut comparison = Comparison::new();
    let short = (0..4000).map(generate::mutated_line);
    let short = short.filter(|line| line.len() < 90).take(12);
    let lines = RECORDS
        .iter()
        .map(|line| line.as_bytes().to_vec())
        .chain(short);
    for line in lines {
        comparison.check(&line);
        for at in 0..line.len() {
            comparison.check(&line[..at]);
            comparison.check(&line[at..]);
            comparison.check(&[&line[..at], &line[at + 1..]].concat());
            let mut changed = line.clone();
            for &byte in BYTES {
                changed[at] = byte;
                comparison.check(&changed);
                comparison.check(&[&line[..at], &[byte], &line[at..]].concat());
            }
        }
    }
    assert!(comparison.lines > 50_000, "{}", comparison.lines);
    assert!(comparison.accepted > 5_000, "{}", comparison.accepted);
}

#[test]
fn every_value_of_one_byte_is_judged_as_the_grammar_says() {
    let mut comparison = Comparison::new();
    for line in &RECORDS[..2] {
        for at in 0..line.len() {
            let mut changed = line.as_bytes().to_vec();
            for byte in (0..=u8::MAX).filter(|&byte| byte != b'\n') {
                changed[at] = byte;
                comparison.check(&changed);
            }
        }
    }
}

/// Places for a value, each read by another part of the verifier or by none.
const PLACES: &[&str] = &[
    r#"{"seq":1,"kind":"note","x":@}"#,
    r#"{"x":@,"seq":1,"kind":"note"}"#,
    r#"{"seq":@,"kind":"note"}"#,
    r#"{"seq":1,"seq":@,"kind":"note"}"#,
    r#"{"seq":1,"kind":@}"#,
    r#"{"seq":1,"kind":"note","kind":@}"#,
    r#"{"seq":1,"kind":"note","content":@}"#,
    r#"{"content":@,"seq":1,"kind":"task.bound"}"#,
    r#"{"seq":1,"kind":"task.bound","content":@}"#,
    r#"{"seq":1,"kind":"task.bound","content":{},"content":@}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"resumed":@,"scheduling":{"recorded_in":{}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":@}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"requirements":@}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"requirements":{"session":@,"v":@,"model":@}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"requirements":{"capabilities":[{"name":"a.b","version":@,"x":@}]}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"requirements":{"tools":[@],"exclude":[@,{"name":@}]}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"declaration":@}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"declaration":{"agent":@,"agent":@}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"declaration":{"capabilities":[{"inputs":@,"outputs":@,"evaluation":@,"description":@}]}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"candidates":[@],"filters_passed":@,"filters_failed":[@]}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"scores":{"a":@,"a":@}}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"scores":@,"timings":@,"candidates_count":@,"route":@}}}"#,
    r#"{"seq":1,"kind":"task.bound","content":{"scheduling":{"recorded_in":{"seq":@,"kind":@,"x":@}}}}"#,
    r#"{"seq":1,"kind":"task.rejected","content":{"reason":@}}"#,
    r#"{"seq":1,"kind":"task.rejected","content":{"reason":"a","reason":{"b":[@]}}}"#,
    r#"{"seq":1,"kind":"task.admitted","content":{"agent":{"name":@,"namespace":@,"x":@}}}"#,
    r#"{"seq":1,"kind":"task.submitted","content":{"x":@,"requirements":@}}"#,
    r#"{"seq":1,"kind":"task.unknown","content":{"requirements":[{"x":@}]}}"#,
];

#[track_caller]
fn assert_everywhere(value: &str, expected: bool) {
    for place in PLACES {
        assert_accepted(&place.replace('@', value), expected);
    }
}

#[test]
fn valid_values_are_accepted_in_every_member() {
    let digits = "1234567890".repeat(500);
    for value in [
        "0",
        "-0",
        "0.0",
        "-0e-0",
        "1e400",
        "-1E+400",
        "0.000001e-999999999",
        "18446744073709551616",
        &digits,
        &format!("-{digits}.{digits}e{digits}"),
        &format!("0.{digits}"),
        r#""""#,
        r#""\u0000\u001F\uFFFF""#,
        r#""\ud83d\ude00\uD83D\uDE00""#,
        r#""\"\\\/\b\f\n\r\t""#,
        "\"\u{7f}\u{80}\u{2028}\u{feff}\u{10ffff}\"",
        r#""\\ud800""#,
        r#""\\""#,
        "[]",
        "[ ]",
        "{}",
        "{ \t}",
        "[[],{}]",
        r#"{"":"","":""}"#,
        r#"{"\ud83d\ude00":1}"#,
        "true",
        "false",
        "null",
        " \t\r 7 \t\r ",
        r#"{"a" : [ 1 , 2 ] , "b" : { } }"#,
        r#"{"$serde_json::private::Number":"1"}"#,
        r#"{"$serde_json::private::RawValue":"1"}"#,
    ] {
        assert_everywhere(value, true);
    }
}

#[test]
fn what_the_grammar_refuses_is_refused_in_every_member() {
    for value in [
        "00",
        "01",
        "-01",
        "-",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "1_000",
        "1,000 2",
        "Infinity",
        "-Infinity",
        "NaN",
        "nan",
        "True",
        "TRUE",
        "nul",
        "nulll",
        "truefalse",
        "None",
        "undefined",
        "'a'",
        "\"a",
        "a\"",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"a\u{0}b\"",
        "\"a\u{1f}b\"",
        r#""\a""#,
        r#""\x41""#,
        r#""\u12""#,
        r#""\u12G4""#,
        r#""\U0041""#,
        r#""\'""#,
        "\"\\\u{e9}\"",
        r#""\ud800""#,
        r#""\udc00""#,
        r#""\ud800x""#,
        r#""\ud800\n""#,
        r#""\ud800\ud800""#,
        r#""\ude00\ud83d""#,
        r#""\ud83d\u0041""#,
        r#"{"\udfff":1}"#,
        r#"[{"a":["\ud8ff"]}]"#,
        "[",
        "]",
        "[1",
        "[1,]",
        "[,1]",
        "[1,,2]",
        "[1 2]",
        "[1:2]",
        "[1}",
        "{",
        "}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{,"a":1}"#,
        r#"{"a":1,,"b":2}"#,
        r#"{"a" 1}"#,
        r#"{"a"::1}"#,
        r#"{"a":1 "b":2}"#,
        r#"{a:1}"#,
        r#"{1:1}"#,
        r#"{"a":1]"#,
        r#"{"a","b"}"#,
        "1 2",
        "{}{}",
        "[][]",
        "1 //x",
        "/*x*/1",
        "#1",
        "1;",
        "\u{b}1",
        "1\u{c}",
        "\u{a0}1",
        "\u{feff}1",
        "\u{2028}1",
        "1\u{0}",
    ] {
        assert_everywhere(value, false);
    }
}

#[test]
fn every_escape_of_one_unit_is_accepted_but_a_lone_surrogate() {
    let mut verifier = Verifier::default();
    for unit in 0..=0xffff_u32 {
        let line = format!(r#"{{"seq":1,"kind":"\u{unit:04x}","x":"\u{unit:04X}"}}"#);
        let is_surrogate = (0xd800..0xe000).contains(&unit);
        assert_eq!(
            accepts(&mut verifier, line.as_bytes()),
            !is_surrogate,
            "{line}"
        );
    }
    let choices = &mut Choices::new(1);
    for _ in 0..2000 {
        let mut unit = || 0xd700 + choices.below(0xa00);
        assert_accepted_as_reference(&format!(
            r#"{{"seq":1,"kind":"x","x":"\u{:04x}\u{:04x}\u{:04x}"}}"#,
            unit(),
            unit(),
            unit()
        ));
    }
}

#[track_caller]
fn assert_accepted_as_reference(line: &str) {
    assert_accepted(line, reference::accepts(line.as_bytes()));
}

#[test]
fn white_space_may_stand_between_any_tokens() {
    let line =
        r#"{ "seq" : 1 , "kind" : "a b" , "content" : [ { } , [ ] , true , -1.5e+3 , "" ] }"#;
    // The one blank inside a string is no white space of the grammar, and may be anything.
    for space in ["", " ", "\t", "\r", " \t\r\r  \t"] {
        let spaced = line
            .replace(' ', space)
            .replace(&format!("a{space}b"), "a b");
        assert_accepted(&spaced, true);
        assert_accepted(&format!("{space}{spaced}{space}"), true);
    }
    for space in [
        "\u{b}", "\u{c}", "\u{a0}", "\u{85}", "\u{feff}", "\u{2003}", "\u{0}",
    ] {
        for (at, _) in line
            .match_indices(' ')
            .filter(|&(at, _)| !line[..at].ends_with("\"a"))
        {
            assert_accepted(&format!("{}{space}{}", &line[..at], &line[at..]), false);
        }
    }
}

#[test]
fn nesting_is_accepted_up_to_the_limit() {
    let arrays = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let objects = |depth: usize| r#"{"a":"#.repeat(depth) + "0" + &"}".repeat(depth);
    for place in PLACES
        .iter()
        .filter(|place| place.matches('@').count() == 1)
    {
        let (before, _) = place.split_once('@').expect("a place");
        let open = before.matches(['{', '[']).count() - before.matches(['}', ']']).count();
        for nested in [
            arrays as fn(usize) -> String,
            objects as fn(usize) -> String,
        ] {
            assert_accepted(&place.replace('@', &nested(MAX_DEPTH - open)), true);
            assert_accepted(&place.replace('@', &nested(MAX_DEPTH - open + 1)), false);
        }
    }
    // Brackets in strings nest nothing, and what was closed counts no more.
    assert_accepted(
        &PLACES[0].replace('@', &format!("\"{}\"", "[{".repeat(5000))),
        true,
    );
    assert_accepted(
        &PLACES[0].replace('@', &format!("[{}0]", "[[]],".repeat(5000))),
        true,
    );
}
