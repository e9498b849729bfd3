//! What the tests share: a clock that stands, tokens that can be refused, a small set and its machines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::Secret;
use poolkeeper::act::{CallContext, CallOutcome, ChangeCloud, SetChange};
use poolkeeper::adapters::azure::auth::{AccessToken, AuthError, TokenSource};
use poolkeeper::adapters::azure::cloud::{AzureCloud, CloudEndpoint};
use poolkeeper::adapters::azure::{Azure, Net, Proxy};
use poolkeeper::model::action::{Expect, RemovalReason, Target, WriteScope};
use poolkeeper::model::ids::{EntryId, Etag, InstanceId, PoolName, Revision, ScaleSetId, VmId};
use poolkeeper::model::inventory::{Inventory, ModelFields};
use poolkeeper::model::owner::OwnerWrite;
use poolkeeper::model::time::{Span, Time};
use poolkeeper::observe::{ReadCloud, ReadError};
use poolkeeper::pace::Pacer;
use serde_json::{Value, json};

use crate::azure::server::{Heard, Says, Server};
use crate::support::clock::ManualClock;

/// The changes of a set, each as a call of its own.
pub trait Changes: ChangeCloud {
    fn raise(
        &self,
        order: &CallContext<'_>,
        from: u32,
        to: u32,
        expect: &Expect,
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::Raise { from, to, expect })
    }

    fn delete(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
        force: bool,
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::Delete { targets, force })
    }

    fn reimage(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::Reimage { targets })
    }

    fn update_model<'a>(
        &self,
        order: &CallContext<'_>,
        fields: &'a ModelFields,
        scope: WriteScope,
        expect: &'a Expect,
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::UpdateModel { fields, scope, expect })
    }

    fn restore(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::Restore { targets })
    }

    fn standby(
        &self,
        order: &CallContext<'_>,
        targets: &[Target],
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::Standby { targets })
    }

    fn tag_owner(
        &self,
        order: &CallContext<'_>,
        write: &OwnerWrite,
    ) -> impl Future<Output = CallOutcome> + Send {
        self.change(order, SetChange::TagOwner { write })
    }
}

impl<T: ChangeCloud> Changes for T {}

pub const SET: &str =
    "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web";
pub const SECRET: &str = "eyJ-the-secret-of-a-token";

/// 2026-03-01T12:00:00Z
pub const START: Time = Time::from_millis(1_772_366_400_000);

/// Gives out tokens that are numbered; a refused one is followed by the next, unless there is but one.
#[derive(Debug, Default)]
pub struct Purse {
    /// Whom its tokens are for: the ARM of the adapter that was made last.
    pub origin: Mutex<Option<CloudEndpoint>>,
    pub refused: Mutex<Vec<AccessToken>>,
    pub only_one: bool,
    pub empty: Option<AuthError>,
}

#[async_trait]
impl TokenSource for Purse {
    async fn token(&self) -> Result<AccessToken, AuthError> {
        if let Some(why) = &self.empty {
            return Err(why.clone());
        }
        let used = if self.only_one { 0 } else { self.refused.lock().unwrap().len() };
        let secret = Secret::new(format!("{SECRET}-{used}"));
        let origin = self.origin.lock().unwrap().clone().unwrap();
        Ok(AccessToken::new(secret, START.plus(Span::hours(1)), origin))
    }

    fn refused(&self, token: &AccessToken) {
        self.refused.lock().unwrap().push(token.clone());
    }
}

/// Whether something paces the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    Off,
    On,
}

/// An adapter, and what it stands on.
pub struct Kit {
    pub azure: Azure,
    pub server: Server,
    pub clock: ManualClock,
    pub purse: Arc<Purse>,
    pub pacer: Option<Arc<Pacer>>,
}

pub async fn kit(says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Kit {
    kit_of(Purse::default(), Duration::from_secs(5), says).await
}

pub async fn paced_kit(says: impl Fn(&Heard) -> Says + Send + Sync + 'static) -> Kit {
    kit_and_locks(Purse::default(), Pacing::On, Duration::from_secs(5), without_locks(says)).await
}

/// In a group without locks.
pub async fn kit_of(
    purse: Purse,
    patience: Duration,
    says: impl Fn(&Heard) -> Says + Send + Sync + 'static,
) -> Kit {
    kit_and_locks(purse, Pacing::Off, patience, without_locks(says)).await
}

fn without_locks(
    says: impl Fn(&Heard) -> Says + Send + Sync + 'static,
) -> impl Fn(&Heard) -> Says + Send + Sync + 'static {
    move |heard: &Heard| match asks_for_locks(heard) {
        true => Says::json(&json!({"value": []})),
        false => says(heard),
    }
}

pub fn asks_for_locks(heard: &Heard) -> bool {
    heard.target.contains("/providers/Microsoft.Authorization/locks?")
}

pub async fn kit_and_locks(
    purse: Purse,
    pacing: Pacing,
    patience: Duration,
    says: impl Fn(&Heard) -> Says + Send + Sync + 'static,
) -> Kit {
    let server = Server::start(says).await;
    let purse = Arc::new(purse);
    let clock = ManualClock::at(START);
    let pacer = (pacing == Pacing::On).then(|| Arc::new(Pacer::new(clock.clone())));
    let azure = adapter(&server.base, patience, &purse, pacer.clone(), &clock);
    Kit { azure, server, clock, purse, pacer }
}

pub fn adapter(
    base: &str,
    patience: Duration,
    purse: &Arc<Purse>,
    pacer: Option<Arc<Pacer>>,
    clock: &ManualClock,
) -> Azure {
    let cloud =
        AzureCloud::custom("https://login.example/", base, Some("https://arm.example")).unwrap();
    *purse.origin.lock().unwrap() = Some(cloud.origin());
    let net = Net { proxy: Proxy::None, answer_within: patience, ..Net::default() };
    let tokens = Arc::clone(purse);
    Azure::new(cloud, net.http().unwrap(), tokens, pacer, Arc::new(clock.clone()))
}

impl Kit {
    pub async fn look(&self) -> Result<Inventory, ReadError> {
        self.azure.list(&set_id()).await
    }

    pub fn pacer(&self) -> &Pacer {
        self.pacer.as_deref().unwrap()
    }

    /// Calls that were sent so far, by operation.
    pub fn charged(&self) -> Vec<(&'static str, u64)> {
        let counts = self.pacer().counts();
        let sent = counts.iter().filter(|(_, tally)| tally.made > 0);
        sent.map(|(operation, tally)| (operation.name(), tally.made)).collect()
    }

    /// Until when each limit is shut that an answer shut.
    pub fn shut_until(&self) -> Vec<Time> {
        self.pacer().limits().into_iter().filter_map(|limit| limit.shut_until).collect()
    }
}

pub fn set_id() -> ScaleSetId {
    ScaleSetId::new(SET)
}

/// A set with nothing of the cloud's own switched on.
pub fn set() -> Value {
    json!({
        "id": SET, "name": "web", "location": "westeurope",
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard", "capacity": 2},
        "zones": ["1", "2"],
        "tags": {"team": "web"},
        "etag": "\"7\"",
        "properties": {
            "provisioningState": "Succeeded",
            "orchestrationMode": "Uniform",
            "overprovision": false,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {"storageProfile": {"imageReference":
                {"publisher": "p", "offer": "o", "sku": "s", "version": "1.0"}}}
        }
    })
}

pub fn machine(n: u32) -> Value {
    json!({
        "name": format!("web_{n}"),
        "id": format!("{SET}/virtualMachines/{n}"),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "instanceId": n.to_string(),
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard"},
        "zones": [(n % 2 + 1).to_string()],
        "properties": {
            "vmId": format!("0000-{n}"),
            "timeCreated": "2026-03-01T11:00:00.1234567+00:00",
            "latestModelApplied": true,
            "provisioningState": "Succeeded",
            "storageProfile": {"imageReference":
                {"publisher": "p", "offer": "o", "sku": "s", "version": "1.0", "exactVersion": "1.0"}},
            "instanceView": {
                "statuses": [
                    {"code": "ProvisioningState/succeeded", "level": "Info", "time": "2026-03-01T11:01:00+00:00"},
                    {"code": "PowerState/running", "level": "Info"}],
                "vmHealth": {"status": {"code": "HealthState/healthy", "time": "2026-03-01T11:02:00+00:00"}}
            }
        },
        "etag": "\"1\""
    })
}

/// The usual answers: the set, its machines on one page, no autoscale.
pub fn usual(heard: &Heard) -> Says {
    if heard.target.contains("/autoscalesettings") {
        Says::json(&json!({"value": []}))
    } else if heard.is("GET", "/virtualMachines?") {
        Says::json(&json!({"value": [machine(0), machine(1)]}))
    } else {
        Says::json(&set())
    }
}

/// A machine alone, as the path of its set shows it.
pub fn alone(heard: &Heard, machines: &[Value]) -> Option<Says> {
    let named = heard.target.split_once("/web/virtualMachines/")?.1.split('?').next()?;
    machines.iter().find(|machine| machine["name"] == named).map(Says::json)
}

pub fn target(id: &str) -> Target {
    let vm = Some(VmId::new(format!("0000-{id}")));
    Target { id: InstanceId::new(id), vm, created: START, because: RemovalReason::Outdated }
}

pub fn expect(revision: &Revision, etag: Option<&str>) -> Expect {
    Expect {
        etag: etag.map(Etag::new),
        capacity: 2,
        revision: revision.clone(),
        before: START.plus(Span::seconds(60)),
    }
}

/// Whatever an order is made of.
pub struct Sheet {
    pool: PoolName,
    set: ScaleSetId,
    entry: EntryId,
}

impl Sheet {
    pub fn new() -> Self {
        let (pool, entry) = (PoolName::new("web"), EntryId::new("e1"));
        Self { pool, set: set_id(), entry }
    }

    pub fn order(&self) -> CallContext<'_> {
        let before = START.plus(Span::seconds(60));
        CallContext { pool: &self.pool, set: &self.set, entry: &self.entry, before }
    }
}
