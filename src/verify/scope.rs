//! Step 3, scope (R12): the declaration is that of the agent that was admitted.

use super::drafts::Drafts;
use super::placement::scheduling_path;
use super::state::Admission;
use crate::decode::JsonStr;
use crate::decode::document::quoted;
use crate::finding::Code;
use crate::schema::agent::Agent;

/// Compares the declaration's agent with the one admitted. Where a half could not be read, the
/// other one can still tell them apart.
pub(crate) fn judge(declared: &Agent<'_>, admission: &Admission, drafts: &mut Drafts) {
    let admitted = match admission {
        Admission::Unknown => return,
        Admission::Agent(admitted) => admitted,
        Admission::None => {
            let message = format!("the declaration is that of `{}`", described(declared));
            let detail = "no task.admitted came before this placement".to_owned();
            return add(message, detail, drafts);
        }
    };
    let (name, namespace) = (admitted.name(), admitted.namespace());
    if differ(declared.name, name) || differ(declared.namespace, namespace) {
        let message = format!("the declaration is that of `{}`", described(declared));
        let half = |half: Option<&'_ str>| quoted(half.unwrap_or("?")).into_owned();
        let detail = format!(
            "the task was admitted to `{}/{}`",
            half(namespace),
            half(name)
        );
        add(message, detail, drafts);
    }
}

fn add(message: String, detail: String, drafts: &mut Drafts) {
    scheduling_path(|at| {
        let declaration = at.name("declaration");
        drafts.add(
            Code::DeclarationScope,
            "7.3",
            &declaration.name("agent"),
            message,
            detail,
        );
    });
}

fn differ(declared: Option<JsonStr<'_>>, admitted: Option<&str>) -> bool {
    matches!((declared, admitted), (Some(declared), Some(admitted)) if declared != *admitted)
}

/// `namespace/name`, with `?` for what could not be read.
fn described(agent: &Agent<'_>) -> String {
    let half = |half: Option<JsonStr<'_>>| match half {
        Some(half) => quoted(&half.decode()).into_owned(),
        None => "?".to_owned(),
    };
    format!("{}/{}", half(agent.namespace), half(agent.name))
}
