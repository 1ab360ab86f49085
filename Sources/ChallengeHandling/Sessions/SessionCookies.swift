// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets
internal import Synchronization

/// Cookies of a session: set by a login, sent with requests, renewed by responses, hidden from callers.
///
/// RFC 6265 §5.3 and §5.4. Shared by all workers.
public final class SessionCookies: Sendable {
    fileprivate struct State: Sendable {
        var jar: CookieJar
        /// Values that were renewed, the latest last.
        var former: [Secret] = []
    }

    /// Number of former values that are kept: a server may repeat one in the answer to a request that was sent before
    /// the renewal.
    fileprivate static let mostFormer = 64

    private let state: Mutex<State>
    private let changes = Atomic<UInt64>(0)
    /// Names of cookies that belong to the session alone. A renewal changes values, never names.
    private let ownNames: [CookieName]

    /// Creates the cookies from `jar`.
    public init(_ jar: CookieJar) {
        state = Mutex(State(jar: jar))
        ownNames = jar.cookies.filter { !$0.reachesCallers }.map(\.name)
    }

    /// Returns true if a cookie of that name belongs to the session.
    public func contains(name: String) -> Bool { state.withLock { $0.jar.contains(name: name) } }

    /// Current cookies.
    package var snapshot: CookieJar { state.withLock { $0.jar } }

    /// Number that grows with each change of the cookies.
    var version: UInt64 { changes.load(ordering: .acquiring) }

    /// Applies a `Set-Cookie` of a response, and returns true if callers must not receive it.
    ///
    /// Only a line that renews or removes one of the session's cookies is applied: the same name, domain and path. A value
    /// that the session had before is withheld as well: for a while, servers accept it. `now` is in ms since 1970.
    public func take(_ setCookie: [UInt8], from url: WebURL, now: Int64) -> Bool {
        // Most cookies in responses belong to the caller, so these are sorted out without the lock.
        guard ownNames.contains(SetCookie.name(in: setCookie)) else { return false }
        return state.withLock { state in
            let before = state.jar
            guard state.jar.renew(setCookie, from: url, now: now) else {
                return !state.former.isEmpty
                    && SetCookie(setCookie, now: now).map { state.former.contains($0.value) } == true
            }
            if state.jar != before {
                state.keep(valuesOf: before)
                changes.wrappingAdd(1, ordering: .releasing)
            }
            return true
        }
    }

    /// Applies the text of a `Set-Cookie`, like `take(_:from:now:)` of its bytes.
    public func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        take(Array(setCookie.utf8), from: url, now: now)
    }

    /// Returns the `Cookie` field for `url`: the callers' cookies, then the session's, or nil.
    ///
    /// Callers' cookies with the name of a session's cookie are dropped.
    public func merged(with callers: [String], for url: WebURL, now: Int64) -> [UInt8]? {
        merged(withLines: callers.map { Array($0.utf8) }, for: url, now: now)
    }

    /// Returns the `Cookie` field for `url`, merged with the bytes of the callers' fields, like `merged(with:for:now:)`.
    package func merged(withLines callers: [[UInt8]], for url: WebURL, now: Int64) -> [UInt8]? {
        let jar = snapshot
        return jar.line(of: jar.choice(for: url, now: now)).merged(with: callers)
    }
}

extension SessionCookies.State {
    /// Keeps the values of the session's own cookies in `before` that are not sent any more.
    fileprivate mutating func keep(valuesOf before: CookieJar) {
        let present = jar.cookies.map(\.value)
        for cookie in before.cookies where !cookie.reachesCallers && !cookie.value.isEmpty {
            guard !present.contains(cookie.value), !former.contains(cookie.value) else { continue }
            if former.count >= SessionCookies.mostFormer { former.removeFirst() }
            former.append(cookie.value)
        }
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
    package func take(_ setCookie: [UInt8], from url: WebURL, now: Int64) -> Bool {
        cookies.take(setCookie, from: url, now: now)
    }

    /// Applies the text of a `Set-Cookie`, like `take(_:from:now:)` of its bytes.
    package func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        take(Array(setCookie.utf8), from: url, now: now)
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
