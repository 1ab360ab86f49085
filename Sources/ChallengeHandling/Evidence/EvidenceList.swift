// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Statements about one submitted value, in the order in which they were found.
public struct EvidenceList: Sendable, Equatable {
    /// The statements.
    public private(set) var pieces: [Evidence] = []

    /// Creates an empty list.
    public init() {}

    /// Adds a statement.
    public mutating func add(_ piece: Evidence) { pieces.append(piece) }

    /// Verdict on a submitted value, with the statement that decided.
    public enum Verdict: Sendable, Equatable {
        /// The server has accepted the value.
        case accepted(Evidence)
        /// The server has rejected the value, which must not be sent again.
        case rejected(Evidence.Rejection, Evidence)
        /// A value that was accepted before seems to be rejected; the next rejection counts.
        case doubted(Evidence)
        /// The outcome is unknown; `nil` without any statement.
        case unclear(Evidence?)
    }

    /// Returns the verdict on a value (CONTRIBUTING, rule 3). `wasAccepted`: a server has accepted this value before.
    ///
    /// Of statements with equal rank the first decides. A fault of this program turns a rejection into an unclear outcome. A page
    /// that other people write decides nothing.
    public func verdict(wasAccepted: Bool) -> Verdict {
        let ranked = pieces.filter { $0.rank(wasAccepted: wasAccepted) > 0 }
        guard let highest = ranked.map({ $0.rank(wasAccepted: wasAccepted) }).max(),
            let piece = ranked.first(where: { $0.rank(wasAccepted: wasAccepted) == highest })
        else { return .unclear(pieces.first { $0.meaning == .unclear } ?? pieces.last) }
        switch piece.meaning {
        case .accepted: return .accepted(piece)
        case .unclear: return .unclear(piece)
        case .rejected(let rejection):
            if let fault = pieces.first(where: { $0.source == .ownFault }) { return .unclear(fault) }
            // Somebody may have written a page that looks like the login page.
            let isWeak = piece.source == .doubtful || piece.source == .verifiedAddress
            return isWeak && wasAccepted ? .doubted(piece) : .rejected(rejection, piece)
        }
    }

    /// True if no further statement can change the verdict: the configuration has decided.
    public var isSettled: Bool { pieces.contains { $0.source == .configured && $0.meaning != .unclear } }

    /// The statements as sentences, for a failure that none of them decided.
    public var summary: String { pieces.map(\.sentence).joined(separator: "; ") }
}

extension Evidence {
    /// The rank of the statement; 0 if it decides nothing.
    ///
    /// A known failure outranks a known success, and both outrank what the program recognises by itself. A hint decides only for
    /// a value that was accepted before, and only where nothing else was found.
    fileprivate func rank(wasAccepted: Bool) -> Int {
        switch (source, meaning) {
        case (.foreignPage, _), (.ownFault, _): 0
        case (.configured, .rejected), (.configured, .unclear): 6
        case (.configured, .accepted): 5
        case (.verifiedAddress, .accepted): 4
        case (.answer, .rejected), (.answer, .accepted): 3
        case (.doubtful, .rejected), (.verifiedAddress, .rejected): 2
        case (.answer, .unclear): 2
        case (.hint, .accepted): wasAccepted ? 1 : 0
        case (.hint, _), (.doubtful, _), (.verifiedAddress, .unclear): 0
        }
    }
}
