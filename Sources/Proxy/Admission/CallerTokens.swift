// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import Secrets
internal import Synchronization

/// Tokens that name callers, by credential. Workers read a copy that is renewed only after a change.
package final class CallerTokens: Sendable {
    /// Allowed numbers of bytes of a token. A shorter one can be guessed.
    package static let lengths = 16...4096

    fileprivate struct State: Sendable {
        var tokens: [String: Secret] = [:]
        /// Credentials by the hash of their token.
        var names: [UInt64: [String]] = [:]
        /// Credentials whose token another one has as well.
        var ambiguous: Set<String> = []
    }

    private let hash = KeyedHash()
    private let state = Mutex(State())
    private let changes = Atomic<Int>(0)

    /// Makes a table without tokens: every caller is refused.
    package init() {}

    /// Number of changes so far.
    var version: Int { changes.load(ordering: .acquiring) }

    /// Sets the token in the credential `name`; `nil` removes it. The next request of any worker is judged by it.
    package func set(_ token: Secret?, of name: String) {
        let isChange = state.withLock { state in
            let old = state.tokens[name]
            guard old != token else { return false }
            if let old { state.remove(old, of: name, hash: old.withBytes { hash($0) }) }
            if let token { state.add(token, of: name, hash: token.withBytes { hash($0) }) }
            return true
        }
        if isChange { changes.wrappingAdd(1, ordering: .releasing) }
    }

    /// Removes the tokens of all other credentials.
    package func keep(_ names: Set<String>) {
        for name in state.withLock({ Array($0.tokens.keys) }) where !names.contains(name) { set(nil, of: name) }
    }

    /// Names of the credentials whose tokens are known.
    package var known: Set<String> { state.withLock { Set($0.tokens.keys) } }

    /// Names of the credentials whose token is not unique. These callers cannot be told apart.
    package var ambiguous: Set<String> { state.withLock { $0.ambiguous } }

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
        let (tokens, ambiguous) = state.withLock { ($0.tokens, $0.ambiguous) }
        let entries = names.filter { !ambiguous.contains($0) }
            .compactMap { name in tokens[name].map { (name: name, token: $0) } }
        return CallerTokenTable(entries, hash, isComplete: entries.count == names.count, version: version)
    }
}

extension CallerTokens.State {
    fileprivate mutating func add(_ token: Secret, of name: String, hash: UInt64) {
        let others = (names[hash] ?? []).filter { tokens[$0] == token }
        if !others.isEmpty { ambiguous.formUnion(others + [name]) }
        tokens[name] = token
        names[hash, default: []].append(name)
    }

    fileprivate mutating func remove(_ token: Secret, of name: String, hash: UInt64) {
        let left = (names[hash] ?? []).filter { $0 != name }
        names[hash] = left.isEmpty ? nil : left
        tokens[name] = nil
        ambiguous.remove(name)
        let others = left.filter { tokens[$0] == token }
        if let only = others.first, others.count == 1 { ambiguous.remove(only) }
    }
}

/// Tokens of one listener at one worker. Immutable.
struct CallerTokenTable {
    private struct Entry {
        let caller: CallerIdentity
        let token: Secret
    }

    /// Tokens by hash: one for each hash, but for a collision.
    private let entries: [UInt64: [Entry]]
    private let hash: KeyedHash
    /// True if the tokens of all callers are known and differ.
    let isComplete: Bool
    /// The version of the tokens.
    let version: Int

    fileprivate init(
        _ tokens: [(name: String, token: Secret)], _ hash: KeyedHash, isComplete: Bool, version: Int
    ) {
        entries = Dictionary(grouping: tokens.map { Entry(caller: .token($0.name), token: $0.token) }) { entry in
            entry.token.withBytes { hash($0) }
        }
        self.hash = hash
        self.isComplete = isComplete
        self.version = version
    }

    /// Returns the caller with the token `presented`; `nil` if the token is unknown.
    ///
    /// The time depends on what the caller sent, not on the number of tokens. Nobody without the key can send another text
    /// with the hash of a token, so no part of a token shows, and the token itself is compared to its end.
    func caller(presenting presented: Span<UInt8>) -> CallerIdentity? {
        for entry in entries[hash(presented)] ?? [] where entry.token.isEqual(to: presented) { return entry.caller }
        return nil
    }

    /// Returns the number of tokens that are compared with `presented`. For tests.
    func comparisons(with presented: Span<UInt8>) -> Int { entries[hash(presented)]?.count ?? 0 }
}

extension Secret {
    /// Returns whether these are the bytes of the secret, in a time that depends on the lengths only.
    fileprivate func isEqual(to other: Span<UInt8>) -> Bool {
        withBytes { own in
            guard own.count == other.count else { return false }
            var difference: UInt8 = 0
            for index in own.indices { difference |= own[index] ^ other[index] }
            return difference == 0
        }
    }
}
