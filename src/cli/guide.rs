//! `guide`: prints a topic of the manual, or one section of it.
//!
//! Never here: the text of a guide (`crate::docs`). Begin with [`GuideCommand::run`].

mod markdown;

use clap::Args;
use serde_json::json;

use super::exit::{CommandFailure, Exit, with_exit_codes};
use super::output::Shell;
use super::table::{Cell, Table};
use super::term::Style;
use super::text::alike;
use crate::api::v1::API_VERSION;
use crate::docs::{GUIDES, Guide, anchor};

const ABOUT: &str = "Prints a topic of the manual";
const MORE: &str = "\
Without a topic it lists all topics. A topic with `#` and the name of a section prints that section. On a terminal \
the text fits its width; elsewhere it is the Markdown source. It needs no network and no daemon.";
const EXAMPLES: &str = "\
Examples:
  poolkeeper guide                 all topics
  poolkeeper guide concepts        what a pool, a hold and a rollout are
  poolkeeper guide holds#breaker   one hold, and what to do about it
  poolkeeper guide pool-file | less";

#[derive(Debug, Args)]
#[command(
    about = ABOUT,
    long_about = format!("{ABOUT}.\n\n{MORE}"),
    after_long_help = with_exit_codes(EXAMPLES)
)]
pub struct GuideCommand {
    /// The topic, or a section of it: TOPIC#SECTION
    topic: Option<String>,
}

impl GuideCommand {
    pub(super) fn run(&self, shell: &mut Shell) -> Result<Exit, CommandFailure> {
        let is_json = shell.one_document("guide")?;
        match &self.topic {
            Some(topic) => print(shell, topic, is_json)?,
            None => list(shell, is_json)?,
        }
        Ok(Exit::Done)
    }
}

fn list(shell: &mut Shell, is_json: bool) -> Result<(), CommandFailure> {
    if is_json {
        let items: Vec<_> = GUIDES
            .iter()
            .map(|guide| json!({ "topic": guide.topic, "about": guide.about }))
            .collect();
        let document = json!({ "apiVersion": API_VERSION, "kind": "GuideList", "items": items });
        return shell.line(&document.to_string());
    }
    let mut table = Table::new(0);
    for guide in GUIDES {
        table.row([Cell::new(guide.topic, Style::Bold), Cell::from(guide.about)]);
    }
    shell.table(&table, shell.term.width)?;
    shell.line("\n`poolkeeper guide TOPIC` prints one of them")
}

fn print(shell: &mut Shell, wanted: &str, is_json: bool) -> Result<(), CommandFailure> {
    let (topic, section) = match wanted.split_once('#') {
        Some((topic, section)) => (topic, Some(section)),
        None => (wanted, None),
    };
    let topic = topic.strip_suffix(".md").unwrap_or(topic);
    let guide = Guide::of(topic).ok_or_else(|| no_topic(topic))?;
    let text = match section {
        Some(name) => guide.section(name).ok_or_else(|| no_section(guide, name))?,
        None => guide.text.to_owned(),
    };
    if is_json {
        let document = json!({
            "apiVersion": API_VERSION,
            "kind": "Guide",
            "topic": guide.topic,
            "about": guide.about,
            "text": text,
        });
        return shell.line(&document.to_string());
    }
    match shell.term.width {
        Some(_) => shell.print(&markdown::render(&text, shell.term)),
        None => shell.print(&text),
    }
}

fn no_topic(topic: &str) -> CommandFailure {
    let topics: Vec<&str> = GUIDES.iter().map(|guide| guide.topic).collect();
    let help = match alike(&topics, topic).as_slice() {
        [] => format!("there are: {}", topics.join(", ")),
        near => format!("nearest: {}; `poolkeeper guide` lists all topics", near.join(", ")),
    };
    CommandFailure::new(Exit::NotFound, "notFound", format!("there is no guide {topic}")).help(help)
}

fn no_section(guide: &Guide, name: &str) -> CommandFailure {
    let sections: Vec<String> = guide.headings().map(anchor).collect();
    let names: Vec<&str> = sections.iter().map(String::as_str).collect();
    let topic = guide.topic;
    let help = match alike(&names, &anchor(name)).as_slice() {
        [] => format!("`poolkeeper guide {topic}` prints all of them"),
        near => format!("nearest: {}", near.join(", ")),
    };
    let say = format!("the guide {topic} has no section {name}");
    CommandFailure::new(Exit::NotFound, "notFound", say).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_topic_names_the_nearest() {
        let failure = no_topic("concept");
        assert_eq!(failure.exit, Exit::NotFound);
        assert!(failure.report.help.is_some_and(|help| help.starts_with("nearest: concepts")));
        let all = no_topic("qqqqqqqqqqqq").report.help.unwrap();
        assert!(all.starts_with("there are: concepts, pool-file"), "{all}");
    }

    #[test]
    fn an_unknown_section_names_the_nearest() {
        let holds = Guide::of("holds").unwrap();
        assert!(holds.section("surgeBooting").is_some());
        let help = no_section(holds, "surgeboting").report.help.unwrap();
        assert!(help.contains("surgebooting"), "{help}");
    }
}
