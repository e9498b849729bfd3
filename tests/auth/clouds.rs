//! The clouds, and the one origin to which their tokens are shown.

use azure_core::http::{Method, Request, Url};
use poolkeeper::adapters::azure::auth::{AccessToken, AuthSettings, TokenSource, Way};
use poolkeeper::adapters::azure::cloud::{AzureCloud, BadCloud};
use poolkeeper::model::time::Span;

use crate::auth::sts::{Reply, Sts, full, public};

async fn token(cloud: AzureCloud) -> (AccessToken, String, String) {
    let sts = Sts::always(Reply::Token(Span::hours(1)));
    let settings = AuthSettings { way: Some(Way::ClientSecret), ..full(cloud) };
    let token = sts.tokens(settings).token().await.unwrap();
    let asked = sts.asked()[0].clone();
    (token, asked.url.origin().ascii_serialization(), asked.form["scope"].clone())
}

#[tokio::test(start_paused = true)]
async fn each_cloud_has_its_own_authority_audience_and_resource_manager() {
    let own = AzureCloud::custom("https://sts.own.example", "https://arm.own.example:8443/", None)
        .unwrap();
    let stack =
        AzureCloud::custom("https://sts.x", "https://arm.x", Some("https://aud.x/")).unwrap();
    for (cloud, authority, scope, arm) in [
        (
            public(),
            "https://login.microsoftonline.com",
            "https://management.azure.com/.default",
            "https://management.azure.com",
        ),
        (
            AzureCloud::named("AzureUSGovernment").unwrap(),
            "https://login.microsoftonline.us",
            "https://management.core.usgovcloudapi.net/.default",
            "https://management.usgovcloudapi.net",
        ),
        (
            AzureCloud::named("AzureChinaCloud").unwrap(),
            "https://login.chinacloudapi.cn",
            "https://management.chinacloudapi.cn/.default",
            "https://management.chinacloudapi.cn",
        ),
        (
            own,
            "https://sts.own.example",
            "https://arm.own.example:8443/.default",
            "https://arm.own.example:8443",
        ),
        (stack, "https://sts.x", "https://aud.x/.default", "https://arm.x"),
        (
            AzureCloud::custom("http://127.0.0.1:4443", "http://127.0.0.1:4000", None).unwrap(),
            "http://127.0.0.1:4443",
            "http://127.0.0.1:4000/.default",
            "http://127.0.0.1:4000",
        ),
    ] {
        let (token, asked, scoped) = token(cloud.clone()).await;
        assert_eq!((asked.as_str(), scoped.as_str()), (authority, scope));
        assert_eq!(cloud.origin().as_str(), arm);
        let mut request = Request::new(Url::parse(&format!("{arm}/x?y=z")).unwrap(), Method::Get);
        token.authorize(&mut request).unwrap();
    }
    assert_eq!(AzureCloud::named("elsewhere"), None);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_shown_to_nobody_else() {
    let (token, ..) = token(public()).await;
    for url in [
        "https://management.azure.com.evil.example/x",
        "https://management.azure.com@evil.example/x",
        "https://evil.example/?https://management.azure.com",
        "https://management.azure.com:8443/x",
        "http://management.azure.com/x",
        "http://management.azure.com:443/x",
        "http://127.0.0.1/x",
        "https://eastus.management.chinacloudapi.cn/x",
        "https://eastus.management.azure.com:8443/x",
        "https://eastus.management.azure.com.evil.example/x",
        "https://evil-management.azure.com/x",
    ] {
        let mut request = Request::new(Url::parse(url).unwrap(), Method::Get);
        let refused = token.authorize(&mut request).unwrap_err();
        assert!(refused.to_string().starts_with("a token for https://management.azure.com"));
        assert_eq!(request.headers().iter().count(), 0, "{url}");
    }
    // A region's own host is of the same cloud: answers of the one name the other.
    for same in ["https://MANAGEMENT.azure.com:443/x", "https://eastus.management.azure.com/x"] {
        let mut same = Request::new(Url::parse(same).unwrap(), Method::Get);
        token.authorize(&mut same).unwrap();
    }
}

#[test]
fn an_address_without_tls_is_for_the_machine_itself() {
    let custom = AzureCloud::custom;
    let (good, plain) = ("https://x.example", "http://x.example");
    assert_eq!(custom(plain, good, None), Err(BadCloud::NotTls { what: "authority" }));
    assert_eq!(custom(good, plain, None), Err(BadCloud::NotTls { what: "resource manager" }));
    assert_eq!(custom("x", good, None), Err(BadCloud::NoAddress { what: "authority" }));
    assert_eq!(custom("ftp://x", good, None), Err(BadCloud::NoAddress { what: "authority" }));
    assert_eq!(custom(good, good, Some("a b")), Err(BadCloud::NoAudience));
    for own in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://127.9.9.9"] {
        assert!(custom(own, own, Some(good)).is_ok(), "{own}");
    }
    assert!(custom("http://127.0.0.1.evil.example", good, None).is_err());
}

#[test]
fn the_environment_is_read_as_other_tools_read_it() {
    let env = |name: &str| {
        let value = match name {
            "AZURE_AUTHORITY_HOST" => "https://login.microsoftonline.us/",
            "AZURE_TENANT_ID" => "t",
            "AZURE_CLIENT_ID" => "c",
            "AZURE_CLIENT_SECRET" => "hunter2",
            "AZURE_CLIENT_CERTIFICATE_PATH" => "",
            "AZURE_FEDERATED_TOKEN_FILE" => "f",
            "AZURE_CLIENT_SEND_CERTIFICATE_CHAIN" => "true",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let settings = AuthSettings::from_env(public(), env).unwrap();
    assert_eq!(settings.cloud.authority().as_str(), "https://login.microsoftonline.us/");
    assert_eq!(settings.cloud.origin().as_str(), "https://management.azure.com");
    assert_eq!((settings.tenant.as_deref(), settings.client.as_deref()), (Some("t"), Some("c")));
    assert_eq!(settings.federated_token_file.as_deref(), Some(std::path::Path::new("f")));
    assert_eq!((settings.certificate_file, settings.way), (None, None), "what is empty is not set");
    assert!(settings.send_certificates && !settings.host_serves_identity);
}
