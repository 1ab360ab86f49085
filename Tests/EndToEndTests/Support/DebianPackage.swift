// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The Debian package of the program under test.
struct DebianPackage: Sendable {
    /// Its file.
    let path: String
    private let folder: Folder

    /// Makes one, quickly instead of small.
    ///
    /// - Parameter version: in place of the program's own.
    init(version: String? = nil) async throws {
        folder = try Folder()
        var environment = [
            "BINARY": Binary.path, "OUTPUT": folder.path(of: "packages"), "DPKG_DEB_COMPRESSOR_TYPE": "gzip",
            "DPKG_DEB_COMPRESSOR_LEVEL": "1",
        ]
        environment["VERSION"] = version
        let made = try await Repository.script("deb", environment: environment, in: folder)
        guard made.exit == 0 else { throw ChildError(description: "no package: \(made.output)\(made.errors)") }
        path = made.output.split(separator: "\n").last.map(String.init) ?? ""
    }

    /// What `dpkg-deb` says of it.
    func ask(_ arguments: String...) async throws -> String {
        try await Command.run(["dpkg-deb"] + arguments + [path], in: folder).output
    }

    /// Its files and folders, unpacked.
    func unpacked() async throws -> Folder {
        let root = try Folder()
        _ = try await Command.run(["dpkg-deb", "--raw-extract", path, root.path(of: "package")], in: folder)
        return root
    }
}
