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

  local status=0
  az vmss show -g rg -n none >/dev/null 2>"$scratch/az-error" || status=$?
  is "$status" 3
  grep -q ResourceNotFound "$scratch/az-error" || fail "az: no ResourceNotFound in $(cat "$scratch/az-error")"
  az vmss delete -g rg -n cli >/dev/null
  is "$(az vmss list --query "[?name=='cli'] | length(@)")" 0
  says 'a set that is not there, and the end of one'
  echo 'az: 6 flows, all accepted'
}

says() { echo "az: $1: ok"; }

is() {
  [ "$1" = "$2" ] || fail "az: '$1' where '$2' was expected (line ${BASH_LINENO[0]} of cli.sh)"
}
