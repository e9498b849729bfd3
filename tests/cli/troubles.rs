//! What goes wrong between here and the cloud: said clearly, with the next step, and without a word of a secret.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use poolkeeper::daemon::{Access, Choice, CloudReader, Way};
use serde_json::json;

use super::azure::{Azure, SECRET, SETS, set};
use super::log::Log;
use super::program::Ended;

/// Passwords of proxies, signatures of operations.
const PASSWORD: &str = "hunter2-of-the-proxy";
const SIGNATURE: &str = "c2lnbmF0dXJl-of-an-operation";

fn nothing_of_it(text: &str) {
    // Every token here is a JWT.
    for secret in [SECRET, PASSWORD, SIGNATURE, "eyJ"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

/// One that takes connections, says this once it has heard something, and keeps the line.
fn stranger(says: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _heard = stream.read(&mut [0; 4096]);
            let _said = stream.write_all(says.as_bytes());
            if says.is_empty() {
                kept.push(stream);
            }
        }
    });
    port
}

fn nobody() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

struct Case {
    name: &'static str,
    changes: Vec<(&'static str, String)>,
    args: Vec<String>,
    /// Of `status` and `plan`.
    code: i32,
    say: &'static str,
    help: &'static str,
    /// What the doctor says of it.
    doctor: &'static str,
}

fn case(name: &'static str, code: i32, say: &'static str, help: &'static str) -> Case {
    Case { name, changes: vec![], args: vec![set("web")], code, say, help, doctor: say }
}

impl Case {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Case {
        self.changes.push((name, value.into()));
        self
    }

    fn of(mut self, id: String) -> Case {
        self.args = vec![id];
        self
    }

    fn arg(mut self, name: &str, value: impl Into<String>) -> Case {
        self.args.extend([name.to_owned(), value.into()]);
        self
    }

    fn doctor(mut self, says: &'static str) -> Case {
        self.doctor = says;
        self
    }
}

/// Behind TLS, as Azure is.
fn of_azure() -> Azure {
    let signed = format!("https://localhost/operations/o?s={SIGNATURE}");
    let broken = json!({"path": "/virtualMachineScaleSets/broken", "times": 99, "status": 500, "code": "InternalServerError",
        "headers": {"location": signed, "azure-asyncoperation": signed}});
    let page = json!({"path": "/virtualMachineScaleSets/page", "times": 99, "status": 200, "body": "<html>"});
    let often = json!({"path": "/virtualMachineScaleSets/often", "times": 99, "status": 429,
        "code": "OperationNotAllowed", "retryAfter": 17});
    let foreign = json!({"path": "/virtualMachineScaleSets/foreign", "times": 99, "status": 401,
        "code": "InvalidAuthenticationTokenTenant", "message": "The access token is from the wrong issuer."});
    Azure::behind_tls(json!({
        "scaleSets": [{"name": "web"}, {"name": "shut"}, {"name": "broken"}, {"name": "often"}],
        "identities": [{"clientId": "app", "secret": SECRET, "denied": ["/virtualMachineScaleSets/shut"]}],
        "faults": {"rules": [broken, page, often, foreign]},
    }))
}

fn of_identity() -> Vec<Case> {
    let elsewhere = SETS.replace("00000000-", "99999999-");
    vec![
        case("wrong tenant", 6, "there is no such tenant", "in the environment")
            .with("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222"),
        case("wrong secret", 6, "the client secret is wrong", "in the environment")
            .with("AZURE_CLIENT_SECRET", format!("{SECRET}-of-yesterday")),
        case(
            "wrong application",
            6,
            "knows no application with this client id",
            "in the environment",
        )
        .with("AZURE_CLIENT_ID", "nobody"),
        case("no secret", 6, "AZURE_CLIENT_SECRET is not set", "--auth")
            .with("AZURE_CLIENT_SECRET", ""),
        case("no permission", 6, "AuthorizationFailed", "poolkeeper doctor").of(set("shut")),
        case("another tenant's subscription", 6, "InvalidAuthenticationTokenTenant", "--tenant")
            .of(set("foreign")),
        case("no such set", 4, "ResourceNotFound", "az vmss list").of(set("none")),
        case("no such group", 4, "ResourceGroupNotFound", "check the resource group")
            .of(format!("{}/web", SETS.replace("/rg/", "/other/"))),
        case("wrong subscription", 4, "SubscriptionNotFound", "check the subscription")
            .of(format!("{elsewhere}/web")),
        case("a failing set", 5, "InternalServerError", "try again").of(set("broken")),
        case("too often", 5, "scale set often", "try again in 1").of(set("often")),
        case("not ARM", 5, "scale set page", "try again").of(set("page")),
    ]
}

fn on_the_road() -> Vec<Case> {
    let (dead, mute) = (nobody(), stranger(""));
    let login = stranger("HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    let closed = stranger("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    let no_tls = stranger("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    let proxy = |port: u16| format!("http://kim:{PASSWORD}@127.0.0.1:{port}");
    vec![
        case("unknown authority", 5, "an authority that is not trusted", "--ca-file")
            .with("SSL_CERT_FILE", ""),
        case("nobody there", 5, "the connection was refused", "check the address")
            .arg("--arm", format!("http://127.0.0.1:{dead}")),
        case("nobody gives tokens", 5, "which gives out tokens", "check the address")
            .with("AZURE_AUTHORITY_HOST", format!("http://127.0.0.1:{dead}")),
        case("no answer", 5, "no answer came in time", "check the address")
            .arg("--arm", format!("http://127.0.0.1:{mute}"))
            .arg("--timeout", "1"),
        case("no TLS there", 5, "TLS with it failed", "speaks TLS")
            .arg("--arm", format!("https://localhost:{no_tls}")),
        case("dead proxy", 5, "by the proxy 127.0.0.1", "HTTPS_PROXY")
            .with("HTTPS_PROXY", proxy(dead)),
        case("proxy wants a login", 5, "wants to know who we are", "HTTPS_PROXY")
            .with("HTTPS_PROXY", proxy(login)),
        case("proxy refuses", 5, "did not let us through", "NO_PROXY")
            .with("HTTPS_PROXY", proxy(closed)),
        case("no such CA file", 1, "no-such.pem", "SSL_CERT_FILE")
            .with("SSL_CERT_FILE", "no-such.pem")
            .doctor(""),
        case("no such cloud", 2, "there is no cloud german", "usGovernment")
            .arg("--cloud", "german")
            .doctor(""),
        case("not TLS", 2, "must begin with https://", "--arm")
            .arg("--arm", "http://10.0.0.1/")
            .doctor(""),
    ]
}

fn run(azure: &Azure, command: &[&str], case: &Case) -> Ended {
    let changes: Vec<(&'static str, &str)> =
        case.changes.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let args: Vec<&str> =
        command.iter().copied().chain(case.args.iter().map(String::as_str)).collect();
    azure.run_with(&changes, &args)
}

/// All at once: some only wait.
fn all_of(cases: &[Case]) {
    let azure = of_azure();
    thread::scope(|scope| {
        for case in cases {
            for command in [&["status"][..], &["plan", "--resource"]] {
                scope.spawn(|| told(&azure, command, case));
                scope.spawn(|| told_in_json(&azure, command, case));
            }
            scope.spawn(|| told_by_the_doctor(&azure, case));
        }
    });
}

fn told(azure: &Azure, command: &[&str], case: &Case) {
    let name = case.name;
    let ended = run(azure, command, case);
    assert_eq!(ended.code, Some(case.code), "{name}: {ended:?}");
    assert!(ended.err.contains(case.say), "{name} should say {}: {}", case.say, ended.err);
    let help = ended.err.split("help: ").nth(1).unwrap_or_default();
    assert!(help.contains(case.help), "{name} should advise {}: {}", case.help, ended.err);
    assert_eq!((ended.out.as_str(), ended.err.lines().count()), ("", 2), "{name}: {ended:?}");
    nothing_of_it(&format!("{ended:?}"));
}

fn told_in_json(azure: &Azure, command: &[&str], case: &Case) {
    let ended = run(azure, &[&["--output", "json"], command].concat(), case);
    let kind = &ended.json()["kind"];
    assert_eq!((ended.code, kind), (Some(case.code), &json!("Error")), "{}", case.name);
    nothing_of_it(&format!("{ended:?}"));
}

fn told_by_the_doctor(azure: &Azure, case: &Case) {
    let (name, says) = (case.name, case.doctor);
    let ended = run(azure, &["doctor"], case);
    let code = if says.is_empty() { case.code } else { 7 };
    assert_eq!(ended.code, Some(code), "{name}: {ended:?}");
    assert!(ended.out.contains(says), "{name} should tell {says}: {}", ended.out);
    nothing_of_it(&format!("{ended:?}"));
}

#[test]
fn who_we_are_and_what_we_ask_for() {
    all_of(&of_identity());
}

#[test]
fn the_road_to_the_cloud() {
    all_of(&on_the_road());
}

#[test]
fn the_right_way_goes_through_tls() {
    let azure = of_azure();
    let ended = azure.run(&["status", &set("web")]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let ca = azure.ca_file.clone().unwrap();
    let by_flag =
        azure.run_with(&[("SSL_CERT_FILE", "")], &["status", "--ca-file", &ca, &set("web")]);
    assert_eq!(by_flag.code, Some(0), "{by_flag:?}");
    let spared = [("HTTPS_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "localhost")];
    assert_eq!(azure.run_with(&spared, &["status", &set("web")]).code, Some(0));
}

/// What the program holds in its hands, printed in the way that programmers print, and all that it would log.
#[test]
fn no_secret_is_printed_by_what_holds_it() {
    let azure = of_azure();
    let log = Log::default();
    let logged = tracing::subscriber::set_default(log.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut said = String::new();
    for case in of_identity() {
        let find = |name: &str| {
            let changed = case.changes.iter().find(|(known, _)| *known == name);
            let usual = azure.environment().into_iter().find(|(known, _)| *known == name);
            changed.cloned().or(usual).map(|(_, value)| value)
        };
        let choice = Choice { way: Some(Way::ClientSecret), ..Choice::default() };
        let access = Access::settle(&choice, find).unwrap();
        let id = poolkeeper::daemon::set_id(&case.args[0]).unwrap();
        let draft = poolkeeper::model::policy::Draft::with_defaults(
            poolkeeper::model::ids::PoolName::new("web"),
            id,
        );
        let policy = std::sync::Arc::new(poolkeeper::model::policy::Policy::build(draft).unwrap());
        write!(said, "{choice:?} {access:?} ").unwrap();
        let house = CloudReader::open(access).unwrap();
        let (entered, looked, examined) = runtime.block_on(async {
            let policies = [policy.clone()];
            (house.enter().await, house.look(&policy).await, house.examine(&policies).await)
        });
        assert!(entered.is_err() || looked.is_err(), "{}", case.name);
        write!(said, "{house:?} {entered:?} {looked:?} {examined:?} ").unwrap();
    }
    drop(logged);
    nothing_of_it(&said);
    let heard = log.text();
    assert!(!heard.is_empty());
    nothing_of_it(&heard);
}
