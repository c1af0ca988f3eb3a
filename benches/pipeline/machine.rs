//! What it was measured on.

use std::fs;
use std::process::Command;

use crate::arguments::Scale;
use crate::measure::cores;

/// The machine, the build and the command, as a Markdown list.
pub(crate) fn description(scale: &Scale) -> String {
    let arguments: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let mut lines = vec![
        format!(
            "- command: `cargo bench --bench pipeline -- {}`",
            arguments.join(" ")
        ),
        format!("- machine: {}, {} cores", cpu(), cores()),
        format!("- kernel: {}", first_line("/proc/sys/kernel/osrelease")),
        format!(
            "- compiler: {}",
            said(Command::new("rustc").arg("--version"))
        ),
        format!(
            "- program: {}",
            said(Command::new(&scale.program).arg("--version"))
        ),
        format!(
            "- medians of {} rounds in which everything ran in turns; a ratio is that of two runs of \
             the same round, files of {} MiB unless said",
            scale.rounds, scale.mb
        ),
    ];
    let lto = option_env!("CARGO_PROFILE_BENCH_LTO").or(option_env!("CARGO_PROFILE_RELEASE_LTO"));
    if cfg!(debug_assertions) || lto.is_some() {
        lines.push("- **built to see that it runs: the figures mean nothing**".to_owned());
    } else if scale.smoke {
        lines.push("- **run to see that it runs: the figures mean nothing**".to_owned());
    }
    lines.join("\n") + "\n"
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let name = model.and_then(|line| line.split_once(':'));
    name.map_or("unknown processor", |(_, name)| name.trim())
        .to_owned()
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

/// What a command says in one line.
fn said(command: &mut Command) -> String {
    let said = command
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&said);
    text.lines().next().unwrap_or("unknown").to_owned()
}
