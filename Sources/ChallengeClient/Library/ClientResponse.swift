// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
public import HTTPTypes

/// The response to a request of a `ChallengeClient`: its head, and its body as received.
///
/// Redirects are not followed, so a response can be one. Connection-specific fields (RFC 9110 §7.6.1) and cookies of
/// sessions that the client holds are removed.
public struct ClientResponse: Sendable {
    /// Status and fields.
    public let head: HTTPResponse
    /// The body. Reading is optional: an unread body is cancelled when the response is released.
    public let body: ResponseBody

    /// The status.
    public var status: HTTPResponse.Status { head.status }

    /// Returns the whole body; throws `bodyTooLong` and cancels if it exceeds `limit` bytes.
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

    /// Returns the whole body as text, like `collect`; invalid UTF-8 becomes U+FFFD.
    public func text(upTo limit: Int) async throws(ClientError) -> String {
        String(decoding: try await collect(upTo: limit), as: UTF8.self)
    }
}

/// The body of a response in pieces as received, unframed, with its content coding.
///
/// At most 144 KiB wait in memory; while they are not read, the server is slowed down, until
/// `ClientConfiguration.Timeouts.idle` has passed. To be read once, by one task: a second iteration continues after the
/// first one. An incomplete body ends with an error, so that a part does not look like the whole.
public struct ResponseBody: AsyncSequence, Sendable {
    /// The owner of the pipe, released with the last copy of the body.
    private final class Hold: Sendable {
        let pipe: BodyPipe
        // Keeps the client's loop running as long as the body can be read.
        private let life: ClientLife

        init(_ pipe: BodyPipe, _ life: ClientLife) {
            self.pipe = pipe
            self.life = life
        }

        deinit { pipe.breakOff() }
    }

    private let hold: Hold

    init(_ pipe: BodyPipe, _ life: ClientLife) { hold = Hold(pipe, life) }

    /// Cancels the transfer, because the rest is not wanted.
    public func breakOff() { hold.pipe.breakOff() }

    /// Returns an iterator over the unread rest.
    public func makeAsyncIterator() -> Iterator { Iterator(body: self) }

    /// An iterator over the pieces.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let body: ResponseBody

        /// Returns the next piece, never an empty one, or `nil` after the last. Cancelling the task ends the transfer.
        public mutating func next() async throws(ClientError) -> [UInt8]? {
            try await body.hold.pipe.next().get()
        }

        /// Returns the next piece as `next()` does, independently of the isolation.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(ClientError) -> [UInt8]? {
            try await body.hold.pipe.next().get()
        }
    }
}

/// A valid request with its destination.
struct ClientRequest: Sendable {
    let origin: Origin
    /// Path and query, as sent.
    let path: String
    let method: String
    let fields: HTTPFields
    let body: RequestBody
    let timeout: Duration?
    /// The requested protocol of an upgrade, if any.
    var upgrade: String?

    /// Creates a request. Throws `badRequest` if `request` cannot be sent.
    init(_ request: HTTPRequest, body: RequestBody, timeout: Duration?) throws(ClientError) {
        guard let scheme = request.scheme.flatMap({ Origin.Scheme(rawValue: $0.lowercased()) }) else {
            throw Self.bad("Its scheme is neither http nor https.")
        }
        guard let authority = request.authority, let url = WebURL("\(scheme.rawValue)://\(authority)"), url.path == "/",
            url.query == nil
        else {
            throw Self.bad("Its authority is not HOST or HOST:PORT without user info.")
        }
        let path = request.path ?? "/"
        let isAsterisk = path == "*" && request.method == .options
        guard isAsterisk || path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }) else {
            throw Self.bad("Its path does not begin with a slash, or has characters that must be percent-encoded.")
        }
        // CONNECT is for a proxy; TRACE would reveal a session's secrets in the response (RFC 9110 §9.3.8).
        guard request.method != .connect, request.method != .trace else {
            throw Self.bad("CONNECT and TRACE are not sent.")
        }
        origin = url.origin
        self.path = path
        method = request.method.rawValue
        fields = request.headerFields
        self.body = body
        self.timeout = timeout
    }

    private static func bad(_ why: String) -> ClientError {
        ClientError(.badRequest, detail: "The request cannot be sent. \(why)")
    }
}

extension HTTPRequest {
    /// Creates a request to `url`.
    public init(_ method: Method = .get, to url: WebURL, fields: HTTPFields = [:]) {
        self.init(
            method: method, scheme: url.origin.scheme.rawValue, authority: url.origin.authority, path: url.target,
            headerFields: fields)
    }
}

/// The body of a request: none, bytes, or a stream of pieces.
public struct RequestBody: Sendable {
    /// Passes on one piece, and returns true if more is wanted, once there is room.
    typealias Feed = @Sendable ([UInt8]) async -> Bool

    enum Content: Sendable {
        case bytes([UInt8])
        case none
        case pieces(length: UInt64?, @Sendable (_ feed: Feed) async throws -> Void)
    }

    let content: Content

    /// No body.
    public static let none = RequestBody(content: .none)

    /// Returns a body of these bytes.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody {
        RequestBody(content: .bytes(Array(bytes)))
    }

    /// Returns a body of the UTF-8 bytes of `text`.
    public static func text(_ text: String) -> RequestBody { .bytes(text.utf8) }

    /// Returns a body of pieces as they come, with back-pressure.
    ///
    /// The next piece is requested only when there is room, so a slow server slows the sequence down.
    /// `ClientConfiguration.Limits.replay` limits the part held for a replay. `length`: the total number of bytes, if
    /// known; the request fails with `requestBody` unless exactly that many come. Without it the body is sent in chunks
    /// (RFC 9112 §7.1). An error thrown by the sequence makes the request fail with `requestBody`.
    public static func stream<Pieces: AsyncSequence & Sendable>(
        _ pieces: Pieces, length: UInt64? = nil
    ) -> RequestBody where Pieces.Element: Sequence<UInt8> {
        RequestBody(
            content: .pieces(length: length) { feed in
                for try await piece in pieces {
                    guard await feed(Array(piece)) else { return }
                }
            })
    }
}
