// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import HTTPTypes

/// Where callers connect, who they may be, and where their requests go.
package struct ListenerSettings: Sendable, Equatable {
    /// The address.
    package var address: ListenAddress
    /// Where requests go that no route takes; `nil` makes them `no-route`.
    package var upstream: String?
    /// Host names accepted besides the loopback names and the address itself, in lower case, without ports.
    package var hosts: [String]
    /// The callers allowed; `nil` is everybody.
    package var users: [UserReference]?
    /// The most callers connected at once; `nil`: `limits.callers` alone bounds them.
    package var callers: Int?
    /// The routes, the first that takes a request wins.
    package var routes: [RouteSettings]
    /// The requests of browsers that are served.
    package var browsers: BrowserPolicy
    /// Whether it answers another proxy's sub-requests in place of forwarding.
    package var isAuthority = false
}

/// Host, path, methods and users of a local request → upstream. What is `nil` takes all.
package struct RouteSettings: Sendable, Equatable {
    /// The host name in lower case, without a port.
    package var host: String?
    /// What the path begins with, from its slash on. `/a/` takes what is below, `/a` that and `/a` itself.
    package var path: String?
    /// The methods.
    package var methods: [HTTPRequest.Method]?
    /// The callers; the listener's own list holds besides.
    package var users: [UserReference]?
    /// The upstream's name.
    package var upstream: String
    /// Whether `path` is taken off before the rest is appended to the upstream's.
    package var stripPrefix: Bool
}

/// The requests of browsers that a listener serves.
package enum BrowserPolicy: Sendable, Equatable {
    /// Those of any page.
    case allow
    /// Those of the listener's own pages; any other is answered 403.
    case refuse
    /// Those of its own pages and of pages from these origins, in lower case and without a default port.
    case origins([String])
}

/// Where health, metrics and status are served.
package struct AdminSettings: Sendable, Equatable {
    /// The addresses. Those over TCP are loopback, and read-only. Empty: `admin.sock` in the runtime directory.
    package var addresses: [ListenAddress]
}
