// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A server's own way from a request's path to the path that it serves, written from the server's documentation and not
/// from our code. `nil`: it refuses the path.
struct ServerReading: Sendable {
    let name: String
    let read: @Sendable ([UInt8]) -> [UInt8]?
    /// True if it tells capital letters from small ones.
    var isCaseSensitive = true

    /// Returns whether what it serves is below `folder`, which ends in a slash and has small letters.
    func serves(_ path: [UInt8], below folder: String) -> Bool {
        guard let read = read(path) else { return false }
        let letters = isCaseSensitive ? read : read.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        return letters.starts(with: folder.utf8)
    }

    /// The servers that are known well enough.
    static let all: [ServerReading] = [
        // CoyoteAdapter: parameters go before anything is decoded; then normalize(), which refuses to leave the root.
        ServerReading(name: "Tomcat, %2f refused") { tomcat($0, slash: .refused) },
        ServerReading(name: "Tomcat, %2f decoded") { tomcat($0, slash: .decoded) },
        ServerReading(name: "Tomcat, %2f kept") { tomcat($0, slash: .kept) },
        ServerReading(name: "Tomcat, backslashes allowed") { tomcat($0, slash: .decoded, allowsBackslash: true) },
        // ngx_http_parse_complex_uri: one pass over decoded characters; parameters stay.
        ServerReading(name: "nginx") { resolved(merged(decoded($0))) },
        ServerReading(name: "nginx, merge_slashes off") { resolved(decoded($0)) },
        // ap_normalize_path with unreserved characters decoded, then ap_unescape_url and its like.
        ServerReading(name: "Apache") { path in
            resolved(merged(decoded(path) { isUnreserved($0) })).flatMap { holds($0, "%2f") ? nil : decoded($0) }
        },
        ServerReading(name: "Apache, AllowEncodedSlashes On") { path in
            resolved(merged(decoded(path) { isUnreserved($0) })).flatMap { resolved(merged(decoded($0))) }
        },
        ServerReading(name: "Apache, AllowEncodedSlashes NoDecode") { path in
            resolved(merged(decoded(path) { isUnreserved($0) })).map { decoded($0) { $0 != 0x2F } }
        },
        ServerReading(name: "Apache before 2.4.41") { path in
            holds(path, "%2f") ? nil : resolved(decoded(path), atRoot: .stay)
        },
        // HTTP.sys, and the second decoding of IIS 4 and 5, or of `allowDoubleEscaping`.
        ServerReading(
            name: "IIS", read: { resolved(merged(windows(decoded($0))), atRoot: .stay) }, isCaseSensitive: false),
        ServerReading(
            name: "IIS, decoding twice",
            read: { path in
                resolved(merged(windows(decoded(path))), atRoot: .stay).flatMap {
                    resolved(merged(windows(decoded($0))), atRoot: .stay)
                }
            }, isCaseSensitive: false),
        // URIUtil of Jetty 6 to 9: decodes, drops parameters, resolves.
        ServerReading(name: "Jetty") { resolved(withoutParameters(decoded($0))) },
        // UrlPathHelper of Spring: parameters, decoding, slashes; dot segments are Tomcat's, which has resolved them.
        ServerReading(name: "Spring before anything else") { merged(decoded(withoutParameters($0))) },
        // Resolves first and decodes then, as many frameworks' file servers with a strict front end do.
        ServerReading(name: "RFC 3986, then decoded") { path in resolved(path, atRoot: .stay).map { decoded($0) } },
        ServerReading(name: "RFC 3986 alone") { resolved($0, atRoot: .stay) },
        ServerReading(name: "as it stands") { $0 },
    ]
}

private enum EncodedSlash { case refused, decoded, kept }
private enum AtRoot { case refuse, stay }

extension ServerReading {
    private static func tomcat(_ path: [UInt8], slash: EncodedSlash, allowsBackslash: Bool = false) -> [UInt8]? {
        let bare = withoutParameters(path)
        if slash == .refused, holds(bare, "%2f") { return nil }
        var read = decoded(bare) { slash != .kept || $0 != 0x2F }
        if read.contains(0) || !allowsBackslash && read.contains(0x5C) { return nil }
        read = windows(read)
        return resolved(merged(read))
    }

    private static func withoutParameters(_ path: [UInt8]) -> [UInt8] {
        path.split(separator: 0x2F, omittingEmptySubsequences: false).map { $0.prefix { $0 != 0x3B } }.joined(
            separator: [0x2F])
            .map(\.self)
    }

    private static func windows(_ path: [UInt8]) -> [UInt8] { path.map { $0 == 0x5C ? 0x2F : $0 } }

    private static func merged(_ path: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for byte in path where byte != 0x2F || result.last != 0x2F { result.append(byte) }
        return result
    }

    /// `/a/./b` and `/a/../b` by searching for them from the front, as normalize() of Tomcat does.
    private static func resolved(_ path: [UInt8], atRoot: AtRoot = .refuse) -> [UInt8]? {
        guard path.first == 0x2F else { return nil }
        var done: [[UInt8]] = []
        var rest = path[1...]
        while true {
            let segment = rest.prefix { $0 != 0x2F }
            let isLast = segment.endIndex == rest.endIndex
            rest = isLast ? [] : rest[(segment.endIndex + 1)...]
            if segment.elementsEqual([0x2E, 0x2E]) {
                if done.isEmpty, atRoot == .refuse { return nil }
                _ = done.popLast()
                if isLast { done.append([]) }
            } else if segment.elementsEqual([0x2E]) {
                if isLast { done.append([]) }
            } else {
                done.append(Array(segment))
            }
            if isLast { break }
        }
        return done.flatMap { [0x2F] + $0 }
    }

    private static func decoded(_ path: [UInt8], _ isMeant: (UInt8) -> Bool = { _ in true }) -> [UInt8] {
        var result: [UInt8] = []
        var rest = path[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == 0x25, digits.count == 2, !digits.contains(0x2B), !digits.contains(0x2D),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16), isMeant(value)
            {
                result.append(value)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return result
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~".utf8.contains(byte)
    }

    private static func holds(_ path: [UInt8], _ text: String) -> Bool {
        String(decoding: path, as: UTF8.self).lowercased().contains(text)
    }
}
