// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
package import Secrets
internal import Synchronization

/// Asks through the password agents of the system: the console at boot, `systemd-tty-ask-password-agent`, whatever a desktop
/// brings. The question is a file in a directory that they watch; the answer comes as a datagram.
package struct PasswordAgents: SecretAsker {
    private struct Questions: Sendable {
        /// The sockets of those that are open in this process.
        var sockets: Set<String> = []
        var areOver = false
    }

    private static let questions = Mutex(Questions())
    private static let mark = "countersign-"

    private let directories: [String]
    private let limit: Duration

    /// The agents that watch the first of `directories` that can be written to. A question is over after `limit`.
    package init(directories: [String], limit: Duration = .seconds(120)) {
        self.directories = directories
        self.limit = limit
    }

    /// The agents of this user, where there is a directory for them (systemd 257 and later), else those of the machine.
    package init(environment: [String: String]) {
        let own = environment["XDG_RUNTIME_DIR"].map { ["\($0)/systemd/ask-password"] } ?? []
        self.init(directories: own + ["/run/systemd/ask-password"])
    }

    /// Takes back all open questions of this process, which is ending, and asks no more.
    package static func withdrawAll() {
        let sockets = questions.withLock { questions in
            questions.areOver = true
            return questions.sockets
        }
        for socket in sockets { AgentSocket.withdraw(socket) }
    }

    /// Asks, and waits for the answer of an agent that runs as root or as this process's user.
    package func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        guard let directory = directories.first(where: { unsafe access($0, W_OK | X_OK) == 0 }) else {
            throw AskFailure(
                reason: "nobody can be asked: this process must be able to write to \(directories.last ?? "")")
        }
        Self.removeLeftovers(in: directory)
        let name = Self.mark + String(UInt64.random(in: .min ... .max), radix: 16)
        let socketPath = "\(directory)/sck.\(name)"
        let filePath = "\(directory)/ask.\(name)"
        defer {
            unsafe unlink(filePath)
            unsafe unlink(socketPath)
            Self.questions.withLock { _ = $0.sockets.remove(socketPath) }
        }
        do {
            let deadline = ContinuousClock.now + limit
            let socket = try AgentSocket(at: socketPath)
            let areOver = Self.questions.withLock { questions in
                questions.sockets.insert(socketPath)
                return questions.areOver
            }
            guard !areOver else { throw AskFailure(reason: "this process is ending") }
            let file = AskFile(
                message: "Please enter \(question):", id: id, socket: socketPath, process: getpid(),
                notAfter: Self.monotonicMicroseconds(after: limit))
            try Self.publish(file.text, as: filePath, inTheMaking: "\(directory)/tmp.\(name)")
            switch try socket.reply(until: deadline) {
            case .answer(let answer): return answer
            case .withdrawn: throw AskFailure(reason: "the prompt was withdrawn")
            case nil: throw AskFailure(reason: "nobody answered the prompt in time")
            }
        } catch let failure as AskFailure {
            throw failure
        } catch let error as SystemError {
            throw AskFailure(reason: FileFault.system("ask through", directory, error.code).reason)
        } catch {
            throw AskFailure(reason: "nobody can be asked through \(directory)")
        }
    }

    /// Agents look at a file when it gets its name, so that is the last step. It tells no secret and is for all to read.
    private static func publish(_ text: String, as path: String, inTheMaking: String) throws(SystemError) {
        do {
            let file = try Descriptor(opening: inTheMaking, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o644)
            _ = try systemCall { [number = file.number] in fchmod(number, 0o644) }
            try file.writeAll(Array(text.utf8))
            _ = try systemCall { unsafe rename(inTheMaking, path) }
        } catch {
            unsafe unlink(inTheMaking)
            throw error
        }
    }

    /// Removes the questions of ours that were left by a process which was killed: nobody is at their sockets.
    private static func removeLeftovers(in directory: String) {
        for name in DirectoryListing.names(in: directory) ?? [] where name.hasPrefix("sck.\(mark)") {
            let path = "\(directory)/\(name)"
            guard AgentSocket.isAbandoned(path) else { continue }
            unsafe unlink("\(directory)/ask.\(name.dropFirst(4))")
            unsafe unlink(path)
        }
    }

    private static func monotonicMicroseconds(after delay: Duration) -> UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        let now = UInt64(max(time.tv_sec, 0)) * 1_000_000 + UInt64(max(time.tv_nsec, 0)) / 1_000
        return now + UInt64(max(delay / .microseconds(1), 0))
    }
}
