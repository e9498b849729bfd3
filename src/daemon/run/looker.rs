//! Scans the disk on separate threads. A hung disk costs a thread, and nothing waits for it longer than a timeout.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::daemon::pool_sources::{Folder, FolderListing, Search};

/// Timeout of a scan; after this it counts as hung.
// 10 s: thousands of files on a slow mount take 1 s, and a client that applies a pool in the meantime waits for the
// scan.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Most threads that may hang at once.
// 4: one hung mount hangs one thread; more hung mounts need a person first.
const MOST_STUCK: usize = 4;

pub(super) struct Looker {
    longest: Duration,
    search: fn(&Search) -> FolderListing,
    stuck: Vec<HungLook>,
}

/// A hung scan and its path.
struct HungLook {
    path: Option<PathBuf>,
    thread: JoinHandle<FolderListing>,
}

impl Default for Looker {
    fn default() -> Self {
        Self { longest: LONGEST_LOOK, search: Search::run, stuck: Vec::new() }
    }
}

impl Looker {
    /// The current files on disk. `None`: the disk does not answer, and files stay as they were.
    pub async fn look(&mut self, folder: &Mutex<Folder>) -> Option<FolderListing> {
        self.stuck.retain(|stuck| !stuck.thread.is_finished());
        let mut search = folder.lock().unwrap_or_else(PoisonError::into_inner).search();
        search.stuck = self.stuck.iter().filter_map(|stuck| stuck.path.clone()).collect();
        if self.stuck.len() >= MOST_STUCK {
            search.stuck.extend(search.folder.clone());
        }
        let (run, at) = (self.search, search.at.clone());
        let mut thread = spawn_blocking(move || run(&search));
        match tokio::time::timeout(self.longest, &mut thread).await {
            Ok(found) => found
                .inspect_err(|_| {
                    tracing::error!(
                        "looking at the pool files failed; all pools go on as they were"
                    );
                })
                .ok(),
            Err(_) => {
                let path = at.lock().unwrap_or_else(PoisonError::into_inner).clone();
                tracing::error!(
                    path = path.as_ref().map(|path| path.display().to_string()),
                    "the disk does not respond; later scans skip this path until it does"
                );
                self.stuck.push(HungLook { path, thread });
                None
            }
        }
    }

    /// True if a scan hangs now.
    pub fn hangs(&self) -> bool {
        self.stuck.iter().any(|stuck| !stuck.thread.is_finished())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, OnceLock};

    use super::*;
    use crate::model::time::{Span, Time};

    type Disk = (Mutex<Sender<()>>, Mutex<Receiver<()>>);

    /// A hung disk that a test can release.
    fn disk() -> &'static Disk {
        static DISK: OnceLock<Disk> = OnceLock::new();
        DISK.get_or_init(|| {
            let (go_on, wait) = channel();
            (Mutex::new(go_on), Mutex::new(wait))
        })
    }

    /// The first file of the folder hangs, as on a mount whose server is gone.
    fn hangs_at_a(search: &Search) -> FolderListing {
        let path = search.folder.clone().unwrap().join("a.yaml");
        if !search.stuck.contains(&path) {
            *search.at.lock().unwrap() = Some(path);
            disk().1.lock().unwrap().recv().unwrap();
        }
        search.run()
    }

    const POOL: &str = "apiVersion: poolkeeper/v1\nkind: Pool\nname: NAME\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/NAME\nreplicas: {owner: pool, count: 1}\n";

    #[tokio::test]
    async fn a_path_that_hangs_is_left_out_and_the_others_are_read() {
        let path = std::env::temp_dir().join(format!("poolkeeper-looker-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        for name in ["a", "b"] {
            std::fs::write(path.join(format!("{name}.yaml")), POOL.replace("NAME", name)).unwrap();
        }
        let folder = Arc::new(Mutex::new(Folder::new(Some(path.clone()), Span::seconds(2))));
        let mut looker =
            Looker { search: hangs_at_a, longest: Duration::from_millis(50), stuck: Vec::new() };
        assert!(looker.look(&folder).await.is_none() && looker.hangs());
        let found = looker.look(&folder).await.unwrap();
        let look = |found| {
            let mut folder = folder.lock().unwrap();
            folder.found(found, Time::from_millis(0));
            let faults = folder.settled().faults;
            (folder.pools().count(), faults.iter().map(ToString::to_string).collect::<String>())
        };
        let (pools, faults) = look(found);
        assert!(
            pools == 1 && faults.contains("a.yaml") && faults.contains("does not answer"),
            "{pools} {faults}"
        );
        disk().0.lock().unwrap().send(()).unwrap();
        while looker.hangs() {
            tokio::task::yield_now().await;
        }
        looker.search = Search::run;
        let found = looker.look(&folder).await.unwrap();
        assert_eq!(look(found), (2, String::new()));
        std::fs::remove_dir_all(&path).unwrap();
    }
}
