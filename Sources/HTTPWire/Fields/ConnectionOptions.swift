// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What the `Connection` fields of a message say (RFC 9110 section 7.6.1).
struct ConnectionOptions: Equatable, Sendable {
    /// Options beyond this many are of no use but to make the comparison with every field expensive.
    private static let maximum = 64

    private(set) var close = false
    private(set) var keepAlive = false
    private(set) var upgrade = false
    /// The tokens that name fields: all but `keep-alive`, whose field goes no further anyway.
    private var nominated: [(name: ByteRange, kind: FieldName)] = []
    private var count = 0

    static func == (one: ConnectionOptions, other: ConnectionOptions) -> Bool {
        one.close == other.close && one.keepAlive == other.keepAlive && one.upgrade == other.upgrade
            && one.nominated.elementsEqual(other.nominated) { $0.name == $1.name }
    }

    /// Adds the list in one value. Empty elements are passed over (RFC 9110 section 5.6.1.2).
    mutating func add(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) {
        var elements = ListElements(value)
        while let element = try elements.next(in: bytes, orThrow: .connectionInvalid) {
            count += 1
            guard count <= ConnectionOptions.maximum else { throw .connectionInvalid }
            if bytes.matches(element, ignoringCase: "close") {
                close = true
                // No field of that name is registered, but a peer can make one up, and it concerns this connection only.
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

    /// Marks the lines that the options name, whatever they are.
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

    /// Returns whether the options, whose ranges mean `bytes`, name a field that stands elsewhere: a trailer field.
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
