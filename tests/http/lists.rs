//! Lists on screens of 80×24 and 140×40: a thousand machines, long names; and the forms that programs and files take.

use std::sync::Arc;

use poolkeeper::api::http::{PoolOrigin, PoolView};
use poolkeeper::api::v1::pool::{PoolDocuments, to_json};
use poolkeeper::memory::{Commit, TurnStore};
use poolkeeper::model::ids::{Epoch, PoolName, Revision, Zone};
use poolkeeper::model::inventory::SetReading;
use poolkeeper::model::machine::{Condition, Machine};
use poolkeeper::model::time::Span;

use crate::http::golden::golden;
use crate::http::kit::{Kit, NOW, document, machine, policy};
use crate::http::program::{command, finish, written};
use crate::http::terminal::{Served, run, serve};

const SCREENS: [(usize, usize); 2] = [(80, 24), (140, 40)];

/// What a screen of this size shows.
async fn screen(served: &Served, args: &[&str], (wide, tall): (usize, usize)) -> String {
    let mut command = command(args);
    command.env("POOLKEEPER_SERVER", &served.server);
    command.env("COLUMNS", wide.to_string()).env("LINES", tall.to_string());
    let ended = tokio::task::spawn_blocking(move || finish(command, b"")).await.unwrap();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let page = ended.out;
    assert!(page.lines().all(|line| line.chars().count() <= wide), "{page}");
    assert!(page.lines().count() < tall, "{page}");
    assert!(!page.contains('\u{1b}'), "there is no colour: {page}");
    page
}

async fn done(served: &Served, args: &[&str]) -> String {
    let ended = run(&served.server, None, args).await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
    ended.out
}

fn kept(name: &str, args: &[&str], page: &str) {
    golden(&format!("http/{name}.txt"), &format!("$ poolkeeper {}\n{page}", args.join(" ")));
}

/// Lets web have a thousand machines: most on the new model, one ill.
async fn thousand(kit: &Kit) {
    let machines: Vec<Machine> = (1..=1_000)
        .map(|n| {
            let mut machine = machine(n, if n < 700 { "r2" } else { "r1" });
            machine.zone = Some(Zone::new((n % 3 + 1).to_string()));
            if n == 500 {
                (machine.condition, machine.since) =
                    (Condition::Unready, NOW.minus(Span::minutes(1)));
            }
            machine
        })
        .collect();
    let commit =
        Commit { machines: machines.clone(), ..Commit::new(PoolName::new("web"), Epoch(1), NOW) };
    kit.store.commit(&commit).await.unwrap();
    let mut known = kit.backend.lock();
    let context = known.contexts.get_mut(&PoolName::new("web")).unwrap();
    context.policy = Arc::new(policy(&document("web", 1_000)));
    context.machines = machines;
    let report = Arc::make_mut(&mut context.report);
    report.set = SetReading::new(Revision::new("r2"), 1_000, NOW.minus(Span::seconds(1)));
    report.planned = None;
    let planned = poolkeeper::plan::plan(&context.input()).unwrap();
    Arc::make_mut(&mut context.report).planned = Some(planned);
    let (report, policy) = (Arc::clone(&context.report), Arc::clone(&context.policy));
    let pool = known.pools.get_mut(&PoolName::new("web")).unwrap();
    (pool.report, pool.policy) = (Some(report), policy);
}

#[tokio::test]
async fn a_thousand_machines_fit_a_screen() {
    let served = serve(Kit::open().await).await;
    thousand(&served.kit).await;
    let args = ["get", "web", "machines"];
    for (wide, tall) in SCREENS {
        let page = screen(&served, &args, (wide, tall)).await;
        for part in ["MACHINE", "STATE", " machines", "Outdated, ready", "1, 2, 3", "1.0.0"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        kept(&format!("machines-{wide}x{tall}"), &args, &page);
    }
    let lines = done(&served, &["get", "web", "machines", "-o", "wide"]).await;
    assert_eq!(lines.lines().count(), 1_001);
    let names = done(&served, &["get", "machines", "web", "-o", "name", "--sort-by", "id"]).await;
    assert_eq!(names.lines().count(), 1_000);
    assert!(names.starts_with("machine/1\nmachine/2\n") && names.ends_with("machine/1000\n"));
}

#[tokio::test]
async fn machines_are_sorted_and_timed_as_asked() {
    let served = serve(Kit::open().await).await;
    let page = done(&served, &["get", "web", "machines", "--sort-by", "age"]).await;
    let ids: Vec<&str> = page.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7"], "one a line: {page}");
    let page = done(&served, &["get", "web", "machines"]).await;
    assert!(page.contains("AGE") && page.contains("1h") && !page.contains("10:00:0"), "{page}");
    let page = done(&served, &["get", "web", "machines", "--timestamps"]).await;
    assert!(page.contains("CREATED") && page.contains("10:00:01Z"), "{page}");
}

#[tokio::test]
async fn pools_with_long_names_keep_their_numbers() {
    let served = serve(Kit::open().await).await;
    {
        let mut known = served.kit.backend.lock();
        let report = known.pools[&PoolName::new("web")].report.clone();
        for name in ["prod-westeurope-shop-frontend-web", "prod-westeurope-shop-frontend-api"] {
            let view = PoolView {
                policy: Arc::new(policy(&document(name, 7))),
                origin: PoolOrigin::Api,
                report: report.clone(),
                trouble: None,
                ignored: None,
            };
            known.pools.insert(PoolName::new(name), view);
        }
    }
    for (wide, tall) in SCREENS {
        let page = screen(&served, &["status"], (wide, tall)).await;
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("prod-")).collect();
        assert!(rows.len() == 2 && rows[0] != rows[1], "{page}");
        for part in ["actionRequired", "7 of 7", "Progressing", "16m 15s"] {
            assert!(rows.iter().all(|row| row.contains(part)), "{part}: {page}");
        }
        kept(&format!("status-{wide}x{tall}"), &["status"], &page);
        let page = screen(&served, &["get"], (wide, tall)).await;
        kept(&format!("pools-{wide}x{tall}"), &["get"], &page);
    }
}

#[tokio::test]
async fn what_kubectl_users_type_works() {
    let served = serve(Kit::open().await).await;
    let (pools, web) = (done(&served, &["get"]).await, done(&served, &["get", "web"]).await);
    assert_eq!(done(&served, &["get", "pools"]).await, pools);
    for args in [&["get", "pool", "web"][..], &["get", "pools/web"]] {
        assert_eq!(done(&served, args).await, web, "{args:?}");
    }
    let machines = done(&served, &["get", "web", "machines"]).await;
    assert_eq!(done(&served, &["get", "machines", "web"]).await, machines);
    let explained = done(&served, &["explain", "web", "3"]).await;
    assert_eq!(done(&served, &["describe", "web", "3"]).await, explained);
    assert_eq!(done(&served, &["get", "-o", "name"]).await, "pool/batch\npool/web\n");
    assert_eq!(done(&served, &["get", "web", "-o", "name"]).await, "pool/web\n");
    for (args, hint) in [
        (&["logs", "web"][..], "history"),
        (&["edit", "web"], "apply"),
        (&["get", "machines"], "POOL"),
        (&["get", "web", "rollout", "-o", "wide"], "--output yaml"),
        (&["status", "-o", "name"], "--output json"),
        (&["get", "--sort-by", "age"], "machines"),
    ] {
        let ended = run(&served.server, None, args).await;
        assert!(ended.code == Some(2) && ended.err.contains(hint), "{args:?}: {ended:?}");
        assert_eq!(ended.out, "");
    }
}

#[tokio::test]
async fn a_pool_is_got_as_a_file_that_can_be_applied() {
    let served = serve(Kit::open().await).await;
    let short = done(&served, &["get", "web"]).await;
    kept("get-web", &["get", "web"], &short);
    let (full, json) = (
        done(&served, &["get", "web", "-o", "yaml"]).await,
        done(&served, &["get", "web", "-o", "json"]).await,
    );
    assert!(short.len() < full.len(), "{short}");
    let read = |text: &str| {
        let (policies, faults) = PoolDocuments::default().read(text, None);
        assert!(policies.len() == 1 && faults.is_empty(), "{faults:?}: {text}");
        to_json(&policies[0])
    };
    let meant = read(&document("web", 7));
    assert_eq!([read(&short), read(&full), read(&json)], [meant.clone(), meant.clone(), meant]);
    let file = written("http", "got.yaml", short.as_bytes());
    assert_eq!(finish(command(&["validate", &file]), b"").code, Some(0));
    assert!(done(&served, &["apply", &file, "--why", "x"]).await.contains("web"));
}

#[tokio::test]
async fn yaml_is_the_json_document() {
    let served = serve(Kit::open().await).await;
    for args in [&["status", "web"][..], &["plan", "web"], &["explain", "web"], &["get"]] {
        let json = done(&served, &[args, &["-o", "json"]].concat()).await;
        let yaml = done(&served, &[args, &["-o", "yaml"]].concat()).await;
        let read = poolkeeper::api::v1::node::read(&yaml);
        let same = poolkeeper::api::v1::node::read(&json);
        assert_eq!((read.roots.len(), &read.diagnostics[..]), (1, &[][..]), "{yaml}");
        let (read, same) = (plain(&read.roots[0].node), plain(&same.roots[0].node));
        assert_eq!(read, same, "{args:?}");
    }
    let ended = run(&served.server, None, &["get", "wbe", "-o", "yaml"]).await;
    assert!(ended.out.is_empty() && ended.err.contains("nearest: web"), "{ended:?}");
}

/// A document without its places and quotes.
fn plain(node: &poolkeeper::api::v1::node::Node) -> String {
    use poolkeeper::api::v1::node::NodeKind;
    match &node.kind {
        NodeKind::Null => "null".to_owned(),
        NodeKind::Bool(is) => is.to_string(),
        NodeKind::Number(number) => number.to_string(),
        NodeKind::Text(text) => format!("'{}'", text.text),
        NodeKind::List(items) => format!("{:?}", items.iter().map(plain).collect::<Vec<_>>()),
        NodeKind::Map(entries) => {
            let pairs = entries.iter().map(|entry| (entry.key.to_string(), plain(&entry.value)));
            format!("{:?}", pairs.collect::<Vec<_>>())
        }
        NodeKind::Broken => "broken".to_owned(),
    }
}
