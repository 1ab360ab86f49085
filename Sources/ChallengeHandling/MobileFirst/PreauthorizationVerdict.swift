// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// What a preauthorization says.
enum PreauthorizationVerdict {
    /// Checks demand answers; others may have passed already.
    case challenged([String: JSONValue], successes: [String: JSONValue])
    /// Checks have failed for good.
    case failed([String: JSONValue])
    /// Every check of the scope has passed.
    case passed([String: JSONValue])
    /// Nothing that a MobileFirst server says there.
    case unusable(remedy: String)

    init(_ response: SideResponse) {
        let body = JSONValue(parsing: response.body)
        switch response.status {
        case 200:
            guard let body, body.objectValue != nil else {
                self = .unusable(remedy: "It is no JSON; a login page may stand in front of the server.")
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
        // Web clients take 222 for 403, as some gateways replace a 403.
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

    /// What may be wrong, where it is unusable.
    var remedy: String {
        if case .unusable(let remedy) = self { remedy } else { "" }
    }

    /// In words, without anything that the server says but names and the number of attempts.
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

    /// IBM's clients differ in whether they regard the case; being lenient costs nothing.
    private static func isChallenge(_ fields: HTTPFields) -> Bool {
        fields[values: .wwwAuthenticate].contains { value in
            ((try? AuthenticationChallenge.parse([value])) ?? []).contains { $0.isScheme("MFP-Challenge") }
        }
    }
}
