// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Access key that signs requests, permanent or temporary.
struct AWSKeys: Sendable, Equatable {
    /// Name of the key, which is sent.
    var id: Secret
    /// Secret of the key, which never is.
    var secret: Secret
    /// Token of a temporary key, which is sent with each request.
    var token: Secret?

    init(id: Secret, secret: Secret, token: Secret? = nil) {
        self.id = id
        self.secret = secret
        self.token = token
    }

    /// Takes the fields `access-key-id`, `secret-access-key` and `session-token` of `credential`.
    init(_ credential: Credential, for challenge: String) throws(LoginFailure) {
        id = try credential.required("access-key-id", for: challenge)
        secret = try credential.required("secret-access-key", for: challenge)
        token = credential["session-token"].flatMap { $0.isEmpty ? nil : $0 }
        guard isPlain else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail:
                    "The access key of the credential \"\(credential.name)\" holds a byte that no field can carry. Store "
                    + "it again, without blanks and line ends.")
        }
    }

    /// True if fields can carry the key's name and token.
    var isPlain: Bool {
        [id, token].allSatisfy { value in
            value?.withBytes { bytes in
                for index in bytes.indices where bytes[index] <= 0x20 || bytes[index] >= 0x7F || bytes[index] == 0x2C {
                    return false
                }
                return true
            } ?? true
        }
    }

    /// Returns the key for signatures of one day at one service.
    func signingKey(_ day: String, _ service: AWSService, _ digests: any MessageDigests) -> Secret {
        var key = Secret.joining([Secret("AWS4"), secret])
        for part in [day, service.region, service.name, "aws4_request"] {
            var code = digests.authenticationCode(.sha256, key: key, of: Array(part.utf8))
            key = Secret(taking: &code)
        }
        return key
    }
}
