//! Each way to a token as it looks on the wire, the order of trying, and the reasons when none works.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use azure_core::http::Method;
use poolkeeper::adapters::azure::auth::{
    AuthFailureReason, AuthSettings, ClientSecret, TokenSource, Way,
};
use poolkeeper::ambient::Clock;
use poolkeeper::model::time::Span;

use crate::auth::sts::{Cli, FEDERATED, File, Reply, SECRET, Sts, TOKEN, by, full, get, public};
use crate::support::folder::Folder;

const HOUR: Reply = Reply::Token(Span::hours(1));
const MACHINE: &str = "http://169.254.169.254/metadata/identity/oauth2/token";

fn bearer(n: usize) -> String {
    format!("Bearer {TOKEN}-{n}")
}

#[tokio::test(start_paused = true)]
async fn a_client_secret() {
    let sts = Sts::always(HOUR);
    let tokens = sts.tokens(by(Way::ClientSecret));
    assert_eq!(get(&tokens).await, bearer(1));
    let asked = &sts.asked()[0];
    assert_eq!(asked.method, Method::Post);
    assert_eq!(
        asked.url.as_str(),
        "https://login.microsoftonline.com/5d4c3b2a-0000-4000-8000-000000000001/oauth2/v2.0/token"
    );
    assert_eq!(asked.form["client_secret"], SECRET);
    assert_eq!(asked.form["grant_type"], "client_credentials");
    assert_eq!(asked.form["scope"], "https://management.azure.com/.default");
}

#[tokio::test(start_paused = true)]
async fn a_workload_identity_reads_its_file_each_time() {
    let sts = Sts::always(HOUR);
    let file = File::new("federated", &format!("{FEDERATED}-1\n"));
    let settings =
        AuthSettings { federated_token_file: Some(file.0.clone()), ..by(Way::WorkloadIdentity) };
    let tokens = sts.tokens(settings);
    let first = tokens.token().await.unwrap();
    std::fs::write(&file.0, format!("{FEDERATED}-2")).unwrap();
    tokens.refused(&first);
    get(&tokens).await;
    let sent: Vec<_> = sts.asked().iter().map(|a| a.form["client_assertion"].clone()).collect();
    assert_eq!(sent, [format!("{FEDERATED}-1"), format!("{FEDERATED}-2")]);
    assert_eq!(
        sts.asked()[0].form["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_secret_of_a_file_is_read_for_each_token() {
    let sts = Sts::always(HOUR);
    let file = File::new("secret", "hunter-1\n");
    let env = |name: &str| match name {
        "AZURE_TENANT_ID" | "AZURE_CLIENT_ID" => Some("an-id".to_owned()),
        "AZURE_CLIENT_SECRET_FILE" => Some(file.0.display().to_string()),
        _ => None,
    };
    let settings = AuthSettings::from_env(public(), env).unwrap();
    let tokens = sts.tokens(AuthSettings { way: Some(Way::ClientSecret), ..settings });
    let first = tokens.token().await.unwrap();
    std::fs::write(&file.0, "  hunter-2\r\n").unwrap();
    tokens.refused(&first);
    get(&tokens).await;
    let sent: Vec<_> = sts.asked().iter().map(|a| a.form["client_secret"].clone()).collect();
    assert_eq!(sent, ["hunter-1", "hunter-2"]);
    assert!(!format!("{tokens:?}").contains("hunter"), "{tokens:?}");
}

#[tokio::test(start_paused = true)]
async fn a_file_that_holds_no_secret_is_refused_and_never_waited_for() {
    let folder = Folder::new();
    let pipe = folder.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (name, text, say) in [
        ("missing", None, "cannot be read"),
        ("empty", Some(b" \n".to_vec()), "is empty"),
        ("long", Some(vec![b'x'; 65 << 10]), "is longer than 64 KiB"),
        ("bytes", Some(vec![0xff, 0xfe]), "is no text"),
        ("pipe", None, "is no plain file"),
        ("", None, "is no plain file"),
    ] {
        let path = folder.file(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let device = Path::new("/dev/zero");
        for path in [path.as_path(), device] {
            let say = if path == device { "is no plain file" } else { say };
            let secret = Some(ClientSecret::File(path.to_owned()));
            let certificate_file = Some(path.to_owned());
            let federated_token_file = Some(path.to_owned());
            let files =
                AuthSettings { secret, certificate_file, federated_token_file, ..full(public()) };
            for way in [Way::ClientSecret, Way::WorkloadIdentity] {
                let sts = Sts::always(HOUR);
                let failed = sts.tokens(AuthSettings { way: Some(way), ..files.clone() });
                let failed = failed.token().await.unwrap_err().to_string();
                assert!(failed.ends_with(say), "{name}: {failed}");
                assert_eq!(sts.count(), 0);
            }
        }
    }
}

#[test]
fn two_secrets_are_one_too_many() {
    let env = |name: &str| name.starts_with("AZURE_CLIENT_SECRET").then(|| "hunter".to_owned());
    let said = AuthSettings::from_env(public(), env).unwrap_err().to_string();
    assert_eq!(said, "AZURE_CLIENT_SECRET and AZURE_CLIENT_SECRET_FILE are both set");
}

/// What a pod with an AKS identity binding is given: its token is for the cluster's own proxy, and Entra takes none of it.
#[tokio::test(start_paused = true)]
async fn an_identity_binding_is_refused_and_no_other_identity_steps_in() {
    let file = File::new("binding", FEDERATED);
    let env = |name: &str| match name {
        "AZURE_TENANT_ID" | "AZURE_CLIENT_ID" => Some("an-id".to_owned()),
        "AZURE_FEDERATED_TOKEN_FILE" => Some(file.0.display().to_string()),
        "AZURE_KUBERNETES_TOKEN_PROXY" => Some("https://kubernetes.default:9443".to_owned()),
        _ => None,
    };
    let settings = AuthSettings::from_env(public(), env).unwrap();
    let sts = Sts::always(HOUR);
    let failed = sts.tokens(settings.clone()).token().await.unwrap_err();
    let said = failed.to_string();
    assert!(failed.is_final() && failed.tried.len() == 1, "{said}");
    for part in ["AZURE_KUBERNETES_TOKEN_PROXY", "not supported", "use-identity-binding"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(sts.asked().len(), 0, "nothing is asked for what would be refused");
    // Who names another way gets it.
    get(&sts.tokens(AuthSettings { way: Some(Way::ManagedIdentity), ..settings })).await;
}

#[tokio::test(start_paused = true)]
async fn a_managed_identity_by_its_machines_service() {
    let sts = Sts::always(HOUR);
    let plain = AuthSettings {
        client: None,
        way: Some(Way::ManagedIdentity),
        ..AuthSettings::new(public())
    };
    let client = by(Way::ManagedIdentity);
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i";
    let resource = AuthSettings { identity: Some(id.into()), ..client.clone() };
    for settings in [plain, client, resource] {
        get(&sts.tokens(settings)).await;
    }
    let asked = sts.asked();
    assert_eq!(asked.len(), 3, "no probe where the way was chosen");
    for asked in &asked {
        assert!(asked.url.as_str().starts_with(MACHINE), "{}", asked.url);
        assert_eq!(asked.headers["metadata"], "true");
        assert_eq!(asked.query("resource").unwrap(), "https://management.azure.com");
    }
    assert_eq!((asked[0].query("client_id"), asked[0].query("msi_res_id")), (None, None));
    assert_eq!(asked[1].query("client_id").unwrap(), "5d4c3b2a-0000-4000-8000-000000000002");
    assert_eq!(asked[2].query("msi_res_id").unwrap(), id);
}

#[tokio::test(start_paused = true)]
async fn a_machines_service_that_fails_keeps_nobody_longer_than_ten_seconds() {
    for (reply, why) in [
        (
            Reply::Status(500, String::new()),
            AuthFailureReason::Refused { status: 500, number: None, code: None },
        ),
        (Reply::Hangs, AuthFailureReason::Late(10)),
        (
            Reply::Status(
                400,
                r#"{"error":"invalid_request","error_description":"Identity not found"}"#.into(),
            ),
            AuthFailureReason::Refused {
                status: 400,
                number: None,
                code: Some("invalid_request".into()),
            },
        ),
    ] {
        let sts = Sts::always(reply);
        let failed = sts.tokens(by(Way::ManagedIdentity)).token().await.unwrap_err();
        assert_eq!(failed.tried[0].why, why);
        assert!(sts.clock.passed() <= Span::seconds(10));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machines_service_that_is_renewed_or_does_not_know_us_yet_is_asked_again() {
    for (status, say) in [
        (404, "the identity service of this machine is being updated"),
        (410, "the identity service of this machine is being updated"),
        (400, "check its assignment"),
    ] {
        let sts = Sts::always(Reply::Status(status, r#"{"error":"invalid_request"}"#.into()));
        let failed = sts.tokens(by(Way::ManagedIdentity)).token().await.unwrap_err();
        assert!(!failed.is_final() && failed.to_string().contains(say), "{status}: {failed}");
        // Entra's refusal is final.
        let failed = sts.tokens(by(Way::ClientSecret)).token().await.unwrap_err();
        assert!(failed.is_final(), "{status}: {failed}");
    }
    for status in [401, 403, 405] {
        let sts = Sts::always(Reply::Status(status, "{}".into()));
        let failed = sts.tokens(by(Way::ManagedIdentity)).token().await.unwrap_err();
        assert!(failed.is_final(), "{status}: {failed}");
    }
}

#[test]
fn a_managed_identity_of_a_host_that_serves_it() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "auth::ways::inside_such_a_host", "--ignored"])
        .env("IDENTITY_ENDPOINT", "http://127.0.0.1:41/msi/token")
        .env("IDENTITY_HEADER", "the-header")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
}

#[tokio::test(start_paused = true)]
#[ignore = "run by the test above, with the environment of such a host"]
async fn inside_such_a_host() {
    let sts = Sts::always(HOUR);
    let settings = AuthSettings::from_env(public(), |name| std::env::var(name).ok()).unwrap();
    assert!(settings.host_serves_identity);
    let settings = AuthSettings { client: Some("an-id".into()), ..settings };
    let tokens = sts.tokens(settings.clone());
    assert_eq!(get(&tokens).await, bearer(1));
    assert_eq!(tokens.way(), Some(Way::ManagedIdentity));
    let asked = &sts.asked()[0];
    assert!(asked.url.as_str().starts_with("http://127.0.0.1:41/msi/token?"), "{}", asked.url);
    assert_eq!(asked.headers["x-identity-header"], "the-header");
    assert_eq!(asked.query("client_id").as_deref(), Some("an-id"));
    let by_resource =
        AuthSettings { way: Some(Way::ManagedIdentity), identity: Some("/x".into()), ..settings };
    let failed = sts.tokens(by_resource).token().await.unwrap_err();
    assert!(failed.to_string().contains("give its client id"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn the_azure_cli() {
    let sts = Sts::always(Reply::Hangs);
    let expires = sts.clock.now().plus(Span::hours(1)).millis() / 1_000;
    let good = format!(
        r#"{{"accessToken":"{TOKEN}-cli","expiresOn":"x","expires_on":{expires},"tokenType":"Bearer"}}"#
    );
    let tokens = sts.tokens(by(Way::AzureCli)).with_cli(Arc::new(Cli(0, good, "")));
    assert_eq!(get(&tokens).await, bearer(0).replace("-0", "-cli"));
    for (code, out, err, say) in [
        (127, "", "sh: az: not found", "az: is not installed"),
        (1, "", "ERROR: Please run 'az login' to setup account.", "run `az login`"),
        (0, r#"{"accessToken":"a","tokenType":"Bearer"}"#, "", "is too old"),
        (1, "", "hunter2-the-client-secret", "run `az account get-access-token`"),
    ] {
        let cli = Arc::new(Cli(code, out.into(), err));
        let failed = sts.tokens(by(Way::AzureCli)).with_cli(cli).token().await.unwrap_err();
        assert!(failed.to_string().contains(say), "{failed}");
        assert!(!format!("{failed} {failed:?}").contains(SECRET));
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_tried_in_order_and_the_first_that_works_stays() {
    let sts = Sts::new(|asked| match asked.url.host_str() {
        Some("169.254.169.254") => Reply::Hangs,
        _ => HOUR,
    });
    let file = File::new("order", "");
    let settings = AuthSettings { federated_token_file: Some(file.0.clone()), ..full(public()) };
    let tokens = sts.tokens(settings);
    assert_eq!(get(&tokens).await, bearer(2));
    assert_eq!(tokens.way(), Some(Way::ClientSecret));
    assert_eq!(sts.clock.passed(), Span::seconds(1), "no machine's service shows itself");
    assert!(!sts.asked()[0].headers.contains_key("metadata"), "it was not asked for a token");
    // The file would do now, but who we are does not change.
    std::fs::write(&file.0, FEDERATED).unwrap();
    tokens.refused(&tokens.token().await.unwrap());
    get(&tokens).await;
    assert!(sts.asked()[2].form.contains_key("client_secret"));
    let other =
        sts.tokens(AuthSettings { federated_token_file: Some(file.0.clone()), ..full(public()) });
    get(&other).await;
    assert_eq!(other.way(), Some(Way::WorkloadIdentity));
}

#[tokio::test(start_paused = true)]
async fn where_none_works_each_says_why() {
    let sts = Sts::always(Reply::Breaks);
    let cli = Arc::new(Cli(127, String::new(), "az: not found"));
    let tokens = sts.tokens(AuthSettings::new(public())).with_cli(cli);
    let failed = tokens.token().await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "no token by any way: workload identity: AZURE_FEDERATED_TOKEN_FILE is not set; managed identity: this machine \
         has no service for it; client secret: AZURE_CLIENT_SECRET is not set; client certificate: \
         AZURE_CLIENT_CERTIFICATE_PATH is not set; Azure CLI: az: is not installed, or not on the path"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_the_next_step() {
    let refused = |number: u32| {
        let body = format!(
            r#"{{"error":"invalid_client","error_description":"AADSTS{number}: {SECRET}. Trace ID: x","error_codes":[{number}]}}"#
        );
        Reply::Status(401, body)
    };
    for (number, say, is_final) in [
        (7_000_215, "the client secret is wrong: give the secret's value, not its id", true),
        (7_000_222, "the client secret has expired", true),
        (700_016, "check client id and tenant", true),
        (90_002, "there is no such tenant", true),
        (700_213, "no federated credential", false),
        (700_024, "check this machine's clock", false),
        (1_234, "refused with 401 (AADSTS1234)", true),
    ] {
        let sts = Sts::always(refused(number));
        let failed = sts.tokens(by(Way::ClientSecret)).token().await.unwrap_err();
        assert!(failed.to_string().contains(say), "{failed}");
        assert_eq!(failed.is_final(), is_final, "{failed}");
    }
    for (reply, say) in [
        (Reply::Breaks, "its address does not respond, or the connection broke"),
        (Reply::Status(200, "<html>sign in</html>".into()), "what was answered is no token"),
        (Reply::Status(502, "<html>".into()), "refused with 502"),
    ] {
        let sts = Sts::always(reply);
        let failed = sts.tokens(by(Way::ClientSecret)).token().await.unwrap_err();
        assert!(failed.to_string().ends_with(say) && !failed.is_final(), "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_set_or_is_no_id_is_named() {
    let sts = Sts::always(HOUR);
    let secret = by(Way::ClientSecret);
    let strange = Some("a/../b".into());
    for (settings, say) in [
        (AuthSettings { tenant: None, ..secret.clone() }, "AZURE_TENANT_ID is not set"),
        (AuthSettings { client: None, ..secret.clone() }, "AZURE_CLIENT_ID is not set"),
        (AuthSettings { tenant: strange.clone(), ..secret.clone() }, "the tenant id: is no id"),
        (AuthSettings { client: strange, ..secret }, "the client id: is no id"),
        (
            AuthSettings {
                federated_token_file: Some("no/such/file".into()),
                ..by(Way::WorkloadIdentity)
            },
            "the federated token file: cannot be read",
        ),
    ] {
        let failed = sts.tokens(settings).token().await.unwrap_err();
        assert!(failed.to_string().contains(say) && failed.is_final(), "{failed}");
    }
    assert_eq!(sts.count(), 0);
}
