// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Helper that logs in to pages built by scripts, for example with a browser.
public struct LoginHelper: Sendable, Hashable {
    /// Way to reach a helper.
    public enum Reach: Sendable, Hashable {
        /// Program to start: its absolute path, then its arguments.
        case program([String])
        /// Unix socket at that path, where each connection is one login.
        case socket(String)
    }

    /// Way to reach the helper.
    public var reach: Reach
    /// Time limit for one login.
    public var timeout: Duration

    /// Creates a helper.
    public init(_ reach: Reach, timeout: Duration = .seconds(45)) {
        self.reach = reach
        self.timeout = timeout
    }

    /// Path of the program or the socket, for the log.
    public var path: String {
        switch reach {
        case .program(let command): command.first ?? ""
        case .socket(let path): path
        }
    }
}

/// Question to a login helper.
public struct LoginHelperQuestion: Sendable {
    /// Maximum number of bytes. A pipe holds them before the helper reads.
    public static let limit = 4096

    /// One line of JSON.
    public var text: Secret
    /// Values that must not reach the log, even if the helper prints them.
    public var secrets: [Secret]

    /// Creates a question.
    public init(text: Secret, secrets: [Secret]) {
        self.text = text
        self.secrets = secrets
    }
}

/// Failure of a login helper, which says nothing about the credential.
public struct LoginHelperError: Error, Sendable, Equatable {
    /// Reason for the log, without secrets; names the helper.
    public var reason: String
    /// Reason for callers, without paths and without a full stop.
    public var publicReason: String
    /// True if the time limit passed.
    public var isTimeout: Bool

    /// Creates an error.
    public init(reason: String, publicReason: String, isTimeout: Bool = false) {
        self.reason = reason
        self.publicReason = publicReason
        self.isTimeout = isTimeout
    }
}

/// Port that runs login helpers.
public protocol LoginHelpers: Sendable {
    /// Returns the helper's answer, at most 64 KiB.
    ///
    /// Does not run on the caller's executor. A helper that exceeds its time limit is stopped, and so is one whose
    /// login is cancelled.
    func answer(of helper: LoginHelper, to question: LoginHelperQuestion) async throws(LoginHelperError) -> Secret
}

/// Port of a program without login helpers.
public struct NoLoginHelpers: LoginHelpers {
    /// Creates the port.
    public init() {}

    /// Throws: this program runs no helpers.
    public func answer(
        of helper: LoginHelper, to question: LoginHelperQuestion
    ) async throws(LoginHelperError) -> Secret {
        throw LoginHelperError(
            reason: "this program cannot run the login helper \(helper.path)",
            publicReason: "this program runs no login helpers")
    }
}
