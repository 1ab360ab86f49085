// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

extension CookieJar {
    /// Names of double-submit tokens against forged requests. Pages read these cookies, so callers need them as well.
    public static let doubleSubmitNames: Set<String> = [
        "CSRF-TOKEN", "XSRF-TOKEN", "_csrf", "_xsrf", "csrf_token", "csrftoken",
    ]

    /// Gives the cookies of these names to callers as well: what a response sets by them passes, and a caller's own value takes
    /// the place of the one that is kept.
    mutating func pass(names: Set<String>) {
        for index in cookies.indices { cookies[index].reachesCallers = names.contains(cookies[index].name) }
    }

    /// True if a cookie belongs to the session alone.
    var hasOwn: Bool { cookies.contains { !$0.reachesCallers } }

    /// Takes a `Set-Cookie` of a response to a request with these cookies: one of the same name, domain and path renews or removes
    /// ours (RFC 6265 §5.3, step 11), and any other belongs to the caller. Returns whether the line must not reach the caller.
    mutating func renew(_ setCookie: String, from url: WebURL, now: Int64) -> Bool {
        guard let name = SetCookie.name(in: setCookie) else { return false }
        let namesakes = cookies.indices.filter {
            !cookies[$0].reachesCallers && cookies[$0].name.utf8.elementsEqual(name.utf8)
        }
        guard !namesakes.isEmpty else { return false }
        // No user agent keeps such a line, and what it holds may be the session's.
        guard let line = SetCookie(setCookie, now: now), let cookie = Cookie(line, from: url) else { return true }
        if let index = namesakes.first(where: { cookies[$0].isSame(as: cookie) }) {
            // What came over TLS is not overwritten by what came without (RFC 6265bis §5.7, step 16).
            let isWeaker = cookies[index].isSecure && !cookie.isSecure && !Cookie.isTrustworthy(url.origin)
            // A removed one stays as one that has ended: what is set in its place a moment later is the session's, too.
            if !isWeaker { cookies[index] = cookie }
            return true
        }
        return namesakes.contains { index in
            // The session's value under another path is still the session's value. A line without a path, in answer to a
            // request that carried the cookie, may renew it by a server that is not exact. It is kept from everybody.
            cookies[index].value == cookie.value || line.path == nil && cookies[index].goes(to: url)
        }
    }
}
