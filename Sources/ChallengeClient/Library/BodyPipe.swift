// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A response's body on its way from the loop, which fills it, to the one task that reads it.
final class BodyPipe: Sendable {
    /// What is said to the loop.
    enum Call: Sendable {
        /// Nobody wants the rest.
        case broken
        /// There is room again, and the loop has found none before.
        case room
    }

    /// Beyond this many bytes nothing more is put in: what is in then, and what a transfer has collected, is all of it.
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

    /// A pipe whose reader's doings are told by `call`, on any thread.
    init(_ call: @escaping @Sendable (Call) -> Void) { self.call = call }

    // MARK: The loop's end

    /// True if there is room for more; where there is none, `call` will be told when there is.
    var hasRoom: Bool {
        state.withLock { state in
            state.isFull = state.bytes.count >= Self.window
            return !state.isFull
        }
    }

    /// True if nothing is wanted any more.
    var isBroken: Bool {
        state.withLock { state in
            if case .failure? = state.end { true } else { false }
        }
    }

    /// Puts more in.
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

    /// Nothing more comes: all is there, or it broke. What was put in is still read.
    func finish(_ end: Result<Void, ClientError>) {
        let reader = state.withLock { state -> CheckedContinuation<Result<[UInt8]?, ClientError>, Never>? in
            guard state.end == nil else { return nil }
            state.end = end
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume(returning: end.map { nil })
    }

    // MARK: The reader's end

    /// The next bytes; `nil` after the last.
    func next() async -> Result<[UInt8]?, ClientError> {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if let now = take(orWaitWith: continuation) { continuation.resume(returning: now) }
            }
        } onCancel: {
            breakOff(.cancelled)
        }
    }

    /// The reader wants no more.
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
