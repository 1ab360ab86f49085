// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A response's body on its way from the loop to the one task that reads.
final class BodyPipe: Sendable {
    /// A message of the reader to the loop.
    enum Call: Sendable {
        /// The rest is not wanted.
        case broken
        /// There is room again, after the loop has found the pipe full.
        case room
    }

    /// The limit in bytes beyond which nothing more is appended; the rest waits in the transfer.
    private static let window = 64 * 1024

    private struct State {
        var bytes: [UInt8] = []
        var end: Result<Void, ClientError>?
        var reader: CheckedContinuation<Result<[UInt8]?, ClientError>, Never>?
        /// True if the loop has found no room.
        var isFull = false
    }

    private let state = Mutex(State())
    private let call: @Sendable (Call) -> Void

    /// Creates a pipe that reports the reader's actions by `call`, on any thread.
    init(_ call: @escaping @Sendable (Call) -> Void) { self.call = call }

    // MARK: The loop's side

    /// True if there is room for more; otherwise `call` is called when there is.
    var hasRoom: Bool {
        state.withLock { state in
            state.isFull = state.bytes.count >= Self.window
            return !state.isFull
        }
    }

    /// True if the reader wants no more.
    var isBroken: Bool {
        state.withLock { state in
            if case .failure? = state.end { true } else { false }
        }
    }

    /// Appends bytes.
    func put(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let reader = state.withLock { state -> CheckedContinuation<Result<[UInt8]?, ClientError>, Never>? in
            guard state.end == nil else { return nil }
            if let reader = state.reader {
                state.reader = nil
                return reader
            }
            state.bytes += bytes
            return nil
        }
        reader?.resume(returning: .success(bytes))
    }

    /// Ends the body, complete or with an error. Bytes appended before are still read.
    func finish(_ end: Result<Void, ClientError>) {
        let reader = state.withLock { state -> CheckedContinuation<Result<[UInt8]?, ClientError>, Never>? in
            guard state.end == nil else { return nil }
            state.end = end
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: end.map { nil })
    }

    // MARK: The reader's side

    /// Returns the next bytes, or `nil` after the last.
    func next() async -> Result<[UInt8]?, ClientError> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let now = take(orWaitWith: continuation) { continuation.resume(returning: now) }
            }
        } onCancel: {
            breakOff(.cancelled)
        }
    }

    /// Ends reading; the loop stops the transfer.
    func breakOff(
        _ error: ClientError = ClientError(.cancelled, detail: "The rest of the response was not wanted.")
    ) {
        let (reader, wasOpen) = state.withLock { state in
            defer { state.reader = nil }
            let wasOpen = state.end == nil
            if wasOpen {
                state.bytes = []
                state.end = .failure(error)
            }
            return (state.reader, wasOpen)
        }
        reader?.resume(returning: .failure(error))
        if wasOpen { call(.broken) }
    }

    private func take(
        orWaitWith continuation: CheckedContinuation<Result<[UInt8]?, ClientError>, Never>
    ) -> Result<[UInt8]?, ClientError>? {
        let (taken, isRoom) = state.withLock { state -> (Result<[UInt8]?, ClientError>?, Bool) in
            if !state.bytes.isEmpty {
                let bytes = state.bytes
                state.bytes = []
                defer { state.isFull = false }
                return (.success(bytes), state.isFull)
            }
            if let end = state.end { return (end.map { nil }, false) }
            guard state.reader == nil else {
                let detail = "Two tasks read one response's body at once; let one of them do it."
                return (.failure(ClientError(.badRequest, detail: detail)), false)
            }
            state.reader = continuation
            return (nil, false)
        }
        if isRoom { call(.room) }
        return taken
    }
}
