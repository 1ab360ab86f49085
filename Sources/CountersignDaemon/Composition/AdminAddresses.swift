// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Credentials
internal import Glibc
internal import Settings

/// The addresses of the admin listener.
enum AdminAddresses {
    /// Those of the configuration; where it names none, a socket in the runtime directory. Of several daemons of one
    /// user that name none, the first has it.
    static func of(_ settings: Settings) -> [ListenAddress] {
        if !settings.admin.addresses.isEmpty { return settings.admin.addresses }
        return [.unix(path: "\(RuntimeDirectory.locate(environment: Process.environment))/admin.sock", mode: 0o600)]
    }

    /// Sees to it that the runtime directory is there, where its socket is ours to choose. A directory that cannot be
    /// made is told by the failure to listen there.
    static func prepare(_ settings: Settings) {
        guard settings.admin.addresses.isEmpty else { return }
        _ = unsafe mkdir(RuntimeDirectory.locate(environment: Process.environment), 0o755)
    }
}
