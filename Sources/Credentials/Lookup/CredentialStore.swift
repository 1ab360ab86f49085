// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// One place that credentials come from. Unlike a provider it may block: `CredentialStore` asks it on a thread of its own.
package protocol CredentialLookup: Sendable {
    /// The credential of that name as it is now, or `nil` where this source does not know it. An error where the source
    /// could not be read, or holds something for that name that cannot be used.
    func credential(named name: String) throws(CredentialError) -> Credential?
    /// The states of the files that it reads.
    var files: FileStates { get }
    /// How these fields of a credential are added to it, as the middle of a sentence; `nil`: that cannot be said.
    func way(toAdd fields: [String], of name: String) -> String?
    /// Whether it asks another program, so that it is not to be asked for the sake of looking.
    var asksOthers: Bool { get }
}

extension CredentialLookup {
    /// Nothing.
    package func way(toAdd fields: [String], of name: String) -> String? { nil }
    /// None.
    package var files: FileStates { FileStates() }
    /// No.
    package var asksOthers: Bool { false }
}

/// The sources of the configuration, in order: the first that knows a name wins, with all its fields. A source that
/// fails ends the search, because a later one might know an older secret.
package struct CredentialStore: CredentialProvider {
    let sources: [any CredentialLookup]
    let asked: [String: [String]]
    let answers: AskedFields?
    private let oneTimePasswords: (any OneTimePasswords)?
    private let onThread: ThreadStart
    private let needed: [String: [String]]

    /// A store over `sources`; `oneTimePasswords` computes those of the credentials that have a seed. The fields that `asked`
    /// names for a credential come from `answers` where the sources do not have them. `needed`: the fields that each has to have.
    package init(
        sources: [any CredentialLookup], asked: [String: [String]] = [:], answers: AskedFields? = nil,
        oneTimePasswords: (any OneTimePasswords)? = nil, needed: [String: [String]] = [:],
        onThread: @escaping ThreadStart = startThread
    ) {
        self.needed = needed
        self.sources = sources
        self.asked = asked
        self.answers = answers
        self.oneTimePasswords = oneTimePasswords
        self.onThread = onThread
    }

    /// Never blocks the caller's executor.
    package func credential(named name: String) async throws(CredentialError) -> Credential? {
        let sources = sources
        var credential = try await lookUp(name) { () throws(CredentialError) in try Self.find(name, in: sources) }
        if let asked = asked[name], let answers {
            var fields = credential?.fields ?? [:]
            for field in asked where fields[field] == nil { fields[field] = try await answers.value(of: name, field) }
            credential = Credential(name: name, fields: fields)
        }
        if credential?["totp-seed"] != nil { credential?.oneTimePasswords = oneTimePasswords }
        return credential
    }

    /// Runs `body` on a thread of its own.
    func lookUp(
        _ name: String, _ body: @escaping @Sendable () throws(CredentialError) -> Credential?
    ) async throws(CredentialError) -> Credential? {
        let outcome: Result<Credential?, CredentialError>
        do throws(ThreadError) {
            outcome = try await onOwnThread(onThread) {
                Result { () throws(CredentialError) in try body() }
            }
        } catch {
            throw CredentialError(
                reason: "The credential \"\(name)\" could not be looked up: \(error).",
                told: "The credential could not be looked up: the machine is short of threads.")
        }
        return try outcome.get()
    }

    /// The ways of all sources, those of the first source first.
    package func advice(onMissing name: String) -> String {
        let ways = sources.compactMap { $0.way(toAdd: needed[name] ?? ["FIELD"], of: name) }
        return ways.isEmpty ? "Add it to a source of `credentials`." : "Add it: \(ways.joined(separator: ", or "))."
    }

    private static func find(
        _ name: String, in sources: [any CredentialLookup]
    ) throws(CredentialError) -> Credential? {
        for source in sources {
            if let credential = try source.credential(named: name) { return credential }
        }
        return nil
    }
}
