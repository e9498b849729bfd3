//! How long the typed models take to read a page of machines, and plain JSON beside them, so that both can be held
//! against the adapter's own reading of the same bytes. `parse FILE`

use std::hint::black_box;
use std::time::{Duration, Instant};

use azure_mgmt_compute::package_2024_07_01::models::VirtualMachineScaleSetVmListResult;
use peak_alloc::PeakAlloc;
use serde_json::Value;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn typed(bytes: &[u8]) -> usize {
    let page: VirtualMachineScaleSetVmListResult =
        serde_json::from_slice(bytes).expect("a page that the typed models read");
    black_box(&page).value.len()
}

fn plain(bytes: &[u8]) -> usize {
    let page: Value = serde_json::from_slice(bytes).expect("a page");
    black_box(&page)["value"].as_array().map_or(0, Vec::len)
}

/// The median and the best of many.
fn times(mut work: impl FnMut() -> usize) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..31)
        .map(|_| {
            let begun = Instant::now();
            assert!(black_box(work()) > 0);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() / 2], times[0])
}

fn heap(work: impl FnOnce() -> usize) -> f64 {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    assert!(work() > 0);
    MEMORY.peak_usage().saturating_sub(before) as f64 / 1e6
}

fn main() {
    let file = std::env::args().nth(1).expect("the file of the page");
    let bytes = std::fs::read(file).expect("the page");
    for (name, read) in [("typed", typed as fn(&[u8]) -> usize), ("plain", plain)] {
        let (median, best) = times(|| read(&bytes));
        let heap = heap(|| read(&bytes));
        println!("{name} {:.3} {:.3} {heap:.2}", ms(median), ms(best));
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
