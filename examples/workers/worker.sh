#!/bin/sh
# A worker in sh; it needs curl and jq: TENURE_URL=http://localhost:8368 ./worker.sh
# It does one job at a time. Told to stop (SIGTERM), it finishes the one that it runs and claims no more.
set -u
for need in curl jq; do
  command -v "$need" >/dev/null || { echo "worker.sh needs $need" >&2; exit 127; }
done
url=${TENURE_URL:-http://localhost:8368} lease=${TENURE_LEASE:-30} name="worker.sh on $(uname -n)" worker='' stopping=''
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && trap 'stopping=1' TERM

ask() { # PATH PATIENCE: sends what comes in; fails if it is not answered well
  curl -sS --fail-with-body -m $(($2 + 10)) -H 'content-type: application/json' -H "prefer: wait=$2" --data-binary @- "$url$1"
}

tell() { # FRACTION MESSAGE: how far the work has come
  jq -nc --argjson f "$1" --arg m "$2" '{fraction: $f, message: $m}' >"$dir/new" && mv "$dir/new" "$dir/progress"
}

handle() { # KIND ARGS: the work. What it prints is the result, as JSON; if it fails, what it complains of is the error
  tell 0.5 'at it'
  case $1 in
    add) printf %s "$2" | jq 'add' ;;
    wait) for _ in $(seq "$(printf %s "$2" | jq '.[0]')"); do sleep 1; done; echo true ;;
    *) echo "nobody here can do $1" >&2; return 1 ;;
  esac
}

live() { # PID: says that the job is being done, and ends the work if it shall end
  ticks=0
  while sleep 1; do
    ticks=$((ticks + 1)) && [ $((ticks * 3 % (lease / 3 * 3))) -eq 0 ] || continue
    jq -c --slurpfile progress "$dir/progress" '{running: [{job_id: .id, token, progress: $progress[0]}]}' "$dir/job" |
      ask "/v1/workers/$worker/heartbeat" 0 >"$dir/beat" || continue
    jq -e '.cancel + .lost == []' "$dir/beat" >/dev/null || { : >"$dir/stop"; kill "$1"; }
  done
}

run() { # Does the job in $dir/job, and tells how it went.
  rm -f "$dir/done" "$dir/stop"; echo null >"$dir/progress"
  (handle "$(jq -r .kind "$dir/job")" "$(jq -c .args "$dir/job")" >"$dir/out" 2>"$dir/err" && : >"$dir/done") & work=$!
  live "$work" & live=$!
  while kill -0 "$work" 2>/dev/null; do wait "$work"; done
  kill "$live" && wait "$live"
  end='{outcome: "fail", error: {detail: $err}}'
  if [ -e "$dir/done" ]; then end='{outcome: "complete", result: $out[0]}'; fi
  if [ -e "$dir/stop" ]; then end='{outcome: "release"}' && : >"$dir/out"; fi
  jq -c --slurpfile out "$dir/out" --arg err "$(cat "$dir/err")" "{items: [{job_id: .id, token} + $end]}" "$dir/job" >"$dir/end"
  tries=0 # Once the lease is over, it is in vain.
  until ask /v1/settle 0 <"$dir/end" >/dev/null || [ $((tries += 1)) -ge "$lease" ]; do sleep 1; done
}

while [ -z "$stopping" ]; do
  jq -nc --arg w "$worker" --arg name "$name" --argjson lease "$lease" \
    '{limit: 1, $name, lease_seconds: $lease} + if $w == "" then {} else {worker_id: $w} end' |
    ask /v1/claim 5 >"$dir/claim" || { # Told to take no more jobs, it asks on until it is told to end.
      grep -q '"command":"terminate"' "$dir/claim" && stopping=1; sleep 1; continue; }
  worker=$(jq -r .worker_id "$dir/claim"); jq -ce '.jobs[0] // empty' "$dir/claim" >"$dir/job" && run
done
[ -z "$worker" ] || curl -sS -m 10 -o "$dir/gone" -X DELETE "$url/v1/workers/$worker" # It may never have been listed.
exit 0
