// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The body of a request: nothing, bytes that are there, or pieces that are still to come.
public struct RequestBody: Sendable {
    /// Hands one piece over; returns whether more is wanted, once there is room for it.
    typealias Feed = @Sendable ([UInt8]) async -> Bool

    enum Content: Sendable {
        case bytes([UInt8])
        case none
        case pieces(length: UInt64?, @Sendable (_ feed: Feed) async throws -> Void)
    }

    let content: Content

    /// No body.
    public static let none = RequestBody(content: .none)

    /// These bytes.
    public static func bytes(_ bytes: some Sequence<UInt8>) -> RequestBody {
        RequestBody(content: .bytes(Array(bytes)))
    }

    /// The UTF-8 bytes of `text`.
    public static func text(_ text: String) -> RequestBody { .bytes(text.utf8) }

    /// Pieces as they come. The next one is asked for only when there is room for it, so a slow server holds the sequence back;
    /// of what has gone, `ClientConfiguration.Limits.replay` says how much is kept.
    ///
    /// `length`: how many bytes there will be, where that is known; then exactly so many must come, or the request fails as
    /// `requestBody`. Without it the body goes out in chunks (RFC 9112 section 7.1). An error that the sequence throws ends
    /// the request as `requestBody`.
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
