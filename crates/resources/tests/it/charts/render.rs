//! Renders sets of values and compares; gives helm values that it must refuse.

use super::{Desk, judge};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const CHARTS: [&str; 2] = ["charts/flyball-crds", "charts/flyball"];

/// Said to helm, so that its answer does not depend on how helm was built.
const KUBERNETES: &str = "--kube-version=1.36.0";

/// A helm that reads nothing of the person who runs it.
pub(super) struct Helm {
    program: PathBuf,
    root: PathBuf,
    home: PathBuf,
}

impl Helm {
    pub(super) fn new(program: PathBuf, root: &Path) -> Self {
        let home = std::env::temp_dir().join(format!("flyball-helm-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        Self { program, root: root.to_path_buf(), home }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.root);
        for name in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(name, &self.home);
        }
        command.env_remove("KUBECONFIG").env_remove("HELM_NAMESPACE");
        command
    }

    fn template(&self, values: &[String]) -> Command {
        let mut command = self.command();
        command.args(["template", "flyball", "charts/flyball", "--namespace", "flyball-system"]);
        command.arg(KUBERNETES);
        for file in values {
            command.args(["--values", file]);
        }
        command
    }
}

impl Drop for Helm {
    fn drop(&mut self) {
        // It lies in a folder for such files; if it stays there, so be it.
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Lints and renders every set of values. Returns how many there are.
pub(super) fn sets(desk: &mut Desk, helm: &Helm) -> usize {
    let mut lint = helm.command();
    if let Err(error) = read(lint.args(["lint", "--strict", "--quiet", CHARTS[0], KUBERNETES])) {
        desk.wrong(format!("{}: {error}", CHARTS[0]));
    }
    let sets = desk.files("charts/tests/values", ".yaml");
    for (name, path) in &sets {
        let values = values_of(desk, &format!("charts/tests/values/{name}.yaml"));
        let mut lint = helm.command();
        lint.args(["lint", "--strict", "--quiet", CHARTS[1], KUBERNETES]);
        for file in &values {
            lint.args(["--values", file]);
        }
        // One that does not even lint does not stop the others.
        let rendered = read(&mut lint).and_then(|_| read(&mut helm.template(&values)));
        let text = match rendered {
            Ok(text) => text,
            Err(error) => {
                desk.wrong(format!("{}: {error}", path.display()));
                continue;
            }
        };
        for problem in judge::judge(&text) {
            desk.wrong(format!("charts/tests/values/{name}.yaml: {problem}"));
        }
        let text = without_carried(desk, &text);
        desk.current(&format!("charts/tests/rendered/{name}.yaml"), &text);
    }
    for (name, _) in desk.files("charts/tests/rendered", ".yaml") {
        if !sets.iter().any(|(set, _)| *set == name) {
            desk.wrong(format!("charts/tests/rendered/{name}.yaml has no values: remove it"));
        }
    }
    sets.len()
}

/// The file itself, and below it the one that its first line names: `# over: charts/…`.
fn values_of(desk: &Desk, file: &str) -> Vec<String> {
    let text = desk.read(file);
    let under = text.lines().next().and_then(|line| line.strip_prefix("# over: "));
    under.map(str::to_owned).into_iter().chain([file.to_owned()]).collect()
}

/// Boards and rules are held elsewhere; in here each of them is a line.
fn without_carried(desk: &Desk, text: &str) -> String {
    let mut text = text.to_owned();
    for (folder, ending, indent) in [("boards", ".json", 4), ("rules", ".yaml", 2)] {
        let folder = format!("charts/flyball/files/{folder}");
        for (name, path) in desk.files(&folder, ending) {
            let content = fs::read_to_string(path).unwrap();
            let lines: Vec<String> = content
                .trim_end()
                .lines()
                .map(|line| format!("{}{line}", " ".repeat(indent)))
                .collect();
            let short = format!("{}# {folder}/{name}{ending}", " ".repeat(indent));
            text = text.replace(&lines.join("\n"), &short);
        }
    }
    let clean: Vec<&str> = text.lines().map(str::trim_end).collect();
    clean.join("\n") + "\n"
}

/// Values that helm must refuse, each with what it must say. Returns how many there are.
pub(super) fn refused(desk: &mut Desk, helm: &Helm) -> usize {
    let sets = desk.files("charts/tests/refused", ".yaml");
    for (name, _) in &sets {
        let file = format!("charts/tests/refused/{name}.yaml");
        let text = desk.read(&file);
        let Some(expected) = text.lines().next().and_then(|line| line.strip_prefix("# says: "))
        else {
            desk.wrong(format!("{file} must begin with `# says: …`"));
            continue;
        };
        match read(&mut helm.template(std::slice::from_ref(&file))) {
            Ok(_) => desk.wrong(format!("{file}: helm took it")),
            Err(problem) if problem.contains(expected) => {}
            Err(problem) => {
                desk.wrong(format!("{file}: helm should say `{expected}`, and said {problem}"))
            }
        }
    }
    sets.len()
}

/// What helm prints, or what it says is wrong.
fn read(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("helm did not start: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}
