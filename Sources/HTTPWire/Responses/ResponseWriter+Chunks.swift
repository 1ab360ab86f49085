// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The chunked coding, written (RFC 9112 section 7.1).
extension ResponseWriter {
    /// The most that `chunkHead` and `chunkTail` add to a chunk's data, in bytes.
    public static var chunkOverhead: Int { 20 }

    /// The size of a chunk that follows. An empty chunk would end the body: for a size of zero or less nothing is written,
    /// and `chunkTail` must not follow.
    public static func chunkHead(_ size: Int, to queue: inout ByteQueue) {
        guard size > 0 else { return }
        queue.append(hexadecimal: UInt64(size))
        queue.append("\r\n")
    }

    /// What follows the data of a chunk.
    public static func chunkTail(to queue: inout ByteQueue) {
        queue.append("\r\n")
    }

    /// A whole chunk; nothing where there is no data.
    public static func chunk(_ data: Span<UInt8>, to queue: inout ByteQueue) {
        guard !data.isEmpty else { return }
        queue.reserve(data.count + chunkOverhead)
        chunkHead(data.count, to: &queue)
        queue.append(data)
        chunkTail(to: &queue)
    }

    /// The last chunk. Trailer fields may be written behind it with `field`, and then `endOfHead` must be.
    public static func lastChunk(to queue: inout ByteQueue) {
        queue.append("0\r\n")
    }

    /// The last chunk and the end of a body without trailers.
    public static func endOfChunks(to queue: inout ByteQueue) {
        queue.append("0\r\n\r\n")
    }
}
