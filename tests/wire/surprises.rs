//! What Azure does that a client does not expect: each surprise of a storm, its marks on the seed, the pool and the wire.

use poolkeeper::ambient::Dice;
use poolkeeper::model::action::WriteScope;
use poolkeeper::model::policy::{Draft, Image, PlatformFeatures};
use poolkeeper::model::time::Span;
use poolkeeper::sim::UserAction;
use poolkeeper::world::{ExternalEvent, InstanceProtection, Which};
use serde_json::{Value, json};

use crate::wire::carrier::Other;
use crate::wire::faults::too_often;
use crate::wire::kit::{Mishap, Passing, SUBSCRIPTION, image, set_id};

macro_rules! surprises {
    ($($name:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Surprise {
            $($name),*
        }

        use Surprise::{$($name),*};

        pub const ALL: &[Surprise] = &[$($name),*];
    };
}

surprises! {
    ProtectionUnread,
    OtherImageKind,
    IdentityServiceAway,
    DisksMove,
    AutoscaleUnread,
    Locked,
    LocksUnread,
    OneOfABatch,
    RegionThrottled,
    EtagStays,
    AttachedVm,
    OtherHost,
    NoProfile,
    TokensLater,
    OtherTypes,
    LittleLeft,
    Denied,
    MixedPriorities,
    AutoscaleFights,
}

/// Everything of a storm that a surprise may change.
#[derive(Default)]
pub struct Plans {
    pub flexible: bool,
    pub managed: bool,
    pub regional: bool,
    pub seed: Value,
    pub set: Value,
    pub deeds: Vec<(Span, ExternalEvent)>,
    pub wishes: Vec<(Span, UserAction)>,
    pub others: Vec<(Span, Other)>,
    pub policy: Vec<fn(&mut Draft)>,
}

/// Laid over what is there, key by key.
pub fn merge(to: &mut Value, from: &Value) {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (key, value) in from {
                merge(to.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (to, from) => from.clone_into(to),
    }
}

const LOCKS: &str = "providers/Microsoft.Authorization/locks";
const SETTINGS: &str = "providers/Microsoft.Insights/autoscalesettings/mine";
pub const ATTACHED: &str = "odd";

fn group() -> String {
    format!("{SUBSCRIPTION}/resourceGroups/rg")
}

fn switches(plans: &mut Plans, on: &Value) {
    merge(&mut plans.seed, &json!({"settings": {"switches": on}}));
}

impl Surprise {
    /// What it changes before the storm begins. `ends`: when the storm does.
    pub fn prepare(self, plans: &mut Plans, dice: &mut Dice, machines: u32, ends: Span) {
        match self {
            ProtectionUnread => {
                let to = InstanceProtection { scale_in: true, set_actions: dice.chance(0.5) };
                plans.deeds.push((Span::ZERO, ExternalEvent::Protect(Which::Any, to)));
            }
            OtherImageKind => {
                plans.policy.push(|draft| {
                    draft.model.image = Some(Image::Exact("p:o:s:2.0.0".into()));
                });
                plans.wishes.push((ends, UserAction::Image(image("2.0.0").into())));
            }
            IdentityServiceAway => plans.managed = true,
            DisksMove => {
                let on = json!({"imagePatchResetsDisks": true, "imagePatchDropsDataDisks": true});
                switches(plans, &on);
                let disks = json!({"osDisk": {"diskSizeGB": 128},
                    "dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 64}]});
                let profile = json!({"virtualMachineProfile": {"storageProfile": disks}});
                merge(&mut plans.set, &json!({"resource": {"properties": profile}}));
                if dice.chance(0.5) {
                    plans.policy.push(|draft| draft.model.write = WriteScope::StorageProfile);
                }
            }
            Locked => lock(plans, dice, ends),
            EtagStays => {
                let kinds = [
                    json!({"etagStaysOnCapacity": true}),
                    json!({"etagStaysOnDelete": true, "capacityFalls": "whenDone"}),
                    json!({"etagMovesOnSameWrite": true, "capacityFalls": "shownLate"}),
                ];
                switches(plans, &kinds[dice.below(3) as usize]);
                let at = Span::from_millis(dice.below(ends.millis() as u64) as i64);
                plans
                    .deeds
                    .push((at, ExternalEvent::SetCapacity(machines + 1 + dice.below(2) as u32)));
            }
            OneOfABatch => switches(plans, &json!({"lockedVmStopsBatch": true})),
            AttachedVm => attach(plans, dice),
            OtherHost => plans.regional = true,
            MixedPriorities => {
                let mix = json!({"baseRegularPriorityCount": 2, "regularPriorityPercentageAboveBase": 50});
                let profile = json!({"priority": "Spot", "evictionPolicy": "Delete"});
                let properties =
                    json!({"priorityMixPolicy": mix, "virtualMachineProfile": profile});
                merge(&mut plans.set, &json!({"resource": {"properties": properties}}));
            }
            AutoscaleFights => autoscale(plans, dice, machines, ends),
            AutoscaleUnread | LocksUnread | RegionThrottled | NoProfile | TokensLater
            | OtherTypes | LittleLeft | Denied => {}
        }
    }

    /// What it does to a request.
    pub fn strike(self, passing: &Passing<'_>, dice: &mut Dice) -> Option<Mishap> {
        let refuse = |status: u16, code: &str| {
            Some(Mishap::Rule(json!({"status": status, "code": code, "message": "no"})))
        };
        let (path, reads) = (passing.path, passing.method == azure_core::http::Method::Get);
        let single = path.contains("/virtualMachineScaleSets/web/virtualMachines/");
        match self {
            ProtectionUnread if single && reads => refuse(403, "AuthorizationFailed"),
            IdentityServiceAway if passing.is_token && dice.chance(0.6) => {
                let status = [404, 410, 400, 503][dice.below(4) as usize];
                Some(Mishap::Rule(
                    json!({"status": status, "body": {"error": "Identity not found"}}),
                ))
            }
            TokensLater if passing.is_token && dice.chance(0.6) => {
                Some(Mishap::Rule(json!({"status": 429, "retryAfter": 5 + dice.below(60)})))
            }
            AutoscaleUnread if path.ends_with("/autoscalesettings") => match dice.below(3) {
                0 => refuse(403, "AuthorizationFailed"),
                1 => refuse(409, "MissingSubscriptionRegistration"),
                _ => refuse(500, "InternalServerError"),
            },
            LocksUnread if path.ends_with(LOCKS) => match dice.below(2) {
                0 => refuse(403, "AuthorizationFailed"),
                _ => refuse(503, "ServerBusy"),
            },
            OneOfABatch if path.ends_with("/delete") && dice.chance(0.5) => one_of(passing),
            RegionThrottled if !passing.is_token && dice.chance(0.15) => {
                let mut rule = too_often(20 + dice.below(100) as u32);
                rule["headers"] = json!({"x-ms-ratelimit-remaining-resource": "Microsoft.Compute/HighCostGetVMScaleSetResource;0"});
                Some(Mishap::Rule(rule))
            }
            NoProfile if path.ends_with("/web") && reads && dice.chance(0.5) => {
                Some(Mishap::Reworded(without_profile))
            }
            OtherTypes if reads && !passing.is_token && dice.chance(0.4) => {
                let kinds: [fn(&mut Value); 4] =
                    [with_float, with_flag_as_text, with_number_as_id, with_zone_as_text];
                Some(Mishap::Reworded(kinds[dice.below(4) as usize]))
            }
            LittleLeft if !passing.is_token && dice.chance(0.2) => {
                let left = dice.below(3).to_string();
                let headers = json!({"x-ms-ratelimit-remaining-subscription-reads": left,
                    "x-ms-ratelimit-remaining-subscription-global-writes": left});
                Some(Mishap::Rule(json!({"headers": headers})))
            }
            Denied if passing.writes() && dice.chance(0.5) => {
                refuse(403, "DenyAssignmentAuthorizationFailed")
            }
            _ => None,
        }
    }

    /// Only a Flexible set knows it.
    pub fn is_of_flexible_sets(self) -> bool {
        matches!(self, ProtectionUnread | AttachedVm | NoProfile | MixedPriorities)
    }

    /// It is there by the seed, or by what others do, and strikes no single request.
    pub fn is_a_state(self) -> bool {
        matches!(
            self,
            OtherImageKind
                | DisksMove
                | Locked
                | EtagStays
                | AttachedVm
                | OtherHost
                | MixedPriorities
                | AutoscaleFights
        )
    }
}

/// On the subscription, the group, the set or one machine; the lock goes at the end.
fn lock(plans: &mut Plans, dice: &mut Dice, ends: Span) {
    let set = set_id("web");
    let scope = match dice.below(4) {
        0 => SUBSCRIPTION.to_owned(),
        1 => group(),
        2 => set.to_string(),
        // The names of Flexible VMs are not known before.
        _ if plans.flexible => group(),
        _ => format!("{set}/virtualMachines/1"),
    };
    let level = ["CanNotDelete", "ReadOnly"][dice.below(2) as usize];
    let lift = format!("{scope}/{LOCKS}/keep?api-version=2020-05-01");
    merge(&mut plans.seed, &json!({"locks": [{"scope": scope, "name": "keep", "level": level}]}));
    plans.others.push((ends, ("DELETE", lift, Value::Null)));
}

fn attach(plans: &mut Plans, dice: &mut Dice) {
    merge(
        &mut plans.seed,
        &json!({"settings": {"switches": {"attachLeavesCapacity": dice.chance(0.5)}}}),
    );
    let image = json!({"publisher": "p", "offer": "o", "sku": "s", "version": "7.0.0"});
    let vm = json!({"location": "eastus2", "properties": {
        "hardwareProfile": {"vmSize": "Standard_D4s_v5"},
        "storageProfile": {"imageReference": image,
            "osDisk": {"createOption": "FromImage", "osType": "Linux"}},
        "osProfile": {"computerName": ATTACHED, "adminUsername": "me"},
        "networkProfile": {"networkInterfaces": [{"id": "/nics/odd"}]},
        "virtualMachineScaleSet": {"id": set_id("web").as_str()}}});
    let path = format!(
        "{}/providers/Microsoft.Compute/virtualMachines/{ATTACHED}?api-version=2024-07-01",
        group()
    );
    plans.others.push((Span::minutes(1 + dice.below(5) as i64), ("PUT", path, vm)));
}

/// Of exactly so many machines: whatever is raised above is taken away again.
fn autoscale(plans: &mut Plans, dice: &mut Dice, machines: u32, ends: Span) {
    let path = format!("{}/{SETTINGS}?api-version=2022-10-01", group());
    let all = machines.to_string();
    let profile = json!({"name": "all", "rules": [],
        "capacity": {"minimum": all, "maximum": all, "default": all}});
    let setting = json!({"location": "eastus2", "properties": {"enabled": true,
        "targetResourceUri": set_id("web").as_str(), "profiles": [profile]}});
    plans.others.push((Span::ZERO, ("PUT", path.clone(), setting)));
    plans.others.push((ends, ("DELETE", path, Value::Null)));
    if dice.chance(0.5) {
        plans.policy.push(|draft| draft.platform_features = PlatformFeatures::Warn);
    }
}

/// The first that a batch names may not be deleted.
fn one_of(passing: &Passing<'_>) -> Option<Mishap> {
    let body: Value = serde_json::from_slice(passing.body).ok()?;
    let first = body["instanceIds"][0].as_str()?;
    let message = format!(
        "InstanceIds may not contain instances that are protected from scale set actions. The following instance ids are \
         protected from scale set action: {first}."
    );
    Some(Mishap::Rule(json!({"status": 409, "code": "OperationNotAllowed", "message": message})))
}

fn without_profile(set: &mut Value) {
    if let Some(set) = set.as_object_mut() {
        set.remove("sku");
    }
    if let Some(properties) = set["properties"].as_object_mut() {
        properties.remove("virtualMachineProfile");
    }
}

fn with_float(document: &mut Value) {
    if let Some(capacity) = document.pointer("/sku/capacity").and_then(Value::as_f64) {
        document["sku"]["capacity"] = json!(capacity);
    }
}

fn first_row(document: &mut Value) -> Option<&mut Value> {
    document.pointer_mut("/value/0/properties")
}

fn with_flag_as_text(document: &mut Value) {
    if let Some(row) = first_row(document) {
        row["latestModelApplied"] = json!("true");
    }
}

fn with_number_as_id(document: &mut Value) {
    if let Some(row) = first_row(document) {
        row["vmId"] = json!(7);
    }
}

fn with_zone_as_text(document: &mut Value) {
    if let Some(row) = document.pointer_mut("/value/0") {
        row["zones"] = json!("1");
    }
}
