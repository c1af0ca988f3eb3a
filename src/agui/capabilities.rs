//! What an agent declares, field by field. A field that is not there is undeclared: no accessor
//! makes `false` of it.

use std::borrow::Cow;

use super::{declaration, integer};
use crate::decode::lookup::child;
use crate::decode::reader::Reader;
use crate::documents::NamedText;
use crate::finding::Finding;

/// A declaration that the consumer layer accepts.
///
/// It is kept as the text that it was read from, so that nothing in it is lost, whatever this
/// version knows of it. Each accessor reads that text again, which takes about as long as copying
/// it would: ask once and keep the answer.
///
/// ```
/// use tracecheck::agui::{Answer, Capabilities};
/// use tracecheck::documents::NamedText;
///
/// let document = NamedText {
///     name: "agent.json",
///     text: br#"{"tools": {"supported": true, "parallelCalls": false}}"#,
/// };
/// let capabilities = Capabilities::read(document).expect("well-formed");
/// assert_eq!(capabilities.tools().supported(), Answer::Yes);
/// assert_eq!(capabilities.tools().parallel_calls(), Answer::No);
/// assert_eq!(capabilities.tools().client_provided(), Answer::Undeclared);
/// assert_eq!(capabilities.reasoning().supported(), Answer::Undeclared);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A JSON object in which no described member is malformed.
    text: String,
}

/// What a declaration says of something that an agent does or does not. There is no way to make a
/// `bool` of it without deciding what silence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Nothing is said. It does not mean no.
    Undeclared,
    /// `false` is declared: the agent does not.
    No,
    /// `true` is declared: the agent does.
    Yes,
}

impl Answer {
    /// What is declared, if anything is.
    #[must_use]
    pub const fn declared(self) -> Option<bool> {
        match self {
            Answer::Undeclared => None,
            Answer::No => Some(false),
            Answer::Yes => Some(true),
        }
    }
}

/// A declaration that says nothing, as of an agent that declared nothing.
impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            text: "{}".to_owned(),
        }
    }
}

impl Capabilities {
    /// Reads a declaration, as a consumer has to: unrecognised members are kept and ignored.
    ///
    /// # Errors
    ///
    /// What is malformed in it. Such a declaration must not be used.
    pub fn read(document: NamedText<'_>) -> Result<Capabilities, Vec<Finding>> {
        let findings = super::check(document, false);
        match std::str::from_utf8(document.trimmed()) {
            Ok(text) if findings.is_empty() => Ok(Capabilities {
                text: text.to_owned(),
            }),
            _ => Err(findings),
        }
    }

    /// The declaration as it was written, without the white space around it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The declaration on one line: as it was written, without white space between its tokens.
    /// Numbers, escapes, the order of members and what is not recognised stay as they are.
    #[must_use]
    pub fn normalised(&self) -> String {
        declaration::without_white_space(&self.text)
    }

    /// Who the agent is.
    #[must_use]
    pub fn identity(&self) -> Identity<'_> {
        Identity(self.member("identity"))
    }

    /// How it can be reached.
    #[must_use]
    pub fn transport(&self) -> Transport<'_> {
        Transport(self.member("transport"))
    }

    /// Its tool calls.
    #[must_use]
    pub fn tools(&self) -> Tools<'_> {
        Tools(self.member("tools"))
    }

    /// What its answers look like.
    #[must_use]
    pub fn output(&self) -> Output<'_> {
        Output(self.member("output"))
    }

    /// Shared state and memory.
    #[must_use]
    pub fn state(&self) -> State<'_> {
        State(self.member("state"))
    }

    /// Its work with other agents.
    #[must_use]
    pub fn multi_agent(&self) -> MultiAgent<'_> {
        MultiAgent(self.member("multiAgent"))
    }

    /// Its reasoning, as far as it shows it.
    #[must_use]
    pub fn reasoning(&self) -> Reasoning<'_> {
        Reasoning(self.member("reasoning"))
    }

    /// What it takes and gives beside text.
    #[must_use]
    pub fn multimodal(&self) -> Multimodal<'_> {
        Multimodal(self.member("multimodal"))
    }

    /// How it runs.
    #[must_use]
    pub fn execution(&self) -> Execution<'_> {
        Execution(self.member("execution"))
    }

    /// How people take part in a run.
    #[must_use]
    pub fn human_in_the_loop(&self) -> HumanInTheLoop<'_> {
        HumanInTheLoop(self.member("humanInTheLoop"))
    }

    /// Capabilities that fit no group: the text of an object, to which the protocol attaches no
    /// meaning.
    #[must_use]
    pub fn custom(&self) -> Option<&str> {
        child(&self.text, "custom").0
    }

    /// The text of the field at `group` and `field`, where it is declared.
    pub(super) fn field(&self, group: &str, field: &str) -> Option<&str> {
        child(child(&self.text, group).0?, field).0
    }

    fn member(&self, name: &str) -> Group<'_> {
        Group(child(&self.text, name).0)
    }
}

/// The text of a group, where it is declared.
#[derive(Clone, Copy, Debug)]
struct Group<'c>(Option<&'c str>);

impl<'c> Group<'c> {
    fn text(self, field: &str) -> Option<&'c str> {
        child(self.0?, field).0
    }

    fn group(self, field: &str) -> Group<'c> {
        Group(self.text(field))
    }

    fn answer(self, field: &str) -> Answer {
        match self.text(field) {
            None => Answer::Undeclared,
            Some("false") => Answer::No,
            Some(_) => Answer::Yes,
        }
    }

    fn string(self, field: &str) -> Option<Cow<'c, str>> {
        self.text(field).map(string)
    }

    fn count(self, field: &str) -> Option<u64> {
        let value = integer::exact(self.text(field)?)?;
        u64::try_from(value).ok()
    }

    fn list<T>(self, field: &str, entry: impl Fn(&'c str) -> T) -> Option<Vec<T>> {
        self.text(field)
            .map(|text| entries(text).into_iter().map(entry).collect())
    }
}

const VALID: &str = "the shape was checked when the declaration was read";

fn string(text: &str) -> Cow<'_, str> {
    Reader::over(text, 0).string().expect(VALID).decode()
}

/// The texts of a list's entries.
fn entries(text: &str) -> Vec<&str> {
    let mut reader = Reader::over(text, 0);
    let mut entries = Vec::new();
    reader.begin_list().expect(VALID);
    while reader.next_entry(entries.is_empty()).expect(VALID) {
        entries.push(reader.skip().expect(VALID));
    }
    entries
}

/// A tool that the agent itself provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool<'c> {
    /// Its name.
    pub name: Cow<'c, str>,
    /// What it does.
    pub description: Cow<'c, str>,
    /// The text of its parameters: any JSON value but null.
    pub parameters: Option<&'c str>,
    /// The text of an object.
    pub metadata: Option<&'c str>,
}

/// A subagent that the agent may invoke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentInfo<'c> {
    /// Its name.
    pub name: Cow<'c, str>,
    /// What it is for.
    pub description: Option<Cow<'c, str>>,
}

impl<'c> Tool<'c> {
    fn read(text: &'c str) -> Self {
        let tool = Group(Some(text));
        Tool {
            name: tool.string("name").expect(VALID),
            description: tool.string("description").expect(VALID),
            parameters: tool.text("parameters"),
            metadata: tool.text("metadata"),
        }
    }
}

impl<'c> SubagentInfo<'c> {
    fn read(text: &'c str) -> Self {
        let subagent = Group(Some(text));
        SubagentInfo {
            name: subagent.string("name").expect(VALID),
            description: subagent.string("description"),
        }
    }
}

macro_rules! groups {
    ($($(#[$doc:meta])* $Group:ident {
        $($(#[$field_doc:meta])* $method:ident: $read:ident $name:literal,)*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $Group<'c>(Group<'c>);

            impl<'c> $Group<'c> {
                /// Whether the group is there at all; it may be empty.
                #[must_use]
                pub fn is_declared(self) -> bool {
                    self.0.0.is_some()
                }

                $(groups!(@field $(#[$field_doc])* $method: $read $name);)*
            }
        )*

        /// The accessors' groups, fields and kinds.
        #[cfg(test)]
        const ACCESSORS: &[(&str, &[(&str, &str)])] = &[
            $((stringify!($Group), &[$(($name, stringify!($read)),)*]),)*
        ];
    };
    (@field $(#[$doc:meta])* $method:ident: flag $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Answer {
            self.0.answer($name)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: string $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<Cow<'c, str>> {
            self.0.string($name)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: count $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<u64> {
            self.0.count($name)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: open $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<&'c str> {
            self.0.text($name)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: strings $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<Vec<Cow<'c, str>>> {
            self.0.list($name, string)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: tools $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<Vec<Tool<'c>>> {
            self.0.list($name, Tool::read)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: subagents $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> Option<Vec<SubagentInfo<'c>>> {
            self.0.list($name, SubagentInfo::read)
        }
    };
    (@field $(#[$doc:meta])* $method:ident: input $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> MultimodalInput<'c> {
            MultimodalInput(self.0.group($name))
        }
    };
    (@field $(#[$doc:meta])* $method:ident: output $name:literal) => {
        $(#[$doc])*
        #[must_use]
        pub fn $method(self) -> MultimodalOutput<'c> {
            MultimodalOutput(self.0.group($name))
        }
    };
}

groups! {
    /// `identity`: who the agent is.
    Identity {
        /// A name for people.
        name: string "name",
        /// The kind of agent, such as the framework that it is built with.
        kind: string "type",
        /// What it does.
        description: string "description",
        /// Its version.
        version: string "version",
        /// Who provides it.
        provider: string "provider",
        /// Where it is documented.
        documentation_url: string "documentationUrl",
        /// The text of an object with whatever an integration says of the agent.
        metadata: open "metadata",
    }

    /// `transport`: how the agent can be reached.
    Transport {
        /// It streams its events.
        streaming: flag "streaming",
        /// Over WebSockets.
        websocket: flag "websocket",
        /// In the binary HTTP binding.
        http_binary: flag "httpBinary",
        /// It tells of a run after it has finished; no standard binding does.
        push_notifications: flag "pushNotifications",
        /// An interrupted stream can be resumed; in no standard binding.
        resumable: flag "resumable",
    }

    /// `tools`: tool calls.
    Tools {
        /// It calls tools.
        supported: flag "supported",
        /// The tools that it provides itself.
        items: tools "items",
        /// It has several calls under way at once.
        parallel_calls: flag "parallelCalls",
        /// It takes tools from the application.
        client_provided: flag "clientProvided",
    }

    /// `output`: what answers look like.
    Output {
        /// It can shape an answer to a schema.
        structured_output: flag "structuredOutput",
        /// The media types of its answers.
        supported_mime_types: strings "supportedMimeTypes",
    }

    /// `state`: shared state and memory.
    State {
        /// It sends the whole state.
        snapshots: flag "snapshots",
        /// It sends changes of the state.
        deltas: flag "deltas",
        /// It remembers from run to run.
        memory: flag "memory",
        /// The state outlives a run.
        persistent_state: flag "persistentState",
    }

    /// `multiAgent`: work with other agents.
    MultiAgent {
        /// It works with other agents.
        supported: flag "supported",
        /// It delegates to subagents.
        delegation: flag "delegation",
        /// It hands a conversation over.
        handoffs: flag "handoffs",
        /// The subagents that it may invoke.
        subagents: subagents "subagents",
    }

    /// `reasoning`: how it shows its reasoning.
    Reasoning {
        /// It shows its reasoning.
        supported: flag "supported",
        /// Piece by piece.
        streaming: flag "streaming",
        /// Or encrypted.
        encrypted: flag "encrypted",
    }

    /// `multimodal`: what it takes and gives beside text.
    Multimodal {
        /// What it takes.
        input: input "input",
        /// What it gives; no standard event carries it.
        output: output "output",
    }

    /// `multimodal.input`: what it takes beside text.
    MultimodalInput {
        /// Pictures.
        image: flag "image",
        /// Sound.
        audio: flag "audio",
        /// Moving pictures.
        video: flag "video",
        /// PDF documents.
        pdf: flag "pdf",
        /// Other files.
        file: flag "file",
    }

    /// `multimodal.output`: what it gives beside text.
    MultimodalOutput {
        /// Pictures.
        image: flag "image",
        /// Sound.
        audio: flag "audio",
    }

    /// `execution`: how it runs.
    Execution {
        /// It runs code.
        code_execution: flag "codeExecution",
        /// It does so in a sandbox.
        sandboxed: flag "sandboxed",
        /// The most iterations of a run.
        max_iterations: count "maxIterations",
        /// The longest that a run takes, in milliseconds.
        max_execution_time: count "maxExecutionTime",
    }

    /// `humanInTheLoop`: how people take part in a run.
    HumanInTheLoop {
        /// They can.
        supported: flag "supported",
        /// It asks for approval.
        approvals: flag "approvals",
        /// It lets people step in.
        interventions: flag "interventions",
        /// It takes feedback.
        feedback: flag "feedback",
        /// It pauses a run for them.
        interrupts: flag "interrupts",
        /// It takes an approval with changes.
        approve_with_edits: flag "approveWithEdits",
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{AGENT_CAPABILITIES, Member, Shape};
    use super::*;

    fn read(text: &str) -> Capabilities {
        Capabilities::read(NamedText {
            name: "d",
            text: text.as_bytes(),
        })
        .expect("well-formed")
    }

    /// What the shape's table says an accessor reads.
    fn kind(member: &Member) -> &'static str {
        match member.shape {
            Shape::Boolean => "flag",
            Shape::Count => "count",
            Shape::String => "string",
            Shape::Open => "open",
            Shape::List(Shape::String) => "strings",
            Shape::List(_) if member.name == "items" => "tools",
            Shape::List(_) => "subagents",
            Shape::Object(_) => member.name,
            Shape::Anything => panic!("no field of a group holds anything"),
        }
    }

    #[test]
    fn every_field_of_the_table_has_its_accessor() {
        fn collect(
            name: String,
            members: &[Member],
            into: &mut Vec<(String, Vec<(String, String)>)>,
        ) {
            let fields = members
                .iter()
                .map(|m| (m.name.to_owned(), kind(m).to_owned()));
            let mut fields: Vec<_> = fields.collect();
            fields.sort();
            into.push((name.clone(), fields));
            for member in members {
                if let Shape::Object(inner) = member.shape {
                    collect(format!("{name}{}", capitalised(member.name)), inner, into);
                }
            }
        }
        fn capitalised(name: &str) -> String {
            name[..1].to_uppercase() + &name[1..]
        }
        let mut described = Vec::new();
        for member in AGENT_CAPABILITIES {
            if let Shape::Object(members) = member.shape {
                collect(capitalised(member.name), members, &mut described);
            }
        }
        let mut accessors: Vec<_> = ACCESSORS
            .iter()
            .map(|(group, fields)| {
                let fields = fields
                    .iter()
                    .map(|(n, k)| ((*n).to_owned(), (*k).to_owned()));
                let mut fields: Vec<_> = fields.collect();
                fields.sort();
                ((*group).to_owned(), fields)
            })
            .collect();
        accessors.sort();
        described.sort();
        assert_eq!(accessors, described);
    }

    #[test]
    fn omitted_false_and_true_are_three_answers() {
        for (text, answer) in [
            ("{}", Answer::Undeclared),
            (r#"{"state":{}}"#, Answer::Undeclared),
            (r#"{"state":{"snapshots":true}}"#, Answer::Undeclared),
            (r#"{"state":{"deltas":false}}"#, Answer::No),
            (r#"{"\u0073tate" : { "del\u0074as" : true } }"#, Answer::Yes),
        ] {
            assert_eq!(read(text).state().deltas(), answer, "{text}");
        }
        assert!(!read("{}").state().is_declared());
        assert!(read(r#"{"state":{}}"#).state().is_declared());
        assert_eq!(Answer::Undeclared.declared(), None);
        assert_eq!(Answer::No.declared(), Some(false));
        assert_eq!(Answer::Yes.declared(), Some(true));
    }

    #[test]
    fn values_are_read_as_they_are_meant() {
        let capabilities = read(
            r#"{"identity":{"name":"a\u00e9","metadata":{"n":123456789012345678901234567890}},
            "tools":{"items":[{"name":"t","description":"","parameters":[null]},
                {"name":"u","description":"d","metadata":{}}]},
            "output":{"supportedMimeTypes":[]},"multimodal":{"input":{"pdf":false}},
            "multiAgent":{"subagents":[{"name":"s"}]},
            "execution":{"maxExecutionTime":1.5e3},"custom":{"x":null,"x":1}}"#,
        );
        assert_eq!(capabilities.identity().name().as_deref(), Some("aé"));
        assert_eq!(
            capabilities.identity().metadata(),
            Some(r#"{"n":123456789012345678901234567890}"#)
        );
        let tools = capabilities.tools().items().expect("declared");
        assert_eq!(tools[0].parameters, Some("[null]"));
        assert_eq!((&*tools[1].name, tools[1].metadata), ("u", Some("{}")));
        assert_eq!(capabilities.output().supported_mime_types(), Some(vec![]));
        assert_eq!(capabilities.multimodal().input().pdf(), Answer::No);
        assert_eq!(
            capabilities.multimodal().output().image(),
            Answer::Undeclared
        );
        let subagents = capabilities.multi_agent().subagents().expect("declared");
        assert_eq!(subagents[0].description, None);
        assert_eq!(capabilities.execution().max_execution_time(), Some(1500));
        assert_eq!(capabilities.execution().max_iterations(), None);
        assert_eq!(capabilities.custom(), Some(r#"{"x":null,"x":1}"#));
        assert_eq!(
            capabilities.field("execution", "maxExecutionTime"),
            Some("1.5e3")
        );
    }

    #[test]
    fn a_malformed_declaration_is_none() {
        let document = NamedText {
            name: "d",
            text: br#"{"tools":{"supported":null}}"#,
        };
        let findings = Capabilities::read(document).expect_err("malformed");
        assert_eq!(findings[0].pointer, "/tools/supported");
        let nothing = Capabilities::default();
        assert_eq!(nothing.tools().supported(), Answer::Undeclared);
    }
}
