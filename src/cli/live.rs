//! Pools as they are in the cloud now: selects them, and reads each once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::decide::decide;
use super::exit::{CommandFailure, Exit};
use super::output::{OutputFormat, Shell};
use super::source::SnapshotSource;
use super::term::Style;
use super::text::list;
use crate::api::v1::node::MAX_BYTES;
use crate::api::v1::pool::PoolDocuments;
use crate::api::v1::problem::DocumentProblem;
use crate::daemon::{BadSetId, CloudReader, CloudReading, set_id};
use crate::model::ids::{PoolName, ScaleSetId};
use crate::model::policy::{Draft, Owner, Policy};
use crate::reconcile::DecisionOutcome;

/// How an argument identifies a pool: by its name, on a Poolkeeper server, or by the id of its scale set, in the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TargetArg {
    Pool(String),
    Set(ScaleSetId),
}

impl TargetArg {
    pub fn read(text: &str) -> Result<Self, BadName> {
        if text.contains('/') {
            return set_id(text).map(TargetArg::Set).map_err(BadName::Set);
        }
        if text.trim().is_empty() {
            Err(BadName::Empty)
        } else {
            Ok(TargetArg::Pool(text.to_owned()))
        }
    }
}

/// Parses the name of a pool on a Poolkeeper server.
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

/// Separates names from ids. Rejects both at once: the server and the cloud may disagree.
pub(super) fn split(named: &[TargetArg]) -> Result<(Vec<&str>, Vec<ScaleSetId>), CommandFailure> {
    let (mut names, mut sets) = (Vec::new(), Vec::new());
    for one in named {
        match one {
            TargetArg::Pool(name) => names.push(name.as_str()),
            TargetArg::Set(set) => sets.push(set.clone()),
        }
    }
    if !sets.is_empty() {
        no_names(&names)?;
    }
    Ok((names, sets))
}

/// Rejects pool names where pools are read from the cloud.
pub(super) fn no_names(names: &[&str]) -> Result<(), CommandFailure> {
    let Some(name) = names.first() else { return Ok(()) };
    let say = format!("{name} is the name of a pool, and the others are read from Azure");
    Err(CommandFailure::usage(say)
        .help("name them all by name, or by pool file and /subscriptions/<id>/… alone"))
}

/// A pool to read.
#[derive(Debug, Clone)]
pub(super) struct Targets {
    pub policy: Arc<Policy>,
    /// There is no pool file: the pool uses the default policy and keeps its size.
    pub by_default: bool,
}

/// The pools of these files. Scale set ids select among them; without files, each id is a pool with the default policy.
pub(super) fn meant(
    files: &[PathBuf],
    sets: &[ScaleSetId],
    shell: &Shell,
) -> Result<Vec<Targets>, CommandFailure> {
    if files.is_empty() {
        return sets.iter().map(by_default).collect();
    }
    let (mut known, mut all) = (PoolDocuments::default(), Vec::new());
    for path in files {
        all.extend(read(path, &mut known, shell)?);
    }
    let of_file = |policy: Policy| Targets { policy: Arc::new(policy), by_default: false };
    let all: Vec<Targets> = all.into_iter().map(of_file).collect();
    if sets.is_empty() {
        return Ok(all);
    }
    let find = |set: &ScaleSetId| {
        let same = |meant: &&Targets| meant.policy.scale_set == *set;
        all.iter().find(same).cloned().ok_or_else(|| not_there(set, &all))
    };
    sets.iter().map(find).collect()
}

fn not_there(set: &ScaleSetId, all: &[Targets]) -> CommandFailure {
    let has: Vec<&str> = all.iter().map(|meant| meant.policy.scale_set.as_str()).collect();
    let help = format!(
        "they have {}; without --pool-file it is judged by defaults",
        list(has.into_iter(), 3)
    );
    CommandFailure::usage(format!("the pool files have no pool with the scale set {set}"))
        .help(help)
}

fn read(
    path: &Path,
    known: &mut PoolDocuments,
    shell: &Shell,
) -> Result<Vec<Policy>, CommandFailure> {
    let source = SnapshotSource::new(path);
    let bytes = source.read(shell, MAX_BYTES)?;
    let file = source.file();
    let (policies, found) = known.read_bytes(&bytes, file.as_deref());
    if let Some(problem) = DocumentProblem::of(&found) {
        return Err(CommandFailure::bad_input(problem, file.as_deref()));
    }
    if policies.is_empty() {
        let say = format!("{} holds no pool", source.name());
        return Err(CommandFailure::new(Exit::Input, "badValue", say)
            .help("`poolkeeper validate` checks pool files"));
    }
    Ok(policies)
}

fn by_default(set: &ScaleSetId) -> Result<Targets, CommandFailure> {
    let name = PoolName::new(set.as_str().rsplit('/').next().unwrap_or_default());
    let draft = Draft { owner: Owner::ScaleSet, ..Draft::with_defaults(name, set.clone()) };
    let policy = Policy::build(draft).map_err(|faults| {
        let say: Vec<String> = faults.iter().map(ToString::to_string).collect();
        CommandFailure::new(Exit::Internal, "internal", say.join("; "))
    })?;
    Ok(Targets { policy: Arc::new(policy), by_default: true })
}

/// One read of a pool, and the decision it leads to.
pub(super) struct LiveSet {
    pub meant: Targets,
    pub looked: CloudReading,
    pub decision: DecisionOutcome,
}

/// The worst exit code of several pools.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Worst(Option<Exit>);

impl Worst {
    pub fn note(&mut self, exit: Exit) {
        // A pool that could not be read is worse than a pool whose plan the judge refused.
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

/// Reads each pool and shows it, one after another. A pool that cannot be read does not stop the others.
pub(super) async fn each(
    house: &CloudReader,
    pools: Vec<Targets>,
    shell: &mut Shell,
    mut show: impl AsyncFnMut(&CloudReader, &mut Shell, &LiveSet) -> Result<(), CommandFailure>,
) -> Result<Exit, CommandFailure> {
    house.enter().await?;
    let (mut worst, alone) = (Worst::default(), pools.len() == 1);
    let mut shown = false;
    for meant in pools {
        let seen = look(house, meant, shell).await;
        if shown && seen.is_ok() && shell.format == OutputFormat::Table {
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

async fn look(
    house: &CloudReader,
    meant: Targets,
    shell: &Shell,
) -> Result<LiveSet, CommandFailure> {
    let looked = house.look(&meant.policy).await?;
    for gap in &looked.gaps {
        let name = looked.snapshot.policy.name.as_str();
        shell.say(Style::Yellow, "not seen", &format!("{name}: {}: {}", gap.what, gap.why));
    }
    let decision = decide(&looked.snapshot)?;
    Ok(LiveSet { meant, looked, decision })
}

/// Rejects `--output json` for anything but one pool: a JSON document describes one pool.
pub(super) fn check_format(
    shell: &Shell,
    pools: &[Targets],
    command: &str,
) -> Result<(), CommandFailure> {
    if shell.format == OutputFormat::Json && pools.len() != 1 {
        let say = format!("{command} answers one document a pool, and there are {}", pools.len());
        return Err(CommandFailure::usage(say)
            .help("use --output ndjson, a line a pool, or name one scale set"));
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
