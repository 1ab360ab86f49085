// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// The states of the files that sources read: where they are equal, nothing has changed.
package struct FileStates: Sendable, Equatable {
    var identities: [PrivateFile.Identity?] = []

    /// The states of these paths, links followed.
    init(of paths: [String] = []) {
        identities = paths.map { try? PrivateFile(path: $0).identity() }
    }

    /// These and those.
    static func + (left: FileStates, right: FileStates) -> FileStates {
        var sum = left
        sum.identities += right.identities
        return sum
    }
}

/// What can be told of a credential without asking anybody.
package enum WatchedCredential: Sendable {
    /// It is that, or no source knows it.
    case known(Credential?)
    /// It is a helper's to say, or a person's.
    case unknown
}

extension CredentialStore {
    /// The states of all files that the sources read.
    package var files: FileStates {
        sources.reduce(FileStates()) { $0 + $1.files }
    }

    /// The credential as it is now, without running a helper or asking a person.
    package func watched(named name: String) async throws(CredentialError) -> WatchedCredential {
        var fields: [String: Secret] = [:]
        for source in sources {
            if source.asksOthers { return .unknown }
            let found = try await lookUp(name) { () throws(CredentialError) in try source.credential(named: name) }
            guard let found else { continue }
            fields = found.fields
            break
        }
        for field in asked[name] ?? [] where fields[field] == nil {
            guard let answer = answers?.known(of: name, field) else { return .unknown }
            fields[field] = answer
        }
        return .known(fields.isEmpty ? nil : Credential(name: name, fields: fields))
    }
}
