// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import Glibc

/// A server in its own process, from `Tests/Scripts` or the system, which ends with this object.
final class Helper {
    struct Problem: Error {
        var doing: String
    }

    private let pid: pid_t
    private let input: Int32
    private let output: Int32

    /// Starts a program. A name without a slash is searched in PATH.
    init(_ arguments: [String]) throws {
        var (toChild, fromChild): ((Int32, Int32), (Int32, Int32)) = ((-1, -1), (-1, -1))
        try Self.pipe(&toChild)
        try Self.pipe(&fromChild)
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, toChild.0, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, fromChild.1, 1)
        // The kernel kills it if this process ends without running `deinit`.
        var strings = unsafe (["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"] + arguments).map { unsafe strdup($0) }
        unsafe strings.append(nil)
        defer { unsafe strings.forEach { unsafe free($0) } }
        var pid: pid_t = 0
        let result = unsafe posix_spawn(&pid, "/usr/bin/setpriv", &actions, nil, strings, environ)
        _ = (close(toChild.0), close(fromChild.1))
        (input, output, self.pid) = (toChild.1, fromChild.0, pid)
        guard result == 0 else { throw Problem(doing: "start \(arguments): \(result)") }
    }

    deinit {
        end()
        _ = (close(input), close(output))
    }

    /// Ends the process now.
    func end() {
        kill(pid, SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    }

    /// Returns the first line of its output.
    func line() throws -> String {
        var text: [UInt8] = []
        while true {
            var entry = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            var byte: UInt8 = 0
            guard unsafe poll(&entry, 1, 180_000) > 0, unsafe read(output, &byte, 1) == 1 else {
                throw Problem(doing: "read a line")
            }
            if byte == 0x0A { return String(decoding: text, as: UTF8.self) }
            text.append(byte)
        }
    }

    /// Returns the port that it prints.
    func port() throws -> UInt16 {
        guard let port = UInt16(try line()) else { throw Problem(doing: "read a port") }
        return port
    }

    /// Runs a program to its end and returns true if it succeeds.
    static func run(_ arguments: [String]) throws -> Bool {
        let helper = try Helper(arguments)
        var status: Int32 = 0
        while unsafe waitpid(helper.pid, &status, 0) < 0 && errno == EINTR {}
        return status == 0
    }

    /// Returns the path of a script of `Tests/Scripts`.
    static func script(_ name: String, file: String = #filePath) -> String {
        // Links are resolved, since a build may see this folder through one.
        guard let here = unsafe realpath(file, nil) else { return name }
        defer { unsafe free(here) }
        let folders = unsafe String(cString: here).split(separator: "/").dropLast(3)
        return "/" + folders.joined(separator: "/") + "/Scripts/" + name
    }

    private static func pipe(_ ends: inout (Int32, Int32)) throws {
        var pair: [Int32] = [-1, -1]
        // A pair of sockets, as Glibc's module lacks pipe2, and a child of another test must not inherit a descriptor.
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &pair) == 0 else { throw Problem(doing: "make a pipe: \(errno)") }
        ends = (pair[0], pair[1])
    }
}

/// Authorities, certificates and keys, as `Tests/Scripts/certificates` makes them; one set for all tests.
enum Certificates {
    /// Folder of these files, removed when the process ends.
    static let folder: String = {
        var template = Array("/tmp/countersign-tls-XXXXXX".utf8CString)
        unsafe mkdtemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        atexit { _ = try? Helper.run(["rm", "-rf", Certificates.folder]) }
        _ = try? Helper.run([Helper.script("certificates"), path])
        return path
    }()

    /// Returns the path of one of these files.
    static func path(_ name: String) -> String { "\(folder)/\(name)" }

    /// Returns the content of one of these files, as connections take it.
    static func blob(_ name: String) -> Blob { Blob(bytes(path(name)).span) }

    /// The pin of the server's key.
    static var pin: String { String(decoding: bytes(path("server.pin")), as: UTF8.self) }

    /// Returns the bytes of a file; empty if it does not exist.
    static func bytes(_ path: String) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }
}

/// HTTP/1.1 server with TLS: `Tests/Scripts/tls-upstream`.
final class TLSUpstream {
    let port: UInt16
    private let helper: Helper

    /// Starts the server. `certificate`: one of `Certificates`; `clients`: the authority of the client certificates that it
    /// requires; `version`: its highest version of TLS.
    init(
        certificate: String = "server.pem", key: String = "server.key", clients: String? = nil, version: String? = nil,
        host: String = "127.0.0.1"
    ) throws {
        var arguments = [Helper.script("tls-upstream"), Certificates.path(certificate), Certificates.path(key)]
        if let clients { arguments += ["--clients", Certificates.path(clients)] }
        if let version { arguments += ["--at-most", version] }
        helper = try Helper(arguments + ["--listen", host])
        port = try helper.port()
    }
}

extension ConnectionSettings {
    /// Returns settings that trust the authority of `Certificates`.
    static func trusting(
        _ authority: String = "ca.pem", _ change: (inout ConnectionSettings) -> Void = { _ in }
    ) -> ConnectionSettings {
        var settings = ConnectionSettings()
        settings.authorities = Certificates.blob(authority)
        change(&settings)
        return settings
    }
}

extension UpstreamPlan {
    /// Returns an upstream named `bank` at `localhost`.
    static func secure(
        host: String = "localhost", port: UInt16, scheme: Origin.Scheme = .https, connections: ConnectionSettings,
        timeouts: Timeouts = Timeouts(), logins: [Authenticator] = []
    ) -> UpstreamPlan {
        var authenticators = Authenticators()
        for login in logins { authenticators.add(login) }
        return UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: scheme, host: host, port: port), path: "/"),
            connections: connections, timeouts: timeouts, logins: authenticators)
    }
}

/// HTTP/2 server that does what a request's path says: `Tests/Scripts/h2-upstream`.
final class H2Upstream {
    let port: UInt16
    private let isTLS: Bool
    private let helper: Helper

    /// Starts the server. `streams`: concurrent streams per connection; `window`: window of each request's body.
    init(tls: Bool = true, streams: Int = 100, window: Int = 65_535) throws {
        var arguments = [Helper.script("h2-upstream"), "--streams", "\(streams)", "--window", "\(window)"]
        if tls { arguments += ["--tls", Certificates.path("server.pem"), Certificates.path("server.key")] }
        helper = try Helper(arguments)
        port = try helper.port()
        isTLS = tls
    }

    /// Ends the server.
    func end() { helper.end() }

    /// Returns a plan of this upstream, named `bank`.
    func plan(
        version: ConnectionSettings.Version = .auto, timeouts: UpstreamPlan.Timeouts = .init(),
        logins: [Authenticator] = []
    ) -> UpstreamPlan {
        var connections = ConnectionSettings()
        connections.version = version
        connections.authorities = Certificates.blob("ca.pem")
        return .secure(
            port: port, scheme: isTLS ? .https : .http, connections: connections, timeouts: timeouts, logins: logins)
    }
}
