//! Prints how to connect to the emulator, for people and for scripts.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::api::v1::API_VERSION;
use crate::cli::term::{Style, Term};
use crate::emulator::Seed;

#[derive(Debug)]
pub(super) struct EmulatorMessage<'a> {
    pub address: SocketAddr,
    pub is_tls: bool,
    pub ca_file: Option<PathBuf>,
    pub seed: &'a Seed,
    pub speed: f64,
}

impl EmulatorMessage<'_> {
    /// The URL. With TLS it uses the host name, which the certificate must match.
    fn url(&self) -> String {
        match self.is_tls {
            true => format!("https://localhost:{}", self.address.port()),
            false => format!("http://{}", self.address),
        }
    }

    fn subscription(&self) -> &str {
        self.seed.subscriptions.first().map_or("", String::as_str)
    }

    fn sets(state: &Value) -> Vec<&str> {
        let sets = state["scaleSets"].as_array().into_iter().flatten();
        sets.filter_map(|set| set["id"].as_str()).collect()
    }

    /// The rules that listen: the id of each and its address.
    fn fronts(state: &Value) -> impl Iterator<Item = (String, &str)> {
        let balancers = state["loadBalancers"].as_array().into_iter().flatten();
        balancers.flat_map(|balancer| {
            let rules = balancer["rules"].as_array().into_iter().flatten();
            rules.filter_map(|rule| {
                let (id, name) = (balancer["id"].as_str()?, rule["name"].as_str()?);
                Some((format!("{id}/loadBalancingRules/{name}"), rule["address"].as_str()?))
            })
        })
    }

    pub fn document(&self, state: &Value) -> Value {
        let fronts = Self::fronts(state);
        let fronts = fronts.map(|(rule, address)| json!({ "rule": rule, "address": address }));
        json!({ "apiVersion": API_VERSION, "kind": "Emulator", "url": self.url(),
            "address": self.address.to_string(),
            "caFile": self.ca_file.as_ref().map(|path| path.display().to_string()),
            "tenant": self.seed.tenant, "subscription": self.subscription(),
            "location": self.seed.location, "speed": self.speed, "quicker": self.seed.settings.quicker,
            "scaleSets": Self::sets(state), "fronts": fronts.collect::<Vec<_>>() })
    }

    pub fn page(&self, term: Term, state: &Value) -> String {
        let mut page = String::new();
        let url = self.url();
        let mut line = |text: &str| {
            let _ = writeln!(page, "{text}");
        };
        line(&term.paint(Style::Bold, &format!("The Azure emulator listens on {url}")));
        line("");
        line(&format!("subscription  {}", self.subscription()));
        line(&format!("tenant        {}", self.seed.tenant));
        line(&format!(
            "location      {}, {} world seconds a second",
            self.seed.location, self.speed
        ));
        for text in self.clock_runs_away() {
            line(&term.paint(Style::Yellow, &text));
        }
        for (n, id) in Self::sets(state).iter().enumerate() {
            line(&format!("{:<13} {id}", if n == 0 { "scale sets" } else { "" }));
        }
        for (rule, address) in Self::fronts(state) {
            line(&format!("front end     http://{address} {rule}"));
        }
        line(&format!("page          {url}/"));
        line(&format!("orders        {url}/_control/state, clock, faults, deeds, images, tokens"));
        line("");
        for text in self.clients() {
            line(&text);
        }
        line("");
        line("It ends with Ctrl-C, and forgets everything.");
        page
    }

    /// A warning for clients that compare a time of the cloud with their own clock.
    fn clock_runs_away(&self) -> Vec<String> {
        if (self.speed - 1.0).abs() < f64::EPSILON {
            return Vec::new();
        }
        vec![
            format!("warning       --speed {} moves this cloud's clock away from the clock of its clients.", self.speed),
            "              To `serve` a new machine is then ready in the future, and a rollout waits for it.".to_owned(),
            "              --quicker shortens what Azure takes time for, and keeps the clock.".to_owned(),
        ]
    }

    /// How to point Poolkeeper itself to the emulator.
    fn own(&self) -> String {
        let (url, tenant) = (self.url(), &self.seed.tenant);
        let known = self.seed.identities.first().map_or("app", |one| &one.client_id);
        let ca = self.ca_file.as_ref().map(|path| format!(" SSL_CERT_FILE={}", path.display()));
        let ca = ca.unwrap_or_default();
        format!(
            "Poolkeeper, in another terminal:\n  \
             export AZURE_RESOURCE_MANAGER_URL={url} AZURE_AUTHORITY_HOST={url}{ca}\n  \
             export AZURE_TENANT_ID={tenant} AZURE_CLIENT_ID={known} AZURE_CLIENT_SECRET=secret\n  \
             poolkeeper doctor --auth client-secret SCALE_SET\n"
        )
    }

    fn clients(&self) -> Vec<String> {
        let (url, tenant) = (self.url(), &self.seed.tenant);
        let own = self.own();
        let Some(ca) = self.ca_file.as_ref().map(|path| path.display().to_string()) else {
            return vec![
                own,
                match self.is_tls {
                    true => "Clients must trust the certificate that was given.".to_owned(),
                    false => format!(
                        "Official clients send tokens over TLS only: begin with --tls to use them. Without a client:\n  \
                     curl -H 'Authorization: Bearer x' '{url}/subscriptions/{}/providers/Microsoft.Compute/virtualMachineScaleSets?api-version=2024-07-01'",
                        self.subscription()
                    ),
                },
            ];
        };
        vec![
            own,
            "az, in a folder of its own so that it forgets no login of yours:".to_owned(),
            format!(
                "  export AZURE_CONFIG_DIR=$(mktemp -d) REQUESTS_CA_BUNDLE={ca} AZURE_CORE_INSTANCE_DISCOVERY=false"
            ),
            format!("  az cloud register -n Emulator --endpoint-resource-manager {url}"),
            "  az cloud set -n Emulator".to_owned(),
            format!("  az login --service-principal -u app -p secret --tenant {tenant}"),
            "  az vmss list -o table".to_owned(),
            String::new(),
            "Python (REQUESTS_CA_BUNDLE as above):".to_owned(),
            format!("  credential = ClientSecretCredential('{tenant}', 'app', 'secret',"),
            format!("      authority='{url}', disable_instance_discovery=True)"),
            format!(
                "  client = ComputeManagementClient(credential, '{}', base_url='{url}')",
                self.subscription()
            ),
            String::new(),
            format!("Go (SSL_CERT_FILE={ca}):"),
            format!(
                "  cloud.Configuration{{ActiveDirectoryAuthorityHost: \"{url}/\", Services: …{{cloud.ResourceManager:"
            ),
            format!(
                "      {{Endpoint: \"{url}\", Audience: \"https://management.azure.com\"}}}}}}, DisableInstanceDiscovery: true"
            ),
        ]
    }
}
