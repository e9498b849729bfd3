//! `config/pools`: each is sound, and each is a rehearsal that comes to its end without a broken law.

use poolkeeper::api::v1::pool::PoolDocuments;
use poolkeeper::model::policy::{Owner, Policy};

use super::run::{command, finish};

fn all() -> Vec<(String, Policy)> {
    let mut pools = PoolDocuments::default();
    let mut all = Vec::new();
    let mut files: Vec<_> = poolkeeper::daemon::pool_files(&super::place("pools"))
        .into_iter()
        .map(Result::unwrap)
        .collect();
    files.sort();
    for file in files {
        let name = file.display().to_string();
        let (policies, faults) = pools.read_bytes(&std::fs::read(&file).unwrap(), Some(&name));
        assert_eq!(faults, [], "{name}");
        all.extend(policies.into_iter().map(|policy| (name.clone(), policy)));
    }
    all
}

#[test]
fn each_is_played_to_its_end() {
    let pools = all();
    assert!(pools.len() >= 4);
    for (file, policy) in pools {
        let name = policy.name.as_str();
        for faults in ["calm", "mild"] {
            let mut args =
                vec!["simulate", &file, "--pool", name, "--faults", faults, "-o", "json"];
            if policy.owner == Owner::ScaleSet {
                args.extend(["--machines", "20"]);
            }
            let ended = finish(command(&args), b"");
            assert_eq!(
                (ended.code, ended.err.as_str()),
                (Some(0), ""),
                "{name} {faults}: {ended:?}"
            );
            let document = ended.json();
            assert_eq!(document["kind"], "Simulation", "{name}");
        }
    }
}
