//! What each shell's script adds to the generated completions: pool and machine names, looked up when needed.

use clap::Command;
use clap_complete::Shell as Kind;

use super::asked::{is_machine, is_pool};

// Split the line, not `COMP_WORDS`: bash breaks those at colons, and addresses contain colons.
const BASH: &str = r#"
_poolkeeper_names() {
    _poolkeeper "$@"
    local line names
    [[ "$2" == -* ]] && return 0
    read -r -a line <<< "${COMP_LINE:0:COMP_POINT}"
    [[ "${COMP_LINE:0:COMP_POINT}" == *[[:space:]] ]] || unset "line[-1]"
    names="$("$1" names -- "${line[@]:1}" 2>/dev/null)"
    [[ -n "$names" ]] && COMPREPLY=( $(compgen -W "$names" -- "$2") )
    return 0
}

complete -F _poolkeeper_names -o bashdefault -o default poolkeeper
"#;

const ZSH: &str = r#"
_poolkeeper_names() {
    local -a names
    names=(${(f)"$(poolkeeper names -- "${(@Q)words[1,CURRENT-1]}" 2>/dev/null)"})
    if (( $#names )); then compadd -a names; else _default; fi
}
"#;

pub(super) fn with_names(shell: Kind, script: &str, command: &Command) -> String {
    match shell {
        Kind::Bash => format!("{script}{BASH}"),
        Kind::Zsh => zsh(script),
        Kind::Fish => format!("{script}{}", fish(command)),
        _ => script.to_owned(),
    }
}

/// Makes name arguments call the lookup function, which goes right after the first line, by which zsh recognises the
/// script.
fn zsh(script: &str) -> String {
    let is_name = |line: &str| {
        if line.starts_with("'--context=") {
            return true;
        }
        let name = line.trim_start_matches(['\'', '*', ':']);
        ["pool -- ", "pools -- ", "machine -- "].iter().any(|start| name.starts_with(start))
    };
    let mut text = String::new();
    for (n, line) in script.lines().enumerate() {
        match line.strip_suffix(":_default' \\").filter(|_| is_name(line)) {
            // With two colons zsh would pass the function only these words, without the command.
            Some(head) => {
                let head = head.replacen("'*::", "'*:", 1);
                text.push_str(&format!("{head}:_poolkeeper_names' \\"));
            }
            None => text.push_str(line),
        }
        text.push('\n');
        if n == 0 {
            text.push_str(ZSH);
        }
    }
    text
}

fn fish(command: &Command) -> String {
    let commands = command
        .get_subcommands()
        .filter(|command| command.get_positionals().any(|arg| is_pool(arg) || is_machine(arg)));
    let names: Vec<&str> = commands.map(Command::get_name).collect();
    const ASK: &str = "(poolkeeper names -- (commandline -opc)[2..-1] 2>/dev/null)";
    format!(
        "complete -c poolkeeper -l context -x -a \"{ASK}\"\n\
         complete -c poolkeeper -n \"__fish_poolkeeper_using_subcommand {} context\" -f -a \"{ASK}\"\n",
        names.join(" ")
    )
}
