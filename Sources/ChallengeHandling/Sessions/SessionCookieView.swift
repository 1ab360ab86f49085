// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One worker's view of a session's cookies. Each line is made once for all requests that carry the same cookies, and the lock is
/// taken after a change only.
package final class SessionCookieView {
    /// How many lines are kept, at most: paths at which the same cookies go share one.
    static let mostLines = 4

    private let cookies: SessionCookies
    private var jar = CookieJar()
    private var version: UInt64?
    private var origin: Origin?
    /// The cookies that go to some path of `origin`.
    private var candidates: UInt64 = 0
    /// The lines that were made, by their cookies. Where there is no room, a new one takes the place behind `latest`.
    private var lines: [(choice: UInt64, line: CookieLine)] = []
    private var latest = 0

    /// A view of `cookies`, for one thread.
    package init(_ cookies: SessionCookies) { self.cookies = cookies }

    /// Takes a `Set-Cookie` of a response, as `SessionCookies.take` does.
    package func take(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        cookies.take(setCookie, from: url, now: now)
    }

    /// The cookies that a request to `path` at `origin` carries at `now`, in milliseconds since 1970.
    package func line(to origin: Origin, path: Span<UInt8>, now: Int64) -> CookieLine {
        // Read first: a change during what follows brings another snapshot with the next request.
        let version = cookies.version
        if version != self.version || origin != self.origin {
            let fresh = cookies.snapshot
            // A server that moves the end of its cookies with each answer has the same lines made once.
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
