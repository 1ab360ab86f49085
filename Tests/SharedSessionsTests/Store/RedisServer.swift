// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import SharedSessions
import TestSupport

/// A real `redis-server` with its own folder and process, which ends with this object.
final class RedisServer {
    struct Problem: Error {
        var doing: String
    }

    /// Listening port in addition to the socket.
    enum Port {
        case none
        /// A free port.
        case plain
        /// A free port with TLS, by the certificates of that folder.
        case secure(certificates: String, clients: Bool)
    }

    let folder: String
    /// Listening port, or zero without one.
    let port: UInt16
    var socket: String { folder + "/s" }
    private let arguments: [String]
    private var pid: pid_t = 0

    /// Starts the server; `more` are additional arguments.
    init(_ port: Port = .none, keepsData: Bool = false, _ more: [String] = []) async throws {
        var template = Array("/tmp/csredis-XXXXXX".utf8CString)
        guard unsafe mkdtemp(&template) != nil else { throw Problem(doing: "make a folder") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        var arguments = [
            "--unixsocket", folder + "/s", "--unixsocketperm", "700", "--dir", folder, "--save", "", "--daemonize",
            "no",
            "--logfile", "", "--bind", "127.0.0.1",
        ]
        if keepsData { arguments += ["--appendonly", "yes", "--appendfsync", "always"] }
        switch port {
        case .none:
            self.port = 0
            arguments += ["--port", "0"]
        case .plain:
            self.port = Ports.next()
            arguments += ["--port", "\(self.port)"]
        case .secure(let certificates, let clients):
            self.port = Ports.next()
            arguments += [
                "--port", "0", "--tls-port", "\(self.port)", "--tls-cert-file", certificates + "/server.pem",
                "--tls-key-file", certificates + "/server.key", "--tls-ca-cert-file", certificates + "/ca.pem",
                "--tls-auth-clients", clients ? "yes" : "no",
            ]
        }
        self.arguments = arguments + more
        try await start()
    }

    deinit {
        kill()
        removeFolder(folder)
    }

    /// Starts the server again after `kill`, with the data that it has kept.
    func start() async throws {
        let (pid, output) = try await spawn(["/usr/bin/redis-server"] + arguments)
        self.pid = pid
        var text = ""
        while !text.contains("eady to accept connections") {
            guard let line = try readSome(output) else { throw Problem(doing: "start redis-server: \(text)") }
            text += line
        }
        // Its output is discarded.
        drain(output)
    }

    /// Kills the server, as a crash would.
    func kill() {
        guard pid > 0 else { return }
        signal(SIGKILL)
        var status: Int32 = 0
        while unsafe waitpid(pid, &status, 0) < 0 && errno == EINTR {}
        pid = 0
    }

    /// Sends a signal to the server; SIGSTOP makes it hang.
    func signal(_ number: Int32) {
        if pid > 0 { _ = Glibc.kill(pid, number) }
    }

    /// Returns the output of `redis-cli` for a command.
    func command(_ arguments: String...) async throws -> String {
        try await run(["/usr/bin/redis-cli", "-s", socket] + arguments)
    }
}

/// Authorities and certificates of `Tests/Scripts/certificates`; one set for all tests.
enum StoreCertificates {
    static let folder: String = {
        var template = Array("/tmp/csredis-tls-XXXXXX".utf8CString)
        unsafe mkdtemp(&template)
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        atexit { removeFolder(StoreCertificates.folder) }
        return path
    }()

    private static let made = Task { _ = try await run([script, folder]) }

    /// Creates the certificates, once.
    static func make() async throws { try await made.value }

    private static var script: String {
        // Through links, by which a build may see this folder.
        guard let here = unsafe realpath(#filePath, nil) else { return "" }
        defer { unsafe free(here) }
        return unsafe "/" + String(cString: here).split(separator: "/").dropLast(3).joined(separator: "/")
            + "/Scripts/certificates"
    }

    static func bytes(_ name: String) -> [UInt8] {
        let descriptor = unsafe open("\(folder)/\(name)", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return Array(bytes.prefix(max(0, count)))
    }
}

/// Peer that accepts connections, sends bytes once it has received some, and reads on.
final class GarbagePeer: Sendable {
    let port: UInt16
    private let listener: Int32

    init(_ answer: [UInt8], thenCloses: Bool = false) {
        let (listener, port) = loopbackSocket()
        precondition(listen(listener, 64) == 0)
        (self.listener, self.port) = (listener, port)
        inBackground {
            while case let accepted = accept(listener, nil, nil), accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                inBackground {
                    var buffer = [UInt8](repeating: 0, count: 65_536)
                    var isFirst = true
                    while unsafe read(accepted, &buffer, buffer.count) > 0 {
                        if isFirst { _ = unsafe send(accepted, answer, answer.count, Int32(MSG_NOSIGNAL)) }
                        isFirst = false
                        if thenCloses { break }
                    }
                    close(accepted)
                }
            }
        }
    }

    deinit {
        // Also ends the accept that waits.
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }
}

/// Runs a program to its end and returns its output.
@discardableResult
private func run(_ arguments: [String]) async throws -> String {
    let (pid, output) = try await spawn(arguments)
    var text = ""
    while let more = try readSome(output) { text += more }
    close(output)
    var status: Int32 = 0
    while unsafe waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    return text
}

/// Loop on which programs are started: each ends with the thread that started it, and test threads are short-lived.
private let starter = try? EventLoopThread(name: "starter") { _ in }

/// Starts a program that ends with this process, and returns its id and the descriptor of its output.
private func spawn(_ arguments: [String]) async throws -> (pid: pid_t, output: Int32) {
    guard let starter else { throw RedisServer.Problem(doing: "start a thread") }
    let (pid, output) = await withCheckedContinuation { done in
        starter.loop.execute { done.resume(returning: spawnHere(arguments)) }
    }
    guard pid > 0 else { throw RedisServer.Problem(doing: "start \(arguments)") }
    return (pid, output)
}

private func spawnHere(_ arguments: [String]) -> (pid: pid_t, output: Int32) {
    var pair: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard unsafe socketpair(AF_UNIX, type, 0, &pair) == 0 else { return (0, -1) }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, pair[1], 1)
    unsafe posix_spawn_file_actions_adddup2(&actions, pair[1], 2)
    var strings = unsafe (["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"] + arguments).map { unsafe strdup($0) }
    unsafe strings.append(nil)
    defer { unsafe strings.forEach { unsafe free($0) } }
    var pid: pid_t = 0
    let result = unsafe posix_spawn(&pid, "/usr/bin/setpriv", &actions, nil, strings, environ)
    close(pair[1])
    return result == 0 ? (pid, pair[0]) : (0, pair[0])
}

/// Removes a folder that has no folders but those of an append-only file.
private func removeFolder(_ path: String) {
    guard let directory = unsafe opendir(path) else { return }
    defer { unsafe closedir(directory) }
    while let entry = unsafe readdir(directory) {
        let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { field in
            unsafe String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name == "." || name == ".." { continue }
        if unsafe unlink("\(path)/\(name)") != 0 { removeFolder("\(path)/\(name)") }
    }
    unsafe rmdir(path)
}

private func readSome(_ descriptor: Int32) throws -> String? {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&entry, 1, 180_000) > 0 else { throw RedisServer.Problem(doing: "read what it prints") }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = unsafe read(descriptor, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
}

private func drain(_ descriptor: Int32) {
    inBackground {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while unsafe read(descriptor, &bytes, bytes.count) > 0 {}
        close(descriptor)
    }
}
