//! The wire to whoever gives tokens: writes down how a refusal looked, since what is built on it forgets that.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azure_core::http::{AsyncRawResponse, HttpClient, Request, Url};

use super::failed::{NO_TOKEN, Why};
use crate::adapters::azure::cause;
use crate::adapters::azure::throttle::ThrottleHint;
use crate::model::time::{Span, Time};

const SILENCE: &str = "nobody answers at its address, or the connection broke";

/// One attempt's line.
#[derive(Debug)]
pub(super) struct Line {
    http: Arc<dyn HttpClient>,
    /// On the machine itself an authority may speak without TLS; what asks it insists on an address with it.
    plain: Option<Url>,
    heard: Mutex<Heard>,
    /// A Retry-After that is a date is measured from here, unless the answer has a date of its own.
    began: Time,
}

/// The last answer: why it holds no token, and its Retry-After.
#[derive(Debug, Default)]
struct Heard {
    why: Option<Why>,
    wait: Option<Span>,
}

impl Line {
    pub fn new(http: Arc<dyn HttpClient>, authority: &Url, began: Time) -> Self {
        let plain = (authority.scheme() == "http").then(|| authority.clone());
        Self { http, plain, heard: Mutex::default(), began }
    }

    /// The authority as those who insist on TLS may be told it.
    pub fn dressed(authority: &Url) -> String {
        let mut dressed = authority.clone();
        // The port of plain addresses is that of none, so that both are the same origin but for the scheme.
        let port = authority.port_or_known_default();
        let fits = dressed.set_scheme("https").is_ok() && dressed.set_port(port).is_ok();
        if fits { dressed.to_string() } else { authority.to_string() }
    }

    /// The last refusal, or that nobody answered.
    pub fn heard(&self) -> Option<Why> {
        self.state().why.take()
    }

    /// The last answer, if it was a refusal.
    pub fn refused(&self) -> Option<Why> {
        self.state().why.clone().filter(|why| matches!(why, Why::Refused { .. }))
    }

    /// Retry-After of the last answer.
    pub fn wait(&self) -> Option<Span> {
        self.state().wait
    }

    fn state(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, why: Why, wait: Option<Span>) {
        *self.state() = Heard { why: Some(why), wait };
    }

    /// The same request without TLS, if it is for the authority on the machine itself.
    fn undressed(&self, request: &Request) -> Option<Request> {
        let plain = self.plain.as_ref()?;
        let url = request.url();
        let same = url.host_str() == plain.host_str()
            && url.port_or_known_default() == plain.port_or_known_default();
        if !same {
            return None;
        }
        let mut undressed = request.clone();
        let port = plain.port();
        let fits = undressed.url_mut().set_scheme("http").is_ok()
            && undressed.url_mut().set_port(port).is_ok();
        fits.then_some(undressed)
    }
}

#[async_trait::async_trait]
impl HttpClient for Line {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        self.note(Why::Unanswered(SILENCE), None);
        // What is built on this line logs what went wrong there, so that must not be in another's words.
        let in_own_words = |error: azure_core::Error| {
            let say = cause::known(&error).unwrap_or(SILENCE);
            self.note(Why::Unanswered(say), None);
            azure_core::Error::with_message(azure_core::error::ErrorKind::Io, say)
        };
        let undressed = self.undressed(request);
        let sent = undressed.as_ref().unwrap_or(request);
        let answer = self.http.execute_request(sent).await.map_err(in_own_words)?;
        let answer = answer.try_into_raw_response().await.map_err(in_own_words)?;
        let (status, headers, body) = answer.deconstruct();
        let number_of_status = u16::from(status);
        let why = match number_of_status {
            200..300 => Why::Unanswered(NO_TOKEN),
            status => Why::Refused { status, number: number(&body), code: code(&body) },
        };
        let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.note(why, ThrottleHint::read(pairs, number_of_status, self.began).retry_after);
        Ok(AsyncRawResponse::from_bytes(status, headers, body))
    }
}

/// Entra's number in a refusal: `AADSTS` and digits.
fn number(body: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"AADSTS";
    let at = body.windows(MARK.len()).position(|part| part == MARK)? + MARK.len();
    let digits = body[at..].iter().take(9).take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u32, |number, byte| number * 10 + u32::from(byte - b'0'));
    (number > 0).then_some(number)
}

/// The code of a refusal, where it is one of those that are documented: any other word may be what was sent.
fn code(body: &[u8]) -> Option<Box<str>> {
    const CODES: [&str; 11] = [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "invalid_scope",
        "invalid_resource",
        "unauthorized_client",
        "unsupported_grant_type",
        "access_denied",
        "temporarily_unavailable",
        "server_error",
        "bad_request_102",
    ];
    let holds = |code: &str| body.windows(code.len()).any(|part| part == code.as_bytes());
    CODES.into_iter().find(|code| holds(code)).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_authority_is_dressed_for_those_who_insist() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(Line::dressed(&url("http://127.0.0.1:8080")), "https://127.0.0.1:8080/");
        assert_eq!(Line::dressed(&url("http://localhost")), "https://localhost:80/");
        assert_eq!(Line::dressed(&url("https://login.example")), "https://login.example/");
    }

    #[test]
    fn a_refusal_keeps_its_number_and_its_code_only() {
        let body = br#"{"error":"invalid_client","error_description":"AADSTS7000215: secret hunter2 of ..."}"#;
        assert_eq!(number(body), Some(7_000_215));
        assert_eq!(code(body).as_deref(), Some("invalid_client"));
        assert_eq!((number(b"AADSTS"), number(b""), code(b"hunter2")), (None, None, None));
        assert_eq!(number(b"AADSTS99999999999999"), Some(999_999_999));
    }
}
