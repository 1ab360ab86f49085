// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A cookie as a browser keeps it, read in the words of RFC 6265 sections 5.2 and 5.3 and of its successor's section 5.7.
struct JarOracle {
    var name: [UInt8]
    var value: [UInt8]
    /// The domain that it is sent to besides; `nil`: to the host alone that has set it.
    var domain: String?
    /// `nil`: the folder of the request's path.
    var path: [UInt8]?
    var isSecure = false
    /// In lower case; empty where it is none of the three.
    var sameSite = ""
    /// Attributes that mean the same everywhere, as they were written.
    var others: [[UInt8]] = []

    /// `nil` where a browser that speaks to `host` keeps nothing.
    init?(_ bytes: [UInt8], host: String, isSecure secureConnection: Bool) {
        let parts = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let pair = parts.first, let sign = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
        name = Self.trimmed(pair[..<sign])
        value = Self.trimmed(pair[(sign + 1)...])
        guard !name.isEmpty else { return nil }
        var isPartitioned = false
        for part in parts.dropFirst() {
            let sign = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
            let value = Self.trimmed(part[sign...].dropFirst())
            switch String(decoding: Self.trimmed(part[..<sign]), as: UTF8.self).lowercased() {
            case "domain":
                guard !value.isEmpty else { continue }
                let text = String(decoding: value, as: UTF8.self).lowercased()
                domain = text.hasPrefix(".") ? String(text.dropFirst()) : text
            case "path":
                path = value.first == UInt8(ascii: "/") ? value : nil
            case "secure":
                self.isSecure = true
            case "partitioned":
                isPartitioned = true
            case "samesite":
                let text = String(decoding: value, as: UTF8.self).lowercased()
                sameSite = ["none", "lax", "strict"].contains(text) ? text : ""
            default:
                others.append(Array(part))
            }
        }
        if domain?.isEmpty == true { domain = nil }
        if let domain {
            // The same, or a parent of it; the latter stays a domain.
            guard host == domain || host.hasSuffix(".\(domain)") else { return nil }
        }
        if secureConnection { return }
        if self.isSecure || isPartitioned || sameSite == "none" { return nil }
        let start = String(decoding: name, as: UTF8.self).lowercased()
        if start.hasPrefix("__secure-") || start.hasPrefix("__host-") || start.hasPrefix("__http-") { return nil }
    }

    /// RFC 6265 section 5.1.4, for a cookie with a path.
    func isSent(to request: [UInt8]) -> Bool {
        guard let path else { return false }
        guard request.starts(with: path) else { return false }
        return request.count == path.count || path.last == UInt8(ascii: "/")
            || request[path.count] == UInt8(ascii: "/")
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let isBlank = { (byte: UInt8) in byte == 32 || byte == 9 }
        return Array(bytes.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
