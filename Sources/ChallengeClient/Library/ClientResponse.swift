// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// The response to a request of a `ChallengeClient`: its head, and its body as it comes.
///
/// Redirects are not followed, so it can be one. Fields that concern only a connection (RFC 9110 section 7.6.1) and the cookies
/// of sessions that the client holds are not among its fields.
public struct ClientResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// The body. Nobody has to read it: it is broken off when the response is let go of.
    public let body: ResponseBody

    /// The status.
    public var status: HTTPResponse.Status { head.status }

    /// The whole body, of at most `limit` bytes; throws `bodyTooLong` for a longer one, and breaks it off.
    public func collect(upTo limit: Int) async throws(ClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        for try await piece in body {
            guard bytes.count + piece.count <= limit else {
                body.breakOff()
                throw ClientError(.bodyTooLong, detail: "The response's body is longer than \(limit) bytes.")
            }
            bytes += piece
        }
        return bytes
    }

    /// The same as text; invalid UTF-8 becomes U+FFFD.
    public func text(upTo limit: Int) async throws(ClientError) -> String {
        String(decoding: try await collect(upTo: limit), as: UTF8.self)
    }
}

/// The body of a response in pieces, as they come, without framing and with its content coding.
///
/// At most 144 KiB wait in memory; while nobody reads, the server is held back, until `ClientConfiguration.Timeouts.idle` has
/// passed. To be read once, by one task: a second iteration goes on where the first one ended. It ends with an error where the
/// body is not whole, so that no part is taken for all of it.
public struct ResponseBody: AsyncSequence, Sendable {
    /// What is lost with the last copy.
    private final class Hold: Sendable {
        let pipe: BodyPipe
        // Keeps the client's loop turning for as long as somebody may read.
        private let life: ClientLife

        init(_ pipe: BodyPipe, _ life: ClientLife) {
            self.pipe = pipe
            self.life = life
        }

        deinit { pipe.breakOff() }
    }

    private let hold: Hold

    init(_ pipe: BodyPipe, _ life: ClientLife) { hold = Hold(pipe, life) }

    /// Ends the transfer: the rest is not wanted.
    public func breakOff() { hold.pipe.breakOff() }

    /// An iterator over what has not been read yet.
    public func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    /// Hands out the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let body: ResponseBody

        /// The next piece, never an empty one; `nil` after the last. Cancelling the task ends the transfer.
        public mutating func next() async throws(ClientError) -> [UInt8]? {
            try await body.hold.pipe.next().get()
        }

        /// The same; where it runs makes no difference.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> [UInt8]? {
            try await body.hold.pipe.next().get()
        }
    }
}
