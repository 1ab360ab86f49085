// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
package import Secrets

/// Credentials that systemd hands to the service (`LoadCredential=`, `LoadCredentialEncrypted=`; systemd.exec(5)): files in
/// `$CREDENTIALS_DIRECTORY`. `NAME.FIELD` holds one field; `NAME` holds a JSON object of fields, texts or whole numbers. A
/// field that has both is taken from its own file.
///
/// One newline at the end of a `NAME.FIELD` file is removed, as editors and `echo` add one; not from a file that holds a
/// zero byte, which is no text (a keytab). A field's name has no dot: in `a.b.c` the name is `a.b`. Permissions are
/// systemd's business; it grants access by an access list, which shows as group bits.
package struct SystemdCredentialsSource: CredentialLookup {
    private let directory: String?

    /// The credentials of `environment`'s `CREDENTIALS_DIRECTORY`; without one this source knows nothing.
    package init(environment: [String: String]) {
        let given = environment["CREDENTIALS_DIRECTORY"] ?? ""
        directory = given.isEmpty ? nil : given
    }

    /// The directory, and all that is in it.
    package var files: FileStates {
        guard let directory else { return FileStates() }
        let names = DirectoryListing.names(in: directory) ?? []
        return FileStates(of: [directory] + names.map { "\(directory)/\($0)" })
    }

    /// The files NAME and NAME.FIELD of the directory, as fields.
    package func credential(named name: String) throws(CredentialError) -> Credential? {
        guard let directory, Self.isFileName(name) else { return nil }
        guard let files = DirectoryListing.names(in: directory) else {
            throw Self.unusable(FileFault.system("read", directory, errno).reason)
        }
        var fields: [String: Secret] = [:]
        if files.contains(name) { fields = try object(in: "\(directory)/\(name)") }
        for file in files where file.hasPrefix(name + ".") {
            let field = String(file.dropFirst(name.count + 1))
            guard !field.isEmpty, !field.contains(".") else { continue }
            fields[field] = try Self.content("\(directory)/\(file)").withoutTrailingNewline
        }
        return fields.isEmpty ? nil : Credential(name: name, fields: fields)
    }

    /// The names that the unit passes the fields by.
    package func way(toAdd fields: [String], of name: String) -> String? {
        let names = fields.map { "\(name).\($0)" }.joined(separator: " and ")
        return "pass \(names) by LoadCredential= of the unit (source `systemd`)"
    }

    /// A credential that is a single value, such as `state-key` or `keyring-passphrase`; `nil` where there is none. One
    /// newline at its end is removed, as above.
    package func value(named name: String) throws(CredentialError) -> Secret? {
        guard let directory, Self.isFileName(name) else { return nil }
        let path = "\(directory)/\(name)"
        guard unsafe access(path, F_OK) == 0 else { return nil }
        return try Self.content(path).withoutTrailingNewline
    }

    private func object(in path: String) throws(CredentialError) -> [String: Secret] {
        var bytes = try Self.content(path).revealBytes()
        defer { wipe(&bytes) }
        guard case .object(let members)? = JSONValue(parsing: bytes, within: .local) else {
            throw Self.unusable("\(path) is no JSON object; write one with the fields, or name the file \(path).FIELD")
        }
        do {
            return try FieldValues.secrets(of: members)
        } catch {
            throw Self.unusable("\(path): \(error.reason)")
        }
    }

    private static func content(_ path: String) throws(CredentialError) -> Secret {
        do {
            return try PrivateFile(path: path, trust: .given).read()
        } catch {
            throw Self.unusable(error.reason)
        }
    }

    private static func unusable(_ reason: String) -> CredentialError {
        CredentialError(
            reason: reason,
            told:
                "A credential that the service manager has passed cannot be used. The daemon's log names the file and what "
                + "is wrong with it.")
    }

    private static func isFileName(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix(".") && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }
}
