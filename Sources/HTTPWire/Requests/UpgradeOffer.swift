// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Protocols offered by an `Upgrade` that may be forwarded (RFC 9110 §7.8).
///
/// HTTP itself is left out, in any version: `h2c` is obsolete (RFC 9113 §3.1), and requests within a switched
/// connection would bypass every rule of this side.
public struct UpgradeOffer: Sendable {
    /// Longer lists have no use and are expensive.
    private static let most = 16

    /// Protocols with their versions, in the caller's order, as ranges of the request's head.
    public private(set) var protocols: [ByteRange] = []

    /// Creates the offer of `head`, whose bytes are `bytes`; nil makes the request an ordinary one.
    ///
    /// Nil if nothing is requested, if nothing remains, or if the list is malformed: a server may always ignore an
    /// offer. Nil also if the request has a body, which would have to be sent completely before the connection can
    /// switch.
    public init?(_ head: RequestHead, in bytes: Span<UInt8>) {
        guard head.requestsUpgrade, head.body.isEmpty else { return nil }
        for line in head.fields where line.kind == .upgrade {
            var elements = ProtocolElements(line.value)
            do throws(WireErrorCode) {
                while let element = try elements.next(in: bytes) {
                    guard protocols.count < Self.most else { return nil }
                    if !Self.isHTTP(element, in: bytes) { protocols.append(element) }
                }
            } catch {
                return nil
            }
        }
        if protocols.isEmpty { return nil }
    }

    /// Writes the protocols as one list.
    public func write(_ request: Span<UInt8>, to queue: inout ByteQueue) {
        for (index, element) in protocols.enumerated() {
            if index > 0 { queue.append(", ") }
            queue.append(request.extracting(element.bounds))
        }
    }

    /// Throws unless `head`, in `answer`, is a 101 that switches to an offered protocol.
    ///
    /// Names are compared without regard to case (RFC 9110 §7.8).
    public func check(_ head: ResponseHead, in answer: Span<UInt8>, askedBy request: Span<UInt8>) throws(WireError) {
        do throws(WireErrorCode) {
            guard head.status == 101, head.majorVersion == 1, head.minorVersion > 0, head.connection.upgrade else {
                throw .switchInvalid
            }
            var count = 0
            for line in head.fields where line.kind == .upgrade {
                var elements = ProtocolElements(line.value)
                while let element = try elements.next(in: answer) {
                    guard offers(element, in: answer, askedBy: request) else { throw .switchInvalid }
                    count += 1
                }
            }
            guard count > 0 else { throw .switchInvalid }
        } catch {
            throw WireError(upstream: error)
        }
    }

    private func offers(_ element: ByteRange, in answer: Span<UInt8>, askedBy request: Span<UInt8>) -> Bool {
        protocols.contains { offered in
            guard offered.count == element.count else { return false }
            for index in 0..<offered.count
            where request[offered.start + index].lowercased != answer[element.start + index].lowercased {
                return false
            }
            return true
        }
    }

    private static func isHTTP(_ element: ByteRange, in bytes: Span<UInt8>) -> Bool {
        let end = element.bounds.first { bytes[$0] == UInt8(ascii: "/") } ?? element.end
        let name = ByteRange(start: element.start, end: end)
        return bytes.matches(name, ignoringCase: "h2c") || bytes.matches(name, ignoringCase: "h2")
            || bytes.matches(name, ignoringCase: "http") || bytes.matches(name, ignoringCase: "https")
    }
}

/// Iterator over the list of an `Upgrade` field: `#( token [ "/" token ] )` (RFC 9110 §7.8).
struct ProtocolElements {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = value.start
        end = value.end
    }

    /// Returns the next protocol with its version, or nil at the end.
    mutating func next(in bytes: Span<UInt8>) throws(WireErrorCode) -> ByteRange? {
        // Empty elements are skipped (RFC 9110 §5.6.1.2).
        while position < end, bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") { position += 1 }
        guard position < end else { return nil }
        let start = position
        position = bytes.endOfToken(from: start, to: end)
        guard position > start else { throw .switchInvalid }
        if position < end, bytes[position] == UInt8(ascii: "/") {
            let version = position + 1
            position = bytes.endOfToken(from: version, to: end)
            guard position > version else { throw .switchInvalid }
        }
        let element = ByteRange(start: start, end: position)
        while position < end, bytes[position].isBlank { position += 1 }
        guard position == end || bytes[position] == UInt8(ascii: ",") else { throw .switchInvalid }
        return element
    }
}
