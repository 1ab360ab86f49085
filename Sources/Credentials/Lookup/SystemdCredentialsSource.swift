// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
package import Secrets
internal import System

/// Credentials that systemd passes to the service (`LoadCredential=`, `LoadCredentialEncrypted=`; systemd.exec(5)).
///
/// They are files in `$CREDENTIALS_DIRECTORY`. `NAME.FIELD` holds one field; `NAME` holds a JSON object of strings or
/// integers. A field with a separate file is read from that file.
///
/// One final newline of a `NAME.FIELD` file is removed, because editors and `echo` add one. A file with a zero byte (a keytab)
/// stays unchanged. A field name has no dot: `a.b.c` is the field `c` of `a.b`. Permissions are left to systemd, whose access list
/// appears as group bits.
package struct SystemdCredentialsSource: CredentialLookup {
    private let directory: String?

    /// Creates a source for the `CREDENTIALS_DIRECTORY` of `environment`; without one, no credential is known.
    package init(environment: [String: String]) {
        let given = environment["CREDENTIALS_DIRECTORY"] ?? ""
        directory = given.isEmpty ? nil : given
    }

    /// The states of the directory and of its files.
    package var files: FileStates {
        guard let directory else { return FileStates() }
        let names = DirectoryListing.names(in: directory) ?? []
        return FileStates(of: [directory] + names.map { "\(directory)/\($0)" })
    }

    /// Returns the files NAME and NAME.FIELD of the directory, as fields.
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

    /// Returns an instruction with the names for the unit file.
    package func way(toAdd fields: [String], of name: String) -> String? {
        let names = fields.map { "\(name).\($0)" }.joined(separator: " and ")
        return "pass \(names) with LoadCredential= in the unit (source `systemd`)"
    }

    /// Returns a description with the names for the unit file, and the path of the directory.
    package func source(of fields: [String], of name: String) -> AnsweringSource? {
        guard let directory else { return nil }
        let isObject = FileSystem.allows("\(directory)/\(name)", F_OK)
        let names = isObject ? name : fields.map { "\(name).\($0)" }.joined(separator: " and ")
        return AnsweringSource(
            kind: "systemd (\(names))", name: "systemd (\(names) in \(directory))",
            change:
                "Change what LoadCredential= of the unit names, and restart the unit: systemd passes it at the start only."
        )
    }

    /// Returns a credential with a single value, such as `state-key`; `nil` if it does not exist.
    ///
    /// One final newline is removed. Throws if it cannot be told whether it exists: state would be sealed with another key.
    package func value(named name: String) throws(CredentialError) -> Secret? {
        guard let directory, Self.isFileName(name) else { return nil }
        do {
            let file = PrivateFile(path: "\(directory)/\(name)", trust: .unchecked)
            return try file.read().withoutTrailingNewline
        } catch {
            if error.kind == .missing { return nil }
            throw Self.unusable(error.reason)
        }
    }

    private func object(in path: String) throws(CredentialError) -> [String: Secret] {
        var bytes = try Self.content(path).revealBytes()
        defer { wipe(&bytes) }
        guard case .object(let members)? = JSONValue(parsing: bytes, within: .local) else {
            throw Self.unusable(
                "\(path) is not a JSON object; write an object with the fields, or name the file \(path).FIELD")
        }
        do {
            return try CredentialFields.secrets(of: members)
        } catch {
            throw Self.unusable("\(path): \(error.reason)")
        }
    }

    private static func content(_ path: String) throws(CredentialError) -> Secret {
        do {
            return try PrivateFile(path: path, trust: .unchecked).read()
        } catch {
            throw Self.unusable(error.reason)
        }
    }

    private static func unusable(_ reason: String) -> CredentialError {
        CredentialError(
            reason: reason,
            publicReason:
                "A credential that the service manager has passed cannot be used. See the daemon's log for the file and the "
                + "reason.")
    }

    private static func isFileName(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix(".") && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
    }
}
