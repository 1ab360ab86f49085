// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading
import Testing

@Suite("Values of the settings")
struct ValueTests {
    @Test(
        "a listen address prints as the configuration writes it",
        arguments: [
            (ListenAddress.tcp(host: "127.0.0.1", port: 8080), "127.0.0.1:8080"),
            (.tcp(host: "::1", port: 80), "[::1]:80"), (.systemd(name: "http"), "systemd:http"),
            (.unix(path: "/run/a.sock", mode: nil), "unix:/run/a.sock"),
            (.unix(path: "/run/a.sock", mode: 0o660), "unix:/run/a.sock?mode=0660"),
        ])
    func address(address: ListenAddress, text: String) {
        #expect(address.description == text)
    }

    @Test("a problem is printed as FILE:LINE:COL on one line")
    func problem() {
        var problem = Problem(
            file: "a.yaml", mark: Mark(line: 3, column: 7), keyPath: "listeners[0].upstream",
            message: "no such upstream",
            severity: .error)
        #expect(problem.description == "a.yaml:3:7: listeners[0].upstream: no such upstream")
        problem.severity = .warning
        #expect(problem.description == "a.yaml:3:7: listeners[0].upstream: warning: no such upstream")
        problem.mark = nil
        problem.keyPath = ""
        #expect(problem.description == "a.yaml: warning: no such upstream")
    }
}
