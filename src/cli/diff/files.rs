//! The pool files of an argument list: all are read and checked, or none counts.

use std::path::PathBuf;

use crate::api::v1::node::MAX_BYTES;
use crate::api::v1::pool::PoolDocuments;
use crate::api::v1::problem::DocumentProblem;
use crate::cli::exit::CommandFailure;
use crate::cli::output::Shell;
use crate::cli::validate::walk;
use crate::model::policy::Policy;

/// A pool file without faults.
pub(in crate::cli) struct PoolFile {
    pub name: String,
    pub bytes: Vec<u8>,
    pub policies: Vec<Policy>,
}

/// Reads files and folders as `validate` does. One faulty file fails all.
pub(in crate::cli) fn read(
    paths: &[PathBuf],
    shell: &Shell,
) -> Result<Vec<PoolFile>, CommandFailure> {
    let (mut known, mut files) = (PoolDocuments::default(), Vec::new());
    let (mut first, mut faulty) = (None, 0_usize);
    for source in walk::files(paths) {
        let source = source.map_err(|(_, failure)| failure)?;
        let (name, bytes) = (source.name(), source.read(shell, MAX_BYTES)?);
        let (policies, faults) = known.read_file(&bytes, &name);
        if let Some(problem) = DocumentProblem::of(&faults) {
            faulty += 1;
            let file = source.file();
            first.get_or_insert_with(|| CommandFailure::bad_input(problem, file.as_deref()));
        }
        files.push(PoolFile { name, bytes, policies });
    }
    match first {
        None => Ok(files),
        Some(failure) if faulty == 1 => Err(failure),
        Some(failure) => {
            let help = failure.report.help.clone().map(|help| format!("{help}; "));
            let help = help.unwrap_or_default();
            Err(failure
                .help(format!("{help}{faulty} files have faults: `poolkeeper validate` shows all")))
        }
    }
}
