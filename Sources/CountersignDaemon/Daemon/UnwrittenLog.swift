// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import ChallengeHandling
internal import Logging
internal import Synchronization

/// Log of state that cannot be written to the disk: one line for each sentence, and one when all of it is written again.
final class UnwrittenLog: Sendable {
    private struct State: Sendable {
        var logged: [String] = []
        var lastReason = ""
    }

    private let state = Mutex(State())
    private let tell: @Sendable (_ sentence: String) -> Void
    private let tellWritten: @Sendable () -> Void

    /// Creates a log of sentences. `tellWritten` is called when all state is written again.
    init(_ tell: @escaping @Sendable (_ sentence: String) -> Void, tellWritten: @escaping @Sendable () -> Void = {}) {
        self.tell = tell
        self.tellWritten = tellWritten
    }

    /// Creates the log of a daemon. `flush` writes the log to its end: a crash must not lose these lines.
    static func ofDaemon(_ flush: @escaping @Sendable () -> Void) -> UnwrittenLog {
        let logger = Logger(label: "state")
        return UnwrittenLog {
            logger.error(
                "state is only in memory", metadata: ["reason": "\($0)", "remedy": "\(UnwrittenState.remedy)"])
            flush()
        } tellWritten: {
            logger.notice("all state is written to the disk again")
        }
    }

    /// Creates the log of a command, on standard error.
    static func ofCommand() -> UnwrittenLog { UnwrittenLog { Process.printError("\($0); \(UnwrittenState.remedy)") } }

    /// Reason of the last failure.
    var lastReason: String { state.withLock { $0.lastReason } }

    /// Logs a failed write at once.
    func record(_ changes: [AttemptChange], directory: String, reason: String) {
        state.withLock { $0.lastReason = reason }
        if let unwritten = UnwrittenState(changes, directory: directory, reason: reason) { log(unwritten) }
    }

    /// Logs what is new in the state that is not written; nil if all of it is. Must be called periodically.
    func update(_ unwritten: UnwrittenState?) {
        if let unwritten { return log(unwritten) }
        let isRecovered = state.withLock { state in
            defer { state.logged = [] }
            return !state.logged.isEmpty
        }
        if isRecovered { tellWritten() }
    }

    private func log(_ unwritten: UnwrittenState) {
        let sentences = state.withLock { state in
            let new = unwritten.sentences.filter { !state.logged.contains($0) }
            state.logged += new
            return new
        }
        for sentence in sentences { tell(sentence) }
    }
}
