//! Tracks connections and chooses which one to close when places run out.
//!
//! A new connection takes the place of one without a request in progress. The address with the most connections gives
//! it up, so that a crowd never displaces a new client; of that address first a connection that never sent a request,
//! then the one that is idle longest. A request in progress and a stream keep their place.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, oneshot};

use super::proxies::Proxies;
use crate::api::http::rate::network;

/// Descriptors reserved for calls to the cloud, the store and files.
const RESERVE: u64 = 256;
/// Fewer places than this are too few to serve the API.
const LEAST: usize = 64;

/// Most connections at a time: in total, and of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    pub all: usize,
    pub of_one: usize,
}

impl Places {
    pub const MOST: Self = Self { all: 1_024, of_one: 256 };
    /// A process that may open fewer does not serve the API.
    pub const DESCRIPTORS: u64 = RESERVE + LEAST as u64;

    /// As many places as this number of descriptors allows; `None`: too few.
    pub fn of(descriptors: u64) -> Option<Self> {
        let left = descriptors.checked_sub(RESERVE)?;
        let all = usize::try_from(left).unwrap_or(usize::MAX).min(Self::MOST.all);
        (all >= LEAST).then_some(Self { all, ..Self::MOST })
    }
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It has sent no request yet.
    Silent,
    /// Its requests have been answered.
    Idle,
    Busy,
    /// It is giving up its place.
    Leaving,
}

#[derive(Debug)]
struct Connection {
    from: IpAddr,
    /// Many clients share it, so it gives up its place last and has no per-address limit.
    is_of_proxy: bool,
    state: State,
    /// The number of the event that set its state: lower is longer ago.
    since: u64,
    /// Dropping this closes the connection.
    held: Option<oneshot::Sender<()>>,
}

#[derive(Debug, Default)]
struct Connections {
    all: BTreeMap<u64, Connection>,
    events: u64,
}

impl Connections {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    /// The connection to close, of all or of one address.
    fn victim(&self, of: Option<IpAddr>) -> Option<u64> {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for one in self.all.values() {
            *counts.entry(one.from).or_default() += 1;
        }
        let asks_nothing = |one: &Connection| matches!(one.state, State::Silent | State::Idle);
        let may_go = |one: &Connection| asks_nothing(one) && of.is_none_or(|of| of == one.from);
        let first = |one: &Connection| {
            (one.is_of_proxy, Reverse(counts.get(&one.from).copied()), one.state, one.since)
        };
        let all = self.all.iter().filter(|(_, one)| may_go(one));
        all.min_by_key(|(_, one)| first(one)).map(|(number, _)| *number)
    }
}

#[derive(Debug)]
pub(super) struct Crowd {
    places: Places,
    proxies: Proxies,
    connections: Mutex<Connections>,
    /// Notified when a connection ended or became idle. At most one task waits for it.
    changed: Notify,
}

/// Result of a new connection.
enum Entry {
    In(Visitor),
    /// Its address has reached its limit, and all its connections are busy.
    Refused,
    /// Another connection is giving up its place, or all are busy.
    Later,
}

/// An admitted connection.
#[derive(Debug)]
pub(super) struct Visitor {
    pub place: Arc<CrowdPlace>,
    /// Fires when the connection must close.
    pub cut: oneshot::Receiver<()>,
}

impl Crowd {
    pub fn new(places: Places, proxies: Proxies) -> Self {
        Self { places, proxies, connections: Mutex::default(), changed: Notify::new() }
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place; `None`: none is available for this address.
    pub async fn enter(self: &Arc<Self>, client: IpAddr) -> Option<Visitor> {
        loop {
            match self.try_enter(client) {
                Entry::In(guest) => return Some(guest),
                Entry::Refused => return None,
                Entry::Later => self.changed.notified().await,
            }
        }
    }

    fn try_enter(self: &Arc<Self>, client: IpAddr) -> Entry {
        let (from, is_of_proxy) = (network(client), self.proxies.has(client));
        let mut connections = self.connections();
        let own = connections.all.values().filter(|one| one.from == from).count();
        let of = (!is_of_proxy && own >= self.places.of_one).then_some(from);
        if of.is_none() && connections.all.len() < self.places.all {
            let (held, cut) = oneshot::channel();
            let number = connections.event();
            let one = Connection {
                from,
                is_of_proxy,
                state: State::Silent,
                since: number,
                held: Some(held),
            };
            connections.all.insert(number, one);
            return Entry::In(Visitor {
                place: Arc::new(CrowdPlace(Arc::clone(self), number)),
                cut,
            });
        }
        let leaves =
            |one: &Connection| one.state == State::Leaving && of.is_none_or(|of| of == one.from);
        if connections.all.values().any(leaves) {
            return Entry::Later;
        }
        let victim = connections.victim(of);
        match victim.and_then(|number| connections.all.get_mut(&number)) {
            Some(victim) => {
                (victim.state, victim.held) = (State::Leaving, None);
                Entry::Later
            }
            None if of.is_some() => Entry::Refused,
            None => Entry::Later,
        }
    }

    /// Waits until the last connection has ended.
    pub async fn is_gone(&self) {
        while !self.connections().all.is_empty() {
            self.changed.notified().await;
        }
    }

    fn becomes(&self, number: u64, state: State) {
        let mut connections = self.connections();
        let since = connections.event();
        if let Some(one) = connections.all.get_mut(&number)
            && one.state != State::Leaving
        {
            (one.state, one.since) = (state, since);
        }
    }
}

/// The place of a connection; dropping it frees the place.
#[derive(Debug)]
pub(super) struct CrowdPlace(Arc<Crowd>, u64);

impl CrowdPlace {
    /// A request arrived; it is in progress until its answer is complete.
    pub fn works(self: &Arc<Self>) -> Working {
        self.0.becomes(self.1, State::Busy);
        Working(Arc::clone(self))
    }

    pub fn proxies(&self) -> &Proxies {
        &self.0.proxies
    }

    pub fn is_silent(&self) -> bool {
        let connections = self.0.connections();
        connections.all.get(&self.1).is_none_or(|one| one.state == State::Silent)
    }
}

impl Drop for CrowdPlace {
    fn drop(&mut self) {
        self.0.connections().all.remove(&self.1);
        self.0.changed.notify_one();
    }
}

#[derive(Debug)]
pub(super) struct Working(Arc<CrowdPlace>);

impl Drop for Working {
    fn drop(&mut self) {
        let CrowdPlace(crowd, number) = &*self.0;
        crowd.becomes(*number, State::Idle);
        crowd.changed.notify_one();
    }
}

/// The body of an answer; its connection is not closed while it exists.
pub(super) struct Answering {
    pub body: Body,
    pub _working: Working,
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn crowd(all: usize, of_one: usize) -> Arc<Crowd> {
        Arc::new(Crowd::new(Places { all, of_one }, "10.0.0.200".parse().unwrap()))
    }

    fn enters(crowd: &Arc<Crowd>, n: u8) -> Visitor {
        match crowd.try_enter(at(n)) {
            Entry::In(guest) => guest,
            Entry::Refused | Entry::Later => panic!("there is no place for {n}"),
        }
    }

    fn is_cut(guest: &mut Visitor) -> bool {
        guest.cut.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    /// Which connection gives up its place to a client from 10.0.0.n.
    fn gives(crowd: &Arc<Crowd>, guests: &mut [Visitor], n: u8) -> Option<usize> {
        assert!(!matches!(crowd.try_enter(at(n)), Entry::In(_)), "places ran out");
        let cut: Vec<usize> = (0..guests.len()).filter(|n| is_cut(&mut guests[*n])).collect();
        assert!(cut.len() <= 1, "{cut:?}");
        cut.first().copied()
    }

    #[test]
    fn places_leave_descriptors_to_all_else() {
        for (descriptors, all) in [
            (0, None),
            (RESERVE, None),
            (319, None),
            (320, Some(64)),
            (1_024, Some(768)),
            (1_280, Some(1_024)),
            (u64::MAX, Some(1_024)),
        ] {
            assert_eq!(Places::of(descriptors).map(|places| places.all), all, "{descriptors}");
        }
        assert!(Places::of(Places::DESCRIPTORS - 1).is_none());
        assert!(Places::of(Places::DESCRIPTORS).is_some());
    }

    #[test]
    fn the_largest_crowd_gives_a_place_and_first_one_that_never_asked() {
        let crowd = crowd(5, 5);
        let mut guests = [1, 2, 2, 2, 2].map(|n| enters(&crowd, n));
        drop(guests[1].place.works());
        let stream = guests[2].place.works();
        // 10.0.0.1 is silent for longer but has only one connection.
        assert_eq!(gives(&crowd, &mut guests, 3), Some(3), "silent, and before the other");
        assert_eq!(gives(&crowd, &mut guests, 3), Some(3), "one goes for one that comes");
        drop(stream);
    }

    #[test]
    fn idle_ones_go_in_their_order_and_what_is_in_work_stays() {
        let crowd = crowd(3, 3);
        let mut guests = [1, 1, 1].map(|n| enters(&crowd, n));
        let mut works: Vec<Working> = guests.iter().map(|guest| guest.place.works()).collect();
        assert_eq!(gives(&crowd, &mut guests, 2), None, "all are in work");
        drop(works.remove(1));
        drop(works.remove(0));
        assert_eq!(gives(&crowd, &mut guests, 2), Some(1), "it is idle for longer");
        drop(works);
    }

    #[test]
    fn an_address_with_its_share_gives_a_place_of_its_own() {
        let crowd = crowd(8, 2);
        let mut guests = [1, 2, 2].map(|n| enters(&crowd, n));
        assert_eq!(gives(&crowd, &mut guests, 2), Some(1));
        let works = [guests[1].place.works(), guests[2].place.works()];
        assert!(matches!(crowd.try_enter(at(2)), Entry::Later), "one still leaves");
        let [one, gone, other] = guests;
        drop((gone, works));
        let next = enters(&crowd, 2);
        let _works = [other.place.works(), next.place.works()];
        assert!(matches!(crowd.try_enter(at(2)), Entry::Refused));
        drop((one, enters(&crowd, 3)));
    }

    #[test]
    fn a_named_proxy_has_no_share_and_gives_its_place_last() {
        let crowd = crowd(4, 1);
        let mut guests = [200, 200, 200, 1].map(|n| enters(&crowd, n));
        drop(guests[3].place.works());
        assert_eq!(gives(&crowd, &mut guests, 2), Some(3), "though the proxy has most");
        let [a, b, c, gone] = guests;
        drop(gone);
        let all = [a, b, c, enters(&crowd, 200)];
        assert!(matches!(crowd.try_enter(at(2)), Entry::Later));
        drop(all);
    }

    #[tokio::test]
    async fn one_that_comes_waits_until_the_other_went() {
        let crowd = crowd(1, 1);
        let mut first = enters(&crowd, 1);
        let entering = Arc::clone(&crowd);
        let coming = tokio::spawn(async move { entering.enter(at(2)).await });
        assert!((&mut first.cut).await.is_err());
        assert!(!coming.is_finished(), "never more than there may be");
        drop(first);
        let second = coming.await.unwrap();
        assert!(second.is_some());
        drop(second);
        crowd.is_gone().await;
        assert!(crowd.connections().all.is_empty());
    }

    #[test]
    fn a_network_of_addresses_is_one() {
        let crowd = crowd(8, 1);
        let of = |text: &str| crowd.try_enter(text.parse().unwrap());
        let first = of("2001:db8::1");
        assert!(matches!(first, Entry::In(_)));
        assert!(matches!(of("2001:db8::2"), Entry::Later));
        let plain = of("10.0.0.1");
        assert!(matches!(plain, Entry::In(_)));
        assert!(matches!(of("::ffff:10.0.0.1"), Entry::Later));
    }
}
