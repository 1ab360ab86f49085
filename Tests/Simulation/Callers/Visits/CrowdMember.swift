// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// A connection of a crowd, and its user.
final class CrowdMember {
    /// A request that a listener answers by itself, without an upstream (RFC 9110 §7.6.2).
    private static let question = Array("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n".utf8)

    let listener: ListenerKind
    let user: UInt32
    /// The time of its beginning, in ms since 1970.
    let since: Int64
    /// The number of times that `users` had come or gone when its request was sent; `nil` if no answer is awaited.
    private(set) var asking: Int?
    /// True if `users` did not name its user when it came.
    let isTurnedAway: Bool
    /// True if it waited until another worker has closed a connection: then nobody here knows its outcome.
    let isWaiting: Bool
    private let descriptor: Int32
    private var input: [UInt8] = []
    private var hasEnded = false

    init(
        _ descriptor: Int32, at listener: ListenerKind, user: UInt32, since: Int64, isTurnedAway: Bool, isWaiting: Bool
    ) {
        self.descriptor = descriptor
        self.listener = listener
        self.user = user
        self.since = since
        self.isTurnedAway = isTurnedAway
        self.isWaiting = isWaiting
    }

    /// The daemon's end, as far as it can be seen.
    var look: CallerSocket.Look { hasEnded ? .over : CallerSocket.look(at: descriptor) }

    /// True if it has a place for certain.
    var isHeld: Bool { !isTurnedAway && !isWaiting && look == .quiet }

    /// Sends a request; `changes`: the number of times that `users` came or went until now.
    func ask(changes: Int) {
        if CallerSocket.send(Self.question, on: descriptor) { asking = changes } else { hasEnded = true }
    }

    /// Receives what has come. Returns the whole answer if it is there, and true if the connection has ended.
    func receive() -> (answer: CallerAnswer?, hasEnded: Bool) {
        while !hasEnded, let bytes = CallerSocket.receive(from: descriptor) {
            input += bytes
            hasEnded = bytes.isEmpty
        }
        guard let answer = CallerAnswer(input, to: "GET", isAtEnd: hasEnded), answer.isWhole else {
            return (nil, hasEnded)
        }
        input.removeFirst(min(answer.length, input.count))
        asking = nil
        return (answer, hasEnded)
    }

    func leave() { close(descriptor) }
}
