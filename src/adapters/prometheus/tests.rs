use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::model::gate::PartialAnswer;
use crate::net::server::{IdentityTokens, SecretText, ServerLogin, TokenAnswer};
use crate::observe::MetricFaultReason as Reason;

const GOOD: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1.5,"7"]}]}}"#;

fn read(status: u16, body: &str) -> Result<f64, Reason> {
    answer::value(&reply(status, body.as_bytes(), &[]))
        .map(Decimal::get)
        .map_err(|fault| fault.reason)
}

fn reply(status: u16, body: &[u8], secrets: &[&str]) -> ServerReply {
    let secrets = secrets.iter().map(|text| SecretText::of(text)).collect();
    ServerReply { status, body: body.to_vec(), secrets }
}

fn list(status: u16, body: &str, partial: PartialAnswer) -> Result<Vec<f64>, Reason> {
    let values = answer::values(&reply(status, body.as_bytes(), &[]), partial);
    let values = values.map(|values| values.into_iter().map(Decimal::get).collect());
    values.map_err(|fault| fault.reason)
}

fn data(kind: &str, result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":{result}}}}}"#)
}

fn vector(value: &str) -> String {
    data("vector", &format!(r#"[{{"metric":{{"job":"a"}},"value":[1700000000.123,"{value}"]}}]"#))
}

#[test]
fn a_number_is_one_finite_sample() {
    for (text, number) in [
        ("7", 7.0),
        ("-1.5", -1.5),
        ("0", 0.0),
        ("1e3", 1_000.0),
        ("1234567890123456789012", 1.234_567_890_123_456_8e21),
    ] {
        assert_eq!(read(200, &vector(text)), Ok(number), "{text}");
        assert_eq!(read(200, &data("scalar", &format!(r#"[1,"{text}"]"#))), Ok(number), "{text}");
    }
    let with = |more: &str| vector("7").replacen('{', &format!("{{{more},"), 1);
    for more in
        [r#""warnings":[]"#, r#""warnings":null"#, r#""infos":["metric might not be a counter"]"#]
    {
        assert_eq!(read(200, &with(more)), Ok(7.0), "{more}");
    }
    // A sample has a histogram in place of a value; null is none.
    assert_eq!(read(200, &data("vector", r#"[{"value":[1,"7"],"histogram":null}]"#)), Ok(7.0));
}

#[test]
fn every_other_answer_has_its_reason() {
    let success = |text: &str| (200, vector(text));
    let error = |status, kind: &str| {
        (status, json!({"status": "error", "errorType": kind, "error": "x"}).to_string())
    };
    let two = r#"[{"metric":{},"value":[1,"7"]},{"metric":{},"value":[1,"8"]}]"#;
    let partial = GOOD.replacen('{', r#"{"warnings":["store a is away"],"#, 1);
    for ((status, body), reason) in [
        (success("NaN"), Reason::NotFinite),
        (success("+Inf"), Reason::NotFinite),
        (success("-Inf"), Reason::NotFinite),
        (success("1e999"), Reason::NotFinite),
        (success("seven"), Reason::NotPrometheus),
        (success(""), Reason::NotPrometheus),
        ((200, data("vector", "[]")), Reason::NoData),
        ((200, data("vector", two)), Reason::SeveralSeries),
        ((200, data("vector", "{}")), Reason::NotPrometheus),
        ((200, data("vector", r#"[{"value":["1","7"]}]"#)), Reason::NotPrometheus),
        ((200, data("vector", r#"[{"value":[1,7]}]"#)), Reason::NotPrometheus),
        ((200, data("vector", r#"[{"value":[1,"7",2]}]"#)), Reason::NotPrometheus),
        ((200, data("vector", r#"[{"metric":{}}]"#)), Reason::NotPrometheus),
        (
            (200, data("vector", r#"[{"metric":{},"histogram":[1,{"count":"3"}]}]"#)),
            Reason::NotNumber,
        ),
        ((200, data("vector", r#"[{"value":[1,"7"],"histogram":[1,{}]}]"#)), Reason::NotNumber),
        ((200, data("matrix", "[]")), Reason::NotNumber),
        ((200, data("string", r#"[1,"7"]"#)), Reason::NotNumber),
        ((200, data("streams", "[]")), Reason::NotPrometheus),
        ((200, partial.clone()), Reason::Partial),
        ((200, GOOD.replacen('{', r#"{"warnings":"x","#, 1)), Reason::NotPrometheus),
        // A partial answer without data is no proof that there is none.
        ((200, data("vector", "[]").replacen('{', r#"{"warnings":["x"],"#, 1)), Reason::Partial),
        (error(400, "bad_data"), Reason::BadQuery),
        (error(422, "execution"), Reason::BadQuery),
        (error(503, "timeout"), Reason::Timeout),
        (error(499, "canceled"), Reason::Timeout),
        (error(500, "internal"), Reason::Unavailable),
        (error(503, "unavailable"), Reason::Unavailable),
        (error(404, "not_found"), Reason::NotPrometheus),
        // An error keeps no value, even with data and a good status.
        ((200, GOOD.replacen("success", "error", 1)), Reason::Unavailable),
        ((200, format!("{{\"a\":\"{}\"}}", "x".repeat(LARGEST))), Reason::TooLarge),
        ((200, format!("<{}", "x".repeat(LARGEST))), Reason::NotPrometheus),
    ] {
        let short: String = body.chars().take(200).collect();
        assert_eq!(read(status, &body), Err(reason), "{status} {short}");
    }
    let said = answer::value(&reply(200, partial.as_bytes(), &[])).unwrap_err().to_string();
    assert_eq!(said, "the answer is partial: store a is away; check the server's stores");
}

#[test]
fn what_is_no_success_of_the_api_is_no_value() {
    let text = |status: u16, text: &str| (status, text.to_owned());
    let html = "\n <html><body>502 Bad Gateway</body></html>";
    for ((status, body), reason) in [
        (text(200, r#"{"status":"success"}"#), Reason::NotPrometheus),
        (text(200, r#"{"status":"ok","data":{}}"#), Reason::NotPrometheus),
        (text(200, "[]"), Reason::NotPrometheus),
        (text(200, ""), Reason::NotPrometheus),
        (text(200, "7"), Reason::NotPrometheus),
        (text(200, html), Reason::NotPrometheus),
        (text(404, html), Reason::NotPrometheus),
        (text(404, "404 page not found\n"), Reason::NotPrometheus),
        (text(302, html), Reason::NotPrometheus),
        (text(307, GOOD), Reason::NotPrometheus),
        (text(204, ""), Reason::NotPrometheus),
        // A good body under another status is none.
        (text(206, GOOD), Reason::NotPrometheus),
        (text(400, GOOD), Reason::NotPrometheus),
        (text(502, GOOD), Reason::Unavailable),
        (text(401, ""), Reason::Denied),
        (text(403, html), Reason::Denied),
        (text(401, GOOD), Reason::Denied),
        (text(429, ""), Reason::Unavailable),
        (text(500, html), Reason::Unavailable),
        (text(502, html), Reason::Unavailable),
        (text(503, "Service Unavailable"), Reason::Unavailable),
    ] {
        assert_eq!(read(status, &body), Err(reason), "{status} {body}");
    }
}

#[test]
fn a_list_has_the_number_of_each_series() {
    use PartialAnswer::{Accept, Refuse};
    let series = |values: &[&str]| {
        let each: Vec<String> = values
            .iter()
            .map(|value| format!(r#"{{"metric":{{}},"value":[1,"{value}"]}}"#))
            .collect();
        data("vector", &format!("[{}]", each.join(",")))
    };
    let warned = |body: &str| body.replacen('{', r#"{"warnings":["store a is away"],"#, 1);
    for (body, refuse, accept) in [
        (series(&[]), Ok(vec![]), Ok(vec![])),
        (series(&["7"]), Ok(vec![7.0]), Ok(vec![7.0])),
        (series(&["7", "-1.5", "0"]), Ok(vec![7.0, -1.5, 0.0]), Ok(vec![7.0, -1.5, 0.0])),
        (data("scalar", r#"[1,"7"]"#), Ok(vec![7.0]), Ok(vec![7.0])),
        (warned(&series(&["7", "8"])), Err(Reason::Partial), Ok(vec![7.0, 8.0])),
        // Nothing of a part is nothing.
        (warned(&series(&[])), Err(Reason::Partial), Ok(vec![])),
        (
            GOOD.replacen('{', r#"{"warnings":7,"#, 1),
            Err(Reason::NotPrometheus),
            Err(Reason::NotPrometheus),
        ),
        (series(&["7", "NaN"]), Err(Reason::NotFinite), Err(Reason::NotFinite)),
        (series(&["+Inf", "7"]), Err(Reason::NotFinite), Err(Reason::NotFinite)),
        (series(&["7", "eight"]), Err(Reason::NotPrometheus), Err(Reason::NotPrometheus)),
        (data("scalar", r#"[1,"NaN"]"#), Err(Reason::NotFinite), Err(Reason::NotFinite)),
        (data("matrix", "[]"), Err(Reason::NotNumber), Err(Reason::NotNumber)),
        (data("string", r#"[1,"7"]"#), Err(Reason::NotNumber), Err(Reason::NotNumber)),
        (
            data("vector", r#"[{"value":[1,"7"]},{"histogram":[1,{"count":"3"}]}]"#),
            Err(Reason::NotNumber),
            Err(Reason::NotNumber),
        ),
    ] {
        assert_eq!(list(200, &body, Refuse), refuse, "{body}");
        assert_eq!(list(200, &body, Accept), accept, "{body}");
    }
    for (status, reason) in
        [(302, Reason::NotPrometheus), (401, Reason::Denied), (500, Reason::Unavailable)]
    {
        assert_eq!(list(status, GOOD, Accept), Err(reason), "{status}");
    }
    assert_eq!(list(200, "<html></html>", Accept), Err(Reason::NotPrometheus));
}

#[test]
fn no_message_has_a_secret_or_steers_a_terminal() {
    let secrets = ["hunter2", "a2ltOmh1bnRlcjI="];
    let say =
        format!("{}Basic a2ltOmh1bnRlcjI= hunter2 \u{1b}[2J\n{}", "x".repeat(150), "y".repeat(500));
    let error = json!({"status": "error", "errorType": "bad_data", "error": say}).to_string();
    let warned = json!({"status": "success", "warnings": [say]}).to_string();
    for (status, body) in [(400, error.as_str()), (500, &error), (200, &warned)] {
        let fault = answer::value(&reply(status, body.as_bytes(), &secrets)).unwrap_err();
        let said = format!("{fault} {fault:?}");
        assert!(!said.contains("hunter2") && !said.contains("a2lt"), "{said}");
        assert!(!fault.say.chars().any(char::is_control) && said.len() < 1_000, "{said}");
    }
    assert_eq!(format!("{:?}", reply(200, b"", &secrets).secrets), "[SecretText, SecretText]");
}

proptest! {
    /// Only exactly one finite sample is a number, whatever else a body holds.
    #[test]
    fn no_bytes_make_a_number_by_chance(
        status in prop_oneof![Just(200_u16), 100..600_u16],
        cut in 0..GOOD.len(),
        put in proptest::collection::vec(any::<u8>(), 0..6),
        over in 0..6_usize,
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        let end = (cut + over).min(bytes.len());
        bytes.splice(cut..end, put);
        if let Ok(number) = answer::value(&reply(status, &bytes, &[])) {
            prop_assert_eq!(status, 200);
            prop_assert!(number.get().is_finite());
            let read: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            let series = read["data"]["result"].as_array().unwrap();
            prop_assert!(series.len() == 1 && read["status"] == "success");
            let told: f64 = series[0]["value"][1].as_str().unwrap().parse().unwrap();
            prop_assert_eq!(told.to_bits(), number.get().to_bits());
        }
    }

    #[test]
    fn no_bytes_make_it_panic(status in any::<u16>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let said = answer::value(&reply(status, &body, &[]));
        prop_assert!(said.is_err(), "{:?}", said);
    }
}

#[test]
fn an_address_has_a_path_of_its_own() {
    for (address, wanted) in [
        ("http://127.0.0.1:9090", Some("http://127.0.0.1:9090/api/v1/query")),
        (
            "https://mimir.example/prometheus/",
            Some("https://mimir.example/prometheus/api/v1/query"),
        ),
        ("https://thanos.example/query", Some("https://thanos.example/query/api/v1/query")),
        ("https://a.example/api/v1/", None),
        ("https://a.example/api/v1/query", None),
        ("https://ann:pw@a.example", None),
        ("https://a.example?x=1", None),
        ("https://a.example#x", None),
        ("ftp://a.example", None),
        ("a.example:9090", None),
        ("", None),
    ] {
        assert_eq!(at(address).as_ref().map(Url::as_str), wanted, "{address}");
    }
}

/// Answers each request with this head and body, and tells what was sent.
async fn server(answer: String) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/base", listener.local_addr().unwrap());
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let (mut text, mut part) = (String::new(), [0; 4_096]);
            // The form comes last, and its last key is the timeout.
            while !text.ends_with("ms") {
                let read = stream.read(&mut part).await.unwrap();
                text.push_str(std::str::from_utf8(&part[..read]).unwrap());
            }
            tell.send(text).unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    (address, told)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn config(address: &str, login: ServerLogin) -> MetricServerConfig {
    let at = at(address).unwrap();
    let timeout = Span::seconds(5);
    let access = ServerAccess { at, login, ca: None, certificate: None };
    MetricServerConfig { access, tenant: Some("eu".into()), timeout }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path =
        std::env::temp_dir().join(format!("poolkeeper-prometheus-{}-{name}", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_request_has_the_query_our_time_and_the_newest_credentials() {
    let (address, mut told) = server(ok(GOOD)).await;
    let token = file("token", " one \n");
    let server =
        MetricServer::new(config(&address, ServerLogin::Bearer { token: token.clone() }), None);
    let at = Time::from_millis(1_700_000_000_250);
    let asked = server.value(r#"sum(rate(x{a="b c"}[5m])) + 1"#, at).await;
    assert_eq!(asked, Ok(Decimal::new(7.0).unwrap()));
    let sent = told.recv().await.unwrap().to_ascii_lowercase();
    assert!(sent.starts_with("post /base/api/v1/query http/1.1\r\n"), "{sent}");
    for line in [
        "authorization: bearer one\r\n",
        "x-scope-orgid: eu\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
    ] {
        assert!(sent.contains(line), "{line}: {sent}");
    }
    let form = "query=sum%28rate%28x%7ba%3d%22b+c%22%7d%5b5m%5d%29%29+%2b+1&time=1700000000.250&timeout=4000ms";
    assert!(sent.ends_with(form), "{sent}");
    std::fs::write(&token, "two").unwrap();
    server.value("x", at).await.unwrap();
    let sent = told.recv().await.unwrap();
    assert!(sent.contains("Bearer two\r\n"), "{sent}");
    std::fs::write(&token, "t\u{e4}\n2").unwrap();
    let fault = server.value("x", at).await.unwrap_err();
    assert_eq!(fault.reason, Reason::Credentials);
    std::fs::remove_file(&token).unwrap();
    let fault = server.value("x", at).await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "it is not asked: the file of bearerTokenFile cannot be read; put a good one there"
    );
}

#[derive(Debug, Default)]
struct Identity {
    refused: std::sync::atomic::AtomicU32,
}

impl IdentityTokens for Identity {
    fn token<'a>(&'a self, at: &'a url::Url) -> TokenAnswer<'a> {
        let token = match at.path() {
            "/base/api/v1/query" => Ok(SecretText::of("of-us")),
            _ => Err("it is not asked: there is no token".to_owned()),
        };
        Box::pin(std::future::ready(token))
    }

    fn refused(&self) {
        self.refused.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_workspace_gets_a_token_of_our_identity_and_says_when_it_takes_it_no_more() {
    let identity = std::sync::Arc::new(Identity::default());
    let refused = || identity.refused.load(std::sync::atomic::Ordering::Relaxed);
    let asks = |address: &str| {
        let server = MetricServer::new(config(address, ServerLogin::Identity), None);
        server.with_tokens(Some(identity.clone()))
    };
    let at = Time::from_millis(0);
    let (address, mut told) = server(ok(GOOD)).await;
    asks(&address).value("x", at).await.unwrap();
    let sent = told.recv().await.unwrap().to_ascii_lowercase();
    assert!(sent.contains("authorization: bearer of-us\r\n"), "{sent}");
    assert_eq!(refused(), 0);
    let no = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_owned();
    let (stranger, _told) = server(no).await;
    let fault = asks(&stranger).value("x", at).await.unwrap_err();
    assert_eq!((fault.reason, refused()), (Reason::Denied, 1));
    let without = asks(&format!("{address}/elsewhere")).value("x", at).await.unwrap_err();
    assert_eq!(without.to_string(), "it is not asked: there is no token");
    let nothing = MetricServer::new(config(&address, ServerLogin::Identity), None);
    let fault = nothing.value("x", at).await.unwrap_err();
    assert_eq!(fault.to_string(), "it is not asked: this process has no identity of Azure");
}

#[tokio::test]
async fn no_redirect_is_followed_and_no_answer_is_waited_for_without_end() {
    let (elsewhere, mut told) = server(ok(GOOD)).await;
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    let (address, mut asked) = server(moved).await;
    let password = file("password", "hunter2");
    let login = ServerLogin::Basic { username: "kim".into(), password: password.clone() };
    let reader = MetricServer::new(config(&address, login), None);
    let at = Time::from_millis(0);
    let fault = reader.value("x", at).await.unwrap_err();
    assert_eq!(fault.reason, Reason::NotPrometheus);
    let sent = asked.recv().await.unwrap();
    assert!(sent.contains("Basic a2ltOmh1bnRlcjI=\r\n"), "{sent}");
    assert!(told.try_recv().is_err(), "it was followed");
    let shown = format!("{reader:?} {fault:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("a2lt"), "{shown}");
    std::fs::remove_file(&password).unwrap();
    // The body does not end.
    let (address, _asked) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()).await;
    let hangs = MetricServerConfig {
        timeout: Span::from_millis(200),
        ..config(&address, ServerLogin::None)
    };
    let fault = MetricServer::new(hangs, None).value("x", at).await.unwrap_err();
    assert_eq!(fault.reason, Reason::Timeout, "{fault}");
    // Nothing listens there.
    let closed = MetricServer::new(config("http://127.0.0.1:1", ServerLogin::None), None);
    let fault = closed.value("x", at).await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        "it does not answer: no program listens there; check url, and whether the server runs"
    );
}

#[tokio::test]
async fn the_shorter_of_two_limits_counts_for_a_list() {
    let (address, mut told) = server(ok(GOOD)).await;
    let reader = MetricServer::new(config(&address, ServerLogin::None), None);
    let of = |timeout| SeriesQuestion {
        query: "x",
        at: Time::from_millis(1_000),
        timeout,
        partial: PartialAnswer::Refuse,
    };
    for (limit, told_limit) in [(Span::seconds(2), "1600ms"), (Span::minutes(1), "4000ms")] {
        assert_eq!(reader.values(of(limit)).await, Ok(vec![Decimal::new(7.0).unwrap()]));
        let sent = told.recv().await.unwrap();
        assert!(sent.ends_with(&format!("query=x&time=1.000&timeout={told_limit}")), "{sent}");
    }
    let (address, _asked) =
        server("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".to_owned()).await;
    let hangs = MetricServer::new(config(&address, ServerLogin::None), None);
    let fault = hangs.values(of(Span::from_millis(200))).await.unwrap_err();
    assert_eq!(fault.reason, Reason::Timeout);
    assert!(fault.say.starts_with("it does not answer within 200ms;"), "{fault}");
}

#[tokio::test]
async fn a_certificate_that_is_none_is_named_by_its_key() {
    let (junk, key) = (file("junk.pem", "junk"), file("key.pem", "junk"));
    let plain = config("https://127.0.0.1:1", ServerLogin::None);
    let (mut with_ca, mut own) = (plain.clone(), plain);
    with_ca.access.ca = Some(junk.clone());
    own.access.certificate = Some((junk.clone(), key.clone()));
    for (config, key) in [(with_ca, "caFile"), (own, "certificate")] {
        let fault =
            MetricServer::new(config, None).value("x", Time::from_millis(0)).await.unwrap_err();
        assert_eq!(fault.reason, Reason::Credentials, "{fault}");
        assert!(fault.say.contains(&format!("the file of {key} ")), "{fault}");
    }
    for path in [junk, key] {
        std::fs::remove_file(path).unwrap();
    }
}
