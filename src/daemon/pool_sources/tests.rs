//! Results of a folder after each change to it.

use std::fs;

use super::*;
use crate::memory::Document;
use crate::model::time::Time;

/// Interval between scans.
const EVERY: Span = Span::seconds(2);

struct Place {
    path: PathBuf,
    folder: Folder,
    now: Time,
}

fn pool(name: &str, set: &str, count: u32) -> String {
    format!(
        "apiVersion: poolkeeper/v1\nkind: Pool\nname: {name}\nscaleSet: /subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/{set}\nreplicas: {{owner: pool, count: {count}}}\n"
    )
}

impl Place {
    fn new(test: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("poolkeeper-folder-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let now = Time::from_millis(1_800_000_000_000);
        Self { folder: Folder::new(Some(path.clone()), EVERY), path, now }
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path.join(file), text).unwrap();
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.path.join(file)).unwrap();
    }

    fn look(&mut self) -> FolderScan {
        self.look_after(EVERY)
    }

    fn look_after(&mut self, span: Span) -> FolderScan {
        self.now = self.now.plus(span);
        // Two writes within one tick of the disk's clock have equal stamps.
        for file in self.folder.files.values_mut() {
            file.stamp = None;
        }
        let found = self.folder.search().run();
        self.folder.found(found, self.now);
        self.folder.settled()
    }

    fn counts(&self) -> Vec<(String, u32)> {
        let all = self.folder.pools();
        all.map(|meant| (meant.policy.name.as_str().to_owned(), meant.policy.count)).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn of(names: &[(&str, u32)]) -> Vec<(String, u32)> {
    names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn a_change_is_told_once() {
    let mut place = Place::new("once");
    place.write("a.yaml", &pool("a", "a", 3));
    place.write(".hidden.yaml", "no pool");
    assert_eq!(place.look().set.len(), 1);
    let quiet = place.look();
    assert!(quiet.set.is_empty() && quiet.gone.is_empty() && !quiet.other_faults);
    place.write("a.yaml", &pool("a", "a", 4));
    assert_eq!(place.look().set[0].policy.count, 4);
    place.write("a.yaml", &format!("# a remark\n{}", pool("a", "a", 4)));
    assert!(place.look().set.is_empty(), "the same policy in other words");
}

#[test]
fn a_bad_file_says_nothing_new() {
    let mut place = Place::new("bad");
    place.write("a.yaml", &pool("a", "a", 3));
    place.write("b.yaml", &pool("b", "b", 3));
    place.look();
    place.write("a.yaml", &pool("a", "a", 3).replace("count", "cuont"));
    place.write("c.yaml", "name: [");
    let looked = place.look();
    assert_eq!((looked.set.len(), looked.gone.len(), looked.other_faults), (0, 0, true));
    assert_eq!(place.counts(), of(&[("a", 3), ("b", 3)]));
    let fault = looked.faults.iter().find(|fault| fault.code == Code::UnknownKey).unwrap();
    assert!(fault.to_string().contains("a.yaml:5:25: replicas.cuont"), "{fault}");
    assert!(!place.look().other_faults, "told once");
    place.write("a.yaml", &pool("a", "a", 5));
    assert_eq!(place.look().set.len(), 1);
    assert_eq!(place.counts(), of(&[("a", 5), ("b", 3)]));
}

#[test]
fn of_two_with_one_name_or_set_the_first_stays() {
    let mut place = Place::new("two");
    place.write("m.yaml", &pool("web", "web", 3));
    place.look();
    place.write("a.yaml", &pool("WEB", "other", 9));
    place.write("z.yaml", &pool("other", "Web", 9));
    let looked = place.look();
    assert_eq!(looked.faults.iter().filter(|fault| fault.code == Code::DuplicatePool).count(), 2);
    assert!(looked.faults[0].to_string().contains("m.yaml"), "{}", looked.faults[0]);
    assert_eq!(place.counts(), of(&[("web", 3)]));
    place.write("m.yaml", "kind: [");
    place.look();
    assert_eq!(place.counts(), of(&[("web", 3)]), "its claim stands while its file is bad");
}

#[test]
fn a_pool_moves_from_file_to_file_and_not_from_set_to_set() {
    let mut place = Place::new("moves");
    place.write("a.yaml", &pool("web", "web", 3));
    place.look();
    place.remove("a.yaml");
    place.write("b.yaml", &pool("web", "web", 4));
    let mut gone = 0;
    for _ in 0..3 {
        gone += place.look().gone.len();
    }
    assert_eq!((gone, place.counts()), (0, of(&[("web", 4)])));
    place.write("b.yaml", &pool("web", "elsewhere", 4));
    let looked = place.look();
    assert!(looked.faults[0].to_string().contains("another scale set"), "{:?}", looked.faults);
    assert!(place.folder.pools().all(|meant| meant.policy.scale_set.as_str().ends_with("/web")));
}

#[test]
fn only_what_stays_away_is_gone() {
    let mut place = Place::new("gone");
    place.write("a.yaml", &pool("a", "a", 3));
    place.look();
    let aside = place.path.with_extension("aside");
    fs::rename(&place.path, &aside).unwrap();
    for _ in 0..5 {
        let looked = place.look();
        assert!(
            looked.gone.is_empty() && looked.faults.len() == 1,
            "a folder that is not there says nothing"
        );
    }
    fs::rename(&aside, &place.path).unwrap();
    assert!(place.look().gone.is_empty());
    place.remove("a.yaml");
    assert!(place.look().gone.is_empty(), "it may be written again");
    assert!(place.look().gone.is_empty(), "two looks are not two of its own pace");
    assert_eq!(place.look().gone.len(), 1);
}

/// SIGHUPs cause many scans in one moment.
#[test]
fn a_file_is_missing_for_a_time_and_not_for_looks_alone() {
    let mut place = Place::new("storm");
    place.write("a.yaml", &pool("a", "a", 3));
    place.look();
    place.remove("a.yaml");
    for _ in 0..50 {
        assert!(place.look_after(Span::from_millis(10)).gone.is_empty());
    }
    place.write("a.yaml", &pool("a", "a", 3));
    assert!(place.look().gone.is_empty());
    place.remove("a.yaml");
    let gone: usize = (0..3).map(|_| place.look().gone.len()).sum();
    assert_eq!(gone, 1, "and its time begins anew");
}

#[test]
fn an_empty_file_is_a_fault_and_releases_nothing() {
    let mut place = Place::new("empty");
    place.write("a.yaml", &pool("a", "a", 3));
    place.look();
    for text in ["", "# nothing\n", "---\n---\n"] {
        place.write("a.yaml", text);
        let looked = place.look();
        assert!(looked.gone.is_empty(), "{text:?}");
        assert!(looked.faults.iter().any(|fault| fault.code == Code::Empty), "{:?}", looked.faults);
        assert_eq!(place.counts(), of(&[("a", 3)]));
    }
    place.write("a.yaml", &pool("a", "a", 4));
    assert_eq!((place.look().set.len(), place.counts()), (1, of(&[("a", 4)])));
}

#[test]
fn pools_that_vanish_together_wait_for_a_person() {
    let mut place = Place::new("vanish");
    let names = ["a", "b", "c", "d"];
    for name in names {
        place.write(&format!("{name}.yaml"), &pool(name, name, 1));
    }
    place.look();
    place.remove("a.yaml");
    let gone: usize = (0..4).map(|_| place.look().gone.len()).sum();
    assert_eq!(gone, 1, "one of four goes");
    for name in ["b", "c", "d"] {
        place.remove(&format!("{name}.yaml"));
    }
    let mut looked = FolderScan::default();
    for _ in 0..20 {
        looked = place.look();
        assert!(looked.gone.is_empty());
    }
    assert!(looked.faults.iter().all(|fault| fault.code == Code::Vanished));
    assert_eq!(looked.faults.len(), 3);
    assert!(place.folder.pools().all(|meant| matches!(meant.source, PoolSource::Missing(_))));
    // A person releases one, and then another; a pool that comes back is as before.
    place.folder.let_go(&PoolName::new("b"));
    assert_eq!(place.folder.settled().gone, [PoolName::new("b")]);
    place.write("c.yaml", &pool("c", "c", 1));
    let gone: Vec<PoolName> = (0..3).flat_map(|_| place.look().gone).collect();
    assert_eq!(gone, [PoolName::new("d")], "half is there again, so one may go");
    assert_eq!((place.counts(), place.look().faults), (of(&[("c", 1)]), vec![]));
    place.folder.let_go(&PoolName::new("c"));
    assert!(place.folder.settled().gone.is_empty(), "its file is there");
}

/// Every file is renamed.
#[test]
fn pools_that_move_to_other_files_are_not_gone() {
    let mut place = Place::new("renamed");
    for name in ["a", "b"] {
        place.write(&format!("{name}.yaml"), &pool(name, name, 1));
    }
    place.look();
    for name in ["a", "b"] {
        place.remove(&format!("{name}.yaml"));
        place.write(&format!("new-{name}.yaml"), &pool(name, name, 2));
    }
    let gone: usize = (0..5).map(|_| place.look().gone.len()).sum();
    assert_eq!((gone, place.counts()), (0, of(&[("a", 2), ("b", 2)])));
}

/// Reading a pipe blocks until it has a writer: a scan would never end.
#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_is_left_out_and_told() {
    let mut place = Place::new("pipe");
    place.write("web.yaml", &pool("web", "web", 3));
    let made = std::process::Command::new("mkfifo").arg(place.path.join("pipe.yaml")).status();
    assert!(made.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", place.path.join("zero.yaml")).unwrap();
    let looked = place.look();
    let told: Vec<String> = looked.faults.iter().map(ToString::to_string).collect();
    assert!(told.len() == 2 && told.iter().all(|fault| fault.contains("a pipe")), "{told:?}");
    assert_eq!(place.counts(), of(&[("web", 3)]));
    place.write("web.yaml", &pool("web", "web", 4));
    assert_eq!(place.look().set.len(), 1, "others are looked at all the same");
}

#[test]
fn the_name_of_a_file_makes_no_line_of_its_own() {
    let mut place = Place::new("lines");
    place.write("x\n2026 INFO forged.yaml", "kind: [");
    let told = place.look().faults[0].to_string();
    assert!(told.contains("x\\n2026 INFO") && !told.contains('\n'), "{told}");
}

#[cfg(unix)]
#[test]
fn a_link_that_is_swapped_is_a_change() {
    let mut place = Place::new("links");
    for (folder, count) in [("..1", 3), ("..2", 4)] {
        fs::create_dir(place.path.join(folder)).unwrap();
        fs::write(place.path.join(folder).join("web.yaml"), pool("web", "web", count)).unwrap();
    }
    let link =
        |to: &str, from: &str| std::os::unix::fs::symlink(to, place.path.join(from)).unwrap();
    link("..1", "..data");
    link("..data/web.yaml", "web.yaml");
    place.look();
    assert_eq!(place.counts(), of(&[("web", 3)]));
    std::os::unix::fs::symlink("..2", place.path.join("..new")).unwrap();
    fs::rename(place.path.join("..new"), place.path.join("..data")).unwrap();
    place.look();
    assert_eq!(place.counts(), of(&[("web", 4)]));
}

fn document(name: &str, set: &str, count: u32, revision: u64) -> Document {
    let (who, at) = ("ann".into(), Time::from_millis(0));
    let text = pool(name, set, count).into();
    Document { pool: PoolName::new(name), text, revision, who, at }
}

#[test]
fn of_a_file_and_a_document_the_first_stays() {
    let mut place = Place::new("documents");
    place.write("a.yaml", &pool("a", "a", 1));
    place.folder.take(&[document("b", "b", 1, 1)]);
    assert_eq!(place.look().faults, []);
    assert_eq!(place.counts(), of(&[("a", 1), ("b", 1)]));
    // Each claims what the other has.
    place.write("b.yaml", &pool("b", "b", 7));
    place.folder.take(&[document("b", "b", 1, 1), document("c", "A", 7, 2)]);
    let looked = place.look();
    let told: Vec<String> = looked.faults.iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("this name, applied over the API")), "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("this scale set, in ")), "{told:?}");
    assert_eq!(place.counts(), of(&[("a", 1), ("b", 1)]));
    // At a start neither was first: documents win over files, as before.
    let mut again = Folder::new(Some(place.path.clone()), EVERY);
    again.take(&[document("b", "b", 1, 1)]);
    let found = again.search().run();
    again.found(found, place.now);
    again.settled();
    assert!(
        again.pools().any(|meant| meant.policy.count == 1 && meant.source == PoolSource::Applied)
    );
    assert!(!again.pools().any(|meant| meant.policy.count == 7));
    // A removed pool makes room for a waiting one, without counting as a scan of files.
    place.folder.take(&[document("c", "c", 3, 3)]);
    place.remove("a.yaml");
    let settled = place.folder.settled();
    assert_eq!(settled.faults, []);
    assert_eq!(place.counts(), of(&[("a", 1), ("b", 7), ("c", 3)]));
    place.folder.take(&[document("c", "other", 4, 4)]);
    assert_eq!(place.folder.settled().faults.len(), 1, "another scale set");
    place.folder.take(&[document("c", "c", 5, 5)]);
    let settled = place.folder.settled();
    assert_eq!((settled.set.len(), settled.faults.len()), (1, 0));
    place.folder.take(&[]);
    assert_eq!(place.folder.settled().gone, [PoolName::new("c")]);
    let mut unread = document("d", "d", 1, 6);
    unread.text = "kind: Pond".into();
    place.folder.take(&[unread]);
    assert!(!place.folder.settled().faults.is_empty());
    assert_eq!(place.counts(), of(&[("a", 1), ("b", 7)]));
}

#[test]
fn a_metric_of_a_server_that_the_settings_lack_is_refused() {
    let mut place = Place::new("servers");
    let metric = |server: &str| {
        let profile = format!("{{name: load, metric: {{server: {server}, query: q, target: 1}}}}");
        let sized = format!("replicas:\n  min: 1\n  max: 2\n  profiles:\n  - {profile}\n");
        pool("a", "a", 3).replace("replicas: {owner: pool, count: 3}\n", &sized)
    };
    place.write("a.yaml", &metric("mian"));
    let told =
        |looked: FolderScan| looked.faults.iter().map(ToString::to_string).collect::<String>();
    let said = told(place.look());
    assert!(
        said.contains("the settings of the daemon have no metric server mian; they have none"),
        "{said}"
    );
    let path = place.path.clone();
    place.folder = Folder::new(Some(path), EVERY).with_names(OutsideNames {
        servers: ["main", "eu"].map(Box::from).into(),
        ..OutsideNames::default()
    });
    let said = told(place.look());
    let expected = "replicas.profiles[0].metric.server: the settings of the daemon have no metric server mian; they have main, eu; did you mean main?";
    assert!(said.contains("a.yaml:9:") && said.contains(expected), "{said}");
    assert_eq!(place.counts(), of(&[]));
    place.write("a.yaml", &metric("main"));
    assert_eq!((told(place.look()), place.folder.pools().count()), (String::new(), 1));
}
