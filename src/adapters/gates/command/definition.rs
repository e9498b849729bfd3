//! A command as the settings define it, and what makes one invalid.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// The pool and the gate of a measurement, which the daemon itself tells each command.
pub(super) const POOL: &str = "POOLKEEPER_POOL";
pub(super) const GATE: &str = "POOLKEEPER_GATE";

/// Beginnings of variables that hold credentials of this daemon, or lead to them.
const CREDENTIALS: [&str; 12] = [
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE",
    "AZURE_CONFIG_DIR",
    "AZURE_FEDERATED_TOKEN",
    "AZURE_KUBERNETES_TOKEN",
    "AZURE_PASSWORD",
    "IDENTITY_",
    "MSI_",
    "POOLKEEPER_API_KEY",
    "POOLKEEPER_API_TOKENS",
    "POOLKEEPER_CLIENT_FILE",
    "POOLKEEPER_TOKEN",
];

/// A command that a gate may name, as the settings of the daemon describe it.
#[derive(Clone, PartialEq, Eq)]
pub struct GateCommand {
    /// The program by its absolute path, and its arguments. There is no shell.
    pub argv: Vec<Box<str>>,
    /// Variables with their values.
    pub environment: BTreeMap<Box<str>, Box<str>>,
    /// Names of variables that it gets from the environment of the daemon.
    pub inherit: Vec<Box<str>>,
}

impl fmt::Debug for GateCommand {
    /// Without values, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateCommand")
            .field("argv", &self.argv)
            .field("environment", &self.environment.keys())
            .field("inherit", &self.inherit)
            .finish()
    }
}

/// Why a command may not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandFault {
    #[error("the command is empty; write the absolute path of a program first")]
    Empty,
    #[error("{} is no absolute path; no shell looks for the program, so write its whole path", .0.escape_debug())]
    Relative(Box<str>),
    #[error("the command has a NUL character, which no program can get; remove it")]
    Nul,
    #[error("\"{}\" is no name of a variable; a name is not empty and has no = and no NUL", .0.escape_debug())]
    Name(Box<str>),
    #[error("the value of {} has a NUL character, which no variable can have; remove it", .0.escape_debug())]
    Value(Box<str>),
    #[error("the daemon itself sets {0} for each command; remove it")]
    Reserved(Box<str>),
    #[error(
        "{} leads to a credential of the daemon, which no command gets; give the command a credential of its own",
        .0.escape_debug()
    )]
    Credential(Box<str>),
}

impl GateCommand {
    pub fn check(&self) -> Result<(), CommandFault> {
        check_argv(&self.argv)?;
        self.environment.iter().try_for_each(|(name, value)| check_variable(name, value))?;
        self.inherit.iter().try_for_each(|name| check_inherit(name))
    }
}

pub fn check_argv(argv: &[Box<str>]) -> Result<(), CommandFault> {
    let program = argv.first().filter(|program| !program.is_empty()).ok_or(CommandFault::Empty)?;
    if argv.iter().any(|part| part.contains('\0')) {
        return Err(CommandFault::Nul);
    }
    match Path::new(&**program).is_absolute() {
        true => Ok(()),
        false => Err(CommandFault::Relative(program.clone())),
    }
}

/// Of a variable whose value the settings give.
pub fn check_variable(name: &str, value: &str) -> Result<(), CommandFault> {
    check_name(name)?;
    match value.contains('\0') {
        true => Err(CommandFault::Value(name.into())),
        false => Ok(()),
    }
}

/// Of a variable whose value is that of the daemon.
pub fn check_inherit(name: &str) -> Result<(), CommandFault> {
    check_name(name)?;
    match CREDENTIALS.iter().any(|credential| name.starts_with(credential)) {
        true => Err(CommandFault::Credential(name.into())),
        false => Ok(()),
    }
}

fn check_name(name: &str) -> Result<(), CommandFault> {
    match name {
        POOL | GATE => Err(CommandFault::Reserved(name.into())),
        _ if name.is_empty() || name.contains(['=', '\0']) => Err(CommandFault::Name(name.into())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_absolute_path_and_arguments() {
        let check =
            |argv: &[&str]| check_argv(&argv.iter().map(|&part| part.into()).collect::<Vec<_>>());
        assert_eq!(check(&["/bin/true", "", "a b", "$(x)"]), Ok(()));
        assert_eq!(check(&[]), Err(CommandFault::Empty));
        assert_eq!(check(&["", "/bin/true"]), Err(CommandFault::Empty));
        for program in ["true", "./true", "bin/true", "~/true", " /bin/true"] {
            assert_eq!(check(&[program]), Err(CommandFault::Relative(program.into())));
        }
        for argv in [["/bin/tr\0ue", "a"], ["/bin/true", "\0"]] {
            assert_eq!(check(&argv), Err(CommandFault::Nul));
        }
    }

    #[test]
    fn credentials_of_the_daemon_are_not_inherited() {
        for name in [
            "AZURE_CLIENT_SECRET",
            "AZURE_CLIENT_SECRET_FILE",
            "AZURE_CLIENT_CERTIFICATE_PATH",
            "AZURE_FEDERATED_TOKEN_FILE",
            "IDENTITY_ENDPOINT",
            "IDENTITY_HEADER",
            "MSI_SECRET",
            "POOLKEEPER_API_TOKENS",
            "POOLKEEPER_TOKEN",
            "POOLKEEPER_TOKEN_FILE",
        ] {
            assert_eq!(check_inherit(name), Err(CommandFault::Credential(name.into())));
        }
        for name in ["PATH", "HTTPS_PROXY", "AZURE_TENANT_ID", "GITHUB_TOKEN", "POOLKEEPER_SERVER"]
        {
            assert_eq!(check_inherit(name), Ok(()));
        }
        for name in [POOL, GATE] {
            assert_eq!(check_inherit(name), Err(CommandFault::Reserved(name.into())));
            assert_eq!(check_variable(name, "a"), Err(CommandFault::Reserved(name.into())));
        }
        for name in ["", "A=B", "A\0"] {
            assert_eq!(check_inherit(name), Err(CommandFault::Name(name.into())));
            assert_eq!(check_variable(name, "a"), Err(CommandFault::Name(name.into())));
        }
        assert_eq!(check_variable("A", "b=c\n"), Ok(()));
        assert_eq!(check_variable("A", "b\0"), Err(CommandFault::Value("A".into())));
    }

    #[test]
    fn no_value_is_in_a_log() {
        let command = GateCommand {
            argv: vec!["/bin/true".into()],
            environment: BTreeMap::from([("KEY".into(), "hunter2".into())]),
            inherit: vec!["PATH".into()],
        };
        let shown = format!("{command:?}");
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
