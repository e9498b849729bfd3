//! Files that a command writes: whole, or not at all.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The permissions of a file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// Those of the file that is replaced, or those of any new file.
    AsBefore,
    /// Only the owner reads and writes it; its folder is made.
    OnlyOwner,
}

/// Replaces the content of a file at once: a reader, or a crash, meets the old content or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8], access: FileAccess) -> io::Result<()> {
    // The link stays, and the file that it names is replaced.
    let path = match fs::canonicalize(path) {
        Ok(path) => path,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    match fs::metadata(&path) {
        Ok(about) if about.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        // A device or a pipe has no content to keep.
        Ok(about) if !about.is_file() => return fs::write(&path, bytes),
        _ => {}
    }
    if let (FileAccess::OnlyOwner, Some(folder)) = (access, path.parent()) {
        fs::create_dir_all(folder)?;
    }
    let beside = beside(&path);
    let written = write(&beside, &path, bytes, access).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The first error counts.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A name in the same folder that no other process uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

fn write(beside: &Path, path: &Path, bytes: &[u8], access: FileAccess) -> io::Result<()> {
    let mut file = create(beside, access)?;
    if access == FileAccess::AsBefore
        && let Ok(before) = fs::metadata(path)
    {
        file.set_permissions(before.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(unix)]
fn create(path: &Path, access: FileAccess) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if access == FileAccess::OnlyOwner {
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(not(unix))]
fn create(path: &Path, _: FileAccess) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let folder = std::env::temp_dir().join(format!("poolkeeper-file-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("web.yaml"), folder.join("link.yaml"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        replace(&link, b"new", FileAccess::AsBefore).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // No temporary file can be made there, so nothing is written.
        let taken = beside(&fs::canonicalize(&path).unwrap());
        fs::create_dir(&taken).unwrap();
        replace(&path, b"newer", FileAccess::AsBefore).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        fs::remove_dir(&taken).unwrap();
        replace(&path, b"mine", FileAccess::OnlyOwner).unwrap();
        assert_eq!(mode(&path), 0o600);
        let deep = folder.join("a/b/client.yaml");
        replace(&deep, b"x", FileAccess::OnlyOwner).unwrap();
        assert_eq!((fs::read_to_string(&deep).unwrap().as_str(), mode(&deep)), ("x", 0o600));
        let is_folder = replace(&folder, b"x", FileAccess::AsBefore).unwrap_err();
        assert_eq!(is_folder.kind(), ErrorKind::IsADirectory);
        replace(Path::new("/dev/null"), b"x", FileAccess::AsBefore).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.count(), 3, "no temporary file stays");
        fs::remove_dir_all(&folder).unwrap();
    }
}
