//! Pools as they are in the cloud now: which ones are meant, and one look at each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::Format;
use super::decide::{Decision, decide};
use super::exit::{Exit, Failure};
use super::shell::Shell;
use super::source::Source;
use super::term::Style;
use super::text::list;
use crate::api::v1::node::MAX_BYTES;
use crate::api::v1::pool::Pools;
use crate::api::v1::problem::Problem;
use crate::daemon::{BadSetId, House, Looked, set_id};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::{Draft, Owner, Policy};

/// How a pool is named: by its name, to who keeps it, or by the id of its scale set, to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    Pool(String),
    Set(ScaleSetId),
}

impl Named {
    pub fn read(text: &str) -> Result<Self, BadName> {
        if text.contains('/') {
            return set_id(text).map(Named::Set).map_err(BadName::Set);
        }
        if text.trim().is_empty() { Err(BadName::Empty) } else { Ok(Named::Pool(text.to_owned())) }
    }
}

/// A pool of a Poolkeeper that serves.
pub(super) fn pool_name(text: &str) -> Result<String, BadName> {
    match text {
        text if text.trim().is_empty() => Err(BadName::Empty),
        text if text.contains('/') => Err(BadName::Place),
        text => Ok(text.to_owned()),
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum BadName {
    #[error("a pool has a name")]
    Empty,
    #[error("a pool is named by its name; a file is given with --snapshot")]
    Place,
    #[error(transparent)]
    Set(BadSetId),
}

/// Names and ids apart; both at once would ask two who may not agree.
pub(super) fn split(named: &[Named]) -> Result<(Vec<&str>, Vec<ScaleSetId>), Failure> {
    let (mut names, mut sets) = (Vec::new(), Vec::new());
    for one in named {
        match one {
            Named::Pool(name) => names.push(name.as_str()),
            Named::Set(set) => sets.push(set.clone()),
        }
    }
    if !sets.is_empty() {
        no_names(&names)?;
    }
    Ok((names, sets))
}

/// Pools that are looked at in the cloud are not named by their names.
pub(super) fn no_names(names: &[&str]) -> Result<(), Failure> {
    let Some(name) = names.first() else { return Ok(()) };
    let say = format!("{name} is the name of a pool, and the others are looked at in the cloud");
    Err(Failure::usage(say)
        .help("name them all by name, or by pool file and /subscriptions/<id>/… alone"))
}

/// A pool to look at.
#[derive(Debug, Clone)]
pub(super) struct Meant {
    pub policy: Arc<Policy>,
    /// No file says how it is to be: it is judged by defaults, and keeps its size.
    pub by_default: bool,
}

/// The pools of these files; of them, or without files, those with these scale sets.
pub(super) fn meant(
    files: &[PathBuf],
    sets: &[ScaleSetId],
    shell: &Shell,
) -> Result<Vec<Meant>, Failure> {
    if files.is_empty() {
        return sets.iter().map(by_default).collect();
    }
    let (mut known, mut all) = (Pools::default(), Vec::new());
    for path in files {
        all.extend(read(path, &mut known, shell)?);
    }
    let of_file = |policy: Policy| Meant { policy: Arc::new(policy), by_default: false };
    let all: Vec<Meant> = all.into_iter().map(of_file).collect();
    if sets.is_empty() {
        return Ok(all);
    }
    let find = |set: &ScaleSetId| {
        let same = |meant: &&Meant| meant.policy.scale_set == *set;
        all.iter().find(same).cloned().ok_or_else(|| not_there(set, &all))
    };
    sets.iter().map(find).collect()
}

fn not_there(set: &ScaleSetId, all: &[Meant]) -> Failure {
    let has: Vec<&str> = all.iter().map(|meant| meant.policy.scale_set.as_str()).collect();
    let help = format!(
        "they have {}; without --pool-file it is judged by defaults",
        list(has.into_iter(), 3)
    );
    Failure::usage(format!("the pool files have no pool with the scale set {set}")).help(help)
}

fn read(path: &Path, known: &mut Pools, shell: &Shell) -> Result<Vec<Policy>, Failure> {
    let source = Source::new(path);
    let bytes = source.read(shell, MAX_BYTES)?;
    let file = source.file();
    let (policies, found) = known.read_bytes(&bytes, file.as_deref());
    if let Some(problem) = Problem::of(&found) {
        return Err(Failure::bad_input(problem, file.as_deref()));
    }
    if policies.is_empty() {
        let say = format!("{} holds no pool", source.name());
        return Err(Failure::new(Exit::Input, "badValue", say)
            .help("`poolkeeper validate` checks pool files"));
    }
    Ok(policies)
}

fn by_default(set: &ScaleSetId) -> Result<Meant, Failure> {
    let name = PoolName::new(set.as_str().rsplit('/').next().unwrap_or_default());
    let draft = Draft { owner: Owner::ScaleSet, ..Draft::with_defaults(name, set.clone()) };
    let policy = Policy::build(draft).map_err(|faults| {
        let say: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::new(Exit::Internal, "internal", say.join("; "))
    })?;
    Ok(Meant { policy: Arc::new(policy), by_default: true })
}

/// One look, and what it leads to.
pub(super) struct Seen {
    pub meant: Meant,
    pub looked: Looked,
    pub decision: Decision,
}

/// How several pools ended: the worst of it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Worst(Option<Exit>);

impl Worst {
    pub fn note(&mut self, exit: Exit) {
        // What was not looked at at all weighs more than what was, and refused.
        const ORDER: [Exit; 8] = [
            Exit::Done,
            Exit::Findings,
            Exit::Refused,
            Exit::NotFound,
            Exit::NotPermitted,
            Exit::Unreachable,
            Exit::Input,
            Exit::Internal,
        ];
        let rank = |exit: Exit| ORDER.iter().position(|known| *known == exit);
        let now = self.0.unwrap_or(Exit::Done);
        self.0 = Some(if rank(exit) > rank(now) { exit } else { now });
    }

    pub fn exit(self) -> Exit {
        self.0.unwrap_or(Exit::Done)
    }
}

/// Looks at each pool and shows it, one after the other. One that cannot be looked at keeps none of the others from it.
pub(super) async fn each(
    house: &House,
    pools: Vec<Meant>,
    shell: &mut Shell,
    mut show: impl AsyncFnMut(&House, &mut Shell, &Seen) -> Result<(), Failure>,
) -> Result<Exit, Failure> {
    house.enter().await?;
    let (mut worst, alone) = (Worst::default(), pools.len() == 1);
    let mut shown = false;
    for meant in pools {
        let seen = look(house, meant, shell).await;
        if shown && seen.is_ok() && shell.format == Format::Table {
            shell.line("")?;
        }
        shown |= seen.is_ok();
        let ended = match seen {
            Ok(seen) => show(house, shell, &seen).await.map(|()| seen.decision.exit()),
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(exit) => worst.note(exit),
            Err(failure) if alone || failure.is_silent() => return Err(failure),
            Err(failure) => {
                shell.flush()?;
                worst.note(shell.fail(&failure));
            }
        }
        shell.flush()?;
    }
    Ok(worst.exit())
}

async fn look(house: &House, meant: Meant, shell: &Shell) -> Result<Seen, Failure> {
    let looked = house.look(&meant.policy).await?;
    for gap in &looked.gaps {
        let name = looked.snapshot.policy.name.as_str();
        shell.say(Style::Yellow, "not seen", &format!("{name}: {}: {}", gap.what, gap.why));
    }
    let decision = decide(&looked.snapshot)?;
    Ok(Seen { meant, looked, decision })
}

/// One JSON document is of one pool.
pub(super) fn check_format(shell: &Shell, pools: &[Meant], command: &str) -> Result<(), Failure> {
    if shell.format == Format::Json && pools.len() != 1 {
        let say = format!("{command} answers one document a pool, and there are {}", pools.len());
        return Err(
            Failure::usage(say).help("use --output ndjson, a line a pool, or name one scale set")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_end_is_told() {
        let of = |exits: &[Exit]| {
            let mut worst = Worst::default();
            for exit in exits {
                worst.note(*exit);
            }
            worst.exit()
        };
        assert_eq!(of(&[]), Exit::Done);
        assert_eq!(of(&[Exit::Done, Exit::NotFound, Exit::Refused]), Exit::NotFound);
        assert_eq!(of(&[Exit::Unreachable, Exit::NotPermitted]), Exit::Unreachable);
    }

    #[test]
    fn a_set_without_a_file_keeps_its_size() {
        let meant = by_default(&ScaleSetId::new("/a/b/web")).unwrap();
        assert_eq!(meant.policy.name.as_str(), "web");
        assert!(meant.by_default && meant.policy.owner == Owner::ScaleSet);
    }
}
