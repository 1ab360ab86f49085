// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Statement about a submitted value: its source, its meaning, and the sentence that people read.
///
/// `EvidenceList.verdict(wasAccepted:)` is the only place that turns statements into a verdict.
public struct Evidence: Sendable, Equatable {
    /// Source of a statement.
    public enum Source: Sendable, Equatable, CaseIterable {
        /// The configuration: `failed` or `success` matches the answer, or the head of a redirect in its chain.
        case configured
        /// An address that asks for a login without the new session.
        case verifiedAddress
        /// The answer to the submission, or the login page to which its redirect leads back.
        case answer
        /// A page or a status that a right value may meet too: it doubts a value that was accepted before.
        case doubtful
        /// Cookies and redirects, which right and wrong values get.
        case hint
        /// A page that other people write: the target of a redirect, a start page, an address that a caller chose.
        case foreignPage
        /// This program, which did not submit what a browser would have.
        case ownFault
    }

    /// Meaning of a statement.
    public enum Meaning: Sendable, Equatable {
        /// The server accepts the value.
        case accepted
        /// The server rejects the value.
        case rejected(Rejection)
        /// The statement concerns something else.
        case unclear
    }

    /// Kind of rejection.
    public enum Rejection: Sendable, Equatable, CaseIterable {
        /// The account is locked.
        case locked
        /// The password has expired.
        case passwordExpired
        /// The value is wrong.
        case wrong
    }

    /// Source of the statement.
    public var source: Source
    /// Meaning of the statement.
    public var meaning: Meaning
    /// The statement without its subject and without a full stop: "it has the login form again".
    public var sentence: String

    /// Creates a statement.
    public init(_ source: Source, _ meaning: Meaning, _ sentence: String) {
        self.source = source
        self.meaning = meaning
        self.sentence = sentence
    }
}

extension Evidence {
    /// The statement as `login` and the log print it.
    public var text: String {
        switch (source, meaning) {
        case (.foreignPage, _): "proves nothing: \(sentence)"
        case (.ownFault, _): "not submitted as a browser would: \(sentence)"
        case (.hint, .accepted): "the login seems to have worked: \(sentence)"
        case (_, .accepted): "the login worked: \(sentence)"
        case (_, .rejected(.wrong)): "the answer to the form means a wrong password: \(sentence)"
        case (_, .rejected(.locked)): "the answer to the form means a locked account: \(sentence)"
        case (_, .rejected(.passwordExpired)): "the answer to the form means an expired password: \(sentence)"
        case (_, .unclear): "says nothing about the credential: \(sentence)"
        }
    }
}
