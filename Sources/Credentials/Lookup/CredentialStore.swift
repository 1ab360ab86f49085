// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets
package import System

/// A source of credentials, such as the environment or a keyring.
///
/// A source may block. `CredentialStore` therefore calls it on a separate thread.
package protocol CredentialLookup: Sendable {
    /// Returns the current credential of that name, or `nil` if this source does not know the name.
    ///
    /// Throws if the source cannot be read, or if its entry for the name is unusable.
    func credential(named name: String) throws(CredentialError) -> Credential?
    /// The states of the files that this source reads.
    var files: FileStates { get }
    /// Returns an instruction for adding these fields of a credential, as the middle of a sentence.
    ///
    /// Returns `nil` if this source has no instruction.
    func way(toAdd fields: [String], of name: String) -> String?
    /// Returns the description of this source for a rejected value of a credential, with the way to change these fields.
    func source(of fields: [String], of name: String) -> AnsweringSource?
    /// True if a lookup runs another program. Such a source is not polled for changes.
    var asksOthers: Bool { get }
}

extension CredentialLookup {
    /// Returns no instruction.
    package func way(toAdd fields: [String], of name: String) -> String? { nil }
    /// Returns no description.
    package func source(of fields: [String], of name: String) -> AnsweringSource? { nil }
    /// The states of no files.
    package var files: FileStates { FileStates() }
    /// False: a lookup runs no program.
    package var asksOthers: Bool { false }
}

/// The configured credential sources, in order.
///
/// The first source that knows a name provides all of its fields. A failing source ends the lookup, because a later source may hold
/// an older secret.
package struct CredentialStore: CredentialProvider {
    let sources: [any CredentialLookup]
    let asked: [String: [String]]
    let answers: AskedFields?
    private let oneTimePasswords: (any OneTimePasswords)?
    private let onThread: ThreadStart
    private let needed: [String: [String]]

    /// Creates a store over `sources`.
    ///
    /// `answers` provides the fields that `asked` names for a credential and that the sources lack. `oneTimePasswords` computes the
    /// passwords of credentials with a seed. `needed` names the required fields of each credential.
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

    /// Returns the current credential of that name, without blocking the caller's executor.
    package func credential(named name: String) async throws(CredentialError) -> Credential? {
        let (sources, needed) = (sources, needed[name] ?? [])
        var credential = try await lookUp(name) { () throws(CredentialError) in
            try Self.find(name, in: sources, needing: needed)
        }
        if let asked = asked[name], let answers {
            var fields = credential?.fields ?? [:]
            var source = credential?.source
            for field in asked where fields[field] == nil {
                fields[field] = try await answers.value(of: name, field)
                source = .prompt
            }
            credential = Credential(name: name, fields: fields)
            credential?.source = source
        }
        if credential?["totp-seed"] != nil { credential?.oneTimePasswords = oneTimePasswords }
        return credential
    }

    /// Runs `body` on a separate thread, and returns its result.
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
                publicReason: "The credential could not be looked up: no thread could be started on this machine.")
        }
        return try outcome.get()
    }

    /// Returns the instructions of all sources for adding the credential, in order of the sources.
    package func advice(onMissing name: String) -> String {
        let ways = sources.compactMap { $0.way(toAdd: needed[name] ?? ["FIELD"], of: name) }
        return ways.isEmpty ? "Add it to a source of `credentials`." : "Add it: \(ways.joined(separator: ", or "))."
    }

    private static func find(
        _ name: String, in sources: [any CredentialLookup], needing needed: [String]
    ) throws(CredentialError) -> Credential? {
        for source in sources {
            guard var credential = try source.credential(named: name) else { continue }
            credential.source = source.source(of: secretFields(of: credential, needed), of: name)
            return credential
        }
        return nil
    }

    /// Returns the fields that a rejection is about: the needed ones, without names that are no secrets.
    private static func secretFields(of credential: Credential, _ needed: [String]) -> [String] {
        let present = Set(credential.fields.keys.map(CredentialFields.foldedName))
        let candidates = needed.filter { present.contains(CredentialFields.foldedName($0)) }
        let fields = candidates.isEmpty ? present.sorted() : candidates
        let secrets = fields.filter { !["client-id", "principal", "username"].contains($0) }
        return secrets.isEmpty ? fields : secrets
    }
}

extension AnsweringSource {
    /// A person who was asked.
    static let prompt = AnsweringSource(
        kind: "a prompt", change: "Countersign asks for it again after its latch was opened.")
}

/// States of the files that sources read; equal states mean unchanged files.
package struct FileStates: Sendable, Equatable {
    var identities: [PrivateFile.Identity?] = []

    /// Reads the states of the files at these paths, following symbolic links.
    init(of paths: [String] = []) {
        identities = paths.map { try? PrivateFile(path: $0).identity() }
    }

    /// Returns the states of both.
    static func + (left: FileStates, right: FileStates) -> FileStates {
        var sum = left
        sum.identities += right.identities
        return sum
    }
}

/// Current credential, as far as known without running a helper or asking a person.
package enum WatchedCredential: Sendable {
    /// The credential; `nil` if no source knows the name.
    case known(Credential?)
    /// Only a helper or a person can provide the credential.
    case unknown
}

extension CredentialStore {
    /// The states of the files of all sources.
    package var files: FileStates {
        sources.reduce(FileStates()) { $0 + $1.files }
    }

    /// Returns the current credential without running a helper or asking a person.
    package func watched(named name: String) async throws(CredentialError) -> WatchedCredential {
        try await current(name) { !$0.asksOthers }
    }

    /// Returns the current credential without asking a person for a field. Helpers run.
    package func unprompted(named name: String) async throws(CredentialError) -> WatchedCredential {
        try await current(name) { _ in true }
    }

    /// Returns the current credential from the sources that `isUsable` accepts; unknown at the first other one.
    private func current(
        _ name: String, from isUsable: (any CredentialLookup) -> Bool
    ) async throws(CredentialError) -> WatchedCredential {
        var fields: [String: Secret] = [:]
        var origin: AnsweringSource?
        let needed = needed[name] ?? []
        for source in sources {
            guard isUsable(source) else { return .unknown }
            let found = try await lookUp(name) { () throws(CredentialError) in
                try Self.find(name, in: [source], needing: needed)
            }
            guard let found else { continue }
            (fields, origin) = (found.fields, found.source)
            break
        }
        for field in asked[name] ?? [] where fields[field] == nil {
            guard let answer = answers?.cachedAnswer(for: name, field) else { return .unknown }
            (fields[field], origin) = (answer, .prompt)
        }
        guard !fields.isEmpty else { return .known(nil) }
        var credential = Credential(name: name, fields: fields)
        credential.source = origin
        return .known(credential)
    }
}
