// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Resources of a server that many requests ask for. Some refuse every caller until access is permitted.
struct SharedResources {
    /// The number of resources in each folder.
    static let count = 3
    /// The time after a permission in ms by which a former refusal must be forgotten.
    static let memory: Int64 = 40_000

    /// The known refusals at a resource, by method and path.
    private struct Doubt {
        /// The session of the last refusal.
        var session: String
        /// The last refusal of another session than that of the one before, in ms since 1970.
        var at = Int64.min / 2
        /// The requests that were refused.
        var orders: Set<Int> = []
    }

    private var doubts: [String: Doubt] = [:]
    /// The requests that were refused while no other was under way.
    private var lonely: Set<Int> = []
    /// The times at which the use of resources was permitted, in ms since 1970.
    private var permissions: [Int: Int64] = [:]

    /// Returns the path of one, with the number of a request.
    static func target(_ resource: Int, in folder: String, for order: Int) -> String {
        "\(folder)/shared\(resource)?order=\(order)"
    }

    /// Returns the number of the request in a target, or `nil`.
    static func order(in target: String) -> Int? {
        target.components(after: "?order=").flatMap { Int($0.prefix { $0.isNumber }) }
    }

    /// Permits the use of one from now on.
    mutating func permit(_ resource: Int, now: Int64) { permissions[resource] = permissions[resource] ?? now }

    /// Notes that a request is refused with that session; `isAlone`: no other is under way. Returns false if it was refused
    /// before and alone both times: then it is the one that has led to the login.
    mutating func isRefused(_ order: Order, session: String, isAlone: Bool, now: Int64) -> Bool {
        var doubt = doubts[Self.name(of: order)] ?? Doubt(session: session)
        // It may have waited for a session that was over at once.
        if doubt.session != session || order.server.protection.account.lastEnd >= order.began { doubt.at = now }
        doubt.session = session
        defer { doubts[Self.name(of: order)] = doubt }
        let isFirst = doubt.orders.insert(order.number).inserted
        defer { if isFirst, isAlone { lonely.insert(order.number) } }
        return isFirst || !isAlone || !lonely.contains(order.number)
    }

    /// Records that a request is carried out: if it had been refused before, the resource refuses no caller now.
    mutating func isCarriedOut(_ order: Order) {
        guard doubts[Self.name(of: order)]?.orders.remove(order.number) != nil else { return }
        // The one that has led to the login may be among the others.
        if doubts[Self.name(of: order)]?.orders.isEmpty == true { doubts[Self.name(of: order)] = nil }
    }

    /// Returns true if the resource of a request has refused one session after the other, at that time or later.
    func isInDoubt(_ order: Order, since time: Int64) -> Bool { doubts[Self.name(of: order)]?.at ?? .min >= time }

    private static func name(of order: Order) -> String { "\(order.method) \(order.target.prefix { $0 != "?" })" }

    /// Returns true if everybody is refused at a path of the folder of refusing resources.
    func refuses(_ path: String) -> Bool {
        !(path.components(after: "/shared").flatMap { Int($0) }.map { permissions[$0] != nil } ?? false)
    }

    /// Returns true if a resource has been permitted for so long that nothing is remembered of its refusals.
    func isOpen(_ resource: Int, now: Int64) -> Bool { permissions[resource].map { now - $0 > Self.memory } ?? false }
}
