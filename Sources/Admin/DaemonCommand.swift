// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Proxy

/// Output of a command that the daemon has run.
package struct CommandOutput: Sendable {
    /// Exit code; that of a signal is 128 and its number.
    package var exit: Int32
    /// Standard output.
    package var output: String
    /// Standard error.
    package var errors: String

    /// Makes an output.
    package init(exit: Int32, output: String, errors: String) {
        self.exit = exit
        self.output = output
        self.errors = errors
    }

    var json: JSONValue { ["exit": .integer(Int64(exit)), "output": .string(output), "errors": .string(errors)] }
}

/// Commands of the program that the daemon runs for users of its Unix socket: as its own user, with its credentials.
///
/// `learn` is excluded: it sends a credential to an arbitrary address, and users of the socket may not be allowed to
/// read secrets.
enum DaemonCommand {
    /// Returns the arguments of the command that a request names; nil if it names no command.
    static func arguments(of request: LocalRequest) -> [String]? {
        switch request.path {
        case "/doctor":
            ["doctor"] + flag("login", request) + flag("json", request) + option("path", request) + ["--"]
                + request.values(of: "upstream")
        case "/login": ["login"] + flag("json", request) + ["--"] + request.values(of: "name").prefix(1)
        default: nil
        }
    }

    private static func flag(_ name: String, _ request: LocalRequest) -> [String] {
        request.has(name) ? ["--\(name)"] : []
    }

    private static func option(_ name: String, _ request: LocalRequest) -> [String] {
        request.value(of: name).map { ["--\(name)=\($0)"] } ?? []
    }
}
