// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import TestSupport
internal import Testing

@Suite("The admin socket that nobody configured")
struct AdminSocketTests {
    @Test("is the first daemon's; another one serves without it, says so, and leaves it alone")
    func shared() async throws {
        try await Slots.run(run)
    }

    private func run() async throws {
        let (one, two) = (try Folder(), try Folder())
        let ports = [Ports.next(), Ports.next()]
        for (folder, port) in zip([one, two], ports) {
            folder.write(
                """
                listeners: [{ address: "127.0.0.1:\(port)", upstream: none }]
                upstreams: { none: { url: "http://127.0.0.1:1/" } }
                log: { format: json }
                """, to: "countersign.yaml")
        }
        let first = try await DaemonProcess.start(in: one)
        let second = try await DaemonProcess.start(in: two, environment: ["RUNTIME_DIRECTORY": one.path(of: "run")])
        #expect(second.log.contains("listener left out"))
        #expect(try await Curl.run(["http://127.0.0.1:\(ports[1])/"], in: two).code == "upstream-unreachable")
        // A command that means the second daemon must not change the first.
        for command in [["status"], ["sessions", "drop", "--all"], ["unlatch", "none"]] {
            let other = try await Command.run(
                [Binary.path] + command + ["--config", two.path(of: "countersign.yaml")],
                environment: ["RUNTIME_DIRECTORY": one.path(of: "run")], in: two)
            #expect(other.exit == 69 && other.errors.contains("countersign.yaml, not with "), "\(other)")
        }
        #expect(await second.child.end() == 0)

        let file = one.path(of: "countersign.yaml")
        #expect(try await Command.countersign("status", "--config", file, in: one).exit == 0)
        #expect(await first.child.end() == 0)
    }
}
