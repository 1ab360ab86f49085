// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// The cookies of a session: won by a login, sent with every request that they are for, renewed by what responses set,
/// and kept from callers (RFC 6265 §5.3, §5.4). Shared by all workers.
public final class SessionCookies: Sendable {
    private let jar: Mutex<CookieJar>
    private let changes = Atomic<UInt64>(0)
    /// The names of cookies that belong to the session alone. A renewal changes values, and no name.
    private let ownNames: [String]

    /// The cookies of `jar`.
    public init(_ jar: CookieJar) {
        self.jar = Mutex(jar)
        ownNames = jar.cookies.filter { !$0.reachesCallers }.map(\.name)
    }

    /// Whether a cookie of that name is the session's.
    public func contains(name: String) -> Bool { jar.withLock { $0.contains(name: name) } }

    /// The cookies as they are now.
    var snapshot: CookieJar { jar.withLock { $0 } }

    /// A number that grows with each change of the cookies.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Takes a `Set-Cookie` of a response from `url`, if it renews or removes one of the session's cookies: the same name, domain
    /// and path. `now` in milliseconds since 1970. Returns whether the line must not reach the caller.
    public func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        // Most that answers set is the caller's, and nobody waits for it.
        guard let name = SetCookie.name(in: setCookie),
            ownNames.contains(where: { $0.utf8.elementsEqual(name.utf8) })
        else { return false }
        return jar.withLock { jar in
            let before = jar
            let isHeld = jar.renew(setCookie, from: url, now: now)
            if isHeld, jar != before { changes.wrappingAdd(1, ordering: .releasing) }
            return isHeld
        }
    }

    /// What goes to `url` in one `Cookie` field: of the `callers` lines what the session sends no cookie of that name for, then the
    /// session's. `nil` where there is nothing.
    public func merged(with callers: [String], for url: WebURL, now: Int64) -> [UInt8]? {
        let jar = snapshot
        return jar.line(of: jar.choice(for: url, now: now)).merged(with: callers.map { Array($0.utf8) })
    }
}
