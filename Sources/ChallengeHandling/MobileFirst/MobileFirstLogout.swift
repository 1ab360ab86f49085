// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Logs a MobileFirst client out of security checks (reference: POST preauth/v1/logout); its tokens end with it.
public struct MobileFirstLogout: SessionLogout {
    private let client: MobileFirstClient
    private let securityChecks: [String]

    /// A logout of these checks.
    public init(_ client: MobileFirstClient, of securityChecks: [String]) {
        self.client = client
        self.securityChecks = securityChecks
    }

    /// The checks are the client's.
    public var endsAllScopes: Bool { true }

    /// Logs out of each check, also where one before has failed; throws the first failure.
    public func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure) {
        var first: LoginFailure?
        for check in securityChecks {
            do throws(LoginFailure) {
                try await client.logOut(of: check, conversation)
            } catch {
                first = first ?? error
            }
        }
        if let first { throw first }
    }
}
