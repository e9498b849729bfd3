//! THE MANUAL: one Markdown file for each topic. `poolkeeper guide` prints it, a repository shows it, and so does the
//! page of [`GUIDES`].
//!
//! Never here: a rule. A guide describes what other modules do; tests compare its tables with them. Begin with
//! [`GUIDES`].

/// A topic of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guide {
    pub topic: &'static str,
    /// One sentence for the list of topics.
    pub about: &'static str,
    pub text: &'static str,
}

macro_rules! guides {
    ($($topic:literal $about:literal;)*) => {
        /// All topics, in the order in which to read them.
        ///
        $(#[doc = include_str!(concat!($topic, ".md"))])*
        pub const GUIDES: &[Guide] = &[$(Guide {
            topic: $topic,
            about: $about,
            text: include_str!(concat!($topic, ".md")),
        }),*];
    };
}

guides! {
    "concepts" "Pools, machines, revisions, rollouts, holds, and how to read a plan.";
    "pool-file" "Every key of a pool file, with its default.";
    "commands" "What each command does, its environment, and the exit codes.";
    "operations" "Install, back up, upgrade, stand by, and what to do when something is wrong.";
    "holds" "Every reason to wait, and what to do about it.";
    "metrics" "Every metric and every alert.";
    "api" "The HTTP API: requests, tokens, roles, limits.";
    "security" "What is guarded against, and what is left to you.";
    "turn" "What one turn of the loop does, step by step.";
    "decisions" "How Poolkeeper is built, and why.";
    "dependencies" "The crates that it builds on, and why.";
    "contributing" "The source, its rules and its tests.";
    "changes" "What users see change between versions.";
}

impl Guide {
    pub fn of(topic: &str) -> Option<&'static Guide> {
        GUIDES.iter().find(|guide| guide.topic == topic)
    }

    /// One section, from its heading to the next heading of its level. The anchor is that of a link, in any case.
    pub fn section(&self, name: &str) -> Option<String> {
        let mut lines = self.text.lines();
        let is_named =
            |line: &&str| heading(line).is_some_and(|(_, text)| anchor(text) == anchor(name));
        let first = lines.by_ref().find(is_named)?;
        let (level, _) = heading(first)?;
        let inside = lines.take_while(|line| heading(line).is_none_or(|(other, _)| other > level));
        // The anchor of the next section stands before its heading.
        let mut section: Vec<&str> = std::iter::once(first).chain(inside).collect();
        while section.last().is_some_and(|line| line.is_empty() || line.starts_with('<')) {
            section.pop();
        }
        Some(section.join("\n") + "\n")
    }

    /// The headings of the sections.
    pub fn headings(&self) -> impl Iterator<Item = &'static str> {
        self.text.lines().filter_map(heading).map(|(_, text)| text)
    }
}

/// The level and the text of a heading. A remark in a block of code has one `#`, as has the title of a guide.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?;
    (level > 1).then_some((level, text))
}

/// The anchor that a web page gives to a heading.
pub fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# T\n\n## One\n\na\n\n### Inner\n\nb\n\n<a id=\"two\"></a>\n## Two, or `x`\n\n# c\n";
    const GUIDE: Guide = Guide { topic: "t", about: "About.", text: TEXT };

    #[test]
    fn a_section_ends_where_the_next_of_its_level_begins() {
        let of = |name: &str| GUIDE.section(name);
        assert_eq!(of("one").as_deref(), Some("## One\n\na\n\n### Inner\n\nb\n"));
        assert_eq!(of("inner").as_deref(), Some("### Inner\n\nb\n"));
        assert_eq!(of("two-or-x").as_deref(), Some("## Two, or `x`\n\n# c\n"));
        assert_eq!(of("t"), None);
        assert_eq!(GUIDE.headings().collect::<Vec<_>>(), ["One", "Inner", "Two, or `x`"]);
    }

    #[test]
    fn every_topic_begins_with_its_title_and_has_a_sentence() {
        for guide in GUIDES {
            assert!(guide.text.starts_with("# "), "{}", guide.topic);
            assert!(guide.about.ends_with('.') && Guide::of(guide.topic) == Some(guide));
        }
    }
}
