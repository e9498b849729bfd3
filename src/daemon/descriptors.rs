//! The limit of open files and connections of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit is raised to the hard limit, but at most to this.
// 65,536: many times what the API, the calls to the cloud and the files need together. Some systems allow a billion,
// and every child process inherits the limit.
const MOST: u64 = 65_536;

/// Raises the limit and returns the one now in force.
pub fn raise() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let holds = limit.current.unwrap_or(u64::MAX);
    let Some(raised) = raised(limit) else { return holds };
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), ..limit }) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(
                limit = holds,
                "the limit of open files stays as it is, and the API takes in fewer connections: {error}"
            );
            holds
        }
    }
}

/// `None`: the soft limit is high enough.
fn raised(limit: Rlimit) -> Option<u64> {
    let most = limit.maximum.unwrap_or(MOST).min(MOST);
    limit.current.filter(|current| *current < most).map(|_| most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_rises_to_the_hard_one_and_no_further_than_a_bound() {
        for (current, maximum, meant) in [
            (Some(1_024), Some(8_192), Some(8_192)),
            (Some(1_024), Some(1 << 20), Some(MOST)),
            (Some(256), None, Some(MOST)),
            (Some(8_192), Some(8_192), None),
            (Some(1 << 20), Some(1 << 20), None),
            (None, None, None),
        ] {
            let limit = Rlimit { current, maximum };
            assert_eq!(raised(limit), meant, "{limit:?}");
        }
    }

    #[test]
    fn what_it_says_is_what_the_system_allows() {
        let holds = raise();
        assert_eq!(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX), holds);
        assert_eq!(raise(), holds);
    }
}
