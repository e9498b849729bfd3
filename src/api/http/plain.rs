//! Reads files that settings name, so that none of them can block the daemon.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Largest size that is read of such a file.
// 1 MiB: a certificate chain has some kilobytes, and a thousand tokens about a hundred.
const MOST: u64 = 1 << 20;

/// What users other than the owner may not do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Write it: otherwise anyone could change its content.
    OnlyOwnerWrites,
    /// Write it, or read it without being in its group: it is a secret.
    Secret,
}

impl Rights {
    const fn forbids(self) -> u32 {
        match self {
            Rights::OnlyOwnerWrites => 0o022,
            Rights::Secret => 0o026,
        }
    }
}

/// The bytes of a plain file whose permissions satisfy `rights`.
pub fn read_guarded(path: &Path, rights: Rights) -> io::Result<Vec<u8>> {
    let mode = mode(&fs::metadata(path)?);
    let too_much = mode & rights.forbids();
    if too_much == 0 {
        return read_plain(path);
    }
    let (deed, change) = match too_much & 0o004 {
        0 => ("write", "go-w"),
        _ => ("read", "go-w,o-r"),
    };
    let file = path.display();
    let say = format!("others may {deed} it (mode {mode:04o}): run `chmod {change} {file}`");
    Err(io::Error::other(say))
}

#[cfg(unix)]
fn mode(about: &fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o7777
}

#[cfg(not(unix))]
const fn mode(_: &fs::Metadata) -> u32 {
    0
}

/// The bytes of a plain file. Opening a pipe would wait for its writer, and a device may never end.
pub fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok(bytes),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_that_others_may_do_too_much_with_is_refused_with_its_remedy() {
        let path = std::env::temp_dir().join(format!("poolkeeper-rights-{}", std::process::id()));
        fs::write(&path, "x").unwrap();
        let read = |mode: u32, rights: Rights| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_guarded(&path, rights).map_err(|error| error.to_string())
        };
        for mode in [0o600, 0o640, 0o644, 0o444] {
            assert_eq!(read(mode, Rights::OnlyOwnerWrites).as_deref(), Ok(&b"x"[..]), "{mode:o}");
        }
        for mode in [0o600, 0o640, 0o440] {
            assert_eq!(read(mode, Rights::Secret).as_deref(), Ok(&b"x"[..]), "{mode:o}");
        }
        for (mode, rights, change) in [
            (0o620, Rights::OnlyOwnerWrites, "chmod go-w "),
            (0o602, Rights::OnlyOwnerWrites, "chmod go-w "),
            (0o604, Rights::Secret, "chmod go-w,o-r "),
            (0o620, Rights::Secret, "chmod go-w "),
        ] {
            let said = read(mode, rights).unwrap_err();
            assert!(said.contains(&format!("{change}{}", path.display())), "{mode:o}: {said}");
        }
        fs::remove_file(&path).unwrap();
    }
}
