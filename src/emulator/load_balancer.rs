//! Load balancers (`Microsoft.Network/loadBalancers`) and their backend pools: read, listed, written as a whole.
//!
//! The emulator keeps the document as it was written, without what Azure computes. The world gets the meaning, holds the
//! administrative states, and refuses what Azure refuses. `balancer_document` reads and shows the document.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::balancer_document::{self, POOLS};
use super::cloud::EmulatedCloud;
use super::document::{self, text};
use super::interfaces;
use super::members;
use super::operation;
use super::reply::{EmulatorReply, HandledRequest, Rejection};
use super::request::EmulatorRequest;
use super::set;
use crate::world::{
    INTERFACE_BLOCKS, OperationHandle, PoolId, WorldAnswer, WorldFailure, WorldRefusal,
};

/// A balancer that the path names.
struct BalancerPath {
    id: String,
    key: Arc<str>,
}

impl BalancerPath {
    fn new(ask: &EmulatorRequest) -> Self {
        let id = id_of(ask.subscription(), ask.part(3), ask.part(7));
        let key = id.to_ascii_lowercase().into();
        Self { id, key }
    }
}

pub(super) fn id_of(subscription: &str, group: &str, name: &str) -> String {
    format!(
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/loadBalancers/{name}"
    )
}

impl EmulatedCloud {
    /// The id of a pool as its balancer spells it.
    pub fn pool_id(&self, pool: &PoolId) -> Option<String> {
        let known = self.balancers.get(&pool.balancer)?;
        let list = known.pointer(POOLS).and_then(Value::as_array)?;
        let mut names = list.iter().filter_map(|one| text(one, "/name"));
        let name = names.find(|name| name.eq_ignore_ascii_case(&pool.pool))?;
        Some(format!("{}/backendAddressPools/{name}", text(known, "/id")?))
    }
}

pub(super) fn list(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> HandledRequest {
    cloud.check_scope(ask)?;
    cloud.world.neighbour(false)?;
    let scope = ask.scope();
    let here = cloud.balancers.keys().filter(|id| id.starts_with(&scope));
    let all: Vec<Value> = here.filter_map(|id| balancer_document::shown(cloud, id)).collect();
    Ok(set::page(ask, &all))
}

/// Under `…/loadBalancers/{name}`.
pub(super) fn serve(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    rest: &[&str],
) -> HandledRequest {
    cloud.check_scope(ask)?;
    let named = BalancerPath::new(ask);
    match (ask.method.as_str(), rest) {
        ("GET", []) => {
            let shown = balancer_document::shown(cloud, &named.key);
            let shown = shown.ok_or_else(|| unknown(cloud, ask))?;
            cloud.world.neighbour(false)?;
            Ok(with_etag(&shown, 200))
        }
        ("PUT", []) => put(cloud, ask, &named),
        ("GET", ["backendaddresspools"]) => {
            let shown = balancer_document::shown(cloud, &named.key);
            let shown = shown.ok_or_else(|| unknown(cloud, ask))?;
            cloud.world.neighbour(false)?;
            let pools = shown.pointer(POOLS).and_then(Value::as_array);
            Ok(set::page(ask, pools.map_or(&[], Vec::as_slice)))
        }
        ("GET", ["backendaddresspools", _]) => {
            let shown = balancer_document::shown_pool(cloud, &named.key, ask.part(9));
            let shown = shown.ok_or_else(|| no_pool(cloud, ask))?;
            cloud.world.neighbour(false)?;
            Ok(with_etag(&shown, 200))
        }
        ("PUT", ["backendaddresspools", _]) => put_pool(cloud, ask, &named),
        _ => {
            cloud.world.neighbour(ask.method != "GET")?;
            Err(members::not_served(ask))
        }
    }
}

fn with_etag(shown: &Value, status: u16) -> EmulatorReply {
    let etag = text(shown, "/etag").unwrap_or_default().to_owned();
    EmulatorReply::json(status, shown).with("etag", etag)
}

fn unknown(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Rejection {
    let kind = format!("Microsoft.Network/loadBalancers/{}", ask.part(7));
    cloud.not_found(&kind, ask.part(3))
}

fn no_pool(cloud: &mut EmulatedCloud, ask: &EmulatorRequest) -> Rejection {
    if !cloud.balancers.contains_key(&BalancerPath::new(ask).key) {
        return unknown(cloud, ask);
    }
    let path = &ask.path;
    cloud.turn_away(404, "NotFound", format!("Resource {path} not found."))
}

fn put(cloud: &mut EmulatedCloud, ask: &EmulatorRequest, named: &BalancerPath) -> HandledRequest {
    let mut body = Value::Object(ask.object()?);
    document::location(&body)?;
    let known = cloud.balancers.get(&named.key).cloned();
    balancer_document::complete(&mut body, &named.id, known.as_ref());
    let spec = balancer_document::meaning(cloud, &named.key, &body)?;
    let before = writes(cloud, &named.key);
    let done = cloud.world.write_balancer(&named.key, &spec, ask.header("if-match"));
    // Even if the answer is lost, the write may have happened.
    if writes(cloud, &named.key) != before {
        cloud.balancers.insert(Arc::clone(&named.key), body);
    }
    let (is_new, done) = told(cloud, &named.key, done)?;
    let shown = balancer_document::shown(cloud, &named.key).unwrap_or_default();
    let reply = with_etag(&shown, if is_new { 201 } else { 200 });
    Ok(accepted(cloud, ask, reply, &done))
}

fn put_pool(
    cloud: &mut EmulatedCloud,
    ask: &EmulatorRequest,
    named: &BalancerPath,
) -> HandledRequest {
    let mut pool = Value::Object(ask.object()?);
    if !cloud.balancers.contains_key(&named.key) {
        return Err(unknown(cloud, ask));
    }
    let known = balancer_document::shown_pool(cloud, &named.key, ask.part(9));
    let name = known.as_ref().and_then(|known| text(known, "/name")).unwrap_or(ask.part(9));
    balancer_document::complete_pool(&mut pool, name);
    let spec = balancer_document::pool(cloud, &named.key, &pool)?;
    let before = writes(cloud, &named.key);
    let done = cloud.world.write_pool(&named.key, &spec, ask.header("if-match"));
    if writes(cloud, &named.key) != before
        && let Some(balancer) = cloud.balancers.get_mut(&named.key)
    {
        balancer_document::replace_pool(balancer, pool);
    }
    let (is_new, done) = told(cloud, &named.key, done)?;
    let shown = balancer_document::shown_pool(cloud, &named.key, &spec.name).unwrap_or_default();
    let reply = with_etag(&shown, if is_new { 201 } else { 200 });
    Ok(accepted(cloud, ask, reply, &done))
}

fn writes(cloud: &EmulatedCloud, key: &str) -> u64 {
    cloud.world.balancer(key).map_or(0, |view| view.writes)
}

fn accepted(
    cloud: &EmulatedCloud,
    ask: &EmulatorRequest,
    reply: EmulatorReply,
    done: &OperationHandle,
) -> EmulatorReply {
    let location = &cloud.world.settings().location;
    let scope = format!(
        "/subscriptions/{}/providers/Microsoft.Network/locations/{location}",
        ask.subscription()
    );
    operation::with_resource(cloud, ask, reply, done, &scope)
}

/// A refusal names resources by their ids, which the world does not know.
fn told<T>(cloud: &EmulatedCloud, key: &str, done: WorldAnswer<T>) -> Result<T, Rejection> {
    let Err(WorldFailure::Refused(mut refusal)) = done else { return Ok(done?) };
    let blocks = |detail: &&mut Box<crate::world::ErrorDetail>| detail.code == INTERFACE_BLOCKS;
    if let Some(detail) = refusal.detail.as_mut().filter(blocks)
        && let Some(interface) = cloud.world.blocking_interface(key)
        && let Some(id) = interfaces::id(cloud, &interface)
    {
        detail.message = interface.blocks(&id);
    }
    Err(refusal.into())
}

/// A balancer that exists from the start.
pub(super) fn found(
    cloud: &mut EmulatedCloud,
    id: &str,
    mut body: Map<String, Value>,
) -> Result<(), String> {
    let key: Arc<str> = id.to_ascii_lowercase().into();
    if cloud.balancers.contains_key(&key) {
        return Err("another one of this name is in the same resource group".to_owned());
    }
    body.entry("location").or_insert_with(|| json!(cloud.world.settings().location));
    let mut body = Value::Object(body);
    balancer_document::complete(&mut body, id, None);
    let spec = balancer_document::meaning(cloud, &key, &body);
    let said = |refusal: WorldRefusal| refusal.message;
    let spec = spec.map_err(|turned| match turned {
        Rejection::Refused(refusal) | Rejection::AtTheDoor(refusal) => said(*refusal),
        Rejection::Lost => "not understood".to_owned(),
    })?;
    cloud.world.create_balancer(&key, &spec).map_err(said)?;
    cloud.balancers.insert(key, body);
    Ok(())
}
