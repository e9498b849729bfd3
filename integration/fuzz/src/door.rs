//! Requests to the API, through its router in memory: what is answered is never a fault of ours, and is what the
//! description of the API says. Requests stand below each other, as HTTP/1 writes them, with a line `===` between; a first
//! line `guarded` asks for tokens, and `%viewer%` in a header is the token of that role.

use axum::body::Body;
use axum::http::Request;
use poolkeeper::model::time::Span;

use crate::http::kit::Kit;
use crate::runtime;

/// Enough for a document, its change, a repetition and looks between.
const MOST: usize = 8;
/// A problem lists the faults of a document; this is far more than one of them takes.
const LONGEST_PROBLEM: usize = 512 << 10;

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let open = text.strip_prefix("guarded\n");
    runtime().block_on(async {
        let kit = if open.is_some() { Kit::guarded().await } else { Kit::open().await };
        for part in open.unwrap_or(&text).split("\n===\n").take(MOST) {
            kit.pass(Span::seconds(1));
            let Some(request) = request(part, &kit) else { continue };
            // A stream of events has no end to wait for.
            if request.uri().path().ends_with("/events") {
                continue;
            }
            let reply = kit.send(request).await;
            assert!(reply.status < 500, "{part}: {}", reply.text);
            assert!(reply.status < 400 || reply.text.len() < LONGEST_PROBLEM, "{part}");
            for token in kit.tokens.values() {
                assert!(!reply.text.contains(token), "{part}: the token is shown: {}", reply.text);
            }
        }
    });
}

/// `None`: no request that HTTP knows; what carries requests to the router refuses it.
fn request(text: &str, kit: &Kit) -> Option<Request<Body>> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.split('\n');
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = Request::builder().method(method).uri(path);
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let mut value = value.trim().to_owned();
        for (role, token) in &kit.tokens {
            value = value.replace(&format!("%{role}%"), token);
        }
        request = request.header(name, value);
    }
    request.body(Body::from(body.to_owned())).ok()
}
