// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// Credentials in a file of variables that are named as in `EnvironmentSource` and written as for systemd's `EnvironmentFile=`.
///
/// What a service was started with it cannot read again; this file is read at each look-up, so that a changed value is used. Only
/// its owner may be able to read it, who is this process's user or root.
package struct EnvironmentFileSource: CredentialLookup {
    private let path: String
    private let trust: FileTrust

    /// The file at `path`; `trust` says whose else it may be.
    package init(path: String, trust: FileTrust = .none) { (self.path, self.trust) = (path, trust) }

    /// The file.
    package var files: FileStates { FileStates(of: [path]) }

    /// The variables of the file that begin with this name, as fields.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        try EnvironmentSource(variables: variables()).credential(named: name)
    }

    /// The names of the variables.
    package func way(toAdd fields: [String], of name: String) -> String? {
        "write \(EnvironmentSource.variables(fields, of: name)) into the file of variables (source `env`)"
    }

    /// Reads it, for who wants to know only whether that can be done; tells how many fields it has.
    package func open() throws(CredentialError) -> Int { try EnvironmentSource(variables: variables()).count }

    private func variables() throws(CredentialError) -> [String: Secret] {
        do {
            return try EnvironmentFile.variables(in: try PrivateFile(path: path, trust: trust.trust(in: path)).read())
        } catch let fault as FileFault {
            throw unusable(fault.reason)
        } catch let fault as EnvironmentFile.Fault {
            throw unusable("\(path):\(fault.line): \(fault.reason)")
        } catch {
            throw unusable("\(path) cannot be read")
        }
    }

    private func unusable(_ reason: String) -> CredentialError {
        CredentialError(
            reason: reason,
            told:
                "The file of variables that holds credentials cannot be used. The daemon's log names it and what is wrong with it."
        )
    }
}
