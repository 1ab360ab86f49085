// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc

/// Where state is kept.
package enum StateDirectory {
    /// `$STATE_DIRECTORY` (systemd's `StateDirectory=`; the first of a colon-separated list), else
    /// `/var/lib/countersign` for root, else `$XDG_STATE_HOME/countersign`, else `~/.local/state/countersign`.
    package static func locate(
        environment: [String: String], uid: UInt32 = geteuid()
    ) throws(StateError) -> String {
        if let given = firstAbsolute(environment["STATE_DIRECTORY"]) { return given }
        if uid == 0 { return "/var/lib/countersign" }
        // The XDG Base Directory Specification: a relative path is to be ignored.
        if let base = firstAbsolute(environment["XDG_STATE_HOME"]) { return base + "/countersign" }
        if let home = firstAbsolute(environment["HOME"]) { return home + "/.local/state/countersign" }
        throw StateError(
            reason: "no place for the state: set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
    }
}

/// Where sockets and other things that do not outlive a boot go.
package enum RuntimeDirectory {
    /// `$RUNTIME_DIRECTORY` (the first of a list), else `/run/countersign` where it can be used (for root, always), else
    /// `$XDG_RUNTIME_DIR/countersign`. `isUsable` tells whether this process may make files in a directory.
    package static func locate(
        environment: [String: String], uid: UInt32 = geteuid(),
        isUsable: (String) -> Bool = { unsafe access($0, W_OK | X_OK) == 0 }
    ) -> String {
        if let given = firstAbsolute(environment["RUNTIME_DIRECTORY"]) { return given }
        let system = "/run/countersign"
        if uid == 0 || isUsable(system) { return system }
        if let base = firstAbsolute(environment["XDG_RUNTIME_DIR"]) { return base + "/countersign" }
        return system
    }
}

/// The first path of a colon-separated list, where it is absolute; without a slash at its end.
private func firstAbsolute(_ list: String?) -> String? {
    guard var path = list?.split(separator: ":").first, path.hasPrefix("/") else { return nil }
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return String(path)
}
