#!/bin/sh
# A worker in sh. Needs curl and jq. Run: TENURE_URL=http://localhost:8368 ./worker.sh
# TENURE_TOKEN, or the file TENURE_TOKEN_FILE, has the access token of a server with `--auth tokens`.
# It runs one job at a time. On SIGTERM it finishes the running job and exits.
set -u
for tool in curl jq; do
  command -v "$tool" >/dev/null || { echo "worker.sh needs $tool" >&2; exit 127; }
done
url=${TENURE_URL:-http://localhost:8368} lease=${TENURE_LEASE:-30} name="worker.sh on $(uname -n)" worker='' stopping=''
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && trap 'stopping=1' TERM

ask() { # ARGUMENTS OF CURL: sends the token in a file, because others can read the arguments of a process
  if [ -n "${TENURE_TOKEN_FILE:-}" ]; then TENURE_TOKEN=$(cat "$TENURE_TOKEN_FILE"); fi
  printf 'authorization: Bearer %s\n' "${TENURE_TOKEN:-}" >"$dir/header"
  if [ -n "${TENURE_TOKEN:-}" ]; then curl -sS -H "@$dir/header" "$@"; else curl -sS "$@"; fi
}

post() { # PATH WAIT_SECONDS: sends standard input; fails on an HTTP error
  ask --fail-with-body -m $(($2 + 10)) -H 'content-type: application/json' -H "prefer: wait=$2" --data-binary @- "$url$1"
}

progress() { # FRACTION MESSAGE: sent with the next heartbeat
  jq -nc --argjson f "$1" --arg m "$2" '{fraction: $f, message: $m}' >"$dir/new" && mv "$dir/new" "$dir/progress"
}

handle() { # KIND ARGS: your work. Print the result as JSON, or print an error to standard error and fail.
  progress 0.5 'working'
  case $1 in
    add) printf %s "$2" | jq 'add' ;;
    wait) for _ in $(seq "$(printf %s "$2" | jq '.[0]')"); do sleep 1; done; echo true ;;
    *) echo "unknown kind: $1" >&2; return 1 ;;
  esac
}

heartbeat() { # PID: renews the lease, and stops the work if the job is cancelled or lost
  ticks=0
  while sleep 1; do
    ticks=$((ticks + 1)) && [ $((ticks * 3 % (lease / 3 * 3))) -eq 0 ] || continue
    jq -c --slurpfile progress "$dir/progress" '{running: [{job_id: .id, token, progress: $progress[0]}]}' "$dir/job" |
      post "/v1/workers/$worker/heartbeat" 0 >"$dir/beat" || continue
    jq -e '.cancel + .lost == []' "$dir/beat" >/dev/null || { : >"$dir/stop"; kill "$1"; }
  done
}

run() { # Runs the job in $dir/job and reports its result.
  rm -f "$dir/done" "$dir/stop"; echo null >"$dir/progress"
  (handle "$(jq -r .kind "$dir/job")" "$(jq -c .args "$dir/job")" >"$dir/out" 2>"$dir/err" && : >"$dir/done") & work=$!
  heartbeat "$work" & beat=$!
  while kill -0 "$work" 2>/dev/null; do wait "$work"; done
  kill "$beat" && wait "$beat"
  item='{outcome: "fail", error: {detail: $err}}'
  if [ -e "$dir/done" ]; then item='{outcome: "complete", result: $out[0]}'; fi
  if [ -e "$dir/stop" ]; then item='{outcome: "release"}' && : >"$dir/out"; fi
  jq -c --slurpfile out "$dir/out" --arg err "$(cat "$dir/err")" "{items: [{job_id: .id, token} + $item]}" "$dir/job" >"$dir/item"
  tries=0 # Retry until the lease is over.
  until post /v1/settle 0 <"$dir/item" >/dev/null || [ $((tries += 1)) -ge "$lease" ]; do sleep 1; done
}

while [ -z "$stopping" ]; do
  jq -nc --arg w "$worker" --arg name "$name" --argjson lease "$lease" \
    '{limit: 1, $name, lease_seconds: $lease} + if $w == "" then {} else {worker_id: $w} end' |
    post /v1/claim 5 >"$dir/claim" || { # A quiet worker gets 409 and keeps polling until the command is "terminate".
      grep -q '"command":"terminate"' "$dir/claim" && stopping=1; sleep 1; continue; }
  worker=$(jq -r .worker_id "$dir/claim"); jq -ce '.jobs[0] // empty' "$dir/claim" >"$dir/job" && run
done
[ -z "$worker" ] || ask -m 10 -o "$dir/gone" -X DELETE "$url/v1/workers/$worker" # It may never have been listed.
exit 0
