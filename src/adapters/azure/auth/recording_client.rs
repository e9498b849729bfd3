//! The HTTP client for token requests. It records refusals, because the credential library discards their details.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use azure_core::http::{AsyncRawResponse, HttpClient, Request, Url};

use super::failed::{AuthFailureReason, NO_TOKEN};
use crate::adapters::azure::{cause, hints};
use crate::model::time::{Span, Time};

const SILENCE: &str = "its address does not respond, or the connection broke";

/// The client of one attempt.
#[derive(Debug)]
pub(super) struct RecordingClient {
    http: Arc<dyn HttpClient>,
    /// A local authority may use plain HTTP, but the library insists on an https address.
    plain: Option<Url>,
    heard: Mutex<Heard>,
    /// The base for a Retry-After that is a date, unless the response has a Date header.
    began: Time,
}

/// The last response: why it contains no token, and its Retry-After.
#[derive(Debug, Default)]
struct Heard {
    why: Option<AuthFailureReason>,
    wait: Option<Span>,
}

impl RecordingClient {
    pub fn new(http: Arc<dyn HttpClient>, authority: &Url, began: Time) -> Self {
        let plain = (authority.scheme() == "http").then(|| authority.clone());
        Self { http, plain, heard: Mutex::default(), began }
    }

    /// The authority's address with https, for a library that insists on TLS.
    pub fn dressed(authority: &Url) -> String {
        let mut dressed = authority.clone();
        // Keep the effective port explicitly, so that only the scheme differs.
        let port = authority.port_or_known_default();
        let fits = dressed.set_scheme("https").is_ok() && dressed.set_port(port).is_ok();
        if fits { dressed.to_string() } else { authority.to_string() }
    }

    /// The last refusal, or that there was no response.
    pub fn heard(&self) -> Option<AuthFailureReason> {
        self.state().why.take()
    }

    /// The last response, if it was a refusal.
    pub fn refused(&self) -> Option<AuthFailureReason> {
        self.state().why.clone().filter(|why| matches!(why, AuthFailureReason::Refused { .. }))
    }

    /// Retry-After of the last response.
    pub fn wait(&self) -> Option<Span> {
        self.state().wait
    }

    fn state(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, why: AuthFailureReason, wait: Option<Span>) {
        *self.state() = Heard { why: Some(why), wait };
    }

    /// The same request over plain HTTP, if it is for the local authority.
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
impl HttpClient for RecordingClient {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        self.note(AuthFailureReason::Unanswered(SILENCE), None);
        // The library logs what went wrong here, so the error must contain only text of our own.
        let in_own_words = |error: azure_core::Error| {
            let say = cause::known(&error).unwrap_or(SILENCE);
            self.note(AuthFailureReason::Unanswered(say), None);
            azure_core::Error::with_message(azure_core::error::ErrorKind::Io, say)
        };
        let undressed = self.undressed(request);
        let sent = undressed.as_ref().unwrap_or(request);
        let answer = self.http.execute_request(sent).await.map_err(in_own_words)?;
        let answer = answer.try_into_raw_response().await.map_err(in_own_words)?;
        let (status, headers, body) = answer.deconstruct();
        let number_of_status = u16::from(status);
        let why = match number_of_status {
            200..300 => AuthFailureReason::Unanswered(NO_TOKEN),
            status => {
                AuthFailureReason::Refused { status, number: number(&body), code: code(&body) }
            }
        };
        let pairs = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.note(why, hints::read(pairs, number_of_status, self.began).retry_after);
        Ok(AsyncRawResponse::from_bytes(status, headers, body))
    }
}

/// Entra's error number in a refusal: `AADSTS` and digits.
fn number(body: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"AADSTS";
    let at = body.windows(MARK.len()).position(|part| part == MARK)? + MARK.len();
    let digits = body[at..].iter().take(9).take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_u32, |number, byte| number * 10 + u32::from(byte - b'0'));
    (number > 0).then_some(number)
}

/// The code of a refusal, if it is a documented one: any other text may repeat what was sent.
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
        assert_eq!(
            RecordingClient::dressed(&url("http://127.0.0.1:8080")),
            "https://127.0.0.1:8080/"
        );
        assert_eq!(RecordingClient::dressed(&url("http://localhost")), "https://localhost:80/");
        assert_eq!(
            RecordingClient::dressed(&url("https://login.example")),
            "https://login.example/"
        );
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
