// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
internal import TestSupport
import Testing

/// A real Tomcat with applications behind FORM, BASIC and DIGEST (`Tests/Scripts/tomcat`), and the real daemon in front of it.
final class Tomcat: Sendable {
    /// Where all of it lives.
    let folder: Folder
    /// The port of the daemon.
    let port: UInt16
    /// The port of Tomcat.
    let upstreamPort: UInt16
    private let server = Mutex<Child?>(nil)
    private let daemon = Mutex<DaemonProcess?>(nil)

    fileprivate init() throws {
        folder = try Folder()
        folder.makeFolder("tomcat")
        (port, upstreamPort) = (Ports.next(), Ports.next())
    }

    /// All requests that came, as `METHOD PATH STATUS`.
    var requests: [Substring] {
        folder.text(of: "tomcat/logs/requests").split(separator: "\n").filter { !$0.contains(Self.warmUp) }
    }
    /// The requests that passed the login, as `METHOD TARGET LENGTH SHA-256`.
    var arrived: [Substring] { folder.text(of: "tomcat/logs/arrived").split(separator: "\n") }
    /// How many forms were submitted.
    var submissions: Int { requests.count { $0.hasPrefix("POST /") && $0.contains("/j_security_check") } }
    /// Whether so many forms were submitted, and not one more. Tomcat logs a request a little after it has answered.
    func wasAsked(times count: Int) async -> Bool {
        await eventually { submissions >= count } && submissions == count
    }
    /// What the daemon has logged.
    var log: String { daemon.withLock { $0?.log ?? "" } }

    /// The most memory that the daemon ever held, in kilobytes.
    var peakKilobytes: Int { daemon.withLock { $0?.peakKilobytes ?? 0 } }

    /// Has the daemon forget all sessions.
    func dropSessions() async throws {
        let dropped = try await Command.countersign(
            "sessions", "drop", "--all", "--config", folder.path(of: "countersign.yaml"), in: folder)
        #expect(dropped.exit == 0, "\(dropped.errors)")
    }

    /// Requests a path of the daemon.
    func curl(_ path: String, _ options: String...) async throws -> Curl {
        try await Curl.run(options + ["http://127.0.0.1:\(port)\(path)"], in: folder)
    }

    /// Requests a path of Tomcat itself.
    func direct(_ path: String, _ options: String...) async throws -> Curl {
        try await Curl.run(options + ["http://127.0.0.1:\(upstreamPort)\(path)"], in: folder)
    }

    private static let warmUp = "/warm-up"

    /// True if Tomcat still lets ann in: fewer than two wrong passwords have come.
    func isUnlocked() async throws -> Bool {
        try await direct("/basic/", "-u", "ann:s3cret&more").status == 200
    }

    /// Ends Tomcat and starts it again: it has forgotten all sessions.
    func restart() async throws {
        _ = await server.withLock(\.self)?.end()
        try await start()
    }

    /// Ends the daemon, and starts another one with other challenges, which knows nothing of what was rejected.
    func replaceDaemon(_ challenges: String, password: String) async throws {
        let code = await daemon.withLock(\.self)?.child.end()
        #expect(code == 0)
        remove(folder.path(of: "state"))
        try await startDaemon(challenges, password: password)
    }

    fileprivate func start() async throws {
        let script = String(#filePath.dropLast("EndToEndTests/Applications/Tomcat.swift".count)) + "Scripts/tomcat"
        let child = try await Child.start(
            Child.Start(
                arguments: [script, folder.path(of: "tomcat"), "\(upstreamPort)"],
                environment: baseEnvironment(folder), folder: folder.path, output: folder.path(of: "tomcat.out"),
                errors: folder.path(of: "tomcat.err")))
        server.withLock { $0 = child }
        let upstreamPort = upstreamPort
        guard await eventually({ (try? RawConnection(port: upstreamPort)) != nil }) else {
            throw ChildError(description: "Tomcat does not start: \(folder.text(of: "tomcat.err").suffix(2000))")
        }
        // The first request of its kind loads classes, on a busy machine for longer than a login waits for an answer.
        for path in ["/basic", "/digest"] { _ = try await direct(path + Self.warmUp) }
    }

    fileprivate func startDaemon(_ challenges: String, password: String) async throws {
        folder.write(
            """
            listeners:
              - address: 127.0.0.1:\(port)
                upstream: tomcat
            upstreams:
              tomcat: { url: "http://127.0.0.1:\(upstreamPort)/", timeouts: { login: 200s, response: 200s } }
            admin: { address: "unix:\(folder.path(of: "admin.sock"))" }
            credentials: { sources: [env] }
            challenges:
            \(challenges)
            workers: 2
            log: { level: debug, format: json }

            """, to: "countersign.yaml")
        let started = try await DaemonProcess.start(
            in: folder,
            environment: ["COUNTERSIGN_ANN__USERNAME": "ann", "COUNTERSIGN_ANN__PASSWORD": password])
        daemon.withLock { $0 = started }
    }

    fileprivate func end() async -> Int32? {
        let code = await daemon.withLock(\.self)?.child.end()
        _ = await server.withLock(\.self)?.end()
        return code
    }
}

/// Runs a scenario with a Tomcat and the daemon in front of it, with those challenges (a list's items, each line indented by
/// two). The credential is `ann`.
func withTomcat(
    _ challenges: String =
        "  - { name: portal, upstream: tomcat, gateway: j-security-check, credential: ann, login: { timeout: 100s } }",
    password: String = "s3cret&more", sourceLocation: SourceLocation = #_sourceLocation,
    _ scenario: (Tomcat) async throws -> Void
) async throws {
    try await Slots.run {
        let tomcat = try Tomcat()
        var result: Result<Void, any Error> = .success(())
        do {
            try await tomcat.start()
            try await tomcat.startDaemon(challenges, password: password)
            try await scenario(tomcat)
        } catch {
            result = .failure(error)
        }
        let log = tomcat.log
        let code = await tomcat.end()
        #expect(code == nil || code == 0, "the daemon ended with \(code ?? 0):\n\(log)", sourceLocation: sourceLocation)
        #expect(!log.contains(password), "the password was logged", sourceLocation: sourceLocation)
        tomcat.folder.removeAll()
        try result.get()
    }
}
