// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// The cookies of a session: won by a login, sent with every request that they are for, renewed by what responses set,
/// and kept from callers (RFC 6265 §5.3, §5.4). Shared by all workers.
public final class SessionCookies: Sendable {
    private let jar: Mutex<CookieJar>

    /// The cookies of `jar`.
    public init(_ jar: CookieJar) { self.jar = Mutex(jar) }

    /// Whether a cookie of that name is the session's.
    public func contains(name: String) -> Bool { jar.withLock { $0.contains(name: name) } }

    /// The cookies as they are now.
    var snapshot: CookieJar { jar.withLock { $0 } }

    /// A response sets a cookie: takes it, if it renews or removes one of the session's. `now` in milliseconds since 1970.
    /// Whether it is the session's, and must not reach the caller.
    public func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        guard let name = SetCookie.name(in: setCookie) else { return false }
        return jar.withLock { jar in
            guard jar.contains(name: name) else { return false }
            _ = jar.store(setCookie, from: url, now: now)
            return true
        }
    }

    /// What goes to `url` in one `Cookie` field: of the `callers` lines what the session has no cookie of that name for, then the
    /// session's. `nil` where there is nothing.
    public func merged(with callers: [String], for url: WebURL, now: Int64) -> [UInt8]? {
        let (own, names) = jar.withLock { ($0.header(for: url, now: now), $0.names) }
        var pairs: [UInt8] = []
        for line in callers {
            // By bytes, as the upstream reads them: an `=` with an accent on it is another `Character`.
            for pair in line.utf8.split(separator: UInt8(ascii: ";")) {
                let pair = pair.drop(while: Self.isBlank)
                let name = pair.prefix { $0 != UInt8(ascii: "=") }
                let nameEnd = name.lastIndex { !Self.isBlank($0) }.map(name.index(after:)) ?? name.startIndex
                guard !pair.isEmpty, !names.contains(String(Substring(name[..<nameEnd]))) else { continue }
                if !pairs.isEmpty { pairs += Array("; ".utf8) }
                pairs += Array(pair)
            }
        }
        guard let own else { return pairs.isEmpty ? nil : pairs }
        if !pairs.isEmpty { pairs += Array("; ".utf8) }
        return pairs + own.revealBytes()
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
