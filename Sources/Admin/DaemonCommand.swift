// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire
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

/// Command of the program that the daemon runs for users of its Unix socket: as its own user, with its credentials.
///
/// `learn` is excluded: it sends a credential to an arbitrary address, and users of the socket may not be allowed to
/// read secrets. A command gets no more than a caller of a listener could send: a path that is no request target could
/// carry a request of its own to the upstream, with the daemon's client certificate.
package enum DaemonCommand: Equatable {
    /// A command to run, by its arguments.
    case run([String])
    /// A request with an unusable parameter; the text says which, and what to do.
    case refused(String)

    /// Reads the command that a request names; nil if it names no command.
    init?(_ request: LocalRequest) {
        let options: [Option]
        switch request.path {
        case "/doctor": options = [.flag("login"), .flag("json"), .path("path"), .names("upstream", atMost: .max)]
        case "/login": options = [.flag("json"), .names("name", atMost: 1)]
        default: return nil
        }
        for (name, value) in request.parameters {
            guard let option = options.first(where: { $0.name == name }) else {
                let known = options.map(\.name).joined(separator: ", ")
                self = .refused("\(request.path) has no such parameter. It has \(known).")
                return
            }
            if let fault = option.fault(of: value) {
                self = .refused("The parameter \(name) of \(request.path) \(fault)")
                return
            }
        }
        let arguments = options.flatMap { $0.arguments(request.values(of: $0.name)) }
        self = .run([String(request.path.dropFirst())] + arguments)
    }

    /// Returns true if `text` is empty, or a path with an optional query, as a caller may send it. The leading slash
    /// may be missing.
    package static func isPath(_ text: String) -> Bool {
        var path = text.utf8.first == UInt8(ascii: "/") ? text : "/" + text
        path.makeContiguousUTF8()
        return RequestTarget.isPathAndQuery(path.utf8.span)
    }

    /// Parameter of a command.
    private enum Option {
        case flag(String)
        case path(String)
        case names(String, atMost: Int)

        var name: String {
            switch self {
            case .flag(let name), .path(let name), .names(let name, _): name
            }
        }

        /// Returns what is wrong with a value; nil for a usable one.
        func fault(of value: String) -> String? {
            switch self {
            case .flag: nil
            case .path:
                DaemonCommand.isPath(value)
                    ? nil
                    : "is no path that a request can have. Percent-encode spaces, control characters, # and bytes above 0x7E, and "
                        + "then each % again for this query."
            case .names:
                value.utf8.count <= 256 && value.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
                    ? nil : "is not a name of the configuration."
            }
        }

        /// Returns the arguments of the command for all values of the parameter.
        func arguments(_ values: [String]) -> [String] {
            switch self {
            case .flag(let name): values.isEmpty ? [] : ["--\(name)"]
            case .path(let name): values.prefix(1).map { "--\(name)=\($0)" }
            case .names(_, let limit): ["--"] + values.prefix(limit)
            }
        }
    }
}
