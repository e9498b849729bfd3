//! Status notifications to the service manager (sd_notify): lines in one datagram to the socket that it names.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub struct ServiceNotify {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// The watchdog interval that the manager expects.
    watchdog: Option<Duration>,
}

impl ServiceNotify {
    /// From `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`. Without them all notifications do nothing.
    pub fn from_env(get: impl Fn(&str) -> Option<String>, pid: u32) -> io::Result<Self> {
        let Some(path) = get("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else {
            return Ok(Self::default());
        };
        let to = (UnixDatagram::unbound()?, address(&path)?);
        to.0.set_nonblocking(true)?;
        let for_us = get("WATCHDOG_PID").is_none_or(|theirs| theirs == pid.to_string());
        let micros = get("WATCHDOG_USEC").and_then(|text| text.parse::<u64>().ok());
        let watchdog = micros.filter(|micros| for_us && *micros > 0).map(Duration::from_micros);
        Ok(Self { to: Some(to), watchdog })
    }

    /// Half of the watchdog interval.
    pub fn beat(&self) -> Option<Duration> {
        self.watchdog.map(|every| every / 2)
    }

    pub fn ready(&self, say: &str) {
        self.tell(&format!("READY=1\nSTATUS={say}"));
    }

    pub fn reloading(&self) {
        self.tell("RELOADING=1");
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=turns that run come to their end");
    }

    pub fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    /// Not ready yet, for a reason that may outlast the manager's start timeout.
    pub fn waits(&self, say: &str, more: Duration) {
        self.tell(&format!("STATUS={say}\nEXTEND_TIMEOUT_USEC={}\nWATCHDOG=1", more.as_micros()));
    }

    fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.to {
            // Ignore send errors: nothing here depends on the manager.
            let _unheard = socket.send_to_addr(what.as_bytes(), address);
        }
    }
}

/// `@name` is an address in the abstract namespace.
#[cfg(target_os = "linux")]
fn address(path: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(path: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(path)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::linux::net::SocketAddrExt;

    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    fn manager(env: &[(&str, &str)]) -> ServiceNotify {
        let get = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        ServiceNotify::from_env(get, 7).unwrap()
    }

    #[test]
    fn it_is_told_at_a_path_and_at_an_abstract_name() {
        let path = std::env::temp_dir().join(format!("poolkeeper-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let abstract_name = format!("poolkeeper-notify-{}", std::process::id());
        let at = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let by_name = UnixDatagram::bind_addr(&at).unwrap();
        let by_path = UnixDatagram::bind(&path).unwrap();
        for (socket, name) in
            [(by_path, path.display().to_string()), (by_name, format!("@{abstract_name}"))]
        {
            let manager = manager(&[("NOTIFY_SOCKET", &name), ("WATCHDOG_USEC", "30000000")]);
            assert_eq!(manager.beat(), Some(Duration::from_secs(15)));
            manager.ready("3 pools");
            assert_eq!(heard(&socket), "READY=1\nSTATUS=3 pools");
            manager.alive();
            assert_eq!(heard(&socket), "WATCHDOG=1");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn without_one_nothing_is_told_and_nothing_fails() {
        manager(&[]).ready("unheard");
        let other = manager(&[
            ("NOTIFY_SOCKET", "@no-manager"),
            ("WATCHDOG_USEC", "1000"),
            ("WATCHDOG_PID", "8"),
        ]);
        other.stopping();
        assert_eq!(other.beat(), None, "the watchdog is for another process");
    }
}
