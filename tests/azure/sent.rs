//! Every body that the adapter sends, as the emulator heard and took it, kept where clients made by others read it
//! with models of their own.

use axum::body::{Body, to_bytes};
use axum::http::Request;
use poolkeeper::act::{CallContext, CallOutcome};
use poolkeeper::adapters::azure::Azure;
use poolkeeper::ambient::{Clock, SystemClock};
use poolkeeper::emulator::Emulator;
use poolkeeper::model::action::{Expect, RemovalReason, Target, WriteScope};
use poolkeeper::model::ids::{EntryId, PoolName, ScaleSetId};
use poolkeeper::model::inventory::{Inventory, ModelFields};
use poolkeeper::model::time::Span;
use poolkeeper::observe::ReadCloud;
use serde_json::{Map, Value, json};

use crate::azure::emulated::of_seed;
use crate::azure::golden::golden;
use crate::azure::kit::Changes;

const SETS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets";

/// The adapter, the emulator, and what went between them.
struct Stand {
    emulator: Emulator,
    azure: Azure,
    pool: PoolName,
    entry: EntryId,
    set: ScaleSetId,
    sent: Map<String, Value>,
}

impl Stand {
    async fn of(seed: Value) -> Self {
        let (emulator, azure, _) = of_seed(seed, "any").await;
        let (pool, entry, set) = (PoolName::new("web"), EntryId::new("e1"), ScaleSetId::new(""));
        Self { emulator, azure, pool, entry, set, sent: Map::new() }
    }

    /// From here on with this set.
    fn with(&mut self, set: &str) {
        self.set = ScaleSetId::new(format!("{SETS}/{set}"));
    }

    fn order(&self) -> CallContext<'_> {
        let before = SystemClock.now().plus(Span::seconds(60));
        CallContext { pool: &self.pool, set: &self.set, entry: &self.entry, before }
    }

    async fn look(&self) -> Inventory {
        self.azure.list(&self.set).await.unwrap()
    }

    async fn expect(&self) -> Expect {
        let set = self.look().await.set;
        let before = self.order().before;
        Expect { etag: set.etag, capacity: set.capacity, revision: set.revision, before }
    }

    /// So many machines, after a look that knows them.
    async fn targets(&self, count: usize) -> Vec<Target> {
        let seen = self.look().await.instances.into_iter().take(count);
        let because = RemovalReason::Outdated;
        seen.map(|vm| Target { id: vm.id, vm: vm.vm, created: vm.created, because }).collect()
    }

    async fn changes(&self) -> Vec<Value> {
        let ask = Request::get("/_control/record").header("host", "localhost");
        let answer = self.emulator.answer(ask.body(Body::empty()).unwrap(), true).await;
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let record: Value = serde_json::from_slice(&body).unwrap();
        let all = record["requests"].as_array().unwrap().iter();
        all.filter(|one| one["method"] != "GET").cloned().collect()
    }

    /// One change was asked for and taken: it is kept under this name.
    async fn took(&mut self, name: &str, answer: CallOutcome) {
        assert!(
            matches!(answer, CallOutcome::Accepted(_) | CallOutcome::Done),
            "{name}: {answer:?}"
        );
        let changes = self.changes().await;
        assert_eq!(changes.len(), self.sent.len() + 1, "{name}: {changes:?}");
        let last = changes.last().unwrap();
        let path = last["path"].as_str().unwrap().rsplit_once("/Microsoft.Compute/").unwrap().1;
        let call = format!("{} {path}", last["method"].as_str().unwrap());
        self.sent.insert(name.into(), json!({"call": call, "body": last["body"]}));
        self.emulator.advance(Span::hours(2).millis());
    }

    async fn writes_model(&mut self, name: &str, fields: ModelFields, scope: WriteScope) {
        let expect = self.expect().await;
        let answer = self.azure.update_model(&self.order(), &fields, scope, &expect).await;
        self.took(name, answer).await;
    }

    async fn reimages(&mut self, name: &str) {
        let one = self.targets(1).await;
        let answer = self.azure.reimage(&self.order(), &one).await;
        self.took(name, answer).await;
    }

    async fn starts(&mut self, name: &str) {
        let one = self.targets(1).await;
        let answer = self.azure.restore(&self.order(), &one).await;
        self.took(name, answer).await;
    }

    async fn writes_each_field(&mut self) {
        let image = |version: &str| Some(format!("p:o:s:{version}").into());
        let fields = ModelFields { image: image("2.0.0"), ..ModelFields::default() };
        self.writes_model("modelImage", fields, WriteScope::Image).await;
        let fields = ModelFields { image: image("3.0.0"), ..ModelFields::default() };
        self.writes_model("modelStorageProfile", fields, WriteScope::StorageProfile).await;
        let tags = [("stage".into(), "two".into())].into();
        let fields = ModelFields { tags, ..ModelFields::default() };
        self.writes_model("modelTags", fields, WriteScope::Image).await;
        let vm_size: Option<Box<str>> = Some("Standard_D8s_v5".into());
        let fields = ModelFields { vm_size: vm_size.clone(), ..ModelFields::default() };
        self.writes_model("modelSize", fields, WriteScope::Image).await;
        let tags = [("stage".into(), "three".into())].into();
        let fields = ModelFields { image: image("4.0.0"), vm_size, tags };
        self.writes_model("model", fields, WriteScope::StorageProfile).await;
    }
}

async fn of_a_uniform_set(stand: &mut Stand) {
    stand.with("web");
    let expect = stand.expect().await;
    let answer = stand.azure.raise(&stand.order(), 3, 4, &expect).await;
    stand.took("raise", answer).await;
    stand.writes_each_field().await;
    stand.reimages("upgrade").await;
    stand.reimages("reimage").await;
    stand.starts("start").await;
    let two = stand.targets(2).await;
    let answer = stand.azure.delete(&stand.order(), &two, true).await;
    stand.took("delete", answer).await;
    // Azure calls it up to date though its disk is of the version before: a new disk of the version that is wanted.
    let flip = json!({"set": "web", "instance": "oldest", "deed": "flipLatestModelApplied"});
    stand.emulator.befall(&flip).unwrap();
    stand.reimages("reimageToVersion").await;
}

#[tokio::test]
async fn all_that_is_sent_is_as_it_was_agreed() {
    let image = json!({"publisher": "p", "offer": "o", "sku": "s", "version": "1.0.0"});
    let disks = |storage: Value| json!({"properties": {"virtualMachineProfile": {"storageProfile": storage}}});
    let data = disks(json!({"dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 64}]}));
    let local =
        disks(json!({"osDisk": {"caching": "ReadOnly", "diffDiskSettings": {"option": "Local"}}}));
    let mut stand = Stand::of(json!({
        "scaleSets": [
            {"name": "web", "image": image, "tags": {"team": "web"}, "resource": data},
            {"name": "local", "image": image, "resource": local},
            {"name": "vms", "image": image, "resource": local, "flexible": true},
        ],
        "settings": {"record": true, "throttling": false},
    }))
    .await;
    of_a_uniform_set(&mut stand).await;
    stand.with("local");
    stand.reimages("reimageLocalDisk").await;
    stand.with("vms");
    stand.reimages("reimageVm").await;
    stand.starts("startVm").await;
    let text = serde_json::to_string_pretty(&Value::Object(stand.sent)).unwrap();
    golden("azure/sent.json", &format!("{text}\n"));
}
