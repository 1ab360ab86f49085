// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization

/// A terminal at which a test types in place of a person.
final class PseudoTerminal: Sendable {
    /// The path of the terminal, for the standard input of a program.
    let path: String
    private let person: Int32
    private let line: Int32
    private let seen = Mutex("")

    init() throws {
        // What posix_openpt, unlockpt and ptsname do, which Glibc's module lacks.
        person = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        var locked: Int32 = 0
        var index: Int32 = 0
        guard person >= 0, unsafe ioctl(person, 0x4004_5431, &locked) == 0,  // TIOCSPTLCK
            unsafe ioctl(person, 0x8004_5430, &index) == 0  // TIOCGPTN
        else { throw ChildError(description: "no pseudo-terminal: \(errno)") }
        path = "/dev/pts/\(index)"
        // Held open: reading fails while no process has it open.
        line = unsafe open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
    }

    deinit {
        close(person)
        close(line)
    }

    /// A command that has this terminal as its own.
    static func owning(_ command: [String]) -> [String] { ["/usr/bin/setsid", "--ctty", "--wait"] + command }

    /// Waits until the program asks with a text that contains `question`, and types an answer.
    func answer(_ question: String, _ answer: String) async throws {
        let isAsked = await eventually {
            readAll()
            return seen.withLock { $0.contains(question) }
        }
        guard isAsked else { throw ChildError(description: "nobody asks \(question): \(seen.withLock { $0 })") }
        seen.withLock { $0 = "" }
        let bytes = Array((answer + "\n").utf8)
        // The prompt discards what was typed before it had switched the echo off, which it does before it asks.
        guard unsafe write(person, bytes, bytes.count) == bytes.count else {
            throw ChildError(description: "cannot type: \(errno)")
        }
    }

    private func readAll() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe read(person, &bytes, bytes.count)
            guard count > 0 else { return }
            let text = String(decoding: bytes[..<count], as: UTF8.self)
            seen.withLock { $0 += text }
        }
    }
}
