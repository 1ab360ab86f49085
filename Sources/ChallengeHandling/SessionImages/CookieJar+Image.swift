// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

extension CookieJar {
    /// Writes the cookies in their order.
    func write(to writer: inout ImageWriter) {
        writer.append(UInt16(clamping: cookies.count))
        for cookie in cookies {
            writer.append(cookie.name)
            writer.append(cookie.value)
            writer.append(cookie.domain)
            writer.append(byte: (cookie.isHostOnly ? 1 : 0) | (cookie.reachesCallers ? Cookie.callersBit : 0))
            writer.append(cookie.path)
            writer.append(cookie.isSecure)
            writer.append(cookie.expiresAt)
        }
    }

    /// Reads what `write` has written.
    init(_ reader: inout ImageReader) throws(SessionImageError) {
        self.init()
        for _ in 0..<(try reader.count(atMost: Self.limit)) {
            let place = reader.position
            let (name, value, domain) = (try reader.line(), try reader.fieldValue(), try reader.line())
            let kind = try reader.byte()
            var cookie = Cookie(
                name: name, value: value, domain: domain, isHostOnly: kind & 1 == 1, path: try reader.line(),
                isSecure: try reader.flag(), expiresAt: try reader.optionalInt64())
            cookie.reachesCallers = kind & Cookie.callersBit != 0
            guard kind <= 1 | Cookie.callersBit, cookie.isWellFormed, !cookies.contains(where: cookie.isSame) else {
                throw SessionImageError(.malformed, at: place)
            }
            cookies.append(cookie)
        }
    }
}

extension Cookie {
    /// Beside the bit for the host alone: images without such cookies are the same as before there were any.
    fileprivate static let callersBit: UInt8 = 2

    init(
        name: String, value: Secret, domain: String, isHostOnly: Bool, path: String, isSecure: Bool, expiresAt: Int64?
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.expiresAt = expiresAt
    }

    /// Whether it is one pair and no more, as `SetCookie` reads it.
    fileprivate var isWellFormed: Bool {
        let hasSemicolon = value.withBytes { bytes in
            for index in bytes.indices where bytes[index] == UInt8(ascii: ";") { return true }
            return false
        }
        return !name.isEmpty && !name.utf8.contains { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") }
            && !hasSemicolon
            && name.utf8.count + value.count <= CookieJar.sizeLimit && !domain.isEmpty && path.hasPrefix("/")
    }
}

extension ImageReader {
    /// A text without control signs, line ends above all.
    mutating func line() throws(SessionImageError) -> String {
        let start = position
        let text = try text()
        guard text.utf8.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw SessionImageError(.malformed, at: start)
        }
        return text
    }
}
