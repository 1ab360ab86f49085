#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright the Countersign authors
#
# The beginning of every scenario here: functions for its steps, and the demonstration's upstream at port 8081.
set -eEu
trap 'echo "failed: $BASH_COMMAND"' ERR
step() {
    echo "step: $*"
    echo "$(date +%T.%3N) step: $*" >>/run/results/times
}
show() { systemctl show -P "$1" "${2:-countersign.service}"; }
balance() { curl -fsS --max-time 20 http://127.0.0.1:8080/balance; }
fails() { if "$@"; then echo "did not fail: $*"; return 1; fi; }
eventually() { for _ in $(seq 600); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.05; done; echo "never: $*"; return 1; }
journal() { journalctl --no-pager -u "$@"; }

mkdir /run/demo
STATE_DIRECTORY=/run/demo RUNTIME_DIRECTORY=/run/demo \
    /opt/demo/countersign demo --port 8090 --upstream-port 8081 >demo.log 2>&1 &
trap 'kill %1' EXIT
eventually curl -sf http://127.0.0.1:8081/
