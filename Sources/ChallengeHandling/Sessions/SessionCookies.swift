// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// The cookies of a session: won by a login, sent with every request that they are for, renewed by what responses set,
/// and kept from callers (RFC 6265 §5.3, §5.4). Shared by all workers.
public final class SessionCookies: Sendable {
    private let jar: Mutex<CookieJar>
    private let changes = Atomic<UInt64>(0)

    /// The cookies of `jar`.
    public init(_ jar: CookieJar) { self.jar = Mutex(jar) }

    /// Whether a cookie of that name is the session's.
    public func contains(name: String) -> Bool { jar.withLock { $0.contains(name: name) } }

    /// The cookies as they are now.
    var snapshot: CookieJar { jar.withLock { $0 } }

    /// A number that grows with each change of the cookies.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Takes a `Set-Cookie` of a response from `url`, if it renews or removes one of the session's cookies: the same name, domain
    /// and path. `now` in milliseconds since 1970. Returns whether the line must not reach the caller.
    public func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        jar.withLock { jar in
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

/// One worker's view of a session's cookies. The field is made once for all requests that carry the same cookies, and the lock
/// is taken after a change only.
package final class SessionCookieView {
    private let cookies: SessionCookies
    private var jar = CookieJar()
    private var version: UInt64?
    private var last: (choice: UInt64, line: CookieLine)?

    /// A view of `cookies`, for one thread.
    package init(_ cookies: SessionCookies) { self.cookies = cookies }

    /// Takes a `Set-Cookie` of a response, as `SessionCookies.take` does.
    package func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        cookies.take(setCookie, from: url, now: now)
    }

    /// One `Cookie` field for a request to `url`: what a caller sends in `lines`, less its cookies of the names that the session
    /// sends, and the session's (RFC 6265 §5.4). `nil` where nothing goes.
    package func merged(with lines: [[UInt8]], for url: WebURL, now: Int64) -> [UInt8]? {
        // Read first: a change during what follows brings another snapshot with the next request.
        let version = cookies.version
        if version != self.version {
            jar = cookies.snapshot
            self.version = version
            last = nil
        }
        let choice = jar.choice(for: url, now: now)
        if let last, last.choice == choice { return last.line.merged(with: lines) }
        let line = jar.line(of: choice)
        last = (choice, line)
        return line.merged(with: lines)
    }
}
