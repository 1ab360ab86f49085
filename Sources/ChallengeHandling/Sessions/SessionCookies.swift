// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// Cookies of a session: set by a login, sent with requests, renewed by responses, hidden from callers.
///
/// RFC 6265 §5.3 and §5.4. Shared by all workers.
public final class SessionCookies: Sendable {
    private let jar: Mutex<CookieJar>
    private let changes = Atomic<UInt64>(0)
    /// Names of cookies that belong to the session alone. A renewal changes values, never names.
    private let ownNames: [String]

    /// Creates the cookies from `jar`.
    public init(_ jar: CookieJar) {
        self.jar = Mutex(jar)
        ownNames = jar.cookies.filter { !$0.reachesCallers }.map(\.name)
    }

    /// Returns true if a cookie of that name belongs to the session.
    public func contains(name: String) -> Bool { jar.withLock { $0.contains(name: name) } }

    /// Current cookies.
    package var snapshot: CookieJar { jar.withLock { $0 } }

    /// Number that grows with each change of the cookies.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Applies a `Set-Cookie` of a response, and returns true if callers must not receive it.
    ///
    /// Only a line that renews or removes one of the session's cookies is applied: the same name, domain and path.
    /// `now` is in ms since 1970.
    public func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        // Most cookies in responses belong to the caller, so these are sorted out without the lock.
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

    /// Returns the `Cookie` field for `url`: the callers' cookies, then the session's, or nil.
    ///
    /// Callers' cookies with the name of a session's cookie are dropped.
    public func merged(with callers: [String], for url: WebURL, now: Int64) -> [UInt8]? {
        let jar = snapshot
        return jar.line(of: jar.choice(for: url, now: now)).merged(with: callers.map { Array($0.utf8) })
    }
}

/// One worker's view of a session's cookies.
///
/// Each line is made once for all requests with the same cookies, and the lock is taken only after a change.
package final class SessionCookieView {
    /// Maximum number of cached lines: paths with the same cookies share one.
    static let mostLines = 4

    private let cookies: SessionCookies
    private var jar = CookieJar()
    private var version: UInt64?
    private var origin: Origin?
    /// Cookies that are sent to some path of `origin`.
    private var candidates: UInt64 = 0
    /// Cached lines by their cookies. If the cache is full, a new line replaces the one after `latest`.
    private var lines: [(choice: UInt64, line: CookieLine)] = []
    private var latest = 0

    /// Creates a view of `cookies` for one thread.
    package init(_ cookies: SessionCookies) { self.cookies = cookies }

    /// Applies a `Set-Cookie` of a response, like `SessionCookies.take`.
    package func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        cookies.take(setCookie, from: url, now: now)
    }

    /// Returns the cookies of a request to `path` at `origin`; `now` in ms since 1970.
    package func line(to origin: Origin, path: Span<UInt8>, now: Int64) -> CookieLine {
        // Read first: a later change makes the next request take another snapshot.
        let version = cookies.version
        if version != self.version || origin != self.origin {
            let fresh = cookies.snapshot
            // A server that moves the expiry of its cookies with each response leaves the lines unchanged.
            if !fresh.isSent(as: jar) { lines = [] }
            (jar, self.version, self.origin) = (fresh, version, origin)
            candidates = fresh.choice(for: origin)
        }
        let choice = jar.choice(of: candidates, below: path, now: now)
        for index in lines.indices where lines[index].choice == choice { return lines[index].line }
        let line = jar.line(of: choice)
        if lines.count < Self.mostLines {
            lines.append((choice, line))
        } else {
            latest = (latest + 1) % Self.mostLines
            lines[latest] = (choice, line)
        }
        return line
    }
}
