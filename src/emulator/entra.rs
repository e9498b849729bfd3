//! The other hosts that a client calls on its way to ARM: Entra ID's tokens and discovery, the metadata service of a
//! VM, and the description of the cloud. Tokens look real and are worthless anywhere else.

use serde_json::{Value, json};

use super::cloud::EmulatedCloud;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::seed::IdentitySeed;
use super::text::{american, base64url, from_base64url, guid_of, pairs, rfc3339};
use crate::world::{SECOND, WorldRefusal};

/// The identity that a token names, if it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub client: Option<String>,
}

/// `None`: the path does not belong to a login, but to ARM.
pub(super) fn answer(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Option<HandledRequest> {
    let reply = match (ask.method.as_str(), ask.words().as_slice()) {
        ("GET", ["metadata", "endpoints"]) => endpoints(cloud, ask),
        ("GET", ["metadata", "identity", "oauth2", "token"]) => managed(cloud, ask),
        ("GET", ["common", "discovery", "instance"]) => discovery(cloud, ask),
        ("GET", [_, "v2.0", ".well-known", "openid-configuration"]) => openid(cloud, ask),
        ("POST", [tenant, "oauth2", "v2.0", "token"] | [tenant, "oauth2", "token"]) => {
            token(cloud, ask, tenant)
        }
        _ => return None,
    };
    Some(Ok(reply))
}

fn endpoints(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> EmulatorReply {
    let base = &ask.base;
    EmulatorReply::ok(&json!({ "name": "Emulator", "resourceManager": format!("{base}/"),
        "authentication": { "loginEndpoint": base, "audiences": [format!("{base}/")],
            "tenant": cloud.tenant, "identityProvider": "AAD" },
        "portal": base, "graph": base, "graphAudience": base,
        "suffixes": { "storage": "core.emulated.invalid", "keyVaultDns": "vault.emulated.invalid" } }))
}

fn discovery(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> EmulatorReply {
    let host = ask.base.split_once("://").map_or("", |(_, host)| host);
    let tenant = &cloud.tenant;
    EmulatorReply::ok(&json!({
        "tenant_discovery_endpoint": format!("{}/{tenant}/v2.0/.well-known/openid-configuration", ask.base),
        "api-version": "1.1",
        "metadata": [{ "preferred_network": host, "preferred_cache": host, "aliases": [host] }] }))
}

fn openid(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> EmulatorReply {
    let given = ask.part(0);
    let tenant = match ask.lower.first().map(String::as_str) {
        Some("common" | "organizations" | "consumers") => &cloud.tenant,
        _ => given,
    };
    if !tenant.eq_ignore_ascii_case(&cloud.tenant) {
        return refused(cloud, 400, "invalid_tenant", 90_002, &wrong_tenant(tenant));
    }
    let at = format!("{}/{tenant}", ask.base);
    EmulatorReply::ok(&json!({
        "token_endpoint": format!("{at}/oauth2/v2.0/token"),
        "authorization_endpoint": format!("{at}/oauth2/v2.0/authorize"),
        "device_authorization_endpoint": format!("{at}/oauth2/v2.0/devicecode"),
        "end_session_endpoint": format!("{at}/oauth2/v2.0/logout"),
        "jwks_uri": format!("{at}/discovery/v2.0/keys"),
        "issuer": format!("{at}/v2.0"),
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "response_types_supported": ["code", "id_token", "token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "scopes_supported": ["openid", "profile", "offline_access"] }))
}

fn wrong_tenant(tenant: &str) -> String {
    format!(
        "Tenant '{tenant}' not found. Check to make sure you have the correct tenant ID and are signing into the \
         correct cloud."
    )
}

/// Entra ID's error document.
fn refused(
    cloud: &EmulatedCloud,
    status: u16,
    error: &str,
    code: u32,
    text: &str,
) -> EmulatorReply {
    let trace = guid_of(&format!("{}/{code}", cloud.real)).to_string();
    let stamp = rfc3339(cloud.real);
    EmulatorReply::json(
        status,
        &json!({ "error": error,
            "error_description": format!("AADSTS{code}: {text} Trace ID: {trace} Correlation ID: {trace} Timestamp: {stamp}"),
            "error_codes": [code], "timestamp": stamp, "trace_id": trace, "correlation_id": trace,
            "error_uri": format!("https://login.microsoftonline.com/error?code={code}") }),
    )
}

fn identity<'a>(cloud: &'a EmulatedCloud, client: &str) -> Option<&'a IdentitySeed> {
    cloud.identities.iter().find(|one| one.client_id.eq_ignore_ascii_case(client))
}

fn token(cloud: &EmulatedCloud, ask: &EmulatorRequest, tenant: &str) -> EmulatorReply {
    let form = pairs(&String::from_utf8_lossy(&ask.body));
    let field = |name: &str| form.iter().find(|(n, _)| n == name).map_or("", |(_, v)| v.as_str());
    if !tenant.eq_ignore_ascii_case(&cloud.tenant) {
        return refused(cloud, 400, "invalid_request", 90_002, &wrong_tenant(tenant));
    }
    let client = field("client_id");
    let known = identity(cloud, client);
    if !cloud.identities.is_empty() && known.is_none() {
        let text = format!(
            "Application with identifier '{client}' was not found in the directory '{tenant}'."
        );
        return refused(cloud, 400, "unauthorized_client", 700_016, &text);
    }
    match (field("client_assertion"), field("client_secret")) {
        ("", "") => {
            let text = "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.";
            return refused(cloud, 401, "invalid_client", 7_000_218, text);
        }
        ("", secret) => {
            let wanted = known.and_then(|one| one.secret.as_deref());
            if wanted.is_some_and(|wanted| wanted != secret) {
                let text = format!(
                    "Invalid client secret provided. Ensure the secret being sent in the request is the client secret \
                     value, not the client secret ID, for a secret added to app '{client}'."
                );
                return refused(cloud, 401, "invalid_client", 7_000_215, &text);
            }
        }
        (assertion, _) => {
            let ends = claims(assertion).and_then(|claims| claims.get("exp")?.as_f64());
            if ends.is_some_and(|ends| ends * 1e3 < cloud.real as f64) {
                let text = "Client assertion is not within its valid time range.";
                return refused(cloud, 401, "invalid_client", 700_024, text);
            }
        }
    }
    let scope = if field("scope").is_empty() { field("resource") } else { field("scope") };
    let audience = scope.split(' ').next().unwrap_or_default().trim_end_matches("/.default");
    let seconds = cloud.token_seconds;
    EmulatorReply::ok(
        &json!({ "token_type": "Bearer", "expires_in": seconds, "ext_expires_in": seconds,
        "access_token": issue(cloud, client, audience) }),
    )
    .with("cache-control", "no-store, no-cache")
}

/// The metadata service that only VMs can reach; hosted services use the same with another header.
fn managed(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> EmulatorReply {
    let bad = |error: &str, text: &str| {
        EmulatorReply::json(400, &json!({ "error": error, "error_description": text }))
    };
    let asked = ask.header("metadata").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if !asked && ask.header("x-identity-header").is_none() {
        return bad("bad_request_102", "Required metadata header not specified");
    }
    let Some(resource) = ask.get("resource").filter(|r| !r.is_empty()) else {
        return bad("bad_request_101", "Required query variable 'resource' is missing");
    };
    let named = ["client_id", "object_id", "principal_id", "msi_res_id", "mi_res_id"];
    let named = named.iter().find_map(|name| ask.get(name));
    let first = cloud.identities.first().map_or("emulated-identity", |one| &one.client_id);
    let client = named.unwrap_or(first);
    if !cloud.identities.is_empty() && identity(cloud, client).is_none() {
        return bad("invalid_request", "Identity not found");
    }
    let (now, seconds) = (cloud.real / SECOND, cloud.token_seconds);
    // All numbers are strings here.
    EmulatorReply::ok(&json!({ "access_token": issue(cloud, client, resource), "client_id": client,
        "expires_in": seconds.to_string(), "ext_expires_in": seconds.to_string(),
        "expires_on": (now + seconds as i64).to_string(), "not_before": now.to_string(),
        "resource": resource, "token_type": "Bearer" }))
}

fn issuer(cloud: &EmulatedCloud) -> String {
    format!("https://sts.windows.net/{}/", cloud.tenant)
}

/// A token in the form of a JWT: clients parse it, and only the emulator checks its signature.
fn issue(cloud: &EmulatedCloud, client: &str, audience: &str) -> String {
    let now = cloud.real / SECOND;
    let header = json!({ "typ": "JWT", "alg": "RS256", "kid": "emulated" });
    let object = guid_of(client).to_string();
    let claims = json!({ "aud": audience, "iss": issuer(cloud), "iat": now, "nbf": now,
        "exp": now + cloud.token_seconds as i64, "appid": client, "oid": object, "sub": object,
        "tid": cloud.tenant, "idtyp": "app", "ver": "1.0", "generation": cloud.generation });
    let part = |value: &Value| base64url(value.to_string().as_bytes());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = base64url(cloud.sign(&signed).as_bytes());
    format!("{signed}.{signature}")
}

fn claims(token: &str) -> Option<Value> {
    let bytes = from_base64url(token.split('.').nth(1)?)?;
    serde_json::from_slice(&bytes).ok().filter(Value::is_object)
}

/// The client that the token of a call names, valid or not.
pub(super) fn bearer(ask: &EmulatorRequest) -> Option<String> {
    let (_, token) = ask.header("authorization")?.split_once(' ')?;
    claims(token)?["appid"].as_str().map(str::to_owned)
}

/// Checks the Authorization header as ARM does: the emulator's own tokens must be valid; it accepts any other unless
/// the seed is strict.
pub(super) fn caller(cloud: &EmulatedCloud, ask: &EmulatorRequest) -> Result<Caller, Rejection> {
    let header = ask.header("authorization").unwrap_or_default();
    let token = header.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("bearer"));
    let Some((_, token)) = token.filter(|(_, token)| !token.trim().is_empty()) else {
        let text = "Authentication failed. The 'Authorization' header is missing.";
        return Err(WorldRefusal::new(401, "AuthenticationFailed", text).into());
    };
    let signed = token.rsplit_once('.').is_some_and(|(signed, signature)| {
        from_base64url(signature).as_deref() == Some(cloud.sign(signed).as_bytes())
    });
    let claims = claims(token).filter(|_| signed);
    let Some(claims) = claims else {
        if cloud.strict_tokens {
            let text = "The access token is invalid.";
            return Err(WorldRefusal::new(401, "InvalidAuthenticationToken", text).into());
        }
        return Ok(Caller { client: None });
    };
    let ends = claims["exp"].as_i64().unwrap_or(0) * SECOND;
    if ends <= cloud.real || claims["generation"].as_u64() != Some(cloud.generation) {
        let text = format!(
            "The access token expiry UTC time '{}' is earlier than current UTC time '{}'.",
            american(ends.min(cloud.real)),
            american(cloud.real)
        );
        return Err(WorldRefusal::new(401, "ExpiredAuthenticationToken", text).into());
    }
    Ok(Caller { client: claims["appid"].as_str().map(str::to_owned) })
}

/// Rejects what the identity may not do at this path.
pub(super) fn permit(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    caller: &Caller,
) -> Result<(), Rejection> {
    let Some(one) = caller.client.as_deref().and_then(|client| identity(cloud, client)) else {
        return Ok(());
    };
    let action = action(ask);
    let path = ask.path.to_ascii_lowercase();
    let there = one.denied.iter().any(|part| path.contains(&part.to_ascii_lowercase()));
    let ending =
        |ending: &String| action.to_ascii_lowercase().ends_with(&ending.to_ascii_lowercase());
    if !there && !one.denied_actions.iter().any(ending) {
        return Ok(());
    }
    let (client, object) = (&one.client_id, guid_of(&one.client_id));
    let text = format!(
        "The client '{client}' with object id '{object}' does not have authorization to perform action '{action}' over \
         scope '{}' or the scope is invalid. If access was recently granted, please refresh your credentials.",
        ask.path
    );
    Err(Rejection::at_the_door(403, "AuthorizationFailed", text))
}

/// Suffixes of actions that the caller may not do; all suffixes at a denied scope.
pub(super) fn denied(cloud: &EmulatedCloud, ask: &EmulatorRequest, caller: &Caller) -> Vec<String> {
    let one = caller.client.as_deref().and_then(|client| identity(cloud, client));
    let Some(one) = one else { return Vec::new() };
    let path = ask.path.to_ascii_lowercase();
    if one.denied.iter().any(|part| path.contains(&part.to_ascii_lowercase())) {
        return vec!["read".into(), "write".into(), "delete".into(), "action".into()];
    }
    one.denied_actions.clone()
}

/// `Microsoft.Compute/virtualMachineScaleSets/delete/action`.
fn action(ask: &EmulatorRequest) -> String {
    let at = ask.lower.iter().rposition(|word| word == "providers").unwrap_or(0);
    let words: Vec<&str> = ask.parts.iter().skip(at + 1).map(String::as_str).collect();
    let (namespace, rest) = match words.split_first() {
        Some((namespace, rest)) => (*namespace, rest),
        None => ("Microsoft.Resources", [].as_slice()),
    };
    // Kinds and names alternate; an action on a resource is one segment more.
    let kinds: Vec<&str> = rest.iter().step_by(2).copied().collect();
    let path = format!("{namespace}/{}", kinds.join("/"));
    match ask.method.as_str() {
        "GET" | "HEAD" => format!("{path}/read"),
        "PUT" | "PATCH" => format!("{path}/write"),
        "DELETE" => format!("{path}/delete"),
        _ => format!("{path}/action"),
    }
}
