"""How long the Python SDK takes to read a page of machines: its own deserializer on its own models, then the fields that
a look needs. `parse.py FILE` prints the median and the best in ms, and the peak of the heap in MB."""

import json
import sys
import time
import tracemalloc

from azure.mgmt.compute import models

try:
    from azure.mgmt.compute._utils.model_base import _deserialize
except ImportError:  # as it was called before
    from azure.mgmt.compute._model_base import _deserialize


def read(raw: bytes) -> int:
    rows = _deserialize(list[models.VirtualMachineScaleSetVM], json.loads(raw)["value"])
    seen = 0
    for vm in rows:
        view = vm.instance_view
        codes = [status.code for status in view.statuses]
        health = view.vm_health.status.code
        image = vm.storage_profile.image_reference
        fields = (vm.instance_id, vm.vm_id, vm.time_created, vm.provisioning_state, vm.latest_model_applied, vm.zones)
        seen += bool(codes and health and image.exact_version and fields)
    return seen


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        raw = file.read()
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        assert read(raw) > 0
        times.append((time.perf_counter() - begun) * 1e3)
    times.sort()
    tracemalloc.start()
    read(raw)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    print(f"python {times[len(times) // 2]:.3f} {times[0]:.3f} {peak:.2f}")


main()
