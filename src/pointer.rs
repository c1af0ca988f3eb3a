//! JSON Pointers (RFC 6901): parsed where an operator names a member, rendered where a finding
//! points at one.

use std::fmt;
use std::str::FromStr;

use crate::decode::document::cut;

/// A JSON Pointer to a member below the record itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer {
    tokens: Vec<String>,
}

impl JsonPointer {
    /// The unescaped reference tokens, outermost first; never empty.
    #[must_use]
    pub fn tokens(&self) -> &[String] {
        &self.tokens
    }
}

/// Why a text is no [`JsonPointer`] to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonPointerError {
    /// It is empty, and so would name the record itself.
    Empty,
    /// It does not begin with `/`.
    NoSlash,
    /// A `~` is followed by neither `0` nor `1`.
    BadEscape,
}

impl fmt::Display for JsonPointerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JsonPointerError::Empty => {
                "the pointer is empty; expected one to a member, such as /trace"
            }
            JsonPointerError::NoSlash => {
                "a JSON Pointer begins with `/`, such as /trace or /content/task"
            }
            JsonPointerError::BadEscape => {
                "in a JSON Pointer `~` is written ~0 and `/` inside a name ~1"
            }
        })
    }
}

impl std::error::Error for JsonPointerError {}

impl FromStr for JsonPointer {
    type Err = JsonPointerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(JsonPointerError::Empty);
        }
        let tokens = text.strip_prefix('/').ok_or(JsonPointerError::NoSlash)?;
        let tokens = tokens.split('/').map(unescape).collect::<Option<Vec<_>>>();
        Ok(JsonPointer {
            tokens: tokens.ok_or(JsonPointerError::BadEscape)?,
        })
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.tokens
            .iter()
            .for_each(|token| push_token(&mut text, token));
        f.write_str(&text)
    }
}

fn unescape(token: &str) -> Option<String> {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '~' => match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            },
            other => other,
        });
    }
    Some(out)
}

/// Appends `/token` to a pointer, escaped.
fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Longest name that [`Path::label`] shows whole.
const MAX_NAME_BYTES: usize = 80;

/// Where a reader is in a record: a list of segments on the call stack, rendered only when
/// something there is wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    segment: Segment<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Segment<'p> {
    Root,
    Name(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    /// The record itself.
    pub(crate) const ROOT: Path<'static> = Path {
        parent: None,
        segment: Segment::Root,
    };

    /// A member of the object here.
    pub(crate) fn name(&'p self, name: &'p str) -> Path<'p> {
        Path {
            parent: Some(self),
            segment: Segment::Name(name),
        }
    }

    /// An entry of the list here.
    pub(crate) fn index(&'p self, index: usize) -> Path<'p> {
        Path {
            parent: Some(self),
            segment: Segment::Index(index),
        }
    }

    /// What is here as a person would call it: `` `declaration.clearances[1]` ``. What every record
    /// has around its members, `content` and `scheduling`, is left out.
    pub(crate) fn label(&self) -> Label<'_> {
        Label(self)
    }

    fn dotted(&self) -> String {
        let parent = self.parent.map_or_else(String::new, Path::dotted);
        match self.segment {
            Segment::Root => String::new(),
            Segment::Index(index) => format!("{parent}[{index}]"),
            Segment::Name(name) => {
                let name = cut(name, MAX_NAME_BYTES);
                match &*parent {
                    "" | "content" | "scheduling" => name.into_owned(),
                    _ => format!("{parent}.{name}"),
                }
            }
        }
    }

    /// The pointer's text.
    pub(crate) fn render(&self) -> String {
        let mut out = self.parent.map_or_else(String::new, Path::render);
        match self.segment {
            Segment::Root => {}
            Segment::Name(name) => push_token(&mut out, name),
            Segment::Index(index) => push_token(&mut out, &index.to_string()),
        }
        out
    }
}

/// See [`Path::label`]. Made into text only where somebody will read it: a hostile record has
/// millions of members at fault, of which a thousand are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label<'p>(&'p Path<'p>);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0.dotted() {
            "" => f.write_str("the document"),
            name => write!(f, "`{name}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_read_back() {
        for text in ["/trace", "/content/task/id", "/", "/a~0b/c~1d", "/0", "//x"] {
            assert_eq!(text.parse::<JsonPointer>().expect(text).to_string(), text);
        }
        let pointer: JsonPointer = "/a~1b/~0".parse().expect("valid");
        assert_eq!(pointer.tokens(), ["a/b", "~"]);
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!("".parse::<JsonPointer>(), Err(JsonPointerError::Empty));
        assert_eq!(
            "trace".parse::<JsonPointer>(),
            Err(JsonPointerError::NoSlash)
        );
        for text in ["/~", "/a~2", "/~~0"] {
            assert_eq!(
                text.parse::<JsonPointer>(),
                Err(JsonPointerError::BadEscape),
                "{text}"
            );
        }
    }

    #[test]
    fn paths_render_and_are_called_by_name() {
        let content = Path::ROOT.name("content");
        let list = content.name("a/b");
        let entry = list.index(3);
        assert_eq!(entry.render(), "/content/a~1b/3");
        assert_eq!(entry.label().to_string(), "`a/b[3]`");
        assert_eq!(Path::ROOT.render(), "");
        assert_eq!(Path::ROOT.label().to_string(), "the document");
        let scheduling = content.name("scheduling");
        assert_eq!(scheduling.label().to_string(), "`scheduling`");
        let declaration = scheduling.name("declaration");
        let capabilities = declaration.name("capabilities");
        let entry = capabilities.index(0);
        let name = entry.name("name");
        assert_eq!(
            name.label().to_string(),
            "`declaration.capabilities[0].name`"
        );
    }
}
