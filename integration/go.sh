# A Go for the suites that build Go programs. Sourced by their `run`, which says `set -euo pipefail`.

# A Python environment of its own, made once for each list of packages.
#   environment FOLDER NAME LIST
environment() {
  local name=$2 list=$3 place
  place=$1/$name-$(sha256sum <"$list" | cut -c1-12)
  if [ ! -e "$place/made" ]; then
    echo "installing $(grep -o '^[^ ]*==[^ ]*' "$list" | tr '\n' ' ')" >&2
    rm -rf "$place"
    python3 -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check -r "$list" >&2
    touch "$place/made"
  fi
  echo "$place/bin"
}

# The machine's Go, or where it has none that this go.mod is content with, one that PyPI carries, known by its hash.
#   go_tool GO_MOD
go_tool() {
  local wanted have bin
  wanted=$(awk '$1 == "go" { print $2 }' "$1")
  have=$(cd / && go env GOVERSION 2>/dev/null) || have=''
  if [ -n "$have" ] && printf '%s\n' "$wanted" "${have#go}" | sort -V -C; then
    echo go
  else
    bin=$(environment "${POOLKEEPER_CI_CACHE:-$HOME/.cache/poolkeeper-ci}/go" go \
      "$(dirname "${BASH_SOURCE[0]}")/go-requirements.txt")
    echo "$bin/go"
  fi
}
