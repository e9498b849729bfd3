use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use url::Url;

use super::*;
use crate::model::facts::Verdict;
use crate::model::gate::{
    Comparison, EachSeries, HttpCheck, PartialAnswer, PrometheusCheck, StatusPattern,
};
use crate::model::ids::PoolName;
use crate::model::size::Decimal;
use crate::model::time::{Span, Time};
use crate::net::server::{ServerAccess, ServerLogin};
use crate::observe::{MetricFault, MetricFaultReason, SeriesQuestion};

/// Has these numbers for each query.
#[derive(Debug)]
struct Numbers(Result<Vec<f64>, MetricFault>);

impl ReadSeries for Numbers {
    async fn values(&self, of: SeriesQuestion<'_>) -> Result<Vec<Decimal>, MetricFault> {
        assert_eq!((of.query, of.partial), ("errors", PartialAnswer::Accept));
        assert_eq!((of.at, of.timeout), (Time::from_millis(7), Span::seconds(5)));
        let values = self.0.clone()?;
        Ok(values.into_iter().map(|value| Decimal::new(value).unwrap()).collect())
    }
}

fn gates() -> Gates<Numbers> {
    Gates {
        servers: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        commands: BTreeMap::new(),
        runner: CommandRunner::new(1),
    }
}

async fn measure(gates: &Gates<Numbers>, check: &GateCheck, timeout: Span) -> GateReading {
    let pool = PoolName::new("web");
    let at = Time::from_millis(7);
    gates.measure(GateQuestion { pool: &pool, gate: "errors", check, timeout, at }).await
}

#[tokio::test]
async fn a_query_passes_or_fails_by_its_numbers() {
    use Verdict::{Fail, Pass, Unknown};
    let late = MetricFault::new(MetricFaultReason::Timeout, "it does not answer within 5s");
    let none = "the query has no series now; if it filters by a comparison, use bool, and use `or vector(0)` if none means zero";
    let (all, any) = (Some(EachSeries::All), Some(EachSeries::Any));
    for (numbers, fail, each, verdict, say) in [
        (Ok(vec![0.004]), None, None, Pass, "0.004 is <= 0.01"),
        (Ok(vec![0.2]), None, None, Fail, "0.2 is not <= 0.01"),
        (Ok(vec![0.2]), Some("> 0.05"), all, Fail, "0.2 is > 0.05"),
        (Ok(vec![0.03]), Some("> 0.05"), None, Unknown, "0.03 is neither <= 0.01 nor > 0.05"),
        (Ok(vec![1e300]), None, None, Fail, "1e300 is not <= 0.01"),
        (Ok(vec![1e-9]), None, None, Pass, "1e-9 is <= 0.01"),
        (Ok(vec![]), None, any, Unknown, none),
        (
            Ok(vec![0.0, 0.0]),
            None,
            None,
            Unknown,
            "the query has 2 series; aggregate them to one, for example with sum(), or write in each whether all or any of them must pass",
        ),
        (Ok(vec![0.0, 0.01]), None, all, Pass, "2 of 2 series pass, and all must"),
        (
            Ok(vec![0.0, 0.2]),
            None,
            all,
            Fail,
            "1 of 2 series pass, and all must; 0.2 is not <= 0.01",
        ),
        (
            Ok(vec![0.0, 0.03, 0.06]),
            Some("> 0.05"),
            all,
            Fail,
            "1 of 3 series pass, and all must; 0.06 is > 0.05",
        ),
        (
            Ok(vec![0.2, 0.0]),
            None,
            any,
            Pass,
            "1 of 2 series pass, and any must; 0.2 is not <= 0.01",
        ),
        (Err(late), None, None, Unknown, "metric server main: it does not answer within 5s"),
    ] {
        let mut gates = gates();
        gates.servers.insert("main".into(), Numbers(numbers));
        let check = GateCheck::Prometheus(PrometheusCheck {
            server: "main".into(),
            query: "errors".into(),
            pass: Comparison::parse("<= 0.01").unwrap(),
            fail: fail.map(|text| Comparison::parse(text).unwrap()),
            each,
            partial: PartialAnswer::Accept,
        });
        let read = measure(&gates, &check, Span::seconds(5)).await;
        assert_eq!(read, GateReading::new(verdict, say));
    }
}

#[tokio::test]
async fn a_name_that_the_settings_lack_says_nothing_and_is_named() {
    let query = PrometheusCheck {
        server: "mian".into(),
        query: "up".into(),
        pass: Comparison::parse("> 0").unwrap(),
        fail: None,
        each: None,
        partial: PartialAnswer::Refuse,
    };
    let endpoint = HttpCheck { endpoint: "shop".into(), expect: Vec::new() };
    for (check, what, section) in [
        (GateCheck::Prometheus(query), "metric server mian", "metrics"),
        (GateCheck::Http(endpoint), "endpoint shop", "endpoints"),
        (GateCheck::Command { run: "smoke".into() }, "command smoke", "commands"),
    ] {
        let say = format!(
            "the settings of the daemon have no {what}; add it to them under {section}, or name another in the gate"
        );
        let read = measure(&gates(), &check, Span::seconds(5)).await;
        assert_eq!(read, GateReading::unknown(say));
    }
}

/// Answers each request with these bytes, and tells what was sent. Connections stay open.
async fn server(answer: String) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/base/healthy", listener.local_addr().unwrap());
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut text, mut part) = (String::new(), [0; 4_096]);
            // What does not begin as HTTP is TLS, and has no such end.
            while text.is_empty() || text.starts_with('G') && !text.ends_with("\r\n\r\n") {
                let read = stream.read(&mut part).await.unwrap();
                text.push_str(&String::from_utf8_lossy(&part[..read]));
            }
            let _gone = tell.send(text);
            // The client may cut the connection before the end of a large body.
            let _cut = stream.write_all(answer.as_bytes()).await;
            open.push(stream);
        }
    });
    (address, told)
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn access(address: &str, login: ServerLogin) -> ServerAccess {
    ServerAccess { at: http::at(address).unwrap(), login, ca: None, certificate: None }
}

async fn ask(access: ServerAccess, expect: &[(&str, Verdict)], timeout: Span) -> GateReading {
    let mut gates = gates();
    gates.endpoints.insert("shop".into(), Endpoint::new(access, None));
    let expect = expect.iter().map(|(text, is)| (StatusPattern::parse(text).unwrap(), *is));
    let check = HttpCheck { endpoint: "shop".into(), expect: expect.collect() };
    measure(&gates, &GateCheck::Http(check), timeout).await
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("poolkeeper-gates-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn the_status_is_the_verdict() {
    use Verdict::{Fail, Pass, Unknown};
    let no_verdict = ", which is no verdict by expect of the gate";
    let redirect = ", a redirect, which is not followed; write the final address in url";
    let denied =
        ", so it does not accept our credentials; check bearerTokenFile, basicAuth and certificate";
    let expect = [("503", Unknown), ("5xx", Fail), ("404", Fail), ("204", Pass)];
    for (status, expect, verdict, what) in [
        (200, &[][..], Pass, ""),
        (204, &[], Unknown, no_verdict),
        (201, &expect, Unknown, no_verdict),
        (200, &expect, Pass, ""),
        (204, &expect, Pass, ""),
        (404, &expect, Fail, ""),
        (500, &expect, Fail, ""),
        (503, &expect, Unknown, no_verdict),
        (404, &[], Unknown, no_verdict),
        (500, &[], Unknown, no_verdict),
        (301, &expect, Unknown, redirect),
        (307, &[], Unknown, redirect),
        (401, &[], Unknown, denied),
        (403, &expect, Unknown, denied),
        (403, &[("4xx", Fail)], Fail, ""),
    ] {
        let (address, _asked) = server(answer(status, "")).await;
        let read = ask(access(&address, ServerLogin::None), expect, Span::seconds(5)).await;
        assert_eq!(
            read,
            GateReading::new(verdict, format!("endpoint shop answers {status}{what}"))
        );
    }
}

#[tokio::test]
async fn a_request_names_the_pool_and_no_redirect_is_followed() {
    let (elsewhere, mut told) = server(answer(200, "")).await;
    let moved = format!("HTTP/1.1 302 Moved\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    let (address, mut asked) = server(moved).await;
    let token = file("redirect", "hunter2\n");
    let login = ServerLogin::Bearer { token: token.clone() };
    let read = ask(access(&address, login), &[], Span::seconds(5)).await;
    assert_eq!(read.verdict, Verdict::Unknown);
    let sent = asked.recv().await.unwrap();
    assert!(sent.starts_with("GET /base/healthy HTTP/1.1\r\n"), "{sent}");
    for line in ["poolkeeper-pool: web\r\n", "authorization: Bearer hunter2\r\n"] {
        assert!(sent.contains(line), "{line}: {sent}");
    }
    assert!(told.try_recv().is_err(), "it was followed");
    std::fs::remove_file(token).unwrap();
}

#[tokio::test]
async fn the_first_line_of_a_body_is_repeated_without_secrets_and_short() {
    let password = file("password", "hunter2");
    let body = format!(
        "\r\n  bad: hunter2 a2ltOmh1bnRlcjI= \u{1b}[2J\u{7} {}\nthe second line",
        "y".repeat(400)
    );
    let (address, _asked) = server(answer(500, &body)).await;
    let login = ServerLogin::Basic { username: "kim".into(), password: password.clone() };
    let read = ask(access(&address, login), &[("5xx", Verdict::Fail)], Span::seconds(5)).await;
    std::fs::remove_file(password).unwrap();
    assert_eq!(read.verdict, Verdict::Fail);
    let start = "endpoint shop answers 500: ";
    let said = read.say.strip_prefix(start).unwrap();
    assert!(said.starts_with("bad: … … \\u{1b}[2J\\u{7} yyy"), "{said}");
    assert!(said.chars().count() == 200 && !said.chars().any(char::is_control), "{said}");
}

#[tokio::test]
async fn a_body_is_read_up_to_its_limit_and_no_longer_than_the_time_limit() {
    // It promises a gigabyte; the limit is reached before.
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
    let (address, _asked) = server(format!("{start}fine\n{}", "x".repeat(128 << 10))).await;
    let read = ask(access(&address, ServerLogin::None), &[], Span::seconds(20)).await;
    assert_eq!(read, GateReading::new(Verdict::Pass, "endpoint shop answers 200: fine"));
    // A good status whose body does not end is no pass.
    let (address, _asked) = server(format!("{start}fine\n")).await;
    let read = ask(access(&address, ServerLogin::None), &[], Span::from_millis(200)).await;
    let say = "endpoint shop: it does not answer within 200ms; make it faster, or raise timeout of the gate";
    assert_eq!(read, GateReading::unknown(say));
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_asked_says_nothing_and_why() {
    let token = file("gone", "x");
    std::fs::remove_file(&token).unwrap();
    let junk = file("junk.pem", "junk");
    let mut bad_ca = access("https://127.0.0.1:1", ServerLogin::None);
    bad_ca.ca = Some(junk.clone());
    let (open, _asked) = server(answer(200, "")).await;
    for (access, say) in [
        (
            access("http://127.0.0.1:1", ServerLogin::None),
            "it does not answer: no program listens there; check url, and whether the server runs",
        ),
        (
            access(&open.replace("http:", "https:"), ServerLogin::None),
            "it does not answer: the port speaks plain HTTP; write http:// in url",
        ),
        (
            access("http://127.0.0.1:1", ServerLogin::Bearer { token }),
            "it is not asked: the file of bearerTokenFile cannot be read; put a good one there",
        ),
        (
            bad_ca,
            "it is not asked: the file of caFile has no certificates in PEM; put a good one there",
        ),
    ] {
        let read = ask(access, &[("5xx", Verdict::Fail)], Span::seconds(5)).await;
        assert_eq!(read, GateReading::unknown(format!("endpoint shop: {say}")));
    }
    std::fs::remove_file(junk).unwrap();
}

#[test]
fn an_address_of_an_endpoint_may_have_a_path() {
    for address in ["http://127.0.0.1:8080", "https://shop.example/a/healthy", "http://[::1]/x/"] {
        assert!(http::at(address).is_some(), "{address}");
    }
    for address in
        ["shop.example", "ftp://a.example", "https://kim:pw@a.example", "https://a.example?x", ""]
    {
        assert_eq!(http::at(address), None::<Url>, "{address}");
    }
}
