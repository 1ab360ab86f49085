// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire
internal import Synchronization

/// Method and path of a request, without its query: the key for scopes and refusals.
struct RouteKey: Hashable, Sendable {
    let method: RequestMethod
    let path: [UInt8]

    /// Creates the key of a request; `target` may hold a query.
    init(method: RequestMethod, target: borrowing ByteQueue) {
        self.method = method
        path = target.withSpan { bytes in bytes.copy(ByteRange(start: 0, end: Self.pathLength(bytes))) }
    }

    var pathText: String { String(decoding: path, as: UTF8.self) }

    /// The method and the path as text.
    var text: String { "\(method.rawValue) \(pathText)" }

    /// Returns the hash of a request's route without making a key; equal to the key's `fingerprint`.
    static func fingerprint(_ method: RequestMethod, _ target: Span<UInt8>) -> Int {
        var hasher = Hasher()
        hasher.combine(method.rawValue)
        unsafe target.extracting(0..<pathLength(target)).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    /// The hash of this key.
    var fingerprint: Int { Self.fingerprint(method, path.span) }

    func matches(_ method: RequestMethod, _ target: Span<UInt8>) -> Bool {
        guard self.method == method, Self.pathLength(target) == path.count else { return false }
        for index in path.indices where path[index] != target[index] { return false }
        return true
    }

    private static func pathLength(_ target: Span<UInt8>) -> Int {
        var length = 0
        while length < target.count, target[length] != UInt8(ascii: "?") { length += 1 }
        return length
    }
}

/// The scopes that resources of one upstream have named, shared by all workers.
///
/// A worker polls `version` and copies the table only after it has changed.
package final class LearnedScopes: Sendable {
    /// The scope of the login in one slot of a route.
    struct Entry: Sendable {
        let slot: Int
        let scope: Scope
    }

    private static let most = 1_000
    private let entries = Mutex<(order: [RouteKey], byRoute: [RouteKey: [Int: Scope]])>(([], [:]))
    private let counter = Atomic<UInt64>(0)

    /// Creates an empty table.
    package init() {}

    /// A counter that rises with every recorded scope.
    var version: UInt64 { counter.load(ordering: .acquiring) }

    /// The recorded scopes of each route, by slot.
    var all: [RouteKey: [Int: Scope]] { entries.withLock { $0.byRoute } }

    /// Records the scope of one slot of a route; other slots keep theirs. Drops the older half of the entries if there are too many.
    func learn(_ entry: Entry, for route: RouteKey) {
        entries.withLock { known in
            if known.byRoute[route] == nil { known.order.append(route) }
            known.byRoute[route, default: [:]][entry.slot] = entry.scope
            guard known.order.count > Self.most else { return }
            for old in known.order.prefix(Self.most / 2) { known.byRoute[old] = nil }
            known.order.removeFirst(Self.most / 2)
        }
        counter.wrappingAdd(1, ordering: .releasing)
    }
}
