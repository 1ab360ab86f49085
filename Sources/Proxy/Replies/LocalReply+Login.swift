// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

extension LocalReply.Code {
    /// The code for a login that failed.
    package init(_ failure: LoginFailure) {
        switch failure.code {
        case .accountLocked: self = .accountLocked
        case .attemptsKept: self = .attemptsKept
        case .failed: self = .loginFailed
        case .latched: self = .loginLatched
        case .noCredential: self = .noCredential
        case .rejected: self = .loginRejected
        case .timedOut: self = .loginTimeout
        case .upstreamTLS: self = .upstreamTLS
        }
    }
}
