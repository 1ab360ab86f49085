// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// A script with three hosts, each in a network namespace of its own, that share their sessions through a real Redis, in front of the
/// demonstration's upstream.
struct FleetScenario {
    /// The PIN that each host has; the right one is 1234.
    var pins = ["1234", "1234", "1234"]
    /// Further lines of the section `sessions`.
    var sessions: [String] = []
    /// How long the script may run, in seconds.
    var limit = 90

    /// Runs the script, which must end with `step end`. Where this machine allows no such namespaces the test is cancelled.
    func run(_ script: String) async throws {
        let folder = try Folder()
        for (index, pin) in pins.enumerated() {
            let host = "host\(index + 1)"
            folder.makeFolder(host)
            folder.write(configuration, to: "\(host)/countersign.yaml")
            folder.write(
                "COUNTERSIGN_BANK_PIN__PIN=\(pin)\nCOUNTERSIGN_FLEET__KEY=\(String(repeating: "fleet key ", count: 5))\n",
                to: "\(host)/environment")
        }
        let run = try await Slots.run {
            try await Repository.script(
                "fleet-namespaces", ["\(pins.count)", "bash", "-c", Self.prelude + script],
                environment: [
                    "COUNTERSIGN": Binary.path, "SCRIPTS": Repository.path(of: "Tests/Scripts"),
                    "HOSTS": "\(pins.count)",
                ], in: folder, within: .seconds(limit))
        }
        if run.exit == 77 { try Test.cancel("\(run.errors)") }
        let logs =
            run.exit == 0
            ? ""
            : pins.indices.map { "host \($0 + 1): \(folder.text(of: "host\($0 + 1)/log"))" }
                .joined(separator: "\n")
        #expect(run.exit == 0, "\(run.output)\(run.errors)\(logs)")
        #expect(run.output.hasSuffix("step: end\n"))
    }

    private var configuration: String {
        """
        listeners:
          - address: 127.0.0.1:8080
            upstream: bank
        upstreams:
          bank:
            url: http://10.9.0.1:8082/mfp/api/adapters/bank/
            plaintext: allow
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
        credentials: { sources: [env] }
        sessions:
          store: redis://10.9.0.1:6379
          key: fleet
          lease: 5s
          spread: 1s
        \(sessions.map { "  \($0)\n" }.joined())challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }
        log: { level: debug, format: json }

        """
    }

    // Redis has no data of its own unless `save` says so: what it knows is gone with it, as in a fleet that uses it for this alone.
    private static let prelude = #"""
        set -eEu
        trap 'echo "failed: $BASH_COMMAND"' ERR
        step() { echo "step: $*"; }
        eventually() { local n; for n in $(seq 400); do if "$@" >/dev/null 2>&1; then return; fi; sleep 0.05; done; echo "never: $*"; return 1; }
        hosts=$(seq "$HOSTS")
        # host NUMBER COMMAND...: in that host's network.
        host() { local process=HOST_$1; shift; nsenter --net --target "${!process}" "$@"; }
        # ask NUMBER COMMAND...: the daemon of a host.
        ask() { local n=$1; shift; env -i STATE_DIRECTORY="$PWD/host$n/state" RUNTIME_DIRECTORY="$PWD/host$n/run" \
            "$COUNTERSIGN" "$@" --config "$PWD/host$n/countersign.yaml"; }
        # serve NUMBER: starts its daemon.
        serve() {
            local n=$1 process=HOST_$1
            mkdir -p host$n/state host$n/run
            chmod 700 host$n/state host$n/run
            env -i $(cat host$n/environment | sed 's/ /_/g') STATE_DIRECTORY="$PWD/host$n/state" RUNTIME_DIRECTORY="$PWD/host$n/run" \
                nsenter --net --target "${!process}" "$COUNTERSIGN" serve --config "$PWD/host$n/countersign.yaml" 2>>host$n/log &
            daemon[$n]=$!
            eventually ask $n status --live
        }
        declare -a daemon
        metric() { host "$1" curl -sf --unix-socket "$PWD/host$1/run/admin.sock" http://localhost/metrics | awk -v name="$2" 'index($0, name) == 1 { print $2; exit }'; }
        knows_engine() { [ "$(metric "$1" countersign_session_engine_up)" = "$2" ]; }
        # storm NUMBER COUNT: requests at once; prints how many had which status.
        storm() { host "$1" curl -Z --parallel-immediate --parallel-max "$2" -s -o /dev/null -w '%{http_code}\n' --max-time 30 "http://127.0.0.1:8080/balance?[1-$2]" | sort | uniq -c | awk '{ print $1 "x" $2 }'; }
        balance() { host "$1" curl -s -o answer$1 -w '%{http_code}' --max-time 30 http://127.0.0.1:8080/balance; }
        # How many PINs have reached the upstream.
        logins() { grep -c 'answer to PinCodeAttempts' demo.log || true; }
        engine() {
            redis-server --bind 10.9.0.1 --port 6379 --save "" --daemonize no --protected-mode no --dir "$PWD" >>redis.log 2>&1 &
            redis=$!
            eventually redis-cli -h 10.9.0.1 ping
        }
        mkdir -p demo.state demo.run
        env -i STATE_DIRECTORY="$PWD/demo.state" RUNTIME_DIRECTORY="$PWD/demo.run" "$COUNTERSIGN" demo --port 8090 --upstream-port 8081 >demo.log 2>&1 &
        demo=$!
        # What asks for a challenge is held up while there is no file `released`.
        touch released
        "$SCRIPTS/forward-port" --hold /preauthorize --until released 10.9.0.1:8082 127.0.0.1:8081 &
        eventually curl -sf http://10.9.0.1:8082/

        """#
}
