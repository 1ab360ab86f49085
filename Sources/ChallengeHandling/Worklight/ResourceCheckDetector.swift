// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Finds security checks that a resource names itself, in either dialect of ``ResourceCheckMessage``.
public struct ResourceCheckDetector: ChallengeDetector {
    private let checks: Set<String>

    /// A detector of the checks of those names.
    public init(checks: some Sequence<String>) { self.checks = Set(checks) }

    /// For `explain`.
    public var kind: String { "security check" }

    /// A 401, or a 403 with a composite challenge, whose body names one of the checks; in the composite dialect also one that
    /// names none but those every client answers by itself.
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        let isComposite = ResourceCheckMessage.isComposite(response.fields)
        guard isComposite ? response.status == 401 || response.status == 403 : response.status == 401 else {
            return .pass
        }
        guard isComposite || Self.isJSON(response.fields) else { return .pass }
        guard let body = response.body else { return .needsBody }
        guard let message = ResourceCheckMessage(status: response.status, fields: response.fields, body: body) else {
            return .pass
        }
        let isOurs = message.challenges.keys.contains { checks.contains($0) }
        let isRoutine = isComposite && message.challenges.keys.allSatisfy { ClientRealms.names.contains($0) }
        return isOurs || isRoutine ? .challenged() : .pass
    }

    private static func isJSON(_ fields: HTTPFields) -> Bool {
        let type = (fields[.contentType] ?? "").prefix { $0 != ";" }.lowercased()
        return type.filter { $0 != " " } == "application/json" || type.filter { $0 != " " }.hasSuffix("+json")
    }
}
