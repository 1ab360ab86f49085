// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The answer to a security check as a challenge of the configuration has it, for the login that answers all checks of a response.
package struct ConfiguredCheck: Sendable {
    /// Answers the check.
    let handler: HandledCheck
    /// The credential of the answer; `nil`: the handler finds it itself.
    package let credential: String?
    /// True if the callers choose the credential.
    let choosesByUser: Bool
    /// True if the check is passed at the start.
    let isKept: Bool
    /// True if it is logged out of.
    let logsOut: Bool
    /// The address of the answer, where the resource itself sends the challenge.
    let answerURL: WebURL?
    /// The address that every accepted user may GET.
    let proof: WebURL?
    /// The reason why those that this is for get no session; `nil`: they do.
    let refusal: String?

    /// A check.
    package init(
        _ handler: HandledCheck, credential: String? = nil, choosesByUser: Bool = false,
        isKept: Bool = false, logsOut: Bool = false, answerURL: WebURL? = nil, proof: WebURL? = nil,
        refusal: String? = nil
    ) {
        self.handler = handler
        self.credential = credential
        self.choosesByUser = choosesByUser
        self.isKept = isKept
        self.logsOut = logsOut
        self.answerURL = answerURL
        self.proof = proof
        self.refusal = refusal
    }

    /// The challenge's name.
    package var name: String { handler.challengeName }
    /// The check's name at the server.
    package var check: String { handler.securityCheck }
}

extension [ConfiguredCheck] {
    /// The credentials that they are passed with, where some choose theirs by the caller; empty where none does.
    var identity: String { filter(\.choosesByUser).compactMap(\.credential).joined(separator: "+") }

    /// The login for those whom one of them has a credential for.
    func guarding(_ login: Authenticator) -> Authenticator {
        lazy.compactMap(\.refusal).first.map(login.refusing) ?? login
    }
}
