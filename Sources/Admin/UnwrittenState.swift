// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// State that could not be written to the disk, and is only in memory. A value.
package struct UnwrittenState: Sendable, Equatable {
    /// Kind of state, by what its loss means.
    package enum Kind: Int, Sendable, CaseIterable {
        /// A latch that has closed.
        case rejection
        /// A latch that an operator has opened.
        case opening
        /// A submission of a value that no server has accepted.
        case submission
        /// A used step of a one-time password.
        case code
        /// A rotated refresh token, a registration, or another value that a server gave.
        case token
        /// A mark that a value was accepted.
        case acceptance
    }

    /// Number of values of each kind.
    package private(set) var counts: [Kind: Int]
    /// Path of the state directory.
    package private(set) var directory: String
    /// Reason why the directory cannot be written.
    package private(set) var reason: String

    /// Creates the description of `changes`, and of `values` that servers gave; nil if all of it is written.
    package init?(_ changes: [AttemptChange], values: Int = 0, directory: String, reason: String) {
        counts = changes.reduce(into: [:]) { counts, change in counts[Kind(change), default: 0] += 1 }
        if values > 0 { counts[.token] = values }
        guard !counts.isEmpty else { return nil }
        self.directory = directory
        self.reason = reason
    }

    /// Number of all values that are only in memory.
    package var count: Int { counts.values.reduce(0, &+) }

    /// True if a restart would do harm. A lost mark of acceptance only means that its value counts as new.
    var isHarmful: Bool { counts.keys.contains { $0 != .acceptance } }

    /// The state in words, each kind with the consequence of a restart.
    package var sentences: [String] {
        Kind.allCases.filter { counts[$0] != nil }.map { kind in
            let (what, consequence) = kind.words
            return
                "\(what) remembered only in memory, because \(directory) cannot be written: \(reason); after a restart "
                + consequence
        }
    }

    /// Removes the paths of files.
    mutating func removePaths() {
        directory = "the state directory"
        reason = reason.withoutPaths
    }

    /// The remedy in words.
    package static let remedy =
        "free space in the state directory, or make it writable for the daemon's user; the daemon then writes it by itself"
}

extension UnwrittenState.Kind {
    init(_ change: AttemptChange) {
        switch change {
        case .accept, .withdraw: self = .acceptance
        case .close: self = .rejection
        case .count: self = .submission
        case .renew, .unlatch: self = .opening
        case .use: self = .code
        }
    }

    fileprivate var words: (what: String, consequence: String) {
        switch self {
        case .acceptance: ("an accepted credential is", "it would count as a new one")
        case .code: ("a used one-time password is", "it could be sent again")
        case .opening: ("an opened latch is", "it would be closed again")
        case .rejection: ("a rejected credential is", "it would be sent again")
        case .submission: ("a submission without a clear outcome is", "it would be repeated sooner")
        case .token: ("a token or registration that a server gave is", "its login may fail")
        }
    }
}
