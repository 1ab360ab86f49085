// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Options of a message's `Connection` fields (RFC 9110 §7.6.1).
struct ConnectionOptions: Equatable, Sendable {
    /// More options have no use and would make the comparison with every field expensive.
    private static let maximum = 64

    private(set) var close = false
    private(set) var keepAlive = false
    private(set) var upgrade = false
    /// Tokens that name fields: all but `keep-alive`, whose field is never forwarded anyway.
    private var nominated: [(name: ByteRange, kind: FieldName)] = []
    private var count = 0

    static func == (one: ConnectionOptions, other: ConnectionOptions) -> Bool {
        one.close == other.close && one.keepAlive == other.keepAlive && one.upgrade == other.upgrade
            && one.nominated.elementsEqual(other.nominated) { $0.name == $1.name }
    }

    /// Adds the list in one value; empty elements are skipped (RFC 9110 §5.6.1.2).
    mutating func add(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) {
        var elements = ListElements(value)
        while let element = try elements.next(in: bytes, orThrow: .connectionInvalid) {
            count += 1
            guard count <= ConnectionOptions.maximum else { throw .connectionInvalid }
            if bytes.matches(element, ignoringCase: "close") {
                close = true
                // No field of that name is registered, but a peer can invent one, and it concerns this connection only.
                nominated.append((element, .other))
            } else if bytes.matches(element, ignoringCase: "keep-alive") {
                keepAlive = true
            } else {
                let kind = FieldName(bytes, element)
                if kind == .upgrade { upgrade = true }
                nominated.append((element, kind))
            }
        }
    }

    /// Marks the lines that the options name, whatever their kind.
    func mark(_ lines: inout [FieldLine], in bytes: Span<UInt8>) {
        guard !nominated.isEmpty else { return }
        for index in lines.indices {
            lines[index].isNominated = names(lines[index], in: bytes)
        }
    }

    private func names(_ line: FieldLine, in bytes: Span<UInt8>) -> Bool {
        nominated.contains { option in
            if line.kind != .other || option.kind != .other { return line.kind == option.kind }
            return bytes.matches(line.name, ignoringCase: option.name)
        }
    }

    /// Returns true if the options, as ranges of `bytes`, name this trailer field.
    func names(_ name: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        nominated.contains { option in
            let option = bytes.extracting(option.name.bounds)
            guard option.count == name.count else { return false }
            for index in name.indices where option[index].lowercased != name[index].lowercased { return false }
            return true
        }
    }

    @inline(__always)
    mutating func removeAll() {
        close = false
        keepAlive = false
        upgrade = false
        count = 0
        if !nominated.isEmpty { nominated.removeAll(keepingCapacity: true) }
    }
}

/// Iterator over a comma-separated list of tokens, `#token` (RFC 9110 §5.6.1).
struct ListElements {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = value.start
        end = value.end
    }

    /// Returns the next token, or nil at the end; throws `error` at anything but a token.
    mutating func next(
        in bytes: Span<UInt8>, orThrow error: WireErrorCode
    ) throws(WireErrorCode) -> ByteRange? {
        // Empty elements are skipped (RFC 9110 §5.6.1.2).
        while position < end, bytes[position].isBlank || bytes[position] == UInt8(ascii: ",") { position += 1 }
        guard position < end else { return nil }
        let start = position
        position = bytes.endOfToken(from: position, to: end)
        let element = ByteRange(start: start, end: position)
        while position < end, bytes[position].isBlank { position += 1 }
        guard !element.isEmpty, position == end || bytes[position] == UInt8(ascii: ",") else { throw error }
        return element
    }
}
