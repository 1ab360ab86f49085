// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The events of a simulation besides its requests.
struct Weather {
    /// Connections break, servers fail, answer late or not at all.
    var hasFaults = false
    /// Writes of the state fail.
    var hasDiskFaults = false
    /// Credentials are wrong at first, change, and disappear.
    var changesCredentials = false
    /// Sessions end at their servers.
    var endsSessions = false
    /// Some resources refuse every caller.
    var hasRefusals = false
    /// Servers fail at checks of a session only.
    var troublesLooks = false
    /// Many do.
    var hasManyRefusals = false
    /// Callers leave before they have their answer.
    var losesCallers = false
    /// The process restarts, drained or killed.
    var restarts = false
    /// The configuration is read again.
    var reloads = false
    /// Some resources have no challenge, or one that cannot be answered.
    var hasStrangers = true

    /// Creates fair weather.
    init() {}

    /// Creates weather by `chance`: fair in one of eight cases, and of one or two kinds in others.
    init(_ chance: inout Chance) {
        hasStrangers = chance.oneIn(2)
        if chance.oneIn(8) { return }
        guard !chance.oneIn(3) else {
            focus(&chance)
            return
        }
        hasFaults = chance.oneIn(2)
        hasDiskFaults = chance.oneIn(4)
        changesCredentials = chance.oneIn(2)
        endsSessions = chance.oneIn(2)
        hasRefusals = chance.oneIn(3)
        hasManyRefusals = hasRefusals && chance.oneIn(2)
        troublesLooks = hasRefusals && chance.oneIn(4)
        losesCallers = chance.oneIn(3)
        restarts = chance.oneIn(4)
        reloads = chance.oneIn(4)
    }

    /// Has one or two things happen, and nothing else: then each cause is exact.
    private mutating func focus(_ chance: inout Chance) {
        for _ in 0..<chance.pick(1...2) {
            switch chance.below(8) {
            case 0: hasFaults = true
            case 1: hasDiskFaults = true
            case 2: changesCredentials = true
            case 3: endsSessions = true
            case 4: losesCallers = true
            case 5: restarts = true
            case 6: reloads = true
            default: (hasRefusals, hasManyRefusals, troublesLooks) = (true, chance.oneIn(2), chance.oneIn(2))
            }
        }
    }

    /// True if the daemon may forget something: an answer or a write is lost.
    var forgets: Bool { hasFaults || hasDiskFaults || restarts }

    /// True if several nodes share their sessions: what they know of each other is exact then.
    var allowsNodes: Bool { !hasFaults && !hasDiskFaults && !restarts && !reloads }

    /// The events by name.
    static var events: [(name: String, path: WritableKeyPath<Weather, Bool>)] {
        [
            ("faults", \.hasFaults), ("disk faults", \.hasDiskFaults), ("credentials", \.changesCredentials),
            ("ends of sessions", \.endsSessions), ("refusals", \.hasRefusals), ("looks fail", \.troublesLooks),
            ("callers leave", \.losesCallers), ("restarts", \.restarts), ("reloads", \.reloads),
            ("strangers", \.hasStrangers),
        ]
    }

    /// The events in words, for a report.
    var description: String {
        let names = Self.events.filter { self[keyPath: $0.path] }.map(\.name)
        return names.isEmpty ? "fair" : names.joined(separator: ", ")
    }
}
