// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import CLinux
internal import Glibc
package import Secrets
internal import Synchronization
internal import System

/// Prompts through the password agents of the system: the console at boot, `systemd-tty-ask-password-agent`, a desktop.
///
/// The question is a file in a directory that agents watch. The answer arrives as a datagram.
package struct PasswordAgents: SecretAsker {
    private struct Questions: Sendable {
        /// The sockets of the open questions of this process.
        var sockets: Set<String> = []
        var hasEnded = false
    }

    private static let questions = Mutex(Questions())
    private static let mark = "countersign-"

    private let directories: [String]
    private let limit: Duration

    /// Creates agents for the first of `directories` that is writable. A question ends after `limit`.
    package init(directories: [String], limit: Duration = .seconds(120)) {
        self.directories = directories
        self.limit = limit
    }

    /// Creates the agents of this user if they have a directory (systemd 257 and later), else those of the machine.
    package init(environment: [String: String]) {
        let own = environment["XDG_RUNTIME_DIR"].map { ["\($0)/systemd/ask-password"] } ?? []
        self.init(directories: own + ["/run/systemd/ask-password"])
    }

    /// Withdraws all open questions of this process and prevents further ones, because the process is shutting down.
    package static func withdrawAll() {
        let sockets = questions.withLock { questions in
            questions.hasEnded = true
            return questions.sockets
        }
        for socket in sockets { AgentSocket.withdraw(socket) }
    }

    /// Asks, and waits for the answer of an agent that runs as root or as this process's user.
    package func ask(_ question: String, id: String) throws(AskFailure) -> Secret {
        guard let directory = directories.first(where: { FileSystem.allows($0, W_OK | X_OK) }) else {
            throw AskFailure(
                reason: "no prompt is possible: this process cannot write to \(directories.last ?? "")")
        }
        let name = Self.mark + Hex.encode(UInt64.random(in: .min ... .max))
        let socketPath = "\(directory)/sck.\(name)"
        do {
            let opened = try JudgedDirectory(at: directory)
            Self.removeLeftovers(in: directory, opened)
            defer {
                for kind in ["ask", "sck"] { try? opened.remove("\(kind).\(name)") }
                Self.questions.withLock { _ = $0.sockets.remove(socketPath) }
            }
            let deadline = ContinuousClock.now + limit
            let socket = try AgentSocket(at: socketPath)
            let hasEnded = Self.questions.withLock { questions in
                questions.sockets.insert(socketPath)
                return questions.hasEnded
            }
            guard !hasEnded else { throw AskFailure(reason: "this process is shutting down") }
            let file = AskFile(
                message: "Please enter \(question):", id: id, socket: socketPath, process: getpid(),
                notAfter: Self.monotonicMicroseconds(after: limit))
            try Self.publish(file.text, as: name, in: opened)
            switch try socket.reply(until: deadline) {
            case .answer(let answer): return answer
            case .withdrawn: throw AskFailure(reason: "the prompt was withdrawn")
            case nil: throw AskFailure(reason: "the prompt was not answered in time")
            }
        } catch let failure as AskFailure {
            throw failure
        } catch let error as SystemError {
            throw AskFailure(reason: FileFault.system("ask through", directory, error.code).reason)
        } catch {
            throw AskFailure(reason: "no prompt is possible through \(directory)")
        }
    }

    /// Writes the question file, which every user may read.
    ///
    /// Agents read a file when it gets its name, so the rename is the last step.
    private static func publish(
        _ text: String, as name: String, in directory: JudgedDirectory
    ) throws(SystemError) {
        let temporary = "tmp.\(name)"
        do throws(SystemError) {
            let file = try directory.create(temporary, mode: 0o644)
            _ = try systemCall { [number = file.number] in fchmod(number, 0o644) }
            try file.writeAll(Array(text.utf8))
            try directory.rename(temporary, to: "ask.\(name)")
        } catch {
            try? directory.remove(temporary)
            throw error
        }
    }

    /// Removes the questions of killed processes, whose sockets are not open any more.
    private static func removeLeftovers(in path: String, _ directory: JudgedDirectory) {
        for name in (try? directory.names()) ?? [] where name.hasPrefix("sck.\(mark)") {
            guard AgentSocket.isAbandoned("\(path)/\(name)") else { continue }
            try? directory.remove("ask.\(name.dropFirst(4))")
            try? directory.remove(name)
        }
    }

    private static func monotonicMicroseconds(after delay: Duration) -> UInt64 {
        (SystemClock.monotonicNanoseconds() &+ delay.nanoseconds) / 1000
    }
}
