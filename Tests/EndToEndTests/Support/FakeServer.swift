// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
internal import TestSupport
import Testing

/// A fake of a login server, by a script of `Tests/Scripts/fakes`, that can be ended and started again.
final class FakeServer: Sendable {
    /// The port that it listens on.
    let port = Ports.next()
    private let kind: FakeKind
    private let folder: Folder
    private let runs = Mutex<[ScriptServer]>([])

    fileprivate init(_ kind: FakeKind, in folder: Folder) {
        self.kind = kind
        self.folder = folder
    }

    /// All requests that came, as `METHOD TARGET STATUS`.
    var requests: [String] { lines("request") }
    /// The requests that passed the login, as `METHOD TARGET USER LENGTH SHA-256`.
    var arrived: [String] { lines("arrived") }
    /// The passwords that it checked, as `NAME OUTCOME`.
    var logins: [String] { lines("login") }
    /// The requests that came to a second server of its, as `METHOD TARGET STATUS`.
    var server: [String] { lines("server") }

    /// Requests a path of the server itself.
    @discardableResult
    func direct(_ path: String, _ options: [String] = []) async throws -> Curl {
        let scheme = kind.certificate == nil ? "http" : "https"
        return try await Curl.run(options + ["-k", "\(scheme)://127.0.0.1:\(port)\(path)"], in: folder)
    }

    /// Ends it and starts it again.
    func restart() async throws {
        await stop()
        try await start()
    }

    fileprivate func start() async throws {
        var arguments = ["\(port)"] + kind.arguments.map { $0.replacing("${FOLDER}", with: folder.path) }
        if let certificate = kind.certificate {
            arguments += ["--tls", folder.path(of: certificate), folder.path(of: "server.key")]
        }
        let run = try await ScriptServer("fakes/\(kind.script)", arguments, in: folder)
        runs.withLock { $0.append(run) }
    }

    fileprivate func stop() async { await runs.withLock(\.last)?.stop() }

    /// Returns the output lines that begin with that word, without the word.
    func lines(_ word: String) -> [String] {
        runs.withLock(\.self).flatMap { run in
            run.output.split(separator: "\n").filter { $0.hasPrefix("\(word) ") }
                .map { String($0.dropFirst(word.count + 1)) }
        }
    }
}

/// A fake for a scenario, and its part of the configuration.
struct FakeKind: Sendable, CustomTestStringConvertible {
    /// The script's name.
    var script: String
    /// Its arguments after the port; `${FOLDER}` is the scenario's folder.
    var arguments: [String] = []
    /// Its certificate among those of `Tests/Scripts/certificates`, if TLS is in front of it.
    var certificate: String?
    /// The lines of its challenge after its name, its place and its credential.
    var challenge: String
    /// The lines of its upstream after the address.
    var upstream = ""
    /// The fields of the credential besides name and password.
    var fields: [String: String] = [:]

    var testDescription: String { ([script] + arguments.filter { $0.hasPrefix("--") }).joined(separator: " ") }
}

/// Runs a scenario with a fake and the daemon in front of it.
func withFake(
    _ kind: FakeKind, user: String = "ann", password: String = "demo",
    _ scenario: (_ bank: Bank, _ fake: FakeServer) async throws -> Void
) async throws {
    var configuration = BankConfiguration()
    configuration.mobileFirst = []
    configuration.workers = 2
    configuration.challenges = ["name: portal\nupstream: app\ncredential: ann\n\(kind.challenge)"]
    configuration.environment = ["COUNTERSIGN_ANN__USERNAME": user, "COUNTERSIGN_ANN__PASSWORD": password]
    for (name, value) in kind.fields { configuration.environment["COUNTERSIGN_ANN__\(name)"] = value }
    try await withBank(configuration, startsDaemon: false) { bank in
        let fake = FakeServer(kind, in: bank.folder)
        if kind.certificate != nil { try await makeCertificates(in: bank.folder) }
        bank.configure {
            let address = kind.certificate == nil ? "http://127.0.0.1" : "https://localhost"
            let tls = kind.certificate == nil ? "" : "\n  tls: { ca: \(bank.folder.path(of: "ca.pem")) }"
            $0.upstreams = ["app:\n  url: \"\(address):\(fake.port)/\"\(tls)\(kind.upstream)"]
            $0.listeners = "address: 127.0.0.1:${PROXY_PORT}\nupstream: app"
        }
        var result: Result<Void, any Error> = .success(())
        do {
            try await fake.start()
            try await bank.startDaemon()
            try await scenario(bank, fake)
        } catch {
            result = .failure(error)
        }
        await fake.stop()
        try result.get()
    }
}

/// Makes the authorities, certificates and keys of `Tests/Scripts/certificates` in that folder.
func makeCertificates(in folder: Folder) async throws {
    let script = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined() + "/Scripts/certificates"
    let made = try await Command.run([script, folder.path], in: folder)
    guard made.exit == 0 else { throw ChildError(description: "no certificates: \(folder.text(of: "errors"))") }
}

extension FakeServer {
    /// Posts 50 bodies of their own at once, every other as a form's; each is to be served, and to have passed the login once,
    /// as it was sent.
    func expectPostsOnce(
        through bank: Bank, at path: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let bodies = (0..<50).map { "n=\($0)&text=" + String(repeating: "\($0 % 10)", count: 1 + $0 * 1999) }
        let before = arrived.count
        let answers = try await bank.storm(connections: 50, requests: 1) { number in
            let type = number % 2 == 0 ? "application/octet-stream" : "application/x-www-form-urlencoded"
            return "POST \(path)/\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Type: \(type)\r\n"
                + "Content-Length: \(bodies[number].utf8.count)\r\n\r\n\(bodies[number])"
        }
        let unserved = answers.filter { $0.status != 200 }.map { "\($0.status) \($0.code ?? "") \($0.text)" }
        #expect(answers.count == 50 && unserved.isEmpty, "\(unserved.first ?? "")", sourceLocation: sourceLocation)
        let expected = bodies.enumerated().map { number, body in
            "POST \(path)/\(number) ann \(body.utf8.count) \(sha256(Array(body.utf8)))"
        }
        let posts = arrived.dropFirst(before).filter { $0.hasPrefix("POST") }
        let wrong = Set(posts).symmetricDifference(expected)
        #expect(wrong.isEmpty && posts.count == 50, sourceLocation: sourceLocation)
    }
}

extension FakeKind {
    /// WebSEAL over plain HTTP.
    static let webSEAL = FakeKind(script: "webseal", challenge: "gateway: webseal")
    /// The same over TLS, with another session cookie, which is `Secure`.
    static let webSEALBehindTLS = FakeKind(
        script: "webseal", certificate: "server.pem", challenge: "gateway: webseal")
    /// WebSEAL that redirects to pages of its own making.
    static let webSEALByRedirect = FakeKind(
        script: "webseal", arguments: ["--local-response-redirect"], challenge: "gateway: webseal")
    /// Open Liberty or WebSphere.
    static let liberty = FakeKind(
        script: "liberty", arguments: ["${FOLDER}/ltpa.keys"], challenge: "gateway: j-security-check")
    /// Jetty, whose redirect nothing but the configuration tells.
    static let jetty = FakeKind(
        script: "jetty",
        challenge: "gateway: j-security-check\ndetect: { status: [302, 303], redirect-to: /login.html }")
    /// Jetty that forwards to its login page.
    static let jettyDispatching = FakeKind(
        script: "jetty", arguments: ["--dispatch"], challenge: "gateway: j-security-check")
    /// Undertow or WildFly.
    static let undertow = FakeKind(script: "undertow", challenge: "gateway: j-security-check")

    /// An interface for programs, whose login answers with a token.
    static let token = FakeKind(
        script: "token-login",
        challenge: """
            gateway: none
            detect: { status: [401], content-type: application/json }
            login:
              url: /api/login
              body: json
              parameters: { user: "{username}", password: "{password}" }
              extract: { token: /data/token }
              expires: /data/expires_in
            failed: [{ body-contains: '"credentials"', because: wrong-password }]
            inject: { Authorization: "Session {token}" }
            """)

    /// Returns this kind with further arguments.
    func with(_ arguments: String...) -> FakeKind {
        var kind = self
        kind.arguments += arguments
        return kind
    }
}

/// A server run by a script of `Tests/Scripts`, which prints "ready" at its start and ends by SIGTERM.
final class ScriptServer: Sendable {
    private let child: Child
    private let folder: Folder
    private let name: String

    /// Starts that script with those arguments.
    init(_ script: String, _ arguments: [String], in folder: Folder) async throws {
        // The last part of the path of a script in a folder: the outputs are beside each other.
        name = "\(script.split(separator: "/").last ?? "")-\(Ports.next())"
        self.folder = folder
        let path = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/\(script)"
        child = try await Child.start(
            Child.Start(
                arguments: [path] + arguments, environment: baseEnvironment(folder), folder: folder.path,
                output: folder.path(of: "\(name).out"), errors: folder.path(of: "\(name).err")))
        guard await eventually({ output.hasPrefix("ready\n") }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "no \(script): \(output)\(folder.text(of: "\(name).err"))")
        }
    }

    /// All that it has printed.
    var output: String { folder.text(of: "\(name).out") }

    /// Ends it.
    func stop() async { await child.end() }
}

/// A real WebSocket server, which sends every message back; and a real caller for it.
final class WebSocketServer: Sendable {
    /// The port that it listens on.
    let port = Ports.next()
    private let child: Child

    /// Starts it with further options of `Tests/Scripts/websocket-peer serve`.
    init(_ options: String..., in folder: Folder) async throws {
        let name = "websocket-\(port)"
        child = try await Child.start(
            Child.Start(
                arguments: [Self.script, "serve", "\(port)"] + options, environment: baseEnvironment(folder),
                folder: folder.path, output: folder.path(of: "\(name).out"), errors: folder.path(of: "\(name).err")))
        guard await eventually({ folder.text(of: "\(name).out") == "ready\n" }) else {
            child.signal(SIGKILL)
            throw ChildError(description: "no WebSocket server: \(folder.text(of: "\(name).err"))")
        }
    }

    /// Ends it.
    func stop() async { await child.end() }

    /// Has a caller send messages to an address and compare the echoes; returns the caller's output.
    static func call(_ url: String, _ options: String..., in folder: Folder) async throws -> String {
        let run = try await Command.run([script, "call", url] + options, in: folder)
        return run.exit == 0 ? run.output : "\(run.exit): \(run.errors)"
    }

    private static let script =
        #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined() + "/Tests/Scripts/websocket-peer"
}
