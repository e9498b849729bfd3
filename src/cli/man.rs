//! `man`: manual pages, one for each command, made from the same table that parses the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::text::alike;
use crate::api::v1::API_VERSION;

const ABOUT: &str = "Prints a manual page, or writes one for each command";
const MORE: &str = "\
Prints the manual page of poolkeeper, or of a COMMAND, for `man`. With --out it writes the pages of all commands to a \
folder, such as /usr/local/share/man/man1.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper man plan | man -l -
  poolkeeper man --out /usr/local/share/man/man1";

const MANUAL: &str = "Poolkeeper Manual";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct ManCommand {
    /// Print the page of this command; without it, that of poolkeeper
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Option<String>,

    /// Write the pages of all commands to this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A manual page: its name without the section, and its text.
#[derive(Debug)]
struct ManPage {
    name: String,
    text: String,
}

impl ManCommand {
    pub(super) fn run(&self, shell: &mut Shell, command: Command) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("man")?;
        let pages = pages(command).map_err(|error| CommandFailure::unwritable(&error))?;
        if let Some(folder) = &self.out {
            let files = write(&pages, folder)?;
            if is_json {
                let document =
                    json!({ "apiVersion": API_VERSION, "kind": "ManPages", "files": files });
                shell.line(&document.to_string())?;
            } else {
                shell.line(&format!("{}: {} pages", folder.display(), files.len()))?;
            }
            return Ok(Exit::Done);
        }
        let page = find(&pages, self.command.as_deref())?;
        if is_json {
            let document = json!({
                "apiVersion": API_VERSION, "kind": "ManPage", "name": page.name, "page": page.text,
            });
            shell.line(&document.to_string())?;
        } else {
            shell.print(&page.text)?;
        }
        Ok(Exit::Done)
    }
}

fn find<'p>(pages: &'p [ManPage], command: Option<&str>) -> Result<&'p ManPage, CommandFailure> {
    let wanted = match command {
        Some(command) => format!("poolkeeper-{}", command.trim().replace(' ', "-")),
        None => "poolkeeper".to_owned(),
    };
    pages.iter().find(|page| page.name == wanted).ok_or_else(|| {
        let names: Vec<&str> =
            pages.iter().filter_map(|page| page.name.strip_prefix("poolkeeper-")).collect();
        let near = alike(&names, command.unwrap_or_default()).first().copied();
        let say = format!("there is no command {}", command.unwrap_or_default());
        let failure = CommandFailure::new(Exit::NotFound, "notFound", say);
        failure.help(match near {
            Some(near) => format!("did you mean {near}?"),
            None => "`poolkeeper help` lists all".to_owned(),
        })
    })
}

/// The page of each command that the help lists, the program's own first.
fn pages(command: Command) -> io::Result<Vec<ManPage>> {
    let mut root = command.disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    add(&root, &mut all)?;
    Ok(all)
}

fn add(command: &Command, all: &mut Vec<ManPage>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    let source = format!("poolkeeper {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).manual(MANUAL).render(&mut text)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    all.push(ManPage { name, text });
    let listed = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    listed.into_iter().try_for_each(|inner| add(inner, all))
}

fn write(pages: &[ManPage], folder: &Path) -> Result<Vec<String>, CommandFailure> {
    let failed = |path: &Path, error: &io::Error| {
        CommandFailure::unwritable_file(&path.display().to_string(), error)
    };
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    let mut files = Vec::new();
    for page in pages {
        let path = folder.join(format!("{}.1", page.name));
        fs::write(&path, &page.text).map_err(|error| failed(&path, &error))?;
        files.push(path.display().to_string());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, arg};

    fn tree() -> Command {
        Command::new("poolkeeper")
            .about("Keeps pools")
            .subcommand(Command::new("plan").about("Says what would be done").arg(arg!(--all)))
            .subcommand(Command::new("store").about("The store").subcommand(
                Command::new("backup").about("Copies it").arg(Arg::new("to").required(true)),
            ))
            .subcommand(Command::new("names").hide(true))
    }

    #[test]
    fn each_command_has_a_page() {
        let pages = pages(tree()).unwrap();
        let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(
            names,
            ["poolkeeper", "poolkeeper-plan", "poolkeeper-store", "poolkeeper-store-backup"]
        );
        for page in &pages {
            assert!(page.text.contains(".TH ") && page.text.contains(".SH NAME"), "{}", page.text);
        }
        assert_eq!(find(&pages, Some("store backup")).unwrap().name, "poolkeeper-store-backup");
        let unknown = find(&pages, Some("pln")).unwrap_err();
        assert_eq!(unknown.report.help.as_deref(), Some("did you mean plan?"));
    }
}
