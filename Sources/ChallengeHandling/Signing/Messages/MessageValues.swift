// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Values of the components of one request (RFC 9421 §2.1, §2.2).
struct MessageValues {
    /// Reason why a component has no value, as the end of a sentence that begins with the component.
    struct Missing: Error {
        let reason: String
    }

    private let request: SigningRequest
    /// Lines of the fields that are asked for, trimmed, in the order of sending.
    private var lines: [String: [[UInt8]]] = [:]

    /// Collects the fields that `components` need.
    init(_ request: SigningRequest, for components: [SignedComponent]) {
        self.request = request
        var wanted: [(text: String, bytes: [UInt8])] = [("host", Array("host".utf8))]
        for name in Set(components.lazy.map(\.name)) where !name.hasPrefix("@") && name != "host" {
            wanted.append((name, Array(name.utf8)))
        }
        var lines: [String: [[UInt8]]] = [:]
        request.fields?.forEach { name, value in
            for field in wanted where name.isEqual(toLowercase: field.bytes) {
                lines[field.text, default: []].append(Self.trimmed(value))
            }
        }
        self.lines = lines
    }

    /// Adds a field that the signer itself writes, in place of others of that name.
    mutating func add(_ name: String, _ value: String) { lines[name] = [Array(value.utf8)] }

    /// Returns whether the request has the field of that name in lower case.
    func hasField(_ name: String) -> Bool { lines[name] != nil }

    /// Returns the value of a component, in ASCII.
    func value(of component: SignedComponent) throws(Missing) -> [UInt8] {
        let value = component.name.hasPrefix("@") ? try derived(component) : try field(component)
        // Neither a field nor a target has line ends. Other bytes need `bs` (§2.5).
        guard value.allSatisfy({ $0 < 0x80 && $0 != .lineFeed && $0 != .carriageReturn }) else {
            throw Missing(reason: "has a value that is not ASCII; sign the field with `bs`")
        }
        return value
    }

    // MARK: Derived components

    private func derived(_ component: SignedComponent) throws(Missing) -> [UInt8] {
        switch component.name {
        case "@authority": return Array(authority.utf8)
        case "@method": return Array(request.method.utf8)
        case "@path": return path
        // A question mark alone without a query (§2.2.7).
        case "@query": return [UInt8(ascii: "?")] + query
        case "@query-param":
            let values = QueryParameters.values(of: component.parameter ?? "", in: query)
            guard let value = values.first else { throw Missing(reason: "is not in the request's query") }
            // §2.2.8: a parameter that occurs several times must not be signed.
            guard values.count == 1 else { throw Missing(reason: "occurs several times in the request's query") }
            return value
        case "@request-target": return Array(request.target.utf8)
        case "@scheme": return Array(request.origin.scheme.rawValue.utf8)
        case "@target-uri":
            let target = request.target == "*" ? "" : request.target
            return Array("\(request.origin.scheme.rawValue)://\(authority)\(target)".utf8)
        default: throw Missing(reason: "is not a component of requests")
        }
    }

    private var path: [UInt8] {
        let path = request.target.utf8.prefix { $0 != UInt8(ascii: "?") }
        // OPTIONS * has an empty path, which is normalized to a slash (§2.2.6).
        return path.isEmpty || path.elementsEqual("*".utf8) ? [UInt8(ascii: "/")] : Array(path)
    }

    private var query: Substring.UTF8View {
        guard let mark = request.target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return Substring().utf8 }
        return request.target[mark...].utf8.dropFirst()
    }

    /// `Host` as it is sent, in lower case and without the default port (§2.2.3); without a `Host`, the server's.
    private var authority: String {
        guard let line = lines["host"]?.first else { return request.origin.authority }
        let host = String(decoding: line, as: UTF8.self).lowercased()
        let name = host.lastIndex(of: "]").map { host[$0...] } ?? host[...]
        guard let colon = name.lastIndex(of: ":") else { return host }
        let port = host[colon...].dropFirst()
        let isDefault = port.isEmpty || port == "\(request.origin.scheme.defaultPort)"
        return isDefault ? String(host[..<colon]) : host
    }

    // MARK: Fields

    private func field(_ component: SignedComponent) throws(Missing) -> [UInt8] {
        guard let lines = lines[component.name] else { throw Missing(reason: "is not in the request") }
        if component.isBinary {
            let members = lines.map { StructuredMember.item(StructuredItem(.bytes($0))) }
            return Array(StructuredFieldWriter.text(of: members).utf8)
        }
        let combined = Array(lines.joined(separator: ", ".utf8))
        if let key = component.member { return try member(key, of: combined) }
        return component.isStrict ? try strict(combined, component.name) : combined
    }

    private func member(_ key: String, of field: [UInt8]) throws(Missing) -> [UInt8] {
        guard let dictionary = StructuredFieldParser.dictionary(field) else {
            throw Missing(reason: "is not a dictionary")
        }
        guard let found = dictionary.first(where: { $0.key == key }) else {
            throw Missing(reason: "has no member of that key")
        }
        return Array(StructuredFieldWriter.text(of: found.member).utf8)
    }

    private func strict(_ field: [UInt8], _ name: String) throws(Missing) -> [UInt8] {
        let text: String?
        switch StructuredFields.kind(of: name) {
        case .dictionary?: text = StructuredFieldParser.dictionary(field).map { StructuredFieldWriter.text(of: $0) }
        case .item?: text = StructuredFieldParser.item(field).map { StructuredFieldWriter.text(of: $0) }
        case .list?: text = StructuredFieldParser.list(field).map { StructuredFieldWriter.text(of: $0) }
        case nil: text = nil
        }
        guard let text else { throw Missing(reason: "is not a valid structured field") }
        return Array(text.utf8)
    }

    // MARK: Bytes

    private static func trimmed(_ value: Span<UInt8>) -> [UInt8] {
        var (start, end) = (0, value.count)
        while start < end, value[start].isBlank { start += 1 }
        while end > start, value[end - 1].isBlank { end -= 1 }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(end - start)
        for index in start..<end { bytes.append(value[index]) }
        return bytes
    }
}

/// Parameters of a query, read as a form (RFC 9421 §2.2.8).
enum QueryParameters {
    /// Returns the values of the parameter whose encoded name is `name`, each encoded again.
    static func values(of name: String, in query: some Collection<UInt8>) -> [[UInt8]] {
        let wanted = Array(name.utf8)
        var values: [[UInt8]] = []
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let mark = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard normalized(pair[..<mark]) == wanted else { continue }
            values.append(normalized(pair[mark...].dropFirst()))
        }
        return values
    }

    /// Returns a decoded part of a form, encoded by the "application/x-www-form-urlencoded percent-encode set" with `%20` for
    /// blanks.
    private static func normalized(_ part: some Collection<UInt8>) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in String(decoding: FormEncoding.decodedBytes(part), as: UTF8.self).utf8 {
            let isPlain = byte.isAlphanumeric || [0x2A, 0x2D, 0x2E, 0x5F].contains(byte)
            if isPlain { encoded.append(byte) } else { encoded += Hex.percentEncoded(byte) }
        }
        return encoded
    }
}
