//! Text such as people and tools write, as the inside of a JSON string.

use std::fmt::Write as _;

use super::random::Random;

const WORDS: &[&str] = &[
    "a", "about", "account", "after", "agreed", "amount", "and", "answer", "as", "before",
    "between", "box", "broken", "by", "carrier", "claim", "clerk", "contract", "copy", "courier",
    "damaged", "day", "depot", "driver", "evening", "five", "for", "from", "gate", "has", "in",
    "invoice", "it", "kept", "label", "later", "letter", "lorry", "missing", "morning", "no",
    "note", "of", "office", "on", "once", "order", "paid", "pallet", "price", "proof", "quoted",
    "receipt", "record", "returned", "route", "scan", "seal", "second", "shelf", "signed", "since",
    "sorry", "stock", "that", "the", "their", "this", "three", "to", "twice", "under", "until",
    "van", "was", "weight", "were", "when", "which", "with", "without",
];

/// What is not ASCII: two, three and four bytes a character.
const FOREIGN: &[&str] = &[
    "Straße",
    "déjà vu",
    "Gdańsk",
    "Ærø",
    "smörgås",
    "倉庫",
    "荷物が届きません",
    "посылка",
    "адрес",
    "→",
    "…",
    "„eilig“",
    "19,90 €",
    "📦",
    "🙂",
    "mañana",
    "डिब्बा",
    "صندوق",
];

const PARAGRAPHS: usize = 2048;

/// A store of paragraphs to make texts of.
#[derive(Debug)]
pub(crate) struct Prose {
    plain: Vec<String>,
    /// The same with every character that is not ASCII escaped, as some writers do.
    ascii: Vec<String>,
    /// JSON documents inside a string: every quote is escaped.
    embedded: Vec<String>,
}

impl Prose {
    pub(crate) fn new(random: &mut Random) -> Self {
        let plain: Vec<_> = (0..PARAGRAPHS).map(|_| paragraph(random)).collect();
        Prose {
            ascii: plain.iter().map(|text| in_ascii(text)).collect(),
            embedded: (0..PARAGRAPHS).map(|_| embedded(random)).collect(),
            plain,
        }
    }

    /// Appends a text of about `length` bytes.
    pub(crate) fn text(&self, random: &mut Random, length: usize, ascii: bool, out: &mut String) {
        let store = if ascii { &self.ascii } else { &self.plain };
        append(store, random, length, out);
    }

    /// Appends JSON documents of about `length` bytes, for the inside of a string.
    pub(crate) fn embedded(&self, random: &mut Random, length: usize, out: &mut String) {
        append(&self.embedded, random, length, out);
    }
}

fn append(store: &[String], random: &mut Random, length: usize, out: &mut String) {
    let end = out.len() + length;
    while out.len() < end {
        let next = &store[random.below(store.len())];
        let room = end - out.len();
        // Where the end is near, a text is cut behind its first words, never inside an escape.
        match next[..next.floor_char_boundary(room)].rfind(". ") {
            _ if next.len() <= room => out.push_str(next),
            Some(stop) => {
                out.push_str(&next[..stop + 2]);
                return;
            }
            None => return,
        }
    }
}

/// One to five sentences.
fn paragraph(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..=random.below(4) {
        let words = 4 + random.below(14);
        for index in 0..words {
            match random.below(60) {
                0 => text.push_str(random.pick(FOREIGN)),
                1 => write!(text, r#"\"{}\""#, random.pick(WORDS)).expect("a string"),
                _ => text.push_str(random.pick(WORDS)),
            }
            if index + 1 < words {
                text.push(' ');
            }
        }
        text.push_str(". ");
    }
    if random.percent(20) {
        write!(
            text,
            r"\n\n- {}\n- {}\t(copied to D:\\cases\\{})\n",
            random.pick(WORDS),
            random.pick(WORDS),
            random.below(1000)
        )
        .expect("a string");
    }
    text
}

fn in_ascii(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(escaped, "\\u{unit:04x}").expect("a string");
        }
    }
    escaped
}

fn embedded(random: &mut Random) -> String {
    let mut text = format!(
        r#"{{\"order\":\"B-{}\",\"items\":["#,
        random.below(1_000_000)
    );
    for index in 0..=random.below(5) {
        let comma = if index == 0 { "" } else { "," };
        write!(
            text,
            r#"{comma}{{\"article\":{},\"pieces\":{},\"price\":\"{}.{:02}\"}}"#,
            random.below(100_000),
            1 + random.below(9),
            random.below(90),
            random.below(100)
        )
        .expect("a string");
    }
    write!(
        text,
        r#"],\"note\":\"{} {}\"}}\n"#,
        random.pick(WORDS),
        random.pick(WORDS)
    )
    .expect("a string");
    text
}
