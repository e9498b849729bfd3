//! A made-up Azure in this process, and the program run against it.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use poolkeeper::emulator::{Emulator, EmulatorListener, Seed, Tls};
use serde_json::{Value, json};

use super::program::{Ended, command, file, finish};

pub const SETS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets";
/// What must not be seen anywhere.
pub const SECRET: &str = "swordfish-in-the-secret";

pub fn set(name: &str) -> String {
    format!("{SETS}/{name}")
}

/// Served until the tests end.
pub struct Azure {
    pub base: String,
    pub tenant: String,
    pub ca_file: Option<String>,
    pub emulator: Emulator,
}

impl Azure {
    pub fn plain(seed: Value) -> Azure {
        Self::serve(seed, None)
    }

    /// With an authority of its own, kept in a file.
    pub fn behind_tls(seed: Value) -> Azure {
        Self::serve(seed, Some(Tls::made().unwrap()))
    }

    /// Whoever is the application `app` has the secret.
    fn serve(mut seed: Value, tls: Option<Tls>) -> Azure {
        seed["strictTokens"] = json!(true);
        if seed["identities"].is_null() {
            seed["identities"] = json!([{"clientId": "app", "secret": SECRET}]);
        }
        let seed: Seed = serde_json::from_value(seed).unwrap();
        let emulator = Emulator::by_the_clock(&seed, 1.0).unwrap();
        let authority = tls.as_ref().and_then(|tls| tls.authority.clone());
        let port = listen(emulator.clone(), tls).port();
        let ca_file = authority.map(|authority| {
            let path = file("cli", &format!("authority-{port}.pem"));
            std::fs::write(&path, authority).unwrap();
            path
        });
        let base = match ca_file {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        Azure { base, tenant: seed.tenant, ca_file, emulator }
    }

    /// What the program is told by its environment, all of it.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("AZURE_RESOURCE_MANAGER_URL", self.base.clone()),
            ("AZURE_AUTHORITY_HOST", self.base.clone()),
            ("AZURE_TENANT_ID", self.tenant.clone()),
            ("AZURE_CLIENT_ID", "app".to_owned()),
            ("AZURE_CLIENT_SECRET", SECRET.to_owned()),
        ];
        all.extend(self.ca_file.clone().map(|path| ("SSL_CERT_FILE", path)));
        all
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        self.run_with(&[], args)
    }

    /// With these changes to the environment; an empty value takes one out of it.
    pub fn run_with(&self, changes: &[(&'static str, &str)], args: &[&str]) -> Ended {
        let args = [args, &["--auth", "client-secret"]].concat();
        let mut command = command(&args);
        command.envs(self.environment());
        for (name, value) in changes {
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, value),
            };
        }
        finish(command, b"")
    }

    /// Requests to ARM by method and kind of thing.
    pub fn requests(&self) -> Vec<String> {
        let state = self.emulator.state();
        let requests = state["requests"].as_object().unwrap();
        requests.keys().cloned().collect()
    }
}

fn listen(emulator: Emulator, tls: Option<Tls>) -> SocketAddr {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let there = EmulatorListener::at("127.0.0.1:0".parse().unwrap(), tls).await.unwrap();
            tell.send(there.address()).unwrap();
            there.serve(emulator).await.unwrap();
        });
    });
    told.recv().unwrap()
}
