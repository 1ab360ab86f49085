// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@Suite("The shipped units under a real systemd")
struct SystemdTests {
    @Test("start by socket, log in, reload, restart without a refused request, and stop")
    func lifeOfAService() async throws {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
        let folder = try Folder()
        let arguments = [
            "\(root)/Tests/Scripts/systemd-namespace", "--binary", Binary.path,
            "--unit", "\(root)/systemd/countersign.service", "--unit", "\(root)/systemd/countersign.socket",
            "--config", folder.write(Self.configuration, to: "configuration", mode: 0o644),
            "--file", "\(folder.write("1234", to: "pin")):/etc/countersign/secrets/bank-pin.pin",
            "--file", "\(folder.write(Self.dropIn, to: "dropin")):/etc/systemd/system/countersign.service.d/pin.conf",
            "--timeout", "60", "--", "bash", "-c", Self.script,
        ]
        let run = try await Slots.run { try await Command.run(arguments, in: folder, within: .seconds(90)) }
        if run.exit == 77 {
            try Test.cancel("\(run.errors)")
        }
        #expect(run.exit == 0, "\(run.output)\(run.errors)")
        #expect(run.output.hasSuffix("step: end\n"))
    }

    private static let configuration = """
        listeners:
          - address: systemd:countersign
            upstream: bank
        upstreams:
          bank:
            url: http://127.0.0.1:8081/mfp/api/adapters/bank/
            mobilefirst: { application: com.sample.pincode, platform: android, version: "1.0" }
        credentials: { sources: [systemd] }
        challenges:
          - name: bank-pin
            upstream: bank
            security-check: PinCodeAttempts
            credential: bank-pin
            answer: { pin: "{pin}" }

        """

    private static let dropIn = """
        [Service]
        LoadCredential=bank-pin.pin:/etc/countersign/secrets/bank-pin.pin

        """

    /// Its upstream is the one of the demonstration, within the same namespaces.
    private static let script = #"""
        set -eu
        step() { echo "step: $*"; }
        balance() { curl -fsS --max-time 20 http://127.0.0.1:8080/balance; }
        show() { systemctl show -P "$1" countersign.service; }

        countersign demo --port 8090 --upstream-port 8081 >demo.log 2>&1 &
        trap 'kill %1' EXIT
        until curl -sf http://127.0.0.1:8081/ >/dev/null; do sleep 0.05; done

        step "the first request starts it"
        systemctl start countersign.socket
        if systemctl is-active --quiet countersign.service; then exit 1; fi
        balance | grep -F '1,438.20'
        systemctl is-active countersign.service
        show StatusText | grep '^Serving bank'
        before=$(show MainPID)

        step "a reload keeps the process"
        systemctl reload countersign.service
        [ "$before" = "$(show MainPID)" ]

        step "restarts refuse nobody"
        : >failures
        callers=
        for number in 1 2 3 4; do
            while [ ! -e enough ]; do balance >/dev/null 2>>failures || echo "exit $?" >>failures; done &
            callers="$callers $!"
        done
        for number in 1 2 3; do
            served=$(grep -c 'GET /mfp/api/adapters/bank/balance served' demo.log)
            systemctl restart countersign.service
            # The next one comes when callers are at it again.
            until [ "$(grep -c 'GET /mfp/api/adapters/bank/balance served' demo.log)" -gt $((served + 5)) ]; do
                sleep 0.02
            done
        done
        touch enough
        # shellcheck disable=SC2086
        wait $callers
        cat failures
        [ ! -s failures ]
        [ "$before" != "$(show MainPID)" ]

        step "one registration and one answer were enough for all of them"
        [ "$(grep -c 'client of com.sample.pincode registered' demo.log)" = 1 ]
        [ "$(grep -c 'answer to PinCodeAttempts' demo.log)" = 1 ]

        step "it stops in order"
        systemctl stop countersign.socket countersign.service
        show Result | grep '^success$'
        if balance 2>/dev/null; then exit 1; fi

        step "the journal has entries with fields"
        journalctl -u countersign.service CHALLENGE=bank LOGGER=audit -o cat --no-pager | grep -q '^login won'
        step "end"
        """#
}
