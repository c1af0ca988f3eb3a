#!/usr/bin/env bash
# Compares tracecheck with the protocol's own validators of AG-UI declarations (see compare.mjs).
# It takes Node and npm; where they are not there, or npm cannot install, it says so and is no failure.
#
#   tests/node/run.sh [COUNT [SEED]]
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
root="$(cd "$here/../.." && pwd)"
work="${CARGO_TARGET_DIR:-$root/target}/node"

not_compared() {
    echo "AG-UI declarations were NOT compared with the protocol's own validators: $1"
    exit 0
}

command -v node >/dev/null || not_compared "there is no node"
command -v npm >/dev/null || not_compared "there is no npm"

mkdir -p "$work"
cp "$here/package.json" "$here/compare.mjs" "$work"
npm install --prefix "$work" --no-audit --no-fund --no-package-lock --loglevel=error ||
    not_compared "npm cannot install its packages"

if [[ -z "${TRACECHECK:-}" ]]; then
    cargo build --locked --manifest-path "$root/Cargo.toml"
    TRACECHECK="${CARGO_TARGET_DIR:-$root/target}/debug/tracecheck"
fi
export TRACECHECK
node "$work/compare.mjs" "$@"
