//! The generated Rust client (azure_mgmt_compute 0.21) against the emulator: its requests are accepted, and its typed
//! models read everything that is answered.
//!
//! It does not wait for long operations as the others do, so their addresses are followed here.

use std::sync::Arc;
use std::time::Duration;

use azure_core::TransportOptions;
use azure_core::auth::{AccessToken, Secret, TokenCredential};
use azure_core::headers::HeaderName;
use azure_mgmt_compute::package_2024_07_01::models::{
    Sku, UpdateResource, VirtualMachineScaleSet, VirtualMachineScaleSetUpdate,
    VirtualMachineScaleSetVm, VirtualMachineScaleSetVmInstanceRequiredIDs,
};
use azure_mgmt_compute::package_2024_07_01::{Client, ClientBuilder};
use futures::StreamExt;
use serde_json::Value;
use time::OffsetDateTime;

const GROUP: &str = "rg";
const SET: &str = "rust";

#[derive(Debug)]
struct Anybody;

#[async_trait::async_trait]
impl TokenCredential for Anybody {
    async fn get_token(&self, _scopes: &[&str]) -> azure_core::Result<AccessToken> {
        let hour = OffsetDateTime::now_utc() + Duration::from_secs(3_600);
        Ok(AccessToken::new(Secret::new("anybody"), hour))
    }

    async fn clear_cache(&self) -> azure_core::Result<()> {
        Ok(())
    }
}

struct Flows {
    url: String,
    subscription: String,
    http: reqwest::Client,
    client: Client,
}

impl Flows {
    fn new() -> Self {
        let told: Value = serde_json::from_str(&std::env::var("EMULATOR").expect("EMULATOR"))
            .expect("a document");
        let text = |key: &str| told[key].as_str().expect(key).to_owned();
        let pem = std::fs::read(text("caFile")).expect("the authority's certificate");
        let authority = reqwest::Certificate::from_pem(&pem).expect("a certificate");
        let http = reqwest::Client::builder()
            .tls_built_in_root_certs(false)
            .add_root_certificate(authority)
            .build()
            .expect("a client");
        let url = text("url");
        let client = ClientBuilder::new(Arc::new(Anybody))
            .endpoint(azure_core::Url::parse(&url).expect("a URL"))
            .scopes(&["https://management.azure.com/.default"])
            .retry(azure_core::RetryOptions::none())
            .transport(TransportOptions::new(Arc::new(http.clone())))
            .build()
            .expect("a client");
        Self { url, subscription: text("subscription"), http, client }
    }

    /// Follows the address of an operation to its end.
    async fn ends(&self, response: azure_core::Response) {
        let name = HeaderName::from_static("azure-asyncoperation");
        let address = response.headers().get_str(&name).expect("an address").to_owned();
        loop {
            let answer =
                self.http.get(&address).bearer_auth("anybody").send().await.expect("an answer");
            let document: Value = answer.json().await.expect("a document");
            match document["status"].as_str() {
                Some("Succeeded") => return,
                Some("InProgress") => tokio::time::sleep(Duration::from_millis(300)).await,
                _ => panic!("{document}"),
            }
        }
    }

    async fn set(&self) -> VirtualMachineScaleSet {
        let sets = self.client.virtual_machine_scale_sets_client();
        let answer = sets.get(GROUP, SET, &self.subscription).send().await.expect("the set");
        let bytes = answer.into_raw_response().into_body().collect().await.expect("a body");
        serde_json::from_slice(&bytes).expect("the typed model reads it")
    }

    async fn vms(&self) -> Vec<VirtualMachineScaleSetVm> {
        let vms = self.client.virtual_machine_scale_set_v_ms_client();
        let list = vms.list(GROUP, SET, &self.subscription).expand("instanceView");
        let mut pages = list.into_stream();
        let mut all = Vec::new();
        while let Some(page) = pages.next().await {
            all.extend(page.expect("a page that the typed model reads").value);
        }
        all
    }

    async fn list_and_read(&self) {
        let set = self.set().await;
        assert_eq!(set.sku.expect("a size").capacity, Some(7));
        assert!(set.etag.is_some());
        let vms = self.vms().await;
        assert_eq!(vms.len(), 7, "on three pages");
        for vm in vms {
            let properties = vm.properties.expect("properties");
            let view = properties.instance_view.expect("a view");
            assert_eq!(view.statuses[1].code.as_deref(), Some("PowerState/running"));
            assert!(
                view.vm_health.is_some() && view.vm_agent.is_some() && !view.extensions.is_empty()
            );
            assert_eq!(properties.latest_model_applied, Some(true));
            assert!(properties.vm_id.is_some() && properties.time_created.is_some());
        }
        let mut sets = self
            .client
            .virtual_machine_scale_sets_client()
            .list(GROUP, &self.subscription)
            .into_stream();
        assert!(sets.next().await.expect("a page").expect("readable").value.len() >= 3);
    }

    async fn scale_with_if_match(&self) {
        let etag = self.set().await.etag.expect("an etag");
        let update = |capacity: i64| VirtualMachineScaleSetUpdate {
            update_resource: UpdateResource::new(),
            sku: Some(Sku { name: None, tier: None, capacity: Some(capacity) }),
            ..VirtualMachineScaleSetUpdate::new()
        };
        let sets = self.client.virtual_machine_scale_sets_client();
        let patch = |capacity| {
            sets.update(GROUP, SET, update(capacity), &self.subscription).if_match(&etag)
        };
        let answer = patch(8).send().await.expect("accepted");
        self.ends(answer.into_raw_response()).await;
        assert_eq!(self.vms().await.len(), 8);
        let late = patch(9).send().await.expect_err("the etag moved on");
        assert_eq!(late.as_http_error().map(|e| u16::from(e.status())), Some(412));
    }

    async fn delete_instances(&self) {
        let sets = self.client.virtual_machine_scale_sets_client();
        let ids = |ids: &[&str]| {
            VirtualMachineScaleSetVmInstanceRequiredIDs::new(
                ids.iter().map(|id| (*id).to_owned()).collect(),
            )
        };
        let answer =
            sets.delete_instances(GROUP, SET, ids(&["1", "2"]), &self.subscription).send().await;
        self.ends(answer.expect("accepted").into_raw_response()).await;
        assert_eq!(self.vms().await.len(), 6);
        let stale = sets.delete_instances(GROUP, SET, ids(&["1"]), &self.subscription).send().await;
        let stale = stale.expect_err("it is gone");
        let stale = stale.as_http_error().expect("an answer");
        assert_eq!(
            (u16::from(stale.status()), stale.error_code()),
            (400, Some("InvalidParameter"))
        );
    }

    /// What no flow of any client reads; the models read it from the emulator's record.
    async fn what_else_there_is(&self) {
        let compute = format!("resourceGroups/{GROUP}/providers/Microsoft.Compute");
        let get = async |path: &str| -> Value {
            let url = format!("{}/subscriptions/{}/{path}", self.url, self.subscription);
            let ask = self.http.get(format!("{url}?api-version=2024-07-01")).bearer_auth("anybody");
            let answer = ask.send().await.expect("an answer");
            assert!(answer.status().is_success(), "{path}: {}", answer.status());
            answer.json().await.expect("a document")
        };
        let set = format!("{compute}/virtualMachineScaleSets/{SET}");
        for path in ["skus", "extensions", "extensions/health", "instanceView"] {
            get(&format!("{set}/{path}")).await;
        }
        let vms = get(&format!("{compute}/virtualMachines")).await;
        let name = vms["value"][0]["name"].as_str().expect("a VM of the Flexible set");
        get(&format!("{compute}/virtualMachines/{name}/instanceView")).await;
        get(&format!("{compute}/virtualMachineScaleSets/vms/virtualMachines")).await;
        get("providers/Microsoft.Compute/locations/eastus2/virtualMachineScaleSets").await;
    }

    async fn refusals(&self) {
        let sets = self.client.virtual_machine_scale_sets_client();
        let none =
            sets.get(GROUP, "none", &self.subscription).send().await.expect_err("there is none");
        let none = none.as_http_error().expect("an answer");
        assert_eq!((u16::from(none.status()), none.error_code()), (404, Some("ResourceNotFound")));
        let rule = serde_json::json!({ "rules": [{ "path": "/rust?", "status": 429, "code": "OperationNotAllowed",
            "retryAfter": 1 }] });
        let order =
            self.http.post(format!("{}/_control/faults", self.url)).json(&rule).send().await;
        assert!(order.expect("an answer").status().is_success());
        let tired = sets.get(GROUP, SET, &self.subscription).send().await.expect_err("too many");
        assert_eq!(tired.as_http_error().map(|e| u16::from(e.status())), Some(429));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let flows = Flows::new();
    flows.list_and_read().await;
    println!("rust: list_and_read: ok");
    flows.scale_with_if_match().await;
    println!("rust: scale_with_if_match: ok");
    flows.delete_instances().await;
    println!("rust: delete_instances: ok");
    flows.what_else_there_is().await;
    println!("rust: what_else_there_is: ok");
    flows.refusals().await;
    println!("rust: refusals: ok");
    println!("rust: 5 flows, all accepted");
}
