// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The logins of all upstreams by the key of their session, without its scope. Immutable; made once for a configuration.
package final class LoginIndex: Sendable {
    /// One login at one upstream.
    package struct Entry: Sendable {
        /// The login.
        package let login: Authenticator
        /// The upstream.
        package let plan: UpstreamPlan
        /// The position in the configuration.
        fileprivate let position: Int
    }

    private let entries: [SessionKey: [Entry]]
    private let kept: [SessionKey: Entry]

    /// Makes the index of these upstreams.
    package init(_ plans: [UpstreamPlan]) {
        var (entries, kept): ([SessionKey: [Entry]], [SessionKey: Entry]) = ([:], [:])
        var position = 0
        for plan in plans {
            for login in plan.logins.all {
                let entry = Entry(login: login, plan: plan, position: position)
                position += 1
                entries[login.key.withoutScope, default: []].append(entry)
                guard login.isKept else { continue }
                let key = RouteSessions.Slot(login: login, scope: login.defaultScope).key
                // At several upstreams: the first one keeps the session.
                if kept[key] == nil { kept[key] = entry }
            }
        }
        (self.entries, self.kept) = (entries, kept)
        all = plans.flatMap(\.logins.all)
    }

    /// All logins, in the order of the configuration.
    package let all: [Authenticator]

    /// The number of logins with sessions of their own.
    package var count: Int { entries.count }

    /// The keys of the sessions that are kept without a request.
    package var keptKeys: [SessionKey] { Array(kept.keys) }

    /// True if no session is kept without a request.
    var keepsNone: Bool { kept.isEmpty }

    /// Returns the logins whose sessions have that key, in any scope, in the order of the configuration.
    package func entries(of key: SessionKey) -> [Entry] { entries[key.withoutScope] ?? [] }

    /// Returns the first login of each key, in the order of the configuration. Keys of no login are left out.
    func ordered(_ keys: [SessionKey]) -> [(key: SessionKey, entry: Entry)] {
        Self.ordered(keys) { entries(of: $0).first }
    }

    /// Returns the kept logins of these keys, in the order of the configuration.
    func orderedKept(_ keys: [SessionKey]) -> [(key: SessionKey, entry: Entry)] { Self.ordered(keys) { kept[$0] } }

    private static func ordered(
        _ keys: [SessionKey], _ find: (SessionKey) -> Entry?
    ) -> [(key: SessionKey, entry: Entry)] {
        keys.compactMap { key in find(key).map { (key, $0) } }
            .sorted { ($0.entry.position, $0.key.scope) < ($1.entry.position, $1.key.scope) }
    }
}
