// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The users whose private files are used besides root and our own.
///
/// What systemd passes to the unit is used as it is. And where root runs a command beside a service that has a user of its
/// own, it uses that user's files, which it knows by the owner of the state directory: nobody else can make a directory
/// there, so that no other user can feed root a file.
package struct FileTrust: Sendable {
    private let credentials: String?
    private let state: String?

    /// Root's files and our own, and no others.
    package static let none = FileTrust(environment: [:])

    /// The trust that `environment` allows: in `CREDENTIALS_DIRECTORY`, and in the owner of the directory `state`.
    package init(environment: [String: String], state: String? = nil) {
        let given = environment["CREDENTIALS_DIRECTORY"] ?? ""
        credentials = given.hasPrefix("/") ? given : nil
        self.state = state
    }

    /// The trust in the file at `path`.
    func trust(in path: String) -> PrivateFile.Trust {
        if let credentials, parentDirectory(of: path) == credentials { return .given }
        return state.map { .ownerOnlyOrOwner(of: $0) } ?? .ownerOnly
    }
}
