//! The document of a backend pool: its addresses, and how their administrative states alone are changed.
//!
//! A write replaces the whole pool, and an address that is left out or differs is taken for another one. So all else goes
//! back as it was read, byte for byte.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::wire::vm::SubResource;
use super::wire::{BorrowedText, some};
use crate::model::backend::{BackendChange, BackendState};

/// A backend pool as Azure shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackendDocument {
    pub etag: Option<Box<str>>,
    /// No write to it is running.
    pub settled: bool,
    pub elements: Vec<BackendElement>,
    /// The ids of all IP configurations in it. Azure may show them here and not on the elements.
    pub configurations: Vec<Box<str>>,
}

/// One address of it. It names an IP configuration of a network interface, or a plain address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackendElement {
    pub name: Option<Box<str>>,
    pub state: BackendState,
    pub configuration: Option<Box<str>>,
    pub address: Option<Box<str>>,
    /// The virtual network of a plain address.
    pub network: Option<Box<str>>,
}

#[derive(Deserialize)]
struct RawPool<'a> {
    #[serde(borrow, default)]
    etag: Option<BorrowedText<'a>>,
    #[serde(borrow)]
    properties: RawProperties<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawProperties<'a> {
    #[serde(borrow, default)]
    provisioning_state: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    load_balancer_backend_addresses: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, rename = "backendIPConfigurations")]
    configurations: Option<Vec<SubResource<'a>>>,
    #[serde(borrow, default)]
    virtual_network: Option<SubResource<'a>>,
}

#[derive(Deserialize)]
struct RawElement<'a> {
    #[serde(borrow, default)]
    name: Option<BorrowedText<'a>>,
    // A null is a value: it has a place in the text.
    #[serde(borrow, default, deserialize_with = "present")]
    properties: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAddress<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    admin_state: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "networkInterfaceIPConfiguration")]
    configuration: Option<SubResource<'a>>,
    #[serde(borrow, default)]
    ip_address: Option<BorrowedText<'a>>,
    #[serde(borrow, default)]
    virtual_network: Option<SubResource<'a>>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

fn id(of: Option<&SubResource<'_>>) -> Option<Box<str>> {
    some(of?.id.as_ref()).map(Into::into)
}

impl<'a> RawElement<'a> {
    fn address(&self) -> serde_json::Result<RawAddress<'a>> {
        match self.properties {
            Some(properties) => {
                let read: Option<RawAddress<'a>> = serde_json::from_str(properties.get())?;
                Ok(read.unwrap_or_default())
            }
            None => Ok(RawAddress::default()),
        }
    }
}

/// Azure's words for a resource that no write is changing.
const SETTLED: [&str; 3] = ["Succeeded", "Failed", "Canceled"];

impl BackendDocument {
    pub fn read(text: &str) -> serde_json::Result<Self> {
        let RawPool { etag, properties } = serde_json::from_str(text)?;
        let state = some(properties.provisioning_state.as_ref());
        let network = id(properties.virtual_network.as_ref());
        let elements = properties.load_balancer_backend_addresses.unwrap_or_default();
        let elements = elements.into_iter().map(|raw| element(raw, network.as_deref()));
        let configurations = properties.configurations.unwrap_or_default();
        Ok(Self {
            etag: some(etag.as_ref()).map(Into::into),
            settled: state
                .is_none_or(|state| SETTLED.iter().any(|word| state.eq_ignore_ascii_case(word))),
            elements: elements.collect::<serde_json::Result<_>>()?,
            configurations: configurations.iter().filter_map(|one| id(Some(one))).collect(),
        })
    }
}

fn element(raw: &RawValue, network: Option<&str>) -> serde_json::Result<BackendElement> {
    let element: RawElement<'_> = serde_json::from_str(raw.get())?;
    let address = element.address()?;
    let state: Option<String> = match address.admin_state {
        Some(state) => serde_json::from_str(state.get())?,
        None => None,
    };
    Ok(BackendElement {
        name: some(element.name.as_ref()).map(Into::into),
        state: state.map_or(BackendState::None, |state| state_of(&state)),
        configuration: id(address.configuration.as_ref()),
        address: some(address.ip_address.as_ref()).map(Into::into),
        network: id(address.virtual_network.as_ref()).or_else(|| network.map(Into::into)),
    })
}

/// Azure's spelling.
const fn word(state: BackendState) -> &'static str {
    match state {
        BackendState::None => "None",
        BackendState::Up => "Up",
        BackendState::Down => "Down",
    }
}

/// An unknown word does not prove that a machine is out of service.
fn state_of(text: &str) -> BackendState {
    let all = [BackendState::Up, BackendState::Down];
    let known = all.into_iter().find(|state| word(*state).eq_ignore_ascii_case(text));
    known.unwrap_or(BackendState::None)
}

/// A piece of the text, and what stands there instead.
struct Splice {
    from: usize,
    to: usize,
    new: String,
}

/// The same text with these states. `None`: this is no such document, or it lacks one of the addresses.
pub(super) fn with_states(text: &str, changes: &[BackendChange]) -> Option<String> {
    let RawPool { properties, .. } = serde_json::from_str(text).ok()?;
    let mut open: Vec<&BackendChange> = changes.iter().collect();
    let (mut new, mut copied) = (String::with_capacity(text.len() + 32 * changes.len()), 0);
    for raw in properties.load_balancer_backend_addresses.unwrap_or_default() {
        let element: RawElement<'_> = serde_json::from_str(raw.get()).ok()?;
        let Some(name) = element.name.as_ref() else { continue };
        let Some(at) = open.iter().position(|change| *change.name == **name) else { continue };
        let Splice { from, to, new: put } =
            splice(text, raw.get(), &element, open.swap_remove(at).to)?;
        new.push_str(text.get(copied..from)?);
        new.push_str(&put);
        copied = to;
    }
    new.push_str(text.get(copied..)?);
    open.is_empty().then_some(new)
}

/// `raw` and all parts of `element` borrow from `text`.
fn splice(text: &str, raw: &str, element: &RawElement<'_>, state: BackendState) -> Option<Splice> {
    // Serde reads a list as an object, too.
    if !raw.starts_with('{') {
        return None;
    }
    let place = |part: &str| part.as_ptr().addr().checked_sub(text.as_ptr().addr());
    let state = word(state);
    let instead = |of: &str, new: String| {
        let from = place(of)?;
        Some(Splice { from, to: from + of.len(), new })
    };
    // As the first field of an object.
    let first = |object: &str, new: String| {
        let inside = place(object)? + 1;
        let rest = object.strip_prefix('{')?.trim_start();
        let comma = if rest.starts_with('}') { "" } else { "," };
        Some(Splice { from: inside, to: inside, new: format!("{new}{comma}") })
    };
    let Some(properties) = element.properties else {
        return first(raw, format!(r#""properties":{{"adminState":"{state}"}}"#));
    };
    if properties.get() == "null" {
        return instead(properties.get(), format!(r#"{{"adminState":"{state}"}}"#));
    }
    match element.address().ok()?.admin_state {
        Some(old) => instead(old.get(), format!(r#""{state}""#)),
        None => first(properties.get(), format!(r#""adminState":"{state}""#)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const NIC: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web/virtualMachines/0/networkInterfaces/nic/ipConfigurations/ip";

    fn change(name: &str, to: BackendState) -> BackendChange {
        BackendChange { name: name.into(), to }
    }

    fn down(text: &str, name: &str) -> Option<String> {
        with_states(text, &[change(name, BackendState::Down)])
    }

    /// A pool with these elements, between fields that this adapter does not know.
    fn pool(elements: &str) -> String {
        format!(
            "{{\"x\" : 1.50e+1,\n\t\"etag\":\"W/\\\"1\\\"\" ,\"properties\":{{ \"adminState\": \"of no element\",\n\
             \"loadBalancerBackendAddresses\" : [ {elements} ] , \"y\":[{{\"name\":\"a\",\"properties\":{{}}}}]}}, \"z\": null}} \n"
        )
    }

    #[test]
    fn the_state_alone_changes() {
        for (before, after) in [
            (
                r#"{"name":"a","properties":{}}"#,
                r#"{"name":"a","properties":{"adminState":"Down"}}"#,
            ),
            (
                r#"{"name":"a","properties":{ }}"#,
                r#"{"name":"a","properties":{"adminState":"Down" }}"#,
            ),
            (r#"{"name":"a"}"#, r#"{"properties":{"adminState":"Down"},"name":"a"}"#),
            (
                r#"{"properties" : null, "name":"a"}"#,
                r#"{"properties" : {"adminState":"Down"}, "name":"a"}"#,
            ),
            (
                r#"{"name":"a","properties":{"adminState": null ,"n":0.10}}"#,
                r#"{"name":"a","properties":{"adminState": "Down" ,"n":0.10}}"#,
            ),
            (
                r#"{"name":"a","properties":{"n":1E5,"adminState"	:	"None"}}"#,
                r#"{"name":"a","properties":{"n":1E5,"adminState"	:	"Down"}}"#,
            ),
            (
                r#"{"name":"a","properties":{"n":12345678901234567890123}}"#,
                r#"{"name":"a","properties":{"adminState":"Down","n":12345678901234567890123}}"#,
            ),
            // The names of keys as values, and deeper in the element.
            (
                r#"{"name":"a","t":"\"adminState\":\"Up\"","properties":{"tags":{"adminState":"Up"},"adminState":"Up"}}"#,
                r#"{"name":"a","t":"\"adminState\":\"Up\"","properties":{"tags":{"adminState":"Up"},"adminState":"Down"}}"#,
            ),
            // A name and a key with escapes.
            (
                r#"{"name":"\u0061","properties":{"admin\u0053tate":"\u0055p"}}"#,
                r#"{"name":"\u0061","properties":{"admin\u0053tate":"Down"}}"#,
            ),
        ] {
            let other = r#"{"name":"b","properties":{"adminState":"Up"}}"#;
            let [text, wanted] =
                [before, after].map(|it| pool(&format!("{other} , {it},{{\"name\":\"é\\n𝄞\"}}")));
            assert_eq!(down(&text, "a").as_deref(), Some(&*wanted));
            let read: Value = serde_json::from_str(&wanted).unwrap();
            let state = &read["properties"]["loadBalancerBackendAddresses"][1]["properties"];
            assert_eq!(state["adminState"], "Down");
            assert_eq!(with_states(&text, &[]), Some(text));
        }
    }

    #[test]
    fn several_states_change_in_one_document_and_go_back() {
        let text = pool(
            r#"{"name":"é\n𝄞","properties":{"adminState":"None"}},{"name":"b","properties":{"adminState":"None"}},
               {"name":"/","properties":{"adminState":"None"}}"#,
        );
        let all = |state| {
            ["/", "é\n𝄞"]
                .map(|name| change(name, state))
                .into_iter()
                .collect::<Vec<BackendChange>>()
        };
        let changed = with_states(&text, &all(BackendState::Down)).unwrap();
        let read = BackendDocument::read(&changed).unwrap();
        let states: Vec<BackendState> = read.elements.iter().map(|one| one.state).collect();
        assert_eq!(states, [BackendState::Down, BackendState::None, BackendState::Down]);
        assert_eq!(with_states(&changed, &all(BackendState::None)), Some(text.clone()));
        let up = with_states(&text, &[change("b", BackendState::Up)]).unwrap();
        assert_eq!(BackendDocument::read(&up).unwrap().elements[1].state, BackendState::Up);
        assert_eq!(down(&text, "B"), None, "an address that is not there");
    }

    #[test]
    fn what_is_no_pool_is_not_edited() {
        for odd in [
            String::new(),
            "7".into(),
            "{}".into(),
            r#"{"properties":null}"#.into(),
            pool(r#"{"name":"a","properties":7}"#),
            pool(r#"{"name":"a","properties":[]}"#),
            pool(r#"["a",{}]"#),
            pool(r#"{"name":"a","properties":{"adminState":"Up","adminState":"Down"}}"#),
            pool(r#"{"name":"a"}"#).replace("] ,", "] ]"),
        ] {
            assert_eq!(down(&odd, "a"), None, "{odd}");
        }
    }

    #[test]
    fn a_pool_is_read_with_whatever_azure_leaves_out() {
        let text = format!(
            r#"{{"etag":"W/\"7\"","properties":{{"provisioningState":"updating","virtualNetwork":{{"id":"/v"}},
            "loadBalancerBackendAddresses":[
            {{"name":"a","properties":{{"networkInterfaceIPConfiguration":{{"id":"{NIC}"}},"adminState":"DOWN"}}}},
            {{"name":"b","properties":{{"ipAddress":"10.0.0.4","adminState":"Drain"}}}},
            {{"name":"c","properties":{{"ipAddress":"","virtualNetwork":{{"id":"/w"}}}}}},{{"properties":null}}],
            "backendIPConfigurations":[{{"id":"{NIC}"}}]}}}}"#
        );
        let read = BackendDocument::read(&text).unwrap();
        assert_eq!(read.etag.as_deref(), Some("W/\"7\""));
        assert!(!read.settled);
        let element = |name: Option<&str>, state, network: &str| BackendElement {
            name: name.map(Into::into),
            state,
            configuration: None,
            address: None,
            network: Some(network.into()),
        };
        let linked = BackendElement {
            configuration: Some(NIC.into()),
            ..element(Some("a"), BackendState::Down, "/v")
        };
        let plain = BackendElement {
            address: Some("10.0.0.4".into()),
            ..element(Some("b"), BackendState::None, "/v")
        };
        let none = BackendState::None;
        let (bare, nameless) = (element(Some("c"), none, "/w"), element(None, none, "/v"));
        assert_eq!(read.elements, [linked, plain, bare, nameless]);
        assert_eq!(read.configurations, [Box::from(NIC)]);
        let empty = BackendDocument::read(r#"{"properties":{}}"#).unwrap();
        assert!(empty.settled && empty.elements.is_empty() && empty.etag.is_none());
        for state in ["Succeeded", "Failed", "canceled"] {
            let text = format!(r#"{{"properties":{{"provisioningState":"{state}"}}}}"#);
            assert!(BackendDocument::read(&text).unwrap().settled, "{state}");
        }
        assert!(BackendDocument::read("{}").is_err());
    }
}
