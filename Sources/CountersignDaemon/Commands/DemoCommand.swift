// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ArgumentParser

struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Start a protected upstream and the proxy in front of it, to be tried with curl.",
        discussion: """
            Everything is on loopback, and nothing of it outlives the command: the configuration that it runs with is \
            printed, the state lies in a folder of its own that is removed at the end.
            """)

    @Option(name: .long, help: "The port of the proxy; 0 is any free one.")
    var port: UInt16 = 8080

    @Option(name: .long, help: "The port of the upstream; 0 is any free one.")
    var upstreamPort: UInt16 = 8081

    @Flag(name: .long, help: "Try each request once, assert the answers, and end.")
    var check = false

    func run() throws {
        let demonstration = try Demonstration(
            port: check && port == 8080 ? 0 : port, upstreamPort: check && upstreamPort == 8081 ? 0 : upstreamPort)
        if check {
            try demonstration.check()
        } else {
            try demonstration.run()
        }
    }
}
