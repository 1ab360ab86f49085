// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The protocols that a request asks its connection to be switched to, and that may go further (RFC 9110 section 7.8).
///
/// Not HTTP itself, in whatever version: `h2c` is no more (RFC 9113 section 3.1), and requests within a connection that
/// was switched would meet none of the rules of this side.
public struct UpgradeOffer: Sendable {
    /// Longer lists have no use but to be expensive.
    private static let most = 16

    /// The protocols with their versions, in the caller's order, as ranges into the request's head.
    public private(set) var protocols: [ByteRange] = []

    /// The offer of `head`, which `bytes` hold. Nil where there is none to be taken, and the request is an ordinary one, as
    /// a server may always take it: nothing asked for, nothing left to ask for, or a list that cannot be read. So it is
    /// where the request has a body, which would have to cross whole before the connection can switch.
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

    /// Throws unless `head` (in `answer`) is a 101 that names what it switches to, and nothing that `request` has not asked
    /// for. Names are compared without regard to case (RFC 9110 section 7.8).
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
