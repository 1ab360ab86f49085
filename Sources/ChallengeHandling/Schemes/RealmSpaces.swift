// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Which realm is where at an upstream, as its challenges tell: for logins with different realms that stand at one place, of
/// which a request can carry the answer of one only.
///
/// A challenge at an address holds for all in its folder and below (RFC 7617 §2.2), but for what another claims.
public final class RealmSpaces: Sendable {
    /// What is known of a place.
    enum Membership {
        case mine
        case another
        case unknown
    }

    private struct Known {
        var realms: [Substring: String] = [:]
        var order: [Substring] = []
    }

    private static let most = 256
    private let known = Mutex(Known())
    private let changes = Atomic<UInt64>(0)

    /// Nothing known.
    public init() {}

    /// `realm` was asked for at `url`. Whether that is news.
    func learn(_ realm: String, at url: WebURL) -> Bool {
        known.withLock { known in
            guard Self.realm(url.path[...], in: known.realms) != realm else { return false }
            let folder = Self.folder(url.path[...])
            if known.realms.updateValue(realm, forKey: folder) == nil { known.order.append(folder) }
            if known.order.count > Self.most { known.realms[known.order.removeFirst()] = nil }
            changes.wrappingAdd(1, ordering: .releasing)
            return true
        }
    }

    /// Whether a request for `target` is one for `realm`.
    func membership(of realm: String, at target: String) -> Membership {
        Self.membership(of: realm, at: target, in: known.withLock(\.realms))
    }

    /// The realms that are known now, by folders, and the number of changes until then.
    fileprivate var snapshot: (realms: [Substring: String], version: UInt64) {
        // Read first: a change during what follows is seen by the next request.
        let version = version
        return (known.withLock(\.realms), version)
    }

    fileprivate var version: UInt64 { changes.load(ordering: .acquiring) }

    fileprivate static func membership(of realm: String, at target: String, in realms: [Substring: String])
        -> Membership
    {
        let path = Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") })
        guard let found = Self.realm(path, in: realms) else { return .unknown }
        return found == realm ? .mine : .another
    }

    private static func realm(_ path: Substring, in realms: [Substring: String]) -> String? {
        guard !realms.isEmpty else { return nil }
        var folder = folder(path)
        while !folder.isEmpty {
            if let realm = realms[folder] { return realm }
            folder = self.folder(folder.dropLast())
        }
        return nil
    }

    /// What ends with the last slash.
    private static func folder(_ path: Substring) -> Substring {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return path[...slash]
    }
}

/// One worker's view of what is known: the lock is taken after a change only.
struct RealmSpaceView {
    private let spaces: RealmSpaces
    private var known: (realms: [Substring: String], version: UInt64)

    init(_ spaces: RealmSpaces) {
        self.spaces = spaces
        known = spaces.snapshot
    }

    /// As `RealmSpaces.membership`.
    mutating func membership(of realm: String, at target: String) -> RealmSpaces.Membership {
        if spaces.version != known.version { known = spaces.snapshot }
        return RealmSpaces.membership(of: realm, at: target, in: known.realms)
    }
}
