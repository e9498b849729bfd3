//! Where documents are read from: a file, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};

use super::exit::CommandFailure;
use super::output::Shell;
use super::term::Style;

/// Read buffer: few system calls, little memory.
const BUFFER: usize = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSource {
    Stdin,
    File(PathBuf),
}

impl SnapshotSource {
    pub fn new(name: &Path) -> SnapshotSource {
        if name.as_os_str() == "-" {
            SnapshotSource::Stdin
        } else {
            SnapshotSource::File(name.to_owned())
        }
    }

    /// The name for messages.
    pub fn name(&self) -> String {
        match self {
            SnapshotSource::Stdin => "standard input".to_owned(),
            SnapshotSource::File(path) => path.display().to_string(),
        }
    }

    /// The file name, unless the source is standard input.
    pub fn file(&self) -> Option<String> {
        match self {
            SnapshotSource::Stdin => None,
            SnapshotSource::File(path) => Some(path.display().to_string()),
        }
    }

    pub fn open(&self, shell: &Shell) -> Result<Box<dyn BufRead>, CommandFailure> {
        match self {
            SnapshotSource::Stdin => {
                if io::stdin().is_terminal() {
                    shell.say(Style::Cyan, "reading", "standard input; end it with Ctrl-D");
                }
                Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin())))
            }
            SnapshotSource::File(path) => {
                let file = File::open(path).map_err(|error| self.unreadable(&error))?;
                Ok(Box::new(BufReader::with_capacity(BUFFER, file)))
            }
        }
    }

    /// Reads all of it, up to `most` bytes plus one; the extra byte tells the caller that it is too long.
    pub fn read(&self, shell: &Shell, most: usize) -> Result<Vec<u8>, CommandFailure> {
        let mut bytes = Vec::new();
        let mut limited = self.open(shell)?.take(most as u64 + 1);
        limited.read_to_end(&mut bytes).map_err(|error| self.unreadable(&error))?;
        Ok(bytes)
    }

    pub fn unreadable(&self, error: &io::Error) -> CommandFailure {
        CommandFailure::unreadable(&self.name(), error)
    }
}

/// Reads lines into one buffer. Of a line longer than `most`, keeps one byte more than that, which shows that it is too
/// long.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    most: usize,
}

impl<R: BufRead> Lines<R> {
    pub fn new(reader: R, most: usize) -> Self {
        Self { reader, buffer: Vec::new(), most }
    }

    /// The next line, without its line ending; `None` after the last.
    pub fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.clear();
        let mut any = false;
        loop {
            let piece = match self.reader.fill_buf() {
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if piece.is_empty() {
                break;
            }
            any = true;
            let end = piece.iter().position(|byte| *byte == b'\n');
            let (text, _) = piece.split_at(end.unwrap_or(piece.len()));
            let room = (self.most + 1).saturating_sub(self.buffer.len());
            self.buffer.extend_from_slice(text.get(..room).unwrap_or(text));
            let used = text.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(any.then_some(self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, most: usize) -> Vec<String> {
        // A small buffer, so that lines arrive in pieces.
        let mut lines = Lines::new(BufReader::with_capacity(3, text.as_bytes()), most);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(String::from_utf8(line.to_vec()).unwrap());
        }
        found
    }

    #[test]
    fn lines_come_one_by_one_with_or_without_their_ends() {
        assert_eq!(lines("", 9), Vec::<String>::new());
        assert_eq!(lines("one\ntwo\r\n\nlast", 9), ["one", "two", "", "last"]);
        assert_eq!(lines("\n", 9), [""]);
    }

    #[test]
    fn of_long_lines_only_the_start_is_kept() {
        assert_eq!(lines("123456789\nab\n", 4), ["12345", "ab"]);
    }
}
