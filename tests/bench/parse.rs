//! How long a page of machines takes to read, and how much memory beyond its bytes, against reading it as plain JSON.
//!
//! Ratios are taken within one run, since machines differ and are noisy: `cargo bench --bench parse`. With
//! `POOLKEEPER_PAGE=file` the page is written there, for readers made by others: `integration/azure-sdk/parse` does so.

#![allow(clippy::unwrap_used, reason = "a bench that meets what cannot be stops")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use peak_alloc::PeakAlloc;
use poolkeeper::adapters::azure::wire::{ArmVm, ListPage};
use serde_json::{Value, json};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The largest set there is.
const MACHINES: usize = 1_000;

/// A row as ARM sends it with its instance view: about 5.5 kB.
fn row(n: usize) -> Value {
    let id = "/subscriptions/00000000-0000-4000-8000-000000000000/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/web/virtualMachines";
    let at = "2026-03-01T11:02:03.4567891+00:00";
    let status = |code: &str, say: &str| json!({"code": code, "level": "Info", "displayStatus": say, "message": "The command was carried out and answered as it should.", "time": at});
    let extension = |name: &str| json!({"name": name, "type": format!("Microsoft.Azure.{name}"), "typeHandlerVersion": "1.2.3", "statuses": [status("ProvisioningState/succeeded", "Provisioning succeeded")]});
    let nic = json!({"name": "nic", "properties": {"primary": true, "enableAcceleratedNetworking": true, "disableTcpStateTracking": false, "networkSecurityGroup": {"id": format!("{id}/nsg")}, "dnsSettings": {"dnsServers": []}, "enableIPForwarding": false, "ipConfigurations": [{"name": "ip", "properties": {"primary": true, "subnet": {"id": format!("{id}/vnet/subnets/default")}, "privateIPAddressVersion": "IPv4", "loadBalancerBackendAddressPools": [{"id": format!("{id}/pool")}]}}]}});
    json!({
        "name": format!("web_{n}"), "id": format!("{id}/{n}"),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "location": "westeurope",
        "tags": {"team": "web", "stage": "production"}, "instanceId": n.to_string(),
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard"}, "zones": [(n % 3 + 1).to_string()],
        "properties": {
            "latestModelApplied": true, "modelDefinitionApplied": "VirtualMachineScaleSet",
            "networkProfileConfiguration": {"networkInterfaceConfigurations": [nic]},
            "hardwareProfile": {"vmSize": "Standard_D2s_v3"}, "resilientVMDeletionStatus": "Disabled",
            "storageProfile": {
                "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "24.04.202602010", "exactVersion": "24.04.202602010"},
                "osDisk": {"osType": "Linux", "name": format!("web_web_{n}_OS__1_6d72b805e50e4de6830303c5055077fc"), "createOption": "FromImage", "caching": "ReadWrite", "managedDisk": {"storageAccountType": "Premium_LRS", "id": format!("{id}/disks/{n}")}, "diskSizeGB": 30},
                "dataDisks": []},
            "osProfile": {"computerName": format!("web{n:06}"), "adminUsername": "azureuser", "linuxConfiguration": {"disablePasswordAuthentication": true, "ssh": {"publicKeys": [{"path": "/etc/ssh/keys", "keyData": "A".repeat(380)}]}, "provisionVMAgent": true}, "secrets": [], "allowExtensionOperations": true, "requireGuestProvisionSignal": true},
            "networkProfile": {"networkInterfaces": [{"id": format!("{id}/{n}/networkInterfaces/nic")}]},
            "provisioningState": "Succeeded", "vmId": format!("2b0a9d1e-0000-4000-8000-{n:012}"), "timeCreated": at,
            "instanceView": {
                "placementGroupId": "ec0c2b5d-0000-4000-8000-000000000000", "platformUpdateDomain": 1, "platformFaultDomain": 1,
                "computerName": format!("web{n:06}"), "osName": "ubuntu", "osVersion": "24.04", "hyperVGeneration": "V2",
                "vmAgent": {"vmAgentVersion": "2.11.1.12", "statuses": [status("ProvisioningState/succeeded", "Ready")], "extensionHandlers": []},
                "disks": [{"name": format!("web_web_{n}_OS__1_6d72b805e50e4de6830303c5055077fc"), "statuses": [status("ProvisioningState/succeeded", "Provisioning succeeded")]}],
                "extensions": [extension("ApplicationHealthLinux"), extension("AzureMonitorLinuxAgent"), extension("CustomScript")],
                "vmHealth": {"status": status("HealthState/healthy", "The VM is reporting itself as healthy or is known to be healthy")},
                "statuses": [status("ProvisioningState/succeeded", "Provisioning succeeded"), {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"}]}
        },
        "etag": "\"1\""
    })
}

fn page() -> Vec<u8> {
    let rows: Vec<Value> = (0..MACHINES).map(row).collect();
    serde_json::to_vec(&json!({"value": rows})).unwrap()
}

fn own(bytes: &[u8]) -> usize {
    let page: ListPage<'_, ArmVm<'_>> = ListPage::read(bytes).unwrap();
    black_box(&page).value.len()
}

fn plain(bytes: &[u8]) -> usize {
    let page: Value = serde_json::from_slice(bytes).unwrap();
    black_box(&page)["value"].as_array().map_or(0, Vec::len)
}

/// Half of the times are under the first, and none is under the second.
fn times(mut work: impl FnMut() -> usize) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..31)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(black_box(work()), MACHINES);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[0])
}

/// The most memory that was held at once, beyond what was held before.
fn peak(work: impl FnOnce() -> usize) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    assert_eq!(work(), MACHINES);
    MEMORY.peak_usage().saturating_sub(before)
}

fn parse(criterion: &mut Criterion) {
    let bytes = page();
    if let Some(file) = std::env::var_os("POOLKEEPER_PAGE") {
        std::fs::write(file, &bytes).unwrap();
    }
    for (name, read) in [("own", own as fn(&[u8]) -> usize), ("value", plain)] {
        let (median, best) = times(|| read(&bytes));
        let heap = peak(|| read(&bytes)) as f64 / 1e6;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        // In the form in which other readers of the page tell theirs: median and best in ms, heap beyond the page in MB.
        println!("{name} {:.3} {:.3} {heap:.2}", ms(median), ms(best));
    }
    println!("{MACHINES} machines of {} B", bytes.len() / MACHINES);
    let mut group = criterion.benchmark_group("page of 1,000 machines");
    group.sample_size(20);
    group.bench_function("own", |bench| bench.iter(|| own(&bytes)));
    group.bench_function("plain JSON", |bench| bench.iter(|| plain(&bytes)));
    group.finish();
}

criterion_group!(benches, parse);
criterion_main!(benches);
