// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Result of a preauthorization.
enum PreauthorizationVerdict {
    /// Checks demand answers; others may have passed already.
    case challenged([String: JSONValue], successes: [String: JSONValue])
    /// Checks have failed finally.
    case failed([String: JSONValue])
    /// Every check of the scope has passed.
    case passed([String: JSONValue])
    /// Not an answer of a MobileFirst server.
    case unusable(remedy: String)

    init(_ response: SideResponse) {
        let body = JSONValue(parsing: response.body)
        switch response.status {
        case 200:
            guard let body, body.objectValue != nil else {
                self = .unusable(remedy: "It is not JSON; there may be a login page in front of the server.")
                return
            }
            self = .passed(body["successes"]?.objectValue ?? [:])
        case 401:
            guard Self.isChallenge(response.fields), let challenges = body?["challenges"]?.objectValue,
                !challenges.isEmpty
            else {
                self = .unusable(remedy: "It names no security check.")
                return
            }
            self = .challenged(challenges, successes: body?["successes"]?.objectValue ?? [:])
        // Web clients accept 222 for 403, since some gateways replace a 403.
        case 403, 222:
            guard let failures = body?["failures"]?.objectValue, !failures.isEmpty else {
                self = .unusable(remedy: "It names no security check.")
                return
            }
            self = .failed(failures)
        default:
            self = .unusable(remedy: "")
        }
    }

    /// The checks that have passed.
    var successes: [String: JSONValue] {
        switch self {
        case .challenged(_, let successes), .passed(let successes): successes
        case .failed, .unusable: [:]
        }
    }

    /// A hint at the cause, if the answer is unusable.
    var remedy: String {
        if case .unusable(let remedy) = self { remedy } else { "" }
    }

    /// A summary that quotes only names and the number of attempts.
    var summary: String {
        switch self {
        case .challenged(let challenges, _):
            let texts = challenges.sorted { $0.key < $1.key }.map { check, value in
                let remaining =
                    value["remainingAttempts"]?.integerValue.map {
                        ", \($0) \($0 == 1 ? "attempt remains" : "attempts remain")"
                    } ?? ""
                return "challenge for \(ServerText.name(check))\(remaining)"
            }
            return texts.joined(separator: "; ")
        case .failed(let failures):
            return "failure of \(failures.keys.sorted().map(ServerText.name).joined(separator: ", "))"
        case .passed:
            return "all security checks passed"
        case .unusable:
            return "unusable"
        }
    }

    /// Returns whether the fields have an MFP challenge. IBM's clients differ in case sensitivity; ignoring case is
    /// harmless.
    private static func isChallenge(_ fields: HTTPFields) -> Bool {
        !ChallengeList(in: fields).challenges(of: "MFP-Challenge").isEmpty
    }
}
