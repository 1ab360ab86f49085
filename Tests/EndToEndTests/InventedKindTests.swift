// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Synchronization
import TestSupport
import Testing

/// A server protected by a sundial: it accepts a shadow of the right credential, each count once.
private final class SundialServer: Sendable {
    let shadows = Mutex<[String]>([])

    func answer(_ request: FakeRequest) -> FakeResponse {
        guard let shadow = request.field("X-Shadow") else { return challenge }
        let count = shadows.withLock { shadows in
            shadows.append(shadow)
            return shadows.count
        }
        let url = "http://\(request.field("Host") ?? "")\(request.target)"
        let right = "12ft \(count) 51 \(request.method) \(url) \(request.field("Via") ?? "none") long"
        return shadow == right ? FakeResponse(200, body: Array("noon\n".utf8)) : challenge
    }

    private var challenge: FakeResponse {
        FakeResponse(401, fields: [("WWW-Authenticate", "Sundial dial=\"garden\", gnomon=\"12ft\"")])
    }
}

@Suite("A kind of challenge that somebody adds in a folder of its own")
struct InventedKindTests {
    private static let program = Binary.path.replacing(/countersign$/, with: "InventedProgram")

    private struct Garden {
        let folder: Folder
        let proxy: UInt16
        let server: SundialServer
        let environment: [String: String]

        func run(
            _ command: String, _ arguments: String..., with changes: [String: String] = [:]
        ) async throws -> Command {
            try await Command.run(
                [InventedKindTests.program, command, "--config", folder.path(of: "countersign.yaml")] + arguments,
                environment: environment.merging(changes) { $1 }, in: folder)
        }
    }

    /// Runs a scenario with a server that is protected by a sundial, and a configuration for it.
    private func withGarden(
        latitude: String = "51", shadow: String = "long", _ body: (Garden) async throws -> Void
    ) async throws {
        let server = SundialServer()
        let upstream = LoopbackServer(port: Ports.next()) { server.answer($0) }
        try upstream.start()
        defer { upstream.stop() }
        let folder = try Folder()
        let proxy = Ports.next()
        folder.write(
            """
            listeners: [{ address: "127.0.0.1:\(proxy)", upstream: garden }]
            admin: { address: "unix:\(folder.path)/admin.sock" }
            upstreams: { garden: { url: "http://127.0.0.1:\(upstream.port)/" } }
            credentials: { sources: [env] }
            challenges:
              - { name: sun, upstream: garden, sundial: garden, latitude: \(latitude), credential: sun }
            """, to: "countersign.yaml")
        try await body(
            Garden(
                folder: folder, proxy: proxy, server: server,
                environment: [
                    "COUNTERSIGN_SUN__SHADOW": shadow, "STATE_DIRECTORY": folder.path(of: "state"),
                    "RUNTIME_DIRECTORY": folder.path(of: "run"),
                ]))
    }

    @Test("is read with its keys, each problem at its place, and unknown to a program without it")
    func reading() async throws {
        try await withGarden { garden in
            #expect(try await garden.run("check").exit == 0)
            let other = try await Command.run(
                [Binary.path, "check", "--config", garden.folder.path(of: "countersign.yaml")],
                environment: garden.environment, in: garden.folder)
            #expect(other.exit == 78)
            #expect(other.errors.contains("challenges[0].sundial: unknown key"), "\(other)")
        }
        try await withGarden(latitude: "91") { garden in
            let checked = try await garden.run("check")
            #expect(checked.exit == 78)
            #expect(
                checked.errors.contains(":6:63: challenges[0].latitude: \"91\" is not a whole number from 0 to 90"),
                "\(checked)")
        }
    }

    @Test("is explained, and asked about by doctor")
    func explained() async throws {
        try await withGarden { garden in
            let explained = try await garden.run("explain", "http://127.0.0.1:\(garden.proxy)/hour")
            #expect(explained.output.contains("handlers  sun: sundial, credential sun"), "\(explained)")
            let found = try await garden.run("doctor")
            #expect(found.output.contains("401, WWW-Authenticate: Sundial; sun (sundial) answers it"), "\(found)")
            #expect(found.output.contains("sun: sun has shadow"), "\(found)")
            let poorer = try await garden.run(
                "doctor", with: ["COUNTERSIGN_SUN__SHADOW": "", "COUNTERSIGN_SUN__LIGHT": "x"])
            #expect(poorer.exit == 78)
            #expect(poorer.output.contains("sun: sun lacks shadow"), "\(poorer)")
        }
    }

    @Test("logs in once, and signs each request")
    func signing() async throws {
        try await withGarden { garden in
            let daemon = try await DaemonProcess.start(
                in: garden.folder, program: Self.program, environment: garden.environment)
            for path in ["/hour", "/minute?of=day"] {
                let answer = try await Curl.run(["http://127.0.0.1:\(garden.proxy)\(path)"], in: garden.folder)
                #expect(answer.status == 200 && answer.text == "noon\n", "\(answer)")
            }
            let shadows = garden.server.shadows.withLock(\.self)
            #expect(shadows.map { $0.split(separator: " ")[1] } == ["1", "2"])
            #expect(shadows.allSatisfy { $0.contains(" 1.1 countersign long") }, "\(shadows)")
            await daemon.child.end()
        }
    }

    @Test("has its rejected value latched, as any kind has")
    func latched() async throws {
        try await withGarden(shadow: "short") { garden in
            let daemon = try await DaemonProcess.start(
                in: garden.folder, program: Self.program, environment: garden.environment)
            let codes = [try await fetch(garden), try await fetch(garden), try await fetch(garden)]
            #expect(codes == ["login-rejected", "login-latched", "login-latched"])
            #expect(garden.server.shadows.withLock(\.count) == 1)
            await daemon.child.end()
        }
    }

    private func fetch(_ garden: Garden) async throws -> String? {
        try await Curl.run(["http://127.0.0.1:\(garden.proxy)/hour"], in: garden.folder).code
    }
}
