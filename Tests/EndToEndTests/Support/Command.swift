// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
import TestSupport

/// A program run to its end, and its output.
struct Command: Sendable {
    /// The exit status, or 128 and the number of the signal that ended it; -1 if it had to be killed.
    var exit: Int32
    /// Standard output.
    var output: String
    /// Standard error.
    var errors: String

    private static let last = Mutex(0)

    /// Runs a program with its working folder and its output files in that folder.
    static func run(
        _ arguments: [String], environment: [String: String] = [:], input: [UInt8]? = nil, in folder: Folder
    ) async throws -> Command {
        let number = last.withLock { last in
            last += 1
            return last
        }
        var start = Child.Start(
            arguments: arguments, environment: baseEnvironment(folder).merging(environment) { $1 },
            folder: folder.path, output: folder.path(of: "run\(number).out"),
            errors: folder.path(of: "run\(number).err"))
        if let input { start.input = folder.write(input, to: "run\(number).in") }
        let child = try await Child.start(start)
        if await child.waitForExit() == nil {
            child.signal(SIGKILL)
            return Command(exit: -1, output: "", errors: "\(arguments): does not end")
        }
        return Command(
            exit: child.exitCode ?? -1, output: String(decoding: readFile(start.output), as: UTF8.self),
            errors: String(decoding: readFile(start.errors), as: UTF8.self))
    }

    /// Runs `countersign`.
    static func countersign(
        _ arguments: String..., environment: [String: String] = [:], input: [UInt8]? = nil, in folder: Folder
    ) async throws -> Command {
        try await run(
            [Binary.path] + arguments, environment: environment, input: input, in: folder)
    }
}

/// Returns the environment of every program: the library path of the tests' own environment, and nothing else of it.
func baseEnvironment(_ folder: Folder) -> [String: String] {
    var environment = [
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": folder.path, "LANG": "C.UTF-8",
        "STATE_DIRECTORY": folder.path(of: "state"), "RUNTIME_DIRECTORY": folder.path(of: "run"),
    ]
    if let path = unsafe getenv("LD_LIBRARY_PATH") { environment["LD_LIBRARY_PATH"] = unsafe String(cString: path) }
    return environment
}

/// The program under test.
enum Binary {
    /// Its path: beside the tests' own in the build folder.
    static let path: String = {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = unsafe readlink("/proc/self/exe", &buffer, buffer.count)
        let tests = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return tests.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/countersign"
    }()
}

/// The sources that these tests are part of.
enum Repository {
    /// The absolute path of the repository.
    static let path = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    /// Returns the path of a file of the repository.
    static func path(of name: String) -> String { "\(path)/\(name)" }

    /// Returns the text of a file of the repository.
    static func text(of name: String) -> String { String(decoding: readFile(path(of: name)), as: UTF8.self) }

    /// Runs a script of `Tests/Scripts`. It sees the tests' own PATH folders and nothing else of the environment.
    static func script(
        _ name: String, _ arguments: [String] = [], environment: [String: String] = [:], in folder: Folder
    ) async throws -> Command {
        try await Command.run(
            [path(of: "Tests/Scripts/\(name)")] + arguments, environment: environment, in: folder)
    }
}

/// A program that a test has started. It dies with the thread that started it, which lives until the program ends: no
/// process remains, not even if the test process crashes.
final class Child: Sendable {
    /// The program, its arguments, its environment and its files.
    struct Start: Sendable {
        /// Path and arguments of the program.
        var arguments: [String]
        /// Its whole environment.
        var environment: [String: String]
        /// Its working folder.
        var folder: String
        /// The file that is its standard input.
        var input = "/dev/null"
        /// The file that its standard output is appended to.
        var output: String
        /// The file that its standard error is appended to.
        var errors: String
    }

    /// Its process id.
    let pid: pid_t
    private let ended = Mutex<Int32?>(nil)

    private init(pid: pid_t) { self.pid = pid }

    /// Starts it.
    static func start(_ start: Start) async throws -> Child {
        try await withCheckedThrowingContinuation { continuation in
            inBackground {
                do {
                    let child = Child(pid: try spawn(start))
                    continuation.resume(returning: child)
                    child.reap()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    /// The exit status, or 128 and the number of the signal that ended it; `nil` while it runs.
    var exitCode: Int32? { ended.withLock { $0 } }

    /// Sends it a signal, if it still runs.
    func signal(_ number: Int32) {
        ended.withLock { if $0 == nil { kill(pid, number) } }
    }

    /// Waits for its end and returns ``exitCode``; `nil` if it does not end.
    func waitForExit() async -> Int32? {
        _ = await eventually { exitCode != nil }
        return exitCode
    }

    /// Ends it: SIGTERM, then SIGKILL if it does not end. Returns ``exitCode``.
    @discardableResult
    func end() async -> Int32? {
        signal(SIGTERM)
        if let code = await waitForExit() { return code }
        signal(SIGKILL)
        return await waitForExit()
    }

    private func reap() {
        var info = unsafe siginfo_t()
        // Looked at first and taken under the lock: a signal never meets another process of the same number.
        while unsafe waitid(P_PID, id_t(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR {}
        ended.withLock { ended in
            var status: Int32 = 0
            while unsafe waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            let signal = status & 0x7f
            ended = signal == 0 ? (status >> 8) & 0xff : 128 + signal
        }
    }
}

/// A program could not be started.
struct ChildError: Error, CustomStringConvertible {
    var description: String
}

private func spawn(_ start: Child.Start) throws -> pid_t {
    // Both become the program itself. (Glibc's module lacks posix_spawn_file_actions_addchdir_np.)
    let prefix = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", "/usr/bin/env", "--chdir=\(start.folder)"]
    let arguments = prefix + start.arguments
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 0, start.input, O_RDONLY, 0)
    unsafe posix_spawn_file_actions_addopen(&actions, 1, start.output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    unsafe posix_spawn_file_actions_addopen(&actions, 2, start.errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    let environment = start.environment.map { "\($0.key)=\($0.value)" }
    var pid: pid_t = 0
    let result = unsafe withCStrings(arguments) { arguments in
        unsafe withCStrings(environment) { environment in
            unsafe posix_spawn(&pid, prefix[0], &actions, &attributes, arguments, environment)
        }
    }
    guard result == 0 else { throw ChildError(description: "\(start.arguments): cannot be started, error \(result)") }
    return pid
}

/// Lends the strings as C expects a list of them: pointers with a null at the end.
private func withCStrings<Value>(
    _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
) -> Value {
    var pointers: [UnsafeMutablePointer<CChar>?] = unsafe strings.map { unsafe strdup($0) }
    unsafe pointers.append(nil)
    defer { unsafe pointers.forEach { unsafe free($0) } }
    return unsafe body(pointers)
}
