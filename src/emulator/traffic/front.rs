//! A front end: each new connection goes to one machine, and stays there until one side closes it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{ForwardedConnection, TICK, Traffic, add, backends, locked};
use crate::emulator::Emulator;
use crate::world::VmId;

pub(super) async fn serve(
    emulator: Emulator,
    traffic: Arc<Traffic>,
    n: usize,
    listener: TcpListener,
) {
    let mut connections = JoinSet::new();
    let mut count = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else {
                    // Without a free descriptor the next attempt would fail at once.
                    tokio::time::sleep(TICK).await;
                    continue;
                };
                let _kept_as_it_is = client.set_nodelay(true);
                connections.spawn(forward(emulator.clone(), Arc::clone(&traffic), n, count, client));
                count += 1;
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// The machines that take new connections, in turn: clients of one host would all have the same hash.
fn pick(emulator: &Emulator, traffic: &Traffic, n: usize, count: usize) -> Option<VmId> {
    let backends = backends(&emulator.lock(), traffic.fronts.get(n)?);
    let takes: Vec<VmId> = backends
        .iter()
        .filter(|backend| backend.takes_new)
        .filter_map(|backend| Some(backend.member.machine.as_ref()?.vm))
        .collect();
    takes.get(count % takes.len().max(1)).copied()
}

async fn forward(
    emulator: Emulator,
    traffic: Arc<Traffic>,
    n: usize,
    count: usize,
    mut client: TcpStream,
) {
    let Some(counts) = traffic.counts.get(n) else { return };
    let Some(vm) = pick(&emulator, &traffic, n, count) else { return add(&counts.refused) };
    let address = locked(&traffic.machines).get(&vm).copied();
    let Some(address) = address else { return add(&counts.unanswered) };
    let forwarded = Arc::new(ForwardedConnection {
        front: n,
        vm,
        is_reset: AtomicBool::new(false),
        reset: Notify::new(),
    });
    let Ok((mut machine, _known)) = connect(&traffic, address, &forwarded).await else {
        return add(&counts.unanswered);
    };
    tokio::select! {
        // Either side closed or vanished; the machine counts what that means.
        _closed = copy_bidirectional(&mut client, &mut machine) => {}
        () = forwarded.reset.notified() => {}
    }
}

/// As long as it lives, the machine can tell which front end a connection came from.
struct Known {
    traffic: Arc<Traffic>,
    port: u16,
}

impl Drop for Known {
    fn drop(&mut self) {
        locked(&self.traffic.forwarded).remove(&self.port);
    }
}

async fn connect(
    traffic: &Arc<Traffic>,
    address: SocketAddr,
    forwarded: &Arc<ForwardedConnection>,
) -> io::Result<(TcpStream, Known)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let port = socket.local_addr()?.port();
    locked(&traffic.forwarded).insert(port, Arc::clone(forwarded));
    let known = Known { traffic: Arc::clone(traffic), port };
    let machine = socket.connect(address).await?;
    machine.set_nodelay(true)?;
    Ok((machine, known))
}
