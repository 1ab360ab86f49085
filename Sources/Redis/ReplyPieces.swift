// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CHiredis

/// Pieces of a reply that hiredis has read so far. A list comes before its elements.
final class ReplyPieces {
    private enum Piece {
        case list(Int)
        case value(Reply)
    }

    private let limits: ReplyReader.Limits
    private var pieces: [Piece] = []
    private var elements = 0
    /// Approximate size, with a cost for each element.
    private(set) var bytes = 0
    /// The reason for refusing the reply.
    private(set) var refusal: ReplyError?

    init(_ limits: ReplyReader.Limits) { self.limits = limits }

    /// Returns the complete reply, and begins the next one.
    func takeReply() -> Reply? {
        var position = 0
        let reply = build(&position)
        pieces.removeAll(keepingCapacity: pieces.count <= 64)
        elements = 0
        bytes = 0
        return reply
    }

    /// Builds a reply; hiredis limits the depth.
    private func build(_ position: inout Int) -> Reply? {
        guard pieces.indices.contains(position) else { return nil }
        let piece = pieces[position]
        position += 1
        switch piece {
        case .value(let reply): return reply
        case .list(let count):
            var elements: [Reply] = []
            elements.reserveCapacity(count)
            for _ in 0..<count {
                guard let element = build(&position) else { return nil }
                elements.append(element)
            }
            return .array(elements)
        }
    }

    private func refuse(_ error: ReplyError) -> Bool {
        refusal = refusal ?? error
        return false
    }

    /// Counts a piece of that many bytes; returns false if it exceeds the limits.
    private func admit(_ count: Int) -> Bool {
        guard count <= limits.bytes - bytes else { return refuse(.tooLong) }
        bytes += count
        return true
    }

    private func add(_ reply: Reply, of count: Int) -> Bool {
        guard admit(count) else { return false }
        pieces.append(.value(reply))
        return true
    }

    private func addList(of count: Int) -> Bool {
        guard count <= limits.elements - elements else { return refuse(.tooManyElements) }
        guard admit(8) else { return false }
        elements += count
        pieces.append(.list(count))
        return true
    }
}

// Callbacks of hiredis, which wants an object for each piece but does not use it. It gets the address of the task, or
// null for a refused piece, which it reports as a lack of memory.
extension ReplyPieces {
    nonisolated(unsafe) static let functions: UnsafeMutablePointer<redisReplyObjectFunctions> = {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        unsafe functions.initialize(
            to: redisReplyObjectFunctions(
                createString: { task, text, count in
                    unsafe ReplyPieces.add(to: task) { pieces in
                        let bytes = unsafe UnsafeBufferPointer(
                            start: UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self), count: count)
                        switch unsafe task?.pointee.type {
                        case REDIS_REPLY_STATUS:
                            return unsafe pieces.add(.status(String(decoding: bytes, as: UTF8.self)), of: count)
                        case REDIS_REPLY_ERROR:
                            return unsafe pieces.add(.error(String(decoding: bytes, as: UTF8.self)), of: count)
                        default:
                            // These two bytes exist, and hiredis does not check them.
                            guard unsafe text?[count] == 13, unsafe text?[count + 1] == 10 else {
                                return pieces.refuse(.malformed)
                            }
                            return unsafe pieces.add(.string(Array(bytes)), of: count)
                        }
                    }
                },
                createArray: { task, count in
                    unsafe ReplyPieces.add(to: task) { $0.addList(of: Int(count)) }
                },
                createInteger: { task, number in
                    unsafe ReplyPieces.add(to: task) { $0.add(.integer(number), of: 8) }
                },
                createNil: { task in unsafe ReplyPieces.add(to: task) { $0.add(.null, of: 8) } },
                freeObject: { _ in }))
        return unsafe functions
    }()

    private static func add(
        to task: UnsafePointer<redisReadTask>?, _ body: (ReplyPieces) -> Bool
    ) -> UnsafeMutableRawPointer? {
        guard let task = unsafe task, let owner = unsafe task.pointee.privdata else { return nil }
        let pieces = unsafe Unmanaged<ReplyPieces>.fromOpaque(owner).takeUnretainedValue()
        return body(pieces) ? unsafe UnsafeMutableRawPointer(mutating: task) : nil
    }
}
