// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CHiredis

/// What hiredis has read of a reply so far, in the order in which it came: a list stands before its elements.
final class ReplyPieces {
    private enum Piece {
        case list(Int)
        case value(Reply)
    }

    private let limits: ReplyReader.Limits
    private var pieces: [Piece] = []
    private var elements = 0
    /// The bytes of it, roughly: what an element costs besides is counted, too.
    private(set) var bytes = 0
    /// Why it was not taken.
    private(set) var refusal: ReplyError?

    init(_ limits: ReplyReader.Limits) { self.limits = limits }

    /// All of it as a reply, which is complete; then the next one begins.
    func take() -> Reply? {
        var position = 0
        let reply = build(&position)
        pieces.removeAll(keepingCapacity: pieces.count <= 64)
        elements = 0
        bytes = 0
        return reply
    }

    /// No deeper than hiredis lets lists be.
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

    /// Whether another piece of so many bytes is taken.
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

// What hiredis calls. It wants an object for each piece and looks at none of them: it gets the task's own address, or null
// where the piece is not taken, which it calls a lack of memory.
extension ReplyPieces {
    nonisolated(unsafe) static let functions: UnsafeMutablePointer<redisReplyObjectFunctions> = {
        let functions = UnsafeMutablePointer<redisReplyObjectFunctions>.allocate(capacity: 1)
        unsafe functions.initialize(
            to: redisReplyObjectFunctions(
                createString: { task, text, count in
                    unsafe ReplyPieces.tell(task) { pieces in
                        let bytes = unsafe UnsafeBufferPointer(
                            start: UnsafeRawPointer(text)?.assumingMemoryBound(to: UInt8.self), count: count)
                        switch unsafe task?.pointee.type {
                        case REDIS_REPLY_STATUS:
                            return unsafe pieces.add(.status(String(decoding: bytes, as: UTF8.self)), of: count)
                        case REDIS_REPLY_ERROR:
                            return unsafe pieces.add(.error(String(decoding: bytes, as: UTF8.self)), of: count)
                        default:
                            // They are there, and hiredis does not look at them.
                            guard unsafe text?[count] == 13, unsafe text?[count + 1] == 10 else {
                                return pieces.refuse(.malformed)
                            }
                            return unsafe pieces.add(.string(Array(bytes)), of: count)
                        }
                    }
                },
                createArray: { task, count in
                    unsafe ReplyPieces.tell(task) { $0.addList(of: Int(count)) }
                },
                createInteger: { task, number in
                    unsafe ReplyPieces.tell(task) { $0.add(.integer(number), of: 8) }
                },
                createNil: { task in unsafe ReplyPieces.tell(task) { $0.add(.null, of: 8) } },
                freeObject: { _ in }))
        return unsafe functions
    }()

    private static func tell(
        _ task: UnsafePointer<redisReadTask>?, _ body: (ReplyPieces) -> Bool
    ) -> UnsafeMutableRawPointer? {
        guard let task = unsafe task, let owner = unsafe task.pointee.privdata else { return nil }
        let pieces = unsafe Unmanaged<ReplyPieces>.fromOpaque(owner).takeUnretainedValue()
        return body(pieces) ? unsafe UnsafeMutableRawPointer(mutating: task) : nil
    }
}
