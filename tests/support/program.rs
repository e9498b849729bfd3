//! Running the program where nobody watches.

use std::fs;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use serde_json::Value;

/// Where the program is run, so that paths in what it prints are the same everywhere.
pub const HOME: &str = env!("CARGO_MANIFEST_DIR");
pub const ROLLING: &str = "tests/cli/inputs/rolling.json";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Ended {
    /// The one JSON document that was answered.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Linux kills a program begun by `setpriv` together with the thread that began it, even if no destructor runs.
static DIES_WITH_US: LazyLock<bool> = LazyLock::new(|| {
    let tried = Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
});

pub fn command(args: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_poolkeeper");
    let mut command = if *DIES_WITH_US {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", program]);
        command
    } else {
        Command::new(program)
    };
    command.args(args).current_dir(HOME).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A program that runs, no longer than its test: a test that fails leaves no process behind.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn input(&mut self) -> ChildStdin {
        self.0.stdin.take().unwrap()
    }

    pub fn out(&mut self) -> BufReader<ChildStdout> {
        BufReader::new(self.0.stdout.take().unwrap())
    }

    pub fn err(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.0.stderr.take().unwrap())
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// The exit code, once it ended by itself.
    pub fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn finish(command: Command, input: &[u8]) -> Ended {
    let mut running = Running::start(command);
    let (mut stdin, out, err) = (running.input(), running.out(), running.err());
    thread::scope(|scope| {
        scope.spawn(move || match stdin.write_all(input) {
            // It may end without reading all of it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        });
        let err = scope.spawn(|| io::read_to_string(err).unwrap());
        let out = io::read_to_string(out).unwrap();
        Ended { out, err: err.join().unwrap(), code: running.code() }
    })
}

/// A place for a file of one suite's own.
pub fn file(suite: &str, name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(suite);
    fs::create_dir_all(&folder).unwrap();
    folder.join(name).display().to_string()
}

pub fn written(suite: &str, name: &str, bytes: &[u8]) -> String {
    let path = file(suite, name);
    fs::write(&path, bytes).unwrap();
    path
}
