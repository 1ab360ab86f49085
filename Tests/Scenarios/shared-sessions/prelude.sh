#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# The beginning of every scenario here: functions for its nodes, and the demonstration's upstream at 10.9.0.1:8082.
# Redis stores no data unless `save` says so: its data are lost with it, as in a group of nodes that uses it for nothing else.
set -eEu
trap 'echo "failed: $BASH_COMMAND"' ERR
step() { echo "step: $*"; }
eventually() { for _ in $(seq 400); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.05; done; echo "never: $*"; return 1; }
fails() { if "$@"; then echo "did not fail: $*"; return 1; fi; }
# shellcheck disable=SC2034,SC2153
nodes=$(seq "$NODES")
# node NUMBER COMMAND...: in that node's network.
node() { local process=NODE_$1; shift; nsenter --net --target "${!process}" "$@"; }
# ask NUMBER COMMAND...: the daemon of a node.
ask() { local n=$1; shift; env -i STATE_DIRECTORY="$PWD/node$n/state" RUNTIME_DIRECTORY="$PWD/node$n/run" \
    "$COUNTERSIGN" "$@" --config "$PWD/node$n/countersign.yaml"; }
# The daemons of the nodes, by their numbers.
declare -a daemon
# serve NUMBER: starts its daemon.
serve() {
    local n=$1 process=NODE_$1 environment
    mkdir -p "node$n/state" "node$n/run"
    chmod 700 "node$n/state" "node$n/run"
    mapfile -t environment <"node$n/environment"
    env -i "${environment[@]}" STATE_DIRECTORY="$PWD/node$n/state" RUNTIME_DIRECTORY="$PWD/node$n/run" \
        nsenter --net --target "${!process}" "$COUNTERSIGN" serve --config "$PWD/node$n/countersign.yaml" 2>>"node$n/log" &
    # shellcheck disable=SC2034
    daemon[n]=$!
    eventually ask "$n" status --live
}
metric() { node "$1" curl -sf --unix-socket "$PWD/node$1/run/admin.sock" http://localhost/metrics | awk -v name="$2" 'index($0, name) == 1 { print $2; exit }'; }
knows_store() { [ "$(metric "$1" countersign_session_store_up)" = "$2" ]; }
# storm NUMBER COUNT: requests at once; prints how many had which status.
storm() { node "$1" curl -Z --parallel-immediate --parallel-max "$2" -s -o /dev/null -w '%{http_code}\n' --max-time 30 "http://127.0.0.1:8080/balance?[1-$2]" | sort | uniq -c | awk '{ print $1 "x" $2 }'; }
balance() { node "$1" curl -s -o "answer$1" -w '%{http_code}' --max-time 30 http://127.0.0.1:8080/balance; }
# The number of PINs that have reached the upstream.
logins() { grep -c 'answer to PinCodeAttempts' demo.log || true; }
store() {
    redis-server --bind 10.9.0.1 --port 6379 --save "" --daemonize no --protected-mode no --dir "$PWD" >>redis.log 2>&1 &
    # shellcheck disable=SC2034
    redis=$!
    eventually redis-cli -h 10.9.0.1 ping
}
mkdir -p demo.state demo.run
env -i STATE_DIRECTORY="$PWD/demo.state" RUNTIME_DIRECTORY="$PWD/demo.run" "$COUNTERSIGN" demo --port 8090 --upstream-port 8081 >demo.log 2>&1 &
# Requests that are to get a challenge wait until there is a file `released`.
touch released
"$SCRIPTS/forward-port" --hold /preauthorize --until released 10.9.0.1:8082 127.0.0.1:8081 &
eventually curl -sf http://10.9.0.1:8082/
