// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Conversation {
    /// The credential of that name, for `challenge`. Throws `no-credential` where no source knows it, and `login-failed`
    /// where a source cannot be read.
    func credential(named name: String, for challenge: String) async throws(LoginFailure) -> Credential {
        let found: Credential?
        do throws(CredentialError) {
            found = try await credentials.credential(named: name)
        } catch {
            throw LoginFailure(
                error.isAbsent ? .noCredential : .failed, challenge: challenge, detail: error.told,
                cause: error.told == error.reason ? "" : error.reason)
        }
        guard let found else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "No source knows the credential \"\(name)\". \(credentials.advice(onMissing: name))")
        }
        return found
    }
}
