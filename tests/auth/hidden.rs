//! No secret in any text: settings, tokens and failures printed in all ways, and all that is logged at any level, while the
//! other side says back all it hears.

use std::sync::Arc;

use azure_core::http::{Method, Request, Url};
use poolkeeper::adapters::azure::auth::{AuthSettings, TokenSource, Way};
use poolkeeper::model::time::Span;

use crate::auth::log::Log;
use crate::auth::sts::{Cli, FEDERATED, File, Reply, SECRET, Sts, TOKEN, by};

fn nothing_of_it(text: &str) {
    for secret in [SECRET, TOKEN, FEDERATED, "eyJ", "PRIVATE"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_works_is_printed_without_it() {
    let log = Log::default();
    let _logs = tracing::subscriber::set_default(log.clone());
    let sts = Sts::always(Reply::Token(Span::hours(1)));
    let settings = by(Way::ClientSecret);
    nothing_of_it(&format!("{settings:?} {settings:#?}"));
    let tokens = sts.tokens(settings);
    let token = tokens.token().await.unwrap();
    nothing_of_it(&format!("{token:?} {token:#?} {tokens:?} {tokens:#?}"));
    let source: &dyn TokenSource = &tokens;
    nothing_of_it(&format!("{source:?}"));
    let url = Url::parse("https://management.azure.com/x").unwrap();
    let mut request = Request::new(url, Method::Get);
    token.authorize(&mut request).unwrap();
    nothing_of_it(&format!("{request:?} {:?}", request.headers()));
    let logged = log.text();
    assert!(logged.contains("oauth2/v2.0/token"), "nothing was logged: {logged}");
    nothing_of_it(&logged);
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_printed_without_it() {
    let log = Log::default();
    let _logs = tracing::subscriber::set_default(log.clone());
    let file = File::new("hidden", FEDERATED);
    let certificate: std::path::PathBuf =
        [env!("CARGO_MANIFEST_DIR"), "tests", "auth", "fixtures", "pkcs8.pem"].iter().collect();
    let echoes = |status: u16| {
        Sts::new(move |asked| {
            let form: Vec<String> = asked.form.values().cloned().collect();
            Reply::Status(
                status,
                format!(r#"{{"error":"{}","error_description":"{TOKEN}"}}"#, form.join(" ")),
            )
        })
    };
    let mut said = Vec::new();
    for way in Way::ALL {
        for sts in [echoes(400), echoes(401), echoes(200), echoes(500), Sts::always(Reply::Breaks)]
        {
            let settings = AuthSettings {
                federated_token_file: Some(file.0.clone()),
                certificate_file: Some(certificate.clone()),
                ..by(way)
            };
            let cli = Arc::new(Cli(1, TOKEN.into(), "the secret is hunter2-the-client-secret"));
            let failed = sts.tokens(settings).with_cli(cli).token().await.unwrap_err();
            let mut text = format!("{failed} {failed:?} {failed:#?}");
            let mut source = std::error::Error::source(&failed);
            while let Some(cause) = source {
                text += &format!(" {cause} {cause:?}");
                source = cause.source();
            }
            nothing_of_it(&text);
            said.push(failed.to_string());
        }
    }
    nothing_of_it(&log.text());
    assert_eq!(said.len(), 25);
    assert!(said.iter().all(|said| said.starts_with("no token by ")), "{said:#?}");
}
