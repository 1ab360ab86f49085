// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling

extension ConversationRecord {
    /// The conversation for `/status`.
    var json: JSONValue {
        var object: [String: JSONValue] = [
            "challenge": .string(key.challenge), "credential": .string(key.credential), "scope": .string(key.scope),
            "by": .string(cause.rawValue), "began_at": .integer(beganAt / 1000),
            "steps": .array(
                steps.map { ["after_ms": .integer($0.after), "text": .string($0.text)] }),
            "took_ms": took.map { .integer($0) } ?? .null,
        ]
        if let failure {
            object["outcome"] = .string(failure.code.rawValue)
            object["detail"] = .string(failure.detail)
        } else {
            object["outcome"] = took == nil ? .null : .string(success.rawValue)
        }
        return .object(object)
    }
}
