// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import Secrets
internal import Synchronization

/// Tokens that name callers, by credential. Workers read a copy that is renewed only after a change.
package final class CallerTokens: Sendable {
    /// Allowed numbers of bytes of a token. A shorter one can be guessed.
    package static let lengths = 16...4096

    private let tokens = Mutex<[String: Secret]>([:])
    private let changes = Atomic<Int>(0)

    /// Makes a table without tokens: every caller is refused.
    package init() {}

    /// Number of changes so far.
    var version: Int { changes.load(ordering: .acquiring) }

    /// Sets the token in the credential `name`; `nil` removes it. The next request of any worker is judged by it.
    package func set(_ token: Secret?, of name: String) {
        let isChange = tokens.withLock { tokens in
            let isChange = tokens[name] != token
            tokens[name] = token
            return isChange
        }
        if isChange { changes.wrappingAdd(1, ordering: .releasing) }
    }

    /// Removes the tokens of all other credentials.
    package func keep(_ names: Set<String>) {
        for name in tokens.withLock({ Array($0.keys) }) where !names.contains(name) { set(nil, of: name) }
    }

    /// Names of the credentials whose tokens are known.
    package var known: Set<String> { tokens.withLock { Set($0.keys) } }

    /// Names of the credentials whose token is not unique. These callers cannot be told apart.
    package var ambiguous: Set<String> { Self.ambiguous(in: tokens.withLock { $0 }) }

    private static func ambiguous(in tokens: [String: Secret]) -> Set<String> {
        Set(tokens.filter { one in tokens.count { $0.value == one.value } > 1 }.keys)
    }

    /// Returns the reason why this value cannot be a token; `nil` if it can.
    package static func fault(of token: Secret) -> String? {
        guard lengths.contains(token.count) else {
            return
                "has \(token.count) bytes; it needs \(lengths.lowerBound) to \(lengths.upperBound): make one by `openssl rand -hex 32`"
        }
        let isVisible = token.withBytes { bytes in
            bytes.indices.allSatisfy { (0x21...0x7E).contains(bytes[$0]) }
        }
        return isVisible ? nil : "has a blank or a character that is not ASCII, which no field can have"
    }

    /// Returns the tokens of the credentials `names`, without ambiguous ones.
    func table(of names: [String]) -> CallerTokenTable {
        // Before the tokens, so that a change in between is noticed.
        let version = version
        let tokens = tokens.withLock { $0 }
        let ambiguous = Self.ambiguous(in: tokens)
        let entries = names.filter { !ambiguous.contains($0) }
            .compactMap { name in tokens[name].map { (name: name, token: $0) } }
        return CallerTokenTable(entries, isComplete: entries.count == names.count, version: version)
    }
}

/// Tokens of one listener at one worker. Immutable.
struct CallerTokenTable {
    fileprivate struct Entry {
        let caller: CallerIdentity
        /// The token, and zeros up to the greatest length.
        let padded: Secret
        let count: Int
    }

    private let entries: [Entry]
    /// True if the tokens of all callers are known and differ.
    let isComplete: Bool
    /// The version of the tokens.
    let version: Int

    fileprivate init(_ tokens: [(name: String, token: Secret)], isComplete: Bool, version: Int) {
        entries = tokens.map { name, token in
            var padded = SecretBuilder(capacity: CallerTokens.lengths.upperBound)
            padded.append(token)
            while padded.count < CallerTokens.lengths.upperBound { padded.append(0) }
            return Entry(caller: .token(name), padded: padded.finish(), count: token.count)
        }
        self.isComplete = isComplete
        self.version = version
    }

    /// Returns the caller with the token `presented`; `nil` if the token is unknown.
    ///
    /// Compares with all tokens to the end. The time depends on the number of tokens and on what the caller sent, not on the
    /// tokens and their lengths.
    func caller(presenting presented: Span<UInt8>) -> CallerIdentity? {
        var found = 0
        for index in entries.indices {
            let difference = entries[index].difference(from: presented)
            // All bits if there is no difference, else 0.
            let mask = 0 &- Int((difference &- 1) >> 31)
            found |= mask & (index + 1)
        }
        return found == 0 ? nil : entries[found - 1].caller
    }
}

extension CallerTokenTable.Entry {
    /// Returns 0 if `presented` is the token, else a number below 2^31.
    fileprivate func difference(from presented: Span<UInt8>) -> UInt32 {
        padded.withBytes { own in
            let lengths = UInt64(presented.count) ^ UInt64(count)
            var difference = UInt32(truncatingIfNeeded: (lengths | lengths >> 32) & 0x7FFF_FFFF)
            for index in 0..<min(presented.count, own.count) {
                difference |= UInt32(truncatingIfNeeded: own[index] ^ presented[index])
            }
            return difference
        }
    }
}
