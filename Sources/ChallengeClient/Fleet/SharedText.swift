// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

// What hosts write for each other, before it is sealed.
extension LoginFailure {
    /// The failure as other hosts may read it: all but what only this one's log needs.
    package var shared: Secret {
        var members: [String: JSONValue] = [
            "code": .string(code.rawValue), "challenge": .string(challenge), "detail": .string(detail),
        ]
        members["retry-at"] = retryAt.map { .integer($0) }
        return Secret(JSONValue.object(members).serialized())
    }

    /// The failure that another host has told of; `nil` for anything else.
    package init?(shared: Secret) {
        guard let value = JSONValue(parsing: shared.revealBytes()),
            let code = value["code"]?.stringValue.flatMap(Code.init(rawValue:)),
            let challenge = value["challenge"]?.stringValue, let detail = value["detail"]?.stringValue
        else { return nil }
        self.init(
            code, challenge: challenge, detail: detail, retryAt: value["retry-at"]?.integerValue,
            cause: "another host of the fleet has tried")
    }
}
