//! A fault with its line and a caret, as compilers show it.

use annotate_snippets::renderer::DEFAULT_TERM_WIDTH;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::api::v1::diagnostic::Diagnostic;
use crate::cli::term::Term;
use crate::cli::text::{plain, wrap};

/// Characters of a line that are drawn on each side of the caret, at most. Drawing costs time for each of them, and a
/// file of one long line may have thousands of faults.
const DRAWN: usize = 1_000;
const ERROR: &str = "error: ";

/// The lines of a file, as the reader of YAML counts them.
pub(in crate::cli) fn lines(text: &str) -> Vec<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r')).collect()
}

/// Draws a fault of the file `name` with these lines.
pub(in crate::cli) fn draw(fault: &Diagnostic, name: &str, lines: &[&str], term: Term) -> String {
    let fold = |text: &str, before: usize| {
        let room = term.width.map(|wide| wide.saturating_sub(before));
        wrap(text, room).join("\n")
    };
    let (line, column) = (fault.line as usize, fault.column as usize);
    let before = line.to_string().len() + " = allowed: ".len();
    let mut notes = Vec::new();
    if !fault.allowed.is_empty() {
        let allowed = Level::NOTE.with_name("allowed");
        notes.push(allowed.message(fold(&fault.allowed.join(", "), before)));
    }
    let nearest = fault.nearest.as_ref().map(|nearest| format!("did you mean {nearest}?"));
    for help in nearest.iter().chain(&fault.help) {
        notes.push(Level::HELP.message(fold(help, before)));
    }
    let title = match fault.key.as_str() {
        "" => fold(&fault.message, ERROR.len()),
        key => fold(&format!("{key}: {}", fault.message), ERROR.len()),
    };
    let title = |place: &str| Level::ERROR.primary_title(format!("{title}{place}"));
    let shown =
        line.checked_sub(1).and_then(|at| lines.get(at)).filter(|line| !line.trim().is_empty());
    let group = match shown.map(|shown| around(shown, column.saturating_sub(1))) {
        None => title("").element(Origin::path(name).line(line).char_column(column)),
        Some((text, caret, whole)) => {
            let end = text[caret..].chars().next().map_or(caret, |c| caret + c.len_utf8());
            let snippet = Snippet::source(text).line_start(line);
            let snippet = snippet.annotation(AnnotationKind::Primary.span(caret..end));
            // The crate would count the column from the beginning of what is drawn.
            let place = format!("\nat {name}:{line}:{column}");
            if whole {
                title("").element(snippet.path(name))
            } else {
                title(&place).element(snippet)
            }
        }
    };
    let renderer = if term.colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(term.width.unwrap_or(DEFAULT_TERM_WIDTH));
    renderer.render(&[group.elements(notes)])
}

/// The part of a line that is drawn, the caret's place in it, and whether the line's beginning is there.
fn around(line: &str, at: usize) -> (String, usize, bool) {
    let from = at.saturating_sub(DRAWN);
    let part: String = line.chars().skip(from).take(2 * DRAWN).collect();
    // The crate draws tabs itself; of control characters it knows only some.
    let text = part.split('\t').map(plain).collect::<Vec<_>>().join("\t");
    let caret = text.char_indices().nth(at - from).map_or(text.len(), |(at, _)| at);
    (text, caret, from == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1::diagnostic::{Code, TextPlace};
    use crate::cli::text::width;

    fn drawn(text: &str, line: u32, column: u32, wide: Option<usize>) -> String {
        let fault = Diagnostic::new(TextPlace { line, column }, "key", Code::BadValue, "is wrong");
        let term = Term { width: wide, ..Term::PLAIN };
        draw(&fault.help("mend it"), "a.yaml", &lines(text), term)
    }

    /// Columns between the beginning of the drawn line and what the caret points at.
    fn pointed(page: &str) -> (usize, usize, char) {
        let rows: Vec<&str> = page.lines().collect();
        let at = rows.iter().position(|row| row.trim_end().ends_with('^')).unwrap();
        let caret = width(rows[at].split('^').next().unwrap());
        let mut before = 0;
        for c in rows[at - 1].chars() {
            if before == caret {
                return (at, caret, c);
            }
            before += width(c.encode_utf8(&mut [0; 4]));
        }
        (at, caret, '\n')
    }

    #[test]
    fn a_fault_is_drawn_as_compilers_do() {
        let page = drawn("a: 1\r\nkey: \"x\"\r\nb: 2\n", 2, 6, None);
        let expected = "\
error: key: is wrong
 --> a.yaml:2:6
  |
2 | key: \"x\"
  |      ^
  |
  = help: mend it";
        assert_eq!(page, expected);
        let empty = drawn("\n\n", 1, 1, None);
        assert_eq!(empty, "error: key: is wrong\n--> a.yaml:1:1\n = help: mend it");
    }

    #[test]
    fn the_caret_stands_under_its_character() {
        for (text, column) in [
            ("\tkey: X", 7),
            ("日本: X", 5),
            ("\u{feff}é: X", 4),
            ("e\u{301}\u{200d}\u{200b}: X", 7),
            ("a\u{1b}[2J\u{9b}: X", 9),
        ] {
            let page = drawn(text, 1, column, None);
            assert_eq!(pointed(&page).2, 'X', "{page}");
            assert!(page.contains(&format!("a.yaml:1:{column}\n")), "{page}");
        }
        assert_eq!(pointed(&drawn("key:", 1, 5, None)).2, '\n', "just after the line");
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        for before in [0, 30, 200, 999, 1_001, 300_000] {
            let text = format!("{}X{}", "日 ".repeat(before), "b ".repeat(200_000));
            let column = 2 * before as u32 + 1;
            let page = drawn(&text, 1, column, Some(60));
            assert_eq!(pointed(&page).2, 'X', "{before}: {page}");
            assert!(page.lines().all(|line| width(line) <= 60), "{before}: {page}");
            assert!(page.contains(&format!("a.yaml:1:{column}\n")), "{before}: {page}");
        }
    }

    #[test]
    fn nothing_in_a_file_steers_the_terminal() {
        let all: String =
            (0..0x2070).filter_map(char::from_u32).filter(|c| !"\n\r".contains(*c)).collect();
        let fault = Diagnostic::new(
            TextPlace { line: 1, column: 3 },
            "\u{1b}",
            Code::BadValue,
            all.clone(),
        );
        let page = draw(&fault, &plain("\u{9b}.yaml"), &lines(&all), Term::PLAIN);
        assert!(page.split('\n').all(|line| plain(line) == line), "{page:?}");
        let coloured =
            draw(&fault, "a.yaml", &lines("ab\u{1b}[1mc"), Term { colour: true, ..Term::PLAIN });
        assert!(
            coloured.contains("\u{1b}[0m") && coloured.contains("ab\u{fffd}[1mc"),
            "{coloured:?}"
        );
    }
}
