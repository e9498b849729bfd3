//! One command as a process group of its own, of which nothing is left in the end.

use std::io::{self, PipeReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, waitid,
    waitpgid,
};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::output::Output;

/// From TERM to KILL, and from KILL to the end: together less than the 2 s that a measurement may take longer than its
/// time limit.
const GRACE: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_millis(500);

/// A command that runs. Dropped, it is killed.
#[derive(Debug)]
pub(super) struct RunningCommand {
    group: ProcessGroup,
    pub(super) output: Output,
    /// Awakes when a child of this process ends; which one, the system knows.
    ends: unix::Signal,
}

impl RunningCommand {
    /// Keeps the place until all its processes have ended. Dropped, it kills what it has started.
    pub(super) async fn start(command: Command, place: OwnedSemaphorePermit) -> io::Result<Self> {
        // It is there before the command is, so it misses no end.
        let ends = unix::signal(SignalKind::child())?;
        // A thread of its own: a program on a file system that hangs holds the thread that starts it.
        let spawn = tokio::task::spawn_blocking(move || ProcessGroup::spawn(command, place));
        let (group, pipe) = spawn.await.map_err(io::Error::other)??;
        let output = Output::new(Receiver::from_owned_fd(pipe.into())?);
        Ok(Self { group, output, ends })
    }

    /// Completes when the command has ended, even if a process that it has started has not. May be dropped and
    /// called again.
    pub(super) async fn ended(&mut self) {
        while !self.group.has_ended() {
            tokio::select! {
                _ = self.ends.recv() => {}
                () = self.output.read(), if self.output.is_open => {}
            }
        }
    }

    /// Lets it end by itself, for a short time.
    pub(super) async fn terminate(&mut self) {
        self.group.send(Signal::TERM);
        // What is left afterwards is killed.
        let _ = timeout(GRACE, self.ended()).await;
    }

    /// Kills what is left of it. `None`: how it ended is not known.
    pub(super) async fn kill(&mut self) -> Option<WaitStatus> {
        self.group.send(Signal::KILL);
        let reaped = async {
            while !self.group.reap() {
                self.ends.recv().await;
            }
        };
        // A process that the kernel cannot kill is left to a thread.
        let _ = timeout(LAST, reaped).await;
        self.output.drain();
        self.group.status
    }
}

/// The processes of a command, except those that leave the group by themselves.
#[derive(Debug)]
struct ProcessGroup {
    /// The first process, and the name of the group. It is not given to another process before `reap`.
    leader: Pid,
    /// How the first process ended.
    status: Option<WaitStatus>,
    is_empty: bool,
    place: Option<OwnedSemaphorePermit>,
}

impl ProcessGroup {
    fn spawn(mut command: Command, place: OwnedSemaphorePermit) -> io::Result<(Self, PipeReader)> {
        let (pipe, writer) = io::pipe()?;
        // All other descriptors close at exec: the standard library and tokio open none without that flag.
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = command.current_dir("/").process_group(0).spawn()?;
        let leader = Pid::from_child(&child);
        Ok((Self { leader, status: None, is_empty: false, place: Some(place) }, pipe))
    }

    /// Leaves the process a zombie, so that the name of the group stays ours.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.leader), look), Ok(None) | Err(Errno::INTR))
    }

    fn send(&self, signal: Signal) {
        if !self.is_empty {
            // It fails if no process is left, or if those that are left have other privileges than ours.
            let _ = kill_process_group(self.leader, signal);
        }
    }

    /// Reaps those that have ended: the first process, and its orphans if they come to us, as to the first process of a
    /// container. True if none is left.
    fn reap(&mut self) -> bool {
        while !self.is_empty {
            match waitpgid(self.leader, WaitOptions::NOHANG) {
                Ok(Some((of, status))) if of == self.leader => self.status = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => self.is_empty = true,
            }
        }
        self.is_empty
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if self.is_empty {
            return;
        }
        self.send(Signal::KILL);
        let (leader, place) = (self.leader, self.place.take());
        let reap = move || {
            while matches!(waitpgid(leader, WaitOptions::empty()), Ok(_) | Err(Errno::INTR)) {}
            drop(place);
        };
        // Without a thread they are dead too, but stay zombies.
        let _ = std::thread::Builder::new().name("gate-reaper".to_owned()).spawn(reap);
    }
}
