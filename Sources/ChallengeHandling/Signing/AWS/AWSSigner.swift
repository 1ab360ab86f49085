// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Secrets

/// Signer of requests with Signature Version 4.
///
/// Source: "AWS Signature Version 4 for API requests", AWS Identity and Access Management User Guide.
final class AWSSigner: RequestSigner {
    let keys: AWSKeys
    let service: AWSService
    /// True if bodies are not part of the signature, provided the service allows this.
    let leavesBodiesUnsigned: Bool
    let challenge: String
    let digests: any MessageDigests
    let clock: AWSClock

    init(
        _ keys: AWSKeys, _ service: AWSService, leavesBodiesUnsigned: Bool = false, challenge: String,
        digests: any MessageDigests, clock: AWSClock = AWSClock()
    ) {
        self.keys = keys
        self.service = service
        self.leavesBodiesUnsigned = leavesBodiesUnsigned && service.takesUnsignedBodies
        self.challenge = challenge
        self.digests = digests
        self.clock = clock
    }

    /// Names of the fields, among them that of a token which the caller may have sent.
    var names: [HTTPField.Name] { [.authorization, .amzDate, .amzToken] }

    /// Empty: responses change nothing.
    var learnsFrom: [HTTPField.Name]? { [] }

    /// Does nothing: responses do not change the signer.
    func learn(status: Int, fields: HTTPFields, target: String) {}

    /// Returns a running SHA-256 of the body, if bodies are signed.
    func bodyReader(for target: String) -> (any BodyReader)? {
        leavesBodiesUnsigned || Self.isSigned(target) ? nil : digests.running(.sha256)
    }

    /// Returns the signature of a request.
    func sign(_ request: SigningRequest) throws(LoginFailure) -> SignedFields {
        try SignedFields(request, by: makeView())
    }

    /// Returns a view that keeps the key of the day.
    func makeView() -> any SignerView { AWSSignerView(self) }

    /// Returns whether the caller has signed the target itself, by a query that the server takes in place of fields.
    static func isSigned(_ target: String) -> Bool {
        target.utf8.contains(UInt8(ascii: "?")) && target.contains("X-Amz-Signature=")
    }
}

/// One worker's view of a signer, with the key of the day and buffers for the next request.
private final class AWSSignerView: SignerView {
    private let signer: AWSSigner
    private var second = Int64.min
    private var time = AWSTime(0)
    private var scope = ""
    private var key: (any MessageAuthenticator)?
    private var canonical = AWSCanonicalRequest()
    private var text = SecretBuilder(capacity: 1024)
    private var field = SecretBuilder(capacity: 512)

    init(_ signer: AWSSigner) { self.signer = signer }

    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)? {
        if AWSSigner.isSigned(request.target) { return nil }
        turnClock(to: signer.clock.serverTime(at: request.now))
        canonical.read(request)
        let body = try AWSBodyDigest.digest(of: request, own: canonical.ownDigest, for: signer)
        let isAdded = signer.service.wantsDigestField && canonical.ownDigest == nil
        canonical.add(.amzDate, time.text.utf8.span)
        if isAdded { canonical.add(.amzDigest, body.span) }
        signer.keys.token?.withBytes { canonical.add(.amzToken, $0) }
        writeAuthorization(of: request, body: body)
        if signer.keys.token != nil { canonical.wipe() }
        write(.amzDate, time.text.utf8.span)
        if isAdded { write(.amzDigest, body.span) }
        signer.keys.token?.withBytes { write(.amzToken, $0) }
        field.withBytes { write(.authorization, $0) }
        return nil
    }

    private func turnClock(to now: Int64) {
        let second = now.flooredDivision(by: 1000).quotient
        guard second != self.second else { return }
        self.second = second
        let day = time.day
        time = AWSTime(now)
        guard key == nil || time.day != day else { return }
        scope = "\(time.day)/\(signer.service.region)/\(signer.service.name)/aws4_request"
        key = signer.digests.authenticator(
            .sha256, key: signer.keys.signingKey(time.day, signer.service, signer.digests))
    }

    /// Writes the value of `Authorization` to `field`.
    private func writeAuthorization(of request: SigningRequest, body: [UInt8]) {
        text.removeAll()
        canonical.write(request, signer.service, body: body, to: &text)
        let digest = text.withBytes { signer.digests.digest(.sha256, of: $0) }
        text.removeAll()
        text.append("AWS4-HMAC-SHA256\n")
        text.append(time.text)
        text.append("\n")
        text.append(scope)
        text.append("\n")
        text.append(hexadecimal: digest)
        field.removeAll()
        field.append("AWS4-HMAC-SHA256 Credential=")
        field.append(signer.keys.id)
        field.append("/")
        field.append(scope)
        field.append(", SignedHeaders=")
        canonical.writeNames(to: &field)
        field.append(", Signature=")
        if let key { field.append(hexadecimal: text.withBytes { key.code(of: $0) }) }
    }
}

extension HTTPField.Name {
    fileprivate static let amzDate = HTTPField.Name(literal: "X-Amz-Date")
    fileprivate static let amzDigest = HTTPField.Name(literal: "X-Amz-Content-Sha256")
    fileprivate static let amzToken = HTTPField.Name(literal: "X-Amz-Security-Token")
}
