// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization
import TestSupport

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
