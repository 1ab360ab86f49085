// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Protection spaces of an upstream's realms, learned from its challenges. They serve several logins for different
/// realms at one location: a request can carry only one of their answers.
///
/// A challenge at an address applies to its folder and everything below (RFC 7617 §2.2), except paths that another
/// challenge claims.
public final class RealmSpaces: Sendable {
    /// Folders of one upstream for each of its realms.
    private static let foldersPerRealm = 4
    /// The fewest folders that are known, however few realms are configured.
    private static let fewest = 256

    private let state: Mutex<State>
    private let changes = Atomic<UInt64>(0)

    private struct State {
        let limit: Int
        var known = KnownRealms()
        var fullness = Fullness.never
    }

    private enum Fullness {
        case never
        /// A folder was forgotten, which no login has reported.
        case unreported
        case reported
    }

    /// Creates spaces without any knowledge.
    public convenience init() { self.init(realms: 0) }

    /// Creates spaces for that number of configured realms.
    init(realms: Int) {
        state = Mutex(State(limit: max(Self.fewest, realms * Self.foldersPerRealm)))
    }

    /// Records that `realm` was required at `url`. Returns whether that is new.
    ///
    /// If there are too many folders, the one that no request has used for the longest time is forgotten.
    func learn(_ realm: String, at url: WebURL) -> Bool {
        state.withLock { state in
            guard state.known.realm(at: url.path) != realm else { return false }
            let now = changes.wrappingAdd(1, ordering: .releasing).newValue
            if state.known.store(realm, at: url.path, limit: state.limit, now: now), state.fullness == .never {
                state.fullness = .unreported
            }
            return true
        }
    }

    /// Returns, once, a sentence for the log if folders were forgotten because there are too many.
    func takeReport() -> String? {
        state.withLock { state in
            guard state.fullness == .unreported else { return nil }
            state.fullness = .reported
            return
                "realms were met in more than \(state.limit) folders of the upstream: those that no request used for the "
                + "longest time are forgotten, and a request there is challenged again. Use a location pattern for each realm"
        }
    }

    /// The known realms, and the number of changes up to then.
    fileprivate var snapshot: (realms: KnownRealms, version: UInt64) {
        // Read first: the next request sees a later change.
        let version = version
        return (state.withLock(\.known), version)
    }

    fileprivate var version: UInt64 { changes.load(ordering: .acquiring) }
}

/// Realms by folder.
private struct KnownRealms {
    /// Realm of a folder.
    private final class Space: Sendable {
        let realm: String
        /// Number of changes when a request last used the folder.
        let usedAt: Atomic<UInt64>

        init(_ realm: String, usedAt: UInt64) {
            self.realm = realm
            self.usedAt = Atomic(usedAt)
        }
    }

    private var spaces: [Substring: Space] = [:]
    /// Lengths of the folders in bytes, with their number: only folders of these lengths are looked up.
    private var lengths: [Int: Int] = [:]

    /// Returns the realm of the nearest known folder above `path`, whose query is dropped.
    func realm(at path: String, now: UInt64? = nil) -> String? {
        guard !spaces.isEmpty else { return nil }
        var folder = Self.folder(Substring(path.utf8.prefix { $0 != UInt8(ascii: "?") }))
        while !folder.isEmpty {
            if lengths[folder.utf8.count] != nil, let space = spaces[folder] {
                if let now, space.usedAt.load(ordering: .relaxed) < now { space.usedAt.store(now, ordering: .relaxed) }
                return space.realm
            }
            folder = Self.folder(folder.dropLast())
        }
        return nil
    }

    /// Stores the realm of the folder of `path`. Returns whether another folder had to make room.
    mutating func store(_ realm: String, at path: String, limit: Int, now: UInt64) -> Bool {
        let folder = Self.folder(path[...])
        if spaces.updateValue(Space(realm, usedAt: now), forKey: folder) == nil {
            lengths[folder.utf8.count, default: 0] += 1
        }
        guard spaces.count > limit,
            let oldest = spaces.filter({ $0.key != folder }).min(by: {
                $0.value.usedAt.load(ordering: .relaxed) < $1.value.usedAt.load(ordering: .relaxed)
            })?.key
        else { return false }
        spaces[oldest] = nil
        let left = (lengths[oldest.utf8.count] ?? 0) - 1
        lengths[oldest.utf8.count] = left > 0 ? left : nil
        return true
    }

    /// Returns the path up to its last slash.
    private static func folder(_ path: Substring) -> Substring {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
        return path[...slash]
    }
}

/// One worker's view of the spaces, which takes the lock only after a change.
struct RealmSpaceView {
    private let spaces: RealmSpaces
    private var known: (realms: KnownRealms, version: UInt64)

    init(_ spaces: RealmSpaces) {
        self.spaces = spaces
        known = spaces.snapshot
    }

    /// Returns the realm of `target`, a path with or without a query; nil if it is unknown.
    mutating func realm(at target: String) -> String? {
        if spaces.version != known.version { known = spaces.snapshot }
        return known.realms.realm(at: target, now: known.version)
    }
}
