#!/bin/sh
# Packs the package, installs it into a temporary folder, and runs the tests there, as a user of the package would.
# ROLLTOP_TEST_PROGRAM is the program of the service. Arguments are options of `node --test`.
set -eu
cd "$(dirname "$0")"
: "${ROLLTOP_TEST_PROGRAM:?must name the program of the service}"
ROLLTOP_TEST_PROGRAM=$(realpath "$ROLLTOP_TEST_PROGRAM")
export ROLLTOP_TEST_PROGRAM

[ -d node_modules ] || npm ci
npm run --silent build
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
npm pack --silent --pack-destination "$folder" >/dev/null
cp -r test types package.json README.md "$folder/"
modules=$PWD/node_modules
export ROLLTOP_TEST_CASES="$PWD/../cases.json"

cd "$folder"
mv package.json packed.json
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-audit --no-fund ./rolltop-*.tgz
"$modules/.bin/tsc" --project types
ROLLTOP_TEST_ESBUILD=$modules/esbuild/lib/main.js node --test --test-reporter=spec "$@" ${ROLLTOP_TEST_FILES:-test/*.test.mjs}
