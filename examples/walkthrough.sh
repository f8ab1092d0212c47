#!/usr/bin/env bash
# Walks through the API with curl, against a running service:
#
#   cargo run --release &
#   examples/walkthrough.sh [http://127.0.0.1:8080]
#
# It shows each call and its answer. The boards it defines begin with `walkthrough-`; it removes them at the end.
set -euo pipefail

url=${1:-${ROLLTOP_URL:-http://127.0.0.1:8080}}
api=$url/v1
boards=(walkthrough-likes walkthrough-readers walkthrough-logins walkthrough-tabs)

title() { printf '\n# %s\n' "$*"; }

# Shows a call and its answer: call METHOD PATH [BODY [CONTENT-TYPE]]
call() {
  local method=$1 path=$2 body=${3:-} type=${4:-application/json}
  local arguments=(--silent --show-error --request "$method" "$api$path")
  [ -z "$body" ] || arguments+=(--header "content-type: $type" --data-binary "$body")
  printf '> %s /v1%s\n' "$method" "$path"
  [ -z "$body" ] || printf '%s\n' "$body"
  curl "${arguments[@]}"
  echo
}

remove_boards() {
  for board in "${boards[@]}"; do
    curl --silent --output /dev/null --request DELETE "$api/boards/$board" || true
  done
}

if ! curl --silent --fail --output /dev/null "$url/readyz"; then
  echo "$url is not ready; start the service first: cargo run --release" >&2
  exit 1
fi
remove_boards
trap remove_boards EXIT

title "Define boards: likes of each post in 24 hours, different readers of each post, logins for rules (no ranking)"
call PUT /boards/walkthrough-likes '{"metric": "COUNT(24h, walkthrough_like, post_id)", "slot": "1h"}'
call PUT /boards/walkthrough-readers '{"metric": "COUNT_DISTINCT(7d, walkthrough_like, post_id, user_id)", "slot": "1h"}'
call PUT /boards/walkthrough-logins '{"metric": "COUNT(30m, walkthrough_login, device_id)", "slot": "1m", "ranked": false}'

title "Define a board with several windows: the day, and further the hour, the week and all time"
call PUT /boards/walkthrough-tabs '{"metric": "COUNT(24h, walkthrough_like, post_id)", "slot": "1h",
  "windows": ["1h/1m", "7d/6h", "all"]}'

title "Increments go to one board: one, several, or a stream of lines; an id counts once"
call POST /boards/walkthrough-likes/increments '{"subject": "post-1", "amount": 2, "id": "batch-7"}'
call POST /boards/walkthrough-likes/increments '{"subject": "post-1", "amount": 2, "id": "batch-7"}'
call POST '/boards/walkthrough-likes/increments?return=score' \
  '{"increments": [{"subject": "post-2"}, {"subject": "post-3", "amount": 5}]}'
call POST /boards/walkthrough-likes/increments \
  $'{"subject": "post-2"}\n{"subject": "post-4"}\n{"subject": "post-4", "at": "2020-01-01T00:00:00Z"}' application/x-ndjson

title "An event counts on every board whose metric names its type"
call POST /events '{"events": [
  {"type": "walkthrough_like", "fields": {"post_id": "post-1", "user_id": "ann"}},
  {"type": "walkthrough_like", "fields": {"post_id": "post-1", "user_id": "bob"}},
  {"type": "walkthrough_login", "fields": {"device_id": "d-1"}},
  {"type": "walkthrough_login", "fields": {"device_id": "d-1"}}]}'

title "The ranking: a page, the lines around one subject, the order among given subjects"
call GET '/boards/walkthrough-likes/rankings?limit=3'
call GET '/boards/walkthrough-likes/subjects/post-2/neighbors?radius=1'
call POST /boards/walkthrough-likes/rankings/lookup '{"subjects": ["post-4", "post-1"]}'

title "A leaderboard with tabs: the rankings of the windows of one board"
for window in 1h 24h 7d all; do
  call GET "/boards/walkthrough-tabs/rankings?limit=3&window=$window"
done

title "One subject: its score and slots, a shorter window, the values it was seen with"
call GET /boards/walkthrough-likes/subjects/post-1
call GET '/boards/walkthrough-likes/subjects/post-1/window?last=6h'
call GET /boards/walkthrough-readers/subjects/post-1/values

title "Rules: does this hold for this device? And many questions in one call"
call POST /evaluate '{"rule": "COUNT(10m, walkthrough_login, device_id) >= 2", "fields": {"device_id": "d-1"}}'
call POST /query '{"queries": [
  {"metric": "COUNT(30m, walkthrough_login, device_id)", "fields": {"device_id": "d-1"}},
  {"board": "walkthrough-readers", "subject": "post-1"}]}'

title "Operations: what a rollover would do now, and whether every score is the sum of its slots"
call POST '/boards/walkthrough-likes/rollover?dry_run=true'
call POST /boards/walkthrough-likes/audit

title "Errors have a stable code and say what is allowed"
call GET '/boards/walkthrough-likes/subjects/post-1/window?last=48h'
call GET /boards/walkthrough-logins/rankings
