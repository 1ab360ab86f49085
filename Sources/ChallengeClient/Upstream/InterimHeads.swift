// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The heads of interim responses (RFC 9110 §15.2) on their way from libcurl to the owner of the transfer.
struct InterimHeads: ~Copyable {
    /// How many there may be before the final head.
    static let maximum = 64
    /// How many bytes they may have together.
    static let limit = 64 * 1024

    private var bytes = ByteQueue()
    private var lengths: [Int] = []
    private var count = 0
    private var size = 0

    /// True if none waits.
    var isEmpty: Bool { lengths.isEmpty }

    /// Adds a well-formed head with its empty line. False where there were too many before.
    mutating func append(_ head: Span<UInt8>) -> Bool {
        count += 1
        size += head.count
        guard count <= Self.maximum, size <= Self.limit else { return false }
        bytes.append(head)
        lengths.append(head.count)
        return true
    }

    /// Hands out those that wait, in their order.
    mutating func take(_ body: (_ head: ResponseHead, _ bytes: Span<UInt8>) -> Void) {
        var scanner = ResponseHeadScanner()
        for length in lengths {
            bytes.withSpan { all in
                let bytes = all.extracting(0..<min(length, all.count))
                guard case .some = try? scanner.scan(bytes) else { return }
                body(scanner.head, bytes)
            }
            bytes.consume(length)
        }
        lengths = []
    }

    /// Forgets them, and how many there were.
    mutating func removeAll() {
        guard count > 0 else { return }
        bytes.removeAll(keepingCapacity: 0)
        lengths = []
        count = 0
        size = 0
    }
}
