# The az CLI against the emulator. Sourced by `run`: `az` is the one to judge by, the login is in a folder of its own.

az_flows() {
  export AZURE_CONFIG_DIR=$scratch/azure AZURE_CORE_INSTANCE_DISCOVERY=false AZURE_CORE_COLLECT_TELEMETRY=false
  export AZURE_CORE_NO_COLOR=true AZURE_CORE_OUTPUT=json AZURE_CORE_ONLY_SHOW_ERRORS=true
  local url=$1 tenant=$2
  az cloud register -n Emulator --endpoint-resource-manager "$url" >/dev/null
  az cloud set -n Emulator
  az login --service-principal -u app -p secret --tenant "$tenant" >/dev/null
  says 'login'

  is "$(az vmss list --query "[?name=='cli'] | length(@)")" 1
  is "$(az vmss show -g rg -n cli --query sku.capacity)" 4
  is "$(az vmss list-instances -g rg -n cli --expand instanceView --query 'length(@)')" 4
  is "$(az vmss get-instance-view -g rg -n cli --instance-id 0 --query 'statuses[1].code' -o tsv)" PowerState/running
  says 'list and show'

  az vmss scale -g rg -n cli --new-capacity 6 >/dev/null
  is "$(az vmss list-instances -g rg -n cli --query 'length(@)')" 6
  says 'scale'

  az vmss delete-instances -g rg -n cli --instance-ids 0 2 >/dev/null
  is "$(az vmss list-instances -g rg -n cli --query '[].instanceId' -o tsv | tr '\n' ' ')" '1 3 4 5 '
  is "$(az vmss show -g rg -n cli --query sku.capacity)" 4
  says 'delete instances'

  # A full PUT of everything that was read: nothing but the tag may change.
  az vmss update -g rg -n cli --set tags.owner=az >/dev/null
  is "$(az vmss show -g rg -n cli --query tags.owner -o tsv)" az
  is "$(az vmss list-instances -g rg -n cli --query '[?latestModelApplied] | length(@)')" 4
  az vmss update -g rg -n cli --instance-id 1 --protect-from-scale-in true >/dev/null
  az vmss update-instances -g rg -n cli --instance-ids '*' >/dev/null
  az vmss reimage -g rg -n cli --instance-ids 3 4 >/dev/null
  az vmss restart -g rg -n cli --instance-ids 3 >/dev/null
  az vmss deallocate -g rg -n cli >/dev/null
  is "$(az vmss get-instance-view -g rg -n cli --instance-id 5 --query 'statuses[1].code' -o tsv)" PowerState/deallocated
  says 'update, upgrade, reimage, restart and deallocate'

  az_newer

  local status=0
  az vmss show -g rg -n none >/dev/null 2>"$scratch/az-error" || status=$?
  is "$status" 3
  grep -q ResourceNotFound "$scratch/az-error" || fail "az: no ResourceNotFound in $(cat "$scratch/az-error")"
  az vmss delete -g rg -n cli >/dev/null
  is "$(az vmss list --query "[?name=='cli'] | length(@)")" 0
  says 'a set that is not there, and the end of one'
  echo 'az: 11 flows, all accepted'
}

# What came after the first flows.
az_newer() {
  local lock=(-n keep -g rg --resource-name cli --resource-type Microsoft.Compute/virtualMachineScaleSets) vm
  az lock create "${lock[@]}" --lock-type CanNotDelete >/dev/null
  is "$(az lock list -g rg --query "[?name=='keep'].level" -o tsv)" CanNotDelete
  refused ScopeLocked az vmss delete -g rg -n cli
  az lock delete "${lock[@]}" >/dev/null
  says 'locks'

  is "$(az sig image-version list -g rg --gallery-name shared --gallery-image-definition web --query '[].name' -o tsv)" 1.2.0
  is "$(az vmss extension list -g rg --vmss-name cli --query '[].name' -o tsv)" health
  refused OperationNotAllowed az vmss rolling-upgrade cancel -g rg -n cli
  is "$(az vmss get-os-upgrade-history -g rg -n cli --query 'length(@)')" 0
  says 'versions, extensions and upgrades'

  vm=$(az vmss list-instances -g rg -n vms --query '[0].name' -o tsv)
  az vmss update -g rg -n vms --instance-id "$vm" --protect-from-scale-in true --protect-from-scale-set-actions true >/dev/null
  refused OperationNotAllowed az vmss delete-instances -g rg -n vms --instance-ids "$vm"
  az vmss update -g rg -n vms --instance-id "$vm" --protect-from-scale-in false --protect-from-scale-set-actions false >/dev/null
  says 'protection of a Flexible VM'

  az vmss update -g rg -n cli --set tags.stage=two >/dev/null
  is "$(az vmss show -g rg -n cli --query tags.stage -o tsv)" two
  refused PropertyChangeNotAllowed az vmss update -g rg -n cli \
    --set virtualMachineProfile.storageProfile.imageReference.offer=other
  says 'tags and kinds of images'

  az group create -n gone -l eastus2 >/dev/null
  az group delete -n gone --yes >/dev/null
  is "$(az group exists -n gone)" false
  says 'the end of a group'
}

# The rest of the line is refused with this code.
refused() {
  local code=$1
  shift
  if "$@" >/dev/null 2>"$scratch/az-error"; then fail "az: not refused: $*"; fi
  grep -q "$code" "$scratch/az-error" || fail "az: no $code in $(cat "$scratch/az-error")"
}

says() { echo "az: $1: ok"; }

is() {
  [ "$1" = "$2" ] || fail "az: '$1' where '$2' was expected (line ${BASH_LINENO[0]} of cli.sh)"
}
