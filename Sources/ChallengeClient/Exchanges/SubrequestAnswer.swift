// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPTypes
internal import Secrets

/// What another proxy is to add to a request that it asks about, and sends itself.
package struct SubrequestAnswer {
    let sessions: SessionFields
    let keepsCredentials: Bool
    /// The fields made for this one request.
    var signed: [InjectedField] = []
    /// The sessions' cookies, which become one field with the caller's.
    package internal(set) var cookies: RequestCookies?
    /// For how many seconds the same answer is right; 0: for this request only.
    package internal(set) var lifetime: Int64 = 0

    init(sessions: SessionFields, keepsCredentials: Bool) {
        self.sessions = sessions
        self.keepsCredentials = keepsCredentials
    }

    /// Shows name and value of each field but `Cookie` to `body`; they must not be kept beyond it.
    package func forEachField(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        sessions.forEach(keepingCredentials: keepsCredentials, body)
        for field in signed { field.value.withBytes { body(field.name.rawName.utf8.span, $0) } }
    }
}
