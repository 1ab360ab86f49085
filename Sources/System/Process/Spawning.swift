// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import CLinux
internal import Glibc

/// Starts a program with posix_spawn. No code of this process runs between fork and exec, when a process with threads
/// may do almost nothing.
package struct Spawning {
    private let program: String
    private let arguments: [String]
    private let environment: [String: String]
    private let leadsGroup: Bool

    /// Makes a command from its arguments, the first of which is the absolute path, and its whole environment.
    package init(command: [String], environment: [String: String]) {
        let program = command.first ?? ""
        self.init(
            program: program.hasPrefix("/") ? program : "", arguments: command, environment: environment,
            leadsGroup: true)
    }

    /// Makes a command from a path, its arguments, the first of which is the name, and its whole environment.
    ///
    /// With `leadsGroup`, the program gets its own process group, apart from that of the terminal.
    package init(program: String, arguments: [String], environment: [String: String], leadsGroup: Bool) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.leadsGroup = leadsGroup
    }

    /// Starts the program with these three descriptors and no others, and no signal blocked or ignored. Returns its
    /// process ID.
    package func spawn(input: Int32, output: Int32, error: Int32) throws(SystemError) -> pid_t {
        guard !program.isEmpty else { throw SystemError(code: ENOENT) }
        var actions = unsafe posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        try check(unsafe posix_spawnattr_init(&attributes))
        defer { unsafe posix_spawnattr_destroy(&attributes) }

        for (number, target) in [(input, STDIN_FILENO), (output, STDOUT_FILENO), (error, STDERR_FILENO)] {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, number, target))
        }

        // Descriptors of this process are close-on-exec. Those that it inherited may not be, and may be above the limit
        // of open files.
        try check(unsafe clinux_spawn_close_from(&actions, STDERR_FILENO + 1))

        var none = sigset_t()
        var all = sigset_t()
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        try check(unsafe posix_spawnattr_setsigmask(&attributes, &none))
        try check(unsafe posix_spawnattr_setsigdefault(&attributes, &all))
        try check(unsafe posix_spawnattr_setpgroup(&attributes, 0))
        let group = leadsGroup ? POSIX_SPAWN_SETPGROUP : 0
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group
        try check(unsafe posix_spawnattr_setflags(&attributes, Int16(flags)))

        let arguments = CStrings(arguments)
        let variables = CStrings(environment.map { "\($0.key)=\($0.value)" })
        var child = pid_t()
        try check(
            unsafe posix_spawn(&child, program, &actions, &attributes, arguments.pointers, variables.pointers))
        return child
    }

    /// Waits until `child` has ended, and returns its status; nil if another wait has collected it.
    package static func wait(for child: pid_t) -> Int32? {
        var status: Int32 = 0
        return (try? systemCall { unsafe waitpid(child, &status, 0) }) == child ? status : nil
    }

    /// Returns the status of `child` if it has ended, nil while it runs; throws if another wait has collected it.
    package static func statusIfEnded(_ child: pid_t) throws(SystemError) -> Int32? {
        var status: Int32 = 0
        return try systemCall { unsafe waitpid(child, &status, WNOHANG) } == child ? status : nil
    }

    /// Waits until `child` has ended, or until one of `others` is readable, for at most `limit`; returns which are. A negative
    /// descriptor is skipped.
    ///
    /// Throws on a kernel without descriptors of processes (before Linux 5.3).
    package static func waitForEnd(
        of child: pid_t, orAnyOf others: [Int32], within limit: Duration
    ) throws(SystemError) -> [Bool] {
        let process = try ProcessHandle(child)
        let ready = try DescriptorIO.waitUntilReadable(anyOf: [process.descriptor.number] + others, within: limit)
        return Array(ready.dropFirst())
    }

    /// These functions return the error's number.
    private func check(_ code: Int32) throws(SystemError) {
        guard code == 0 else { throw SystemError(code: code) }
    }
}

/// An array of C strings with a null at its end, as exec takes it.
@safe
private struct CStrings: ~Copyable {
    let pointers: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
    private let count: Int

    init(_ texts: [String]) {
        count = texts.count
        unsafe pointers = .allocate(capacity: count + 1)
        for (index, text) in texts.enumerated() { unsafe pointers[index] = strdup(text) }
        unsafe pointers[count] = nil
    }

    deinit {
        for index in 0..<count { unsafe free(pointers[index]) }
        unsafe pointers.deallocate()
    }
}
