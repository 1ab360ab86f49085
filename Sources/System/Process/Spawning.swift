// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import CLinux
internal import Glibc

/// Starts a program by posix_spawn: no code of ours runs between fork and exec, where a process with threads may do
/// next to nothing.
package struct Spawning {
    private let program: String
    private let arguments: [String]
    private let environment: [String: String]
    private let leadsGroup: Bool

    /// A program with its arguments, the first of which is its absolute path, and all of its environment.
    package init(command: [String], environment: [String: String]) {
        let program = command.first ?? ""
        self.init(
            program: program.hasPrefix("/") ? program : "", arguments: command, environment: environment,
            leadsGroup: true)
    }

    /// A program at a path, with its arguments, the first of which is its name, and all of its environment.
    ///
    /// `leadsGroup` gives it a process group of its own, apart from that of the terminal.
    package init(program: String, arguments: [String], environment: [String: String], leadsGroup: Bool) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.leadsGroup = leadsGroup
    }

    /// Starts it on these three descriptors and no others, with no signal blocked or ignored; returns its number.
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

        // Ours are close-on-exec; what this process was started with need not be, and may lie above the limit of open files.
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

    /// Waits until `child` has ended, and returns its status; `nil` if somebody else has waited for it.
    package static func wait(for child: pid_t) -> Int32? {
        var status: Int32 = 0
        return (try? systemCall { unsafe waitpid(child, &status, 0) }) == child ? status : nil
    }

    /// The status of `child` if it has ended, and `nil` while it runs; throws if somebody else has waited for it.
    package static func statusIfEnded(_ child: pid_t) throws(SystemError) -> Int32? {
        var status: Int32 = 0
        return try systemCall { unsafe waitpid(child, &status, WNOHANG) } == child ? status : nil
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
