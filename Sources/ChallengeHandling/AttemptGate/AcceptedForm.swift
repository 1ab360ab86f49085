// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The form with which a value was accepted. A later page may not send the credential elsewhere (CONTRIBUTING, rule 11).
public struct AcceptedForm: Sendable, Equatable {
    /// Maximum number of stored names of inputs; a form with more is not kept.
    public static let inputLimit = 64

    /// Origin of the form's action.
    public var origin: Origin
    /// Path of the action, without parameters (`;jsessionid=…`).
    public var path: String
    /// Names of the inputs that went along with the credential: hidden ones, or all that a browser would send.
    public var inputs: Set<String>

    /// Creates a form.
    public init(origin: Origin, path: String, inputs: Set<String>) {
        self.origin = origin
        self.path = path
        self.inputs = inputs
    }
}

extension AcceptedForm {
    /// The form as JSON; `nil` if it is too large to be kept.
    var json: JSONValue? {
        guard inputs.count <= Self.inputLimit, path.utf8.count <= Acceptance.longestPath,
            inputs.allSatisfy({ $0.utf8.count <= Acceptance.longestPath })
        else { return nil }
        return .object([
            "scheme": .string(origin.scheme.rawValue), "host": .string(origin.host),
            "port": .integer(Int64(origin.port)), "path": .string(path),
            "inputs": .array(inputs.sorted().map { .string($0) }),
        ])
    }

    /// Reads the form that `json` wrote; `nil` for anything else.
    init?(_ json: JSONValue?) {
        guard let scheme = json?["scheme"]?.stringValue.flatMap(Origin.Scheme.init(rawValue:)),
            let host = json?["host"]?.stringValue, let path = json?["path"]?.stringValue,
            let port = json?["port"]?.integerValue.flatMap(UInt16.init(exactly:)),
            case .array(let inputs)? = json?["inputs"]
        else { return nil }
        self.init(
            origin: Origin(scheme: scheme, host: host, port: port), path: path,
            inputs: Set(inputs.compactMap(\.stringValue)))
    }
}
