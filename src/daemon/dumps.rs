//! Core dumps. The daemon's memory holds secrets and tokens, so a crash must not write it to disk.

use std::io;

/// Disables core dumps of this process, and stops other processes of this user from reading its memory or environment.
#[cfg(target_os = "linux")]
pub(super) fn forbid() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn forbid() -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, Resource, dumpable_behavior, getrlimit};

    #[test]
    fn no_crash_writes_the_memory_to_a_disk() {
        super::forbid().unwrap();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        let limit = getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
        // A service manager may already have set the limit.
        super::forbid().unwrap();
    }
}
