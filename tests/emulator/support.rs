//! An emulator whose time moves only when told, and a client that sends one request at a time.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use poolkeeper::emulator::{Emulator, Seed};
pub use poolkeeper::model::time::Span;
use poolkeeper::model::time::Time;
use serde_json::{Value, json};

pub use crate::support::arm::SUBSCRIPTION as SUB;
pub use crate::support::clock::ManualClock;
use crate::support::http::Ask;
pub use crate::support::http::Reply;

pub const START: Time = Time::from_millis(1_790_000_000_000);
pub const SET: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
pub const VERSION: &str = "api-version=2024-07-01";

/// A cloud, and whoever talks to it.
#[derive(Debug)]
pub struct Client {
    pub emulator: Emulator,
    pub clock: ManualClock,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    pub fn new(seed: &Value) -> Self {
        let seed: Seed = serde_json::from_value(seed.clone()).unwrap();
        let clock = ManualClock::at(START);
        let emulator = Emulator::new(&seed, 1.0, Arc::new(clock.clone())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { emulator, clock, runtime }
    }

    /// Three VMs on the defaults.
    pub fn web() -> Self {
        Self::new(&json!({ "scaleSets": [{ "name": "web" }] }))
    }

    /// Nothing comes back where the connection would have ended.
    pub fn try_send(&self, request: Request<Body>) -> Option<Reply> {
        self.runtime
            .block_on(async { Reply::read(self.emulator.answer(request, false).await).await })
    }

    /// As far as it goes without waiting.
    pub fn poll_once<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.runtime.block_on(async { futures_util::FutureExt::now_or_never(future) })
    }

    pub fn request(
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Request<Body> {
        let ask = Ask::new(method, target).header("host", "localhost:1").text(body);
        headers.iter().fold(ask, |ask, (name, value)| ask.header(name, *value)).request()
    }

    /// With a token of nobody's, which is good enough unless the seed is strict.
    pub fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers: Vec<_> =
            [("authorization", "Bearer x")].into_iter().chain(headers.iter().copied()).collect();
        let request = Self::request(method, target, &headers, &body);
        self.try_send(request).expect("an answer")
    }

    pub fn get(&self, path: &str) -> Reply {
        self.ask("GET", &with_version(path), &[], &Value::Null)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", &with_version(path), &[], body)
    }

    pub fn put(&self, path: &str, body: &Value) -> Reply {
        self.ask("PUT", &with_version(path), &[], body)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Reply {
        self.ask("PATCH", &with_version(path), &[], body)
    }

    pub fn delete(&self, path: &str) -> Reply {
        self.ask("DELETE", &with_version(path), &[], &Value::Null)
    }

    /// An address that an answer gave.
    pub fn follow(&self, address: &str) -> Reply {
        let target = address.strip_prefix("http://localhost:1").expect("our own address");
        self.ask("GET", target, &[], &Value::Null)
    }

    pub fn wait(&self, minutes: i64) {
        self.clock.pass(Span::minutes(minutes));
    }

    /// The status document of a write, after everything has had time to end.
    pub fn ended(&self, answer: &Reply) -> Value {
        self.wait(60);
        self.follow(answer.header("azure-asyncoperation").expect("an operation")).expect(200).json()
    }

    /// Ids of all pages.
    pub fn ids(&self) -> Vec<String> {
        self.items(&format!("{SET}/virtualMachines?{VERSION}"))
            .iter()
            .map(|vm| vm["instanceId"].as_str().unwrap().to_owned())
            .collect()
    }

    pub fn items(&self, target: &str) -> Vec<Value> {
        let mut page = self.ask("GET", target, &[], &Value::Null).expect(200).json();
        let mut all = Vec::new();
        loop {
            all.extend(page["value"].as_array().expect("a list").iter().cloned());
            match page["nextLink"].as_str() {
                Some(next) => page = self.follow(next).expect(200).json(),
                None => return all,
            }
        }
    }
}

fn with_version(path: &str) -> String {
    format!("{path}{}{VERSION}", if path.contains('?') { "&" } else { "?" })
}

/// A scale set as a client would ask for one.
pub fn wanted(capacity: u32) -> Value {
    json!({
        "location": "eastus2", "tags": { "team": "a" },
        "sku": { "name": "Standard_D2s_v5", "tier": "Standard", "capacity": capacity },
        "properties": {
            "overprovision": false, "upgradePolicy": { "mode": "Manual" }, "singlePlacementGroup": false,
            "virtualMachineProfile": {
                "osProfile": { "computerNamePrefix": "vm", "adminUsername": "me", "adminPassword": "secret-one",
                    "customData": "c2VjcmV0LXR3bw==" },
                "storageProfile": { "imageReference": { "publisher": "p", "offer": "o", "sku": "s", "version": "1.0.0" },
                    "osDisk": { "createOption": "FromImage", "osType": "Linux" } },
                "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic",
                    "properties": { "primary": true } }] },
                "extensionProfile": { "extensions": [{ "name": "script", "properties": { "publisher": "x",
                    "type": "y", "typeHandlerVersion": "1.0", "settings": { "a": 1 },
                    "protectedSettings": { "key": "secret-three" } } }] },
                "userData": "dXNlcg==",
            },
        },
    })
}
